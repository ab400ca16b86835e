//! Case that stays when its work is done, hangs while its heart beats, or ruins HEAD of its copy. It is ended early only where
//! all three hold that decision 0080 names; what comes of it is what was measured and verified, as ever.

use std::fs;
use std::time::Instant;

use cto_testkit::{Bundle, Case, Repo};
use serde_json::{Value, json};

use crate::fixtures::lasting::lasting;
use crate::fixtures::people::houses;
use crate::fixtures::pi_lab::{CASE, Lab, assert_no_leak, quick};
use crate::{assert_good, house};

use super::{
    assert_kept_apart, case_program, commits, double_in, envelope, fine, implements, is_double,
    lab, only_of_the_double, right, scenario, shell,
};

const MARKER: &str = "backend/provider-lifecycle-harness-completed.txt";

/// A case whose engine may be silent for as many seconds.
fn idle(seconds: u32) -> Case {
    Case::new("quick").extra(&format!(
        "\n[limits]\nmodel_stall_seconds = 2\nengine_idle_seconds = {seconds}\n"
    ))
}

fn lab_of(house: cto_testkit::House, case: &Case) -> Lab {
    let program = case_program(&house);
    let case = house.case(case);
    house.hand_over(&house.root().join("cases"));
    Lab::of(&CASE, &program, house, case)
}

/// The last phase goes well, and it stays then.
fn ends_and(habits: &[&str]) -> String {
    envelope(json!({"status": "completed", "summary": "done", "double": habits}))
}

fn stays() -> String {
    ends_and(&["lingers", "restless"])
}

fn ended(bundle: &Bundle) -> Value {
    bundle.event("engine.ended").unwrap()
}

fn assert_dismissed(bundle: &Bundle) {
    let ended = ended(bundle);
    if is_double() {
        let lingered = json!({"kind": "dismissed", "because": "lingered"});
        assert_eq!(ended["end"], lingered, "{ended}");
        assert!(bundle.has(MARKER));
    }
    assert!(!bundle.has("backend/provider-timeout.txt"));
    assert_ne!(ended["head"]["before"], ended["head"]["after"], "{ended}");
}

#[test]
fn one_that_stays_after_its_work_is_ended_and_judged_as_ever() {
    for house in houses() {
        let lab = lab_of(house, &quick());
        let turns = [implements(), fine(), fine(), fine(), stays()];
        let model = lab.model(&scenario(&turns));
        let begun = Instant::now();
        let (answer, bundle) = lab.run(&model, &[]);
        assert_eq!(answer.code, Some(0), "{}", bundle.report()["blockers"]);
        assert!(
            begun.elapsed().as_secs() < 60,
            "the idle limit is 120 seconds"
        );
        assert_dismissed(&bundle);
        assert_good(&bundle);
        assert_no_leak(&bundle, &model);
        assert_kept_apart(&bundle);
        assert_eq!(bundle.changed_files(), ["answer.txt"]);
        assert_eq!(bundle.report()["claimed"]["status"], "completed");
    }
}

#[test]
fn in_a_persons_repository_with_history_only_a_new_commit_is_work() {
    // A try goes further than stage 2.
    let Some(place) = lasting() else { return };
    let house = house();
    let program = match is_double() {
        true => double_in(place.path()),
        false => case_program(&house),
    };
    let case = house.case(&quick());
    let lab = Lab::of(&CASE, &program, house, case);
    let done = [implements(), fine(), fine(), fine(), stays()];
    assert_eq!(lab.play(&scenario(&done), &[]).status(), "pass", "stage 2");
    let repo = Repo::new(&lab.house, "mine");
    for (text, why) in [
        ("one\n", "first"),
        ("two\n", "second"),
        ("wrong\n", "a bug"),
    ] {
        repo.write("answer.txt", text);
        repo.write("control.txt", "fine\n");
        // What the engine is not shown: its HEAD is another commit than the baseline's.
        repo.write("AGENTS.md", "orders\n");
        repo.commit(why);
    }
    let control = lab.house.root().join("control.patch");
    let patch = "--- a/control.txt\n+++ b/control.txt\n@@ -1 +1 @@\n-fine\n+broken\n";
    fs::write(&control, patch).unwrap();
    let tries = |turns: &[String]| {
        let model = lab.model(&scenario(turns));
        let (_, bundle) = lab.house.run_args(&[
            "try",
            "--repo",
            repo.path(),
            "--engine",
            "case",
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
            "--timeout",
            "15",
            "--json",
        ]);
        bundle
    };
    let bundle = tries(&done);
    assert_eq!(bundle.status(), "pass", "{}", bundle.report()["blockers"]);
    assert_dismissed(&bundle);
    assert_good(&bundle);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    if !only_of_the_double("staying without a commit") {
        return;
    }
    // The same work, never committed: its history is no work, and a green patch does not make a timeout good.
    let bundle = tries(&[right(), fine(), fine(), fine(), fine(), stays()]);
    assert_eq!(
        bundle.codes(),
        ["timeout", "lifecycle_timeout_after_valid_patch"]
    );
    let ended = ended(&bundle);
    assert_eq!(ended["end"]["kind"], "timed_out", "{ended}");
    assert_eq!(ended["head"]["before"], ended["head"]["after"]);
    assert!(!bundle.has(MARKER) && bundle.has("backend/provider-timeout.txt"));
}

