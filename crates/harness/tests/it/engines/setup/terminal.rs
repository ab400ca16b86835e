//! The dialogue at a terminal: Ctrl-C, SIGTERM and the end of input at every question and while the
//! endpoint is silent; wrong answers; a key that is pasted; two at once.

use std::fs;

use cto_testkit::Desk;

use super::{codex, endpoint, held, put, records};
use crate::fixtures::people::{Person, people};

const READY: &str = "[probe]\ntext = \"ready\"\n";
const KEY: &str = "0123456789abcdef0123456789abcdef";

fn desk(person: &Person) -> Desk {
    let mut desk = person.desk();
    desk.line("export CTO_STATE_DIR=$HOME/state USER=me");
    desk
}

/// Every question of a first setup in its order, and a good answer.
fn questions(url: &str) -> [(&'static str, String); 6] {
    [
        ("Where is the model?", url.to_owned()),
        ("How does the credential come?", "none".to_owned()),
        ("Send it? yes or no", "yes".to_owned()),
        ("Which model?", "m".to_owned()),
        ("Who approves this", "the owner".to_owned()),
        ("Type codex to write them", "codex".to_owned()),
    ]
}

/// Answers the first questions and stands at the next one.
fn at_question(desk: &mut Desk, start: &str, url: &str, number: usize) {
    desk.types(format!("{start}; echo code-$?\n"));
    for (place, (question, answer)) in questions(url).iter().enumerate() {
        desk.sees(question);
        desk.sees("\n");
        if place == number {
            return;
        }
        desk.types(format!("{answer}\n"));
    }
}

#[test]
fn it_ends_at_once_at_every_question() {
    for person in people() {
        let model = endpoint(&person, "model", READY);
        let start = format!("$cto setup codex --bin {}", codex(&person));
        let mut desk = desk(&person);
        for (keys, code, word) in [
            ("\x03", "code-3", "interrupted"),
            ("\x04", "code-2", "the input ended"),
        ] {
            for number in 0..6 {
                at_question(&mut desk, &start, &model.url, number);
                desk.types(keys);
                desk.sees(word);
                desk.sees(code);
                desk.prompt();
                assert!(desk.is_as_found(), "{}: {number}", person.name);
                assert_eq!(records(&person, "codex"), Vec::<String>::new());
                assert!(!person.at("home/.config/cto/endpoints/codex").exists());
            }
        }
        let pid = person.at("ws/pid");
        let start = format!("sh -c 'echo $$ > pid; exec {start}'");
        at_question(&mut desk, &start, &model.url, 1);
        let number = fs::read_to_string(pid).unwrap();
        let killed = person.shell(&format!("kill -s TERM {}", number.trim()));
        assert!(killed.status.success());
        desk.sees("interrupted");
        desk.sees("code-3");
        desk.prompt();
        assert!(desk.is_as_found(), "{}", person.name);
    }
}

#[test]
fn a_silent_endpoint_is_said_and_left_at_once() {
    let person = &people()[0];
    let model = endpoint(
        person,
        "model",
        "[probe]\ntext = \"ready\"\nfirst_ms = 600000\n",
    );
    let mut desk = desk(person);
    let start = format!("$cto setup codex --bin {}", codex(person));
    at_question(&mut desk, &start, &model.url, 3);
    desk.types("m\n");
    desk.sees("waiting (Ctrl-C leaves)");
    desk.types("\x03");
    desk.sees("interrupted");
    desk.sees("code-3");
    desk.prompt();
    assert_eq!(records(person, "codex"), Vec::<String>::new());
}

#[test]
fn a_wrong_answer_is_told_and_only_that_question_is_asked_again() {
    let person = &people()[0];
    let model = endpoint(
        person,
        "model",
        "model = \"m-2026-01-01\"\n[probe]\ntext = \"ready\"\n[[turn]]\ntext = \"ready\"\n",
    );
    let bin = codex(person);
    let mut desk = desk(person);
    // No program: asked for as well.
    desk.types("$cto setup codex; echo code-$?\n");
    desk.sees("Where is it? Its path.");
    desk.types("/nonexistent/codex\n");
    desk.sees("not taken");
    desk.types(format!("{bin}\n"));
    for (question, wrong, right) in [
        ("Where is the model?", "localhost:1", model.url.as_str()),
        ("How does the credential come?", KEY, "none"),
        ("Send it?", "perhaps", "yes"),
        ("Which model?", "two words", "m"),
        ("it answers as m-2026-01-01", "why", "yes"),
        ("Who approves this", "password=hunter22", "the owner"),
        ("Type codex", "Codex", "codex"),
    ] {
        desk.sees(question);
        desk.sees("\n");
        desk.types(format!("{wrong}\n"));
        let shown = desk.sees("not taken");
        assert!(!shown.contains(KEY), "{shown}");
        desk.sees(question);
        desk.sees("\n");
        desk.types(format!("{right}\n"));
    }
    desk.sees("stage1");
    desk.sees("code-3");
    desk.prompt();
    assert_eq!(held(person, KEY), Vec::<std::path::PathBuf>::new());
    let record = fs::read_to_string(person.at("home/state/records/codex/model.json")).unwrap();
    assert!(record.contains("m-2026-01-01") && !record.contains("127.0.0.1"));
    // The URL stands in the one file that was made for it.
    assert_eq!(
        held(person, &model.url),
        [person.at("home/.config/cto/endpoints/codex")]
    );
}

#[test]
fn one_dialogue_at_a_time() {
    let person = &people()[0];
    let start = format!("$cto setup codex --bin {}", codex(person));
    let mut first = desk(person);
    at_question(&mut first, &start, "", 0);
    let mut second = desk(person);
    let shown = second.line(&format!("{start}; echo code-$?"));
    assert!(
        shown.contains("setup_under_way") && shown.contains("code-3"),
        "{shown}"
    );
    first.types("\x03");
    first.prompt();
    at_question(&mut second, &start, "", 0);
    second.types("\x03");
    second.prompt();
}

#[test]
fn what_the_agent_was_told_is_offered_and_its_key_is_not_touched() {
    let person = &people()[0];
    let model = endpoint(person, "model", READY);
    let config = format!(
        r#"{{"providers": {{"mine": {{"baseUrl": "{}", "api": "openai-completions", "apiKey": "{KEY}", "models": [{{"id": "own-model"}}]}}}}}}"#,
        model.url
    );
    put(person, "home/.pi/agent/models.json", &config, 0o600);
    let bin = put(person, "ws/bin/pi", "#!/bin/sh\necho 'pi 1.2.3'\n", 0o755);
    let mut desk = desk(person);
    desk.types(format!("$cto setup pi --bin {bin}; echo code-$?\n"));
    let shown = desk.sees("an empty line takes 1");
    assert!(
        shown.contains("mine") && shown.contains("loopback"),
        "{shown}"
    );
    desk.types("\n");
    desk.sees("How does the credential come?");
    desk.types("none\n");
    desk.sees("Send it?");
    desk.types("yes\n");
    let shown = desk.sees("an empty line takes own-model");
    assert!(!shown.contains(KEY), "{shown}");
    desk.types("\x03");
    desk.sees("code-3");
    desk.prompt();
    let after = fs::read_to_string(person.at("home/.pi/agent/models.json")).unwrap();
    assert_eq!(after, config);
}

#[test]
fn a_proxy_and_authorities_of_the_environment_are_offered_before_anything_is_sent() {
    let person = &people()[0];
    let file = put(person, "home/corp.pem", "# nothing yet\n", 0o644);
    let start = format!("$cto setup codex --bin {}", codex(person));
    let mut desk = desk(person);
    desk.line(&format!(
        "export HTTPS_PROXY=http://someone:{KEY}@proxy.example:3128 SSL_CERT_FILE={file}"
    ));
    for (answer, is_shown) in [("yes", true), ("no", false)] {
        desk.types(format!("{start}; echo code-$?\n"));
        desk.sees("Where is the model?");
        desk.types("https://gate.example/v1\n");
        desk.sees("How does the credential come?");
        desk.types("none\n");
        desk.sees("HTTPS_PROXY names the proxy proxy.example:3128");
        desk.sees("\n");
        desk.types(format!("{answer}\n"));
        desk.sees("SSL_CERT_FILE names a file of certificate authorities");
        desk.sees("\n");
        desk.types(format!("{answer}\n"));
        let shown = desk.sees("Send it?");
        assert_eq!(shown.contains("proxy.example"), is_shown, "{shown}");
        assert!(!shown.contains(KEY), "{shown}");
        desk.types("\x03");
        desk.sees("code-3");
        desk.prompt();
    }
    // On this machine nobody is asked about a proxy.
    desk.types(format!("{start}; echo code-$?\n"));
    desk.sees("Where is the model?");
    desk.types("http://127.0.0.1:9/v1\n");
    desk.sees("How does the credential come?");
    desk.types("none\n");
    let shown = desk.sees("Send it?");
    assert!(!shown.contains("PROXY"), "{shown}");
    desk.types("\x03");
    desk.sees("code-3");
    desk.prompt();
}
