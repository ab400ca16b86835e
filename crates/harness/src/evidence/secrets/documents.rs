//! Secrets in documents of our own: what others decoded from what somebody else wrote. Their strings are cleaned where
//! they are recorded, and the words of their shape stay.

use serde_json::Value as Json;

use super::{Hits, Secrets};

/// Whose words a document holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quoted {
    /// Those of an engine or a model: everything is looked for.
    Others,
    /// Our own: the credential, and what is private of the endpoint. What a variable's name only hints at could be a
    /// name that the contract says too.
    Ourselves,
    /// Names of the repository's, which may speak of the endpoint itself: the credential.
    Repository,
}

impl Secrets {
    /// What is looked for in such a document. Paths of this host have their own way there.
    pub fn of_documents(&self, quoted: Quoted) -> Self {
        let (known, private) = match quoted {
            Quoted::Others => (self.known.clone(), self.private.clone()),
            Quoted::Ourselves => (self.known.certain(), self.private.certain()),
            Quoted::Repository => (self.known.certain(), super::Values::new(true)),
        };
        Self {
            known,
            private,
            values_only: quoted != Quoted::Others,
            names: super::HostNames::default(),
        }
    }

    /// Has it nothing to look for but shapes?
    pub fn knows_nothing(&self) -> bool {
        self.known.is_empty() && self.private.is_empty()
    }

    /// Cleans every string of a document; says what was found.
    pub fn clean(&self, document: &mut Json) -> Hits {
        match document {
            Json::String(text) => {
                let (clean, hits) = self.redact(text.as_bytes());
                if hits.total() > 0 {
                    *text = String::from_utf8_lossy(&clean).into_owned();
                }
                hits
            }
            Json::Array(items) => items
                .iter_mut()
                .fold(Hits::default(), |all, item| all.and(self.clean(item))),
            Json::Object(map) => map
                .values_mut()
                .fold(Hits::default(), |all, item| all.and(self.clean(item))),
            Json::Null | Json::Bool(_) | Json::Number(_) => Hits::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cto_core::wire::endpoint::Endpoint;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_string_is_cleaned_as_far_as_its_speaker_could_mean_it() {
        let mut secrets = Secrets::default();
        secrets.add_credentials([b"hunter2".to_vec()]);
        secrets.add([b"my-project-key-1".to_vec()]);
        secrets.add_private(&Endpoint::parse("https://gate.corp.example/v1").unwrap());
        let said = json!({"a": ["hunter2", 1], "b": {"c": "my-project-key-1", "d": "at Gate.corp.example"}});
        let (known, mark) = ("my-project-key-1", "[redacted:known-value]");
        let (host, hidden) = ("at Gate.corp.example", "at [redacted:endpoint]");
        for (quoted, c, d, found) in [
            (Quoted::Others, mark, hidden, (2, 1)),
            (Quoted::Ourselves, known, hidden, (1, 1)),
            (Quoted::Repository, known, host, (1, 0)),
        ] {
            let mut document = said.clone();
            let hits = secrets.of_documents(quoted).clean(&mut document);
            assert_eq!(
                document,
                json!({"a": [mark, 1], "b": {"c": c, "d": d}}),
                "{quoted:?}"
            );
            assert_eq!((hits.known, hits.private), found, "{quoted:?}");
        }
    }
}
