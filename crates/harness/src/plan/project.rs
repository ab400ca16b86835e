//! A repository before anything is asked of it: which one it is, and what its files propose. It is only read, and nothing
//! of it is executed.

use std::fs;
use std::path::Path;

use cto_core::operator::project::memory::Repository;
use cto_core::operator::project::propose::{self, Proposal, Seen};

use crate::host::failure::chain;
use crate::host::places::Places;
use crate::host::{Env, Home, programs};
use crate::workspace::git::SourceRepo;
use crate::workspace::own_dir::OwnDir;

/// An opened repository. Our side of it goes when this does.
pub struct ProjectView {
    repo: SourceRepo,
    _ours: OwnDir,
}

/// Virtual environments by the names people give them.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

impl ProjectView {
    pub fn open(dir: &Path, env: &Env, home: &Home) -> Result<Self, String> {
        if let Some(refused) = Places::of(env, home).no_jail() {
            return Err(refused.to_string());
        }
        let git = programs::git(env, home).map_err(|none| none.to_string())?;
        let ours = OwnDir::make(home).map_err(|error| chain(&error))?;
        let at_home = env.path("HOME");
        let repo = SourceRepo::open(&git, dir, ours.path(), at_home.as_deref())
            .map_err(|error| chain(&error))?;
        Ok(Self { repo, _ours: ours })
    }

    pub fn identity(&self) -> Result<Repository, String> {
        self.repo.identity().map_err(|error| chain(&error))
    }

    pub fn is(&self, known: &Repository) -> Result<bool, String> {
        self.repo.is(known).map_err(|error| chain(&error))
    }

    pub fn proposal(&self) -> Result<Proposal, String> {
        let found = self.repo.names_and_texts().map_err(|error| chain(&error))?;
        let has_python = |dir: &&str| {
            let python = self.repo.top.join(dir).join("bin/python");
            fs::symlink_metadata(self.repo.top.join(dir)).is_ok_and(|meta| meta.is_dir())
                && fs::symlink_metadata(python).is_ok()
        };
        let environment = ENVIRONMENTS.into_iter().find(has_python);
        Ok(propose::propose(&Seen {
            files: found.files,
            texts: found.texts,
            environment: environment.map(str::to_owned),
        }))
    }
}
