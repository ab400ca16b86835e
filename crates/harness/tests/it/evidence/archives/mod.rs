//! Bundles packed into one file.

mod hostile;
mod packed;

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use cto_testkit::{Answer, Bundle, House};

fn pack(house: &House, bundle: &Bundle, name: &str) -> PathBuf {
    let to = house.root().join("elsewhere").join(name);
    let answer = house.cto(&[
        "bundle",
        "pack",
        &bundle.run_id(),
        "-o",
        to.to_str().unwrap(),
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    to
}

fn verify_stdin(house: &House, bytes: &[u8], more: &[&str]) -> Answer {
    let mut args = vec!["verify", "--stdin"];
    args.extend(more);
    let mut child = house
        .command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    // Who refuses early does not read to the end.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Answer::of(&output)
}
