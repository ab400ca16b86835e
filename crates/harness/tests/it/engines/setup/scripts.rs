//! A setup by flags alone: nothing without `--confirm`, every bad input with one sentence and the
//! next command, and never a key in any file.

use std::fs;
use std::os::unix::fs::symlink;

use super::{by_flags, codex, endpoint, held, put, records};
use crate::fixtures::people::people;

const READY: &str = "[probe]\ntext = \"ready\"\n";
const KEY: &str = "hidden-word-0123456789";

#[test]
fn without_a_terminal_somebody_must_have_typed_the_name() {
    for person in people() {
        let model = endpoint(&person, "model", READY);
        let bin = codex(&person);
        let url = put(&person, "home/url", &model.url, 0o600);
        let args = [
            "codex",
            "--bin",
            &bin,
            "--base-url-file",
            &url,
            "--credential",
            "none",
            "--model",
            "m",
            "--approval",
            "the owner",
        ];
        let answer = by_flags(&person, &args, &[]);
        assert_eq!(answer.code, Some(3), "{answer:?}");
        assert!(answer.stderr.contains("not_confirmed"), "{answer:?}");
        for wrong in ["Codex", "yes", ""] {
            let answer = by_flags(&person, &[&args[..], &["--confirm", wrong]].concat(), &[]);
            assert_eq!(answer.code, Some(3), "{wrong}: {answer:?}");
        }
        // Any answer that is missing.
        for flag in ["--base-url-file", "--credential", "--model", "--approval"] {
            let at = args.iter().position(|arg| *arg == flag).unwrap();
            let mut fewer = args.to_vec();
            fewer.drain(at..=at + 1);
            let answer = by_flags(
                &person,
                &[&fewer[..], &["--confirm", "codex"]].concat(),
                &[],
            );
            assert_eq!(answer.code, Some(2), "{flag}: {answer:?}");
            assert!(answer.stderr.contains(flag), "{flag}: {answer:?}");
        }
        assert_eq!(records(&person, "codex"), Vec::<String>::new());
        let answer = by_flags(
            &person,
            &[&args[..], &["--confirm", "codex", "--json"]].concat(),
            &[],
        );
        // This version does not start codex: stage 1 is proven, and stage 2 says why it is not.
        assert_eq!(answer.code, Some(3), "{answer:?}");
        let document = answer.json();
        assert_eq!(document["stage1"]["ok"], true, "{document}");
        assert_eq!(document["model"]["endpoint_class"], "loopback");
        assert_eq!(
            records(&person, "codex"),
            [
                "decision.json",
                "executable.json",
                "gate.json",
                "model.json"
            ]
        );
        let again = by_flags(&person, &["codex", "--confirm", "codex", "--json"], &[]);
        let stale = again.json()["stale"].clone();
        assert_eq!(stale.as_array().unwrap().len(), 1, "{stale}");
        assert_eq!(stale[0]["part"], "proofs", "only what is not proven");
    }
}

