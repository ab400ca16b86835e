//! `report.md`: the report for a person. Verdict first, then why, what changed, where to look.
//! It holds no digests, so it can be written before the files are hashed.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::bundle::again;
pub use crate::bundle::renderer::{Renderer, RendererNumber};
use crate::bundle::report::Report;
use crate::run::belief::{Substance, words};
use crate::run::checked::TestsCompared;
use crate::run::event::{CheckKind, ProcessEnd};
use crate::task::contract::Label;
use crate::values::blocker::Blocker;
use crate::values::hint::{Reader, hint};
use crate::values::ids::EngineId;
use crate::values::text::{tame, tame_lines};

impl Renderer {
    /// The whole page, where the renderer's words are still at hand. They include the sentences and
    /// hints of blockers: whoever changes one of those, or a word below, adds a number.
    pub fn page(self, report: &Report) -> Option<String> {
        match self {
            Self::One => None,
            _ => Some(self.render(report)),
        }
    }

    fn render(self, report: &Report) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = write_all(&mut out, report, self);
        // Reasons and messages stand outside of code spans and may quote an engine or a repository.
        tame_lines(&out)
    }

    fn names_environments(self) -> bool {
        self.is_since(Self::Four)
    }

    fn is_since(self, first: Self) -> bool {
        self.number().0 >= first.number().0
    }

    /// What is said before the names of hidden kinds that the engine saw.
    fn words_for_shown(self) -> &'static str {
        match self {
            Self::One | Self::Two => {
                "Agent configuration the contract allows changing, so the engine was shown it:"
            }
            _ => "The engine was shown, although its name is of a kind that is hidden:",
        }
    }
}

pub fn render_report(report: &Report) -> String {
    Renderer::NEWEST.render(report)
}

fn write_all(out: &mut String, report: &Report, renderer: Renderer) -> std::fmt::Result {
    header(out, report, renderer)?;
    why(out, report, renderer)?;
    changed(out, report)?;
    verified(out, report, renderer)?;
    attempted(out, report)?;
    if let Some(times) = report
        .timings
        .as_ref()
        .filter(|_| renderer.is_since(Renderer::Five))
    {
        writeln!(out, "## Time\n\n{}.\n", tame(&times.line()))?;
    }
    if let Some(used) = report
        .model_use
        .as_ref()
        .filter(|_| renderer.is_since(Renderer::Eight))
    {
        writeln!(out, "## Model\n\n{}.\n", used.line())?;
    }
    writeln!(out, "## Claimed and observed\n")?;
    writeln!(
        out,
        "The engine claimed: {}.",
        report
            .claimed
            .status
            .as_deref()
            .map_or("nothing".into(), code)
    )?;
    if let Some(summary) = &report.claimed.summary {
        writeln!(out, "Its words: {}", code(summary))?;
    }
    let unseen = if report.process_started {
        "an engine was started; its end was not observed"
    } else {
        "no engine ran"
    };
    writeln!(
        out,
        "The harness observed: {}.\n",
        report
            .observed
            .engine_end
            .map_or(unseen.into(), describe_end)
    )?;
    if renderer.is_since(Renderer::Nine) {
        commits(out, report)?;
    }
    where_to_look(out, report)
}

/// The commit that the engine names beside where its HEAD was seen. Neither is the result.
fn commits(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(head) = &report.observed.engine_head else {
        return Ok(());
    };
    let named = report.claimed.commit.as_deref();
    if named.is_none() && head.before == head.after {
        return Ok(());
    }
    if let Some(named) = named {
        writeln!(out, "The engine named the commit {}.", code(named))?;
    }
    writeln!(
        out,
        "HEAD of its copy was seen at {} before it began, and at {} after it had ended.",
        code(head.before.words()),
        code(head.after.words())
    )?;
    if named.is_some_and(|named| !head.is_at(named)) {
        writeln!(
            out,
            "**The commit it named is not where HEAD was seen.** What counts is the tree that was measured."
        )?;
    } else if named.is_some() && !head.after.moved_from(&head.before) {
        writeln!(
            out,
            "**The commit it named was there before it began.** What counts is the tree that was measured."
        )?;
    }
    writeln!(out)
}

fn where_to_look(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(out, "## Where to look\n")?;
    for (file, what) in [
        ("contract.json", "what was asked"),
        ("gates.json", "every gate and its result"),
        (
            "events.normalized.jsonl",
            "what happened, in order, hash-chained",
        ),
        ("patch.diff", "the exact change"),
        ("test.log", "verification output"),
        ("trace.jsonl", "what the harness did, with timing"),
        ("containment.json", "confinement asked for and enforced"),
        ("backend/", "raw engine output"),
    ] {
        writeln!(out, "- `{file}`: {what}")?;
    }
    writeln!(
        out,
        "\nCheck this bundle with `cto verify {}`.\n",
        report.run_id
    )?;
    writeln!(
        out,
        "`runtime_default_activation` is false; `core_promotion_status` is not-promoted."
    )
}

