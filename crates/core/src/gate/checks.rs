//! What each gate asks, one function per gate. Every missing input blocks.

use std::collections::BTreeSet;

use super::{GateInput, Outcome};
use crate::gate::opening::Opening;
use crate::task::contract::{Contract, MutationMode, Stage};
use crate::task::source::{Looked, SourceClass};
use crate::values::blocker::Code;
use crate::values::maybe_known::MaybeKnown;

const NO_CONTRACT: Outcome = Outcome::NotApplicable("there is no valid contract to ask about");
pub(super) const ENGINE_CLOSED: Outcome = Outcome::NotApplicable("the engine itself is closed");

pub(super) fn closed(input: &GateInput<'_>) -> bool {
    input.manifest.is_gated() && !input.opening.is_open()
}

pub(super) fn with_contract(
    input: &GateInput<'_>,
    check: impl FnOnce(&Contract) -> Outcome,
) -> Outcome {
    match input.contract.valid() {
        Some(contract) => check(contract),
        None => NO_CONTRACT,
    }
}

pub fn contract(input: &GateInput<'_>) -> Outcome {
    match input.contract {
        crate::task::contract::ContractDocument::Valid(_) => Outcome::Pass,
        crate::task::contract::ContractDocument::Invalid(invalid) => {
            let first = invalid.errors.first().map(ToString::to_string);
            let more = invalid.errors.len().saturating_sub(1);
            let detail = match (first, more) {
                (Some(first), 0) => Some(first),
                (Some(first), more) => Some(format!("{first} (and {more} more)")),
                (None, _) => None,
            };
            Outcome::Blocked(Code::ContractInvalid, detail)
        }
    }
}

pub fn engine(input: &GateInput<'_>) -> Outcome {
    let id = &input.manifest.id;
    match (&input.manifest.gated_by_env, &input.opening) {
        (None, _) => Outcome::Pass,
        (Some(_), Opening::Opened(by)) => Outcome::Noted(format!("opened by {by}")),
        (Some(variable), Opening::Closed(why)) => {
            Outcome::Blocked(Code::EngineGateClosed, Some(why.sentence(id, variable)))
        }
    }
}

pub fn stage(input: &GateInput<'_>) -> Outcome {
    match input.stage {
        _ if closed(input) => ENGINE_CLOSED,
        Stage::One => Outcome::Blocked(Code::StageGateClosed, None),
        Stage::Two | Stage::Three | Stage::Four | Stage::Five | Stage::Six => Outcome::Pass,
    }
}

/// A copy of a repository needs a record that says whose it is.
pub fn source(input: &GateInput<'_>) -> Outcome {
    with_contract(input, |contract| match &contract.source {
        _ if closed(input) => ENGINE_CLOSED,
        _ if input.source_refused.is_some() => Outcome::Blocked(
            Code::SourceNotAdmitted,
            input.source_refused.map(str::to_owned),
        ),
        Some(source) => match source.record.class {
            SourceClass::OwnedLocal => Outcome::Pass,
        },
        None if input.stage == Stage::Three
            || contract.mutation_mode == MutationMode::CopiedRepo =>
        {
            Outcome::Blocked(
                Code::SourceNotAdmitted,
                Some("a copied repository needs a source record, and none was given".into()),
            )
        }
        None => Outcome::NotApplicable("no repository is copied"),
    })
}

pub fn source_state(input: &GateInput<'_>) -> Outcome {
    with_contract(input, |contract| match (&contract.source, &input.source) {
        (None, _) if contract.branch_policy.is_some() => disposable(&input.disposable),
        (None, _) => Outcome::NotApplicable("no repository is copied"),
        (Some(_), MaybeKnown::NotLookedAt) => Outcome::Blocked(
            Code::SourceNotAdmitted,
            Some("the source was not looked at".into()),
        ),
        (Some(_), MaybeKnown::Known(Looked::Unusable(why))) => {
            let code = match input.stage >= Stage::Five {
                true => Code::TargetNotAdmitted,
                false => Code::SourceNotAdmitted,
            };
            Outcome::Blocked(code, Some(why.clone()))
        }
        (Some(source), MaybeKnown::Known(Looked::Found(look))) => match look.status.dirt() {
            Some(dirt) if !source.from_head => {
                Outcome::Blocked(Code::DirtyStartingTree, Some(dirt))
            }
            _ => Outcome::Pass,
        },
    })
}

