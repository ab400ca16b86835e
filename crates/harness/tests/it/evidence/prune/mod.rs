//! `cto runs prune`: shows before it acts, and never takes what could still matter.

mod removal;
mod rules;
mod survivors;

use cto_testkit::{Answer, Bundle, House};

fn went(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer.json()["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["run_id"].as_str().unwrap().to_owned())
        .collect()
}

fn kept(answer: &Answer, run_id: &str) -> Option<String> {
    let json = answer.json();
    let row = json["protected"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["run_id"] == run_id)?;
    Some(row["why"].as_str().unwrap().to_owned())
}

/// Three old runs beside a new one; their ids, oldest first.
fn three(house: &House, like: &Bundle) -> [String; 3] {
    [
        "20200101T000000Z-quick-aaaa2222",
        "20200102T000000Z-quick-aaaa2222",
        "20200103T000000Z-quick-aaaa2222",
    ]
    .map(|id| {
        house.plant(like, id, |report| {
            if id.contains("0102T") {
                report["status"] = "fail".into();
            }
        });
        id.to_owned()
    })
}

/// Prunes everything it can, and says what became of one run.
fn survives(house: &House, run_id: &str, why: &str) {
    let looked = house.cto(&["runs", "prune", "--max-size", "0", "--json"]);
    assert_eq!(kept(&looked, run_id).as_deref(), Some(why), "{looked:?}");
    let done = house.cto(&["runs", "prune", "--max-size", "0", "--yes", "--json"]);
    assert!(
        !went(&done).contains(&run_id.to_owned()),
        "{run_id} was taken"
    );
    assert!(
        house.runs_dir().join(run_id).symlink_metadata().is_ok(),
        "{run_id} is gone"
    );
}
