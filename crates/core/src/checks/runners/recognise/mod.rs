//! Which runners a command uses, through everything people write before them.
//!
//! - `shell.rs` the command cut into words · `peel.rs` wrappers and interpreters taken off, `packages.rs`
//!   those of node · `tasks.rs`, `make.rs` and `python_tasks.rs` tasks of project files · `options.rs` what the
//!   words behind a runner mean
//!
//! Files of the repository are read as text and come in from the caller; nothing of it is executed to find
//! out what it would do. Every answer is found on the baseline; what it decides is where a control goes,
//! never that a command is green.

mod make;
pub mod options;
mod packages;
mod peel;
mod python_tasks;
mod shell;
mod tasks;

use std::collections::BTreeSet;

use self::peel::{Layer, Script, Tool};
use self::shell::Word;
use crate::task::runner::{Found, Recognised, Runner};

/// The text of a file by its path in the repository; none where there is none, or nothing that is text.
pub type Look<'a> = dyn FnMut(&str) -> Option<String> + 'a;

/// Variables by which a kit comes in.
const OF_KITS: [&str; 6] = [
    "NODE_OPTIONS",
    "GOFLAGS",
    "PYTHONPATH",
    "PYTEST_ADDOPTS",
    "PATH",
    "PYTHONSAFEPATH",
];

/// Scripts that call scripts, and commands in all of them: a project that has more is not followed.
const MOST_DEPTH: usize = 12;
const MOST_COMMANDS: usize = 400;
/// Files that are read, and letters of a command whose words are kept.
const MOST_READ: usize = 200;
const LONGEST: usize = 16 << 10;

/// What was asked for on the way to the runners.
#[derive(Default)]
pub struct Trail {
    /// Files, there or not.
    pub files: BTreeSet<String>,
    /// Scripts of a `package.json`, and those that run around them.
    pub scripts: BTreeSet<String>,
    /// The words of every command on the way, and where it starts.
    pub words: BTreeSet<(String, String)>,
    /// Ends of the names of what a Makefile includes.
    pub ends: BTreeSet<String>,
    /// Only make knows what it includes.
    pub computed: bool,
}

impl Trail {
    pub fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
        self.scripts.extend(other.scripts);
        self.words.extend(other.words);
        self.ends.extend(other.ends);
        self.computed |= other.computed;
    }
}

/// The runners of a command.
pub fn recognise(command: &str, look: &mut Look<'_>) -> Recognised {
    traced(command, look).0
}

/// The runners of a command, and what was looked at to find them.
pub fn traced(command: &str, look: &mut Look<'_>) -> (Recognised, Trail) {
    let mut walk = Walk {
        look,
        done: Recognised::default(),
        trail: Trail::default(),
        commands: 0,
        read: 0,
    };
    let way = Way {
        dir: Some(String::new()),
        ..Way::default()
    };
    walk.list(command, true, &way, &[]);
    (walk.done, walk.trail)
}

/// How a command was reached.
#[derive(Clone, Debug, Default)]
struct Way {
    dir: Option<String>,
    how: Vec<String>,
    overrides: BTreeSet<String>,
    excused: bool,
    depth: usize,
}

impl Way {
    fn step(&self, word: &str) -> Self {
        let mut next = self.clone();
        next.how.push(word.to_owned());
        next.depth += 1;
        next
    }

    fn set(&mut self, names: &[String]) {
        let of_kits = names.iter().filter(|name| OF_KITS.contains(&name.as_str()));
        self.overrides.extend(of_kits.cloned());
    }

    fn enter(&mut self, dir: &str) {
        self.dir = self.dir.as_deref().and_then(|from| below(from, dir));
        self.how.push(format!("cd {dir}"));
    }
}

