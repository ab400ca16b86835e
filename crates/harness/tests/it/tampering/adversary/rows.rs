//! The rows of the table: what was done to a bundle, and why it is refused.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use cto_testkit::{Bundle, Forged, PAYLOAD_TYPE, TestKey, canonical, payload};
use serde_json::{Value, json};

use super::{BINARY, BOTH, Row, Scene, Trusts, forger};

fn flip(forged: &Forged, name: &str, at: usize) {
    let mut bytes = forged.bundle().bytes(name);
    let at = at % bytes.len().max(1);
    match bytes.get_mut(at) {
        Some(byte) => *byte ^= 1,
        None => bytes.push(b'x'),
    }
    forged.put(name, &bytes);
}

/// The largest file there may be, made of nothing: reading it would take minutes.
fn holes(forged: &Forged, name: &str) {
    let file = fs::File::create(forged.dir.join(name)).unwrap();
    file.set_len(32 << 30).unwrap();
}

fn sums(forged: &Forged, edit: impl FnOnce(String) -> String) {
    let text = edit(forged.bundle().text("SHA256SUMS"));
    forged.put("SHA256SUMS", text.as_bytes());
}

fn envelope_text(forged: &Forged, edit: impl FnOnce(String) -> Vec<u8>) {
    let bytes = edit(forged.bundle().text("attestation.json"));
    forged.put("attestation.json", &bytes);
}

/// Puts a payload of any bytes under a signature that fits it.
fn sign_bytes(forged: &Forged, edit: impl FnOnce(String) -> Vec<u8>) {
    forged.sign(&forger());
    let statement = canonical(&payload(&forged.bundle().json("attestation.json")));
    let bytes = edit(String::from_utf8(statement).unwrap());
    forged.put(
        "attestation.json",
        &canonical(&forger().envelope(PAYLOAD_TYPE, &bytes)),
    );
}

fn statement(forged: &Forged, edit: impl FnOnce(&mut Value)) {
    forged.sign_statement(&forger(), edit);
}

/// Edits a report as text, and makes all that can fit fit.
fn report_text(forged: &Forged, edit: impl FnOnce(String) -> String) {
    let text = edit(forged.bundle().text("report.json"));
    forged
        .put("report.json", text.as_bytes())
        .resum()
        .sign(&forger());
}

fn signed_report(forged: &Forged, edit: impl FnOnce(&mut Value)) {
    forged.edit_report(edit).redigest().sign(&forger());
}

/// Everything of another bundle, in the directory of this one.
fn turn_into(forged: &Forged, other: &Bundle) {
    for name in forged.bundle().names() {
        forged.remove(&name);
    }
    for name in other.names() {
        forged.put(&name, &other.bytes(&name));
    }
}

fn take_from(forged: &Forged, other: &Bundle, names: &[&str]) {
    for name in names {
        forged.put(name, &other.bytes(name));
    }
}

/// A companion with other contents, signed and bound anew.
fn rebind(forged: &Forged, name: &str, edit: impl FnOnce(&mut Value)) {
    forged.sign(&forger());
    let mut inner = payload(&forged.bundle().json(name));
    edit(&mut inner);
    let bytes = canonical(&forger().envelope(PAYLOAD_TYPE, &canonical(&inner)));
    forged.put(name, &bytes);
    let digest = cto_testkit::sha256_hex(&bytes);
    let mut statement = payload(&forged.bundle().json("attestation.json"));
    statement["predicate"]["companions"][name] = digest.into();
    forged.put(
        "attestation.json",
        &canonical(&forger().envelope(PAYLOAD_TYPE, &canonical(&statement))),
    );
}

macro_rules! rows {
    ($trusts:ident, $script:ident; $($what:literal, $why:literal, |$f:ident, $s:ident| $act:expr;)*) => {
        vec![$(Row { what: $what, why: $why, trusts: Trusts::$trusts, script: $script, act: |$f: &Forged, $s: &Scene| { let _ = ($f, $s); let _ = $act; } },)*]
    };
}

