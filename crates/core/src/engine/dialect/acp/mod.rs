//! The Agent Client Protocol, version 1: a conversation on standard input and output, one JSON-RPC message a line.
//!
//! - this file: the conversation from `initialize` to the answer of the one prompt; `line.rs` messages read and
//!   written; `permission.rs` may it?; `update.rs` what it tells of its work
//!
//! Two readings of each line come in. The *raw* one is for what goes back to the agent: ids, options, paths. The
//! *clean* one, without secrets and paths of the host, is for events. Nothing raw is ever put into an event.
//! No capability is advertised: a file that a client writes for an agent is written outside the agent's jail.

mod line;
mod permission;
mod update;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::line::{Answer, Asked, Head, Id, Message, Params, Updated};
pub use self::permission::Scope;
use self::update::Work;
use super::{Brief, LONGEST_LINE, MAX_COUNT, ParsedLine, Reply};
use crate::run::event::{
    Dismissal, EnginePermission, EngineResult, EngineText, EngineTokens, Event, PermissionAnswer,
    PermissionKind, PermissionRule,
};
use crate::values::text::tame_excerpt;

const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
/// Longer ids of sessions are no ids.
const MAX_SESSION: usize = 4096;
/// Most options told of one question.
const MAX_OPTIONS: usize = 16;

/// What an answer is awaited to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Initialize,
    NewSession,
    SetMode,
    Prompt,
    Over,
}

impl Step {
    /// The id of the one request of this step.
    fn id(self) -> Option<u64> {
        match self {
            Self::Initialize => Some(1),
            Self::NewSession => Some(2),
            Self::SetMode => Some(3),
            Self::Prompt => Some(4),
            Self::Over => None,
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::NewSession => "session/new",
            Self::SetMode => "session/set_mode",
            Self::Prompt => "session/prompt",
            Self::Over => "nothing",
        }
    }
}

#[derive(Debug)]
pub struct Acp {
    step: Step,
    session: String,
    mode: Option<String>,
    own_methods: Vec<String>,
    prompt: String,
    scope: Scope,
    work: Work,
    reply: Reply,
}

impl Acp {
    pub fn new(brief: &Brief) -> Self {
        Self {
            step: Step::Initialize,
            session: String::new(),
            mode: brief.mode.clone(),
            own_methods: brief.own_methods.clone(),
            prompt: brief.prompt.clone(),
            scope: brief.scope.clone(),
            work: Work::default(),
            reply: Reply::default(),
        }
    }

