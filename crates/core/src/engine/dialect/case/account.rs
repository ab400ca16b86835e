//! What is kept of a pipeline's own words: how each phase last ended, what its reviewer meant, how it
//! says the whole ended.

use serde_json::Value;

use super::{list, word};
use crate::run::event::EngineReview;
use crate::values::text::tame_excerpt;

/// Phases told apart; more are told and not kept.
const MAX_PHASES: usize = 64;

/// What is wrong with the envelope of a result, by Case's own words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// No beginning: also what a model looks like that was never reached.
    Missing,
    /// No end: also what an answer looks like that was cut.
    Cut,
    /// There, and no result.
    Garbled,
}

impl Defect {
    /// Read from the text of a failure.
    pub fn read(text: &str) -> Option<Self> {
        if !text.contains("AGENT_RESULT") {
            return None;
        }
        let has = |words: &str| text.contains(words);
        if has("start delimiter not found") {
            Some(Self::Missing)
        } else if has("end delimiter not found") {
            Some(Self::Cut)
        } else if has("JSON parse error") || has("invalid status") {
            Some(Self::Garbled)
        } else {
            None
        }
    }

    /// May a broken wire look like this?
    pub fn may_be_wire(self) -> bool {
        matches!(self, Self::Missing | Self::Cut)
    }
}

/// How a phase ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhaseEnd {
    pub failed: bool,
    pub defect: Option<Defect>,
    pub said: String,
}

impl PhaseEnd {
    /// Only a phase that completed, with a result that says so where there is one, did.
    pub fn read(outcome: &str, line: &Value, result: &Value) -> Self {
        let texts = [
            word(result, "error"),
            word(line, "error"),
            word(result, "summary"),
        ];
        let said = texts.iter().find(|text| !text.is_empty()).cloned();
        let status = word(result, "status");
        let failed = outcome != "completed" || !matches!(status.as_str(), "" | "completed");
        let defect = texts.iter().find_map(|text| Defect::read(text));
        Self {
            failed,
            defect: defect.filter(|_| failed),
            said: said.unwrap_or_default(),
        }
    }
}

/// What came after a review.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    RevisionAsked,
    NoRevisionLeft,
    /// The pipeline went on as if nothing were amiss.
    Passed,
}

/// A review that has ended, with an envelope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Review {
    failed: bool,
    critical: u64,
    /// Categories of its rubric that failed, and those of them that are marked as hard.
    failing: Vec<String>,
    hard: Vec<String>,
    said: String,
}

impl Review {
    /// None where the reviewer gave no result: that is no review.
    pub fn read(end: &PhaseEnd, result: &Value) -> Option<Self> {
        if end.defect.is_some() || !result.is_object() {
            return None;
        }
        let critical = match result.get("findings").and_then(|all| all.get("critical")) {
            Some(Value::Array(all)) => all.len() as u64,
            // What is no count is at least one.
            Some(Value::Number(count)) => count.as_u64().unwrap_or(1),
            None | Some(Value::Null) => 0,
            Some(_) => 1,
        };
        let categories = result
            .get("rubric")
            .and_then(|rubric| rubric.get("categories"));
        let categories = categories
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let failed =
            |category: &&Value| category.get("verdict").and_then(Value::as_str) == Some("fail");
        let hard = |category: &&Value| {
            category.get("hard") == Some(&Value::Bool(true)) || word(category, "severity") == "hard"
        };
        let all: Vec<Value> = categories.iter().filter(failed).cloned().collect();
        let marked: Vec<Value> = all.iter().filter(hard).cloned().collect();
        Some(Self {
            failed: end.failed,
            critical,
            failing: list(Some(&Value::Array(all))),
            hard: list(Some(&Value::Array(marked))),
            said: end.said.clone(),
        })
    }

