//! `cto cases`: the list at 80 columns, one case in full, and a directory of one's own.

use cto_testkit::Case;

use crate::house;

fn built_in() -> Vec<String> {
    cto_harness::task::cases::built_in_names()
}

#[test]
fn every_case_fits_on_a_terminal() {
    let answer = house().cto(&["cases"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for name in built_in() {
        let line = answer
            .stdout
            .lines()
            .find(|line| line.starts_with(&name))
            .unwrap_or_else(|| panic!("no {name}"));
        assert!(
            line.contains("oracle nop cheat") && line.contains(" yes "),
            "{line}"
        );
    }
    let table = answer.stdout.split("\nnext:").next().unwrap();
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    assert_eq!(
        table.lines().count(),
        1 + 2 * built_in().len(),
        "a heading, and two lines a case"
    );
}

#[test]
fn the_list_is_json_too() {
    let json = house().cto(&["cases", "--json"]).json();
    assert_eq!(
        (json["schema_version"].as_u64(), json["command"].as_str()),
        (Some(1), Some("cases"))
    );
    let rows = json["cases"].as_array().unwrap();
    assert_eq!(
        rows.iter()
            .map(|row| row["case"].as_str().unwrap())
            .collect::<Vec<_>>(),
        built_in()
    );
    for row in rows {
        assert!(
            row["usable"] == true && row["built_in"] == true && row["hidden"] == true,
            "{row}"
        );
        for field in [
            "title",
            "toolchains",
            "files",
            "allowed_paths",
            "forbidden_paths",
            "scripts",
            "problems",
        ] {
            assert!(row.get(field).is_some(), "no {field}: {row}");
        }
    }
}

#[test]
fn one_of_them_has_hundreds_of_files() {
    let json = house().cto(&["cases", "--json"]).json();
    let most = json["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["files"].as_u64().unwrap())
        .max();
    assert!(most >= Some(300), "{most:?}");
}

#[test]
fn one_case_in_full() {
    let house = house();
    let answer = house.cto(&["cases", "show", "sh-word-count"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for word in [
        "Count words whatever their case",
        "words.sh",
        "sh test.sh",
        "check_words.sh",
        "control.patch",
        "cheat-tests",
        "next: ",
    ] {
        assert!(answer.stdout.contains(word), "no {word}: {}", answer.stdout);
    }
    let json = house
        .cto(&["cases", "show", "sh-word-count", "--json"])
        .json();
    assert_eq!(
        (json["command"].as_str(), json["files"].as_u64()),
        (Some("cases show"), Some(2))
    );
    assert_eq!(house.cto(&["cases", "show", "nope"]).code, Some(2));
}

#[test]
fn a_directory_of_ones_own_replaces_the_built_in_ones() {
    let house = house();
    let dir = house.root().join("cases").display().to_string();
    house.case(&Case::new("quick"));
    house.case(&Case::new("broken").extra("surprise = 1"));
    let json = house.cto(&["cases", "--cases", &dir, "--json"]).json();
    let rows = json["cases"].as_array().unwrap();
    assert_eq!(
        rows.iter()
            .map(|row| row["case"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["broken", "quick"]
    );
    assert_eq!(
        (rows[0]["usable"].as_bool(), rows[1]["usable"].as_bool()),
        (Some(false), Some(true))
    );
    let text = house.cto(&["cases", "--cases", &dir]);
    assert!(
        text.stdout
            .contains("broken/case.toml:15:1: unknown field `surprise`"),
        "{}",
        text.stdout
    );
    for args in [
        &["contract", "quick"][..],
        &["cases", "show", "quick"],
        &["case", "check", "quick", "--static"],
        &["run", "quick"],
    ] {
        let mut args = args.to_vec();
        args.extend(["--cases", &dir]);
        let found = house.cto(&args);
        assert!(matches!(found.code, Some(0 | 1)), "{args:?}: {found:?}");
        let missing = house.cto(
            &args
                .iter()
                .map(|arg| {
                    if *arg == "quick" {
                        "r1-string-slugify"
                    } else {
                        arg
                    }
                })
                .collect::<Vec<_>>(),
        );
        assert_eq!(
            missing.code,
            Some(2),
            "{args:?}: built-in cases are replaced"
        );
    }
}
