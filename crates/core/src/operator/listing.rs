//! What a list of runs knows about each of them, and which ones a person asked for.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::run::event::{Kind, Origin};
use crate::run::invariant::{CorePromotion, NeverActivated};
use crate::task::again::{ChecksDiffer, Reverifies};
use crate::task::contract::Stage;
use crate::values::blocker::Code;
use crate::values::ids::{CaseId, EngineId, RunId};
use crate::values::time::Utc;
use crate::values::verdict::Status;
use crate::verify::seal::SealedBy;

/// One run of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Listed {
    pub run_id: RunId,
    pub state: ListedState,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub enum ListedState {
    Live,
    /// Never sealed, and nobody is writing it.
    Unsealed,
    /// There is a report, but not one that can be read.
    Unreadable(String),
    /// There is a report, and its seal does not bear it out.
    Broken(String),
    /// Of another program: neither a result nor damage.
    Foreign,
    Sealed(Box<Summary>),
}

/// What a sealed report says of its run. Reading it proves nothing; verifying the bundle does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Summary {
    pub status: Status,
    pub kind: Kind,
    pub origin: Origin,
    pub case_id: CaseId,
    pub engine: EngineId,
    pub stage: Stage,
    pub started_at: Utc,
    pub finished_at: Utc,
    pub failure_reason: Option<String>,
    pub blockers: Vec<Code>,
    /// The run whose patch it judges again, and what differs, in a few words.
    pub again: Option<Again>,
    /// Whose seal bears this out; none before anybody looked.
    pub sealed_by: Option<SealedBy>,
}

/// What a list says of a patch that was judged again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Again {
    pub run_id: RunId,
    pub differs: String,
}

impl Again {
    /// For a column of a list.
    pub fn words(&self) -> String {
        format!("{} again: {}", self.run_id.suffix(), self.differs)
    }
}

impl Summary {
    pub fn duration_ms(&self) -> i64 {
        self.finished_at
            .as_millis()
            .saturating_sub(self.started_at.as_millis())
    }

    /// The blocker the failure reason speaks of: the first of the worst status.
    pub fn headline(&self) -> Option<Code> {
        let worst = self.blockers.iter().map(|code| code.info().status).max()?;
        self.blockers
            .iter()
            .copied()
            .find(|code| code.info().status == worst)
    }
}

impl Listed {
    pub fn summary(&self) -> Option<&Summary> {
        match &self.state {
            ListedState::Sealed(summary) => Some(summary),
            _ => None,
        }
    }

    /// When it began: what its report says, or else its name.
    pub fn started(&self) -> Option<Utc> {
        self.summary()
            .map_or_else(|| self.run_id.started(), |summary| Some(summary.started_at))
    }

    /// Its case: what its report says, or else its name.
    pub fn case(&self) -> &str {
        self.summary()
            .map_or_else(|| self.run_id.case(), |summary| summary.case_id.as_str())
    }
}

/// The parts of `report.json` a list needs; the rest is passed over unread.
#[derive(Deserialize)]
pub struct ReportHead {
    pub run_id: RunId,
    kind: Kind,
    origin: Origin,
    case_id: CaseId,
    status: Status,
    failure_reason: Option<String>,
    backend: EngineId,
    stage: Stage,
    run_started_at: Utc,
    run_finished_at: Utc,
    blockers: Vec<BlockerHead>,
    #[serde(default)]
    relies_on: Vec<RelianceHead>,
    #[serde(default)]
    continues: Option<ContinuesHead>,
    #[serde(default)]
    reverifies: Option<Reverifies>,
    #[serde(default)]
    checks_differ: Option<ChecksDiffer>,
    // Read so that a report which breaks one of the two promises is not listed as a result.
    #[serde(rename = "runtime_default_activation")]
    _activation: NeverActivated,
    #[serde(rename = "core_promotion_status")]
    _promotion: CorePromotion,
}

#[derive(Deserialize)]
struct BlockerHead {
    code: Code,
}

#[derive(Deserialize)]
struct RelianceHead {
    id: String,
}

#[derive(Deserialize)]
struct ContinuesHead {
    run_id: String,
}

