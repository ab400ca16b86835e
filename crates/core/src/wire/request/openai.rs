//! What a request to the two protocols of OpenAI may hold.

use super::place::Place::{
    self, At, Either, Encoded, Flat, Free, Inline, Keys, Kind, List, Null, Off, One, Scalar,
    Schema, Whole, Word,
};

/// The tiers that are not another contract with the provider.
const TIERS: &[&str] = &["auto", "default"];

pub(super) static CHAT: Place = Keys(&[
    ("audio", Null),
    ("background", Off),
    ("cache_prompt", Scalar),
    // By other keys a server takes the template itself from here.
    (
        "chat_template_kwargs",
        Keys(&[
            ("clear_thinking", Scalar),
            ("enable_thinking", Scalar),
            ("preserve_thinking", Scalar),
            ("reasoning_effort", Scalar),
            ("thinking", Scalar),
        ]),
    ),
    ("do_sample", Scalar),
    ("enable_thinking", Scalar),
    ("frequency_penalty", Scalar),
    (
        "function_call",
        Either(&[Scalar, Keys(&[("name", Scalar)])]),
    ),
    ("functions", List(&FUNCTION)),
    ("include_reasoning", Scalar),
    ("logit_bias", Flat),
    ("logprobs", Scalar),
    ("max_completion_tokens", Scalar),
    ("max_tokens", Scalar),
    ("messages", List(&MESSAGE)),
    ("metadata", At(&METADATA)),
    ("min_p", Scalar),
    ("min_tokens", Scalar),
    ("modalities", List(&Word(&["text"]))),
    ("model", Scalar),
    ("n", One),
    ("parallel_tool_calls", Scalar),
    (
        "prediction",
        Keys(&[("type", Word(&["content"])), ("content", At(&CHAT_CONTENT))]),
    ),
    ("presence_penalty", Scalar),
    ("previous_response_id", Null),
    ("prompt_cache_key", Scalar),
    ("prompt_cache_options", Flat),
    ("prompt_cache_retention", Scalar),
    ("reasoning", Flat),
    ("reasoning_effort", Scalar),
    ("reasoning_format", Scalar),
    ("reasoning_split", Scalar),
    ("repetition_penalty", Scalar),
    (
        "response_format",
        Keys(&[
            ("type", Word(&["text", "json_object", "json_schema"])),
            ("json_schema", Schema),
            ("schema", Schema),
        ]),
    ),
    ("safety_identifier", Scalar),
    ("seed", Scalar),
    ("service_tier", Word(TIERS)),
    ("stop", Either(&[Scalar, List(&Scalar)])),
    ("store", Off),
    ("stream", Scalar),
    ("stream_options", Flat),
    ("temperature", Scalar),
    ("thinking", Flat),
    ("thinking_budget", Scalar),
    (
        "tool_choice",
        Either(&[
            Scalar,
            Keys(&[
                ("type", Word(&["function", "custom", "allowed_tools"])),
                ("function", Keys(&[("name", Scalar)])),
                ("custom", Keys(&[("name", Scalar)])),
                (
                    "allowed_tools",
                    Keys(&[("mode", Scalar), ("tools", List(&CHAT_TOOL))]),
                ),
            ]),
        ]),
    ),
    ("tool_stream", Scalar),
    ("tools", List(&CHAT_TOOL)),
    ("top_a", Scalar),
    ("top_k", Scalar),
    ("top_logprobs", Scalar),
    ("top_p", Scalar),
    ("usage", Keys(&[("include", Scalar)])),
    ("user", Scalar),
    ("verbosity", Scalar),
    ("vl_high_resolution_images", Scalar),
]);

/// Whose request it is, and what `qwen` says of its own sessions. Routers take addresses to report to
/// from other keys.
static METADATA: Place = Keys(&[
    ("user_id", Scalar),
    ("channel", Scalar),
    ("promptId", Scalar),
    ("sessionId", Scalar),
]);

static FUNCTION: Place = Keys(&[
    ("name", Scalar),
    ("description", Scalar),
    ("parameters", Schema),
    ("strict", Scalar),
]);

