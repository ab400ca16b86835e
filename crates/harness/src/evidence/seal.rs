//! Closing a bundle: judge, complete the chain, fix every byte, and make it readable in one rename.
//!
//! Until `report.json` appears under its own name, no reader takes the directory for a result.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cto_core::bundle;
use cto_core::bundle::attest::Sealed;
use cto_core::bundle::report::timings::Step;
use cto_core::bundle::report::{self, ChainHead, Freshness, Report, Sealing};
use cto_core::bundle::report_md;
use cto_core::bundle::sums;
use cto_core::containment::{Containment, ContainmentReport};
use cto_core::run::event::{Event, RunCompleted};
use cto_core::run::judge::{self, Judgement};
use cto_core::run::order::State;
use cto_core::run::rules::Rules;
use cto_core::run::trace::TraceOutcome;
use cto_core::task::source::{CopiedRepo, Meanwhile};
use cto_core::values::blocker::Finding;
use cto_core::values::blocker::{Blocker, Code};
use cto_core::values::digest::Digest;

use super::{EvidenceError, OpenBundle, scratch};
use crate::evidence::sign::Signer;
use crate::host;
use crate::host::files;
use crate::host::workers;

/// Files brought to the disk at a time.
const SYNCS: usize = 8;
const UNREACHED: &[u8] = b"verification was not reached\n";

/// A bundle that will never change again.
pub struct SealedBundle {
    pub dir: PathBuf,
    pub report: Report,
    /// Of `SHA256SUMS` as it was written: the digest by which others name the bundle.
    pub sums_sha256: Digest,
}

impl OpenBundle {
    /// Judges and seals. `findings` is what the run learned outside its events.
    pub fn close(mut self, mut findings: Vec<Finding>) -> Result<SealedBundle, EvidenceError> {
        let sealing_since = Instant::now();
        let mut late = Vec::new();
        let backend_scratch = match scratch::pack(&self.dir, &self.secrets) {
            Ok((count, hits)) => {
                self.note_leak(bundle::SCRATCH_TAR, hits);
                count
            }
            Err(error) => {
                self.make_room();
                let _ = fs::remove_file(self.dir.join(bundle::SCRATCH_TAR));
                scratch::plain(&self.dir);
                findings.push(write_failure(bundle::SCRATCH_TAR, &error));
                report::BackendScratch::default()
            }
        };
        findings.extend(self.complete_artifacts());
        let unmarked = self.mark(&findings);
        findings.extend(unmarked);
        self.drop_unused();
        findings.extend(self.last_look()?);
        let freshness = self.freshness(&mut findings);
        let _ = self.trace("evidence.scan", TraceOutcome::Ok, sealing_since, None);
        self.write_completed(findings, &mut late)?;
        self.retry("trace.jsonl", &mut late, |bundle| {
            bundle.trace.file.sync_data()
        })?;
        let judgement = self.judgement();
        let timings = self.clock.as_ref().map(|clock| {
            clock.step(Step::Seal, sealing_since);
            clock.timings()
        });
        let report = report::build_report(
            &self.identity,
            self.contract.valid(),
            &self.sealed_contract,
            &self.folded.facts,
            &judgement,
            Sealing {
                finished_at: report::finish(
                    self.identity.started_at,
                    self.last_event.unwrap_or(self.identity.started_at),
                ),
                backend_scratch,
                freshness,
                head: ChainHead {
                    count: self.count,
                    head: self.head,
                },
                claimed: self.claimed.clone(),
                late,
                relies_on: self.relies_on.clone(),
                continues: self.continues.clone(),
                timings,
                source: self.source_meanwhile(),
            },
        );
        self.commit(report)
    }

    /// What `source.json` says of the repository, where the rules of the run let it say so.
    fn source_meanwhile(&self) -> Option<Meanwhile> {
        let rules = Rules::of(self.folded.facts.rules)?;
        let found = files::read_limited(&self.dir.join(bundle::SOURCE), 64 << 20).ok();
        let copied: CopiedRepo = cto_core::values::json::read(&found?).ok()?;
        (rules >= Rules::Seven).then(|| copied.meanwhile())
    }

