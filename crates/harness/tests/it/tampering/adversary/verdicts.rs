//! Both verifiers on every row, and what a key is worth.

use std::fs;
use std::path::PathBuf;

use cto_core::bundle::attest::{KeyRecord, KeySource, KeyState, PublicKey, Trust};
use cto_core::values::time::Utc;
use cto_core::verify::{Standing, Verification};
use cto_testkit::{Bundle, Forged};
use serde_json::Value;

use super::{
    Row, Scene, Trusts, forger,
    rows::{of_jails, rows},
};
use crate::fixtures::verifiers::{by_script, public_key};

pub fn reasons(found: &Value) -> String {
    let list = |name: &str| {
        found["verification"][name]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let said = list("problems").into_iter().chain(list("unknowns"));
    said.map(|problem| {
        format!(
            "{}: {}\n",
            problem["artifact"].as_str().unwrap(),
            problem["message"].as_str().unwrap()
        )
    })
    .collect()
}

#[test]
fn nothing_tampered_with_verifies() {
    let scene = Scene::make();
    let mut rows = rows();
    assert!(rows.len() >= 130, "{}", rows.len());
    let shown = scene.pass.json("containment.json");
    if shown["processes"]
        .as_array()
        .is_some_and(|jails| !jails.is_empty())
    {
        rows.extend(of_jails());
    }
    let machine = public_key(&scene.house);
    let forgers = scene.house.root().join("forger.pem");
    fs::write(&forgers, forger().public_pem()).unwrap();
    let mut wrong = Vec::new();
    for (trusts, key) in [(Trusts::Machine, &machine), (Trusts::Forger, &forgers)] {
        let done: Vec<(&Row, Forged)> = rows
            .iter()
            .filter(|row| row.trusts == trusts)
            .map(|row| {
                let forged = Forged::copy_of(&scene.pass);
                (row.act)(&forged, &scene);
                (row, forged)
            })
            .collect();
        let dirs: Vec<String> = done
            .iter()
            .map(|(_, forged)| forged.dir.display().to_string())
            .collect();
        let mut args = vec!["verify", "--json", "--key", key.to_str().unwrap()];
        args.extend(dirs.iter().map(String::as_str));
        let answer = scene.house.cto(&args);
        assert!(
            !answer.panicked() && answer.code == Some(1),
            "{:?} {}",
            answer.code,
            answer.stderr
        );
        let json = answer.json();
        for ((row, _), found) in done.iter().zip(json["bundles"].as_array().unwrap()) {
            let verification = &found["verification"];
            if verification["standing"] == "good"
                || !verification["status"].is_null()
                || !reasons(found).contains(row.why)
            {
                wrong.push(format!(
                    "{}: says {}, not {:?}",
                    row.what,
                    reasons(found),
                    row.why
                ));
            }
        }
        let scripted: Vec<&(&Row, Forged)> = done.iter().filter(|(row, _)| row.script).collect();
        let dirs: Vec<PathBuf> = scripted
            .iter()
            .map(|(_, forged)| forged.dir.clone())
            .collect();
        for ((row, _), code) in scripted.iter().zip(by_script(key, &dirs)) {
            if code != 1 {
                wrong.push(format!("{}: verify.py says {code}", row.what));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_script_and_the_binary_agree_on_what_is_good() {
    let scene = Scene::make();
    let key = public_key(&scene.house);
    let dirs: Vec<PathBuf> = [&scene.pass, &scene.other, &scene.fail]
        .map(|bundle| bundle.dir.clone())
        .to_vec();
    assert_eq!(by_script(&key, &dirs), [0, 0, 0]);
    let forged = Forged::copy_of(&scene.pass);
    forged.reseal();
    let forgers = scene.house.root().join("forger.pem");
    fs::write(&forgers, forger().public_pem()).unwrap();
    assert_eq!(
        by_script(&forgers, std::slice::from_ref(&forged.dir)),
        [0],
        "the forger alone changes nothing"
    );
}

fn standing_with(bundle: &Bundle, trust: &Trust) -> Verification {
    cto_harness::bundles::verifier::verify_dir(&bundle.dir, trust).unwrap()
}

/// The same whole bundle under every standing of its key.
#[test]
fn what_a_key_is_worth_decides() {
    let scene = Scene::make();
    let forged = Forged::copy_of(&scene.pass);
    forged.reseal();
    let key = PublicKey::from_text(&forger().public_pem()).unwrap();
    // The forger signs when the run has ended.
    let ended: Utc = forged.bundle().report()["run_finished_at"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let at = |second: i64| Utc::from_millis(ended.as_millis() + second * 1000).unwrap();
    let revoked = KeyState::Revoked {
        at: at(9_999_999),
        reason: "the laptop was lost".into(),
    };
    for (what, state, standing, why) in [
        ("trusted", Some(KeyState::Trusted), Standing::Good, ""),
        (
            "rotated later",
            Some(KeyState::Rotated { at: at(1) }),
            Standing::Good,
            "",
        ),
        (
            "rotated before",
            Some(KeyState::Rotated { at: at(-1) }),
            Standing::Unknown,
            "retired",
        ),
        (
            "revoked, though later",
            Some(revoked),
            Standing::Bad,
            "the laptop was lost",
        ),
        ("unknown", None, Standing::Unknown, "no key is trusted here"),
    ] {
        let mut trust = Trust::default();
        if let Some(state) = state {
            trust.record(&KeyRecord {
                state,
                ..KeyRecord::new(&key, "x", KeySource::Operator, at(0))
            });
        }
        let found = standing_with(&forged.bundle(), &trust);
        assert_eq!(found.standing, standing, "{what}: {found:?}");
        assert_eq!(found.status.is_some(), standing == Standing::Good, "{what}");
        let said: Vec<&str> = found
            .problems
            .iter()
            .chain(&found.unknowns)
            .map(|problem| problem.message.as_str())
            .collect();
        assert!(said.join("\n").contains(why), "{what}: {said:?}");
    }
}
