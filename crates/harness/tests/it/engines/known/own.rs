//! Engines of one's own: where they come from, what a broken one disturbs, and what a changed one
//! still has.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use cto_testkit::{Forged, House};
use serde_json::Value;

use super::{LAB, environment, put};
use crate::fixtures::pi_lab::{Agent, Lab, PROBE, assert_no_leak};
use crate::{assert_bad, assert_good, house};

const OWN: Agent = Agent {
    names_its_interpreter: true,
    ..Agent::of("lab", "1.2.3")
};
const FIX: &str = "[[turn]]\ntext = \"\"\"\nstrings.py\n```\nimport re\n\n\ndef slugify(text):\n    return re.sub(r'[^a-z0-9]+', '-', text.lower()).strip('-')\n```\n\"\"\"\n";

fn row(house: &House, engine: &str) -> Value {
    let json = house.cto(&["engines", "--json"]).json();
    let rows = json["engines"].as_array().unwrap();
    rows.iter()
        .find(|row| row["engine"] == engine)
        .cloned()
        .unwrap_or_default()
}

#[test]
fn a_lane_of_ones_own_is_closed_proven_demoted_and_verified_by_a_stranger() {
    let house = house();
    let program = environment(&house);
    let file = put(&house, "lab", LAB);
    let (closed, refused) = house.run_args(&["run", "--engine", "lab", "--json"]);
    let blockers = &refused.report()["blockers"];
    assert_eq!(closed.code, Some(3), "{blockers}");
    assert_eq!(blockers[0]["code"], "engine_gate_closed");
    let next = row(&house, "lab")["next"].clone();
    assert!(
        next.as_str().unwrap().ends_with(" setup lab --bin FILE"),
        "{next}"
    );

    let lab = Lab::of(&OWN, &program, house, "r1-string-slugify".into());
    let model = lab.model(&format!("{PROBE}{FIX}"));
    let (answer, bundle) = lab.run(&model, &[]);
    assert_eq!(answer.code, Some(0), "{:?}", bundle.report()["blockers"]);
    assert_no_leak(&bundle, &model);
    assert_good(&bundle);
    let report = bundle.report();
    assert_eq!(report["engine"]["version"], "1.2.3");
    assert_eq!(report["claimed"]["summary"], "wrote strings.py");
    assert_eq!(bundle.text("engine-manifest.toml"), LAB);
    let forged = Forged::copy_of(&bundle);
    let other = LAB.replace("\"--message\"", "\"--quiet\", \"--message\"");
    forged
        .put("engine-manifest.toml", other.as_bytes())
        .redigest();
    let found = assert_bad(&forged.bundle(), "another manifest");
    let mut problems = found.problems.iter();
    assert!(
        problems.any(|problem| problem.artifact == "engine-manifest.toml"),
        "{:?}",
        found.problems
    );
    let known = row(&lab.house, "lab");
    assert_eq!(
        (&known["proven_stage"], &known["from"]),
        (&2.into(), &"own".into())
    );
    assert_eq!(known["version_tried"], true);

    // What a package is may not change, and neither may a command line.
    let contract = || {
        lab.house
            .cto(&["contract", "--engine", "lab", "--json"])
            .json()
    };
    let before = contract();
    let comment = format!("# a word\n{LAB}");
    put(&lab.house, "lab", &comment);
    assert_eq!(
        row(&lab.house, "lab")["proven_stage"],
        2,
        "a comment changes nothing"
    );
    let changed = other;
    put(&lab.house, "lab", &changed);
    let demoted = row(&lab.house, "lab");
    assert_eq!(demoted["proven_stage"], 0);
    let after = contract();
    assert_eq!(before["task_digest"], after["task_digest"], "the same task");
    assert_ne!(
        before["contract_digest"], after["contract_digest"],
        "an approval binds it"
    );
    let (refused, bundle_of_changed) = lab.run(&model, &[]);
    assert_eq!(refused.code, Some(3));
    let blockers = &bundle_of_changed.report()["blockers"];
    assert_eq!(blockers[0]["code"], "stage_not_proven", "{blockers}");
    assert!(
        blockers.to_string().contains("changed since: manifest"),
        "{blockers}"
    );
    let digest = |bundle: &cto_testkit::Bundle| {
        bundle.json("contract.json")["lane"]["manifest_sha256"].clone()
    };
    assert_ne!(digest(&bundle), digest(&bundle_of_changed));

    // A stranger has no manifest.
    fs::remove_file(&file).unwrap();
    assert_good(&bundle);
    let gone = lab.house.cto(&["run", "--engine", "lab"]);
    assert!(
        gone.code == Some(2) && gone.stderr.contains("unknown_engine"),
        "{gone:?}"
    );
}