/// The verdict, how the run was confined, and what one should know before reading on.
fn header(out: &mut String, report: &Report, renderer: Renderer) -> std::fmt::Result {
    writeln!(
        out,
        "{}\n",
        renderer.title(report.status, report.case_id.as_str())
    )?;
    let containment = if report.process_started || report.reverifies.is_some() {
        report.containment.as_str()
    } else {
        "not needed: no engine was started"
    };
    let guard = report
        .workspace_guard
        .as_ref()
        .filter(|_| report.process_started);
    writeln!(
        out,
        "Run `{}`, engine `{}`, stage {}, containment **{containment}**.",
        report.run_id,
        report.backend,
        report.stage.number(),
    )?;
    writeln!(
        out,
        "Started {}, finished {}.\n",
        report.run_started_at, report.run_finished_at
    )?;
    if renderer.is_since(Renderer::Seven) {
        out.push_str(&again::paragraph(report, code));
    }
    if let Some(why) = guard.and_then(|guard| guard.fallback.as_ref()) {
        writeln!(out, "Not strict: {why}.\n")?;
    }
    for (words, paths) in [
        ("The engine was not shown", guard.map(|guard| &guard.masked)),
        (renderer.words_for_shown(), guard.map(|guard| &guard.shown)),
    ] {
        if let Some(paths) = paths.filter(|paths| !paths.is_empty()) {
            let names: Vec<String> = paths.iter().map(|path| code(&path.to_string())).collect();
            writeln!(out, "{words} {}.\n", names.join(", "))?;
        }
    }
    if renderer.names_environments() && !report.environments.is_empty() {
        writeln!(out, "Environments of the operator's work tree:\n")?;
        for used in &report.environments {
            writeln!(out, "- {}", code(&used.line()))?;
        }
        for note in &report.environment_notes {
            writeln!(out, "- **Note:** {}", code(note))?;
        }
        writeln!(out)?;
    }
    if let Some(source) = report
        .source
        .as_ref()
        .filter(|_| renderer.is_since(Renderer::Seven))
    {
        writeln!(out, "The repository that was copied: {}.\n", source.words())?;
    }
    for warning in &report.engine.warnings {
        writeln!(out, "**Warning:** {}.\n", code(warning))?;
    }
    Ok(())
}

fn why(out: &mut String, report: &Report, renderer: Renderer) -> std::fmt::Result {
    writeln!(out, "## Why\n")?;
    if let (Some(told), Some(run)) = (&report.settlement, &report.continues) {
        let sentence = tame(&told.sentence());
        writeln!(out, "Of the run `{}`: {sentence}.\n", run.run_id)?;
        if report.blockers.is_empty() {
            return Ok(());
        }
    }
    if report.blockers.is_empty() && renderer.is_since(Renderer::Six) {
        let checks = report.belief.as_ref().map_or("No check ran.", |belief| {
            words::sentence(belief.word, belief.substance, &belief.seen())
        });
        writeln!(
            out,
            "Every gate passed, only allowed paths changed. {checks}\n"
        )?;
        return Ok(());
    }
    if report.blockers.is_empty() {
        writeln!(
            out,
            "Every gate passed, only allowed paths changed, the checks pass where the engine never was, and they fail where they must.\n"
        )?;
        return Ok(());
    }
    for blocker in &report.blockers {
        out.push_str(&blocker_lines(
            renderer,
            (report.label, &report.backend),
            blocker,
        ));
    }
    writeln!(out)
}

/// One reason, and what to do about it.
pub(crate) fn blocker_lines(
    renderer: Renderer,
    (label, engine): (Label, &EngineId),
    blocker: &Blocker,
) -> String {
    let is_try = label == Label::Try;
    let reader = Reader { engine, is_try };
    let detail = blocker.detail.as_ref();
    let detail = detail.map_or_else(String::new, |detail| format!(" ({})", code(detail)));
    format!(
        "- `{}`: {}{detail}\n  Hint: {}.\n",
        blocker.code.as_str(),
        blocker.message,
        match renderer {
            _ if renderer.is_since(Renderer::Eight) =>
                hint(blocker.code, blocker.detail.as_deref(), reader),
            _ if is_try && renderer.is_since(Renderer::Seven) =>
                Cow::Borrowed(blocker.code.hint_for_a_try()),
            _ if renderer.is_since(Renderer::Six) => Cow::Borrowed(blocker.code.info().hint),
            _ => Cow::Borrowed(blocker.code.former_hint()),
        }
    )
}

fn changed(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(out, "## What changed\n")?;
    let left = &report.observed.leftovers;
    if !left.is_empty() {
        let named: Vec<String> = left.iter().map(|path| code(&path.to_string())).collect();
        writeln!(
            out,
            "Left behind by tools, and no part of it: {}.\n",
            named.join(", ")
        )?;
    }
    if report.observed.changes.is_empty() {
        writeln!(out, "Nothing.\n")?;
        return Ok(());
    }
    for change in &report.observed.changes {
        writeln!(
            out,
            "- {} ({})",
            code(&change.path.to_string()),
            format!("{:?}", change.kind).to_lowercase()
        )?;
    }
    writeln!(out)
}

