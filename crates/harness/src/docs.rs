//! The generated pages of `docs/`: blockers, gates, exit codes and the command line, from the same
//! tables the program runs on. A test keeps the committed files fresh.

use std::fmt::Write as _;

use cto_core::blocker::BLOCKERS;
use cto_core::gate::GATES;

use crate::failure::EXIT_CODES;

const HEADER: &str = "<!-- Generated from the source; `just docs` writes it anew. -->\n\n";

/// File name and content of every generated file, relative to the repository root.
pub fn all() -> Vec<(String, String)> {
    let mut files = vec![
        ("docs/blockers.md".to_owned(), blockers()),
        ("docs/gates.md".to_owned(), gates()),
        ("docs/exit-codes.md".to_owned(), exit_codes()),
        ("docs/cli.md".to_owned(), command_line()),
    ];
    for (name, schema) in cto_core::schema::all() {
        let text = cto_core::json::pretty(&schema).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        files.push((format!("schemas/{name}.json"), text));
    }
    files
}

fn blockers() -> String {
    let mut out = format!(
        "{HEADER}# Blockers\n\nEvery reason a run does not pass. A run's status is the worst of its blockers; the headline is the first of that status.\n\n"
    );
    out.push_str("| code | status | event | sentence | hint |\n|---|---|---|---|---|\n");
    for info in BLOCKERS {
        let _ = writeln!(
            out,
            "| `{}` | {} | `{}` | {} | {} |",
            info.name,
            info.status.as_str(),
            info.event.as_str(),
            info.sentence,
            info.hint.replace('|', "\\|")
        );
    }
    out
}

fn gates() -> String {
    let mut out = format!(
        "{HEADER}# Gates\n\nIn order. A phase is looked at only after every gate of the one before it passed; all blockers of a phase are reported together.\n\n"
    );
    out.push_str("| gate | phase | question | reads |\n|---|---|---|---|\n");
    for gate in GATES {
        let reads = gate.reads.iter().map(|read| format!("`{read}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "| `{}` | {} | {} | {reads} |", gate.id, format!("{:?}", gate.phase).to_lowercase(), gate.question);
    }
    out
}

fn exit_codes() -> String {
    let mut out = format!("{HEADER}# Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(out, "| {code} | {meaning} |");
    }
    out.push_str(
        "\n`cto` without a command prints the short help on standard error and ends with 2: a script that forgot its command must not read it as a pass.\n\n\
         `cto exec` passes on the code of the command it ran (128 + n for signal n) and uses 125 for its own failures, a wrong command line included.\n",
    );
    out
}

fn command_line() -> String {
    let mut tree = crate::cli::command_tree().term_width(90);
    tree.build();
    let mut out = format!("{HEADER}# Command line\n\n```text\n{}```\n", help(&tree));
    commands_below("cto", &tree, &mut out);
    out
}

fn commands_below(name: &str, command: &clap::Command, out: &mut String) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("{name} {}", sub.get_name());
        let _ = write!(out, "\n## {name}\n\n```text\n{}```\n", help(sub));
        commands_below(&name, sub, out);
    }
}

fn help(command: &clap::Command) -> String {
    let text = command.clone().term_width(90).render_long_help().to_string();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
