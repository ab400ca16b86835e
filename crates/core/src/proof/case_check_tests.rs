use super::*;
use crate::task::case_file;
use crate::values::digest::Digest;
use crate::workspace::tree::Entry;
use proptest::prelude::*;

const GOOD: &str = r#"schema_version = 1
task_id = "demo"
title = "Demo"
objective = "Do it"
risk_class = "low"
allowed_paths = ["a.py"]
forbidden_actions = ["push"]
mutation_mode = "copied-fixture"
verification_commands = ["true"]
verification_control = { patch = "control.patch" }
hidden_verification = ["sh check.sh"]
success_criteria = ["works"]
rollback = "discard the copy"
"#;

fn parsed(text: &str) -> CaseFile {
    case_file::parse_case("demo/case.toml", text.as_bytes()).unwrap()
}

fn tree(paths: &[(&str, FileKind)]) -> Tree {
    let entry = |kind| Entry {
        kind,
        bytes: 0,
        sha256: Digest::of(b""),
    };
    paths
        .iter()
        .map(|(path, kind)| (TreePath::new(*path), entry(*kind)))
        .collect()
}

/// A case without a fault, to be given one.
struct Lab {
    text: String,
    directory: &'static str,
    workspace: Tree,
    hidden_files: usize,
    scripts: Vec<(&'static str, Option<String>)>,
    beside: Vec<&'static str>,
    missing_inputs: Vec<String>,
}

impl Lab {
    fn new() -> Self {
        Self {
            text: GOOD.to_owned(),
            directory: "demo",
            workspace: tree(&[
                ("a.py", FileKind::Regular),
                ("test_a.py", FileKind::Regular),
            ]),
            hidden_files: 1,
            scripts: SCRIPTS.iter().map(|name| (*name, None)).collect(),
            beside: vec!["control.patch", "README.md"],
            missing_inputs: Vec::new(),
        }
    }

    fn with(from: &str, to: &str) -> Self {
        assert!(GOOD.contains(from), "{from}");
        Self {
            text: GOOD.replace(from, to),
            ..Self::new()
        }
    }

    fn marked(&self, mark: Mark) -> Vec<String> {
        let parsed = case_file::parse_case("demo/case.toml", self.text.as_bytes());
        let facts = CaseFacts {
            directory: self.directory,
            parsed: parsed.as_ref().map_err(Vec::as_slice),
            workspace: &self.workspace,
            hidden_files: self.hidden_files,
            scripts: self.scripts.iter().cloned().collect(),
            beside: self.beside.clone(),
            missing_inputs: self.missing_inputs.clone(),
        };
        look_over(&facts)
            .into_iter()
            .filter(|line| line.mark == mark)
            .map(|line| format!("{}: {}", line.check, line.detail))
            .collect()
    }

