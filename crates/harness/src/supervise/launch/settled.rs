//! What every process in a jail is told, whatever it is for: who may look into running programs, and
//! where git finds who it is.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use cto_core::containment::guard::Guard;
use cto_core::containment::ordinary::{self, LEAK_OPTIONS, without_leak_search};

use cto_jail::Guarded;

use super::Launch;

impl Launch {
    /// Places of the copy that its processes cannot change, beside what every jail refuses.
    pub fn guarded(mut self, places: &Guard) -> Self {
        if let Some(jail) = self.jail.as_mut().filter(|_| places.mounts() > 0) {
            jail.guard = Some(Guarded {
                root: self.cwd.clone(),
                places: places.clone(),
            });
        }
        self
    }

    /// Its processes may trace each other. For the operator's own command and for visible checks,
    /// and for nothing else.
    pub fn traced(mut self) -> Self {
        if let Some(jail) = &mut self.jail {
            jail.traced = true;
        }
        self
    }

    /// The whole environment as the process gets it. A search for leaks traces the process itself:
    /// where it would fail every program, it is switched off.
    pub fn settled_env(&self) -> BTreeMap<OsString, OsString> {
        let mut env = self.env.clone();
        let Some(jail) = &self.jail else { return env };
        // Not every git looks into `/etc`.
        let [name, place] = ordinary::GIT_CONFIG_PLACE;
        env.entry(name.into()).or_insert_with(|| place.into());
        if !jail.traced {
            let set = env.get(OsStr::new(LEAK_OPTIONS));
            let set = set.map(|set| set.to_string_lossy().into_owned());
            let value = without_leak_search(set.as_deref());
            env.insert(LEAK_OPTIONS.into(), value.into());
        }
        env
    }
}
