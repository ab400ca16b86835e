//! A state home that is also another program's: its runs, its database and its working files stay as
//! they are, byte for byte, through every command.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use cto_testkit::{Bundle, Case, House, ORACLE};

use crate::assert_good;
use crate::fixtures::bundles::{ids, killed_run};
use crate::house;

/// Runs of another program under our names, oldest first: one that is done, one that is going on,
/// one that nobody closed, one that holds a lock of its own, one that is empty.
const THEIRS: [(&str, &[(&str, &str)]); 10] = [
    (
        "20200101T000000Z-theirs-aaaaaaaa",
        &[
            (
                "report.json",
                "{\"run_id\": \"20200101T000000Z-theirs-aaaaaaaa\", \"status\": \"pass\", \"score\": 0.5}",
            ),
            ("report.md", "# PASS\n"),
            ("SHA256SUMS", "not a list\n"),
            ("gates.json", "{\"schema_"),
        ],
    ),
    (
        "20200102T000000Z-theirs-bbbbbbbb",
        &[
            ("report.md", "# so far\n"),
            ("SHA256SUMS", "x\n"),
            ("gates.json", ""),
            ("eligibility.json", "{"),
            ("containment.json", "{}"),
            ("events.normalized.jsonl", "{\"seq\":1,\"torn"),
            (".report.json.tmp", "{}"),
            (".reserve", "theirs"),
        ],
    ),
    (
        "20200103T000000Z-theirs-cccccccc",
        &[("notes/deep/a.txt", "a\n")],
    ),
    (
        "20990101T000000Z-theirs-dddddddd",
        &[
            ("run.lock", "12345\n"),
            ("contract.json", "{\"schema_version\": 9}"),
            (
                "attestation.json",
                "{\"payload\": \"e30=\", \"payloadType\": \"x\", \"signatures\": []}",
            ),
            ("report.json", "[1, 2, 3]"),
        ],
    ),
    (
        "20990102T000000Z-theirs-eeeeeeee",
        &[
            ("run.lock", "{\"pid\": 7, \"host\": \"elsewhere\"}"),
            ("trace.jsonl", "{\"at_ms\":"),
        ],
    ),
    ("20990103T000000Z-theirs-ffffffff", &[]),
    // Listed in an `open/` of theirs, in three ways, and once with a lock like ours.
    ("20990105T000000Z-theirs-hhhhhhhh", LIKE_OURS),
    ("20990106T000000Z-theirs-iiiiiiii", LIKE_OURS),
    (
        "20990107T000000Z-theirs-jjjjjjjj",
        &[
            ("run.lock", "{\"pid\":1234,\"boot_id\":\"x\"}"),
            ("report.md", "theirs\n"),
            ("SHA256SUMS", "theirs\n"),
            ("gates.json", "theirs\n"),
        ],
    ),
    (
        "20990108T000000Z-theirs-kkkkkkkk",
        &[
            (
                "run.lock",
                "{\"boot_id\":\"0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\",\"pid\":7}\n",
            ),
            ("report.md", "theirs\n"),
            ("notes.txt", "theirs\n"),
        ],
    ),
];

/// Names of ours, bytes of theirs.
const LIKE_OURS: &[(&str, &str)] = &[
    ("report.md", "theirs\n"),
    ("SHA256SUMS", "theirs\n"),
    ("gates.json", "theirs\n"),
    ("backend/out.log", "theirs\n"),
];

/// What else lies about in a profile that another program uses.
const BESIDE: [(&str, &str); 14] = [
    (
        "cto.db",
        "SQLite format 3\0 of somebody else, and long enough to be looked at as one\n",
    ),
    ("work/look-1-notes", "theirs"),
    ("work/look-999999-abc/file", "theirs"),
    ("work/.pruned-theirs/file", "theirs"),
    ("harness-runs/.pruned-theirs/file", "theirs"),
    ("open/theirs.txt", "theirs"),
    ("open/20990102T000000Z-theirs-eeeeeeee", "{}"),
    ("open/20990105T000000Z-theirs-hhhhhhhh", "their own list\n"),
    ("work/20990105T000000Z-theirs-hhhhhhhh/data", "theirs"),
    ("open/20990106T000000Z-theirs-iiiiiiii", ""),
    ("work/20990106T000000Z-theirs-iiiiiiii/data", "theirs"),
    ("open/20990108T000000Z-theirs-kkkkkkkk", ""),
    // Of runs that lie nowhere here.
    ("open/20990109T000000Z-theirs-llllllll", "theirs\n"),
    ("open/20990110T000000Z-theirs-mmmmmmmm", ""),
];

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A profile with somebody else's files in it.
fn shared() -> House {
    let house = house();
    for (run, files) in THEIRS {
        let dir = house.runs_dir().join(run);
        fs::create_dir_all(&dir).unwrap();
        files
            .iter()
            .for_each(|(name, text)| put(&dir.join(name), text));
    }
    BESIDE
        .iter()
        .for_each(|(name, text)| put(&house.state().join(name), text));
    // A run of theirs that lies elsewhere.
    let elsewhere = house.root().join("elsewhere/theirs");
    put(&elsewhere.join("gates.json"), "{");
    symlink(
        &elsewhere,
        house.runs_dir().join("20990104T000000Z-theirs-gggggggg"),
    )
    .unwrap();
    house
}

