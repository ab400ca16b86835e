//! Manifests that are taken, and those that are not.

use super::*;

#[test]
fn only_fake_may_go_ungated_and_above_stage_one() {
    let fake = "id = \"fake\"\ntitle = \"t\"\ndefault_stage = 2\n[invocation]\nprogram = \"itself\"\nargv = []\ndialect = \"fake\"\n";
    assert!(Manifest::parse("f", fake).is_ok());
    let pi =
        "id = \"pi\"\ntitle = \"t\"\ngated_by_env = \"CTO_HARNESS_ALLOW_PI\"\ndefault_stage = 1\n";
    assert!(Manifest::parse("f", pi).unwrap().is_gated());
    for bad in [
        pi.replace("gated_by_env = \"CTO_HARNESS_ALLOW_PI\"\n", ""),
        pi.replace("CTO_HARNESS_ALLOW_PI", "PATH"),
        pi.replace("default_stage = 1", "default_stage = 2"),
        fake.split("[invocation]").next().unwrap().to_owned(),
        fake.replace(
            "default",
            "gated_by_env = \"CTO_HARNESS_ALLOW_FAKE\"\ndefault",
        ),
        pi.replace("title", "titel"),
        pi.replace("= 1", "= 7"),
    ] {
        assert!(Manifest::parse("f", &bad).is_err(), "{bad}");
    }
}

#[test]
fn its_digest_is_of_what_it_says_and_not_of_how_it_is_written() {
    let text = include_str!("../../../../../engines/pi.toml");
    let digest = |text: &str| Manifest::parse("pi", text).unwrap().sha256.unwrap();
    let commented = format!("# a word\n{}", text.replace(" = ", "   =  "));
    assert_eq!(digest(text), digest(&commented));
    for (from, to) in [
        ("--no-session", "--session"),
        ("PI_OFFLINE = \"1\"", "PI_OFFLINE = \"0\""),
        ("\"enabled\": false", "\"enabled\": true"),
        ("interpreter = \"node\"\n", ""),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(digest(text), digest(&changed), "{from}");
    }
}

/// A manifest that is taken; mistakes are made by exchanging a piece of it.
const GOOD: &str = r#"id = "lab"
title = "Lab"
gated_by_env = "CTO_HARNESS_ALLOW_LAB"
default_stage = 1

[invocation]
program = "admitted"
dialect = "codex"
argv = ["--model", "{model}", "{prompt}"]

[invocation.env]
BASE = "{door}/v1"
KEY = "{token}"

[[invocation.files]]
path = "lab/a.json"
text = '{"u": "{door}", "m": {"id": "{model}"}}'

[[invocation.files]]
path = "lab/b.toml"
format = "toml"
text = '''
m = "{model}"
'''

[[invocation.model.protocols]]
wire = "openai-chat"
name = "x"
base = "/v1"

[invocation.limits]
engine_idle_seconds = 900
"#;

#[test]
fn a_mistake_is_named_by_line_and_column() {
    assert_eq!(Manifest::parse("f", GOOD).map(|_| ()), Ok(()));
    let long = format!("text = '{{\"m\": \"{}\"}}'", "x".repeat(70_000));
    let json = "text = '{\"u\": \"{door}\", \"m\": {\"id\": \"{model}\"}}'";
    for (from, to, place, what) in [
        // A token on a command line, or in a file.
        (
            "\"{model}\", \"{prompt}\"",
            "\"{token}\"",
            "9:20",
            "{token} may not stand here",
        ),
        (
            json,
            "text = '{\"u\": \"{token}\"}'",
            "17:8",
            "{token} may not stand here",
        ),
        // Known too late, known to nobody, the scripted engine's.
        (
            "\"{prompt}\"",
            "\"{door}\"",
            "9:31",
            "{door} may not stand here",
        ),
        (
            "\"{prompt}\"",
            "\"{endpoint}\"",
            "9:31",
            "{endpoint} is no placeholder",
        ),
        (
            "\"{prompt}\"",
            "\"{script}\"",
            "9:31",
            "{script} is the scripted engine's",
        ),
        (
            "{door}/v1",
            "{prompt}",
            "12:8",
            "{prompt} may not stand here",
        ),
        (
            "BASE",
            "\"A=B\"",
            "12:9",
            "\"A=B\" cannot be the name of a variable",
        ),
        // Outside a string a value could be anything.
        (
            json,
            "text = '{\"u\": {model}}'",
            "17:8",
            "filled in, it is no JSON",
        ),
        (
            "m = \"{model}\"",
            "m = '{model}'",
            "22:8",
            "filled in, it is no TOML",
        ),
        (
            "m = \"{model}\"",
            "{model} = 1",
            "22:8",
            "filled in, it is no TOML",
        ),
        ("lab/a.json", "/etc/x", "16:8", "\"/etc/x\" is not a path"),
        ("lab/a.json", "a/../b", "16:8", "\"a/../b\" is not a path"),
        (
            "lab/a.json",
            "home/.profile",
            "16:8",
            "\"home\" of the scratch directory is taken",
        ),
        (
            "lab/b.toml",
            "lab/a.json",
            "20:8",
            "another file has this path",
        ),
        (
            "lab/b.toml",
            "lab/a.json/b",
            "20:8",
            "another file has this path",
        ),
        (json, &long, "17:8", "a file of more than 65536 bytes"),
        (
            "base = \"/v1\"",
            "base = \"v1\"",
            "29:8",
            "a base is empty or a path",
        ),
        ("= 900", "= 0", "31:1", "limits: engine_idle_seconds is 0"),
        ("argv", "arvg", "9:1", "unknown field `arvg`"),
        ("\"toml\"", "\"yaml\"", "21:10", "unknown variant `yaml`"),
        (
            "default_stage = 1",
            "default_stage = 2",
            "4:17",
            "default stage is 1",
        ),
        ("= \"lab\"\n", "= \"../lab\"\n", "1:6", "engine"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let error = Manifest::parse("f", &text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("f:{place}: ")), "{to}: {error}");
        assert!(error.contains(what), "{to}: {error}");
    }
    let (without, _) = GOOD.split_once("[[invocation.model").unwrap();
    let error = Manifest::parse("f", without).unwrap_err().to_string();
    assert!(error.contains("{model} means nothing without"), "{error}");
}