fn bytes_and_names() -> Vec<Row> {
    rows! { Machine, BOTH;
        "a byte of report.json", "report.json", |f, s| flip(f, "report.json", 40);
        "a byte of report.md", "digest it is listed with", |f, s| flip(f, "report.md", 3);
        "a byte of contract.json", "digest it is listed with", |f, s| flip(f, "contract.json", 99);
        "a byte of the events", "digest it is listed with", |f, s| flip(f, "events.normalized.jsonl", 500);
        "a byte of the gates", "digest it is listed with", |f, s| flip(f, "gates.json", 10);
        "a byte of the trace", "digest it is listed with", |f, s| flip(f, "trace.jsonl", 10);
        "a byte of containment.json", "digest it is listed with", |f, s| flip(f, "containment.json", 10);
        "a byte of the patch", "digest it is listed with", |f, s| flip(f, "patch.diff", 70);
        "a byte of the log", "digest it is listed with", |f, s| flip(f, "test.log", 0);
        "a byte of the engine's output", "digest it is listed with", |f, s| flip(f, "backend/stdout.log", 5);
        "a digit of the sums", "SHA256SUMS", |f, s| flip(f, "SHA256SUMS", 5);
        "a letter of a name in the sums", "is listed but missing", |f, s| sums(f, |t| t.replace("gates.json", "gates.jsom"));
        "a letter of the signed statement", "the signature is not that of key", |f, s| f.edit_envelope("attestation.json", |e| {
            let mut statement = payload(e);
            statement["predicate"]["case_id"] = "quicc".into();
            e["payload"] = forger().envelope(PAYLOAD_TYPE, &canonical(&statement))["payload"].clone();
        });
        "a byte of the signature", "the signature is not that of key", |f, s| f.edit_envelope("attestation.json", |e| {
            let text = e["signatures"][0]["sig"].as_str().unwrap().to_owned();
            let first = if text.starts_with('A') { "B" } else { "A" };
            e["signatures"][0]["sig"] = format!("{first}{}", &text[1..]).into();
        });
        "a byte of the provenance", "companion that was signed", |f, s| flip(f, "attestations/provenance.json", 60);
        "a byte of the test result", "companion that was signed", |f, s| flip(f, "attestations/test-result.json", 60);
        "a file removed", "is missing", |f, s| f.remove("patch.diff");
        "the sums removed", "is missing", |f, s| f.remove("SHA256SUMS");
        "the signature removed", "nothing says who made this bundle", |f, s| f.remove("attestation.json");
        "a companion removed", "is missing", |f, s| f.remove("attestations/provenance.json");
        "everything signed removed", "nothing says who made this bundle", |f, s| {
            f.remove("attestation.json");
            fs::remove_dir_all(f.dir.join("attestations")).unwrap();
        };
        "a file removed from the sums too", "is missing", |f, s| { f.remove("report.md").resum(); };
        "a file added", "is not listed", |f, s| f.put("extra.txt", b"x");
        "a hidden file added", "is not listed", |f, s| f.put(".x", b"x");
        "a file added beside the companions", "not an attestation of this format", |f, s| f.put("attestations/more.json", b"{}");
        "a file added and listed", "was not signed", |f, s| { f.put("backend/more.log", b"x").resum(); };
        "a file renamed", "is listed but missing", |f, s| fs::rename(f.dir.join("test.log"), f.dir.join("test.txt")).unwrap();
        "a file renamed and listed", "is missing", |f, s| {
            fs::rename(f.dir.join("test.log"), f.dir.join("test.txt")).unwrap();
            f.resum();
        };
        "a link to the same bytes", "is not a regular file", |f, s| {
            let aside = f.dir.with_extension("aside");
            fs::rename(f.dir.join("test.log"), &aside).unwrap();
            symlink(&aside, f.dir.join("test.log")).unwrap();
        };
        "a pipe added", "is not a regular file", |f, s| Command::new("mkfifo").arg(f.dir.join("pipe")).status().unwrap();
        "a name that is not UTF-8", "readable name", |f, s| {
            fs::write(f.dir.join(std::ffi::OsStr::from_bytes(b"a\xff")), "x").unwrap();
        };
        "a file of holes added, as large as any", "is not listed", |f, s| holes(f, "more.log");
        "a file of holes added among the engine's", "is not listed", |f, s| holes(f, "backend/more.log");
        "a hidden file of holes added", "is not listed", |f, s| holes(f, ".x");
        "a file of holes beside the companions", "not an attestation of this format", |f, s| holes(f, "attestations/more.json");
        "a report of holes", "possible size", |f, s| holes(f, "report.json");
        "a name with a line end", "is not listed", |f, s| f.put("a\nb", b"x");
        "a name that climbs, in the sums", "climbs out of the bundle", |f, s| sums(f, |t| format!("{}  ../x\n{t}", "0".repeat(64)));
        "an absolute name in the sums", "climbs out of the bundle", |f, s| sums(f, |t| format!("{}  /etc/passwd\n{t}", "0".repeat(64)));
        "a name with a backslash in the sums", "climbs out of the bundle", |f, s| sums(f, |t| format!("{}  ..\\x\n{t}", "0".repeat(64)));
        "a line of the sums twice", "twice or out of order", |f, s| sums(f, |t| format!("{}\n{t}", t.lines().next().unwrap()));
        "the sums in another order", "twice or out of order", |f, s| sums(f, |t| t.lines().rev().map(|l| format!("{l}\n")).collect());
        "the sums without their last line end", "no line end", |f, s| sums(f, |t| t.trim_end().to_owned());
        "the sums with carriage returns", "climbs out of the bundle", |f, s| sums(f, |t| t.replace('\n', "\r\n"));
        "the sums in upper case", "64 hex digits", |f, s| sums(f, |t| t.to_uppercase());
        "the sums with a byte order mark", "64 hex digits", |f, s| sums(f, |t| format!("\u{feff}{t}"));
        "the sums not UTF-8", "not UTF-8", |f, s| f.put("SHA256SUMS", b"\xff\xfe\n");
        "the sums empty", "is not listed", |f, s| f.put("SHA256SUMS", b"");
    }
}

