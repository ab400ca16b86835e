//! What a request to Anthropic's protocol may hold.

use super::media::MEDIA;
use super::place::Place::{
    self, At, Either, EncodedUnless, Flat, Free, Keys, Kind, List, Null, Off, Scalar, Schema, Word,
};

pub(super) static MESSAGES: Place = Keys(&[
    ("background", Off),
    ("cache_control", Flat),
    ("container", Null),
    (
        "context_management",
        Keys(&[(
            "edits",
            List(&Keys(&[
                (
                    "type",
                    Word(&[
                        "clear_tool_uses_20250919",
                        "clear_thinking_20251015",
                        "compact_20260112",
                    ]),
                ),
                ("clear_at_least", Flat),
                ("clear_tool_inputs", Either(&[Scalar, List(&Scalar)])),
                ("exclude_tools", List(&Scalar)),
                ("instructions", Scalar),
                ("keep", Either(&[Scalar, Flat])),
                ("pause_after_compaction", Scalar),
                ("trigger", Flat),
            ])),
        )]),
    ),
    ("max_tokens", Scalar),
    (
        "messages",
        List(&Keys(&[("role", Scalar), ("content", At(&CONTENT))])),
    ),
    ("metadata", Keys(&[("user_id", Scalar)])),
    ("model", Scalar),
    (
        "output_config",
        Keys(&[
            ("effort", Scalar),
            ("format", Schema),
            ("task_budget", Flat),
        ]),
    ),
    ("output_format", Schema),
    ("service_tier", Word(&["auto", "default", "standard_only"])),
    ("speed", Word(&["standard"])),
    ("stop_sequences", List(&Scalar)),
    ("store", Off),
    ("stream", Scalar),
    ("system", At(&CONTENT)),
    ("temperature", Scalar),
    ("thinking", Flat),
    (
        "tool_choice",
        Keys(&[
            ("type", Word(&["auto", "any", "tool", "none"])),
            ("name", Scalar),
            ("disable_parallel_tool_use", Scalar),
        ]),
    ),
    ("tools", List(&TOOL)),
    ("top_k", Scalar),
    ("top_p", Scalar),
]);

static CONTENT: Place = Either(&[Scalar, List(&BLOCK)]);

static BLOCK: Place = Keys(&[
    (
        "type",
        Word(&[
            "text",
            "image",
            "document",
            "thinking",
            "redacted_thinking",
            "tool_use",
            "tool_result",
            "tool_reference",
            "compaction",
        ]),
    ),
    ("text", Scalar),
    ("cache_control", Flat),
    ("caller", Keys(&[("type", Word(&["direct"]))])),
    (
        "citations",
        Either(&[Keys(&[("enabled", Scalar)]), List(&Null)]),
    ),
    ("content", At(&CONTENT)),
    ("context", Scalar),
    ("data", Scalar),
    ("encrypted_content", Scalar),
    ("id", Scalar),
    ("input", Free),
    ("is_error", Scalar),
    ("name", Scalar),
    ("signature", Scalar),
    (
        "source",
        Keys(&[
            ("type", Word(&["base64", "text", "content"])),
            ("media_type", Word(MEDIA)),
            ("data", EncodedUnless("text")),
            ("content", At(&CONTENT)),
        ]),
    ),
    ("thinking", Scalar),
    ("title", Scalar),
    ("tool_name", Scalar),
    ("tool_use_id", Scalar),
]);

static TOOL: Place = Keys(&[
    (
        "type",
        Kind(&[
            "custom",
            "bash_20241022",
            "bash_20250124",
            "text_editor_20241022",
            "text_editor_20250124",
            "text_editor_20250429",
            "text_editor_20250728",
            "computer_20241022",
            "computer_20250124",
            "computer_20251124",
            "memory_20250818",
        ]),
    ),
    ("name", Scalar),
    ("description", Scalar),
    ("input_schema", Schema),
    ("input_examples", List(&Free)),
    ("allowed_callers", List(&Word(&["direct"]))),
    ("cache_control", Flat),
    ("defer_loading", Scalar),
    ("display_height_px", Scalar),
    ("display_number", Scalar),
    ("display_width_px", Scalar),
    ("eager_input_streaming", Scalar),
    ("enable_zoom", Scalar),
    ("max_characters", Scalar),
    ("strict", Scalar),
]);
