//! What to do next about a blocker: one command, by its cause. What a blocker says of its cause is
//! its detail, so the words that tell causes apart stand here and are used where they are said.

use std::borrow::Cow;

use crate::values::blocker::Code;
use crate::values::ids::EngineId;

/// Begins every detail about where the engine itself came from, as against the repository.
pub const OF_ENGINE_SOURCE: &str = "where the engine came from: ";
/// Begins every detail about the review of a gate record.
pub const OF_GATE_RECORD: &str = "gate record: ";
/// Begins the detail of the one request that is made before the engine.
pub const OF_PROBE: &str = "one request before the engine: ";

/// How a budget says that it is spent.
pub const CALLS_SPENT: &str = "the run has made as many model calls as it may";
pub const TOKENS_SPENT: &str = "the run has used as many tokens as it may";
pub const MONEY_SPENT: &str = "the run has spent as much on its model as it may";
pub const BYTES_SPENT: &str = "the run has moved as many bytes as it may";
pub const TIME_SPENT: &str = "the time for model calls is over";

/// How a closed gate tells its causes apart.
pub const GATE_VARIABLE: &str = "is set and is not 1";
pub const GATE_DESK: &str = "it is for a person at a terminal";
pub const GATE_PROGRAM: &str = "no program is admitted";
pub const GATE_REPLACED: &str = "is not the one that is admitted";
pub const GATE_MISSING: &str = "is not there";

/// Whom a hint is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reader<'a> {
    pub engine: &'a EngineId,
    /// Their own words on their own repository: there is no case file.
    pub is_try: bool,
}

/// The hint for a blocker of this run.
pub fn hint(code: Code, detail: Option<&str>, reader: Reader<'_>) -> Cow<'static, str> {
    let detail = detail.unwrap_or_default();
    let of_lane = by_budget(code, detail).map(Cow::Borrowed);
    let of_lane = of_lane.or_else(|| of_lane_gate(code, detail, reader.engine).map(Cow::Owned));
    of_lane.unwrap_or(Cow::Borrowed(match reader.is_try {
        true => code.hint_for_a_try(),
        false => code.info().hint,
    }))
}

/// The flag of the limit that was met.
fn by_budget(code: Code, detail: &str) -> Option<&'static str> {
    if code != Code::BudgetExceeded {
        return None;
    }
    Some(match detail {
        CALLS_SPENT => "--model-calls N lets it make more calls",
        TOKENS_SPENT => "--tokens N lets it use more tokens",
        MONEY_SPENT => "--spend AMOUNT lets it spend more",
        TIME_SPENT => "--timeout SECONDS gives it more time",
        BYTES_SPENT => "there is no flag for bytes: make the task smaller",
        _ => return None,
    })
}

