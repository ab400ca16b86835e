//! The table of attacks as it is written down, and the rows that come of it: each attack over every kit
//! it names and over both scopes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub type Texts = BTreeMap<String, String>;

const ATTACKS: [(&str, &str); 5] = [
    ("Code under test", "code"),
    ("Tests", "tests"),
    ("Configuration", "configuration"),
    ("Commands and setup", "commands"),
    ("Tests that could not be loaded before", "not_loading"),
];

/// Read when it is needed: data is no reason to build anew.
fn data(name: &str) -> String {
    let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/checks/attacks");
    fs::read_to_string(room.join(format!("{name}.toml"))).unwrap()
}

/// A small project with a bug.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kit {
    pub command: String,
    /// The file with the bug.
    pub code: String,
    /// The file of tests that notice it.
    pub tests: String,
    /// Another kit whose files this one has as well.
    like: Option<String>,
    #[serde(default)]
    fixed: String,
    #[serde(default)]
    idle: String,
    /// Needs the Rust of whoever runs the tests.
    #[serde(default)]
    pub rust: bool,
    /// Of node, beside its files.
    pub packages: Option<String>,
    files: Texts,
}

impl Kit {
    /// What its command starts.
    pub fn program(&self) -> &str {
        self.command.split(' ').next().unwrap_or_default()
    }

    fn fill(&self, text: &str) -> String {
        let own = |path: &String| self.files[path].as_str();
        text.replace("{bug}", own(&self.code))
            .replace("{tests}", own(&self.tests))
            .replace("{fixed}", &self.fixed)
            .replace("{idle}", &self.idle)
    }

    /// The repository that a change begins from.
    pub fn base(&self, change: &Change) -> Texts {
        let mut files = self.files.clone();
        for (path, text) in change.base.iter().flatten() {
            files.insert(path.clone(), self.fill(text));
        }
        files
    }

    /// Files that a change leaves, with their texts.
    pub fn written(&self, change: &Change) -> Texts {
        let mut files = Texts::new();
        if let Some(text) = &change.code {
            files.insert(self.code.clone(), self.fill(text));
        }
        if !change.tests.is_empty() {
            let mut text = self.base(change)[&self.tests].clone();
            for (from, to) in &change.tests {
                assert!(text.contains(from), "{from:?} is not in {text}");
                text = text.replace(from, to);
            }
            files.insert(self.tests.clone(), text);
        }
        for (path, text) in &change.files {
            files.insert(path.clone(), self.fill(text));
        }
        files
    }

    pub fn commands(&self, change: &Change) -> Vec<String> {
        match change.commands.is_empty() {
            true => vec![self.command.clone()],
            false => (change.commands.iter())
                .map(|command| command.replace("{command}", &self.command))
                .collect(),
        }
    }
}

/// What an engine does, to what, and how that is checked.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Change {
    /// Files of the repository that are otherwise than in the kit.
    base: Option<Texts>,
    /// The new text of the file with the bug.
    code: Option<String>,
    /// What is replaced in the file of tests.
    tests: Vec<(String, String)>,
    files: Texts,
    pub remove: Vec<String>,
    /// For what no text can say; `changes` names the files it leaves.
    pub shell: Option<String>,
    changes: Vec<String>,
    /// What may change where tests may not, beside the code.
    pub allow: Vec<String>,
    commands: Vec<String>,
    pub setup: Vec<String>,
}

impl Change {
    fn touched(&self, kit: &Kit) -> BTreeSet<String> {
        let written = kit.written(self).into_keys();
        let more = self.remove.iter().chain(&self.changes).cloned();
        written.chain(more).collect()
    }
}

/// What may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Everything, tests included.
    All,
    /// The file with the bug, and what an attack is about.
    Code,
}

impl Scope {
    pub const BOTH: [Self; 2] = [Self::All, Self::Code];

    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Code => "code",
        }
    }

    pub fn allowed(self, kit: &Kit, change: &Change) -> Vec<String> {
        match self {
            Self::All => vec![".".to_owned()],
            Self::Code => [std::slice::from_ref(&kit.code), &change.allow].concat(),
        }
    }
}

/// How a row must end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expected {
    /// With exactly these blockers, and this among their words; or with some of others, which come first
    /// while a runner is not recognised.
    Stopped {
        codes: Vec<String>,
        because: String,
        or: Vec<String>,
    },
    /// Not even tried: the kernel or the scope refused it, with this blocker among others.
    Refused(String),
    /// A pass that is a lie nobody outside the process can see.
    Lie(String),
    /// A pass, believed as far as this word says.
    Pass { believed: String, why: String },
}

