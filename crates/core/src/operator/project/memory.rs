//! What was remembered of one repository: the document, whether it is about the repository that lies there now, and
//! what typed flags leave of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fields::{FIELDS, Field};
use crate::values::json::{self, JsonError};
use crate::values::paths::TreePath;
use crate::values::text::is_dangerous;

pub const SCHEMA_VERSION: u32 = 1;
/// No document is longer.
pub const MOST_BYTES: u64 = 1 << 20;

/// The values of one flag, and where they came from: words for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    pub values: Vec<String>,
    pub from: String,
}

/// By the key of their field.
pub type Values = BTreeMap<String, Kept>;

/// Which repository lies at a path: its own git directory, and the commit it began with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    pub git_dir: TreePath,
    /// The number the file system gave that directory, and when it was made; another one at the same path has
    /// others.
    pub git_dir_inode: String,
    pub first_commit: String,
    /// A commit that is known to come from it, so that a long history need not be walked each time.
    pub known_head: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub schema_version: u32,
    /// The top of the work tree.
    pub path: TreePath,
    pub repository: Repository,
    pub remembered: Values,
}

impl Memory {
    pub fn new(path: TreePath, repository: Repository) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            path,
            repository,
            remembered: Values::new(),
        }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, JsonError> {
        json::pretty(self)
    }

    /// Reads a document that anybody may have edited. `path` is where it says it is about.
    pub fn read(bytes: &[u8], path: &TreePath) -> Result<Self, String> {
        let found: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if found.schema_version != SCHEMA_VERSION {
            let number = found.schema_version;
            return Err(format!("its schema_version is {number}, not 1"));
        }
        if found.path != *path {
            return Err("it is about another path".into());
        }
        for (key, kept) in &found.remembered {
            let Some(field) = Field::find(key) else {
                return Err(format!("{key:?} is nothing that is remembered"));
            };
            if let Some(why) = field.refuses(&kept.values) {
                return Err(why);
            }
            if kept.from.len() > 4096 || kept.from.chars().any(is_dangerous) {
                return Err(format!("{key}: where it came from cannot be shown"));
            }
        }
        Ok(found)
    }

    /// Takes values in, as flags typed over it would: what gives way is let go.
    pub fn take(&mut self, values: Values) -> Result<(), String> {
        for (key, kept) in &values {
            let field = Field::find(key).ok_or_else(|| format!("{key} is not remembered"))?;
            if let Some(why) = field.refuses(&kept.values) {
                return Err(why);
            }
        }
        let typed: Vec<&str> = values.keys().map(String::as_str).collect();
        self.remembered.retain(|key, _| stays(key, &typed));
        self.remembered.extend(values);
        Ok(())
    }
}

/// Does what is remembered under a key stay, when these were typed?
fn stays(key: &str, typed: &[&str]) -> bool {
    let gives_way = |field: &Field| typed.iter().any(|name| field.gives_way_to.contains(name));
    Field::find(key).is_some_and(|field| !gives_way(field))
}

/// Who said a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    Typed,
    Remembered,
    /// Both together.
    Added,
}

impl Said {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Typed => "typed",
            Self::Remembered => "remembered",
            Self::Added => "typed and remembered",
        }
    }
}

/// What a try is run with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settled {
    /// By the key of their field.
    values: BTreeMap<String, (Vec<String>, Said)>,
}

impl Settled {
    /// Typed flags win over what is remembered. `typed` holds the names of all flags that were, also of those that are
    /// never remembered.
    pub fn of(given: &BTreeMap<&str, Vec<String>>, typed: &[&str], remembered: &Values) -> Self {
        let mut values = BTreeMap::new();
        for field in FIELDS {
            let own = given.get(field.key).filter(|own| !own.is_empty());
            let kept = remembered
                .get(field.key)
                .filter(|_| stays(field.key, typed))
                .map(|kept| kept.values.clone());
            let settled = match (own, kept) {
                (Some(own), Some(kept)) if field.adds => {
                    ([own.clone(), kept].concat(), Said::Added)
                }
                (Some(own), _) => (own.clone(), Said::Typed),
                (None, Some(kept)) => (kept, Said::Remembered),
                (None, None) => continue,
            };
            values.insert(field.key.to_owned(), settled);
        }
        Self { values }
    }

    pub fn get(&self, key: &str) -> Vec<String> {
        let found = self.values.get(key);
        found.map(|(values, _)| values.clone()).unwrap_or_default()
    }

    pub fn said(&self, key: &str) -> Option<Said> {
        self.values.get(key).map(|(_, said)| *said)
    }

    /// Everything that was not only typed, in the order of the table.
    pub fn remembered(&self) -> impl Iterator<Item = (&'static Field, &[String], Said)> {
        FIELDS.iter().filter_map(|field| {
            let (values, said) = self.values.get(field.key)?;
            (*said != Said::Typed).then_some((field, values.as_slice(), *said))
        })
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
