//! The questions of a setup, and one reader for each answer. A refusal says what is wrong and never
//! repeats what was typed: it may be a key that was pasted into the wrong place.

use std::fmt;

use crate::records::credential::{CredentialWay, WayProblem};
use crate::records::{Takes, secret_shape, text_problem};
use crate::wire::endpoint::{Endpoint, EndpointError};

/// Everything that can be asked, in the order it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Question {
    Program,
    Endpoint,
    Credential,
    Send,
    Model,
    Alias,
    Approval,
    License,
    Name,
}

impl Question {
    /// The flag that answers it in a script.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Program => "--bin",
            Self::Endpoint => "--base-url-file",
            Self::Credential => "--credential",
            Self::Send | Self::Name => "--confirm",
            Self::Model => "--model",
            Self::Alias => "--alias",
            Self::Approval => "--approval",
            Self::License => "--license",
        }
    }
}

/// Why an answer is not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    #[error("there is no default: type an answer, or Ctrl-C to leave")]
    Empty,
    #[error("{0}")]
    Url(#[from] EndpointError),
    #[error("it is neither a URL (https://…) nor the absolute path of a file that holds one")]
    NeitherUrlNorFile,
    #[error(
        "the credential itself is never typed here; say where it comes from: none, env:NAME, file:/PATH or command:/PROGRAM"
    )]
    NotAWay,
    #[error("{0}")]
    Way(#[from] WayProblem),
    #[error("it {0}; nothing like that is typed here")]
    Secret(&'static str),
    #[error("it {0}")]
    Text(String),
    #[error("there is no such number in the list")]
    Number,
    #[error("answer yes or no")]
    YesOrNo,
    #[error("that is not the licence the package names; an empty line leaves it open")]
    License,
    #[error("that is not the engine's name; an empty line leaves, and nothing is written")]
    Name,
    /// Something on this machine is in the way; said by whoever looked.
    #[error("{0}")]
    Found(String),
}

impl Refused {
    /// For programs that read the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "missing_answer",
            Self::Url(_) | Self::NeitherUrlNorFile => "bad_base_url",
            Self::NotAWay | Self::Way(_) => "bad_credential_way",
            Self::Secret(_) => "secret_in_answer",
            Self::Name => "not_confirmed",
            Self::Text(_) | Self::Number | Self::YesOrNo | Self::License | Self::Found(_) => {
                "bad_answer"
            }
        }
    }
}

/// A base URL as it was typed. Shown to nobody; its text is for the one file that will hold it.
#[derive(Clone, PartialEq, Eq)]
pub struct TypedUrl {
    pub endpoint: Endpoint,
    text: String,
}

impl TypedUrl {
    pub fn read(text: &str) -> Result<Self, Refused> {
        Ok(Self {
            endpoint: Endpoint::parse(text)?,
            text: text.trim().to_owned(),
        })
    }

    /// The bytes of its file.
    pub fn file(&self) -> String {
        format!("{}\n", self.text)
    }
}

impl fmt::Debug for TypedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypedUrl")
    }
}

/// Where the base URL is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    Typed(TypedUrl),
    File(String),
}

/// A URL, or the file that holds one.
pub fn place(text: &str) -> Result<Place, Refused> {
    match text.trim() {
        "" => Err(Refused::Empty),
        file if file.starts_with('/') => match text_problem(Takes::Path, file) {
            None => Ok(Place::File(file.to_owned())),
            Some(_) => Err(Refused::NeitherUrlNorFile),
        },
        url if url.contains("://") => TypedUrl::read(url).map(Place::Typed),
        _ => Err(Refused::NeitherUrlNorFile),
    }
}

/// One of the four ways, and nothing else: not a class in somebody's words, not a key.
pub fn way(text: &str) -> Result<CredentialWay, Refused> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Refused::Empty);
    }
    if let Some(shape) = secret_shape(text) {
        return Err(Refused::Secret(shape));
    }
    let way = CredentialWay::read(text)?.ok_or(Refused::NotAWay)?;
    match text_problem(Takes::Credential, text) {
        None => Ok(way),
        Some(problem) => Err(Refused::Text(problem)),
    }
}

/// The same as records write it.
pub fn way_text(way: &CredentialWay) -> String {
    match way {
        CredentialWay::None => "none".into(),
        CredentialWay::Variable(name) => format!("env:{name}"),
        CredentialWay::File(path) => format!("file:{path}"),
        CredentialWay::Command(words) => format!("command:{}", words.join(" ")),
    }
}

/// A name of the list by its number, or any name; the default for an empty line.
pub fn model(text: &str, offered: &[String], default: Option<&str>) -> Result<String, Refused> {
    let text = text.trim();
    if text.is_empty() {
        return default.map(str::to_owned).ok_or(Refused::Empty);
    }
    // A model may be called by a number; the list comes first.
    if !offered.iter().any(|name| name == text)
        && let Ok(number) = text.parse::<usize>()
    {
        let name = number.checked_sub(1).and_then(|at| offered.get(at));
        return name.cloned().ok_or(Refused::Number);
    }
    name(text)
}

/// A name that records compare byte by byte.
pub fn name(text: &str) -> Result<String, Refused> {
    if let Some(shape) = secret_shape(text) {
        return Err(Refused::Secret(shape));
    }
    match text_problem(Takes::Name, text) {
        None => Ok(text.to_owned()),
        Some(problem) => Err(Refused::Text(problem)),
    }
}

