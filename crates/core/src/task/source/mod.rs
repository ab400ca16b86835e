//! The repository a run copies from: who admits it, its state before and after the run, and whether
//! it stayed unchanged. The harness only reads it. `meanwhile.rs` says what its owner did; `branch_policy.rs` what
//! holds for the branches of a repository made to be thrown away.

pub mod branch_policy;
mod meanwhile;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::blocker::Code;
use crate::values::blocker::Finding;
use crate::values::digest::Digest;
use crate::values::maybe_known::MaybeKnown;
use crate::values::paths::TreePath;
use crate::values::text::tame;

pub use meanwhile::Meanwhile;

/// Who says that this repository may be copied.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceRecord {
    /// Where it is, with the operator's home written as `~`; only bundles of before say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub owner: String,
    pub ownership_evidence: String,
    pub class: SourceClass,
}

/// Which repository it is, without a word of where. Two clones are two of these, and one task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryName {
    /// Of its directory.
    pub name: String,
    /// Of its absolute path without links. Who knows the path can tell that it is this one.
    pub path_sha256: Digest,
}

impl RepositoryName {
    /// `path` as the kernel has it: bytes.
    pub fn of(path: &[u8]) -> Self {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        Self {
            name: tame(&String::from_utf8_lossy(name)),
            path_sha256: Digest::of(path),
        }
    }
}

/// Only repositories of the operator's own can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceClass {
    OwnedLocal,
}

/// What a contract says about its source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub record: SourceRecord,
    /// Uncommitted changes are left out of the copy instead of refused.
    pub from_head: bool,
    /// The commit that is copied; not seen until every earlier gate passed.
    pub head: MaybeKnown<String>,
}

/// Uncommitted paths, staged and unstaged and new, as git tells them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceStatus {
    pub count: u64,
    /// Of the whole list, so that two looks can be compared without keeping it.
    pub sha256: Digest,
    pub first: Vec<TreePath>,
    /// A merge, rebase or the like that was begun and not ended.
    pub unfinished: Vec<String>,
}

impl SourceStatus {
    /// Paths kept by name.
    pub const SHOWN: usize = 20;

    pub fn new(lines: &[u8], paths: Vec<TreePath>, unfinished: Vec<String>) -> Self {
        let count = paths.len() as u64;
        Self {
            count,
            sha256: Digest::of(lines),
            first: paths.into_iter().take(Self::SHOWN).collect(),
            unfinished,
        }
    }

    /// What keeps this tree from being clean.
    pub fn dirt(&self) -> Option<String> {
        let mut said = Vec::new();
        if self.count > 0 {
            const NAMED: usize = 5;
            let names = self
                .first
                .iter()
                .take(NAMED)
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            let more = self
                .count
                .saturating_sub(self.first.len().min(NAMED) as u64);
            let rest = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let noun = if self.count == 1 {
                "path is"
            } else {
                "paths are"
            };
            said.push(format!(
                "{} {noun} not committed: {names}{rest}",
                self.count
            ));
        }
        if !self.unfinished.is_empty() {
            said.push(format!("unfinished: {}", self.unfinished.join(", ")));
        }
        (!said.is_empty()).then(|| said.join("; "))
    }
}

/// One read-only look at a repository.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceLook {
    pub head: String,
    /// Null when HEAD is detached.
    pub branch: Option<String>,
    /// The tree of HEAD, as git names it.
    pub tree: String,
    pub status: SourceStatus,
    /// Of every ref, the configuration, the hooks, the index and the state of every tracked file.
    pub fingerprint: Digest,
}

/// The result of a look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Looked {
    Found(SourceLook),
    /// It cannot be copied, and why.
    Unusable(String),
}

/// `source.json`: where the copy came from, and that the original stayed as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopiedRepo {
    pub schema_version: u32,
    pub record: SourceRecord,
    /// Which one it is on its owner's host; absent in bundles of before, whose record says where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryName>,
    pub from_head: bool,
    pub branch: Option<String>,
    pub tree: String,
    /// Null until the second look.
    pub source_repository_mutated: Option<bool>,
    pub source_head_before: String,
    pub source_head_after: Option<String>,
    pub source_status_before: SourceStatus,
    pub source_status_after: Option<SourceStatus>,
    pub source_fingerprint_before: Digest,
    pub source_fingerprint_after: Option<Digest>,
    /// Whether a change of it fails the run (`run/judge/source.rs`); null until the second look, absent in
    /// bundles of before, where it always did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<bool>,
    /// Files that are not what they were; absent where there was no second look to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_files_changed: Option<u64>,
    /// The copy was exactly the tree of HEAD before the engine saw it; null when none was made.
    pub copied_fixture_start_clean: Option<bool>,
    /// Nothing but the measured change was left in the copy; null when none was measured.
    pub copied_fixture_end_clean: Option<bool>,
}

