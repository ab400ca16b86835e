//! `engines/*.toml`: what an engine is, how it is gated, how it is started. No engine has code of
//! its own: the harness starts them all in the same way.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::contract::Stage;
use crate::values::digest::Digest;
use crate::values::event_type::EventType;
use crate::values::ids::EngineId;
use crate::values::json;
use crate::values::paths::PathRule;
use crate::wire::profiles::switch::{Habits, Switch};

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub id: EngineId,
    pub title: String,
    /// The variable that opens this engine; only `fake` has none.
    pub gated_by_env: Option<String>,
    /// The stage asked for when nobody says otherwise.
    pub default_stage: Stage,
    /// How to start it; absent while this version knows the engine but cannot run it.
    pub invocation: Option<Invocation>,
    /// What the file says, whatever its layout and its comments.
    #[serde(skip)]
    pub sha256: Option<Digest>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    pub program: Program,
    /// Placeholders: see [`PLACEHOLDERS`]. The model's address and credential have none.
    pub argv: Vec<String>,
    pub dialect: Dialect,
    /// Variables with fixed values, beside the few every process of a run gets; nothing is
    /// inherited.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files written for it below its scratch directory, before it starts.
    #[serde(default)]
    pub files: Vec<ConfigFile>,
    /// How it talks to its model; absent for an engine that has none.
    pub model: Option<ModelUse>,
    /// The program its own file is written for, found on PATH and shown read-only.
    pub interpreter: Option<String>,
    /// Packages lie in the outermost directory of this name above the program; it is shown
    /// read-only, whole.
    pub packages: Option<String>,
    /// The file that names the version, in a directory above the program.
    pub version_file: Option<String>,
    /// Versions this manifest was tried with. Another one is a visible warning.
    #[serde(default)]
    pub tested_versions: Vec<String>,
    /// Its own list of endpoints and models, below the operator's home: what setup may offer of it
    /// is read there, and nothing else.
    pub own_config: Option<String>,
    /// Folders of its own in the workspace: counted as scratch, never part of a patch.
    #[serde(default)]
    pub workspace_scratch: Vec<PathRule>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// This very binary, started again.
    Itself,
    /// The file an executable admission names.
    Admitted,
}

/// A file an engine reads its settings from. Placeholders stand inside JSON strings and are escaped
/// for them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Below the scratch directory.
    pub path: String,
    pub text: String,
}

/// What an engine calls the protocols it can speak, and where it expects each below an address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelUse {
    /// In order of preference.
    pub protocols: Vec<ProtocolName>,
    /// Fields of a chat request that it sends by itself, beside its messages.
    #[serde(default)]
    pub habits: Vec<String>,
    /// What it is configured with for each switch of an endpoint: keys and values of its own. They
    /// are joined into one object, `{compat}`.
    #[serde(default)]
    pub switches: BTreeMap<Switch, serde_json::Map<String, serde_json::Value>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProtocolName {
    /// The protocol, as records call it.
    pub wire: String,
    /// The same in the engine's own words.
    pub name: String,
    /// What the engine expects in the address; the rest of the path it adds itself.
    #[serde(default)]
    pub base: String,
}

/// Every output format the harness can parse.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    Fake,
    Pi,
}

impl Dialect {
    /// The event that says the engine considers itself done.
    pub fn terminal_event(self) -> EventType {
        match self {
            Self::Fake | Self::Pi => EventType::EngineResult,
        }
    }
}

