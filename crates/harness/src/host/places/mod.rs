//! Places of the host that a jail may be shown: looked at here, decided in core. What is handed to
//! a jail is always a [`Granted`] that came through here.
//!
//! - this file: a path followed link by link, and who asks for it; `kept.rs` what no jail is shown

mod kept;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use cto_core::containment::mounts::installation::{self, Installation, MARKS, Mixed, Signs};
use cto_core::containment::mounts::stand::Stand;
use cto_core::containment::mounts::{
    self, Asked, By, Flaw, Granted, House, Id, Kept, KeptPlace, Link, Place, PlaceKind, Refused,
    Step,
};

pub use kept::{mount_table, tokens_in};

use self::kept::{config_place, homes_of_people, state_places};
use crate::host::{Env, Home, make_private_dir, way};

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
/// A directory with more names than this is no installation.
const MOST_NAMES: usize = 4096;

/// One name, as the file system has it.
#[derive(Clone)]
enum Seen {
    Missing,
    Link(PathBuf),
    Real(PlaceKind, Step),
}

/// What a directory around a program is.
#[derive(Clone)]
enum Around {
    Known(Installation),
    Mixed(Mixed),
}

/// The host as it was found; each name is looked at once.
pub struct Places {
    house: House,
    seen: RefCell<BTreeMap<PathBuf, Seen>>,
    /// What directories around programs are: programs of one directory have them in common.
    known: RefCell<BTreeMap<PathBuf, Option<Around>>>,
}

impl Places {
    /// Looks at what must be kept from jails.
    pub fn of(env: &Env, home: &Home) -> Self {
        let mut places = Self {
            house: House {
                operator: rustix::process::geteuid().as_raw(),
                mounted: mount_table(),
                ..House::default()
            },
            seen: RefCell::default(),
            known: RefCell::default(),
        };
        let user = env.path("HOME").filter(|dir| dir.is_absolute());
        places.house.home = user.as_ref().map(|dir| places.look(dir).path);
        // What a refusal names first is what the operator knows best.
        let mut kept: Vec<(Kept, PathBuf)> = vec![(Kept::Runtime, "/var/run".into())];
        kept.extend(user.map(|dir| (Kept::Home, dir)));
        kept.extend(state_places(env, home).map(|dir| (Kept::State, dir)));
        kept.extend(config_place(env).map(|path| (Kept::Config, path)));
        kept.extend(homes_of_people(places.house.operator).map(|dir| (Kept::OtherHome, dir)));
        for (what, path) in kept {
            let place = places.look(&path);
            let known = |kept: &KeptPlace| kept.what == what && kept.place.path == place.path;
            if !places.house.kept.iter().any(known) {
                places.house.kept.push(KeptPlace { what, place });
            }
        }
        places.house.workshop = [home.work(), home.cache()]
            .map(|dir| places.look(&dir).path)
            .into();
        places.house.runs = Some(places.look(&home.runs).path);
        if let Ok(here) = std::env::current_dir() {
            places.add_reach(here);
        }
        places
    }

    /// A directory that jails write to. A home never is one.
    pub fn add_reach(&mut self, dir: PathBuf) {
        let home = self.house.home.as_ref();
        if !home.is_some_and(|home| home.starts_with(&dir)) {
            self.house.reach.push(dir);
        }
    }

    /// What the harness made for a jail.
    pub fn made(&self, path: &Path, writable: bool) -> io::Result<Granted> {
        let asked = asked(By::Harness, writable);
        mounts::decide(&asked, &self.look(path), &self.house)
            .map_err(|refused| io::Error::other(refused.to_string()))
    }

    /// Where the copy of a repository stands in a jail.
    pub fn stand(&self, repository: &Path) -> Stand {
        let real = self.look(repository).path;
        Stand::of(&self.look(&real), &self.house)
    }

