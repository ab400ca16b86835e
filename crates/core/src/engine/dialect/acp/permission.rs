//! May it? Decided from the contract and from nothing else. It opens nothing: the jail refuses what it refuses
//! and the tree is measured afterwards, whatever was answered here.

use super::line::{Choice, ToolCall};
use crate::run::event::{PermissionAnswer, PermissionRule};
use crate::values::paths::{PathRule, PathStanding, TreePath, path_standing};

/// Longer ids are not echoed.
const MAX_OPTION: usize = 1024;

/// What the contract lets an engine change, and where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scope {
    /// The workspace, as the engine knows it.
    pub root: String,
    pub allowed: Vec<PathRule>,
    pub forbidden: Vec<PathRule>,
}

/// Where a path lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    InScope,
    InWorkspace,
    Outside,
}

/// The rule that decides a question, and whether it says yes.
pub fn decide(scope: &Scope, call: &ToolCall) -> (PermissionRule, bool) {
    let Some(paths) = call.paths() else {
        return (PermissionRule::Unknown, false);
    };
    let worst = paths.iter().map(|path| scope.place(path));
    let worst = worst.max_by_key(|place| *place as u8);
    match (call.kind.as_deref().unwrap_or("other"), worst) {
        ("execute", _) => (PermissionRule::Command, true),
        ("fetch", _) => (PermissionRule::Fetch, false),
        ("switch_mode", _) => (PermissionRule::Mode, false),
        (_, None) => (PermissionRule::Unknown, false),
        ("read" | "search", Some(Place::InScope | Place::InWorkspace)) => {
            (PermissionRule::InWorkspace, true)
        }
        ("edit" | "delete" | "move" | "other", Some(Place::InScope)) => {
            (PermissionRule::InScope, true)
        }
        (
            "read" | "search" | "edit" | "delete" | "move" | "other",
            Some(Place::InWorkspace | Place::Outside),
        ) => (PermissionRule::OutOfScope, false),
        (_, Some(_)) => (PermissionRule::Unknown, false),
    }
}

/// The option that says so once: by its kind, never by its name, and never one that holds for longer.
pub fn choose(options: &[Choice], allow: bool) -> (PermissionAnswer, Option<&str>) {
    let (kind, answer) = match allow {
        true => ("allow_once", PermissionAnswer::AllowOnce),
        false => ("reject_once", PermissionAnswer::RejectOnce),
    };
    let fits = |choice: &&Choice| choice.kind == kind && choice.option_id.len() <= MAX_OPTION;
    match options.iter().find(fits) {
        Some(choice) => (answer, Some(&choice.option_id)),
        None => (PermissionAnswer::Cancelled, None),
    }
}