#[derive(Clone)]
pub struct Row {
    pub attack: String,
    pub kit: String,
    pub scope: Scope,
    pub change: Change,
    pub expected: Expected,
    /// Why it does not end so yet.
    pub open: Option<String>,
    /// What must come first for it to end so.
    pub waits: Option<String>,
    /// The honest work beside it.
    pub twin: Option<Change>,
}

impl Row {
    pub fn is_refused(&self) -> bool {
        matches!(self.expected, Expected::Refused(_))
    }

    pub fn id(&self) -> String {
        format!("{}.{}.{}", self.attack, self.kit, self.scope.word())
    }
}

pub struct Attack {
    pub name: String,
    pub what: String,
    pub rows: Vec<Row>,
}

pub struct Table {
    pub kits: BTreeMap<String, Kit>,
    /// By what is attacked.
    pub parts: Vec<(&'static str, Vec<Attack>)>,
    /// Commands as people type them.
    pub everyday: Vec<Row>,
}

impl Table {
    pub fn read() -> Self {
        let kits = kits();
        let part = |(name, file): (&'static str, &str)| {
            let table: toml::Table = data(file).parse().unwrap();
            let attacks = table["attack"].as_array().unwrap().iter();
            let read = |attack: &toml::Value| read_attack(&kits, attack.as_table().unwrap());
            (name, attacks.map(read).collect())
        };
        let parts = ATTACKS.map(part).into();
        let everyday = everyday(&kits);
        Self {
            kits,
            parts,
            everyday,
        }
    }

    pub fn attacks(&self) -> impl Iterator<Item = &Attack> {
        self.parts.iter().flat_map(|(_, attacks)| attacks)
    }

    /// Every row, everyday ones last.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.attacks()
            .flat_map(|attack| &attack.rows)
            .chain(&self.everyday)
    }
}

fn kits() -> BTreeMap<String, Kit> {
    let read: BTreeMap<String, Kit> = toml::from_str(&data("kits")).unwrap();
    let whole = |kit: &Kit| {
        let mut kit = kit.clone();
        if let Some(other) = &kit.like {
            let other = &read[other];
            let mut files = other.files.clone();
            files.append(&mut kit.files);
            (kit.files, kit.fixed, kit.idle) = (files, other.fixed.clone(), other.idle.clone());
        }
        kit
    };
    read.iter()
        .map(|(name, kit)| (name.clone(), whole(kit)))
        .collect()
}

/// What an attack or one kit of it says beside the change.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Said {
    blocker: Option<OneOrMore>,
    or: Vec<String>,
    because: Option<String>,
    in_process: Option<String>,
    partly: Option<String>,
    open: Option<String>,
    waits: Option<String>,
    twin: Option<Change>,
}

const SAID: [&str; 8] = [
    "blocker",
    "or",
    "because",
    "in_process",
    "partly",
    "open",
    "waits",
    "twin",
];

#[derive(Deserialize, Clone)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

fn said(table: &toml::Table) -> Said {
    let of_it = table
        .iter()
        .filter(|(key, _)| SAID.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()));
    of_it.collect::<toml::Table>().try_into().unwrap()
}

impl Said {
    /// How a kit of an attack ends: as it says itself, else as the attack does.
    fn expected(&self, attack: &Self) -> Expected {
        let own = self.blocker.is_some() || self.in_process.is_some() || self.partly.is_some();
        let from = if own { self } else { attack };
        match (&from.blocker, &from.in_process, &from.partly) {
            (Some(codes), None, None) => Expected::Stopped {
                codes: match codes.clone() {
                    OneOrMore::One(code) => vec![code],
                    OneOrMore::More(codes) => codes,
                },
                because: self
                    .because
                    .as_ref()
                    .or(from.because.as_ref())
                    .cloned()
                    .unwrap_or_default(),
                or: self.or.clone(),
            },
            (None, Some(why), None) => Expected::Lie(why.clone()),
            (None, None, Some(why)) => Expected::Pass {
                believed: "partly".into(),
                why: why.clone(),
            },
            _ => panic!("one of blocker, in_process and partly"),
        }
    }
}

