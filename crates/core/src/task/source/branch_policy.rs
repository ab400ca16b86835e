//! The branch policy of a disposable repository: from which commit it starts, who may move which ref, and what was
//! moved. Refs are read by the harness itself; what an engine committed is compared and never used.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::maybe_known::MaybeKnown;

/// Nothing moves it while the run lasts.
pub const BASE_REF: &str = "refs/heads/main";
/// Where the engine may commit; nothing it commits is used.
pub const WORK_REF: &str = "refs/heads/cto-work";
/// The one result commit, in the harness's own repository.
pub const RESULT_REF: &str = "refs/heads/cto-result";
/// The branch that is checked out.
pub const HEAD: &str = "HEAD";
/// Every ref that no other rule names.
pub const ANY_OTHER: &str = "*";

/// How many moved refs are listed; all are counted.
const LISTED: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mover {
    Nobody,
    Engine,
    Harness,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefRule {
    pub name: String,
    pub moved_by: Mover,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BranchPolicy {
    pub base_branch: String,
    /// Made by the harness from the files of the case, the same wherever it is made.
    pub base_commit: MaybeKnown<String>,
    pub work_branch: String,
    /// The first rule that names a ref counts.
    pub refs: Vec<RefRule>,
    pub result_commits: u64,
    pub remotes: u64,
}

impl BranchPolicy {
    /// Of a repository that nobody has made yet.
    pub fn disposable() -> Self {
        let rule = |name: &str, moved_by| RefRule {
            name: name.to_owned(),
            moved_by,
        };
        Self {
            base_branch: BASE_REF.to_owned(),
            base_commit: MaybeKnown::NotLookedAt,
            work_branch: WORK_REF.to_owned(),
            refs: vec![
                rule(HEAD, Mover::Nobody),
                rule(BASE_REF, Mover::Nobody),
                rule(WORK_REF, Mover::Engine),
                rule(RESULT_REF, Mover::Harness),
                rule(ANY_OTHER, Mover::Nobody),
            ],
            result_commits: 1,
            remotes: 0,
        }
    }

    pub fn mover(&self, name: &str) -> Mover {
        let named = |rule: &&RefRule| rule.name == name || rule.name == ANY_OTHER;
        let rule = self.refs.iter().find(named);
        rule.map_or(Mover::Nobody, |rule| rule.moved_by)
    }

    /// What an engine did that this does not let it, in words.
    pub fn broken_by(&self, moves: &Moves) -> Option<String> {
        let forbidden = |moved: &&RefMoved| self.mover(&moved.name) != Mover::Engine;
        let mut words: Vec<String> = Vec::new();
        words.extend(moves.unreadable.clone());
        for moved in moves.moved.iter().filter(forbidden).take(10) {
            let how = match (&moved.from, &moved.to) {
                (None, _) => "was made",
                (_, None) => "was removed",
                (Some(_), Some(_)) => "was moved",
            };
            words.push(format!("{} {how}", moved.name));
        }
        if moves.not_listed > 0 {
            words.push(format!("{} more refs were moved", moves.not_listed));
        }
        if moves.remotes > self.remotes {
            words.push(format!("{} remotes were configured", moves.remotes));
        }
        (!words.is_empty()).then(|| format!("against the branch policy: {}", words.join(", ")))
    }
}

/// A ref that is not what it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefMoved {
    pub name: String,
    pub from: Option<String>,
    pub to: Option<String>,
}

/// What a reading of a git directory found: each ref and what it says, HEAD among them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RefsRead {
    pub refs: BTreeMap<String, String>,
    pub remotes: u64,
    /// Why not all of them could be read.
    pub unreadable: Option<String>,
}

/// What became of the refs of the engine's own repository.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moves {
    pub moved: Vec<RefMoved>,
    /// Moved refs beyond those listed.
    pub not_listed: u64,
    pub remotes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

