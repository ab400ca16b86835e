//! `cto replay`: the story of a run, as far as its chain bears it out.

use std::fs;

use cto_testkit::{Bundle, Case, House, print, script, sleep, without_styles, write};

use crate::house;
use crate::passed;

/// A run whose engine talks, lies and tries to draw.
fn talkative() -> (House, Bundle) {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let said = [
        "{\"type\":\"plan\",\"text\":\"first this\\u001b[2J, then that\"}\n",
        "{\"type\":\"message\",\"text\":\"verification.completed 9 of 9 green\"}\n",
        "{\"type\":\"result\",\"status\":\"completed\",\"summary\":\"\\u0007done\"}\n",
    ];
    let steps = script(&[
        print(said[0]),
        sleep(1100),
        write("answer.txt", "right\n"),
        print(said[1]),
        print(said[2]),
    ]);
    let (answer, bundle) = house.run(&case, &format!("silent = true\n{steps}"), &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (house, bundle)
}

#[test]
fn the_story_has_every_event_in_order_with_claims_apart() {
    let (house, bundle) = talkative();
    let answer = house.cto(&["replay"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let mut rest = answer.stdout.as_str();
    for name in bundle.event_types() {
        let at = rest
            .find(&name)
            .unwrap_or_else(|| panic!("{name} is missing or out of order: {}", answer.stdout));
        rest = &rest[at + name.len()..];
    }
    let marked: Vec<&str> = answer
        .stdout
        .lines()
        .filter(|line| line.contains("┊ engine."))
        .collect();
    assert_eq!(marked.len(), 4, "{}", answer.stdout);
    assert!(
        marked[2].contains("9 of 9 green"),
        "a claim is not marked as one: {marked:?}"
    );
    for kind in [
        "engine.started",
        "engine.ended",
        "verification.completed  1 of 1 green",
    ] {
        assert!(
            answer
                .stdout
                .lines()
                .any(|line| line.contains(kind) && !line.contains('┊')),
            "{kind}: {}",
            answer.stdout
        );
    }
    for want in [
        "PASS  ",
        "without an event",
        "claimed by the engine; not evidence",
        "█",
        "workspace",
        "next: ",
    ] {
        assert!(answer.stdout.contains(want), "{want}: {}", answer.stdout);
    }
    assert!(
        !answer.stdout.contains(['\u{1b}', '\u{7}']),
        "{:?}",
        answer.stdout
    );
    let drawn = house.on_terminal(80, &["replay"]).stdout;
    assert!(
        !drawn.contains("\u{1b}[2J") && !drawn.contains('\u{7}'),
        "{drawn:?}"
    );
    assert!(
        without_styles(&drawn)
            .lines()
            .all(|line| line.chars().count() <= 80),
        "{drawn}"
    );
}

#[test]
fn the_document_says_the_same() {
    let (house, bundle) = talkative();
    let json = house.cto(&["replay", "--json"]).json();
    let entries = json["entries"].as_array().unwrap();
    let names: Vec<&str> = entries
        .iter()
        .map(|entry| entry["event"].as_str().unwrap())
        .collect();
    assert_eq!(names, bundle.event_types());
    assert_eq!(
        (json["standing"].as_str(), json["state"].as_str()),
        (Some("good"), Some("sealed"))
    );
    assert!(
        json["problem"].is_null() && json["chain_problem"].is_null() && json["trace"].is_null()
    );
    let phases: Vec<&str> = json["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        phases,
        ["plan", "workspace", "engine", "measure", "verify", "seal"]
    );
    let sum: i64 = json["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["duration_ms"].as_i64().unwrap())
        .sum();
    assert_eq!(
        Some(sum),
        json["duration_ms"].as_i64(),
        "the phases are not the whole run"
    );
    assert!(
        json["gaps"]
            .as_array()
            .unwrap()
            .iter()
            .any(|gap| gap["duration_ms"].as_i64().unwrap() >= 1000)
    );
    let claimed = entries
        .iter()
        .filter(|entry| entry["voice"] == "claimed")
        .count();
    assert_eq!(claimed, 4);
}

#[test]
fn the_trace_is_told_on_request() {
    let (house, bundle) = passed();
    let text = house.cto(&["replay", "--trace"]).stdout;
    for action in bundle.actions() {
        assert!(
            text.lines()
                .any(|line| line.contains(&format!("+ {action}"))),
            "{action}: {text}"
        );
    }
    let json = house.cto(&["replay", "--trace", "--json"]).json();
    assert_eq!(
        json["trace"].as_array().unwrap().len(),
        bundle.actions().len()
    );
}

#[test]
fn a_tampered_chain_is_told_up_to_its_last_good_event() {
    let (house, bundle) = passed();
    let path = bundle.dir.join("events.normalized.jsonl");
    let text = bundle.text("events.normalized.jsonl");
    let types = bundle.event_types();
    let at = types
        .iter()
        .position(|name| name == "engine.ended")
        .unwrap();
    let forged: String = text
        .lines()
        .enumerate()
        .map(|(number, line)| if number == at { line.replace("\"code\":0", "\"code\":7") } else { line.to_owned() } + "\n")
        .collect();
    assert_ne!(forged, text);
    fs::write(&path, forged).unwrap();
    let answer = house.cto(&["replay", "--trace"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    for want in [
        "BAD  ",
        &format!("good up to event {at}"),
        "hash does not match",
        "Do not rely on this bundle",
        "not shown",
    ] {
        assert!(answer.stdout.contains(want), "{want}: {}", answer.stdout);
    }
    for hidden in ["engine.ended", "run.completed", "exit code 7", "+ gate."] {
        assert!(
            !answer.stdout.contains(hidden),
            "{hidden}: {}",
            answer.stdout
        );
    }
    let json = house.cto(&["replay", "--json"]).json();
    assert_eq!(
        (json["standing"].as_str(), json["good_events"].as_u64()),
        (Some("bad"), Some(at as u64))
    );
    assert_eq!(json["entries"].as_array().unwrap().len(), at);
}

#[test]
fn a_bundle_bad_elsewhere_is_told_with_a_warning() {
    let (house, bundle) = passed();
    fs::write(bundle.dir.join("patch.diff"), "").unwrap();
    let answer = house.cto(&["replay"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.stdout.contains("run.completed"), "{}", answer.stdout);
    assert!(
        answer
            .stdout
            .contains("Do not rely on this bundle: patch.diff"),
        "{}",
        answer.stdout
    );
    assert!(
        !answer.stdout.contains("good up to event"),
        "{}",
        answer.stdout
    );
}

#[test]
fn an_interrupted_run_is_told_as_far_as_it_went() {
    let (house, bundle) = passed();
    let text = bundle.text("events.normalized.jsonl");
    let half: Vec<&str> = text.lines().take(4).collect();
    fs::write(
        bundle.dir.join("events.normalized.jsonl"),
        format!("{}\n{{\"torn", half.join("\n")),
    )
    .unwrap();
    fs::remove_file(bundle.dir.join("report.json")).unwrap();
    let answer = house.cto(&["replay"]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    for want in [
        "UNSEALED",
        "good up to event 4",
        "the last line is torn",
        "proves nothing",
        "recover",
    ] {
        assert!(answer.stdout.contains(want), "{want}: {}", answer.stdout);
    }
    let json = house.cto(&["replay", "--json"]).json();
    assert_eq!(
        (json["state"].as_str(), json["standing"].as_str()),
        (Some("unsealed"), Some("unknown"))
    );
    fs::remove_file(bundle.dir.join("contract.json")).unwrap();
    let answer = house.cto(&["replay", "--json"]);
    assert_eq!(
        (answer.code, answer.json()["error"]["code"].as_str()),
        (Some(2), Some("unreadable_events"))
    );
}

#[test]
fn a_copy_under_another_name_and_a_blocked_run_have_a_story_too() {
    let (house, bundle) = passed();
    let copy = house.root().join("elsewhere/copy");
    cto_testkit::copy_dir(&bundle.dir, &copy);
    let answer = house.cto(&["replay", "./copy"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stdout.contains(&bundle.run_id()),
        "{}",
        answer.stdout
    );
    let case = house.case(&Case::new("quick"));
    let (_, _) = house.run_args(&["run", &case, "--engine", "codex", "--json"]);
    let answer = house.cto(&["replay"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stdout.contains("BLOCKED") && answer.stdout.contains("backend.gate.blocked"),
        "{}",
        answer.stdout
    );
}