/// A path below the root; none if it leads out of it.
pub(super) fn below(from: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~', '$']) {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

struct Walk<'a, 'b> {
    look: &'a mut Look<'b>,
    done: Recognised,
    trail: Trail,
    commands: usize,
    read: usize,
}

impl Walk<'_, '_> {
    /// A list of commands; `more` words stand behind the last.
    fn list(&mut self, text: &str, own: bool, way: &Way, more: &[Word]) {
        let mut way = way.clone();
        let list = shell::split(text, own);
        let count = list.len();
        for (at, mut simple) in list.into_iter().enumerate() {
            if at + 1 == count {
                simple.words.extend(more.iter().cloned());
            }
            let last = at + 1 == count;
            let mut here = way.clone();
            here.excused |= simple.piped || (simple.excused && !last);
            match simple.words.first().map(|word| word.text.as_str()) {
                Some("cd" | "pushd") => match peel::peel(&simple.words) {
                    Layer::Directory(dir, _) => way.enter(&dir),
                    _ => way.dir = None,
                },
                Some("export") => {
                    let names = simple.words.iter().skip(1);
                    let names = names.map(|word| word.text.split('=').next().unwrap_or_default());
                    way.set(&names.map(str::to_owned).collect::<Vec<_>>());
                }
                Some("if" | "for" | "while" | "case" | "until" | "function") => {
                    self.other(&simple.words);
                }
                Some("then" | "do" | "else" | "!") => {
                    simple.words.remove(0);
                    self.follow(simple.words, here);
                }
                _ => self.follow(simple.words, here),
            }
        }
    }

    fn other(&mut self, words: &[Word]) {
        const SAY_NOTHING: [&str; 9] = [
            "echo", "true", ":", "set", "printf", "fi", "done", "esac", "popd",
        ];
        let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let quiet = text.first().is_none_or(|first| SAY_NOTHING.contains(first));
        if !quiet && self.done.others.len() < MOST_COMMANDS {
            self.done.others.push(text.join(" "));
        }
    }

    /// Takes layers off until a runner, or something not known, is left.
    fn follow(&mut self, mut words: Vec<Word>, mut way: Way) {
        // Of layers around a runner every word may be its configuration.
        let mut noted = BTreeSet::new();
        while way.depth < MOST_DEPTH && self.commands < MOST_COMMANDS {
            self.commands += 1;
            noted.extend(note(&words, &way));
            let layer = peel::peel(&words);
            if matches!(
                layer,
                Layer::Runner(..) | Layer::Script(_) | Layer::Task(..) | Layer::Text(..)
            ) {
                self.trail.words.append(&mut noted);
            }
            match layer {
                Layer::Behind(step, rest) => {
                    if step == "env"
                        && words.iter().skip(1).any(|word| {
                            matches!(word.text.as_str(), "-i" | "-" | "--ignore-environment")
                        })
                    {
                        way.set(&OF_KITS.map(str::to_owned));
                    }
                    if matches!(
                        step.as_str(),
                        "concurrently" | "npm-run-all" | "npm-run-all2" | "run-s" | "run-p"
                    ) {
                        return self.scripts_side_by_side(&step, &rest, &way);
                    }
                    way = way.step(&step);
                    words = rest;
                }
                Layer::Variables(names, rest) => {
                    way.how.push(
                        names
                            .iter()
                            .map(|name| format!("{name}="))
                            .collect::<Vec<_>>()
                            .join(" "),
                    );
                    way.set(&names);
                    words = rest;
                }
                Layer::Directory(dir, rest) => {
                    way.enter(&dir);
                    words = rest;
                }
                Layer::Text(step, text) => return self.list(&text, false, &way.step(&step), &[]),
                Layer::Script(script) => match self.script(&script, &way) {
                    Some(program) => words = program,
                    None => return,
                },
                Layer::Task(tool, rest) => match self.task(tool, &rest, &way) {
                    Some(program) => {
                        way = way.step(tasks::name_of(tool));
                        words = program;
                    }
                    None => return,
                },
                Layer::Runner(runner, rest) => return self.runner(runner, &rest, way),
                Layer::Module(..) | Layer::Unknown => {
                    self.trail
                        .words
                        .extend(note(&decides_of_other(&words), &way));
                    return self.other(&words);
                }
            }
            if words.is_empty() {
                return;
            }
        }
        self.other(&words);
    }

    fn runner(&mut self, runner: Runner, rest: &[Word], way: Way) {
        self.done.found.push(Found {
            runner,
            how: way.how,
            dir: way.dir,
            overrides: way.overrides,
            excused: way.excused,
            said: options::read(runner, rest),
        });
    }

    /// A file beside the command.
    fn file(&mut self, way: &Way, name: &str) -> Option<String> {
        let path = below(way.dir.as_deref()?, name)?;
        self.trail.files.insert(path.clone());
        self.read += 1;
        match self.read <= MOST_READ {
            true => (self.look)(&path),
            false => None,
        }
    }

    /// Follows a script of `package.json`; gives the words back if it is a program instead.
    fn script(&mut self, script: &Script, way: &Way) -> Option<Vec<Word>> {
        for around in ["", "pre", "post"] {
            let name = format!("{around}{}", script.name);
            self.trail.scripts.insert(name);
        }
        let text = self.file(way, "package.json");
        let scripts = packages::scripts(text.as_deref().unwrap_or_default());
        let Some(own) = scripts.get(&script.name) else {
            let mut words = vec![Word::plain(&script.name)];
            words.extend(script.more.iter().cloned());
            if script.or_program {
                return Some(words);
            }
            self.other(&[
                Word::plain(script.manager),
                Word::plain("run"),
                Word::plain(&script.name),
            ]);
            return None;
        };
        let around = |prefix: &str| {
            scripts
                .get(&format!("{prefix}{}", script.name))
                .filter(|_| script.manager != "pnpm")
        };
        let way = way.step(&format!("{} run {}", script.manager, script.name));
        if let Some(before) = around("pre") {
            self.list(before, false, &way, &[]);
        }
        self.list(own, false, &way, &script.more);
        if let Some(after) = around("post") {
            self.list(after, false, &way, &[]);
        }
        None
    }

    /// `run-s a b:*`, `concurrently "cmd" "cmd"`.
    fn scripts_side_by_side(&mut self, step: &str, rest: &[Word], way: &Way) {
        if step == "concurrently" {
            for word in rest.iter().filter(|word| !word.text.starts_with('-')) {
                let text = word
                    .text
                    .strip_prefix("npm:")
                    .map(|name| format!("npm run {name}"));
                self.list(
                    text.as_deref().unwrap_or(&word.text),
                    false,
                    &way.step(step),
                    &[],
                );
            }
            return;
        }
        let text = self.file(way, "package.json");
        let scripts = packages::scripts(text.as_deref().unwrap_or_default());
        for word in rest.iter().filter(|word| !word.text.starts_with('-')) {
            let start = word.text.strip_suffix('*').unwrap_or(&word.text);
            let whole = start.len() == word.text.len();
            for name in scripts.keys().filter(|name| {
                if whole {
                    *name == start
                } else {
                    name.starts_with(start)
                }
            }) {
                let script = Script {
                    manager: "npm",
                    name: name.clone(),
                    more: Vec::new(),
                    or_program: false,
                };
                self.script(&script, &way.step(step));
            }
        }
    }

    /// Follows a task of another tool; gives words back if they are a program of its environment.
    fn task(&mut self, tool: Tool, rest: &[Word], way: &Way) -> Option<Vec<Word>> {
        if tool == Tool::Make {
            self.make(rest, way);
            return None;
        }
        let mut texts = Vec::new();
        for name in tasks::files(tool) {
            let text = self.file(way, name);
            let there = text.is_some();
            texts.extend(text.map(|text| (*name, text)));
            if there && tool != Tool::Tox {
                break;
            }
        }
        match tasks::commands(tool, &texts, rest) {
            tasks::Followed::Commands(step, commands) => {
                let way = way.step(&step);
                for command in commands {
                    self.list(&command, false, &way, &[]);
                }
                None
            }
            tasks::Followed::Program(words) => Some(words),
            tasks::Followed::Unknown => {
                let mut words = vec![Word::plain(tasks::name_of(tool))];
                words.extend(rest.iter().cloned());
                self.other(&words);
                None
            }
        }
    }

    /// The recipes of a Makefile, as they stand in it.
    fn make(&mut self, words: &[Word], way: &Way) {
        let asked = make::Asked::of(words);
        let mut way = way.step(&asked.step);
        if let Some(dir) = &asked.dir {
            way.enter(dir);
        }
        let names = match &asked.file {
            Some(file) => vec![file.as_str()],
            None => make::FILES.to_vec(),
        };
        let text = names.iter().find_map(|name| self.file(&way, name));
        self.includes(text.clone(), &way);
        let text = text.filter(|_| !asked.runs_nothing);
        let commands = text.map(|text| make::commands(&text, &asked));
        match commands.filter(|commands| !commands.is_empty()) {
            Some(commands) => {
                for command in commands {
                    self.list(&command, false, &way, &[]);
                }
            }
            None => self.other(words),
        }
    }

    /// What a Makefile includes is asked for; its recipes are not followed.
    fn includes(&mut self, text: Option<String>, way: &Way) {
        let mut texts: Vec<String> = text.into_iter().collect();
        while let Some(text) = texts.pop() {
            let included = make::included(&text);
            self.trail.computed |= included.computed;
            self.trail.ends.extend(included.ends);
            for name in included.names {
                let path = way.dir.as_deref().and_then(|dir| below(dir, &name));
                let new = path.is_some_and(|path| !self.trail.files.contains(&path));
                if new && self.trail.files.len() < MOST_COMMANDS {
                    texts.extend(self.file(way, &name));
                }
            }
        }
    }
}

/// The words of a command, and where it starts.
fn note(words: &[Word], way: &Way) -> Option<(String, String)> {
    let dir = way.dir.clone()?;
    let long: usize = words.iter().map(|word| word.text.len()).sum();
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    (long < LONGEST).then(|| (dir, text.join(" ")))
}

/// Of a command beside the runners: the program it is, and configuration that it may put where a runner finds
/// it. What else it names is what it copies, builds or looks for.
fn decides_of_other(words: &[Word]) -> Vec<Word> {
    const INTERPRETERS: [&str; 7] = ["sh", "bash", "dash", "zsh", "node", "python", "python3"];
    const CONFIGURATION: [&str; 7] = [".json", ".jsonc", ".yml", ".yaml", ".toml", ".ini", ".cfg"];
    let is_interpreter = words
        .first()
        .is_some_and(|first| INTERPRETERS.contains(&first.text.as_str()));
    let programs = words
        .iter()
        .filter(|word| !word.text.starts_with('-'))
        .take(1 + usize::from(is_interpreter));
    let rest = words
        .iter()
        .skip(1)
        .filter(|word| CONFIGURATION.iter().any(|end| word.text.ends_with(end)));
    programs.chain(rest).cloned().collect()
}

#[cfg(test)]
#[path = "recognise_tests.rs"]
mod tests;