static CHAT_TOOL: Place = Keys(&[
    ("type", Kind(&["function", "custom"])),
    ("function", At(&FUNCTION)),
    (
        "custom",
        Keys(&[("name", Scalar), ("description", Scalar), ("format", Free)]),
    ),
    ("cache_control", Flat),
]);

static MESSAGE: Place = Keys(&[
    ("role", Scalar),
    ("content", At(&CHAT_CONTENT)),
    ("name", Scalar),
    (
        "tool_calls",
        List(&Keys(&[
            ("id", Scalar),
            ("index", Scalar),
            ("type", Word(&["function", "custom"])),
            ("function", Keys(&[("name", Scalar), ("arguments", Scalar)])),
            ("custom", Keys(&[("name", Scalar), ("input", Scalar)])),
            ("extra_content", Keys(&[("google", Flat)])),
        ])),
    ),
    ("tool_call_id", Scalar),
    // What an answer had and is sent back with: a voice that the provider keeps, what it found.
    ("audio", Null),
    ("annotations", List(&Null)),
    // What a client put aside of the answer, by the names that stand beside it here.
    (
        "provider_specific_fields",
        Keys(&[
            ("refusal", Scalar),
            ("reasoning", Scalar),
            ("reasoning_content", Scalar),
            ("annotations", List(&Null)),
            ("audio", Null),
            ("function_call", Null),
        ]),
    ),
    (
        "function_call",
        Keys(&[("name", Scalar), ("arguments", Scalar)]),
    ),
    ("refusal", Scalar),
    ("reasoning", Scalar),
    ("reasoning_content", Scalar),
    ("reasoning_details", List(&Flat)),
    ("reasoning_opaque", Scalar),
    ("reasoning_text", Scalar),
    ("cache_control", Flat),
    ("prefix", Scalar),
    ("partial", Scalar),
]);

static CHAT_CONTENT: Place = Either(&[Scalar, List(&CHAT_PART)]);

static CHAT_PART: Place = Keys(&[
    (
        "type",
        Word(&[
            "text",
            "image_url",
            "video_url",
            "input_audio",
            "file",
            "refusal",
            "thinking",
        ]),
    ),
    ("text", Scalar),
    ("image_url", At(&PICTURE)),
    ("video_url", At(&PICTURE)),
    (
        "input_audio",
        Keys(&[("data", Encoded), ("format", Scalar)]),
    ),
    ("file", Keys(&[("filename", Scalar), ("file_data", Inline)])),
    ("refusal", Scalar),
    (
        "thinking",
        Either(&[
            Scalar,
            List(&Keys(&[("type", Word(&["text"])), ("text", Scalar)])),
        ]),
    ),
    ("cache_control", Flat),
    ("prompt_cache_breakpoint", Flat),
]);

/// By its URL alone, or with how closely to look at it.
static PICTURE: Place = Either(&[Inline, Keys(&[("url", Inline), ("detail", Scalar)])]);

