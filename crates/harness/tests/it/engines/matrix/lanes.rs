//! The failure table on every real lane: each agent's own program against a scripted model, as root and
//! as an ordinary user. The table is that of `cto matrix`; a lane is one line below.
//!
//! A spread of rows runs by default, a smaller one for agents that speak ACP: they share the way from the door to the
//! verdict with the others, and their own part is `engines/agents/acp.rs`. `CTO_LANES=all` (`just lanes`) runs everything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cto_core::proof::matrix::RowVerdict;
use cto_testkit::{Bundle, Repo, wait_until};
use serde_json::{Value, json};

use super::parsed;
use super::whole::wrong_rows;
use crate::assert_good;
use crate::fixtures::bundles::events;
use crate::fixtures::people::people;
use crate::fixtures::pi_lab::{
    ACP_CODEX, ACP_GEMINI, ACP_OPENCODE, ACP_PI, ACP_QWEN, Agent, CODEX, DONE, KEY, Lab, OPENCODE,
    PI, PROBE, quick, tool,
};
use crate::house;

macro_rules! lanes {
    ($($name:ident $agent:ident,)*) => {
        const LANES: &[&Agent] = &[$(&$agent,)*];

        $(mod $name {
            use super::*;

            #[test]
            fn every_row_of_the_failure_table_holds() {
                super::every_row_holds(&$agent);
            }

            #[test]
            fn key_and_private_endpoint_are_nowhere() {
                super::where_it_is_due(&$agent, super::nothing_leaks);
            }

            #[test]
            fn killing_the_harness_ends_it_and_proves_nothing() {
                super::where_it_is_due(&$agent, super::harness_killed);
            }

            #[test]
            fn an_unknown_version_is_a_visible_warning() {
                super::where_it_is_due(&$agent, super::unknown_version);
            }
        })*
    };
}

lanes! {
    pi PI,
    codex CODEX,
    opencode OPENCODE,
    acp_codex ACP_CODEX,
    acp_opencode ACP_OPENCODE,
    acp_gemini ACP_GEMINI,
    acp_qwen ACP_QWEN,
    acp_pi ACP_PI,
}

fn all() -> bool {
    std::env::var_os("CTO_LANES").is_some_and(|word| word == "all")
}

fn is_short(agent: &Agent) -> bool {
    agent.engine.starts_with("acp-") && !all()
}

fn where_it_is_due(agent: &Agent, test: fn(&Agent)) {
    if !is_short(agent) {
        test(agent);
    }
}

/// Rows that no model can make a program play.
pub const UNPLAYABLE: &[&str] = &[
    "missing-event",
    "reviewer-reject",
    "artifact-write-failure",
    "engine-failed",
    // Nobody approves anything of a real engine there.
    "approval-expired",
    "approval-consumed",
    "approval-mismatch",
    "target-missing",
    "target-not-admitted",
    "target-unowned",
    "target-critical",
    "target-no-paths",
    "target-no-action",
    "target-not-approved",
    "target-no-outcome",
    "target-beyond",
    "outcome-missing",
    "outcome-rejected",
    "landing-unsupported",
];

/// What runs by default: for whoever runs the tests, and as root for an ordinary user.
const SPREAD: [&[&str]; 2] = [
    &[
        "sound-edit",
        "surviving-child",
        "disallowed-file",
        "no-diff",
        "timeout-engine",
        "engine-killed",
        "budget-exceeded",
        "dirty-starting-tree",
        "probe-401",
        "probe-500",
        "probe-silent",
        "probe-other-model",
        "model-401",
        "model-500",
        "model-cut",
        "another-model",
    ],
    &[
        "sound",
        "protected-file",
        "disallowed-new-file",
        "failed-tests",
        "interrupted",
        "probe-403",
        "probe-429",
        "probe-refused",
        "probe-cut",
        "model-403",
        "model-429",
        "model-refused",
        "model-silent",
        "model-lost-late",
    ],
];

/// The same for agents that speak ACP.
const SHORT: [&[&str]; 2] = [
    &["sound-edit", "disallowed-new-file", "engine-killed"],
    &["another-model", "model-401"],
];

fn every_row_holds(agent: &Agent) {
    let Some(program) = agent.installed() else {
        return;
    };
    let all = all();
    let spread = if is_short(agent) { SHORT } else { SPREAD };
    for (person, spread) in people().into_iter().zip(spread) {
        let program = program.display().to_string();
        let mut args = vec![
            "matrix",
            "--engine",
            agent.engine,
            "--bin",
            &program,
            "--json",
        ];
        if !all {
            args.extend(spread.iter().flat_map(|row| ["--row", row]));
        }
        let tmp = person.at("ws").display().to_string();
        let output = person.command(&args).env("TMPDIR", tmp).output().unwrap();
        let report = parsed(&String::from_utf8_lossy(&output.stdout));
        let who = format!("{} {}", agent.engine, person.name);
        assert_eq!(wrong_rows(&report), Vec::<String>::new(), "{who}");
        assert_eq!(output.status.code(), Some(0), "{who}");
        for row in &report.rows {
            let unplayable = UNPLAYABLE.contains(&row.row.as_str());
            let want = match unplayable {
                true => RowVerdict::NotApplicable,
                false => RowVerdict::Green,
            };
            assert_eq!(row.verdict, want, "{who}: {} {:?}", row.row, row.reason);
            assert_eq!(row.engine.as_str(), agent.engine, "{who}: {}", row.row);
        }
        if !all {
            let ran = |name: &&&str| report.rows.iter().any(|row| row.row == **name);
            assert_eq!(spread.iter().filter(ran).count(), spread.len(), "{who}");
        }
        // The validator's state is its own, and gone.
        let left = fs::read_dir(person.at("ws")).unwrap().count();
        assert_eq!(left, 0, "{who}: something was left behind");
        assert!(!person.at("home/.local").exists(), "{who}");
    }
}

