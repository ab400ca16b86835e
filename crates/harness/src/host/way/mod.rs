//! The way to a path, as facts: every directory, link and file the kernel would pass, whose it is
//! and who may write it. What that means is decided in core (`containment/ownership.rs`).
//!
//! - this file: the facts; `operator_file.rs` a file of the operator's, read only where it is theirs
//! - `state.rs` where state may lie

pub mod operator_file;
pub mod state;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use cto_core::containment::ownership::{self, Owner, Step, StepKind, Stranger};

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;
/// What makes a directory the top of a repository.
pub const REPOSITORY: [&str; 4] = [".git", ".hg", ".jj", ".svn"];
/// What makes a directory an environment somebody activates.
const ENVIRONMENT: &str = "pyvenv.cfg";
const MODULES: &str = "node_modules";
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Every entry on the way to an absolute path, each once, what it leads to last.
pub fn walk(path: &Path) -> io::Result<Vec<Step>> {
    if !path.is_absolute() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no absolute path",
        ));
    }
    let mut seen = BTreeSet::new();
    let mut steps = Vec::new();
    let mut links = 0;
    let mut here = PathBuf::from("/");
    let root = fs::symlink_metadata(&here)?;
    seen.insert(here.clone());
    steps.push(step(&here, &root));
    let mut pending = parts(path);
    while let Some(part) = pending.pop_front() {
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&part);
        let meta = fs::symlink_metadata(&next)?;
        // What the way ends with is its last step, also where it was passed before.
        if !seen.insert(next.clone()) {
            steps.retain(|step: &Step| step.path != next);
        }
        steps.push(step(&next, &meta));
        if !meta.is_symlink() {
            here = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(rustix::io::Errno::LOOP.into());
        }
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        let mut longer = parts(&target);
        longer.append(&mut pending);
        pending = longer;
    }
    Ok(steps)
}

/// A typed path from the root on. `..` at its beginning leads from where this process stands, through nothing below there:
/// a repository somebody stands in is not on the way to what lies beside it.
pub fn from_root(path: &Path) -> io::Result<PathBuf> {
    match path.is_absolute() {
        true => Ok(path.to_owned()),
        false => from_root_at(&std::env::current_dir()?, path),
    }
}

/// `here` has neither links nor `..` in it, as the kernel names a current directory.
fn from_root_at(here: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut here = here.to_owned();
    let mut rest = path.components();
    while let Some(first) = rest.clone().next() {
        match first {
            Component::CurDir => {}
            Component::ParentDir => {
                here.pop();
            }
            _ => break,
        }
        rest.next();
    }
    match path.as_os_str().is_empty() {
        // Says that nothing is no path.
        true => std::path::absolute(path),
        false => std::path::absolute(here.join(rest.as_path())),
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

fn step(path: &Path, meta: &Metadata) -> Step {
    let kind = match () {
        () if meta.is_dir() => StepKind::Directory,
        () if meta.is_symlink() => StepKind::Link,
        () if meta.is_file() => StepKind::File {
            executable: meta.mode() & 0o111 != 0,
        },
        () => StepKind::Special,
    };
    let holds =
        |name: &str| kind == StepKind::Directory && fs::symlink_metadata(path.join(name)).is_ok();
    Step {
        path: path.to_owned(),
        kind,
        owner: owner(meta.uid()),
        mode: meta.mode() & 0o7777,
        group_is_private: group_is_private(path, meta),
        is_repository: REPOSITORY.iter().any(|name| holds(name)),
        is_environment: holds(ENVIRONMENT) || path.file_name().is_some_and(|name| name == MODULES),
    }
}

/// May the group write, and is nobody in it but root and the operator?
pub fn group_is_private(path: &Path, meta: &Metadata) -> bool {
    meta.mode() & 0o020 != 0 && is_private_group(meta.gid()) && !has_access_list(path)
}

/// Facts about one entry that is already open.
pub fn open_step(path: &Path, meta: &Metadata) -> Step {
    step(path, meta)
}

/// Who besides root and the operator could have made a directory of the operator's, or may exchange it. Groups count at
/// and below `own` alone: whatever a member puts there in place of another directory is that member's, and is
/// seen by its owner.
pub fn stranger_to(dir: &Path, own: Option<&Path>) -> io::Result<Option<Stranger>> {
    let mut steps = walk(dir)?;
    let own = own.map(fs::canonicalize).transpose()?;
    let counts = |step: &Step| own.as_ref().is_some_and(|own| step.path.starts_with(own));
    for step in steps.iter_mut().filter(|step| !counts(step)) {
        step.group_is_private = true;
    }
    Ok(ownership::stranger(&steps))
}

fn owner(uid: u32) -> Owner {
    let operator = rustix::process::geteuid().as_raw();
    match uid {
        0 => Owner::Root,
        uid if uid == operator => Owner::Operator,
        // Below a user namespace that has no root, the system's files have no owner of their own.
        uid if Some(uid) == unmapped() => Owner::Root,
        uid => Owner::Other(uid),
    }
}

/// What the kernel shows for an owner that has no number here, where root has none.
fn unmapped() -> Option<u32> {
    static UNMAPPED: OnceLock<Option<u32>> = OnceLock::new();
    *UNMAPPED.get_or_init(|| {
        let map = fs::read_to_string("/proc/self/uid_map").ok()?;
        let has_root = map
            .lines()
            .any(|line| line.split_whitespace().next() == Some("0"));
        let shown = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
        (!has_root).then(|| shown.trim().parse().ok()).flatten()
    })
}

/// A list that names more people shows in the mode as if it were the group.
fn has_access_list(path: &Path) -> bool {
    let mut none: [u8; 0] = [];
    match rustix::fs::lgetxattr(path, ACCESS_LIST, &mut none[..]) {
        Ok(length) => length > 0,
        Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP) => false,
        Err(_) => true,
    }
}

/// Is every account that is known to be in this group root's or the operator's? A group nobody is
/// known to be in is not theirs.
fn is_private_group(gid: u32) -> bool {
    static KNOWN: OnceLock<BTreeMap<u32, bool>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        private_groups(
            &read("/etc/passwd"),
            &read("/etc/group"),
            rustix::process::geteuid().as_raw(),
        )
    });
    known.get(&gid).copied().unwrap_or(false)
}

