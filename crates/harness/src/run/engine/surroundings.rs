//! What a process of a run sees: in a jail or, where the plan says so, as the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cto_core::containment::Containment;
use cto_core::gate::plan::Plan;
use cto_core::values::paths::TreePath;
use cto_jail::{Guarded, JailLimits, JailPlan, Mount};

use crate::host::{self, Env};
use crate::run::engine::outfit::Outfit;
use crate::run::execution::Execution;
use crate::supervise::{Job, Limits};
use crate::workspace::private_copy::PrivateCopy;

const WORKSPACE: &str = "/workspace";
const SCRATCH: &str = "/scratch";
/// What of the engine's `.git` would run code, or lead git elsewhere. The rest is the engine's to
/// use or ruin.
const GIT_PROTECTED: [&str; 4] = [".git/commondir", ".git/config", ".git/hooks", ".git/info"];
/// Where a jail finds the engine's own program.
const ENGINE: &str = "/engine";
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// One copy and one scratch directory, as a process will know them.
pub struct Surroundings<'a> {
    execution: &'a Execution<'a>,
    copy: &'a PrivateCopy,
    scratch: PathBuf,
}

impl<'a> Surroundings<'a> {
    /// Makes the scratch directory and hands both directories to the uid that will use them.
    pub fn new(
        execution: &'a Execution<'a>,
        copy: &'a PrivateCopy,
        scratch: &Path,
    ) -> io::Result<Self> {
        for dir in ["home", "tmp"] {
            host::make_private_dir(&scratch.join(dir))?;
        }
        if contained(execution) {
            cto_jail::hand_over(scratch)?;
            copy.hand_over()?;
        }
        Ok(Self {
            execution,
            copy,
            scratch: scratch.to_owned(),
        })
    }

    /// The scratch directory under the name the process knows.
    pub fn scratch(&self) -> PathBuf {
        if contained(self.execution) {
            SCRATCH.into()
        } else {
            self.scratch.clone()
        }
    }

    /// The engine's job: also what its own program needs, its variables and its door. What its
    /// workspace holds outside the contract's scope, and what of git would run code, is protected
    /// by the kernel.
    pub fn engine_job(&self, program: &Path, outfit: &Outfit<'_>, limits: Limits) -> Job {
        let own = self.execution.plan.engine.as_ref();
        let interpreter = own.and_then(|engine| engine.interpreter.as_ref());
        let shown = own
            .map(|engine| engine.mounts.as_slice())
            .unwrap_or_default();
        let shown = shown.iter().chain(
            interpreter
                .map(|found| found.mounts.as_slice())
                .unwrap_or_default(),
        );
        let mut job = self.job_showing(program, outfit.args(), limits, shown.collect());
        if let Some(bin) = interpreter.and_then(|found| found.bin.as_deref())
            && let Some(path) = job.env.get_mut(OsStr::new("PATH"))
        {
            *path = OsString::from(format!("{bin}:{}", path.display()));
        }
        job.env.extend(outfit.env());
        if let Some(jail) = &mut job.jail {
            let mut places = self.execution.plan.guard.clone();
            places.open.insert(0, TreePath::new(".git"));
            places.read_only.extend(GIT_PROTECTED.map(TreePath::new));
            jail.guard = Some(Guarded {
                root: WORKSPACE.into(),
                places,
            });
            jail.door = outfit.needs_a_door();
        }
        job
    }

    pub fn job(&self, program: &Path, args: Vec<OsString>, limits: Limits) -> Job {
        self.job_showing(program, args, limits, Vec::new())
    }

