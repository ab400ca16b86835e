//! Files of a commit's tree, streamed out of git's objects: no checkout, no filter, no attribute.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::FileKind;

use super::{GitError, last_line};

/// What is done with each file: its place, its kind, its content.
pub type Visit<'a> = dyn FnMut(&TreePath, FileKind, &mut dyn Read) -> io::Result<()> + 'a;

/// Which files are read at all.
pub type Wanted<'a> = dyn Fn(&TreePath) -> bool + 'a;

/// A commit of another repository that a tree names. Its files are not part of the tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Submodule {
    pub path: TreePath,
    pub commit: String,
}

struct Listed {
    path: TreePath,
    kind: FileKind,
    id: String,
}

/// Visits the wanted files of `tree` in order and returns the submodules it names. `git` makes a
/// command that knows where the objects are.
pub fn each_file(
    git: &dyn Fn() -> Command,
    tree: &str,
    wanted: &Wanted<'_>,
    visit: &mut Visit<'_>,
) -> Result<Vec<Submodule>, GitError> {
    let (mut files, submodules) = list(git(), tree)?;
    files.retain(|file| wanted(&file.path));
    stream(git(), &files, visit)?;
    Ok(submodules)
}

fn list(mut command: Command, tree: &str) -> Result<(Vec<Listed>, Vec<Submodule>), GitError> {
    const OPERATION: &str = "ls-tree";
    command
        .args(["ls-tree", "-r", "-z", "--full-tree", tree])
        .stdout(Stdio::piped());
    let child = command.spawn().map_err(|source| GitError::Spawn {
        operation: OPERATION,
        source,
    })?;
    let output = child.wait_with_output().map_err(|source| GitError::Pipe {
        operation: OPERATION,
        source,
    })?;
    if !output.status.success() {
        return Err(GitError::Failed {
            operation: OPERATION,
            message: last_line(&output.stderr),
        });
    }
    let (mut files, mut submodules) = (Vec::new(), Vec::new());
    for line in output
        .stdout
        .split(|b| *b == 0)
        .filter(|line| !line.is_empty())
    {
        let strange = || GitError::Answer {
            operation: OPERATION,
            answer: String::from_utf8_lossy(line).into_owned(),
        };
        let tab = line.iter().position(|b| *b == b'\t').ok_or_else(strange)?;
        let (head, path) = (
            String::from_utf8_lossy(&line[..tab]).into_owned(),
            TreePath::new(&line[tab + 1..]),
        );
        let mut words = head.split(' ');
        let (mode, _, id) = (
            words.next(),
            words.next(),
            words.next().ok_or_else(strange)?.to_owned(),
        );
        let kind = match mode {
            Some("160000") => {
                submodules.push(Submodule { path, commit: id });
                continue;
            }
            Some("120000") => FileKind::Symlink,
            Some("100755") => FileKind::Executable,
            // Old trees hold 100664 and the like; git itself reads them as plain files.
            Some(mode) if mode.starts_with("100") => FileKind::Regular,
            _ => return Err(strange()),
        };
        files.push(Listed { path, kind, id });
    }
    Ok((files, submodules))
}

fn stream(mut command: Command, files: &[Listed], visit: &mut Visit<'_>) -> Result<(), GitError> {
    const OPERATION: &str = "cat-file";
    command
        .args(["cat-file", "--batch", "--buffer"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|source| GitError::Spawn {
        operation: OPERATION,
        source,
    })?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    // Asked from a thread: git answers while it reads, and both pipes are bounded.
    let read = std::thread::scope(|scope| {
        scope.spawn(move || {
            let Some(mut stdin) = stdin else { return };
            let ids: String = files.iter().map(|file| format!("{}\n", file.id)).collect();
            // A git that went away shows as an answer that never came.
            let _ = stdin.write_all(ids.as_bytes());
        });
        let Some(stdout) = stdout else { return Ok(()) };
        let mut answers = BufReader::with_capacity(1 << 16, stdout);
        files
            .iter()
            .try_for_each(|file| one_file(&mut answers, file, visit))
    });
    let output = child.wait_with_output().map_err(|source| GitError::Pipe {
        operation: OPERATION,
        source,
    })?;
    read?;
    match output.status.success() {
        true => Ok(()),
        false => Err(GitError::Failed {
            operation: OPERATION,
            message: last_line(&output.stderr),
        }),
    }
}

fn one_file(
    answers: &mut BufReader<impl Read>,
    file: &Listed,
    visit: &mut Visit<'_>,
) -> Result<(), GitError> {
    const OPERATION: &str = "cat-file";
    let pipe = |source| GitError::Pipe {
        operation: OPERATION,
        source,
    };
    let mut header = Vec::new();
    answers
        .by_ref()
        .take(200)
        .read_until(b'\n', &mut header)
        .map_err(pipe)?;
    let header = String::from_utf8_lossy(&header).trim_end().to_owned();
    let bytes = header
        .strip_prefix(&format!("{} blob ", file.id))
        .and_then(|size| size.parse::<u64>().ok());
    let Some(bytes) = bytes else {
        return Err(GitError::Answer {
            operation: OPERATION,
            answer: header,
        });
    };
    let mut content = answers.by_ref().take(bytes);
    visit(&file.path, file.kind, &mut content).map_err(|source| GitError::Layout { source })?;
    io::copy(&mut content, &mut io::sink()).map_err(pipe)?;
    let mut end = [0u8; 1];
    answers.read_exact(&mut end).map_err(pipe)
}
