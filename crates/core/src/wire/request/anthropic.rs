//! What a request to Anthropic's protocol may hold.

use super::media::MEDIA;
use super::place::Place::{
    self, At, Either, Encoded, Flat, Free, Keys, Kind, List, Null, Off, Scalar, Word,
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
                    Word(&["clear_tool_uses_20250919", "clear_thinking_20251015"]),
                ),
                ("clear_at_least", Flat),
                ("clear_tool_inputs", Either(&[Scalar, List(&Scalar)])),
                ("exclude_tools", List(&Scalar)),
                ("keep", Either(&[Scalar, Flat])),
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
        Keys(&[("effort", Scalar), ("format", Free)]),
    ),
    ("output_format", Free),
    ("service_tier", Word(&["auto", "default", "standard_only"])),
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
    ("id", Scalar),
    ("input", Free),
    ("is_error", Scalar),
    ("name", Scalar),
    ("signature", Scalar),
    (
        "source",
        Keys(&[
            ("type", Word(&["base64"])),
            ("media_type", Word(MEDIA)),
            ("data", Encoded),
        ]),
    ),
    ("thinking", Scalar),
    ("title", Scalar),
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
    ("input_schema", Free),
    ("input_examples", List(&Free)),
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
