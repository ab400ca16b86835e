//! Running the failure matrix: every row as a process of its own, through the ordinary path, in a
//! place of its own; then judged by what it left there.
//!
//! - this file: all rows, side by side; `place.rs` where one lives; `fault.rs` what is broken for
//!   it
//! - `asked.rs` a row as a request; `lane.rs` the program and the scripted model of rows that start one
//! - `owned.rs` rows about approvals and a repository that somebody owns; `aftermath.rs` what must not have happened

mod aftermath;
pub mod asked;
pub mod fault;
pub mod lane;
pub mod owned;
mod place;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cto_core::engine::manifest::{Dialect, Invocation, Manifest, Program};
use cto_core::proof::matrix::{
    self, Assertion, Evidence, Fault, Fixture, Lanes, Matrix, MatrixReport, Row, RowOutcome, Words,
};
use cto_core::run::event::ProcessEnd;
use cto_jail::probe;

use crate::doubles::agent;
use crate::host::failure::Failure;
use crate::host::files;
use crate::host::toolchains;
use crate::host::{Env, Home, programs, workers};
use crate::supervise::cancel::Cancel;
use crate::supervise::launch::Launch;
use crate::supervise::{self, Limits};
use crate::task::engines;
use aftermath::{Honeypot, PathsThatMustNotExist};
use asked::files_of;
use lane::{Lane, Making, Needs, NoLane};
use owned::Climbed;
pub use place::{Look, Past, Place, make_repository};

pub use asked::VALIDATOR;
pub use place::{bundle_seen, make_root};

/// No row takes this long unless something is broken.
const ROW_LIMIT: Duration = Duration::from_secs(120);
/// The same of a program of its own: some ask a model that fails for more than a minute.
const LANE_ROW_LIMIT: Duration = Duration::from_secs(420);
/// A row with nothing wrong, for the proofs that others stand on.
const SOUND: &str = "sound";
/// Rows mostly wait: for a limit, for a jail, for git.
const SIDE_BY_SIDE: usize = 4;

/// What the operator asked for.
pub struct Order {
    pub fixture: Fixture,
    pub rows: Vec<Row>,
    pub manifest: Manifest,
    /// The program of the engine, where the operator names one.
    pub bin: Option<PathBuf>,
    /// Where its manifest lies, if it is the operator's own.
    pub engines: Option<PathBuf>,
    /// The engine is played by the double of it that ships here.
    pub doubled: bool,
    /// Leave every place as it is.
    pub keep: bool,
}

/// The rows this binary was built with.
pub fn built_in() -> Result<Matrix, Failure> {
    matrix::built_in().map_err(|error| {
        Failure::internal("bad_matrix", "the rows of the matrix are broken").because(&error)
    })
}

/// The row with nothing wrong.
pub fn sound() -> Result<Row, Failure> {
    let found = built_in()?.rows.into_iter().find(|row| row.name == SOUND);
    found.ok_or_else(|| Failure::internal("bad_matrix", "the matrix has no row with nothing wrong"))
}

/// What an engine tries against the harness, and honest work that must not be taken for it.
pub fn attack_matrix() -> Result<Matrix, Failure> {
    matrix::attack_matrix().map_err(|error| {
        Failure::internal("bad_matrix", "the hostile kit is broken").because(&error)
    })
}

