//! The conversation, line by line: well, badly, and with anything at all.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::run::event::ToolOutcome;

fn brief(mode: Option<&str>) -> Brief {
    Brief {
        prompt: "Fix it.".into(),
        mode: mode.map(str::to_owned),
        own_methods: vec!["mine/".into()],
        scope: Scope {
            root: "/w".into(),
            allowed: vec!["a.py".parse().unwrap()],
            forbidden: Vec::new(),
        },
    }
}

/// One end of a conversation.
struct Talk(Acp);

impl Talk {
    fn new(mode: Option<&str>) -> (Self, Vec<Value>) {
        let mut acp = Acp::new(&brief(mode));
        acp.begin();
        let first = said(&acp.take_reply());
        (Self(acp), first)
    }

    /// At the prompt.
    fn prompted() -> Self {
        let (mut talk, _) = Self::new(None);
        talk.tell(&json!({"id": 1, "result": {"protocolVersion": 1}}));
        talk.tell(&json!({"id": 2, "result": {"sessionId": "s"}}));
        talk
    }

    fn bytes(&mut self, line: &[u8]) -> (ParsedLine, Vec<Value>, Option<Dismissal>) {
        let parsed = self.0.line(line, line);
        let reply = self.0.take_reply();
        (parsed, said(&reply), reply.dismissed)
    }

    fn tell(&mut self, message: &Value) -> (ParsedLine, Vec<Value>, Option<Dismissal>) {
        self.bytes(message.to_string().as_bytes())
    }

    fn update(&mut self, update: Value) -> Vec<Event> {
        let told =
            json!({"method": "session/update", "params": {"sessionId": "s", "update": update}});
        match self.tell(&told).0 {
            ParsedLine::Events(events) => events,
            ParsedLine::Nothing => Vec::new(),
            ParsedLine::Unknown => panic!("unknown: {told}"),
        }
    }
}

fn said(reply: &Reply) -> Vec<Value> {
    let lines = reply.said.split_inclusive(|byte| *byte == b'\n');
    lines
        .map(|line| {
            assert_eq!(line.last(), Some(&b'\n'));
            serde_json::from_slice(line).unwrap()
        })
        .collect()
}

fn result(parsed: ParsedLine) -> EngineResult {
    let ParsedLine::Events(events) = parsed else {
        panic!("{parsed:?}")
    };
    match events.last() {
        Some(Event::EngineResult(result)) => result.clone(),
        other => panic!("{other:?}"),
    }
}

const OPTIONS: &str = r#"[{"optionId":"x","kind":"allow_always"},{"optionId":"y","kind":"allow_once"},
    {"optionId":"n","kind":"reject_once"}]"#;

fn question(id: Value, call: Value) -> Value {
    let options: Value = serde_json::from_str(OPTIONS).unwrap();
    json!({"id": id, "method": "session/request_permission",
        "params": {"sessionId": "s", "toolCall": call, "options": options}})
}

#[test]
fn from_the_first_word_to_the_answer() {
    let (mut talk, first) = Talk::new(Some("ask"));
    let capabilities = &first[0]["params"]["clientCapabilities"];
    assert_eq!(
        *capabilities,
        json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false})
    );
    let (_, new, _) = talk.tell(&json!({"id": 1, "result": {"protocolVersion": 1}}));
    assert_eq!(new[0]["params"], json!({"cwd": "/w", "mcpServers": []}));
    let modes = json!({"currentModeId": "x", "availableModes": [{"id": "x"}, {"id": "ask"}]});
    let (_, mode, _) = talk.tell(&json!({"id": 2, "result": {"sessionId": "s", "modes": modes}}));
    assert_eq!(
        mode[0]["params"],
        json!({"sessionId": "s", "modeId": "ask"})
    );
    let (_, prompt, _) = talk.tell(&json!({"id": 3, "result": {}}));
    assert_eq!(
        (
            &prompt[0]["method"],
            &prompt[0]["params"]["prompt"][0]["text"]
        ),
        (&json!("session/prompt"), &json!("Fix it."))
    );
    for piece in ["All ", "done."] {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": piece}});
        assert_eq!(talk.update(update), vec![]);
    }
    let usage = json!({"inputTokens": 3, "outputTokens": 4});
    let (last, more, dismissed) =
        talk.tell(&json!({"id": 4, "result": {"stopReason": "end_turn", "usage": usage}}));
    assert_eq!((more.len(), dismissed), (0, Some(Dismissal::Answered)));
    let ended = result(last.clone());
    assert_eq!(
        (ended.claimed.as_str(), ended.summary.as_str()),
        ("completed", "All done.")
    );
    let ParsedLine::Events(events) = last else {
        panic!()
    };
    assert!(
        matches!(events[0], Event::EngineTokens(tokens) if tokens.output == 4),
        "{events:?}"
    );
    // After its answer nothing is answered, and nothing counts twice.
    for late in [
        json!({"id": 4, "result": {"stopReason": "end_turn"}}),
        question(json!(9), json!({"toolCallId": "c", "kind": "execute"})),
        json!({"id": 5, "method": "fs/read_text_file", "params": {}}),
    ] {
        assert_eq!(
            talk.tell(&late),
            (ParsedLine::Unknown, vec![], None),
            "{late}"
        );
    }
    assert_eq!(talk.bytes(b"bye").0, ParsedLine::Unknown);
}

