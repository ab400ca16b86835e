//! How a kit comes into the processes of a command: by variables, the same in check and control, with what
//! the user had in them kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::task::runner::Runner;

const PRELOAD: &str = include_str!("node/preload.cjs");
const EVENTS: &str = include_str!("node/node-events.mjs");
const VITEST: &str = include_str!("node/vitest-report.mjs");
/// The line of the preload that orders are put into.
const NO_ORDERS: &str = "const ORDERS = { drop: [], passOver: [], goOn: false };";

/// Where reports of node runners go.
pub const REPORTS: &str = "CTO_TEST_REPORTS";
/// Packages whose programs are passed over in the control: what was added is not written as a linter
/// wants it, and a linter that ends the command first proves nothing of the tests.
const LINTERS: [&str; 13] = [
    "eslint",
    "xo",
    "standard",
    "semistandard",
    "ts-standard",
    "neostandard",
    "prettier",
    "@biomejs/biome",
    "oxlint",
    "tslint",
    "jshint",
    "tsd",
    "tstyche",
];

/// What a command runs for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose<'a> {
    Check,
    /// Early stops are lifted: every test is to be named.
    Baseline,
    /// As on a baseline, and with the options that a runner is freed of.
    Control(&'a [String]),
}

/// The files of the kit, to be laid into a directory of their own. What the control is told stands in the
/// file, not in a variable that code under test would only have to look at.
pub fn files(purpose: Purpose<'_>) -> [(&'static str, String); 3] {
    let preload = match purpose {
        Purpose::Check => PRELOAD.to_owned(),
        Purpose::Baseline => PRELOAD.replace(NO_ORDERS, &NO_ORDERS.replace("false", "true")),
        Purpose::Control(drop) => {
            let list = |words: &mut dyn Iterator<Item = &str>| -> String {
                let quoted = words.map(|word| format!("{word:?}"));
                quoted.collect::<Vec<_>>().join(", ")
            };
            let drop = list(&mut drop.iter().map(String::as_str));
            let over = list(&mut LINTERS.into_iter());
            let orders =
                format!("const ORDERS = {{ drop: [{drop}], passOver: [{over}], goOn: true }};");
            PRELOAD.replace(NO_ORDERS, &orders)
        }
    };
    [
        ("preload.cjs", preload),
        ("node-events.mjs", EVENTS.to_owned()),
        ("vitest-report.mjs", VITEST.to_owned()),
    ]
}

/// Variables for the runners of a command. `kit` and `reports` are directories as the process knows them;
/// `user` is what the process would have without the kit.
pub fn variables(
    runners: &BTreeSet<Runner>,
    kit: &str,
    reports: &str,
    user: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut set = BTreeMap::new();
    if runners.iter().any(|runner| runner.is_javascript()) {
        let path = format!("{kit}/preload.cjs")
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        let own = format!("--require \"{path}\"");
        // First, so that nothing of the project is loaded before it.
        set.insert(
            "NODE_OPTIONS".to_owned(),
            joined(&own, user.get("NODE_OPTIONS").map(String::as_str)),
        );
        set.insert(REPORTS.to_owned(), reports.to_owned());
    }
    if runners.contains(&Runner::Go) {
        let had = user.get("GOFLAGS").map(String::as_str).unwrap_or_default();
        let has = |name: &str| {
            let names = had
                .split_whitespace()
                .map(|word| word.split('=').next().unwrap_or(word));
            names
                .into_iter()
                .any(|word| word.trim_start_matches('-') == name)
        };
        let own = [("v", "-v"), ("count", "-count=1")]
            .into_iter()
            .filter(|(name, _)| !has(name));
        let own: Vec<&str> = own.map(|(_, flag)| flag).collect();
        set.insert("GOFLAGS".to_owned(), joined(had, Some(&own.join(" "))));
    }
    set
}

fn joined(first: &str, second: Option<&str>) -> String {
    let second = second.unwrap_or_default();
    format!("{first} {second}").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_set_is_kept() {
        let user = BTreeMap::from([
            (
                "NODE_OPTIONS".to_owned(),
                "--max-old-space-size=99".to_owned(),
            ),
            ("GOFLAGS".to_owned(), "-mod=vendor -count=2".to_owned()),
        ]);
        let set = variables(
            &BTreeSet::from([Runner::Jest, Runner::Go]),
            "/k i\"t",
            "/r",
            &user,
        );
        assert_eq!(
            set["NODE_OPTIONS"],
            "--require \"/k i\\\"t/preload.cjs\" --max-old-space-size=99"
        );
        assert_eq!(set["GOFLAGS"], "-mod=vendor -count=2 -v");
        assert_eq!(set[REPORTS], "/r");
        let bare = variables(&BTreeSet::from([Runner::Go]), "/k", "/r", &BTreeMap::new());
        assert_eq!(
            bare,
            BTreeMap::from([("GOFLAGS".to_owned(), "-v -count=1".to_owned())])
        );
        assert!(
            variables(
                &BTreeSet::from([Runner::Pytest, Runner::Cargo]),
                "/k",
                "/r",
                &user
            )
            .is_empty()
        );
    }

    #[test]
    fn the_preload_knows_every_node_runner() {
        let preload = PRELOAD;
        for runner in Runner::ALL
            .into_iter()
            .filter(|runner| runner.is_javascript() && *runner != Runner::Node)
        {
            assert!(
                preload.contains(&format!("\n  {runner}: watch")),
                "{runner}"
            );
        }
        assert!(preload.contains(REPORTS) && preload.contains(NO_ORDERS));
        let drop = ["-b".to_owned(), "-g=".to_owned()];
        let [(_, control), ..] = files(Purpose::Control(&drop));
        assert!(
            control.contains("const ORDERS = { drop: [\"-b\", \"-g=\"], passOver: [\"eslint\", ")
        );
        assert_eq!(files(Purpose::Check)[0].1, PRELOAD);
        let [(_, baseline), ..] = files(Purpose::Baseline);
        for text in [control, baseline] {
            assert!(text.contains(" goOn: true };\n"));
        }
    }
}