/// Words for a person, with a default.
pub fn words(text: &str, default: Option<&str>) -> Result<String, Refused> {
    let text = match text.trim() {
        "" => default.ok_or(Refused::Empty)?,
        text => text,
    };
    if let Some(shape) = secret_shape(text) {
        return Err(Refused::Secret(shape));
    }
    match text_problem(Takes::Text, text) {
        None => Ok(text.to_owned()),
        Some(problem) => Err(Refused::Text(problem)),
    }
}

pub fn yes(text: &str) -> Result<bool, Refused> {
    match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err(Refused::YesOrNo),
    }
}

/// Did the person type the licence that the package claims? An empty line leaves it open.
pub fn license(text: &str, claimed: &str) -> Result<bool, Refused> {
    match text.trim() {
        "" => Ok(false),
        typed if typed.eq_ignore_ascii_case(claimed) => Ok(true),
        _ => Err(Refused::License),
    }
}

/// Was it the engine's own name? An empty line is a no.
pub fn engine(text: &str, name: &str) -> Result<bool, Refused> {
    match text.trim() {
        "" => Ok(false),
        typed if typed == name => Ok(true),
        _ => Err(Refused::Name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_url_or_a_file() {
        assert!(matches!(
            place(" http://127.0.0.1:8000/v1/ "),
            Ok(Place::Typed(_))
        ));
        assert_eq!(
            place("/etc/url"),
            Ok(Place::File("/etc/url".into())),
            "a file"
        );
        for (bad, code) in [
            ("", "missing_answer"),
            ("localhost:8000", "bad_base_url"),
            ("url.txt", "bad_base_url"),
            ("/a/../b", "bad_base_url"),
            ("http://example.com/v1", "bad_base_url"),
            ("https://me:hidden-word@example.com", "bad_base_url"),
            ("https://example.com/?key=hidden-word", "bad_base_url"),
        ] {
            let refused = place(bad).unwrap_err();
            assert_eq!(refused.code(), code, "{bad}");
            assert!(!format!("{refused} {refused:?}").contains("hidden"));
        }
        let Ok(Place::Typed(url)) = place("https://gate.example/v1") else {
            panic!("refused")
        };
        assert_eq!(url.file(), "https://gate.example/v1\n");
        assert_eq!(format!("{url:?}"), "TypedUrl");
    }

    #[test]
    fn only_a_way_is_a_credential_and_no_refusal_repeats_a_key() {
        for good in [
            "none",
            "env:MY_KEY",
            "file:/run/key",
            "command:/bin/get a b",
        ] {
            assert_eq!(way_text(&way(good).unwrap()), good);
        }
        for (key, code) in [
            ("", "missing_answer"),
            ("my words", "bad_credential_way"),
            ("hunter2", "bad_credential_way"),
            ("0123456789abcdef0123456789abcdef", "bad_credential_way"),
            ("sk-abcdefghijklmnopqrstuvwx", "secret_in_answer"),
            ("env:sk-abcdefghijklmnopqrstuvwx", "secret_in_answer"),
            ("env:a-b", "bad_credential_way"),
            ("file:key", "bad_credential_way"),
            ("command:get", "bad_credential_way"),
            ("other:thing", "bad_credential_way"),
            ("command:/bin/get --token=abcdefghijkl", "secret_in_answer"),
        ] {
            let refused = way(key).unwrap_err();
            assert_eq!(refused.code(), code, "{key}");
            let said = format!("{refused} {refused:?}");
            assert!(key.is_empty() || !said.contains(key), "{said}");
        }
    }

    #[test]
    fn a_model_is_taken_by_number_or_by_name() {
        let offered = [
            "a/b:c".to_owned(),
            "7".to_owned(),
            "x-2026-01-01".to_owned(),
        ];
        let take = |text: &str| model(text, &offered, Some("a/b:c"));
        assert_eq!(take("").as_deref(), Ok("a/b:c"));
        assert_eq!(take("3").as_deref(), Ok("x-2026-01-01"));
        assert_eq!(take("7").as_deref(), Ok("7"), "a name comes first");
        assert_eq!(take("another").as_deref(), Ok("another"));
        assert_eq!(take("4"), Err(Refused::Number));
        assert_eq!(take("0"), Err(Refused::Number));
        assert_eq!(model("", &offered, None), Err(Refused::Empty));
        assert_eq!(take("two words").unwrap_err().code(), "bad_answer");
        assert_eq!(
            take("sk-abcdefghijklmnopqrstuvwx").unwrap_err().code(),
            "secret_in_answer"
        );
    }

    #[test]
    fn words_yes_licence_and_name() {
        assert_eq!(words(" me ", None).as_deref(), Ok("me"));
        assert_eq!(words("", Some("me")).as_deref(), Ok("me"));
        assert_eq!(words("", None), Err(Refused::Empty));
        assert_eq!(
            words("password=hunter22", None).unwrap_err().code(),
            "secret_in_answer"
        );
        assert_eq!((yes("Y"), yes("no")), (Ok(true), Ok(false)));
        assert_eq!(yes(""), Err(Refused::YesOrNo));
        assert_eq!(license("mit", "MIT"), Ok(true));
        assert_eq!(license("", "MIT"), Ok(false));
        assert_eq!(license("yes", "MIT"), Err(Refused::License));
        assert_eq!(engine("pi", "pi"), Ok(true));
        assert_eq!(engine("", "pi"), Ok(false));
        assert_eq!(engine("Pi", "pi"), Err(Refused::Name));
        assert_eq!(Refused::Name.code(), "not_confirmed");
    }
}
