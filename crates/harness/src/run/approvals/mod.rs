//! Who answers when a contract needs an approval, and how question and answer are recorded.
//!
//! The operator's store (`store.rs`) is the one source of an ordinary run, and only for the request that run
//! names. A validator may bring an answer of its own, which counts in runs of that origin alone. An engine, a
//! case file or a variable is never asked. `asking.rs` writes down what is asked for, `signature.rs` signs what is
//! said to it; `settlement/`: what somebody says of a result.

pub mod asking;
pub mod settlement;
pub mod signature;
pub mod store;

use std::io;

use cto_core::bundle;
use cto_core::bundle::approval::{self, EXECUTION_SCOPE, Presented, Use};
use cto_core::bundle::report::{Reliance, RelianceKind};
use cto_core::run::event::{Approval, Event, Origin};
use cto_core::task::contract::Contract;
use cto_core::values::blocker::Code;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::time::Utc;
use cto_core::verify::links::record_name;

use crate::evidence::{EvidenceError, OpenBundle, signers};
use crate::host::{self, Home};
use crate::run::execution::Stop;
use crate::run::record::close_gate;
use store::{Kept, Store};

/// Who asks.
const HARNESS: &str = "cto-harness";

/// Where answers come from.
pub struct Approvals(Source);

enum Source {
    /// The store of a state home, and the request a run names.
    Store(Option<(Home, RunId)>),
    Scripted(Answer),
}

/// What was said about one contract, and by whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Granted {
        actor: String,
    },
    Denied {
        actor: String,
    },
    /// An answer of the operator's store: what it says is read once the contract is known.
    InStore(RunId),
}

impl Approvals {
    /// The operator's store. A run that names no request has no answer there.
    pub fn store(home: &Home, request: Option<&RunId>) -> Self {
        Self(Source::Store(
            request.map(|request| (home.clone(), request.clone())),
        ))
    }

    /// A validator's own answer to whatever contract it runs.
    pub fn scripted(answer: Answer) -> Self {
        Self(Source::Scripted(answer))
    }

    /// The answer to what a run of this origin asks, if there is one.
    pub fn answer(&self, origin: Origin) -> Option<Answer> {
        match (&self.0, origin) {
            (Source::Scripted(answer), Origin::Validator) => Some(answer.clone()),
            (Source::Scripted(_), Origin::Operator | Origin::Ci) => None,
            (Source::Store(None), _) => None,
            (Source::Store(Some((home, id))), _) => {
                // One that cannot be read is there, and is refused with its reason.
                let is_there = !matches!(Store::of(home).answer(id), Ok(None));
                is_there.then(|| Answer::InStore(id.clone()))
            }
        }
    }
}

/// What an answer means for the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    MayRun,
    Denied,
}

/// Records the question and the answer, where the contract needs one. Nothing has been executed
/// yet.
pub fn settle(
    bundle: &mut OpenBundle,
    contract: &Contract,
    home: &Home,
    answer: Option<Answer>,
) -> Result<Settled, Stop> {
    if !contract.approval_required {
        return match answer {
            // What a request was asked with is not signed: edited, it may ask for something that needs no approval.
            Some(Answer::InStore(_)) => Err(late(
                Code::ApprovalMismatch,
                "it was given for another contract; this one needs none",
            )),
            Some(_) | None => Ok(Settled::MayRun),
        };
    }
    let record = |actor: &str, expiry: Option<Utc>, reason: Option<Code>| Approval {
        actor: actor.to_owned(),
        scope: EXECUTION_SCOPE.to_owned(),
        mutation_mode: contract.mutation_mode,
        timestamp: host::now(),
        expiry,
        reason,
    };
    bundle.emit(Event::ApprovalRequested(record(HARNESS, None, None)))?;
    let answer = match answer {
        Some(Answer::InStore(id)) => match from_store(bundle, contract, home, &id)? {
            Ok((actor, expiry)) => {
                let granted = record(&actor, Some(expiry), None);
                bundle.emit(Event::ApprovalGranted(granted))?;
                return Ok(Settled::MayRun);
            }
            Err(actor) => Some(Answer::Denied { actor }),
        },
        other => other,
    };
    match answer {
        Some(Answer::Granted { actor }) => {
            bundle.emit(Event::ApprovalGranted(record(&actor, None, None)))?;
            Ok(Settled::MayRun)
        }
        Some(Answer::Denied { actor }) => {
            close_gate(
                bundle,
                "approval",
                Code::ApprovalDenied,
                format!("denied by {actor}"),
            )?;
            let denied = record(&actor, None, Some(Code::ApprovalDenied));
            bundle.emit(Event::ApprovalDenied(denied))?;
            Ok(Settled::Denied)
        }
        // The gate let only an answered contract through; asked again, nobody answers.
        Some(Answer::InStore(_)) | None => Err(late(
            Code::ApprovalMissing,
            "no approval names this contract",
        )),
    }
}