impl ReportHead {
    /// Runs this one cannot be understood without.
    pub fn refers_to(&self) -> Vec<RunId> {
        let texts = self
            .relies_on
            .iter()
            .map(|reliance| &reliance.id)
            .chain(self.continues.iter().map(|c| &c.run_id));
        let judged = self.reverifies.iter().map(|first| first.run_id.clone());
        texts
            .flat_map(|text| mentioned_runs(text.as_bytes()))
            .chain(judged)
            .filter(|run| *run != self.run_id)
            .collect()
    }

    pub fn summary(self) -> Summary {
        Summary {
            status: self.status,
            kind: self.kind,
            origin: self.origin,
            case_id: self.case_id,
            engine: self.backend,
            stage: self.stage,
            started_at: self.run_started_at,
            finished_at: self.run_finished_at,
            failure_reason: self.failure_reason,
            blockers: self
                .blockers
                .into_iter()
                .map(|blocker| blocker.code)
                .collect(),
            again: self.reverifies.map(|first| Again {
                run_id: first.run_id,
                differs: self.checks_differ.unwrap_or_default().short(),
            }),
            sealed_by: None,
        }
    }
}

/// Every run id that appears in some text, whatever stands around it.
pub fn mentioned_runs(text: &[u8]) -> Vec<RunId> {
    let words = text.split(|b| !b.is_ascii_alphanumeric() && *b != b'-');
    words
        .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
        .collect()
}

/// What to list. What is not known about a run excludes it from a filter that asks for it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    pub engine: Option<EngineId>,
    pub case: Option<CaseId>,
    pub blocker: Option<Code>,
    pub stage: Option<Stage>,
    pub origin: Option<Origin>,
    /// Began then or later.
    pub since: Option<Utc>,
    /// Began then or earlier.
    pub until: Option<Utc>,
}

impl Filter {
    pub fn matches(&self, run: &Listed) -> bool {
        let Self {
            status,
            engine,
            case,
            blocker,
            stage,
            origin,
            since,
            until,
        } = self;
        let sealed = run.summary();
        let says =
            |asked: bool, holds: &dyn Fn(&Summary) -> bool| !asked || sealed.is_some_and(holds);
        let began = |asked: &Option<Utc>, holds: fn(Utc, Utc) -> bool| {
            asked.is_none_or(|asked| run.started().is_some_and(|started| holds(started, asked)))
        };
        case.as_ref().is_none_or(|case| case.as_str() == run.case())
            && began(since, |started, since| started >= since)
            && began(until, |started, until| started <= until)
            && says(status.is_some(), &|run| Some(run.status) == *status)
            && says(engine.is_some(), &|run| {
                Some(&run.engine) == engine.as_ref()
            })
            && says(stage.is_some(), &|run| Some(run.stage) == *stage)
            && says(origin.is_some(), &|run| Some(run.origin) == *origin)
            && says(blocker.is_some(), &|run| {
                run.blockers.iter().any(|code| Some(*code) == *blocker)
            })
    }
}

/// One word of a closed list, by its spelling in artifacts; the error names the list.
pub fn parse_word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|error| error.to_string())
}

