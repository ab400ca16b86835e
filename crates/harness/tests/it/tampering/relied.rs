//! A bundle that relies on the baseline of an earlier run, tampered with: every digest fits again, and
//! whoever signed is trusted, so what is refused is refused because the evidence does not say it.

use cto_testkit::{Bundle, Forged, House, Repo, script, write};
use serde_json::{Value, json};

use crate::fixtures::project::{FIXED, UNITTEST};
use crate::{assert_bad, assert_good, house};

/// Two tries: the first ran a baseline, the second relied on it.
fn tries(house: &House) -> (Bundle, Bundle) {
    let repo = Repo::new(house, "relied");
    for (path, text) in UNITTEST.files {
        repo.write(path, text);
    }
    repo.write("app.py", FIXED);
    repo.commit("no bug");
    let steps = script(&[write("app.py", &format!("{FIXED}\n# Said again.\n"))]);
    let asked = [
        "--test",
        "python3 -m unittest",
        "--allow",
        ".",
        "--jobs",
        "1",
    ];
    let mut made = Vec::new();
    for _ in 0..2 {
        let (answer, bundle) = house.try_on(&repo, &steps, &asked);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_good(&bundle);
        made.push(bundle);
    }
    let second = made.pop().unwrap();
    (made.pop().unwrap(), second)
}

const DOCUMENT: &str = "relied/baseline.json";
const LOG: &str = "relied/baseline.log";

/// Edits the baseline, and lets the chain and the report name what it is now.
fn rebound(forged: &Forged, edit: impl FnOnce(&mut Value)) {
    forged.edit(DOCUMENT, edit);
    let bytes = forged.bundle().bytes(DOCUMENT);
    let kept: Value = serde_json::from_slice(&bytes).unwrap();
    let told = json!({
        "key": kept["key"], "made_at": kept["made_at"], "run_id": kept["run_id"],
        "sha256": cto_testkit::sha256_hex(&bytes),
    });
    relied(forged, told);
}

fn relied(forged: &Forged, told: Value) {
    forged.edit_event("verification.completed", |done| {
        done["relied"] = told.clone()
    });
    forged.edit_report(|report| report["baseline_relied"] = told);
}

fn log(forged: &Forged, edit: impl FnOnce(String) -> String) {
    let text = edit(forged.bundle().text(LOG));
    forged.put(LOG, text.as_bytes());
    let digest = cto_testkit::sha256_hex(text.as_bytes());
    rebound(forged, |kept| kept["log_sha256"] = digest.into());
}

type Act = fn(&Forged, &Bundle);

