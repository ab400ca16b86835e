//! What a repository may not be if a commit is to land in it: every reason, from facts that were looked at.

use super::Way;
use crate::values::paths::TreePath;

macro_rules! reasons {
    ($($variant:ident $word:literal $scope:ident $sentence:literal $hint:literal;)*) => {
        /// Why nothing lands here. The spelling never changes once released.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Reason {
            $($variant,)*
        }

        impl Reason {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            pub fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)* }
            }

            pub fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint,)* }
            }

            /// Does it refuse this way of landing?
            pub fn refuses(self, way: Way) -> bool {
                match self { $(Self::$variant => Scope::$scope.covers(way),)* }
            }
        }
    };
}

/// Which ways of landing a reason is about.
enum Scope {
    /// A work tree is changed.
    Tree,
    /// A new ref is made.
    Ref,
    Both,
}

impl Scope {
    fn covers(self, way: Way) -> bool {
        match self {
            Self::Both => true,
            Self::Tree => way == Way::Merge,
            Self::Ref => way == Way::Branch,
        }
    }
}

reasons! {
    Foreign "foreign" Both
        "the repository belongs to another user, whose files would become ours"
        "land as the user it belongs to";
    HeadMoved "head_moved" Both
        "HEAD is not the commit that this change was made for"
        "ask for the change again from the present commit";
    OtherBranch "other_branch" Tree
        "another branch is checked out than the one this change was made for"
        "check that branch out again";
    HeadDetached "head_detached" Tree
        "no branch is checked out, so none could move"
        "check a branch out, or land as a branch";
    Unfinished "unfinished" Tree
        "git has unfinished work here"
        "finish or abort it";
    Locked "locked" Tree
        "another git is at work here, or left `index.lock` behind"
        "wait for it; if no git runs here, remove `index.lock`";
    Maintenance "maintenance" Both
        "git is cleaning up here"
        "wait until `git gc` or `git maintenance` is done";
    Dirty "dirty" Tree
        "these paths are not as HEAD has them"
        "commit, stash or undo them";
    Filter "filter" Tree
        "a program of the owner's makes these files, and it is never started"
        "land as a branch and check that out yourself";
    Encoding "encoding" Tree
        "git re-encodes these files"
        "land as a branch and check that out yourself";
    Keywords "keywords" Tree
        "git writes keywords into these files"
        "land as a branch and check that out yourself";
    Attributes "attributes" Tree
        "the change touches `.gitattributes`, which says how other files lie in the work tree"
        "land as a branch and check that out yourself";
    Submodule "submodule" Tree
        "the change touches a submodule or what says where submodules are"
        "change it in the submodule's own repository";
    Sparse "sparse" Tree
        "only a part of the repository is checked out"
        "`git sparse-checkout disable`, or land as a branch";
    PartialClone "partial_clone" Both
        "a part of its objects is elsewhere, and nothing is fetched"
        "land in a whole clone";
    HistoryMissing "history_missing" Both
        "a commit that is needed is not here"
        "`git fetch --unshallow`";
    Refs "refs" Both
        "its refs are stored in a way that is not known"
        "land in a repository with `refs/`";
    SharedBranch "shared_branch" Tree
        "this branch is checked out in another work tree too"
        "check another branch out there, or land as a branch";
    Link "link" Tree
        "a link or another repository stands where a directory of the path should be"
        "undo that, or land as a branch";
    CaseClash "case_clash" Tree
        "two names differ only in letters' case, and this work tree takes them for one"
        "land as a branch";
    NotWritable "not_writable" Both
        "it cannot be written to"
        "fix its permissions";
    BranchTaken "branch_taken" Ref
        "there is a branch of this name, or one that it would lie in"
        "name another branch";
}

/// What a look at a repository found. A fact that is no reason to refuse is not kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    pub head: String,
    /// Whole name; none where HEAD is detached.
    pub branch: Option<String>,
    /// Whose it is, where that is not us.
    pub foreign: Option<u32>,
    pub unfinished: Vec<String>,
    /// `index.lock` is held, and not by us.
    pub locked: bool,
    pub maintenance: Option<String>,
    pub dirty: Vec<TreePath>,
    pub filtered: Vec<TreePath>,
    pub encoded: Vec<TreePath>,
    pub with_keywords: Vec<TreePath>,
    /// Submodules of HEAD.
    pub submodules: Vec<TreePath>,
    pub sparse: bool,
    pub partial: bool,
    pub history_missing: Option<String>,
    pub strange_refs: bool,
    /// Another work tree with the same branch.
    pub shared_with: Option<String>,
    pub behind_links: Vec<TreePath>,
    pub case_clashes: Vec<TreePath>,
    pub not_writable: Vec<String>,
    pub taken: Option<String>,
}

