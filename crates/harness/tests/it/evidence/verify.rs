//! `cto verify`: good, bad and unknown, as a person and as a program sees them.

use cto_core::verify::Standing;
use cto_testkit::Forged;

use crate::house;
use crate::passed;

#[test]
fn good_is_exit_zero_and_says_who_signed() {
    let (house, bundle) = passed();
    for name in [
        bundle.run_id(),
        "last".into(),
        bundle.dir.display().to_string(),
    ] {
        let answer = house.cto(&["verify", &name]);
        assert_eq!(answer.code, Some(0), "{name}: {answer:?}");
        assert!(
            answer.stdout.starts_with("GOOD") && answer.stdout.contains("here, by this machine"),
            "{answer:?}"
        );
    }
    let json = house.cto(&["verify", "--json"]).json();
    assert_eq!(json["bundles"][0]["verification"]["standing"], "good");
    assert_eq!(
        json["bundles"][0]["verification"]["signature"]["standing"],
        "own"
    );
    assert_eq!(json["bundles"][0]["verification"]["status"], "pass");
}

#[test]
fn bad_is_exit_one_and_names_the_artifact() {
    let (house, bundle) = passed();
    let forged = Forged::copy_of(&bundle);
    forged.put("patch.diff", b"");
    let dir = forged.dir.display().to_string();
    let answer = house.cto(&["verify", &dir]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(
        answer.stdout.starts_with("BAD") && answer.stdout.contains("patch.diff"),
        "{answer:?}"
    );
    assert!(
        !answer.stdout.contains("pass, re-derived"),
        "no verdict is printed over a bad bundle"
    );
    let json = house.cto(&["verify", &dir, "--json"]);
    assert_eq!(
        (
            json.code,
            json.json()["bundles"][0]["verification"]["standing"].as_str()
        ),
        (Some(1), Some("bad"))
    );
}

#[test]
fn the_worst_of_many_decides() {
    let (house, bundle) = passed();
    let forged = Forged::copy_of(&bundle);
    forged.put("test.log", b"x");
    let unsealed = house.root().join("elsewhere/unsealed");
    std::fs::create_dir(&unsealed).unwrap();
    std::fs::write(unsealed.join("events.normalized.jsonl"), "").unwrap();
    let (bad, unsealed) = (
        forged.dir.display().to_string(),
        unsealed.display().to_string(),
    );
    let good = bundle.run_id();
    assert_eq!(house.cto(&["verify", &good, &unsealed]).code, Some(3));
    assert_eq!(house.cto(&["verify", &unsealed, &bad, &good]).code, Some(1));
}

#[test]
fn a_bundle_of_nothing_proves_nothing() {
    let house = house();
    for (name, content) in [
        ("empty", ""),
        ("null", "null"),
        ("object", "{}"),
        ("garbage", "\u{1}\u{2}"),
    ] {
        let dir = house.root().join("elsewhere").join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("report.json"), content).unwrap();
        let answer = house.cto(&["verify", &dir.display().to_string()]);
        assert!(!answer.panicked(), "{name}: {answer:?}");
        // Nothing in it says that it is ours: there is nothing to call bad.
        assert_eq!(answer.code, Some(3), "{name}: {answer:?}");
    }
    assert_eq!(house.cto(&["verify", "no-such-run"]).code, Some(2));
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    let (house, bundle) = passed();
    let forged = Forged::copy_of(&bundle);
    forged
        .edit_report(|report| report["run_id"] = "\u{1b}]0;owned\u{7}".into())
        .reseal();
    let answer = house.cto(&["verify", &forged.dir.display().to_string()]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(
        !answer.stdout.contains('\u{1b}') && !answer.stdout.contains('\u{7}'),
        "{answer:?}"
    );
}

#[test]
fn reading_changes_nothing() {
    let (house, bundle) = passed();
    // The index is a mirror, no evidence, and may catch up.
    let state = || {
        let files = cto_testkit::files_below(house.root()).into_iter();
        files
            .filter(|(name, _)| !name.starts_with("state/cto.db"))
            .collect::<Vec<_>>()
    };
    let before = state();
    for args in [
        &["verify"][..],
        &["show", "--events"],
        &["runs"],
        &["show", "--json"],
    ] {
        assert_eq!(house.cto(args).code, Some(0), "{args:?}");
    }
    assert_eq!(state(), before, "{}", bundle.run_id());
}

#[test]
fn a_run_is_judged_by_the_rules_its_chain_names() {
    let (house, bundle) = passed();
    assert_eq!(bundle.events()[0]["data"]["rules"], 10);
    assert_eq!(bundle.report()["report_renderer"], 9);
    let answer = house.cto(&["verify"]);
    assert!(
        answer
            .stdout
            .contains("re-derived from the evidence by rules 10"),
        "{answer:?}"
    );
    // Without a number: the bundles of before there were numbers.
    let old = Forged::copy_of(&bundle);
    old.edit_event("run.started", |data| {
        drop(data.as_object_mut().unwrap().remove("rules"))
    });
    old.edit_report(|report| {
        let taken = |value: &mut serde_json::Value, name: &str| {
            value.as_object_mut().unwrap().remove(name);
        };
        taken(report, "report_renderer");
        taken(report, "belief");
        taken(&mut report["verification"][0], "belief");
        taken(&mut report["verification"][0], "because");
    })
    .reseal();
    let found = crate::verdict(&old.bundle());
    assert_eq!(
        (found.standing, found.rules.map(|rules| rules.0)),
        (Standing::Good, Some(1)),
        "{found:?}"
    );
    // Nobody asked then: what does not fit is said, and changes nothing.
    let said = |found: &cto_core::verify::Verification| {
        let told = found.not_re_derived.iter();
        told.map(|one| one.artifact.clone()).collect::<Vec<_>>()
    };
    assert_eq!(said(&found), ["report.md"], "{found:?}");
    // The page as it was then: it knew no times, and nothing of belief.
    let page = old.bundle().text("report.md");
    let of_later = |line: &&str| {
        ["  believed: ", "- **checks ", "- seen by the checks"]
            .iter()
            .any(|begin| line.starts_with(begin))
    };
    let page: String = page
        .lines()
        .filter(|line| !of_later(line))
        .map(|line| format!("{line}\n"))
        .collect();
    let page = page.replace(
        "changed. The checks pass where the engine never was, fail where they must, and load what was changed.",
        "changed, the checks pass where the engine never was, and they fail where they must.",
    );
    let (before, after) = page.split_once("## Time\n").unwrap();
    let after = after.split_once("## ").unwrap().1;
    old.put("report.md", format!("{before}## {after}").as_bytes());
    old.edit_report(|report| report["report_renderer"] = 2.into())
        .edit("gates.json", |gates| {
            drop(gates["gates"].as_array_mut().unwrap().remove(15));
        })
        .reseal();
    let found = crate::verdict(&old.bundle());
    assert_eq!(found.standing, Standing::Good, "{found:?}");
    assert_eq!(said(&found), ["gates.json"], "{found:?}");
    let answer = house.cto(&["verify", &old.dir.display().to_string()]);
    assert!(answer.stdout.contains("not re-derived"), "{answer:?}");
    // A number of later: nothing is said about the verdict, and nothing else is overlooked.
    let newer = Forged::copy_of(&bundle);
    newer
        .edit_event("run.started", |data| data["rules"] = 1000.into())
        .reseal();
    let found = crate::verdict(&newer.bundle());
    assert_eq!(
        (found.standing, found.status),
        (Standing::Unknown, None),
        "{found:?}"
    );
    let answer = house.cto(&["verify", &newer.dir.display().to_string()]);
    assert!(
        answer
            .stdout
            .contains("judged by rules 1000; this cto knows rules 1 to 10"),
        "{answer:?}"
    );
    newer.put("patch.diff", b"").reseal();
    assert_eq!(
        crate::verdict(&newer.bundle()).standing,
        Standing::Unknown,
        "what the chain means is not judged"
    );
    newer.put("patch.diff", b"x");
    crate::assert_bad(&newer.bundle(), "a changed file under rules nobody knows");
    let renderer = Forged::copy_of(&bundle);
    renderer
        .edit_report(|report| report["report_renderer"] = 1000.into())
        .reseal();
    assert_eq!(
        crate::verdict(&renderer.bundle()).standing,
        Standing::Unknown
    );
}
