//! The script names of the operator's existing world, and the command each of them became.
//! They are not shown anywhere; they work where they are typed, and through a link of that name.

use std::ffi::OsString;
use std::path::Path;

use crate::host::failure::Failure;

/// Name of the script, and the words that do its work now. What it was given follows them.
pub const OLD_NAMES: &[(&str, &[&str])] = &[
    ("run-case.sh", &["run"]),
    ("run-all.sh", &["run", "--all"]),
    ("health.sh", &["health"]),
    ("validate-case-stage1.py", &["validate", "stage1"]),
    ("validate-case-stage2.py", &["validate", "stage2"]),
    ("validate-case-stage3.py", &["validate", "stage3"]),
    ("validate-case-stage4.py", &["validate", "stage4"]),
    ("validate-case-stage5.py", &["validate", "stage5"]),
    ("validate-case-stage6.py", &["validate", "stage6"]),
    (
        "validate-case-provider-adapter.py",
        &["validate", "provider-adapter"],
    ),
    (
        "validate-case-stage6-real-refresh.py",
        &["validate", "stage6-refresh"],
    ),
    ("webui-summary.sh", &["summary"]),
    ("validate-webui-summary.py", &["validate", "summary"]),
    (
        "case-qwen-loop.sh",
        &["run", "--engine", "case", "--profile", "qwen-local"],
    ),
    ("validate_cto_child.py", &["records", "check"]),
];

/// The row of a name, with or without its ending.
fn find(name: &str) -> Option<(&'static str, &'static [&'static str])> {
    let stem = |old: &str| old.rsplit_once('.').is_some_and(|(stem, _)| stem == name);
    OLD_NAMES
        .iter()
        .find(|(old, _)| *old == name || stem(old))
        .copied()
}

/// The words this program stands for when it is started under an old name.
pub fn called_by(program: &Path) -> Option<(&'static str, &'static [&'static str])> {
    find(program.file_name()?.to_str()?)
}

/// The command line with an old name replaced by the words it became.
pub fn translate(mut argv: Vec<OsString>, tree: &clap::Command) -> Result<Vec<OsString>, Failure> {
    let (old, words, replaced) = match argv
        .first()
        .and_then(|program| called_by(Path::new(program)))
    {
        Some((old, words)) => (old, words, 1..1),
        None => {
            let Some(at) = command_word(&argv, tree) else {
                return Ok(argv);
            };
            let known = |name: &str| tree.find_subcommand(name).is_some();
            match argv[at].to_str().filter(|name| !known(name)).and_then(find) {
                Some((old, words)) => (old, words, at..at + 1),
                None => return Ok(argv),
            }
        }
    };
    if !is_there(tree, words) {
        let new = words.join(" ");
        return Err(Failure::usage(
            "not_in_this_version",
            format!("`{old}` became `cto {new}`, which this version does not have"),
        )
        .so("nothing ran")
        .hint("`cto help` lists what it has"));
    }
    argv.splice(replaced, words.iter().map(OsString::from));
    Ok(argv)
}

/// Where the command stands: the first word that is neither an option nor the value of one.
pub fn command_word(argv: &[OsString], tree: &clap::Command) -> Option<usize> {
    let takes_value = |word: &str| {
        let named = tree.get_arguments().find(|arg| {
            arg.get_long()
                .is_some_and(|long| word == format!("--{long}"))
        });
        named.is_some_and(|arg| arg.get_action().takes_values())
    };
    let mut at = 1;
    while at < argv.len() {
        match argv[at].to_str() {
            Some("--") => return None,
            Some(word) if takes_value(word) => at += 2,
            Some(word) if word.starts_with('-') => at += 1,
            _ => return Some(at),
        }
    }
    None
}

/// Does the program have the command these words call?
fn is_there(tree: &clap::Command, words: &[&str]) -> bool {
    let mut command = tree;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--");
        match (option, command.find_subcommand(word)) {
            (Some(long), _) => match command
                .get_arguments()
                .find(|arg| arg.get_long() == Some(long))
            {
                Some(arg) if arg.get_action().takes_values() => drop(words.next()),
                Some(_) => {}
                None => return false,
            },
            (None, Some(found)) => command = found,
            (None, None) if command.get_positionals().next().is_some() => {}
            (None, None) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction, Command};

    fn tree() -> Command {
        let run = Command::new("run")
            .arg(Arg::new("case"))
            .arg(Arg::new("engine").long("engine"));
        let home = Arg::new("home").long("home").global(true);
        Command::new("cto")
            .arg(home)
            .arg(Arg::new("json").long("json").action(ArgAction::SetTrue))
            .subcommand(run)
    }

    fn translated(line: &str) -> Result<String, String> {
        let argv = line.split(' ').map(OsString::from).collect();
        let words = translate(argv, &tree()).map_err(|failure| failure.what)?;
        Ok(words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn old_names_become_new_words() {
        for (old, new) in [
            (
                "cto run-case.sh C --engine E --json",
                "cto run C --engine E --json",
            ),
            ("cto run-case C", "cto run C"),
            (
                "cto --json --home run-all run-case.sh C",
                "cto --json --home run-all run C",
            ),
            ("cto --home=x run-case C", "cto --home=x run C"),
            (
                "/opt/bin/run-case.sh C --engine E",
                "/opt/bin/run-case.sh run C --engine E",
            ),
            ("run-case C", "run-case run C"),
            // Not the command: left alone.
            ("cto run run-case.sh", "cto run run-case.sh"),
            ("cto -- run-case.sh", "cto -- run-case.sh"),
            ("cto nonsense", "cto nonsense"),
            ("cto", "cto"),
        ] {
            assert_eq!(translated(old).as_deref(), Ok(new), "{old}");
        }
    }

    #[test]
    fn a_target_that_is_not_there_is_named() {
        for (old, _) in OLD_NAMES.iter().filter(|(old, _)| *old != "run-case.sh") {
            let said = translated(&format!("cto {old} --json")).unwrap_err();
            assert!(
                said.contains(old) && said.contains("`cto ") && said.contains("this version"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_target_works_from_the_day_it_exists() {
        let all = Arg::new("all").long("all").action(ArgAction::SetTrue);
        let tree = tree()
            .mut_subcommand("run", |run| run.arg(all))
            .subcommand(Command::new("health"));
        let argv = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            translate(argv("cto run-all --json"), &tree).unwrap(),
            argv("cto run --all --json")
        );
        assert_eq!(
            translate(argv("cto health.sh --json"), &tree).unwrap(),
            argv("cto health --json")
        );
        assert_eq!(
            translate(argv("cto health --json"), &tree).unwrap(),
            argv("cto health --json")
        );
    }
}
