use proptest::prelude::*;

use super::*;
use crate::values::digest::Digest;

const NONCE: &str = "k3j4h5k3j4h5k3j4h5k3j4h5";

fn run_id() -> RunId {
    "20260102T030405Z-quick-ab12cd34".parse().unwrap()
}

fn check(kind: CheckKind, code: u8) -> Check {
    Check {
        kind,
        command: "sh t".into(),
        end: ProcessEnd::Exited { code },
        duration_ms: 7,
        lacks: Vec::new(),
    }
}

fn done() -> VerificationCompleted {
    let control = ControlRun::Ran {
        heard: Vec::new(),
        checks: vec![check(CheckKind::Visible, 1)],
        failures_added: None,
        failures_reported: None,
    };
    VerificationCompleted {
        checks: vec![check(CheckKind::Visible, 0), check(CheckKind::Hidden, 0)],
        control: Some(control),
        baseline_checks: vec![check(CheckKind::Visible, 1)],
        tree: Some(Digest::of(b"tree")),
        log_nonce: Some(NONCE.into()),
        ..VerificationCompleted::nothing(Digest::of(b""))
    }
}

const SECTIONS: [(Section, u8); 6] = [
    (Section::Setup, 0),
    (Section::Check, 0),
    (Section::Hidden, 0),
    (Section::Setup, 0),
    (Section::Control, 1),
    (Section::Baseline, 1),
];

fn section(number: u64, of: Section, code: u8, output: &str) -> String {
    let end = frame_end(NONCE, number, of, ProcessEnd::Exited { code }, 7);
    format!(
        "{}\n$ sh t\n{output}\n{end}\n",
        frame_begin(NONCE, number, of)
    )
}

fn log(output: &str) -> String {
    let head = log_header(
        &run_id(),
        &Digest::of(b"contract"),
        &Digest::of(b"tree"),
        NONCE,
    );
    let sections: String = SECTIONS
        .iter()
        .zip(1..)
        .map(|((of, code), number)| section(number, *of, *code, output))
        .collect();
    format!("{head}{sections}")
}

fn wrong(log: &str) -> Option<&'static str> {
    let mut reader = LogReader::default();
    log.as_bytes()
        .chunks(11)
        .for_each(|chunk| reader.feed(chunk));
    log_contradiction(
        &reader.finish(),
        &run_id(),
        &Digest::of(b"contract"),
        &done(),
    )
}

#[test]
fn a_log_fits_its_event_whatever_was_printed() {
    assert_eq!(wrong(&log("ok")), None);
    let fake = token("guessed", "end", 2);
    let forged = format!(
        "x\n[cto:{fake} end 2 check: exit code 0, 7 ms]\n[cto:{fake} begin 3 hidden]\n[cto: y\n[cto:"
    );
    assert_eq!(
        wrong(&log(&forged)),
        None,
        "what looks like a frame is output"
    );
    assert_eq!(wrong(&log(&"long".repeat(5000))), None);
}

#[test]
fn a_log_of_something_else_does_not() {
    let good = log("ok");
    let line = |number: u64, of: Section, code: u8| {
        frame_end(NONCE, number, of, ProcessEnd::Exited { code }, 7)
    };
    for (what, bad) in [
        (
            "another tree",
            good.replacen(
                &Digest::of(b"tree").to_hex(),
                &Digest::of(b"other").to_hex(),
                1,
            ),
        ),
        ("another run", good.replacen("quick", "other", 1)),
        (
            "another exit code",
            good.replacen(&line(2, Section::Check, 0), &line(2, Section::Check, 1), 1),
        ),
        (
            "another section",
            good.replacen(&line(3, Section::Hidden, 0), &line(3, Section::Check, 0), 1),
        ),
        (
            "a section taken out",
            good.replacen(&section(6, Section::Baseline, 1, "ok"), "", 1),
        ),
        (
            "a section cut off",
            good.replacen(&line(6, Section::Baseline, 1), "", 1),
        ),
        (
            "a section in the middle taken out",
            good.replacen(&section(3, Section::Hidden, 0, "ok"), "", 1),
        ),
        (
            "a section twice",
            format!("{good}{}", section(6, Section::Baseline, 1, "ok")),
        ),
        (
            "a section too many",
            format!("{good}{}", section(7, Section::Check, 0, "ok")),
        ),
        (
            "another begin",
            good.replacen("begin 2 check]", "begin 2 other]", 1),
        ),
        ("nothing", String::new()),
    ] {
        assert!(wrong(&bad).is_some(), "{what}");
    }
}

#[test]
fn an_event_without_a_nonce_binds_no_frames() {
    let old = VerificationCompleted {
        log_nonce: None,
        ..done()
    };
    assert_eq!(
        log_contradiction(
            &FoundLog::default(),
            &run_id(),
            &Digest::of(b"contract"),
            &old
        ),
        None
    );
}

proptest! {
    /// No bytes panic, and how they were cut into pieces means nothing.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(prop_oneof![Just(b'['), Just(b'c'), Just(b't'), Just(b'o'), Just(b':'), Just(b'\n'), any::<u8>()], 0..120), piece in 1usize..9) {
        let (mut whole, mut pieces) = (LogReader::default(), LogReader::default());
        whole.feed(&bytes);
        bytes.chunks(piece).for_each(|part| pieces.feed(part));
        let found = whole.finish();
        prop_assert_eq!(&found, &pieces.finish());
        prop_assert!(log_contradiction(&found, &run_id(), &Digest::of(b"contract"), &done()).is_some());
    }
}
