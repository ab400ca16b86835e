//! The command line: one file per command, one place where failures become exit codes. It turns
//! words into requests and answers into text; everything else is done below.
//!
//! - `work/` run, try, project, apply, reverify, exec; `evidence/` what reads and keeps bundles; `tasks/` cases
//! - `operator/` request, approve, deny, outcome, revert; `engines/` engines, records, matrix, validators; `program/` doctor, config, help pages
//! - `parse.rs` words to a command; `args/` flags shared; `configured.rs` what the config file says of them; `help.rs`; `old_names.rs` former names
//!
//! Imports every room. Imported by nobody but `main.rs`.

mod args;
mod engines;
mod evidence;
mod operator;
pub mod program;
mod tasks;
mod work;

mod configured;
mod help;
mod old_names;
mod parse;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use cto_core::bundle::attest::Trust;
use cto_core::engine::registry::Registry;
use cto_core::operator::settings::{Layers, Source};

use crate::doubles;
use crate::evidence::keys::KeyStore;
use crate::host::failure::Failure;
use crate::host::{Env, Home};
use crate::screen::ascii;
use crate::screen::output::{Color, Output};
use crate::supervise::Entrance;

/// The gate between coding agents and the repositories people own.
#[derive(Parser)]
#[command(
    name = "cto",
    version,
    about,
    max_term_width = 100,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Options of every command")]
