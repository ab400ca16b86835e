//! How `test.log` is bound: a header that names run, contract and tree, and a frame around the
//! output of every command. Each frame carries a token made from a random nonce. The nonce is drawn
//! after the engine has ended and is published only in the event, when no command of the contract
//! runs any more: so no output can begin, end or forge a section.

use crate::bundle::report_md::describe_end;
use crate::run::event::{Check, CheckKind, ControlRun, ProcessEnd, VerificationCompleted};
use crate::run::not_counted::NotCounted;
use crate::values::digest::Digest;
use crate::values::ids::RunId;

const FORMAT: &str = "cto-test-log/1";
const FRAME: &[u8] = b"[cto:";
/// No frame is longer.
const MAX_FRAME: usize = 256;

/// Whose output a section holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section {
    Setup,
    Check,
    Hidden,
    Control,
    Baseline,
    Loading,
}

impl Section {
    const ALL: [Self; 6] = [
        Self::Setup,
        Self::Check,
        Self::Hidden,
        Self::Control,
        Self::Baseline,
        Self::Loading,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Check => "check",
            Self::Hidden => "hidden",
            Self::Control => "control",
            Self::Baseline => "baseline",
            Self::Loading => "loading",
        }
    }
}

/// The first lines. They hold only the digest of the nonce; the nonce itself is still secret.
pub fn log_header(run_id: &RunId, contract: &Digest, tree: &Digest, nonce: &str) -> String {
    let sealed = Digest::tagged("cto-test-log-nonce/1\n", nonce.as_bytes());
    format!("{FORMAT}\nrun {run_id}\ncontract {contract}\ntree {tree}\nnonce sha256 {sealed}\n")
}

fn token(nonce: &str, word: &str, number: u64) -> String {
    let digest = Digest::tagged(
        "cto-test-log-frame/1\n",
        format!("{nonce}\n{word} {number}\n").as_bytes(),
    );
    digest.to_hex().chars().take(32).collect()
}

pub fn frame_begin(nonce: &str, number: u64, section: Section) -> String {
    format!(
        "[cto:{} begin {number} {}]",
        token(nonce, "begin", number),
        section.as_str()
    )
}

pub fn frame_end(
    nonce: &str,
    number: u64,
    section: Section,
    how: ProcessEnd,
    duration_ms: u64,
) -> String {
    format!(
        "[cto:{} end {number} {}: {}, {duration_ms} ms]",
        token(nonce, "end", number),
        section.as_str(),
        describe_end(how)
    )
}

/// A log as found: its first bytes, and every line that could be a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLog {
    head: Vec<u8>,
    frames: Vec<String>,
}

/// Reads a log of any length in pieces.
#[derive(Default)]
pub struct LogReader {
    found: FoundLog,
    line: Vec<u8>,
    /// The line cannot be a frame any more.
    passed_over: bool,
}

/// As much as a header can be.
const MAX_HEAD: usize = 1024;

impl LogReader {
    pub fn feed(&mut self, chunk: &[u8]) {
        let room = MAX_HEAD.saturating_sub(self.found.head.len());
        self.found.head.extend(chunk.iter().take(room));
        for byte in chunk {
            if *byte == b'\n' {
                self.end_line();
            } else if !self.passed_over {
                self.line.push(*byte);
                let may_be = FRAME.starts_with(&self.line) || self.line.starts_with(FRAME);
                self.passed_over = !may_be || self.line.len() > MAX_FRAME;
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !std::mem::take(&mut self.passed_over)
            && line.starts_with(FRAME)
            && let Ok(text) = String::from_utf8(line)
        {
            self.found.frames.push(text);
        }
    }

    pub fn finish(mut self) -> FoundLog {
        self.end_line();
        self.found
    }
}

/// Which of its tokens a line carries, if it carries one: begin or end, and the number.
fn placed<'a>(line: &'a str, nonce: &str) -> Option<(&'a str, u64)> {
    let mut words = line.strip_prefix("[cto:")?.split([' ', ']', ':']);
    let (found, word, number) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    (matches!(word, "begin" | "end") && found == token(nonce, word, number))
        .then_some((word, number))
}

/// What the event says ran, in the order of the log; setup is not in the event.
fn recorded(done: &VerificationCompleted) -> Vec<(Section, &Check)> {
    let of = |kind: CheckKind, section: Section| {
        done.checks
            .iter()
            .filter(move |check| check.kind == kind)
            .map(move |check| (section, check))
    };
    let control = match &done.control {
        Some(ControlRun::Ran { checks, .. }) => checks.as_slice(),
        _ => &[],
    };
    let rounds = done.loading.iter().flat_map(|run| &run.rounds);
    of(CheckKind::Visible, Section::Check)
        .chain(of(CheckKind::Hidden, Section::Hidden))
        .chain(control.iter().map(|check| (Section::Control, check)))
        .chain(
            done.baseline_checks
                .iter()
                .map(|check| (Section::Baseline, check)),
        )
        .chain(rounds.flat_map(|round| round.checks.iter().map(|check| (Section::Loading, check))))
        .collect()
}

/// Why a log is not the one its event speaks of. `None` also for an event that binds none.
pub fn log_contradiction(
    found: &FoundLog,
    run_id: &RunId,
    contract: &Digest,
    done: &VerificationCompleted,
) -> Option<&'static str> {
    let (Some(nonce), Some(tree)) = (&done.log_nonce, &done.tree) else {
        return None;
    };
    let head = log_header(run_id, contract, tree, nonce);
    let due = recorded(done).into_iter();
    frames_contradiction(found, &head, nonce, due, &done.not_counted)
}

/// Why a log does not begin with `head`, or is not made of the sections that were due, whole and in
/// order. Setup may stand anywhere; what is not counted is framed and due to nobody.
pub fn frames_contradiction<'c>(
    found: &FoundLog,
    head: &str,
    nonce: &str,
    mut due: impl Iterator<Item = (Section, &'c Check)>,
    not_counted: &[NotCounted],
) -> Option<&'static str> {
    if !found.head.starts_with(head.as_bytes()) {
        return Some("does not begin with this run, contract and tree");
    }
    let mut open: Option<Section> = None;
    let mut number = 0;
    for line in &found.frames {
        match (placed(line, nonce), open) {
            // Output that looks like a frame is output.
            (None, _) => {}
            (Some(("begin", of)), None) if of == number + 1 => {
                number = of;
                open = Section::ALL
                    .into_iter()
                    .find(|section| *line == frame_begin(nonce, of, *section));
                if open.is_none() {
                    return Some("a frame is not as it was written");
                }
            }
            (Some(("end", of)), Some(section)) if of == number => {
                open = None;
                if section == Section::Setup {
                    continue;
                }
                if let Some(left) = not_counted.iter().find(|left| left.section == number) {
                    let check = &left.check;
                    if *line != frame_end(nonce, number, section, check.end, check.duration_ms) {
                        return Some("a section is not what the chain says ran");
                    }
                    continue;
                }
                let same = due.next().is_some_and(|(wanted, check)| {
                    wanted == section
                        && *line == frame_end(nonce, number, section, check.end, check.duration_ms)
                });
                if !same {
                    return Some("a section is not what the chain says ran");
                }
            }
            (Some(_), _) => return Some("its frames are out of order"),
        }
    }
    match (open, due.next()) {
        (None, None) => None,
        _ => Some("a section that the chain says ran is missing"),
    }
}

#[cfg(test)]
#[path = "test_log_tests.rs"]
mod tests;
