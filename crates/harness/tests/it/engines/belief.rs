//! Which records are believed: only what root and the operator alone could have written, of days
//! that have come, and proofs whose own evidence is still there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cto_core::wire::endpoint::Endpoint;
use cto_testkit::{House, is_root};
use serde_json::json;

use crate::fixtures::admission::{ENGINE, admitted, decision, file, model};
use crate::fixtures::pi_lab::{self, Lab, Model, pi, quick};
use crate::house;

/// What a run at stage 2 says about its model, with this record.
fn said(house: &House, record: &Path) -> String {
    let url = house.root().join("elsewhere/url");
    fs::write(&url, "http://127.0.0.1:9/v1\n").unwrap();
    let (answer, bundle) = house.run_args(&[
        "run",
        "--base-url-file",
        url.to_str().unwrap(),
        "--engine",
        ENGINE,
        "--allow-engine",
        ENGINE,
        "--stage",
        "2",
        "--model-admission",
        record.to_str().unwrap(),
        "--json",
    ]);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    bundle.report()["blockers"].to_string()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_record_that_someone_else_could_have_written_admits_nothing() {
    let house = house();
    admitted(&house);
    let bytes = serde_json::to_vec(&model()).unwrap();
    let put = |name: &str| {
        let path = house.root().join("elsewhere").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &bytes).unwrap();
        path
    };
    const REFUSED: &str = "model_not_admitted";
    assert!(!said(&house, &put("good/model.json")).contains(REFUSED));
    let open = put("open/model.json");
    mode(open.parent().unwrap(), 0o777);
    let sticky = put("sticky/model.json");
    mode(sticky.parent().unwrap(), 0o1777);
    let anybody = put("anybody/model.json");
    mode(&anybody, 0o666);
    let linked = house.root().join("elsewhere/linked.json");
    symlink(put("good/model.json"), &linked).unwrap();
    let mut refused = vec![open, sticky, anybody, linked];
    if is_root() {
        let group = put("group/model.json");
        mode(&group, 0o664);
        chown(&group, None, Some(4242)).unwrap();
        let theirs = put("theirs/model.json");
        chown(&theirs, Some(4242), None).unwrap();
        let house_of_another = put("another/model.json");
        chown(house_of_another.parent().unwrap(), Some(4242), None).unwrap();
        refused.extend([group, theirs, house_of_another]);
    }
    for record in refused {
        let said = said(&house, &record);
        assert!(said.contains(REFUSED), "{}: {said}", record.display());
    }
}

#[test]
fn a_record_of_a_day_to_come_admits_nothing() {
    let house = house();
    admitted(&house);
    for when in [
        "2099-01-01",
        "2999-12-31T23:59:59Z",
        "9000-01-01T00:00:00+14:00",
    ] {
        let mut record = model();
        record["admission_timestamp"] = json!(when);
        let path = file(&house, "to-come.json", &record);
        let said = said(&house, Path::new(&path));
        assert!(said.contains("model_not_admitted"), "{when}: {said}");
        assert!(said.contains("lies in the future"), "{when}: {said}");
        let checked = house.cto(&["admit", "model", "check", &path, "--json"]);
        assert_ne!(checked.code, Some(0), "{checked:?}");
    }
}

#[test]
fn only_one_word_opens_an_engine() {
    for (word, opens) in [
        ("1", true),
        ("true", false),
        ("yes", false),
        ("TRUE", false),
        ("01", false),
    ] {
        let house = house().with("CTO_HARNESS_ALLOW_PI", word);
        let (_, bundle) = house.run_args(&["run", "--engine", "pi", "--json"]);
        let closed = bundle.codes().contains(&"engine_gate_closed".to_owned());
        assert_eq!(!closed, opens, "{word}: {:?}", bundle.codes());
    }
}

