use proptest::prelude::*;

use super::*;
use crate::checks::test_ids::Tally;
use crate::checks::test_log::{frame_begin, frame_end};
use crate::run::event::{CheckKind, TimeLimit};
use crate::workspace::environment::{Carried, EnvironmentKind};

fn digest(of: &str) -> Digest {
    Digest::of(of.as_bytes())
}

fn parts() -> BaselineParts {
    BaselineParts {
        binary: digest("binary"),
        host: digest("host"),
        tree: digest("tree"),
        git: vec!["tree".into(), "commit".into()],
        setup: vec!["make".into()],
        commands: vec!["pytest".into()],
        runner: Runner::Pytest,
        kit: digest("kit"),
        environments: vec![EnvironmentUse {
            path: TreePath::new(".venv"),
            kind: EnvironmentKind::PythonVenv,
            carried: Carried::Overlay,
            why: None,
            files: 2,
            bytes: 3,
            hidden: 0,
            state: Some(digest("state")),
        }],
        inputs: BTreeMap::from([("data".into(), digest("data"))]),
        toolchains: vec![Toolchain {
            name: "pytest".into(),
            program: "~/bin/pytest".into(),
            sha256: digest("pytest"),
            also: Vec::new(),
        }],
        search: vec!["dir /usr/bin".into()],
        shown: BTreeMap::from([("/opt/x at /opt/x".into(), digest("x"))]),
        variables: BTreeMap::from([("A".into(), "1".into())]),
        limits: Limits::default(),
        containment: Containment::Strict,
        masked: vec![TreePath::new(".env")],
        trace: false,
        workspace: "Overlay".into(),
        stand: "/home/me/work".into(),
    }
}

