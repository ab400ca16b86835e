//! The operator's PATH, looked at entry by entry: what a jail has at each place of it is decided in
//! core (`containment/mounts/search.rs`). No program is run to find out, and none is shown because
//! it lies beside another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cto_core::containment::mounts::search::{
    self, Candidate, Entry, Held, Offer, Part, SearchPath, Searching,
};
use cto_core::containment::mounts::{Granted, Place, PlaceKind, is_system};

use super::{SEARCHED, base_of, based_on, cargo_registry, shims};
use crate::host::Env;
use crate::host::files;
use crate::host::places::Places;

/// More programs of directories that are no installation are not offered: each is a mount.
const MOST_SINGLE: usize = 256;
/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// What is looked for, and for whom.
pub struct Wanted<'a> {
    /// These names alone; every name where there are none.
    pub names: Option<&'a BTreeSet<String>>,
    /// The repository that is copied.
    pub repo: Option<&'a Path>,
    /// What the operator has shown beside PATH, searched first.
    pub named: &'a [Granted],
    /// What the jail is shown in any case: searched where PATH has it.
    pub shown: &'a [Granted],
    /// The flag by which the operator shows a program.
    pub flag: &'static str,
    /// Toolchains of Rust that commands choose by `+NAME`.
    pub chosen: &'a BTreeSet<String>,
}

/// Where a program is found in a jail.
#[derive(Debug)]
pub enum Located<'s> {
    Missing,
    /// It is there, but not shown.
    NotShown(&'s str),
    At(PathBuf, &'s [Granted]),
}

/// Looks at the whole of PATH.
pub fn search(wanted: &Wanted<'_>, places: &Places, env: &Env) -> SearchPath {
    let mut dirs: Vec<PathBuf> = Vec::new();
    for dir in std::env::split_paths(env.get("PATH").unwrap_or_default()) {
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    let repo = wanted.repo.map(|repo| places.look(repo).path);
    let mut look = Look {
        wanted,
        places,
        env,
        repo: repo.as_deref(),
        later: Vec::new(),
        single: 0,
    };
    let mut entries = Vec::new();
    for (at, dir) in dirs.iter().enumerate() {
        let rest = dirs[at + 1..].iter().cloned();
        look.later = rest.chain(SEARCHED.map(PathBuf::from)).collect();
        entries.push(look.entry(dir));
    }
    let with = Searching {
        house: places.house(),
        copied: repo.as_deref(),
    };
    let mut found = search::arrange(entries, with);
    let named: Vec<Part> = wanted.named.iter().map(part_of).collect();
    found.parts.splice(0..0, named);
    for dir in SEARCHED.map(PathBuf::from) {
        let known = |part: &Part| matches!(part, Part::Dir { dir: other, .. } if *other == dir);
        if !found.parts.iter().any(known) {
            found.last.push(dir);
        }
    }
    if matches!(locate(&found, "cargo"), Located::At(..))
        && let Some((cargo_home, registry)) = cargo_registry(env)
        && let Ok(granted) = places.named(&registry, false, &[])
    {
        found.also.push(granted.under(&registry));
        // No network in a jail: said at once, instead of after a time-out.
        let told = [
            ("CARGO_NET_OFFLINE", "true".to_owned()),
            ("CARGO_HOME", cargo_home.display().to_string()),
        ];
        found
            .env
            .extend(told.map(|(name, value)| (name.to_owned(), value)));
    }
    for name in wanted.chosen {
        if let Err(why) = shims::rustup_named(name, env)
            && matches!(found.offers("cargo"), Some(Offer::Choice { .. }))
        {
            found.not_shown.insert(format!("+{name}"), why);
        }
    }
    found
}

/// What a jail would start by a name.
pub fn locate<'s>(search: &'s SearchPath, name: &str) -> Located<'s> {
    for part in &search.parts {
        match part {
            Part::Dir { dir, mounts } => {
                let program = dir.join(name);
                if is_program(&program) {
                    return Located::At(program, mounts);
                }
            }
            Part::Ours(ours) => match ours.get(name) {
                None => {}
                Some(Offer::NotShown(why)) => return Located::NotShown(why),
                Some(Offer::Link { to, mounts }) => return Located::At(to.clone(), mounts),
                // It chooses between those of the next directory and others.
                Some(Offer::Choice { .. }) => {}
            },
        }
    }
    match search.not_shown.get(name) {
        Some(why) => Located::NotShown(why),
        None => Located::Missing,
    }
}

