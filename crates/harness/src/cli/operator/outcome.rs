//! `cto outcome` and `cto revert`: a person says what becomes of a green result at stage 5, signed with their own
//! SSH key. An accepted result lands, a rejected one is dropped, and what landed can be taken back.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use cto_core::bundle::approval::sshsig::Purpose;
use cto_core::bundle::settlement::{Effective, Given, Settlement, Standing};
use cto_core::engine::manifest::Manifest;
use cto_core::gate::target::TargetFound;
use cto_core::run::event::{LandMode, Outcome};
use cto_core::task::contract::Stage;
use serde_json::{Value, json};

use super::request;
use super::signing::{Signer, SigningArgs};
use crate::bundles::{index, reader};
use crate::cli::Context;
use crate::cli::args::ask;
use crate::cli::work::run::end_what_was_left;
use crate::evidence::SealedBundle;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::records::targets;
use crate::run::approvals::settlement::landing::Ground;
use crate::run::approvals::settlement::{Settling, Word, Words, settle};
use crate::screen::output::tame;
use crate::supervise::cancel::Cancel;
use crate::task::lane::variable;

/// The variable that gives the outcome ahead, for engines of any kind.
const GIVEN_AHEAD: &str = "STAGE5_OPERATOR_OUTCOME";

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique part of one, or `last`
    run: String,
    /// What becomes of its result
    outcome: Choice,
    /// How an accepted result lands: on the branch that is checked out, or as a new branch alone
    #[arg(long, value_name = "HOW", default_value = "merge")]
    land: Land,
    #[command(flatten)]
    signing: SigningArgs,
}

#[derive(clap::Args)]
pub struct RevertArgs {
    /// A run id, a unique part of one, or `last`: one whose result was accepted and landed
    run: String,
    #[command(flatten)]
    signing: SigningArgs,
}

/// What is said before the run, for whatever green result it will have.
#[derive(clap::Args)]
pub struct AheadArgs {
    /// Stage 5: what becomes of a green result, said before the run [env: CTO_HARNESS_<ENGINE>_STAGE5_OPERATOR_OUTCOME]
    #[arg(long, value_name = "OUTCOME", hide_short_help = true)]
    outcome: Option<Choice>,
    /// Stage 5, with --outcome accept: how it lands
    #[arg(
        long,
        value_name = "HOW",
        default_value = "merge",
        hide_short_help = true
    )]
    land: Land,
    #[command(flatten)]
    signing: SigningArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    #[value(alias = "accepted")]
    Accept,
    #[value(alias = "rejected")]
    Reject,
}