fn disposable(made: &MaybeKnown<Result<(), String>>) -> Outcome {
    let why = match made {
        MaybeKnown::Known(Ok(())) => return Outcome::Pass,
        MaybeKnown::Known(Err(why)) => why.as_str(),
        MaybeKnown::NotLookedAt => "nobody made its first commits",
    };
    let detail = format!("the disposable repository cannot be made: {why}");
    Outcome::Blocked(Code::ProviderUnavailable, Some(detail))
}

/// The highest stage that this version runs.
const HIGHEST: Stage = Stage::Five;

pub fn mutation_mode(input: &GateInput<'_>) -> Outcome {
    with_contract(input, |contract| {
        let needed = contract.mutation_mode.stage();
        match input.stage {
            _ if closed(input) => ENGINE_CLOSED,
            Stage::One => Outcome::NotApplicable("stage 1 changes nothing"),
            // Nobody runs there yet, whoever approves it.
            stage if needed <= stage && needed > HIGHEST => {
                match super::admissions::stage_proof(input) {
                    // One cause, one blocker.
                    Outcome::Blocked(..) => {
                        Outcome::NotApplicable("the stage before it is not proven")
                    }
                    _ => Outcome::Blocked(
                        Code::StageNotProven,
                        Some(format!(
                            "this version runs nothing beyond stage {}",
                            HIGHEST.number()
                        )),
                    ),
                }
            }
            stage if needed <= stage => Outcome::Pass,
            stage => Outcome::Blocked(
                Code::StageNotProven,
                Some(format!(
                    "mutation mode {} needs stage {}, asked for {}",
                    contract.mutation_mode.as_str(),
                    needed.number(),
                    stage.number()
                )),
            ),
        }
    })
}

pub fn verification_command(input: &GateInput<'_>) -> Outcome {
    with_contract(input, |contract| {
        let excused = contract.no_test_rationale.is_some()
            && !matches!(input.stage, Stage::Two | Stage::Three | Stage::Four);
        if input.stage >= Stage::Four && contract.reasons.do_without() {
            let why = "from stage 4 on no reason is enough for checks that prove nothing";
            return Outcome::Blocked(Code::VerificationUnproven, Some(why.into()));
        }
        match contract.verification_commands.is_empty() {
            false => Outcome::Pass,
            true if excused => Outcome::NotApplicable("the contract says why there is no test"),
            true => Outcome::Blocked(
                Code::MissingTestCommand,
                Some("verification_commands is empty".into()),
            ),
        }
    })
}

/// Asks only whether there is an answer. The answer itself is read once there is a plan; a denial
/// closes this gate then.
pub fn approval(input: &GateInput<'_>) -> Outcome {
    with_contract(input, |contract| {
        match (contract.approval_required, input.approval_answered) {
            (false, _) => Outcome::NotApplicable("the contract needs no approval"),
            (true, true) => Outcome::Pass,
            (true, false) => Outcome::Blocked(
                Code::ApprovalMissing,
                Some("no approval names this contract".into()),
            ),
        }
    })
}

/// Setup and inputs exist only inside a jail. The gates of the host find out whether there is a
/// jail and whether the inputs exist.
pub fn setup(input: &GateInput<'_>) -> Outcome {
    with_contract(input, |contract| match prepares(contract) {
        false => Outcome::NotApplicable("the contract prepares nothing"),
        true => Outcome::Pass,
    })
}

/// Asks only whether a green start is wanted. Whether it is green shows once there is a copy to run the
/// checks in; a red one closes this gate then.
pub fn baseline(input: &GateInput<'_>) -> Outcome {
    with_contract(input, |contract| match contract.reasons.green_start {
        false => Outcome::NotApplicable("the contract asks for no green start"),
        true => {
            Outcome::Noted("the checks run on the untouched copy before the engine starts".into())
        }
    })
}

fn prepares(contract: &Contract) -> bool {
    !contract.setup.is_empty() || !contract.inputs.is_empty()
}

/// What every run needs although no contract names it: git, a shell, the engine's own program.
pub fn provider(input: &GateInput<'_>) -> Outcome {
    match &input.host {
        _ if input.manifest.invocation.is_none() => {
            let why = format!("this version knows {} but cannot run it", input.manifest.id);
            Outcome::Blocked(Code::ProviderUnavailable, Some(why))
        }
        MaybeKnown::NotLookedAt => Outcome::Blocked(
            Code::ProviderUnavailable,
            Some("the host was not looked at".into()),
        ),
        MaybeKnown::Known(host) if host.lane_missing.is_empty() => Outcome::Pass,
        MaybeKnown::Known(host) => Outcome::Blocked(
            Code::ProviderUnavailable,
            Some(host.lane_missing.join("; ")),
        ),
    }
}

/// The flag that shows a program or an installation.
const SHOWS: &str = "--toolchain";

