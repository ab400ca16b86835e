//! The executable admission: which file is run as the engine.

use std::collections::BTreeMap;

use super::fields::record;
use super::{Field, Issue, Record, RecordKind, ReviewTrigger};
use crate::values::digest::Digest;
use crate::values::ids::EngineId;

record! {
    /// An executable admission: one file, by its digest.
    ExecutableAdmission
    required {
        engine: EngineId => Takes::Engine;
        /// The real file, after every link.
        path: String => Takes::Path;
        sha256: Digest => Takes::Sha256;
        /// What it said about itself, once, in the jail.
        identity_output: String => Takes::Text;
        version: String => Takes::Word;
        /// How it is started.
        command_shape: String => Takes::Text;
        approval_source: String => Takes::Text;
        admission_timestamp: String => Takes::When;
        review_trigger: ReviewTrigger => Takes::Trigger;
    }
    optional {
        source_url: String => Takes::Address;
        pinned_commit: String => Takes::Commit;
        build_command: String => Takes::Text;
        tool_versions: BTreeMap<String, String> => Takes::Versions;
        build_timestamp: String => Takes::When;
        /// A build tool that was not there.
        missing_build_tools: Vec<String> => Takes::Names;
        /// The build left its source tree dirty.
        source_tree_dirty: bool => Takes::Flag;
        /// The version that its package names, where it is not said by the file itself.
        package_version: String => Takes::Word;
        /// What it is written for: the name, and the one file that was found by it.
        interpreter: String => Takes::Name;
        interpreter_path: String => Takes::Path;
        interpreter_sha256: Digest => Takes::Sha256;
        interpreter_version: String => Takes::Word;
        /// Everything it was installed with and a jail is shown, where it comes with packages.
        packages_sha256: Digest => Takes::Sha256;
    }
}

impl Record for ExecutableAdmission {
    const KIND: RecordKind = RecordKind::Executable;
    const FIELDS: &'static [Field] = Self::TABLE;

    /// An interpreter is named with its digest, or not at all.
    fn agree(&self) -> Vec<Issue> {
        let whole = [
            self.interpreter.is_some(),
            self.interpreter_sha256.is_some(),
        ];
        let named = whole.contains(&true)
            || self.interpreter_path.is_some()
            || self.interpreter_version.is_some();
        if !named || whole == [true, true] {
            return Vec::new();
        }
        vec![Issue::new(
            "interpreter_sha256",
            "an interpreter is a name and a digest, or neither",
        )]
    }
}

impl ExecutableAdmission {
    /// The version that is admitted and another one that was found, where both are known and differ.
    /// A record of before has only what the program said, in which the version is a word.
    pub fn other_version<'a>(&'a self, found: Option<&'a str>) -> Option<(&'a str, &'a str)> {
        let found = found?;
        if let Some(admitted) = self.package_version.as_deref() {
            return (admitted != found).then_some((admitted, found));
        }
        let plain = |word: &'a str| word.trim_start_matches('v');
        let is_version =
            |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
        let mut words = self.version.split_whitespace().map(plain);
        let said: Vec<&str> = words.by_ref().filter(is_version).collect();
        match said.first() {
            Some(admitted) if !said.contains(&plain(found)) => Some((admitted, found)),
            _ => None,
        }
    }

    /// The interpreter by its name, where its digest is on record, too.
    pub fn pinned_interpreter(&self) -> Option<&str> {
        self.interpreter_sha256?;
        self.interpreter.as_deref()
    }

    /// Why the build does not show that this file came from its pinned source; none if it does.
    pub fn build_problem(&self) -> Option<&'static str> {
        if self.source_tree_dirty == Some(true) {
            return Some("the build left its source tree dirty");
        }
        self.missing_build_tools
            .as_ref()
            .is_some_and(|tools| !tools.is_empty())
            .then_some("a build tool was missing")
    }
}

record! {
    /// What a build says about itself, for `cto admit executable --build-report`.
    BuildReport
    required {
        source_url: String => Takes::Address;
        pinned_commit: String => Takes::Commit;
        build_command: String => Takes::Text;
        tool_versions: BTreeMap<String, String> => Takes::Versions;
        build_timestamp: String => Takes::When;
    }
    optional {
        missing_build_tools: Vec<String> => Takes::Names;
        source_tree_dirty: bool => Takes::Flag;
        /// Digest of the file that was built; if given, it must be that of the admitted file.
        executable_sha256: Digest => Takes::Sha256;
        version: String => Takes::Word;
        command_shape: String => Takes::Text;
    }
}

impl Record for BuildReport {
    const KIND: RecordKind = RecordKind::Executable;
    const FIELDS: &'static [Field] = Self::TABLE;
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::records::read;
    use crate::records::tests::executable;

    fn record(change: impl FnOnce(&mut Value)) -> Result<ExecutableAdmission, Vec<Issue>> {
        let mut value = executable();
        change(&mut value);
        read(&serde_json::to_vec(&value).unwrap())
    }

    #[test]
    fn a_version_is_compared_where_both_are_known() {
        let of = |package: Option<&str>, said: &str| {
            record(|value| {
                let map = value.as_object_mut().unwrap();
                map.insert("version".into(), said.into());
                match package {
                    Some(version) => drop(map.insert("package_version".into(), version.into())),
                    None => drop(map.remove("package_version")),
                }
            })
            .unwrap()
        };
        for (package, said, found, differs) in [
            (Some("1.2.3"), "1.2.3", Some("1.2.3"), false),
            (Some("1.2.3"), "1.2.3", Some("1.2.4"), true),
            // What a package says counts, not what the program was heard to say.
            (Some("1.2.3"), "9.9.9", Some("1.2.3"), false),
            (Some("1.2.3"), "1.2.3", None, false),
            (None, "1.2.3", Some("1.2.3"), false),
            (None, "codex-cli v1.2.3", Some("1.2.3"), false),
            (None, "codex-cli 1.2.3", Some("1.2.4"), true),
            (None, "not said", Some("1.2.4"), false),
        ] {
            let record = of(package, said);
            assert_eq!(
                record.other_version(found).is_some(),
                differs,
                "{package:?} {said} {found:?}"
            );
        }
    }

    #[test]
    fn an_interpreter_is_a_name_and_a_digest_or_neither() {
        let without = |fields: &[&str]| {
            record(|value| {
                let map = value.as_object_mut().unwrap();
                fields.iter().for_each(|field| drop(map.remove(*field)));
            })
        };
        let rest = ["interpreter_path", "interpreter_version"];
        assert!(without(&rest).is_ok());
        assert!(without(&["interpreter", "interpreter_sha256", rest[0], rest[1]]).is_ok());
        for bad in ["interpreter", "interpreter_sha256"] {
            assert_eq!(without(&[bad]).unwrap_err()[0].field, "interpreter_sha256");
        }
        let issue = without(&["interpreter", "interpreter_sha256"]).unwrap_err();
        assert_eq!(issue[0].field, "interpreter_sha256");
    }
}