fn verified(out: &mut String, report: &Report, renderer: Renderer) -> std::fmt::Result {
    writeln!(out, "## Verification\n")?;
    if report.verification.is_empty() {
        let reason = report
            .not_applicable
            .get("tests_passed")
            .map_or("not run", String::as_str);
        writeln!(out, "Not run: {reason}.\n")?;
        return Ok(());
    }
    for line in &report.verification {
        let mark = if line.passed { "pass" } else { "FAIL" };
        let hidden = if line.kind == CheckKind::Hidden {
            "hidden check "
        } else {
            ""
        };
        writeln!(
            out,
            "- {mark}: {hidden}{} ({}, {} ms)",
            code(&line.command),
            describe_end(line.end),
            line.duration_ms
        )?;
        if let (Some(belief), Some(because)) = (line.belief, &line.because) {
            writeln!(out, "  believed: **{}** ({because})", belief.as_str())?;
        }
    }
    believed(out, report)?;
    match &report.verification_control {
        None => writeln!(out, "- must-fail control: not run")?,
        Some(control) => match (&control.reason, control.red) {
            (_, Some(true)) => writeln!(out, "- must-fail control: red, as it must be")?,
            (_, Some(false)) => writeln!(
                out,
                "- must-fail control: **green**, so the pass above means nothing"
            )?,
            (reason, None) => writeln!(
                out,
                "- must-fail control: **none** ({})",
                reason.as_deref().unwrap_or("no reason given")
            )?,
        },
    }
    if let Some(relied) = report
        .baseline_relied
        .as_ref()
        .filter(|_| renderer.is_since(Renderer::Five))
    {
        writeln!(
            out,
            "- baseline: known since {}, made by `{}`; see `relied/`",
            relied.made_at, relied.run_id
        )?;
    }
    writeln!(out)
}

/// What all of it is worth, what no check saw, and what people said about that. Reports of before have
/// none of it.
fn believed(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(belief) = &report.belief else {
        return Ok(());
    };
    writeln!(out, "- **{}**", belief.clause())?;
    if belief.substance == Substance::Code {
        out.push_str(&words::markdown(&belief.seen(), code));
    }
    for (what, names) in belief.tests.iter().flat_map(TestsCompared::notes) {
        let names: Vec<String> = names.iter().map(|name| code(name)).collect();
        writeln!(out, "- {what}: {}", names.join(", "))?;
    }
    let reasons = &belief.reasons;
    if !reasons.tests_may_change.is_empty() {
        let changes = reasons.tests_may_change.iter();
        let named: Vec<String> = changes.map(|change| code(&change.line())).collect();
        writeln!(out, "- tests that may change: {}", named.join(", "))?;
    }
    for (what, reason) in [
        ("accepted although unproven", &reasons.accept_unproven),
        ("accepted although unchecked", &reasons.unchecked),
    ] {
        if let Some(reason) = reason {
            writeln!(out, "- {what}: {}", code(reason))?;
        }
    }
    let observed = &report.observed;
    for (what, paths) in [
        (
            "changed files of tests, or of what runs them",
            &observed.changed_test_files,
        ),
        ("rewritten by setup or a check", &observed.rewritten_files),
    ] {
        if !paths.is_empty() {
            let named: Vec<String> = paths.iter().map(|path| code(&path.to_string())).collect();
            writeln!(out, "- {what}: {}", named.join(", "))?;
        }
    }
    Ok(())
}

fn attempted(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(seen) = &report.forbidden_actions else {
        return Ok(());
    };
    writeln!(out, "## Forbidden actions\n")?;
    match (&seen.reason, seen.recorded) {
        (_, true) => {}
        (Some(reason), false) => writeln!(out, "**Not recorded**: {}.\n", code(reason))?,
        (None, false) => writeln!(out, "**Not recorded**.\n")?,
    }
    if seen.attempts.is_empty() && seen.recorded {
        writeln!(
            out,
            "None was seen. What was attempted and not seen was refused all the same.\n"
        )?;
        return Ok(());
    }
    for attempt in &seen.attempts {
        writeln!(
            out,
            "- {}: {} ({}×)",
            attempt.action.as_str(),
            code(&attempt.argv.join(" ")),
            attempt.count
        )?;
    }
    for (deed, count) in &seen.not_listed {
        writeln!(out, "- {}: {count} more, not listed", deed.as_str())?;
    }
    writeln!(out)
}

pub fn describe_end(end: ProcessEnd) -> String {
    match end {
        ProcessEnd::Exited { code } => format!("exit code {code}"),
        ProcessEnd::Signalled { signal } => format!("killed by signal {signal}"),
        ProcessEnd::TimedOut { .. } => "time limit reached".into(),
        ProcessEnd::MemoryLimit { .. } => "memory limit reached".into(),
        ProcessEnd::Dismissed { because } => because.sentence().into(),
        ProcessEnd::Cancelled => "cancelled".into(),
        ProcessEnd::Lost => "end not observed".into(),
    }
}

/// Text from outside as inline code: it can neither end the code span nor start a new line.
fn code(text: &str) -> String {
    format!(
        "`{}`",
        tame(&text.replace('`', "'").replace(['\n', '\t'], " "))
    )
}

#[cfg(test)]
#[path = "report_md_tests.rs"]
mod tests;
