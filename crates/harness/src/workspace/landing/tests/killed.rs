//! Killed at every step, and what its owner did before a recovery.

use std::process::Command;

use super::*;

const STEPS: [&str; 14] = [
    "journal",
    "room",
    "lock",
    "objects",
    "made",
    "one path",
    "paths",
    "new index",
    "index",
    "ref",
    "unlocked",
    "room gone",
    "ended",
    "nowhere",
];

/// What a process of its own does, for `killed`: nextest knows it as ignored.
#[test]
#[ignore = "started by other tests"]
fn child() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    let lab = Lab {
        dir: place.into(),
        _held: None,
    };
    let way = std::env::var("CTO_LANDING_TEST_WAY").unwrap();
    let settled = lab.land_as(|order| order.way = Way::named(&way).unwrap());
    settled.unwrap().settled().unwrap();
}

/// Says whether the process was killed.
fn killed(lab: &Lab, way: Way, step: &str) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "workspace::landing::tests::killed::child",
            "--ignored",
            "--nocapture",
        ])
        .env(PLACE, &lab.dir)
        .env(STOP, step)
        .env("CTO_LANDING_TEST_WAY", way.as_str())
        .output()
        .unwrap();
    let killed = status.status.signal() == Some(9);
    assert!(killed || status.status.success(), "{step}: {status:?}");
    killed
}

#[test]
fn killed_at_every_step_one_recovery_ends_it() {
    for step in STEPS {
        let lab = Lab::new();
        lab.write("untracked", "mine\n");
        lab.write("other", "uncommitted, and not touched\n");
        let head = lab.git(&["rev-parse", "HEAD"]);
        let was_killed = killed(&lab, Way::Merge, step);
        assert_eq!(was_killed, step != "nowhere", "{step}");
        // Before recovery: no byte of the owner's is lost.
        let held = |text: &str| lab.bytes().values().any(|bytes| bytes == text.as_bytes());
        for text in ["mine\n", "uncommitted, and not touched\n"] {
            assert!(held(text), "{step}: {text}");
        }
        let recovered = lab.recover();
        for one in &recovered {
            assert!(
                matches!(one.result, Ok(End::Landed | End::Undone)),
                "{step}: {:?}",
                one.result
            );
        }
        assert_eq!(
            (lab.read("untracked"), lab.read("other")),
            ("mine\n".into(), "uncommitted, and not touched\n".into())
        );
        fs::remove_file(lab.repo().join("untracked")).unwrap();
        lab.git(&["checkout", "-q", "other"]);
        assert_eq!(lab.git(&["status", "--porcelain"]), "", "{step}");
        let passed_the_point =
            STEPS.iter().position(|s| *s == step) >= STEPS.iter().position(|s| *s == "ref");
        assert_eq!(
            lab.git(&["rev-parse", "HEAD"]) != head,
            passed_the_point,
            "{step}"
        );
        match passed_the_point {
            true => lab.assert_landed(step),
            false => {
                assert_eq!(lab.read("a"), "old\n", "{step}");
                assert_eq!(
                    (lab.read("turns"), lab.read("gone")),
                    ("t\n".into(), "x\n".into()),
                    "{step}"
                );
                assert!(!lab.repo().join("new").exists(), "{step}");
                lab.assert_tidy(step);
                // And it can land after that.
                lab.land().unwrap().settled().unwrap();
                lab.assert_landed(step);
            }
        }
        assert!(lab.recover().is_empty(), "{step}: once is enough");
    }
}

#[test]
fn a_killed_branch_is_there_or_not() {
    for step in ["journal", "objects", "room gone", "ended"] {
        let lab = Lab::new();
        let work = lab.work_bytes();
        assert!(killed(&lab, Way::Branch, step), "{step}");
        lab.recover();
        let name = format!("refs/heads/cto/{RUN}");
        let there = !lab.git(&["for-each-ref", &name]).is_empty();
        assert_eq!(there, step != "journal" && step != "objects", "{step}");
        assert_eq!(lab.work_bytes(), work, "{step}");
        lab.assert_tidy(step);
    }
}

/// The owner goes on before anything was recovered: what they did is theirs.
#[test]
fn work_between_a_kill_and_its_recovery_is_left_alone() {
    for step in ["one path", "paths", "index", "ref"] {
        let lab = Lab::new();
        assert!(killed(&lab, Way::Merge, step));
        lab.write("a", "typed after the crash\n");
        let recovered = lab.recover();
        assert_eq!(recovered.len(), 1, "{step}");
        assert_eq!(lab.read("a"), "typed after the crash\n", "{step}");
        assert!(!lab.repo().join(".git/index.lock").exists(), "{step}");
    }
    // Another git's lock is never removed, and while it is there nothing is done.
    let lab = Lab::new();
    assert!(killed(&lab, Way::Merge, "paths"));
    lab.write(".git/index.lock", "another git's");
    fs::remove_file(lab.repo().join(".git/index.lock")).unwrap();
    lab.write(".git/index.lock", "another git's");
    let before = lab.work_bytes();
    assert!(matches!(
        lab.recover()[0].result,
        Err(recover::RecoverError::Wait)
    ));
    assert_eq!(
        (lab.work_bytes(), lab.read(".git/index.lock")),
        (before, "another git's".into())
    );
    fs::remove_file(lab.repo().join(".git/index.lock")).unwrap();
    assert!(matches!(lab.recover()[0].result, Ok(End::Undone)));
    assert_eq!(
        (lab.read("a"), lab.git(&["status", "--porcelain"])),
        ("old\n".into(), String::new())
    );
}

#[test]
fn a_landing_that_awaits_its_settlement_is_known_after_a_crash() {
    let lab = Lab::new();
    let run: RunId = RUN.parse().unwrap();
    let landed = lab.land_as(|order| order.awaits_settlement = true).unwrap();
    let commit = landed.commit.clone();
    drop(landed);
    assert!(lab.recover().is_empty());
    let mut waiting = recover::of_run(&lab.home(), &run);
    assert_eq!(
        (waiting.len(), &waiting[0].commit, waiting[0].end),
        (1, &commit, End::Landed)
    );
    waiting.remove(0).settled().unwrap();
    assert!(recover::of_run(&lab.home(), &run).is_empty());
    lab.assert_landed("settled later");
}

#[test]
fn asked_to_stop_it_leaves_everything_as_it_was() {
    let lab = Lab::new();
    let (before, cancel) = (lab.bytes(), Cancel::never().unwrap());
    cancel.pretend(2).unwrap();
    let ended = lab.with_order(|_| {}, |order| land(order, &cancel));
    assert!(matches!(ended, Err(LandingError::Interrupted)), "{ended:?}");
    assert_eq!(lab.bytes(), before);
    lab.assert_tidy("stopped");
}

#[test]
fn a_journal_that_is_none_is_said_and_left() {
    let lab = Lab::new();
    lab.home().create().unwrap();
    host::make_private_dir(&lab.home().journal()).unwrap();
    fs::write(lab.home().journal().join("x.json"), "{}").unwrap();
    let found = lab.recover();
    assert!(matches!(
        found[0].result,
        Err(recover::RecoverError::Journal(_))
    ));
    assert!(lab.home().journal().join("x.json").exists());
}
