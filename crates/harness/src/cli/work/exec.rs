//! `cto exec`: the jail alone, as a tool. Passes on the child's code; 125 is our own failure.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use cto_core::containment::Layer;
use cto_core::run::event::ProcessEnd;
use cto_jail::{JailPlan, Mount};

use crate::cli::Context;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::host::toolchains::{self, Resolved};
use crate::supervise::cancel::Cancel;
use crate::supervise::{self, Job, Limits, SuperviseError};

const OWN_FAILURE: u8 = 125;
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

#[derive(clap::Args)]
pub struct Args {
    /// The directory the command works in, writable [default: the current one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Another path it may write
    #[arg(long, value_name = "PATH")]
    allow: Vec<PathBuf>,
    /// A path it may read
    #[arg(long, value_name = "PATH")]
    ro: Vec<PathBuf>,
    /// A variable of ours it may see
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// The network it has
    #[arg(long, value_enum, default_value_t = Net::None)]
    net: Net,
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

pub fn run(context: &Context, args: Args) -> u8 {
    match execute(context, args) {
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

fn execute(context: &Context, args: Args) -> Result<u8, Failure> {
    let Net::None = args.net;
    let workspace = real_dir(args.workspace.as_deref().unwrap_or(Path::new(".")))?;
    let home = context.home()?;
    refuse_state(&home, &workspace)?;
    let mut mounts = vec![Mount {
        source: workspace.clone(),
        target: workspace.clone(),
        writable: true,
        mapped: true,
        over: None,
    }];
    for (paths, writable) in [(&args.ro, false), (&args.allow, true)] {
        for path in paths {
            let real = real_path(path)?;
            refuse_state(&home, &real)?;
            if is_system(&real)? {
                continue;
            }
            // A file cannot be shown under another owner; it keeps the one it has.
            mounts.push(Mount {
                mapped: writable && real.is_dir(),
                source: real.clone(),
                target: real,
                writable,
                over: None,
            });
        }
    }
    let (path, toolchain) = search_path(context, &home, &args.command)?;
    mounts.extend(toolchain);
    let mut env: BTreeMap<OsString, OsString> = BTreeMap::from([
        ("PATH".into(), path),
        ("HOME".into(), "/tmp".into()),
        ("TMPDIR".into(), "/tmp".into()),
        ("LANG".into(), "C.UTF-8".into()),
        (
            "TERM".into(),
            context
                .env
                .get("TERM")
                .unwrap_or("dumb".as_ref())
                .to_owned(),
        ),
    ]);
    for name in &args.env {
        let value = context.env.get(name).ok_or_else(|| {
            Failure::usage("no_such_variable", format!("{name} is not set")).so("nothing ran")
        })?;
        env.insert(name.into(), value.to_owned());
    }
    let mut plan = JailPlan::new(mounts);
    plan.stdin = true;
    let experiment = args.layers.is_some();
    if let Some(names) = args.layers {
        let names = names.split(',').filter(|name| *name != "none");
        let layers = names
            .map(str::parse)
            .collect::<Result<Vec<Layer>, String>>();
        plan.layers =
            layers.map_err(|error| Failure::usage("bad_layer", error).so("nothing ran"))?;
    }
    let [program, rest @ ..] = args.command.as_slice() else {
        return Ok(OWN_FAILURE);
    };
    let job = Job {
        program: program.into(),
        args: rest.to_vec(),
        cwd: workspace,
        env,
        limits: Limits {
            wall: FOREVER,
            idle: FOREVER,
            memory_kib: u64::MAX,
        },
        jail: Some(plan),
        inherit_output: true,
    };
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    let running = if experiment {
        supervise::start_unproven(&job)
    } else {
        supervise::start(&job)
    };
    let ended = running
        .and_then(|running| running.finish(&cancel, &mut |_, _| {}))
        .map_err(|error| not_contained(&error))?;
    Ok(match ended.end {
        ProcessEnd::Exited { code } => code,
        ProcessEnd::Signalled { signal } => u8::try_from(128 + signal).unwrap_or(OWN_FAILURE),
        ProcessEnd::Cancelled => u8::try_from(128 + cancel.signal()).unwrap_or(OWN_FAILURE),
        ProcessEnd::TimedOut { .. } | ProcessEnd::MemoryLimit { .. } | ProcessEnd::Lost => {
            OWN_FAILURE
        }
    })
}

fn not_contained(error: &SuperviseError) -> Failure {
    Failure::internal(
        "containment_unavailable",
        "the command cannot be contained on this host",
    )
    .because(error)
    .so("nothing ran")
    .hint("`cto doctor` says what is missing and how to fix it")
}

fn real_path(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| {
        Failure::usage("bad_path", "a path cannot be used")
            .at(path.display().to_string())
            .because(&error)
            .so("nothing ran")
    })
}

fn real_dir(path: &Path) -> Result<PathBuf, Failure> {
    let real = real_path(path)?;
    match real.is_dir() && real != Path::new("/") {
        true => Ok(real),
        false => Err(
            Failure::usage("bad_workspace", "the workspace must be a directory below /")
                .at(real.display().to_string())
                .so("nothing ran"),
        ),
    }
}

/// What every jail has anyway needs no mount; what it makes for itself cannot be replaced.
fn is_system(path: &Path) -> Result<bool, Failure> {
    let own = ["/proc", "/dev", "/sys"]
        .iter()
        .any(|dir| path.starts_with(dir))
        || ["/", "/etc", "/tmp"]
            .iter()
            .any(|dir| path == Path::new(dir));
    match own {
        true => Err(Failure::usage(
            "bad_path",
            "a jail has this directory of its own; the host's cannot be shown",
        )
        .at(path.display().to_string())
        .so("nothing ran")),
        false => Ok(["/usr", "/bin", "/sbin", "/lib", "/lib64"]
            .iter()
            .any(|dir| path.starts_with(dir))),
    }
}

/// Evidence, keys and approvals are never shown to anything in a jail.
fn refuse_state(home: &Home, path: &Path) -> Result<(), Failure> {
    let near = |dir: &Path| {
        dir.canonicalize()
            .is_ok_and(|dir| dir.starts_with(path) || path.starts_with(&dir))
    };
    match near(&home.root) || near(&home.runs) {
        false => Ok(()),
        true => Err(Failure::usage(
            "state_exposed",
            "this path would show the harness's own state to the command",
        )
        .at(path.display().to_string())
        .so("nothing ran")
        .hint("choose another one with --workspace, or move the state with --home")),
    }
}

/// The program's own directory first, where it lives outside the system.
fn search_path(
    context: &Context,
    home: &Home,
    command: &[OsString],
) -> Result<(OsString, Vec<Mount>), Failure> {
    let name = command
        .first()
        .and_then(|word| word.to_str())
        .filter(|word| !word.contains('/'));
    let Some(name) = name else {
        return Ok((SYSTEM_PATH.into(), Vec::new()));
    };
    match toolchains::resolve(name, &context.env, home) {
        Resolved::Missing | Resolved::System(_) => Ok((SYSTEM_PATH.into(), Vec::new())),
        Resolved::Toolchain(found) => {
            let mount = |path: &String| Mount {
                source: path.into(),
                target: path.into(),
                writable: false,
                mapped: false,
                over: None,
            };
            let path = found.bin.as_ref().map_or_else(
                || SYSTEM_PATH.to_owned(),
                |bin| format!("{bin}:{SYSTEM_PATH}"),
            );
            Ok((path.into(), found.mounts.iter().map(mount).collect()))
        }
        Resolved::Unusable(why) => Err(Failure::usage("toolchain_unavailable", why)
            .so("nothing ran")
            .hint("show it with --ro, or install it for the whole system")),
    }
}
