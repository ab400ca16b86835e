//! `cto matrix`: green as it stands, red for every single thing that could be wrong with a row's
//! evidence.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cto_core::gate::GateVerdict;
use cto_core::proof::matrix::{
    self, Assertion, BundleSeen, Evidence, FIXTURES, MatrixReport, Row, RowVerdict, Show,
};
use cto_core::values::event_type::EventType;
use cto_core::values::verdict::Status;
use cto_testkit::{Answer, Bundle, Case, Forged, House, ORACLE, files_below, wait_until};
use serde_json::{Value, json};

use crate::house;
use crate::jail::contained::people;

/// Artifacts of every bundle, blocked ones included: written out here, so that a list that shrank
/// is noticed.
pub const ARTIFACTS: [&str; 11] = [
    "report.json",
    "report.md",
    "contract.json",
    "gates.json",
    "eligibility.json",
    "events.normalized.jsonl",
    "trace.jsonl",
    "containment.json",
    "patch.diff",
    "test.log",
    "SHA256SUMS",
];

fn rows() -> Vec<Row> {
    matrix::built_in().unwrap().rows
}

fn parsed(stdout: &str) -> MatrixReport {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

fn wrong_rows(report: &MatrixReport) -> Vec<String> {
    let wrong = |row: &matrix::RowOutcome| {
        row.wrong()
            .map(|w| format!("{}: {w:?}", row.row))
            .collect::<Vec<_>>()
    };
    report.rows.iter().flat_map(wrong).collect()
}

/// A place for the rows of a house.
fn with_tmp(house: House) -> (House, PathBuf) {
    let tmp = house.root().join("tmp");
    fs::create_dir(&tmp).unwrap();
    let text = tmp.display().to_string();
    (house.with("TMPDIR", &text), tmp)
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn every_row_is_green_for_everyone_and_nothing_is_left() {
    for person in people() {
        let tmp = person.at("ws").display().to_string();
        let home = files_below(&person.at("home"));
        let output = person
            .command(&["matrix", "--json"])
            .env("TMPDIR", &tmp)
            .output()
            .unwrap();
        let report = parsed(&String::from_utf8_lossy(&output.stdout));
        assert_eq!(wrong_rows(&report), Vec::<String>::new(), "{}", person.name);
        assert_eq!(
            (output.status.code(), report.exit_code),
            (Some(0), 0),
            "{}",
            person.name
        );
        let all = rows().len() as u64;
        assert_eq!(
            (report.counts.green, report.counts.not_applicable),
            (all, 0),
            "{}: {:?}",
            person.name,
            report.counts
        );
        for fixture in FIXTURES {
            let forms = report
                .rows
                .iter()
                .filter(|row| row.fixture.as_deref() == Some(fixture));
            assert!(
                forms.clone().count() > 0
                    && forms.clone().all(|row| row.verdict == RowVerdict::Green),
                "{fixture}"
            );
        }
        assert!(
            report.time.wall_ms > 0
                && report.time.children_ms > 0
                && report.time.rows_ms >= report.time.children_ms
        );
        assert!(
            is_empty(&person.at("ws")),
            "{}: something was left behind",
            person.name
        );
        assert_eq!(
            files_below(&person.at("home")),
            home,
            "{}: the operator's own state was touched",
            person.name
        );
    }
}

/// One thing done to real evidence, and which assertion must see it.
struct Flaw {
    what: String,
    want: String,
    evidence: Evidence,
}

#[test]
fn every_must_show_of_every_row_can_fail() {
    let (house, tmp) = with_tmp(house());
    let junit = house.root().join("junit.xml").display().to_string();
    let answer = house.cto(&["matrix", "--json", "--keep", "--junit", &junit]);
    let report = parsed(&answer.stdout);
    if report.counts.not_applicable > 0 && std::env::var_os("REQUIRE_JAIL").is_none() {
        return;
    }
    crate::evidence::schema::assert_fits("matrix", &answer.json());
    assert_eq!(suite(&junit), (rows().len(), 0, 0));
    let mut tried = 0;
    for row in rows() {
        let outcome = report
            .rows
            .iter()
            .find(|outcome| outcome.row == row.name)
            .unwrap();
        let dir = PathBuf::from(outcome.bundle.as_ref().unwrap());
        assert!(dir.starts_with(&tmp), "{}", dir.display());
        let sound = Evidence {
            exit_code: Some(row.exit),
            bundles: vec![cto_harness::proof::matrix::bundle_seen(&dir).unwrap()],
            touched: row.touches.clone(),
            printed: "shown\n".into(),
        };
        assert_eq!(failed(&row, &sound), Vec::<String>::new(), "{}", row.name);
        for flaw in common_flaws(&row, &sound)
            .into_iter()
            .chain(row.shows.iter().map(|show| shown_flaw(show, &row, &sound)))
        {
            let failed = failed(&row, &flaw.evidence);
            assert!(
                failed.contains(&flaw.want),
                "{}: {}: {:?} not in {failed:?}",
                row.name,
                flaw.what,
                flaw.want
            );
            tried += 1;
        }
        // On disk, too: any change to any artifact.
        fs::OpenOptions::new()
            .append(true)
            .open(dir.join("test.log"))
            .unwrap()
            .write_all(b"x")
            .unwrap();
        let changed = Evidence {
            bundles: vec![cto_harness::proof::matrix::bundle_seen(&dir).unwrap()],
            ..sound
        };
        assert!(
            failed(&row, &changed).contains(&"the bundle verifies".to_owned()),
            "{}",
            row.name
        );
    }
    assert!(tried > 800, "{tried}");
}

fn failed(row: &Row, evidence: &Evidence) -> Vec<String> {
    matrix::evaluate(row, evidence)
        .into_iter()
        .filter(|a| !a.holds)
        .map(|a| a.want)
        .collect()
}

fn flaw(
    what: &str,
    want: impl Into<String>,
    sound: &Evidence,
    change: impl FnOnce(&mut Evidence),
) -> Flaw {
    let mut evidence = sound.clone();
    change(&mut evidence);
    Flaw {
        what: what.to_owned(),
        want: want.into(),
        evidence,
    }
}

/// What every row demands, each broken once.
fn common_flaws(row: &Row, sound: &Evidence) -> Vec<Flaw> {
    let status = row.status;
    let other = if status == Status::Pass { 3 } else { 0 };
    let untouched = match row.touches.as_slice() {
        [] => "nothing outside the bundle changed".to_owned(),
        touches => format!(
            "outside the bundle nothing but this: {}",
            touches.join(", ")
        ),
    };
    let edit = |what: &str, want: String, change: &dyn Fn(&mut Value)| {
        flaw(what, want, sound, |e| {
            document(&mut e.bundles[0], "report.json", change)
        })
    };
    let mut flaws = vec![
        flaw(
            "another exit code",
            format!("cto ends with {}", row.exit),
            sound,
            |e| e.exit_code = Some(other),
        ),
        flaw(
            "killed",
            format!("cto ends with {}", row.exit),
            sound,
            |e| e.exit_code = None,
        ),
        flaw("litter", untouched, sound, |e| {
            e.touched.push("home/new is new".into())
        }),
        flaw("two bundles", "one run, one bundle", sound, |e| {
            e.bundles.push(e.bundles[0].clone())
        }),
        flaw("no bundle", "one run, one bundle", sound, |e| {
            e.bundles.clear()
        }),
        flaw(
            "no verdict",
            "the verdict can be derived again",
            sound,
            |e| e.bundles[0].verification.status = None,
        ),
        edit(
            "an operator's run",
            "the run is a validator's".into(),
            &|r| r["origin"] = "operator".into(),
        ),
        edit(
            "status",
            format!("the report says {}", status.as_str()),
            &|r| r["status"] = "fine".into(),
        ),
    ];
    for artifact in ARTIFACTS {
        let gone = |e: &mut Evidence| drop(e.bundles[0].files.remove(artifact));
        flaws.push(flaw(
            &format!("no {artifact}"),
            "every artifact is there",
            sound,
            gone,
        ));
    }
    flaws.push(flaw(
        "run.completed",
        format!("run.completed says {}", status.as_str()),
        sound,
        |e| {
            event(&mut e.bundles[0], EventType::RunCompleted, &|data| {
                data["status"] = "fine".into()
            });
        },
    ));
    let execution = if row.runs {
        "an engine ran and its raw log is kept"
    } else {
        "no engine was started"
    };
    flaws.push(edit("process_started", execution.into(), &|r| {
        r["process_started"] = (!row.runs).into()
    }));
    if !row.runs {
        flaws.push(edit("a change", "nothing was changed".into(), &|r| {
            r["changed_files"] = json!(["x"])
        }));
    }
    let (Some(code), Some(carrier)) = (row.blocker, row.event) else {
        return flaws;
    };
    let codes =
        |found: &Assertion| found.check == "blocker" && found.want.starts_with("blockers are");
    let listed = matrix::evaluate(row, sound)
        .into_iter()
        .find(codes)
        .unwrap()
        .want;
    flaws.push(edit("one more blocker", listed.clone(), &|r| {
        let more = json!({"code": "stale_artifact", "message": "x", "event": null});
        r["blockers"].as_array_mut().unwrap().push(more);
    }));
    flaws.push(edit("no blocker", listed, &|r| r["blockers"] = json!([])));
    let headline = format!("{} is the headline", code.as_str());
    flaws.push(edit("another headline", headline, &|r| {
        r["failure_reason"] = "something else".into()
    }));
    for kind in BTreeSet::from([carrier, EventType::RunCompleted]) {
        let want = format!("{} carries {}", kind.as_str(), code.as_str());
        flaws.push(flaw("an event without the code", want, sound, |e| {
            event(&mut e.bundles[0], kind, &|data| {
                (data["reason"], data["blockers"]) = (Value::Null, json!([]))
            });
        }));
    }
    flaws
}

/// What one row demands, broken in the way that fits.
fn shown_flaw(show: &Show, row: &Row, sound: &Evidence) -> Flaw {
    flaw(&format!("{show:?}"), show.to_string(), sound, |evidence| {
        let bundle = &mut evidence.bundles[0];
        match show {
            Show::Changed(_) => document(bundle, "report.json", &|r| {
                r["changed_files"].as_array_mut().unwrap().push("x".into())
            }),
            Show::Empty(file) => drop(bundle.files.insert(file.clone(), b"x".to_vec())),
            Show::Kept(file) => drop(bundle.files.insert(file.clone(), Vec::new())),
            Show::Text(held) => {
                let text =
                    String::from_utf8_lossy(&bundle.files[&held.file]).replace(&held.holds, "");
                bundle.files.insert(held.file.clone(), text.into_bytes());
            }
            Show::Lacks(held) => bundle
                .files
                .get_mut(&held.file)
                .unwrap()
                .extend(held.holds.as_bytes()),
            Show::Line(_) | Show::Stopped(_) => {
                drop(bundle.files.insert("backend/stdout.log".into(), Vec::new()))
            }
            Show::Nowhere(text) => drop(bundle.files.insert(
                "backend/leak".into(),
                format!("so {text} it is").into_bytes(),
            )),
            Show::Value(place) => document(bundle, &place.of, &|value| {
                spoil(value, &place.at, place.is.as_deref())
            }),
            Show::Event(place) => event(bundle, place.of, &|data| {
                spoil(data, &place.at, place.is.as_deref())
            }),
            Show::Never(kind) => {
                let line = json!({"type": kind.as_str(), "data": {}});
                bundle
                    .files
                    .get_mut("events.normalized.jsonl")
                    .unwrap()
                    .extend(format!("{line}\n").into_bytes());
            }
            Show::Order(_) => lines(bundle, "events.normalized.jsonl", &|all| {
                drop(all.remove(0))
            }),
            Show::Trace(traced) => lines(bundle, "trace.jsonl", &|all| {
                all.retain(|l| l["action"] != traced.action.as_str())
            }),
            Show::Detail(_) => document(bundle, "report.json", &|r| {
                let code = row.blocker.unwrap().as_str();
                r["blockers"]
                    .as_array_mut()
                    .unwrap()
                    .iter_mut()
                    .filter(|b| b["code"] == code)
                    .for_each(|b| b["detail"] = "".into());
            }),
            Show::Gate(gate) => document(bundle, "gates.json", &|gates| {
                let other = if gate.result == GateVerdict::Pass {
                    "blocked"
                } else {
                    "pass"
                };
                let rows = gates["gates"].as_array_mut().unwrap().iter_mut();
                rows.filter(|g| g["gate"] == gate.of.as_str())
                    .for_each(|g| g["result"] = other.into());
            }),
        }
    })
}

fn spoil(document: &mut Value, at: &str, is: Option<&str>) {
    *document.pointer_mut(at).unwrap() = if is == Some("null") {
        json!("something")
    } else {
        Value::Null
    };
}

fn document(bundle: &mut BundleSeen, name: &str, change: &dyn Fn(&mut Value)) {
    let mut value = serde_json::from_slice(&bundle.files[name]).unwrap();
    change(&mut value);
    bundle
        .files
        .insert(name.to_owned(), value.to_string().into_bytes());
}

fn lines(bundle: &mut BundleSeen, name: &str, change: &dyn Fn(&mut Vec<Value>)) {
    let text = String::from_utf8(bundle.files[name].clone()).unwrap();
    let mut all: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    change(&mut all);
    bundle.files.insert(
        name.to_owned(),
        all.iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            .into_bytes(),
    );
}

fn event(bundle: &mut BundleSeen, kind: EventType, change: &dyn Fn(&mut Value)) {
    lines(bundle, "events.normalized.jsonl", &|all| {
        all.iter_mut()
            .filter(|line| line["type"] == kind.as_str())
            .for_each(|line| change(&mut line["data"]));
    });
}

/// Tests, failures and skipped of a JUnit file, counted by a parser that is not ours.
fn suite(file: &str) -> (usize, usize, usize) {
    const COUNT: &str = "import sys, xml.etree.ElementTree as t; r = t.parse(sys.argv[1]).getroot(); s = r[0]
assert r.tag == 'testsuites' and s.tag == 'testsuite' and all(c.tag == 'testcase' and c.get('name') and float(c.get('time')) >= 0 for c in s)
n = (len(s), len(s.findall('testcase/failure')), len(s.findall('testcase/skipped')))
assert n == tuple(int(s.get(k)) for k in ('tests', 'failures', 'skipped')) == tuple(int(r.get(k)) for k in ('tests', 'failures', 'skipped'))
print(*n)";
    let output = Command::new("python3")
        .args(["-c", COUNT, file])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        fs::read_to_string(file).unwrap()
    );
    let numbers: Vec<usize> = String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    (numbers[0], numbers[1], numbers[2])
}

/// A host on which the row cannot come out as it must: no `grep`, so another blocker.
fn without_grep(house: &House) -> String {
    let bin = house.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("git"))
        .find(|path| path.is_file());
    symlink(git.unwrap(), bin.join("git")).unwrap();
    bin.display().to_string()
}

