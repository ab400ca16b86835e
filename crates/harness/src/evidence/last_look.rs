//! The last look over a bundle, just before its chain ends and it is sealed. Whatever wrote a file, what is found here
//! got past it, so it is an alarm, and nothing that was found is sealed.
//!
//! What an engine or a check wrote, and a patch, give way to a mark, and the run fails of it: their events tell what they
//! were. Documents of our own cannot give way, for chain and report are bound to them: such a run has no verdict, and what a
//! later recovery seals has neither that document nor the contract. What is packed was looked at before: see `scratch.rs`.

use std::fs;

use cto_core::bundle;
use cto_core::values::blocker::{Code, Finding};
use cto_core::values::event_type::EventType;

use super::{EvidenceError, OpenBundle};
use crate::evidence::secrets::{Hits, Quoted, Secrets};
use crate::host::files;

pub(super) const TOMBSTONE: &[u8] =
    b"withheld by CTO Harness: this artifact held a secret (secret_leak)\n";

impl OpenBundle {
    /// What an engine is told and is started by has no place in the bundle of a run in which none was.
    pub(super) fn drop_unused(&self) {
        let facts = &self.folded.facts;
        // A settlement tells of a run in which one was.
        if self.continues.is_some() || facts.engine_events.contains(&EventType::EngineStarted) {
            return;
        }
        for name in [bundle::INSTRUCTIONS, bundle::ENGINE_MANIFEST] {
            // It was never there in most runs.
            let _ = fs::remove_file(self.dir.join(name));
        }
    }

    pub(super) fn last_look(&mut self) -> Result<Vec<Finding>, EvidenceError> {
        let leaks = std::mem::take(&mut self.leaks);
        let told = |(place, count): (String, u64)| format!("{place}: {count} known value(s)");
        let mut found: Vec<String> = leaks.into_iter().map(told).collect();
        for name in self.names() {
            if name == bundle::SCRATCH_TAR {
                continue;
            }
            let may_give_way = name == bundle::TEST_LOG || name.starts_with("backend/");
            let secrets = match name.as_str() {
                // Here a variable's value is an alarm, too.
                _ if may_give_way => &self.secrets,
                bundle::PATCH | bundle::EVENTS | bundle::SOURCE | bundle::TEST_IDS => {
                    self.in_documents(Quoted::Repository)
                }
                _ => self.in_documents(Quoted::Ourselves),
            };
            let Some(hits) = self.look(&name, secrets) else {
                continue;
            };
            if hits.known + hits.private == 0 {
                continue;
            }
            self.withhold(&name)?;
            if !may_give_way && name != bundle::PATCH {
                return Err(self.never_sealed(name));
            }
            found.push(match hits.private {
                0 => format!("{name}: {} known value(s)", hits.known),
                private => format!(
                    "{name}: {} known value(s), {private} private value(s) of the endpoint",
                    hits.known
                ),
            });
        }
        Ok(match found.is_empty() {
            true => Vec::new(),
            false => vec![Finding {
                code: Code::SecretLeak,
                detail: Some(found.join("; ")),
            }],
        })
    }

    /// What a file holds; none where it cannot be read, which the digests find out.
    fn look(&self, name: &str, secrets: &Secrets) -> Option<Hits> {
        let mut redactor = secrets.redactor();
        files::scan_file(&self.dir.join(name), |bytes| {
            redactor.push(bytes, &mut |_| {})
        })
        .ok()?;
        Some(redactor.finish(&mut |_| {}))
    }

    /// The same for the last documents, which are made from all that was looked at.
    pub(super) fn must_be_clean(&self, name: &str, bytes: &[u8]) -> Result<(), EvidenceError> {
        match self.in_documents(Quoted::Repository).redact(bytes).1.known {
            0 => Ok(()),
            _ => Err(self.never_sealed(name.to_owned())),
        }
    }

    fn withhold(&self, name: &str) -> Result<(), EvidenceError> {
        fs::write(self.dir.join(name), TOMBSTONE)
            .map_err(|error| EvidenceError::cannot_write(name, &error))
    }

    /// Without its contract nothing can be judged, not by a recovery that knows no credential either.
    fn never_sealed(&self, artifact: String) -> EvidenceError {
        match self.withhold(bundle::CONTRACT) {
            Ok(()) => EvidenceError::Secret { artifact },
            Err(error) => error,
        }
    }
}