    fn wrong(&self) -> Vec<String> {
        self.marked(Mark::Wrong)
    }
}

#[test]
fn a_good_case_has_nothing_wrong() {
    assert!(Lab::new().wrong().is_empty());
    assert!(Lab::new().marked(Mark::Note).is_empty());
}

#[test]
fn each_fault_is_named() {
    let new = Lab::new;
    for (lab, want) in [
        (
            Lab {
                directory: "other",
                ..new()
            },
            "name: task_id is \"demo\", the directory \"other\"",
        ),
        (
            Lab {
                workspace: Tree::new(),
                ..new()
            },
            "workspace: workspace/ holds no file",
        ),
        (
            Lab {
                beside: vec![],
                ..new()
            },
            "control: there is no file \"control.patch\" beside the case file",
        ),
        (
            Lab {
                hidden_files: 0,
                ..new()
            },
            "hidden checks: hidden_verification names commands, but hidden/ holds no file",
        ),
        (
            Lab {
                missing_inputs: vec!["data".into()],
                ..new()
            },
            "inputs: \"data\" is not in inputs/",
        ),
        (
            Lab {
                beside: vec!["control.patch", "scirpts/nop.toml"],
                ..new()
            },
            "files: scirpts/nop.toml: means nothing to a case",
        ),
        (
            Lab::with("[\"true\"]", "[]"),
            "checks: verification_commands is empty: nothing could be verified",
        ),
        (
            Lab::with("hidden_verification = [\"sh check.sh\"]", ""),
            "hidden checks: 1 file(s) in hidden/, but hidden_verification runs none",
        ),
        (
            Lab::with("title =", "titel ="),
            "case file: demo/case.toml:3:1: unknown field `titel`",
        ),
    ] {
        let found = lab.wrong();
        assert!(
            found.iter().any(|line| line.starts_with(want)),
            "{want}: {found:?}"
        );
    }
}

#[test]
fn a_control_that_is_not_named_is_an_unknown_file() {
    let lab = Lab::with("{ patch = \"control.patch\" }", "{ runner = \"unittest\" }");
    assert_eq!(
        lab.wrong(),
        ["files: control.patch: means nothing to a case"]
    );
    let lab = Lab {
        beside: vec![],
        ..Lab::with("{ patch = \"control.patch\" }", "{ none = \"no way\" }")
    };
    assert_eq!(
        (lab.wrong().len(), lab.marked(Mark::Note)),
        (0, vec!["control: none: no way".to_owned()])
    );
}

#[test]
fn tests_that_may_be_edited_need_hidden_checks() {
    let open = Lab {
        hidden_files: 0,
        ..Lab::with("hidden_verification = [\"sh check.sh\"]", "")
    };
    assert!(
        open.wrong().is_empty() && open.marked(Mark::Note)[0].starts_with("hidden checks: none"),
        "{:?}",
        open.wrong()
    );
    let text = open.text.replace("[\"a.py\"]", "[\"a.py\", \"test_a.py\"]");
    let found = Lab { text, ..open }.wrong();
    assert!(found[0].contains("test_a.py may be changed"), "{found:?}");
    let text = GOOD.replace("[\"a.py\"]", "[\"a.py\", \"test_a.py\"]");
    assert!(Lab { text, ..Lab::new() }.wrong().is_empty());
}

#[test]
fn scripts_are_there_parse_and_are_known() {
    let lab = Lab {
        scripts: vec![
            ("nop", None),
            ("cheat", Some("line 2, column 1: no".into())),
            ("odd", None),
        ],
        ..Lab::new()
    };
    assert_eq!(
        lab.wrong(),
        [
            "scripts: scripts/oracle.toml is missing",
            "scripts: scripts/cheat.toml: line 2, column 1: no"
        ]
    );
    assert!(lab.marked(Mark::Note)[0].starts_with("scripts: scripts/odd.toml is not tried"));
}

#[test]
fn paths_that_cannot_be_changed_are_noted() {
    let lab = Lab::with("[\"a.py\"]", "[\"a.py\", \"new.py\"]");
    assert!(
        lab.marked(Mark::Note)[0].starts_with("allowed paths: new.py names nothing"),
        "{:?}",
        lab.marked(Mark::Note)
    );
}

#[test]
fn every_trial_has_one_good_end() {
    let ends: [(Status, &[Code]); 6] = [
        (Status::Pass, &[]),
        (Status::Fail, &[Code::NoDiff]),
        (Status::Fail, &[Code::VerificationFailed]),
        (Status::Fail, &[Code::VerificationUntrusted]),
        (Status::Blocked, &[Code::Timeout]),
        (Status::Blocked, &[Code::ToolchainUnavailable]),
    ];
    for (trial, good) in [
        (Trial::Oracle, [true, false, false, false, false, false]),
        (Trial::Nop, [false, true, false, false, false, false]),
        (Trial::Cheat, [false, true, true, true, false, false]),
        (Trial::Baseline, [false, false, true, false, true, false]),
    ] {
        let found = ends.map(|(status, codes)| trial.judge("x", status, codes).mark == Mark::Ok);
        assert_eq!(found, good, "{trial:?}");
    }
    let refused =
        Trial::Baseline.judge("baseline", Status::Blocked, &[Code::ContainmentUnavailable]);
    assert_eq!(
        (refused.mark, refused.detail.as_str()),
        (
            Mark::Wrong,
            "could not be tried, blocked: containment_unavailable"
        )
    );
    let both = Trial::Nop.judge(
        "nop",
        Status::Fail,
        &[Code::NoDiff, Code::VerificationFailed],
    );
    assert_eq!(
        both.detail,
        "must fail with no_diff alone, and ended fail: no_diff, verification_failed"
    );
}

#[test]
fn scripts_are_tried_by_name() {
    for (name, want) in [
        ("oracle", Some(Trial::Oracle)),
        ("nop", Some(Trial::Nop)),
        ("cheat", Some(Trial::Cheat)),
        ("cheat-exit", Some(Trial::Cheat)),
        ("cheater", None),
        ("oracle-2", None),
    ] {
        assert_eq!(Trial::of_script(name), want, "{name}");
    }
}

#[test]
fn a_neutral_change_stays_in_scope() {
    let neutral = |allowed: &str, paths: &[(&str, FileKind)]| {
        neutral_change(&parsed(&GOOD.replace("[\"a.py\"]", allowed)), &tree(paths))
    };
    let (regular, executable) = (FileKind::Regular, FileKind::Executable);
    let mode = |path: &str, mode| {
        Some(Neutral::Mode {
            path: path.into(),
            mode,
        })
    };
    assert_eq!(
        neutral("[\"a.py\"]", &[("a.py", regular), ("b.py", regular)]),
        mode("a.py", 0o755)
    );
    assert_eq!(
        neutral("[\"a.py\"]", &[("a.py", executable)]),
        mode("a.py", 0o644)
    );
    assert_eq!(
        neutral(
            "[\"test_a.py\", \"z.py\"]",
            &[("test_a.py", regular), ("z.py", regular)]
        ),
        mode("z.py", 0o755)
    );
    assert_eq!(
        neutral("[\"test_a.py\"]", &[("test_a.py", regular)]),
        mode("test_a.py", 0o755)
    );
    let empty = |path: &str| Some(Neutral::Empty { path: path.into() });
    assert_eq!(
        neutral("[\"new.py\"]", &[("a.py", regular)]),
        empty("new.py")
    );
    assert_eq!(
        neutral("[\"src/\"]", &[("a.py", regular)]),
        empty("src/cto-neutral.txt")
    );
    assert_eq!(neutral("[\"*.md\"]", &[("a.py", regular)]), empty("cto.md"));
    assert_eq!(neutral("[\"link\"]", &[("link", FileKind::Symlink)]), None);
}

proptest! {
    /// Whatever a case allows and holds, the change is within its scope, and a change.
    #[test]
    fn a_neutral_change_is_always_an_allowed_one(
        allowed_rules in proptest::collection::btree_set("(a|b|test_c\\.py|d/|d/e|\\*|a\\*/)", 1..4),
        forbidden_rules in proptest::collection::btree_set("(a|x|d/e|b)", 0..3),
        files in proptest::collection::btree_map("(a|b|test_c\\.py|d/e|d/f|ab/x)", any::<bool>(), 0..5),
    ) {
        let quoted = |rules: &std::collections::BTreeSet<String>| rules.iter().map(|rule| format!("{rule:?}")).collect::<Vec<_>>().join(", ");
        let text = GOOD.replace("[\"a.py\"]", &format!("[{}]\nforbidden_paths = [{}]", quoted(&allowed_rules), quoted(&forbidden_rules)));
        let Ok(case) = case_file::parse_case("demo/case.toml", text.as_bytes()) else { return Ok(()) };
        let kind = |executable: &bool| if *executable { FileKind::Executable } else { FileKind::Regular };
        let workspace: Tree = files
            .iter()
            .map(|(path, executable)| (TreePath::new(path.as_str()), Entry { kind: kind(executable), bytes: 0, sha256: Digest::of(b"") }))
            .collect();
        match neutral_change(&case, &workspace) {
            Some(Neutral::Mode { path, mode }) => {
                let path = TreePath::new(path.as_str());
                prop_assert!(allowed(&case, &path));
                prop_assert_eq!(mode & 0o100 == 0, workspace[&path].kind == FileKind::Executable);
            }
            Some(Neutral::Empty { path }) => {
                let path = TreePath::new(path.as_str());
                prop_assert!(allowed(&case, &path) && !workspace.contains_key(&path));
            }
            None => prop_assert!(!workspace.keys().any(|path| allowed(&case, path))),
        }
    }
}

#[test]
fn a_hidden_check_in_python_loads_nothing_by_chance() {
    for (command, fine) in [
        ("sh check.sh", true),
        ("python3 -I check.py", true),
        ("python3 -IB check.py", true),
        ("/usr/bin/python3.12 -B -I check.py", true),
        ("python3 -P -E check.py", true),
        ("cat python-notes.txt", true),
        ("python3 check.py", false),
        ("python check.py -I", false),
        ("sh x.sh && pypy3 check.py", false),
        ("sh -c 'python3 -m unittest check'", false),
        ("python3 -I a.py; python3 b.py", false),
        ("python3 -P check.py", false),
    ] {
        assert_eq!(keeps_python_apart(command), fine, "{command}");
        let line = format!("hidden_verification = [{command:?}]");
        let lab = Lab::with("hidden_verification = [\"sh check.sh\"]", &line);
        assert_eq!(lab.wrong().is_empty(), fine, "{command}: {:?}", lab.wrong());
    }
}
