//! The head of a request as the endpoint gets it: our host, our credential, and of the engine's
//! headers only those that may pass.

use std::fmt::Write as _;

use cto_core::wire::Protocol;
use cto_core::wire::http::Headers;
use cto_core::wire::http::headers::passes_up;
use cto_core::wire::http::path::Asked;

use super::Route;

pub fn head(route: &Route, asked: &Asked, from_engine: &Headers, length: u64) -> String {
    let target = asked.upstream_target(route.protocol, route.endpoint.base(), &route.model);
    let mut head = format!(
        "POST {target} HTTP/1.1\r\nhost: {}\r\ncontent-length: {length}\r\n",
        route.endpoint.authority()
    );
    for (name, value) in from_engine.iter().filter(|(name, _)| passes_up(name)) {
        line(&mut head, name, value);
    }
    // What the body was read as, whatever the engine called it.
    line(&mut head, "content-type", "application/json");
    // A compressed answer could not be looked at on its way.
    line(&mut head, "accept-encoding", "identity");
    if let Some(credential) = &route.credential {
        match route.protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses => {
                line(
                    &mut head,
                    "authorization",
                    &format!("Bearer {}", credential.reveal()),
                );
            }
            Protocol::AnthropicMessages => line(&mut head, "x-api-key", credential.reveal()),
            Protocol::GeminiGenerate => line(&mut head, "x-goog-api-key", credential.reveal()),
        }
    }
    head.push_str("\r\n");
    head
}

fn line(head: &mut String, name: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = write!(head, "{name}: {value}\r\n");
}