/// Every digest fits again; only the signature is the old one.
fn old_signature() -> Vec<Row> {
    rows! { Machine, BOTH;
        "the verdict swapped", "status was signed with another value", |f, s| {
            f.edit_report(|r| { r["status"] = "fail".into(); }).redigest();
        };
        "a report edited", "is not what was signed", |f, s| { f.edit_report(|r| r["claimed"]["summary"] = "much better".into()).redigest(); };
        "events in another order", "is not what was signed", |f, s| { f.edit_events(|e| { let n = e.len(); e.swap(n - 2, n - 3); }).redigest(); };
        "an event dropped", "is not what was signed", |f, s| { f.edit_events(|e| drop(e.remove(4))).redigest(); };
        "an event twice", "is not what was signed", |f, s| { f.edit_events(|e| { let again = e[4].clone(); e.insert(4, again); }).redigest(); };
        "a time in the events", "is not what was signed", |f, s| { f.edit_events(|e| e[0]["ts"] = "2031-01-01T00:00:00.000Z".into()).redigest(); };
        "another run's patch", "is not what was signed", |f, s| { take_from(f, &s.other, &["patch.diff"]); f.redigest(); };
        "another run's log", "is not what was signed", |f, s| { f.put("test.log", b"all green\n").redigest(); };
        "another run's contract", "is not what was signed", |f, s| { take_from(f, &s.other, &["contract.json"]); f.redigest(); };
        "a file added everywhere", "was not signed", |f, s| { f.put("backend/more.log", b"x").redigest(); };
        "a file taken away everywhere", "was signed, but is not in the bundle", |f, s| { f.remove("backend/stderr.log").redigest(); };
        "another run's signature", "signed", |f, s| take_from(f, &s.other, &["attestation.json"]);
        "another run's signature and companions", "signed", |f, s| {
            take_from(f, &s.other, &["attestation.json", "attestations/provenance.json", "attestations/test-result.json"]);
        };
        "another run's signature and sums", "digest it is listed with", |f, s| take_from(f, &s.other, &["attestation.json", "SHA256SUMS"]);
        "another run's companion", "companion that was signed", |f, s| take_from(f, &s.other, &["attestations/test-result.json"]);
        "a whole other run under this name", "under the name of another run", |f, s| turn_into(f, &s.other);
        "the two companions exchanged", "companion that was signed", |f, s| {
            let (a, b) = ("attestations/provenance.json", "attestations/test-result.json");
            let (first, second) = (f.bundle().bytes(a), f.bundle().bytes(b));
            f.put(a, &second).put(b, &first);
        };
        "a companion in place of the signature", "predicate urn:cto-harness:verdict:v1", |f, s| {
            f.put("attestation.json", &f.bundle().bytes("attestations/provenance.json"));
        };
    }
}