/// What a gated lane lacks, and the one command that mends it. The default lane has none of these.
fn of_lane_gate(code: Code, detail: &str, engine: &EngineId) -> Option<String> {
    if engine.as_str() == "fake" {
        return None;
    }
    let says = |words: &str| detail.contains(words);
    let setup = |what: &str| Some(format!("`cto setup {engine}` {what}"));
    let open = || {
        Some(format!(
            "`cto engines open {engine}` opens it at this terminal"
        ))
    };
    match code {
        Code::EngineGateClosed if says(GATE_VARIABLE) => {
            Some("unset that variable, then run the same command again".into())
        }
        Code::EngineGateClosed if says(GATE_DESK) => {
            Some(format!("add --allow-engine {engine} to the command"))
        }
        Code::EngineGateClosed
            if says(GATE_PROGRAM) || says(GATE_REPLACED) || says(GATE_MISSING) =>
        {
            setup("admits its program and opens it")
        }
        Code::EngineGateClosed => open(),
        Code::StageGateClosed => {
            setup("proves stages 1 and 2; without --stage a run then asks for stage 2")
        }
        Code::StageNotProven if says("mutation mode") => None,
        Code::StageNotProven if says("stage 1") || says("stage 2") => {
            setup("proves stages 1 and 2 for this lane")
        }
        Code::ExecutableNotAdmitted => setup("admits the program that is there now"),
        Code::ModelNotAdmitted if says(OF_PROBE) => {
            setup("shows which name answered and offers it as an alias")
        }
        Code::ModelNotAdmitted => setup("admits a provider and a model"),
        Code::ProviderDecisionClosed => setup("records the decision for its provider"),
        Code::SourceNotAdmitted if detail.starts_with(OF_ENGINE_SOURCE) => {
            setup("records where it came from")
        }
        Code::LicenseUnresolved => setup("shows its licence and asks whether you accept it"),
        Code::ReviewDue
            if detail
                .split("; ")
                .all(|part| part.starts_with(OF_GATE_RECORD)) =>
        {
            Some(format!("`cto engines open {engine}` opens it anew"))
        }
        Code::ReviewDue => setup("shows what is due and renews it"),
        Code::ProviderAuthUnavailable if says(OF_PROBE) || detail.starts_with("call ") => {
            setup("names another credential; the endpoint refused the one it was given")
        }
        Code::ProviderAuthUnavailable => setup("asks where the credential comes from"),
        Code::ProviderLocalConfigUnavailable => setup("asks for the base URL and keeps its file"),
        Code::ProviderUnavailable if says("no longer at its path") => {
            setup("admits the program where it is now")
        }
        Code::ProviderUnavailable if says("base URL") => {
            setup("asks for the base URL and keeps its file")
        }
        Code::ProviderUnavailable if says("cannot run it") => {
            Some("`cto engines` lists what can be run".into())
        }
        Code::ProviderUnavailable if says(OF_PROBE) || detail.starts_with("call ") => setup(
            "asks the endpoint again and shows what it answers; where it was only away, run again",
        ),
        Code::ProviderResponseShapeUnavailable => setup("chooses another model"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: Code, detail: &str, engine: &str) -> String {
        let engine: EngineId = engine.parse().unwrap();
        let reader = Reader {
            engine: &engine,
            is_try: false,
        };
        hint(code, Some(detail), reader).into_owned()
    }

    /// Every blocker a gated lane can meet before it runs, by cause, and the one command.
    #[test]
    fn a_gated_lane_is_told_one_command() {
        const SETUP: &str = "`cto setup pi`";
        const OPEN: &str = "`cto engines open pi`";
        for (code, detail, want) in [
            (Code::EngineGateClosed, "pi opens with", OPEN),
            (
                Code::EngineGateClosed,
                "X is set and is not 1, which closes pi",
                "unset",
            ),
            (
                Code::EngineGateClosed,
                "it is for a person at a terminal, and x",
                "--allow-engine pi",
            ),
            (
                Code::EngineGateClosed,
                "no program is admitted for pi",
                SETUP,
            ),
            (
                Code::EngineGateClosed,
                "its program is not the one that is admitted",
                SETUP,
            ),
            (Code::EngineGateClosed, "its program is not there", SETUP),
            (
                Code::EngineGateClosed,
                "it was opened for another program",
                OPEN,
            ),
            (Code::StageGateClosed, "", SETUP),
            (
                Code::StageNotProven,
                "no proof of stage 1 for this lane",
                SETUP,
            ),
            (
                Code::StageNotProven,
                "stage 2 was proven for another lane; changed since: model pair",
                SETUP,
            ),
            (
                Code::StageNotProven,
                "no proof of stage 3 for this lane",
                "earlier stage",
            ),
            (
                Code::StageNotProven,
                "mutation mode copied-repo needs stage 3, asked for 2",
                "earlier stage",
            ),
            (
                Code::ExecutableNotAdmitted,
                "the file has another digest",
                SETUP,
            ),
            (Code::ModelNotAdmitted, "missing_admission: none", SETUP),
            (
                Code::ModelNotAdmitted,
                "one request before the engine: wrong_model",
                "alias",
            ),
            (
                Code::ProviderDecisionClosed,
                "there is no decision record",
                SETUP,
            ),
            (
                Code::SourceNotAdmitted,
                "where the engine came from: there is no source record",
                SETUP,
            ),
            (
                Code::SourceNotAdmitted,
                "a copied repository needs a source record",
                "`cto try`",
            ),
            (Code::LicenseUnresolved, "", SETUP),
            (
                Code::ReviewDue,
                "gate record: the day of its review has come",
                OPEN,
            ),
            (
                Code::ReviewDue,
                "gate record: the day; model-provider admission: the day",
                SETUP,
            ),
            (Code::ReviewDue, "executable admission: the path", SETUP),
            (
                Code::ProviderAuthUnavailable,
                "the variable K is not there, or may not be used",
                SETUP,
            ),
            (
                Code::ProviderAuthUnavailable,
                "one request before the engine: auth (status 401)",
                "refused",
            ),
            (
                Code::ProviderLocalConfigUnavailable,
                "no base URL was supplied for this run",
                SETUP,
            ),
            (
                Code::ProviderUnavailable,
                "no base URL was supplied for this run",
                SETUP,
            ),
            (
                Code::ProviderUnavailable,
                "the admitted file is no longer at its path",
                SETUP,
            ),
            (
                Code::ProviderUnavailable,
                "this version knows case but cannot run it",
                "`cto engines`",
            ),
            (
                Code::ProviderUnavailable,
                "one request before the engine: transport",
                SETUP,
            ),
            (Code::ProviderResponseShapeUnavailable, "", SETUP),
        ] {
            let said = said(code, detail, "pi");
            assert!(said.contains(want), "{code:?} {detail}: {said}");
            assert!(said.matches("`cto ").count() <= 1, "one command: {said}");
        }
    }

    #[test]
    fn the_default_lane_and_other_blockers_keep_their_words() {
        for code in [
            Code::StageGateClosed,
            Code::SourceNotAdmitted,
            Code::ProviderUnavailable,
        ] {
            assert_eq!(said(code, "", "fake"), code.info().hint);
        }
        assert_eq!(said(Code::Timeout, "", "pi"), Code::Timeout.info().hint);
        let engine: EngineId = "pi".parse().unwrap();
        let reader = Reader {
            engine: &engine,
            is_try: true,
        };
        assert_eq!(
            hint(Code::NoDiff, None, reader),
            Code::NoDiff.hint_for_a_try()
        );
    }

    #[test]
    fn a_spent_budget_names_the_flag_of_its_limit() {
        for (detail, flag) in [
            (CALLS_SPENT, "--model-calls"),
            (TOKENS_SPENT, "--tokens"),
            (MONEY_SPENT, "--spend"),
            (TIME_SPENT, "--timeout"),
            (BYTES_SPENT, "no flag"),
        ] {
            assert!(
                said(Code::BudgetExceeded, detail, "pi").contains(flag),
                "{detail}"
            );
        }
        let other = said(Code::BudgetExceeded, "words of before", "pi");
        assert_eq!(other, Code::BudgetExceeded.info().hint);
    }
}
