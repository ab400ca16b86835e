//! The state of every file of a work tree at one look. To count which are not what they were at another:
//! for words alone, since whether a repository changed says its fingerprint. And to know without git that
//! its status is what it was: where no file, no directory that git reads and no ignore rule changed, nor
//! what it compares them with, it would say the same once more.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::task::source::SourceLook;
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::{Seen, StateDigest};
use cto_core::workspace::times::Time;
use rustix::fs::AtFlags;

use super::command::asked;
use super::source::{SourceError, SourceRepo, state};
use crate::host::workers;
use crate::workspace::environments::state::{seen, seen_of};
use crate::workspace::stamping;

/// By a short hash of each path, so that a large repository costs little.
#[derive(Clone, Debug, Default)]
pub struct FileStates(Vec<(u64, u64)>);

impl FileStates {
    /// A file that git knows; one that is not there has no state.
    fn take_tracked(&mut self, path: &[u8], seen: Option<&Seen>) {
        let state = seen.map_or(0, |seen| {
            short((
                seen.mode,
                seen.size,
                seen.inode,
                seen.modified,
                seen.changed,
            ))
        });
        self.0.push((short(path), state));
    }

    /// One that git does not know yet.
    pub fn take_untracked(&mut self, path: &TreePath, state: &[u8]) {
        self.0.push((short(path.as_bytes()), short(state)));
    }

    /// How many files came, went or are others.
    pub fn differences(&self, other: &Self) -> u64 {
        let (before, after) = (self.by_path(), other.by_path());
        let gone = before.keys().filter(|path| !after.contains_key(*path));
        let others = after
            .iter()
            .filter(|(path, state)| before.get(*path) != Some(*state));
        (gone.count() + others.count()) as u64
    }

    /// What was told first of a path counts.
    fn by_path(&self) -> BTreeMap<u64, u64> {
        let mut found = BTreeMap::new();
        for (path, state) in &self.0 {
            found.entry(*path).or_insert(*state);
        }
        found
    }
}