#[test]
fn what_its_heart_beats_for_is_no_work() {
    if !only_of_the_double("hanging while its heart beats") {
        return;
    }
    let lab = lab_of(house(), &idle(2));
    let hangs = || ends_and(&["hangs", "restless"]);
    // Committed and silent: it is ended, and its last word is missing.
    let turns = [implements(), fine(), fine(), fine(), hangs()];
    let bundle = lab.play(&scenario(&turns), &[]);
    assert_eq!(bundle.codes(), ["missing_required_event"]);
    assert_dismissed(&bundle);
    assert_good(&bundle);
    // Never committed: an ordinary timeout, however green.
    let turns = [right(), fine(), fine(), fine(), fine(), hangs()];
    let bundle = lab.play(&scenario(&turns), &[]);
    assert_eq!(
        bundle.codes(),
        ["timeout", "lifecycle_timeout_after_valid_patch"]
    );
    assert!(!bundle.has(MARKER));
    // A tool that hangs is no sign of life either.
    let hung = shell("sleep 600");
    let bundle = lab.play(&scenario(&[right(), hung]), &[]);
    assert_eq!(
        bundle.codes(),
        ["timeout", "lifecycle_timeout_after_valid_patch"]
    );
    assert_eq!(ended(&bundle)["end"]["limit"], "idle");
}

#[test]
fn work_beyond_its_scope_is_not_taken_for_an_end() {
    if !only_of_the_double("staying after work beyond its scope") {
        return;
    }
    let lab = lab_of(house(), &idle(2));
    let rows: [(&str, String, &[&str]); 3] = [
        (
            "the closer writes where it may not, after the commit",
            shell("echo more > beside.txt"),
            &["disallowed_file_change", "timeout"],
        ),
        (
            "the closer commits it",
            shell("echo x > new.txt; git add new.txt; git commit -qm more"),
            &["disallowed_file_change", "timeout"],
        ),
        (
            "the closer leaves a pipe",
            shell("mkfifo pipe"),
            &["disallowed_file_change", "timeout"],
        ),
    ];
    for (what, closer, codes) in rows {
        let turns = [implements(), fine(), fine(), closer, fine(), stays()];
        let bundle = lab.play(&scenario(&turns), &[]);
        for code in codes {
            assert!(bundle.has_code(code), "{what}: {:?}", bundle.codes());
        }
        assert!(!bundle.has(MARKER), "{what}");
        assert_eq!(ended(&bundle)["end"]["kind"], "timed_out", "{what}");
    }
    // What it does in scope after the commit is part of what is measured.
    let late = shell("echo wrong > answer.txt");
    let turns = [implements(), fine(), fine(), late, fine(), stays()];
    let bundle = lab.play(&scenario(&turns), &[]);
    assert_eq!(bundle.status(), "fail", "the last state counts");
    assert_dismissed(&bundle);
}

#[test]
fn a_ruined_head_is_typed_and_ends_nothing_early() {
    let lab = lab_of(house(), &idle(2));
    let branch = "$(git symbolic-ref HEAD)";
    let rows = [
        ("a link", "rm .git/HEAD; ln -s /etc/hostname .git/HEAD".to_owned(), "not_a_file"),
        ("a pipe", "rm .git/HEAD; mkfifo .git/HEAD".to_owned(), "not_a_file"),
        ("a directory", "rm .git/HEAD; mkdir .git/HEAD".to_owned(), "not_a_file"),
        ("gone", "rm .git/HEAD".to_owned(), "missing"),
        ("garbage", "echo nonsense > .git/HEAD".to_owned(), "garbled"),
        ("sparse", "truncate -s 1T .git/HEAD".to_owned(), "too_large"),
        ("a way out", "echo 'ref: ../../etc/passwd' > .git/HEAD".to_owned(), "strange_name"),
        (
            "a loop",
            "echo 'ref: refs/heads/a' > .git/HEAD; echo 'ref: refs/heads/b' > .git/refs/heads/a; echo 'ref: refs/heads/a' > .git/refs/heads/b".to_owned(),
            "loop",
        ),
        ("no such branch", "echo 'ref: refs/heads/none' > .git/HEAD".to_owned(), "unborn"),
        (
            "a branch that is a link",
            format!("b={branch}; rm .git/$b; ln -s /etc/hostname .git/$b"),
            "not_a_file",
        ),
        (
            "a packed line of garbage",
            format!("b={branch}; rm .git/$b; echo \"zzz $b\" > .git/packed-refs"),
            "garbled",
        ),
    ];
    for (what, ruin, problem) in &rows {
        let turns = [implements(), fine(), fine(), shell(ruin), fine(), fine()];
        let bundle = lab.play(&scenario(&turns), &[]);
        assert_eq!(
            ended(&bundle)["head"]["after"],
            json!({"none": problem}),
            "{what}"
        );
        assert_eq!(
            bundle.status(),
            "pass",
            "{what}: {}",
            bundle.report()["blockers"]
        );
        assert!(!bundle.has(MARKER), "{what}");
        assert_good(&bundle);
    }
    if only_of_the_double("staying with a ruined HEAD") {
        let (what, ruin, _) = &rows[0];
        let turns = [implements(), fine(), fine(), shell(ruin), fine(), stays()];
        let bundle = lab.play(&scenario(&turns), &[]);
        assert_eq!(
            bundle.codes(),
            ["timeout", "lifecycle_timeout_after_valid_patch"],
            "{what}"
        );
        assert!(!bundle.has(MARKER));
    }
}