/// An agent's turn that runs a command, as its manifest says.
fn shell(agent: &Agent, command: &str) -> String {
    let (name, arguments) = tools(agent, "shell");
    let text = arguments.to_string();
    let command = Value::from(command).to_string();
    let filled = text.replace("\"{command}\"", &command);
    tool(&name, serde_json::from_str(&filled).unwrap())
}

fn tools(agent: &Agent, tool: &str) -> (String, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines");
    let text = fs::read_to_string(path.join(format!("{}.toml", agent.engine))).unwrap();
    let manifest: Value = toml::from_str(&text).unwrap();
    let tool = &manifest["invocation"]["tools"][tool];
    (
        tool["name"].as_str().unwrap().to_owned(),
        tool["arguments"].clone(),
    )
}

const RIGHT: &str = "printf 'right\\n' > answer.txt";

fn lab(agent: &Agent, program: &Path) -> Lab {
    let house = house();
    let case = house.case(&quick());
    house.hand_over(&house.root().join("cases"));
    Lab::of(agent, program, house, case)
}

/// A part of the endpoint's address that is the operator's alone.
const PRIVATE: &str = "tenants/acme-0815";

fn nothing_leaks(agent: &Agent) {
    let Some(program) = agent.installed() else {
        return;
    };
    let lab = lab(agent, &program);
    let look = "env; cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; sleep 0.3";
    let turns = [shell(agent, look), shell(agent, RIGHT)].concat();
    let model = lab.model(&format!("{PROBE}{turns}{DONE}"));
    fs::write(
        &model.url_file,
        format!("http://{}/{PRIVATE}/v1\n", model.authority),
    )
    .unwrap();
    let needles = [KEY, PRIVATE, &model.authority];
    let over = AtomicBool::new(false);
    let (answer, bundle, seen) = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut found = Vec::new();
            while !over.load(Ordering::Relaxed) {
                found.extend(command_lines(&needles));
            }
            found
        });
        let (answer, bundle) = lab.run(&model, &[]);
        over.store(true, Ordering::Relaxed);
        (answer, bundle, watcher.join().unwrap())
    });
    assert_eq!(
        answer.code,
        Some(0),
        "{:?} {answer:?}",
        bundle.report()["blockers"]
    );
    assert_eq!(seen, Vec::<String>::new());
    for needle in needles {
        let said = format!("{}{}", answer.stdout, answer.stderr);
        assert!(!said.contains(needle), "{needle} was printed");
        assert_eq!(bundle.anywhere(needle), Vec::<String>::new(), "{needle}");
    }
    // Everything of the operator's state, logs of the agent included; where the model was told to listen
    // is the test's own.
    for file in files(&lab.house.state()) {
        let bytes = fs::read(&file).unwrap_or_default();
        for needle in needles {
            let holds = bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes());
            assert!(!holds, "{needle} in {}", file.display());
        }
    }
    assert_good(&bundle);
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&path)),
            _ => found.push(path),
        }
    }
    found
}

/// Command lines of this machine that hold one of these.
fn command_lines(needles: &[&str]) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let text = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    text.filter(|line| needles.iter().any(|needle| line.contains(needle)))
        .collect()
}

fn alive(word: &str) -> usize {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| line.split(|b| *b == 0).any(|arg| arg == word.as_bytes()))
        .count()
}

/// An agent takes its time to begin.
fn begun(is_true: impl Fn() -> bool) -> bool {
    (0..12).any(|_| wait_until(&is_true))
}