    /// What the operator named. `shown` is what the same jail was granted before.
    pub fn named(
        &self,
        path: &Path,
        writable: bool,
        shown: &[Granted],
    ) -> Result<Granted, Refused> {
        let place = self.look(path);
        // Only a link could make it a wish.
        let known = match place.links.is_empty() {
            true => None,
            false => installation::recognise(&self.signs(&place.path)),
        };
        let repositories = self.repositories(&place.path);
        let asked = Asked {
            installation: known.as_ref(),
            repositories: known.as_ref().map(|_| repositories.as_slice()),
            ..asked(By::Operator { shown }, writable)
        };
        mounts::decide(&asked, &place, &self.house)
    }

    /// The same for a directory that is made where it is missing and nothing else is wrong with it.
    pub fn named_or_made(&self, path: &Path, shown: &[Granted]) -> Result<Granted, Refused> {
        match self.named(path, true, shown) {
            Err(Refused::Missing(place)) => {
                let _ = make_private_dir(&place);
                self.seen.borrow_mut().clear();
                self.named(path, true, shown)
            }
            decided => decided,
        }
    }

    /// What a jail needs of a program: its installation, or where there is none the file alone;
    /// nothing of what it sees anyway.
    pub fn program(&self, named: &Path) -> Result<Option<Granted>, Refused> {
        let real = self.look(named);
        if mounts::is_system(&real.path) {
            return Ok(None);
        }
        let by = By::Program { links: &real.links };
        match self.installation_of(&real.path) {
            Some(Around::Known(known)) => match self.decide(by, &known) {
                // Then it is not shown whole.
                Err(Refused::Exposes(..) | Refused::NoInstallation(_)) => {}
                decided => return decided.map(Some),
            },
            // Without what it was installed with it would be another program, or none.
            Some(Around::Mixed(mixed)) if self.may_be_typed(&mixed.root) => {
                return Err(Refused::Mixed(mixed));
            }
            Some(Around::Mixed(_)) | None => {}
        }
        self.file(named).map(Some)
    }

    /// The installation that a directory of programs belongs to, if it belongs to one that may be
    /// shown whole.
    pub fn directory(&self, dir: &Path) -> Result<Option<Granted>, Refused> {
        let real = self.look(dir);
        match self.installation_of(&real.path.join("x")) {
            Some(Around::Known(known)) => {
                let by = By::Program { links: &real.links };
                match self.decide(by, &known) {
                    Err(Refused::Exposes(..) | Refused::NoInstallation(_)) => Ok(None),
                    decided => decided.map(Some),
                }
            }
            Some(Around::Mixed(mixed)) if self.may_be_typed(&mixed.root) => {
                Err(Refused::Mixed(mixed))
            }
            Some(Around::Mixed(_)) | None => Ok(None),
        }
    }

    /// What is known of the host and its operator.
    pub fn house(&self) -> &House {
        &self.house
    }

    /// Could the operator have a place shown by typing it?
    fn may_be_typed(&self, path: &Path) -> bool {
        let refused = self.named(path, false, &[]);
        !matches!(refused, Err(Refused::Exposes(..)))
    }

    /// A program without what it was installed with.
    pub fn file(&self, named: &Path) -> Result<Granted, Refused> {
        let real = self.look(named);
        let by = By::Program { links: &real.links };
        mounts::decide(&asked(by, false), &real, &self.house)
    }

    /// A directory of packages that a program lies in.
    pub fn packages(&self, named: &Path, root: &Path) -> Result<Granted, Refused> {
        let (real, links) = (self.look(root), self.look(named).links);
        let known = installation::recognise(&self.signs(&real.path));
        match known {
            Some(known) => self.decide(By::Program { links: &links }, &known),
            None => Err(Refused::NoInstallation(real.path)),
        }
    }

    /// An environment that a program lies in, under the name it was found by.
    pub fn environment(&self, root: &Path) -> Result<Granted, Refused> {
        let place = self.look(root);
        let known = match self.around(&place.path) {
            Some(Around::Known(known)) => known,
            Some(Around::Mixed(mixed)) => return Err(Refused::Mixed(mixed)),
            None => return Err(Refused::NoInstallation(place.path)),
        };
        let by = By::Program {
            links: &place.links,
        };
        let granted = match self.decide(by, &known) {
            // A link to an environment is followed where the environment lies beside it.
            Err(Refused::Wish { .. }) if self.same_repository(root, &place.path) => {
                self.decide(By::Program { links: &[] }, &known)
            }
            decided => decided,
        };
        granted.map(|granted| granted.under(root))
    }

