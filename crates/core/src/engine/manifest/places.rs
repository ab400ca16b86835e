//! What may stand between braces in a manifest, and where. A token is never written to a file or a
//! command line; an address is known only once the jail stands.

use super::interpreter::Version;
use super::{ConfigFile, Conversation, Dialect, FileFormat, Invocation, Told, fill, tools};
use crate::values::paths::TreePath;
use crate::wire::profiles::switch::Habits;

/// Every placeholder, and the places that may name it.
pub const PLACEHOLDERS: &[(&str, Place)] = &[
    ("script", Place::new(true, false, false)),
    ("prompt", Place::new(true, false, true)),
    ("model", Place::new(true, true, true)),
    ("scratch", Place::new(true, true, true)),
    ("packages", Place::new(true, true, true)),
    ("token", Place::new(false, true, false)),
    ("door", Place::new(false, true, true)),
    ("protocol", Place::new(true, true, true)),
    ("context_window", Place::new(false, false, true)),
    ("output_limit", Place::new(false, false, true)),
    // Made anew for every attempt.
    ("attempt", Place::new(true, true, true)),
    ("workspace", Place::new(true, true, true)),
    // The task for an engine that commits, and what it is verified with.
    ("task", Place::new(false, false, true)),
    ("title", Place::new(false, false, true)),
    ("verification", Place::new(false, false, true)),
    ("now", Place::new(false, false, true)),
    ("runtime_provider", Place::new(false, true, true)),
    // One JSON object, put in as it is.
    ("compat", Place::new(false, false, true)),
];

/// Placeholders that have a value only where there is a model.
const OF_A_MODEL: [&str; 8] = [
    "model",
    "runtime_provider",
    "token",
    "door",
    "protocol",
    "context_window",
    "output_limit",
    "compat",
];
/// Placeholders whose values are JSON already: numbers and objects, made here and by nobody else.
pub const JSON_VALUES: [&str; 3] = ["context_window", "output_limit", "compat"];
/// Most files an engine is given, most bytes of one.
const MAX_FILES: usize = 32;
const MAX_FILE_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug)]
pub struct Place {
    argv: bool,
    env: bool,
    files: bool,
}

impl Place {
    const fn new(argv: bool, env: bool, files: bool) -> Self {
        Self { argv, env, files }
    }
}

/// A mistake, and the way to it through the document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub at: Vec<Step>,
    pub what: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

fn problem(at: impl IntoIterator<Item = Step>, what: impl Into<String>) -> Problem {
    let at = [Step::from("invocation")].into_iter().chain(at);
    Problem {
        at: at.collect(),
        what: what.into(),
    }
}

/// The first mistake of an invocation.
pub fn check(own: &Invocation) -> Option<Problem> {
    words(own)
        .or_else(|| variables(own))
        .or_else(|| files(own))
        .or_else(|| workspace_files(own))
        .or_else(|| event_log(own))
        .or_else(|| supervision(own))
        .or_else(|| names(own))
        .or_else(|| instructions(own))
        .or_else(|| interpreter(own))
        .or_else(|| own_config(own))
        .or_else(|| model(own))
        .or_else(|| limits(own))
        .or_else(|| tools(own))
        .or_else(|| conversation(own))
}

/// Who is talked to is told the prompt there, and nobody else has a conversation.
fn conversation(own: &Invocation) -> Option<Problem> {
    let talked = own.dialect.is_talked_to();
    let at = || [Step::from("conversation"), Step::from("mode")];
    let prompted = |text: &String| text.contains("{prompt}");
    let twice = own.argv.iter().any(prompted) || own.files.iter().any(|file| prompted(&file.text));
    if talked && twice {
        let what = "{prompt} is said in the conversation of this dialect, and nowhere else";
        return Some(problem([Step::from("dialect")], what));
    }
    if !talked && own.conversation != Conversation::default() {
        let what = "this dialect has no conversation";
        return Some(problem([Step::from("conversation")], what));
    }
    // The protocol's own stay what they are.
    let taken = ["session/", "fs/", "terminal/"];
    let strange = |begin: &&String| {
        let plain = begin.bytes().all(|b| b.is_ascii_graphic());
        begin.len() > 64
            || !plain
            || begin.len() < 2
            || !begin.ends_with('/')
            || taken
                .iter()
                .any(|taken| taken.starts_with(begin.as_str()) || begin.starts_with(taken))
    };
    if own
        .conversation
        .own_methods
        .iter()
        .any(|begin| strange(&begin))
    {
        let at = [Step::from("conversation"), Step::from("own_methods")];
        let what = "methods of its own begin with a word and a slash, and not as the protocol's do";
        return Some(problem(at, what));
    }
    let mode = own.conversation.mode.as_ref()?;
    let fine = (1..=64).contains(&mode.len()) && mode.bytes().all(|b| b.is_ascii_graphic());
    (!fine).then(|| problem(at(), "a mode is a word of at most 64 characters"))
}