fn read_attack(kits: &BTreeMap<String, Kit>, table: &toml::Table) -> Attack {
    let word = |key: &str| table[key].as_str().unwrap().to_owned();
    let (name, all) = (word("name"), said(table));
    let mut rows = Vec::new();
    for (key, value) in table {
        let Some(own) = value.as_table() else {
            continue;
        };
        let mut own = own.clone();
        if let Some(other) = own.remove("same") {
            for (key, value) in table[other.as_str().unwrap()].as_table().unwrap() {
                own.entry(key).or_insert(value.clone());
            }
        }
        let kit = kits
            .get(key)
            .unwrap_or_else(|| panic!("{name}: no kit {key}"));
        let of_kit = said(&own);
        let expected = of_kit.expected(&all);
        own.retain(|key, _| !SAID.contains(&key));
        let change: Change = own
            .try_into()
            .unwrap_or_else(|error| panic!("{name} {key}: {error}"));
        for scope in Scope::BOTH {
            let twin = twin(kit, &change, of_kit.twin.as_ref(), scope);
            let row = Row {
                attack: name.clone(),
                kit: key.clone(),
                scope,
                change: change.clone(),
                expected: expected.clone(),
                open: of_kit.open.clone().or(all.open.clone()),
                waits: of_kit.waits.clone().or(all.waits.clone()),
                twin: Some(twin),
            };
            rows.push(refused(kit, row));
        }
    }
    assert!(!rows.is_empty(), "{name}: no kit");
    Attack {
        name,
        what: word("what"),
        rows,
    }
}

/// Where tests may not change, what touches anything else ends there: a file that is there cannot be
/// written, a new one is found.
fn refused(kit: &Kit, mut row: Row) -> Row {
    if row.scope == Scope::All {
        return row;
    }
    let allowed = row.scope.allowed(kit, &row.change);
    let touched = row.change.touched(kit);
    let outside: Vec<&String> = touched
        .iter()
        .filter(|path| !allowed.contains(path))
        .collect();
    if outside.is_empty() {
        return row;
    }
    let base = kit.base(&row.change);
    let code = match outside.iter().any(|path| base.contains_key(*path)) {
        true => "engine_failed",
        false => "disallowed_file_change",
    };
    row.expected = Expected::Refused(code.into());
    (row.open, row.waits) = (None, None);
    row
}

/// The bug repaired, and whatever the attack's twin says; of that only what the scope allows.
fn twin(kit: &Kit, change: &Change, said: Option<&Change>, scope: Scope) -> Change {
    let mut twin = said.cloned().unwrap_or_default();
    twin.base = twin.base.or_else(|| change.base.clone());
    twin.code = twin.code.or_else(|| Some("{fixed}".into()));
    if scope == Scope::Code {
        twin.allow.clone_from(&change.allow);
        let allowed = scope.allowed(kit, &twin);
        twin.files.retain(|path, _| allowed.contains(path));
        twin.tests.clear();
        twin.remove.clear();
        twin.shell = None;
    }
    twin
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Everyday {
    kit: String,
    #[serde(default)]
    files: Texts,
    /// Believed as proven.
    commands: Vec<String>,
    /// The same, once their runner is recognised.
    #[serde(default)]
    waits: Vec<String>,
    /// No runner that anybody could know.
    #[serde(default)]
    partly: Vec<String>,
}

fn everyday(kits: &BTreeMap<String, Kit>) -> Vec<Row> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct All {
        everyday: Vec<Everyday>,
    }
    let all: All = toml::from_str(&data("everyday")).unwrap();
    let mut rows = Vec::new();
    for of_kit in all.everyday {
        assert!(kits.contains_key(&of_kit.kit), "{}", of_kit.kit);
        for (commands, waits, believed) in [
            (&of_kit.commands, None, "proven"),
            (&of_kit.waits, Some("recognition"), "proven"),
            (&of_kit.partly, None, "partly"),
        ] {
            rows.extend(commands.iter().map(|command| Row {
                attack: command.clone(),
                kit: of_kit.kit.clone(),
                scope: Scope::Code,
                change: Change {
                    base: Some(of_kit.files.clone()),
                    code: Some("{fixed}".into()),
                    commands: vec![command.clone()],
                    ..Change::default()
                },
                expected: Expected::Pass {
                    believed: believed.into(),
                    why: String::new(),
                },
                open: None,
                waits: waits.map(str::to_owned),
                twin: None,
            }));
        }
    }
    rows
}