    fn same_repository(&self, one: &Path, other: &Path) -> bool {
        let (one, other) = (self.repositories(one), self.repositories(other));
        !one.is_empty() && one.first() == other.first()
    }

    /// What a file in a jail's reach wants to be shown for a program: its installation, where that
    /// is one; nothing of what is shown already.
    pub fn wish(
        &self,
        file: &Path,
        program: &Path,
        shown: &[Granted],
    ) -> Result<Option<Granted>, Refused> {
        let real = self.look(program);
        if mounts::is_system(&real.path) {
            return Ok(None);
        }
        let by = By::Wish { file, shown };
        let alone = || mounts::decide(&asked(by, false), &real, &self.house);
        match self.installation_of(&real.path) {
            Some(Around::Known(known)) => self.decide(by, &known).map(Some),
            None => alone().map(Some),
            Some(Around::Mixed(mixed)) => match alone() {
                Err(Refused::Wish { file, target, .. }) => Err(Refused::Wish {
                    file,
                    target,
                    flaw: Flaw::Mixed(mixed.hidden),
                }),
                decided => decided.map(Some),
            },
        }
    }

    /// Other names of a granted installation that the way to a program passed, beside its own: uv
    /// keeps `cpython-3.12` as a link to the one of its patches, and environments name the link.
    pub fn other_names(&self, granted: &Granted, program: &Path) -> Vec<Granted> {
        let beside = |link: &Link| {
            link.at.parent() == granted.path().parent()
                && self.look(&link.at).path == granted.path()
        };
        let links = self.look(program).links.into_iter().filter(beside);
        links.map(|link| granted.clone().under(&link.at)).collect()
    }

    fn decide(&self, by: By<'_>, known: &Installation) -> Result<Granted, Refused> {
        let repositories = self.repositories(&known.root);
        let asked = Asked {
            installation: Some(known),
            repositories: Some(&repositories),
            ..asked(by, false)
        };
        mounts::decide(&asked, &self.look(&known.root), &self.house)
    }

    fn installation_of(&self, program: &Path) -> Option<Around> {
        let candidates = installation::candidates(program);
        candidates.iter().find_map(|root| self.around(root))
    }

    fn around(&self, root: &Path) -> Option<Around> {
        if let Some(known) = self.known.borrow().get(root) {
            return known.clone();
        }
        let signs = self.signs(root);
        let known = installation::recognise(&signs).map(Around::Known);
        let known = known.or_else(|| installation::mixed(&signs).map(Around::Mixed));
        self.known
            .borrow_mut()
            .insert(root.to_owned(), known.clone());
        known
    }

    /// Why no jail may be built at all while things lie where they do.
    pub fn no_jail(&self) -> Option<Refused> {
        self.house.in_the_system().err()
    }

    /// The operator's home as `~`: a bundle goes to strangers.
    pub fn shorten(&self, path: &Path) -> String {
        self.house.shorten(path)
    }