fn words(own: &Invocation) -> Option<Problem> {
    own.argv.iter().enumerate().find_map(|(at, word)| {
        let at = || [Step::from("argv"), Step::from(at)];
        if word.contains('\0') {
            return Some(problem(at(), "a command line holds no NUL"));
        }
        let wrong = misplaced(own, word, |place| place.argv)?;
        Some(problem(at(), wrong))
    })
}

fn variables(own: &Invocation) -> Option<Problem> {
    own.env.iter().find_map(|(name, value)| {
        let at = || [Step::from("env"), Step::from(name.as_str())];
        if name.is_empty() || name.contains(['=', '\0']) {
            return Some(problem(
                at(),
                format!("{name:?} cannot be the name of a variable"),
            ));
        }
        if value.contains('\0') {
            return Some(problem(at(), "a variable holds no NUL"));
        }
        let wrong = misplaced(own, value, |place| place.env)?;
        Some(problem(at(), wrong))
    })
}

fn files(own: &Invocation) -> Option<Problem> {
    if own.files.len() > MAX_FILES {
        return Some(problem(
            [Step::from("files")],
            format!("{} files are more than {MAX_FILES}", own.files.len()),
        ));
    }
    own.files.iter().enumerate().find_map(|(at, file)| {
        let here = |key: &str| [Step::from("files"), Step::from(at), Step::from(key)];
        if let Some(what) = no_place(&file.path, &own.files[..at]) {
            return Some(problem(here("path"), what));
        }
        if file.text.len() > MAX_FILE_BYTES {
            let what = format!("a file of more than {MAX_FILE_BYTES} bytes");
            return Some(problem(here("text"), what));
        }
        if let Some(wrong) = misplaced(own, &file.text, |place| place.files) {
            return Some(problem(here("text"), wrong));
        }
        unreadable(file.format, &file.text).map(|what| problem(here("text"), what))
    })
}

/// A path below the workspace, with a name in place of the attempt's, in a folder of the engine's own.
fn is_in_own_folder(own: &Invocation, path: &str) -> bool {
    let path = path.replace("{attempt}", "a");
    let tree_path = TreePath::new(path.as_bytes());
    let covered = own
        .workspace_scratch
        .iter()
        .any(|rule| rule.covers(&tree_path));
    crate::bundle::is_safe_name(&path) && !path.contains(['{', '}']) && covered
}

fn workspace_files(own: &Invocation) -> Option<Problem> {
    if own.workspace_files.len() > MAX_FILES {
        let what = format!("more than {MAX_FILES} files");
        return Some(problem([Step::from("workspace_files")], what));
    }
    own.workspace_files
        .iter()
        .enumerate()
        .find_map(|(at, file)| {
            let here = |key: &str| {
                [
                    Step::from("workspace_files"),
                    Step::from(at),
                    Step::from(key),
                ]
            };
            if !is_in_own_folder(own, &file.path) {
                let what = format!(
                    "{:?} is not a path below a folder of workspace_scratch",
                    file.path
                );
                return Some(problem(here("path"), what));
            }
            if own.workspace_files[..at]
                .iter()
                .any(|before| before.path == file.path)
            {
                return Some(problem(here("path"), "another file has this path"));
            }
            if file.text.len() > MAX_FILE_BYTES {
                let what = format!("a file of more than {MAX_FILE_BYTES} bytes");
                return Some(problem(here("text"), what));
            }
            // The door is made after these are written.
            let late = ["{door}", "{protocol}"]
                .iter()
                .find(|name| file.text.contains(**name));
            let wrong = late
                .map(|name| format!("{name} may not stand here"))
                .or_else(|| misplaced(own, &file.text, |place| place.files))
                .or_else(|| unreadable(file.format, &file.text))?;
            Some(problem(here("text"), wrong))
        })
}

