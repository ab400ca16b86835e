//! Requests, approvals and denials: signed by a real SSH key, for one exact contract, used once.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cto_testkit::{Answer, Bundle, Case, Forged, House, sha256_hex};
use serde_json::Value;

use super::assert_forged;
use crate::{assert_bad, house, verdict};
use cto_core::verify::Standing;

/// A house with a key that may approve, and a case to ask for.
pub struct Desk {
    pub house: House,
    pub case: String,
    pub key: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let house = house();
        let case = Case::new("quick").extra("approval_required = true");
        let case = house.case(&case);
        Self::of(house, case)
    }

    pub fn of(house: House, case: String) -> Self {
        let key = make_key(&house, "id");
        let desk = Self { house, case, key };
        let public = desk.public();
        let named = desk
            .house
            .cto(&["keys", "approver", "me", &public, "--json"]);
        assert_eq!(named.code, Some(0), "{named:?}");
        desk
    }

    pub fn public(&self) -> String {
        format!("{}.pub", self.key.display())
    }

    fn request(&self) -> Value {
        self.request_with(&[])
    }

    pub fn request_with(&self, more: &[&str]) -> Value {
        let args = ["request", &self.case, "--work-id", "CTO-WORK-049", "--json"];
        let answer = self.house.cto(&[&args[..], more].concat());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.json()["request"].clone()
    }

    pub fn say(&self, request: &Value, sentence: &str, key: &str) -> Answer {
        let id = request["request_id"].as_str().unwrap();
        self.house.cto(&[
            "approve",
            id,
            "--sentence",
            sentence,
            "--key",
            key,
            "--json",
        ])
    }

    pub fn approve(&self, request: &Value) {
        let sentence = request["sentence"].as_str().unwrap();
        let answer = self.say(request, sentence, self.key.to_str().unwrap());
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }

    pub fn run(&self, request: &Value) -> Bundle {
        let id = request["request_id"].as_str().unwrap();
        self.house.run_args(&["run", "--request", id, "--json"]).1
    }

    pub fn file(&self, request: &Value, name: &str) -> PathBuf {
        let id = request["request_id"].as_str().unwrap();
        self.house
            .state()
            .join("operator/requests")
            .join(id)
            .join(name)
    }
}

pub fn make_key(house: &House, name: &str) -> PathBuf {
    let key = house.root().join(name);
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "c", "-f"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(made.success());
    key
}

