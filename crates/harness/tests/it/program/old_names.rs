//! The script names of the operator's existing world.

use cto_testkit::{Answer, Bundle, Case};

use crate::assert_good;
use crate::house;

#[test]
fn run_case_runs_a_case() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    for name in ["run-case.sh", "run-case"] {
        let (answer, bundle) = house.run_args(&[name, &case, "--engine", "fake", "--json"]);
        assert_eq!(
            (answer.code, answer.json()["command"].as_str()),
            (Some(0), Some("run")),
            "{answer:?}"
        );
        assert_good(&bundle);
    }
    let home = house.root().join("elsewhere/run-all");
    let (answer, bundle) = house.run_args(&[
        "--home",
        home.to_str().unwrap(),
        "run-case.sh",
        &case,
        "--json",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        bundle.dir.starts_with(&home),
        "the value of an option was taken for a command"
    );
    assert_eq!(
        house.cto(&["run-case.sh", "--help"]).stdout,
        house.cto(&["run", "--help"]).stdout
    );
}

#[test]
fn a_link_of_an_old_name_is_that_command() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    let link = house.root().join("run-case.sh");
    std::os::unix::fs::symlink(crate::program(), &link).unwrap();
    let call = |args: &[&str]| {
        let words = house.command(&[]);
        let mut command = std::process::Command::new(&link);
        command.args(args).env_clear().current_dir(house.root());
        command.envs(
            words
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        Answer::of(&command.output().unwrap())
    };
    let answer = call(&[&case, "--engine", "fake", "--json"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_good(&Bundle::at(answer.json()["bundle"].as_str().unwrap()));
    let spoken = call(&[&case]);
    assert!(
        spoken.stdout.contains("\nnext: cto verify "),
        "the next command is not one: {}",
        spoken.stdout
    );
}

#[test]
fn what_this_version_does_not_have_is_said() {
    let house = house();
    let tree = cto_harness::cli::command_tree();
    for (old, new, command) in [
        ("health.sh", "cto health", "health"),
        ("validate-case-stage1.py", "cto validate stage1", "validate"),
        ("validate-case-stage6.py", "cto validate stage6", "validate"),
        (
            "validate-case-provider-adapter.py",
            "cto validate provider-adapter",
            "validate",
        ),
        (
            "validate-case-stage6-real-refresh.py",
            "cto validate stage6-refresh",
            "validate",
        ),
        ("webui-summary.sh", "cto summary", "summary"),
        (
            "validate-webui-summary.py",
            "cto validate summary",
            "validate",
        ),
        ("validate_cto_child.py", "cto records check", "records"),
    ] {
        if tree.find_subcommand(command).is_some() {
            continue;
        }
        let answer = house.cto(&[old, "--json"]);
        let json = answer.json();
        assert_eq!(
            (answer.code, json["error"]["code"].as_str()),
            (Some(2), Some("not_in_this_version")),
            "{old}"
        );
        let what = json["error"]["what"].as_str().unwrap();
        assert!(
            what.contains(old) && what.contains(&format!("`{new}`")),
            "{what}"
        );
    }
    // Nothing of these stands in any list.
    let help = house.cto(&["help"]).stdout;
    assert!(
        !help.contains("run-case") && !help.contains(".sh") && !help.contains(".py"),
        "{help}"
    );
    assert!(!house.state().exists());
}