/// Runs the rows, a few side by side, and reports each as it ends.
pub fn run(
    order: &Order,
    root: &Path,
    (env, home): (&Env, &Home),
    ended: &mut (dyn FnMut(&RowOutcome) + Send),
) -> Result<MatrixReport, Failure> {
    let since = Instant::now();
    let own = std::env::current_exe().map_err(|error| {
        Failure::internal("own_program", "this program cannot find itself").because(&error)
    })?;
    let runs = |row: &Row| matches!(row.lanes, Lanes::Runnable | Lanes::Modelled);
    let jail_missing = if order.rows.iter().any(runs) {
        probe::probe().missing
    } else {
        Vec::new()
    };
    let gated = engines::all()?.into_iter().find(Manifest::is_gated);
    let mut matrix_run = MatrixRun {
        order,
        root,
        env,
        own,
        jail_missing,
        gated,
        double: agent::manifest()?,
        lane: None,
        climbed: None,
    };
    let cancels = listeners(order.rows.len())?;
    matrix_run.lane = matrix_run.make_lane(home, &cancels)?;
    matrix_run.climbed = matrix_run.climb(&cancels)?;
    let mut waiting: Vec<usize> = (0..order.rows.len()).collect();
    // Those that wait for a limit first: the others fit beside them.
    waiting.sort_by_key(|number| !order.rows[*number].case.contains_key("limits"));
    let ended = Mutex::new(ended);
    let done: BTreeMap<usize, RowOutcome> =
        workers::each_with(&cancels, &waiting, &|cancel, number: &usize| {
            let outcome = matrix_run.row(&order.rows[*number], cancel);
            locked(&ended)(&outcome);
            (*number, outcome)
        })
        .into_iter()
        .collect();
    let rows = done.into_values().collect();
    let interrupted = cancels.iter().any(Cancel::requested);
    Ok(MatrixReport::new(
        order.manifest.id.clone(),
        rows,
        millis(since.elapsed()),
        interrupted,
    ))
}

/// One for each worker: a wake-up is not shared.
fn listeners(rows: usize) -> Result<Vec<Cancel>, Failure> {
    let workers = workers::cores().max(SIDE_BY_SIDE).min(rows);
    let all: io::Result<Vec<Cancel>> = (0..workers).map(|_| Cancel::on_signals()).collect();
    all.map_err(|error| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&error)
    })
}

/// A worker that panicked has left whole values behind.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What all rows share.
struct MatrixRun<'a> {
    order: &'a Order,
    root: &'a Path,
    env: &'a Env,
    own: PathBuf,
    jail_missing: Vec<String>,
    /// Some engine that is closed until opened, for rows about such engines.
    gated: Option<Manifest>,
    /// Stands in where a row needs a model and the engine has none.
    double: Manifest,
    /// For rows that start a program with a model; or why there is none.
    lane: Option<Result<Lane, String>>,
    /// For rows that stand on every stage before.
    climbed: Option<Climbed>,
}

