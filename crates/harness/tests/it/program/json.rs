//! `--json` is an interface: the top-level keys of every command's document are exactly these.

use std::collections::BTreeSet;

use cto_testkit::{Answer, House, ORACLE, Repo};

use crate::house;
use crate::passed;

const ERROR: &[&str] = &[
    "because",
    "code",
    "exit_code",
    "hint",
    "so",
    "what",
    "where",
];

/// Arguments, exit code, and the keys beside `schema_version` and `command`.
type Row<'a> = (&'a [&'a str], i32, &'a [&'a str]);

const RUN: &[&str] = &[
    "bundle",
    "exit_code",
    "failure_reason",
    "next",
    "report",
    "run_id",
    "status",
    "workspace",
];
const APPLY: &[&str] = &[
    "applied",
    "changed_files",
    "checks_differ",
    "landed",
    "repository",
    "reverifies",
    "run_id",
    "was_applied_before",
    "would_apply",
];

const DOCUMENTS: &[Row<'_>] = &[
    (&["run"], 0, RUN),
    (
        &["run", "sh-word-count", "r1-string-slugify"],
        0,
        &["cost", "exit_code", "interrupted", "jobs", "runs"],
    ),
    (&["show"], 0, &["bundle", "report", "seal", "state"]),
    (&["verify"], 0, &["bundles"]),
    (&["bundle", "pack"], 0, &["bytes", "file", "next", "run_id"]),
    (&["keys"], 0, &["keys"]),
    (&["keys", "show"], 0, &["keys"]),
    (&["keys", "rotate"], 0, &["keys"]),
    (&["runs"], 0, &["runs", "total"]),
    (&["recover"], 0, &["landings", "recovered"]),
    (&["ladder"], 0, &["engines"]),
    (&["requests"], 0, &["requests"]),
    (
        &["contract"],
        0,
        &["contract", "contract_digest", "task_digest"],
    ),
    (&["engines"], 0, &["broken", "engines", "own_engines"]),
    (&["engines", "new", "mine"], 0, &["engine", "next", "path"]),
    (
        &["engines", "close", "pi"],
        0,
        &["closed", "engine", "previous"],
    ),
    (
        &["doctor"],
        -1,
        &[
            "advice",
            "as_root",
            "checkouts",
            "containment",
            "git",
            "here",
            "jail",
            "kernel",
            "missing",
            "programs",
            "reachable_stages",
            "state_home",
            "unused_variables",
        ],
    ),
    (&["eligibility"], 0, &["decision", "gates"]),
    (&["validate", "--list"], 0, &["validators"]),
    (&["schema"], 0, &["schemas"]),
    (
        &["diff"],
        0,
        &[
            "added", "bundle", "bytes", "files", "patch", "removed", "run_id", "sha256", "status",
        ],
    ),
    (&["log"], 0, &["parts", "run_id"]),
    (
        &["replay"],
        0,
        &[
            "agent_phases",
            "bundle",
            "chain_problem",
            "duration_ms",
            "entries",
            "gaps",
            "good_events",
            "phases",
            "problem",
            "run_id",
            "standing",
            "state",
            "trace",
        ],
    ),
    (&["cases"], 0, &["cases"]),
    (
        &["cases", "show", "sh-word-count"],
        0,
        &[
            "allowed_paths",
            "built_in",
            "case",
            "files",
            "forbidden_paths",
            "hidden_verification",
            "objective",
            "scripts",
            "setup",
            "success_criteria",
            "title",
            "toolchains",
            "verification_commands",
            "verification_control",
        ],
    ),
    (&["case", "new", "mine"], 0, &["case", "directory", "next"]),
    (
        &["case", "check", "sh-word-count", "--static"],
        0,
        &["cases", "exit_code", "ok"],
    ),
    (
        &["matrix", "--row", "no-diff"],
        0,
        &[
            "counts",
            "engine",
            "exit_code",
            "interrupted",
            "rows",
            "time",
        ],
    ),
    (&["config"], 0, &["exists", "file", "settings"]),
    (&["config", "path"], 0, &["exists", "path"]),
    (&["config", "check"], 0, &["file", "ok"]),
    (&["completions", "bash"], 0, &["script", "shell"]),
    (&["man"], 0, &["pages"]),
    (&["help"], 0, &["text"]),
];

fn keys(value: &serde_json::Value) -> BTreeSet<String> {
    value
        .as_object()
        .unwrap_or_else(|| panic!("not an object: {value}"))
        .keys()
        .cloned()
        .collect()
}

fn words(args: &[&str]) -> String {
    // The name of the command, without what it is given.
    let given = [
        "bash",
        "sh-word-count",
        "r1-string-slugify",
        "mine",
        "pi",
        "--static",
        "--row",
        "no-diff",
        "--list",
    ];
    args.iter()
        .copied()
        .filter(|word| !given.contains(word))
        .collect::<Vec<_>>()
        .join(" ")
}

fn assert_keys(answer: &Answer, command: &str, more: &[&str]) {
    let document = answer.json();
    let mut want: BTreeSet<String> = more.iter().map(|key| (*key).to_owned()).collect();
    want.extend(["schema_version".to_owned(), "command".to_owned()]);
    assert_eq!(keys(&document), want, "{command}");
    assert_eq!(
        (
            document["schema_version"].as_u64(),
            document["command"].as_str()
        ),
        (Some(1), Some(command))
    );
    assert_eq!(answer.stderr, "", "{command} talks beside its document");
}

#[test]
fn every_document_has_exactly_its_keys() {
    let (house, _) = passed();
    for (args, code, more) in DOCUMENTS {
        let mut line = args.to_vec();
        line.push("--json");
        let answer = house.cto(&line);
        assert!(
            *code < 0 || answer.code == Some(*code),
            "{args:?}: {answer:?}"
        );
        assert_keys(&answer, &words(args), more);
    }
}

#[test]
fn try_and_apply_have_exactly_their_keys() {
    let house = house();
    let repo = Repo::new(&house, "project");
    let keys = [RUN, &["remembered"]].concat();
    assert_keys(&house.try_on(&repo, ORACLE, &[]).0, "try", &keys);
    assert_keys(
        &house.cto(&["apply", "last", "--repo", repo.path(), "--check", "--json"]),
        "apply",
        APPLY,
    );
    let (_, bundle) = house.try_on(&repo, ORACLE, &[]);
    let again = house.cto(&["reverify", &bundle.run_id(), "--json"]);
    assert_keys(&again, "reverify", RUN);
}

#[test]
fn what_is_about_a_repository_has_exactly_its_keys() {
    let house = house();
    let repo = Repo::new(&house, "project");
    let set = ["--test", "true", "--allow", "answer.txt"];
    let rows: [Row<'_>; 3] = [
        (&["project", "set"], 0, &["remembered", "repository"]),
        (
            &["project", "show"],
            0,
            &[
                "of_another_repository",
                "proposed",
                "remembered",
                "repository",
            ],
        ),
        (&["project", "forget"], 0, &["forgotten", "repository"]),
    ];
    for (args, code, more) in rows {
        let mut line = [args, &["--repo", repo.path(), "--json"]].concat();
        line.extend(set.iter().filter(|_| args[1] == "set"));
        let answer = house.cto(&line);
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert_keys(&answer, &args.join(" "), more);
    }
    let looked = [
        "because",
        "belief",
        "blockers",
        "commands",
        "ending",
        "exit_code",
        "from",
        "hint",
        "repository",
        "said",
        "tests",
        "wall_ms",
    ];
    let args = ["doctor", "--repo", repo.path(), "--test", "true", "--json"];
    assert_keys(&house.cto(&args), "doctor", &looked);
}

#[test]
fn every_command_is_in_the_list() {
    let mut listed: BTreeSet<&str> = DOCUMENTS.iter().map(|(args, _, _)| args[0]).collect();
    // Need more than a line; and the jail alone prints what its command prints.
    listed.extend([
        "try", "project", "apply", "reverify", "exec", "admit", "setup", "request", "approve",
        "deny", "outcome", "revert",
    ]);
    let tree = cto_harness::cli::command_tree();
    let shown = tree
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .map(|sub| sub.get_name());
    let missing: Vec<&str> = shown.filter(|name| !listed.contains(name)).collect();
    assert!(missing.is_empty(), "add a row to DOCUMENTS: {missing:?}");
}

fn assert_failure(house: &House, args: &[&str]) {
    let document = house.cto(args).json();
    assert_eq!(
        keys(&document),
        ["command", "error", "schema_version"]
            .map(str::to_owned)
            .into(),
        "{args:?}"
    );
    assert_eq!(
        keys(&document["error"]),
        ERROR.iter().map(|key| (*key).to_owned()).collect(),
        "{args:?}"
    );
}

#[test]
fn every_failure_has_exactly_its_keys() {
    let house = house();
    for args in [
        &["--json"][..],
        &["dance", "--json"],
        &["run", "nope", "--json"],
        &["run", "--json", "--nonsense"],
        &["show", "--json"],
        &["verify", "nope", "--json"],
        &["diff", "--json"],
        &["replay", "--json"],
        &["contract", "nope", "--json"],
        &["schema", "nope", "--json"],
        &["config", "check", "nope", "--json"],
        &["exec", "--json"],
        &["help", "nope", "--json"],
        &["health.sh", "--json"],
    ] {
        assert_failure(&house, args);
    }
}
