//! `cto matrix`, the failure matrix: green as it stands, and red for everything that could be
//! wrong.

mod answers;
mod flaws;
mod forged;
mod lanes;
mod mutations;
mod whole;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cto_core::proof::matrix::{self, MatrixReport, Row};
use cto_testkit::House;

fn rows() -> Vec<Row> {
    matrix::built_in().unwrap().rows
}

fn parsed(stdout: &str) -> MatrixReport {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// A place for the rows of a house.
fn with_tmp(house: House) -> (House, PathBuf) {
    let tmp = house.root().join("tmp");
    fs::create_dir(&tmp).unwrap();
    let text = tmp.display().to_string();
    (house.with("TMPDIR", &text), tmp)
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// Tests, failures and skipped of a JUnit file, counted by a parser that is not ours.
fn suite(file: &str) -> (usize, usize, usize) {
    const COUNT: &str = "import sys, xml.etree.ElementTree as t; r = t.parse(sys.argv[1]).getroot(); s = r[0]
assert r.tag == 'testsuites' and s.tag == 'testsuite' and all(c.tag == 'testcase' and c.get('name') and float(c.get('time')) >= 0 for c in s)
n = (len(s), len(s.findall('testcase/failure')), len(s.findall('testcase/skipped')))
assert n == tuple(int(s.get(k)) for k in ('tests', 'failures', 'skipped')) == tuple(int(r.get(k)) for k in ('tests', 'failures', 'skipped'))
print(*n)";
    let output = Command::new("python3")
        .args(["-c", COUNT, file])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        fs::read_to_string(file).unwrap()
    );
    let numbers: Vec<usize> = String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    (numbers[0], numbers[1], numbers[2])
}