#[test]
fn a_broken_manifest_is_named_and_disturbs_nobody_else() {
    let house = house();
    put(&house, "lab", &LAB.replace("argv", "arvg"));
    put(
        &house,
        "pi",
        &LAB.replace("\"lab\"", "\"pi\"").replace("_LAB", "_PI"),
    );
    put(&house, "twin", LAB);
    let open = put(&house, "open", LAB);
    fs::set_permissions(&open, Permissions::from_mode(0o666)).unwrap();
    let refused = house.cto(&["run", "--engine", "lab"]);
    assert_eq!(refused.code, Some(2));
    for words in [
        "manifest_invalid",
        "lab.toml:9:1: unknown field `arvg`",
        "cto engines check lab",
    ] {
        assert!(
            refused.stderr.contains(words),
            "{words}: {}",
            refused.stderr
        );
    }
    let json = house.cto(&["engines", "--json"]).json();
    let broken = json["broken"].as_array().unwrap();
    let because = |name: &str| {
        let is_it = |row: &&Value| row["file"].as_str().unwrap().ends_with(name);
        broken.iter().find(is_it).unwrap()["because"]
            .as_str()
            .unwrap()
    };
    assert!(because("/pi.toml").contains("an engine of the house"));
    assert!(because("/twin.toml").contains("lab.toml"));
    assert!(because("/open.toml").contains("someone else"));
    assert_eq!(row(&house, "pi")["from"], "built-in");
    assert_eq!(house.cto(&["run"]).code, Some(0), "fake runs as ever");
    let text = house.cto(&["engines"]);
    assert!(text.stdout.contains("lab.toml:9:1"), "{}", text.stdout);
}

#[test]
fn manifests_come_from_one_directory_and_never_from_where_one_stands() {
    let house = house();
    let here = house.root().join("elsewhere/engines");
    fs::create_dir_all(&here).unwrap();
    for file in [
        here.join("lab.toml"),
        house.root().join("elsewhere/lab.toml"),
    ] {
        fs::write(file, LAB).unwrap();
    }
    let unknown = house.cto(&["run", "--engine", "lab"]);
    assert!(unknown.stderr.contains("unknown_engine"), "{unknown:?}");
    // What is typed counts, instead of the own directory.
    put(
        &house,
        "other",
        &LAB.replace("\"lab\"", "\"other\"")
            .replace("_LAB", "_OTHER"),
    );
    let dir = here.display().to_string();
    let json = house.cto(&["engines", "--json", "--engines", &dir]).json();
    let names: Vec<&str> = json["engines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["engine"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"lab") && !names.contains(&"other"),
        "{names:?}"
    );
    let next = json["engines"].as_array().unwrap().last().unwrap()["next"].clone();
    assert!(next.as_str().unwrap().contains("--engines"), "{next}");
    let missing = house.cto(&["engines", "--engines", "/nowhere"]);
    assert!(missing.code == Some(2) && missing.stderr.contains("no_engines_directory"));
    // Commands that name no engine do not look.
    assert_eq!(house.cto(&["runs", "--engines", "/nowhere"]).code, Some(0));
    // An accepted patch could have written it.
    fs::create_dir(house.root().join("elsewhere/.git")).unwrap();
    let json = house.cto(&["engines", "--json", "--engines", &dir]).json();
    assert!(
        json["broken"][0]["because"]
            .as_str()
            .unwrap()
            .contains("repository"),
        "{json:#}"
    );
}