/// The envelope itself, under the machine's key.
fn envelopes() -> Vec<Row> {
    rows! { Machine, BOTH;
        "an envelope cut off", "not acceptable JSON", |f, s| envelope_text(f, |t| t.as_bytes()[..t.len() / 2].to_vec());
        "an empty envelope", "not acceptable JSON", |f, s| f.put("attestation.json", b"");
        "an envelope that is a list", "expected shape", |f, s| f.put("attestation.json", b"[]");
        "another payload type", "the payload type is", |f, s| f.edit_envelope("attestation.json", |e| e["payloadType"] = "text/plain".into());
        "no signature in the envelope", "0 signatures", |f, s| f.edit_envelope("attestation.json", |e| e["signatures"] = json!([]));
        "a signature twice", "2 signatures", |f, s| f.edit_envelope("attestation.json", |e| {
            let one = e["signatures"][0].clone();
            e["signatures"].as_array_mut().unwrap().push(one);
        });
        "a duplicate key", "duplicate key", |f, s| envelope_text(f, |t| t.replacen('{', "{\"payload\":\"\",", 1).into_bytes());
        "an escaped duplicate key", "duplicate key", |f, s| envelope_text(f, |t| t.replacen('{', "{\"payloa\\u0064\":\"\",", 1).into_bytes());
        "a byte order mark", "byte order mark", |f, s| envelope_text(f, |t| format!("\u{feff}{t}").into_bytes());
        "invalid UTF-8", "not UTF-8", |f, s| envelope_text(f, |t| [t.as_bytes(), b"\xff"].concat());
        "space in the envelope", "canonical form", |f, s| envelope_text(f, |t| t.replacen(':', ": ", 1).into_bytes());
        "a line end after the envelope", "canonical form", |f, s| envelope_text(f, |t| format!("{t}\n").into_bytes());
        "a field more", "canonical form", |f, s| f.edit_envelope("attestation.json", |e| e["note"] = "x".into());
        "a number too large", "2^53", |f, s| envelope_text(f, |t| t.replacen('{', "{\"n\":9007199254740993,", 1).into_bytes());
        "base64 without padding", "not base64", |f, s| f.edit_envelope("attestation.json", |e| {
            e["signatures"][0]["sig"] = e["signatures"][0]["sig"].as_str().unwrap().trim_end_matches('=').into();
        });
        "a short signature", "not that of key", |f, s| f.edit_envelope("attestation.json", |e| e["signatures"][0]["sig"] = "AAAA".into());
        "an empty signature", "not that of key", |f, s| f.edit_envelope("attestation.json", |e| e["signatures"][0]["sig"] = "".into());
        "another key id", "not that of key", |f, s| f.edit_envelope("attestation.json", |e| e["signatures"][0]["keyid"] = "0".repeat(64).into());
        "signed by another key", "not trusted here", |f, s| f.sign(&TestKey::new(9));
        "signed by another key under our key's id", "not that of key", |f, s| {
            let ours = f.bundle().json("attestation.json")["signatures"][0]["keyid"].clone();
            f.sign(&TestKey::new(9));
            f.edit_envelope("attestation.json", |e| e["signatures"][0]["keyid"] = ours);
        };
        "signed by another key that names ours as signer", "not that of key", |f, s| {
            let ours = payload(&f.bundle().json("attestation.json"))["predicate"]["signer"].clone();
            f.sign_statement(&TestKey::new(9), |statement| statement["predicate"]["signer"] = ours);
        };
        "a signer that signs everything", "not an Ed25519 key", |f, s| {
            let weak = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
            f.sign_statement(&TestKey::new(9), |statement| statement["predicate"]["signer"]["public_key"] = weak.into());
        };
    }
}

