//! Exchanges as the documentation of each kind of endpoint gives them, short and by hand.

use super::*;

pub const SSE: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A recorded answer of one kind of endpoint.
pub struct Recorded {
    profile: &'static str,
    protocol: Protocol,
    model: &'static str,
    pub answered: &'static str,
    /// What must stand in the request.
    sent: &'static [&'static str],
    pub events: &'static str,
}

pub const RECORDED: &[Recorded] = &[
    Recorded {
        profile: "openai",
        protocol: Protocol::OpenaiChat,
        model: "gpt-5.2",
        answered: "gpt-5.2-2025-12-11",
        sent: &[
            "POST /v1/chat/completions ",
            "authorization: Bearer lab-key",
            "\"max_completion_tokens\":1024",
            "\"stream_options\"",
        ],
        events: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-5.2-2025-12-11\",\"service_tier\":\"default\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-5.2-2025-12-11\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ready\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-5.2-2025-12-11\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"gpt-5.2-2025-12-11\",\"choices\":[],\"usage\":{\"prompt_tokens\":14,\"completion_tokens\":2,\"total_tokens\":16}}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "anthropic",
        protocol: Protocol::AnthropicMessages,
        model: "claude-sonnet-4-5",
        answered: "claude-sonnet-4-5-20250929",
        sent: &[
            "POST /v1/messages ",
            "x-api-key: lab-key",
            "anthropic-version: 2023-06-01",
            "\"max_tokens\":1024",
        ],
        events: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5-20250929\",\"content\":[],\"usage\":{\"input_tokens\":14,\"output_tokens\":1}}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ready\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    },
    Recorded {
        profile: "google",
        protocol: Protocol::GeminiGenerate,
        model: "gemini-2.5-pro",
        answered: "gemini-2.5-pro",
        sent: &[
            "POST /v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse ",
            "x-goog-api-key: lab-key",
            "\"maxOutputTokens\":1024",
        ],
        events: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ready\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":1,\"totalTokenCount\":40,\"thoughtsTokenCount\":32},\"modelVersion\":\"gemini-2.5-pro\",\"responseId\":\"r\"}\n\n",
    },
    Recorded {
        profile: "google",
        protocol: Protocol::OpenaiChat,
        model: "models/gemini-2.5-pro",
        answered: "models/gemini-2.5-pro",
        sent: &[
            "POST /v1beta/openai/chat/completions ",
            "authorization: Bearer lab-key",
        ],
        events: "data: {\"choices\":[{\"delta\":{\"content\":\"ready\",\"role\":\"assistant\"},\"finish_reason\":\"stop\",\"index\":0}],\"created\":1,\"id\":\"x\",\"model\":\"models/gemini-2.5-pro\",\"object\":\"chat.completion.chunk\"}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "openrouter",
        protocol: Protocol::OpenaiChat,
        model: "qwen/qwen3-coder:free",
        answered: "qwen/qwen3-coder:free",
        sent: &[
            "POST /api/v1/chat/completions ",
            "\"model\":\"qwen/qwen3-coder:free\"",
        ],
        events: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: {\"id\":\"gen-1\",\"provider\":\"Chutes\",\"model\":\"qwen/qwen3-coder:free\",\"object\":\"chat.completion.chunk\",\"created\":1,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ready\"},\"finish_reason\":\"stop\",\"native_finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "azure",
        protocol: Protocol::OpenaiChat,
        model: "gpt-4o",
        answered: "gpt-4o-2024-08-06",
        sent: &[
            "POST /openai/v1/chat/completions?api-version=2024-10-21 ",
            "api-key: lab-key",
        ],
        events: "data: {\"choices\":[],\"created\":0,\"id\":\"\",\"model\":\"\",\"object\":\"\",\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{\"hate\":{\"filtered\":false,\"severity\":\"safe\"}}}]}\n\ndata: {\"choices\":[{\"content_filter_results\":{},\"delta\":{\"content\":\"ready\",\"role\":\"assistant\"},\"finish_reason\":null,\"index\":0,\"logprobs\":null}],\"created\":1,\"id\":\"chatcmpl-1\",\"model\":\"gpt-4o-2024-08-06\",\"object\":\"chat.completion.chunk\",\"system_fingerprint\":\"fp_1\"}\n\ndata: {\"choices\":[{\"content_filter_results\":{},\"delta\":{},\"finish_reason\":\"stop\",\"index\":0}],\"created\":1,\"id\":\"chatcmpl-1\",\"model\":\"gpt-4o-2024-08-06\",\"object\":\"chat.completion.chunk\"}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "vllm",
        protocol: Protocol::OpenaiChat,
        model: "Qwen/Qwen3-32B",
        answered: "Qwen/Qwen3-32B",
        sent: &["POST /v1/chat/completions "],
        events: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"Qwen/Qwen3-32B\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"Qwen/Qwen3-32B\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"Qwen/Qwen3-32B\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ready\"},\"finish_reason\":\"stop\",\"stop_reason\":null}]}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "llama-cpp",
        protocol: Protocol::OpenaiChat,
        model: "ggml-org/gemma-3-4b-it-GGUF:Q4_K_M",
        answered: "ggml-org/gemma-3-4b-it-GGUF:Q4_K_M",
        sent: &["POST /v1/chat/completions "],
        events: "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"created\":1,\"id\":\"chatcmpl-1\",\"model\":\"ggml-org/gemma-3-4b-it-GGUF:Q4_K_M\",\"system_fingerprint\":\"b6000\",\"object\":\"chat.completion.chunk\"}\n\ndata: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"content\":\"ready\"}}],\"model\":\"ggml-org/gemma-3-4b-it-GGUF:Q4_K_M\"}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\",\"index\":0,\"delta\":{}}],\"model\":\"ggml-org/gemma-3-4b-it-GGUF:Q4_K_M\",\"timings\":{\"prompt_n\":12,\"predicted_n\":2}}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "ollama",
        protocol: Protocol::OpenaiChat,
        model: "qwen3-coder:30b",
        answered: "qwen3-coder:30b",
        sent: &["POST /v1/chat/completions "],
        events: "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"qwen3-coder:30b\",\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ready\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"chatcmpl-1\",\"model\":\"qwen3-coder:30b\",\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    },
    Recorded {
        profile: "lm-studio",
        protocol: Protocol::OpenaiResponses,
        model: "openai/gpt-oss-20b",
        answered: "openai/gpt-oss-20b",
        sent: &["POST /v1/responses ", "\"max_output_tokens\":1024"],
        events: "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"in_progress\",\"model\":\"openai/gpt-oss-20b\",\"output\":[]},\"sequence_number\":0}\n\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"delta\":\"ready\",\"sequence_number\":1}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"model\":\"openai/gpt-oss-20b\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"ready\"}]}],\"usage\":{\"input_tokens\":14,\"output_tokens\":2}}}\n\n",
    },
];

#[test]
fn every_profile_answers_as_it_was_recorded() {
    for profile in Profile::NAMES {
        let has = RECORDED.iter().any(|recorded| recorded.profile == *profile);
        assert!(has, "{profile} has no recorded exchange");
    }
    for recorded in RECORDED {
        let profile = Profile::named(recorded.profile).unwrap();
        let base = profile.base(recorded.protocol).unwrap();
        let answer: &'static str = format!("{SSE}{}", recorded.events).leak();
        let (port, asked) = serve(vec![Act::Say(answer)]);
        let url = format!("http://127.0.0.1:{port}{base}");
        let mut route = route(recorded.protocol, &url, recorded.model);
        route.auth = profile.auth;
        route.api_version = profile.takes_api_version.then(|| "2024-10-21".into());
        let agent = ["max_completion_tokens", "stream_options"].map(String::from);
        route.habits = Habits::of(&agent).with(profile.switches);
        let found = ask(&route);
        let sent = asked.join().unwrap().remove(0);
        assert_eq!(
            found.call.outcome,
            Outcome::Ok,
            "{}: {:?}",
            recorded.profile,
            found.call
        );
        assert!(found.call.content, "{}", recorded.profile);
        assert_eq!(found.answered_model.as_deref(), Some(recorded.answered));
        let other = (recorded.model != recorded.answered).then_some(recorded.answered);
        assert_eq!(found.other_name(&route), other);
        for part in recorded.sent {
            assert!(
                sent.contains(part),
                "{}: {part} is not in {sent}",
                recorded.profile
            );
        }
        assert_eq!((found.switches, found.error_body), (vec![], None));
    }
}