    /// What contained the run, as far as it went.
    pub fn containment(&self) -> ContainmentReport {
        let facts = &self.folded.facts;
        ContainmentReport::summarise(
            facts.containment.unwrap_or(Containment::None),
            facts.guard.as_ref(),
            self.processes.clone(),
            facts.copy_was_used(),
        )
    }

    fn judgement(&self) -> Judgement {
        judge::judge(self.contract.valid(), &self.folded.facts)
    }

    /// Ends the chain. Recovery may find it ended already; then what is new is known to the report
    /// alone.
    fn write_completed(
        &mut self,
        findings: Vec<Finding>,
        late: &mut Vec<Blocker>,
    ) -> Result<(), EvidenceError> {
        if self.folded.machine.state == State::Completed {
            late.extend(
                findings
                    .into_iter()
                    .map(|finding| Blocker::after_the_chain(finding.code, finding.detail)),
            );
            return Ok(());
        }
        let mut findings = findings;
        for attempt in 0..2 {
            let event = self.completion(findings.clone());
            match self.emit(event) {
                Ok(()) => return self.sync_events(),
                Err(EvidenceError::Write { artifact, source }) if attempt == 0 => {
                    self.make_room();
                    findings.push(write_failure(&artifact, &source));
                }
                // Not a legal end: the run stopped somewhere it never should have. Closed as an
                // abort, and said so.
                Err(EvidenceError::Order(order)) if attempt == 0 => {
                    findings.push(Finding {
                        code: Code::Interrupted,
                        detail: Some(order.to_string()),
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn completion(&self, findings: Vec<Finding>) -> Event {
        let mut facts = self.folded.facts.clone();
        facts.findings.clone_from(&findings);
        let judgement = judge::judge(self.contract.valid(), &facts);
        Event::RunCompleted(RunCompleted {
            status: judgement.status,
            blockers: judgement.codes(),
            findings,
        })
    }

    /// Every artifact exists in every bundle; those a run never reached say so.
    fn complete_artifacts(&mut self) -> Vec<Finding> {
        let containment = cto_core::values::json::pretty(&self.containment()).unwrap_or_default();
        let gates = cto_core::values::json::pretty(&cto_core::gate::GateReport {
            schema_version: 1,
            gates: Vec::new(),
        })
        .unwrap_or_default();
        let eligibility =
            cto_core::values::json::pretty(&cto_core::gate::eligibility::decide_backend(
                &self.identity.engine.name,
                self.identity.stage,
                self.contract.valid(),
                &self.sealed_contract.contract_digest,
                &cto_core::gate::GateReport {
                    schema_version: 1,
                    gates: Vec::new(),
                },
            ))
            .unwrap_or_default();
        let defaults: [(&str, &[u8]); 5] = [
            (bundle::PATCH, b""),
            (bundle::TEST_LOG, UNREACHED),
            (bundle::CONTAINMENT, &containment),
            (bundle::GATES, &gates),
            (bundle::ELIGIBILITY, &eligibility),
        ];
        let mut findings = Vec::new();
        for (name, default) in defaults {
            // Before its event is in the chain, an artifact is unfinished: a torn patch or log
            // proves nothing.
            let unreached = match name {
                bundle::PATCH => self.folded.facts.patch.is_none(),
                bundle::TEST_LOG => self.folded.facts.verification.is_none(),
                _ => !self.dir.join(name).exists(),
            };
            if unreached && let Err(EvidenceError::Write { source, .. }) = self.write(name, default)
            {
                self.make_room();
                findings.push(write_failure(name, &source));
                let _ = self.write(name, default);
            }
        }
        findings
    }

    /// Marker files of what the run itself came to; gates left theirs already.
    fn mark(&mut self, findings: &[Finding]) -> Vec<Finding> {
        let mut facts = self.folded.facts.clone();
        facts.findings = findings.to_vec();
        let judged = judge::judge(self.contract.valid(), &facts);
        let mut failed = Vec::new();
        for blocker in judged.blockers {
            let Some(note) = bundle::note_of(blocker.code) else {
                continue;
            };
            if self.dir.join(note).exists() {
                continue;
            }
            let said = blocker.detail.unwrap_or(blocker.message);
            let said = format!("{}\n", self.clean(&said));
            if let Err(EvidenceError::Write { source, .. }) = self.write(note, said.as_bytes()) {
                self.make_room();
                failed.push(write_failure(note, &source));
            }
        }
        failed
    }

    /// Records when each artifact was written; one older than the run does not belong to it.
    fn freshness(&self, findings: &mut Vec<Finding>) -> Freshness {
        let mut artifacts = BTreeMap::new();
        let mut stale = Vec::new();
        for name in self.names() {
            if matches!(
                name.as_str(),
                bundle::EVENTS | bundle::TRACE | bundle::SCRATCH_TAR
            ) {
                continue;
            }
            if let Ok(time) = fs::metadata(self.dir.join(&name)).and_then(|meta| meta.modified()) {
                let time = host::file_time(time);
                if time < self.identity.started_at {
                    stale.push(name.clone());
                }
                artifacts.insert(name, time);
            }
        }
        if !stale.is_empty() {
            findings.push(Finding {
                code: Code::StaleArtifact,
                detail: Some(stale.join(", ")),
            });
        }
        Freshness {
            checked_at: host::now().max(self.identity.started_at),
            artifacts,
        }
    }

    /// Files the sums will list, but for the report.
    pub(super) fn names(&self) -> Vec<String> {
        list(&self.dir)
            .into_iter()
            .filter(|name| bundle::is_summed(name))
            .filter(|name| !is_temporary(name))
            .collect()
    }

    /// Everything from here on can only fail for want of room or a broken disk.
    fn commit(mut self, report: Report) -> Result<SealedBundle, EvidenceError> {
        let mut report = report;
        let mut attempts = 0;
        let (bytes, sums_sha256) = loop {
            attempts += 1;
            match self.fix_bytes(&report) {
                Ok(fixed) => break fixed,
                Err(EvidenceError::Write { artifact, source }) if attempts == 1 => {
                    self.make_room();
                    let finding = write_failure(&artifact, &source);
                    report
                        .blockers
                        .push(Blocker::after_the_chain(finding.code, finding.detail));
                    report.status = cto_core::values::blocker::worst_status(&report.blockers);
                    report.failure_reason = cto_core::values::blocker::headline(&report.blockers)
                        .map(|b| b.message.clone());
                }
                Err(error) => return Err(error),
            }
        };
        let failed = |artifact: &str| {
            let artifact = artifact.to_owned();
            move |source| EvidenceError::Write { artifact, source }
        };
        // The lock is no evidence and goes in a moment; everything else must be on the disk first.
        let names: Vec<String> = list(&self.dir)
            .into_iter()
            .filter(|name| name != bundle::LOCK)
            .collect();
        let sync = |name: &String| {
            File::open(self.dir.join(name))
                .and_then(|file| file.sync_data())
                .map_err(failed(name))
        };
        // Side by side: the disk then flushes once for several files instead of once for each.
        workers::for_all(SYNCS, &names, sync)
            .into_iter()
            .collect::<Result<(), EvidenceError>>()?;
        // The commit point: before this rename there is no result, after it there is exactly one.
        fs::rename(
            self.dir.join(bundle::REPORT_TEMP),
            self.dir.join(bundle::REPORT),
        )
        .map_err(failed(bundle::REPORT))?;
        let relied = self.dir.join(bundle::RELIED_DIR);
        for dir in [
            self.dir.join(bundle::BACKEND_DIR),
            self.dir.join(bundle::ATTESTATIONS_DIR),
        ]
        .into_iter()
        .chain(relied.is_dir().then_some(relied))
        .chain([self.dir.clone()])
        {
            File::open(&dir)
                .and_then(|dir| dir.sync_all())
                .map_err(failed(bundle::REPORT))?;
        }
        // Only markers of life are left to clear away; the bundle is whole with or without them.
        let _ = fs::remove_file(self.dir.join(bundle::LOCK));
        self.open_entry.clear(&self.dir);
        let report: Report = cto_core::values::json::read(&bytes)?;
        Ok(SealedBundle {
            dir: self.dir,
            report,
            sums_sha256,
        })
    }

    /// Writes `report.md`, takes all digests, fixes the report in memory, writes sums, signature
    /// and report. Gives the report's bytes and the digest of the sums.
    fn fix_bytes(&mut self, report: &Report) -> Result<(Vec<u8>, Digest), EvidenceError> {
        let _ = fs::remove_file(self.dir.join(bundle::RESERVE));
        let page = report_md::render_report(report);
        self.must_be_clean(bundle::REPORT_MD, page.as_bytes())?;
        self.write(bundle::REPORT_MD, page.as_bytes())?;
        let mut digests: BTreeMap<String, Digest> = BTreeMap::new();
        for name in self.names() {
            let found = files::scan_file(&self.dir.join(&name), |_| {}).map_err(|source| {
                EvidenceError::Write {
                    artifact: name.clone(),
                    source,
                }
            })?;
            digests.insert(name, found.sha256);
        }
        let report = report.clone().with_digests(digests.clone())?;
        let bytes = report.to_bytes()?;
        self.must_be_clean(bundle::REPORT, &bytes)?;
        digests.insert(bundle::REPORT.to_owned(), Digest::of(&bytes));
        let sums = sums::format_sums(&digests);
        let sums_sha256 = Digest::of(sums.as_bytes());
        self.write(bundle::SUMS, sums.as_bytes())?;
        self.sign(&Sealed {
            report: &report,
            sums: &digests,
            sums_sha256,
        })?;
        self.write(bundle::REPORT_TEMP, &bytes)?;
        Ok((bytes, sums_sha256))
    }

    /// The key is asked for now and not when the run began: one that was rotated meanwhile signs
    /// nothing more.
    fn sign(&mut self, sealed: &Sealed<'_>) -> Result<(), EvidenceError> {
        // Taken first: the key was not yet retired at this time.
        let signed_at = host::now().max(sealed.report.run_finished_at);
        let signer = Signer::ready(&self.keys)?;
        let dir = self.dir.join(bundle::ATTESTATIONS_DIR);
        let failed = |source| EvidenceError::Write {
            artifact: bundle::ATTESTATIONS_DIR.to_owned(),
            source,
        };
        host::make_private_dir(&dir).map_err(failed)?;
        for (name, bytes) in signer.attest(sealed, signed_at)? {
            self.write(name, &bytes)?;
        }
        Ok(())
    }

    fn make_room(&self) {
        // Gone already is as good.
        let _ = fs::remove_file(self.dir.join(bundle::RESERVE));
    }

    fn retry(
        &mut self,
        artifact: &str,
        late: &mut Vec<Blocker>,
        act: impl Fn(&Self) -> io::Result<()>,
    ) -> Result<(), EvidenceError> {
        if let Err(first) = act(self) {
            self.make_room();
            let finding = write_failure(artifact, &first);
            late.push(Blocker::after_the_chain(finding.code, finding.detail));
            act(self).map_err(|source| EvidenceError::Write {
                artifact: artifact.to_owned(),
                source,
            })?;
        }
        Ok(())
    }
}

pub fn write_failure(artifact: &str, error: &io::Error) -> Finding {
    Finding {
        code: Code::ArtifactWriteFailure,
        detail: Some(format!("{artifact}: {error}")),
    }
}

fn is_temporary(name: &str) -> bool {
    matches!(name, bundle::RESERVE | bundle::REPORT_TEMP | bundle::REPORT)
}

/// Regular files below a bundle, by relative name. Names that are not UTF-8 cannot be artifacts.
fn list(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        for entry in fs::read_dir(dir.join(&below))
            .into_iter()
            .flatten()
            .flatten()
        {
            let relative = below.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(relative),
                Ok(kind) if kind.is_file() => {
                    if let Ok(name) = std::str::from_utf8(relative.as_os_str().as_bytes()) {
                        names.push(name.to_owned());
                    }
                }
                _ => {}
            }
        }
    }
    names.sort();
    names
}
