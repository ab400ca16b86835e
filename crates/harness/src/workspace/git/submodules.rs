//! Files of checked-out submodules, read out of their own objects and laid into copies. Which objects
//! those are, only the place of a submodule in the work tree says, and only where that leads into the
//! repository's own git directory without a link on the way; `.gitmodules` is never asked.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use cto_core::containment::masks;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{FileKind, Tree};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

use super::source::SourceRepo;
use super::tree_files::{self, Submodule};
use super::{HarnessRepo, scrubbed};
use crate::workspace::WorkspaceError;
use crate::workspace::on_disk::{self, Content};

/// What came along of submodules.
#[derive(Default, Debug)]
pub struct ModuleFiles {
    dir: PathBuf,
    /// All files, under their paths in the repository around.
    pub files: Tree,
    /// Where each of them is, those in others included.
    roots: Vec<TreePath>,
    /// Submodules without files in the copies, and why.
    pub left_out: Vec<(TreePath, &'static str)>,
}

impl ModuleFiles {
    /// Leaves out what engines are never shown of a repository.
    fn without_masked(mut self) -> io::Result<Self> {
        let masked = masks::decide_masks(&self.files, &[], &[]).masked;
        for (path, _) in masks::seen_of_masked(&self.files, &masked) {
            fs::remove_file(on_disk::locate(&self.dir, &path))?;
            self.files.remove(&path);
        }
        Ok(self)
    }

    /// Which of these new paths a submodule's own ignore rules cover, as they came along. Rules of
    /// the repository around it say nothing there, nor do those of one around another.
    pub fn ignored(
        &self,
        repo: &HarnessRepo,
        new: &[TreePath],
        work: &Path,
    ) -> Result<BTreeSet<TreePath>, WorkspaceError> {
        let mut covered = BTreeSet::new();
        for (number, root) in self.roots.iter().enumerate() {
            let within = |path: &TreePath| {
                let around = self.roots.iter().filter(|root| below(root, path).is_some());
                let innermost = around.max_by_key(|root| root.as_bytes().len());
                below(root, path).filter(|_| innermost == Some(root))
            };
            let asked: Vec<TreePath> = new.iter().filter_map(within).collect();
            let rules = self
                .files
                .iter()
                .filter(|(path, entry)| on_disk::holds_rules(path, entry));
            let rules: Vec<_> = rules
                .filter_map(|(path, entry)| Some((within(path)?, path, entry)))
                .collect();
            if asked.is_empty() || rules.is_empty() {
                continue;
            }
            let dir = work.join(format!("module-rules-{number}"));
            if !dir.exists() {
                fs::create_dir(&dir).map_err(WorkspaceError::Io)?;
                for (path, of, entry) in rules {
                    let mut content = Content::of(&self.dir, of, entry.kind);
                    on_disk::write_entry(&dir, &path, entry.kind, &mut content)
                        .map_err(WorkspaceError::Io)?;
                }
            }
            let found = repo.ignored(&dir, &asked)?;
            covered.extend(found.iter().map(|path| joined(root, path)));
        }
        Ok(covered)
    }

    /// Puts the files into a copy in which nobody was yet. Where its tree has something else on the
    /// way to them, a link above all, they are not there.
    pub fn lay(&self, copy: &Path) -> io::Result<()> {
        for (path, entry) in &self.files {
            let (from, to) = (
                on_disk::locate(&self.dir, path),
                on_disk::locate(copy, path),
            );
            match on_disk::make_parent(copy, &to) {
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => continue,
                made => made?,
            }
            match entry.kind {
                FileKind::Symlink => std::os::unix::fs::symlink(fs::read_link(from)?, to)?,
                FileKind::Regular | FileKind::Executable => fs::copy(from, to).map(drop)?,
            }
        }
        Ok(())
    }
}

/// Submodules in submodules, so many deep.
const DEEPEST: usize = 8;
/// A `.git` file is one line.
const LONGEST: u64 = 8192;

const NOT_THERE: &str = "it is not checked out";
const ELSEWHERE: &str = "its git directory is not in this repository's own";
const NO_COMMIT: &str = "its commit is not in its git directory";
const FOREIGN: &str = "its git directory belongs to somebody else";
const TOO_DEEP: &str = "it lies too deep in other submodules";

impl SourceRepo {
    /// Lays out below `dir` what these submodules hold at the commits that HEAD names.
    pub fn lay_out_submodules(&self, named: Vec<Submodule>, dir: &Path) -> io::Result<ModuleFiles> {
        let mut found = ModuleFiles {
            dir: dir.to_owned(),
            ..ModuleFiles::default()
        };
        if named.is_empty() {
            return Ok(found);
        }
        fs::create_dir(dir)?;
        let mut pending: Vec<(Submodule, usize)> = named.into_iter().map(|m| (m, 0)).collect();
        while let Some((module, depth)) = pending.pop() {
            match self.lay_out_one(&module, depth, dir) {
                Ok((files, below)) => {
                    found.files.extend(files);
                    found.roots.push(module.path);
                    pending.extend(below.into_iter().map(|module| (module, depth + 1)));
                }
                Err(why) => found.left_out.push((module.path, why)),
            }
        }
        found.left_out.sort();
        found.without_masked()
    }