fn harness_killed(agent: &Agent) {
    let Some(program) = agent.installed() else {
        return;
    };
    let lab = lab(agent, &program);
    let word = format!("8{}.5", std::process::id());
    let sleeps = format!("{RIGHT}; setsid sleep {word} & sleep {word}");
    let model = lab.model(&format!(
        "after = \"last\"\n{PROBE}{}",
        shell(agent, &sleeps)
    ));
    let before = lab.house.run_dirs();
    let url = model.url_file.clone();
    let mut child = lab.house.start(&[
        "run",
        &lab.case,
        "--engine",
        agent.engine,
        "--stage",
        "2",
        "--base-url-file",
        &url,
    ]);
    assert!(begun(|| alive(&word) >= 2), "nothing started");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(wait_until(|| alive(&word) == 0), "{} left", alive(&word));
    let answer = lab.house.cto(&["recover"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let dirs = lab.house.run_dirs().into_iter();
    let of_agent = dirs
        .filter(|dir| !before.contains(dir))
        .find(|dir| events(dir).contains(&format!("\"engine\":\"{}\"", agent.engine)));
    let bundle = Bundle::at(of_agent.unwrap());
    assert_eq!(bundle.status(), "blocked", "{:?}", bundle.codes());
    assert!(bundle.has_code("interrupted"), "{:?}", bundle.codes());
    assert_good(&bundle);
    assert!(lab.house.work_entries().is_empty());
}

/// A copy of the agent's own package, whose file names a version that nobody has tried.
fn unknown_version(agent: &Agent) {
    let Some(program) = agent.installed() else {
        return;
    };
    let outermost = |dir: &&Path| dir.ends_with("node_modules");
    let packages = program.ancestors().filter(outermost).last().unwrap();
    let copy = tempfile::Builder::new()
        .prefix("cto-unknown-")
        .tempdir()
        .unwrap();
    let made = Command::new("cp")
        .args(["-R", "--"])
        .args([packages, copy.path()])
        .status()
        .unwrap();
    assert!(made.success());
    let below = program.strip_prefix(packages.parent().unwrap()).unwrap();
    let program = copy.path().join(below);
    let named = |dir: &Path| dir.join("package.json");
    let file = program
        .ancestors()
        .skip(1)
        .map(named)
        .find(|file| file.is_file());
    let file = file.unwrap();
    let mut package: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    package["version"] = json!("999.0.0");
    fs::write(&file, package.to_string()).unwrap();
    let lab = lab(&agent.versioned("999.0.0"), &program);
    let script = format!("{PROBE}{}{DONE}", shell(agent, RIGHT));
    let bundle = lab.play(&script, &[]);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.report()["blockers"]);
    let engine = bundle.report()["engine"].clone();
    assert_eq!(engine["version"], "999.0.0");
    let warnings = engine["warnings"].to_string();
    assert!(warnings.contains("999.0.0"), "{engine}");
    assert_good(&bundle);
}

/// The same case on every lane, and of `fake`: one task, one tree to begin with.
#[test]
fn one_case_is_one_task_on_every_lane() {
    let mut tasks = Vec::new();
    for agent in LANES.iter().filter(|agent| !is_short(agent)) {
        let Some(program) = agent.installed() else {
            return;
        };
        let lab = lab(agent, &program);
        let script = format!("{PROBE}{}{DONE}", shell(agent, RIGHT));
        let bundle = lab.play(&script, &[]);
        assert_eq!(bundle.status(), "pass", "{}", agent.engine);
        let fake = lab
            .house
            .run_dirs()
            .into_iter()
            .map(Bundle::at)
            .find(|run| run.report()["backend"] == "fake" && run.status() == "pass");
        for run in [bundle, fake.unwrap()] {
            let start = run.event("git.diff.checked").unwrap()["baseline_tree"].clone();
            assert!(start.is_string(), "{start}");
            tasks.push((run.report()["task_digest"].clone(), start));
        }
    }
    assert!(tasks.iter().all(|task| *task == tasks[0]), "{tasks:?}");
}

#[test]
fn a_try_of_codex_on_a_persons_own_repository_ends_in_an_applied_patch() {
    let Some(program) = CODEX.installed() else {
        return;
    };
    let lab = lab(&CODEX, &program);
    let script = format!("{PROBE}{}{DONE}", shell(&CODEX, RIGHT));
    assert_eq!(lab.play(&script, &[]).status(), "pass", "stage 2");
    let repo = Repo::new(&lab.house, "mine");
    repo.write("answer.txt", "wrong\n");
    repo.write("control.txt", "fine\n");
    repo.commit("a bug");
    let control = lab.house.root().join("control.patch");
    fs::write(
        &control,
        "--- a/control.txt\n+++ b/control.txt\n@@ -1 +1 @@\n-fine\n+broken\n",
    )
    .unwrap();
    let model = lab.model(&script);
    let (answer, bundle) = lab.house.run_args(&[
        "try",
        "--repo",
        repo.path(),
        "--engine",
        "codex",
        "--task",
        "Make the answer right",
        "--allow",
        "answer.txt",
        "--test",
        "grep -qx right answer.txt && grep -qx fine control.txt",
        "--control",
        control.to_str().unwrap(),
        "--base-url-file",
        &model.url_file,
        "--json",
    ]);
    assert_eq!(
        answer.code,
        Some(0),
        "{:?} {answer:?}",
        bundle.report()["blockers"]
    );
    crate::fixtures::pi_lab::assert_no_leak(&bundle, &model);
    assert_good(&bundle);
    assert_eq!(repo.git(&["status", "--porcelain"]), "", "not yet");
    let applied = lab
        .house
        .cto(&["apply", &bundle.run_id(), "--repo", repo.path()]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let path = Path::new(repo.path()).join("answer.txt");
    assert_eq!(fs::read_to_string(path).unwrap(), "right\n");
    assert_eq!(repo.git(&["status", "--porcelain"]).trim(), "M answer.txt");
}
