//! Reads a record: a table of fields, each checked before the record is built.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RecordKind;
use super::credential::CredentialWay;
use super::secret_shape::{secret_key, secret_shape};
use super::trigger;
use crate::values::digest::Digest;
use crate::values::ids::EngineId;
use crate::values::json::{self, JsonError};
use crate::values::paths::PathRule;
use crate::values::time::Utc;

/// A larger file is not read as a record.
pub const MAX_RECORD: usize = 64 << 10;
const MAX_TEXT: usize = 4096;
const MAX_WORD: usize = 200;
const MAX_ITEMS: usize = 256;

/// One thing that is wrong with a record: where, and what, but never the value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Issue {
    /// The field, or `record` where it is about the whole.
    pub field: String,
    pub problem: String,
}

impl Issue {
    pub fn new(field: &str, problem: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    Required,
    Optional,
}

/// What the value of a field looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// Words for a person.
    Text,
    /// One line, and no address in it: a class, an owner, a version.
    Word,
    /// The id of an engine.
    Engine,
    /// A name that is compared byte by byte: printable ASCII without spaces.
    Name,
    Names,
    /// Where a credential comes from, or its class.
    Credential,
    /// An https or git address without a credential in it.
    Address,
    /// An absolute path.
    Path,
    Sha256,
    /// 40 or 64 lower-case hex digits.
    Commit,
    /// Named by its algorithm; the digest itself may look random.
    Integrity,
    /// A date, or a time by RFC 3339.
    When,
    OneOf(&'static [&'static str]),
    SeveralOf(&'static [&'static str]),
    Yes,
    Flag,
    /// A whole number, from one to another.
    Number(u64, u64),
    Texts,
    Rules,
    /// Names to short texts.
    Versions,
    Trigger,
}

/// One row of a record's table.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub takes: Takes,
    pub need: Need,
}

/// A kind of record: its table, and what must hold between its fields.
pub trait Record: DeserializeOwned + Serialize {
    const KIND: RecordKind;
    const FIELDS: &'static [Field];

    /// Problems that only several fields together show.
    fn agree(&self) -> Vec<Issue> {
        Vec::new()
    }
}

