//! What every process is started with: program, mounts, environment and limits, in one place. An
//! engine, a check, a setup command, `cto exec`, a program asked for its version and the doors of
//! doubles are shaped here and nowhere else.
//!
//! - this file: `Launch`, a constructor per use; `exec.rs` what `cto exec` shows of the host;
//!   `exec_guard.rs` what of its directory gives orders to other programs; `settled.rs` what
//!   every process in a jail is told; `verified.rs` an engine's jail held against what the gates saw

mod exec;
mod exec_guard;
mod settled;
mod verified;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cto_core::containment::Containment;
use cto_core::containment::mounts::stand::{ENGINE, ENGINE_PROGRAMS, PROGRAMS, SCRATCH};
use cto_core::containment::mounts::{Granted, is_system};
use cto_core::gate::plan::Plan;
use cto_core::values::paths::TreePath;
use cto_jail::{Guarded, JailLimits, JailPlan, Mount, STAND_IN_DIR};

pub use exec::{ExecLaunch, ExecOrder};
pub use exec_guard::ExecGuard;

use crate::host::places::{self, Places};
use crate::host::toolchains::SYSTEM_PATH;
use crate::host::{self, Env, programs};
use crate::supervise::Limits;

/// What of the engine's `.git` would run code, or lead git elsewhere. The rest is the engine's to
/// use or ruin.
const GIT_PROTECTED: [&str; 4] = [".git/commondir", ".git/config", ".git/hooks", ".git/info"];
/// Keeps git and its like from waiting for a person.
const NO_PROMPTS: [(&str, &str); 3] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GH_PROMPT_DISABLED", "1"),
    ("SSH_ASKPASS_REQUIRE", "never"),
];

/// A process to run, fully decided.
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited.
    pub env: BTreeMap<OsString, OsString>,
    pub limits: Limits,
    /// The jail to run it in; without one it runs as the operator, and the plan says so.
    pub jail: Option<JailPlan>,
    pub streams: Streams,
}

/// What a process has as descriptors 0–2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Streams {
    /// No input; its output is taken.
    Taken,
    /// Its output is taken, and its input is given by whoever listens.
    Talked,
    /// Our own are stood in for.
    StoodInFor,
}

/// A private copy, as a jail mounts it and as it lies on the host.
pub struct CopyToMount {
    pub mount: Mount,
    pub on_host: PathBuf,
    /// The operator's environments, each at its place in the copy.
    pub environments: Vec<Mount>,
    /// Files in them that look empty.
    pub hidden: Vec<PathBuf>,
}

/// A private copy and a scratch directory of a run, as a process will know them.
pub struct RunPlace<'a> {
    plan: &'a Plan,
    /// Variables of the operator; only a process without a jail gets any of them.
    env: &'a Env,
    copy: CopyToMount,
    scratch: Granted,
    /// Directories of ours that are part of PATH, where it needs any.
    programs: Option<Granted>,
    places: Places,
}

impl<'a> RunPlace<'a> {
    /// Makes the scratch directory and hands it to the uid that will use it. `copy` is mounted
    /// where the plan says that it stands.
    pub fn make(
        plan: &'a Plan,
        env: &'a Env,
        places: Places,
        copy: CopyToMount,
        scratch: &Path,
        programs: Option<&Path>,
    ) -> io::Result<Self> {
        for dir in ["home", "tmp"] {
            host::make_private_dir(&scratch.join(dir))?;
        }
        if is_contained(plan) {
            cto_jail::hand_over(scratch)?;
        }
        Ok(Self {
            plan,
            env,
            copy,
            scratch: places.made(scratch, true)?,
            programs: programs.map(|dir| places.made(dir, false)).transpose()?,
            places,
        })
    }

    /// The scratch directory under the name the process knows.
    pub fn scratch(&self) -> PathBuf {
        if is_contained(self.plan) {
            SCRATCH.into()
        } else {
            self.scratch.path().to_owned()
        }
    }