/// What is to land.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub way: Way,
    /// The only commit it may stand on, where there is only one.
    pub head: Option<&'a str>,
    /// The only branch that may move.
    pub branch: Option<&'a str>,
    pub paths: &'a [TreePath],
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub reason: Reason,
    pub detail: Option<String>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.reason.sentence())?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

/// Every reason why this may not land here, in the order in which a person would mend them.
pub fn refusals(wanted: Wanted<'_>, facts: &Facts) -> Vec<Refusal> {
    let reasons = Reason::ALL
        .iter()
        .filter(|reason| reason.refuses(wanted.way));
    reasons
        .filter_map(|reason| {
            let detail = found(*reason, wanted, facts)?;
            Some(Refusal {
                reason: *reason,
                detail: (!detail.is_empty()).then_some(detail),
            })
        })
        .collect()
}

/// None where it is no reason here; else what to say of it besides.
fn found(reason: Reason, wanted: Wanted<'_>, facts: &Facts) -> Option<String> {
    let yes = |is: bool| is.then(String::new);
    let touched = |which: fn(&TreePath, &Facts) -> bool| {
        names(wanted.paths.iter().filter(|path| which(path, facts)))
    };
    match reason {
        Reason::Foreign => facts.foreign.map(|owner| format!("user {owner}")),
        Reason::HeadMoved => {
            let other = |head: &&str| *head != facts.head;
            wanted.head.filter(other).map(|_| facts.head.clone())
        }
        Reason::OtherBranch => {
            let is = facts.branch.as_deref();
            let other = |branch: &&str| is.is_some_and(|is| is != *branch);
            wanted.branch.filter(other).and(is).map(str::to_owned)
        }
        Reason::HeadDetached => yes(facts.branch.is_none()),
        Reason::Unfinished => {
            let what = facts.unfinished.join(", ");
            (!what.is_empty()).then_some(what)
        }
        Reason::Locked => yes(facts.locked),
        Reason::Maintenance => facts.maintenance.clone(),
        Reason::Dirty => names(&facts.dirty),
        Reason::Filter => names(&facts.filtered),
        Reason::Encoding => names(&facts.encoded),
        Reason::Keywords => names(&facts.with_keywords),
        Reason::Attributes => touched(|path, _| ends_with_name(path, b".gitattributes")),
        Reason::Submodule => touched(|path, facts| {
            path.as_bytes() == b".gitmodules"
                || facts
                    .submodules
                    .iter()
                    .any(|module| is_at_or_below(path, module))
        }),
        Reason::Sparse => yes(facts.sparse),
        Reason::PartialClone => yes(facts.partial),
        Reason::HistoryMissing => facts.history_missing.clone(),
        Reason::Refs => yes(facts.strange_refs),
        Reason::SharedBranch => facts.shared_with.clone(),
        Reason::Link => names(&facts.behind_links),
        Reason::CaseClash => names(&facts.case_clashes),
        Reason::NotWritable => {
            let what = facts.not_writable.join(", ");
            (!what.is_empty()).then_some(what)
        }
        Reason::BranchTaken => facts.taken.clone(),
    }
}

fn ends_with_name(path: &TreePath, name: &[u8]) -> bool {
    path.as_bytes().rsplit(|byte| *byte == b'/').next() == Some(name)
}

