//! `cto exec`: which paths, variables and programs a command of the operator sees in its jail, and
//! which it never does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cto_core::containment::Layer;
use cto_core::containment::mounts::search::SearchPath;
use cto_core::containment::mounts::stand::PROGRAMS;
use cto_core::containment::mounts::{Granted, HostPlace, Refused, is_system};
use cto_core::gate;
use cto_core::records::secret_variable;
use cto_jail::Mount;

use super::{ExecGuard, Launch, Streams, with_tokens_hidden};
use crate::host::failure::Failure;
use crate::host::places::Places;
use crate::host::toolchains::search::{self, Located, Wanted};
use crate::host::toolchains::shelf::Shelf;
use crate::host::toolchains::{self, Resolved};
use crate::host::{Env, Home, digest_cache};
use crate::supervise::Limits;

const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A command, and what of the host it may see. Paths are as they were typed.
pub struct ExecOrder<'a> {
    /// Where it works, writable.
    pub workspace: &'a Path,
    pub writable: &'a [PathBuf],
    pub read_only: &'a [PathBuf],
    /// Kept as its `/tmp` from call to call.
    pub tmp: Option<&'a Path>,
    /// Variables of ours it may see.
    pub variables: &'a [String],
    /// The same, although they look like secrets.
    pub secrets: &'a [String],
    /// Protect what gives orders to other programs.
    pub guarded: bool,
    /// Let its processes trace each other.
    pub traced: bool,
    /// For experiments: the only layers to put up, or `none`.
    pub layers: Option<&'a str>,
    pub command: &'a [OsString],
}

/// What a command is started with, and what it is shown for its first word that nobody typed.
pub struct ExecLaunch {
    pub launch: Launch,
    pub shown: Vec<HostPlace>,
    /// Links to programs, as long as it runs.
    pub shelf: Option<Shelf>,
    /// What is to be looked at again when it ended.
    pub guard: Option<ExecGuard>,
}

impl Launch {
    /// A command of the operator in a jail of its own, on our own output.
    pub fn exec(order: &ExecOrder<'_>, env: &Env, home: &Home) -> Result<ExecLaunch, Failure> {
        let mut places = Places::of(env, home);
        let typed = typed(order, &mut places)?;
        let programs = programs(order, &typed, &places, (env, home))?;
        let shelf = Shelf::of(&programs.search, home)?;
        let variables = variables(&programs, order, env)?;
        let toolchains = beside(&programs, &typed);
        // What is shown for PATH is the operator's own choice of programs, the same at every call.
        let first = toolchains
            .iter()
            .filter(|granted| programs.needed.contains(granted));
        let shown = first.map(|granted| granted.shown()).collect();
        let mut for_programs: Vec<Mount> = toolchains.into_iter().map(Mount::in_place).collect();
        for_programs.sort_by_key(|mount| mount.target.components().count());
        if let Some(shelf) = &shelf {
            // Looked at anew: the state home may be one we have just made.
            let made = Places::of(env, home).made(shelf.dir(), false);
            let dir = made.map_err(|error| {
                Failure::internal("no_programs", "links to your programs cannot be shown")
                    .because(&error)
                    .so("nothing ran")
            })?;
            for_programs.push(Mount::at(&dir, PROGRAMS));
        }
        let Typed {
            workspace,
            mut mounts,
            granted,
        } = typed;
        // Below what was typed, and not below a /tmp of its own.
        let own_tmp = usize::from(order.tmp.is_some());
        mounts.splice(own_tmp..own_tmp, for_programs);
        let mut jail = with_tokens_hidden(mounts, env);
        let guard = match order.guarded && order.layers.is_none() {
            true => {
                let writable = granted.iter().filter(|granted| granted.writable());
                Some(ExecGuard::look(writable)?)
            }
            false => None,
        };
        if let Some(guard) = &guard {
            jail.guard = guard.mounts()?;
        }
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
        let launch = Self {
            program: program.into(),
            args: args.to_vec(),
            cwd: workspace,
            env: variables,
            limits: Limits::of_time(FOREVER),
            jail: Some(jail),
            streams: Streams::StoodInFor,
        };
        let launch = match order.traced {
            true => launch.traced(),
            false => launch,
        };
        Ok(ExecLaunch {
            launch,
            shown,
            guard,
            shelf,
        })
    }
}