/// Whatever the holder of a trusted key signed: a signature does not make a statement true.
fn statements() -> Vec<Row> {
    rows! { Forger, BOTH;
        "another payload type, signed", "the payload type is", |f, s| {
            let body = canonical(&payload(&f.sign(&forger()).bundle().json("attestation.json")));
            f.put("attestation.json", &canonical(&forger().envelope("application/json", &body)));
        };
        "another predicate type", "predicate urn:cto-harness:verdict:v1", |f, s| statement(f, |t| t["predicateType"] = "urn:cto-harness:verdict:v0".into());
        "an older statement type", "statement of https://in-toto.io/Statement/v1", |f, s| statement(f, |t| t["_type"] = "https://in-toto.io/Statement/v0.1".into());
        "a payload that is no JSON", "the signed statement", |f, s| sign_bytes(f, |_| b"hello world".to_vec());
        "a payload with a byte order mark", "the signed statement", |f, s| sign_bytes(f, |t| format!("\u{feff}{t}").into_bytes());
        "a payload that is not UTF-8", "the signed statement", |f, s| sign_bytes(f, |t| [t.as_bytes(), b"\xff"].concat());
        "a duplicate key in the payload", "the signed statement", |f, s| sign_bytes(f, |t| t.replacen('{', "{\"subject\":[],", 1).into_bytes());
        "a float in the payload", "the signed statement", |f, s| sign_bytes(f, |t| t.replacen('{', "{\"x\":1.5,", 1).into_bytes());
        "a number too large in the payload", "the signed statement", |f, s| sign_bytes(f, |t| t.replacen('{', "{\"x\":18446744073709551616,", 1).into_bytes());
        "a payload nested too deeply", "the signed statement", |f, s| sign_bytes(f, |t| t.replacen('{', &format!("{{\"x\":{}{},", "[".repeat(3000), "]".repeat(3000)), 1).into_bytes());
        "a subject left out", "was not signed", |f, s| statement(f, |t| drop(t["subject"].as_array_mut().unwrap().remove(3)));
        "a subject more", "was signed, but is not in the bundle", |f, s| statement(f, |t| t["subject"].as_array_mut().unwrap().push(json!({"name": "x", "digest": {"sha256": "0".repeat(64)}})));
        "a subject twice", "twice or out of order", |f, s| statement(f, |t| {
            let again = t["subject"][0].clone();
            t["subject"].as_array_mut().unwrap().push(again);
        });
        "subjects in another order", "twice or out of order", |f, s| statement(f, |t| t["subject"].as_array_mut().unwrap().swap(0, 1));
        "another digest of a subject", "is not what was signed", |f, s| statement(f, |t| t["subject"][2]["digest"]["sha256"] = "0".repeat(64).into());
        "a weaker digest of a subject", "is not what was signed", |f, s| statement(f, |t| t["subject"][2]["digest"] = json!({"md5": "0".repeat(32)}));
        "another result tree", "is not what was signed", |f, s| statement(f, |t| {
            let tree = t["subject"].as_array_mut().unwrap().iter_mut().find(|one| one["name"] == "result.tree").unwrap();
            tree["digest"]["gitTree"] = "0".repeat(40).into();
        });
        "another status, signed", "status was signed with another value", |f, s| statement(f, |t| t["predicate"]["status"] = "fail".into());
        "another run id, signed", "run_id was signed with another value", |f, s| statement(f, |t| t["predicate"]["run_id"] = "20200101T000000Z-quick-abcdefgh".into());
        "another contract, signed", "contract_digest was signed with another value", |f, s| statement(f, |t| t["predicate"]["contract_digest"] = "0".repeat(64).into());
        "another end of the chain, signed", "events was signed with another value", |f, s| statement(f, |t| t["predicate"]["events"]["count"] = 99.into());
        "an older format, signed", "bundle_format was signed with another value", |f, s| statement(f, |t| t["predicate"]["bundle_format"] = 0.into());
        "other sums, signed", "sums_sha256 was signed with another value", |f, s| statement(f, |t| t["predicate"]["sums_sha256"] = "0".repeat(64).into());
        "no companions, signed", "companion that was signed", |f, s| statement(f, |t| t["predicate"]["companions"] = json!({}));
        "a companion more, signed", "not an attestation of this format", |f, s| statement(f, |t| t["predicate"]["companions"]["attestations/x.json"] = "0".repeat(64).into());
        "an activation, signed", "runtime_default_activation must be false", |f, s| statement(f, |t| t["predicate"]["runtime_default_activation"] = true.into());
        "provenance of another change, signed", "does not say what the report says", |f, s| {
            rebind(f, "attestations/provenance.json", |t| t["subject"][0]["digest"]["sha256"] = "0".repeat(64).into());
        };
        "a report of an older format, all signed", "schema_version 0 is not known", |f, s| signed_report(f, |r| r["schema_version"] = 0.into());
        "a report of a newer format, all signed", "schema_version 2 is not known", |f, s| signed_report(f, |r| r["schema_version"] = 2.into());
        "a report that activates, all signed", "runtime_default_activation must be false", |f, s| signed_report(f, |r| r["runtime_default_activation"] = true.into());
        "a report that promotes, all signed", "promoted", |f, s| signed_report(f, |r| r["core_promotion_status"] = "promoted".into());
        "a report with a duplicate key, signed", "duplicate key", |f, s| report_text(f, |t| t.replacen('{', "{\"kind\": \"run\",", 1));
        "instructions that no contract names", "although the contract names none", |f, s| f.put("instructions.md", b"Do it.\n").redigest().sign(&forger());
        "a report with a float, signed", "is a float", |f, s| report_text(f, |t| t.replacen('{', "{\"x\": 0.5,", 1));
        "a report with a number too large, signed", "2^53", |f, s| report_text(f, |t| t.replacen('{', "{\"x\": 9007199254740993,", 1));
    }
}

