//! Who opens a gated engine: a variable, a flag, or a record that counts at a terminal only.
//!
//! A word that closes wins over every word that opens. Nothing else is asked: no config file, no
//! repository, no engine.

use std::fmt;

use crate::records::{Found, GateRecord};
use crate::values::digest::Digest;
use crate::values::hint::{GATE_DESK, GATE_MISSING, GATE_PROGRAM, GATE_REPLACED, GATE_VARIABLE};
use crate::values::ids::EngineId;

/// What a command says of the gate before any record is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Somebody's command.
    Command {
        variable: Variable,
        /// `--allow-engine` names this engine.
        flag: bool,
        desk: Desk,
    },
    /// A validator opens and closes lanes to see what each does; records have no part in it.
    Validator { open: bool },
}

/// `CTO_HARNESS_ALLOW_<ENGINE>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Variable {
    /// Not set, or empty.
    #[default]
    Silent,
    /// Exactly `1`.
    Opens,
    /// Anything else. Whoever wrote `0`, `no` or a typing error did not say yes.
    Closes,
}

impl Variable {
    pub fn read(value: Option<&str>) -> Self {
        match value {
            None | Some("") => Self::Silent,
            Some("1") => Self::Opens,
            Some(_) => Self::Closes,
        }
    }
}

/// Where a command was started, as far as that shows whether a person did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Desk {
    /// Standard input, output and error are each a terminal.
    pub input: bool,
    pub output: bool,
    pub error: bool,
    /// It leads its own process group: a shell with job control started it, and no script did.
    pub own_job: bool,
    /// The variable `CI` is set.
    pub ci: bool,
}

impl Desk {
    /// Why nobody is taken to sit here; none where somebody is.
    pub fn nobody(self) -> Option<&'static str> {
        match self {
            Self { ci: true, .. } => Some("the variable CI is set"),
            Self { input: false, .. } => Some("standard input is no terminal"),
            Self { output: false, .. } => Some("standard output is no terminal"),
            Self { error: false, .. } => Some("standard error is no terminal"),
            Self { own_job: false, .. } => Some("a script started this command"),
            _ => None,
        }
    }
}

/// The gate record and what it is compared with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    pub record: Found<GateRecord>,
    /// The digest in the executable admission; none where no usable record is there.
    pub admitted: Option<Digest>,
    /// The digest of the file that would be run; none where there is none.
    pub program: Option<Digest>,
}

/// May this engine be chosen at all, and who says so?
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Opening {
    Opened(By),
    Closed(Why),
}

/// What opened a gate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum By {
    /// The default lane has no gate.
    Default,
    Flag,
    Variable,
    /// The digest of the gate record's file.
    Record(Digest),
    Validator,
}

/// What keeps a gate closed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// Nobody said anything.
    NotOpened,
    /// The variable is set to something that is not `1`.
    Variable,
    /// A validator wants to see it closed.
    Validator,
    /// There is a gate record, and it does not count here.
    NoTerminal(&'static str),
    RecordInvalid(String),
    AnotherEngine,
    /// Whether or not there is a record: no program is admitted that could be opened.
    NotAdmitted,
    /// Another program was admitted since.
    ProgramChanged,
    /// The file is not the one that is admitted.
    ProgramReplaced,
    ProgramMissing,
}

impl Opening {
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Opened(_))
    }

    /// Was it a record that opened it? Then the record's own review counts too.
    pub fn by_record(&self) -> bool {
        matches!(self, Self::Opened(By::Record(_)))
    }
}

/// Could a record make a difference? Where not, none is looked for.
pub fn asks_the_record(asked: &Asked) -> bool {
    matches!(
        asked,
        Asked::Command {
            variable: Variable::Silent,
            flag: false,
            ..
        }
    )
}

/// The decision for a gated engine. `kept` is what was found on record; none where it was not looked
/// for.
pub fn decide(engine: &EngineId, asked: &Asked, kept: Option<&Kept>) -> Opening {
    match asked {
        Asked::Validator { open: true } => Opening::Opened(By::Validator),
        Asked::Validator { open: false } => Opening::Closed(Why::Validator),
        Asked::Command {
            variable: Variable::Closes,
            ..
        } => Opening::Closed(Why::Variable),
        Asked::Command { flag: true, .. } => Opening::Opened(By::Flag),
        Asked::Command {
            variable: Variable::Opens,
            ..
        } => Opening::Opened(By::Variable),
        Asked::Command { desk, .. } => match kept {
            None => Opening::Closed(Why::NotOpened),
            Some(kept) => by_record(engine, *desk, kept),
        },
    }
}

