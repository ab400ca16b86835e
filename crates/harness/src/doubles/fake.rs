//! `cto __fake SCRIPT`: an engine that plays a script. It is a real process on the same path as
//! every other engine, and as untrusted.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::task::script::{self, Step};

/// Plays a script in the current directory; the exit code is the engine's.
pub fn play(script_file: &Path) -> u8 {
    // When the harness dies, so does its engine.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let script = match fs::read(script_file)
        .map_err(|error| error.to_string())
        .and_then(|b| script::parse(&b).map_err(|e| e.to_string()))
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
        Step::Edit { path, old, new } => {
            let text = fs::read_to_string(path)?;
            if !text.contains(old.as_str()) {
                return Err(io::Error::other("what is to be replaced is not there"));
            }
            fs::write(path, text.replacen(old.as_str(), new, 1))?;
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
