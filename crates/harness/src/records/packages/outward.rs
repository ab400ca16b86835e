//! What leads out of packages: what is imported, started or read from there is pinned by nobody, and may be
//! the repository that an engine works on.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use cto_core::containment::mounts::is_system;
use cto_core::containment::ownership;
use cto_core::records::python_tree::{added_directories, is_editable, takes_system_packages};
use cto_core::values::paths::TreePath;

use super::Problem;
use super::walk::Seen;
use crate::host::{files, way};

const CONFIG: &str = "pyvenv.cfg";
/// Larger is no such file.
const MAX_TEXT: u64 = 1 << 20;

/// The first thing of a tree that leads out of it.
pub fn look(root: &Path, seen: &[Seen]) -> Result<(), Problem> {
    let path = |seen: &Seen| PathBuf::from(OsStr::from_bytes(&seen.path));
    let has = |name: &str| seen.iter().any(|seen| path(seen) == Path::new(name));
    let base = match has(CONFIG) {
        true => Some(base_of(root, has("bin/pyvenv.cfg"))?),
        false => None,
    };
    for one in seen {
        let place = path(one);
        if one.kind().is_symlink() {
            link(root, &place, base.as_deref())?;
        } else if base.is_some() && one.kind().is_file() {
            of_site(root, &place)?;
        }
    }
    Ok(())
}

fn outward(place: &Path) -> Problem {
    Problem::Outward(named(place))
}

fn named(place: &Path) -> TreePath {
    TreePath::new(place.as_os_str().as_bytes())
}