#[test]
fn every_other_end_is_a_failure() {
    for reason in [
        "refusal",
        "max_tokens",
        "max_turn_requests",
        "cancelled",
        "tired",
        "END_TURN",
    ] {
        let (last, _, dismissed) =
            Talk::prompted().tell(&json!({"id": 4, "result": {"stopReason": reason}}));
        let ended = result(last);
        assert!(ended.failed && ended.claimed == "failed", "{reason}");
        assert_eq!(dismissed, Some(Dismissal::Answered), "{reason}");
    }
    let error = json!({"code": -32603, "message": "Internal error", "data": {"details": "401 \u{1b}[31mno"}});
    let ended = result(Talk::prompted().tell(&json!({"id": 4, "error": error})).0);
    assert!(ended.failed && ended.summary.contains("401") && !ended.summary.contains('\u{1b}'));
    for unreadable in [
        json!({}),
        json!({"stopReason": 7}),
        json!([]),
        json!("end_turn"),
    ] {
        let last = Talk::prompted()
            .tell(&json!({"id": 4, "result": unreadable}))
            .0;
        assert!(result(last).failed, "{unreadable}");
    }
    // Before there is a prompt at all.
    for bad in [
        json!({"id": 1, "result": {"protocolVersion": 2}}),
        json!({"id": 1, "result": {}}),
        json!({"id": 1, "result": null}),
        json!({"id": 1, "error": {"code": 1, "message": "no"}}),
    ] {
        let (parsed, more, dismissed) = Talk::new(None).0.tell(&bad);
        assert!(
            result(parsed).failed && more.is_empty() && dismissed.is_some(),
            "{bad}"
        );
    }
    let (mut talk, _) = Talk::new(Some("ask"));
    talk.tell(&json!({"id": 1, "result": {"protocolVersion": 1}}));
    let modes = json!({"availableModes": [{"id": "ask"}]});
    talk.tell(&json!({"id": 2, "result": {"sessionId": "s", "modes": modes}}));
    let refused = talk
        .tell(&json!({"id": 3, "error": {"message": "no such mode"}}))
        .0;
    assert!(result(refused).failed, "a mode that is offered and refused");
}

#[test]
fn a_mode_that_is_not_offered_is_a_warning() {
    let (mut talk, _) = Talk::new(Some("ask"));
    talk.tell(&json!({"id": 1, "result": {"protocolVersion": 1}}));
    let (told, next, _) = talk.tell(&json!({"id": 2, "result": {"sessionId": "s"}}));
    assert!(
        matches!(told, ParsedLine::Events(events) if matches!(events[0], Event::EngineWarning(_)))
    );
    assert_eq!(next[0]["method"], "session/prompt");
}