fn event_log(own: &Invocation) -> Option<Problem> {
    let log = own.event_log.as_ref()?;
    let at = |key: &str| [Step::from("event_log"), Step::from(key)];
    if !is_in_own_folder(own, &format!("{}/x", log.dir)) {
        let what = format!(
            "{:?} is not a directory below a folder of workspace_scratch",
            log.dir
        );
        return Some(problem(at("dir"), what));
    }
    let plain = |text: &str| !text.contains('/') && text.bytes().all(|b| b.is_ascii_graphic());
    if log.ends.is_empty() || !plain(&log.begins) || !plain(&log.ends) {
        return Some(problem(
            at("ends"),
            "the name of a log begins and ends with plain letters",
        ));
    }
    let file = log.artifact.strip_suffix(".jsonl").unwrap_or_default();
    let fine = !file.is_empty() && file.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    // Names the harness gives to files of its own.
    let taken = ["model-calls"].contains(&file);
    (!fine || taken).then(|| {
        problem(
            at("artifact"),
            "an artifact is called NAME.jsonl, in small letters",
        )
    })
}

fn supervision(own: &Invocation) -> Option<Problem> {
    let (key, what) = own.supervision.problem(own)?;
    Some(problem([Step::from("supervision"), Step::from(key)], what))
}

/// Why a path is no place for a file of an engine's, beside others it has.
fn no_place(path: &str, others: &[ConfigFile]) -> Option<String> {
    if !crate::bundle::is_safe_name(path) {
        return Some(format!(
            "{path:?} is not a path below the scratch directory"
        ));
    }
    // Directories of the harness's own, in the same place.
    let first = path.split('/').next().unwrap_or_default();
    if ["home", "tmp", super::EMPTY_DIRECTORY, super::SCRIPT_FILE].contains(&first) {
        return Some(format!("{first:?} of the scratch directory is taken"));
    }
    let below = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}/"));
    let twice = |other: &ConfigFile| below(&other.path, path) || below(path, &other.path);
    let what = "another file has this path, or lies on its way";
    others.iter().any(twice).then(|| what.to_owned())
}

fn instructions(own: &Invocation) -> Option<Problem> {
    let Some(Told::File(path)) = &own.instructions else {
        return None;
    };
    let what = no_place(path, &own.files)?;
    Some(problem([Step::from("instructions"), "file".into()], what))
}

/// Values are escaped for strings: with one in every place that breaks out of anything else, the
/// file must still be what it says it is.
fn unreadable(format: FileFormat, text: &str) -> Option<String> {
    const AWKWARD: &str = "a\"b'c\\d\n}e #f";
    let values = PLACEHOLDERS
        .iter()
        .map(|(name, _)| match *name {
            "compat" => (*name, "{}".to_owned()),
            name if JSON_VALUES.contains(&name) => (name, "1".to_owned()),
            name => (name, AWKWARD.to_owned()),
        })
        .collect();
    let filled = fill::file(format, text, &values);
    let words = |name: &str, message: &str| {
        Some(format!(
            "filled in, it is no {name} ({message}); a placeholder stands inside a double-quoted string"
        ))
    };
    match format {
        FileFormat::Json => match serde_json::from_str::<serde::de::IgnoredAny>(&filled) {
            Ok(_) => None,
            Err(_) => words("JSON", "its parser stops"),
        },
        FileFormat::Toml => match filled.parse::<toml::Table>() {
            Ok(_) => None,
            Err(error) => words("TOML", error.message()),
        },
        FileFormat::Dotenv | FileFormat::Text => None,
    }
}

/// Names that are looked for above the program or on PATH: each is one name, and leads nowhere else.
fn names(own: &Invocation) -> Option<Problem> {
    let named = [
        ("interpreter", &own.interpreter),
        ("packages", &own.packages),
        ("version_file", &own.version_file),
    ];
    named.into_iter().find_map(|(key, name)| {
        let name = name.as_deref()?;
        let fine = crate::bundle::is_safe_name(name) && !name.contains('/');
        let what = format!("{name:?} is not the name of one file or directory");
        (!fine).then(|| problem([Step::from(key)], what))
    })
}

