//! A settlement: it goes on from a run that lacked nothing but the operator's word, that word is signed and about
//! this very bundle, and its proof is what run and settlement show.

use crate::bundle;
use crate::bundle::approval::signers::Signers;
use crate::bundle::approval::sshsig::{Purpose, signer_of};
use crate::bundle::report::{Continues, Report};
use crate::bundle::settlement::{
    OUTCOME, OUTCOME_SIGNATURE, OutcomeRecord, Settlement, Settles, Shown, Told, may_be_settled,
    may_settle, read_outcome,
};
use crate::gate::ladder::stage5::{SettledRun, Stage5Proof};
use crate::run::event::{Kind, Outcome};
use crate::run::facts::Folded;
use crate::values::digest::Digest;
use crate::values::json;
use crate::values::verdict::Status;
use crate::verify::links::Linked;
use crate::verify::{Documents, Standing, Verifier};

const CHECK: &str = "links";

impl Verifier<'_> {
    /// A settlement goes on from exactly the bundle it names; nothing else goes on from anything.
    pub(super) fn continues(&mut self, report: &Report) {
        let problem = |this: &mut Self, what: String| this.problem(CHECK, bundle::REPORT, what);
        let Some(continues) = &report.continues else {
            if report.kind == Kind::Settlement {
                problem(self, "is a settlement and continues nothing".into());
            }
            return;
        };
        if report.kind != Kind::Settlement {
            let what = "continues another bundle without being a settlement";
            return problem(self, what.into());
        }
        let run = &continues.run_id;
        let Some(linked) = self.links.get(run).cloned() else {
            let what = format!("continues {run}, which was not found");
            return self.unknown(CHECK, bundle::REPORT, what);
        };
        if linked.sums_sha256 != continues.sums_sha256 {
            let what = format!("continues another bundle than the one called {run}");
            problem(self, what);
        }
        if linked.contract_digest != report.contract_digest {
            problem(self, format!("{run} had another contract"));
        }
        if let Err(why) = may_be_settled(&linked.report) {
            problem(self, format!("continues {run}, which {why}"));
        }
        let same = linked.report.origin == report.origin
            && linked.report.stage == report.stage
            && linked.report.backend == report.backend
            && linked.report.case_id == report.case_id;
        if !same {
            problem(self, format!("names itself otherwise than {run}"));
        }
        match linked.standing {
            Standing::Bad => problem(self, format!("continues {run}, which is bad")),
            Standing::Unknown => {
                let what = format!("continues {run}, which is unknown");
                self.unknown(CHECK, bundle::REPORT, what);
            }
            Standing::Good => {}
        }
    }

    /// The word that began the chain is the one that was signed, of this run, by somebody who may say it.
    pub(in crate::verify) fn settled(&mut self, documents: &Documents, folded: &Folded) {
        let report = &documents.report;
        let carried = [OUTCOME, OUTCOME_SIGNATURE, bundle::STAGE5_PROOF];
        if report.kind != Kind::Settlement {
            let mut there = carried
                .iter()
                .filter(|name| self.found.files.contains_key(**name));
            if let Some(name) = there.next() {
                self.problem(CHECK, name, "is there although nothing is settled");
            }
            return;
        }
        if folded.facts.outcome.is_none() {
            return;
        }
        for name in [OUTCOME, OUTCOME_SIGNATURE] {
            if !self.found.files.contains_key(name) {
                return self.problem(CHECK, name, "is missing although a run is settled");
            }
        }
        self.started_nothing(documents);
        let Some((record, sha256)) = self.signed_outcome() else {
            return;
        };
        let told = folded.facts.outcome.as_ref();
        if told.is_none_or(|event| !record.is_told_by(event, sha256)) {
            self.problem(CHECK, OUTCOME, "is not the outcome that the chain tells of");
        }
        // That it is not found, or is bad, was said already.
        let Some(continues) = &report.continues else {
            return;
        };
        let Some(run) = self.links.get(&continues.run_id).cloned() else {
            return;
        };
        let of = Settles {
            run: &run.report,
            named: continues,
            // The approval of the run names its store; a validator's own has none.
            store_id: run
                .approval
                .as_ref()
                .map_or(record.store_id, |answer| answer.store_id),
            reverts: record.reverts.as_ref(),
        };
        if let Err(why) = may_settle(&record, &of) {
            self.problem(CHECK, OUTCOME, why.to_string());
        }
        if let Some(reverts) = &record.reverts {
            self.takes_back(continues, reverts);
        }
        self.landed_result(report, &run);
        self.stage5(report, folded, continues, &run);
    }

    /// The record with the digest of its bytes, where it was signed for an outcome. Whoever reads a bundle without
    /// knowing who may say what becomes of a result learns that, and nothing worse.
    fn signed_outcome(&mut self) -> Option<(OutcomeRecord, Digest)> {
        let bytes = self.bytes(OUTCOME).to_vec();
        let armor = String::from_utf8_lossy(self.bytes(OUTCOME_SIGNATURE)).into_owned();
        let key = match signer_of(&armor, &bytes, Purpose::Outcome) {
            Ok(key) => key,
            Err(why) => {
                self.problem(CHECK, OUTCOME_SIGNATURE, why.to_string());
                return None;
            }
        };
        let Ok(said) = json::read::<OutcomeRecord>(&bytes) else {
            self.problem(CHECK, OUTCOME, "is no record of an outcome");
            return None;
        };
        let known = self.trust.signers().actor(&key, Purpose::Outcome);
        match known.map(|actor| actor == said.actor) {
            Some(true) => {}
            Some(false) => {
                self.problem(CHECK, OUTCOME, "was signed by somebody else than it names");
            }
            None => self.unknown(
                CHECK,
                OUTCOME,
                "was signed by a key that is not known here as one that may say what becomes of a result",
            ),
        }
        let shown = Shown {
            record: &bytes,
            signature: &armor,
        };
        match read_outcome(&shown, &Signers::only(&key, &said.actor)) {
            Ok(record) => Some((record, Digest::of(&bytes))),
            Err(why) => {
                self.problem(CHECK, OUTCOME, why.to_string());
                None
            }
        }
    }

    /// What was accepted and landed is the result of the run, and no other commit.
    fn landed_result(&mut self, report: &Report, run: &Linked) {
        let told = report.settlement.as_ref();
        let accepted = told.filter(|told| told.outcome == Outcome::Accepted);
        let Some(landed) = accepted.and_then(Told::landed) else {
            return;
        };
        let result = run.report.result.as_ref();
        if landed.new_commit.as_ref() != result.and_then(|result| result.commit.as_ref()) {
            let what = "landed another commit than the result of the run";
            self.problem(CHECK, bundle::EVENTS, what);
        }
    }

    /// What is taken back was accepted and landed, of the same run.
    fn takes_back(&mut self, run: &Continues, reverts: &Continues) {
        let id = &reverts.run_id;
        let Some(linked) = self.links.get(id).cloned() else {
            let what = format!("takes {id} back, which was not found");
            return self.unknown(CHECK, OUTCOME, what);
        };
        if linked.standing == Standing::Unknown {
            let what = format!("takes {id} back, which is unknown");
            return self.unknown(CHECK, OUTCOME, what);
        }
        let landed = Settlement::of(&linked.report).is_some_and(|earlier| {
            earlier.continues == *run
                && earlier.outcome == Outcome::Accepted
                && earlier.status == Status::Pass
        });
        let same = linked.sums_sha256 == reverts.sums_sha256;
        if linked.standing == Standing::Bad || !landed || !same {
            let what = format!("takes {id} back, which is no accepting settlement of that run");
            self.problem(CHECK, OUTCOME, what);
        }
    }

    /// No gate was asked, and no process started: what the run holds is not told a second time.
    fn started_nothing(&mut self, documents: &Documents) {
        let empty = documents.gates.gates.is_empty()
            && documents.containment.processes.is_empty()
            && documents.report.relies_on.is_empty()
            && !documents.report.process_started;
        if !empty {
            self.problem(
                "judgement",
                bundle::REPORT,
                "is a settlement and tells of gates or processes",
            );
        }
    }

    fn stage5(&mut self, report: &Report, folded: &Folded, named: &Continues, run: &Linked) {
        let shown = Told::of(&folded.facts).zip(run.contract.as_deref());
        let shown = shown.and_then(|(told, contract)| {
            let run = SettledRun {
                report: &run.report,
                contract,
                named,
                looks: run.looks.as_deref(),
                approval: run.approval.as_deref(),
            };
            Stage5Proof::of(run, &told)
        });
        let there = self.found.files.contains_key(bundle::STAGE5_PROOF);
        let told = match there {
            true => self.parsed::<Stage5Proof>(bundle::STAGE5_PROOF),
            false => None,
        };
        let artifact = bundle::STAGE5_PROOF;
        if there && told != shown {
            self.problem("judgement", artifact, "is not what run and settlement show");
        }
        if !there && report.status == Status::Pass && shown.is_some() {
            self.problem(
                "judgement",
                artifact,
                "is missing although a result was landed",
            );
        }
    }
}