#[test]
fn questions_are_answered_once_each_from_the_contract() {
    let mut talk = Talk::prompted();
    let call = |path: &str| json!({"toolCallId": "c", "title": "Edit\u{7}", "kind": "edit", "locations": [{"path": path}]});
    for (id, path, option) in [
        (json!(7), "/w/a.py", "y"),
        (json!(7), "/w/a.py", "y"),
        (json!("seven"), "/w/b.py", "n"),
        (json!(null), "/w/../w/a.py", "n"),
    ] {
        let (parsed, answers, _) = talk.tell(&question(id.clone(), call(path)));
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0]["id"], id);
        let selected = json!({"outcome": {"outcome": "selected", "optionId": option}});
        assert_eq!(answers[0]["result"], selected, "{path}");
        let ParsedLine::Events(events) = parsed else {
            panic!()
        };
        let Event::EnginePermission(told) = &events[0] else {
            panic!("{events:?}")
        };
        assert_eq!(told.question, "Edit\u{fffd}");
        let yes = told.answer == PermissionAnswer::AllowOnce;
        assert_eq!((yes, told.options.len()), (option == "y", 3));
    }
    let mut bare = question(json!(8), call("/w/a.py"));
    bare["params"]["options"] = json!([]);
    let (parsed, answers, _) = talk.tell(&bare);
    assert_eq!(
        answers[0]["result"],
        json!({"outcome": {"outcome": "cancelled"}})
    );
    assert!(matches!(parsed, ParsedLine::Events(events)
        if matches!(&events[0], Event::EnginePermission(told) if told.rule == PermissionRule::NoOption)));
    for params in [
        json!(null),
        json!([]),
        json!({"options": 1}),
        json!({"options": [{"kind": 1}]}),
    ] {
        let asked = json!({"id": 9, "method": "session/request_permission", "params": params});
        let (_, answers, _) = talk.tell(&asked);
        let code = &answers[0]["error"]["code"];
        let cancelled = answers[0]["result"]["outcome"]["outcome"] == "cancelled";
        assert!(
            *code == json!(INVALID_PARAMS) || cancelled,
            "{params}: {answers:?}"
        );
    }
}

#[test]
fn a_question_may_leave_out_what_was_told_before() {
    let mut talk = Talk::prompted();
    let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit a", "kind": "edit",
        "status": "pending", "locations": [{"path": "{repo}/a.py"}]});
    assert_eq!(talk.update(begun).len(), 1);
    let (_, answers, _) = talk.tell(&question(json!(1000), json!({"toolCallId": "c"})));
    assert_eq!(answers[0]["result"]["outcome"]["optionId"], "y");
    // What cannot be remembered does not help.
    let many: Vec<Value> = (0..200).map(|_| json!({"path": "/w/a.py"})).collect();
    let many: Vec<Value> = many
        .into_iter()
        .enumerate()
        .map(|(n, _)| json!({"path": format!("/w/{n}")}))
        .collect();
    let begun =
        json!({"sessionUpdate": "tool_call", "toolCallId": "d", "kind": "edit", "locations": many});
    talk.update(begun);
    let (_, answers, _) = talk.tell(&question(json!(1001), json!({"toolCallId": "d"})));
    assert_eq!(answers[0]["result"]["outcome"]["optionId"], "n");
}

#[test]
fn no_other_method_is_there() {
    let mut talk = Talk::prompted();
    for (method, parsed) in [
        ("fs/write_text_file", ParsedLine::Nothing),
        ("terminal/create", ParsedLine::Nothing),
        ("mine/queue", ParsedLine::Nothing),
        ("session/elicitation", ParsedLine::Unknown),
        ("", ParsedLine::Unknown),
    ] {
        let asked =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"path": "/etc/x"}});
        let (said, answers, dismissed) = talk.tell(&asked);
        assert_eq!((said, dismissed), (parsed, None), "{method}");
        assert_eq!(answers[0]["error"]["code"], METHOD_NOT_FOUND);
    }
    for (told, parsed) in [
        ("_x/y", ParsedLine::Nothing),
        ("mine/told", ParsedLine::Nothing),
        ("mine", ParsedLine::Unknown),
        ("session/other", ParsedLine::Unknown),
    ] {
        let told = json!({"method": told, "params": {}});
        assert_eq!(talk.tell(&told), (parsed, vec![], None));
    }
}