impl MatrixRun<'_> {
    /// The engine of a row: the one that was asked for, or one that the row makes sense for.
    fn manifest(&self, row: &Row) -> &Manifest {
        let asked = &self.order.manifest;
        let plays_scripts =
            |own: &Invocation| own.dialect == Dialect::Fake && own.program == Program::Itself;
        match row.lanes {
            Lanes::Gated | Lanes::Opened if !asked.is_gated() => {
                self.gated.as_ref().unwrap_or(asked)
            }
            Lanes::Modelled if asked.invocation.as_ref().is_some_and(plays_scripts) => &self.double,
            _ => asked,
        }
    }

    /// The one lane that rows of this order run on, if any does.
    fn make_lane(
        &self,
        home: &Home,
        cancels: &[Cancel],
    ) -> Result<Option<Result<Lane, String>>, Failure> {
        let on_lane = |row: &&Row| {
            let manifest = self.manifest(row);
            row.runs_a_lane(manifest) && row.not_applicable(manifest, &self.jail_missing).is_none()
        };
        let rows: Vec<&Row> = self.order.rows.iter().filter(on_lane).collect();
        let (Some(first), Some(cancel)) = (rows.first(), cancels.first()) else {
            return Ok(None);
        };
        let sound = sound()?;
        let making = Making {
            manifest: self.manifest(first),
            bin: self.order.bin.as_deref(),
            env: self.env,
            home,
            fixture: &self.order.fixture,
            sound: &sound,
            cancel,
        };
        let needs = Needs::of(rows.iter().copied());
        match Lane::make(&self.root.join("lane"), &making, &needs) {
            Ok(lane) => Ok(Some(Ok(lane))),
            Err(NoLane::Reason(why)) => Ok(Some(Err(why))),
            Err(NoLane::Failed(failure)) => Err(failure),
        }
    }

    /// The proofs that rows of this order stand on, if any does.
    fn climb(&self, cancels: &[Cancel]) -> Result<Option<Climbed>, Failure> {
        let stands = |row: &&Row| {
            let manifest = self.manifest(row);
            row.stands_on_all() && row.not_applicable(manifest, &self.jail_missing).is_none()
        };
        let (Some(_), Some(cancel)) = (self.order.rows.iter().find(stands), cancels.first()) else {
            return Ok(None);
        };
        let dir = self.root.join("climbed");
        let played = (&self.order.fixture, &sound()?);
        Climbed::make(&dir, self.env, played, cancel).map(Some)
    }

    /// The lane a row runs on.
    fn lane(&self, row: &Row, manifest: &Manifest) -> Option<&Result<Lane, String>> {
        self.lane.as_ref().filter(|_| row.runs_a_lane(manifest))
    }

    fn row(&self, row: &Row, cancel: &Cancel) -> RowOutcome {
        let manifest = self.manifest(row);
        if let Some(reason) = row.not_applicable(manifest, &self.jail_missing) {
            return RowOutcome::not_applicable(row, &manifest.id, reason);
        }
        if let Some(Err(reason)) = self.lane(row, manifest) {
            return RowOutcome::not_applicable(row, &manifest.id, reason);
        }
        if let Some(program) = row.needs.iter().find(|program| !in_system(program)) {
            return RowOutcome::not_applicable(
                row,
                &manifest.id,
                format!("{program} is not a program of this system"),
            );
        }
        if cancel.requested() {
            return RowOutcome::not_applicable(row, &manifest.id, "interrupted");
        }
        let since = Instant::now();
        let dir = self.root.join(&row.name);
        let outcome = self.play(row, manifest, &dir, cancel);
        let duration_ms = millis(since.elapsed());
        if !self.order.keep {
            // Left over only where the system itself is in trouble; the root goes as a whole at the
            // end.
            let _ = files::remove_tree(&dir);
        }
        if cancel.requested() {
            return RowOutcome::not_applicable(row, &manifest.id, "interrupted");
        }
        let outcome = outcome.unwrap_or_else(|error| {
            let text = error.to_string();
            let broken = Assertion {
                check: "bundle".into(),
                want: "the row can be run".into(),
                holds: false,
                found: Some(text),
            };
            RowOutcome::judged(row, &manifest.id, vec![broken])
        });
        RowOutcome {
            duration_ms,
            ..outcome
        }
    }

    fn play(
        &self,
        row: &Row,
        manifest: &Manifest,
        dir: &Path,
        cancel: &Cancel,
    ) -> io::Result<RowOutcome> {
        let place = Place::make(dir.to_owned())?;
        if row.fault == Some(Fault::NoGit) {
            place.configure("git = \"/nonexistent/git\"\n")?;
        }
        if row.source.is_some() || row.target.is_some() {
            let git = programs::git(self.env, &place.home()).map_err(io::Error::other)?;
            if let Some(source) = &row.source {
                place.make_source(&git, &files_of(&self.order.fixture, row), &source.dirt)?;
            }
            owned::make_target(&place, &git, (&self.order.fixture, row))?;
        }
        let honeypot = row
            .theme
            .as_ref()
            .map(|_| Honeypot::open(dir))
            .transpose()?;
        let (must_not_exist, before) = (PathsThatMustNotExist::of(row), place.look()?);
        let mut said = Vec::new();
        let launch = self.launch(
            row,
            manifest,
            &place,
            honeypot
                .as_ref()
                .map(Honeypot::words)
                .unwrap_or(&Words::new()),
        );
        let end = supervise::run(&launch, cancel, &mut |_, bytes| {
            said.extend_from_slice(bytes)
        })
        .map_err(io::Error::other)?
        .end;
        let after = place.look()?;
        let mut touched = match row.has_a_desk() {
            true => before.differences_beside_a_desk(&after),
            false => before.differences(&after),
        };
        touched.extend(
            must_not_exist
                .found()
                .into_iter()
                .chain(aftermath::left_over(dir)),
        );
        touched.extend(honeypot.iter().flat_map(Honeypot::touched));
        let printed = if row.reads_back {
            self.read_back(row, manifest, &place, cancel)?
        } else {
            String::new()
        };
        let lane = self.lane(row, manifest).and_then(|lane| lane.as_ref().ok());
        let mut proofs = lane.map(Lane::proofs).unwrap_or_default();
        proofs.extend(self.climbed.iter().flat_map(Climbed::proofs));
        let mut dirs = place.bundles();
        dirs.retain(|dir| dir.file_name().is_none_or(|name| !proofs.contains(name)));
        if row.word.is_some() {
            // The settlement goes on from the run, and comes after it.
            dirs.drain(..dirs.len().saturating_sub(1));
        }
        let bundles = dirs
            .iter()
            .map(|dir| bundle_seen(dir))
            .collect::<io::Result<Vec<_>>>()?;
        let children_ms = bundles.iter().map(matrix::children_ms).sum();
        let evidence = Evidence {
            exit_code: end.exit_code(),
            bundles,
            touched,
            printed,
            secrets: lane.map(|lane| lane.secrets(row)).unwrap_or_default(),
        };
        let mut assertions = matrix::evaluate_row(&row.heard_by(manifest), &evidence);
        if evidence.bundles.is_empty() {
            explain(&mut assertions, end, &said);
        }
        let bundle = dirs
            .first()
            .filter(|_| self.order.keep)
            .map(|dir| dir.display().to_string());
        Ok(RowOutcome {
            children_ms,
            bundle,
            ..RowOutcome::judged(row, &manifest.id, assertions)
        })
    }

    /// What the commands that show a run print about the one that just ended.
    fn read_back(
        &self,
        row: &Row,
        manifest: &Manifest,
        place: &Place,
        cancel: &Cancel,
    ) -> io::Result<String> {
        let mut printed = Vec::new();
        for command in ["show", "replay", "runs"] {
            let home = [OsString::from("--home"), place.at("state").into_os_string()];
            let args = home
                .into_iter()
                .chain(["--color", "never", command].map(OsString::from))
                .collect();
            let launch = Launch {
                args,
                ..self.launch(row, manifest, place, &Words::new())
            };
            supervise::run(&launch, cancel, &mut |_, bytes| {
                printed.extend_from_slice(bytes)
            })
            .map_err(io::Error::other)?;
        }
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    /// The program itself, told to run one row: nothing of the operator's environment but PATH.
    fn launch(&self, row: &Row, manifest: &Manifest, place: &Place, words: &Words) -> Launch {
        let path = self.env.get("PATH").unwrap_or_default().to_owned();
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::from([
            ("PATH".into(), path),
            ("HOME".into(), place.at("home").into_os_string()),
            ("TMPDIR".into(), place.at("tmp").into_os_string()),
            ("LANG".into(), "C.UTF-8".into()),
        ]);
        env.extend(
            row.env
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        let mut args: Vec<OsString> = vec![
            "--home".into(),
            place.at("state").into_os_string(),
            "--json".into(),
            "__row".into(),
        ];
        args.extend([
            (&row.name).into(),
            "--engine".into(),
            manifest.id.as_str().into(),
        ]);
        if self.order.doubled && manifest.id == self.order.manifest.id {
            args.push("--double".into());
        }
        if let Some(dir) = &self.order.engines {
            args.extend(["--engines".into(), dir.into()]);
        }
        args.extend(owned::arguments(row, place, self.climbed.as_ref()));
        if row.source.is_some() {
            args.extend(["--source".into(), place.at("source").into_os_string()]);
        }
        words.iter().for_each(|(word, meant)| {
            args.extend(["--word".into(), format!("{word}={meant}").into()])
        });
        let mut limit = ROW_LIMIT;
        if let Some(Ok(lane)) = self.lane(row, manifest) {
            args.extend(["--lane".into(), lane.dir().as_os_str().to_owned()]);
            limit = LANE_ROW_LIMIT;
        }
        let limits = Limits::of_time(limit);
        Launch::without_jail(&self.own, args, place.at("cwd"), env, limits)
    }
}

/// Is it where every jail finds its programs?
fn in_system(program: &str) -> bool {
    toolchains::SYSTEM_PATH
        .split(':')
        .any(|dir| Path::new(dir).join(program).is_file())
}

/// A run that left nothing at least said something.
fn explain(assertions: &mut [Assertion], end: ProcessEnd, said: &[u8]) {
    let words = cto_core::values::text::tame_excerpt(&String::from_utf8_lossy(said));
    for assertion in assertions
        .iter_mut()
        .filter(|assertion| assertion.check == "bundle")
    {
        assertion.found = Some(format!(
            "no bundle; {}; it said: {words}",
            cto_core::bundle::report_md::describe_end(end)
        ));
    }
}