/// What may stand between braces, and where. The door's address is known only once the jail stands,
/// so only files can name it.
pub const PLACEHOLDERS: &[(&str, Place)] = &[
    ("script", Place::ARGV),
    ("prompt", Place::ARGV),
    (
        "model",
        Place {
            argv: true,
            env: true,
            files: true,
        },
    ),
    (
        "scratch",
        Place {
            argv: true,
            env: true,
            files: true,
        },
    ),
    (
        "token",
        Place {
            argv: false,
            env: true,
            files: false,
        },
    ),
    (
        "door",
        Place {
            argv: false,
            env: false,
            files: true,
        },
    ),
    (
        "protocol",
        Place {
            argv: true,
            env: true,
            files: true,
        },
    ),
    ("context_window", Place::FILES),
    ("output_limit", Place::FILES),
    // One JSON object, put in as it is.
    ("compat", Place::FILES),
];
/// Placeholders whose values are JSON already: numbers and objects, made here and by nobody else.
const JSON_VALUES: [&str; 3] = ["context_window", "output_limit", "compat"];

#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub argv: bool,
    pub env: bool,
    pub files: bool,
}

impl Place {
    const ARGV: Self = Self {
        argv: true,
        env: false,
        files: false,
    };
    const FILES: Self = Self {
        argv: false,
        env: false,
        files: true,
    };
}

#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("engine manifest {file}: {source}")]
    Parse {
        file: String,
        source: Box<toml::de::Error>,
    },
    #[error(
        "engine manifest {file}: every engine but `fake` needs gated_by_env = \"CTO_HARNESS_ALLOW_…\""
    )]
    Ungated { file: String },
    #[error("engine manifest {file}: the default engine must say how it is started")]
    NoInvocation { file: String },
    #[error("engine manifest {file}: a gated engine's default stage is 1")]
    Stage { file: String },
    #[error("engine manifest {file}: {what}")]
    Invocation { file: String, what: String },
}

pub const DEFAULT_ENGINE: &str = "fake";

impl Manifest {
    pub fn parse(file: &str, text: &str) -> Result<Self, ManifestError> {
        let broken = |source| ManifestError::Parse {
            file: file.to_owned(),
            source: Box::new(source),
        };
        let mut manifest: Self = toml::from_str(text).map_err(broken)?;
        let said: serde_json::Value = toml::from_str(text).map_err(broken)?;
        let said = json::canonical_value(&said).map_err(|error| ManifestError::Invocation {
            file: file.to_owned(),
            what: error.to_string(),
        })?;
        manifest.sha256 = Some(Digest::tagged("cto-manifest/1\n", &said));
        let is_default = manifest.id.as_str() == DEFAULT_ENGINE;
        let gated = manifest
            .gated_by_env
            .as_deref()
            .is_some_and(|name| name.starts_with("CTO_HARNESS_ALLOW_"));
        if is_default == manifest.gated_by_env.is_some() || (!is_default && !gated) {
            return Err(ManifestError::Ungated {
                file: file.to_owned(),
            });
        }
        if is_default && manifest.invocation.is_none() {
            return Err(ManifestError::NoInvocation {
                file: file.to_owned(),
            });
        }
        if !is_default && manifest.default_stage != Stage::One {
            return Err(ManifestError::Stage {
                file: file.to_owned(),
            });
        }
        match manifest.invocation.as_ref().and_then(Invocation::problem) {
            Some(what) => Err(ManifestError::Invocation {
                file: file.to_owned(),
                what,
            }),
            None => Ok(manifest),
        }
    }

    pub fn is_gated(&self) -> bool {
        self.gated_by_env.is_some()
    }

    /// Does it need a model, and so everything that is asked about models?
    pub fn uses_a_model(&self) -> bool {
        self.invocation
            .as_ref()
            .is_some_and(|invocation| invocation.model.is_some())
    }
}

impl ModelUse {
    /// What it is configured with for an endpoint that wants these: one JSON object.
    pub fn compat(&self, switches: &[Switch]) -> String {
        let entries = switches
            .iter()
            .filter_map(|switch| self.switches.get(switch))
            .flatten();
        let whole: serde_json::Map<_, _> = entries
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        serde_json::Value::Object(whole).to_string()
    }