    /// The first word is ours.
    pub fn begin(&mut self) {
        let nothing = json!({"readTextFile": false, "writeTextFile": false});
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {"fs": nothing, "terminal": false},
            "clientInfo": {"name": "cto", "title": "CTO Harness", "version": env!("CARGO_PKG_VERSION")},
        });
        self.ask(Step::Initialize, params);
    }

    pub fn take_reply(&mut self) -> Reply {
        std::mem::take(&mut self.reply)
    }

    pub fn line(&mut self, raw: &[u8], clean: &[u8]) -> ParsedLine {
        let head = Head::of(raw);
        let is_whole = head.is_whole;
        // A line that was cut still says what it was.
        if !is_whole && raw.len() < LONGEST_LINE {
            return ParsedLine::Unknown;
        }
        match head.message() {
            None => ParsedLine::Unknown,
            // Nobody is left to answer.
            Some(Message::Request(..)) if self.step == Step::Over => ParsedLine::Unknown,
            Some(Message::Request(id, method)) => self.request(&id, &method, raw, clean),
            Some(Message::Notification(method)) => match (method.as_str(), is_whole) {
                ("session/update", false) => ParsedLine::Nothing,
                ("session/update", true) => self.update(clean),
                (own, true) if self.is_own(own) => ParsedLine::Nothing,
                _ => ParsedLine::Unknown,
            },
            Some(Message::Answer(id)) => match self.step.id() {
                Some(awaited) if id.is(awaited) => self.answered(raw, clean),
                _ => ParsedLine::Unknown,
            },
        }
    }

    /// A method that the protocol leaves to agents, or that the manifest knows as this one's: whoever does not
    /// know more of it is told nothing by it.
    fn is_own(&self, method: &str) -> bool {
        let begins = |own: &String| method.starts_with(own.as_str());
        method.starts_with('_') || self.own_methods.iter().any(begins)
    }

    /// The streams ended; a conversation that came to no answer has none.
    pub fn ended(&mut self) -> Vec<Event> {
        self.work.flush().into_iter().collect()
    }

    fn ask(&mut self, step: Step, params: Value) {
        self.step = step;
        let id = step.id().unwrap_or_default();
        let request = line::request(id, step.method(), params);
        self.reply.said.extend(request);
    }

    fn request(&mut self, id: &Id, method: &str, raw: &[u8], clean: &[u8]) -> ParsedLine {
        match method {
            "session/request_permission" => self.permission(id, raw, clean),
            // Never advertised; some ask all the same.
            known
                if known.starts_with("fs/")
                    || known.starts_with("terminal/")
                    || self.is_own(known) =>
            {
                self.refuse(id, METHOD_NOT_FOUND, "this client has no such method");
                ParsedLine::Nothing
            }
            _ => {
                self.refuse(id, METHOD_NOT_FOUND, "this client has no such method");
                ParsedLine::Unknown
            }
        }
    }

    fn refuse(&mut self, id: &Id, code: i32, message: &str) {
        self.reply.said.extend(line::refusal(id, code, message));
    }

    fn permission(&mut self, id: &Id, raw: &[u8], clean: &[u8]) -> ParsedLine {
        let read =
            |text: &[u8]| serde_json::from_slice::<Params<Asked>>(text).map(|read| read.params);
        let asked = match read(raw) {
            Ok(asked) => asked,
            // Too long to be read whole: what cannot be looked at is not allowed.
            Err(_) if raw.len() >= LONGEST_LINE => Asked {
                tool_call: line::ToolCall::default(),
                options: Vec::new(),
            },
            Err(_) => {
                self.refuse(id, INVALID_PARAMS, "the question cannot be read");
                return ParsedLine::Unknown;
            }
        };
        // What a question leaves out was told when the call began.
        let known = self.work.completed(asked.tool_call);
        let (rule, allow) = permission::decide(&self.scope, &known);
        let (answer, option) = permission::choose(&asked.options, allow);
        let outcome = match option {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            None => json!({"outcome": "cancelled"}),
        };
        let said = line::answer(id, json!({"outcome": outcome}));
        self.reply.said.extend(said);
        let options = asked.options.iter().map(|choice| kind_of(&choice.kind));
        let options = options.take(MAX_OPTIONS).collect();
        let shown = read(clean).map(|asked| asked.tool_call).unwrap_or_default();
        let shown = self.work.completed(shown);
        let event = Event::EnginePermission(EnginePermission {
            question: tame_excerpt(shown.title.as_deref().unwrap_or_default()),
            kind: shown.kind.as_deref().map(update::kind),
            paths: update::shown_paths(&self.scope, &shown),
            options,
            answer,
            rule: match answer {
                PermissionAnswer::Cancelled => PermissionRule::NoOption,
                _ => rule,
            },
        });
        ParsedLine::Events(self.work.flush().into_iter().chain([event]).collect())
    }

    fn update(&mut self, clean: &[u8]) -> ParsedLine {
        // Told after the end, it is in the log.
        if self.step == Step::Over {
            return ParsedLine::Nothing;
        }
        match serde_json::from_slice::<Params<Updated>>(clean) {
            Ok(told) => self.work.take(&self.scope, told.params.update),
            Err(_) => ParsedLine::Unknown,
        }
    }

    fn answered(&mut self, raw: &[u8], clean: &[u8]) -> ParsedLine {
        if let Some(why) = refused(clean) {
            let what = self.step.method();
            return self.over(true, &format!("{what} was refused: {why}"));
        }
        match self.step {
            Step::Initialize => match result::<line::Initialized>(raw) {
                Some(result) if result.protocol_version == 1 => {
                    let params = json!({"cwd": self.scope.root, "mcpServers": []});
                    self.ask(Step::NewSession, params);
                    ParsedLine::Nothing
                }
                _ => self.over(true, "it does not speak version 1 of the protocol"),
            },
            Step::NewSession => match result::<line::NewSession>(raw) {
                Some(new) if new.session_id.len() <= MAX_SESSION => self.session(new),
                _ => self.over(true, "its answer to session/new cannot be read"),
            },
            Step::SetMode => {
                self.prompt();
                ParsedLine::Nothing
            }
            Step::Prompt => match result::<line::Prompted>(raw) {
                Some(done) => self.prompted(&done),
                None => self.over(true, "its answer to the prompt cannot be read"),
            },
            Step::Over => ParsedLine::Unknown,
        }
    }

    fn session(&mut self, new: line::NewSession) -> ParsedLine {
        self.session = new.session_id;
        let Some(mode) = self.mode.take() else {
            self.prompt();
            return ParsedLine::Nothing;
        };
        let offered = new
            .modes
            .is_some_and(|modes| modes.available_modes.iter().any(|have| have.id == mode));
        if offered {
            let params = json!({"sessionId": self.session, "modeId": mode});
            self.ask(Step::SetMode, params);
            return ParsedLine::Nothing;
        }
        self.prompt();
        let text = tame_excerpt(&format!("it offers no mode {mode}, so none was set"));
        ParsedLine::one(Event::EngineWarning(EngineText { text }))
    }

    fn prompt(&mut self) {
        let text = std::mem::take(&mut self.prompt);
        let params = json!({
            "sessionId": self.session,
            "prompt": [{"type": "text", "text": text}],
        });
        self.ask(Step::Prompt, params);
    }

    fn prompted(&mut self, done: &line::Prompted) -> ParsedLine {
        let usage = tokens(&done.usage).map(Event::EngineTokens);
        let failed = done.stop_reason != "end_turn";
        let why = match done.stop_reason.as_str() {
            "end_turn" => "",
            "refusal" => "it refused the task",
            "cancelled" => "it says that it was cancelled",
            "max_tokens" => "its answer came to a limit of tokens",
            "max_turn_requests" => "it came to a limit of requests",
            _ => "it stopped for a reason that is not known",
        };
        let last = self.over(failed, why);
        match last {
            ParsedLine::Events(events) => {
                ParsedLine::Events(usage.into_iter().chain(events).collect())
            }
            other => other,
        }
    }

    /// The conversation is over: nothing more is asked, and the agent may go.
    fn over(&mut self, failed: bool, why: &str) -> ParsedLine {
        self.step = Step::Over;
        self.reply.dismissed = Some(Dismissal::Answered);
        let said = self.work.flush();
        let summary = match why {
            "" => self.work.last().to_owned(),
            why => tame_excerpt(why),
        };
        let claimed = if failed { "failed" } else { "completed" }.to_owned();
        let result = Event::EngineResult(EngineResult::new(claimed, summary, failed));
        ParsedLine::Events(said.into_iter().chain([result]).collect())
    }
}

