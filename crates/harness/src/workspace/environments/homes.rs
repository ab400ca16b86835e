//! What tools keep in the operator's home, laid out for one jail (`core/workspace/tool_home/`).
//! Nothing of it is looked at again: names in it are made of content, so an entry that comes while a
//! jail runs is as true as one that was there, and one that goes is made anew.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cto_core::containment::environment_masks::is_hidden_in_environment;
use cto_core::containment::mounts::Granted;
use cto_core::gate::plan::Environment;
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::environment::{Carried, EnvironmentKind, MOST_FILES, StateDigest};
use cto_core::workspace::tool_home::InHome;
use cto_jail::{Mount, Over};

use super::state::seen_of;
use super::{fresh_upper, still_copy};
use crate::host;
use crate::host::places::Places;
use crate::workspace::on_disk::{locate, may_enter};

/// Where Maven keeps packages, below its home.
pub const PACKAGES: &str = "repository";

/// What one look found.
pub struct Names {
    pub files: u64,
    pub digest: Digest,
    /// A directory belongs to another user than the top does, or the top to another than us.
    pub foreign: bool,
    /// The same of groups.
    pub other_group: bool,
    pub readable: bool,
    /// Files that no jail is shown, relative to it.
    pub hidden: Vec<TreePath>,
}

/// Looks at every name, and at directories; no file is asked for more than its name. What is
/// covered is not looked at.
pub fn look(root: &Path, covered: &[PathBuf]) -> io::Result<Names> {
    use rustix::process::{getegid, geteuid};
    let top = fs::symlink_metadata(root)?;
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let mut found = Names {
        files: 0,
        digest: Digest::of(b""),
        foreign: uid != 0 && top.uid() != uid,
        other_group: uid != 0 && top.gid() != gid,
        readable: true,
        hidden: Vec::new(),
    };
    let mut digest = StateDigest::default();
    let mut pending = vec![PathBuf::new()];
    while let Some(dir) = pending.pop() {
        let place = root.join(&dir);
        if !may_enter(&place) {
            found.readable = false;
            continue;
        }
        let meta = fs::symlink_metadata(&place)?;
        found.foreign |= meta.uid() != top.uid();
        found.other_group |= meta.gid() != top.gid();
        digest.take(dir.as_os_str().as_bytes(), &seen_of(&meta));
        let mut names = Vec::new();
        for entry in fs::read_dir(&place)? {
            let entry = entry?;
            names.push((entry.file_name(), entry.file_type()?.is_dir()));
        }
        names.sort_unstable();
        for (name, is_dir) in names {
            let path = dir.join(&name);
            if is_dir {
                let place = place.join(&name);
                pending.extend((!covered.contains(&place)).then_some(path));
                continue;
            }
            found.files += 1;
            digest.take_name(path.as_os_str().as_bytes());
            let path = TreePath::new(path.as_os_str().as_bytes());
            if is_hidden_in_environment(&path) {
                found.hidden.push(path);
            }
        }
        if found.files > MOST_FILES {
            break;
        }
    }
    found.digest = digest.finish();
    Ok(found)
}

/// One part that is carried.
pub struct Part {
    environment: Environment,
    source: Granted,
    place: InHome,
}

impl Part {
    pub fn of(environment: &Environment) -> Option<Self> {
        let carried = environment.record.is_carried();
        Some(Self {
            source: environment.source.clone().filter(|_| carried)?,
            place: environment.in_home.clone()?,
            environment: environment.clone(),
        })
    }

    /// The directories in it that hold what the copy builds itself, beside those of the plan.
    fn built_here(&self, built: &Built) -> Option<Vec<PathBuf>> {
        let of_maven = self.environment.record.kind == EnvironmentKind::MavenHome;
        if !of_maven || !self.place.target.ends_with(PACKAGES) {
            return Some(Vec::new());
        }
        let there = |path: &TreePath| {
            let dir = locate(self.source.path(), path);
            let is_dir = fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir());
            is_dir.then(|| locate(&self.place.target, path))
        };
        Some(built.as_ref()?.iter().filter_map(there).collect())
    }
}