/// What was named, searched as it is: a directory, its `bin`, or the one program.
fn part_of(granted: &Granted) -> Part {
    let (path, mounts) = (granted.path(), shown_only(granted));
    let bin = path.join("bin");
    match granted.is_dir() {
        true if bin.is_dir() => Part::Dir { dir: bin, mounts },
        true => Part::Dir {
            dir: path.to_owned(),
            mounts,
        },
        false => {
            // The name it was typed by.
            let name = granted.target().file_name().unwrap_or_default();
            let offer = Offer::Link {
                to: path.to_owned(),
                mounts,
            };
            Part::Ours([(name.to_string_lossy().into_owned(), offer)].into())
        }
    }
}

/// What every jail is shown needs no mount.
fn shown_only(granted: &Granted) -> Vec<Granted> {
    match is_system(granted.path()) {
        true => Vec::new(),
        false => vec![granted.clone().under(granted.path())],
    }
}

/// A regular file someone may execute.
fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Does a file begin as the kernel's own format does? A script is text, whoever wrote it.
fn is_native(path: &Path) -> bool {
    let mut first = [0; 4];
    files::open_regular(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok())
        && first == *b"\x7fELF"
}

struct Look<'a> {
    wanted: &'a Wanted<'a>,
    places: &'a Places,
    env: &'a Env,
    repo: Option<&'a Path>,
    /// Directories that are searched after this one.
    later: Vec<PathBuf>,
    /// Programs that were offered alone.
    single: usize,
}