/// The words of an error in an answer.
fn refused(clean: &[u8]) -> Option<String> {
    let answer = serde_json::from_slice::<Answer<serde::de::IgnoredAny>>(clean).ok()?;
    Some(tame_excerpt(&answer.error?.words()))
}

fn result<R: DeserializeOwned>(raw: &[u8]) -> Option<R> {
    serde_json::from_slice::<Answer<R>>(raw).ok()?.result
}

fn kind_of(word: &str) -> PermissionKind {
    match word {
        "allow_once" => PermissionKind::AllowOnce,
        "allow_always" => PermissionKind::AllowAlways,
        "reject_once" => PermissionKind::RejectOnce,
        "reject_always" => PermissionKind::RejectAlways,
        _ => PermissionKind::Other,
    }
}

fn tokens(usage: &Value) -> Option<EngineTokens> {
    let count = |key: &str| {
        usage
            .get(key)
            .and_then(Value::as_u64)
            .map(|n| n.min(MAX_COUNT))
    };
    let (input, output) = (count("inputTokens"), count("outputTokens"));
    (input.is_some() || output.is_some()).then(|| EngineTokens {
        messages: 1,
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        cache_read: count("cachedReadTokens").unwrap_or(0),
        cache_write: count("cachedWriteTokens").unwrap_or(0),
    })
}

#[cfg(test)]
#[path = "acp_tests.rs"]
mod tests;
