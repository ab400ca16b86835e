//! `cto exec`: which paths, variables and programs a command of the operator sees in its jail, and
//! which it never does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cto_core::containment::Layer;
use cto_jail::{JailPlan, Mount};

use super::Launch;
use crate::host::failure::Failure;
use crate::host::toolchains::{self, Resolved, SYSTEM_PATH};
use crate::host::{Env, Home};
use crate::supervise::Limits;

const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A command, and what of the host it may see. Paths are as they were typed.
pub struct ExecOrder<'a> {
    /// Where it works, writable.
    pub workspace: &'a Path,
    pub writable: &'a [PathBuf],
    pub read_only: &'a [PathBuf],
    /// Variables of ours it may see.
    pub variables: &'a [String],
    /// For experiments: the only layers to put up, or `none`.
    pub layers: Option<&'a str>,
    pub command: &'a [OsString],
}

impl Launch {
    /// A command of the operator in a jail of its own, on our own output.
    pub fn exec(order: &ExecOrder<'_>, env: &Env, home: &Home) -> Result<Self, Failure> {
        let workspace = real_dir(order.workspace)?;
        refuse_state(home, &workspace)?;
        let mut mounts = vec![Mount {
            mapped: true,
            ..Mount::writable(&workspace, &workspace)
        }];
        for (paths, writable) in [(order.read_only, false), (order.writable, true)] {
            for path in paths {
                let real = real_path(path)?;
                refuse_state(home, &real)?;
                if is_shown_anyway(&real)? {
                    continue;
                }
                // A file cannot be shown under another owner; it keeps the one it has.
                mounts.push(Mount {
                    writable,
                    mapped: writable && real.is_dir(),
                    ..Mount::read_only(real)
                });
            }
        }
        let (path, toolchain) = search_path(order.command, env, home)?;
        mounts.extend(toolchain);
        let mut jail = JailPlan::new(mounts);
        let variables = variables(path, order.variables, env)?;
        if let Some(names) = order.layers {
            let names = names.split(',').filter(|name| *name != "none");
            let layers = names
                .map(str::parse)
                .collect::<Result<Vec<Layer>, String>>();
            jail.layers =
                layers.map_err(|error| Failure::usage("bad_layer", error).so("nothing ran"))?;
        }
        let (program, args) = order.command.split_first().ok_or_else(|| {
            Failure::usage("missing_command", "no command was given").so("nothing ran")
        })?;
        Ok(Self {
            program: program.into(),
            args: args.to_vec(),
            cwd: workspace,
            env: variables,
            limits: Limits::of_time(FOREVER),
            jail: Some(jail),
            stands_in: true,
        })
    }
}

/// The whole environment of the command.
fn variables(
    path: OsString,
    named: &[String],
    env: &Env,
) -> Result<BTreeMap<OsString, OsString>, Failure> {
    let term = env.get("TERM").unwrap_or("dumb".as_ref()).to_owned();
    let mut variables = BTreeMap::from([
        ("PATH".into(), path),
        ("HOME".into(), "/tmp".into()),
        ("TMPDIR".into(), "/tmp".into()),
        ("LANG".into(), "C.UTF-8".into()),
        ("TERM".into(), term),
    ]);
    for name in named {
        let value = env.get(name).ok_or_else(|| {
            Failure::usage("no_such_variable", format!("{name} is not set")).so("nothing ran")
        })?;
        variables.insert(name.into(), value.to_owned());
    }
    Ok(variables)
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
fn is_shown_anyway(path: &Path) -> Result<bool, Failure> {
    let own = ["/proc", "/dev", "/sys"]
        .iter()
        .any(|dir| path.starts_with(dir))
        || ["/", "/etc", "/tmp"]
            .iter()
            .any(|dir| path == Path::new(dir));
    match own {
        true => Err(Failure::usage(
            "bad_path",
            "cannot mount this path: a jail provides its own /proc, /dev, /sys, /etc and /tmp",
        )
        .at(path.display().to_string())
        .so("nothing ran")),
        false => Ok(toolchains::is_system(path)),
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
    command: &[OsString],
    env: &Env,
    home: &Home,
) -> Result<(OsString, Vec<Mount>), Failure> {
    let name = command
        .first()
        .and_then(|word| word.to_str())
        .filter(|word| !word.contains('/'));
    let Some(name) = name else {
        return Ok((SYSTEM_PATH.into(), Vec::new()));
    };
    match toolchains::resolve(name, env, home) {
        Resolved::Missing | Resolved::System(_) => Ok((SYSTEM_PATH.into(), Vec::new())),
        Resolved::Toolchain(found) => {
            let path = found.bin.as_ref().map_or_else(
                || SYSTEM_PATH.to_owned(),
                |bin| format!("{bin}:{SYSTEM_PATH}"),
            );
            Ok((
                path.into(),
                found.mounts.iter().map(Mount::read_only).collect(),
            ))
        }
        Resolved::Unusable(why) => Err(Failure::usage("toolchain_unavailable", why)
            .so("nothing ran")
            .hint("show it with --ro, or install it for the whole system")),
    }
}
