//! The refs of a git directory that an engine could write, read by ourselves: no git is ever run in it. What is
//! no plain file of a plain directory, or is too large, is said and not followed.

use std::fs;
use std::io;
use std::path::Path;

use cto_core::task::source::branch_policy::{HEAD, RefsRead};

use super::Measured;
use crate::host::files;
use crate::workspace::of_run::Workspace;
use crate::workspace::private_copy::PrivateCopy;

const MAX_REF: u64 = 4 << 10;
const MAX_FILE: u64 = 4 << 20;
const MAX_REFS: usize = 20_000;
const MAX_DEPTH: usize = 32;

impl Measured {
    /// The one commit of the harness, which holds the measured tree.
    pub fn result_commit(&self) -> &str {
        &self.commit.commit
    }
}

impl Workspace {
    /// The refs of the engine's own repository as they are now.
    pub fn refs(&self) -> RefsRead {
        match &self.copy {
            PrivateCopy::Plain(dir) => read(&dir.join(".git")),
            PrivateCopy::Over(_) => RefsRead {
                unreadable: Some("the refs of an overlay are not read".into()),
                ..RefsRead::default()
            },
        }
    }

    /// The commit that the run starts from.
    pub fn base_commit(&self) -> &str {
        &self.baseline_commit.commit
    }
}

/// Every ref below a git directory, and how many remotes its configuration names.
fn read(dot_git: &Path) -> RefsRead {
    let mut found = RefsRead::default();
    if let Err(why) = gather(dot_git, &mut found) {
        found.unreadable = Some(format!("its refs cannot be read: {why}"));
    }
    found
}