fn by_record(engine: &EngineId, desk: Desk, kept: &Kept) -> Opening {
    let found = match &kept.record {
        Found::Missing if kept.admitted.is_none() => return Opening::Closed(Why::NotAdmitted),
        Found::Missing => return Opening::Closed(Why::NotOpened),
        Found::Invalid(issues) => {
            let issues: Vec<String> = issues.iter().map(ToString::to_string).collect();
            return Opening::Closed(Why::RecordInvalid(issues.join("; ")));
        }
        Found::Known(found) => found,
    };
    if let Some(why) = desk.nobody() {
        return Opening::Closed(Why::NoTerminal(why));
    }
    let opened_for = found.record.executable_sha256;
    let why = match (kept.admitted, kept.program) {
        _ if found.record.engine != *engine => Why::AnotherEngine,
        (None, _) => Why::NotAdmitted,
        (Some(_), None) => Why::ProgramMissing,
        (Some(admitted), Some(program)) if program != admitted => Why::ProgramReplaced,
        (Some(admitted), Some(_)) if admitted != opened_for => Why::ProgramChanged,
        (Some(_), Some(_)) => return Opening::Opened(By::Record(found.sha256)),
    };
    Opening::Closed(why)
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("nothing: it always is"),
            Self::Flag => f.write_str("--allow-engine"),
            Self::Variable => f.write_str("its variable"),
            Self::Record(sha256) => write!(f, "its gate record (sha256 {sha256})"),
            Self::Validator => f.write_str("a validator"),
        }
    }
}

impl By {
    /// One word, for a listing.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Flag => "flag",
            Self::Variable => "variable",
            Self::Record(_) => "record",
            Self::Validator => "validator",
        }
    }
}