/// How artifacts spell a word of a closed list.
pub fn spelling_of<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Listed {
        Listed {
            run_id: "20260102T030405Z-quick-k3v9".parse().unwrap(),
            state: ListedState::Sealed(Box::new(Summary {
                status: Status::Fail,
                kind: Kind::Run,
                origin: Origin::Ci,
                case_id: "quick".parse().unwrap(),
                engine: "fake".parse().unwrap(),
                stage: Stage::Two,
                started_at: "2026-01-02T03:04:05.500Z".parse().unwrap(),
                finished_at: "2026-01-02T03:04:06.700Z".parse().unwrap(),
                failure_reason: Some("why".into()),
                blockers: vec![Code::NoDiff, Code::Timeout],
                again: None,
                sealed_by: None,
            })),
        }
    }

    fn unsealed() -> Listed {
        Listed {
            state: ListedState::Unsealed,
            ..sealed()
        }
    }

    fn utc(text: &str) -> Option<Utc> {
        Some(text.parse().unwrap())
    }

    /// Every part of a filter, once kept and once excluding, for a sealed run and for one without a
    /// report.
    #[test]
    fn every_part_of_a_filter_excludes_on_its_own() {
        let any = Filter::default;
        let (after, before) = (
            utc("2026-01-02T03:04:05.501Z"),
            utc("2026-01-02T03:04:05.499Z"),
        );
        let table: Vec<(&str, Filter, bool, bool)> = vec![
            ("nothing asked", any(), true, true),
            (
                "status",
                Filter {
                    status: Some(Status::Fail),
                    ..any()
                },
                true,
                false,
            ),
            (
                "other status",
                Filter {
                    status: Some(Status::Pass),
                    ..any()
                },
                false,
                false,
            ),
            (
                "engine",
                Filter {
                    engine: Some("fake".parse().unwrap()),
                    ..any()
                },
                true,
                false,
            ),
            (
                "other engine",
                Filter {
                    engine: Some("fak".parse().unwrap()),
                    ..any()
                },
                false,
                false,
            ),
            (
                "case",
                Filter {
                    case: Some("quick".parse().unwrap()),
                    ..any()
                },
                true,
                true,
            ),
            (
                "other case",
                Filter {
                    case: Some("quic".parse().unwrap()),
                    ..any()
                },
                false,
                false,
            ),
            (
                "first blocker",
                Filter {
                    blocker: Some(Code::NoDiff),
                    ..any()
                },
                true,
                false,
            ),
            (
                "second blocker",
                Filter {
                    blocker: Some(Code::Timeout),
                    ..any()
                },
                true,
                false,
            ),
            (
                "other blocker",
                Filter {
                    blocker: Some(Code::SecretLeak),
                    ..any()
                },
                false,
                false,
            ),
            (
                "stage",
                Filter {
                    stage: Some(Stage::Two),
                    ..any()
                },
                true,
                false,
            ),
            (
                "other stage",
                Filter {
                    stage: Some(Stage::Three),
                    ..any()
                },
                false,
                false,
            ),
            (
                "origin",
                Filter {
                    origin: Some(Origin::Ci),
                    ..any()
                },
                true,
                false,
            ),
            (
                "other origin",
                Filter {
                    origin: Some(Origin::Operator),
                    ..any()
                },
                false,
                false,
            ),
            (
                "since its own moment",
                Filter {
                    since: utc("2026-01-02T03:04:05.500Z"),
                    ..any()
                },
                true,
                false,
            ),
            (
                "since after",
                Filter {
                    since: after,
                    ..any()
                },
                false,
                false,
            ),
            (
                "since before",
                Filter {
                    since: utc("2026-01-02T03:04:05.000Z"),
                    ..any()
                },
                true,
                true,
            ),
            (
                "until its own moment",
                Filter {
                    until: utc("2026-01-02T03:04:05.500Z"),
                    ..any()
                },
                true,
                true,
            ),
            (
                "until before",
                Filter {
                    until: before,
                    ..any()
                },
                false,
                true,
            ),
            (
                "until long before",
                Filter {
                    until: utc("2025-01-01T00:00:00.000Z"),
                    ..any()
                },
                false,
                false,
            ),
            (
                "all that fits",
                Filter {
                    status: Some(Status::Fail),
                    blocker: Some(Code::Timeout),
                    since: before,
                    until: after,
                    ..any()
                },
                true,
                false,
            ),
            (
                "one that does not",
                Filter {
                    status: Some(Status::Fail),
                    blocker: Some(Code::SecretLeak),
                    ..any()
                },
                false,
                false,
            ),
        ];
        for (name, filter, want_sealed, want_unsealed) in table {
            assert_eq!(filter.matches(&sealed()), want_sealed, "{name}, sealed");
            assert_eq!(
                filter.matches(&unsealed()),
                want_unsealed,
                "{name}, unsealed"
            );
        }
    }

    #[test]
    fn the_headline_is_the_first_of_the_worst() {
        let headline = |blockers: &[Code]| {
            let Listed {
                state: ListedState::Sealed(mut summary),
                ..
            } = sealed()
            else {
                panic!("not sealed")
            };
            summary.blockers = blockers.to_vec();
            summary.headline()
        };
        assert_eq!(
            headline(&[Code::Timeout, Code::VerificationFailed, Code::NoDiff]),
            Some(Code::VerificationFailed)
        );
        assert_eq!(headline(&[Code::Timeout]), Some(Code::Timeout));
        assert_eq!(headline(&[]), None);
    }

    #[test]
    fn a_name_without_a_time_is_in_no_span_of_time() {
        let odd = Listed {
            run_id: "99999999T999999Z-quick-k3v9".parse().unwrap(),
            state: ListedState::Live,
        };
        assert!(Filter::default().matches(&odd));
        assert!(
            !Filter {
                since: Some(Utc::FIRST),
                ..Filter::default()
            }
            .matches(&odd)
        );
        assert!(
            !Filter {
                until: utc("9999-01-01T00:00:00.000Z"),
                ..Filter::default()
            }
            .matches(&odd)
        );
    }

    #[test]
    fn words_are_those_of_the_artifacts() {
        assert_eq!(parse_word::<Status>("blocked"), Ok(Status::Blocked));
        assert_eq!(spelling_of(&Origin::Validator), "validator");
        let error = parse_word::<Origin>("stranger").unwrap_err();
        assert!(
            error.contains("operator") && error.contains("ci"),
            "{error}"
        );
    }

    #[test]
    fn run_ids_are_found_in_whatever_stands_around_them() {
        let text = b"{\"a\":\"home:work/20260102T030405Z-a-b-k3v9/x\",\xff20260102T030405Z-c-k3v9\n20260102T030405Z-no";
        let found: Vec<String> = mentioned_runs(text)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            ["20260102T030405Z-a-b-k3v9", "20260102T030405Z-c-k3v9"]
        );
        assert!(mentioned_runs(b"").is_empty());
    }

    #[test]
    fn a_head_needs_every_field_and_both_promises() {
        let whole = serde_json::json!({
            "run_id": "20260102T030405Z-quick-k3v9", "kind": "run", "origin": "operator", "case_id": "quick", "status": "pass",
            "failure_reason": null, "backend": "fake", "stage": 2, "run_started_at": "2026-01-02T03:04:05.678Z",
            "run_finished_at": "2026-01-02T03:04:06.000Z", "blockers": [{"code": "no_diff", "message": "m", "event": null}],
            "relies_on": [{"kind": "proof", "id": "20260101T000000Z-base-k3v9", "sha256": "x"}, {"kind": "approval", "id": "a-1", "sha256": "x"}],
            "continues": {"run_id": "20260101T000001Z-first-k3v9", "sums_sha256": "x"},
            "runtime_default_activation": false, "core_promotion_status": "not-promoted", "unknown": [1.5],
        });
        let read = |value: &serde_json::Value| serde_json::from_value::<ReportHead>(value.clone());
        let head = read(&whole).unwrap();
        let referred: Vec<String> = head.refers_to().iter().map(ToString::to_string).collect();
        assert_eq!(
            referred,
            ["20260101T000000Z-base-k3v9", "20260101T000001Z-first-k3v9"]
        );
        let summary = head.summary();
        assert_eq!(
            (summary.duration_ms(), summary.blockers),
            (322, vec![Code::NoDiff])
        );
        for field in whole.as_object().unwrap().keys().filter(|key| {
            !["relies_on", "continues", "unknown", "failure_reason"].contains(&key.as_str())
        }) {
            let mut less = whole.clone();
            less.as_object_mut().unwrap().remove(field);
            assert!(read(&less).is_err(), "{field} was not missed");
        }
        for (field, lie) in [
            ("runtime_default_activation", serde_json::json!(true)),
            ("core_promotion_status", "promoted".into()),
        ] {
            let mut lying = whole.clone();
            lying[field] = lie;
            assert!(read(&lying).is_err(), "{field}");
        }
        let mut again = whole.clone();
        again["reverifies"] = serde_json::json!({"run_id": "20260101T000002Z-try-k3v8", "sums_sha256": "0".repeat(64)});
        again["checks_differ"] =
            serde_json::json!({"commands": "other", "dropped": ["a"], "added": ["b"]});
        let head = read(&again).unwrap();
        assert_eq!(head.refers_to().len(), 3, "what is judged again is kept");
        assert_eq!(
            head.summary().again.unwrap().words(),
            "k3v8 again: other commands"
        );
        let mut own = whole.clone();
        own["continues"]["run_id"] = whole["run_id"].clone();
        assert_eq!(
            read(&own).unwrap().refers_to().len(),
            1,
            "a run does not need itself"
        );
    }
}