fn gather(dot_git: &Path, found: &mut RefsRead) -> io::Result<()> {
    is_plain_dir(dot_git)?;
    if exists(&dot_git.join("reftable")) {
        return Err(io::Error::other("they are not kept as files"));
    }
    // Written by us, and the only place of its refs.
    if text(&dot_git.join("commondir"), MAX_REF)?.trim() != "." {
        return Err(io::Error::other("they were moved to another directory"));
    }
    packed(&dot_git.join("packed-refs"), found)?;
    loose(&dot_git.join("refs"), "refs", 0, found)?;
    let head = text(&dot_git.join(HEAD), MAX_REF)?;
    found.refs.insert(HEAD.to_owned(), head.trim().to_owned());
    for name in ["config", "config.worktree"] {
        configured(&dot_git.join(name), found)?;
    }
    for name in ["remotes", "branches"] {
        found.remotes += entries(&dot_git.join(name))?;
    }
    Ok(())
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_plain_dir(path: &Path) -> io::Result<()> {
    match path.symlink_metadata()?.is_dir() {
        true => Ok(()),
        false => Err(io::Error::other("a directory of it is something else")),
    }
}

/// What stands in a plain file.
fn text(path: &Path, most: u64) -> io::Result<String> {
    if !path.symlink_metadata()?.is_file() {
        return Err(io::Error::other("a file of it is something else"));
    }
    let bytes = files::read_open(files::open_regular(path)?, most)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn keep(found: &mut RefsRead, name: String, at: &str) -> io::Result<()> {
    if found.refs.len() >= MAX_REFS {
        return Err(io::Error::other("there are too many"));
    }
    found.refs.insert(name, at.to_owned());
    Ok(())
}

fn packed(path: &Path, found: &mut RefsRead) -> io::Result<()> {
    if !exists(path) {
        return Ok(());
    }
    let lines = text(path, MAX_FILE)?;
    for line in lines.lines().filter(|line| !line.starts_with(['#', '^'])) {
        let (at, name) = line.split_once(' ').unwrap_or(("", line));
        keep(found, name.to_owned(), at)?;
    }
    Ok(())
}

/// A loose ref counts before a packed one.
fn loose(dir: &Path, name: &str, depth: usize, found: &mut RefsRead) -> io::Result<()> {
    is_plain_dir(dir)?;
    if depth > MAX_DEPTH {
        return Err(io::Error::other("they are nested too deeply"));
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let below = format!("{name}/{}", entry.file_name().to_string_lossy());
        match entry.file_type()?.is_dir() {
            true => loose(&entry.path(), &below, depth + 1, found)?,
            false => {
                let at = text(&entry.path(), MAX_REF)?;
                keep(found, below, at.trim())?;
            }
        }
    }
    Ok(())
}

/// Remotes of a configuration; one that includes other files could name more.
fn configured(path: &Path, found: &mut RefsRead) -> io::Result<()> {
    if !exists(path) {
        return Ok(());
    }
    let text = text(path, MAX_FILE)?.to_ascii_lowercase();
    // A section may begin anywhere on a line; text in a value that looks like one counts as well.
    let begins = |word: &str| {
        let sections = text.split('[').skip(1);
        sections
            .filter(|rest| rest.trim_start().starts_with(word))
            .count() as u64
    };
    if begins("include") > 0 {
        return Err(io::Error::other("its configuration includes other files"));
    }
    found.remotes += begins("remote");
    Ok(())
}

fn entries(dir: &Path) -> io::Result<u64> {
    match exists(dir) {
        false => Ok(0),
        true => {
            is_plain_dir(dir)?;
            Ok(fs::read_dir(dir)?.count() as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(at: &Path) -> std::path::PathBuf {
        let dot_git = at.join(".git");
        fs::create_dir_all(dot_git.join("refs/heads/deep")).unwrap();
        fs::create_dir_all(dot_git.join("refs/tags")).unwrap();
        fs::write(dot_git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(dot_git.join("commondir"), ".\n").unwrap();
        fs::write(dot_git.join("config"), "[core]\n\tbare = false\n").unwrap();
        fs::write(dot_git.join("refs/heads/main"), "11\n").unwrap();
        fs::write(dot_git.join("refs/heads/deep/er"), "22\n").unwrap();
        let packed = "# pack-refs\n33 refs/heads/main\n44 refs/tags/v1\n^55\n";
        fs::write(dot_git.join("packed-refs"), packed).unwrap();
        dot_git
    }

    #[test]
    fn refs_are_read_as_git_has_them() {
        let temp = tempfile::tempdir().unwrap();
        let found = read(&made(temp.path()));
        let refs: Vec<(&str, &str)> = found.refs.iter().map(|(n, a)| (&**n, &**a)).collect();
        let want = [
            ("HEAD", "ref: refs/heads/main"),
            ("refs/heads/deep/er", "22"),
            ("refs/heads/main", "11"),
            ("refs/tags/v1", "44"),
        ];
        assert_eq!(refs, want);
        assert_eq!((found.remotes, found.unreadable), (0, None));
    }

    #[test]
    fn remotes_are_seen_wherever_they_stand() {
        for (name, text) in [
            ("config", "[remote \"o\"]\n\turl = x\n"),
            ("config", "[core]\n\tbare = false [ReMote \"o\"] url = x\n"),
            ("config.worktree", "[remote \"o\"]\n\turl = x\n"),
            ("remotes/o", "URL: x\n"),
            ("branches/o", "x\n"),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let path = made(temp.path()).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            assert_eq!(read(&temp.path().join(".git")).remotes, 1, "{name} {text}");
        }
    }

    #[test]
    fn what_is_not_plain_is_said_and_not_followed() {
        use std::os::unix::fs::symlink;
        type Change = fn(&Path);
        let rows: [(&str, Change); 9] = [
            ("a link as HEAD", |git| {
                fs::rename(git.join("HEAD"), git.join("aside")).unwrap();
                symlink("aside", git.join("HEAD")).unwrap();
            }),
            ("a link among refs", |git| {
                symlink("main", git.join("refs/heads/other")).unwrap()
            }),
            ("a directory that is a link", |git| {
                fs::rename(git.join("refs"), git.join("aside")).unwrap();
                symlink("aside", git.join("refs")).unwrap();
            }),
            ("another kind of store", |git| {
                fs::create_dir(git.join("reftable")).unwrap()
            }),
            ("another directory", |git| {
                fs::write(git.join("commondir"), "../other\n").unwrap()
            }),
            ("included configuration", |git| {
                fs::write(git.join("config"), "[include]\n\tpath = other\n").unwrap();
            }),
            ("a huge ref", |git| {
                fs::write(git.join("refs/heads/main"), vec![b'1'; 1 << 20]).unwrap();
            }),
            ("no HEAD", |git| fs::remove_file(git.join("HEAD")).unwrap()),
            ("a file in its place", |git| {
                fs::rename(git, git.with_extension("aside")).unwrap();
                fs::write(git, "gitdir: .git.aside\n").unwrap();
            }),
        ];
        for (what, change) in rows {
            let temp = tempfile::tempdir().unwrap();
            let dot_git = made(temp.path());
            change(&dot_git);
            assert!(read(&dot_git).unreadable.is_some(), "{what}");
        }
    }
}
