//! Compares a row with what its run left behind; the result is a list of assertions. Whatever is
//! missing or unreadable makes an assertion false, never an error.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::show::{Place, Tried};
use super::{Assertion, Row, Show, leaks};
use crate::bundle;
use crate::values::blocker::Code;
use crate::values::event_type::EventType;
use crate::values::text::{is_dangerous, tame_excerpt};
use crate::values::verdict::Status;
use crate::verify::{Standing, Verification};

/// Everything that may be looked at after a row has run.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// How the harness itself ended.
    pub exit_code: Option<u8>,
    /// What it left under its runs root: one bundle, or the row is red.
    pub bundles: Vec<BundleSeen>,
    /// What is not as it was before, outside the bundle.
    pub touched: Vec<String>,
    /// What the commands that show a run printed about it, where the row asks for that.
    pub printed: String,
    /// What no file may hold: the credential of the row's model, and where that listened.
    pub secrets: Vec<String>,
}

/// A bundle as found on disk.
#[derive(Clone, Debug)]
pub struct BundleSeen {
    pub files: BTreeMap<String, Vec<u8>>,
    pub verification: Verification,
}

/// Asserts everything a row demands.
pub fn evaluate_row(row: &Row, evidence: &Evidence) -> Vec<Assertion> {
    let mut sheet = Sheet::default();
    let wanted = row.exit;
    sheet.must(
        "exit",
        format!("cto ends with {wanted}"),
        evidence.exit_code == Some(wanted),
        || {
            evidence.exit_code.map_or("it was killed".into(), |code| {
                format!("it ended with {code}")
            })
        },
    );
    let untouched = match row.touches.as_slice() {
        [] => "nothing outside the bundle changed".to_owned(),
        touches => format!(
            "outside the bundle nothing but this: {}",
            touches.join(", ")
        ),
    };
    sheet.must(
        "untouched",
        untouched,
        evidence.touched == row.touches,
        || match evidence.touched.as_slice() {
            [] => "nothing changed".to_owned(),
            touched => touched.join(", "),
        },
    );
    let [seen] = evidence.bundles.as_slice() else {
        sheet.must("bundle", "one run, one bundle".into(), false, || {
            format!("{} bundles", evidence.bundles.len())
        });
        return sheet.0;
    };
    let bundle = Bundle::read(seen);
    verdict(&mut sheet, row, &bundle);
    whole(&mut sheet, &bundle);
    execution(&mut sheet, row, &bundle);
    sheet.0.extend(leaks::nowhere(&evidence.secrets, seen));
    for show in &row.shows {
        let (holds, found) = shown(show, row, &bundle);
        sheet.must("shows", show.to_string(), holds, || found);
    }
    if row.reads_back {
        let obeyed = evidence
            .printed
            .chars()
            .find(|c| *c != '\n' && is_dangerous(*c));
        let holds = obeyed.is_none() && !evidence.printed.is_empty();
        sheet.must(
            "printed",
            "nothing shown of the run moves a terminal".into(),
            holds,
            || {
                obeyed.map_or("nothing was shown".into(), |c| {
                    format!("it holds U+{:04X}", u32::from(c))
                })
            },
        );
    }
    sheet.0
}

/// What engines and checks took of a run, as its events tell it.
pub fn children_ms(seen: &BundleSeen) -> u64 {
    let bundle = Bundle::read(seen);
    let of = |value: &Value| value["duration_ms"].as_u64().unwrap_or(0);
    let all = |list: &Value| {
        list.as_array()
            .map_or(0, |checks| checks.iter().map(of).sum::<u64>())
    };
    let engine = bundle.event(EventType::EngineEnded).map_or(0, of);
    let done = bundle.event(EventType::VerificationCompleted);
    engine
        + done.map_or(0, |done| {
            let rounds = done["loading"]["rounds"].as_array();
            let rounds = rounds.into_iter().flatten();
            let loading: u64 = rounds.map(|round| all(&round["checks"])).sum();
            all(&done["checks"]) + all(&done["control"]["checks"]) + loading
        })
}

