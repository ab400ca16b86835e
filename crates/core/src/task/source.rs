//! The repository a run copies from: who admits it, its state before and after the run, and whether
//! it stayed unchanged. The harness only reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::blocker::Code;
use crate::values::blocker::Finding;
use crate::values::digest::Digest;
use crate::values::maybe_known::MaybeKnown;
use crate::values::paths::TreePath;
use crate::values::text::tame;

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
            copied_fixture_start_clean: None,
            copied_fixture_end_clean: None,
        }
    }

    /// Records the second look; a source that cannot be looked at again did not stay as it was.
    pub fn ended(&mut self, after: &Looked) -> Option<Finding> {
        if let Looked::Found(after) = after {
            self.source_head_after = Some(after.head.clone());
            self.source_status_after = Some(after.status.clone());
            self.source_fingerprint_after = Some(after.fingerprint);
        }
        let difference = match after {
            Looked::Unusable(why) => Some(why.clone()),
            Looked::Found(_) => self.difference().map(str::to_owned),
        };
        self.source_repository_mutated = Some(difference.is_some());
        difference.map(|detail| Finding {
            code: Code::SourceRepositoryMutated,
            detail: Some(detail),
        })
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
    /// `started`: an engine saw the copy.
    /// `baseline`: the tree the change was measured against, where one was.
    pub fn contradictions(
        &self,
        (source, repository): (&Source, Option<&RepositoryName>),
        findings: &[Finding],
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
                self.source_repository_mutated == Some(true) && !reported,
                "a changed source was not reported",
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
pub mod tests {
    use super::*;

    pub fn source() -> Source {
        let record = SourceRecord {
            path: None,
            owner: "operator".into(),
            ownership_evidence: "typed".into(),
            class: SourceClass::OwnedLocal,
        };
        Source {
            record,
            from_head: false,
            head: MaybeKnown::Known("c0".into()),
        }
    }

    pub fn repository() -> RepositoryName {
        RepositoryName::of(b"/home/me/project")
    }

    pub fn look() -> SourceLook {
        SourceLook {
            head: "c0".into(),
            branch: Some("main".into()),
            tree: "t0".into(),
            status: SourceStatus::new(b"", Vec::new(), Vec::new()),
            fingerprint: Digest::of(b"f"),
        }
    }

    fn dirty(names: &[&str]) -> SourceStatus {
        SourceStatus::new(
            names.join("\0").as_bytes(),
            names.iter().map(|name| TreePath::new(*name)).collect(),
            Vec::new(),
        )
    }

    #[test]
    fn dirt_is_named() {
        assert_eq!(look().status.dirt(), None);
        assert_eq!(dirty(&["a"]).dirt().unwrap(), "1 path is not committed: a");
        let many: Vec<String> = (0..30).map(|n| format!("f{n}")).collect();
        let many = dirty(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(
            many.dirt().unwrap(),
            "30 paths are not committed: f0, f1, f2, f3, f4 and 25 more"
        );
        assert_eq!(many.first.len(), SourceStatus::SHOWN);
        let merging = SourceStatus::new(b"", Vec::new(), vec!["MERGE_HEAD".into()]);
        assert_eq!(merging.dirt().unwrap(), "unfinished: MERGE_HEAD");
    }

    #[test]
    fn every_difference_between_two_looks_is_a_finding() {
        let same = |_: &mut SourceLook| {};
        type Row = (&'static str, fn(&mut SourceLook), bool);
        let rows: [Row; 5] = [
            ("same", same, false),
            ("branch name alone", |look| look.branch = None, false),
            ("head", |look| look.head = "c1".into(), true),
            ("status", |look| look.status = dirty(&["x"]), true),
            (
                "fingerprint",
                |look| look.fingerprint = Digest::of(b"g"),
                true,
            ),
        ];
        for (name, change, want) in rows {
            let mut after = look();
            change(&mut after);
            let mut document = CopiedRepo::begun(&source(), Some(&repository()), &look());
            let finding = document.ended(&Looked::Found(after));
            assert_eq!(finding.is_some(), want, "{name}");
            assert_eq!(document.source_repository_mutated, Some(want), "{name}");
            let findings: Vec<Finding> = finding.into_iter().collect();
            assert_eq!(
                document.contradictions(
                    (&source(), Some(&repository())),
                    &findings,
                    false,
                    Some("t0")
                ),
                Vec::<&str>::new(),
                "{name}"
            );
        }
        let mut gone = CopiedRepo::begun(&source(), Some(&repository()), &look());
        assert!(gone.ended(&Looked::Unusable("it is gone".into())).is_some());
    }

    #[test]
    fn contradictions_are_found() {
        const STARTED: bool = true;
        let whole = || {
            let mut document = CopiedRepo::begun(&source(), Some(&repository()), &look());
            assert_eq!(document.ended(&Looked::Found(look())), None);
            (
                document.copied_fixture_start_clean,
                document.copied_fixture_end_clean,
            ) = (Some(true), Some(true));
            document
        };
        assert_eq!(
            whole().contradictions((&source(), Some(&repository())), &[], STARTED, Some("t0")),
            Vec::<&str>::new()
        );
        let rows: [fn(&mut CopiedRepo); 11] = [
            |d| d.record.owner = "someone".into(),
            |d| d.from_head = true,
            |d| d.repository = None,
            |d| d.repository = Some(RepositoryName::of(b"/home/me/other/project")),
            |d| d.record.path = Some("~/project".into()),
            |d| d.source_head_before = "c9".into(),
            |d| d.source_repository_mutated = None,
            |d| d.source_fingerprint_after = Some(Digest::of(b"other")),
            |d| d.source_repository_mutated = Some(true),
            |d| d.copied_fixture_start_clean = Some(false),
            |d| d.copied_fixture_end_clean = Some(false),
        ];
        for (number, change) in rows.into_iter().enumerate() {
            let mut document = whole();
            change(&mut document);
            assert!(
                !document
                    .contradictions((&source(), Some(&repository())), &[], STARTED, Some("t0"))
                    .is_empty(),
                "row {number}"
            );
        }
        let mut unclean = whole();
        unclean.source_status_before = dirty(&["x"]);
        unclean.source_status_after = Some(dirty(&["x"]));
        assert_eq!(
            unclean.contradictions((&source(), Some(&repository())), &[], STARTED, Some("t0")),
            ["the source was not clean"]
        );
        assert!(
            !whole()
                .contradictions((&source(), Some(&repository())), &[], STARTED, Some("t1"))
                .is_empty(),
            "another tree"
        );
        let cut = CopiedRepo::begun(&source(), Some(&repository()), &look());
        let interrupted = [Finding {
            code: Code::Interrupted,
            detail: None,
        }];
        assert!(
            cut.contradictions(
                (&source(), Some(&repository())),
                &interrupted,
                false,
                Some("t0")
            )
            .is_empty()
        );
        assert!(
            !cut.contradictions((&source(), Some(&repository())), &[], false, Some("t0"))
                .is_empty()
        );
        assert!(
            !cut.contradictions(
                (&source(), Some(&repository())),
                &interrupted,
                STARTED,
                Some("t0")
            )
            .is_empty()
        );
    }
}
