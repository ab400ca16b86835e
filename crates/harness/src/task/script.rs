//! Scripts: what the engine `fake` plays, step by step. A case brings some of its own; a patch file
//! is a script of one step.

use std::collections::BTreeSet;
use std::path::Path;

use cto_core::engine::manifest::{DEFAULT_ENGINE, Manifest};
use cto_core::task::case_file::toml_problem;
use cto_core::values::paths::TreePath;
use serde::Deserialize;

use crate::host::failure::Failure;
use crate::host::files;
use crate::task::case_dir::MAX_SCRIPT;
use crate::task::cases::Case;
use crate::task::typed_patch;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// End without the result event a well-behaved engine sends.
    #[serde(default)]
    pub silent: bool,
    #[serde(default)]
    pub step: Vec<Step>,
}

/// One thing the engine does. Paths are used as they stand: a hostile script may try anything.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    Write {
        path: String,
        text: String,
    },
    Append {
        path: String,
        text: String,
    },
    /// Puts one text in the place of another that is there.
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Delete {
        path: String,
    },
    Chmod {
        path: String,
        mode: u32,
    },
    Symlink {
        path: String,
        target: String,
    },
    /// Changes files as a unified diff says.
    Patch {
        text: String,
    },
    Shell {
        command: String,
    },
    /// An attack of the hostile kit, on each of these in turn.
    Attack {
        name: String,
        on: Vec<String>,
    },
    Say {
        text: String,
    },
    Plan {
        text: String,
    },
    Review {
        accepted: bool,
        summary: String,
    },
    Result {
        status: String,
        summary: String,
    },
    /// Any bytes on standard output, as they are.
    Print {
        text: String,
    },
    Complain {
        text: String,
    },
    Sleep {
        ms: u64,
    },
    Exit {
        code: u8,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("is not UTF-8")]
    NotUtf8,
    #[error("line {line}, column {column}: {message}")]
    Toml {
        line: u64,
        column: u64,
        message: String,
    },
}

pub fn parse(bytes: &[u8]) -> Result<Script, ScriptError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ScriptError::NotUtf8)?;
    toml::from_str(text).map_err(|error| {
        let (line, column, message) = toml_problem(text, &error);
        ScriptError::Toml {
            line,
            column,
            message,
        }
    })
}

/// A file somebody named as a script. A patch is played as the one step of applying it; one that cannot
/// be read is refused in words.
pub fn from_file(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let Some(patch) = typed_patch::usual(&bytes) else {
        return Ok(bytes);
    };
    let step = toml::Table::from_iter([
        ("do".to_owned(), "patch".into()),
        ("text".to_owned(), patch?.into()),
    ]);
    let steps = toml::Value::Array(vec![step.into()]);
    Ok(toml::Table::from_iter([("step".to_owned(), steps)])
        .to_string()
        .into_bytes())
}

/// Names that a script of patches alone has in them: it does nothing else. None for any other script.
pub fn patched_alone(bytes: &[u8]) -> Option<BTreeSet<TreePath>> {
    let script = parse(bytes).ok().filter(|script| !script.step.is_empty())?;
    let mut names = BTreeSet::new();
    for step in &script.step {
        match step {
            Step::Patch { text } => names.extend(typed_patch::named_in(text)),
            _ => return None,
        }
    }
    Some(names)
}

/// What `fake` will play: the case's oracle, unless something else was named.
pub fn find(
    manifest: &Manifest,
    case: &Case,
    asked: Option<&str>,
) -> Result<Option<Vec<u8>>, Failure> {
    let plays = manifest.id.as_str() == DEFAULT_ENGINE;
    let bytes = match asked {
        Some(_) if !plays => {
            return Err(Failure::usage(
                "script_without_fake",
                "only the fake engine plays scripts",
            )
            .so("nothing ran")
            .hint("drop --script, or use --engine fake"));
        }
        None if !plays => return Ok(None),
        None => case.scripts.get("oracle").cloned().unwrap_or_default(),
        Some(name) if case.scripts.contains_key(name) => {
            case.scripts.get(name).cloned().unwrap_or_default()
        }
        // Named by the operator, so a link of theirs is followed; what it leads to must be a file.
        Some(file) => Path::new(file)
            .canonicalize()
            .and_then(|path| files::read_limited(&path, MAX_SCRIPT))
            .map_err(|error| {
                let known = case.scripts.keys().cloned().collect::<Vec<_>>().join(", ");
                let hint = match known.is_empty() {
                    true => {
                        "name a file: a patch (`git diff > FILE` makes one) or a script of steps"
                            .into()
                    }
                    false => format!("scripts of this case: {known}"),
                };
                Failure::usage("unreadable_script", "the script cannot be read")
                    .at(file)
                    .because(&error)
                    .so("nothing ran")
                    .hint(hint)
            })
            .and_then(|bytes| {
                from_file(bytes).map_err(|why| {
                    Failure::usage("bad_script", "the patch cannot be read")
                        .at(file)
                        .reason(why)
                        .so("nothing ran")
                })
            })?,
    };
    parse(&bytes).map_err(|error| {
        Failure::usage("bad_script", "the script cannot be played")
            .at(asked.unwrap_or("oracle"))
            .because(&error)
            .so("nothing ran")
    })?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = "silent = true\n[[step]]\ndo = \"chmod\"\npath = \"a\"\nmode = 420\n[[step]]\ndo = \"exit\"\ncode = 1\n";

    proptest! {
        #[test]
        fn any_bytes_are_a_script_or_a_short_complaint(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Err(error) = parse(&bytes) {
                prop_assert!(error.to_string().len() < 1000);
            }
        }

        #[test]
        fn one_changed_byte_never_panics(at in 0..GOOD.len(), byte in any::<u8>()) {
            let mut bytes = GOOD.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn a_patch_is_a_script_of_one_step() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-'''\\\n+\"\"\"\n";
        let script = parse(&from_file(patch.as_bytes().to_vec()).unwrap()).unwrap();
        assert!(matches!(script.step.as_slice(), [Step::Patch { text }] if text == patch));
        assert_eq!(from_file(b"[[step]]".to_vec()).unwrap(), b"[[step]]");
        assert!(from_file(b"diff --git old new\n".to_vec()).is_err());
    }

    #[test]
    fn scripts_parse_or_say_why() {
        assert!(parse(b"[[step]]\ndo = \"say\"\ntext = \"hi\"\n").is_ok());
        assert!(parse(b"").is_ok() && parse(GOOD.as_bytes()).is_ok());
        for bad in [
            &b"\xff"[..],
            b"[[step]]\ndo = \"dance\"\n",
            b"[[step]]\ndo = \"say\"\n",
            b"stepp = 1\n",
            b"[[step]]\ndo = \"say\"\ntext = \"a\"\nx = 1\n",
        ] {
            assert!(parse(bad).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
    }
}
