//! Admissions of repositories that may be changed: one for each repository, in `records/targets/`, by the digest
//! of its path. Where they lie is read here; nothing of those repositories is looked at.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::engine::manifest::Manifest;
use cto_core::gate::target::TargetFound;
use cto_core::records::{MAX_RECORD, RecordKind};
use cto_core::task::contract::Stage;
use cto_core::values::digest::Digest;
use cto_core::values::json;
use serde_json::Value;

use super::{NotBelieved, RecordStore, believed};
use crate::host::files;
use crate::host::{self, Env, Home};
use crate::task::lane::variable;

/// The variable that names an admission, for engines of any kind.
const NAMED_BY: &str = "STAGE5_TARGET_ADMISSION_FILE";

impl RecordStore {
    /// The records of a repository, wherever a link to it lies.
    pub fn of_repository(home: &Home, repository: &Path) -> Self {
        let real = repository.canonicalize();
        let path = real.as_deref().unwrap_or(repository);
        let name = Digest::of(path.as_os_str().as_bytes()).to_string();
        Self {
            dir: targets(home).join(name),
        }
    }
}

fn targets(home: &Home) -> PathBuf {
    home.root.join("records/targets")
}

/// The file of the admission a run was given, by flag, then by variable.
pub fn named(manifest: &Manifest, flag: Option<&Path>, stage: Stage, env: &Env) -> Option<PathBuf> {
    let by_variable = || env.path(&variable(&manifest.id, NAMED_BY));
    let is_meant = stage >= Stage::Five;
    flag.map(Path::to_owned)
        .or_else(|| is_meant.then(by_variable)?)
}

/// The admission a run was given: by flag, then by variable. Below stage 5 there is no target.
pub fn asked(manifest: &Manifest, flag: Option<&Path>, stage: Stage, env: &Env) -> TargetFound {
    if stage < Stage::Five {
        return TargetFound::NotAsked;
    }
    let Some(path) = named(manifest, flag, stage, env) else {
        return TargetFound::Missing;
    };
    match believed(&path, MAX_RECORD as u64) {
        Ok(bytes) => TargetFound::read(&path.display().to_string(), &bytes, host::now()),
        Err(NotBelieved::Missing) => TargetFound::Missing,
        Err(NotBelieved::Because(why)) => TargetFound::NotBelieved(why),
    }
}

/// Is this repository, or one that shares its objects, admitted or written down as a target? Then no copy of
/// it is somebody's fixture. A record that cannot be read might be about it.
pub fn is_no_target(
    repository: &Path,
    common_dir: Option<&Path>,
    home: &Home,
) -> Result<(), String> {
    let dirs = match fs::read_dir(targets(home)) {
        Ok(dirs) => dirs,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("target admissions cannot be listed: {error}")),
    };
    let repository = repository.canonicalize();
    for dir in dirs {
        let dir = dir.map_err(|error| unreadable(&error))?;
        // Beside them lie the locks of those who write.
        let name = dir.file_name();
        if name
            .to_str()
            .is_none_or(|name| name.parse::<Digest>().is_err())
        {
            continue;
        }
        let dir = dir.path();
        let Some(target) = target_of(&dir)? else {
            continue;
        };
        let is_same = repository
            .as_deref()
            .is_ok_and(|source| source.starts_with(&target) || target.starts_with(source));
        if is_same || common_dir.is_some_and(|common| shares(common, &target)) {
            return Err("it is the repository of a target admission".into());
        }
    }
    Ok(())
}

fn unreadable(why: &dyn std::fmt::Display) -> String {
    format!("a target admission cannot be read, and it may be about this repository: {why}")
}

/// The repository that a record in this directory is about; none where its record was ended.
fn target_of(dir: &Path) -> Result<Option<PathBuf>, String> {
    let file = dir.join(format!("{}.json", RecordKind::Target.as_str()));
    let bytes = match files::read_limited(&file, MAX_RECORD as u64) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let value = json::parse_strict(&bytes).map_err(|error| unreadable(&error))?;
    let path = value.get("target_repository_path").and_then(Value::as_str);
    let path = path.filter(|path| !path.is_empty());
    let path = Path::new(path.ok_or_else(|| unreadable(&"it names no repository"))?);
    Ok(Some(path.canonicalize().unwrap_or(path.to_owned())))
}

/// Is one of them a linked work tree of the other? Told by where their git directories lie; neither is asked.
fn shares(common_dir: &Path, target: &Path) -> bool {
    let common = common_dir.canonicalize();
    let common = common.as_deref().unwrap_or(common_dir);
    let linked = files::read_limited(&target.join(".git"), 4096).ok();
    let linked = linked.and_then(|bytes| String::from_utf8(bytes).ok());
    let points = linked
        .as_deref()
        .and_then(|text| text.strip_prefix("gitdir:"));
    let points = points.map(|path| target.join(path.trim_end_matches('\n').trim_start()));
    let points = points.map(|path| path.canonicalize().unwrap_or(path));
    common.starts_with(target) || points.is_some_and(|dir| dir.starts_with(common))
}

#[cfg(test)]
mod tests {
    use cto_core::records::TargetAdmission;

    use super::*;

    #[test]
    fn a_target_is_known_by_its_path_and_by_its_git_directory() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        let home = Home {
            root: at("state"),
            runs: at("runs"),
        };
        for dir in ["mine/.git/worktrees/w", "other/.git", "tree", "mine/sub"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        let gitdir = format!("gitdir: {}\n", at("mine/.git/worktrees/w").display());
        fs::write(at("tree/.git"), gitdir).unwrap();
        let asked = |name: &str| {
            let common = at(name).join(".git");
            let common = common.is_dir().then_some(common);
            is_no_target(&at(name), common.as_deref(), &home)
        };
        assert_eq!(asked("mine"), Ok(()), "nothing is on record");
        let put = |name: &str| {
            let skeleton = TargetAdmission::skeleton(at(name).to_str().unwrap());
            let bytes = serde_json::to_vec(&skeleton).unwrap();
            let store = RecordStore::of_repository(&home, &at(name));
            store.write(RecordKind::Target, &bytes).unwrap();
            store
        };
        let store = put("mine");
        for name in ["mine", "mine/sub"] {
            assert!(asked(name).unwrap_err().contains("target admission"));
        }
        assert_eq!(asked("other"), Ok(()));
        let of_tree = is_no_target(&at("tree"), Some(&at("mine/.git")), &home);
        assert!(of_tree.is_err(), "a linked work tree of the target");
        store.end(RecordKind::Target).unwrap();
        assert_eq!(asked("mine"), Ok(()), "its admission was ended");
        put("tree");
        assert!(asked("mine").is_err(), "the target is a linked work tree");
        assert_eq!(asked("other"), Ok(()));
        fs::write(put("other").path(RecordKind::Target), b"{").unwrap();
        let why = is_no_target(&at("elsewhere"), None, &home).unwrap_err();
        assert!(why.contains("cannot be read"), "{why}");
    }
}
