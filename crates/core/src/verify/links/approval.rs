//! An approval that a run relied on: it lies in the bundle with its request and its signature, is about this very
//! contract, was signed by somebody who may approve, and was used while it counted.

use super::record_name;
use crate::bundle;
use crate::bundle::approval::signers::Signers;
use crate::bundle::approval::sshsig::signer_of;
use crate::bundle::approval::{Answer, ExecutionRequest, Presented, read_answer, signature_name};
use crate::bundle::report::{Reliance, RelianceKind, Report};
use crate::run::facts::{ApprovalFact, Folded};
use crate::values::json;
use crate::verify::{Documents, Verifier};

const CHECK: &str = "links";

impl Verifier<'_> {
    /// The signature under an approval, and that it is about what its request asked for. Whoever reads a bundle
    /// without knowing who may approve learns that, and nothing worse.
    pub(super) fn approval_record(&mut self, report: &Report, reliance: &Reliance) {
        let name = record_name(RelianceKind::Approval, &reliance.id);
        let request = record_name(RelianceKind::Request, &reliance.id);
        let relies = |on: &&Reliance| on.kind == RelianceKind::Request && on.id == reliance.id;
        if report.relies_on.iter().find(relies).is_none() {
            return self.problem(CHECK, &name, "is relied on without the request it answers");
        }
        let signature = signature_name(&reliance.id);
        for needed in [&name, &request, &signature] {
            if !self.found.files.contains_key(needed.as_str()) {
                return self.problem(CHECK, needed, "is missing although an approval was used");
            }
        }
        let (answer, asked) = (self.bytes(&name).to_vec(), self.bytes(&request).to_vec());
        let armor = String::from_utf8_lossy(self.bytes(&signature)).into_owned();
        let key = match signer_of(&armor, &answer) {
            Ok(key) => key,
            Err(why) => return self.problem(CHECK, &signature, why.to_string()),
        };
        let Ok(said) = json::read::<Answer>(&answer) else {
            return self.problem(CHECK, &name, "is no answer to a request");
        };
        if said.request_id.as_str() != reliance.id {
            let what = "answers another request than the one it is named after";
            return self.problem(CHECK, &name, what);
        }
        let known = self.trust.signers().actor(&key).map(str::to_owned);
        match known {
            Some(actor) if actor == said.actor => {}
            Some(_) => {
                return self.problem(CHECK, &name, "was signed by somebody else than it names");
            }
            None => self.unknown(
                CHECK,
                &name,
                "was signed by a key that is not known here as one that may approve",
            ),
        }
        let presented = Presented {
            request: &asked,
            answer: &answer,
            signature: &armor,
        };
        let by_this_key = Signers::only(&key, &said.actor);
        match read_answer(&presented, &by_this_key) {
            Err(refused) => self.problem(CHECK, &name, refused.why),
            Ok((_, granted)) if granted.answer.contract_digest != report.contract_digest => {
                self.problem(CHECK, &name, "is about another contract");
            }
            Ok((_, granted)) if !granted.answer.approval_granted => {
                self.problem(CHECK, &name, "grants nothing");
            }
            Ok((request, granted))
                if granted.answer.sentence.as_ref() != Some(&request.sentence) =>
            {
                self.problem(
                    CHECK,
                    &name,
                    "was given with another sentence than was asked for",
                );
            }
            Ok(_) => {}
        }
    }

    /// What the chain says of the approval is what the approval says, and it was used while it counted.
    pub(in crate::verify) fn approved(&mut self, documents: &Documents, folded: &Folded) {
        let mut relied = documents.report.relies_on.iter();
        let Some(reliance) = relied.find(|on| on.kind == RelianceKind::Approval) else {
            return;
        };
        let name = record_name(RelianceKind::Approval, &reliance.id);
        let ApprovalFact::Granted(event) = &folded.facts.approval else {
            return self.problem(CHECK, bundle::EVENTS, "relies on an approval it never used");
        };
        let asked = self.bytes(&record_name(RelianceKind::Request, &reliance.id));
        let asked = json::read::<ExecutionRequest>(asked).ok();
        let contract = documents.contract.valid();
        if let (Some(asked), Some(contract)) = (asked, contract)
            && !asked.tells_of(contract)
        {
            self.problem(
                CHECK,
                &name,
                "was asked for with a request that tells of another contract",
            );
        }
        // What cannot be read was said already.
        let Ok(said) = json::read::<Answer>(self.bytes(&name)) else {
            return;
        };
        let in_time = event.timestamp >= said.timestamp && event.timestamp < said.expiry;
        if !in_time {
            self.problem(CHECK, &name, "did not count when it was used");
        }
        let fits = event.actor == said.actor
            && event.expiry == Some(said.expiry)
            && event.mutation_mode == said.mutation_mode;
        if !fits {
            self.problem(CHECK, &name, "is not the approval that the chain tells of");
        }
    }
}