    /// Switches that an endpoint wants and this engine has no setting for.
    pub fn lacks<'s>(&self, switches: &'s [Switch]) -> Vec<&'s Switch> {
        switches
            .iter()
            .filter(|switch| !self.switches.contains_key(switch))
            .collect()
    }
}

impl Invocation {
    fn problem(&self) -> Option<String> {
        let argv = self
            .argv
            .iter()
            .find_map(|arg| misplaced(arg, |place| place.argv));
        let env = self
            .env
            .values()
            .find_map(|value| misplaced(value, |place| place.env));
        let files = self
            .files
            .iter()
            .find_map(|file| misplaced(&file.text, |place| place.files));
        if let Some(name) = argv.or(env).or(files) {
            return Some(format!("{{{name}}} means nothing there"));
        }
        if let Some(name) = self
            .env
            .keys()
            .find(|name| name.is_empty() || name.contains(['=', '\0']))
        {
            return Some(format!("{name:?} cannot be the name of a variable"));
        }
        if let Some(file) = self
            .files
            .iter()
            .find(|file| !crate::bundle::is_safe_name(&file.path))
        {
            return Some(format!(
                "{:?} is not a path below the scratch directory",
                file.path
            ));
        }
        if let Some(path) = &self.own_config
            && (!crate::bundle::is_safe_name(path)
                || path.split('/').any(|part| part.starts_with("auth")))
        {
            return Some(format!("{path:?} is not a configuration below a home"));
        }
        let model = self.model.as_ref()?;
        if let Some(habit) = model
            .habits
            .iter()
            .find(|habit| !Habits::FIELDS.contains(&habit.as_str()))
        {
            return Some(format!(
                "{habit:?} is no field that a request can be tried with"
            ));
        }
        model
            .protocols
            .is_empty()
            .then(|| "a model needs a protocol".to_owned())
    }

    /// Is this a version nobody has tried?
    pub fn is_untested(&self, version: Option<&str>) -> bool {
        !self.tested_versions.is_empty()
            && !version.is_some_and(|version| self.tested_versions.iter().any(|v| v == version))
    }
}

/// The first placeholder that may not stand where it stands.
fn misplaced(text: &str, here: impl Fn(Place) -> bool) -> Option<String> {
    let names = text
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name));
    // Braces of JSON hold anything but a bare word.
    let words = names.filter(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    });
    let known = |name: &str| {
        PLACEHOLDERS
            .iter()
            .any(|(have, place)| *have == name && here(*place))
    };
    words.filter(|name| !known(name)).map(str::to_owned).next()
}

