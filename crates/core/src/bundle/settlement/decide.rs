//! Does this word count for this run? Every reason why not is asked before anything of a target is looked at.

use super::{Given, OutcomeRecord};
use crate::bundle::approval::signers::Signers;
use crate::bundle::approval::sshsig::{Purpose, signer_of};
use crate::bundle::report::{Continues, Report};
use crate::run::event::{Kind, Outcome};
use crate::task::contract::Stage;
use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::json;
use crate::values::verdict::Status;

/// A record and the armored signature under it.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    pub record: &'a [u8],
    pub signature: &'a str,
}

/// Why a word does not count: a sentence that repeats no value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct OutcomeRefused(pub &'static str);

/// What is settled, where.
#[derive(Clone, Copy)]
pub struct Settles<'a> {
    pub run: &'a Report,
    /// Its name, and the digest of its `SHA256SUMS`.
    pub named: &'a Continues,
    pub store_id: Digest,
    /// The accepting settlement that is taken back, if one is.
    pub reverts: Option<&'a Continues>,
}

/// Is the operator's word all that this run lacks?
pub fn may_be_settled(run: &Report) -> Result<(), OutcomeRefused> {
    let no = |why| Err(OutcomeRefused(why));
    if run.kind != Kind::Run {
        return no("is not a run");
    }
    if run.stage != Stage::Five {
        return no("is not at stage 5, so that nobody has to accept it");
    }
    let only = matches!(run.blockers.as_slice(), [one] if one.code == Code::MissingOperatorOutcome);
    if run.status != Status::Blocked || !only {
        return no("has other blockers than the missing outcome");
    }
    let commit = run
        .result
        .as_ref()
        .and_then(|result| result.commit.as_ref());
    match commit {
        Some(_) => Ok(()),
        None => no("has no result"),
    }
}

/// Reads a record: its form, its signature and its signer.
pub fn read_outcome(shown: &Shown<'_>, signers: &Signers) -> Result<OutcomeRecord, OutcomeRefused> {
    let no = |why| Err(OutcomeRefused(why));
    let Ok(record) = json::read::<OutcomeRecord>(shown.record) else {
        return no("the outcome cannot be read");
    };
    // One spelling: nothing can be put beside what was signed.
    if record.to_bytes().ok().as_deref() != Some(shown.record) {
        return no("the outcome is not written as it was signed");
    }
    let Ok(key) = signer_of(shown.signature, shown.record, Purpose::Outcome) else {
        return no("its signature is none over these bytes and for an outcome");
    };
    match signers.actor(&key, Purpose::Outcome) {
        None => no("it was signed by a key that may not say what becomes of a result here"),
        Some(actor) if actor != record.actor => no("it was signed by somebody else than it names"),
        Some(_) => is_one_word(&record).map(|()| record),
    }
}

/// A rejection lands nothing, an acceptance names how, and only a rejection takes something back.
fn is_one_word(record: &OutcomeRecord) -> Result<(), OutcomeRefused> {
    let fits = match record.outcome {
        Outcome::Accepted => record.land.is_some() && record.reverts.is_none(),
        Outcome::Rejected => record.land.is_none(),
    };
    let ahead = record.given == Given::Ahead && record.reverts.is_some();
    match fits && !ahead && record.schema_version == 1 {
        true => Ok(()),
        false => Err(OutcomeRefused("the outcome contradicts itself")),
    }
}

/// Is this what was said of this very run, here?
pub fn may_settle(record: &OutcomeRecord, of: &Settles<'_>) -> Result<(), OutcomeRefused> {
    may_be_settled(of.run)?;
    let no = |why| Err(OutcomeRefused(why));
    if record.run_id != of.named.run_id || of.run.run_id != of.named.run_id {
        return no("it was said of another run");
    }
    if record.sums_sha256 != of.named.sums_sha256 {
        return no("it was said of another bundle of that name");
    }
    if record.contract_digest != of.run.contract_digest {
        return no("it was said of another contract");
    }
    if record.store_id != of.store_id {
        return no("it was said in another store");
    }
    if record.reverts.as_ref() != of.reverts {
        return no("it takes something else back");
    }
    if record.timestamp < of.run.run_finished_at {
        return no("it was said before the run had ended");
    }
    Ok(())
}

#[cfg(test)]
#[path = "decide_tests.rs"]
pub(super) mod tests;
