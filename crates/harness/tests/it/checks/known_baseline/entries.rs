//! What lies where baselines are kept: only what is whole, ours and young enough is used, and the rest
//! goes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use cto_testkit::is_root;

use super::{baselines, edit_kept, kept, only_kept, passing, repository};
use crate::house;

/// What was done to an entry.
type Damage<'a> = (&'static str, Box<dyn Fn() + 'a>);

#[test]
fn entries_that_are_not_ours_and_whole_are_as_good_as_none() {
    let house = house();
    let repo = repository(&house, "entries");
    passing(&house, &repo, &[]);
    let file = only_kept(&house);
    let whole = fs::read(&file).unwrap();
    let elsewhere = house.root().join("another-name");
    let put = |bytes: &[u8]| {
        let _ = fs::remove_file(&file);
        fs::write(&file, bytes).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    };
    let day = 24 * 3600 * 1000;
    let made_at = |days: i64| {
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        let millis = i64::try_from(now.as_millis()).unwrap() + days * day;
        serde_json::to_value(cto_core::values::time::Utc::from_millis(millis).unwrap()).unwrap()
    };
    let damages: Vec<Damage<'_>> = vec![
        ("empty", Box::new(|| put(b""))),
        ("torn", Box::new(|| put(&whole[..whole.len() - 9]))),
        ("torn early", Box::new(|| put(&whole[..40]))),
        ("longer", Box::new(|| put(&[&whole[..], b"x"].concat()))),
        (
            "a flipped byte",
            Box::new(|| {
                let mut bytes = whole.clone();
                let last = bytes.len() - 30;
                bytes[last] ^= 1;
                put(&bytes);
            }),
        ),
        (
            "a huge length",
            Box::new(|| {
                let rest = whole.iter().position(|byte| *byte == b'\n').unwrap();
                put(&[b"cto-baseline/1 18446744073709551615", &whole[rest..]].concat());
            }),
        ),
        (
            "older than a week",
            Box::new(|| edit_kept(&file, |kept| kept["made_at"] = made_at(-8))),
        ),
        (
            "of the future",
            Box::new(|| edit_kept(&file, |kept| kept["made_at"] = made_at(1))),
        ),
        (
            "of another key",
            Box::new(|| edit_kept(&file, |kept| kept["key"] = kept["tree"].clone())),
        ),
        (
            "that timed out",
            Box::new(|| {
                edit_kept(&file, |kept| {
                    kept["checks"][0]["end"] =
                        serde_json::json!({"kind": "timed_out", "limit": "wall"});
                })
            }),
        ),
        (
            "without tests",
            Box::new(|| {
                edit_kept(&file, |kept| {
                    kept["commands"][0]["tests"] = serde_json::json!({});
                })
            }),
        ),
        (
            "readable by others",
            Box::new(|| {
                fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            }),
        ),
        (
            "with a second name",
            Box::new(|| fs::hard_link(&file, &elsewhere).unwrap()),
        ),
        (
            "a link",
            Box::new(|| {
                let _ = fs::remove_file(&elsewhere);
                fs::rename(&file, &elsewhere).unwrap();
                symlink(&elsewhere, &file).unwrap();
            }),
        ),
        (
            "a directory",
            Box::new(|| {
                fs::remove_file(&file).unwrap();
                fs::create_dir(&file).unwrap();
            }),
        ),
        (
            "somebody else's",
            Box::new(|| {
                if is_root() {
                    std::os::unix::fs::chown(&file, Some(65534), Some(65534)).unwrap();
                } else {
                    put(b"");
                }
            }),
        ),
    ];
    for (what, damage) in damages {
        let before = fs::metadata(&file).unwrap().is_file();
        assert!(before, "{what}: nothing to damage");
        damage();
        let bundle = passing(&house, &repo, &[]);
        assert_eq!(baselines(&bundle), 1, "{what}");
        let again = passing(&house, &repo, &[]);
        assert_eq!(baselines(&again), 0, "{what}: a whole one took its place");
    }
    // A room that others can enter is not used at all.
    let room = file.parent().unwrap();
    fs::set_permissions(room, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(baselines(&passing(&house, &repo, &[])), 1);
    fs::set_permissions(room, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(baselines(&passing(&house, &repo, &[])), 0);
}

#[test]
fn what_nobody_uses_any_more_is_swept_and_pruned() {
    let house = house();
    let repo = repository(&house, "swept");
    passing(&house, &repo, &[]);
    let file = only_kept(&house);
    let room = file.parent().unwrap().to_owned();
    let old = |name: &str, days: u64| {
        let path = room.join(name);
        let made = fs::File::create(&path).unwrap();
        let age = std::time::Duration::from_secs(days * 24 * 3600);
        made.set_modified(std::time::SystemTime::now() - age)
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let gone = [
        old(&"a".repeat(64), 8),
        old("new-abcdefghijkl", 1),
        old("stray", 0),
    ];
    let stays = [
        old(&"b".repeat(64), 6),
        old("new-lkjihgfedcba", 0),
        file.clone(),
    ];
    symlink(&file, room.join("c".repeat(64))).unwrap();
    let answer = house.cto(&["runs", "prune", "--older-than", "99d", "--yes"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(gone.iter().all(|path| !path.exists()), "{:?}", kept(&house));
    assert!(stays.iter().all(|path| path.exists()));
    assert_eq!(kept(&house).len(), 3);
    // Without --yes nothing goes.
    let again = old(&"a".repeat(64), 8);
    house.cto(&["runs", "prune", "--older-than", "99d"]);
    assert!(again.exists());
}