    fn job_showing<'s>(
        &'s self,
        program: &Path,
        args: Vec<OsString>,
        limits: Limits,
        also: Vec<&'s String>,
    ) -> Job {
        if !contained(self.execution) {
            let env = bare_env(self.execution.env, &self.scratch);
            return Job {
                program: program.to_owned(),
                args,
                // Only a plain copy is ever planned without a jail.
                cwd: self.copy.changed_dir(),
                env,
                limits,
                jail: None,
                inherit_output: false,
            };
        }
        let mount = |source: &Path, target: &str, writable| Mount {
            source: source.to_owned(),
            target: target.into(),
            writable,
            mapped: false,
            over: None,
        };
        let mut mounts = vec![
            self.copy.mount(Path::new(WORKSPACE)),
            mount(&self.scratch, SCRATCH, true),
        ];
        let shown: BTreeSet<&String> = self
            .execution
            .plan
            .toolchains
            .iter()
            .flat_map(|toolchain| &toolchain.mounts)
            .chain(also)
            .collect();
        mounts.extend(
            shown
                .into_iter()
                .map(|path| mount(Path::new(path), path, false)),
        );
        for input in &self.execution.plan.inputs {
            let target = Path::new(WORKSPACE).join(&input.path);
            mounts.push(Mount {
                source: PathBuf::from(&input.source),
                target,
                writable: false,
                mapped: false,
                over: None,
            });
        }
        let inside = if program.starts_with("/bin")
            || program.starts_with("/usr")
            || shown_at_its_place(&mounts, program)
        {
            program.to_owned()
        } else {
            let target = Path::new(ENGINE).join(program.file_name().unwrap_or_default());
            mounts.push(Mount {
                source: program.to_owned(),
                target: target.clone(),
                writable: false,
                mapped: false,
                over: None,
            });
            target
        };
        let mut plan = JailPlan::new(mounts);
        let asked = &self.execution.plan.limits;
        plan.limits = JailLimits {
            processes: asked.processes.into(),
            data_bytes: u64::from(asked.memory_mib) << 20,
            ..JailLimits::default()
        };
        Job {
            program: inside,
            args,
            cwd: WORKSPACE.into(),
            env: self.jail_env(),
            limits,
            jail: Some(plan),
            inherit_output: false,
        }
    }

    /// An allow-list, not a filter.
    fn jail_env(&self) -> BTreeMap<OsString, OsString> {
        let toolchains = &self.execution.plan.toolchains;
        let mut path: Vec<&str> = toolchains
            .iter()
            .filter_map(|toolchain| toolchain.bin.as_deref())
            .collect();
        path.push(SYSTEM_PATH);
        let mut env = environment(
            path.join(":").into(),
            Path::new(SCRATCH).join("home"),
            "/tmp".into(),
        );
        env.extend(
            toolchains
                .iter()
                .flat_map(|toolchain| &toolchain.env)
                .map(|(name, value)| (name.into(), value.into())),
        );
        env
    }
}

/// Is the program below something that is shown under its own path?
fn shown_at_its_place(mounts: &[Mount], program: &Path) -> bool {
    mounts
        .iter()
        .any(|mount| mount.source == mount.target && program.starts_with(&mount.target))
}

fn contained(execution: &Execution<'_>) -> bool {
    execution.plan.containment != Containment::None
}

fn bare_env(env: &Env, scratch: &Path) -> BTreeMap<OsString, OsString> {
    let path = env.get("PATH").map(|path| {
        let absolute = std::env::split_paths(path).filter(|dir| dir.is_absolute());
        std::env::join_paths(absolute).unwrap_or_else(|_| OsString::from(SYSTEM_PATH))
    });
    environment(
        path.unwrap_or_else(|| SYSTEM_PATH.into()),
        scratch.join("home"),
        scratch.join("tmp"),
    )
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

pub fn engine_limits(plan: &Plan) -> Limits {
    limits(
        plan,
        plan.limits.engine_wall_seconds,
        plan.limits.engine_idle_seconds,
    )
}

pub fn verification_limits(plan: &Plan) -> Limits {
    limits(
        plan,
        plan.limits.verification_wall_seconds,
        plan.limits.verification_idle_seconds,
    )
}

fn limits(plan: &Plan, wall: u32, idle: u32) -> Limits {
    Limits {
        wall: Duration::from_secs(wall.into()),
        idle: Duration::from_secs(idle.into()),
        memory_kib: u64::from(plan.limits.memory_mib) * 1024,
    }
}