/// What only a verifier that judges again can refuse: the forger has a trusted key and uses it
/// well.
fn judged_again() -> Vec<Row> {
    rows! { Forger, BINARY;
        "a failed run made a pass, all signed", "the facts say fail", |f, s| {
            turn_into(f, &s.fail);
            f.edit_event("run.completed", |d| *d = json!({"status": "pass", "blockers": [], "findings": []}));
            f.edit_report(|r| { r["status"] = "pass".into(); r["blockers"] = json!([]); r["failure_reason"] = Value::Null; });
            f.put("report.md", b"# PASS: quick\n").redigest().sign(&forger());
        };
        "a red check made green, all signed", "not what the evidence says", |f, s| signed_report(f, |r| r["verification"][0]["exit_code"] = 1.into());
        "an event dropped, all signed", "missing_required_event", |f, s| {
            f.edit_events(|e| e.retain(|e| e["type"] != "git.diff.checked")).redigest().sign(&forger());
        };
        "another run's patch, all signed", "is not the patch the chain captured", |f, s| {
            take_from(f, &s.other, &["patch.diff"]);
            f.redigest().sign(&forger());
        };
        "tests said to have passed in the companion alone", "does not say what the report says", |f, s| {
            rebind(f, "attestations/test-result.json", |t| t["predicate"]["failedTests"] = json!(["more"]));
        };
        "another builder in the provenance", "does not say what the report says", |f, s| {
            rebind(f, "attestations/provenance.json", |t| t["predicate"]["runDetails"]["builder"]["id"] = "https://example.com".into());
        };
    }
}

/// Edits one document, and makes all that can fit fit.
fn signed_document(forged: &Forged, name: &str, edit: impl FnOnce(&mut Value)) {
    forged.edit(name, edit).redigest().sign(&forger());
}

/// The end of a run, wherever it is told: the report, its page, the chain.
fn ends_in_2099(forged: &Forged, in_the_chain: bool) {
    let then = "2099-01-01T00:00:00.000Z";
    let page = forged.bundle().text("report.md");
    let ended = forged.bundle().report()["run_finished_at"].clone();
    let page = page.replace(ended.as_str().unwrap(), then);
    forged.put("report.md", page.as_bytes());
    if in_the_chain {
        forged.edit_events(|events| events.last_mut().unwrap()["ts"] = then.into());
    }
    signed_report(forged, |report| report["run_finished_at"] = then.into());
}

fn page(forged: &Forged, edit: impl FnOnce(String) -> String) {
    let text = edit(forged.bundle().text("report.md"));
    forged
        .put("report.md", text.as_bytes())
        .redigest()
        .sign(&forger());
}

fn gates(forged: &Forged, edit: impl FnOnce(&mut Vec<Value>)) {
    signed_document(forged, "gates.json", |gates| {
        edit(gates["gates"].as_array_mut().unwrap());
    });
}

/// The summary of the jails made anew, as honest as it can be about what is left of them.
fn jails(forged: &Forged, edit: impl FnOnce(&mut Vec<Value>)) {
    signed_document(forged, "containment.json", |shown| {
        edit(shown["processes"].as_array_mut().unwrap());
    });
}

