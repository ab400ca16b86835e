//! `cto exec`: the jail alone, as a tool. Passes on the child's code; 125 is our own failure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use cto_core::run::event::ProcessEnd;

use crate::cli::Context;
use crate::host::failure::Failure;
use crate::supervise::cancel::Cancel;
use crate::supervise::launch::{ExecLaunch, ExecOrder, Launch};
use crate::supervise::{self, Entrance, SuperviseError};

const OWN_FAILURE: u8 = 125;

#[derive(clap::Args)]
pub struct Args {
    /// The directory the command works in, writable [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Another path it may write
    #[arg(long, value_name = "PATH")]
    allow: Vec<PathBuf>,
    /// Another path it may read, and not write
    #[arg(long, value_name = "PATH")]
    ro: Vec<PathBuf>,
    /// A directory that is its /tmp, and stays from call to call
    #[arg(long, value_name = "DIR")]
    tmp: Option<PathBuf>,
    /// A variable of your shell that it sees
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// The same for a variable that looks like a secret
    #[arg(long, value_name = "NAME")]
    env_secret: Vec<String>,
    /// The network it has
    #[arg(long, value_enum, default_value_t = Net::None)]
    net: Net,
    /// Let it change what git, agents and editors take orders from: git's configuration and hooks,
    /// `.mcp.json` and the like
    #[arg(long)]
    no_guard: bool,
    /// Let its processes trace each other, for gdb, strace and LeakSanitizer; without it leaks are not
    /// searched for (LSAN_OPTIONS=detect_leaks=0)
    #[arg(long)]
    trace: bool,
    /// Put up only these layers (or `none`), to see what each of them stops
    #[arg(long, value_name = "LAYERS", hide = true)]
    layers: Option<String>,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Net {
    /// A private loopback, and nothing else
    None,
}

/// Starts the way into the jail where the first word asks for one: it comes up while the other
/// words are read. A start that fails is tried again when they are, and says why.
pub fn start_entrance(argv: &[OsString]) -> Option<Entrance> {
    match argv.get(1)?.to_str()? {
        "exec" => Entrance::stood_in().ok(),
        _ => None,
    }
}

pub fn run(context: &Context, args: Args, entrance: Option<Entrance>) -> u8 {
    match execute(context, args, entrance) {
        Ok(code) => code,
        Err(failure) => {
            context.output.failure(&own(failure));
            OWN_FAILURE
        }
    }
}

/// A failure that cannot be taken for the code of the command.
pub fn own(failure: Failure) -> Failure {
    Failure {
        exits_with: Some(OWN_FAILURE),
        ..failure
    }
}

fn execute(context: &Context, args: Args, entrance: Option<Entrance>) -> Result<u8, Failure> {
    let Net::None = args.net;
    let home = context.home()?;
    let order = ExecOrder {
        workspace: args.workspace.as_deref().unwrap_or(Path::new(".")),
        writable: &args.allow,
        read_only: &args.ro,
        tmp: args.tmp.as_deref(),
        variables: &args.env,
        secrets: &args.env_secret,
        guarded: !args.no_guard,
        traced: args.trace,
        layers: args.layers.as_deref(),
        command: &args.command,
    };
    let ExecLaunch {
        launch,
        shown,
        guard,
        shelf,
    } = Launch::exec(&order, &context.env, &home)?;
    for place in shown {
        let line = format!("shown read-only: {}, {}", place.path, place.what);
        context.output.note(&line);
    }
    if args.trace {
        context
            .output
            .note("note: --trace: processes of this command may look into each other");
    }
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    let running = if let Some(layers) = &args.layers {
        context.output.note(&format!(
            "note: --layers {layers}: this command is not contained; nothing is proven and nothing counts"
        ));
        supervise::start_unproven(entrance, &launch)
    } else {
        supervise::start_in(entrance, &launch)
    };
    let ended = running
        .and_then(|running| running.finish(&cancel, &mut |_, _| {}))
        .map_err(|error| not_contained(&error))?;
    drop(shelf);
    if let Some(guard) = guard {
        for line in guard.hold_back()? {
            context.output.note(&line);
        }
    }
    Ok(match ended.end {
        ProcessEnd::Exited { code } => code,
        ProcessEnd::Signalled { signal } => u8::try_from(128 + signal).unwrap_or(OWN_FAILURE),
        ProcessEnd::Cancelled => u8::try_from(128 + cancel.signal()).unwrap_or(OWN_FAILURE),
        ProcessEnd::TimedOut { .. }
        | ProcessEnd::MemoryLimit { .. }
        | ProcessEnd::Dismissed { .. }
        | ProcessEnd::Lost => OWN_FAILURE,
    })
}

/// Why nothing ran, or what of it was lost.
pub fn not_contained(error: &SuperviseError) -> Failure {
    if let Some(failure) = error.unmapped() {
        return failure;
    }
    if let SuperviseError::Output { source } = error {
        return Failure::internal(
            "output_lost",
            "what the command wrote could not be passed on",
        )
        .because(source)
        .so("the command ended without its output");
    }
    Failure::internal(
        "containment_unavailable",
        "the command cannot be contained on this host",
    )
    .because(error)
    .so("nothing ran")
    .hint("`cto doctor` says what is missing and how to fix it")
}
