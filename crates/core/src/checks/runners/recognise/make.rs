//! The recipes of a Makefile, read as text. What make would compute (`$(shell ..)`, pattern rules, includes)
//! is left as it stands: nothing is executed, and nothing guessed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::shell::{Word, assignment};

/// As GNU make looks for them.
pub(super) const FILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// Variables in variables, recipes before recipes, and letters of one line: a file that has more is not
/// followed.
const MOST_DEPTH: usize = 8;
const LONGEST: usize = 64 << 10;
/// Targets of one rule, and steps of putting variables in, for a whole file.
const MOST_TARGETS: usize = 64;
const MOST_STEPS: usize = 1 << 20;

/// What the words behind `make` ask for.
pub(super) struct Asked {
    pub step: String,
    pub dir: Option<String>,
    pub file: Option<String>,
    /// It says what it would do, or touches files, and runs no recipe.
    pub runs_nothing: bool,
    targets: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Asked {
    pub(super) fn of(words: &[Word]) -> Self {
        const VALUED: &str = "-C --directory -f --file --makefile -j --jobs -l -o -W -I";
        let mut asked = Self {
            step: String::new(),
            dir: None,
            file: None,
            runs_nothing: false,
            targets: Vec::new(),
            variables: Vec::new(),
        };
        let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        asked.step = text.join(" ");
        let mut rest = words.get(1..).unwrap_or_default();
        while let Some((word, after)) = rest.split_first() {
            let (option, held) = match word.text.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (word.text.as_str(), None),
            };
            let value = held.or_else(|| after.first().map(|word| word.text.clone()));
            match option {
                "-C" | "--directory" => asked.dir = value,
                "-f" | "--file" | "--makefile" => asked.file = value,
                "-n" | "--dry-run" | "--just-print" | "--recon" | "-q" | "--question" | "-t"
                | "--touch" | "-v" | "--version" | "-h" | "--help" => asked.runs_nothing = true,
                _ if option.starts_with('-') => {}
                _ => match assignment(&word.text) {
                    Some((name, value)) => {
                        asked.variables.push((name.to_owned(), value.to_owned()));
                    }
                    None => asked.targets.push(word.text.clone()),
                },
            }
            // `-j` may stand without its number.
            let next = after.first().map_or("", |next| next.text.as_str());
            let counted = !matches!(option, "-j" | "--jobs") || next.parse::<u32>().is_ok();
            let valued = VALUED.split(' ').any(|row| row == word.text) && counted;
            rest = after.get(usize::from(valued)..).unwrap_or_default();
        }
        asked
    }
}

#[derive(Default)]
struct Rule {
    before: Vec<String>,
    recipe: Vec<String>,
}

/// The commands of the targets, those of what they rest on first.
pub(super) fn commands(text: &str, asked: &Asked) -> Vec<String> {
    let mut variables = Variables::default();
    let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
    let mut first = None;
    let mut current: Vec<String> = Vec::new();
    let mut conditions = 0_usize;
    for line in joined(text) {
        if let Some(command) = line.strip_prefix('\t') {
            for target in &current {
                let rule = rules.entry(target.clone()).or_default();
                rule.recipe.push(command.trim().to_owned());
            }
            continue;
        }
        let line = line.split(" #").next().unwrap_or_default().trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.split_whitespace().next() {
            Some("ifdef" | "ifndef" | "ifeq" | "ifneq") => conditions += 1,
            Some("endif") => conditions = conditions.saturating_sub(1),
            _ => {}
        }
        if let Some((name, value, kept)) = assigned(line) {
            // Which branch counts only make knows: what was said without a condition stays.
            match kept || conditions > 0 {
                true => drop(variables.known.entry(name).or_insert(value)),
                false => drop(variables.known.insert(name, value)),
            }
            continue;
        }
        let Some((targets, rest)) = line.split_once(':') else {
            continue;
        };
        let rest = rest.trim_start_matches(':');
        let (before, recipe) = rest.split_once(';').unwrap_or((rest, ""));
        current = expanded(targets, &variables, 0)
            .split_whitespace()
            .take(MOST_TARGETS)
            .map(str::to_owned)
            .collect();
        for target in &current {
            let rule = rules.entry(target.clone()).or_default();
            let before = expanded(before, &variables, 0);
            rule.before
                .extend(before.split_whitespace().map(str::to_owned));
            rule.recipe
                .extend(Some(recipe.trim().to_owned()).filter(|recipe| !recipe.is_empty()));
        }
        let is_goal = |target: &&String| !target.starts_with('.') && !target.contains('%');
        first = first.or_else(|| current.iter().find(is_goal).cloned());
    }
    for (name, value) in &asked.variables {
        variables.known.insert(name.clone(), value.clone());
    }
    let targets = match asked.targets.is_empty() {
        true => first.into_iter().collect(),
        false => asked.targets.clone(),
    };
    let (mut found, mut done) = (Vec::new(), BTreeSet::new());
    for target in targets {
        follow(&target, &rules, &variables, (&mut found, &mut done), 0);
    }
    found
}