impl CopiedRepo {
    /// `repository` as the contract's lane names it.
    pub fn begun(
        source: &Source,
        repository: Option<&RepositoryName>,
        before: &SourceLook,
    ) -> Self {
        Self {
            schema_version: 1,
            record: source.record.clone(),
            repository: repository.cloned(),
            from_head: source.from_head,
            branch: before.branch.clone(),
            tree: before.tree.clone(),
            source_repository_mutated: None,
            source_head_before: before.head.clone(),
            source_head_after: None,
            source_status_before: before.status.clone(),
            source_status_after: None,
            source_fingerprint_before: before.fingerprint,
            source_fingerprint_after: None,
            judged: None,
            source_files_changed: None,
            copied_fixture_start_clean: None,
            copied_fixture_end_clean: None,
        }
    }

    /// Records the second look; a source that cannot be looked at again did not stay as it was.
    /// `judged`: see `run/judge/source.rs`. `files` that are not what they were.
    pub fn ended(&mut self, after: &Looked, files: Option<u64>, judged: bool) -> Option<Finding> {
        if let Looked::Found(after) = after {
            self.source_head_after = Some(after.head.clone());
            self.source_status_after = Some(after.status.clone());
            self.source_fingerprint_after = Some(after.fingerprint);
        }
        let difference = match after {
            Looked::Unusable(why) => Some(why.clone()),
            Looked::Found(_) => self.difference().map(str::to_owned),
        };
        self.judged = Some(judged);
        self.source_files_changed = files.filter(|_| difference.is_some());
        self.source_repository_mutated = Some(difference.is_some());
        difference.filter(|_| judged).map(|detail| Finding {
            code: Code::SourceRepositoryMutated,
            detail: Some(detail),
        })
    }

    /// What a report says of it.
    pub fn meanwhile(&self) -> Meanwhile {
        Meanwhile {
            judged: self.judged.unwrap_or(true),
            mutated: self.source_repository_mutated,
            found_again: self.source_head_after.is_some(),
            head_moved: self
                .source_head_after
                .as_ref()
                .is_some_and(|after| *after != self.source_head_before),
            files: self.source_files_changed,
        }
    }

    fn difference(&self) -> Option<&'static str> {
        if self.source_head_after.as_ref() != Some(&self.source_head_before) {
            Some("HEAD moved")
        } else if self.source_status_after.as_ref() != Some(&self.source_status_before) {
            Some("its uncommitted changes are others than before")
        } else if self.source_fingerprint_after != Some(self.source_fingerprint_before) {
            Some("its files, index, refs or configuration changed")
        } else {
            None
        }
    }

    /// Everything in which this document contradicts the contract or itself.
    /// `judged`: whether a change fails the run, where its rules ask.
    /// `started`: an engine saw the copy.
    /// `baseline`: the tree the change was measured against, where one was.
    pub fn contradictions(
        &self,
        (source, repository): (&Source, Option<&RepositoryName>),
        findings: &[Finding],
        judged: Option<bool>,
        started: bool,
        baseline: Option<&str>,
    ) -> Vec<&'static str> {
        let reported = findings
            .iter()
            .any(|finding| finding.code == Code::SourceRepositoryMutated);
        let aborted = findings
            .iter()
            .any(|f| matches!(f.code, Code::Interrupted | Code::ArtifactWriteFailure));
        let looked_twice = self.source_repository_mutated.is_some();
        [
            (
                self.record != source.record
                    || self.repository.as_ref() != repository
                    || self.from_head != source.from_head,
                "names another source than the contract",
            ),
            (
                baseline.is_some_and(|tree| tree != self.tree),
                "names another tree than the change was measured against",
            ),
            (
                source.head != MaybeKnown::Known(self.source_head_before.clone()),
                "names another commit than the contract",
            ),
            (
                started && !self.from_head && self.source_status_before.dirt().is_some(),
                "the source was not clean",
            ),
            (
                !looked_twice && !aborted,
                "the source was not looked at a second time",
            ),
            (
                looked_twice && self.source_repository_mutated != Some(self.difference().is_some()),
                "its verdict is not what its looks say",
            ),
            (
                self.judged != judged.filter(|_| looked_twice),
                "does not say rightly whether a change was judged",
            ),
            (
                self.source_repository_mutated == Some(true) && judged != Some(false) && !reported,
                "a changed source was not reported",
            ),
            (
                judged == Some(false) && reported,
                "a change was reported that is none of the run's",
            ),
            (
                self.source_files_changed.is_some() && self.source_repository_mutated != Some(true),
                "counts changed files of a source that did not change",
            ),
            (
                started && self.copied_fixture_start_clean != Some(true),
                "the copy was not proven to be what HEAD holds",
            ),
            (
                self.copied_fixture_end_clean.is_some_and(|clean| {
                    clean
                        == findings
                            .iter()
                            .any(|finding| finding.code == Code::DirtyEndingTree)
                }),
                "the end of the copy is not what the findings say",
            ),
        ]
        .into_iter()
        .filter_map(|(is_wrong, what)| is_wrong.then_some(what))
        .collect()
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
pub mod tests;