pub fn toolchains(input: &GateInput<'_>) -> Outcome {
    with_contract(input, |contract| {
        let MaybeKnown::Known(host) = &input.host else {
            return Outcome::Blocked(
                Code::ToolchainUnavailable,
                Some("the host was not looked at".into()),
            );
        };
        let missing: Vec<String> = programs_needed(contract)
            .into_iter()
            .filter(|program| !host.programs.get(program).is_some_and(Option::is_some))
            .collect();
        let mut problems: Vec<String> = host.unusable.clone();
        if !missing.is_empty() {
            problems.insert(0, format!("not found on PATH: {}", missing.join(", ")));
        }
        // What says itself which flag helps, and what was named by one, needs no other word.
        if problems.iter().any(|problem| !problem.contains(SHOWS)) {
            problems.push(format!("{SHOWS} PATH shows what is not found by itself"));
        }
        problems.extend(host.refused.iter().cloned());
        match problems.is_empty() {
            true => Outcome::Pass,
            false => Outcome::Blocked(Code::ToolchainUnavailable, Some(problems.join("; "))),
        }
    })
}

/// Every lane needs the whole jail. One exception, named in every report of such a run: `fake` at
/// stage 2, playing a script that ships with its case.
pub fn containment(input: &GateInput<'_>) -> Outcome {
    let MaybeKnown::Known(host) = &input.host else {
        return Outcome::Blocked(
            Code::ContainmentUnavailable,
            Some("the host was not looked at".into()),
        );
    };
    let prepares = input.contract.valid().is_some_and(prepares);
    let excepted =
        !input.manifest.is_gated() && input.stage == Stage::Two && input.own_script && !prepares;
    match host.jail_missing.is_empty() {
        true => Outcome::Pass,
        false if excepted => Outcome::NotApplicable(
            "fake plays its own script at stage 2; it runs WITHOUT containment",
        ),
        false => Outcome::Blocked(
            Code::ContainmentUnavailable,
            Some(format!(
                "not proven on this host: {}",
                host.jail_missing.join(", ")
            )),
        ),
    }
}

/// Declared toolchains, and the program each command of the contract begins with.
pub fn programs_needed(contract: &Contract) -> Vec<String> {
    let mut programs: Vec<String> = contract.toolchains.clone();
    programs.extend(commands(contract).filter_map(|command| first_program(command)));
    programs.sort();
    programs.dedup();
    programs
}

fn commands(contract: &Contract) -> impl Iterator<Item = &String> {
    contract
        .setup
        .iter()
        .chain(&contract.verification_commands)
        .chain(&contract.hidden_verification.commands)
}

/// Every word of the commands that could be the name of a program: `env X=1 pytest`,
/// `sh -c 'ruff check && pytest'`. Where one is found it is bound; where it is not, it was none.
pub fn programs_named(contract: &Contract) -> BTreeSet<String> {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && !"._+-/=@%".contains(c);
    let is_name = |word: &&str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+');
        !word.is_empty() && !word.starts_with(['-', '+', '.']) && word.bytes().all(plain)
    };
    let words = commands(contract).flat_map(|command| command.split(is_end));
    let words = words.filter(is_name).map(str::to_owned);
    words.chain(programs_needed(contract)).collect()
}

/// Toolchains of Rust that commands choose: the NAME of `cargo +NAME test`.
pub fn toolchains_chosen(contract: &Contract) -> BTreeSet<String> {
    let words = commands(contract).flat_map(|command| command.split_whitespace());
    chosen_by(words)
}

/// The same of the words of one command.
pub fn chosen_by<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    words
        .filter_map(|word| word.strip_prefix('+'))
        .filter(|name| !name.is_empty() && !name.starts_with(['-', '.']))
        .filter(|name| name.bytes().all(plain))
        .map(str::to_owned)
        .collect()
}

/// The program of a plain command; shell syntax and built-ins are left to the shell.
fn first_program(command: &str) -> Option<String> {
    const BUILT_IN: [&str; 28] = [
        "!", "{", "[", "[[", ":", ".", "alias", "case", "cd", "command", "eval", "exec", "exit",
        "export", "false", "for", "if", "readonly", "set", "shift", "test", "trap", "true",
        "ulimit", "umask", "unset", "until", "wait",
    ];
    let word = command
        .split_whitespace()
        .find(|word| !is_assignment(word))?;
    let plain = word
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+'));
    (plain && !BUILT_IN.contains(&word) && word != "while").then(|| word.to_owned())
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

#[cfg(test)]
#[path = "checks_tests.rs"]
pub(super) mod tests;