impl Choice {
    fn outcome(self) -> Outcome {
        match self {
            Self::Accept => Outcome::Accepted,
            Self::Reject => Outcome::Rejected,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Land {
    Merge,
    Branch,
}

impl Land {
    fn mode(self) -> LandMode {
        match self {
            Self::Merge => LandMode::Merge,
            Self::Branch => LandMode::Branch,
        }
    }
}

/// A word, and the key that signs it.
struct Say {
    outcome: Outcome,
    land: LandMode,
    given: Given,
    source: &'static str,
    signer: Signer,
}

pub fn outcome(context: &Context, args: &Args) -> Result<u8, Failure> {
    let said = (args.outcome.outcome(), args.land.mode());
    by_hand(context, "outcome", &args.run, said, &args.signing)
}

pub fn revert(context: &Context, args: &RevertArgs) -> Result<u8, Failure> {
    let said = (Outcome::Rejected, LandMode::Merge);
    by_hand(context, "revert", &args.run, said, &args.signing)
}

fn nothing(code: &'static str, what: &str) -> Failure {
    Failure::blocked(code, what).so("nothing was written, and no repository was touched")
}

fn by_hand(
    context: &Context,
    command: &str,
    run: &str,
    (outcome, land): (Outcome, LandMode),
    signing: &SigningArgs,
) -> Result<u8, Failure> {
    let source = match (&signing.key, ask::somebody()) {
        (Some(_), _) => "the command, with a key named",
        (None, true) => "the command, typed at a terminal",
        (None, false) => {
            return Err(nothing(
                "not_typed_by_a_person",
                "nobody sits at a terminal, and no key was named",
            )
            .hint("--key FILE names the key that signs"));
        }
    };
    let home = context.home()?;
    let signer = signing.signer(context, &home, Purpose::Outcome)?;
    end_what_was_left(context, &home);
    let dir = run_of(&home, reader::find(&home, run)?)?;
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    let settling = Settling::open(&home, &dir)?;
    if command == "revert" && settling.stands().standing != Standing::Accepted {
        return Err(
            nothing("nothing_landed", "there is no landing to take back")
                .reason(settling.stands().words())
                .hint("`cto outcome RUN reject` rejects a result that has not landed"),
        );
    }
    let say = Say {
        outcome,
        land,
        given: Given::Afterwards,
        source,
        signer,
    };
    let (sealed, stands) = carry_out(context, &home, settling, &say, &cancel)?;
    let as_said = is_as_said(&sealed);
    print(context, command, &sealed, &stands)?;
    Ok(if as_said { 0 } else { 1 })
}

/// The run that a settlement goes on from; of a run itself.
fn run_of(home: &Home, dir: PathBuf) -> Result<PathBuf, Failure> {
    let report = reader::report(&dir)?;
    Ok(match &report.continues {
        Some(of) => home.runs.join(of.run_id.as_str()),
        None => dir,
    })
}

/// Was the word carried out? Rejecting is no failure of the command.
fn is_as_said(sealed: &SealedBundle) -> bool {
    let said = Settlement::of(&sealed.report);
    said.is_some_and(|said| match (said.outcome, &said.reverts) {
        (Outcome::Rejected, None) => !said.cut_short,
        (Outcome::Accepted, _) | (Outcome::Rejected, Some(_)) => {
            said.landed.is_some() && !said.cut_short
        }
    })
}

/// Signs, keeps, carries out and seals one word.
fn carry_out(
    context: &Context,
    home: &Home,
    settling: Settling,
    say: &Say,
    cancel: &Cancel,
) -> Result<(SealedBundle, Effective), Failure> {
    let id = settling.named.run_id.clone();
    let held = Words::hold(home, &id).map_err(|error| {
        Failure::internal("store_unwritable", "the outcome cannot be kept")
            .because(&error)
            .so("nothing was settled")
    })?;
    let words = held.ok_or_else(|| {
        nothing("busy", "another cto is at work on this run").hint("try again when it is done")
    })?;
    // Others may have said something before it was our turn.
    let settling = Settling::open(home, &settling.dir)?;
    let word = Word {
        outcome: say.outcome,
        given: say.given,
        land: say.land,
        actor: say.signer.actor.clone(),
        source: say.source.to_owned(),
    };
    let record = settling.record(home, &word)?;
    let closed = match say.outcome {
        Outcome::Accepted => closed_now(context, &settling),
        Outcome::Rejected => None,
    };
    let mut ground = Ground::new((home, &context.env), &settling, cancel, closed)?;
    ground.allows(&record)?;
    let bytes = record.to_bytes().map_err(|error| {
        Failure::internal("not_signed", "the outcome cannot be written").because(&error)
    })?;
    let kept = say.signer.sign(context, home, bytes)?;
    let sealed = settle(
        (home, &context.env),
        &words,
        &settling,
        (&record, &kept),
        |bundle| ground.carry_out(bundle, &settling, &record),
    )?;
    index::ingest(home, &sealed.report.run_id);
    let told = Settlement::of(&sealed.report);
    if told.is_some_and(|told| !told.cut_short)
        && let Err(error) = ground.settled()
    {
        context.output.note(&format!(
            "note: a journal stays, and says nothing new any more: {error}"
        ));
    }
    drop(words);
    let stands = Settling::open(home, &settling.dir)?.stands();
    Ok((sealed, stands))
}

/// Why the admission of the repository lets nothing land any more: it must still be the record that the approved
/// contract names, and still admit.
fn closed_now(context: &Context, settling: &Settling) -> Option<String> {
    let contract = settling.run.contract.as_deref()?;
    let wanted = contract.lane.target_admission_sha256;
    let asked = settling.run.approval.as_deref();
    let again = asked.map(|answer| request::target_of(context, &answer.request_id));
    let found = match again {
        Some(Ok((manifest, target))) => {
            targets::asked(&manifest, target.as_deref(), Stage::Five, &context.env)
        }
        Some(Err(_)) | None => {
            return Some("what the run was asked with is not in this store".to_owned());
        }
    };
    match found {
        TargetFound::Known(found) if Some(found.sha256) == wanted => None,
        TargetFound::Known(_) => {
            Some("the admission of the repository is another one than was approved".to_owned())
        }
        TargetFound::NotAsked
        | TargetFound::Missing
        | TargetFound::NotBelieved(_)
        | TargetFound::NotAdmitted
        | TargetFound::Invalid(_) => Some("the repository is not admitted any more".to_owned()),
    }
}

fn print(
    context: &Context,
    command: &str,
    sealed: &SealedBundle,
    stands: &Effective,
) -> Result<(), Failure> {
    let report = &sealed.report;
    let run = report.continues.as_ref().map(|of| of.run_id.to_string());
    let run = run.unwrap_or_default();
    let next = context.output.command(&match stands.standing {
        Standing::NotLanded | Standing::Waits => format!("outcome {run} accept"),
        _ => format!("show {run}"),
    });
    if context.output.json {
        let mut document = json!({"schema_version": 1, "command": command, "next": next});
        describe(sealed, stands, &mut document);
        return context.output.document(&document);
    }
    say(context, sealed, stands);
    context.output.line(&format!("\nnext: {next}"));
    Ok(())
}

/// Adds what `--json` tells of a word that was carried out.
fn describe(sealed: &SealedBundle, stands: &Effective, answer: &mut Value) {
    let report = &sealed.report;
    answer["run_id"] = json!(report.continues.as_ref().map(|of| &of.run_id));
    answer["settlement"] = json!({
        "run_id": report.run_id,
        "status": report.status,
        "failure_reason": report.failure_reason,
        "bundle": sealed.dir.display().to_string(),
        "told": report.settlement,
    });
    answer["effective"] = json!(stands);
}

fn say(context: &Context, sealed: &SealedBundle, stands: &Effective) {
    let (output, report) = (&context.output, &sealed.report);
    let run = report.continues.as_ref().map(|of| of.run_id.to_string());
    let told = report.settlement.as_ref();
    let words = match told {
        Some(told) if told.reverts.is_some() && told.landed().is_none() => {
            "landed, and could not be taken back"
        }
        _ => stands.words(),
    };
    output.line(&format!("{words}  {}", run.unwrap_or_default()));
    if let Some(landing) = told.and_then(|told| told.landing.as_ref()) {
        if let Some(commit) = &landing.new_commit {
            let short: String = commit.chars().take(12).collect();
            output.row("commit", &short);
        }
        if let Some(why) = &landing.detail {
            output.row("because", &tame(why));
        }
    }
    output.row("counts", stands.status.as_str());
    output.row("evidence", &sealed.dir.display().to_string());
}

/// A word that was given ahead, with everything it needs but the result.
pub struct Ahead(Say);

impl AheadArgs {
    /// One word is about one run.
    pub fn not_for_several(&self) -> Result<(), Failure> {
        match self.outcome {
            None => Ok(()),
            Some(_) => Err(Failure::usage(
                "outcome_of_several",
                "--outcome is about one run, and several were asked for",
            )
            .so("nothing ran")),
        }
    }

    /// What flags or the engine's variable say ahead; refused where it could not be signed, or belongs to no run at
    /// stage 5.
    pub fn given(
        &self,
        context: &Context,
        manifest: &Manifest,
        stage: Stage,
    ) -> Result<Option<Ahead>, Failure> {
        if stage != Stage::Five {
            return match self.outcome {
                None => Ok(None),
                Some(_) => Err(Failure::usage(
                    "wrong_stage",
                    format!(
                        "--outcome belongs to stage 5, and this run is at stage {}",
                        stage.number()
                    ),
                )
                .so("nothing ran")
                .hint("leave --outcome out")),
            };
        }
        let name = variable(&manifest.id, GIVEN_AHEAD);
        let (choice, source) = match (self.outcome, context.env.get(&name)) {
            (Some(choice), _) => (choice, "--outcome, given before the run"),
            (None, None) => return Ok(None),
            (None, Some(value)) => {
                let choice = value
                    .to_str()
                    .and_then(|word| Choice::from_str(word, false).ok());
                let choice = choice.ok_or_else(|| {
                    Failure::usage("bad_outcome", format!("{name} names no outcome"))
                        .so("nothing ran")
                        .hint("accept or reject")
                })?;
                (choice, "a variable, given before the run")
            }
        };
        let home = context.home()?;
        let signer = self.signing.signer(context, &home, Purpose::Outcome)?;
        Ok(Some(Ahead(Say {
            outcome: choice.outcome(),
            land: self.land.mode(),
            given: Given::Ahead,
            source,
            signer,
        })))
    }
}

/// The settlement of a run whose outcome was given ahead, where that is all the run lacked.
pub struct Settled {
    sealed: SealedBundle,
    stands: Effective,
}

impl Ahead {
    pub fn settle(
        self,
        context: &Context,
        home: &Home,
        run: &Path,
        cancel: &Cancel,
    ) -> Result<Option<Settled>, Failure> {
        let settling = Settling::open(home, run)?;
        if settling.stands().standing != Standing::Waits {
            return Ok(None);
        }
        let (sealed, stands) = carry_out(context, home, settling, &self.0, cancel)?;
        Ok(Some(Settled { sealed, stands }))
    }
}

impl Settled {
    pub fn exit_code(&self) -> u8 {
        self.stands.status.exit_code()
    }

    pub fn say(&self, context: &Context) {
        context.output.line("");
        say(context, &self.sealed, &self.stands);
    }

    /// Beside what is told of the run itself.
    pub fn describe(&self, answer: &mut Value) {
        let mut own = json!({});
        describe(&self.sealed, &self.stands, &mut own);
        answer["settlement"] = own["settlement"].take();
        answer["effective"] = own["effective"].take();
    }
}