/// Declares a record: the type, its schema and the table that guards both.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident
        required { $($(#[$field_doc:meta])* $field:ident: $type:ty => $takes:expr;)* }
        optional { $($(#[$more_doc:meta])* $more:ident: $more_type:ty => $more_takes:expr;)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
            $($(#[$more_doc])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $more: Option<$more_type>,)*
        }

        impl $name {
            const TABLE: &'static [crate::records::Field] = {
                use crate::records::{Field, Need, Takes};
                &[
                    $(Field { name: stringify!($field), takes: $takes, need: Need::Required },)*
                    $(Field { name: stringify!($more), takes: $more_takes, need: Need::Optional },)*
                ]
            };
        }
    };
}
pub(super) use record;

/// Reads a record strictly. On failure every issue is returned, never none.
pub fn read<T: Record>(bytes: &[u8]) -> Result<T, Vec<Issue>> {
    let whole = |problem: String| vec![Issue::new("record", problem)];
    if bytes.len() > MAX_RECORD {
        return Err(whole(format!("is larger than {MAX_RECORD} bytes")));
    }
    let value = json::parse_strict(bytes).map_err(|error| vec![unreadable(&error, T::FIELDS)])?;
    let Value::Object(map) = value else {
        return Err(whole("is not a JSON object".into()));
    };
    let issues = check(&map, T::FIELDS);
    if !issues.is_empty() {
        return Err(issues);
    }
    // The table has looked at every field; what serde could still say would hold the value.
    let record: T = serde_json::from_value(Value::Object(map))
        .map_err(|_| whole("does not have the shape of its kind".into()))?;
    let issues = record.agree();
    if issues.is_empty() {
        Ok(record)
    } else {
        Err(issues)
    }
}

/// Reads a record as of a moment: none speaks of a day that has not come. Somewhere on Earth it is
/// up to fourteen hours later than it is in UTC, and two clocks differ by minutes.
pub fn read_on<T: Record>(bytes: &[u8], now: Utc) -> Result<T, Vec<Issue>> {
    const EARLIEST_ZONE: i64 = 14 * 3600 * 1000;
    const CLOCKS_DIFFER: i64 = 5 * 60 * 1000;
    let record: T = read(bytes)?;
    let value = serde_json::to_value(&record).unwrap_or_default();
    let is_to_come = |text: &str| {
        let (from, ahead) = match Utc::day(text) {
            Some(day) => (Some(day), EARLIEST_ZONE),
            None => (Utc::from_rfc3339(text), CLOCKS_DIFFER),
        };
        from.is_none_or(|from| from.as_millis() > now.as_millis().saturating_add(ahead))
    };
    let issues: Vec<Issue> = T::FIELDS
        .iter()
        .filter(|field| field.takes == Takes::When)
        .filter(|field| value[field.name].as_str().is_some_and(is_to_come))
        .map(|field| Issue::new(field.name, "lies in the future"))
        .collect();
    if issues.is_empty() {
        Ok(record)
    } else {
        Err(issues)
    }
}

fn unreadable(error: &JsonError, fields: &[Field]) -> Issue {
    let JsonError::Syntax(syntax) = error else {
        return Issue::new("record", error.to_string());
    };
    let text = syntax.to_string();
    let doubled = fields
        .iter()
        .find(|field| text.contains(&format!("duplicate key \"{}\"", field.name)));
    match doubled {
        Some(field) => Issue::new(field.name, "stands there twice"),
        None if text.contains("duplicate key") => {
            Issue::new("record", "holds a key twice that is not one of its fields")
        }
        None => Issue::new(
            "record",
            format!(
                "is not acceptable JSON at line {}, column {}",
                syntax.line(),
                syntax.column()
            ),
        ),
    }
}

fn check(map: &Map<String, Value>, fields: &[Field]) -> Vec<Issue> {
    let mut issues = Vec::new();
    for field in fields {
        match (map.get(field.name), field.need) {
            (Some(value), _) => {
                issues.extend(problem(field, value).map(|problem| Issue::new(field.name, problem)))
            }
            (None, Need::Required) => issues.push(Issue::new(field.name, "is missing")),
            (None, Need::Optional) => {}
        }
    }
    for key in map
        .keys()
        .filter(|key| !fields.iter().any(|field| field.name == key.as_str()))
    {
        issues.push(unknown(key));
    }
    issues
}

/// A key that is not a field. It is named only where its name cannot be a secret itself.
fn unknown(key: &str) -> Issue {
    let plain = key.len() <= 64
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    let name = if plain && secret_shape(key).is_none() {
        key
    } else {
        "record"
    };
    match secret_key(key) {
        true => Issue::new(
            name,
            "looks like a secret or an endpoint; no record holds one",
        ),
        false => Issue::new(
            name,
            if name == key {
                "is not a field of this record"
            } else {
                "holds a key that is not one of its fields"
            },
        ),
    }
}

fn problem(field: &Field, value: &Value) -> Option<String> {
    match field.takes {
        Takes::Names | Takes::Texts | Takes::Rules | Takes::SeveralOf(_) => items(field, value),
        Takes::Versions => versions(value),
        Takes::Trigger => trigger::problem(value),
        Takes::Yes => (value != &Value::Bool(true)).then(|| "must be true".into()),
        Takes::Number(least, most) => {
            let is_good = value.as_u64().is_some_and(|n| (least..=most).contains(&n));
            (!is_good).then(|| format!("must be a whole number, {least} to {most}"))
        }
        Takes::Flag => (!value.is_boolean()).then(|| "must be true or false".into()),
        _ => match value {
            Value::String(text) => one(field.takes, text),
            _ => Some("must be text".into()),
        },
    }
}

fn items(field: &Field, value: &Value) -> Option<String> {
    let Value::Array(items) = value else {
        return Some("must be a list".into());
    };
    if items.len() > MAX_ITEMS {
        return Some(format!("has more than {MAX_ITEMS} entries"));
    }
    let each = match field.takes {
        Takes::Names => Takes::Name,
        Takes::SeveralOf(words) => Takes::OneOf(words),
        Takes::Rules => Takes::Rules,
        _ => Takes::Text,
    };
    items.iter().enumerate().find_map(|(at, item)| {
        let found = match item {
            Value::String(text) => one(each, text)?,
            _ => "must be text".into(),
        };
        Some(format!("entry {}: {found}", at + 1))
    })
}

fn versions(value: &Value) -> Option<String> {
    let Value::Object(map) = value else {
        return Some("must be an object of names and versions".into());
    };
    if map.len() > MAX_ITEMS {
        return Some(format!("has more than {MAX_ITEMS} entries"));
    }
    map.iter().enumerate().find_map(|(at, (name, version))| {
        let found = match version {
            _ if secret_key(name) => Some("its name looks like a secret".into()),
            Value::String(text) => one(Takes::Name, name).or_else(|| one(Takes::Word, text)),
            _ => Some("must be text".into()),
        };
        found.map(|found| format!("entry {}: {found}", at + 1))
    })
}

/// Is this a plain name? Any other text could be a secret.
pub fn is_name(text: &str) -> bool {
    one(Takes::Name, text).is_none()
}

/// What is wrong with a text for a field of this kind; never repeats it.
pub fn text_problem(takes: Takes, text: &str) -> Option<String> {
    one(takes, text)
}

/// What is wrong with one text.
pub(super) fn one(takes: Takes, text: &str) -> Option<String> {
    let longest = if matches!(
        takes,
        Takes::Text | Takes::Path | Takes::Rules | Takes::Credential
    ) {
        MAX_TEXT
    } else {
        MAX_WORD
    };
    let longest = if matches!(takes, Takes::Address | Takes::Integrity) {
        1024
    } else {
        longest
    };
    if text.trim().is_empty() {
        return Some("is empty".into());
    }
    if text.len() > longest {
        return Some(format!("is longer than {longest} bytes"));
    }
    if text
        .chars()
        .any(|c| c.is_control() && !(takes == Takes::Text && matches!(c, '\n' | '\t')))
    {
        return Some("holds a control character".into());
    }
    if let Some(shape) = secret_shape(text)
        && !(takes == Takes::Integrity && names_algorithm(text))
    {
        return Some(format!("{shape}; no record holds one"));
    }
    shape(takes, text).map(Into::into)
}

fn shape(takes: Takes, text: &str) -> Option<&'static str> {
    let hex = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    match takes {
        Takes::Word => text
            .contains("://")
            .then_some("holds an address; this field names a class or a person"),
        Takes::Credential if text.contains("://") => {
            Some("holds an address; this field names a class or a way")
        }
        Takes::Credential => match CredentialWay::read(text) {
            Ok(_) => None,
            Err(super::credential::WayProblem::Variable) => {
                Some("env: takes the name of a variable")
            }
            Err(super::credential::WayProblem::File) => Some("file: takes an absolute path"),
            Err(super::credential::WayProblem::Command) => {
                Some("command: takes the absolute path of a program")
            }
        },
        Takes::Engine => text
            .parse::<EngineId>()
            .is_err()
            .then_some("is not the id of an engine"),
        Takes::Name => name_problem(text),
        Takes::Address => address_problem(text),
        Takes::Path => path_problem(text),
        Takes::Sha256 => text
            .parse::<Digest>()
            .is_err()
            .then_some("must be a SHA-256 digest: 64 lower-case hex digits"),
        Takes::Commit => (!matches!(text.len(), 40 | 64) || !hex(text))
            .then_some("must be a whole commit id: a branch or a short id is no pin"),
        Takes::When => (Utc::day(text).is_none() && Utc::from_rfc3339(text).is_none())
            .then_some("must be a date like 2026-01-02 or a time like 2026-01-02T03:04:05Z"),
        Takes::OneOf(words) => {
            (!words.contains(&text)).then_some("is not one of the words this field takes")
        }
        Takes::Rules => text
            .parse::<PathRule>()
            .is_err()
            .then_some("is not a path rule: relative, a file, `dir/`, or `*` in one part"),
        _ => None,
    }
}

fn names_algorithm(text: &str) -> bool {
    ["sha256-", "sha384-", "sha512-"]
        .iter()
        .any(|name| text.starts_with(name))
        && !text.contains(char::is_whitespace)
}

fn name_problem(text: &str) -> Option<&'static str> {
    match text {
        _ if text.contains("://") => Some("holds an address; this field takes a name"),
        _ if text.chars().any(char::is_whitespace) => {
            Some("holds white space; names are compared byte by byte")
        }
        _ if !text.is_ascii() => {
            Some("holds a letter beyond ASCII, which may only look like another")
        }
        _ => None,
    }
}

fn address_problem(text: &str) -> Option<&'static str> {
    let known = ["https://", "ssh://", "git+ssh://", "npm:"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    match text {
        _ if !known => Some("must begin with https://, ssh:// or npm:"),
        _ if text.contains(char::is_whitespace) => Some("holds white space"),
        _ if text.contains(['?', '#']) => Some("has a query or a fragment, where credentials hide"),
        _ => None,
    }
}

fn path_problem(text: &str) -> Option<&'static str> {
    match text {
        _ if !text.starts_with('/') => {
            Some("must be an absolute path, not a name, an alias or a shell keyword")
        }
        _ if text.split('/').any(|part| part == ".." || part == ".") => {
            Some("must be a plain path without `.` or `..`")
        }
        _ => None,
    }
}
