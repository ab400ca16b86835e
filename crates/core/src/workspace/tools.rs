//! Variables by which tools stay off a network that is not there, and test what is in the copy
//! instead of what was installed before: one table. Whatever the operator set stands.

use std::collections::BTreeMap;

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

/// The variables for a project, with its `tox.ini` if it has one, beside those that `set` has.
pub fn tool_variables(
    tox_ini: Option<&str>,
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
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(tox_ini: Option<&str>, set: &[(&str, &str)]) -> Vec<String> {
        let set = set
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        tool_variables(tox_ini, &set.collect())
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
}