#[test]
fn an_engines_limits_hold_where_nobody_said_otherwise() {
    let manifest = Manifest::parse("f", GOOD).unwrap();
    let house = Limits::default();
    assert_eq!(manifest.limits(&house).engine_idle_seconds, 900);
    assert_eq!(
        manifest.limits(&house).engine_wall_seconds,
        house.engine_wall_seconds
    );
    let said = Limits {
        engine_idle_seconds: 7,
        ..house
    };
    assert_eq!(manifest.limits(&said), said);
}

#[test]
fn a_version_nobody_tried_is_seen() {
    let text = include_str!("../../../../../engines/pi.toml");
    let invocation = Manifest::parse("pi", text).unwrap().invocation.unwrap();
    assert!(!invocation.is_untested(Some("0.74.2")));
    assert!(invocation.is_untested(Some("9.9.9")) && invocation.is_untested(None));
}

#[test]
fn a_conversation_is_for_who_is_talked_to() {
    let text = include_str!("../../../../../engines/acp-codex.toml");
    assert!(Manifest::parse("f", text).is_ok());
    let mode = "mode = \"agent-full-access\"";
    for (from, to, what) in [
        (
            "dialect = \"acp\"",
            "dialect = \"plain\"",
            "no conversation",
        ),
        ("argv = []", "argv = [\"{prompt}\"]", "{prompt} is said"),
        (mode, "mode = \"two words\"", "a mode is a word"),
        (mode, "mode = \"\"", "a mode is a word"),
        (mode, "own_methods = [\"session/\"]", "methods of its own"),
        (mode, "own_methods = [\"fs/read\"]", "methods of its own"),
        (mode, "own_methods = [\"\"]", "methods of its own"),
        (mode, "own_methods = [\"x\"]", "methods of its own"),
        (mode, "other = 1", "unknown field"),
    ] {
        let error = Manifest::parse("f", &text.replace(from, to)).unwrap_err();
        assert!(error.what.contains(what), "{to}: {error}");
    }
}

#[test]
fn an_engine_is_watched_by_signs_it_can_give() {
    let text = include_str!("../../../../../engines/case.toml");
    let own = Manifest::parse("f", text).unwrap().invocation.unwrap();
    assert!(own.supervision.ended_when_committed);
    assert!(own.supervision.heeds(SignOfLife::EventLog) && own.supervision.heeds(SignOfLife::Wire));
    assert!(
        !own.supervision.heeds(SignOfLife::Output),
        "it prints whether it works or not"
    );
    let signs = "signs_of_life = [\"event_log\", \"wire\"]";
    let without_log = text.replace("[invocation.event_log]", "[invocation.no_log]");
    assert!(Manifest::parse("f", &without_log).is_err());
    for (to, what) in [
        ("signs_of_life = []", "no sign of life"),
        ("signs_of_life = [\"heartbeat\"]", "heartbeat"),
    ] {
        let error = Manifest::parse("f", &text.replace(signs, to)).unwrap_err();
        assert!(error.what.contains(what), "{to}: {error}");
    }
    let plain = include_str!("../../../../../engines/codex.toml");
    let own = Manifest::parse("f", plain).unwrap().invocation.unwrap();
    assert_eq!(own.supervision, Supervision::default());
    for (what, more) in [
        ("event_log means nothing", "signs_of_life = [\"event_log\"]"),
        ("unknown field", "beats = true"),
    ] {
        let text = format!("{plain}\n[invocation.supervision]\n{more}\n");
        let error = Manifest::parse("f", &text).unwrap_err();
        assert!(error.what.contains(what), "{more}: {error}");
    }
    let talked = include_str!("../../../../../engines/acp-codex.toml");
    let text = format!("{talked}\n[invocation.supervision]\nended_when_committed = true\n");
    let error = Manifest::parse("f", &text).unwrap_err();
    assert!(
        error.what.contains("let go when it has answered"),
        "{error}"
    );
}