impl Look<'_> {
    fn entry(&mut self, dir: &Path) -> Entry {
        let place = self.places.look(dir);
        let looks = dir.is_absolute()
            && dir.to_str().is_some()
            && place.kind == PlaceKind::Directory
            && !is_system(&place.path);
        let held = match looks {
            true => self.held(dir, &place),
            false => Vec::new(),
        };
        Entry {
            typed: dir.to_owned(),
            place,
            held,
        }
    }

    fn held(&mut self, dir: &Path, place: &Place) -> Vec<Held> {
        let names = self.names(dir);
        if names.is_empty() {
            return Vec::new();
        }
        if let Some(root) = environment_around(dir) {
            let of_copy = self.is_copied(&place.path);
            let dir = if of_copy { &place.path } else { dir };
            return vec![match self.environment(&root) {
                Ok(mounts) => Held::Whole {
                    dir: dir.to_owned(),
                    mounts,
                },
                Err(why) => self.none_of(names, &why),
            }];
        }
        if dir.ends_with("shims") {
            return self.behind_shims(dir, names);
        }
        if let Some(shown) = self.shown_with(&place.path) {
            return vec![Held::Whole {
                dir: place.path.clone(),
                mounts: vec![shown],
            }];
        }
        match self.places.directory(dir) {
            Ok(Some(granted)) => {
                return vec![Held::Whole {
                    dir: place.path.clone(),
                    mounts: vec![granted],
                }];
            }
            Ok(None) => {}
            Err(refused) => return vec![self.none_of(names, &refused.to_string())],
        }
        // Of the repository nothing is offered but environments.
        if self.is_copied(&place.path) {
            return Vec::new();
        }
        self.one_by_one(dir, names)
    }

    fn is_copied(&self, path: &Path) -> bool {
        self.repo.is_some_and(|repo| path.starts_with(repo))
    }

    /// What of the host an environment needs. One of the repository comes along, or does not, by
    /// rules of its own (`plan/environments.rs`).
    fn environment(&self, root: &Path) -> Result<Vec<Granted>, String> {
        match self.is_copied(&self.places.look(root).path) {
            true => base_of(root, &[], self.places),
            false => based_on(root, &root.join("pyvenv.cfg"), &[], self.places),
        }
    }

    /// What the jail is shown already, if that holds this place. What the command may write is
    /// nothing to find programs in.
    fn shown_with(&self, real: &Path) -> Option<Granted> {
        let holds = |granted: &&Granted| !granted.writable() && real.starts_with(granted.target());
        self.wanted.shown.iter().find(holds).cloned()
    }

    /// Programs in a directory that are asked for.
    fn names(&self, dir: &Path) -> Vec<String> {
        let is_wanted = |name: &String| is_program(&dir.join(name));
        let mut names: Vec<String> = match self.wanted.names {
            Some(names) => names
                .iter()
                .filter(|name| is_wanted(name))
                .cloned()
                .collect(),
            None => fs::read_dir(dir)
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .filter(is_wanted)
                .collect(),
        };
        names.sort();
        names
    }

    fn none_of(&self, names: Vec<String>, why: &str) -> Held {
        let not_shown = |name: String| {
            let offer = Offer::NotShown(why.to_owned());
            self.candidate(name, offer)
        };
        Held::Programs(names.into_iter().map(not_shown).collect())
    }

    fn candidate(&self, name: String, offer: Offer) -> Candidate {
        let hides_another = matches!(offer, Offer::NotShown(_))
            && self.later.iter().any(|dir| is_program(&dir.join(&name)));
        Candidate {
            name,
            offer,
            hides_another,
        }
    }

    /// The versions that a manager chooses, in its order.
    fn behind_shims(&self, dir: &Path, names: Vec<String>) -> Vec<Held> {
        let mut held = Vec::new();
        let chosen = shims::directories(dir, self.repo, self.env);
        for bin in &chosen {
            match self.places.directory(bin) {
                Ok(Some(granted)) => held.push(Held::Whole {
                    dir: self.places.look(bin).path,
                    mounts: vec![granted],
                }),
                Ok(None) => held.push(Held::Nothing(format!(
                    "{} is no installation that is known by its files",
                    self.places.shorten(bin)
                ))),
                Err(refused) => held.push(Held::Nothing(refused.to_string())),
            }
        }
        let whole = |held: &Held| matches!(held, Held::Whole { .. });
        if !held.iter().any(whole) && !shims::leaves_it_to_the_system(dir, self.repo, self.env) {
            held.push(self.none_of(
                names,
                "it is a stand-in of a version manager, and no installed version was found behind it",
            ));
        }
        held
    }

    /// A directory of people's: proxies of rustup as their toolchain, native programs, and links
    /// into installations. Scripts are text of the operator's.
    fn one_by_one(&mut self, dir: &Path, names: Vec<String>) -> Vec<Held> {
        let (proxies, rest): (Vec<String>, Vec<String>) = names
            .into_iter()
            .partition(|name| shims::is_rustup(&dir.join(name)));
        let mut held = Vec::new();
        if !proxies.is_empty() {
            held.extend(self.behind_rustup(proxies));
        }
        let mut offered = Vec::new();
        let many = || {
            Offer::NotShown(format!(
                "PATH holds more than {MOST_SINGLE} single programs"
            ))
        };
        for name in rest {
            let path = dir.join(&name);
            // A file is offered alone or not at all: enough were looked at.
            if self.single >= MOST_SINGLE && !path.is_symlink() {
                offered.push(self.candidate(name, many()));
                continue;
            }
            let mut offer = self.offer(&path);
            if let Offer::Link { mounts, .. } = &offer
                && mounts.iter().any(|granted| !granted.is_dir())
            {
                self.single += 1;
                if self.single > MOST_SINGLE {
                    offer = many();
                }
            }
            offered.push(self.candidate(name, offer));
        }
        held.push(Held::Programs(offered));
        held
    }

    fn behind_rustup(&self, proxies: Vec<String>) -> Vec<Held> {
        let bin = match shims::rustup_bin(self.repo, self.env) {
            Ok(bin) => bin,
            Err(why) => return vec![self.none_of(proxies, &why)],
        };
        let granted = match self.places.directory(&bin) {
            Ok(Some(granted)) => granted,
            Ok(None) => {
                let why = format!("{} is no Rust toolchain", self.places.shorten(&bin));
                return vec![self.none_of(proxies, &why)];
            }
            Err(refused) => return vec![self.none_of(proxies, &refused.to_string())],
        };
        let mut held = Vec::new();
        if !self.wanted.chosen.is_empty() {
            held.push(Held::Programs(self.choices(&proxies, &bin)));
        }
        held.push(Held::Whole {
            dir: self.places.look(&bin).path,
            mounts: vec![granted],
        });
        held
    }

    /// `cargo +NAME` is a word to rustup's proxy, which is not shown: a script of ours takes it.
    fn choices(&self, proxies: &[String], default: &Path) -> Vec<Candidate> {
        let mut bins = BTreeMap::new();
        let mut mounts = Vec::new();
        for name in self.wanted.chosen {
            let Ok(bin) = shims::rustup_named(name, self.env) else {
                // The script says so as well; a run does not come so far.
                continue;
            };
            if let Ok(Some(granted)) = self.places.directory(&bin) {
                bins.insert(name.clone(), self.places.look(&bin).path);
                mounts.push(granted);
            }
        }
        let default = self.places.look(default).path;
        let choice = |proxy: &String| {
            let text = shims::choice(proxy, &bins, &default);
            let mounts = mounts.clone();
            self.candidate(proxy.clone(), Offer::Choice { text, mounts })
        };
        proxies
            .iter()
            .filter(|proxy| is_program(&default.join(proxy)))
            .map(choice)
            .collect()
    }

    fn offer(&self, path: &Path) -> Offer {
        if let Some((root, program)) = environment_behind(path) {
            return match self.environment(&root) {
                Ok(mounts) => Offer::Link {
                    to: program,
                    mounts,
                },
                Err(why) => Offer::NotShown(why),
            };
        }
        let real = self.places.look(path).path;
        if let Some(shown) = self.shown_with(&real) {
            return Offer::Link {
                to: real,
                mounts: vec![shown],
            };
        }
        match self.places.program(path) {
            Ok(None) => Offer::Link {
                to: real,
                mounts: Vec::new(),
            },
            Ok(Some(granted)) if granted.is_dir() || is_native(&real) => Offer::Link {
                to: real,
                mounts: vec![granted],
            },
            Ok(Some(_)) => {
                let shown = self.places.shorten(path);
                Offer::NotShown(format!(
                    "{shown} is a script, which is shown only when it is named: {} {shown}",
                    self.wanted.flag
                ))
            }
            Err(refused) => Offer::NotShown(refused.to_string()),
        }
    }
}

/// Does this directory hold the programs of an environment?
pub(super) fn is_environment(dir: &Path) -> bool {
    environment_around(dir).is_some()
}

/// The environment a directory is the `bin` of.
fn environment_around(dir: &Path) -> Option<PathBuf> {
    let root = dir.parent().filter(|_| dir.ends_with("bin"))?;
    fs::symlink_metadata(root.join("pyvenv.cfg")).ok()?;
    Some(root.to_owned())
}

/// The environment that a link leads into, and the program there: what it links to in turn is what
/// makes it an environment's.
fn environment_behind(link: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut at = link.to_owned();
    for _ in 0..MOST_LINKS {
        let target = fs::read_link(&at).ok()?;
        let dir = at.parent()?.join(target.parent()?).canonicalize().ok()?;
        at = dir.join(target.file_name()?);
        if let Some(root) = environment_around(&dir) {
            return Some((root, at));
        }
    }
    None
}