#[test]
fn every_bad_endpoint_ends_with_a_sentence_and_nothing_is_written() {
    let person = &people()[0];
    let bin = codex(person);
    for (name, scenario, code) in [
        ("401", "key = \"x\"\n", "provider_auth_unavailable"),
        (
            "500",
            "[probe]\nstatus = 500\nbody = \"down today\"\n",
            "provider_unavailable",
        ),
        (
            "404",
            "[probe]\nstatus = 404\nbody = \"no\"\n",
            "provider_unavailable",
        ),
        (
            "429",
            "[probe]\nstatus = 429\nbody = \"slow down\"\n",
            "provider_unavailable",
        ),
        (
            "redirect",
            "[probe]\nstatus = 302\nbody = \"\"\nheaders = { location = \"http://127.0.0.1:1/\" }\n",
            "provider_unavailable",
        ),
        (
            "garbage",
            "[probe]\ngarbage = \"<html>\"\n",
            "provider_unavailable",
        ),
        (
            "reasoning",
            "[probe]\nreasoning = \"hm\"\n",
            "provider_response_shape_unavailable",
        ),
        (
            "hangs up",
            "[probe]\nhang_up = true\n",
            "provider_unavailable",
        ),
        (
            "other model",
            "model = \"m-2026-01-01\"\n[probe]\ntext = \"ready\"\n",
            "model_not_admitted",
        ),
    ] {
        let model = endpoint(person, "model", scenario);
        let url = put(person, "home/url", &model.url, 0o600);
        let args = [
            "codex",
            "--bin",
            &bin,
            "--base-url-file",
            &url,
            "--credential",
            "none",
            "--model",
            "m",
            "--approval",
            "the owner",
            "--confirm",
            "codex",
        ];
        let answer = by_flags(person, &args, &[]);
        assert_eq!(answer.code, Some(3), "{name}: {answer:?}");
        assert!(answer.stderr.contains(code), "{name}: {answer:?}");
        assert!(
            answer.stderr.contains("nothing was written") && answer.stderr.contains("hint:"),
            "{name}: {answer:?}"
        );
        assert_eq!(records(person, "codex"), Vec::<String>::new(), "{name}");
        if name == "other model" {
            assert!(answer.stderr.contains("--alias m-2026-01-01"), "{answer:?}");
        }
        if name == "500" {
            assert!(answer.stderr.contains("down today"), "{answer:?}");
        }
    }
}

#[test]
fn files_and_answers_that_are_not_taken() {
    let person = &people()[0];
    let model = endpoint(person, "model", READY);
    let bin = codex(person);
    let good = put(person, "home/url", &model.url, 0o600);
    let key = put(person, "home/key", KEY, 0o644);
    let at = |name: &str| person.at(name).display().to_string();
    symlink(&good, at("home/link")).unwrap();
    fs::create_dir_all(person.at("home/repo/.git")).unwrap();
    let files = [
        (at("home/none"), "is not there"),
        (at("home/link"), "is a link"),
        (put(person, "home/open", &model.url, 0o666), "someone else"),
        (
            put(person, "home/shown", &model.url, 0o644),
            "read by others",
        ),
        (put(person, "home/empty", " \n", 0o600), "is empty"),
        (
            put(person, "home/huge", &"x".repeat(5000), 0o600),
            "larger than",
        ),
        (
            put(person, "home/repo/url", &model.url, 0o600),
            "repository",
        ),
        (
            put(
                person,
                "home/creds",
                &format!("https://u:{KEY}@example.com"),
                0o600,
            ),
            "carries a credential",
        ),
    ];
    let tried = |url: &str, credential: &str| {
        let args = [
            "codex",
            "--bin",
            &bin,
            "--base-url-file",
            url,
            "--credential",
            credential,
            "--model",
            "m",
            "--approval",
            "the owner",
            "--confirm",
            "codex",
        ];
        by_flags(person, &args, &[])
    };
    for (file, want) in &files {
        let answer = tried(file, "none");
        assert_eq!(answer.code, Some(2), "{file}: {answer:?}");
        assert!(answer.stderr.contains(want), "{file}: {answer:?}");
    }
    for (credential, want) in [
        (KEY, "never typed here"),
        ("sk-abcdefghijklmnopqrstuvwx", "looks like a token"),
        ("0123456789abcdef0123456789abcdef", "never typed here"),
        ("env:NOT_SET_ANYWHERE", "no variable of that name"),
        (&format!("file:{key}"), "read by others"),
        ("command:/nonexistent/x", "x"),
    ] {
        let answer = tried(&good, credential);
        assert_eq!(answer.code, Some(2), "{credential}: {answer:?}");
        assert!(answer.stderr.contains(want), "{credential}: {answer:?}");
        let said = format!("{}{}", answer.stdout, answer.stderr);
        assert!(
            credential.contains(':') || !said.contains(credential),
            "{said}"
        );
    }
    assert_eq!(records(person, "codex"), Vec::<String>::new());
    fs::remove_file(person.at("home/creds")).unwrap();
    fs::remove_file(person.at("home/key")).unwrap();
    assert_eq!(held(person, KEY), Vec::<std::path::PathBuf>::new());
    assert_eq!(by_flags(person, &["fake"], &[]).code, Some(2));
}
