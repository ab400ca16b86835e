//! Does this answer let this run start? Every reason why not has its code, and all of them are asked before
//! anything of the engine is started.

use super::signers::Signers;
use super::sshsig::{SignatureProblem, signer_of};
use super::{Answer, EXECUTION_SCOPE, ExecutionRequest};
use crate::task::contract::Contract;
use crate::values::blocker::Code;
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::json;
use crate::values::maybe_known::MaybeKnown;
use crate::values::time::Utc;

/// A request and the answer to it, as they lie in a store or in a bundle.
#[derive(Clone, Copy)]
pub struct Presented<'a> {
    pub request: &'a [u8],
    pub answer: &'a [u8],
    /// The armored signature over the answer.
    pub signature: &'a str,
}

/// What it is to be used for, where and when.
#[derive(Clone, Copy)]
pub struct Use<'a> {
    /// The name it is looked up and used up by.
    pub request_id: &'a RunId,
    pub contract: &'a Contract,
    pub contract_digest: Digest,
    pub target_head: &'a MaybeKnown<String>,
    pub store_id: Digest,
    pub now: Utc,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Granted {
    pub answer: Answer,
    /// Of the key that signed.
    pub key_id: Digest,
}

/// Why nothing starts: a code and a sentence that repeats no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    pub code: Code,
    pub why: String,
}

fn no(code: Code, why: impl Into<String>) -> Refused {
    Refused {
        code,
        why: why.into(),
    }
}

/// Reads an answer: its form, its signature, its signer, and that it is about this very request.
pub fn read_answer(
    shown: &Presented<'_>,
    signers: &Signers,
) -> Result<(ExecutionRequest, Granted), Refused> {
    let mismatch = |why: &str| no(Code::ApprovalMismatch, why);
    let request: ExecutionRequest =
        json::read(shown.request).map_err(|_| mismatch("the request cannot be read"))?;
    let answer: Answer =
        json::read(shown.answer).map_err(|_| mismatch("the answer cannot be read"))?;
    // One spelling: nothing can be put beside what was signed.
    if answer.to_bytes().ok().as_deref() != Some(shown.answer) {
        return Err(mismatch("the answer is not written as it was signed"));
    }
    let key = signer_of(shown.signature, shown.answer)
        .map_err(|problem: SignatureProblem| mismatch(&format!("its signature: {problem}")))?;
    match signers.actor(&key) {
        None => return Err(mismatch("it was signed by a key that may not approve here")),
        Some(actor) if actor != answer.actor => {
            return Err(mismatch("it was signed by somebody else than it names"));
        }
        Some(_) => {}
    }
    if answer.request_sha256 != Digest::of(shown.request) || answer.request_id != request.request_id
    {
        return Err(mismatch("the request was changed after it was answered"));
    }
    let same = answer.contract_digest == request.contract_digest
        && answer.store_id == request.store_id
        && answer.target_head == request.target_head
        && answer.mutation_mode == request.mutation_mode
        && answer.work_id == request.work_id;
    if !same || answer.execution_scope != EXECUTION_SCOPE {
        return Err(mismatch(
            "the answer is about something else than its request",
        ));
    }
    let key_id = key.id();
    Ok((request, Granted { answer, key_id }))
}

