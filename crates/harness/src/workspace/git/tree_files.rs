//! Files of a commit's tree, streamed out of git's objects: no checkout, no filter, no attribute.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::FileKind;

use super::{GitError, ObjectFormat, SourceRepo, last_line};

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
    /// What git is asked for: the object's own name, or `TREE:PATH`.
    id: Vec<u8>,
}

type Listing = Arc<(Vec<Listed>, Vec<Submodule>)>;

/// What git said of trees and files by their names, which are made of what they hold: no answer can
/// become another. A run makes many copies of two trees, and each question is a process.
#[derive(Default)]
pub struct Answers(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    listings: BTreeMap<String, Listing>,
    contents: BTreeMap<Vec<u8>, Arc<[u8]>>,
    bytes: usize,
}

/// So much of files is kept; what a larger repository has beyond it is asked for each time.
const KEPT_BYTES: usize = 4 << 20;

impl Answers {
    /// As the function of the same name, with what is known already.
    pub fn each_file(
        &self,
        git: &dyn Fn() -> Command,
        tree: &str,
        wanted: &Wanted<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<(), GitError> {
        let known = self.kept().listings.get(tree).cloned();
        let listing = match known {
            Some(listing) => listing,
            None => {
                let listing = Arc::new(list(git(), tree)?);
                self.kept()
                    .listings
                    .insert(tree.to_owned(), listing.clone());
                listing
            }
        };
        let files: Vec<&Listed> = listing.0.iter().filter(|file| wanted(&file.path)).collect();
        self.read(git, &files, visit)
    }

    /// Files that are known by name, each with the tree it is a part of: no tree is listed, however large
    /// it is. `false` where one has a name that cannot be asked for.
    pub fn named_files(
        &self,
        git: &dyn Fn() -> Command,
        files: &[(&str, &TreePath, FileKind)],
        visit: &mut Visit<'_>,
    ) -> Result<bool, GitError> {
        let mut paths = files.iter().map(|(_, path, _)| path.as_bytes());
        if paths.any(|path| path.contains(&b'\n')) {
            return Ok(false);
        }
        let listed = |(tree, path, kind): &(&str, &TreePath, FileKind)| Listed {
            id: [tree.as_bytes(), b":", path.as_bytes()].concat(),
            path: (*path).clone(),
            kind: *kind,
        };
        let files: Vec<Listed> = files.iter().map(listed).collect();
        let files: Vec<&Listed> = files.iter().collect();
        self.read(git, &files, visit).map(|()| true)
    }

    fn read(
        &self,
        git: &dyn Fn() -> Command,
        files: &[&Listed],
        visit: &mut Visit<'_>,
    ) -> Result<(), GitError> {
        let known: Option<Vec<Arc<[u8]>>> = {
            let kept = self.kept();
            let content = |file: &&Listed| kept.contents.get(&file.id).cloned();
            files.iter().map(content).collect()
        };
        if let Some(known) = known {
            return files.iter().zip(known).try_for_each(|(file, content)| {
                visit(&file.path, file.kind, &mut &content[..])
                    .map_err(|source| GitError::Layout { source })
            });
        }
        stream(git(), files, &mut |file, content| {
            let mut passing = Passing::new(content, KEPT_BYTES);
            visit(&file.path, file.kind, &mut passing)?;
            if let Some(content) = passing.whole()? {
                self.keep(&file.id, content);
            }
            Ok(())
        })
    }

    fn keep(&self, id: &[u8], content: Vec<u8>) {
        let mut kept = self.kept();
        let bytes = kept.bytes.saturating_add(content.len());
        if bytes <= KEPT_BYTES && !kept.contents.contains_key(id) {
            kept.bytes = bytes;
            kept.contents.insert(id.to_owned(), content.into());
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Content on its way to whoever visits it, kept while it is small.
struct Passing<'a> {
    from: &'a mut dyn Read,
    seen: Option<Vec<u8>>,
    most: usize,
}

impl<'a> Passing<'a> {
    fn new(from: &'a mut dyn Read, most: usize) -> Self {
        Self {
            from,
            seen: Some(Vec::new()),
            most,
        }
    }

    /// All of it, with what was left unread; nothing if it is large.
    fn whole(mut self) -> io::Result<Option<Vec<u8>>> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(self.seen)
    }
}

impl Read for Passing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        if let Some(seen) = &mut self.seen {
            match seen.len() + read <= self.most {
                true => seen.extend_from_slice(&buffer[..read]),
                false => self.seen = None,
            }
        }
        Ok(read)
    }
}

/// Visits the wanted files of `tree` in order and returns the submodules it names. `git` makes a
/// command that knows where the objects are.
pub fn each_file(
    git: &dyn Fn() -> Command,
    tree: &str,
    wanted: &Wanted<'_>,
    visit: &mut Visit<'_>,
) -> Result<Vec<Submodule>, GitError> {
    let (files, submodules) = list(git(), tree)?;
    let files: Vec<&Listed> = files.iter().filter(|file| wanted(&file.path)).collect();
    stream(git(), &files, &mut |file, content| {
        visit(&file.path, file.kind, content)
    })?;
    Ok(submodules)
}

