//! What a word does to the repository of its operator: an accepted result lands, and one that landed is taken back.
//! The commit follows from the run's bundle alone; it is made again here, and is the one that the run named.

use std::io;

use cto_core::bundle::attest::Trust;
use cto_core::bundle::report::Report;
use cto_core::run::event::{Event, LandMode, LandingStep, LandingUpdated, Outcome};
use cto_core::task::contract::Contract;
use cto_core::task::source::CopiedRepo;
use cto_core::workspace::landing::Way;
use cto_core::workspace::landing::journal::{Deed, End};

use super::{Landing, OutcomeRecord, Settling, nothing};
use crate::bundles::settlements;
use crate::evidence::{EvidenceError, OpenBundle};
use crate::host::failure::{Failure, chain};
use crate::host::programs::{self, Program};
use crate::host::{Env, Home, repositories};
use crate::supervise::cancel::Cancel;
use crate::workspace::landing::recover::{self, Ended};
use crate::workspace::landing::result::{Into, RunResult, result_order, undo_order};
use crate::workspace::landing::{self, Landed, LandingError, Order};
use crate::workspace::own_dir::OwnDir;

/// Where a word is carried out, and with what.
pub struct Ground<'a> {
    pub home: &'a Home,
    pub env: &'a Env,
    pub cancel: &'a Cancel,
    git: Program,
    aside: OwnDir,
    /// Why nothing may land there any more.
    closed: Option<String>,
    /// Landings of the run that ended before anything of them was sealed.
    earlier: Vec<Ended>,
    /// What this word landed.
    done: Option<Landed>,
}

impl<'a> Ground<'a> {
    /// `closed` says why the admission of the repository lets nothing land there any more. Landings that were left
    /// half done are to be ended before.
    pub fn new(
        (home, env): (&'a Home, &'a Env),
        settling: &Settling,
        cancel: &'a Cancel,
        closed: Option<String>,
    ) -> Result<Self, Failure> {
        let git = programs::git(env, home).map_err(|none| {
            Failure::blocked("toolchain_unavailable", "there is no git to land it with")
                .because(&none)
                .so("nothing was settled")
                .hint("install git with the system, or name one with `git` in the config file")
        })?;
        let aside = OwnDir::make(home).map_err(|error| {
            Failure::internal("state_unwritable", "a private copy cannot be made").because(&error)
        })?;
        let run = &settling.named.run_id;
        if recover::is_open(home, run) {
            return Err(
                nothing("a landing of the run was cut short, and could not be ended yet")
                    .hint("`cto recover` says what is in its way; then the word can be said again"),
            );
        }
        let ended = recover::of_run(home, run);
        Ok(Self {
            home,
            env,
            cancel,
            git,
            aside,
            closed,
            earlier: ended,
            done: None,
        })
    }

    /// A word that contradicts what is in the repository already is not begun.
    pub fn allows(&self, record: &OutcomeRecord) -> Result<(), Failure> {
        let Some(there) = self.left_behind(Deed::Landing) else {
            return Ok(());
        };
        let is_it = record.land == Some(mode_of(there.way)) || record.reverts.is_some();
        if is_it {
            return Ok(());
        }
        let word = mode_of(there.way).as_str();
        Err(nothing("its result has landed, and that was not sealed yet")
            .reason(format!("it landed by --land {word}"))
            .hint(format!(
                "`cto outcome {} accept --land {word}` seals that; then `cto revert` takes it back",
                record.run_id
            )))
    }

    fn left_behind(&self, deed: Deed) -> Option<&Ended> {
        let mut earlier = self.earlier.iter();
        earlier.find(|ended| ended.deed == deed && ended.end == End::Landed)
    }

    /// Lands what was accepted, or takes back what had landed. What the repository did not allow is told, and nothing
    /// of it has changed then.
    pub fn carry_out(
        &mut self,
        bundle: &mut OpenBundle,
        settling: &Settling,
        record: &OutcomeRecord,
    ) -> Result<Landing, EvidenceError> {
        let mode = match (record.outcome, &record.reverts) {
            (Outcome::Rejected, None) => return Ok(Landing::Nothing),
            (Outcome::Rejected, Some(_)) => LandMode::Merge,
            (Outcome::Accepted, _) => record.land.unwrap_or(LandMode::Merge),
        };
        let update = |step, old_commit, new_commit, detail| LandingUpdated {
            step,
            mode,
            old_commit,
            new_commit,
            detail,
        };
        let refused = |why: String| {
            let told = update(LandingStep::Refused, None, None, Some(why));
            Ok(Landing::Updates(vec![told]))
        };
        let deed = match record.outcome {
            Outcome::Accepted => Deed::Landing,
            Outcome::Rejected => Deed::Revert,
        };
        if let Some(there) = self.left_behind(deed) {
            let parent = settling
                .run
                .looks
                .as_ref()
                .map(|l| l.source_head_before.clone());
            let old = parent.filter(|_| deed == Deed::Landing);
            let told = update(LandingStep::Landed, old, Some(there.commit.clone()), None);
            return Ok(Landing::Updates(vec![told]));
        }
        let Some(known) = Known::of(settling) else {
            return refused("the bundle of the run does not tell what would land".to_owned());
        };
        if let Some(why) = self.closed.as_ref().filter(|_| deed == Deed::Landing) {
            return refused(why.clone());
        }
        match self.try_it(bundle, &known, record, &update)? {
            Ok(landed) => {
                let told = update(
                    LandingStep::Landed,
                    Some(landed.parent.clone()),
                    Some(landed.commit.clone()),
                    None,
                );
                self.done = Some(landed);
                Ok(Landing::Updates(vec![told]))
            }
            Err(error) => refused(words(&error)),
        }
    }

