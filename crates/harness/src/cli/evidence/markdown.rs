//! `cto show --markdown`: a verdict to paste into a pull request. Words from outside stand in code spans and
//! do nothing there: no link, no mention, no heading, no picture.

use std::fmt::Write as _;
use std::path::Path;

use cto_core::bundle;
use cto_core::bundle::report::Report;
use cto_core::bundle::report_md::describe_end;
use cto_core::checks::test_ids::TestIdDocument;
use cto_core::run::belief::{Substance, words};
use cto_core::run::checked::TestsCompared;
use cto_core::values::text::tame;

use crate::bundles::reader;
use crate::cli::evidence::log;

/// What is named of a list; the rest is counted.
const NAMED: usize = 30;

/// The summary. `doubt`: why the seal proves nothing here.
pub fn summary(dir: &Path, report: &Report, doubt: Option<&str>) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, dir, report, doubt);
    out
}

fn write_all(
    out: &mut String,
    dir: &Path,
    report: &Report,
    doubt: Option<&str>,
) -> std::fmt::Result {
    let status = report.status.as_str().to_uppercase();
    writeln!(out, "### {status}: {}\n", code(report.case_id.as_str()))?;
    if let Some(doubt) = doubt {
        writeln!(
            out,
            "**NOT PROVEN**: {}. What follows is what it says of itself.\n",
            code(doubt)
        )?;
    }
    verdict(out, report)?;
    changed(out, report)?;
    checked(out, dir, report)?;
    writeln!(
        out,
        "**Verify it**: `cto verify {run}`, or `cto bundle pack {run}` and `cto verify FILE` elsewhere; contract {contract}.",
        run = report.run_id,
        contract = code(&report.contract_digest.to_hex()),
    )
}

fn verdict(out: &mut String, report: &Report) -> std::fmt::Result {
    if let Some(first) = &report.reverifies {
        let differ = report.checks_differ.clone().unwrap_or_default();
        writeln!(
            out,
            "The patch of `{}`, judged again without an engine: {}.\n",
            first.run_id,
            code(&differ.short())
        )?;
        for line in differ.lines() {
            writeln!(out, "- {}", code(&line))?;
        }
    }
    for blocker in &report.blockers {
        let detail = blocker.detail.as_deref().map(code);
        let detail = detail.map_or_else(String::new, |detail| format!(" ({detail})"));
        writeln!(
            out,
            "- `{}`: {}{detail}",
            blocker.code.as_str(),
            blocker.message
        )?;
    }
    if let Some(belief) = &report.belief {
        let sentence = words::sentence(belief.word, belief.substance, &belief.seen());
        writeln!(out, "**{}**. {sentence}", belief.clause())?;
        if belief.substance == Substance::Code {
            out.push_str(&format!("\n{}", words::markdown(&belief.seen(), code)));
        }
    }
    writeln!(out)
}

fn changed(out: &mut String, report: &Report) -> std::fmt::Result {
    let changes = &report.observed.changes;
    writeln!(out, "**Files** ({})\n", changes.len())?;
    for change in changes.iter().take(NAMED) {
        let kind = format!("{:?}", change.kind).to_lowercase();
        writeln!(out, "- {} ({kind})", code(&change.path.to_string()))?;
    }
    more(out, changes.len())?;
    writeln!(out)
}

fn checked(out: &mut String, dir: &Path, report: &Report) -> std::fmt::Result {
    writeln!(out, "**Checks**\n")?;
    if report.verification.is_empty() {
        writeln!(out, "- none ran")?;
    }
    for line in &report.verification {
        let mark = if line.passed { "green" } else { "RED" };
        let before = log::before_the_change(dir, report, &line.command);
        let before = before.map_or_else(String::new, |before| format!(", {before}"));
        let end = describe_end(line.end);
        writeln!(out, "- {mark}: {} ({end}{before})", code(&line.command))?;
    }
    let (mended, new) = tests(dir, report).unwrap_or_default();
    for (what, names) in [("tests red to green", mended), ("new tests, green", new)] {
        listed(out, what, &names)?;
    }
    let paths = &report.observed.changed_test_files;
    let names: Vec<String> = paths.iter().map(ToString::to_string).collect();
    listed(out, "files of tests changed, or of what runs them", &names)?;
    let belief = report.belief.as_ref();
    for (what, names) in belief
        .and_then(|belief| belief.tests.as_ref())
        .iter()
        .flat_map(|tests| TestsCompared::notes(tests))
    {
        listed(out, &what, &names)?;
    }
    for change in belief
        .iter()
        .flat_map(|belief| &belief.reasons.tests_may_change)
    {
        writeln!(out, "- may change: {}", code(&change.line()))?;
    }
    for (what, reason) in belief.iter().flat_map(|belief| {
        [
            (
                "accepted although unproven",
                &belief.reasons.accept_unproven,
            ),
            ("accepted although unchecked", &belief.reasons.unchecked),
        ]
    }) {
        if let Some(reason) = reason {
            writeln!(out, "- {what}: {}", code(reason))?;
        }
    }
    writeln!(out)
}

/// Tests that failed on the untouched copy and pass now, and those that were not there.
fn tests(dir: &Path, report: &Report) -> Option<(Vec<String>, Vec<String>)> {
    let bytes = reader::digested(dir, report, bundle::TEST_IDS)?;
    let document: TestIdDocument = cto_core::values::json::read(&bytes).ok()?;
    let (mut mended, mut new) = (Vec::new(), Vec::new());
    for command in &document.commands {
        for (id, now) in &command.verified {
            if now.passed == 0 || now.failed > 0 {
                continue;
            }
            match command.baseline.get(id) {
                None => new.push(id.clone()),
                Some(before) if before.passed == 0 && before.failed > 0 => mended.push(id.clone()),
                Some(_) => {}
            }
        }
    }
    Some((mended, new))
}

fn listed(out: &mut String, what: &str, names: &[String]) -> std::fmt::Result {
    if names.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| code(name)).collect();
    let rest = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    writeln!(out, "- {what}: {}{rest}", shown.join(", "))
}

fn more(out: &mut String, count: usize) -> std::fmt::Result {
    match count.saturating_sub(NAMED) {
        0 => Ok(()),
        more => writeln!(out, "- and {more} more"),
    }
}

/// Text from outside as inline code: it can neither end the span nor begin a line, and inside it nothing
/// is a link, a mention or a tag.
fn code(text: &str) -> String {
    const MOST: usize = 300;
    let text: String = text.chars().take(MOST).collect();
    let text = tame(&text.replace('`', "'").replace(['\n', '\t'], " "));
    match text.trim() {
        "" => "`(empty)`".to_owned(),
        text => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_leaves_its_span() {
        for (text, want) in [
            ("a`b``\n# PASS", "`a'b'' # PASS`"),
            ("@owner #1 <img src=x>", "`@owner #1 <img src=x>`"),
            ("  x\u{202e}y\u{200b} ", "`x\u{fffd}y\u{fffd}`"),
        ] {
            assert_eq!(code(text), want);
        }
        assert!(code(&"x".repeat(9_000)).len() < 400);
        assert_eq!(code(" "), "`(empty)`");
    }
}