impl Moves {
    /// What differs between two readings. `shown`: the words of an engine as they may stand in evidence.
    pub fn between(
        before: &RefsRead,
        after: &RefsRead,
        shown: &mut dyn FnMut(&str) -> String,
    ) -> Self {
        let names = before.refs.keys().chain(after.refs.keys());
        let mut names: Vec<&String> = names
            .filter(|name| before.refs.get(*name) != after.refs.get(*name))
            .collect();
        names.sort();
        names.dedup();
        let beyond = names.len().saturating_sub(LISTED);
        let mut said = |read: &RefsRead, name: &String| read.refs.get(name).map(|at| shown(at));
        let found: Vec<_> = names
            .iter()
            .take(LISTED)
            .map(|name| ((*name).clone(), said(before, name), said(after, name)))
            .collect();
        let moved = found.into_iter().map(|(name, from, to)| RefMoved {
            name: shown(&name),
            from,
            to,
        });
        Self {
            moved: moved.collect(),
            not_listed: beyond as u64,
            remotes: after.remotes,
            unreadable: before.unreadable.clone().or(after.unreadable.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(refs: &[(&str, &str)]) -> RefsRead {
        RefsRead {
            refs: refs
                .iter()
                .map(|(name, at)| ((*name).to_owned(), (*at).to_owned()))
                .collect(),
            ..RefsRead::default()
        }
    }

    fn broken(change: impl FnOnce(&mut RefsRead)) -> Option<String> {
        let before = read(&[
            (HEAD, "ref: refs/heads/cto-work"),
            (BASE_REF, "1"),
            (WORK_REF, "1"),
        ]);
        let mut after = before.clone();
        change(&mut after);
        let moves = Moves::between(&before, &after, &mut str::to_owned);
        BranchPolicy::disposable().broken_by(&moves)
    }

    #[test]
    fn an_engine_moves_its_own_branch_and_nothing_else() {
        assert_eq!(broken(|_| ()), None);
        assert_eq!(
            broken(|after| drop(after.refs.insert(WORK_REF.into(), "2".into()))),
            None
        );
        type Change = fn(&mut RefsRead);
        let rows: [(Change, &str); 8] = [
            (
                |after| drop(after.refs.insert(BASE_REF.into(), "2".into())),
                "refs/heads/main was moved",
            ),
            (
                |after| drop(after.refs.remove(BASE_REF)),
                "refs/heads/main was removed",
            ),
            (
                |after| drop(after.refs.insert(RESULT_REF.into(), "2".into())),
                "cto-result was made",
            ),
            (
                |after| drop(after.refs.insert("refs/tags/v1".into(), "2".into())),
                "refs/tags/v1 was made",
            ),
            (
                |after| drop(after.refs.insert(HEAD.into(), "2".into())),
                "HEAD was moved",
            ),
            (
                |after| drop(after.refs.insert(ANY_OTHER.into(), "2".into())),
                "* was made",
            ),
            (|after| after.remotes = 1, "1 remotes"),
            (
                |after| after.unreadable = Some("too many".into()),
                "too many",
            ),
        ];
        for (change, says) in rows {
            let found = broken(change).unwrap_or_default();
            assert!(found.contains(says), "{says}: {found}");
        }
    }

    #[test]
    fn what_is_not_listed_is_counted_and_breaks_it() {
        let many = |after: &mut RefsRead| {
            for number in 0..LISTED + 7 {
                after
                    .refs
                    .insert(format!("refs/heads/{number}"), "1".into());
            }
        };
        assert!(broken(many).unwrap().contains("7 more refs were moved"));
    }

    #[test]
    fn words_of_an_engine_pass_a_filter() {
        let (before, after) = (read(&[]), read(&[("refs/heads/secret", "secret")]));
        let mut hide = |text: &str| text.replace("secret", "[...]");
        let moves = Moves::between(&before, &after, &mut hide);
        assert_eq!(moves.moved[0].name, "refs/heads/[...]");
        assert_eq!(moves.moved[0].to.as_deref(), Some("[...]"));
    }
}
