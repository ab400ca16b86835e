//! Processes that are not the engine's: seeing them, signalling them, and what they hold.

use std::fs;
use std::io::{self, Write};

use rustix::process::{Pid, Signal};

use super::{Attack, refused};

pub const ATTACKS: &[Attack] = &[
    Attack::new("signal-process", signal_process),
    Attack::new("see-process", see_process),
    Attack::new("inherit-descriptors", inherit_descriptors),
];

fn signal_process(pid: &str) -> io::Result<()> {
    let pid = pid
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(pid, Signal::KILL)?)
}

/// A process whose command line has this word.
fn see_process(word: &str) -> io::Result<()> {
    let holds = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let name = entry.file_name().to_string_lossy().into_owned();
        let other =
            name.bytes().all(|b| b.is_ascii_digit()) && name != std::process::id().to_string();
        other
            && line
                .windows(word.len().max(1))
                .any(|window| window == word.as_bytes())
    };
    match fs::read_dir("/proc")?.flatten().find(holds) {
        Some(entry) => {
            // For whoever has to find out why.
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let _ = writeln!(io::stderr(), "saw {}", String::from_utf8_lossy(&line));
            Ok(())
        }
        None => Err(refused("no such process")),
    }
}

/// Anything open besides the three that belong to every process and the directory that is being
/// read.
fn inherit_descriptors(_: &str) -> io::Result<()> {
    let open: Vec<String> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| {
            fs::read_link(entry.path())
                .ok()
                .map(|to| (entry.file_name(), to))
        })
        .filter(|(name, to)| {
            !["0", "1", "2"].contains(&name.to_string_lossy().as_ref()) && !to.ends_with("fd")
        })
        .map(|(_, to)| to.display().to_string())
        .collect();
    if open.is_empty() {
        Err(refused("none"))
    } else {
        Ok(())
    }
}
