//! Variables by which tools stay off a network that is not there, and test what is in the copy
//! instead of what was installed before: one table. Whatever the operator set stands.

use std::collections::BTreeMap;

use super::environment::EnvironmentKind;
use crate::values::paths::TreePath;

/// For every tool that may be used; others do not look at them.
const ALWAYS: [(&str, &str); 4] = [
    // Without these `uv run` makes the environment anew, or waits for an index.
    ("UV_NO_SYNC", "1"),
    ("UV_OFFLINE", "1"),
    ("CARGO_NET_OFFLINE", "true"),
    ("PIP_NO_INDEX", "1"),
];
/// Tox then builds a wheel of the copy. An environment of before would test the wheel of before.
const TOX: (&str, &str) = ("TOX_OVERRIDE", "testenv.package=wheel");
/// What a `tox.ini` says that installs from where the project stands, or not at all.
const NOT_PACKAGED: [&str; 5] = [
    "editable",
    "usedevelop",
    "use_develop",
    "skip_install",
    "skipsdist",
];

/// Go takes a test for done that passed with the same bytes, and does not run it: whatever a test
/// reads that Go does not see would not count. A cached compilation is one of the same bytes.
const GO_RUNS_TESTS: &str = "-count=1";
/// Without these Maven believes only what it fetched by itself from where its settings say, which
/// stay at home.
const MAVEN_BELIEVES: &str = "-Dmaven.legacyLocalRepo=true";

/// Files by which a version manager chooses programs. That was done before anything was changed.
pub fn chooses_programs(path: &TreePath) -> bool {
    const NAMES: [&[u8]; 10] = [
        b"rust-toolchain",
        b"rust-toolchain.toml",
        b".python-version",
        b".tool-versions",
        b".node-version",
        b".nvmrc",
        b".ruby-version",
        b".go-version",
        b".java-version",
        b".sdkmanrc",
    ];
    let bytes = path.as_bytes();
    let name = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or(bytes);
    NAMES.contains(&name)
}

/// The variables for a project, with its `tox.ini` if it has one and what is carried of the homes
/// of tools, beside those that `set` has.
pub fn tool_variables(
    tox_ini: Option<&str>,
    homes: &[(EnvironmentKind, String)],
    set: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let own = |name: &str| set.get(name);
    let mut all: BTreeMap<String, String> = ALWAYS
        .iter()
        .filter(|(name, _)| own(name).is_none())
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let packaged = tox_ini.is_some_and(|text| !NOT_PACKAGED.iter().any(|word| text.contains(word)));
    if packaged {
        let (name, value) = TOX;
        // Tox takes a list, and the operator's part of it stays.
        let value = own(name).map_or(value.to_owned(), |own| format!("{own};{value}"));
        all.insert(name.to_owned(), value);
    }
    for (kind, root) in homes {
        let told = of_home(*kind, root, set);
        let new = told
            .into_iter()
            .filter(|(name, _, adds)| *adds || own(name).is_none());
        all.extend(new.map(|(name, value, _)| (name.to_owned(), value)));
    }
    all
}

/// Name and value, and whether what the operator set is in the value.
fn of_home(
    kind: EnvironmentKind,
    root: &str,
    set: &BTreeMap<String, String>,
) -> Vec<(&'static str, String, bool)> {
    use EnvironmentKind as K;
    let plain = |name, value: &str| (name, value.to_owned(), false);
    // First, so that the operator's part has the last word.
    let added = |name: &'static str, value: &str| {
        let own = set
            .get(name)
            .map_or_else(String::new, |own| format!(" {own}"));
        (name, format!("{value}{own}"), true)
    };
    match kind {
        K::GoBuilds => vec![
            plain("GOCACHE", root),
            plain("GOPROXY", "off"),
            added("GOFLAGS", GO_RUNS_TESTS),
        ],
        K::GoModules => vec![plain("GOMODCACHE", root), plain("GOPROXY", "off")],
        K::UvCache => vec![plain("UV_CACHE_DIR", root)],
        K::MavenHome => vec![
            plain("MAVEN_USER_HOME", root),
            added(
                "MAVEN_OPTS",
                &format!("-Dmaven.repo.local={root}/repository {MAVEN_BELIEVES}"),
            ),
        ],
        K::GradleHome => vec![plain("GRADLE_USER_HOME", root)],
        K::PythonVenv
        | K::NodeModules
        | K::CargoTarget
        | K::Tox
        | K::Nox
        | K::Eggs
        | K::EggInfo
        | K::GeneratedFile
        | K::ExtensionModule
        | K::Named => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(tox_ini: Option<&str>, set: &[(&str, &str)]) -> Vec<String> {
        let set = set
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        tool_variables(tox_ini, &[], &set.collect())
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    #[test]
    fn the_table_is_for_everybody_and_the_operator_has_the_last_word() {
        let all = [
            "CARGO_NET_OFFLINE=true",
            "PIP_NO_INDEX=1",
            "UV_NO_SYNC=1",
            "UV_OFFLINE=1",
        ];
        assert_eq!(with(None, &[]), all);
        assert_eq!(
            with(None, &[("UV_OFFLINE", "0")]),
            all[..3],
            "theirs is passed as it is"
        );
        assert_eq!(with(Some("[testenv]\nusedevelop = true\n"), &[]), all);
        assert_eq!(with(Some("[testenv]\npackage = editable\n"), &[]), all);
        let wheel = "TOX_OVERRIDE=testenv.package=wheel";
        assert!(with(Some("[testenv]\n"), &[]).contains(&wheel.to_owned()));
        let theirs = [("TOX_OVERRIDE", "testenv.deps=x")];
        let both = "TOX_OVERRIDE=testenv.deps=x;testenv.package=wheel";
        assert!(with(Some("[testenv]\n"), &theirs).contains(&both.to_owned()));
    }
    #[test]
    fn tools_are_told_where_their_homes_are_and_go_runs_every_test() {
        let homes = [
            (EnvironmentKind::GoBuilds, "/h/.cache/go-build".to_owned()),
            (EnvironmentKind::GoModules, "/h/go/pkg/mod".to_owned()),
            (EnvironmentKind::UvCache, "/h/.cache/uv".to_owned()),
            (EnvironmentKind::MavenHome, "/h/.m2".to_owned()),
            (EnvironmentKind::GradleHome, "/h/.gradle".to_owned()),
        ];
        let told = tool_variables(None, &homes, &BTreeMap::new());
        for (name, value) in [
            ("GOCACHE", "/h/.cache/go-build"),
            ("GOMODCACHE", "/h/go/pkg/mod"),
            ("GOPROXY", "off"),
            ("GOFLAGS", "-count=1"),
            ("UV_CACHE_DIR", "/h/.cache/uv"),
            ("MAVEN_USER_HOME", "/h/.m2"),
            (
                "MAVEN_OPTS",
                "-Dmaven.repo.local=/h/.m2/repository -Dmaven.legacyLocalRepo=true",
            ),
            ("GRADLE_USER_HOME", "/h/.gradle"),
        ] {
            assert_eq!(told.get(name).map(String::as_str), Some(value), "{name}");
        }
        let set = [("GOFLAGS", "-mod=vendor"), ("GOPROXY", "file:///x")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let told = tool_variables(None, &homes, &set.into());
        assert_eq!(told["GOFLAGS"], "-count=1 -mod=vendor", "theirs is last");
        assert!(!told.contains_key("GOPROXY"), "theirs is passed as it is");
        assert!(!tool_variables(None, &[], &BTreeMap::new()).contains_key("GOFLAGS"));
    }
}