/// What a bundle is asked since rules 2: whole, and not only consistent.
fn asked_since_rules_2() -> Vec<Row> {
    rows! { Forger, BINARY;
        "a lie in the body of the page", "is not what renderer 9 writes", |f, s| page(f, |t| t.replace("## What changed", "## What changed\n\nNothing of note."));
        "a line more at the end of the page", "is not what renderer 9 writes", |f, s| page(f, |t| format!("{t}\nReviewed and accepted.\n"));
        "a page of one line", "is not what renderer 9 writes", |f, s| page(f, |t| format!("{}\n", t.lines().next().unwrap()));
        "other line ends in the page", "is not what renderer 9 writes", |f, s| page(f, |t| t.replacen("\n\n", "\r\n\n", 1).replacen("\r\n", "\n\r", 1));
        "a page by an older renderer", "renderer 1 is no longer at hand", |f, s| signed_report(f, |r| r["report_renderer"] = 1.into());
        "a page by a renderer of later", "not re-derived", |f, s| signed_report(f, |r| r["report_renderer"] = 99.into());
        "a gate dropped", "gate approval was not asked", |f, s| gates(f, |g| g.retain(|g| g["gate"] != "approval"));
        "the last gate dropped", "gate model-answer was not asked", |f, s| gates(f, |g| drop(g.pop()));
        "all gates dropped", "not every gate let it", |f, s| gates(f, Vec::clear);
        "a gate in the place of another", "gate approval was not asked", |f, s| gates(f, |g| g[15] = g[14].clone());
        "a gate twice", "twice or out of order", |f, s| gates(f, |g| { let again = g[14].clone(); g.push(again); });
        "a gate moved", "twice or out of order", |f, s| gates(f, |g| g.swap(3, 4));
        "a gate passed over", "not every gate let it", |f, s| gates(f, |g| g[14]["result"] = "not_seen".into());
        "a gate in another phase", "twice or out of order", |f, s| gates(f, |g| g[14]["phase"] = "network".into());
        "a decision that names other gates", "follows from the gates", |f, s| {
            signed_document(f, "eligibility.json", |e| e["required_gates"] = json!(["contract"]));
        };
        "a run that ends in 2099", "its chain ended at", |f, s| ends_in_2099(f, false);
        "a chain that ends in 2099 too", "and here it is only", |f, s| ends_in_2099(f, true);
        "a run that ends before its chain", "its chain ended at", |f, s| signed_report(f, |r| r["run_finished_at"] = r["run_started_at"].clone());
        "a run that is told to be judged again", "name different runs", |f, s| signed_report(f, |r| r["kind"] = "reverification".into());
        "a run that judges a patch again", "without being a reverification", |f, s| signed_report(f, |r| {
            r["reverifies"] = json!({"run_id": s.other.run_id(), "sums_sha256": "0".repeat(64)});
        });
        "signed before it ended", "it was signed at", |f, s| statement(f, |t| t["predicate"]["signed_at"] = "2020-01-01T00:00:00.000Z".into());
    }
}

/// Rows about jails, where this host has one.
pub fn of_jails() -> Vec<Row> {
    rows! { Forger, BINARY;
        "the engine's jail dropped", "shows no jail for \"engine\"", |f, s| jails(f, |p| p.retain(|p| p["process"] != "engine"));
        "a check's jail dropped", "shows no jail for \"check:", |f, s| jails(f, |p| p.retain(|p| !p["process"].as_str().unwrap().starts_with("check")));
        "the control's jail dropped", "shows no jail for \"must-fail control:", |f, s| jails(f, |p| p.retain(|p| !p["process"].as_str().unwrap().starts_with("must-fail")));
        "the loading control's jail dropped", "shows no jail for \"loading control:", |f, s| jails(f, |p| drop(p.pop()));
        "one jail twice for two", "shows no jail for \"engine\"", |f, s| jails(f, |p| { let check = p.last().unwrap().clone(); p[0] = check; });
    }
}

pub fn rows() -> Vec<Row> {
    [
        bytes_and_names(),
        old_signature(),
        envelopes(),
        statements(),
        judged_again(),
        asked_since_rules_2(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
