//! Does an engine work here? What one run of it with a scripted model must have shown, line by line.
//! Nothing of it proves a stage: it is for whoever writes a manifest.

use std::collections::BTreeSet;

use super::case_check::{Line, Mark};
use crate::bundle::report::Report;
use crate::bundle::report_md::describe_end;
use crate::engine::manifest::Manifest;
use crate::run::attempt::ActionsSeen;
use crate::run::event::{EngineEnded, ModelUse};
use crate::values::blocker::Blocker;
use crate::values::verdict::Status;

/// What is known after the run.
pub struct Seen<'a> {
    pub manifest: &'a Manifest,
    pub report: &'a Report,
    /// How its process ended; none where it was never started.
    pub ended: Option<&'a EngineEnded>,
    /// The file that the model told it to write; none where the manifest does not say how.
    pub told: Option<&'a str>,
}

/// What the run showed. The first line that is wrong is the first thing to mend.
pub fn lines(seen: &Seen<'_>) -> Vec<Line> {
    let Some(ended) = seen.ended else {
        let detail = format!("not started: {}", blockers(seen.report));
        return vec![Line::new("started", Mark::Wrong, detail)];
    };
    let mut lines = vec![Line::new("started", Mark::Ok, "in a jail")];
    lines.extend(model(seen, ended.model.as_ref()));
    lines.push(edit(seen));
    lines.push(match (ended.end.succeeded(), ended.end.is_in_order()) {
        (true, _) => Line::new("ended", Mark::Ok, "by itself, exit code 0"),
        (false, true) => Line::new("ended", Mark::Ok, describe_end(ended.end)),
        (false, false) => Line::new("ended", Mark::Wrong, describe_end(ended.end)),
    });
    lines.push(attempts(ended.actions.as_ref()));
    lines.push(match ended.unknown_lines {
        0 => Line::new("lines", Mark::Ok, "its dialect knows every line"),
        count => {
            let detail =
                format!("{count} that its dialect does not know; they are kept in the log");
            Line::new("lines", Mark::Note, detail)
        }
    });
    lines.push(verdict(seen));
    lines
}

fn model(seen: &Seen<'_>, used: Option<&ModelUse>) -> Vec<Line> {
    let name = "model";
    if !seen.manifest.uses_a_model() {
        let detail = "not asked: the manifest has no [invocation.model]";
        return vec![Line::new(name, Mark::Note, detail)];
    }
    let (calls, refused) = used.map_or((0, 0), |used| (used.calls, used.refused));
    let mut lines = vec![match calls {
        0 => Line::new(
            name,
            Mark::Wrong,
            "never asked through the door; its address is {door}, in a file or a variable the program reads",
        ),
        _ => Line::new(
            name,
            Mark::Ok,
            format!("asked through the door, calls: {calls}"),
        ),
    }];
    let broken = used.and_then(|used| {
        used.unavailable
            .as_deref()
            .or(used.ended_refused.as_deref())
    });
    lines.extend(broken.map(|why| Line::new(name, Mark::Wrong, why)));
    let fields = used.and_then(|used| used.refused_fields.first());
    if refused > 0 {
        let why = fields.map_or_else(
            || "another model, path or token".to_owned(),
            |field| field.to_owned(),
        );
        let detail = format!("requests that never left the gateway: {refused} ({why})");
        lines.push(Line::new(name, Mark::Note, detail));
    }
    lines
}

fn edit(seen: &Seen<'_>) -> Line {
    let name = "edited";
    let Some(file) = seen.told else {
        let detail = "not tried: without [invocation.tools] or an answer no script can tell it to";
        return Line::new(name, Mark::Note, detail);
    };
    let changed = &seen.report.changed_files;
    match changed.iter().any(|path| path.to_string() == file) {
        true => Line::new(name, Mark::Ok, file),
        false => {
            let detail =
                format!("{file} is as it was; do tools or answer fit what it sends its model?");
            Line::new(name, Mark::Wrong, detail)
        }
    }
}

fn attempts(seen: Option<&ActionsSeen>) -> Line {
    let name = "attempts";
    let Some(seen) = seen.filter(|seen| seen.recorded) else {
        return Line::new(name, Mark::Note, "could not be watched on this host");
    };
    if let Some(why) = seen.failing(&BTreeSet::new()) {
        let detail = format!("{why}; switch off what it does at its start");
        return Line::new(name, Mark::Wrong, detail);
    }
    match seen.attempts.first() {
        None => Line::new(name, Mark::Ok, "at nothing that is forbidden"),
        Some(first) => {
            let detail = format!("harmless: {} {}", first.action.as_str(), first.program);
            Line::new(name, Mark::Note, detail)
        }
    }
}

fn verdict(seen: &Seen<'_>) -> Line {
    let name = "verdict";
    match (seen.report.status, seen.told) {
        (Status::Pass, _) => Line::new(name, Mark::Ok, "pass"),
        // Nobody told it what to do, so nothing was to be expected.
        (status, None) => Line::new(name, Mark::Note, status.as_str()),
        (status, Some(_)) => {
            let detail = format!("{}: {}", status.as_str(), blockers(seen.report));
            Line::new(name, Mark::Wrong, detail)
        }
    }
}

fn blockers(report: &Report) -> String {
    let told = |blocker: &Blocker| match &blocker.detail {
        Some(detail) => format!("{} ({detail})", blocker.code.as_str()),
        None => blocker.code.as_str().to_owned(),
    };
    let all: Vec<String> = report.blockers.iter().map(told).collect();
    all.join("; ")
}