fn text_of(root: &Path, place: &Path) -> Result<String, Problem> {
    let bytes = files::read_limited(&root.join(place), MAX_TEXT)
        .map_err(|error| Problem::Unreadable(named(place), error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The directory of the Python that an environment was made from; nobody else may change what is there.
fn base_of(root: &Path, has_second: bool) -> Result<PathBuf, Problem> {
    let config = text_of(root, Path::new(CONFIG))?;
    // Python reads the one beside its own link first.
    if has_second || takes_system_packages(&config) {
        return Err(Problem::SystemPackages);
    }
    let home = |line: &str| {
        let (key, value) = line.split_once('=')?;
        let is_home = key.trim().eq_ignore_ascii_case("home");
        is_home.then(|| PathBuf::from(value.trim()))
    };
    let foreign = |why: String| Problem::ForeignPython(why);
    let home = config.split(['\n', '\r']).find_map(home);
    let home = home.ok_or_else(|| foreign("its configuration names none".into()))?;
    for name in ["python3", "python"] {
        let python = home.join(name);
        if !python.exists() {
            continue;
        }
        let steps = way::walk(&python).map_err(|error| foreign(error.to_string()))?;
        if let Some(stranger) = ownership::stranger(&steps) {
            return Err(foreign(stranger.to_string()));
        }
    }
    home.canonicalize()
        .map_err(|error| foreign(error.to_string()))
}

/// A link stays in the tree or leads to the system; that of an environment's Python, to what it was made
/// from.
fn link(root: &Path, place: &Path, base: Option<&Path>) -> Result<(), Problem> {
    let at = root.join(place);
    let real = match at.canonicalize() {
        Ok(real) => real,
        // What is not there may be there in a jail.
        Err(_) => {
            let target =
                fs::read_link(&at).map_err(|error| Problem::Unreadable(named(place), error))?;
            plain(&at.parent().unwrap_or(root).join(target))
        }
    };
    let top = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let is_python = place.parent() == Some(Path::new("bin"))
        && place
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(b"python"));
    let of_base = base.is_some() && is_python && real.parent() == base;
    match real.starts_with(&top) || is_system(&real) || of_base {
        true => Ok(()),
        false => Err(outward(place)),
    }
}

/// What Python imports by a file of an environment's libraries.
fn of_site(root: &Path, place: &Path) -> Result<(), Problem> {
    let name = place.file_name().and_then(OsStr::to_str).unwrap_or("");
    let site = place
        .parent()
        .filter(|dir| dir.ends_with("site-packages") && dir.components().count() == 3);
    let Some(site) = site else {
        return Ok(());
    };
    if is_editable(name) {
        return Err(outward(place));
    }
    if !name.ends_with(".pth") {
        return Ok(());
    }
    let text = text_of(root, place)?;
    let site = root.join(site);
    let leaves = |dir: &&str| {
        let dir = plain(&site.join(dir.trim()));
        let dir = dir.canonicalize().unwrap_or(dir);
        !dir.starts_with(root) && !is_of_pipx(root, &dir)
    };
    match added_directories(&text).iter().any(leaves) {
        true => Err(outward(place)),
        false => Ok(()),
    }
}

/// Where pipx keeps the one pip of all its environments, which every one of them names: the operator's own, and not
/// shown to a jail with the packages.
fn is_of_pipx(root: &Path, dir: &Path) -> bool {
    let home = root
        .parent()
        .filter(|venvs| venvs.file_name() == Some(OsStr::new("venvs")))
        .and_then(Path::parent);
    home.is_some_and(|home| dir.starts_with(home.join("shared/lib")))
}

/// Without `.` and `..`, as far as names alone say.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::{LIMITS, Look};
    use super::*;
    use crate::host::Home;

    /// An environment as `python3 -m venv` makes one.
    fn environment(dir: &Path) -> PathBuf {
        let root = dir.canonicalize().unwrap().join("venv");
        fs::create_dir_all(root.join("lib/python3.12/site-packages")).unwrap();
        fs::create_dir_all(root.join("bin")).unwrap();
        symlink("lib", root.join("lib64")).unwrap();
        symlink("/usr/bin/python3", root.join("bin/python3")).unwrap();
        symlink("python3", root.join("bin/python")).unwrap();
        put(
            &root,
            CONFIG,
            "home = /usr/bin\ninclude-system-site-packages = false\n",
        );
        put(
            &root,
            "lib/python3.12/site-packages/own.pth",
            "import os\n./lab\n",
        );
        root
    }

    fn put(root: &Path, name: &str, text: &str) {
        fs::write(root.join(name), text).unwrap();
    }

    fn said(root: &Path) -> String {
        let home = Home {
            root: root.join("../state"),
            runs: root.join("../runs"),
        };
        let look_at = Look::take(&home, root, LIMITS).unwrap();
        look(root, &look_at.seen).map_or_else(|why| why.to_string(), |()| "good".into())
    }

    #[test]
    fn an_environment_that_imports_from_elsewhere_is_refused() {
        type Change = fn(&Path);
        let rows: &[(Change, &str)] = &[
            (|_| {}, "good"),
            (
                |root| {
                    put(
                        root,
                        CONFIG,
                        "home = /usr/bin\nInclude-System-Site-Packages=TRUE\n",
                    )
                },
                "packages of the system",
            ),
            (
                |root| put(root, "bin/pyvenv.cfg", "home = /usr/bin\n"),
                "packages of the system",
            ),
            (
                |root| put(root, "lib/python3.12/site-packages/x.pth", "/home/me/src\n"),
                "site-packages/x.pth in its packages leads out",
            ),
            (
                |root| {
                    put(
                        root,
                        "lib/python3.12/site-packages/x.pth",
                        "../../../../src\n",
                    )
                },
                "site-packages/x.pth in its packages leads out",
            ),
            (
                |root| {
                    put(
                        root,
                        "lib/python3.12/site-packages/__editable___x_finder.py",
                        "",
                    )
                },
                "leads out",
            ),
            (
                |root| symlink("/home/me/src", root.join("lib/python3.12/x")).unwrap(),
                "lib/python3.12/x in its packages leads out",
            ),
            (
                |root| symlink("/tmp", root.join("bin/tools")).unwrap(),
                "bin/tools in its packages leads out",
            ),
            (
                |root| symlink("../gone", root.join("bin/gone")).unwrap(),
                "good",
            ),
            (|root| put(root, CONFIG, "version = 3\n"), "names none"),
        ];
        for (change, words) in rows {
            let dir = tempfile::tempdir().unwrap();
            let root = environment(dir.path());
            change(&root);
            let said = said(&root);
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    #[test]
    fn what_pipx_writes_into_all_its_environments_is_no_way_out() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("venvs")).unwrap();
        let root = environment(&dir.path().join("venvs"));
        let top = dir.path().canonicalize().unwrap();
        for (place, good) in [("shared", true), ("share", false), ("venvs/other", false)] {
            let named = top.join(place).join("lib/python3.12/site-packages");
            let pth = "lib/python3.12/site-packages/pipx_shared.pth";
            put(&root, pth, &named.display().to_string());
            assert_eq!(said(&root) == "good", good, "{place}");
        }
    }

    #[test]
    fn a_python_that_others_may_change_runs_no_engine() {
        let dir = tempfile::tempdir().unwrap();
        let root = environment(dir.path());
        let home = dir.path().canonicalize().unwrap().join("python/bin");
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("python3"), "").unwrap();
        put(&root, CONFIG, &format!("home = {}\n", home.display()));
        fs::remove_file(root.join("bin/python3")).unwrap();
        symlink(home.join("python3"), root.join("bin/python3")).unwrap();
        assert_eq!(said(&root), "good");
        fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(
            said(&root).contains("everybody may write"),
            "{}",
            said(&root)
        );
    }
}