#[test]
fn the_commit_it_names_stands_beside_the_head_that_was_seen() {
    let lab = lab(house());
    let naming = |commit: &str| {
        let artifacts = json!({"commit": commit, "filesChanged": ["answer.txt"]});
        envelope(json!({"status": "completed", "summary": "done", "artifacts": artifacts}))
    };
    let nowhere = "feedfacefeedfacefeedfacefeedfacefeedface";
    let after = || [fine(), fine(), fine()].concat();
    let packed = shell("git pack-refs --all --prune");
    let rows = [
        (
            "an id that is nowhere",
            vec![right(), commits(), naming(nowhere), after(), fine()],
            true,
        ),
        (
            "a claim and nothing else",
            vec![naming(nowhere), after(), fine()],
            false,
        ),
        (
            "packed",
            vec![right(), commits(), packed, naming(nowhere), after(), fine()],
            true,
        ),
    ];
    for (what, turns, changed) in rows {
        let bundle = lab.play(&scenario(&turns), &[]);
        let codes: &[&str] = if changed { &[] } else { &["no_diff"] };
        assert_eq!(bundle.codes(), codes, "{what}");
        let report = bundle.report();
        assert_eq!(report["claimed"]["commit"], nowhere, "{what}");
        let head = &report["observed"]["engine_head"];
        let (before, after) = (&head["before"]["commit"], &head["after"]["commit"]);
        assert!(before.is_string() && after.is_string(), "{what}: {head}");
        assert_eq!(before != after, changed, "{what}");
        assert_ne!(report["result"]["commit"], nowhere, "{what}");
        let page = bundle.text("report.md");
        assert!(
            page.contains("The commit it named is not where HEAD was seen."),
            "{what}: {page}"
        );
        assert_good(&bundle);
    }
    // The commit that was there before it began, as its work.
    let old = shell("git rev-parse HEAD");
    let bundle = lab.play(&scenario(&[old, fine(), after(), fine()]), &[]);
    let base = bundle.report()["observed"]["engine_head"]["before"]["commit"].clone();
    let bundle = lab.play(
        &scenario(&[naming(base.as_str().unwrap()), after(), fine()]),
        &[],
    );
    assert_eq!(bundle.codes(), ["no_diff"]);
    assert_eq!(bundle.report()["claimed"]["commit"], base);
    let page = bundle.text("report.md");
    assert!(page.contains("was there before it began"), "{page}");
}

#[test]
fn a_replay_tells_phases_revisions_and_what_each_cost() {
    let lab = lab(house());
    let soft = || {
        let category = json!({"category": "scope", "verdict": "fail", "hard": false});
        let rubric = json!({"role": "reviewer", "categories": [category]});
        envelope(json!({"status": "completed", "rubric": rubric}))
    };
    let turns = [
        implements(),
        fine(),
        soft(),
        fine(),
        fine(),
        fine(),
        fine(),
        fine(),
    ];
    // Phases that last: when a call began and when a phase did is known to some milliseconds.
    let lasting = scenario(&turns).replace("[[turn]]\n", "[[turn]]\nfirst_ms = 100\n");
    let bundle = lab.play(&lasting, &[]);
    assert_eq!(bundle.status(), "pass", "{}", bundle.report()["blockers"]);
    let told = lab
        .house
        .cto(&["replay", &bundle.run_id(), "--json"])
        .json();
    let told = &told["agent_phases"];
    let phases = told["phases"].as_array().unwrap().iter();
    let seen: Vec<(&str, Option<u64>, u64)> = phases
        .map(|phase| {
            (
                phase["phase"].as_str().unwrap(),
                phase["revision"].as_u64(),
                phase["calls"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("implementer", None, 3),
            ("verifier", None, 1),
            ("reviewer", None, 1),
            ("implementer", Some(1), 1),
            ("verifier", Some(1), 1),
            ("reviewer", Some(1), 1),
            ("closer", Some(1), 1),
            ("retrospective", Some(1), 1),
        ],
        "{told}"
    );
    let used = &bundle.report()["model_use"];
    let calls: u64 = seen.iter().map(|(_, _, calls)| calls).sum();
    assert_eq!(
        used["calls"],
        calls + told["elsewhere"]["calls"].as_u64().unwrap()
    );
    let shown = lab.house.cto(&["replay", &bundle.run_id()]);
    assert!(
        shown.stdout.contains("implementer, revision 1"),
        "{shown:?}"
    );
}
