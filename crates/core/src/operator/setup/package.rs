//! What a package says of itself, and what the lock file it was installed by says of it. Claims,
//! both: whoever wrote the package wrote the first, and the second names what was fetched, not what
//! lies there now. What can be compared is compared.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::records::{Takes, text_problem};
use crate::values::digest::Digest;

/// A larger lock file is not read.
pub const MAX_LOCK: u64 = 16 << 20;
const MAX_NAME: usize = 100;
/// As much of a digest as stands in a pin.
const PIN_DIGITS: usize = 32;

/// A package by its own words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub license: Option<String>,
}

impl Package {
    /// Reads `package.json`. Names and versions that are not plain are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct File {
            name: String,
            version: String,
            #[serde(default)]
            license: serde_json::Value,
        }
        let file: File = serde_json::from_slice(bytes).ok()?;
        let plain = |text: &str| {
            text.len() <= MAX_NAME
                && !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"@/._+-".contains(&b))
                && text_problem(Takes::Name, text).is_none()
        };
        let license = file.license.as_str().filter(|text| {
            text.len() <= 64 && text_problem(Takes::Word, text).is_none() && text.is_ascii()
        });
        (plain(&file.name) && plain(&file.version)).then(|| Self {
            license: license.map(str::to_owned),
            name: file.name,
            version: file.version,
        })
    }
}

/// One installed place of a lock file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Locked {
    pub version: Option<String>,
    pub integrity: Option<String>,
    /// May be missing from the tree.
    #[serde(default)]
    pub optional: bool,
    #[serde(default)]
    pub dev: bool,
    #[serde(default)]
    pub peer: bool,
    /// A link to a place of the operator's own.
    #[serde(default)]
    pub link: bool,
}

/// A lock file: places, as paths from the directory that holds `node_modules`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Lock {
    #[serde(default)]
    pub packages: BTreeMap<String, Locked>,
}

impl Lock {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// Why no integrity is known of a package.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoIntegrity {
    #[error("it does not lie in a directory of installed packages")]
    NotInstalled,
    #[error("there is no lock file beside the installed packages")]
    NoLock,
    #[error("the lock file does not name it where it lies")]
    NotLocked,
    #[error("the lock file names version {0}, and another is installed")]
    OtherVersion(String),
    #[error("two lock files name different contents for it")]
    Disagree,
    #[error("the lock file names no SHA-256, SHA-384 or SHA-512 for it")]
    NotNamed,
    #[error("what is installed at {0} is not what the lock file names")]
    OtherTree(String),
}

/// The lock files of one tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Locks {
    /// Written by the installation itself, beside what it installed.
    pub installed: Option<Lock>,
    /// The project's own.
    pub project: Option<Lock>,
}

/// The integrity of a package that lies at `place`, as its lock file names it and as far as the
/// installed tree agrees; `version_at` looks up what is installed at a place.
pub fn integrity(
    package: &Package,
    place: Option<&str>,
    locks: &Locks,
    version_at: &dyn Fn(&str) -> Option<String>,
) -> Result<String, NoIntegrity> {
    let place = place.ok_or(NoIntegrity::NotInstalled)?;
    let lock = locks.installed.as_ref().or(locks.project.as_ref());
    let lock = lock.ok_or(NoIntegrity::NoLock)?;
    let own = lock.packages.get(place).ok_or(NoIntegrity::NotLocked)?;
    if own.version.as_deref() != Some(package.version.as_str()) {
        let version = own.version.as_deref().unwrap_or("none");
        return Err(NoIntegrity::OtherVersion(shown(version)));
    }
    let integrity = own.integrity.as_deref().ok_or(NoIntegrity::NotNamed)?;
    let strong = ["sha256-", "sha384-", "sha512-"].iter();
    if !strong.clone().any(|name| integrity.starts_with(name))
        || text_problem(Takes::Integrity, integrity).is_some()
    {
        return Err(NoIntegrity::NotNamed);
    }
    let other = locks
        .project
        .as_ref()
        .and_then(|lock| lock.packages.get(place));
    if other.is_some_and(|other| other.integrity.as_deref() != Some(integrity)) {
        return Err(NoIntegrity::Disagree);
    }
    let differs = lock.packages.iter().find(|(place, locked)| {
        // The first is the project itself.
        !place.is_empty() && !locked.link && !agrees(locked, version_at(place).as_deref())
    });
    match differs {
        None => Ok(integrity.to_owned()),
        Some((place, _)) => Err(NoIntegrity::OtherTree(shown(place))),
    }
}

fn agrees(locked: &Locked, installed: Option<&str>) -> bool {
    match installed {
        Some(version) => locked.version.as_deref() == Some(version),
        None => locked.optional || locked.dev || locked.peer,
    }
}

/// What a lock file says is not for a terminal as it is.
fn shown(text: &str) -> String {
    crate::values::text::tame(&crate::values::text::excerpt(text, 120))
}

