//! What is remembered of repositories: a private file of the state home for each, named by the digest of its path. What
//! the file says is read as if anybody had written it; what cannot be read is refused, and never passed over.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cto_core::operator::project::memory::{MOST_BYTES, Memory};
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;

use crate::host::failure::Failure;
use crate::host::{Home, files, make_private_dir, random_name};

/// What is remembered of the repository at one path.
pub struct Project<'h> {
    home: &'h Home,
    path: TreePath,
}

impl<'h> Project<'h> {
    /// `top` is the top of the work tree, without links.
    pub fn at(home: &'h Home, top: &Path) -> Self {
        Self {
            home,
            path: TreePath::new(top.as_os_str().as_bytes()),
        }
    }

    pub fn path(&self) -> &TreePath {
        &self.path
    }

    fn place(&self) -> PathBuf {
        let name = Digest::of(self.path.as_bytes()).to_hex();
        self.home.projects().join(format!("{name}.json"))
    }

    /// What is remembered, whatever lies at the path now. Nothing is no failure; what cannot be believed is one.
    pub fn read(&self) -> Result<Option<Memory>, Failure> {
        let place = self.place();
        let refused = |why: String| {
            Failure::usage(
                "project_unreadable",
                "what is remembered of this repository cannot be believed",
            )
            .at(place.display().to_string())
            .reason(why)
            .so("nothing of it is used, and nothing ran")
            .hint("`cto project forget` removes it; then it is asked anew")
        };
        let file = match files::open_regular(&place) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error.to_string())),
        };
        let meta = file
            .metadata()
            .map_err(|error| refused(error.to_string()))?;
        let own = rustix::process::geteuid().as_raw();
        if meta.uid() != own || meta.mode() & 0o022 != 0 {
            return Err(refused("others could have written it".into()));
        }
        let bytes =
            files::read_open(file, MOST_BYTES).map_err(|error| refused(error.to_string()))?;
        Memory::read(&bytes, &self.path).map(Some).map_err(refused)
    }

    /// Changes what is remembered, one process after the other.
    pub fn change(
        &self,
        change: impl FnOnce(Option<Memory>) -> Result<Memory, Failure>,
    ) -> Result<(), Failure> {
        let unwritten = |error: &dyn std::error::Error| {
            Failure::internal("project_unwritten", "it cannot be remembered")
                .at(self.home.projects().display().to_string())
                .because(error)
                .so("what was remembered before still is")
        };
        make_private_dir(&self.home.projects()).map_err(|error| unwritten(&error))?;
        let held = File::open(self.home.projects()).map_err(|error| unwritten(&error))?;
        // Held until the function ends, and let go with the process whatever becomes of it.
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| unwritten(&error))?;
        let memory = change(self.read()?)?;
        let bytes = memory.to_bytes().map_err(|error| unwritten(&error))?;
        let place = self.place();
        let aside = place.with_extension(random_name(8)?);
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)
            .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&aside, &place));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written.map_err(|error| unwritten(&error))
    }

    /// Forgets it, readable or not; false where there was nothing.
    pub fn forget(&self) -> Result<bool, Failure> {
        match fs::remove_file(self.place()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(
                Failure::internal("project_unwritten", "it cannot be forgotten")
                    .at(self.place().display().to_string())
                    .because(&error),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use cto_core::operator::project::memory::{Kept, Repository, Values};

    use super::*;

    fn repository() -> Repository {
        Repository {
            git_dir: TreePath::new(b"/r/.git".to_vec()),
            git_dir_inode: "1".into(),
            first_commit: "a".repeat(40),
            known_head: "a".repeat(40),
        }
    }

    fn remember(project: &Project<'_>, key: &str, value: &str) -> Result<(), Failure> {
        project.change(|known| {
            let fresh = || Memory::new(project.path().clone(), repository());
            let mut memory = known.unwrap_or_else(fresh);
            let kept = Kept {
                values: vec![value.to_owned()],
                from: "typed".into(),
            };
            memory.take(Values::from([(key.to_owned(), kept)])).unwrap();
            Ok(memory)
        })
    }

    #[test]
    fn a_memory_is_private_whole_and_not_obeyed_when_edited() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home {
            root: dir.path().to_owned(),
            runs: dir.path().join("runs"),
        };
        let project = Project::at(&home, Path::new("/r"));
        assert!(project.read().unwrap().is_none());
        assert!(!project.forget().unwrap());
        remember(&project, "test", "make test").unwrap();
        let mode = || fs::metadata(project.place()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        let good = fs::read(project.place()).unwrap();
        assert!(
            Project::at(&home, Path::new("/s"))
                .read()
                .unwrap()
                .is_none()
        );
        // Edited, garbled, too long, a link, of others: refused, and changed by nobody.
        let refused = || {
            assert_eq!(project.read().unwrap_err().code, "project_unreadable");
            assert!(remember(&project, "setup", "true").is_err());
        };
        for bad in [
            b"{}".to_vec(),
            vec![b' '; (MOST_BYTES + 1) as usize],
            Vec::new(),
        ] {
            fs::write(project.place(), bad).unwrap();
            refused();
        }
        fs::write(project.place(), &good).unwrap();
        fs::set_permissions(project.place(), fs::Permissions::from_mode(0o622)).unwrap();
        refused();
        fs::remove_file(project.place()).unwrap();
        let elsewhere = dir.path().join("elsewhere.json");
        fs::write(&elsewhere, &good).unwrap();
        std::os::unix::fs::symlink(&elsewhere, project.place()).unwrap();
        refused();
        assert!(project.forget().unwrap());
        assert!(elsewhere.exists());
    }

    #[test]
    fn two_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home {
            root: dir.path().to_owned(),
            runs: dir.path().join("runs"),
        };
        let (home, rows) = (&home, ["test", "setup", "allow", "input"]);
        std::thread::scope(|scope| {
            for key in rows {
                scope.spawn(move || {
                    remember(&Project::at(home, Path::new("/r")), key, "value").unwrap();
                });
            }
        });
        let memory = Project::at(home, Path::new("/r")).read().unwrap().unwrap();
        assert_eq!(memory.remembered.len(), rows.len());
        assert_eq!(fs::read_dir(home.projects()).unwrap().count(), 1);
    }
}