/// Everything that is theirs: names, kinds, modes, bytes and times.
fn theirs(house: &House) -> BTreeMap<PathBuf, (u32, u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut pending: Vec<PathBuf> = THEIRS
        .iter()
        .map(|(run, _)| house.runs_dir().join(run))
        .chain(BESIDE.iter().map(|(name, _)| house.state().join(name)))
        .chain([
            house.root().join("elsewhere/theirs"),
            house.runs_dir().join("20990104T000000Z-theirs-gggggggg"),
        ])
        .collect();
    while let Some(path) = pending.pop() {
        let meta =
            fs::symlink_metadata(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let bytes = match meta.is_file() {
            true => fs::read(&path).unwrap(),
            false => Vec::new(),
        };
        if meta.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        }
        let facts = (
            meta.mode(),
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            bytes,
        );
        found.insert(path, facts);
    }
    found
}

#[test]
fn everything_foreign_stays_as_it_is_through_every_command() {
    let house = shared();
    let before = theirs(&house);
    let case = house.case(&Case::new("quick"));
    let script = house.script("oracle", ORACLE);
    let name = THEIRS[0].0;
    for args in [
        &["recover"][..],
        &["run", &case, "--script", &script],
        &["recover", "--json"],
        &["runs"],
        &["runs", "--reindex", "--json"],
        &["runs", "prune", "--older-than", "0d", "--yes"],
        &["runs", "prune", "--max-size", "1", "--yes"],
        &["runs", "prune", "--keep-last", "1", "--yes"],
        &["verify", "--all"],
        &["verify", name],
        &["show", name],
        &["show", name, "--events"],
        &["diff", name],
        &["replay", name],
        &["apply", name],
        &["bundle", "pack", name],
        &["run", &case, "--script", &script],
    ] {
        let answer = house.cto(args);
        assert!(!answer.panicked(), "{args:?}: {answer:?}");
        assert_eq!(theirs(&house), before, "{args:?}: {answer:?}");
    }
}

#[test]
fn foreign_runs_are_listed_as_foreign_and_are_neither_evidence_nor_damage() {
    let house = shared();
    let case = house.case(&Case::new("quick"));
    let (answer, bundle) = house.run(&case, ORACLE, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let listed = house.cto(&["runs", "--json"]);
    let rows = listed.json()["runs"].as_array().unwrap().clone();
    assert_eq!(rows.len(), THEIRS.len() + 2, "{listed:?}");
    for row in &rows {
        let state = match row["run_id"] == bundle.run_id() {
            true => "sealed",
            false => "foreign",
        };
        assert_eq!(row["state"], state, "{row}");
        assert_eq!(row["status"].is_string(), state == "sealed", "{row}");
    }
    for status in ["pass", "fail", "blocked"] {
        let found = ids(&house.cto(&["runs", "--json", "--status", status]));
        let want: &[String] = if status == "pass" {
            &[bundle.run_id()]
        } else {
            &[]
        };
        assert_eq!(found, want, "{status}");
    }
    // Ours is the last, although theirs have later names.
    assert_eq!(
        house.cto(&["show", "--json"]).json()["report"],
        bundle.report()
    );
    assert_eq!(house.cto(&["verify"]).code, Some(0));
    let all = house.cto(&["verify", "--all", "--json"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    assert_eq!(
        all.json()["bundles"].as_array().unwrap().len(),
        1,
        "{all:?}"
    );
    for (name, _) in THEIRS {
        let shown = house.cto(&["show", name, "--json"]);
        assert_eq!(shown.code, Some(3), "{name}: {shown:?}");
        assert_eq!(shown.json()["state"], "foreign", "{name}: {shown:?}");
        let verified = house.cto(&["verify", name, "--json"]);
        assert_eq!(verified.code, Some(3), "{name}: {verified:?}");
        assert_eq!(verified.json()["bundles"][0]["state"], "foreign", "{name}");
    }
    let pruned = house.cto(&["runs", "prune", "--older-than", "0d", "--json"]);
    let json = pruned.json();
    let kept = json["protected"].as_array().unwrap();
    let foreign = kept.iter().filter(|row| row["why"] == "foreign").count();
    assert_eq!(foreign, THEIRS.len() + 1, "{json}");
}

/// A run of ours that was killed in the middle of theirs is closed, and nothing else.
#[test]
fn recovery_closes_ours_among_theirs() {
    let plain = house();
    let killed = killed_run(&plain);
    let house = shared();
    let name = killed.file_name().unwrap().to_str().unwrap();
    let dir = house.runs_dir().join(name);
    cto_testkit::copy_dir(&killed, &dir);
    let before = theirs(&house);
    let answer = house.cto(&["recover", "--json"]);
    let closed: Vec<String> = answer.json()["recovered"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["run_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(closed, [name], "{answer:?}");
    assert_eq!(Bundle::at(&dir).codes(), ["interrupted"]);
    assert_good(&Bundle::at(&dir));
    assert_eq!(theirs(&house), before);
}