fn late(code: Code, detail: impl Into<String>) -> Stop {
    Stop::LateGate {
        gate: "approval",
        code,
        detail: detail.into(),
    }
}

/// Reads the answer of the store for this very contract, and uses it up: from there on it is given back by
/// nothing. The approver and the end of the approval, or who denied it.
fn from_store(
    bundle: &mut OpenBundle,
    contract: &Contract,
    home: &Home,
    id: &RunId,
) -> Result<Result<(String, Utc), String>, Stop> {
    let store = Store::of(home);
    let unreadable = |error: io::Error| {
        late(
            Code::ApprovalMismatch,
            format!("the store cannot be read: {error}"),
        )
    };
    let missing = || late(Code::ApprovalMissing, "no approval names this contract");
    let request = store.request(id).map_err(unreadable)?.ok_or_else(missing)?;
    let kept = store.answer(id).map_err(unreadable)?.ok_or_else(missing)?;
    let signers = signers::of(home).map_err(|why| late(Code::ApprovalMismatch, why))?;
    let presented = Presented {
        request: &request,
        answer: kept.record.as_bytes(),
        signature: &kept.signature,
    };
    let wanted = Use {
        request_id: id,
        contract,
        contract_digest: bundle.sealed_contract.contract_digest,
        target_head: &contract.lane.target_head,
        store_id: store.id().map_err(unreadable)?,
        now: host::now(),
    };
    let granted = match approval::may_start(&presented, &signers, &wanted) {
        Ok(granted) => granted,
        Err(refused) if refused.code == Code::ApprovalDenied => {
            let actor = approval::read_answer(&presented, &signers);
            return Ok(Err(actor.map_or_else(
                |_| "the operator".into(),
                |(_, said)| said.answer.actor,
            )));
        }
        Err(refused) => return Err(late(refused.code, refused.why)),
    };
    let run_id = bundle.identity.run_id.clone();
    let is_ours = store.use_up(id, &run_id, wanted.now).map_err(|error| {
        late(
            Code::ApprovalConsumed,
            format!("it cannot be used: {error}"),
        )
    })?;
    if !is_ours {
        return Err(late(Code::ApprovalConsumed, "an earlier run used it"));
    }
    carry(bundle, id, &request, &kept)?;
    Ok(Ok((granted.answer.actor, granted.answer.expiry)))
}

/// Request and approval travel with the bundle: whoever has it sees what was approved, and by whom.
fn carry(bundle: &mut OpenBundle, id: &RunId, request: &[u8], kept: &Kept) -> Result<(), Stop> {
    let approval = kept.record.as_bytes();
    host::make_private_dir(&bundle.dir().join(bundle::RELIED_DIR))
        .map_err(|error| EvidenceError::cannot_write(bundle::RELIED_DIR, &error))?;
    for (kind, bytes) in [
        (RelianceKind::Request, request),
        (RelianceKind::Approval, approval),
    ] {
        bundle.write(&record_name(kind, id.as_str()), bytes)?;
        bundle.relies_on.push(Reliance {
            kind,
            id: id.to_string(),
            sha256: Digest::of(bytes),
        });
    }
    let name = bundle::approval::signature_name(id.as_str());
    Ok(bundle.write(&name, kept.signature.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripted_answer_counts_for_validators_alone() {
        for answer in [
            Answer::Granted { actor: "a".into() },
            Answer::Denied { actor: "a".into() },
        ] {
            let scripted = Approvals::scripted(answer.clone());
            assert_eq!(scripted.answer(Origin::Validator), Some(answer));
            for origin in [Origin::Operator, Origin::Ci] {
                assert_eq!(scripted.answer(origin), None, "{origin:?}");
            }
        }
        let temp = tempfile::tempdir().unwrap();
        let home = Home {
            root: temp.path().join("state"),
            runs: temp.path().join("runs"),
        };
        let id: RunId = "20260102T030405Z-demo-k3v9".parse().unwrap();
        for origin in [Origin::Operator, Origin::Validator, Origin::Ci] {
            assert_eq!(Approvals::store(&home, None).answer(origin), None);
            assert_eq!(Approvals::store(&home, Some(&id)).answer(origin), None);
        }
    }
}