/// May a run of this contract start on this answer, now and here? Whether it was used before is known by
/// whoever uses it up.
pub fn may_start(
    shown: &Presented<'_>,
    signers: &Signers,
    wanted: &Use<'_>,
) -> Result<Granted, Refused> {
    let (request, granted) = read_answer(shown, signers)?;
    let answer = &granted.answer;
    let mismatch = |why: &str| no(Code::ApprovalMismatch, why);
    // Used up by its name: under another one it could be used again.
    if answer.request_id != *wanted.request_id {
        return Err(mismatch("it was given for another request"));
    }
    if answer.store_id != wanted.store_id {
        return Err(mismatch("it was given for another store"));
    }
    if answer.contract_digest != wanted.contract_digest {
        return Err(mismatch("it was given for another contract"));
    }
    if !request.tells_of(wanted.contract) {
        return Err(mismatch(
            "the request tells of something else than its contract",
        ));
    }
    if answer.target_head != *wanted.target_head {
        return Err(mismatch(
            "the target is at another commit than was approved",
        ));
    }
    if !answer.approval_granted || !answer.execution_allowed {
        return Err(no(
            Code::ApprovalDenied,
            format!("denied by {}", answer.actor),
        ));
    }
    if answer.sentence.as_ref() != Some(&request.sentence) {
        return Err(mismatch(
            "another sentence was said than the request asks for",
        ));
    }
    if wanted.now >= answer.expiry {
        return Err(no(Code::ApprovalExpired, "its time is over"));
    }
    if wanted.now < answer.timestamp {
        let why = "the clock stands before the approval, so nobody knows whether it still counts";
        return Err(no(Code::ApprovalExpired, why));
    }
    Ok(granted)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;
    use proptest::prelude::*;

    use super::super::sshsig::tests::sign;
    use super::super::{Asking, Said};
    use super::*;
    use crate::bundle::attest::PublicKey;
    use crate::task::contract::tests::sample;

    const RUN: &str = "20260102T030405Z-demo-k3v9";

    struct Desk {
        key: SigningKey,
        signers: Signers,
        request: Vec<u8>,
        answer: Answer,
        used: (Digest, MaybeKnown<String>, Digest, Utc),
        name: RunId,
        contract: Contract,
    }

    fn at(seconds: i64) -> Utc {
        let day = Utc::day("2026-06-15").unwrap().as_millis();
        Utc::from_millis(day + seconds * 1000).unwrap()
    }

    impl Desk {
        fn good() -> Self {
            let contract = sample();
            let (contract_digest, store_id) = (Digest::of(b"contract"), Digest::of(b"store"));
            let asking = Asking {
                request_id: RUN.parse().unwrap(),
                work_id: "CTO-WORK-049",
                store_id,
                at: at(0),
            };
            let request =
                ExecutionRequest::new(&contract, (contract_digest, Digest::of(b"task")), asking);
            let bytes = request.to_bytes().unwrap();
            let said = Said {
                granted: true,
                actor: "me",
                source: "terminal",
                at: at(10),
                expiry: at(3600),
            };
            let answer = Answer::to(&request, Digest::of(&bytes), &said);
            let key = SigningKey::from_bytes(&[7; 32]);
            let mut signers = std::collections::BTreeMap::new();
            signers.insert(key.verifying_key().to_bytes(), "me".to_owned());
            Self {
                key,
                signers: Signers(signers),
                request: bytes,
                answer,
                used: (
                    contract_digest,
                    contract.lane.target_head.clone(),
                    store_id,
                    at(20),
                ),
                name: RUN.parse().unwrap(),
                contract,
            }
        }

        fn asked(&self) -> Result<Granted, Refused> {
            let answer = self.answer.to_bytes().unwrap();
            self.with(&answer, &sign(&self.key, &answer))
        }

        fn with(&self, answer: &[u8], signature: &str) -> Result<Granted, Refused> {
            let shown = Presented {
                request: &self.request,
                answer,
                signature,
            };
            let (contract_digest, target_head, store_id, now) = &self.used;
            may_start(
                &shown,
                &self.signers,
                &Use {
                    request_id: &self.name,
                    contract: &self.contract,
                    contract_digest: *contract_digest,
                    target_head,
                    store_id: *store_id,
                    now: *now,
                },
            )
        }
    }

    #[test]
    fn a_whole_approval_lets_one_contract_start() {
        let desk = Desk::good();
        let granted = desk.asked().unwrap();
        let key = PublicKey::from_bytes(desk.key.verifying_key().as_bytes()).unwrap();
        assert_eq!(granted.key_id, key.id());
        assert_eq!(granted.answer, desk.answer);
    }

    #[test]
    fn every_other_one_has_its_code() {
        use Code::{ApprovalDenied, ApprovalExpired, ApprovalMismatch};
        type Change = fn(&mut Desk);
        let rows: [(&str, Change, Code); 19] = [
            (
                "kept under another name",
                |d| d.name = "20260102T030405Z-demo-k3v8".parse().unwrap(),
                ApprovalMismatch,
            ),
            (
                "shown as something else",
                |d| d.contract.title = "Other".into(),
                ApprovalMismatch,
            ),
            (
                "contract",
                |d| d.used.0 = Digest::of(b"other"),
                ApprovalMismatch,
            ),
            (
                "head",
                |d| d.used.1 = MaybeKnown::Known("c9".into()),
                ApprovalMismatch,
            ),
            (
                "unseen head",
                |d| d.used.1 = MaybeKnown::NotLookedAt,
                ApprovalMismatch,
            ),
            (
                "store",
                |d| d.used.2 = Digest::of(b"other"),
                ApprovalMismatch,
            ),
            (
                "expired by a second",
                |d| d.used.3 = at(3601),
                ApprovalExpired,
            ),
            (
                "expired this moment",
                |d| d.used.3 = at(3600),
                ApprovalExpired,
            ),
            ("clock set back", |d| d.used.3 = at(9), ApprovalExpired),
            (
                "signer",
                |d| d.key = SigningKey::from_bytes(&[8; 32]),
                ApprovalMismatch,
            ),
            ("actor", |d| d.answer.actor = "you".into(), ApprovalMismatch),
            (
                "no signers",
                |d| d.signers = Signers::default(),
                ApprovalMismatch,
            ),
            (
                "request changed",
                |d| d.request.push(b' '),
                ApprovalMismatch,
            ),
            ("request cut", |d| d.request.truncate(20), ApprovalMismatch),
            (
                "scope",
                |d| d.answer.execution_scope = "any number of runs".into(),
                ApprovalMismatch,
            ),
            (
                "sentence",
                |d| d.answer.sentence = Some("I approve.".into()),
                ApprovalMismatch,
            ),
            (
                "no sentence",
                |d| d.answer.sentence = None,
                ApprovalMismatch,
            ),
            (
                "denied",
                |d| d.answer.approval_granted = false,
                ApprovalDenied,
            ),
            (
                "not to be run",
                |d| d.answer.execution_allowed = false,
                ApprovalDenied,
            ),
        ];
        for (name, change, want) in rows {
            let mut desk = Desk::good();
            change(&mut desk);
            assert_eq!(desk.asked().unwrap_err().code, want, "{name}");
        }
        let mut last = Desk::good();
        last.used.3 = at(3599);
        assert!(last.asked().is_ok(), "up to its last moment");
    }

    #[test]
    fn a_signature_covers_one_spelling_of_one_answer() {
        let desk = Desk::good();
        let answer = desk.answer.to_bytes().unwrap();
        let signature = sign(&desk.key, &answer);
        assert!(desk.with(&answer, &signature).is_ok());
        let pretty = json::pretty(&desk.answer).unwrap();
        assert!(desk.with(&pretty, &sign(&desk.key, &pretty)).is_err());
        let mut other = desk.answer.clone();
        other.expiry = at(99_999);
        assert!(desk.with(&other.to_bytes().unwrap(), &signature).is_err());
        assert!(desk.with(&answer[..answer.len() - 1], &signature).is_err());
        assert!(desk.with(&answer, "").is_err());
    }

    proptest! {
        #[test]
        fn no_changed_byte_is_approved(at in 0usize..2000, byte in any::<u8>()) {
            let desk = Desk::good();
            let answer = desk.answer.to_bytes().unwrap();
            let signature = sign(&desk.key, &answer);
            let mut changed = answer.clone();
            let place = at % changed.len();
            changed[place] = byte;
            prop_assert!(changed == answer || desk.with(&changed, &signature).is_err());
        }
    }
}