    fn lay_out_one(
        &self,
        module: &Submodule,
        depth: usize,
        dir: &Path,
    ) -> Result<(Tree, Vec<Submodule>), &'static str> {
        if depth >= DEEPEST {
            return Err(TOO_DEEP);
        }
        // Held open, and entered by git as such: whatever becomes of the path, these are read.
        let objects = self.objects_of(module)?;
        let place = format!("/proc/self/fd/{}", objects.as_raw_fd());
        let git = || -> Command {
            let mut command = scrubbed(&self.git);
            command
                .current_dir(&place)
                .env("GIT_DIR", &self.ours)
                .env("GIT_OBJECT_DIRECTORY", ".");
            command
        };
        let within = |path: &TreePath| joined(&module.path, path);
        let mut files = Tree::new();
        let laid_out = tree_files::each_file(
            &git,
            &module.commit,
            &|_| true,
            &mut |path, kind, content| {
                let path = within(path);
                let entry = on_disk::write_entry(dir, &path, kind, content)?;
                files.insert(path, entry);
                Ok(())
            },
        );
        // A part of it would be taken for all of it: only what is told of here is laid into copies.
        let below = laid_out.map_err(|_| NO_COMMIT)?;
        let inner = below.into_iter().map(|inner| Submodule {
            path: within(&inner.path),
            commit: inner.commit,
        });
        let inner = inner.collect();
        Ok((files, inner))
    }

    /// The directory with a submodule's objects.
    fn objects_of(&self, module: &Submodule) -> Result<OwnedFd, &'static str> {
        let top = directory(CWD, &self.top, ResolveFlags::empty()).ok_or(NOT_THERE)?;
        let within = Path::new(std::ffi::OsStr::from_bytes(module.path.as_bytes()));
        let dot_git = within.join(".git");
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let found = openat2(&top, &dot_git, flags, Mode::empty(), no_links());
        let found = found.map_err(|_| NOT_THERE)?;
        let kind = fstat(&found).map(|meta| FileType::from_raw_mode(meta.st_mode));
        let objects = match kind {
            Ok(FileType::Directory) => directory(&found, "objects", no_links()),
            Ok(FileType::RegularFile) => {
                let mut text = Vec::new();
                let file = fs::File::from(found);
                let read = file.take(LONGEST).read_to_end(&mut text);
                let to = read.ok().and_then(|_| points_to(&text)).ok_or(ELSEWHERE)?;
                self.among_modules(&self.top.join(within).join(to))
            }
            _ => None,
        };
        let objects = objects.ok_or(ELSEWHERE)?;
        let owner = fstat(&objects).map(|meta| meta.st_uid);
        let operator = rustix::process::geteuid();
        match operator.is_root() || owner == Ok(operator.as_raw()) {
            true => Ok(objects),
            false => Err(FOREIGN),
        }
    }

    /// The objects of a git directory that lies where git keeps those of submodules.
    fn among_modules(&self, git_dir: &Path) -> Option<OwnedFd> {
        let git_dir = plain(git_dir)?;
        [&self.common_dir, &self.git_dir].iter().find_map(|own| {
            let name = git_dir.strip_prefix(own.join("modules")).ok()?;
            let named = name.components().next().is_some();
            let own = directory(CWD, own.as_path(), ResolveFlags::empty()).filter(|_| named)?;
            directory(
                &own,
                Path::new("modules").join(name).join("objects"),
                no_links(),
            )
        })
    }
}

fn joined(dir: &TreePath, path: &TreePath) -> TreePath {
    TreePath::new([dir.as_bytes(), b"/", path.as_bytes()].concat())
}

/// A path as it is below a directory.
fn below(dir: &TreePath, path: &TreePath) -> Option<TreePath> {
    let rest = path.as_bytes().strip_prefix(dir.as_bytes())?;
    rest.strip_prefix(b"/").map(TreePath::new)
}

fn no_links() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS
}

fn directory(
    at: impl std::os::fd::AsFd,
    path: impl AsRef<Path>,
    how: ResolveFlags,
) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match how.is_empty() {
        true => openat(at, path.as_ref(), flags, Mode::empty()).ok(),
        false => openat2(at, path.as_ref(), flags, Mode::empty(), how).ok(),
    }
}

/// Where a `.git` file points to.
fn points_to(text: &[u8]) -> Option<PathBuf> {
    let path = text.strip_prefix(b"gitdir: ")?;
    let path = path.strip_suffix(b"\n").unwrap_or(path);
    let good = !path.is_empty() && !path.contains(&0) && !path.contains(&b'\n');
    good.then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

/// A path without `.` and `..`, by its words alone.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop().then_some(())?;
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_file_is_one_line_that_points() {
        let read = |text: &str| points_to(text.as_bytes()).map(|path| path.display().to_string());
        assert_eq!(read("gitdir: ../x\n").as_deref(), Some("../x"));
        assert_eq!(read("gitdir: ../x").as_deref(), Some("../x"));
        for text in [
            "",
            "gitdir:",
            "gitdir: ",
            "x",
            "gitdir: a\nb\n",
            "gitdir: a\0b",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_path_is_followed_by_its_words() {
        let of = |path: &str| plain(Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(
            of("/r/m/../.git/modules/m").as_deref(),
            Some("/r/.git/modules/m")
        );
        assert_eq!(of("/r/./m/../../x").as_deref(), Some("/x"));
        assert_eq!(of("/../x"), None);
    }
}