fn is_at_or_below(path: &TreePath, dir: &TreePath) -> bool {
    let rest = path.as_bytes().strip_prefix(dir.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The first of them; none of none.
fn names<'a>(paths: impl IntoIterator<Item = &'a TreePath>) -> Option<String> {
    const SHOWN: usize = 10;
    let all: Vec<String> = paths.into_iter().map(ToString::to_string).collect();
    let more = all.len().saturating_sub(SHOWN);
    let first = all[..all.len().min(SHOWN)].join(", ");
    match (all.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(first),
        (false, more) => Some(format!("{first} and {more} more")),
    }
}

/// Added names that differ from another only in case, where the work tree takes those for one.
pub fn case_clashes<'a>(
    added: impl IntoIterator<Item = &'a TreePath>,
    tracked: impl IntoIterator<Item = &'a TreePath>,
) -> Vec<TreePath> {
    let fold = |path: &TreePath| String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    let added: Vec<(String, &TreePath)> =
        added.into_iter().map(|path| (fold(path), path)).collect();
    if added.is_empty() {
        return Vec::new();
    }
    let mut known = std::collections::BTreeMap::<String, Vec<&TreePath>>::new();
    for path in tracked
        .into_iter()
        .chain(added.iter().map(|(_, path)| *path))
    {
        known.entry(fold(path)).or_default().push(path);
    }
    let clash = |(folded, path): &&(String, &TreePath)| {
        let same = known.get(folded);
        same.is_some_and(|others| others.iter().any(|other| other != path))
    };
    added
        .iter()
        .filter(clash)
        .map(|(_, path)| (*path).clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean() -> Facts {
        Facts {
            head: "1".repeat(40),
            branch: Some("refs/heads/main".into()),
            ..Facts::default()
        }
    }

    fn paths(names: &[&str]) -> Vec<TreePath> {
        names.iter().map(|name| TreePath::new(*name)).collect()
    }

    fn reasons(way: Way, facts: &Facts, touched: &[&str]) -> Vec<Reason> {
        let touched = paths(touched);
        let (head, branch) = ("1".repeat(40), "refs/heads/main");
        let wanted = Wanted {
            way,
            head: Some(&head),
            branch: Some(branch),
            paths: &touched,
        };
        let found = refusals(wanted, facts);
        found.into_iter().map(|refusal| refusal.reason).collect()
    }

    #[test]
    fn nothing_refuses_a_clean_repository() {
        for way in Way::ALL {
            assert_eq!(reasons(way, &clean(), &["src/a"]), []);
        }
    }

    #[test]
    fn every_reason_refuses_the_ways_it_is_about() {
        type Make = fn(&mut Facts);
        let rows: [(Reason, Make, bool, bool); 21] = [
            (Reason::Foreign, |f| f.foreign = Some(7), true, true),
            (Reason::HeadMoved, |f| f.head = "2".repeat(40), true, true),
            (
                Reason::OtherBranch,
                |f| f.branch = Some("refs/heads/x".into()),
                true,
                false,
            ),
            (Reason::HeadDetached, |f| f.branch = None, true, false),
            (
                Reason::Unfinished,
                |f| f.unfinished = vec!["MERGE_HEAD".into()],
                true,
                false,
            ),
            (Reason::Locked, |f| f.locked = true, true, false),
            (
                Reason::Maintenance,
                |f| f.maintenance = Some("gc.pid".into()),
                true,
                true,
            ),
            (Reason::Dirty, |f| f.dirty = paths(&["a"]), true, false),
            (Reason::Filter, |f| f.filtered = paths(&["a"]), true, false),
            (Reason::Encoding, |f| f.encoded = paths(&["a"]), true, false),
            (
                Reason::Keywords,
                |f| f.with_keywords = paths(&["a"]),
                true,
                false,
            ),
            (
                Reason::Submodule,
                |f| f.submodules = paths(&["src"]),
                true,
                false,
            ),
            (Reason::Sparse, |f| f.sparse = true, true, false),
            (Reason::PartialClone, |f| f.partial = true, true, true),
            (
                Reason::HistoryMissing,
                |f| f.history_missing = Some("x".into()),
                true,
                true,
            ),
            (Reason::Refs, |f| f.strange_refs = true, true, true),
            (
                Reason::SharedBranch,
                |f| f.shared_with = Some("w".into()),
                true,
                false,
            ),
            (
                Reason::Link,
                |f| f.behind_links = paths(&["a"]),
                true,
                false,
            ),
            (
                Reason::CaseClash,
                |f| f.case_clashes = paths(&["a"]),
                true,
                false,
            ),
            (
                Reason::NotWritable,
                |f| f.not_writable = vec![".git".into()],
                true,
                true,
            ),
            (
                Reason::BranchTaken,
                |f| f.taken = Some("cto/x".into()),
                false,
                true,
            ),
        ];
        for (reason, make, merge, branch) in rows {
            let mut facts = clean();
            make(&mut facts);
            for (way, refused) in [(Way::Merge, merge), (Way::Branch, branch)] {
                let want = if refused { vec![reason] } else { vec![] };
                assert_eq!(reasons(way, &facts, &["src/a"]), want, "{reason:?} {way:?}");
            }
        }
    }

    #[test]
    fn paths_that_say_how_others_lie_are_refused() {
        let facts = clean();
        for (path, reason) in [
            (".gitattributes", Reason::Attributes),
            ("src/.gitattributes", Reason::Attributes),
            (".gitmodules", Reason::Submodule),
        ] {
            assert_eq!(reasons(Way::Merge, &facts, &[path]), [reason], "{path}");
            assert_eq!(reasons(Way::Branch, &facts, &[path]), [], "{path}");
        }
        for path in ["x.gitattributes", "src/.gitmodules", "srcs/a"] {
            let mut facts = clean();
            facts.submodules = paths(&["src/m"]);
            assert_eq!(reasons(Way::Merge, &facts, &[path]), [], "{path}");
        }
    }

    #[test]
    fn names_that_differ_in_case() {
        let tracked = paths(&["Readme", "src/a"]);
        let clash = |added: &[&str]| case_clashes(&paths(added), &tracked);
        assert_eq!(clash(&["README"]), paths(&["README"]));
        assert_eq!(clash(&["new", "NEW"]), paths(&["new", "NEW"]));
        assert_eq!(clash(&["other", "Readme"]), []);
        assert_eq!(clash(&[]), []);
    }

    #[test]
    fn every_reason_says_something_and_no_two_have_a_word() {
        let mut words: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert!(!reason.sentence().is_empty() && !reason.hint().is_empty());
        }
    }
}