/// What stands in records for this content: name, version, and what the lock file names.
pub fn pin(package: &Package, integrity: Option<&str>) -> String {
    let known = integrity.map(|integrity| Digest::of(integrity.as_bytes()).to_string());
    match known {
        Some(digits) => format!(
            "{}@{}+{}",
            package.name,
            package.version,
            &digits[..PIN_DIGITS.min(digits.len())]
        ),
        None => format!("{}@{}", package.name, package.version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &str = "node_modules/@x/pi";

    fn package() -> Package {
        let bytes =
            br#"{"name": "@x/pi", "version": "1.2.3", "license": "MIT", "scripts": {"a": "b"}}"#;
        Package::read(bytes).unwrap()
    }

    fn lock(text: &str) -> Lock {
        Lock::read(text.as_bytes()).unwrap()
    }

    fn sum(letter: &str) -> String {
        format!("sha512-{}==", letter.repeat(86))
    }

    fn good() -> String {
        format!(
            r#"{{"packages": {{"": {{}}, "{PLACE}": {{"version": "1.2.3", "integrity": "{}", "license": "MIT"}}, "node_modules/dep": {{"version": "2.0.0", "integrity": "x"}}, "node_modules/other": {{"version": "1.0.0", "optional": true}}}}}}"#,
            sum("a")
        )
    }

    fn tree(place: &str) -> Option<String> {
        match place {
            PLACE => Some("1.2.3".into()),
            "node_modules/dep" => Some("2.0.0".into()),
            _ => None,
        }
    }

    #[test]
    fn a_package_is_read_by_its_own_plain_words() {
        assert_eq!(package().license.as_deref(), Some("MIT"));
        for bad in [
            r#"{"name": "a b", "version": "1.0.0"}"#,
            r#"{"name": "a", "version": "1.0\u001b[2J"}"#,
            r#"{"name": "a"}"#,
            r#"[]"#,
            "",
        ] {
            assert_eq!(Package::read(bad.as_bytes()), None, "{bad}");
        }
        let odd = Package::read(br#"{"name": "a", "version": "1", "license": {"type": "MIT"}}"#);
        assert_eq!(odd.unwrap().license, None);
    }

    #[test]
    fn integrity_is_the_lock_files_where_the_tree_agrees() {
        let locks = |installed: Option<&str>, project: Option<&str>| Locks {
            installed: installed.map(lock),
            project: project.map(lock),
        };
        let ask = |place, locks: &Locks| integrity(&package(), place, locks, &tree);
        let text = good();
        assert_eq!(ask(Some(PLACE), &locks(Some(&text), None)), Ok(sum("a")));
        assert_eq!(ask(Some(PLACE), &locks(None, Some(&text))), Ok(sum("a")));
        assert_eq!(
            ask(Some(PLACE), &locks(Some(&text), Some(&text))),
            Ok(sum("a"))
        );
        for (place, locks, want) in [
            (None, locks(Some(&text), None), NoIntegrity::NotInstalled),
            (Some(PLACE), locks(None, None), NoIntegrity::NoLock),
            (
                Some("node_modules/y"),
                locks(Some(&text), None),
                NoIntegrity::NotLocked,
            ),
            (
                Some(PLACE),
                locks(Some(&text.replace("1.2.3", "1.2.4")), None),
                NoIntegrity::OtherVersion("1.2.4".into()),
            ),
            (
                Some(PLACE),
                locks(Some(&text.replace("\"integrity\"", "\"x\"")), None),
                NoIntegrity::NotNamed,
            ),
            (
                Some(PLACE),
                locks(Some(&text.replace("sha512-", "sha1-")), None),
                NoIntegrity::NotNamed,
            ),
            (
                Some(PLACE),
                locks(Some(&text), Some(&text.replace(&sum("a"), &sum("b")))),
                NoIntegrity::Disagree,
            ),
            (
                Some(PLACE),
                locks(Some(&text.replace("2.0.0", "2.0.1")), None),
                NoIntegrity::OtherTree("node_modules/dep".into()),
            ),
            (
                Some(PLACE),
                locks(Some(&text.replace("\"optional\": true", "\"x\": 1")), None),
                NoIntegrity::OtherTree("node_modules/other".into()),
            ),
        ] {
            assert_eq!(ask(place, &locks), Err(want));
        }
    }

    #[test]
    fn a_pin_changes_with_name_version_and_content() {
        let a = pin(&package(), Some(&sum("a")));
        assert!(a.starts_with("@x/pi@1.2.3+") && a.len() == 12 + PIN_DIGITS);
        assert_ne!(a, pin(&package(), Some(&sum("b"))));
        assert_eq!(pin(&package(), None), "@x/pi@1.2.3");
        assert_eq!(text_problem(Takes::Name, &a), None);
    }
}
