//! Rows about approvals and about a repository that somebody owns: the proofs they stand on, the admission, the answer in
//! a store, and the word that is said in the end. All of it in the row's own place, by a key made for it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::engine::manifest::DEFAULT_ENGINE;
use cto_core::proof::matrix::{Fault, Fixture, Row, Scripted, Word, Words};
use cto_core::run::event::Outcome;
use cto_core::task::contract::Stage;
use cto_core::values::ids::RunId;

use super::asked::{self, Playing};
use super::asked::{broken, files_of};
use super::lane::{KEPT, copy, runs_of};
use super::place::{Past, Place, make_repository};
use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::host::{self, Env, Home, programs};
use crate::proof::desk::{Desk, Says};
use crate::proof::lane_records;
use crate::run;
use crate::run::approvals::store::Store;
use crate::screen::progress::Quiet;
use crate::supervise::cancel::Cancel;
use crate::task::engines;
use crate::task::request::Request;

/// The file of the admission, in the place of a row.
const ADMISSION: &str = "target.json";
/// What somebody changes before a result lands.
const EDITED: &str = "keep.txt";

/// A state in which the scripted engine has the proofs of every stage before the last.
pub struct Climbed {
    home: Home,
}

impl Climbed {
    /// Climbs with the row that has nothing wrong. Where a run does not pass, rows that stand on it are red.
    pub fn make(
        dir: &Path,
        env: &Env,
        (fixture, sound): (&Fixture, &Row),
        cancel: &Cancel,
    ) -> Result<Self, Failure> {
        let env = env.only(&KEPT);
        let home = Home {
            root: dir.join("state"),
            runs: dir.join("state/harness-runs"),
        };
        let unmade = |error: io::Error| {
            Failure::internal("no_temporary_directory", "no proofs can be made").because(&error)
        };
        host::make_private_dir(dir).map_err(unmade)?;
        let git = programs::git(&env, &home).map_err(|error| broken(&error))?;
        let source = dir.join("source");
        make_repository(&git, &source, &files_of(fixture, sound), Past::One).map_err(unmade)?;
        let request = |source: Option<&Path>, stage| {
            let script = Playing::Script(Words::new());
            let manifest = engines::find(DEFAULT_ENGINE)?;
            let request = asked::request(sound, fixture, manifest, source, script)?;
            Ok::<_, Failure>(request.at_stage(stage))
        };
        let third = request(Some(&source), Stage::Three)?;
        run::run(&home, &env, &third, cancel, &mut Quiet)?;
        let mut fourth = request(None, Stage::Four)?;
        let desk = Desk::open((&home, &env), &home.root.join("desk"))?;
        let asked = desk.ask(&fourth)?;
        desk.answer(&asked, Says::Yes)?;
        fourth.request_id = Some(asked.request_id);
        run::run(&home, &env, &fourth, cancel, &mut Quiet)?;
        Ok(Self { home })
    }

    pub fn at(dir: &Path) -> Self {
        Self {
            home: Home {
                root: dir.to_owned(),
                runs: dir.join("harness-runs"),
            },
        }
    }

    pub fn dir(&self) -> &Path {
        &self.home.root
    }

    /// Its proofs and keys, for a state home that is not there yet.
    pub fn lay(&self, home: &Home) -> io::Result<()> {
        copy(&self.home.root, &home.root)
    }

    /// Runs that lie in every copy of its state: they are no row's.
    pub fn proofs(&self) -> std::collections::BTreeSet<OsString> {
        runs_of(&self.home)
    }
}

/// The repository of a row and its admission, with what differs in it.
pub fn make_target(
    place: &Place,
    git: &programs::Program,
    (fixture, row): (&Fixture, &Row),
) -> io::Result<()> {
    let Some(changes) = &row.target else {
        return Ok(());
    };
    let repository = place.at("source");
    make_repository(git, &repository, &files_of(fixture, row), Past::History)?;
    let mut record = lane_records::target(&repository.canonicalize()?);
    for (field, value) in changes {
        record[field] = serde_json::to_value(value).map_err(io::Error::other)?;
    }
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(place.at(ADMISSION))?;
    file.write_all(record.to_string().as_bytes())
}

/// What the process of a row is told of both.
pub fn arguments(row: &Row, place: &Place, climbed: Option<&Climbed>) -> Vec<OsString> {
    let mut args = Vec::new();
    if row.target.is_some() {
        args.extend(["--target".into(), place.at(ADMISSION).into_os_string()]);
    }
    if let Some(climbed) = climbed.filter(|_| row.stands_on_all()) {
        args.extend(["--climbed".into(), climbed.dir().as_os_str().to_owned()]);
    }
    args
}

/// The desk of a row, in its own place.
pub struct RowDesk<'a> {
    desk: Desk<'a>,
    home: &'a Home,
    /// The repository that somebody owns.
    repository: PathBuf,
}

impl<'a> RowDesk<'a> {
    pub fn open(place: (&'a Home, &'a Env), target: Option<&Path>) -> Result<Self, Failure> {
        let beside = target.and_then(Path::parent).unwrap_or(&place.0.root);
        Ok(Self {
            desk: Desk::open(place, &place.0.root.join("desk"))?,
            home: place.0,
            repository: beside.join("source"),
        })
    }

    /// Asks for this run, and lays the answer into the store with what is wrong with it.
    pub fn answer(&self, request: &Request, answer: Scripted) -> Result<RunId, Failure> {
        let mut asked_for = request.clone();
        if answer == Scripted::Mismatched {
            asked_for.limits.engine_wall_seconds = Some(61);
        }
        let asked = self.desk.ask(&asked_for)?;
        let says = match answer {
            Scripted::Expired => Says::Late,
            Scripted::Denied => Says::No,
            Scripted::Granted | Scripted::Consumed | Scripted::Mismatched => Says::Yes,
        };
        self.desk.answer(&asked, says)?;
        let id = asked.request_id;
        if answer == Scripted::Consumed {
            let used = Store::of(self.home).use_up(&id, &id, host::now());
            used.map_err(|error| broken(&error))?;
        }
        Ok(id)
    }

    /// Says what the row says of the result, after what happens to the repository before.
    pub fn say(
        &self,
        row: &Row,
        word: Word,
        run: &Path,
        cancel: &Cancel,
    ) -> Result<SealedBundle, Failure> {
        if row.fault == Some(Fault::TargetEdited) {
            fs::write(self.repository.join(EDITED), "by its owner\n")
                .map_err(|error| broken(&error))?;
        }
        let outcome = match word {
            Word::Accepted => Outcome::Accepted,
            Word::Rejected => Outcome::Rejected,
        };
        self.desk.say(outcome, run, cancel)
    }
}