#[test]
fn what_is_no_message_is_counted_and_answered_by_nobody() {
    let mut talk = Talk::prompted();
    for line in [
        &b"{"[..],
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{\"id\":4}",
        b"{\"id\":3,\"result\":{}}",
        b"{\"id\":99,\"result\":{\"stopReason\":\"end_turn\"}}",
        b"{\"id\":\"4\",\"result\":{\"stopReason\":\"end_turn\"}}",
        b"{\"id\":4.0,\"result\":{\"stopReason\":\"end_turn\"}}",
        b"{\"id\":4,\"id\":4,\"result\":{\"stopReason\":\"end_turn\"}}",
        b"{\"id\":4,\"result\":{\"stopReason\":\"end_turn\"}} more",
        b"{\"id\":4,\"method\":\"x\",\"result\":{}}",
        b"{\"id\":{},\"method\":\"session/request_permission\"}",
        b"{\"method\":\"session/update\",\"params\":{}}",
        b"{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"new thing\"}}}",
        b"{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"tool_call\",\"title\":1}}}",
    ] {
        let shown = String::from_utf8_lossy(line).into_owned();
        assert_eq!(talk.bytes(line), (ParsedLine::Unknown, vec![], None), "{shown}");
    }
    let id = "x".repeat(5000);
    let long = json!({"id": id, "method": "fs/read_text_file"});
    assert_eq!(talk.tell(&long), (ParsedLine::Unknown, vec![], None));
}

#[test]
fn a_line_that_was_cut_still_says_what_it_was() {
    let cut = |beginning: &str| {
        let mut line = beginning.as_bytes().to_vec();
        line.resize(LONGEST_LINE, b'x');
        line
    };
    let mut talk = Talk::prompted();
    let asked = cut(
        r#"{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"toolCall":{"title":""#,
    );
    let (parsed, answers, _) = talk.bytes(&asked);
    assert_eq!(
        answers[0]["result"],
        json!({"outcome": {"outcome": "cancelled"}})
    );
    assert!(matches!(parsed, ParsedLine::Events(_)));
    let told = cut(r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"content":""#);
    assert_eq!(talk.bytes(&told), (ParsedLine::Nothing, vec![], None));
    assert_eq!(talk.bytes(&cut("y")), (ParsedLine::Unknown, vec![], None));
}

#[test]
fn its_work_is_told_and_memory_is_bounded() {
    let mut talk = Talk::prompted();
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "é".repeat(3000)}});
    for _ in 0..50 {
        talk.update(chunk.clone());
    }
    assert!(talk.0.work.flush().is_some());
    let begun = |n: usize| json!({"sessionUpdate": "tool_call", "toolCallId": format!("c{n}"), "title": "t", "kind": "edit"});
    for n in 0..1000 {
        assert_eq!(talk.update(begun(n)).len(), 1);
    }
    let done = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c999", "status": "completed",
        "content": [{"type": "diff", "path": "/w/a.py", "oldText": "a", "newText": "b"}]});
    let events = talk.update(done);
    let [Event::EngineToolCall(call), Event::EngineFileChange(change)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (call.outcome, change.path.as_str()),
        (Some(ToolOutcome::Completed), "a.py")
    );
    assert_eq!((call.tool.as_str(), call.target.as_str()), ("edit", "t"));
    let plan =
        json!({"sessionUpdate": "plan", "entries": [{"content": "one", "status": "completed"}]});
    assert!(matches!(&talk.update(plan)[..], [Event::EnginePlan(text)] if text.text == "[x] one"));
}

proptest! {
    /// Whatever comes, in whatever order: no panic, answers are whole lines, and after the end nothing is said.
    #[test]
    fn anything_may_be_said(
        lines in proptest::collection::vec(prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..60),
            (0..6u64, "(\"stopReason\":\"end_turn\"|\"protocolVersion\":1|\"sessionId\":\"s\"|\"x\":\\[\\])?")
                .prop_map(|(id, body)| format!("{{\"id\":{id},\"result\":{{{body}}}}}").into_bytes()),
            "(fs/read_text_file|session/request_permission|session/update|x)"
                .prop_map(|method| format!("{{\"id\":1,\"method\":\"{method}\",\"params\":{{}}}}").into_bytes()),
        ], 0..24),
    ) {
        let (mut talk, _) = Talk::new(Some("ask"));
        let mut over = false;
        let mut results = 0;
        for line in lines {
            let (parsed, said, dismissed) = talk.bytes(&line);
            prop_assert!(!over || said.is_empty());
            over |= dismissed.is_some();
            if let ParsedLine::Events(events) = parsed {
                prop_assert!(events.iter().all(|event| event.kind().is_engine()));
                results += events.iter().filter(|event| matches!(event, Event::EngineResult(_))).count();
            }
        }
        prop_assert!(results <= 1);
    }
}
