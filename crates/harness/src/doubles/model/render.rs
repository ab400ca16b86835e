//! A turn in the words of each protocol: pieces of a stream, or one document.

use cto_core::wire::Protocol;
use cto_core::wire::scenario::{Turn, Usage};
use serde_json::{Value, json};

/// An answer ready to be sent.
pub struct Rendered {
    /// Up to and with the first piece that names the model.
    pub opening: Vec<String>,
    /// Repeated as often as the turn says.
    pub text: Vec<String>,
    pub closing: Vec<String>,
    /// What stands around a text of any length, for a huge line.
    pub around_text: (String, String),
}

struct Writer<'a> {
    turn: &'a Turn,
    model: Value,
    seq: u64,
    usage: Usage,
}

const HOLE: &str = "@@hole@@";

pub fn stream(protocol: Protocol, turn: &Turn, model: &str, seq: u64) -> Rendered {
    let name = if turn.unnamed {
        Value::Null
    } else {
        json!(turn.model.as_deref().unwrap_or(model))
    };
    let usage = turn.usage.unwrap_or(Usage {
        input: 100,
        output: 20,
        reasoning: 0,
    });
    let writer = Writer {
        turn,
        model: name,
        seq,
        usage,
    };
    match protocol {
        Protocol::OpenaiChat => writer.chat(),
        Protocol::OpenaiResponses => writer.responses(),
        Protocol::AnthropicMessages => writer.messages(),
        Protocol::GeminiGenerate => writer.gemini(),
    }
}

/// The same answer in one document.
pub fn document(protocol: Protocol, turn: &Turn, model: &str, seq: u64) -> String {
    let name = if turn.unnamed {
        Value::Null
    } else {
        json!(turn.model.as_deref().unwrap_or(model))
    };
    let usage = turn.usage.unwrap_or(Usage {
        input: 100,
        output: 20,
        reasoning: 0,
    });
    let writer = Writer {
        turn,
        model: name,
        seq,
        usage,
    };
    let mut body = match protocol {
        Protocol::OpenaiChat => writer.chat_document(),
        Protocol::OpenaiResponses => writer.response("completed", writer.items()),
        Protocol::AnthropicMessages => writer.message(
            writer.blocks(),
            json!(writer.finish("end_turn", "tool_use")),
        ),
        Protocol::GeminiGenerate => writer.candidates(writer.parts(), true),
    };
    if let Some(error) = &turn.error {
        body = json!({"type": "error", "error": {"type": error, "code": error, "message": "scripted"}});
    }
    body.to_string()
}

