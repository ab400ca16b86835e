//! The prompt: the contract in words, and nothing about the host.

use crate::task::contract::{Action, Contract};
use crate::values::paths::PathRule;

/// The task as one text. It begins with a plain word, so no engine takes it for an option or a
/// file.
pub fn contract_prompt(contract: &Contract) -> String {
    let mut out = format!(
        "Task: {}\n\n{}\n",
        contract.title.trim(),
        contract.objective.trim()
    );
    out.push_str("\nYou are in the root of a private copy of the files. Work there alone, without asking back.\n");
    section(
        &mut out,
        "Only these paths may change",
        contract.allowed_paths.iter().map(PathRule::as_str),
    );
    section(
        &mut out,
        "These paths must not change, even where a path above would allow it",
        paths(&contract.forbidden_paths),
    );
    section(
        &mut out,
        "Never do any of this",
        contract
            .forbidden_actions
            .iter()
            .map(|action| action_words(*action)),
    );
    section(
        &mut out,
        "It will be verified with",
        contract.verification_commands.iter().map(String::as_str),
    );
    section(
        &mut out,
        "It is done when",
        contract.success_criteria.iter().map(String::as_str),
    );
    out.push_str(
        "\nThe network is closed. Do not commit. When the change is made, say in one sentence what you changed, and stop.\n",
    );
    out
}

/// The task for an engine that works in phases and commits: a page it reads itself, with what the operator wants said beside
/// it. Its last section is the protocol in which each of its agents must answer.
pub fn contract_task(contract: &Contract, instructions: Option<&str>) -> String {
    let mut out = format!(
        "# {}\n\n{}\n",
        contract.title.trim(),
        contract.objective.trim()
    );
    out.push_str("\nThe repository is a private copy. Work there alone, without asking back.\n");
    section(
        &mut out,
        "## Done when",
        contract.success_criteria.iter().map(String::as_str),
    );
    section(
        &mut out,
        "## Only these paths may change",
        contract.allowed_paths.iter().map(PathRule::as_str),
    );
    section(
        &mut out,
        "## These paths must not change, even where a path above would allow it",
        paths(&contract.forbidden_paths),
    );
    section(
        &mut out,
        "## Never do any of this",
        contract
            .forbidden_actions
            .iter()
            .map(|action| action_words(*action)),
    );
    section(
        &mut out,
        "## It will be verified with",
        contract.verification_commands.iter().map(String::as_str),
    );
    out.push_str(
        "\n## How it ends\n\nCommit the change in this repository. There is no remote: push nothing, and do not open a pull request \
         or call `gh`; a closer reports the commit instead. The network is closed.\n",
    );
    if let Some(told) = instructions {
        let told = told.trim();
        out.push_str(&format!("\n## Instructions of the operator\n\n{told}\n"));
    }
    let files: Vec<&str> = contract
        .allowed_paths
        .iter()
        .map(PathRule::as_str)
        .collect();
    let files = serde_json::json!(files);
    out.push_str(&format!(
        "\n## Result\n\nEvery agent ends its last message with exactly this, in plain text, without a code fence:\n\n\
         <<<AGENT_RESULT\n{{\"status\": \"completed\", \"summary\": \"one sentence\", \"artifacts\": {{\"commit\": \"the commit, if any\", \
         \"filesChanged\": {files}, \"testsPassed\": true, \"prUrl\": null, \"prNumber\": null}}}}\nAGENT_RESULT>>>\n\n\
         `status` is `completed`, `failed` or `blocked`; with the last two, `error` says why.\n"
    ));
    out
}

/// Longer is no text that is told beside a task.
pub const MAX_INSTRUCTIONS: u64 = 64 << 10;

/// Why bytes are no instructions.
pub fn instructions_problem(bytes: &[u8]) -> Option<&'static str> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Some("they are not UTF-8");
    };
    let strange = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    match text {
        _ if bytes.len() as u64 > MAX_INSTRUCTIONS => Some("they are longer than 64 KiB"),
        text if text.trim().is_empty() => Some("they are empty"),
        text if text.contains(strange) => Some("they hold control characters"),
        _ => None,
    }
}

/// The task with what the operator wants said beside it, for an engine that has no better place for it.
pub fn prompt_with_instructions(contract: &Contract, instructions: &str) -> String {
    let task = contract_prompt(contract);
    format!(
        "{task}\nInstructions of the operator:\n\n{}\n",
        instructions.trim()
    )
}