#[test]
fn a_proof_of_stage_one_does_not_outlive_the_run_it_names() {
    let house = house();
    admitted(&house);
    let proven = house.cto(&["validate", "stage1", "--engine", ENGINE, "--json"]);
    let proof = proven.json()["proof_paths"][0].as_str().unwrap().to_owned();
    let written: serde_json::Value = serde_json::from_slice(&fs::read(&proof).unwrap()).unwrap();
    let refused = written["refused_by_default"]["run_id"].as_str().unwrap();
    let dir = house.runs_dir().join(refused);
    let is_proven = || {
        let model = house.root().join("elsewhere/model.json");
        !said(&house, &model).contains("no proof of stage 1")
    };
    assert!(is_proven());
    let aside = house.root().join("elsewhere/aside");
    fs::rename(&dir, &aside).unwrap();
    assert!(!is_proven(), "the run is gone");
    fs::rename(&aside, &dir).unwrap();
    assert!(is_proven());
    let report = dir.join("report.json");
    let bytes = fs::read(&report).unwrap();
    fs::write(&report, [&bytes[..], b"\n"].concat()).unwrap();
    assert!(!is_proven(), "the run was touched");
    fs::write(&report, &bytes).unwrap();
    // Another run in its place, whole and signed.
    let (_, other) = house.run_args(&["run", "--engine", ENGINE, "--json"]);
    let other = house.runs_dir().join(other.run_id());
    fs::rename(&dir, &aside).unwrap();
    fs::rename(&other, &dir).unwrap();
    assert!(!is_proven(), "another run has its name");
}

/// Whoever writes the credential's file says on whose account, and before whose eyes, a model answers.
#[test]
fn a_credential_that_someone_else_could_have_written_is_not_used() {
    let house = house();
    admitted(&house);
    let at = |name: &str| house.root().join("elsewhere").join(name);
    let key = at("key");
    let put = |text: &str, bits| {
        let _ = fs::remove_file(&key);
        fs::write(&key, text).unwrap();
        mode(&key, bits);
    };
    let class = format!("file:{}", key.display());
    let with = |kind: &str, mut record: serde_json::Value| {
        record["credential_source_class"] = json!(class);
        let from = file(&house, &format!("{kind}-with-a-key.json"), &record);
        let answer = house.cto(&["admit", kind, "new", "--engine", ENGINE, "--from", &from]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        from
    };
    put("not-a-secret", 0o600);
    with("decision", decision());
    let record = with("model", model());
    let refused = |what: &str| {
        let said = said(&house, Path::new(&record));
        assert!(said.contains("provider_auth_unavailable"), "{what}: {said}");
        assert!(said.contains(what), "{what}: {said}");
    };
    assert!(!said(&house, Path::new(&record)).contains("the credential's file"));
    put("not-a-secret", 0o644);
    refused("can be read by others");
    put("not-a-secret", 0o666);
    refused("could have been written by someone else");
    put("not-a-secret", 0o600);
    fs::create_dir_all(at("project/.git")).unwrap();
    fs::rename(&key, at("project/key")).unwrap();
    symlink(at("project/key"), &key).unwrap();
    refused("is a link");
    if is_root() {
        put("not-a-secret", 0o600);
        chown(&key, Some(4242), None).unwrap();
        refused("could have been written by someone else");
    }
}

/// The file of the base URL is read by the gates and once more before anything is sent. Whoever exchanges it in
/// between gets neither the credential nor a word of the repository.
#[test]
fn nothing_goes_to_another_endpoint_than_the_gates_saw() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let no = "[probe]\nstatus = 500\n";
    let (admitted, other) = (lab.model(no), lab.model(no));
    let text = |model: &Model| format!("http://{}/v1\n", model.authority);
    let mut record = pi_lab::model();
    record["endpoint_sha256"] = json!(Endpoint::parse(&text(&admitted)).unwrap().sha256());
    lab.record("model", &record);
    let (url, next) = (lab.house.root().join("url"), lab.house.root().join("next"));
    fs::write(&url, text(&admitted)).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for model in [&other, &admitted] {
                    fs::write(&next, text(model)).unwrap();
                    fs::rename(&next, &url).unwrap();
                    thread::sleep(Duration::from_millis(20));
                }
            }
        });
        for _ in 0..10 {
            lab.run_on(url.to_str().unwrap());
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(other.requests(), 0);
}