    /// What a process of the run is shown: copy, scratch, toolchains, inputs, and `also`.
    fn mounts(&self, also: &[&Granted]) -> Vec<Mount> {
        let stand = self.plan.stand.path();
        let environments = &self.copy.environments;
        let mut mounts = vec![self.copy.mount.clone(), Mount::at(&self.scratch, SCRATCH)];
        mounts.extend(self.programs.iter().map(|dir| Mount::at(dir, PROGRAMS)));
        // What lies in an environment comes with it, and may be written there.
        let comes_along = |granted: &Granted| {
            let within = |mount: &Mount| granted.target().starts_with(&mount.target);
            environments.iter().any(within)
        };
        let beside = self.plan.environments.iter().flat_map(|found| &found.also);
        let shown: BTreeMap<&Path, &Granted> = self
            .plan
            .toolchains
            .iter()
            .flat_map(|toolchain| &toolchain.mounts)
            .chain(self.plan.search.mounts())
            .chain(also.iter().copied())
            .chain(beside)
            .filter(|granted| !comes_along(granted) && !self.plan.is_of_copy(granted))
            .map(|granted| (granted.target(), granted))
            .collect();
        // A place to mount a file at would be a new file of the copy; what is tracked it has.
        let of_copy = |granted: &&Granted| granted.target().starts_with(stand) && !granted.is_dir();
        mounts.extend(
            shown
                .into_values()
                .filter(|granted| !of_copy(granted))
                .map(Mount::in_place),
        );
        mounts.extend(
            self.plan
                .inputs
                .iter()
                .map(|input| Mount::at(&input.source, stand.join(&input.path))),
        );
        mounts.extend(environments.iter().cloned());
        // The repository may lie in what is shown, and what is shown in the repository.
        mounts.sort_by_key(|mount| mount.target.components().count());
        mounts
    }

    /// An allow-list, not a filter.
    fn jail_env(&self) -> BTreeMap<OsString, OsString> {
        let typed = &self.plan.contract.variables;
        // What somebody typed is part of what tools are told.
        self.env_of(typed.iter().chain(&self.plan.tools))
    }

    /// The same for an admitted engine. What somebody typed is for setup and checks: a variable changes
    /// what a program does (`NODE_OPTIONS`, `PYTHONPATH`, `GIT_DIR`), and it was admitted without.
    fn engine_env(&self) -> BTreeMap<OsString, OsString> {
        let typed = &self.plan.contract.variables;
        let tools = self.plan.tools.iter();
        self.env_of(tools.filter(|(name, _)| !typed.contains_key(*name)))
    }

    fn env_of<'v>(
        &'v self,
        more: impl Iterator<Item = (&'v String, &'v String)>,
    ) -> BTreeMap<OsString, OsString> {
        let path = self.plan.search.variable(PROGRAMS);
        let home = Path::new(SCRATCH).join("home");
        let mut env = environment(path.into(), home, "/tmp".into());
        let told = self.plan.search.env.iter();
        env.extend(
            told.chain(more)
                .map(|(name, value)| (name.into(), value.into())),
        );
        env
    }

    fn bare_env(&self) -> BTreeMap<OsString, OsString> {
        environment(
            programs::clean_path_of_run(self.env),
            self.scratch.path().join("home"),
            self.scratch.path().join("tmp"),
        )
    }
}

/// What an engine adds to its place: its program as the host knows it, its words and its door.
pub struct EngineStart<'a> {
    pub program: &'a Path,
    pub args: Vec<OsString>,
    pub env: BTreeMap<OsString, OsString>,
    /// A directory of links to the programs that run it, where it is not this program.
    pub programs: Option<&'a Path>,
    /// A door to its model.
    pub door: bool,
    /// Variables that name the door, in pieces between which its address belongs.
    pub env_of_door: BTreeMap<OsString, Vec<OsString>>,
    /// Where it is started, where that is not its workspace.
    pub cwd: Option<PathBuf>,
    /// Files it finds below its scratch directory and may only read: where each lies, and its name there.
    pub read_only: &'a [(PathBuf, PathBuf)],
    /// It has a standard input that whoever listens to it writes to.
    pub talked: bool,
}

