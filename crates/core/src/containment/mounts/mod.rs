//! Which places of the host a jail is shown: one function, from facts to a grant or a refusal.
//!
//! - this file: the facts, what is kept from every jail, and `decide`
//! - `installation.rs` what an installation is, by its own files
//! - `needed.rs` what runs an engine, and whether its jail shows it as it was verified
//! - `same.rs` whether two places overlap, under whatever names
//! - `search.rs` where a jail looks for programs
//! - `stand.rs` where the copy of a repository stands in a jail
//! - `system.rs` what every jail sees of the system, and what of it no command may write
//! - `refusal.rs` why a place is not shown, in words
//!
//! A [`Granted`] is made here and nowhere else, and a mount is made of one and of nothing else. It
//! names the place by what the kernel calls it too, so that the jail can tell whether what it
//! opened is what was decided about.

pub mod installation;
pub mod needed;
mod refusal;
mod same;
pub mod search;
pub mod stand;
mod system;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::refusal::{Flaw, Refused};
pub use self::system::{FoundOnce, SYSTEM, is_system};

use self::installation::Installation;
use self::same::holds_secrets;
use self::system::is_hosts_own;
use super::outside;

/// What the kernel calls a file or directory, whatever its name is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Id {
    pub device: u64,
    pub inode: u64,
}

impl Id {
    /// Of nothing: no file has it.
    pub const NONE: Self = Self {
        device: 0,
        inode: 0,
    };
}

/// Something that exists on the way to a place, or the place itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub path: PathBuf,
    pub id: Id,
    pub owner: u32,
    /// Somebody besides its owner and root may change what it holds.
    pub open: bool,
}

/// A link that was followed, by its own place and the directory that holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    pub at: PathBuf,
    pub dir: Step,
    /// The directory lies at or below a repository.
    pub in_repository: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceKind {
    Missing,
    Directory,
    /// Anything that is no directory.
    File,
}

/// A place on the host, after every link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Absolute and without a link. What does not exist yet is named below the nearest directory
    /// that does.
    pub path: PathBuf,
    pub kind: PlaceKind,
    pub links: Vec<Link>,
    /// What exists of it, from itself up to the root.
    pub chain: Vec<Step>,
}

impl Place {
    fn own_step(&self) -> Option<&Step> {
        let own = self.chain.first()?;
        (self.kind != PlaceKind::Missing && own.path == self.path).then_some(own)
    }
}

/// A mount of the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    pub point: PathBuf,
    /// The file system, as the kernel numbers it.
    pub device: (u32, u32),
    /// Which directory of the file system is mounted there.
    pub root: PathBuf,
    /// Its type.
    pub kind: String,
}

/// What no jail is ever shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Evidence, keys and approvals: where they are, and everywhere they could come to be.
    State,
    /// The configuration of the harness.
    Config,
    /// The operator's home.
    Home,
    /// The home of somebody else.
    OtherHome,
    /// What the kernel or the host hands to its own processes: secrets, sockets, devices.
    Runtime,
}

impl Kept {
    /// Is everything below it kept as well? Homes hold workspaces.
    fn wholly(self) -> bool {
        !matches!(self, Self::Home | Self::OtherHome)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptPlace {
    pub what: Kept,
    pub place: Place,
}

/// The host and its operator, as far as mounts are concerned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct House {
    /// The uid this program runs as.
    pub operator: u32,
    /// The operator's home, without links.
    pub home: Option<PathBuf>,
    pub kept: Vec<KeptPlace>,
    pub mounted: Vec<Mounted>,
    /// Directories in which the harness makes what it hands to a jail.
    pub workshop: Vec<PathBuf>,
    /// Where bundles are made. Of one that is open, the engine is given its scratch directory.
    pub runs: Option<PathBuf>,
    /// Where jails are known to write: a workspace, the current directory.
    pub reach: Vec<PathBuf>,
    /// Whether what is kept lies in the system: every question about a place asks that first.
    pub shown: FoundOnce,
}

/// Who wants a place to be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By<'a> {
    /// The harness made it for this jail.
    Harness,
    /// The operator typed this path. `shown` is what was granted to the same jail before.
    Operator { shown: &'a [Granted] },
    /// The operator's PATH, or a record, names a program; the links on the way to it.
    Program { links: &'a [Link] },
    /// A file in a place that a jail may write says so. `shown` as above.
    Wish {
        file: &'a Path,
        shown: &'a [Granted],
    },
}

/// A place that is wanted, and what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked<'a> {
    pub by: By<'a>,
    pub writable: bool,
    /// What its own files say it is.
    pub installation: Option<&'a Installation>,
    /// Directories from the place upward that are repositories; none where nobody looked.
    pub repositories: Option<&'a [PathBuf]>,
}

/// Leave to show one place to one jail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Granted {
    path: PathBuf,
    /// Where a jail shows it.
    target: PathBuf,
    id: Id,
    is_dir: bool,
    writable: bool,
    name: String,
    what: &'static str,
}