fn private_groups(accounts: &str, groups: &str, operator: u32) -> BTreeMap<u32, bool> {
    let mut theirs = BTreeSet::new();
    let mut private: BTreeMap<u32, bool> = BTreeMap::new();
    let mut join = |gid: u32, is_theirs: bool| {
        private
            .entry(gid)
            .and_modify(|all| *all &= is_theirs)
            .or_insert(is_theirs);
    };
    for line in accounts.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, ..] = fields.as_slice() else {
            continue;
        };
        let (Ok(uid), Ok(gid)) = (uid.parse::<u32>(), gid.parse::<u32>()) else {
            continue;
        };
        let is_theirs = uid == 0 || uid == operator;
        if is_theirs {
            theirs.insert(*name);
        }
        join(gid, is_theirs);
    }
    for line in groups.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, gid, members] = fields.as_slice() else {
            continue;
        };
        let Ok(gid) = gid.parse::<u32>() else {
            continue;
        };
        members
            .split(',')
            .map(str::trim)
            .filter(|member| !member.is_empty())
            .for_each(|member| join(gid, theirs.contains(member)));
    }
    private
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn every_hop_is_on_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let at = |name: &str| top.join(name);
        for name in ["a/b", "links", "far/.git"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("far/program"), "").unwrap();
        fs::set_permissions(at("far/program"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("../../links/one", at("a/b/program")).unwrap();
        symlink(at("far/program"), at("links/one")).unwrap();
        let steps = walk(&at("a/./b/../b/program")).unwrap();
        let names: Vec<PathBuf> = steps
            .iter()
            .filter_map(|step| step.path.strip_prefix(&top).ok().map(Path::to_owned))
            .collect();
        for name in ["a", "a/b", "a/b/program", "links", "links/one", "far"] {
            assert!(names.contains(&PathBuf::from(name)), "{name}: {names:?}");
        }
        let last = steps.last().unwrap();
        assert_eq!(last.path, at("far/program"));
        assert_eq!(last.kind, StepKind::File { executable: true });
        let far = steps.iter().find(|step| step.path == at("far")).unwrap();
        assert!(far.is_repository);
        symlink("round", at("round")).unwrap();
        assert!(walk(&at("round")).is_err());
        assert!(walk(Path::new("relative")).is_err());
        assert!(walk(&at("far/program/x")).is_err());
    }

    #[test]
    fn what_lies_beside_the_current_directory_is_not_reached_through_it() {
        let here = Path::new("/a/repository");
        for (typed, whole) in [
            ("..", "/a"),
            ("../state", "/a/state"),
            ("./../../b/../c", "/b/../c"),
            ("../../../../c", "/c"),
            ("below/../../state", "/a/repository/below/../../state"),
            ("state", "/a/repository/state"),
            (".", "/a/repository"),
        ] {
            let found = from_root_at(here, Path::new(typed)).unwrap();
            assert_eq!(found, Path::new(whole), "{typed}");
        }
        assert!(from_root_at(here, Path::new("")).is_err());
    }

    #[test]
    fn environments_are_known_by_their_own_files() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("venv/bin")).unwrap();
        fs::create_dir_all(top.join("node_modules/.bin")).unwrap();
        fs::write(top.join("venv/pyvenv.cfg"), "").unwrap();
        for name in ["venv/bin", "node_modules/.bin"] {
            let steps = walk(&top.join(name)).unwrap();
            assert!(steps.iter().any(|step| step.is_environment), "{name}");
        }
        let steps = walk(&top).unwrap();
        assert!(!steps.iter().any(|step| step.is_environment));
    }

    #[test]
    fn a_group_is_private_when_all_its_members_are_the_operator_or_root() {
        let accounts = "root:x:0:0::/:\nme:x:1000:1000::/:\nyou:x:1001:100::/:\nbot:x:1002:7::/:\n";
        let groups = "root:x:0:\nme:x:1000:\nusers:x:100:me\nstaff:x:50:me,you\nteam:x:60:me,root\nempty:x:70:\nodd\nwrong:x:y:me\nothers:x:80:nobody-known\n";
        let private = private_groups(accounts, groups, 1000);
        for (gid, want) in [
            (0, true),
            (1000, true),
            (100, false),
            (50, false),
            (60, true),
            (70, false),
            (7, false),
            (80, false),
            (999, false),
        ] {
            assert_eq!(private.get(&gid).copied().unwrap_or(false), want, "{gid}");
        }
        let another = private_groups(accounts, &format!("{groups}me:x:1000:you\n"), 1000);
        assert_eq!(another.get(&1000), Some(&false));
    }
}