/// What the operator typed, as it was granted.
struct Typed {
    workspace: PathBuf,
    mounts: Vec<Mount>,
    granted: Vec<Granted>,
}

fn typed(order: &ExecOrder<'_>, places: &mut Places) -> Result<Typed, Failure> {
    let grant = |places: &Places, path: &Path, writable: bool, shown: &[Granted]| {
        places
            .named(path, writable, shown)
            .map_err(|refused| refuse(path, &refused))
    };
    let workspace = grant(places, order.workspace, true, &[])?;
    must_be_dir(
        &workspace,
        "bad_workspace",
        "the workspace must be a directory",
    )?;
    let cwd = workspace.path().to_owned();
    places.add_reach(cwd.clone());
    let mut mounts = vec![Mount::in_place(&workspace).owned(&workspace)];
    let mut granted = vec![workspace];
    for (paths, writable) in [(order.read_only, false), (order.writable, true)] {
        for path in paths {
            let found = grant(places, path, writable, &granted)?;
            // What every jail has anyway needs no mount.
            if writable || !is_system(found.path()) {
                mounts.push(Mount::in_place(&found).owned(&found));
            }
            if writable {
                places.add_reach(found.path().to_owned());
            }
            granted.push(found);
        }
    }
    if let Some(dir) = order.tmp {
        let found = places
            .named_or_made(dir, &granted)
            .map_err(|refused| refuse(dir, &refused))?;
        must_be_dir(
            &found,
            "bad_path",
            "what is kept as /tmp must be a directory",
        )?;
        places.add_reach(found.path().to_owned());
        let below = |granted: &&Granted| granted.target().starts_with("/tmp");
        if let Some(other) = granted.iter().find(below) {
            return Err(Failure::usage(
                "bad_path",
                "what is shown below /tmp and a /tmp of the command's own cannot be had together",
            )
            .at(other.path().display().to_string())
            .so("nothing ran")
            .hint("work in a directory that is not below /tmp"));
        }
        mounts.insert(0, Mount::at(&found, "/tmp").owned(&found));
        granted.push(found);
    }
    Ok(Typed {
        workspace: cwd,
        mounts,
        granted,
    })
}

fn must_be_dir(granted: &Granted, code: &'static str, what: &str) -> Result<(), Failure> {
    match granted.is_dir() {
        true => Ok(()),
        false => Err(Failure::usage(code, what)
            .at(granted.path().display().to_string())
            .so("nothing ran")),
    }
}

/// A path that was typed and is not shown.
fn refuse(typed: &Path, refused: &Refused) -> Failure {
    let hint = match refused {
        Refused::Exposes(..) => {
            "choose a directory of its own with --workspace, or move the state with --home"
        }
        Refused::InSystem(..) => {
            "set HOME to a directory outside the system, or name another state home with --home DIR"
        }
        Refused::Wish { .. } => "type the place it leads to, if that is what you mean",
        Refused::JailsOwn(_) => {
            "choose a directory below it; `--tmp DIR` keeps a /tmp between calls"
        }
        Refused::HostsOwn(_) => "choose a directory of its own with --workspace",
        _ => "",
    };
    let failure = Failure::usage(refused.code(), refused.to_string())
        .at(typed.display().to_string())
        .so("nothing ran");
    match hint {
        "" => failure,
        hint => failure.hint(hint),
    }
}