/// Puts values in the place of their names, in one pass: what a value holds is never looked at
/// again.
pub fn fill_template(template: &str, values: &BTreeMap<&str, String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let value = after[1..]
            .split_once('}')
            .and_then(|(name, tail)| Some((values.get(name)?, tail)));
        match value {
            Some((value, tail)) => {
                out.push_str(value);
                rest = tail;
            }
            None => {
                out.push('{');
                rest = &after[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The same inside JSON strings.
pub fn fill_json(template: &str, values: &BTreeMap<&str, String>) -> String {
    let escaped = values
        .iter()
        .map(|(name, value)| match JSON_VALUES.contains(name) {
            true => (*name, value.clone()),
            false => (*name, inside_a_string(value)),
        })
        .collect();
    fill_template(template, &escaped)
}

fn inside_a_string(value: &str) -> String {
    let quoted = serde_json::Value::String(value.to_owned()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fake_may_go_ungated_and_above_stage_one() {
        let fake = "id = \"fake\"\ntitle = \"t\"\ndefault_stage = 2\n[invocation]\nprogram = \"itself\"\nargv = []\ndialect = \"fake\"\n";
        assert!(Manifest::parse("f", fake).is_ok());
        let pi = "id = \"pi\"\ntitle = \"t\"\ngated_by_env = \"CTO_HARNESS_ALLOW_PI\"\ndefault_stage = 1\n";
        assert!(Manifest::parse("f", pi).unwrap().is_gated());
        for bad in [
            pi.replace("gated_by_env = \"CTO_HARNESS_ALLOW_PI\"\n", ""),
            pi.replace("CTO_HARNESS_ALLOW_PI", "PATH"),
            pi.replace("default_stage = 1", "default_stage = 2"),
            fake.split("[invocation]").next().unwrap().to_owned(),
            fake.replace(
                "default",
                "gated_by_env = \"CTO_HARNESS_ALLOW_FAKE\"\ndefault",
            ),
            pi.replace("title", "titel"),
            pi.replace("= 1", "= 7"),
        ] {
            assert!(Manifest::parse("f", &bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn its_digest_is_of_what_it_says_and_not_of_how_it_is_written() {
        let text = include_str!("../../../../engines/pi.toml");
        let digest = |text: &str| Manifest::parse("pi", text).unwrap().sha256.unwrap();
        let commented = format!("# a word\n{}", text.replace(" = ", "   =  "));
        assert_eq!(digest(text), digest(&commented));
        for (from, to) in [
            ("--no-session", "--session"),
            ("PI_OFFLINE = \"1\"", "PI_OFFLINE = \"0\""),
            ("\"enabled\": false", "\"enabled\": true"),
            ("interpreter = \"node\"\n", ""),
        ] {
            let changed = text.replace(from, to);
            assert_ne!(digest(text), digest(&changed), "{from}");
        }
    }

    #[test]
    fn a_placeholder_stands_only_where_its_value_may_be() {
        let base = "id = \"pi\"\ntitle = \"t\"\ngated_by_env = \"CTO_HARNESS_ALLOW_PI\"\ndefault_stage = 1\n[invocation]\nprogram = \"admitted\"\ndialect = \"pi\"\nargv = [ARGV]\nenv = { A = \"ENV\" }\n[[invocation.files]]\npath = \"PATH\"\ntext = 'TEXT'\n";
        let parse = |argv: &str, env: &str, path: &str, text: &str| {
            let filled = base
                .replace("ARGV", argv)
                .replace("ENV", env)
                .replace("PATH", path)
                .replace("TEXT", text);
            Manifest::parse("f", &filled).is_ok()
        };
        assert!(parse(
            "\"{model}\", \"{prompt}\"",
            "{token}",
            "a/b.json",
            "{\"u\":\"{door}\",\"m\":{\"id\":\"{model}\"}}"
        ));
        assert!(
            !parse("\"{token}\"", "x", "a", "x"),
            "a token on a command line"
        );
        assert!(!parse("\"{door}\"", "x", "a", "x"), "known too late");
        assert!(!parse("\"x\"", "{door}", "a", "x"));
        assert!(!parse("\"x\"", "x", "a", "{token}"), "a token in a file");
        assert!(!parse("\"{endpoint}\"", "x", "a", "x"));
        for path in ["/etc/x", "../x", "a/../b", ""] {
            assert!(!parse("\"x\"", "x", path, "x"), "{path}");
        }
    }

    #[test]
    fn values_are_put_in_once_and_escaped_for_json() {
        let values = BTreeMap::from([("model", "{door}\"\\".to_owned()), ("door", "d".to_owned())]);
        assert_eq!(
            fill_template("{model} {door} {nothing} {", &values),
            "{door}\"\\ d {nothing} {"
        );
        let text = fill_json("{\"m\":\"{model}\",\"o\":{\"d\":\"{door}\"}}", &values);
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["m"], "{door}\"\\");
        assert_eq!(parsed["o"]["d"], "d");
    }

    #[test]
    fn a_version_nobody_tried_is_seen() {
        let text = include_str!("../../../../engines/pi.toml");
        let invocation = Manifest::parse("pi", text).unwrap().invocation.unwrap();
        assert!(!invocation.is_untested(Some("0.74.2")));
        assert!(invocation.is_untested(Some("9.9.9")) && invocation.is_untested(None));
    }
}