#[test]
fn an_approved_request_runs_once_and_anybody_can_check_who_said_so() {
    let desk = Desk::new();
    let plain = desk.house.run_args(&["run", &desk.case, "--json"]).1;
    assert_eq!(plain.codes(), ["approval_missing"]);
    let request = desk.request();
    let sentence = "I approve CTO-WORK-049 against a copy of the files of quick for the Quick.";
    assert_eq!(request["sentence"], sentence);
    assert_eq!(request["approval_granted"], false);
    assert_eq!(
        desk.run(&request).codes(),
        ["approval_missing"],
        "nobody said anything"
    );
    desk.approve(&request);
    let bundle = desk.run(&request);
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.codes());
    assert_eq!(bundle.report()["approval_status"], "granted");
    let id = request["request_id"].as_str().unwrap();
    let verified = desk.house.cto(&["verify", &bundle.run_id(), "--json"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let stranger = verdict(&bundle);
    assert_eq!(
        stranger.standing,
        Standing::Unknown,
        "who may approve is not known there"
    );

    // OpenSSH's own tool, with the record of signers of this house.
    let relied = |end: &str| bundle.dir.join(format!("relied/approval-{id}.json{end}"));
    let accepted = Command::new("ssh-keygen")
        .args([
            "-Y",
            "verify",
            "-I",
            "me",
            "-n",
            "approval@cto-harness",
            "-f",
        ])
        .arg(desk.house.state().join("records/signers/allowed_signers"))
        .arg("-s")
        .arg(relied(".sig"))
        .stdin(fs::File::open(relied("")).unwrap())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(accepted.success());

    let record = format!("relied/approval-{id}.json");
    let relied_anew = |forged: &Forged, bytes: &[u8]| {
        forged.put(&record, bytes);
        forged.edit_report(|report| {
            let all = report["relies_on"].as_array_mut().unwrap();
            let on = all.iter_mut().find(|on| on["kind"] == "approval").unwrap();
            on["sha256"] = sha256_hex(bytes).into();
        });
    };
    type Forgery<'a> = (&'a str, &'a dyn Fn(&Forged));
    let rows: [Forgery<'_>; 5] = [
        ("made over other bytes", &|forged| {
            let text = bundle.text(&record).replace("\"me\"", "\"us\"");
            relied_anew(forged, text.as_bytes());
        }),
        ("is missing although", &|forged| {
            forged.remove(&format!("{record}.sig"));
        }),
        ("without the request", &|forged| {
            forged.edit_report(|report| {
                let all = report["relies_on"].as_array_mut().unwrap();
                all.retain(|on| on["kind"] != "request");
            });
        }),
        ("did not count when it was used", &|forged| {
            forged.edit_event("approval.granted", |data| {
                data["timestamp"] = "2031-01-01T00:00:00.000Z".into()
            });
        }),
        ("not the approval that the chain tells of", &|forged| {
            forged.edit_event("approval.granted", |data| data["actor"] = "us".into());
        }),
    ];
    for (why, forge) in rows {
        let forged = Forged::copy_of(&bundle);
        forge(&forged);
        assert_forged(&forged, why);
    }

    let again = desk.run(&request);
    assert_eq!(again.codes(), ["approval_consumed"]);
    assert_eq!(again.report()["process_started"], false);
    let listed = desk.house.cto(&["requests", "--json"]).json();
    assert_eq!(listed["requests"][0]["state"], "used");

    let text = fs::read_to_string(relied("")).unwrap();
    fs::write(relied(""), text.replace("\"me\"", "\"us\"")).unwrap();
    assert_bad(&bundle, "another approver");
}

#[test]
fn only_the_exact_sentence_and_a_known_key_approve() {
    let desk = Desk::new();
    let request = desk.request();
    let exact = request["sentence"].as_str().unwrap().to_owned();
    let key = desk.key.to_str().unwrap();
    for wrong in [
        "yes".to_owned(),
        exact.to_lowercase(),
        format!("{exact} "),
        exact.replace(' ', "  "),
        exact.replace('a', "а"),
    ] {
        let answer = desk.say(&request, &wrong, key);
        assert_eq!(answer.code, Some(3), "{wrong:?} {answer:?}");
        assert!(!desk.file(&request, "answer.json").exists());
    }
    let other = make_key(&desk.house, "other");
    let answer = desk.say(&request, &exact, other.to_str().unwrap());
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let id = request["request_id"].as_str().unwrap();
    let silent = desk.house.cto(&["approve", id, "--key", key, "--json"]);
    assert_eq!(
        silent.code,
        Some(3),
        "no terminal and no sentence: {silent:?}"
    );
    assert!(!desk.file(&request, "answer.json").exists());
    desk.approve(&request);
    let twice = desk.say(&request, &exact, key);
    assert_eq!(twice.code, Some(2), "the first answer stays: {twice:?}");
}

#[test]
fn a_denial_ends_it_before_anything_starts() {
    let desk = Desk::new();
    let request = desk.request();
    let id = request["request_id"].as_str().unwrap();
    let denied = desk
        .house
        .cto(&["deny", id, "--key", desk.key.to_str().unwrap(), "--json"]);
    assert_eq!(denied.code, Some(0), "{denied:?}");
    let bundle = desk.run(&request);
    assert_eq!(bundle.codes(), ["approval_denied"]);
    assert_eq!(bundle.event("approval.denied").unwrap()["actor"], "me");
    assert_eq!(bundle.report()["process_started"], false);
}

#[test]
fn what_was_not_approved_does_not_start() {
    let desk = Desk::new();
    let refused = |name: &str, change: &dyn Fn(&Value)| {
        let request = desk.request();
        desk.approve(&request);
        change(&request);
        let bundle = desk.run(&request);
        assert_eq!(bundle.codes(), ["approval_mismatch"], "{name}");
        assert_eq!(bundle.report()["process_started"], false, "{name}");
        assert!(
            !desk.file(&request, "used.json").exists(),
            "{name}: it was used up"
        );
    };
    let edit = |request: &Value, name: &str, from: &str, to: &str| {
        let path = desk.file(request, name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
    };
    refused("request changed", &|request| {
        edit(request, "request.json", "CTO-WORK-049", "CTO-WORK-050")
    });
    refused("answer changed", &|request| {
        edit(request, "answer.json", "quick", "quack")
    });
    refused("answer cut", &|request| {
        let path = desk.file(request, "answer.json");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    });
    refused("answer planted as a link", &|request| {
        let path = desk.file(request, "answer.json");
        fs::rename(&path, path.with_extension("aside")).unwrap();
        std::os::unix::fs::symlink(path.with_extension("aside"), &path).unwrap();
    });
    refused("another store", &|request| {
        let store = desk.house.state().join("operator/store.json");
        let text = fs::read_to_string(&store).unwrap();
        let id = request["store_id"].as_str().unwrap();
        fs::write(&store, text.replace(id, &"0".repeat(64))).unwrap();
    });
    // A used approval under another name.
    let request = desk.request();
    desk.approve(&request);
    assert_eq!(desk.run(&request).status(), "pass");
    let used = desk.file(&request, "");
    let mut other = request.clone();
    other["request_id"] = "20260102T030405Z-quick-k3v9".into();
    fs::create_dir(desk.file(&other, "")).unwrap();
    for name in ["request.json", "asked-with.json", "answer.json"] {
        fs::copy(used.join(name), desk.file(&other, name)).unwrap();
    }
    let bundle = desk.run(&other);
    assert_eq!(bundle.codes(), ["approval_mismatch"], "another name");
    assert_eq!(bundle.report()["process_started"], false);
    let request = desk.request();
    desk.approve(&request);
    let case = PathBuf::from(&desk.case).join("case.toml");
    let text = fs::read_to_string(&case).unwrap();
    fs::write(
        &case,
        text.replace("the answer is right", "the answer is wrong"),
    )
    .unwrap();
    let bundle = desk.run(&request);
    assert_eq!(bundle.codes(), ["approval_mismatch"], "another contract");
}

#[test]
fn of_racing_runs_exactly_one_starts() {
    let desk = Desk::new();
    let request = desk.request();
    desk.approve(&request);
    let id = request["request_id"].as_str().unwrap();
    let racing: Vec<_> = (0..4)
        .map(|_| desk.house.start(&["run", "--request", id, "--json"]))
        .collect();
    let codes: Vec<Option<i32>> = racing
        .into_iter()
        .map(|mut child| child.wait().unwrap().code())
        .collect();
    let passed = codes.iter().filter(|code| **code == Some(0)).count();
    assert_eq!(passed, 1, "{codes:?}");
    assert!(
        codes.iter().all(|code| matches!(code, Some(0 | 3))),
        "{codes:?}"
    );
}
