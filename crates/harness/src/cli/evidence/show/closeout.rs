//! What binds a run to people: the request it was asked for with, the approval it used, and what was said of its
//! result. A closeout authorises nothing.

use std::path::Path;

use cto_core::bundle::approval::{Answer, ExecutionRequest};
use cto_core::bundle::attest::Trust;
use cto_core::bundle::report::{RelianceKind, Report};
use cto_core::bundle::settlement::Settlement;
use cto_core::run::event::{LandMode, Outcome};
use cto_core::values::ids::RunId;
use cto_core::values::json;
use cto_core::values::time::Utc;
use cto_core::values::verdict::Status;
use cto_core::verify::links::record_name;
use serde::Serialize;

use crate::bundles::{reader, settlements};
use crate::host::Home;
use crate::screen::output::{Output, tame};

/// As far as bundle and state home tell; nothing here was verified but the settlements.
#[derive(Serialize)]
pub struct Closeout {
    request: Asked,
    approval: Option<Approved>,
    settlements: Vec<Said>,
    /// Why nobody can tell what was said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    settlements_untold: Option<String>,
    /// A settlement of it passed, so that nothing of the approval is left to be done.
    consumed_by_pass_evidence: bool,
    execution_allowed: bool,
}

#[derive(Serialize)]
struct Asked {
    request_id: String,
    work_id: Option<String>,
    requested_at: Option<Utc>,
    file: String,
}

#[derive(Serialize)]
struct Approved {
    actor: String,
    approval_source: String,
    timestamp: Utc,
    expiry: Utc,
    file: String,
}

#[derive(Serialize)]
struct Said {
    run_id: RunId,
    outcome: Outcome,
    status: Status,
    reverts: Option<RunId>,
    landed: Option<Landed>,
}

#[derive(Serialize)]
struct Landed {
    mode: LandMode,
    commit: String,
}

impl Closeout {
    /// Of a run that used an approval; none of any other.
    pub fn of(home: &Home, trust: &Trust, report: &Report, dir: &Path) -> Option<Self> {
        let named = |kind| report.relies_on.iter().find(|on| on.kind == kind);
        let id = named(RelianceKind::Approval)?.id.clone();
        let (asked_in, said_in) = (
            record_name(RelianceKind::Request, &id),
            record_name(RelianceKind::Approval, &id),
        );
        let bytes = |name: &str| reader::digested(dir, report, name);
        let request: Option<ExecutionRequest> =
            bytes(&asked_in).and_then(|bytes| json::read(&bytes).ok());
        let answer: Option<Answer> = bytes(&said_in).and_then(|bytes| json::read(&bytes).ok());
        let (settled, untold) = match settlements::verified(home, &report.run_id, trust) {
            Ok(settled) => (settled, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Some(Self {
            request: Asked {
                request_id: id,
                work_id: request.as_ref().map(|request| request.work_id.clone()),
                requested_at: request.as_ref().map(|request| request.requested_at),
                file: asked_in,
            },
            approval: answer.map(|answer| Approved {
                actor: answer.actor,
                approval_source: answer.approval_source,
                timestamp: answer.timestamp,
                expiry: answer.expiry,
                file: said_in,
            }),
            consumed_by_pass_evidence: settled.iter().any(|said| said.status == Status::Pass),
            settlements: settled.into_iter().map(Said::of).collect(),
            settlements_untold: untold,
            execution_allowed: false,
        })
    }

    pub fn print(&self, output: &Output) {
        let work = self.request.work_id.as_deref().unwrap_or_default();
        let asked = format!("{} {work}", self.request.request_id);
        output.row("request", &tame(asked.trim_end()));
        if let Some(approval) = &self.approval {
            let text = format!(
                "by {} at {}, once; {}",
                approval.actor, approval.timestamp, approval.file
            );
            output.row("approved", &tame(&text));
        }
        for said in &self.settlements {
            output.row(said.word(), &tame(&said.line()));
        }
        if let Some(why) = &self.settlements_untold {
            output.row("settled", &tame(&format!("nobody knows how: {why}")));
        }
    }
}

impl Said {
    fn of(said: Settlement) -> Self {
        Self {
            run_id: said.run_id,
            outcome: said.outcome,
            status: said.status,
            reverts: said.reverts,
            landed: said.landed.map(|(mode, commit)| Landed { mode, commit }),
        }
    }

    fn word(&self) -> &'static str {
        match (self.outcome, &self.reverts) {
            (Outcome::Accepted, _) => "accepted",
            (Outcome::Rejected, None) => "rejected",
            (Outcome::Rejected, Some(_)) => "reverted",
        }
    }

    fn line(&self) -> String {
        let done = match (&self.landed, self.outcome, &self.reverts) {
            (Some(landed), _, _) => {
                let short: String = landed.commit.chars().take(12).collect();
                format!("commit {short}, by {}", landed.mode.as_str())
            }
            (None, Outcome::Rejected, None) => "nothing landed".to_owned(),
            (None, _, _) => "the target did not allow it".to_owned(),
        };
        format!("{done}; settlement {}", self.run_id)
    }
}
