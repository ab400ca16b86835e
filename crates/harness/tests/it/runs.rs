//! `cto runs`: the list, newest first, with what is not a result shown as such.

use cto_testkit::{Case, ORACLE};

use crate::{house, passed};

#[test]
fn an_empty_house_says_what_to_type() {
    let house = house();
    let answer = house.cto(&["runs"]);
    assert_eq!(answer.code, Some(0));
    assert!(answer.stdout.contains("No runs yet") && answer.stdout.contains("run"), "{answer:?}");
    assert_eq!(house.cto(&["runs", "--json"]).json()["total"], 0);
    assert!(!house.state().exists(), "listing wrote state");
}

#[test]
fn newest_first_and_limited() {
    let house = house();
    let case = house.case(&Case::new("quick"));
    for _ in 0..3 {
        house.run(&case, ORACLE, &[]);
    }
    let json = house.cto(&["runs", "-n", "2", "--json"]).json();
    assert_eq!((json["total"].as_u64(), json["runs"].as_array().unwrap().len()), (Some(3), 2));
    let text = house.cto(&["runs", "-n", "2"]);
    assert_eq!(text.stdout.lines().count(), 2);
    assert!(text.stderr.contains("1 more"), "{text:?}");
}

#[test]
fn what_is_no_result_is_not_shown_as_one() {
    let (house, bundle) = passed();
    std::fs::create_dir(house.runs_dir().join("20200101T000000Z-quick-abcdefgh")).unwrap();
    let broken = house.runs_dir().join("20200101T000001Z-quick-abcdefgh");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("report.json"), "{\"status\": \"pass\"}").unwrap();
    std::fs::create_dir(house.runs_dir().join("not a run")).unwrap();
    let json = house.cto(&["runs", "--json"]).json();
    let rows: Vec<(String, bool)> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["state"].as_str().unwrap().to_owned(), row.get("status").is_some()))
        .collect();
    assert_eq!(rows, [("sealed".into(), true), ("unreadable".into(), false), ("unsealed".into(), false)]);
    let text = house.cto(&["runs"]).stdout;
    assert!(text.contains("proves nothing") && text.contains(&bundle.run_id()), "{text}");
}
