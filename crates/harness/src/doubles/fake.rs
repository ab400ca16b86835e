//! `cto __fake SCRIPT`: an engine that plays a script. It is a real process on the same path as
//! every other engine, and as untrusted.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use cto_core::task::case_file::toml_problem;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// End without the result event a well-behaved engine sends.
    #[serde(default)]
    silent: bool,
    #[serde(default)]
    step: Vec<Step>,
}

/// One thing the engine does. Paths are used as they stand: a hostile script may try anything.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    Write {
        path: String,
        text: String,
    },
    Append {
        path: String,
        text: String,
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

/// A file somebody named as a script. A patch is played as the one step of applying it.
pub fn from_file(bytes: Vec<u8>) -> Vec<u8> {
    let is_patch = [&b"diff --git "[..], b"--- ", b"From "]
        .iter()
        .any(|start| bytes.starts_with(start));
    match std::str::from_utf8(&bytes) {
        Ok(text) if is_patch => {
            let step = toml::Table::from_iter([
                ("do".to_owned(), "patch".into()),
                ("text".to_owned(), text.into()),
            ]);
            toml::Table::from_iter([("step".to_owned(), toml::Value::Array(vec![step.into()]))])
                .to_string()
                .into_bytes()
        }
        _ => bytes,
    }
}

/// Plays a script in the current directory; the exit code is the engine's.
pub fn play(script_file: &Path) -> u8 {
    // When the harness dies, so does its engine.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let script = match fs::read(script_file)
        .map_err(|error| error.to_string())
        .and_then(|b| parse(&b).map_err(|e| e.to_string()))
    {
        Ok(script) => script,
        Err(error) => {
            let _ = writeln!(io::stderr(), "fake: the script cannot be played: {error}");
            return 64;
        }
    };
    let mut said_result = script.silent;
    for step in script.step {
        if let Step::Exit { code } = step {
            return code;
        }
        said_result |= matches!(step, Step::Result { .. });
        if let Err(error) = act(&step) {
            let _ = writeln!(io::stderr(), "fake: {step:?}: {error}");
            return 65;
        }
    }
    if !said_result {
        let _ = say(
            json!({"type": "result", "status": "completed", "summary": "script played to its end"}),
        );
    }
    0
}

fn say(line: serde_json::Value) -> io::Result<()> {
    // On a line of its own, whatever a tool left unfinished before it.
    writeln!(io::stdout(), "\n{line}")
}

fn changed(path: &str) -> io::Result<()> {
    say(json!({"type": "file_change", "path": path}))
}

fn act(step: &Step) -> io::Result<()> {
    match step {
        Step::Write { path, text } => {
            if let Some(parent) = Path::new(path).parent() {
                fs::create_dir_all(parent)?;
            }
            // A script's text begins on the line after its quotes.
            fs::write(path, text.strip_prefix('\n').unwrap_or(text))?;
            changed(path)
        }
        Step::Append { path, text } => {
            fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)?
                .write_all(text.as_bytes())?;
            changed(path)
        }
        Step::Delete { path } => {
            fs::remove_file(path)?;
            changed(path)
        }
        Step::Chmod { path, mode } => {
            fs::set_permissions(path, fs::Permissions::from_mode(*mode))?;
            changed(path)
        }
        Step::Symlink { path, target } => {
            symlink(target, path)?;
            changed(path)
        }
        Step::Patch { text } => {
            say(json!({"type": "tool", "tool": "patch", "target": "the workspace"}))?;
            apply(text)
        }
        Step::Shell { command } => {
            say(json!({"type": "tool", "tool": "shell", "target": command}))?;
            std::process::Command::new("/bin/sh")
                .arg("-c")
                .arg(command)
                .status()
                .map(drop)
        }
        Step::Attack { name, on } => {
            say(json!({"type": "tool", "tool": "attack", "target": name}))?;
            // A process of its own: what it does to itself ends with it.
            std::process::Command::new(std::env::current_exe()?)
                .arg("__hostile")
                .arg(name)
                .args(on)
                .status()
                .map(drop)
        }
        Step::Say { text } => say(json!({"type": "message", "text": text})),
        Step::Plan { text } => say(json!({"type": "plan", "text": text})),
        Step::Review { accepted, summary } => {
            say(json!({"type": "review", "accepted": accepted, "summary": summary}))
        }
        Step::Result { status, summary } => {
            say(json!({"type": "result", "status": status, "summary": summary}))
        }
        Step::Print { text } => io::stdout().write_all(text.as_bytes()),
        Step::Complain { text } => writeln!(io::stderr(), "{text}"),
        Step::Sleep { ms } => {
            std::thread::sleep(Duration::from_millis(*ms));
            Ok(())
        }
        Step::Exit { .. } => Ok(()),
    }
}

fn apply(patch: &str) -> io::Result<()> {
    let mut git = std::process::Command::new("git");
    git.args(["apply", "--whitespace=nowarn", "-"])
        .stdin(std::process::Stdio::piped());
    let mut child = git.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(patch.as_bytes())?;
    }
    match child.wait()?.success() {
        true => Ok(()),
        false => Err(io::Error::other("the patch does not apply")),
    }
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
        let script = parse(&from_file(patch.as_bytes().to_vec())).unwrap();
        assert!(matches!(script.step.as_slice(), [Step::Patch { text }] if text == patch));
        assert_eq!(from_file(b"[[step]]".to_vec()), b"[[step]]");
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