type Change = (&'static str, fn(&mut BaselineParts));
type Forgery = (&'static str, fn(&mut KeptBaseline));

/// Changes of every field, in several spellings. Whoever adds a field has to say here what changes
/// it: the first lines name them all.
fn changes() -> Vec<Change> {
    let BaselineParts {
        binary: _,
        host: _,
        tree: _,
        git: _,
        setup: _,
        commands: _,
        runner: _,
        kit: _,
        environments: _,
        inputs: _,
        toolchains: _,
        search: _,
        shown: _,
        variables: _,
        limits: _,
        containment: _,
        masked: _,
        trace: _,
        workspace: _,
        stand: _,
    } = parts();
    vec![
        ("binary", |p| p.binary = digest("other")),
        ("host", |p| p.host = digest("other")),
        ("tree", |p| p.tree = digest("other")),
        ("git tree", |p| p.git[0] = "other".into()),
        ("git commit", |p| p.git[1] = "other".into()),
        ("git shorter", |p| drop(p.git.pop())),
        ("setup", |p| p.setup[0].push(' ')),
        ("no setup", |p| p.setup.clear()),
        ("a command", |p| p.commands[0].push_str(" -q")),
        ("one more command", |p| p.commands.push("true".into())),
        ("a command that was setup", |p| {
            let moved = p.setup.remove(0);
            p.commands.insert(0, moved);
        }),
        ("runner", |p| p.runner = Runner::Unittest),
        ("kit", |p| p.kit = digest("other")),
        ("state of an environment", |p| {
            p.environments[0].state = Some(digest("other"))
        }),
        ("no state", |p| p.environments[0].state = None),
        ("how it is carried", |p| {
            p.environments[0].carried = Carried::Not
        }),
        ("no environment", |p| p.environments.clear()),
        ("an input", |p| {
            p.inputs.insert("data".into(), digest("other"));
        }),
        ("another place of an input", |p| {
            p.inputs = BTreeMap::from([("date".into(), digest("data"))])
        }),
        ("a toolchain", |p| p.toolchains[0].sha256 = digest("other")),
        ("another name of it", |p| {
            p.toolchains[0].name = "python".into()
        }),
        ("search", |p| p.search[0].push('2')),
        ("order of the search", |p| {
            p.search.insert(0, "dir /bin".into())
        }),
        ("what is shown", |p| {
            p.shown.insert("/opt/y at /opt/y".into(), digest("x"));
        }),
        ("what it holds", |p| {
            p.shown.insert("/opt/x at /opt/x".into(), digest("y"));
        }),
        ("a value", |p| {
            p.variables.insert("A".into(), "2".into());
        }),
        ("a variable", |p| {
            p.variables.insert("B".into(), String::new());
        }),
        ("time", |p| p.limits.verification_wall_seconds += 1),
        ("memory", |p| p.limits.memory_mib += 1),
        ("cpus", |p| p.limits.cpus = Some(1)),
        ("containment", |p| p.containment = Containment::Contained),
        ("masks", |p| p.masked.push(TreePath::new("secret"))),
        ("trace", |p| p.trace = true),
        ("copies", |p| p.workspace = "Copy".into()),
        ("where it stands", |p| p.stand.push('/')),
    ]
}

#[test]
fn each_part_renews_the_key() {
    let key = parts().key().unwrap();
    assert_eq!(parts().key().unwrap(), key);
    let mut keys = vec![key];
    for (what, change) in changes() {
        let mut other = parts();
        change(&mut other);
        let other = other.key().unwrap();
        assert!(!keys.contains(&other), "{what}");
        keys.push(other);
    }
}

proptest! {
    /// Whatever is changed, and however much of it: only the same has the same key.
    #[test]
    fn only_the_same_has_the_same_key(
        one in proptest::collection::btree_set(0..35usize, 0..6),
        other in proptest::collection::btree_set(0..35usize, 0..6),
    ) {
        let all = changes();
        let changed = |which: &std::collections::BTreeSet<usize>| {
            let mut made = parts();
            // What takes away comes last, so that there is something to change.
            for index in which {
                let (what, change) = all[*index];
                let gone = match what {
                    "git commit" | "git shorter" => made.git.len() < 2,
                    "setup" | "a command that was setup" => made.setup.is_empty(),
                    _ if what.contains("environment") || what.contains("state") || what.contains("carried") => {
                        made.environments.is_empty()
                    }
                    _ => false,
                };
                if !gone {
                    change(&mut made);
                }
            }
            made
        };
        let (one, other) = (changed(&one), changed(&other));
        prop_assert_eq!(one == other, one.key().unwrap() == other.key().unwrap());
    }
}

fn check(end: ProcessEnd) -> Check {
    Check {
        kind: CheckKind::Visible,
        command: "pytest".into(),
        end,
        duration_ms: 5,
        lacks: Vec::new(),
    }
}

fn ids(names: &[&str]) -> TestIds {
    let one = Tally {
        passed: 1,
        ..Tally::default()
    };
    names.iter().map(|name| ((*name).to_owned(), one)).collect()
}

fn heard(names: &[&str]) -> Heard {
    Heard {
        ids: ids(names),
        ..Heard::default()
    }
}

fn ran(end: ProcessEnd, names: &[&str]) -> TestIdDocument {
    TestIdDocument {
        schema_version: 1,
        runners: Vec::new(),
        runner: Runner::Pytest,
        baseline_not_run: None,
        baseline: vec![check(end)],
        commands: vec![CommandTests {
            command: "pytest".into(),
            baseline: ids(names),
            verified: TestIds::new(),
            baseline_runs: Runs::default(),
            verified_runs: Runs::default(),
            baseline_whole: Whole::default(),
            verified_whole: Whole::default(),
        }],
        files: None,
    }
}

#[test]
fn only_what_was_green_and_named_tests_is_kept() {
    let exit = |code| ProcessEnd::Exited { code };
    for (what, ids, want) in [
        ("green", ran(exit(0), &["a"]), true),
        ("red", ran(exit(1), &["a"]), false),
        ("no tests", ran(exit(0), &[]), false),
        ("no program", ran(exit(127), &["a"]), false),
        ("no such program", ran(exit(126), &["a"]), false),
        (
            "a time limit",
            ran(
                ProcessEnd::TimedOut {
                    limit: TimeLimit::Wall,
                },
                &["a"],
            ),
            false,
        ),
        (
            "a signal",
            ran(ProcessEnd::Signalled { signal: 9 }, &["a"]),
            false,
        ),
        ("cancelled", ran(ProcessEnd::Cancelled, &["a"]), false),
        ("lost", ran(ProcessEnd::Lost, &["a"]), false),
        (
            "no setup",
            TestIdDocument {
                baseline_not_run: Some("setup failed".into()),
                ..ran(exit(0), &["a"])
            },
            false,
        ),
        (
            "not all of it",
            TestIdDocument {
                baseline: Vec::new(),
                ..ran(exit(0), &["a"])
            },
            false,
        ),
    ] {
        assert_eq!(may_be_kept(&ids), want, "{what}");
        assert_eq!(KeptBaseline::of(&ids, made(&[])).is_some(), want, "{what}");
    }
}

const NONCE: &str = "abcdefgh";

fn run_id() -> RunId {
    "20260102T030405Z-quick-22abcdef".parse().unwrap()
}

fn at(millis: i64) -> Utc {
    Utc::from_millis(1_800_000_000_000 + millis).unwrap()
}

fn made(log: &[u8]) -> Made {
    Made {
        key: digest("key"),
        at: at(0),
        run_id: run_id(),
        contract_digest: digest("contract"),
        tree: digest("tree"),
        log_nonce: NONCE.into(),
        log_sha256: Digest::of(log),
    }
}

fn log() -> String {
    let head = test_log::log_header(&run_id(), &digest("contract"), &digest("tree"), NONCE);
    let begin = frame_begin(NONCE, 1, Section::Baseline);
    let end = frame_end(
        NONCE,
        1,
        Section::Baseline,
        ProcessEnd::Exited { code: 0 },
        5,
    );
    format!("{head}\n{begin}\n$ pytest\n1 passed\n\n{end}\n")
}

fn kept() -> KeptBaseline {
    let done = ran(ProcessEnd::Exited { code: 0 }, &["a", "b"]);
    KeptBaseline::of(&done, made(log().as_bytes())).unwrap()
}

#[test]
fn it_is_known_by_its_key_for_a_week() {
    let kept = kept();
    for (what, key, now, want) in [
        ("at once", "key", at(0), true),
        ("the last moment", "key", at(KEPT_MILLIS), true),
        ("too old", "key", at(KEPT_MILLIS + 1), false),
        ("of the future", "key", at(-1), false),
        ("another key", "other", at(0), false),
    ] {
        assert_eq!(kept.is_known(&digest(key), now), want, "{what}");
    }
    let forged: [Forgery; 4] = [
        ("another version", |kept| kept.schema_version = 2),
        ("no check", |kept| kept.checks.clear()),
        ("a check that timed out", |kept| {
            kept.checks[0].end = ProcessEnd::Cancelled
        }),
        ("no test", |kept| kept.commands[0].tests.clear()),
    ];
    for (what, forge) in forged {
        let mut other = kept.clone();
        forge(&mut other);
        assert!(!other.is_known(&digest("key"), at(0)), "{what}");
    }
}

#[test]
fn it_is_compared_as_a_baseline_of_the_run_would_be() {
    let found = kept().compared_with(vec![heard(&["a", "b", "c"])]);
    assert!(found.is_about(&["pytest".to_owned()], &[]));
    assert_eq!(found.compared(digest(""), &[]).missing_count, 0);
    let found = kept().compared_with(vec![heard(&["b"])]);
    assert_eq!(found.compared(digest(""), &[]).missing, ["a: not there"]);
    let found = kept().compared_with(Vec::new());
    assert_eq!(found.compared(digest(""), &[]).missing_count, 2);
}

#[test]
fn its_log_is_framed_by_its_own_nonce() {
    let kept = kept();
    assert_eq!(kept.log_contradiction(log().as_bytes()), None);
    let says = |text: &str| {
        let mut other = kept.clone();
        other.log_sha256 = Digest::of(text.as_bytes());
        other.log_contradiction(text.as_bytes())
    };
    assert_eq!(
        kept.log_contradiction(b""),
        Some("is not the log that the baseline names")
    );
    assert_eq!(
        says(&log().replace("tree", "treé")),
        Some("does not begin with this run, contract and tree")
    );
    assert_eq!(
        says(&log().replace("5 ms", "6 ms")),
        Some("a section is not what the chain says ran")
    );
    let head = log().lines().take(5).collect::<Vec<_>>().join("\n") + "\n";
    assert_eq!(
        says(&head),
        Some("a section that the chain says ran is missing")
    );
    let mut other = kept.clone();
    other.log_nonce = "hgfedcba".into();
    assert!(other.log_contradiction(log().as_bytes()).is_some());
}

#[test]
fn who_may_have_relied_on_it() {
    let (kept, own) = (kept(), "20260109T030405Z-quick-22abcdeg".parse().unwrap());
    let tree = digest("tree");
    let run = Relying {
        run_id: &own,
        begun: at(10),
        ended: at(20),
        tree: Some(&tree),
        runner: Some(Runner::Pytest),
    };
    assert_eq!(kept.unusable(&run), None);
    let begun = at(KEPT_MILLIS);
    let later = Relying {
        begun,
        ended: at(KEPT_MILLIS + 99),
        ..run
    };
    assert_eq!(kept.unusable(&later), None);
    let (own, other) = (run_id(), digest("other"));
    for (what, run) in [
        (
            "too late",
            Relying {
                begun: at(KEPT_MILLIS + 1),
                ended: at(KEPT_MILLIS + 2),
                ..run
            },
        ),
        (
            "too early",
            Relying {
                begun: at(-9),
                ended: at(-1),
                ..run
            },
        ),
        (
            "itself",
            Relying {
                run_id: &own,
                ..run
            },
        ),
        (
            "another tree",
            Relying {
                tree: Some(&other),
                ..run
            },
        ),
        ("no tree", Relying { tree: None, ..run }),
        (
            "another runner",
            Relying {
                runner: Some(Runner::Cargo),
                ..run
            },
        ),
        (
            "no runner",
            Relying {
                runner: None,
                ..run
            },
        ),
    ] {
        assert!(kept.unusable(&run).is_some(), "{what}");
    }
}