fn interpreter(own: &Invocation) -> Option<Problem> {
    let wrong = |key: &str, what: &str| Some(problem([Step::from(key)], what));
    if let Some(word) = &own.identity {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        if word.is_empty() || !word.bytes().all(plain) {
            return wrong("identity", "a program is known by one word");
        }
    }
    if let Some(name) = &own.interpreter {
        // A name that is looked for, never a path.
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._+-".contains(&b);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
            return wrong("interpreter", "an interpreter is the name of a program");
        }
    }
    match (&own.interpreter_min_version, &own.interpreter) {
        (Some(_), None) => wrong("interpreter_min_version", "it names no interpreter"),
        (Some(text), Some(_)) if Version::read(text).is_none() => wrong(
            "interpreter_min_version",
            "a version is up to three numbers with dots between them",
        ),
        _ => None,
    }
}

fn own_config(own: &Invocation) -> Option<Problem> {
    let path = own.own_config.as_ref()?;
    let fine =
        crate::bundle::is_safe_name(path) && !path.split('/').any(|part| part.starts_with("auth"));
    let what = format!("{path:?} is not a configuration below a home");
    (!fine).then(|| problem([Step::from("own_config")], what))
}

fn model(own: &Invocation) -> Option<Problem> {
    let model = own.model.as_ref()?;
    let strange = |habit: &&String| !Habits::FIELDS.contains(&habit.as_str());
    if let Some(habit) = model.habits.iter().find(strange) {
        let what = format!("{habit:?} is no field that a request can be tried with");
        return Some(problem([Step::from("model"), "habits".into()], what));
    }
    if model.protocols.is_empty() {
        return Some(problem([Step::from("model")], "a model needs a protocol"));
    }
    model.protocols.iter().enumerate().find_map(|(at, spoken)| {
        let at = [
            Step::from("model"),
            "protocols".into(),
            at.into(),
            "base".into(),
        ];
        let fine = spoken.base.is_empty() || spoken.base.starts_with('/');
        let plain = |b: u8| b.is_ascii_graphic() && !b"?#\"\\{}".contains(&b);
        (!fine || !spoken.base.bytes().all(plain))
            .then(|| problem(at, "a base is empty or a path that begins with a slash"))
    })
}

fn limits(own: &Invocation) -> Option<Problem> {
    let filled = own
        .limits
        .beneath(&crate::task::contract::Limits::default());
    let what = filled.problem()?;
    Some(problem([Step::from("limits")], what))
}

fn tools(own: &Invocation) -> Option<Problem> {
    if let Some(what) = own.answer.as_deref().and_then(tools::answer_problem) {
        return Some(problem([Step::from("answer")], what));
    }
    let (tool, what) = own.tools.as_ref()?.problem()?;
    Some(problem([Step::from("tools"), Step::from(tool)], what))
}

/// Says which placeholder may not stand where it stands, the first of them.
fn misplaced(own: &Invocation, text: &str, here: impl Fn(Place) -> bool) -> Option<String> {
    let wrong = |name: &str| {
        let known = PLACEHOLDERS.iter().find(|(have, _)| *have == name);
        match known {
            None => Some(format!("{{{name}}} is no placeholder")),
            Some((_, place)) if !here(*place) => Some(format!("{{{name}}} may not stand here")),
            // Only the scripted engine plays a script.
            Some(_) if name == "script" && own.dialect != Dialect::Fake => {
                Some("{script} is the scripted engine's".to_owned())
            }
            Some(_) if name == "packages" && own.packages.is_none() => {
                Some("{packages} means nothing without packages".to_owned())
            }
            Some(_) if OF_A_MODEL.contains(&name) && own.model.is_none() => Some(format!(
                "{{{name}}} means nothing without [invocation.model]"
            )),
            Some(_) => None,
        }
    };
    braced(text).find_map(wrong)
}

/// Every word in braces, in order. Braces of JSON hold anything but a bare word.
pub fn braced(text: &str) -> impl Iterator<Item = &str> {
    let names = text
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name));
    names.filter(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    })
}