pub(super) static RESPONSES: Place = Keys(&[
    ("background", Off),
    (
        "client_metadata",
        Keys(&[
            ("root_turn_id", Scalar),
            ("session_id", Scalar),
            ("thread_id", Scalar),
            ("turn_id", Scalar),
            ("x-codex-installation-id", Scalar),
            ("x-codex-parent-thread-id", Scalar),
            ("x-codex-turn-metadata", Scalar),
            ("x-codex-window-id", Scalar),
            ("x-openai-subagent", Scalar),
        ]),
    ),
    (
        "context_management",
        List(&Keys(&[
            ("type", Word(&["compaction"])),
            ("compact_threshold", Scalar),
        ])),
    ),
    ("conversation", Null),
    (
        "include",
        List(&Word(&[
            "reasoning.encrypted_content",
            "message.output_text.logprobs",
        ])),
    ),
    ("input", Either(&[Scalar, List(&ITEM)])),
    ("instructions", Scalar),
    ("max_output_tokens", Scalar),
    ("max_tool_calls", Scalar),
    ("metadata", Keys(&[("user_id", Scalar)])),
    ("model", Scalar),
    ("parallel_tool_calls", Scalar),
    ("previous_response_id", Null),
    ("prompt", Null),
    ("prompt_cache_key", Scalar),
    ("prompt_cache_options", Flat),
    ("prompt_cache_retention", Scalar),
    ("reasoning", Flat),
    ("safety_identifier", Scalar),
    ("service_tier", Word(TIERS)),
    ("store", Off),
    ("stream", Scalar),
    ("stream_options", Flat),
    ("temperature", Scalar),
    ("text", Keys(&[("format", Schema), ("verbosity", Scalar)])),
    (
        "tool_choice",
        Either(&[
            Scalar,
            Keys(&[
                (
                    "type",
                    Word(&[
                        "function",
                        "custom",
                        "allowed_tools",
                        "local_shell",
                        "apply_patch",
                    ]),
                ),
                ("name", Scalar),
                ("mode", Scalar),
                ("tools", List(&TOOL)),
            ]),
        ]),
    ),
    ("tools", List(&TOOL)),
    ("top_logprobs", Scalar),
    ("top_p", Scalar),
    ("truncation", Scalar),
    ("user", Scalar),
]);

/// `shell` is not here: by another of its keys it runs in a container of the provider.
static TOOL: Place = Whole(
    &[&["type"]],
    &[
        (
            "type",
            Kind(&[
                "function",
                "custom",
                "namespace",
                "local_shell",
                "apply_patch",
            ]),
        ),
        ("name", Scalar),
        ("description", Scalar),
        ("parameters", Schema),
        ("output_schema", Schema),
        ("strict", Scalar),
        ("allowed_callers", List(&Word(&["direct"]))),
        ("defer_loading", Scalar),
        ("format", Free),
        ("function", At(&FUNCTION)),
        ("tools", List(&TOOL)),
    ],
);

/// A turn, a call or an answer to one. What refers to something that the provider keeps, or that
/// the provider ran, has no kind here; an id alone would be such a reference. Beside the thing
/// itself it is a label: what the item says stands in it, thoughts in `encrypted_content`.
static ITEM: Place = Whole(
    &[&["type"], &["role", "content"]],
    &[
        (
            "type",
            Word(&[
                "message",
                "reasoning",
                "function_call",
                "function_call_output",
                "custom_tool_call",
                "custom_tool_call_output",
                "local_shell_call",
                "local_shell_call_output",
                "apply_patch_call",
                "apply_patch_call_output",
                "compaction",
            ]),
        ),
        ("id", Scalar),
        ("status", Scalar),
        ("role", Scalar),
        ("phase", Scalar),
        ("content", Either(&[Scalar, List(&PART)])),
        ("summary", List(&PART)),
        ("encrypted_content", Scalar),
        ("name", Scalar),
        ("namespace", Scalar),
        ("arguments", Scalar),
        ("call_id", Scalar),
        ("caller", Keys(&[("type", Word(&["direct"]))])),
        ("input", Scalar),
        ("output", Either(&[Scalar, List(&PART)])),
        (
            "action",
            Keys(&[
                ("type", Word(&["exec"])),
                ("command", List(&Scalar)),
                ("env", Flat),
                ("timeout_ms", Scalar),
                ("user", Scalar),
                ("working_directory", Scalar),
            ]),
        ),
        ("operation", Flat),
    ],
);

static PART: Place = Keys(&[
    (
        "type",
        Word(&[
            "input_text",
            "output_text",
            "summary_text",
            "reasoning_text",
            "text",
            "refusal",
            "input_image",
            "input_file",
        ]),
    ),
    ("text", Scalar),
    ("refusal", Scalar),
    ("image_url", At(&PICTURE)),
    ("detail", Scalar),
    ("filename", Scalar),
    ("file_data", Inline),
    ("file_id", Null),
    ("file_url", Null),
    // Empty: what an answer cites was found by a tool of the provider.
    ("annotations", List(&Null)),
    ("logprobs", List(&Null)),
    ("prompt_cache_breakpoint", Flat),
]);