/// The whole environment of the command.
fn variables(
    programs: &Programs,
    order: &ExecOrder<'_>,
    env: &Env,
) -> Result<BTreeMap<OsString, OsString>, Failure> {
    let term = env.get("TERM").unwrap_or("dumb".as_ref()).to_owned();
    let mut variables = BTreeMap::from([
        ("PATH".into(), programs.path.clone()),
        ("HOME".into(), "/tmp".into()),
        ("TMPDIR".into(), "/tmp".into()),
        ("LANG".into(), "C.UTF-8".into()),
        ("TERM".into(), term),
    ]);
    let told = programs.search.env.iter();
    variables.extend(told.map(|(name, value)| (name.into(), value.into())));
    for (names, may_be_secret) in [(order.variables, false), (order.secrets, true)] {
        for name in names {
            let value = env.get(name).ok_or_else(|| {
                Failure::usage("no_such_variable", format!("{name} is not set")).so("nothing ran")
            })?;
            let looks = secret_variable(name, &value.to_string_lossy());
            if let (Some(why), false) = (looks, may_be_secret) {
                return Err(Failure::usage(
                    "secret_variable",
                    format!("the command would be handed a secret: {name} {why}"),
                )
                .so("nothing ran")
                .hint(format!("if it is meant to have it: --env-secret {name}")));
            }
            variables.insert(name.into(), value.to_owned());
        }
    }
    Ok(variables)
}

/// Programs as the operator's own shell finds them, and what is shown for them.
struct Programs {
    search: SearchPath,
    path: OsString,
    /// What the first word of the command needs: it was typed, so it is shown whatever it is.
    needed: Vec<Granted>,
}

/// The same look as for a run: any program of the command may start others.
fn programs(
    order: &ExecOrder<'_>,
    typed: &Typed,
    places: &Places,
    (env, home): (&Env, &Home),
) -> Result<Programs, Failure> {
    let words = || order.command.iter().filter_map(|word| word.to_str());
    let chosen = gate::chosen_by(words().flat_map(str::split_whitespace));
    let wanted = Wanted {
        names: None,
        repo: Some(&typed.workspace),
        named: &[],
        shown: &typed.granted,
        flag: "--ro",
        chosen: &chosen,
    };
    let search = search::search(&wanted, places, env);
    let mut path = search.variable(PROGRAMS);
    let first = words().next().filter(|word| !word.contains('/'));
    let found =
        first.map(|name| toolchains::resolve_beside(name, &typed.granted, places, env, home));
    let needed = match (first, found) {
        (_, Some(Resolved::Unusable(why))) => {
            return Err(Failure::usage("toolchain_unavailable", why)
                .so("nothing ran")
                .hint("show it with --ro, or install it for the whole system"));
        }
        (Some(name), Some(Resolved::Toolchain(found))) => {
            let same = |path: &Path| {
                let real = path.canonicalize();
                let digest = real.and_then(|real| digest_cache::digest(home, &real));
                digest.is_ok_and(|digest| digest == found.record.sha256)
            };
            let is_found =
                matches!(search::locate(&search, name), Located::At(path, _) if same(&path));
            if let (Some(bin), false) = (&found.bin, is_found) {
                path = format!("{bin}:{path}");
            }
            found.mounts
        }
        _ => Vec::new(),
    };
    Ok(Programs {
        search,
        path: path.into(),
        needed,
    })
}

/// What is mounted for programs, each place once; what was typed shows what lies in it.
fn beside<'a>(programs: &'a Programs, typed: &Typed) -> Vec<&'a Granted> {
    let within = |granted: &Granted| {
        let holds = |other: &Granted| granted.target().starts_with(other.target());
        typed.granted.iter().any(holds)
    };
    let all = programs.search.mounts().chain(&programs.needed);
    let found: BTreeMap<&Path, &Granted> = all
        .filter(|granted| !within(granted))
        .map(|granted| (granted.target(), granted))
        .collect();
    found.into_values().collect()
}