fn short(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// What an index holds, as `ls-files --stage -v -z` tells it, and what the kernel says of each file that
/// it names.
pub(super) struct Staged {
    /// Of all of that.
    pub digest: Digest,
    pub states: FileStates,
    pub files: usize,
    /// When the kernel last saw one of them change.
    changed: Time,
    /// Every directory above one of them.
    dirs: BTreeSet<PathBuf>,
}

impl Staged {
    /// By so many threads.
    pub fn read(top: &Path, told: &[u8], threads: usize) -> std::io::Result<Self> {
        const AT_A_TIME: usize = 4096;
        let top = File::open(top)?;
        let lines: Vec<&[u8]> = told
            .split(|b| *b == 0)
            .filter(|line| !line.is_empty())
            .collect();
        let parts: Vec<&[&[u8]]> = lines.chunks(AT_A_TIME).collect();
        let look = |line: &&[u8]| {
            // One that is not there has no state.
            let stat = rustix::fs::statat(&top, path_of(line), AtFlags::SYMLINK_NOFOLLOW);
            stat.ok().map(|stat| seen(&stat))
        };
        let seen = workers::for_all(threads, &parts, |lines| {
            lines.iter().map(look).collect::<Vec<_>>()
        });
        let (mut digest, mut states) = (StateDigest::default(), FileStates::default());
        let (mut changed, mut dirs) = ((0, 0), BTreeSet::from([PathBuf::new()]));
        let mut last: &[u8] = b"";
        for (line, stat) in lines.iter().zip(seen.iter().flatten()) {
            digest.take_name(line);
            if let Some(stat) = stat {
                digest.take(b"", stat);
                changed = changed.max(stat.changed);
            }
            let path = path_of(line);
            states.take_tracked(path, stat.as_ref());
            let dir = path.iter().rposition(|byte| *byte == b'/');
            let dir = &path[..dir.unwrap_or_default()];
            if dir != last {
                let above = Path::new(OsStr::from_bytes(dir)).ancestors();
                dirs.extend(above.map(Path::to_owned));
                last = dir;
            }
        }
        Ok(Self {
            digest: digest.finish(),
            states,
            files: lines.len(),
            changed,
            dirs,
        })
    }
}

fn path_of(line: &[u8]) -> &[u8] {
    let tab = line.iter().position(|byte| *byte == b'\t');
    tab.map_or(line, |tab| &line[tab + 1..])
}

/// A work tree that git called clean: every place whose change could make it call it something else.
#[derive(Clone, Debug)]
pub(super) struct Clean {
    staged: Digest,
    /// Directories that git reads, and the rules in them.
    places: Vec<(PathBuf, Seen)>,
}

/// What a look found of the work tree, for one that comes later.
pub struct LookedAt {
    /// Of every file, to say how many are others.
    pub states: FileStates,
    /// Where all of it was clean.
    pub(super) clean: Option<Clean>,
    /// What the operator's own ignore file was.
    pub(super) rules: Option<Vec<u8>>,
}

impl SourceRepo {
    /// By so many threads.
    pub(super) fn staged(&self, threads: usize) -> Result<Staged, SourceError> {
        let mut staged = self.command();
        // With the letters that say what git was told not to look at.
        staged.args(["ls-files", "--stage", "-v", "-z"]);
        let told = asked("ls-files", staged)?;
        Staged::read(&self.top, &told, threads).map_err(SourceError::Index)
    }

    /// A later look without asking git for the status, where it would say once more that all is clean:
    /// nothing that it reads changed since the first one.
    pub fn still_clean(
        &self,
        excludes: Option<&Path>,
        (first, look, looked): (&Self, &SourceLook, &LookedAt),
    ) -> Result<Option<SourceLook>, SourceError> {
        let Some(clean) = &looked.clean else {
            return Ok(None);
        };
        let seen_alike = (&self.head, &self.tree, &self.view, &self.top)
            == (&first.head, &first.tree, &first.view, &first.top)
            && excludes.map(state) == looked.rules;
        if !seen_alike {
            return Ok(None);
        }
        const THREADS: usize = 4;
        let refs = self.refs()?;
        let staged = self.staged(workers::cores().min(THREADS))?;
        let now = self.seen_as(&refs.answer()?, &staged, b"", Vec::new());
        let still = clean.is_still(&self.top, &staged) && now == *look;
        Ok(still.then_some(now))
    }
}

/// Fewer files git has looked at sooner than two lists of directories are compared.
const WORTH_IT: usize = 2_000;
/// More directories that no file of the index lies in are left to git.
const MOST_OTHERS: usize = 4_000;

impl Clean {
    /// Of a look that began at `since`. Nothing where it pays not, or may have changed while git looked.
    /// `ignored` says which of some directories git does not read.
    pub fn of(
        top: &Path,
        staged: &Staged,
        since: Time,
        ignored: impl Fn(&[TreePath]) -> Option<Vec<TreePath>>,
    ) -> Option<Self> {
        if staged.files < WORTH_IT || stamping::may_be_since(staged.changed, since) {
            return None;
        }
        let (mut places, mut others) = (Vec::new(), Vec::new());
        for dir in &staged.dirs {
            let known = |path: &Path| staged.dirs.contains(path);
            others.extend(one(top, dir, known, &mut places)?);
        }
        let names: Vec<TreePath> = others.iter().map(|path| name_of(path)).collect();
        if !names.is_empty() {
            let ignored: BTreeSet<TreePath> = ignored(&names)?.into_iter().collect();
            others.retain(|path| !ignored.contains(&name_of(path)));
        }
        // What is not ignored as a whole may be by rules of its own.
        let mut count = 0;
        while let Some(dir) = others.pop() {
            count += 1;
            if count > MOST_OTHERS {
                return None;
            }
            others.extend(one(top, &dir, |_| false, &mut places)?);
        }
        let young = |(_, seen): &(PathBuf, Seen)| stamping::may_be_since(seen.changed, since);
        (!places.iter().any(young)).then_some(Self {
            staged: staged.digest,
            places,
        })
    }

    /// Is all of it as it was?
    pub fn is_still(&self, top: &Path, staged: &Staged) -> bool {
        let same = |(path, before): &(PathBuf, Seen)| {
            fs::symlink_metadata(top.join(path)).is_ok_and(|now| seen_of(&now) == *before)
        };
        self.staged == staged.digest && self.places.iter().all(same)
    }
}

/// Notes one directory with the rules in it; says which directories in it are not `known`. Another
/// repository is nobody's directory.
fn one(
    top: &Path,
    dir: &Path,
    known: impl Fn(&Path) -> bool,
    places: &mut Vec<(PathBuf, Seen)>,
) -> Option<Vec<PathBuf>> {
    let place = top.join(dir);
    let meta = fs::symlink_metadata(&place).ok()?;
    places.push((dir.to_owned(), seen_of(&meta)));
    let mut others = Vec::new();
    for entry in fs::read_dir(&place).ok()? {
        let entry = entry.ok()?;
        let (name, path) = (entry.file_name(), dir.join(entry.file_name()));
        if super::is_dot_git(&name) {
            if !dir.as_os_str().is_empty() {
                return None;
            }
        } else if name == ".gitignore" || name == ".gitattributes" {
            places.push((path, seen_of(&entry.metadata().ok()?)));
        } else if entry.file_type().ok()?.is_dir() && !known(&path) {
            others.push(path);
        }
    }
    Some(others)
}

fn name_of(path: &Path) -> TreePath {
    TreePath::of(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of many files, its index as git tells it, and a moment after all of it.
    fn house() -> (tempfile::TempDir, Vec<u8>, Time) {
        let house = tempfile::tempdir().unwrap();
        let mut told = Vec::new();
        for number in 0..WORTH_IT {
            let path = format!("src/part{}/file{number}", number / 100);
            fs::create_dir_all(house.path().join(&path).parent().unwrap()).unwrap();
            fs::write(house.path().join(&path), "x").unwrap();
            told.extend(format!("H 100644 0 0\t{path}\0").bytes());
        }
        for dir in ["empty", "node_modules/deep", ".venv/lib", ".git/refs"] {
            fs::create_dir_all(house.path().join(dir)).unwrap();
        }
        fs::write(house.path().join(".venv/.gitignore"), "*\n").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        (house, told, stamping::now())
    }

    fn clean(top: &Path, told: &[u8], since: Time) -> Option<Clean> {
        let staged = Staged::read(top, told, 2).unwrap();
        let ignored = |dirs: &[TreePath]| {
            let is = |path: &&TreePath| path.as_bytes() == b"node_modules";
            Some(dirs.iter().filter(is).cloned().collect())
        };
        Clean::of(top, &staged, since, ignored)
    }

    #[test]
    fn whatever_git_could_see_is_seen() {
        let (house, told, since) = house();
        let top = house.path();
        let still = |clean: &Clean| clean.is_still(top, &Staged::read(top, &told, 1).unwrap());
        let first = clean(top, &told, since).unwrap();
        assert!(still(&first));
        fs::write(top.join("node_modules/deep/x"), "ignored").unwrap();
        fs::write(top.join(".git/refs/x"), "not a file of it").unwrap();
        assert!(still(&first), "git looks at neither");
        let changes: [&dyn Fn(); 7] = [
            &|| fs::write(top.join("src/part3/file301"), "y").unwrap(),
            &|| fs::write(top.join("src/part3/new"), "").unwrap(),
            &|| fs::write(top.join("empty/new"), "").unwrap(),
            &|| fs::write(top.join(".venv/lib/new"), "").unwrap(),
            &|| fs::write(top.join(".venv/.gitignore"), "-\n").unwrap(),
            &|| fs::create_dir(top.join("other")).unwrap(),
            &|| fs::remove_file(top.join("src/part3/file302")).unwrap(),
        ];
        for (number, change) in changes.iter().enumerate() {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let before = clean(top, &told, stamping::now()).unwrap();
            change();
            assert!(!still(&before), "change {number}");
        }
    }

    #[test]
    fn what_may_have_changed_while_git_looked_is_left_to_git() {
        let (house, told, since) = house();
        let top = house.path();
        assert!(clean(top, &told, since).is_some());
        fs::write(top.join("empty/new"), "").unwrap();
        assert!(clean(top, &told, since).is_none(), "a directory");
        let (house, told, since) = self::house();
        let top = house.path();
        fs::write(top.join("src/part3/file301"), "y").unwrap();
        assert!(clean(top, &told, since).is_none(), "a file");
        let (house, told, since) = self::house();
        fs::create_dir_all(house.path().join(".venv/src/.git")).unwrap();
        assert!(clean(house.path(), &told, since).is_none(), "a repository");
        let few = b"H 100644 0 0\tsrc/part3/file301\0";
        assert!(clean(house.path(), few, since).is_none(), "too few to pay");
    }

    #[test]
    fn files_that_came_went_or_are_others_are_counted() {
        let (house, told, _) = house();
        let states = || Staged::read(house.path(), &told, 2).unwrap().states;
        let before = states();
        assert_eq!(before.differences(&states()), 0);
        fs::write(house.path().join("src/part0/file1"), "other").unwrap();
        fs::remove_file(house.path().join("src/part0/file2")).unwrap();
        let mut after = states();
        after.take_untracked(&TreePath::new("new"), b"state");
        assert_eq!(before.differences(&after), 3);
        assert_eq!(after.differences(&before), 3);
    }

    #[test]
    fn a_second_look_finds_what_git_would_tell() {
        let (house, ..) = house();
        let (top, aside) = (house.path().join("src"), tempfile::tempdir().unwrap());
        let git = |words: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.current_dir(&top).args(words);
            command.env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(command.status().unwrap().success());
        };
        git(&["init", "-q"]);
        fs::write(top.join(".gitignore"), "*.log\nout/\n").unwrap();
        git(&["add", "-A"]);
        let who = ["-c", "user.name=o", "-c", "user.email=o@example.invalid"];
        git(&[&who[..], &["commit", "-q", "-m", "start"]].concat());
        fs::create_dir_all(top.join("out/deep")).unwrap();
        let home = crate::host::Home {
            root: aside.path().join("state"),
            runs: aside.path().join("runs"),
        };
        let program = crate::host::programs::git(&crate::host::Env::default(), &home).unwrap();
        let mut number = 0;
        let mut open = || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            number += 1;
            let ours = aside.path().join(number.to_string());
            SourceRepo::open(&program, &top, &ours, None).unwrap()
        };
        let full = |repo: &SourceRepo| repo.look(None, super::super::OwnOutput::Counts).unwrap();
        let first = open();
        let (look, looked) = full(&first);
        assert!(looked.clean.is_some() && look.status.count == 0);
        let mut again = |what: &str, still: bool| {
            let repo = open();
            let quick = repo.still_clean(None, (&first, &look, &looked)).unwrap();
            assert_eq!(quick.is_some(), still, "{what}");
            assert_eq!(full(&repo).0 == look, still, "{what}");
            assert!(quick.is_none_or(|quick| quick == look), "{what}");
        };
        again("nothing", true);
        fs::write(top.join("out/deep/x"), "").unwrap();
        again("in what is ignored", true);
        fs::write(top.join("part1/new"), "").unwrap();
        again("a new file", false);
        fs::remove_file(top.join("part1/new")).unwrap();
        fs::write(top.join("part1/file100"), "other").unwrap();
        again("other bytes", false);
    }
}
