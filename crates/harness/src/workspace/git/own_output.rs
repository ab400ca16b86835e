//! Files of a work tree that this very command writes to: what is printed with `> log`, or by a
//! `| tee log` that the same shell line started. They are new since the command was typed, and no
//! part of what their owner works on.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What becomes of them at a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OwnOutput {
    Counts,
    LeftOut,
}

/// Lines of `git status --porcelain -z` without new files that a process of this shell line has open
/// for writing.
pub fn without_own_output(lines: Vec<u8>, top: &Path) -> Vec<u8> {
    const NEW: &[u8] = b"?? ";
    let all = || {
        lines
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
    };
    if !all().any(|line| line.starts_with(NEW)) {
        return lines;
    }
    let written = written_by_group();
    let is_ours = |line: &[u8]| {
        line.strip_prefix(NEW)
            .and_then(|path| fs::symlink_metadata(top.join(OsStr::from_bytes(path))).ok())
            .is_some_and(|meta| meta.is_file() && written.contains(&(meta.dev(), meta.ino())))
    };
    let kept = all().filter(|line| !is_ours(line));
    kept.flat_map(|line| [line, b"\0"].concat()).collect()
}

/// Files that processes of our process group have open for writing.
fn written_by_group() -> BTreeSet<(u64, u64)> {
    let own = group_of(Path::new("/proc/self"));
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .map(|entry| entry.path())
        .filter(|process| own.is_some() && group_of(process) == own)
        .flat_map(|process| written_by(&process))
        .collect()
}

/// The name of a program may hold anything, so what follows is read from its end.
fn group_of(process: &Path) -> Option<u32> {
    let stat = fs::read(process.join("stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = String::from_utf8_lossy(&stat[end + 1..]).into_owned();
    rest.split_whitespace().nth(2)?.parse().ok()
}

fn written_by(process: &Path) -> Vec<(u64, u64)> {
    let opened = fs::read_dir(process.join("fd")).into_iter().flatten();
    opened
        .flatten()
        .map(|entry| entry.path())
        .filter(|fd| is_for_writing(process, fd))
        .filter_map(|fd| fs::metadata(fd).ok())
        .filter(|meta| meta.is_file())
        .map(|meta| (meta.dev(), meta.ino()))
        .collect()
}

fn is_for_writing(process: &Path, fd: &Path) -> bool {
    const WAYS: u32 = 0o3;
    let info: PathBuf = process
        .join("fdinfo")
        .join(fd.file_name().unwrap_or_default());
    let text = fs::read_to_string(info).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & WAYS != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_files_that_are_being_written_are_left_out() {
        let house = tempfile::tempdir().unwrap();
        let top = house.path();
        for name in ["written", "read", "closed", "known"] {
            fs::write(top.join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("written", top.join("link")).unwrap();
        let open = |name: &str| fs::OpenOptions::new().append(true).open(top.join(name));
        let _held = (
            open("written").unwrap(),
            open("known").unwrap(),
            fs::File::open(top.join("read")).unwrap(),
        );
        let lines = b"?? written\0?? read\0?? closed\0 M known\0?? link\0?? gone\0";
        let left = without_own_output(lines.to_vec(), top);
        assert_eq!(left, b"?? read\0?? closed\0 M known\0?? link\0?? gone\0");
        assert_eq!(without_own_output(Vec::new(), top), b"");
    }
}