impl Launch {
    /// The engine. What its workspace holds outside the contract's scope, and what of git would run
    /// code, is protected by the kernel; what it attempts is seen, and programs that are not
    /// installed have stand-ins.
    pub fn engine(place: &RunPlace<'_>, start: EngineStart<'_>) -> io::Result<Self> {
        let plan = place.plan;
        let own = plan.engine.as_ref();
        let interpreter = own.and_then(|engine| engine.interpreter.as_ref());
        let shown = start.read_only.iter().map(|(file, name)| {
            let made = place.places.made(file, false)?;
            Ok(made.under(&Path::new(SCRATCH).join(name)))
        });
        let shown = shown.collect::<io::Result<Vec<Granted>>>()?;
        let also: Vec<&Granted> = own
            .into_iter()
            .flat_map(|engine| &engine.mounts)
            .chain(&shown)
            .chain(interpreter.into_iter().flat_map(|found| &found.mounts))
            .collect();
        let limits = limits(
            plan,
            plan.limits.engine_wall_seconds,
            plan.limits.engine_idle_seconds,
        );
        let mut launch = Self::in_run(place, start.program, start.args, limits, &also)?;
        if own.is_some() && launch.jail.is_some() {
            launch.env = place.engine_env();
        }
        let bin = interpreter.and_then(|found| found.bin.as_deref());
        // First, so that nothing of the task or the repository runs in place of what was verified.
        let first = start.programs.map(|_| ENGINE_PROGRAMS);
        if let Some(path) = launch.env.get_mut(OsStr::new("PATH")) {
            for dir in bin.into_iter().chain(first) {
                *path = OsString::from(format!("{dir}:{}", path.display()));
            }
        }
        if let (Some(jail), Some(dir)) = (&mut launch.jail, start.programs) {
            let made = place.places.made(dir, false)?;
            jail.mounts.push(Mount::at(&made, ENGINE_PROGRAMS));
        }
        if start.talked {
            launch.streams = Streams::Talked;
        }
        launch.cwd = start.cwd.unwrap_or(launch.cwd);
        launch.env.extend(start.env);
        launch
            .env
            .extend(NO_PROMPTS.map(|(name, value)| (name.into(), value.into())));
        if let Some(jail) = &mut launch.jail {
            let mut places = plan.guard.clone();
            places.open.insert(0, TreePath::new(".git"));
            places.read_only.extend(GIT_PROTECTED.map(TreePath::new));
            jail.guard = Some(Guarded {
                root: plan.stand.path().to_owned(),
                places,
            });
            jail.door = start.door;
            jail.env_of_door = start.env_of_door;
            jail.watched = true;
            let path = launch.env.entry("PATH".into()).or_default();
            path.push(":");
            path.push(STAND_IN_DIR);
        }
        Ok(launch)
    }

    /// A shell command of the contract: a check, or setup.
    pub fn command(place: &RunPlace<'_>, command: &str) -> io::Result<Self> {
        let plan = place.plan;
        let limits = limits(
            plan,
            plan.limits.verification_wall_seconds,
            plan.limits.verification_idle_seconds,
        );
        let args = vec!["-c".into(), OsString::from(command)];
        let mut launch = Self::in_run(place, Path::new(host::SHELL), args, limits, &[])?;
        // The home is empty; this says that nothing put there counts either.
        launch.env.insert("PYTHONNOUSERSITE".into(), "1".into());
        if let Some(jail) = &mut launch.jail {
            // The kernel counts memory that is only set aside, and a sanitizer sets aside more than
            // there is. What all of its processes use is looked at all the same.
            jail.limits.data_bytes = u64::MAX;
        }
        Ok(launch)
    }

    fn in_run(
        place: &RunPlace<'_>,
        program: &Path,
        args: Vec<OsString>,
        limits: Limits,
        also: &[&Granted],
    ) -> io::Result<Self> {
        if !is_contained(place.plan) {
            // Only a plain copy is ever planned without a jail.
            let cwd = place.copy.on_host.clone();
            let env = place.bare_env();
            return Ok(Self::without_jail(program, args, cwd, env, limits));
        }
        let mut mounts = place.mounts(also);
        let inside = if is_system(program) || shown_at_its_place(&mounts, program) {
            program.to_owned()
        } else {
            let target = Path::new(ENGINE).join(program.file_name().unwrap_or_default());
            let own = place.places.file(program);
            let own = own.map_err(|refused| io::Error::other(refused.to_string()))?;
            mounts.push(Mount::at(&own, &target));
            target
        };
        let mut jail = with_tokens_hidden(mounts, place.env);
        jail.hidden.extend(place.copy.hidden.iter().cloned());
        let asked = &place.plan.limits;
        jail.limits = JailLimits {
            processes: asked.processes.into(),
            data_bytes: u64::from(asked.memory_mib) << 20,
            ..JailLimits::default()
        };
        Ok(Self {
            program: inside,
            args,
            cwd: place.plan.stand.path().to_owned(),
            env: place.jail_env(),
            limits,
            jail: Some(jail),
            streams: Streams::Taken,
        })
    }

