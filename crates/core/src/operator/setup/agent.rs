//! The agent's own configuration, as far as it is read: base URL, protocol and names of models.
//! Everything else in it, keys above all, is passed over unread. What is found is offered and
//! decides nothing.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::answers::TypedUrl;
use crate::engine::manifest::Dialect;
use crate::records::is_name;

/// A larger file is not somebody's list of models.
pub const MAX_FILE: u64 = 256 << 10;
const MAX_PROVIDERS: usize = 16;
const MAX_MODELS: usize = 64;

/// One endpoint that the agent was told of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// What the agent's configuration calls it.
    pub name: String,
    pub url: TypedUrl,
    /// In the agent's own words.
    pub protocol: Option<String>,
    pub models: Vec<String>,
}

#[derive(Deserialize)]
struct PiFile {
    #[serde(default)]
    providers: std::collections::BTreeMap<String, PiProvider>,
}

/// Fields that are not named here are skipped by the reader: their values are never held.
#[derive(Deserialize)]
struct PiProvider {
    #[serde(rename = "baseUrl")]
    base_url: Option<String>,
    api: Option<String>,
    #[serde(default)]
    models: Vec<PiModel>,
    #[serde(rename = "apiKey")]
    _key: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct PiModel {
    id: String,
}

/// What may be offered of the file. A file that is not as expected offers nothing.
pub fn read(dialect: Dialect, bytes: &[u8]) -> Vec<Known> {
    if bytes.len() as u64 > MAX_FILE {
        return Vec::new();
    }
    match dialect {
        Dialect::Pi => serde_json::from_slice::<PiFile>(bytes).map_or_else(|_| Vec::new(), known),
        // Nobody has looked at what these keep of their own.
        Dialect::Fake
        | Dialect::Codex
        | Dialect::Opencode
        | Dialect::Case
        | Dialect::Plain
        | Dialect::Acp => Vec::new(),
    }
}

fn known(file: PiFile) -> Vec<Known> {
    let providers = file.providers.into_iter().take(MAX_PROVIDERS);
    providers
        .filter(|(name, _)| is_name(name))
        .filter_map(|(name, provider)| {
            let names = provider.models.into_iter().map(|model| model.id);
            Some(Known {
                name,
                // One that could not be used anyway, or that carries a credential, is no offer.
                url: TypedUrl::read(&provider.base_url?).ok()?,
                protocol: provider.api.filter(|api| is_name(api)),
                models: names.filter(|id| is_name(id)).take(MAX_MODELS).collect(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_things_are_read_and_the_rest_is_not_even_held() {
        let file = br#"{"providers": {
            "mine": {"baseUrl": "http://127.0.0.1:8000/v1", "api": "openai-completions", "apiKey": "hidden-word",
                     "headers": {"x": "hidden-word"}, "models": [{"id": "a/b", "key": "hidden-word"}, {"id": "two words"}]},
            "creds": {"baseUrl": "https://u:hidden-word@example.com/v1", "models": []},
            "built-in": {"apiKey": "hidden-word"}}}"#;
        let found = read(Dialect::Pi, file);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), &found[0].models[..]),
            ("mine", &["a/b".to_owned()][..])
        );
        assert_eq!(found[0].protocol.as_deref(), Some("openai-completions"));
        assert!(!format!("{found:?}").contains("hidden"));
    }

    #[test]
    fn a_file_of_another_shape_offers_nothing() {
        for bad in [
            "",
            "[]",
            "{\"providers\": []}",
            "{\"providers\": {\"a\": {\"baseUrl\": 1}}}",
            "// x\n{}",
        ] {
            assert_eq!(read(Dialect::Pi, bad.as_bytes()), [], "{bad}");
        }
        let huge = vec![b' '; MAX_FILE as usize + 1];
        assert_eq!(read(Dialect::Pi, &huge), []);
        assert_eq!(read(Dialect::Fake, br#"{"providers": {}}"#), []);
    }
}
