//! The smallest version of an interpreter that an engine runs on, held against what an interpreter
//! says of itself. What is not known is too old.

use std::fmt;

use super::Manifest;

/// Up to three numbers, the first of which counts most. What is not said is nothing: 22 is 22.0.0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version([u32; 3]);

impl Version {
    /// As a manifest writes one: numbers and dots, nothing else.
    pub fn read(text: &str) -> Option<Self> {
        let mut numbers = [0; 3];
        for (at, part) in text.split('.').enumerate() {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            *numbers.get_mut(at)? = digits.then(|| part.parse().ok())??;
        }
        Some(Self(numbers))
    }

    /// As a program says one: `v20.20.2`, `Python 3.12.3`. The first word that is one counts, and what
    /// follows its numbers makes it older, not newer: `24.0.0-rc.1` is not yet 24.
    pub fn said(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let word = word.strip_prefix('v').unwrap_or(word);
            Self::read(word)
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        match (minor, patch) {
            (0, 0) => write!(f, "{major}"),
            (minor, 0) => write!(f, "{major}.{minor}"),
            (minor, patch) => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

/// Why an interpreter with these words about itself may not run the engine. Nothing is asked where the
/// manifest names no smallest version.
pub fn too_old(manifest: &Manifest, name: &str, said: Option<&str>) -> Option<String> {
    let wanted = manifest
        .invocation
        .as_ref()?
        .interpreter_min_version
        .as_deref()?;
    let said = said.unwrap_or_default();
    let engine = &manifest.id;
    match (Version::read(wanted), Version::said(said)) {
        (Some(wanted), Some(found)) if found >= wanted => None,
        (_, Some(found)) => Some(format!(
            "{engine} needs {name} {wanted} or newer, and this one is {found}"
        )),
        (_, None) => Some(format!(
            "{engine} needs {name} {wanted} or newer, and which version this one is is not known"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_numbers_and_dots() {
        for good in ["22", "22.19", "22.19.0", "0.1.2"] {
            assert!(Version::read(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "v22",
            "22.",
            ".1",
            "22.x",
            "1.2.3.4",
            "-1",
            "+1",
            "4294967296",
            "22 ",
        ] {
            assert_eq!(Version::read(bad), None, "{bad:?}");
        }
        assert_eq!(Version::read("22").unwrap().to_string(), "22");
        assert_eq!(Version::read("22.0.1").unwrap().to_string(), "22.0.1");
    }

    #[test]
    fn what_is_older_or_not_known_is_refused() {
        let text = include_str!("../../../../../engines/pi.toml");
        let with = |minimum: &str| {
            let line = format!("interpreter = \"node\"\ninterpreter_min_version = \"{minimum}\"\n");
            Manifest::parse("pi", &text.replace("interpreter = \"node\"\n", &line)).unwrap()
        };
        let manifest = with("22.19");
        for (said, fine) in [
            (Some("v22.19.0"), true),
            (Some("v24.0.0"), true),
            (Some("node v100.1"), true),
            (Some("v22.18.9"), false),
            (Some("v20.20.2"), false),
            (Some("v3"), false),
            (Some("v24.0.0-rc.1"), false),
            (Some("newest"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(too_old(&manifest, "node", said).is_none(), fine, "{said:?}");
        }
        let words = too_old(&manifest, "node", Some("v20.20.2")).unwrap();
        assert_eq!(
            words,
            "pi needs node 22.19 or newer, and this one is 20.20.2"
        );
        let none = Manifest::parse("pi", text).unwrap();
        assert_eq!(too_old(&none, "node", None), None);
    }
}