impl SourceRepo {
    /// One file of a tree this repository holds.
    pub fn file_of(
        &self,
        tree: &str,
        (path, kind): (&TreePath, FileKind),
        visit: &mut Visit<'_>,
    ) -> Result<(), GitError> {
        let named = [(tree, path, kind)];
        let git = || self.command();
        match Answers::default().named_files(&git, &named, visit)? {
            true => Ok(()),
            false => self.files_of(tree, &|other| other == path, visit).map(drop),
        }
    }
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
            TreePath::of(&line[tab + 1..]),
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
        files.push(Listed {
            path,
            kind,
            id: id.into_bytes(),
        });
    }
    Ok((files, submodules))
}

type Take<'a> = dyn FnMut(&Listed, &mut dyn Read) -> io::Result<()> + 'a;

fn stream(mut command: Command, files: &[&Listed], take: &mut Take<'_>) -> Result<(), GitError> {
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
            let ids = files.iter().flat_map(|file| [file.id.as_slice(), b"\n"]);
            let ids: Vec<u8> = ids.collect::<Vec<_>>().concat();
            // A git that went away shows as an answer that never came.
            let _ = stdin.write_all(&ids);
        });
        let Some(stdout) = stdout else { return Ok(()) };
        let mut answers = BufReader::with_capacity(1 << 16, stdout);
        files
            .iter()
            .try_for_each(|file| one_file(&mut answers, file, take))
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
    take: &mut Take<'_>,
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
    let bytes = size_of_blob(&header, &file.id);
    let header = String::from_utf8_lossy(&header).trim_end().to_owned();
    let Some(bytes) = bytes else {
        return Err(GitError::Answer {
            operation: OPERATION,
            answer: header,
        });
    };
    let mut content = answers.by_ref().take(bytes);
    take(file, &mut content).map_err(|source| GitError::Layout { source })?;
    io::copy(&mut content, &mut io::sink()).map_err(pipe)?;
    let mut end = [0u8; 1];
    answers.read_exact(&mut end).map_err(pipe)
}

/// How long the blob is that git is about to print: `NAME blob SIZE`, and the name is the one asked for,
/// or, where a path of a tree was, that of an object.
fn size_of_blob(header: &[u8], asked: &[u8]) -> Option<u64> {
    let header = std::str::from_utf8(header).ok()?.strip_suffix('\n')?;
    let (name, size) = header.split_once(" blob ")?;
    let by_path = asked.contains(&b':');
    let fits = match by_path {
        true => ObjectFormat::of_id(name).is_some(),
        false => name.as_bytes() == asked,
    };
    size.parse().ok().filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_kept_whole_however_much_of_it_was_read_and_only_while_it_is_small() {
        for read in [0, 3, 10] {
            let mut content: &[u8] = b"0123456789";
            let mut passing = Passing::new(&mut content, 10);
            passing
                .by_ref()
                .take(read)
                .read_to_end(&mut Vec::new())
                .unwrap();
            assert_eq!(passing.whole().unwrap().unwrap(), b"0123456789", "{read}");
        }
        let mut content: &[u8] = b"0123456789";
        assert_eq!(Passing::new(&mut content, 9).whole().unwrap(), None);
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        let answers = Answers::default();
        answers.keep(b"a", vec![0; KEPT_BYTES - 1]);
        answers.keep(b"a", vec![0; KEPT_BYTES - 1]);
        answers.keep(b"b", vec![0; 2]);
        answers.keep(b"c", vec![0; 1]);
        let kept = answers.kept();
        let names: Vec<&[u8]> = kept.contents.keys().map(Vec::as_slice).collect();
        assert_eq!((names, kept.bytes), (vec![&b"a"[..], b"c"], KEPT_BYTES));
    }

    #[test]
    fn only_the_blob_that_was_asked_for_is_read() {
        let id = "1".repeat(40);
        let says = |header: &str, asked: &str| size_of_blob(header.as_bytes(), asked.as_bytes());
        let tree = format!("{}:a blob 7", "2".repeat(40));
        assert_eq!(says(&format!("{id} blob 5\n"), &id), Some(5));
        assert_eq!(says(&format!("{id} blob 5\n"), &tree), Some(5));
        for (header, asked) in [
            (format!("{id} blob 5\n"), "2".repeat(40)),
            (format!("{id} tree 5\n"), tree.clone()),
            (format!("{tree} missing\n"), tree.clone()),
            (format!("{id} blob 5"), id.clone()),
            (format!("{id} blob -5\n"), id.clone()),
            (String::new(), id.clone()),
        ] {
            assert_eq!(says(&header, &asked), None, "{header:?} {asked}");
        }
    }
}