const ROWS: &[(&str, &str, Act)] = &[
    (
        "the baseline, edited",
        "not the baseline the chain names",
        |f, _| {
            f.edit(DOCUMENT, |kept| {
                kept["commands"][0]["tests"] = json!({"x": {"passed": 1}})
            });
        },
    ),
    (
        "a test taken out of it",
        "not what the chain compared",
        |f, _| {
            rebound(f, |kept| {
                kept["commands"][0]["tests"]
                    .as_object_mut()
                    .unwrap()
                    .remove("test_app.DoubleTest.test_two");
            });
        },
    ),
    ("an outcome of it", "not what the chain compared", |f, _| {
        rebound(f, |kept| {
            kept["commands"][0]["tests"]["test_app.DoubleTest.test_two"] = json!({"skipped": 1})
        });
    }),
    ("its commands", "not what the chain compared", |f, _| {
        rebound(f, |kept| kept["checks"][0]["command"] = "true".into());
    }),
    ("how it ended", "no green baseline", |f, _| {
        rebound(f, |kept| kept["checks"][0]["end"]["code"] = 1.into());
    }),
    ("that it was killed", "no green baseline", |f, _| {
        rebound(f, |kept| {
            kept["checks"][0]["end"] = json!({"kind": "signalled", "signal": 9})
        });
    }),
    ("another tree", "of another tree", |f, _| {
        rebound(f, |kept| kept["tree"] = "0".repeat(64).into());
    }),
    ("another runner", "of another runner", |f, _| {
        rebound(f, |kept| kept["runner"] = "pytest".into());
    }),
    ("made too early", "more than a week", |f, _| {
        rebound(f, |kept| {
            kept["made_at"] = "2026-01-02T03:04:05.678Z".into()
        });
    }),
    ("made later", "was made later", |f, _| {
        rebound(f, |kept| {
            kept["made_at"] = "2126-01-02T03:04:05.678Z".into()
        });
    }),
    ("made by itself", "by the run that relied on it", |f, _| {
        let own = f.bundle().run_id();
        rebound(f, |kept| kept["run_id"] = own.into());
    }),
    (
        "its log, edited",
        "not the log that the baseline names",
        |f, _| {
            let text = f.bundle().text(LOG).replace("Ran 4 tests", "Ran 3 tests");
            f.put(LOG, text.as_bytes());
        },
    ),
    ("a log without its frames", "is missing", |f, _| {
        log(f, |text| {
            text.lines()
                .filter(|line| !line.starts_with("[cto:"))
                .map(|line| format!("{line}\n"))
                .collect()
        });
    }),
    ("a log of another run", "does not begin with", |f, first| {
        let other = first.run_id();
        let own = f.bundle().run_id();
        log(f, |text| text.replace(&other, &own));
    }),
    ("no log", "missing although it was", |f, _| {
        f.remove(LOG);
    }),
    ("no baseline", "missing although it was", |f, _| {
        f.remove(DOCUMENT);
    }),
    (
        "nothing relied on",
        "without having been relied on",
        |f, _| {
            f.edit_event("verification.completed", |done| {
                done.as_object_mut().unwrap().remove("relied");
            });
            f.edit_report(|report| {
                report.as_object_mut().unwrap().remove("baseline_relied");
            });
        },
    ),
    ("the report says it ran", "baseline_relied", |f, _| {
        f.edit_report(|report| {
            report.as_object_mut().unwrap().remove("baseline_relied");
        });
    }),
    ("the report says another time", "baseline_relied", |f, _| {
        f.edit_report(|report| {
            report["baseline_relied"]["made_at"] = report["run_started_at"].clone()
        });
    }),
    (
        "a lost test that nobody confirmed",
        "no baseline of this run confirmed it",
        |f, _| {
            f.edit_event("verification.completed", |done| {
                done["tests"]["missing_count"] = 1.into();
                done["tests"]["missing"] = json!(["test_app.DoubleTest.test_two: not there"]);
            });
        },
    ),
    ("no comparison", "compared nothing with it", |f, _| {
        f.edit_event("verification.completed", |done| {
            done.as_object_mut().unwrap().remove("tests");
        });
        f.remove("test-ids.json");
    }),
    ("no jail", "ran without a jail", |f, _| {
        f.edit_report(|report| report["containment"] = "none".into());
    }),
    ("older rules", "its rules do not know", |f, _| {
        f.edit_event("run.started", |data| data["rules"] = 3.into());
    }),
    (
        "a baseline of a run that ran its own",
        "without having been relied on",
        |f, first| {
            for name in first.names() {
                f.put(&name, &first.bytes(&name));
            }
        },
    ),
];

#[test]
fn a_relied_baseline_is_refused_in_every_other_form() {
    let house = house();
    let (first, second) = tries(&house);
    assert!(second.has(DOCUMENT) && !first.has(DOCUMENT));
    // Forged without an edit it is still good: what is refused below is refused for the edit.
    let same = Forged::copy_of(&second);
    same.reseal();
    assert_good(&same.bundle());
    for (what, why, act) in ROWS {
        let forged = Forged::copy_of(&second);
        act(&forged, &first);
        forged.reseal();
        let found = assert_bad(&forged.bundle(), what);
        let said = format!("{:?}", found.problems);
        assert!(said.contains(why), "{what}: {said}");
    }
}
