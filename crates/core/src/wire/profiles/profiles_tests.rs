//! The table of profiles is whole, and endpoints find theirs.

use super::*;

fn at(url: &str) -> Option<&'static str> {
    profile_of(&Endpoint::parse(url).unwrap()).map(|profile| profile.name)
}

#[test]
fn every_name_has_a_profile_and_every_profile_a_name() {
    let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    assert_eq!(names, Profile::NAMES);
    for profile in PROFILES {
        assert!(!profile.ways.is_empty(), "{}", profile.name);
        assert!(
            profile.hosts.is_empty() == profile.port.is_some(),
            "{}",
            profile.name
        );
        for (_, base) in profile.ways {
            let host = profile
                .hosts
                .first()
                .map_or("127.0.0.1".to_owned(), |host| {
                    if host.starts_with('.') {
                        format!("x{host}")
                    } else {
                        (*host).to_owned()
                    }
                });
            let endpoint = Endpoint::parse(&format!("https://{host}{base}")).unwrap();
            assert_eq!(endpoint.base(), *base);
            // What everybody has is nobody's secret.
            if profile.port.is_none() && !profile.hosts[0].starts_with('.') {
                assert_eq!(
                    endpoint.private_strings(),
                    Vec::<String>::new(),
                    "{}",
                    profile.name
                );
            }
        }
    }
}

#[test]
fn endpoints_find_their_profile() {
    for (url, want) in [
        ("https://api.openai.com/v1", Some("openai")),
        ("https://API.OpenAI.com/v1", Some("openai")),
        ("https://api.anthropic.com", Some("anthropic")),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai",
            Some("google"),
        ),
        ("https://openrouter.ai/api/v1", Some("openrouter")),
        ("https://lab.openai.azure.com/openai/v1", Some("azure")),
        ("http://127.0.0.1:8000/v1", Some("vllm")),
        ("http://localhost:8080/v1", Some("llama-cpp")),
        ("http://[::1]:11434/v1", Some("ollama")),
        ("http://gpu.lan:1234/v1", Some("lm-studio")),
        ("https://gate.corp.example:11434/v1", None),
        ("https://api.openai.com.evil.example/v1", None),
        ("https://evilopenai.azure.com/v1", None),
        ("http://127.0.0.1:9/v1", None),
    ] {
        assert_eq!(at(url), want, "{url}");
    }
}

#[test]
fn a_path_with_and_without_its_version_is_found() {
    for (url, protocol, want) in [
        ("http://127.0.0.1:8000", Protocol::OpenaiChat, Some("/v1")),
        ("http://127.0.0.1:9", Protocol::OpenaiChat, Some("/v1")),
        ("http://127.0.0.1:9/v1", Protocol::OpenaiChat, None),
        (
            "http://127.0.0.1:9/v1/chat/completions",
            Protocol::OpenaiChat,
            Some("/v1"),
        ),
        ("https://api.openai.com", Protocol::OpenaiChat, Some("/v1")),
        (
            "https://openrouter.ai",
            Protocol::OpenaiChat,
            Some("/api/v1"),
        ),
        (
            "https://openrouter.ai/api",
            Protocol::OpenaiChat,
            Some("/api/v1"),
        ),
        (
            "https://api.anthropic.com",
            Protocol::AnthropicMessages,
            None,
        ),
        (
            "https://api.anthropic.com/v1/messages",
            Protocol::AnthropicMessages,
            Some(""),
        ),
        (
            "https://generativelanguage.googleapis.com",
            Protocol::GeminiGenerate,
            Some("/v1beta"),
        ),
    ] {
        let endpoint = Endpoint::parse(url).unwrap();
        let other = other_base(&endpoint, protocol);
        assert_eq!(other.as_ref().map(Endpoint::base), want, "{url}");
        if let Some(other) = other {
            assert_eq!(other.authority(), endpoint.authority(), "the same server");
        }
    }
}

#[test]
fn credentials_stay_at_home_or_go_over_tls() {
    for (url, takes, near) in [
        ("http://127.0.0.1:9/v1", true, true),
        ("http://192.168.0.4:9/v1", false, true),
        ("https://192.168.0.4:9/v1", true, true),
        ("https://api.openai.com/v1", true, false),
    ] {
        let endpoint = Endpoint::parse(url).unwrap();
        assert_eq!(
            (endpoint.takes_credentials(), endpoint.is_near()),
            (takes, near),
            "{url}"
        );
    }
}
