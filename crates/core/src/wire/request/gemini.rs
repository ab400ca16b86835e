//! What a request to Gemini's protocol may hold. Its servers read each key in two spellings, and both
//! are the same key here.

use super::media::MEDIA;
use super::place::Place::{
    self, At, Either, Encoded, Flat, Free, Keys, List, Null, One, Scalar, Schema, Tool, Word,
};

pub(super) static GENERATE: Place = Keys(&[
    ("cachedContent", Null),
    ("cached_content", Null),
    ("contents", Either(&[List(&CONTENT), At(&CONTENT)])),
    ("generationConfig", At(&CONFIG)),
    ("generation_config", At(&CONFIG)),
    ("model", Scalar),
    ("safetySettings", List(&Flat)),
    ("safety_settings", List(&Flat)),
    ("systemInstruction", Either(&[Scalar, At(&CONTENT)])),
    ("system_instruction", Either(&[Scalar, At(&CONTENT)])),
    ("toolConfig", At(&TOOL_CONFIG)),
    ("tool_config", At(&TOOL_CONFIG)),
    ("tools", List(&TOOL)),
]);

static CONTENT: Place = Keys(&[
    ("role", Scalar),
    ("parts", Either(&[List(&PART), At(&PART)])),
]);

static PART: Place = Keys(&[
    ("text", Scalar),
    ("thought", Scalar),
    ("thoughtSignature", Scalar),
    ("thought_signature", Scalar),
    ("inlineData", At(&BYTES)),
    ("inline_data", At(&BYTES)),
    ("mediaResolution", Flat),
    ("media_resolution", Flat),
    (
        "functionCall",
        Keys(&[("id", Scalar), ("name", Scalar), ("args", Free)]),
    ),
    (
        "function_call",
        Keys(&[("id", Scalar), ("name", Scalar), ("args", Free)]),
    ),
    ("functionResponse", At(&RESPONSE)),
    ("function_response", At(&RESPONSE)),
]);

static RESPONSE: Place = Keys(&[
    ("id", Scalar),
    ("name", Scalar),
    ("response", Free),
    ("parts", List(&PICTURE)),
    ("scheduling", Scalar),
    ("willContinue", Scalar),
    ("will_continue", Scalar),
]);

static PICTURE: Place = Keys(&[("inlineData", At(&BYTES)), ("inline_data", At(&BYTES))]);

static BYTES: Place = Keys(&[
    ("mimeType", Word(MEDIA)),
    ("mime_type", Word(MEDIA)),
    ("data", Encoded),
    ("displayName", Scalar),
    ("display_name", Scalar),
]);

static TOOL: Place = Tool(&[
    ("functionDeclarations", List(&DECLARATION)),
    ("function_declarations", List(&DECLARATION)),
]);

static DECLARATION: Place = Keys(&[
    ("name", Scalar),
    ("description", Scalar),
    ("behavior", Scalar),
    ("parameters", Schema),
    ("parametersJsonSchema", Schema),
    ("parameters_json_schema", Schema),
    ("response", Schema),
    ("responseJsonSchema", Schema),
    ("response_json_schema", Schema),
]);

static TOOL_CONFIG: Place = Keys(&[
    ("functionCallingConfig", At(&CALLING)),
    ("function_calling_config", At(&CALLING)),
]);

static CALLING: Place = Keys(&[
    ("mode", Scalar),
    ("allowedFunctionNames", List(&Scalar)),
    ("allowed_function_names", List(&Scalar)),
]);

static CONFIG: Place = Keys(&[
    ("audioTimestamp", Scalar),
    ("audio_timestamp", Scalar),
    ("candidateCount", One),
    ("candidate_count", One),
    ("frequencyPenalty", Scalar),
    ("frequency_penalty", Scalar),
    ("logprobs", Scalar),
    ("maxOutputTokens", Scalar),
    ("max_output_tokens", Scalar),
    ("mediaResolution", Scalar),
    ("media_resolution", Scalar),
    ("presencePenalty", Scalar),
    ("presence_penalty", Scalar),
    ("responseJsonSchema", Schema),
    ("response_json_schema", Schema),
    ("responseLogprobs", Scalar),
    ("response_logprobs", Scalar),
    ("responseMimeType", Scalar),
    ("response_mime_type", Scalar),
    ("responseModalities", List(&Word(&["TEXT"]))),
    ("response_modalities", List(&Word(&["TEXT"]))),
    ("responseSchema", Schema),
    ("response_schema", Schema),
    ("seed", Scalar),
    ("stopSequences", List(&Scalar)),
    ("stop_sequences", List(&Scalar)),
    ("temperature", Scalar),
    ("thinkingConfig", Flat),
    ("thinking_config", Flat),
    ("topK", Scalar),
    ("top_k", Scalar),
    ("topP", Scalar),
    ("top_p", Scalar),
]);
