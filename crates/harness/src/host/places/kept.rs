//! What must be kept from jails, found on this host: state, configuration, homes, tokens, and what is
//! mounted where.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use cto_core::containment::mounts::installation::TOKENS;
use cto_core::containment::mounts::{self, Mounted};

use crate::host::{Env, Home, settings};

/// Users of people; the last is nobody's.
const FIRST_PERSON: u32 = 1000;
const NOBODY: u32 = 65534;
/// Where images of Rust keep cargo's home: below `/usr`, which every jail sees.
const CARGO_OF_IMAGES: &str = "/usr/local/cargo";

/// Files with tokens in what a jail is shown: below these directories, and below a cargo home that
/// is part of the system.
pub fn tokens_in<'p>(shown: impl Iterator<Item = &'p Path>, env: &Env) -> Vec<PathBuf> {
    let cargo = env.path("CARGO_HOME").filter(|dir| mounts::is_system(dir));
    let system = [Some(PathBuf::from(CARGO_OF_IMAGES)), cargo];
    let dirs: BTreeSet<PathBuf> = shown
        .map(Path::to_owned)
        .chain(system.into_iter().flatten())
        .filter(|dir| dir.is_dir())
        .collect();
    let files = dirs
        .iter()
        .flat_map(|dir| TOKENS.iter().map(move |name| dir.join(name)));
    files.filter(|file| file.is_file()).collect()
}

/// Where evidence, keys and approvals are, and everywhere the next command could look for them.
pub(super) fn state_places(env: &Env, home: &Home) -> impl Iterator<Item = PathBuf> {
    let user = env.path("HOME");
    let below = |dir: &str| user.as_ref().map(|home| home.join(dir));
    let variables = ["CTO_STATE_DIR", "CTO_HOME", "CTO_RUNS_DIR"];
    let state = env.path("XDG_STATE_HOME").or_else(|| below(".local/state"));
    let profiles = env.path("HERMES_HOME").or_else(|| below(".hermes"));
    [home.root.clone(), home.runs.clone()]
        .into_iter()
        .chain(variables.into_iter().filter_map(|name| env.path(name)))
        .chain(state.map(|dir| dir.join("cto")))
        .chain(profiles.map(|dir| dir.join("profiles/cto-planb")))
        .collect::<Vec<_>>()
        .into_iter()
}

/// The config file; where nobody named another one, with the directory that is ours.
pub(super) fn config_place(env: &Env) -> Option<PathBuf> {
    let path = settings::path(env).ok()??;
    match env.get(settings::VARIABLE) {
        Some(_) => Some(path),
        None => path.parent().map(Path::to_owned),
    }
}

/// Homes of root, of the operator and of people, as this host lists them.
pub(super) fn homes_of_people(operator: u32) -> impl Iterator<Item = PathBuf> {
    let table = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let home = move |line: &str| {
        let mut fields = line.split(':').skip(2);
        let uid: u32 = fields.next()?.parse().ok()?;
        let dir = PathBuf::from(fields.nth(2)?);
        let person = uid == 0 || uid == operator || (uid >= FIRST_PERSON && uid != NOBODY);
        (person && dir.is_absolute() && dir != Path::new("/")).then_some(dir)
    };
    let homes: BTreeSet<PathBuf> = table.lines().filter_map(home).collect();
    homes.into_iter()
}

/// What is mounted where. Without a list nothing is known of bind mounts; names and numbers of
/// files are compared all the same.
pub fn mount_table() -> Vec<Mounted> {
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mount = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = std::str::from_utf8(fields.nth(2)?).ok()?;
        let (major, minor) = device.split_once(':')?;
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        Some(Mounted {
            point,
            device: (major.parse().ok()?, minor.parse().ok()?),
            root,
            kind: String::from_utf8_lossy(kind).into_owned(),
        })
    };
    table
        .split(|byte| *byte == b'\n')
        .filter_map(mount)
        .collect()
}

/// A path of the kernel's table, in which some bytes are three octal digits after a backslash.
pub(super) fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}
