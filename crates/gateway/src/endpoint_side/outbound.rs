//! The head of a request as the endpoint gets it: our host, our credential, and of the engine's
//! headers only those that may pass.

use std::fmt::Write as _;

use cto_core::wire::Protocol;
use cto_core::wire::http::Headers;
use cto_core::wire::http::headers::passes_up;
use cto_core::wire::http::path::Asked;
use cto_core::wire::profiles::{Auth, model_list};

use crate::Route;

pub fn head(route: &Route, asked: &Asked, from_engine: &Headers, length: u64) -> String {
    let target = with_version(
        route,
        asked.upstream_target(route.protocol, route.endpoint.base(), &route.model),
    );
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
    ours(&mut head, route);
    head
}

/// The head of the question which models there are.
pub fn list_head(route: &Route) -> String {
    let target = with_version(
        route,
        model_list::target(route.protocol, route.endpoint.base()),
    );
    let mut head = format!(
        "GET {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
        route.endpoint.authority()
    );
    line(&mut head, "accept", "application/json");
    line(&mut head, "user-agent", "cto");
    line(&mut head, "accept-encoding", "identity");
    if route.protocol == Protocol::AnthropicMessages {
        line(&mut head, "anthropic-version", "2023-06-01");
    }
    ours(&mut head, route);
    head
}

/// What only the gateway writes: the credential and the operator's own headers, then the end.
fn ours(head: &mut String, route: &Route) {
    for (name, value) in &route.headers {
        line(head, name, value.reveal());
    }
    // Never in the clear beyond this machine, whoever made the route.
    let credential = route
        .credential
        .as_ref()
        .filter(|_| route.endpoint.takes_credentials());
    if let Some(credential) = credential {
        let bearer = format!("Bearer {}", credential.reveal());
        match (route.auth, route.protocol) {
            (Auth::ApiKey, _) => line(head, "api-key", credential.reveal()),
            (Auth::Usual, Protocol::OpenaiChat | Protocol::OpenaiResponses) => {
                line(head, "authorization", &bearer);
            }
            (Auth::Usual, Protocol::AnthropicMessages) => {
                line(head, "x-api-key", credential.reveal());
            }
            (Auth::Usual, Protocol::GeminiGenerate) => {
                line(head, "x-goog-api-key", credential.reveal());
            }
        }
    }
    head.push_str("\r\n");
}

fn with_version(route: &Route, target: String) -> String {
    match &route.api_version {
        None => target,
        Some(version) => {
            let joint = if target.contains('?') { '&' } else { '?' };
            format!("{target}{joint}api-version={version}")
        }
    }
}

fn line(head: &mut String, name: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = write!(head, "{name}: {value}\r\n");
}