    /// Whether it accepts, and in which words. A category that failed is soft where the pipeline itself
    /// asked for revisions until none was left; where it went on without a word, nobody took it up.
    pub fn verdict(&self, how: &Settled) -> (bool, String) {
        let with = |what: String| match self.said.is_empty() {
            true => what,
            false => format!("{what}: {}", self.said),
        };
        if self.failed {
            return (false, with("the review failed".into()));
        }
        if self.critical > 0 {
            return (false, with(format!("{} critical findings", self.critical)));
        }
        if !self.hard.is_empty() {
            return (
                false,
                with(format!("hard categories failed: {}", self.hard.join(", "))),
            );
        }
        let failing = self.failing.join(", ");
        match (self.failing.is_empty(), how) {
            (true, Settled::RevisionAsked) => (false, with("a revision is asked for".into())),
            (true, _) => (true, self.said.clone()),
            (false, Settled::RevisionAsked) => {
                (false, with(format!("a revision is asked for: {failing}")))
            }
            (false, Settled::NoRevisionLeft) => {
                (true, with(format!("no revision is left for {failing}")))
            }
            (false, Settled::Passed) => (false, with(format!("categories failed: {failing}"))),
        }
    }
}

/// All that is kept.
#[derive(Debug, Default)]
pub struct Account {
    /// Each phase, in the order in which they first began or ended.
    phases: Vec<Phase>,
    /// How the pipeline ended: what it says, and who failed. The worst, where it says so twice.
    end: Option<(String, String)>,
    /// The last review said no, or one before it.
    pub rejected: bool,
    pub ever_rejected: bool,
    /// Lines of its log are missing, doubled or of another run: somebody beside the pipeline may have written there.
    pub is_doubtful: bool,
    pub protocol_on_stderr: bool,
    commit: Option<String>,
}

/// How a phase ended last, and how it failed before that.
#[derive(Debug)]
struct Phase {
    name: String,
    end: Option<PhaseEnd>,
    failure: Option<PhaseEnd>,
}

impl Account {
    pub fn began(&mut self, phase: &str) {
        if !self.knows(phase) && self.phases.len() < MAX_PHASES {
            self.phases.push(Phase {
                name: phase.to_owned(),
                end: None,
                failure: None,
            });
        }
    }

    fn knows(&self, phase: &str) -> bool {
        self.phases.iter().any(|known| known.name == phase)
    }

    pub fn phase_ended(&mut self, phase: String, end: PhaseEnd, commit: Option<String>) {
        self.began(&phase);
        self.commit = commit.or(self.commit.take());
        if let Some(known) = self.phases.iter_mut().find(|known| known.name == phase) {
            if end.failed {
                known.failure = Some(end.clone());
            }
            known.end = Some(end);
        }
    }

    /// In a log that is not whole nothing heals: a phase that failed has failed, and a review that said no stands. What
    /// there is to tell of the second, where a later one said otherwise.
    pub fn healed_nothing(&mut self) -> Option<EngineReview> {
        if !self.is_doubtful {
            return None;
        }
        for phase in &mut self.phases {
            if let Some(failure) = phase.failure.take() {
                phase.end = Some(failure);
            }
        }
        let healed = self.ever_rejected && !self.rejected;
        self.rejected |= healed;
        healed.then(|| EngineReview {
            accepted: false,
            summary: "a review said no, and the log that says otherwise later is not whole".into(),
        })
    }

    /// Says whether it had ended before.
    pub fn ended(&mut self, outcome: String, agent: String) -> bool {
        let before = self.end.is_some();
        let failed_before = self
            .end
            .as_ref()
            .is_some_and(|(outcome, _)| outcome != COMPLETED);
        if !failed_before {
            self.end = Some((outcome, agent));
        }
        before
    }

    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// What it says of the whole, where it worked in phases at all.
    pub fn last_word(&self) -> Option<(&str, &str)> {
        let worked = self.phases.iter().any(|phase| phase.end.is_some());
        let (outcome, agent) = self.end.as_ref().filter(|_| worked)?;
        Some((outcome, agent))
    }

    pub fn commit(&self) -> Option<String> {
        self.commit.as_deref().map(tame_excerpt)
    }

    /// The first phase whose last end was no success, and whether it stands after the review.
    pub fn failed_phase(&self) -> Option<(&str, &PhaseEnd, Place)> {
        let review = self
            .phases
            .iter()
            .position(|phase| super::is_review(&phase.name));
        let mut ended = self.phases.iter().enumerate();
        ended.find_map(|(at, phase)| {
            let end = phase.end.as_ref().filter(|end| end.failed)?;
            let place = match review {
                Some(review) if at == review => Place::Review,
                Some(review) if at > review => Place::After,
                _ => Place::Before,
            };
            Some((phase.name.as_str(), end, place))
        })
    }
}

/// Where a phase stands to the review.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Before,
    Review,
    After,
}

pub const COMPLETED: &str = "completed";
