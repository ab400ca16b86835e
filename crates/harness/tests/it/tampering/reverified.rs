//! A reverification stands on the run it names: whatever is changed in what it says of that run, its patch or
//! itself is refused, although everything is digested and signed anew.

use std::fs;
use std::path::{Path, PathBuf};

use cto_core::bundle::attest::{PublicKey, Trust};
use cto_core::verify::Standing;
use cto_testkit::{Bundle, FORGER, Forged, House, Repo, TestKey, copy_dir, script, write};
use serde_json::{Value, json};

use crate::house;

/// Two runs of one task, and the patch of the first judged again.
struct Scene {
    house: House,
    first: Bundle,
    other: Bundle,
    again: Bundle,
}

impl Scene {
    fn make() -> Self {
        let house = house();
        let repo = Repo::new(&house, "project");
        let fix = |text: &str| script(&[write("answer.txt", text)]);
        let wrong = ["--test", "grep -qx rihgt answer.txt"];
        let (_, first) = house.try_on(&repo, &fix("right\n"), &wrong);
        let (_, other) = house.try_on(&repo, &fix("right\nright\n"), &wrong);
        let right = ["--test", "grep -qx right answer.txt", "--json"];
        let run = first.run_id();
        let (answer, again) = house
            .cto(&[&["reverify", &run][..], &right].concat())
            .with_bundle();
        assert_eq!(answer.code, Some(0), "{answer:?}");
        Self {
            house,
            first,
            other,
            again,
        }
    }

    /// All three side by side, signed by a forger who is trusted.
    fn shelf(&self, name: &str) -> PathBuf {
        let shelf = self.house.root().join("shelves").join(name);
        for bundle in [&self.first, &self.other, &self.again] {
            let place = shelf.join(bundle.run_id());
            copy_dir(&bundle.dir, &place);
            Forged::at(place).sign(&TestKey::new(FORGER));
        }
        shelf
    }
}

fn verify(dir: &Path) -> (Standing, String) {
    let mut trust = Trust::default();
    let key = PublicKey::from_text(&TestKey::new(FORGER).public_pem()).unwrap();
    trust.named(&key, "the forger");
    let found = cto_harness::bundles::verifier::verify_dir(dir, &trust).unwrap();
    let said = found.problems.iter().chain(&found.unknowns);
    let said: Vec<String> = said
        .map(|problem| format!("{}: {}", problem.artifact, problem.message))
        .collect();
    (found.standing, said.join("\n"))
}

/// In report and chain alike.
fn both(forged: &Forged, edit: impl Fn(&mut Value)) {
    forged.edit_event("run.started", &edit);
    forged.edit_report(&edit);
}

fn without(value: &mut Value, field: &str) {
    value.as_object_mut().unwrap().remove(field);
}

type Act = fn(&Forged, &Scene);