impl Scope {
    /// A path as the workspace would name it; none if it does not plainly lie there.
    fn inside<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = match path.strip_prefix('/') {
            None => path,
            Some(_) if self.root.is_empty() => return None,
            Some(_) => match path.strip_prefix(self.root.trim_end_matches('/'))? {
                "" => "",
                rest => rest.strip_prefix('/')?,
            },
        };
        let rest = rest.strip_prefix("./").unwrap_or(rest);
        Some(rest.strip_suffix('/').unwrap_or(rest))
    }

    fn place(&self, path: &str) -> Place {
        let Some(inside) = self.inside(path) else {
            return Place::Outside;
        };
        // The workspace itself.
        if inside.is_empty() || inside == "." {
            return match path.is_empty() {
                true => Place::Outside,
                false => Place::InWorkspace,
            };
        }
        // `..` is not followed, and no link is looked at: what does not plainly lie there lies elsewhere.
        let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if inside.starts_with('~')
            || inside.contains(['\\', ':'])
            || inside.chars().any(char::is_control)
            || !inside.split('/').all(plain)
        {
            return Place::Outside;
        }
        // A name that ends like a directory's is no file that may be changed.
        if path.ends_with('/') {
            return Place::InWorkspace;
        }
        let is_git = |part: &str| part.eq_ignore_ascii_case(".git");
        let tree = TreePath::new(inside.as_bytes());
        match path_standing(&tree, &self.allowed, &self.forbidden) {
            PathStanding::Allowed if !inside.split('/').any(is_git) => Place::InScope,
            _ => Place::InWorkspace,
        }
    }

    /// A path for people: without the way to the workspace.
    pub fn shown<'p>(&self, path: &'p str) -> &'p str {
        let below = |root: &str| {
            let rest = path.strip_prefix(root.trim_end_matches('/'))?;
            rest.strip_prefix('/').filter(|rest| !rest.is_empty())
        };
        let own = (!self.root.is_empty()).then(|| below(&self.root)).flatten();
        // What a bundle calls the repository.
        own.or_else(|| below("{repo}")).unwrap_or(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn scope() -> Scope {
        Scope {
            root: "/home/me/project".into(),
            allowed: vec!["src/".parse().unwrap(), "a.py".parse().unwrap()],
            forbidden: vec!["src/keep.py".parse().unwrap()],
        }
    }

    fn asked(kind: Option<&str>, paths: &[&str]) -> (PermissionRule, bool) {
        let places: Vec<_> = paths.iter().map(|path| json!({"path": path})).collect();
        let call = json!({"toolCallId": "1", "kind": kind, "locations": places});
        decide(&scope(), &serde_json::from_value(call).unwrap())
    }

    #[test]
    fn edits_in_scope_may_be_made_and_no_others() {
        let yes = (PermissionRule::InScope, true);
        let no = (PermissionRule::OutOfScope, false);
        for (paths, want) in [
            (&["/home/me/project/a.py"][..], yes),
            (&["a.py"], yes),
            (&["./a.py"], yes),
            (&["src/deep/b.py", "/home/me/project/a.py"], yes),
            (&["src/keep.py"], no),
            (&["a.py", "b.py"], no),
            (&["/home/me/project/b.py"], no),
            (&["/home/me/project-two/a.py"], no),
            (&["/home/me/project/../project/a.py"], no),
            (&["src/../../a.py"], no),
            (&["src//b.py"], no),
            (&["src/./b.py"], no),
            (&["src/.git/config"], no),
            (&["a.py/"], no),
            (&["/etc/passwd"], no),
            (&["/home/me/project"], no),
            (&["/home/me/project/"], no),
            (&["."], no),
            (&[""], no),
            (&["~/a.py"], no),
            (&["file:///home/me/project/a.py"], no),
            (&["src\\..\\x"], no),
            (&["src/a\u{1b}[31m.py"], no),
        ] {
            for kind in ["edit", "delete", "move", "other"] {
                assert_eq!(asked(Some(kind), paths), want, "{kind} {paths:?}");
            }
            assert_eq!(asked(None, paths), want, "{paths:?}");
        }
    }

    #[test]
    fn commands_may_run_and_nothing_is_fetched_or_switched_or_unknown() {
        use PermissionRule as R;
        for (kind, paths, want) in [
            ("execute", &[][..], (R::Command, true)),
            ("execute", &["/etc"], (R::Command, true)),
            ("fetch", &["a.py"], (R::Fetch, false)),
            ("switch_mode", &[], (R::Mode, false)),
            ("edit", &[], (R::Unknown, false)),
            ("read", &[], (R::Unknown, false)),
            ("read", &["b.py"], (R::InWorkspace, true)),
            ("search", &["/home/me/project"], (R::InWorkspace, true)),
            ("read", &["/etc/passwd"], (R::OutOfScope, false)),
            ("think", &["a.py"], (R::Unknown, false)),
            ("Edit", &["a.py"], (R::Unknown, false)),
        ] {
            assert_eq!(asked(Some(kind), paths), want, "{kind} {paths:?}");
        }
    }

    #[test]
    fn every_place_a_call_names_counts() {
        let call =
            |value: serde_json::Value| -> ToolCall { serde_json::from_value(value).unwrap() };
        let fine = json!([{"path": "a.py"}]);
        for hidden in [
            json!({"kind": "edit", "locations": fine, "content": [{"type": "diff", "path": "/etc/x"}]}),
            json!({"kind": "edit", "locations": fine, "rawInput": {"file_path": "b.py"}}),
            json!({"kind": "edit", "locations": fine, "rawInput": {"changes": {"b.py": {}}}}),
        ] {
            let said = decide(&scope(), &call(hidden.clone()));
            assert_eq!(said, (PermissionRule::OutOfScope, false), "{hidden}");
        }
        let many: Vec<_> = (0..5000)
            .map(|n| json!({"path": format!("src/{n}")}))
            .collect();
        let said = decide(&scope(), &call(json!({"kind": "edit", "locations": many})));
        assert_eq!(said, (PermissionRule::Unknown, false));
    }

    #[test]
    fn an_option_is_chosen_by_kind_and_holds_once() {
        let option = |id: &str, kind: &str| Choice {
            option_id: id.into(),
            kind: kind.into(),
        };
        let all = [
            option("reject_once", "allow_always"),
            option("allow_once", "reject_always"),
            option("yes", "allow_once"),
            option("no", "reject_once"),
        ];
        assert_eq!(
            choose(&all, true),
            (PermissionAnswer::AllowOnce, Some("yes"))
        );
        assert_eq!(
            choose(&all, false),
            (PermissionAnswer::RejectOnce, Some("no"))
        );
        for none in [&all[..2], &[], &[option(&"x".repeat(5000), "allow_once")]] {
            assert_eq!(choose(none, true), (PermissionAnswer::Cancelled, None));
            assert_eq!(choose(none, false), (PermissionAnswer::Cancelled, None));
        }
    }

    proptest! {
        /// Whatever is asked about, a yes to an edit means that every path is plainly in scope.
        #[test]
        fn a_yes_means_in_scope(
            parts in proptest::collection::vec("(src|a\\.py|\\.\\.|\\.|~|keep\\.py|home|me|project|[a-z/]{0,4})", 0..6),
            absolute in any::<bool>(),
        ) {
            let path = format!("{}{}", if absolute { "/home/me/project/" } else { "" }, parts.join("/"));
            if asked(Some("edit"), &[&path]).1 {
                let rest = path.strip_prefix("/home/me/project/").unwrap_or(&path);
                let rest = rest.strip_prefix("./").unwrap_or(rest);
                prop_assert!(rest == "a.py" || rest.starts_with("src/"), "{}", path);
                prop_assert!(!rest.split('/').any(|part| part == ".."), "{}", path);
            }
        }
    }
}
