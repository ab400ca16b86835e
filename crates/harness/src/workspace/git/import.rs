//! A commit as `git fast-import` reads it: the same bytes for the same tree, wherever it is made.

use std::io::{self, Write};

use cto_core::values::paths::TreePath;

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
}

pub(super) fn write_commit<'a>(
    mut out: impl Write,
    branch: &str,
    base: Base<'_>,
    edits: impl IntoIterator<Item = (&'a TreePath, Edit<'a>)>,
) -> io::Result<()> {
    let message = match base {
        Base::Parent(_) => "result",
        Base::Nothing | Base::Upon(_) | Base::Tree(_) => "baseline",
    };
    write!(
        out,
        "commit {branch}\nmark :1\nauthor {AUTHOR} {WHEN} +0000\ncommitter {AUTHOR} {WHEN} +0000\n"
    )?;
    write!(out, "data {}\n{message}\n", message.len())?;
    match base {
        Base::Nothing => {}
        Base::Parent(parent) | Base::Upon(parent) => writeln!(out, "from {}", parent.commit)?,
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
