use std::collections::BTreeMap;

use super::*;
use cto_core::run::event::{Dismissal, TimeLimit};

fn launch(script: &str, wall_ms: u64, idle_ms: u64) -> Launch {
    Launch {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        limits: Limits {
            wall: Duration::from_millis(wall_ms),
            idle: Duration::from_millis(idle_ms),
            memory_kib: u64::MAX,
        },
        jail: None,
        streams: Streams::Taken,
    }
}

fn shell(script: &str, wall_ms: u64, idle_ms: u64) -> (Ended, Vec<u8>, Vec<u8>) {
    let job = launch(script, wall_ms, idle_ms);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = run(
        &job,
        &Cancel::never().unwrap(),
        &mut |stream, bytes| match stream {
            Stream::Stdout => out.extend_from_slice(bytes),
            Stream::Stderr => err.extend_from_slice(bytes),
        },
    )
    .unwrap();
    (ended, out, err)
}

#[test]
fn output_and_code_come_back() {
    let (ended, out, err) = shell("echo hi; echo ho >&2; exit 7", 5000, 5000);
    assert_eq!(
        (ended.end, out.as_slice(), err.as_slice()),
        (ProcessEnd::Exited { code: 7 }, &b"hi\n"[..], &b"ho\n"[..])
    );
}

#[test]
fn nothing_is_inherited_and_stdin_is_closed() {
    let (ended, out, _) = shell("env | grep -c CARGO; read x && echo read", 5000, 5000);
    assert_eq!(out, b"0\n");
    assert_eq!(ended.end, ProcessEnd::Exited { code: 1 });
}

#[test]
fn a_signal_is_not_an_exit() {
    assert_eq!(
        shell("kill -9 $$", 5000, 5000).0.end,
        ProcessEnd::Signalled { signal: 9 }
    );
}

#[test]
fn limits_end_it_even_when_it_ignores_the_asking() {
    assert_eq!(
        shell("trap '' TERM; sleep 60", 60_000, 150).0.end,
        ProcessEnd::TimedOut {
            limit: TimeLimit::Idle
        }
    );
    assert_eq!(
        shell("while :; do echo x; sleep 0.02; done", 200, 60_000)
            .0
            .end,
        ProcessEnd::TimedOut {
            limit: TimeLimit::Wall
        }
    );
    assert_eq!(
        shell(
            "trap 'exit 0' TERM; while :; do sleep 0.05; done",
            150,
            60_000
        )
        .0
        .end,
        ProcessEnd::TimedOut {
            limit: TimeLimit::Wall
        }
    );
}

#[test]
fn a_background_child_neither_holds_us_nor_survives() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("late");
    let started = Instant::now();
    let (ended, ..) = shell(
        &format!("(sleep 2; touch {}) & echo started", mark.display()),
        30_000,
        30_000,
    );
    assert_eq!(ended.end, ProcessEnd::Exited { code: 0 });
    assert!(started.elapsed() < Duration::from_secs(2));
    std::thread::sleep(Duration::from_millis(2300));
    assert!(!mark.exists());
}

#[test]
fn a_missing_program_is_said_so() {
    let job = Launch {
        program: "/nonexistent/x".into(),
        args: vec![],
        cwd: "/".into(),
        env: BTreeMap::new(),
        limits: Limits {
            wall: Duration::from_secs(1),
            idle: Duration::from_secs(1),
            memory_kib: u64::MAX,
        },
        jail: None,
        streams: Streams::Taken,
    };
    assert!(matches!(
        run(&job, &Cancel::never().unwrap(), &mut |_, _| {}),
        Err(SuperviseError::Spawn { .. })
    ));
}

/// Bare processes: nothing wakes their watchers but the signal itself, or an end that is far away.
#[test]
fn one_cancel_ends_every_run_of_the_process() {
    let cancel = std::sync::Arc::new(Cancel::never().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    for _ in 0..4 {
        let (cancel, tell) = (cancel.clone(), tell.clone());
        std::thread::spawn(move || {
            let job = Launch {
                program: "/bin/sleep".into(),
                args: vec!["60".into()],
                cwd: "/".into(),
                env: BTreeMap::new(),
                limits: Limits {
                    wall: Duration::from_secs(60),
                    idle: Duration::from_secs(60),
                    memory_kib: u64::MAX,
                },
                jail: None,
                streams: Streams::Taken,
            };
            tell.send(run(&job, &cancel, &mut |_, _| {}).unwrap().end)
                .unwrap();
        });
    }
    std::thread::sleep(Duration::from_millis(300));
    cancel.pretend(2).unwrap();
    let ends: Vec<Option<ProcessEnd>> = (0..4)
        .map(|_| told.recv_timeout(Duration::from_secs(20)).ok())
        .collect();
    assert_eq!(ends, [Some(ProcessEnd::Cancelled); 4]);
}

/// Says a line for each it hears, and lets go after the third.
struct Echo {
    heard: Vec<u8>,
    dismiss: Option<Dismissal>,
}

impl Attendant for Echo {
    fn begin(&mut self, desk: &mut Desk) {
        desk.say(b"first\n");
    }

    fn hear(&mut self, _: Stream, bytes: &[u8], desk: &mut Desk) {
        self.heard.extend_from_slice(bytes);
        match self.heard.iter().filter(|byte| **byte == b'\n').count() {
            3.. => self
                .dismiss
                .into_iter()
                .for_each(|because| desk.dismiss(because)),
            count => desk.say(format!("line {count}\n").as_bytes()),
        }
    }
}

fn talk(script: &str, dismiss: Option<Dismissal>) -> (Ended, String) {
    let job = Launch {
        streams: Streams::Talked,
        ..launch(script, 5000, 1000)
    };
    let mut echo = Echo {
        heard: Vec::new(),
        dismiss,
    };
    let running = start(&job).unwrap();
    let ended = running.finish_attended(&Cancel::never().unwrap(), &mut echo);
    (ended.unwrap(), String::from_utf8(echo.heard).unwrap())
}

#[test]
fn it_is_answered_and_may_go() {
    let because = Dismissal::Answered;
    let dismissed = ProcessEnd::Dismissed { because };
    let parrot = "while read -r x; do echo \"said $x\"; done; exit 3";
    let (ended, heard) = talk(parrot, Some(because));
    assert_eq!(heard, "said first\nsaid line 1\nsaid line 2\n");
    assert_eq!(ended.end, dismissed, "its input ended, and it with it");
    // One that stays is ended.
    let started = Instant::now();
    let deaf = "trap '' TERM; while read -r x; do echo \"said $x\"; done; sleep 60";
    assert_eq!(talk(deaf, Some(because)).0.end, dismissed);
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn one_that_does_not_read_meets_the_idle_limit() {
    let idle = ProcessEnd::TimedOut {
        limit: TimeLimit::Idle,
    };
    assert_eq!(talk("sleep 60", None).0.end, idle);
    assert_eq!(
        talk("exec <&-; echo a; echo b; exit 4", None).0.end,
        ProcessEnd::Exited { code: 4 }
    );
}
