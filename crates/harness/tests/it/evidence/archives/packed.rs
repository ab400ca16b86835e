//! `cto bundle pack|unpack`, and packed bundles in `cto verify`: there and back.

use std::fs;
use std::path::Path;

use cto_testkit::{Answer, files_below};

use super::{pack, verify_stdin};
use crate::fixtures::verifiers::{by_script, public_key};
use crate::house;
use crate::passed;

#[test]
fn a_bundle_goes_into_one_file_and_comes_back() {
    let (house, bundle) = passed();
    let file = pack(&house, &bundle, "one.tar.zst");
    assert_eq!(
        fs::read(&file).unwrap(),
        fs::read(pack(&house, &bundle, "two.tar.zst")).unwrap(),
        "the same bundle, other bytes"
    );
    for name in ["one.tar.zst", "two.tar.zst"] {
        let answer = house.cto(&[
            "verify",
            house.root().join("elsewhere").join(name).to_str().unwrap(),
        ]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert!(
            answer.stdout.starts_with("GOOD") && answer.stdout.contains(&bundle.run_id()),
            "{answer:?}"
        );
    }
    assert_eq!(
        verify_stdin(&house, &fs::read(&file).unwrap(), &[]).code,
        Some(0)
    );
    let into = house.root().join("into");
    fs::create_dir(&into).unwrap();
    let answer = house.cto(&[
        "bundle",
        "unpack",
        file.to_str().unwrap(),
        "-C",
        into.to_str().unwrap(),
        "--json",
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let there = into.join(bundle.run_id());
    assert_eq!(answer.json()["bundle"], there.to_str().unwrap());
    assert_eq!(files_below(&there), files_below(&bundle.dir));
    assert_eq!(
        house.cto(&["verify", there.to_str().unwrap()]).code,
        Some(0)
    );
    let again = house.cto(&[
        "bundle",
        "unpack",
        file.to_str().unwrap(),
        "-C",
        into.to_str().unwrap(),
    ]);
    assert_eq!(again.code, Some(2), "{again:?}");
    let over = house.cto(&[
        "bundle",
        "pack",
        &bundle.run_id(),
        "-o",
        file.to_str().unwrap(),
    ]);
    assert!(
        over.code == Some(2) && over.stderr.contains("nothing is overwritten"),
        "{over:?}"
    );
    let left: Vec<_> = fs::read_dir(&into).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn other_programs_read_what_is_packed() {
    let (house, bundle) = passed();
    let file = pack(&house, &bundle, "one.tar");
    let into = house.root().join("into");
    fs::create_dir(&into).unwrap();
    let untar = std::process::Command::new("tar")
        .arg("-xf")
        .arg(&file)
        .arg("-C")
        .arg(&into)
        .status()
        .unwrap();
    assert!(untar.success());
    assert_eq!(
        files_below(&into.join(bundle.run_id())),
        files_below(&bundle.dir)
    );
    assert_eq!(
        by_script(&public_key(&house), &[file, into.join(bundle.run_id())]),
        [0, 0]
    );
}

#[test]
fn a_machine_with_only_the_binary_and_the_key() {
    let (house, bundle) = passed();
    let file = fs::read(pack(&house, &bundle, "one.tar.zst")).unwrap();
    let key = fs::read(public_key(&house)).unwrap();
    let stranger = self::house();
    let place = stranger.root().join("elsewhere");
    fs::write(place.join("mailed.tar.zst"), &file).unwrap();
    fs::write(place.join("key.pem"), &key).unwrap();
    let before = files_below(stranger.root());
    let ask = |args: &[&str]| {
        Answer::of(
            &stranger
                .command(args)
                .env_remove("HOME")
                .env_remove("CTO_STATE_DIR")
                .output()
                .unwrap(),
        )
    };
    let good = ask(&["verify", "mailed.tar.zst", "--key", "key.pem"]);
    assert!(
        good.code == Some(0) && good.stdout.contains("by key.pem (key "),
        "{good:?}"
    );
    assert!(
        good.stdout
            .contains("trust in that machine, its user and its root"),
        "{good:?}"
    );
    let unknown = ask(&["verify", "mailed.tar.zst"]);
    assert!(
        unknown.code == Some(3) && unknown.stdout.starts_with("UNKNOWN"),
        "{unknown:?}"
    );
    assert!(
        unknown.stdout.contains("no key is trusted here") && unknown.stdout.contains("--key FILE"),
        "{unknown:?}"
    );
    assert_eq!(
        ask(&["verify", "mailed.tar.zst", "--trust", "."]).code,
        Some(0),
        "a directory of keys"
    );
    assert_eq!(
        files_below(stranger.root()),
        before,
        "verifying wrote something"
    );
}

#[test]
fn only_sealed_bundles_are_packed() {
    let house = house();
    let dir = house.root().join("elsewhere/unsealed");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("events.normalized.jsonl"), "").unwrap();
    let answer = house.cto(&["bundle", "pack", dir.to_str().unwrap()]);
    assert!(
        answer.code == Some(2) && answer.stderr.contains("only a sealed bundle"),
        "{answer:?}"
    );
    let (house, bundle) = passed();
    std::os::unix::fs::symlink("/etc/passwd", bundle.dir.join("link")).unwrap();
    let answer = house.cto(&["bundle", "pack"]);
    assert!(
        answer.code == Some(2) && answer.stderr.contains("not_packable"),
        "{answer:?}"
    );
    let left: Vec<_> = fs::read_dir(Path::new(&house.root().join("elsewhere")))
        .unwrap()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