const ROWS: &[(&str, &str, Act)] = &[
    ("kind of the report", "name different runs", |f, _| {
        f.edit_report(|r| r["kind"] = "run".into());
    }),
    ("kind everywhere", "cannot follow", |f, _| {
        both(f, |v| v["kind"] = "run".into());
    }),
    (
        "kind and what it judges everywhere",
        "cannot follow",
        |f, _| {
            both(f, |v| {
                v["kind"] = "run".into();
                without(v, "reverifies");
                without(v, "checks_differ");
            });
        },
    ),
    ("nothing is judged", "does not say of what", |f, _| {
        both(f, |v| without(v, "reverifies"));
    }),
    ("rules of before", "cannot follow", |f, _| {
        f.edit_event("run.started", |v| v["rules"] = 6.into());
    }),
    ("another digest", "judges another bundle again", |f, _| {
        both(f, |v| {
            v["reverifies"]["sums_sha256"] = "0".repeat(64).into()
        });
    }),
    (
        "another digest in the report",
        "name different runs",
        |f, _| {
            f.edit_report(|r| r["reverifies"]["sums_sha256"] = "0".repeat(64).into());
        },
    ),
    ("another run", "is not the patch of", |f, s| {
        let sums = cto_testkit::sha256_hex(&s.other.bytes("SHA256SUMS"));
        let of = json!({"run_id": s.other.run_id(), "sums_sha256": sums});
        both(f, |v| v["reverifies"] = of.clone());
    }),
    ("a run that is not there", "which was not found", |f, _| {
        both(f, |v| {
            v["reverifies"]["run_id"] = "20200101T000000Z-quick-abcdefgh".into();
        });
    }),
    ("itself", "which was not found", |f, s| {
        let own = s.again.run_id();
        both(f, |v| v["reverifies"]["run_id"] = own.clone().into());
    }),
    ("the patch exchanged", "is not the patch of", |f, s| {
        let patch = s.other.bytes("patch.diff");
        f.put("patch.diff", &patch);
        f.edit_event("patch.applied", |e| {
            e["sha256"] = cto_testkit::sha256_hex(&patch).into();
            e["bytes"] = patch.len().into();
        });
    }),
    ("another result", "comes to another tree", |f, s| {
        let tree = s.other.report()["result"]["tree"].clone();
        f.edit_event("git.diff.checked", |e| e["result_tree"] = tree.clone());
        f.edit_report(|r| r["result"]["tree"] = tree.clone());
    }),
    ("an engine was started", "process_started is not", |f, _| {
        f.edit_report(|r| r["process_started"] = true.into());
    }),
    ("an engine in the chain", "cannot follow", |f, _| {
        f.edit_events(|events| {
            let mut engine = events[2].clone();
            engine["type"] = "engine.started".into();
            engine["data"] = json!({"engine": "reverify", "containment": "strict"});
            events.insert(3, engine);
        });
    }),
    (
        "nothing differs",
        "checks_differ is not what differs",
        |f, _| {
            both(f, |v| v["checks_differ"] = json!({"commands": "same"}));
        },
    ),
    (
        "what differs, in the report alone",
        "checks_differ is not",
        |f, _| {
            f.edit_report(|r| r["checks_differ"] = json!({"commands": "same"}));
        },
    ),
    (
        "a check's jail dropped",
        "shows no jail for \"check:",
        |f, _| {
            f.edit("containment.json", |c| {
                let jails = c["processes"].as_array_mut().unwrap();
                jails.retain(|p| !p["process"].as_str().unwrap().starts_with("check"));
            });
        },
    ),
];

#[test]
fn a_reverification_says_nothing_but_what_its_first_run_bears_out() {
    let scene = Scene::make();
    let untouched = scene.shelf("untouched").join(scene.again.run_id());
    assert_eq!(verify(&untouched), (Standing::Good, String::new()));
    let mut wrong = Vec::new();
    for (number, (what, why, act)) in ROWS.iter().enumerate() {
        let shelf = scene.shelf(&number.to_string());
        let forged = Forged::at(shelf.join(scene.again.run_id()));
        act(&forged, &scene);
        forged.reseal();
        let (standing, said) = verify(&forged.dir);
        if standing == Standing::Good || !said.contains(why) {
            wrong.push(format!("{what}: {standing:?}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_first_run_that_is_gone_bad_or_another_takes_it_along() {
    let scene = Scene::make();
    let (first, again) = (scene.first.run_id(), scene.again.run_id());
    let shelf = scene.shelf("gone");
    fs::remove_dir_all(shelf.join(&first)).unwrap();
    let (standing, said) = verify(&shelf.join(&again));
    assert_eq!(standing, Standing::Unknown, "{said}");

    let shelf = scene.shelf("bad");
    fs::write(shelf.join(&first).join("patch.diff"), "").unwrap();
    let (standing, said) = verify(&shelf.join(&again));
    assert_eq!(standing, Standing::Bad, "{said}");
    assert!(said.contains("which is bad"), "{said}");
}
