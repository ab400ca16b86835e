//! The command line: one file a command, one place where failures become exit codes.

mod bundle;
mod contract;
mod doctor;
mod engines;
mod exec;
mod keys;
mod output;
mod recover;
mod run;
mod runs;
mod schema;
mod show;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::doubles;
use crate::failure::Failure;
use crate::host::{Env, Home};
use output::Output;

/// The gate between coding agents and the repositories people own.
#[derive(Parser)]
#[command(name = "cto", version, about, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Args)]
struct Global {
    /// Directory for all state [default: the first of CTO_STATE_DIR, a Hermes profile, CTO_HOME, XDG state]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Directory for run bundles only [env: CTO_RUNS_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    runs_dir: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run a case under governance and leave an evidence bundle
    Run(run::Args),
    /// Show what happened in a run
    Show(show::Args),
    /// Check a bundle from its own bytes
    Verify(verify::Args),
    /// Pack a bundle into one file, or unpack one
    Bundle(bundle::Args),
    /// Which key signs here, and whose signatures count
    Keys(keys::Args),
    /// List runs, newest first
    Runs(runs::Args),
    /// Close runs that were interrupted
    Recover(recover::Args),
    /// Print the resolved contract of a case with both digests
    Contract(contract::Args),
    /// List the engines and their gates
    Engines(engines::Args),
    /// Run any command in the jail
    Exec(exec::Args),
    /// Say what this host can contain, and how to fix what it cannot
    Doctor(doctor::Args),
    /// Print the JSON Schema of an artifact
    Schema(schema::Args),
    /// Play a script as the `fake` engine
    #[command(name = "__fake", hide = true)]
    Fake { script: PathBuf },
    /// Try to get past the jail in one way
    #[command(name = "__attack", hide = true)]
    Attack {
        name: String,
        #[arg(default_value = "")]
        argument: String,
    },
    /// Run a command in a jail with an echo behind its door
    #[command(name = "__echo-door", hide = true)]
    EchoDoor {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Enter a jail; the order comes over standard input
    #[command(name = "__jail", hide = true)]
    Jail,
}

/// What every command is given.
struct Context {
    env: Env,
    home: Option<PathBuf>,
    runs_dir: Option<PathBuf>,
    output: Output,
}

impl Context {
    fn home(&self) -> Result<Home, Failure> {
        Home::find(self.home.clone(), self.runs_dir.clone(), &self.env)
    }
}

/// Parses, dispatches, and turns whatever comes back into an exit code.
pub fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|arg| arg == "__jail") {
        // Before anything could start a thread.
        crate::jail::enter_main();
    }
    let Cli { global, command } = Cli::parse();
    match &command {
        Command::Fake { script } => return ExitCode::from(doubles::fake::play(script)),
        Command::Attack { name, argument } => return ExitCode::from(doubles::attacks::play(name, argument)),
        Command::EchoDoor { command } => return ExitCode::from(doubles::echo_door::play(command)),
        _ => {}
    }
    let context = Context {
        env: Env::of_process(),
        output: Output::new(global.json, global.home.as_deref(), global.runs_dir.as_deref()),
        home: global.home,
        runs_dir: global.runs_dir,
    };
    let code = match dispatch(&context, command) {
        Ok(code) => code,
        Err(failure) => {
            context.output.failure(&failure);
            failure.exit_code()
        }
    };
    ExitCode::from(code)
}

fn dispatch(context: &Context, command: Command) -> Result<u8, Failure> {
    match command {
        Command::Run(args) => run::run(context, args),
        Command::Show(args) => show::run(context, &args),
        Command::Verify(args) => verify::run(context, &args),
        Command::Bundle(args) => bundle::run(context, &args),
        Command::Keys(args) => keys::run(context, args),
        Command::Runs(args) => runs::run(context, &args),
        Command::Recover(args) => recover::run(context, &args),
        Command::Contract(args) => contract::run(context, args),
        Command::Engines(args) => engines::run(context, &args),
        Command::Exec(args) => Ok(exec::run(context, args)),
        Command::Doctor(args) => doctor::run(context, &args),
        Command::Schema(args) => schema::run(context, &args),
        // Handled before any state is looked at.
        Command::Fake { .. } | Command::Attack { .. } | Command::EchoDoor { .. } | Command::Jail => Ok(0),
    }
}

/// The command tree, for the generated documentation.
pub fn command_tree() -> clap::Command {
    Cli::command()
}