impl Granted {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The same place under the name it was found by, which its own files may hold.
    pub fn under(self, target: &Path) -> Self {
        Self {
            target: target.to_owned(),
            ..self
        }
    }

    pub fn id(&self) -> Id {
        self.id
    }

    pub fn is_dir(&self) -> bool {
        self.is_dir
    }

    pub fn writable(&self) -> bool {
        self.writable
    }

    /// As evidence and the terminal name it.
    pub fn shown(&self) -> HostPlace {
        HostPlace {
            path: self.name.clone(),
            what: self.what.to_owned(),
        }
    }
}

/// A place of the host that a jail was shown beyond the system, read-only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HostPlace {
    /// With the operator's home written as `~`.
    pub path: String,
    pub what: String,
}

/// What the kernel and the host keep for their own processes; and what in it belongs to people.
const RUNTIME: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/var/run"];
const NOT_RUNTIME: [&str; 2] = ["/run/media", "/dev/shm"];

/// May this place be shown to a jail?
pub fn decide(asked: &Asked<'_>, place: &Place, house: &House) -> Result<Granted, Refused> {
    house.in_the_system()?;
    let what = match asked.by {
        By::Harness => {
            let made = |dir: &PathBuf| place.path.starts_with(dir) && place.path != **dir;
            let runs = house
                .runs
                .as_ref()
                .filter(|runs| place.path.starts_with(runs));
            let scratch = runs.is_some() && place.path.ends_with("backend/scratch");
            if !scratch && !house.workshop.iter().any(made) {
                return Err(Refused::NotOurs(place.path.clone()));
            }
            "made for this jail"
        }
        By::Operator { shown } => {
            house.keep_away(place)?;
            house.keep_the_jails_own(place, asked.writable)?;
            match house.first_wish(&place.links, &place.path, true) {
                None => "named by the operator",
                Some(link) => house.grant_wish(asked, place, &link.at, shown)?,
            }
        }
        By::Program { links } => {
            house.keep_away(place)?;
            house.keep_the_jails_own(place, asked.writable)?;
            match house.first_wish(links, &place.path, false) {
                None => house.of_a_program(asked, place)?,
                Some(link) => house.grant_wish(asked, place, &link.at, &[])?,
            }
        }
        By::Wish { file, shown } => {
            house.keep_away(place)?;
            house.keep_the_jails_own(place, asked.writable)?;
            house.grant_wish(asked, place, file, shown)?
        }
    };
    // Last, so that it says of a place that could be made that nothing else is wrong with it.
    let Some(own) = place.own_step() else {
        return Err(Refused::Missing(place.path.clone()));
    };
    Ok(Granted {
        path: place.path.clone(),
        target: place.path.clone(),
        id: own.id,
        is_dir: place.kind == PlaceKind::Directory,
        writable: asked.writable,
        name: house.shorten(&place.path),
        what,
    })
}

impl House {
    /// The operator's home as `~`: a bundle goes to strangers.
    pub fn shorten(&self, path: &Path) -> String {
        match self
            .home
            .as_ref()
            .and_then(|home| path.strip_prefix(home).ok())
        {
            Some(rest) => Path::new("~").join(rest).display().to_string(),
            None => path.display().to_string(),
        }
    }

