//! A commit as `git fast-import` reads it: the same bytes for the same tree, wherever it is made.

use std::io::{self, Write};

use cto_core::values::paths::TreePath;
use cto_core::workspace::landing::message::Who;

use super::{Commit, Edit};

pub(super) const AUTHOR: &str = "CTO Harness <harness@cto.invalid>";
pub(super) const WHEN: u64 = 946_684_800;

/// What a commit starts from.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    Nothing,
    /// Another commit, which it names.
    Parent(&'a Commit),
    /// The same, of a repository that is begun.
    Upon(&'a Commit),
    /// The files of another commit, which it does not name.
    Tree(&'a Commit),
    /// A commit of a person's repository, whose objects are at hand.
    On(&'a str),
}

/// What a commit says besides its files.
pub(super) struct Words<'a> {
    pub author: &'a Who,
    pub committer: &'a Who,
    /// Seconds since 1970.
    pub when: u64,
    pub message: &'a str,
}

pub(super) fn write_commit<'a>(
    mut out: impl Write,
    branch: &str,
    (base, words): (Base<'_>, Option<Words<'_>>),
    edits: impl IntoIterator<Item = (&'a TreePath, Edit<'a>)>,
) -> io::Result<()> {
    let message = match (&words, base) {
        (Some(words), _) => words.message,
        (None, Base::Parent(_)) => "result",
        (None, Base::Nothing | Base::Upon(_) | Base::Tree(_) | Base::On(_)) => "baseline",
    };
    let when = words.as_ref().map_or(WHEN, |words| words.when);
    let who = |who: Option<&Who>| match who {
        Some(Who { name, email }) => format!("{name} <{email}>"),
        None => AUTHOR.to_owned(),
    };
    let author = who(words.as_ref().map(|words| words.author));
    let committer = who(words.as_ref().map(|words| words.committer));
    write!(
        out,
        "commit {branch}\nmark :1\nauthor {author} {when} +0000\ncommitter {committer} {when} +0000\n"
    )?;
    write!(out, "data {}\n{message}\n", message.len())?;
    match base {
        Base::Nothing => {}
        Base::Parent(parent) | Base::Upon(parent) => writeln!(out, "from {}", parent.commit)?,
        Base::On(commit) => writeln!(out, "from {commit}")?,
        Base::Tree(same) => writeln!(out, "M 040000 {} \"\"", same.tree)?,
    }
    let (gone, written): (Vec<_>, Vec<_>) = edits
        .into_iter()
        .partition(|(_, edit)| matches!(edit, Edit::Delete));
    // Deletions first: a file may have become a directory.
    for (path, _) in gone {
        writeln!(out, "D {}", quoted(path))?;
    }
    for (path, edit) in written {
        let (kind, bytes, mut content) = match edit {
            Edit::Delete => continue,
            Edit::Submodule { commit } => {
                writeln!(out, "M 160000 {commit} {}", quoted(path))?;
                continue;
            }
            Edit::Write {
                kind,
                bytes,
                content,
            } => (kind, bytes, content),
        };
        writeln!(
            out,
            "M {} inline {}\ndata {bytes}",
            kind.git_mode(),
            quoted(path)
        )?;
        let copied = io::copy(&mut (&mut content).take(bytes), &mut out)?;
        if copied != bytes {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{path} changed while it was read"),
            ));
        }
        out.write_all(b"\n")?;
    }
    out.write_all(b"\nget-mark :1\nls :1 \"\"\ndone\n")?;
    out.flush()
}

use std::io::Read as _;

/// A path as fast-import reads it: always quoted, so that no name can end its line.
pub(super) fn quoted(path: &TreePath) -> String {
    let mut out = String::from("\"");
    for byte in path.as_bytes() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(char::from(*byte)),
            other => out.push_str(&format!("\\{other:03o}")),
        }
    }
    out.push('"');
    out
}