/// What one jail must not find in Maven's packages beside what the plan covers: those its own copy
/// builds. None where that is not known.
pub type Built = Option<BTreeSet<TreePath>>;

/// A file that describes what Maven builds, where it is text of a reasonable size.
pub fn description(content: &mut dyn io::Read) -> io::Result<Option<String>> {
    const MOST: u64 = 1 << 20;
    let mut bytes = Vec::new();
    content.take(MOST + 1).read_to_end(&mut bytes)?;
    let small = bytes.len() as u64 <= MOST;
    Ok(String::from_utf8(bytes).ok().filter(|_| small))
}

/// How one jail gets them.
#[derive(Default)]
pub struct LaidHomes {
    below: Vec<(PathBuf, Granted, Over)>,
    /// Directories of ours, by where they are shown.
    made: Vec<(PathBuf, PathBuf)>,
    /// What is empty there and was not to be, and why.
    pub notes: Vec<String>,
}

impl LaidHomes {
    /// Lays every part out anew, below a directory of this jail alone.
    pub fn lay(parts: &[Part], built: &Built, dir: &Path) -> io::Result<Self> {
        let mut laid = Self::default();
        let mut around: BTreeSet<&Path> = BTreeSet::new();
        for (number, part) in parts.iter().enumerate() {
            let own = dir.join(format!("home-{number}"));
            host::make_private_dir(&own)?;
            let target = part.place.target.clone();
            around.extend(part.place.around.as_deref());
            let mut without = |why: &str| -> io::Result<()> {
                // A directory is there all the same: its tool is told of one, and writes there.
                let empty = own.join("empty");
                host::make_private_dir(&empty)?;
                laid.made.push((part.place.target.clone(), empty));
                let name = part.environment.record.name();
                laid.notes.push(format!("{name} is empty there: {why}"));
                Ok(())
            };
            let covered = match part.built_here(built) {
                Some(covered) => covered,
                None => {
                    without("which packages the changed files build is not known")?;
                    continue;
                }
            };
            match part.environment.record.carried {
                Carried::Overlay => {
                    let over = fresh_upper(&part.environment, &part.source, &own)?;
                    forget_results(part, &over.upper)?;
                    laid.below.push((target, part.source.clone(), over));
                }
                Carried::Copied => match still_copy(&part.source, &own, 0) {
                    Some((copy, _)) => {
                        forget_results(part, &copy)?;
                        laid.made.push((target, copy));
                    }
                    None => {
                        without("somebody writes to it, so no copy could be made")?;
                        continue;
                    }
                },
                Carried::ReadOnly | Carried::Not => continue,
            }
            let covered: BTreeSet<&PathBuf> = part.place.covered.iter().chain(&covered).collect();
            for (at, covered) in covered.into_iter().enumerate() {
                let empty = own.join(format!("covered-{at}"));
                host::make_private_dir(&empty)?;
                laid.made.push((covered.clone(), empty));
            }
        }
        for (number, target) in around.into_iter().enumerate() {
            let own = dir.join(format!("around-{number}"));
            host::make_private_dir(&own)?;
            // Made here, so that they belong to whoever works there.
            for part in parts
                .iter()
                .filter_map(|part| part.place.target.strip_prefix(target).ok())
            {
                fs::create_dir_all(own.join(part))?;
            }
            laid.made.push((target.to_owned(), own));
        }
        Ok(laid)
    }

    pub fn mounts(&self, places: &Places) -> io::Result<Vec<Mount>> {
        let below = self.below.iter();
        let below =
            below.map(|(target, source, over)| Ok(Mount::at(source, target).below(over.clone())));
        let made = self.made.iter();
        let made = made.map(|(target, dir)| Ok(Mount::at(&places.made(dir, true)?, target)));
        below.chain(made).collect()
    }