#[test]
fn a_red_row_says_what_is_wrong_in_every_form() {
    let (house, tmp) = with_tmp(house());
    if house.cto(&["doctor"]).code != Some(0) {
        return;
    }
    let path = without_grep(&house);
    let house = house.with("PATH", &path);
    let junit = house.root().join("junit.xml").display().to_string();
    let args = [
        "matrix",
        "--row",
        "engine-failed",
        "--row",
        "stage-gate-closed",
        "--junit",
        &junit,
    ];
    let answer = house.cto(&args);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    for part in [
        "✗  engine-failed",
        "✓  stage-gate-closed",
        "blockers are engine_failed",
        "toolchain_unavailable",
        "RED  1 green, 1 red",
        "--keep",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    assert_eq!(suite(&junit), (2, 1, 0));
    let report = parsed(
        &house
            .cto(&["matrix", "--row", "engine-failed", "--json"])
            .stdout,
    );
    assert_eq!(
        (report.exit_code, report.rows[0].verdict),
        (1, RowVerdict::Red)
    );
    assert!(
        report.rows[0]
            .wrong()
            .any(|w| w.check == "blocker" && w.found.as_deref() == Some("toolchain_unavailable"))
    );
    assert!(is_empty(&tmp));
}

#[test]
fn an_engine_that_cannot_be_run_proves_nothing() {
    let (house, tmp) = with_tmp(house());
    let junit = house.root().join("junit.xml").display().to_string();
    for engine in ["codex", "case"] {
        let answer = house.cto(&["matrix", "--engine", engine, "--json", "--junit", &junit]);
        let report = parsed(&answer.stdout);
        assert_eq!(
            (answer.code, report.counts.red),
            (Some(3), 0),
            "{:?}",
            wrong_rows(&report)
        );
        for row in &report.rows {
            let gate = [
                "engine-gate-closed",
                "stage-gate-closed",
                "nothing-admitted",
            ]
            .contains(&row.row.as_str());
            let want = if gate {
                RowVerdict::Green
            } else {
                RowVerdict::NotApplicable
            };
            assert_eq!(
                (row.verdict, row.engine.as_str()),
                (want, engine),
                "{}",
                row.row
            );
            let reason = row.reason.clone().unwrap_or_default();
            assert_eq!(
                reason,
                if gate {
                    String::new()
                } else {
                    format!("this version knows {engine} but cannot run it")
                }
            );
        }
        assert_eq!(suite(&junit), (rows().len(), 0, rows().len() - 3));
        let one = house.cto(&["matrix", "--engine", engine, "--row", "no-diff"]);
        assert_eq!(one.code, Some(3));
        assert!(
            one.stdout.contains("NOTHING PROVEN") && one.stdout.contains("–  no-diff"),
            "{}",
            one.stdout
        );
    }
    assert!(is_empty(&tmp));
}

#[test]
fn rows_are_chosen_by_name_or_by_fixture() {
    let (house, _) = with_tmp(house());
    let named = |names: &[&str]| {
        let mut args = vec!["matrix", "--engine", "codex", "--json"];
        names.iter().for_each(|name| args.extend(["--row", *name]));
        parsed(&house.cto(&args).stdout)
            .rows
            .into_iter()
            .map(|row| row.row)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        named(&["timeout"]),
        ["timeout-engine", "timeout-verification"]
    );
    assert_eq!(
        named(&["no-diff", "timeout-engine", "no-diff"]),
        ["no-diff", "timeout-engine"]
    );
    for (args, code) in [
        (vec!["matrix", "--row", "no-such-row"], "unknown_row"),
        (vec!["matrix", "--engine", "nobody"], "unknown_engine"),
        (
            vec!["matrix", "--junit", "/nonexistent/x.xml"],
            "unwritable_file",
        ),
    ] {
        let answer = house.cto(&args);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(
            answer.stderr.contains(code) && answer.stdout.is_empty(),
            "{answer:?}"
        );
    }
    let nowhere = house
        .with("TMPDIR", "/proc/nowhere")
        .cto(&["matrix", "--row", "no-diff"]);
    assert_eq!(nowhere.code, Some(70), "{nowhere:?}");
}

#[test]
fn junit_holds_any_text() {
    let row = rows().remove(0);
    let hostile = "]]> <!-- & \"'\u{0}\u{1b}[31m\u{b}\u{7f}\u{fffe}\u{d7ff}😀\n</failure>";
    let wrong = Assertion {
        check: hostile.into(),
        want: hostile.into(),
        holds: false,
        found: Some(hostile.into()),
    };
    let engine: cto_core::values::ids::EngineId = "fake".parse().unwrap();
    let mut red = matrix::RowOutcome::judged(&row, &engine, vec![wrong]);
    red.row = hostile.into();
    let skipped = matrix::RowOutcome::not_applicable(&row, &engine, hostile);
    let report = MatrixReport::new(engine, vec![red, skipped], 61_001, false);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("junit.xml");
    fs::write(&file, matrix::junit(&report)).unwrap();
    assert_eq!(suite(&file.display().to_string()), (2, 1, 1));
}

#[test]
fn a_matrix_that_is_stopped_ends_its_rows_and_leaves_nothing() {
    let (house, tmp) = with_tmp(house());
    if house.cto(&["doctor"]).code != Some(0) {
        return;
    }
    let mut command = house.command(&[
        "matrix",
        "--row",
        "timeout-engine",
        "--row",
        "sound",
        "--json",
    ]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = || {
        let roots = fs::read_dir(&tmp).unwrap().flatten();
        roots
            .into_iter()
            .any(|root| root.path().join("timeout-engine/state/open").is_dir())
    };
    assert!(wait_until(begun), "no row began");
    Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    let answer = Answer::of(&child.wait_with_output().unwrap());
    let report = parsed(&answer.stdout);
    assert_eq!(
        (answer.code, report.interrupted, report.counts.red),
        (Some(3), true, 0),
        "{answer:?}"
    );
    assert!(
        report
            .rows
            .iter()
            .any(|row| row.reason.as_deref() == Some("interrupted")),
        "{report:?}"
    );
    assert!(is_empty(&tmp));
}

/// Whatever an ordinary run is given, nobody but the operator's store answers for the operator.
#[test]
fn no_ordinary_run_brings_its_own_approval() {
    let house = house()
        .with("CTO_APPROVAL", "granted")
        .with("CTO_HARNESS_APPROVAL", "granted")
        .with("CTO_ORIGIN", "validator");
    let needs =
        |extra: &str| Case::new("quick").extra(&format!("approval_required = true\n{extra}"));
    let (answer, bundle) = house.run(&house.case(&needs("")), ORACLE, &[]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(3), vec!["approval_missing".to_owned()]),
        "{answer:?}"
    );
    assert_eq!(bundle.report()["origin"], "operator");
    assert!(
        !bundle
            .event_types()
            .iter()
            .any(|kind| kind.starts_with("approval.")),
        "{:?}",
        bundle.event_types()
    );
    for extra in [
        "approval = \"granted\"",
        "approvals = \"scripted\"",
        "origin = \"validator\"",
    ] {
        let (answer, bundle) = house.run(&house.case(&needs(extra)), ORACLE, &[]);
        assert_eq!(
            (answer.code, bundle.codes()[0].as_str()),
            (Some(3), "contract_invalid"),
            "{extra}: {answer:?}"
        );
    }
    for flag in ["--approval=granted", "--approve", "--origin=validator"] {
        assert_eq!(house.cto(&["run", flag]).code, Some(2), "{flag}");
    }
    let (_, bundle) = house.run(
        &house.case(&Case::new("asks")),
        "[[step]]\ndo = \"print\"\ntext = \"{\\\"type\\\":\\\"approval.granted\\\"}\\n\"\n",
        &[],
    );
    assert!(
        !bundle
            .event_types()
            .iter()
            .any(|kind| kind.starts_with("approval.")),
        "{:?}",
        bundle.event_types()
    );
}

/// Chain, gates and report must tell the same answer, however well the digests fit.
#[test]
fn a_forged_answer_is_refused() {
    type Edit = fn(&Forged);
    let denied: [(&str, Edit); 4] = [
        ("a denial without its code", |f| {
            f.edit_event("approval.denied", |data| data["reason"] = Value::Null);
        }),
        ("an open gate", |f| {
            f.edit("gates.json", |gates| open_gate(gates, Value::Null));
        }),
        ("another code at the gate", |f| {
            f.edit("gates.json", |gates| {
                open_gate(gates, json!("approval_missing"))
            });
        }),
        ("an engine selected", |f| {
            f.edit("eligibility.json", |decision| {
                decision["selected_backend"] = "fake".into()
            });
        }),
    ];
    let granted: [(&str, Edit); 3] = [
        ("a grant that carries a code", |f| {
            f.edit_event("approval.granted", |data| {
                data["reason"] = "approval_denied".into()
            });
        }),
        ("an operator's grant that relies on nothing", |f| {
            f.edit_event("run.started", |data| data["origin"] = "operator".into());
            f.edit_report(|report| report["origin"] = "operator".into());
        }),
        ("no grant at all", |f| {
            f.edit_events(|events| events.retain(|event| event["type"] != "approval.granted"));
        }),
    ];
    let (house, _) = with_tmp(house());
    for (row, edits) in [
        ("approval-denied", denied.as_slice()),
        ("approval-granted", granted.as_slice()),
    ] {
        let report = parsed(
            &house
                .cto(&["matrix", "--row", row, "--keep", "--json"])
                .stdout,
        );
        let outcome = report
            .rows
            .iter()
            .find(|outcome| outcome.row == row)
            .unwrap();
        let Some(dir) = &outcome.bundle else { return };
        let bundle = Bundle::at(dir);
        crate::assert_good(&bundle);
        for (what, edit) in edits {
            let forged = Forged::copy_of(&bundle);
            edit(&forged);
            forged.reseal();
            crate::assert_bad(&forged.bundle(), what);
        }
    }
}

fn open_gate(gates: &mut Value, code: Value) {
    let rows = gates["gates"].as_array_mut().unwrap();
    let row = rows
        .iter_mut()
        .find(|row| row["gate"] == "approval")
        .unwrap();
    if code.is_null() {
        row["result"] = "pass".into();
        row.as_object_mut().unwrap().remove("code");
    } else {
        row["code"] = code;
    }
}

/// A row with a scripted answer never lands among the runs of an operator.
#[test]
fn a_row_runs_only_in_a_state_home_of_its_own() {
    let house = house();
    fs::create_dir_all(house.runs_dir()).unwrap();
    let fresh = house.root().join("fresh").display().to_string();
    let runs = house.runs_dir().display().to_string();
    for args in [
        vec!["__row", "approval-granted", "--engine", "fake"],
        vec![
            "--home",
            &fresh,
            "--runs-dir",
            &runs,
            "__row",
            "approval-granted",
            "--engine",
            "fake",
        ],
    ] {
        let answer = house.cto(&args);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains("not_fresh"), "{answer:?}");
    }
    assert!(house.run_dirs().is_empty());
}

/// The list of `scripts/prove-matrix` fits the source and leaves no row out.
#[test]
fn every_row_has_a_check_that_can_be_taken_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(text) = fs::read_to_string(root.join("scripts/prove-matrix.d/mutations.toml")) else {
        return;
    };
    let table: toml::Table = text.parse().unwrap();
    let mut proven = BTreeSet::new();
    for mutation in table["mutation"].as_array().unwrap() {
        let word = |key: &str| mutation[key].as_str().unwrap();
        let source = fs::read_to_string(root.join(word("file"))).unwrap();
        assert_eq!(
            source.matches(word("find")).count(),
            1,
            "{}: {:?}",
            word("file"),
            word("find")
        );
        assert_ne!(word("find"), word("replace"));
        proven.extend(
            mutation["rows"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row.as_str().unwrap().to_owned()),
        );
    }
    assert_eq!(
        proven,
        rows()
            .into_iter()
            .map(|row| row.name)
            .collect::<BTreeSet<_>>()
    );
}