struct Global {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
    /// Use colours: auto, always or never [env: NO_COLOR, CLICOLOR_FORCE]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        hide_short_help = true,
        hide_possible_values = true
    )]
    color: Option<Color>,
    /// Directory for all state [default: the first of CTO_STATE_DIR, a Hermes profile, CTO_HOME,
    /// config, XDG state]
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    home: Option<PathBuf>,
    /// Directory for run bundles only [env: CTO_RUNS_DIR]
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    runs_dir: Option<PathBuf>,
    /// Directory of your own engines, NAME.toml each [default: engines beside the config file]
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    engines: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Run a case in a jail, check the result, and leave an evidence bundle
    Run(work::run::Args),
    /// Try a task on a copy of your own repository
    Try(Box<work::try_run::Args>),
    /// Show or change what is remembered of a repository: its test command and what may change
    Project(work::project::Args),
    /// Put a verified patch into your work tree
    Apply(work::apply::Args),
    /// Judge the patch of a run again, by the same or other checks and without the engine
    Reverify(Box<work::reverify::Args>),
    /// Ask for a run that needs an approval; nothing is started
    Request(Box<operator::request::Args>),
    /// List what was asked for, and what became of it
    Requests(operator::request::ListArgs),
    /// Approve a request: see what it would do, say its sentence, and sign with your SSH key
    Approve(operator::answer::Args),
    /// Deny a request
    Deny(operator::answer::DenyArgs),
    /// Say what becomes of a green result at stage 5: accepted it lands, rejected it is dropped
    Outcome(operator::outcome::Args),
    /// Take an accepted result back, by one commit that undoes it
    Revert(operator::outcome::RevertArgs),
    /// Show what happened in a run
    Show(evidence::show::Args),
    /// Show the last lines of what a check or the engine printed
    Log(evidence::log::Args),
    /// Re-check an evidence bundle: files, digests, signature, and that its verdict follows from
    /// its evidence
    Verify(evidence::verify::Args),
    /// Pack a bundle into one file, or unpack one
    Bundle(evidence::bundle::Args),
    /// Show or change the key that signs here, and the keys you trust
    Keys(evidence::keys::Args),
    /// List runs, newest first
    Runs(evidence::runs::Args),
    /// Seal runs that were interrupted, as blocked
    Recover(evidence::recover::Args),
    /// Print the exact contract of a case and its two digests, without running it
    Contract(tasks::contract::Args),
    /// List the cases and what each may change
    Cases(tasks::cases::Args),
    /// Write a case of your own to begin with, or check that a case is sound
    Case(tasks::case::Args),
    /// List the engines, and open or close the gate of one
    Engines(engines::list::Args),
    /// Set up an engine step by step: its records, and the proofs of its first stages
    Setup(engines::setup::Args),
    /// Admission records: which engine program, model and repository may be used
    Admit(engines::admit::Args),
    /// Say whether an engine may be chosen for a case, and what is missing
    Eligibility(engines::eligibility::Args),
    /// Show which stages are proven for an engine, and what the next one needs
    Ladder(engines::ladder::Args),
    /// Validate a stage: run what it must show, and keep the proof for an engine
    Validate(engines::validate::Args),
    /// Run any command in the jail
    Exec(work::exec::Args),
    /// Test the jail on this host, or the tests of a repository in it, and say how to fix what is missing
    Doctor(program::doctor::Args),
    /// Make every known failure happen on purpose, and check that each is found
    Matrix(engines::matrix::Args),
    /// Print the JSON Schema of an artifact
    Schema(evidence::schema::Args),
    /// Show the patch of a run
    Diff(evidence::diff::Args),
    /// Show how a run went, event by event
    Replay(evidence::replay::Args),
    /// Show every setting and where it came from
    #[command(after_long_help = program::config::keys())]
    Config(program::config::Args),
    /// Print completions for a shell
    Completions(program::completions::Args),
    /// Print or write the manual pages
    Man(program::man::Args),
    /// List every command, or explain one
    Help(help::Args),
    /// Be an agent that asks its model through the door
    #[command(name = "__agent", hide = true)]
    Agent {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Be a double of Case
    #[command(name = "__case", hide = true)]
    CaseDouble {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
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
    /// Try one attack of the hostile kit
    #[command(name = "__hostile", hide = true)]
    Hostile {
        name: String,
        #[arg(allow_hyphen_values = true)]
        on: Vec<String>,
    },
    /// Run a command in a jail with an echo behind its door
    #[command(name = "__echo-door", hide = true)]
    EchoDoor {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Play a scenario as a model
    #[command(name = "__model", hide = true)]
    Model(doubles::model::Args),
    /// Open the model gateway without a run
    #[command(name = "__gateway", hide = true)]
    Gateway(doubles::gateway_alone::Args),
    /// Ask a model and say how long it took
    #[command(name = "__ask", hide = true)]
    Ask(doubles::model_client::Args),
    /// Run one row of the failure matrix
    #[command(name = "__row", hide = true)]
    Row(engines::matrix_row::Args),
    /// Enter a jail; the order comes over standard input
    #[command(name = "__jail", hide = true)]
    Jail,
}

/// What every command is given.
struct Context {
    env: Env,
    home: Option<PathBuf>,
    runs_dir: Option<PathBuf>,
    /// `--engines`.
    engines_dir: Option<PathBuf>,
    /// Every engine, read once.
    engines: OnceLock<Registry>,
    color: Option<Color>,
    /// The config file, for commands that use one.
    config: cto_core::operator::settings::Config,
    output: Output,
}

impl Context {
    fn home(&self) -> Result<Home, Failure> {
        Home::find(
            self.home.clone(),
            self.runs_dir.clone(),
            &self.env,
            &self.config,
        )
    }

    /// Nothing where nobody says where one would be. One that is refused is not the same as none.
    fn home_if_any(&self) -> Result<Option<Home>, Failure> {
        match self.home() {
            Ok(home) => Ok(Some(home)),
            Err(failure) if failure.code == "no_state_home" => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Whose signatures count on this machine. Without a state home there is no store, and nobody's
    /// do.
    fn trust(&self) -> Result<Trust, Failure> {
        match self.home_if_any()? {
            Some(home) => KeyStore::of(&home).trust().map_err(|error| error.failure()),
            None => Ok(Trust::default()),
        }
    }
}

/// Parses, dispatches, and turns whatever comes back into an exit code.
pub fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|arg| arg == "__jail")
    {
        // Before anything could start a thread.
        cto_jail::enter_main();
    }
    // A file of this name is a double of Case, for those who start it by its own name.
    let mut argv = std::env::args_os();
    let name = argv.next().map(PathBuf::from);
    if name.is_some_and(|name| name.file_name().is_some_and(|name| name == "ca")) {
        let words: Vec<String> = argv
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        return ExitCode::from(doubles::case::play(&words));
    }
    let env = Env::of_process();
    ascii::settle(&env);
    let argv: Vec<OsString> = std::env::args_os().collect();
    // Its environment may hold keys from the first line on. Doubles play engines, which hold none.
    let dumps = match argv.get(1).and_then(|arg| arg.to_str()) {
        Some(word) if word.starts_with("__") && word != "__gateway" => Ok(()),
        _ => crate::host::dumps::forbid(),
    };
    let entrance = work::exec::start_entrance(&argv);
    let (
        Cli {
            global,
            command: Some(command),
        },
        words,
    ) = (match parse::parse(argv) {
        Ok(asked) => (asked.cli, asked.command),
        Err(code) => return ExitCode::from(code),
    })
    else {
        return ExitCode::from(2);
    };
    match &command {
        Command::Agent { words } => return ExitCode::from(doubles::agent::play(words)),
        Command::CaseDouble { words } => return ExitCode::from(doubles::case::play(words)),
        Command::Fake { script } => return ExitCode::from(doubles::fake::play(script)),
        Command::Attack { name, argument } => {
            return ExitCode::from(doubles::attacks::play(name, argument));
        }
        Command::Hostile { name, on } => return ExitCode::from(doubles::hostile::play(name, on)),
        Command::EchoDoor { command } => return ExitCode::from(doubles::echo_door::play(command)),
        Command::Model(args) => return ExitCode::from(doubles::model::play(args)),
        Command::Gateway(args) => return ExitCode::from(doubles::gateway_alone::play(args)),
        Command::Ask(args) => return ExitCode::from(doubles::model_client::play(args)),
        _ => {}
    }
    let mut context = Context {
        env,
        output: Output::new(
            global.json,
            parse::shown_program,
            Some(words),
            global.home.as_deref(),
            global.runs_dir.as_deref(),
            global.engines.as_deref(),
        ),
        engines_dir: global.engines,
        engines: OnceLock::new(),
        home: global.home,
        runs_dir: global.runs_dir,
        color: global.color,
        config: cto_core::operator::settings::Config::default(),
    };
    let is_exec = matches!(command, Command::Exec(_));
    let answer = dumps
        .map_err(|error| {
            Failure::internal(
                "core_dumps",
                "core dumps of this program cannot be forbidden",
            )
            .because(&error)
            .so("nothing ran")
        })
        .and_then(|()| configure(&mut context, &command))
        .and_then(|()| dispatch(&context, command, entrance));
    let answer = answer.and_then(|code| context.output.check_arrival().map(|()| code));
    ExitCode::from(answer.unwrap_or_else(|failure| {
        let failure = if is_exec {
            work::exec::own(failure)
        } else {
            failure
        };
        context.output.failure(&failure);
        failure.exit_code()
    }))
}

/// Takes the settings in. Commands about this program itself work whatever the config file holds.
fn configure(context: &mut Context, command: &Command) -> Result<(), Failure> {
    let about_itself = matches!(
        command,
        Command::Config(_) | Command::Help(_) | Command::Completions(_) | Command::Man(_)
    );
    if !about_itself {
        context.config = crate::host::settings::load(&context.env)?.config;
        let git = context.config.get("git");
        context.env.settled.git_setting = git.map(|given| PathBuf::from(&given.value));
    }
    chosen_color(context.color, &context.env, &context.config)
        .1
        .apply();
    Ok(())
}

/// Flag over variable over config file.
fn chosen_color(
    flag: Option<Color>,
    env: &Env,
    config: &cto_core::operator::settings::Config,
) -> (Source, Color) {
    let forced = env.get("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    let environment = match (env.get("NO_COLOR").is_some(), forced) {
        (true, _) => Some((Source::Environment { name: "NO_COLOR" }, Color::Never)),
        (false, true) => Some((
            Source::Environment {
                name: "CLICOLOR_FORCE",
            },
            Color::Always,
        )),
        (false, false) => None,
    };
    let given = config
        .get("color")
        .and_then(|given| Some((given.line, Color::from_str(&given.value, false).ok()?)));
    let layers = Layers {
        flag,
        environment,
        config: given,
        default: None,
    };
    layers
        .choose("color")
        .unwrap_or((Source::Default, Color::Auto))
}

/// `entrance` is the way into a jail, where it was started before the words were read.
fn dispatch(
    context: &Context,
    command: Command,
    entrance: Option<Entrance>,
) -> Result<u8, Failure> {
    match command {
        Command::Run(args) => work::run::run(context, args),
        Command::Try(args) => work::try_run::run(context, *args),
        Command::Project(args) => work::project::run(context, args),
        Command::Apply(args) => work::apply::run(context, &args),
        Command::Reverify(args) => work::reverify::run(context, &args),
        Command::Request(args) => operator::request::run(context, *args),
        Command::Requests(args) => operator::request::list(context, &args),
        Command::Approve(args) => operator::answer::approve(context, &args),
        Command::Deny(args) => operator::answer::deny(context, &args),
        Command::Outcome(args) => operator::outcome::outcome(context, &args),
        Command::Revert(args) => operator::outcome::revert(context, &args),
        Command::Show(args) => evidence::show::run(context, &args),
        Command::Log(args) => evidence::log::run(context, &args),
        Command::Verify(args) => evidence::verify::run(context, &args),
        Command::Bundle(args) => evidence::bundle::run(context, &args),
        Command::Keys(args) => evidence::keys::run(context, args),
        Command::Runs(args) => evidence::runs::run(context, args),
        Command::Recover(args) => evidence::recover::run(context, &args),
        Command::Contract(args) => tasks::contract::run(context, args),
        Command::Cases(args) => tasks::cases::run(context, &args),
        Command::Case(args) => tasks::case::run(context, args),
        Command::Engines(args) => engines::list::run(context, args),
        Command::Setup(args) => engines::setup::run(context, args),
        Command::Admit(args) => engines::admit::run(context, args),
        Command::Eligibility(args) => engines::eligibility::run(context, args),
        Command::Ladder(args) => engines::ladder::run(context, &args),
        Command::Validate(args) => engines::validate::run(context, args),
        Command::Exec(args) => Ok(work::exec::run(context, args, entrance)),
        Command::Doctor(args) => program::doctor::run(context, args),
        Command::Matrix(args) => engines::matrix::run(context, args),
        Command::Row(args) => engines::matrix_row::run(context, &args),
        Command::Schema(args) => evidence::schema::run(context, &args),
        Command::Diff(args) => evidence::diff::run(context, &args),
        Command::Replay(args) => evidence::replay::run(context, &args),
        Command::Config(args) => program::config::run(context, &args),
        Command::Completions(args) => program::completions::run(context, &args),
        Command::Man(args) => program::man::run(context, &args),
        Command::Help(args) => help::run(context, &args),
        // Handled before any state is looked at.
        Command::Agent { .. }
        | Command::CaseDouble { .. }
        | Command::Fake { .. }
        | Command::Attack { .. }
        | Command::Hostile { .. }
        | Command::EchoDoor { .. }
        | Command::Jail
        | Command::Model(_)
        | Command::Gateway(_)
        | Command::Ask(_) => Ok(0),
    }
}

/// The whole command tree.
pub fn command_tree() -> clap::Command {
    help::dress(Cli::command())
}

/// The command tree without what is hidden.
fn public_tree() -> clap::Command {
    visible(&command_tree())
}

fn visible(full: &clap::Command) -> clap::Command {
    let mut shown = clap::Command::default()
        .name(full.get_name().to_owned())
        .disable_help_subcommand(true)
        // What the short help leaves out still has its words.
        .args(
            full.get_arguments()
                .filter(|arg| !arg.is_hide_set())
                .map(|arg| arg.clone().hide_short_help(false)),
        )
        .subcommands(
            full.get_subcommands()
                .filter(|sub| !sub.is_hide_set())
                .map(visible),
        );
    if let Some(about) = full.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(version) = full.get_version() {
        shown = shown.version(version.to_owned());
    }
    if let Some(after) = full.get_after_long_help() {
        shown = shown.after_long_help(after.clone());
    }
    shown
}