    /// A program brings its installation, or itself alone: a directory that is no installation
    /// holds other things, and where jails write, files say nothing about what else lies there.
    fn of_a_program(&self, asked: &Asked<'_>, place: &Place) -> Result<&'static str, Refused> {
        let nobodys_work = |known: &Installation| {
            let looked = asked.repositories;
            let outside = looked.is_some_and(|all| self.work_around(known, all).is_none());
            outside && !self.in_reach(&place.path)
        };
        match (asked.installation, place.kind) {
            (Some(known), _)
                if known.root == place.path && (!known.is_base || nobodys_work(known)) =>
            {
                Ok(known.kind)
            }
            (_, PlaceKind::File) => Ok("a program"),
            _ => Err(Refused::NoInstallation(place.path.clone())),
        }
    }

    /// Is this where jails are known to write?
    fn in_reach(&self, path: &Path) -> bool {
        self.reach.iter().any(|dir| path.starts_with(dir))
    }

    /// The first of these repositories that is somebody's work: a home that is one is written by no
    /// jail, and managers of versions are often clones of their own.
    fn work_around<'r>(&self, known: &Installation, all: &'r [PathBuf]) -> Option<&'r PathBuf> {
        let above_home = |dir: &PathBuf| {
            let home = self.home.as_ref();
            home.is_some_and(|home| home.starts_with(dir))
        };
        let of_manager = |dir: &PathBuf| known.manager.as_ref() == Some(dir);
        all.iter().find(|dir| !above_home(dir) && !of_manager(dir))
    }

    /// Could a jail have made this link? What is known to be written in jails counts whatever lies
    /// beside it. Anything else does where an operator may write it, but for the home and what is
    /// above it: that alone is refused to every jail of every call. State and configuration lie
    /// somewhere else with the next variable.
    fn may_be_planted(&self, link: &Link) -> bool {
        let dir = &link.dir;
        if is_hosts_own(&dir.path) {
            return false;
        }
        if link.in_repository || self.in_reach(&link.at) {
            return self.operator == 0 || dir.owner != 0 || dir.open;
        }
        let by_operator = self.operator == 0 || dir.owner == self.operator || dir.open;
        let covers = |kept: &KeptPlace| {
            kept.what == Kept::Home && self.covers(&dir.path, Some(dir.id), &kept.place)
        };
        by_operator && !self.kept.iter().any(covers)
    }

    /// The first link on the way that a jail could have made. Strictly, everything counts that
    /// could be written in a jail; otherwise what is known to be, but not what an installation holds
    /// itself.
    fn first_wish<'l>(&self, links: &'l [Link], target: &Path, strictly: bool) -> Option<&'l Link> {
        let known = |link: &Link| {
            link.in_repository
                || self.in_reach(&link.at)
                || link
                    .at
                    .components()
                    .any(|part| part.as_os_str() == "node_modules")
        };
        links
            .iter()
            .filter(|link| strictly || known(link) && !link.at.starts_with(target))
            .find(|link| self.may_be_planted(link))
    }

    /// Do its place and its owner say, and not its files alone, that it is an installation? A jail
    /// leaves any file where it works.
    fn is_vouched_for(&self, known: &Installation, place: &Place) -> bool {
        let of_root = place.own_step().is_some_and(|own| own.owner == 0);
        let of_others = self.operator != 0 || outside::class_of(&place.path).is_some();
        known.by_path || (of_root && of_others)
    }

    /// A wish is granted where the place is shown anyway, or is by itself an installation that
    /// nobody but root and the operator could have made.
    fn grant_wish(
        &self,
        asked: &Asked<'_>,
        place: &Place,
        file: &Path,
        shown: &[Granted],
    ) -> Result<&'static str, Refused> {
        let within = |granted: &&Granted| {
            place.path.starts_with(&granted.path) && (granted.writable || !asked.writable)
        };
        if shown.iter().any(|granted| within(&granted)) {
            return Ok("inside a place that is shown");
        }
        let refused = |flaw: Flaw| Refused::Wish {
            file: file.to_owned(),
            target: place.path.clone(),
            flaw,
        };
        let known = asked
            .installation
            .filter(|known| known.root == place.path && known.is_base && !asked.writable)
            .filter(|known| self.is_vouched_for(known, place))
            .ok_or_else(|| refused(Flaw::NotKnown))?;
        let foreign = |step: &&Step| step.owner != 0 && step.owner != self.operator;
        if let Some(step) = place.chain.iter().find(foreign) {
            return Err(refused(Flaw::Owner(step.path.clone())));
        }
        if let Some(step) = place.chain.iter().find(|step| step.open) {
            return Err(refused(Flaw::Open(step.path.clone())));
        }
        let Some(repositories) = asked.repositories else {
            return Err(refused(Flaw::NotKnown));
        };
        match self.work_around(known, repositories) {
            Some(dir) => Err(refused(Flaw::Repository(dir.clone()))),
            None => Ok(known.kind),
        }
    }

    /// Refuses a place that holds, or lies in, anything that is kept from jails.
    fn keep_away(&self, place: &Place) -> Result<(), Refused> {
        let exposes = |what: Kept| Err(Refused::Exposes(what, place.path.clone()));
        let id = place.own_step().map(|step| step.id);
        for kept in &self.kept {
            let inside = kept.what.wholly() && self.lies_in(place, &kept.place);
            if inside || self.covers(&place.path, id, &kept.place) {
                return exposes(kept.what);
            }
        }
        let in_homes = place.path.parent() == Some(Path::new("/home"));
        let of_another = |step: &Step| step.owner != self.operator;
        if place.path == Path::new("/home") || in_homes && place.own_step().is_some_and(of_another)
        {
            return exposes(Kept::OtherHome);
        }
        let named = |dirs: &[&str]| dirs.iter().any(|dir| place.path.starts_with(dir));
        let of_people = NOT_RUNTIME
            .iter()
            .any(|dir| place.path.starts_with(dir) && place.path != Path::new(dir));
        let around = self.mount_of(&place.path).is_some_and(holds_secrets) && !of_people;
        let below = self.mounts_below(&place.path).any(holds_secrets);
        match (named(&RUNTIME) && !of_people) || around || below {
            true => exposes(Kept::Runtime),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "mounts_tests.rs"]
mod tests;
