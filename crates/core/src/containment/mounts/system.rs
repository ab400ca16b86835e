//! What belongs to the system: what every jail sees of it, what a jail makes for itself, and what
//! no command may be given to write.

use std::path::Path;
use std::sync::OnceLock;

use super::{House, Kept, KeptPlace, Place, Refused};
use crate::containment::ordinary::{OF_ETC, is_of_etc};
use crate::containment::outside;

/// Visible in every jail as it is, with everything below.
pub const SYSTEM: [&str; 7] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
];
/// What a jail makes for itself.
const JAILS_OWN: [&str; 10] = [
    "/", "/etc", "/tmp", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/dev/shm", "/var/tmp",
];
/// Where people work although it is part of the system.
pub(super) const SOURCES: [&str; 2] = ["/usr/src", "/usr/local/src"];
/// What the host starts, boots or installs by: who writes there needs no jail to leave.
const HOSTS_OWN: [&str; 7] = [
    "/etc",
    "/boot",
    "/var/spool",
    "/var/lib/dpkg",
    "/var/lib/apt",
    "/var/lib/rpm",
    "/var/lib/systemd",
];

/// Is this visible in every jail?
pub fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|dir| path.starts_with(dir))
}

/// Is this, or is something in it, what the host itself runs by? No jail ever writes there.
pub(super) fn is_hosts_own(path: &Path) -> bool {
    let near = |dir: &&str| path.starts_with(dir) || Path::new(dir).starts_with(path);
    let below = |dir: &&str| path.starts_with(dir) && path != Path::new(dir);
    let of_people = SOURCES.iter().any(below);
    (is_system(path) && !of_people) || HOSTS_OWN.iter().any(near) || outside::is_near_programs(path)
}

/// An answer that follows from the rest of a house, for as much of it as was known when it was found. It
/// is no part of what a house is.
#[derive(Debug, Default)]
pub struct FoundOnce(OnceLock<((usize, usize), Result<(), Refused>)>);

impl Clone for FoundOnce {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for FoundOnce {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for FoundOnce {}

impl House {
    /// What is kept from every jail cannot lie in what every jail is shown: there is no jail then.
    /// A link on the way to it tells nothing. Found once: a house is asked about hundreds of programs, and
    /// only ever grows.
    pub fn in_the_system(&self) -> Result<(), Refused> {
        let size = (self.kept.len(), self.mounted.len());
        let found = self
            .shown
            .0
            .get_or_init(|| (size, self.lies_in_the_system()));
        match found.0 == size {
            true => found.1.clone(),
            false => self.lies_in_the_system(),
        }
    }

    fn lies_in_the_system(&self) -> Result<(), Refused> {
        let ours = |kept: &&KeptPlace| matches!(kept.what, Kept::Home | Kept::State | Kept::Config);
        let is_shown = |kept: &&KeptPlace| {
            let place = Place {
                links: Vec::new(),
                ..kept.place.clone()
            };
            let mut all = SYSTEM.iter().chain(OF_ETC);
            is_of_etc(&place.path) || all.any(|dir| self.covers(Path::new(dir), None, &place))
        };
        match self.kept.iter().filter(ours).find(is_shown) {
            Some(kept) => Err(Refused::InSystem(kept.what, kept.place.path.clone())),
            None => Ok(()),
        }
    }

    /// What a jail makes for itself cannot be replaced, and what the host runs by is not written.
    pub(super) fn keep_the_jails_own(&self, place: &Place, writable: bool) -> Result<(), Refused> {
        let own = JAILS_OWN.iter().any(|own| place.path == Path::new(own));
        if own && (writable || !is_system(&place.path)) {
            return Err(Refused::JailsOwn(place.path.clone()));
        }
        match writable && is_hosts_own(&place.path) {
            true => Err(Refused::HostsOwn(place.path.clone())),
            false => Ok(()),
        }
    }
}
