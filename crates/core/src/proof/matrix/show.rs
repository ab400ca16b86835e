//! What a bundle must show, one thing at a time, and the sentence for each.

use std::fmt;

use serde::Deserialize;

use crate::gate::GateVerdict;
use crate::values::event_type::EventType;

/// One thing a row's bundle must show.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Show {
    /// `changed_files` of the report: exactly these.
    Changed(Vec<String>),
    /// A file that is there and empty.
    Empty(String),
    /// A file that is there and not empty.
    Kept(String),
    Text(Held),
    /// A file that is there and does not hold this.
    Lacks(Held),
    /// A whole line of the engine's standard output.
    Line(String),
    /// An attack of the kit that was tried, and got through nowhere.
    Stopped(Tried),
    /// Text that no file holds.
    Nowhere(String),
    /// A value of a JSON document.
    Value(Place<String>),
    /// A value in the data of the last event of a type.
    Event(Place<EventType>),
    /// An event that never came.
    Never(EventType),
    /// All events, in order.
    Order(Vec<EventType>),
    Trace(Traced),
    /// Part of the headline blocker's detail.
    Detail(String),
    Gate(GateSeen),
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    pub file: String,
    pub holds: String,
}

/// A number of attempts of one attack, each reported on a line of its own.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    pub attack: String,
    pub times: u64,
}

impl Tried {
    /// What the attack says of one attempt that failed.
    pub fn stopped(attack: &str, number: u64) -> String {
        format!("attack {attack} {number}: stopped")
    }

    /// What it says of one that did not.
    pub fn through(attack: &str, number: u64) -> String {
        format!("attack {attack} {number}: THROUGH")
    }
}

/// A value by its JSON pointer. Without `is` it must be there and say something.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place<T> {
    pub of: T,
    pub at: String,
    /// As JSON.
    pub is: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traced {
    pub action: String,
    pub holds: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateSeen {
    pub of: String,
    pub result: GateVerdict,
}

impl fmt::Display for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is = |is: &Option<String>| {
            is.as_ref()
                .map_or("says something".to_owned(), |value| format!("is {value}"))
        };
        match self {
            Self::Changed(paths) if paths.is_empty() => write!(f, "changed_files is empty"),
            Self::Changed(paths) => write!(f, "changed_files is {}", paths.join(", ")),
            Self::Empty(file) => write!(f, "{file} is empty"),
            Self::Kept(file) => write!(f, "{file} is kept"),
            Self::Text(held) => write!(f, "{} holds {:?}", held.file, held.holds.trim()),
            Self::Lacks(held) => write!(f, "{} does not hold {:?}", held.file, held.holds),
            Self::Line(line) => write!(f, "the engine says {line:?}"),
            Self::Stopped(tried) if tried.times == 1 => {
                write!(f, "{} was tried and stopped", tried.attack)
            }
            Self::Stopped(tried) => write!(
                f,
                "{} was tried {} times and stopped each time",
                tried.attack, tried.times
            ),
            Self::Nowhere(_) => write!(f, "the secret is in no file"),
            Self::Value(place) => write!(f, "{} {} {}", place.of, place.at, is(&place.is)),
            Self::Event(place) => write!(f, "{} {} {}", place.of.as_str(), place.at, is(&place.is)),
            Self::Never(event) => write!(f, "no {}", event.as_str()),
            Self::Order(events) => {
                write!(
                    f,
                    "events are {}",
                    events
                        .iter()
                        .map(|e| e.as_str())
                        .collect::<Vec<_>>()
                        .join(" → ")
                )
            }
            Self::Trace(traced) => write!(f, "trace: {} says {:?}", traced.action, traced.holds),
            Self::Detail(text) => write!(f, "the blocker names {text:?}"),
            Self::Gate(gate) => write!(f, "gate {} is {}", gate.of, word(gate.result)),
        }
    }
}

fn word(result: GateVerdict) -> &'static str {
    match result {
        GateVerdict::Pass => "pass",
        GateVerdict::Blocked => "blocked",
        GateVerdict::NotApplicable => "not_applicable",
        GateVerdict::NotSeen => "not_seen",
    }
}
