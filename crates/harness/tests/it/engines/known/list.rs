//! `cto engines`: the list, and what keeps each closed.

use crate::house;

#[test]
fn fake_is_open_and_all_others_closed() {
    let house = house();
    let json = house.cto(&["engines", "--json"]).json();
    let rows = json["engines"].as_array().unwrap();
    let open: Vec<&str> = rows
        .iter()
        .filter(|row| row["gate"] == "open")
        .map(|row| row["engine"].as_str().unwrap())
        .collect();
    assert_eq!(open, ["fake"]);
    for row in rows.iter().filter(|row| row["gate"] == "closed") {
        assert_eq!(row["default_stage"], 1, "{row}");
        assert!(
            row["gated_by_env"]
                .as_str()
                .unwrap()
                .starts_with("CTO_HARNESS_ALLOW_"),
            "{row}"
        );
    }
    let text = house.cto(&["engines"]);
    assert_eq!(text.code, Some(0));
    for row in rows {
        assert!(text.stdout.contains(row["engine"].as_str().unwrap()));
    }
    assert!(!house.state().exists(), "listing engines wrote state");
}

#[test]
fn a_variable_opens_one_gate_only() {
    for (value, want) in [
        ("1", "open"),
        ("true", "closed"),
        ("yes", "closed"),
        ("0", "closed"),
        ("", "closed"),
        ("on", "closed"),
    ] {
        let house = house().with("CTO_HARNESS_ALLOW_CODEX", value);
        let json = house.cto(&["engines", "--json"]).json();
        for row in json["engines"].as_array().unwrap() {
            match row["engine"].as_str().unwrap() {
                "codex" => assert_eq!(row["gate"], want, "{value:?}"),
                "fake" => assert_eq!(row["gate"], "open"),
                _ => assert_eq!(row["gate"], "closed", "{value:?}: {row}"),
            }
        }
    }
}