fn follow(
    target: &str,
    rules: &BTreeMap<String, Rule>,
    variables: &Variables,
    (found, done): (&mut Vec<String>, &mut BTreeSet<String>),
    depth: usize,
) {
    let Some(rule) = rules.get(target).filter(|_| depth < MOST_DEPTH) else {
        return;
    };
    if !done.insert(target.to_owned()) {
        return;
    }
    for before in &rule.before {
        follow(
            before,
            rules,
            variables,
            (&mut *found, &mut *done),
            depth + 1,
        );
    }
    for line in &rule.recipe {
        let command = line.trim_start_matches(['@', '+', '-', ' ']);
        let signs = line.len() - command.len();
        let excused = line.get(..signs).is_some_and(|signs| signs.contains('-'));
        let command = expanded(&command.replace("$@", target), variables, 0);
        found.push(match excused {
            true => format!("{command} || true"),
            false => command,
        });
    }
}

/// What a Makefile includes.
#[derive(Default)]
pub(super) struct Included {
    pub names: Vec<String>,
    /// How paths of them end: they may lie where make is told to search.
    pub ends: Vec<String>,
    /// Some name is known only to make.
    pub computed: bool,
}

pub(super) fn included(text: &str) -> Included {
    let mut all = Included {
        computed: text.contains("(eval") || text.contains("{eval"),
        ..Included::default()
    };
    for line in joined(text) {
        let mut words = line.split_whitespace();
        if !matches!(
            words.next(),
            Some("include" | "-include" | "sinclude" | "load" | "-load")
        ) {
            continue;
        }
        for word in words.take_while(|word| !word.starts_with('#')) {
            let plain = !word.contains(['$', '*', '?', '[', '(', ')', '{', '}', '%', '~']);
            if plain {
                all.names.push(word.to_owned());
                let name = word.rsplit('/').next().unwrap_or(word);
                all.ends.push(format!("/{name}"));
                continue;
            }
            all.computed = true;
            let word = word.trim_end_matches([')', '}', ',']);
            let computed = [
                '$', '*', '?', '[', ']', '(', ')', '{', '}', '%', '=', ',', '~',
            ];
            let end = word.rsplit(computed).next().unwrap_or_default();
            all.ends.extend((end.len() > 1).then(|| end.to_owned()));
        }
    }
    all
}

/// Lines with those that a backslash continues.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let (line, goes_on) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| open) {
            Some(last) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            None => lines.push(line.to_owned()),
        }
        open = goes_on;
    }
    lines
}

/// `NAME = value`; whether a value from before is kept.
fn assigned(line: &str) -> Option<(String, String, bool)> {
    let line = ["export ", "override "]
        .iter()
        .find_map(|word| line.strip_prefix(word))
        .unwrap_or(line);
    let (before, value) = line.split_once('=')?;
    let name = before.trim_end_matches([':', '?', '+', '!']).trim();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    let is_name = !name.is_empty() && name.bytes().all(plain);
    let kept = before.trim_end().ends_with(['?', '+']);
    is_name.then(|| (name.to_owned(), value.trim().to_owned(), kept))
}

/// What a file says of its variables, and how much was put in so far.
#[derive(Default)]
struct Variables {
    known: BTreeMap<String, String>,
    steps: Cell<usize>,
}

impl Variables {
    /// Letters and names cost alike: one that stands for nothing must not be asked for ever.
    fn spend(&self, letters: usize) -> bool {
        let steps = self.steps.get().saturating_add(1 + letters);
        self.steps.set(steps);
        steps < MOST_STEPS
    }
}

/// Variables of the file put in; one that it does not have is empty, as for make.
fn expanded(text: &str, variables: &Variables, depth: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 1..).unwrap_or_default();
        let (name, after) = match rest.chars().next() {
            Some('$') => {
                out.push('$');
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            Some('(') => closed(rest, ')'),
            Some('{') => closed(rest, '}'),
            Some(c) => rest.split_at(c.len_utf8()),
            None => ("", ""),
        };
        rest = after;
        match variables.known.get(name) {
            _ if name == "MAKE" => out.push_str("make"),
            Some(value) if depth < MOST_DEPTH && out.len() < LONGEST => {
                out.push_str(&expanded(value, variables, depth + 1));
            }
            Some(_) => {}
            // A function, or a variable of a recipe: only make knows.
            None if name.contains([' ', ':', ',', '<', '^', '*', '?']) => {
                out.push_str(&format!("$({name})"));
            }
            None => {}
        }
        if out.len() >= LONGEST || !variables.spend(0) {
            break;
        }
    }
    out.push_str(rest);
    if depth > 0 && !variables.spend(out.len()) {
        return String::new();
    }
    out
}

/// What stands between brackets, and what follows.
fn closed(text: &str, end: char) -> (&str, &str) {
    let inner = text.get(1..).unwrap_or_default();
    let mut depth = 0_usize;
    for (at, c) in inner.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            c if c == end && depth == 0 => {
                let after = inner.get(at + c.len_utf8()..).unwrap_or_default();
                return (inner.get(..at).unwrap_or_default(), after);
            }
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (inner, "")
}
