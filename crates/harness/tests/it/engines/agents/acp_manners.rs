//! Agents that speak the Agent Client Protocol badly: each is a script of ours, admitted in a real one's place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use cto_testkit::{Bundle, Case, House};

use crate::assert_good;
use crate::fixtures::pi_lab::{ACP_OPENCODE, DONE, Lab, PROBE, packages_root};
use crate::house;

/// How each of them begins.
const BEGIN: &str = r#"#!/usr/bin/python3 -I
import json, os, sys, time
def say(message): sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n"); sys.stdout.flush()
def hear():
    line = sys.stdin.readline()
    if not line: os._exit(0)
    return json.loads(line)
def answer(result): say({"jsonrpc": "2.0", "id": hear()["id"], "result": result})
OPTIONS = [{"optionId": "a", "kind": "allow_always"}, {"optionId": "b", "kind": "allow_once"}, {"optionId": "c", "kind": "reject_once"}]
def question(number, kind, path, options=OPTIONS):
    call = {"toolCallId": "t", "title": "Do \x1b[31mit", "kind": kind, "locations": [{"path": path}]}
    return {"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": {"sessionId": "s", "toolCall": call, "options": options}}
def ask(*words):
    say(question(*words))
    return hear()["result"]["outcome"]
def fix(): open("answer.txt", "w").write("right\n")
def end(reason="end_turn"): say({"jsonrpc": "2.0", "id": prompt["id"], "result": {"stopReason": reason}})
answer({"protocolVersion": 1}); answer({"sessionId": "s"}); prompt = hear()
"#;

/// One run of an agent that goes on like this, and the place that holds what it left.
fn run(goes_on: &str, idle: u32) -> (Lab, Bundle, Duration) {
    run_in(house(), goes_on, idle)
}

fn run_in(house: House, goes_on: &str, idle: u32) -> (Lab, Bundle, Duration) {
    let limits = format!("\n[limits]\nengine_idle_seconds = {idle}\n");
    let case = house.case(&Case::new("quick").extra(&limits));
    house.hand_over(&house.root().join("cases"));
    let dir = house.root().join("agent/node_modules/rogue");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("package.json"), "{\"version\":\"1.18.33\"}").unwrap();
    let program = dir.join("rogue");
    fs::write(&program, format!("{BEGIN}{goes_on}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(packages_root(&program).is_some());
    let lab = Lab::of(&ACP_OPENCODE, &program, house, case);
    let started = Instant::now();
    let bundle = lab.play(&format!("{PROBE}{DONE}"), &[]);
    assert_good(&bundle);
    (lab, bundle, started.elapsed())
}

fn codes(bundle: &Bundle) -> Vec<String> {
    bundle.codes()
}

#[test]
fn a_patient_one_is_dismissed_after_its_answer() {
    let (_lab, bundle, took) = run(
        "assert ask(1, 'edit', os.getcwd() + '/answer.txt')['optionId'] == 'b'\nfix(); end(); time.sleep(300)\n",
        60,
    );
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.report()["blockers"]);
    let ended = bundle.event("engine.ended").unwrap();
    assert_eq!(
        (&ended["end"]["kind"], &ended["unknown_lines"]),
        (&"dismissed".into(), &0.into())
    );
    assert!(took < Duration::from_secs(60), "{took:?}");
    let asked = bundle.event("engine.permission").unwrap();
    assert_eq!(asked["question"], "Do \u{fffd}[31mit");
    assert_eq!(asked["paths"], serde_json::json!(["answer.txt"]));
}

#[test]
fn one_that_says_anything_is_counted_and_not_believed() {
    let (_lab, bundle, _) = run(
        r#"
say("{"); say("hello"); say({"jsonrpc": "2.0", "id": 77, "result": {"stopReason": "end_turn"}}); say({"id": 4, "id ": 4})
say("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":\"" + "x" * (100 << 20) + "\"}")
assert ask(1, "edit", "answer.txt", [])["outcome"] == "cancelled"
assert ask(1, "edit", "../answer.txt")["optionId"] == "c"
assert ask(1, "fetch", "answer.txt")["optionId"] == "c"
assert ask("x", "execute", "/")["optionId"] == "b"
say({"jsonrpc": "2.0", "id": 9, "method": "fs/write_text_file", "params": {}}); assert hear()["error"]["code"] == -32601
say({"jsonrpc": "2.0", "id": 9, "method": "x/y", "params": {}}); assert hear()["error"]["code"] == -32601
fix(); end(); end("refusal"); say("bye")
"#,
        60,
    );
    assert_eq!(
        bundle.status(),
        "pass",
        "{:?} {}",
        bundle.report()["blockers"],
        bundle.text("backend/stderr.log")
    );
    let ended = bundle.event("engine.ended").unwrap();
    assert_eq!(ended["unknown_lines"], 7, "{ended}");
    assert_eq!(bundle.report()["claimed"]["status"], "completed");
}

/// Its pieces are no secret; what they are joined to is one, and goes into an event.
#[test]
fn one_that_says_a_secret_in_pieces_has_no_event_of_it() {
    let pieces = "
for piece in ['It is Zx9-Corr', 'ect/Hor', 'se-41!', ' then.']:
    say({'jsonrpc': '2.0', 'method': 'session/update', 'params': {'sessionId': 's', 'update': {'sessionUpdate': 'agent_message_chunk', 'content': {'type': 'text', 'text': piece}}}})
fix(); end()
";
    let house = house().with("MY_API_KEY", "Zx9-Correct/Horse-41!");
    let (_lab, bundle, _) = run_in(house, pieces, 60);
    let said = bundle.event("engine.message").unwrap();
    assert_eq!(said["text"], "It is [redacted:known-value] then.", "{said}");
    assert_eq!(codes(&bundle), ["secret_leak"]);
}

#[test]
fn one_that_never_answers_meets_the_idle_limit() {
    let (_lab, bundle, took) = run("fix(); time.sleep(300)\n", 3);
    assert_eq!(
        codes(&bundle),
        ["timeout", "lifecycle_timeout_after_valid_patch"]
    );
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn one_that_does_not_read_its_answers_is_ended() {
    let flood = "for n in range(60000): say(question(n, 'execute', '/'))\nfix(); time.sleep(300)\n";
    let (_lab, bundle, took) = run(flood, 120);
    assert_eq!(codes(&bundle), ["engine_failed"]);
    let ended = bundle.event("engine.ended").unwrap();
    assert_eq!(ended["end"]["because"], "unread", "{ended}");
    assert!(took < Duration::from_secs(100), "{took:?}");
}

#[test]
fn one_that_asks_ten_thousand_times_is_answered_ten_thousand_times() {
    let (_lab, bundle, _) = run(
        "for n in range(10000): assert ask(n, 'edit', 'answer.txt')['optionId'] == 'b'\nfix(); end()\n",
        60,
    );
    assert_eq!(bundle.status(), "pass", "{:?}", bundle.report()["blockers"]);
    let ended = bundle.event("engine.ended").unwrap();
    assert_eq!(
        ended["events_not_recorded"].as_u64().unwrap(),
        7999,
        "{ended}: the last is recorded"
    );
}

#[test]
fn one_that_refuses_has_failed_whatever_it_did() {
    let (_lab, bundle, _) = run("fix(); end('refusal')\n", 60);
    assert_eq!(codes(&bundle), ["engine_failed"]);
}