    fn try_it(
        &self,
        bundle: &mut OpenBundle,
        known: &Known<'_>,
        record: &OutcomeRecord,
        update: &dyn Fn(
            LandingStep,
            Option<String>,
            Option<String>,
            Option<String>,
        ) -> LandingUpdated,
    ) -> Result<Result<Landed, LandingError>, EvidenceError> {
        let only = known.contract.lane.repository.as_ref();
        let only = only.map(|named| named.path_sha256);
        let found = only.and_then(|only| repositories::find(self.home, &only));
        let Some(repository) = found else {
            let gone = io::Error::other("this state home does not know where it is");
            return Ok(Err(LandingError::Write(gone)));
        };
        let users_home = self.env.path("HOME");
        let into = Into {
            git: &self.git,
            home: self.home,
            repository: &repository,
            only,
            users_home: users_home.as_deref(),
            aside: self.aside.path(),
        };
        let result = known.result();
        let undo;
        let order: Order<'_> = match record.outcome {
            Outcome::Accepted => {
                let way = match record.land {
                    Some(LandMode::Branch) => Way::Branch,
                    Some(LandMode::Merge) | None => Way::Merge,
                };
                match result_order(&result, into, way) {
                    Ok(order) => order,
                    Err(error) => {
                        let unread = io::Error::other(error);
                        return Ok(Err(LandingError::Aside(unread)));
                    }
                }
            }
            Outcome::Rejected => {
                undo = format!("Revert \"{}\"", known.contract.title);
                undo_order(&result, into, (known.commit, &undo, record.timestamp))
            }
        };
        let ready = match landing::prepare(&order) {
            Ok(ready) => ready,
            Err(error) => return Ok(Err(error)),
        };
        if record.outcome == Outcome::Accepted && ready.commit != known.commit {
            let other = io::Error::other("it would be another commit than the run named");
            return Ok(Err(LandingError::Aside(other)));
        }
        let (old, new) = (ready.parent.clone(), ready.commit.clone());
        let prepared = update(LandingStep::Prepared, Some(old), Some(new), None);
        bundle.emit(Event::LandingUpdated(prepared))?;
        Ok(ready.land(self.cancel))
    }

    /// The settlement is sealed: journals of what it tells are dropped.
    pub fn settled(self) -> io::Result<()> {
        for ended in self.earlier {
            ended.settled()?;
        }
        self.done.map_or(Ok(()), Landed::settled)
    }
}

/// What is known of a result: all of it from the verified bundle of its run.
struct Known<'a> {
    report: &'a Report,
    contract: &'a Contract,
    looks: &'a CopiedRepo,
    request: Option<&'a cto_core::values::ids::RunId>,
    patch: &'a [u8],
    commit: &'a str,
}

impl<'a> Known<'a> {
    fn of(settling: &'a Settling) -> Option<Self> {
        let run = &settling.run;
        Some(Self {
            report: &run.report,
            contract: run.contract.as_deref()?,
            looks: run.looks.as_deref()?,
            request: run.approval.as_deref().map(|answer| &answer.request_id),
            patch: &settling.patch,
            commit: run.report.result.as_ref()?.commit.as_deref()?,
        })
    }

    fn result(&self) -> RunResult<'a> {
        RunResult {
            title: &self.contract.title,
            case: &self.contract.case_id,
            run: &self.report.run_id,
            started_at: self.report.run_started_at,
            request: self.request,
            patch: self.patch,
            head: &self.looks.source_head_before,
            tree: &self.looks.tree,
            branch: self.looks.branch.as_deref(),
        }
    }
}

fn mode_of(way: Way) -> LandMode {
    match way {
        Way::Merge => LandMode::Merge,
        Way::Branch => LandMode::Branch,
    }
}

/// Why nothing landed, without a place of this host.
fn words(error: &LandingError) -> String {
    match error {
        LandingError::Elsewhere(_) => "the path of the repository leads elsewhere now".into(),
        other => chain(other),
    }
}

/// Drops journals of landings that a sealed settlement tells of: whoever sealed it was killed before they could.
pub fn drop_settled(home: &Home, trust: &Trust) -> io::Result<()> {
    for ended in recover::waiting(home) {
        let said = settlements::verified(home, &ended.run_id, trust)?;
        let told = said.iter().any(|said| {
            let landed = said.landed.as_ref();
            landed.is_some_and(|(_, commit)| *commit == ended.commit)
        });
        if told || ended.end == End::Undone {
            ended.settled()?;
        }
    }
    Ok(())
}
