//! Which manifests of one's own are taken, and what each name then stands for.

use super::*;

fn built_in() -> Vec<Manifest> {
    let texts = [
        (
            "fake",
            include_str!("../../../../engines/fake.toml").to_owned(),
        ),
        ("pi", include_str!("../../../../engines/pi.toml").to_owned()),
        (
            "acp-lab",
            GOOD.replace("my-agent", "acp-lab")
                .replace("MY_AGENT", "ACP_LAB"),
        ),
    ];
    let read = |(name, text): (&str, String)| Manifest::parse(name, &text).unwrap();
    texts.into_iter().map(read).collect()
}

const GOOD: &str = r#"id = "my-agent"
title = "My agent"
gated_by_env = "CTO_HARNESS_ALLOW_MY_AGENT"
default_stage = 1

[invocation]
program = "admitted"
dialect = "plain"
argv = ["--message", "{prompt}"]

[invocation.env]
KEY = "{token}"
MODE = "quiet"

[[invocation.files]]
path = "a.txt"
format = "text"
text = "hello"

[[invocation.model.protocols]]
wire = "openai-chat"
name = "openai"
"#;

fn read(stem: &str, text: &str) -> Result<Manifest, String> {
    Manifest::parse_own("f.toml", stem, text, &built_in()).map_err(|error| error.to_string())
}

#[test]
fn an_own_manifest_brings_an_engine_and_nothing_of_the_house() {
    assert!(read("my-agent", GOOD).unwrap().is_gated());
    for (stem, from, to, place, what) in [
        (
            "other",
            "",
            "",
            "1:6",
            "the name of its engine: my-agent.toml",
        ),
        ("pi", "my-agent", "pi", "3:16", "needs gated_by_env"),
        (
            "my-agent",
            "ALLOW_MY_AGENT",
            "ALLOW_PI",
            "3:16",
            "CTO_HARNESS_ALLOW_MY_AGENT",
        ),
        (
            "my-agent",
            "ALLOW_MY_AGENT",
            "ALLOW_MY-AGENT",
            "3:16",
            "CTO_HARNESS_ALLOW_MY_AGENT",
        ),
        (
            "my-agent",
            "\"admitted\"",
            "\"itself\"",
            "7:11",
            "a program of its own",
        ),
        (
            "my-agent",
            "\"plain\"",
            "\"fake\"",
            "8:11",
            "the scripted engine's",
        ),
        (
            "my-agent",
            "\"My agent\"",
            "\"\"",
            "2:9",
            "a title is one line",
        ),
        (
            "my-agent",
            "My agent",
            "My \\u001b[2Jagent",
            "2:9",
            "a title is one line",
        ),
        (
            "my-agent",
            "\"quiet\"",
            "\"sk-abcdefghijklmnopqrstuvwxyz012345\"",
            "13:8",
            "no place in a manifest",
        ),
        (
            "my-agent",
            "\"hello\"",
            "\"http://me:pass@host/\"",
            "18:8",
            "no place in a manifest",
        ),
        (
            "my-agent",
            "\"hello\"",
            "\"{token}\"",
            "18:8",
            "{token} may not stand here",
        ),
        (
            "my-agent",
            "a.txt",
            "/etc/a",
            "16:8",
            "not a path below the scratch directory",
        ),
        (
            "my-agent",
            "a.txt",
            "b/../../a",
            "16:8",
            "not a path below the scratch directory",
        ),
        (
            "my-agent",
            "dialect",
            "programm = 1\ndialect",
            "8:1",
            "unknown field `programm`",
        ),
    ] {
        let text = GOOD.replacen(from, to, 1);
        let error = read(stem, &text).unwrap_err();
        assert!(
            error.starts_with(&format!("f.toml:{place}: ")),
            "{to}: {error}"
        );
        assert!(error.contains(what), "{to}: {error}");
        assert!(
            !error.contains("sk-abc") && !error.contains("me:pass"),
            "{error}"
        );
    }
    let (none, _) = GOOD.split_once("[invocation]").unwrap();
    assert!(
        read("my-agent", none)
            .unwrap_err()
            .contains("how it is started")
    );
}

#[test]
fn names_of_the_house_are_taken() {
    for id in [
        "pi",
        "acp-lab",
        "fake",
        "reverify",
        "none",
        "scripted-agent",
        "allow",
        "allow-pi",
    ] {
        let variable = id.to_uppercase().replace('-', "_");
        let text = GOOD.replace("my-agent", id).replace("MY_AGENT", &variable);
        assert!(read(id, &text).is_err(), "{id}");
    }
    let fine = GOOD
        .replace("my-agent", "allowed")
        .replace("MY_AGENT", "ALLOWED");
    assert!(read("allowed", &fine).is_ok());
}

#[test]
fn a_broken_manifest_refuses_its_own_engine_and_no_other() {
    let own = read("my-agent", GOOD).unwrap();
    let broken = |id: &str| Broken {
        id: id.parse().ok(),
        file: format!("{id}.toml"),
        why: "because".into(),
    };
    // A file that calls itself after an engine of the house is named, and changes nothing.
    let files = vec![broken("pi"), broken("lab"), broken("No Name")];
    let all = Registry::new(built_in(), vec![own.clone()], files);
    assert!(matches!(all.named("pi"), Named::Known(found) if found.title.contains("Pi")));
    assert!(matches!(all.named("my-agent"), Named::Known(found) if *found == own));
    assert!(matches!(all.named("lab"), Named::Broken(found) if found.file == "lab.toml"));
    assert_eq!(all.named("No Name"), Named::Unknown);
    let order: Vec<&str> = all.all().map(|(_, found)| found.id.as_str()).collect();
    assert_eq!(order, ["fake", "acp-lab", "pi", "my-agent"]);
    let mut thief = own;
    thief.id = "pi".parse().unwrap();
    let all = Registry::new(built_in(), vec![thief], Vec::new());
    assert!(all.all().all(|(from, _)| from == From::House));
}
