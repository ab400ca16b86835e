//! What no file of a row's bundle may hold: the credential of its model, and where that listened.

use super::{Assertion, BundleSeen};

/// Demanded of every row that has such secrets.
pub fn nowhere(secrets: &[String], seen: &BundleSeen) -> Option<Assertion> {
    if secrets.is_empty() {
        return None;
    }
    let holds = |bytes: &[u8]| {
        let found = |secret: &String| memchr::memmem::find(bytes, secret.as_bytes()).is_some();
        secrets.iter().any(found)
    };
    let leak = seen.files.iter().find(|(_, bytes)| holds(bytes));
    Some(Assertion {
        check: "secrets".into(),
        want: "neither the model's key nor its address is in any file".into(),
        holds: leak.is_none(),
        found: leak.map(|(name, _)| format!("{name} holds one")),
    })
}