    /// Gives what is this jail's own to the uid that will work in it.
    pub fn hand_over(&self) -> io::Result<()> {
        let uppers = self.below.iter().map(|(_, _, over)| &over.upper);
        let made = self.made.iter().map(|(_, dir)| dir);
        uppers
            .chain(made)
            .try_for_each(|dir| cto_jail::hand_over(dir))
    }
}

/// Go takes no test for done that passed before now, whatever a command does to the variables that
/// say so: this is what `go clean -testcache` leaves.
fn forget_results(part: &Part, cache: &Path) -> io::Result<()> {
    if part.environment.record.kind != EnvironmentKind::GoBuilds {
        return Ok(());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let file = cache.join("testexpire.txt");
    // A copy may hold the owner's.
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::write(&file, format!("{}\n", now.unwrap_or_default().as_nanos()))?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use cto_core::workspace::environment::EnvironmentUse;

    use super::*;

    #[test]
    fn names_and_directories_change_the_digest_and_what_is_covered_does_not() {
        let house = tempfile::tempdir().unwrap();
        let root = house.path().join("store");
        for dir in ["00", "ff", "vcs"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        fs::write(root.join("00/a-d"), "a").unwrap();
        fs::write(root.join("ff/.npmrc"), "token").unwrap();
        let covered = [root.join("vcs")];
        let now = || look(&root, &covered).unwrap();
        let first = now();
        assert_eq!(first.digest, now().digest);
        assert_eq!(first.files, 2);
        assert_eq!(first.hidden, [TreePath::new("ff/.npmrc")]);
        assert!(first.readable && !first.foreign);
        fs::write(root.join("vcs/x"), "x").unwrap();
        assert_eq!(first.digest, now().digest, "covered");
        fs::write(root.join("00/b-d"), "b").unwrap();
        let second = now();
        assert_ne!(first.digest, second.digest, "a name came");
        fs::remove_file(root.join("00/b-d")).unwrap();
        assert_ne!(second.digest, now().digest, "a name went");
        assert_ne!(first.digest, now().digest, "and that stays seen");
    }

    /// Nobody can copy what is gone or never still; its tool is told of a directory all the same.
    #[test]
    fn what_cannot_be_copied_is_an_empty_directory_and_is_told_of() {
        let house = tempfile::tempdir().unwrap();
        let work = house.path().join("state/work");
        let root = work.join("store");
        fs::create_dir_all(&root).unwrap();
        let home = host::Home {
            root: house.path().join("state"),
            runs: house.path().join("runs"),
        };
        let places = Places::of(&host::Env::default(), &home);
        let part = |around: Option<&Path>| Part {
            environment: Environment {
                record: EnvironmentUse {
                    path: TreePath::new("~/.cache/go-build"),
                    kind: EnvironmentKind::GoBuilds,
                    carried: Carried::Copied,
                    why: None,
                    files: 0,
                    bytes: 0,
                    hidden: 0,
                    state: None,
                },
                source: None,
                hidden: Vec::new(),
                also: Vec::new(),
                in_home: None,
            },
            source: places.made(&root, false).unwrap(),
            place: InHome {
                target: "/home/me/.cache/go-build".into(),
                around: around.map(Path::to_owned),
                covered: Vec::new(),
            },
        };
        let nothing = Some(BTreeSet::new());
        let parts = [part(None), part(Some(Path::new("/home/me/.cache")))];
        let laid = LaidHomes::lay(&parts, &nothing, &work.join("first")).unwrap();
        assert!(
            laid.notes.is_empty() && laid.made.len() == 3,
            "both, and around"
        );
        fs::remove_dir_all(&root).unwrap();
        let laid = LaidHomes::lay(&parts, &nothing, &work.join("second")).unwrap();
        assert_eq!(laid.notes.len(), 2, "{:?}", laid.notes);
        assert_eq!(laid.made.len(), 3, "both, and around");
        for (target, dir) in &laid.made[..2] {
            assert_eq!(target, &parts[0].place.target);
            assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
        }
    }
}
