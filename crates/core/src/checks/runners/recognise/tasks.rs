//! Tasks of project files: `justfile`, scripts of Python project tools.
//! Read as text; what a tool would compute is not guessed.

use std::collections::BTreeSet;

use super::peel::Tool;
use super::python_tasks::{nox, tox};
use super::shell::Word;

/// Recipes of one justfile that are followed.
const MOST_RECIPES: usize = 400;

pub(super) enum Followed {
    /// What to call the step, and its commands.
    Commands(String, Vec<String>),
    /// No task of that name: a program of the tool's environment.
    Program(Vec<Word>),
    Unknown,
}

pub(super) fn name_of(tool: Tool) -> &'static str {
    match tool {
        Tool::Make => "make",
        Tool::Tox => "tox",
        Tool::Nox => "nox",
        Tool::Just => "just",
        Tool::Hatch => "hatch run",
        Tool::Pdm => "pdm run",
        Tool::Pipenv => "pipenv run",
    }
}

/// Where a tool keeps its tasks; the first that is there counts.
pub(super) fn files(tool: Tool) -> &'static [&'static str] {
    match tool {
        Tool::Make => &[],
        Tool::Tox => &["tox.ini", "pyproject.toml"],
        Tool::Nox => &["noxfile.py"],
        Tool::Just => &["justfile", "Justfile", ".justfile"],
        Tool::Hatch => &["hatch.toml", "pyproject.toml"],
        Tool::Pdm => &["pyproject.toml"],
        Tool::Pipenv => &["Pipfile"],
    }
}

pub(super) fn commands(tool: Tool, texts: &[(&str, String)], words: &[Word]) -> Followed {
    match tool {
        Tool::Make => Followed::Unknown,
        Tool::Tox => tox(texts, words),
        Tool::Nox => nox(texts, words),
        Tool::Just => just(texts, words),
        Tool::Hatch | Tool::Pdm | Tool::Pipenv => project_script(tool, texts, words),
    }
}

fn just(texts: &[(&str, String)], words: &[Word]) -> Followed {
    let Some((_, text)) = texts.first() else {
        return Followed::Unknown;
    };
    let mut asked = words
        .iter()
        .filter(|word| !word.text.starts_with('-') && !word.text.contains('='));
    let wanted = asked.next().map(|word| word.text.clone());
    let arguments: Vec<&str> = asked.map(|word| word.text.as_str()).collect();
    let mut commands = Vec::new();
    let (arguments, mut done) = (arguments.join(" "), BTreeSet::new());
    let asked = (wanted.as_deref(), arguments.as_str());
    recipe(text, asked, (&mut commands, &mut done), 0);
    if commands.is_empty() {
        return Followed::Unknown;
    }
    Followed::Commands(
        format!("just {}", wanted.unwrap_or_default())
            .trim_end()
            .to_owned(),
        commands,
    )
}

/// The lines of a recipe and of those it names before its own, each once.
fn recipe(
    text: &str,
    (wanted, arguments): (Option<&str>, &str),
    (commands, done): (&mut Vec<String>, &mut BTreeSet<String>),
    depth: usize,
) {
    let is_new = done.insert(wanted.unwrap_or_default().to_owned());
    if !is_new || done.len() > MOST_RECIPES {
        return;
    }
    let mut inside = false;
    let mut lines = Vec::new();
    let mut before: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            if inside {
                let command = line.trim().trim_start_matches(['@', '-']);
                lines.push(just_words(command, arguments));
            }
            continue;
        }
        if inside && !line.trim().is_empty() && !line.starts_with('#') {
            break;
        }
        let Some((head, tail)) = line
            .trim_start_matches('@')
            .split_once(':')
            .filter(|(_, tail)| !tail.starts_with('='))
        else {
            continue;
        };
        let name = head.split_whitespace().next().unwrap_or_default();
        if !name.is_empty() && !line.starts_with('#') && wanted.is_none_or(|wanted| wanted == name)
        {
            inside = true;
            before = tail
                .split_whitespace()
                .filter(|word| *word != "&&")
                .map(str::to_owned)
                .collect();
        }
    }
    if depth < 8 {
        for name in before {
            let asked = (Some(name.as_str()), "");
            recipe(text, asked, (&mut *commands, &mut *done), depth + 1);
        }
    }
    commands.append(&mut lines);
}

/// `{{ARGS}}` of a recipe: what was given, or nothing.
fn just_words(command: &str, arguments: &str) -> String {
    let mut text = String::new();
    let mut rest = command;
    while let Some(at) = rest.find("{{") {
        text.push_str(rest.get(..at).unwrap_or_default());
        text.push_str(arguments);
        let end = rest
            .get(at..)
            .and_then(|inner| inner.find("}}"))
            .map_or(rest.len(), |end| at + end + 2);
        rest = rest.get(end..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

/// `hatch run [ENV:]NAME`, `pdm run NAME`, `pipenv run NAME`.
fn project_script(tool: Tool, texts: &[(&str, String)], words: &[Word]) -> Followed {
    let Some((first, rest)) = words.split_first() else {
        return Followed::Unknown;
    };
    let (environment, name) = first
        .text
        .split_once(':')
        .unwrap_or(("default", &first.text));
    let table = texts
        .first()
        .and_then(|(_, text)| text.parse::<toml::Table>().ok())
        .unwrap_or_default();
    let root = toml::Value::Table(table);
    let at = |path: &[&str]| {
        path.iter()
            .try_fold(&root, |value, key| value.get(key))
            .cloned()
    };
    let scripts = match tool {
        Tool::Hatch => at(&["tool", "hatch", "envs", environment, "scripts"])
            .or_else(|| at(&["envs", environment, "scripts"])),
        Tool::Pdm => at(&["tool", "pdm", "scripts"]),
        _ => at(&["scripts"]),
    };
    let found = scripts.as_ref().and_then(|scripts| scripts.get(name));
    let commands: Vec<String> = match found {
        Some(toml::Value::String(text)) => vec![text.clone()],
        Some(toml::Value::Array(list)) => list
            .iter()
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect(),
        Some(toml::Value::Table(table)) => {
            let text = ["cmd", "shell"]
                .iter()
                .find_map(|key| table.get(*key)?.as_str());
            text.map(str::to_owned).into_iter().collect()
        }
        _ => Vec::new(),
    };
    if commands.is_empty() {
        let mut program = vec![Word {
            text: name.to_owned(),
            ..first.clone()
        }];
        program.extend(rest.iter().cloned());
        return Followed::Program(program);
    }
    let more = rest
        .iter()
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    let filled = commands
        .iter()
        .map(|command| match command.contains("{args") {
            true => hatch_arguments(command, &more),
            false => format!("{command} {more}").trim_end().to_owned(),
        });
    Followed::Commands(
        format!("{} {}", name_of(tool), first.text),
        filled.collect(),
    )
}

/// `{args}` and `{args:default}`.
fn hatch_arguments(command: &str, given: &str) -> String {
    let Some((before, rest)) = command.split_once("{args") else {
        return command.to_owned();
    };
    let (inner, after) = rest.split_once('}').unwrap_or((rest, ""));
    let default = inner.strip_prefix(':').unwrap_or_default();
    format!(
        "{before}{}{after}",
        if given.is_empty() { default } else { given }
    )
}
