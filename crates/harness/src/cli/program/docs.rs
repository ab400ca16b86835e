//! The generated pages of `docs/`: blockers, gates, exit codes, matrix and the command line, from
//! the same tables the program runs on. A test keeps the committed files fresh.

use std::fmt::Write as _;

use cto_core::gate::GATES;
use cto_core::proof::matrix::{self, FIXTURES, Lanes, Row};
use cto_core::values::blocker::BLOCKERS;

use crate::host::failure::EXIT_CODES;

const HEADER: &str = "<!-- Generated from the source; `just docs` writes it anew. -->\n\n";

/// File name and content of every generated file, relative to the repository root.
pub fn all() -> Vec<(String, String)> {
    let mut files = vec![
        ("docs/blockers.md".to_owned(), blockers()),
        ("docs/gates.md".to_owned(), gates()),
        ("docs/exit-codes.md".to_owned(), exit_codes()),
        ("docs/cli.md".to_owned(), command_line()),
        ("docs/matrix.md".to_owned(), matrix()),
        ("docs/hostile.md".to_owned(), hostile()),
    ];
    for (name, schema) in cto_core::operator::schema::all_schemas() {
        let text = cto_core::values::json::pretty(&schema)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
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
        let reads = gate
            .reads
            .iter()
            .map(|read| format!("`{read}`"))
            .collect::<Vec<_>>()
            .join(", ");
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {reads} |",
            gate.id,
            format!("{:?}", gate.phase).to_lowercase(),
            gate.question
        );
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
         Several runs in one command end with the worst of them: 70, then 1, then 3, then 0.\n\n\
         `cto exec` passes on the code of the command it ran (128 + n for signal n) and uses 125 for its own failures, a wrong command line included.\n",
    );
    out
}

const MATRIX: &str = "# The failure matrix\n\n\
    `cto matrix` makes each failure below happen and checks the evidence it leaves. A row is a run like any other: the real \
    program as a process of its own, jail and git, in a temporary state home, with `origin: validator`. It is judged by \
    what it left on disk, never by what an engine said.\n\n\
    Asserted of every row: the exit code of the process; one bundle, which verifies, with every artifact; the status, in report \
    and chain; exactly these blockers, with the right headline; the event whose data carries the code; an engine ran and its \
    raw log is kept, or none ran and nothing changed; everything around the bundle (home, working directory, temporary \
    files, workspaces, source repository) is as it was before, to the byte and the time of change. Then what the row itself \
    must show.\n\n\
    `--engine E` runs a gated engine's own program against a scripted model: the program that is admitted, or the one that \
    `--bin FILE` or `CTO_HARNESS_<E>_BIN` names. The steps of a row become calls of that engine's tools, as \
    `[invocation.tools]` of its manifest names them; records, state and model are the validator's own, lie in its temporary \
    directory, and prove nothing for anybody. A row that no model can make it play is `not_applicable`, with its reason. \
    Besides, neither the key of the model nor its address may stand in any file.\n\n\
    Exit code 0: green. 1: a row is red. 3: nothing red, but no row of the matrix itself could run, so nothing is proven: the \
    engine cannot be run by this version, no program of it is here, or the host cannot contain it. `--json` and `--junit FILE` are for machines, \
    `--keep` leaves the bundles. That each row turns red without the check behind it is shown in \
    [matrix-proof.md](matrix-proof.md).\n";

fn matrix() -> String {
    let mut out = format!("{HEADER}{MATRIX}");
    let Ok(matrix) = matrix::built_in() else {
        return out;
    };
    let mut table = |title: &str, wanted: &dyn Fn(&Row) -> bool| {
        let _ = write!(
            out,
            "\n## {title}\n\n| row | trigger | blocker | event | status | must show |\n|---|---|---|---|---|---|\n"
        );
        matrix
            .rows
            .iter()
            .filter(|row| wanted(row))
            .for_each(|row| out.push_str(&matrix_row(row)));
    };
    table("Nothing wrong", &|row| row.blocker.is_none());
    table("The matrix", &|row| {
        row.fixture
            .as_deref()
            .is_some_and(|name| FIXTURES.contains(&name))
    });
    table("Further codes", &|row| {
        row.blocker.is_some() && row.fixture.is_none() && row.lanes != Lanes::Modelled
    });
    table("What becomes of the model", &|row| {
        row.lanes == Lanes::Modelled
    });
    out
}

const HOSTILE: &str = "# The hostile kit\n\n\
    `cto matrix --hostile` plays an engine that means harm, one attack after the other, and then honest work that must not be \
    taken for it. A row is a run like any other, as in [matrix.md](matrix.md), and is judged by its bundle and by the host: \
    what lies around the run is as it was, no open door of the host was used, no process and no mount is left, nothing \
    appeared where the row tried to put it.\n\n\
    Each attack tells how every attempt ended, and a row whose attack was never made is red. Where the finding is `none` the \
    attack was stopped, the engine then did its honest work, and the run passed. `--row` takes the name of a row or of a \
    theme. A row is not applicable where a program it needs is not installed. What is not defended is in \
    [threat-model.md](threat-model.md).\n";

fn hostile() -> String {
    let mut out = format!("{HEADER}{HOSTILE}");
    for theme in matrix::attack_themes().unwrap_or_default() {
        let _ = write!(
            out,
            "\n## {} (`{}`)\n\n| row | attack | finding | must show |\n|---|---|---|---|\n",
            theme.title, theme.name
        );
        for row in &theme.rows {
            let codes: Vec<String> = row
                .codes()
                .iter()
                .map(|code| format!("`{}`", code.as_str()))
                .collect();
            let finding = if codes.is_empty() {
                "none".to_owned()
            } else {
                codes.join(", ")
            };
            let shows = row
                .shows
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ");
            let _ = writeln!(
                out,
                "| {} | {} | {finding} | {} |",
                row.name,
                row.trigger,
                visible(&shows)
            );
        }
    }
    out
}

/// Names of hostile files on a page of ours: nothing in them is obeyed by Markdown or by a
/// terminal.
fn visible(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ';
    text.chars()
        .map(|c| match c {
            '|' | '<' | '>' | '*' | '`' | '_' | '~' | '[' | '\\' => format!("\\{c}"),
            c if plain(c) => c.to_string(),
            c => c.escape_default().to_string().replace('\\', "\\\\"),
        })
        .collect()
}

fn matrix_row(row: &Row) -> String {
    let quoted = |text: Option<&str>| text.map_or("none".to_owned(), |text| format!("`{text}`"));
    let shows = row
        .shows
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ");
    format!(
        "| {} | {} | {} | {} | {} | {} |\n",
        row.name,
        row.trigger,
        quoted(row.blocker.map(|code| code.as_str())),
        quoted(row.event.map(|event| event.as_str())),
        row.status.as_str(),
        shows.replace('|', "\\|")
    )
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
    let text = command
        .clone()
        .term_width(90)
        .render_long_help()
        .to_string();
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}