#[derive(Default)]
struct Sheet(Vec<Assertion>);

impl Sheet {
    fn must(&mut self, check: &str, want: String, holds: bool, found: impl FnOnce() -> String) {
        self.0.push(Assertion {
            check: check.to_owned(),
            want,
            holds,
            found: (!holds).then(found),
        });
    }
}

/// The documents of a bundle as plain JSON: what a stranger would read.
struct Bundle<'a> {
    seen: &'a BundleSeen,
    report: Value,
    events: Vec<Value>,
    trace: Vec<Value>,
}

impl<'a> Bundle<'a> {
    fn read(seen: &'a BundleSeen) -> Self {
        let lines = |name: &str| {
            let bytes = seen.files.get(name).map(Vec::as_slice).unwrap_or_default();
            bytes
                .split(|b| *b == b'\n')
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect()
        };
        Self {
            report: json(seen, bundle::REPORT),
            events: lines(bundle::EVENTS),
            trace: lines(bundle::TRACE),
            seen,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.seen
            .files
            .get(name)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The data of the last event of a type.
    fn event(&self, kind: EventType) -> Option<&Value> {
        self.events
            .iter()
            .rev()
            .find(|event| event["type"] == kind.as_str())
            .map(|event| &event["data"])
    }

    /// The data of the event of a type that carries a code.
    fn event_with(&self, kind: EventType, code: Code) -> Option<&Value> {
        let mut of_kind = self
            .events
            .iter()
            .filter(|event| event["type"] == kind.as_str())
            .map(|event| &event["data"]);
        of_kind.find(|data| carries(data, code))
    }

    fn event_types(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| event["type"].as_str())
            .collect()
    }

    fn codes(&self) -> Vec<&str> {
        let blockers = self.report["blockers"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        blockers
            .iter()
            .filter_map(|blocker| blocker["code"].as_str())
            .collect()
    }

    fn blocker(&self, code: Code) -> Option<&Value> {
        self.report["blockers"]
            .as_array()?
            .iter()
            .find(|blocker| blocker["code"] == code.as_str())
    }
}

fn json(seen: &BundleSeen, name: &str) -> Value {
    seen.files
        .get(name)
        .and_then(|bytes| serde_json::from_slice(bytes).ok())
        .unwrap_or(Value::Null)
}

/// Does an event's data carry this code?
fn carries(data: &Value, code: Code) -> bool {
    let listed = |list: &Value| {
        list.as_array()
            .is_some_and(|codes| codes.iter().any(|found| found == code.as_str()))
    };
    // An operator says it in a word of their own.
    let rejected = code == Code::OperatorRejected && data["outcome"] == "rejected";
    rejected || data["reason"] == code.as_str() || listed(&data["blockers"])
}

/// Status, headline, the event that carries it, and every other code.
fn verdict(sheet: &mut Sheet, row: &Row, bundle: &Bundle<'_>) {
    let report = &bundle.report;
    let status = row.status.as_str();
    sheet.must(
        "status",
        format!("the report says {status}"),
        report["status"] == status,
        || report["status"].to_string(),
    );
    let completed = bundle.event(EventType::RunCompleted);
    let said = completed
        .map(|data| &data["status"])
        .unwrap_or(&Value::Null);
    sheet.must(
        "status",
        format!("run.completed says {status}"),
        said == status,
        || said.to_string(),
    );
    sheet.must(
        "origin",
        "the run is a validator's".into(),
        report["origin"] == "validator",
        || report["origin"].to_string(),
    );

    let mut wanted: Vec<&str> = row.codes().iter().map(|code| code.as_str()).collect();
    let mut found = bundle.codes();
    wanted.sort_unstable();
    found.sort_unstable();
    let want = if wanted.is_empty() {
        "no blocker".to_owned()
    } else {
        format!("blockers are {}", wanted.join(", "))
    };
    sheet.must("blocker", want, found == wanted, || found.join(", "));
    let (Some(code), Some(event)) = (row.blocker, row.event) else {
        return;
    };
    let headline = bundle.blocker(code).unwrap_or(&Value::Null);
    let reason = &report["failure_reason"];
    let heads = reason.is_string() && *reason == headline["message"];
    sheet.must(
        "blocker",
        format!("{} is the headline", code.as_str()),
        heads,
        || reason.to_string(),
    );
    let named = headline["event"] == event.as_str();
    sheet.must(
        "event",
        format!("{} belongs to {}", code.as_str(), event.as_str()),
        named,
        || headline["event"].to_string(),
    );
    for carrier in BTreeSet::from([event, EventType::RunCompleted]) {
        // Several gates may be closed at once, each in an event of its own.
        let data = bundle
            .event_with(carrier, code)
            .or_else(|| bundle.event(carrier));
        let holds = data.is_some_and(|data| carries(data, code));
        let want = format!("{} carries {}", carrier.as_str(), code.as_str());
        sheet.must("event", want, holds, || {
            data.map_or("there is no such event".into(), Value::to_string)
        });
    }
}

/// Every artifact is there, and the bundle holds up to the verifier.
fn whole(sheet: &mut Sheet, bundle: &Bundle<'_>) {
    let files = &bundle.seen.files;
    let missing: Vec<&str> = bundle::ALWAYS
        .into_iter()
        .filter(|name| !files.contains_key(*name))
        .collect();
    sheet.must(
        "artifacts",
        "every artifact is there".into(),
        missing.is_empty(),
        || format!("missing: {}", missing.join(", ")),
    );
    let verification = &bundle.seen.verification;
    let good = verification.standing == Standing::Good;
    sheet.must("digests", "the bundle verifies".into(), good, || {
        let problems = verification
            .problems
            .iter()
            .map(|p| format!("{}: {}", p.artifact, p.message));
        problems.collect::<Vec<_>>().join("; ")
    });
    let again = verification.status.map(Status::as_str);
    let same = again.is_some() && again == bundle.report["status"].as_str();
    sheet.must(
        "digests",
        "the verdict can be derived again".into(),
        same,
        || again.unwrap_or("it cannot").to_owned(),
    );
}

/// An engine ran and its words were kept, or none did and nothing was changed.
fn execution(sheet: &mut Sheet, row: &Row, bundle: &Bundle<'_>) {
    let started = bundle.event(EventType::EngineStarted).is_some();
    let reported = bundle.report["process_started"] == true;
    let log = bundle.seen.files.contains_key(bundle::STDOUT_LOG);
    let found =
        || format!("engine.started: {started}, process_started: {reported}, raw log: {log}");
    match row.runs {
        true => {
            sheet.must(
                "execution",
                "an engine ran and its raw log is kept".into(),
                started && reported && log,
                found,
            );
        }
        false => {
            sheet.must(
                "execution",
                "no engine was started".into(),
                !started && !reported && !log,
                found,
            );
            let unchanged = bundle.report["changed_files"]
                .as_array()
                .is_some_and(Vec::is_empty)
                && bundle.report["result"].is_null()
                && bundle
                    .text(bundle::PATCH)
                    .is_some_and(|patch| patch.is_empty());
            sheet.must("execution", "nothing was changed".into(), unchanged, || {
                bundle.report["changed_files"].to_string()
            });
        }
    }
}

/// Whether a bundle shows one thing, and what it shows instead.
fn shown(show: &Show, row: &Row, bundle: &Bundle<'_>) -> (bool, String) {
    let there = |file: &str, empty: bool| match bundle.seen.files.get(file) {
        None => (false, format!("there is no {file}")),
        Some(bytes) => (bytes.is_empty() == empty, format!("{} bytes", bytes.len())),
    };
    match show {
        Show::Changed(paths) => {
            let found = &bundle.report["changed_files"];
            (*found == serde_json::json!(paths), found.to_string())
        }
        Show::Empty(file) => there(file, true),
        Show::Kept(file) => there(file, false),
        Show::Text(held) => match bundle.text(&held.file) {
            None => (false, format!("there is no {}", held.file)),
            Some(text) => (text.contains(&held.holds), brief(&text)),
        },
        Show::Lacks(held) => match bundle.text(&held.file) {
            None => (false, format!("there is no {}", held.file)),
            Some(text) => (!text.contains(&held.holds), "it holds it".into()),
        },
        Show::Line(line) => {
            let said = bundle.text(bundle::STDOUT_LOG).unwrap_or_default();
            (said.lines().any(|found| found == line), brief(&said))
        }
        Show::Stopped(tried) => {
            stopped(tried, &bundle.text(bundle::STDOUT_LOG).unwrap_or_default())
        }
        Show::Nowhere(text) => {
            let holds = |bytes: &&Vec<u8>| {
                bytes
                    .windows(text.len().max(1))
                    .any(|window| window == text.as_bytes())
            };
            let count = bundle.seen.files.values().filter(holds).count();
            (count == 0, format!("{count} file(s) hold it"))
        }
        Show::Value(place) => at(place, &json(bundle.seen, &place.of)),
        Show::Event(place) => match bundle.event(place.of) {
            None => (false, format!("there is no {}", place.of.as_str())),
            Some(data) => at(place, data),
        },
        Show::Never(event) => (bundle.event(*event).is_none(), "it is there".into()),
        Show::Order(events) => {
            let found = bundle.event_types();
            (
                found.iter().eq(events
                    .iter()
                    .map(|event| event.as_str())
                    .collect::<Vec<_>>()
                    .iter()),
                found.join(" → "),
            )
        }
        Show::Trace(traced) => {
            let lines = bundle
                .trace
                .iter()
                .filter(|line| line["action"] == traced.action.as_str());
            let details: Vec<&str> = lines.filter_map(|line| line["detail"].as_str()).collect();
            (
                details.iter().any(|detail| detail.contains(&traced.holds)),
                brief(&details.join("; ")),
            )
        }
        Show::Detail(text) => {
            let detail = row
                .blocker
                .and_then(|code| bundle.blocker(code)?["detail"].as_str())
                .unwrap_or_default();
            (detail.contains(text.as_str()), brief(detail))
        }
        Show::Gate(gate) => {
            let gates = json(bundle.seen, bundle::GATES);
            let rows = gates["gates"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let found = rows
                .iter()
                .find(|row| row["gate"] == gate.of.as_str())
                .map_or(&Value::Null, |row| &row["result"]);
            (
                serde_json::to_value(gate.result).is_ok_and(|want| want == *found),
                found.to_string(),
            )
        }
    }
}

/// Every attempt is reported, and none as one that got through.
fn stopped(tried: &Tried, said: &str) -> (bool, String) {
    let began = |start: String| said.lines().any(|line| line.starts_with(&start));
    let told = |number: &u64| {
        began(Tried::stopped(&tried.attack, *number))
            && !began(Tried::through(&tried.attack, *number))
    };
    match (0..tried.times).find(|number| !told(number)) {
        None => (tried.times > 0, "nothing was tried".into()),
        Some(number) => {
            let about =
                |line: &&str| line.starts_with(&format!("attack {} {number}:", tried.attack));
            (
                false,
                said.lines()
                    .find(about)
                    .map_or(format!("attempt {number} was never made"), brief),
            )
        }
    }
}

fn at<T>(place: &Place<T>, document: &Value) -> (bool, String) {
    let Some(found) = document.pointer(&place.at) else {
        return (false, format!("there is no {}", place.at));
    };
    let holds = match &place.is {
        Some(text) => serde_json::from_str::<Value>(text).is_ok_and(|want| want == *found),
        None => !(found.is_null() || *found == "" || *found == serde_json::json!([])),
    };
    (holds, brief(&found.to_string()))
}

fn brief(text: &str) -> String {
    tame_excerpt(text)
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
