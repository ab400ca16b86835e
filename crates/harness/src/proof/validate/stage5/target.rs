//! A repository with a past, made by this validator in its own place, and admissions of it, whole and with defects.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::host::failure::Failure;
use crate::host::programs;
use crate::proof::lane_records;
use crate::proof::matrix::{Look, Past, Place, make_repository};
use crate::proof::validate::Bench;

pub struct Target {
    path: PathBuf,
    records: PathBuf,
}

fn cannot(why: &dyn std::error::Error) -> Failure {
    Failure::internal("no_fixture", "a repository to change cannot be made")
        .because(why)
        .so("nothing was shown")
}

impl Target {
    pub fn make(bench: &Bench<'_>) -> Result<Self, Failure> {
        let git = programs::git(bench.env, bench.home).map_err(|error| cannot(&error))?;
        let records = bench.root.join("admissions");
        crate::host::make_private_dir(&records).map_err(|error| cannot(&error))?;
        let path = bench.root.join("owned-repository");
        make_repository(&git, &path, &bench.case.workspace, Past::History)
            .map_err(|error| cannot(&error))?;
        let path = path.canonicalize().map_err(|error| cannot(&error))?;
        Ok(Self { path, records })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything of it, with modes, times and bytes.
    pub fn look(&self) -> Result<Look, Failure> {
        let place = Place {
            root: self.path.clone(),
        };
        place.look().map_err(|error| cannot(&error))
    }

    /// The commit of its one branch.
    pub fn head(&self) -> Result<String, Failure> {
        let head = fs::read_to_string(self.path.join(".git/HEAD"));
        let head = head.map_err(|error| cannot(&error))?;
        let name = head.trim().trim_start_matches("ref: ").to_owned();
        let commit = fs::read_to_string(self.path.join(".git").join(name));
        Ok(commit.map_err(|error| cannot(&error))?.trim().to_owned())
    }

    /// An admission of it, changed in some of its fields, as a file.
    pub fn admission(
        &self,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<PathBuf, Failure> {
        let mut record = lane_records::target(&self.path);
        change(&mut record);
        let path = self.records.join(format!("{name}.json"));
        let put = || -> std::io::Result<()> {
            let mut options = fs::OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            options
                .open(&path)?
                .write_all(record.to_string().as_bytes())
        };
        put().map_err(|error| cannot(&error))?;
        Ok(path)
    }

    pub fn whole(&self) -> Result<PathBuf, Failure> {
        self.admission("whole", |_| ())
    }
}