/// What is said of variables that setup and checks have and an admitted engine has not.
pub fn withheld(contract: &Contract) -> String {
    let names: Vec<&str> = contract.variables.keys().map(String::as_str).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "\nThe commands it is verified with have variables that you have not: {}.\n",
            names.join(", ")
        ),
    }
}

fn paths(rules: &[PathRule]) -> impl Iterator<Item = &str> {
    rules.iter().map(PathRule::as_str)
}

fn section<'a>(out: &mut String, title: &str, lines: impl Iterator<Item = &'a str>) {
    let lines: Vec<&str> = lines.collect();
    if lines.is_empty() {
        return;
    }
    out.push_str(&format!("\n{title}:\n"));
    for line in lines {
        out.push_str(&format!("- {}\n", line.trim()));
    }
}

fn action_words(action: Action) -> &'static str {
    match action {
        Action::Push => "push to a remote",
        Action::Merge => "merge a branch",
        Action::Deploy => "deploy anything",
        Action::Close => "close a task",
        Action::PrOpen => "open a pull request",
        Action::IssueClose => "close an issue",
        Action::PublicPublication => "publish anything",
        Action::CredentialChange => "change a credential",
        Action::VendorSourceMutation => "change vendored sources",
        Action::CortexCoreMutation => "change Cortex Core",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::contract::tests::sample as contract;

    #[test]
    fn the_contract_is_told_whole_and_begins_harmlessly() {
        let contract = contract();
        let text = contract_prompt(&contract);
        assert!(text.starts_with("Task: "));
        for rule in contract
            .allowed_paths
            .iter()
            .chain(&contract.forbidden_paths)
        {
            assert!(text.contains(&format!("- {}\n", rule.as_str())), "{text}");
        }
        for command in &contract.verification_commands {
            assert!(text.contains(&format!("- {command}\n")), "{text}");
        }
        for action in &contract.forbidden_actions {
            assert!(text.contains(action_words(*action)), "{text}");
        }
    }

    #[test]
    fn the_task_of_an_engine_that_commits_says_all_and_forbids_a_pull_request() {
        let contract = contract();
        let text = contract_task(&contract, None);
        for rule in contract
            .allowed_paths
            .iter()
            .chain(&contract.forbidden_paths)
        {
            assert!(text.contains(&format!("- {}\n", rule.as_str())), "{text}");
        }
        for action in &contract.forbidden_actions {
            assert!(text.contains(action_words(*action)), "{text}");
        }
        for said in contract
            .verification_commands
            .iter()
            .chain(&contract.success_criteria)
        {
            assert!(text.contains(said.trim()), "{text}");
        }
        assert!(text.contains("do not open a pull request") && !text.contains("Do not commit"));
        let inside = text.split("<<<AGENT_RESULT").nth(1).unwrap();
        let inside = inside.split("AGENT_RESULT>>>").next().unwrap();
        let envelope: serde_json::Value = serde_json::from_str(inside).unwrap();
        let files = envelope["artifacts"]["filesChanged"].as_array().unwrap();
        assert_eq!(files.len(), contract.allowed_paths.len());
        assert!(!text.contains("Instructions of the operator"));
        let told = contract_task(&contract, Some("\nUse tabs.\n"));
        let section = "\n## Instructions of the operator\n\nUse tabs.\n\n## Result\n";
        assert!(told.contains(section), "{told}");
    }

    #[test]
    fn instructions_are_a_text_of_bounded_length() {
        let long = vec![b'x'; (64 << 10) + 1];
        assert_eq!(instructions_problem(&long[1..]), None);
        assert_eq!(instructions_problem("Größe\r\n\tx".as_bytes()), None);
        for bad in [&long[..], b"", b" \n\t", b"\xff\xfe", b"a\0b", b"\x1b[2J"] {
            assert!(instructions_problem(bad).is_some(), "{:?}", bad.first());
        }
    }

    #[test]
    fn instructions_come_after_the_task() {
        let contract = contract();
        let text = prompt_with_instructions(&contract, "\nUse tabs.\n");
        assert!(text.starts_with(&contract_prompt(&contract)));
        assert!(
            text.ends_with("Instructions of the operator:\n\nUse tabs.\n"),
            "{text}"
        );
    }

    #[test]
    fn what_the_engine_must_not_see_is_not_told() {
        let mut contract = contract();
        contract.target_repository = "target-of-the-operator".into();
        contract.hidden_verification.commands = vec!["run-the-hidden-check".into()];
        let text = contract_prompt(&contract);
        assert!(
            !text.contains("target-of-the-operator") && !text.contains("hidden"),
            "{text}"
        );
    }
}