    /// Follows every link, and says which. What does not exist is named all the same.
    pub fn look(&self, path: &Path) -> Place {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut rest: VecDeque<OsString> = parts_of(&absolute).collect();
        let (mut at, mut links, mut missing) = (PathBuf::from("/"), Vec::new(), false);
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&part);
            match self.see(&next) {
                _ if missing => at = next,
                Seen::Real(..) => at = next,
                Seen::Link(target) if links.len() < MOST_LINKS => {
                    links.extend(self.link(next, &at));
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    for part in parts_of(&target).collect::<Vec<_>>().into_iter().rev() {
                        rest.push_front(part);
                    }
                }
                Seen::Missing | Seen::Link(_) => {
                    missing = true;
                    at = next;
                }
            }
        }
        let kind = match self.see(&at) {
            Seen::Real(kind, _) if !missing => kind,
            _ => PlaceKind::Missing,
        };
        let chain = at.ancestors().filter_map(|dir| self.step(dir)).collect();
        Place {
            path: at,
            kind,
            links,
            chain,
        }
    }

    fn step(&self, path: &Path) -> Option<Step> {
        match self.see(path) {
            Seen::Real(_, step) => Some(step),
            Seen::Missing | Seen::Link(_) => None,
        }
    }

    fn link(&self, at: PathBuf, dir: &Path) -> Option<Link> {
        Some(Link {
            at,
            dir: self.step(dir)?,
            in_repository: !self.repositories(dir).is_empty(),
        })
    }

    /// Directories from a path upward that are repositories, but no home: homes that are
    /// repositories are nobody's workspace.
    fn repositories(&self, path: &Path) -> Vec<PathBuf> {
        let home = self.house.home.as_ref();
        let of_home = |dir: &&Path| home.is_some_and(|home| home.starts_with(dir));
        let holds = |dir: &Path, name: &str| !matches!(self.see(&dir.join(name)), Seen::Missing);
        path.ancestors()
            .take_while(|dir| !of_home(dir))
            .filter(|dir| way::REPOSITORY.iter().any(|name| holds(dir, name)))
            .map(Path::to_owned)
            .collect()
    }

    fn see(&self, path: &Path) -> Seen {
        if let Some(seen) = self.seen.borrow().get(path) {
            return seen.clone();
        }
        let seen = see(path);
        self.seen.borrow_mut().insert(path.to_owned(), seen.clone());
        seen
    }

    fn signs(&self, root: &Path) -> Signs {
        let hidden = names_in(root).map(|names| {
            let hidden = names.into_iter().filter(|name| name.as_bytes()[0] == b'.');
            hidden
                .map(|name| name.to_string_lossy().into_owned())
                .collect()
        });
        Signs {
            root: root.to_owned(),
            marks: MARKS.into_iter().filter(|mark| holds(root, mark)).collect(),
            hidden,
        }
    }
}

fn asked(by: By<'_>, writable: bool) -> Asked<'_> {
    Asked {
        by,
        writable,
        installation: None,
        repositories: None,
    }
}

fn parts_of(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn see(path: &Path) -> Seen {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return Seen::Missing;
    };
    if meta.is_symlink() {
        return fs::read_link(path).map_or(Seen::Missing, Seen::Link);
    }
    let kind = match meta.is_dir() {
        true => PlaceKind::Directory,
        false => PlaceKind::File,
    };
    // Of a sticky directory nobody takes what is another's.
    let mode = meta.mode();
    let sticky = meta.is_dir() && mode & 0o1000 != 0;
    let by_group = mode & 0o020 != 0 && !way::group_is_private(path, &meta);
    let step = Step {
        path: path.to_owned(),
        id: Id {
            device: meta.dev(),
            inode: meta.ino(),
        },
        owner: meta.uid(),
        open: !sticky && (by_group || mode & 0o002 != 0),
    };
    Seen::Real(kind, step)
}

/// The names in a directory; none where there are too many, or they cannot be read.
fn names_in(dir: &Path) -> Option<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).ok()? {
        names.push(entry.ok()?.file_name());
        if names.len() > MOST_NAMES {
            return None;
        }
    }
    Some(names)
}

/// Does something below a directory match a mark?
fn holds(root: &Path, mark: &str) -> bool {
    let there = |path: &Path| fs::symlink_metadata(path).is_ok();
    let Some((before, after)) = mark.split_once('*') else {
        return there(&root.join(mark));
    };
    let (dir, start) = before.rsplit_once('/').unwrap_or(("", before));
    let (dir, rest) = (root.join(dir), after.trim_start_matches('/'));
    names_in(&dir)
        .unwrap_or_default()
        .iter()
        .filter(|name| name.as_bytes().starts_with(start.as_bytes()))
        .any(|name| there(&dir.join(name).join(rest)))
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