fn event(data: &Value) -> String {
    match data["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// Cuts around a text that stands for any other.
fn around(event: &str) -> (String, String) {
    let (before, after) = event.split_once(HOLE).unwrap_or((event, ""));
    (before.to_owned(), after.to_owned())
}

impl Writer<'_> {
    fn finish(&self, usual: &str, with_tools: &str) -> String {
        let word = if self.turn.tool.is_empty() {
            usual
        } else {
            with_tools
        };
        self.turn.finish.clone().unwrap_or_else(|| word.to_owned())
    }

    /// The text in pieces of the length asked for.
    fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let step = self.turn.piece.max(1);
        let mut starts: Vec<usize> = text
            .char_indices()
            .map(|(at, _)| at)
            .step_by(step)
            .collect();
        starts.push(text.len());
        starts
            .windows(2)
            .map(|pair| &text[pair[0]..pair[1]])
            .collect()
    }

    fn call_id(&self, at: usize) -> String {
        format!("call_{}_{at}", self.seq)
    }

    fn tool_value(&self, at: usize) -> Value {
        let text = self.turn.tool[at].text();
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    fn chat(&self) -> Rendered {
        let base = |delta: Value, finish: Value| {
            let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
            json!({"id": format!("chatcmpl-{}", self.seq), "object": "chat.completion.chunk", "created": 1, "model": self.model, "choices": choices})
        };
        let delta = |delta: Value| event(&base(delta, Value::Null));
        let mut opening = vec![delta(json!({"role": "assistant", "content": ""}))];
        opening.extend(
            self.pieces(&self.turn.reasoning)
                .into_iter()
                .map(|piece| delta(json!({"reasoning_content": piece}))),
        );
        let text = self
            .pieces(&self.turn.text)
            .into_iter()
            .map(|piece| delta(json!({"content": piece})))
            .collect();
        let mut closing = Vec::new();
        for (at, tool) in self.turn.tool.iter().enumerate() {
            let call = json!({"index": at, "id": self.call_id(at), "type": "function", "function": {"name": tool.name, "arguments": ""}});
            closing.push(delta(json!({"tool_calls": [call]})));
            let arguments = tool.text();
            closing.push(delta(
                json!({"tool_calls": [{"index": at, "function": {"arguments": arguments}}]}),
            ));
        }
        match &self.turn.error {
            Some(error) => closing.push(event(
                &json!({"error": {"message": "scripted", "type": error, "code": error}}),
            )),
            None => {
                closing.push(event(&base(
                    json!({}),
                    json!(self.finish("stop", "tool_calls")),
                )));
                let mut last = base(json!({}), Value::Null);
                last["choices"] = json!([]);
                last["usage"] = self.chat_usage();
                closing.push(event(&last));
                closing.push("data: [DONE]\n\n".to_owned());
            }
        }
        Rendered {
            opening,
            text,
            closing,
            around_text: around(&delta(json!({"content": HOLE}))),
        }
    }

    fn chat_usage(&self) -> Value {
        let Usage {
            input,
            output,
            reasoning,
        } = self.usage;
        json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
               "completion_tokens_details": {"reasoning_tokens": reasoning}})
    }

    fn chat_document(&self) -> Value {
        let calls: Vec<Value> = self.turn.tool.iter().enumerate().map(|(at, tool)| {
            json!({"id": self.call_id(at), "type": "function", "function": {"name": tool.name, "arguments": tool.text()}})
        }).collect();
        let content = if self.turn.text.is_empty() {
            Value::Null
        } else {
            json!(self.turn.text)
        };
        let mut message = json!({"role": "assistant", "content": content});
        if !self.turn.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.turn.reasoning);
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        json!({"id": format!("chatcmpl-{}", self.seq), "object": "chat.completion", "created": 1, "model": self.model,
               "choices": [{"index": 0, "message": message, "finish_reason": self.finish("stop", "tool_calls")}],
               "usage": self.chat_usage()})
    }

    fn response(&self, status: &str, output: Vec<Value>) -> Value {
        let Usage {
            input,
            output: out,
            reasoning,
        } = self.usage;
        json!({"id": format!("resp_{}", self.seq), "object": "response", "created_at": 1, "model": self.model, "status": status,
               "error": null, "output": output,
               "usage": {"input_tokens": input, "output_tokens": out, "output_tokens_details": {"reasoning_tokens": reasoning},
                         "total_tokens": input + out}})
    }

    fn items(&self) -> Vec<Value> {
        let seq = self.seq;
        let mut items = Vec::new();
        if !self.turn.reasoning.is_empty() {
            let summary = json!([{"type": "summary_text", "text": self.turn.reasoning}]);
            items.push(json!({"type": "reasoning", "id": format!("rs_{seq}"), "summary": summary}));
        }
        if !self.turn.text.is_empty() {
            items.push(self.response_message(&self.turn.text));
        }
        for (at, tool) in self.turn.tool.iter().enumerate() {
            items.push(
                json!({"type": "function_call", "id": format!("fc_{seq}_{at}"), "call_id": self.call_id(at), "name": tool.name,
                              "arguments": tool.text(), "status": "completed"}),
            );
        }
        items
    }

    fn response_message(&self, text: &str) -> Value {
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        json!({"type": "message", "id": format!("msg_{}", self.seq), "role": "assistant", "status": "completed", "content": content})
    }

    fn responses(&self) -> Rendered {
        let mut created = self.response("in_progress", vec![]);
        created["usage"] = Value::Null;
        let mut opening = vec![event(
            &json!({"type": "response.created", "response": created}),
        )];
        let (mut text, mut closing) = (Vec::new(), Vec::new());
        let delta = |at: usize, text: &str| {
            event(
                &json!({"type": "response.output_text.delta", "item_id": format!("msg_{}", self.seq), "output_index": at, "content_index": 0, "delta": text}),
            )
        };
        for (at, item) in self.items().into_iter().enumerate() {
            let added = |item: Value| {
                event(
                    &json!({"type": "response.output_item.added", "output_index": at, "item": item}),
                )
            };
            let done = event(
                &json!({"type": "response.output_item.done", "output_index": at, "item": item}),
            );
            let id = &item["id"];
            match item["type"].as_str() {
                Some("message") => {
                    let part = json!({"type": "output_text", "text": "", "annotations": []});
                    opening.push(added(
                        json!({"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []}),
                    ));
                    opening.push(event(&json!({"type": "response.content_part.added", "item_id": id, "output_index": at, "content_index": 0, "part": part})));
                    text.extend(
                        self.pieces(&self.turn.text)
                            .into_iter()
                            .map(|piece| delta(at, piece)),
                    );
                    closing.push(event(&json!({"type": "response.output_text.done", "item_id": id, "output_index": at, "content_index": 0, "text": self.turn.text})));
                    closing.push(event(&json!({"type": "response.content_part.done", "item_id": id, "output_index": at, "content_index": 0, "part": item["content"][0]})));
                    closing.push(done);
                }
                Some("function_call") => {
                    closing.push(added(item.clone()));
                    closing.push(event(&json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": at, "delta": item["arguments"]})));
                    closing.push(event(&json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": at, "arguments": item["arguments"]})));
                    closing.push(done);
                }
                _ => {
                    opening.push(added(item.clone()));
                    opening.push(event(&json!({"type": "response.reasoning_summary_text.delta", "item_id": id, "output_index": at, "summary_index": 0, "delta": self.turn.reasoning})));
                    opening.push(done);
                }
            }
        }
        let last = match &self.turn.error {
            Some(error) => {
                let mut failed = self.response("failed", vec![]);
                failed["error"] = json!({"code": error, "message": "scripted"});
                json!({"type": "response.failed", "response": failed})
            }
            None => {
                json!({"type": "response.completed", "response": self.response("completed", self.items())})
            }
        };
        closing.push(event(&last));
        Rendered {
            opening,
            text,
            closing,
            around_text: around(&delta(0, HOLE)),
        }
    }

    fn message(&self, content: Vec<Value>, stop: Value) -> Value {
        json!({"id": format!("msg_{}", self.seq), "type": "message", "role": "assistant", "model": self.model, "content": content,
               "stop_reason": stop, "stop_sequence": null,
               "usage": {"input_tokens": self.usage.input, "output_tokens": self.usage.output}})
    }

    fn blocks(&self) -> Vec<Value> {
        let mut blocks = Vec::new();
        if !self.turn.reasoning.is_empty() {
            blocks.push(json!({"type": "thinking", "thinking": self.turn.reasoning, "signature": "scripted"}));
        }
        if !self.turn.text.is_empty() {
            blocks.push(json!({"type": "text", "text": self.turn.text}));
        }
        for (at, tool) in self.turn.tool.iter().enumerate() {
            blocks.push(json!({"type": "tool_use", "id": format!("toolu_{}_{at}", self.seq), "name": tool.name, "input": self.tool_value(at)}));
        }
        blocks
    }

    fn messages(&self) -> Rendered {
        let mut opening = vec![event(
            &json!({"type": "message_start", "message": self.message(vec![], Value::Null)}),
        )];
        let (mut text, mut closing) = (Vec::new(), Vec::new());
        let mut text_at = 0;
        let delta = |at: usize, delta: Value| {
            event(&json!({"type": "content_block_delta", "index": at, "delta": delta}))
        };
        for (at, block) in self.blocks().into_iter().enumerate() {
            let start = |block: Value| {
                event(&json!({"type": "content_block_start", "index": at, "content_block": block}))
            };
            let stop = event(&json!({"type": "content_block_stop", "index": at}));
            match block["type"].as_str() {
                Some("thinking") => {
                    opening.push(start(
                        json!({"type": "thinking", "thinking": "", "signature": ""}),
                    ));
                    opening.extend(self.pieces(&self.turn.reasoning).into_iter().map(|piece| {
                        delta(at, json!({"type": "thinking_delta", "thinking": piece}))
                    }));
                    opening.push(delta(
                        at,
                        json!({"type": "signature_delta", "signature": "scripted"}),
                    ));
                    opening.push(stop);
                }
                Some("text") => {
                    text_at = at;
                    opening.push(start(json!({"type": "text", "text": ""})));
                    text.extend(
                        self.pieces(&self.turn.text)
                            .into_iter()
                            .map(|piece| delta(at, json!({"type": "text_delta", "text": piece}))),
                    );
                    closing.push(stop);
                }
                _ => {
                    let call = at - (self.blocks().len() - self.turn.tool.len());
                    closing.push(start(json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}})));
                    closing.push(delta(at, json!({"type": "input_json_delta", "partial_json": self.turn.tool[call].text()})));
                    closing.push(stop);
                }
            }
        }
        match &self.turn.error {
            Some(error) => closing.push(event(
                &json!({"type": "error", "error": {"type": error, "message": "scripted"}}),
            )),
            None => {
                let stop = json!({"stop_reason": self.finish("end_turn", "tool_use"), "stop_sequence": null});
                closing
                    .push(event(&json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": self.usage.output}})));
                closing.push(event(&json!({"type": "message_stop"})));
            }
        }
        Rendered {
            opening,
            text,
            closing,
            around_text: around(&delta(text_at, json!({"type": "text_delta", "text": HOLE}))),
        }
    }

    fn parts(&self) -> Vec<Value> {
        let mut parts = Vec::new();
        if !self.turn.reasoning.is_empty() {
            parts.push(json!({"text": self.turn.reasoning, "thought": true}));
        }
        if !self.turn.text.is_empty() {
            parts.push(json!({"text": self.turn.text}));
        }
        parts.extend(self.calls());
        parts
    }

    fn calls(&self) -> Vec<Value> {
        let call = |(at, tool): (usize, &cto_core::wire::scenario::ToolCall)| json!({"functionCall": {"name": tool.name, "args": self.tool_value(at)}});
        self.turn.tool.iter().enumerate().map(call).collect()
    }

    fn candidates(&self, parts: Vec<Value>, last: bool) -> Value {
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        if last {
            candidate["finishReason"] = json!(self.finish("STOP", "STOP"));
        }
        let Usage {
            input,
            output,
            reasoning,
        } = self.usage;
        json!({"candidates": [candidate], "modelVersion": self.model,
               "usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output, "thoughtsTokenCount": reasoning,
                                 "totalTokenCount": input + output + reasoning}})
    }

    fn gemini(&self) -> Rendered {
        let said = |part: Value| event(&self.candidates(vec![part], false));
        let opening = match self.turn.reasoning.is_empty() {
            true => Vec::new(),
            false => vec![said(json!({"text": self.turn.reasoning, "thought": true}))],
        };
        let text = self
            .pieces(&self.turn.text)
            .into_iter()
            .map(|piece| said(json!({"text": piece})))
            .collect();
        let last = match &self.turn.error {
            Some(error) => json!({"error": {"code": 500, "status": error, "message": "scripted"}}),
            None => self.candidates(self.calls(), true),
        };
        Rendered {
            opening,
            text,
            closing: vec![event(&last)],
            around_text: around(&said(json!({"text": HOLE}))),
        }
    }
}