    /// A program asked about itself with one flag. `scratch` is all it may write, and holds its
    /// home.
    pub fn question(
        (program, flag): (&Path, &str),
        shown: &[Granted],
        path: &str,
        scratch: &Granted,
        env: &Env,
    ) -> Self {
        // Agents of many packages take half a minute to say who they are on a busy machine.
        const LONGEST: Duration = Duration::from_secs(60);
        const MEMORY_KIB: u64 = 2 << 20;
        let mut mounts = vec![Mount::at(scratch, SCRATCH)];
        mounts.extend(shown.iter().map(Mount::in_place));
        let jail = with_tokens_hidden(mounts, env);
        let env = [
            ("PATH", path),
            ("HOME", "/scratch/home"),
            ("TMPDIR", "/tmp"),
            ("LANG", "C.UTF-8"),
            ("NO_COLOR", "1"),
        ];
        Self {
            program: program.to_owned(),
            args: vec![flag.into()],
            cwd: SCRATCH.into(),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            limits: Limits {
                wall: LONGEST,
                idle: LONGEST,
                memory_kib: MEMORY_KIB,
            },
            jail: Some(jail),
            streams: Streams::Taken,
        }
    }

    /// A command of a double in a jail with a door, whose address it has twice: as it is, and in a URL.
    /// It finds `own` as `/engine/cto`.
    pub fn with_door(own: &Granted, program: &OsStr, args: &[OsString]) -> Self {
        let own = Mount::at(own, Path::new(ENGINE).join("cto"));
        let mut jail = JailPlan::new(vec![own]);
        jail.door = true;
        let url = vec!["http://".into(), "/v1".into()];
        jail.env_of_door.insert("CTO_DOOR_URL".into(), url);
        Self {
            program: program.into(),
            args: args.to_vec(),
            cwd: "/tmp".into(),
            env: BTreeMap::from([("PATH".into(), SYSTEM_PATH.into())]),
            limits: Limits::of_time(Duration::from_secs(60)),
            jail: Some(jail),
            streams: Streams::StoodInFor,
        }
    }

    /// A process of the operator's: what a plan without containment runs, and this program itself.
    pub fn without_jail(
        program: &Path,
        args: Vec<OsString>,
        cwd: PathBuf,
        env: BTreeMap<OsString, OsString>,
        limits: Limits,
    ) -> Self {
        Self {
            program: program.to_owned(),
            args,
            cwd,
            env,
            limits,
            jail: None,
            streams: Streams::Taken,
        }
    }
}

/// A jail with these mounts, in which files that hold tokens look empty.
fn with_tokens_hidden(mounts: Vec<Mount>, env: &Env) -> JailPlan {
    let shown = mounts.iter().filter(|mount| !mount.writable);
    let hidden = places::tokens_in(shown.map(|mount| mount.target.as_path()), env);
    let mut jail = JailPlan::new(mounts);
    jail.hidden = hidden;
    jail
}

fn is_contained(plan: &Plan) -> bool {
    plan.containment != Containment::None
}

/// Is the program below something that is shown under its own path?
fn shown_at_its_place(mounts: &[Mount], program: &Path) -> bool {
    mounts
        .iter()
        .any(|mount| mount.source == mount.target && program.starts_with(&mount.target))
}

fn environment(path: OsString, home: PathBuf, temp: PathBuf) -> BTreeMap<OsString, OsString> {
    BTreeMap::from([
        ("PATH".into(), path),
        ("HOME".into(), home.into_os_string()),
        ("TMPDIR".into(), temp.into_os_string()),
        ("LANG".into(), "C.UTF-8".into()),
        ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
    ])
}

fn limits(plan: &Plan, wall: u32, idle: u32) -> Limits {
    Limits {
        wall: Duration::from_secs(wall.into()),
        idle: Duration::from_secs(idle.into()),
        memory_kib: u64::from(plan.limits.memory_mib) * 1024,
    }
}
