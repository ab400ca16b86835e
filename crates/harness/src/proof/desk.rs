//! Who asks and answers in the place of an operator: a key made for the occasion by the real `ssh-keygen`, the real
//! store and the real record of signers, all of it in the validator's own state home. No operator's key, store or
//! record is reached from here.

use std::path::{Path, PathBuf};

use cto_core::bundle::approval::sshsig::Purpose;
use cto_core::bundle::approval::{Answer, ExecutionRequest, Said};
use cto_core::bundle::settlement::Given;
use cto_core::run::event::{LandMode, Outcome};
use cto_core::values::digest::Digest;
use cto_core::values::time::Utc;
use serde_json::json;

use crate::evidence::{SealedBundle, signers};
use crate::host::failure::Failure;
use crate::host::{self, Env, Home, files};
use crate::run::approvals::asking;
use crate::run::approvals::settlement::landing::Ground;
use crate::run::approvals::settlement::{Settling, Word, Words, settle};
use crate::run::approvals::signature::{Signing, make_key, sign};
use crate::run::approvals::store::Store;
use crate::supervise::cancel::Cancel;
use crate::task::request::Request;

/// What the key is called in the record of signers.
const ACTOR: &str = "cto-validate";
/// What it says with.
const SOURCE: &str = "a validator, with a key of its own";
const MAX_KEY: u64 = 16 << 10;
const HOUR_MS: i64 = 3_600_000;

/// What the desk says to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Says {
    Yes,
    No,
    /// Yes, and for no time at all.
    Late,
}

pub struct Desk<'a> {
    home: &'a Home,
    env: &'a Env,
    key: PathBuf,
}

impl<'a> Desk<'a> {
    /// Makes the key in a directory of its own, and lets it sign in the state home of the validator.
    pub fn open((home, env): (&'a Home, &'a Env), dir: &Path) -> Result<Self, Failure> {
        let cannot = |why: &dyn std::error::Error| {
            Failure::internal("no_desk", "nobody can answer in the place of an operator")
                .because(why)
                .so("nothing was shown")
        };
        let key = dir.join("key");
        if key.symlink_metadata().is_err() {
            host::make_private_dir(dir).map_err(|error| cannot(&error))?;
            make_key((home, env), &key)?;
            let public = files::read_limited(&dir.join("key.pub"), MAX_KEY);
            let public = public.map_err(|error| cannot(&error))?;
            let public = String::from_utf8(public).map_err(|error| cannot(&error))?;
            signers::add(home, ACTOR, public.trim()).map_err(|why| {
                Failure::internal("no_desk", "the key cannot be let in")
                    .reason(why)
                    .so("nothing was shown")
            })?;
        }
        Ok(Self { home, env, key })
    }

    /// Asks for a run, as `cto request` does.
    pub fn ask(&self, request: &Request) -> Result<ExecutionRequest, Failure> {
        let asked_with = json!({"by": ACTOR});
        asking::ask((self.home, self.env), request, None, &asked_with)
    }

    /// Answers with a signature, as `cto approve` and `cto deny` do.
    pub fn answer(&self, request: &ExecutionRequest, says: Says) -> Result<(), Failure> {
        let unkept = |why: &dyn std::error::Error| {
            Failure::internal("not_answered", "the answer cannot be kept").because(why)
        };
        let granted = says != Says::No;
        let at = host::now();
        let expiry = match says {
            Says::Yes => {
                Utc::from_millis(at.as_millis() + HOUR_MS).map_err(|error| unkept(&error))?
            }
            Says::No | Says::Late => at,
        };
        let said = Said {
            granted,
            actor: ACTOR,
            source: SOURCE,
            at,
            expiry,
        };
        let bytes = request.to_bytes().map_err(|error| unkept(&error))?;
        let answer = Answer::to(request, Digest::of(&bytes), &said);
        let record = answer.to_bytes().map_err(|error| unkept(&error))?;
        let by = self.signing(Purpose::Approval);
        let kept = sign((self.home, self.env), by, record)?;
        match Store::of(self.home).put_answer(&request.request_id, &kept) {
            Ok(true) => Ok(()),
            Ok(false) => Err(unkept(&std::io::Error::other("it was answered already"))),
            Err(error) => Err(unkept(&error)),
        }
    }

    /// Says what becomes of the result of a green run, as `cto outcome` does.
    pub fn say(
        &self,
        outcome: Outcome,
        run: &Path,
        cancel: &Cancel,
    ) -> Result<SealedBundle, Failure> {
        let place = (self.home, self.env);
        let settling = Settling::open(self.home, run)?;
        let unkept = |why: &dyn std::error::Error| {
            Failure::internal("not_said", "the outcome cannot be kept").because(why)
        };
        let held = Words::hold(self.home, &settling.named.run_id);
        let busy = std::io::Error::other("another process is at work on this run");
        let words = held.map_err(|error| unkept(&error))?;
        let words = words.ok_or_else(|| unkept(&busy))?;
        let word = Word {
            outcome,
            given: Given::Afterwards,
            land: LandMode::Merge,
            actor: ACTOR.to_owned(),
            source: SOURCE.to_owned(),
        };
        let record = settling.record(self.home, &word)?;
        let mut ground = Ground::new(place, &settling, cancel, None)?;
        ground.allows(&record)?;
        let bytes = record.to_bytes().map_err(|error| unkept(&error))?;
        let kept = sign(place, self.signing(Purpose::Outcome), bytes)?;
        let sealed = settle(place, &words, &settling, (&record, &kept), |bundle| {
            ground.carry_out(bundle, &settling, &record)
        })?;
        ground.settled().map_err(|error| unkept(&error))?;
        Ok(sealed)
    }

    fn signing(&self, purpose: Purpose) -> Signing<'_> {
        Signing {
            key: &self.key,
            purpose,
            actor: ACTOR,
        }
    }
}
