//! Every single thing that could be wrong with the evidence of a row turns it red.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use cto_core::gate::GateVerdict;
use cto_core::proof::matrix::{self, Assertion, BundleSeen, Evidence, Row, Show};
use cto_core::values::event_type::EventType;
use cto_core::values::verdict::Status;
use serde_json::{Value, json};

use super::{parsed, rows, suite, with_tmp};
use cto_testkit::skip;

use crate::fixtures::bundles::ARTIFACTS;
use crate::house;

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
        return skip("no jail can be built here, so not every row applies");
    }
    crate::fixtures::schemas::assert_fits("matrix", &answer.json());
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
            secrets: vec!["the-key-of-a-model".into()],
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
    matrix::evaluate_row(row, evidence)
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
        flaw(
            "a leak",
            "neither the model's key nor its address is in any file",
            sound,
            |e| {
                let file = ("a.log".to_owned(), b"x the-key-of-a-model y".to_vec());
                e.bundles[0].files.extend([file]);
            },
        ),
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
    let listed = matrix::evaluate_row(row, sound)
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
                (data["reason"], data["blockers"]) = (Value::Null, json!([]));
                // What an operator says is no reason, but a word of its own.
                if kind == EventType::OperatorOutcomeRecorded {
                    data["outcome"] = json!("accepted");
                }
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