impl Why {
    /// A sentence that names the engine and its variable.
    pub fn sentence(&self, engine: &EngineId, variable: &str) -> String {
        let record = "its gate record does not count";
        match self {
            Self::NotOpened | Self::Validator => format!(
                "{engine} opens with `cto engines open {engine}`, --allow-engine {engine} or {variable}=1"
            ),
            Self::Variable => format!("{variable} {GATE_VARIABLE}, which closes {engine}"),
            Self::NoTerminal(why) => format!(
                "{record}: {GATE_DESK}, and {why}; here {variable}=1 or --allow-engine {engine} opens it"
            ),
            Self::RecordInvalid(why) => format!("{record}: {why}"),
            Self::AnotherEngine => format!("{record}: it is about another engine"),
            Self::NotAdmitted => format!("{engine} is closed, and {GATE_PROGRAM} for it"),
            Self::ProgramChanged => {
                format!("{record}: it was opened for another program than the one admitted now")
            }
            Self::ProgramReplaced => format!("{record}: the program there now {GATE_REPLACED}"),
            Self::ProgramMissing => {
                format!("{record}: the program it was opened for {GATE_MISSING}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Issue, Recorded, ReviewTrigger, Trigger};

    const SITTING: Desk = Desk {
        input: true,
        output: true,
        error: true,
        own_job: true,
        ci: false,
    };

    fn pi() -> EngineId {
        "pi".parse().unwrap()
    }

    fn kept(record: Found<GateRecord>) -> Kept {
        Kept {
            record,
            admitted: Some(Digest::of(b"pi")),
            program: Some(Digest::of(b"pi")),
        }
    }

    fn record(engine: &str, program: &[u8]) -> Found<GateRecord> {
        Found::Known(Box::new(Recorded {
            record: GateRecord {
                engine: engine.parse().unwrap(),
                executable_sha256: Digest::of(program),
                approval_source: "the owner".into(),
                opened_timestamp: "2026-06-01".into(),
                review_trigger: ReviewTrigger(vec![Trigger::Words("later".into())]),
            },
            path: "/state/records/pi/gate.json".into(),
            sha256: Digest::of(b"file"),
        }))
    }

    fn command(variable: Variable, flag: bool, desk: Desk) -> Asked {
        Asked::Command {
            variable,
            flag,
            desk,
        }
    }

    /// Every word of the variable, with and without flag, record and person.
    #[test]
    fn one_closing_word_wins_and_a_record_needs_a_person() {
        use Variable::{Closes, Opens, Silent};
        let by_record = Opening::Opened(By::Record(Digest::of(b"file")));
        for variable in [Silent, Opens, Closes] {
            for flag in [false, true] {
                for there in [false, true] {
                    for sits in [false, true] {
                        let desk = if sits { SITTING } else { Desk::default() };
                        let kept = kept(if there {
                            record("pi", b"pi")
                        } else {
                            Found::Missing
                        });
                        let asked = command(variable, flag, desk);
                        let want = match (variable, flag, there, sits) {
                            (Closes, ..) => Opening::Closed(Why::Variable),
                            (_, true, ..) => Opening::Opened(By::Flag),
                            (Opens, ..) => Opening::Opened(By::Variable),
                            (Silent, false, true, true) => by_record.clone(),
                            (Silent, false, true, false) => {
                                Opening::Closed(Why::NoTerminal("standard input is no terminal"))
                            }
                            (Silent, false, false, _) => Opening::Closed(Why::NotOpened),
                        };
                        assert_eq!(
                            decide(&pi(), &asked, Some(&kept)),
                            want,
                            "{asked:?} {there}"
                        );
                        let unseen = decide(&pi(), &asked, None);
                        match asks_the_record(&asked) {
                            true => assert_eq!(unseen, Opening::Closed(Why::NotOpened)),
                            false => assert_eq!(unseen, want, "no record decides this"),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_variable_is_one_or_it_closes() {
        for (value, want) in [
            (None, Variable::Silent),
            (Some(""), Variable::Silent),
            (Some("1"), Variable::Opens),
            (Some("0"), Variable::Closes),
            (Some("true"), Variable::Closes),
            (Some("TRUE"), Variable::Closes),
            (Some("yes"), Variable::Closes),
            (Some("on"), Variable::Closes),
            (Some("01"), Variable::Closes),
            (Some("11"), Variable::Closes),
            (Some(" 1"), Variable::Closes),
            (Some("1 "), Variable::Closes),
        ] {
            assert_eq!(Variable::read(value), want, "{value:?}");
        }
    }

    #[test]
    fn a_record_falls_with_its_program() {
        let other = Some(Digest::of(b"other"));
        let same = Some(Digest::of(b"pi"));
        let issue = Found::Invalid(vec![Issue::new("record", "is a link")]);
        for (found, admitted, program, want) in [
            (record("pi", b"pi"), same, same, None),
            (record("case", b"pi"), same, same, Some(Why::AnotherEngine)),
            (record("pi", b"pi"), None, same, Some(Why::NotAdmitted)),
            (record("pi", b"pi"), other, other, Some(Why::ProgramChanged)),
            (record("pi", b"pi"), other, same, Some(Why::ProgramReplaced)),
            (record("pi", b"pi"), same, other, Some(Why::ProgramReplaced)),
            (record("pi", b"old"), same, same, Some(Why::ProgramChanged)),
            (record("pi", b"pi"), same, None, Some(Why::ProgramMissing)),
            (
                issue,
                same,
                same,
                Some(Why::RecordInvalid("record: is a link".into())),
            ),
            (Found::Missing, same, same, Some(Why::NotOpened)),
            (Found::Missing, None, None, Some(Why::NotAdmitted)),
        ] {
            let kept = Kept {
                record: found,
                admitted,
                program,
            };
            let asked = command(Variable::Silent, false, SITTING);
            let got = decide(&pi(), &asked, Some(&kept));
            match want {
                None => assert!(got.by_record(), "{got:?}"),
                Some(why) => assert_eq!(got, Opening::Closed(why)),
            }
        }
    }

    #[test]
    fn somebody_sits_there_only_where_every_sign_says_so() {
        assert_eq!(SITTING.nobody(), None);
        for (desk, word) in [
            (
                Desk {
                    input: false,
                    ..SITTING
                },
                "input",
            ),
            (
                Desk {
                    output: false,
                    ..SITTING
                },
                "output",
            ),
            (
                Desk {
                    error: false,
                    ..SITTING
                },
                "error",
            ),
            (
                Desk {
                    own_job: false,
                    ..SITTING
                },
                "script",
            ),
            (
                Desk {
                    ci: true,
                    ..SITTING
                },
                "CI",
            ),
        ] {
            let why = desk.nobody().unwrap();
            assert!(why.contains(word), "{why}");
            let got = decide(
                &pi(),
                &command(Variable::Silent, false, desk),
                Some(&kept(record("pi", b"pi"))),
            );
            assert_eq!(got, Opening::Closed(Why::NoTerminal(why)));
        }
    }

    #[test]
    fn a_validator_needs_no_record_and_minds_none() {
        for open in [false, true] {
            let kept = kept(record("pi", b"pi"));
            let got = decide(&pi(), &Asked::Validator { open }, Some(&kept));
            assert_eq!(got.is_open(), open);
            assert!(!got.by_record());
        }
    }

    #[test]
    fn every_closed_gate_says_why_in_a_sentence() {
        for why in [
            Why::NotOpened,
            Why::Variable,
            Why::NoTerminal("x"),
            Why::RecordInvalid("x".into()),
            Why::AnotherEngine,
            Why::NotAdmitted,
            Why::ProgramChanged,
            Why::ProgramReplaced,
            Why::ProgramMissing,
        ] {
            let said = why.sentence(&pi(), "CTO_HARNESS_ALLOW_PI");
            assert!(!said.ends_with('.') && said.len() > 20, "{said}");
        }
    }
}
