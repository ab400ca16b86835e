//! References in the schema of a tool or of an answer. A schema is the engine's own words, but a
//! server that checks answers by it resolves what it refers to, and would fetch what is elsewhere.

use super::folded;
use crate::wire::json_scan::Value;

/// Keys whose text names another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicref", "$recursiveref"];
/// The one that names the dialect. It only tells one from another: but by an address, and some
/// readers fetch a dialect that they do not know. These they all know.
const DIALECT: &str = "$schema";
const DIALECTS: [&str; 9] = [
    "json-schema.org/schema",
    "json-schema.org/draft-03/schema",
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-05/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/next/schema",
];

/// Does a text of a schema, under this key, point to nothing outside of the request? What is no
/// text points nowhere: then the key is the name of a property.
pub(super) fn stays_inside(key: &str, value: &Value<'_>) -> bool {
    let Value::Text { text, whole } = value else {
        return true;
    };
    match folded(key).as_str() {
        name if REFERENCES.contains(&name) => text.starts_with('#'),
        DIALECT => {
            let bare = text.strip_suffix('#').unwrap_or(text);
            let address = ["http://", "https://"]
                .iter()
                .find_map(|scheme| bare.strip_prefix(scheme));
            *whole && address.is_some_and(|address| DIALECTS.contains(&address))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stays(key: &str, text: &str) -> bool {
        stays_inside(key, &Value::Text { text, whole: true })
    }

    #[test]
    fn only_what_is_here_is_referred_to() {
        for (key, text) in [
            ("$ref", "#/$defs/item"),
            ("$ref", "#"),
            ("$dynamicRef", "#node"),
            ("$recursiveRef", "#"),
            ("$schema", "http://json-schema.org/draft-07/schema#"),
            ("$schema", "https://json-schema.org/draft/2020-12/schema"),
            ("$id", "https://a.example/x"),
            ("description", "https://a.example/x"),
        ] {
            assert!(stays(key, text), "{key} {text}");
        }
        for (key, text) in [
            ("$ref", "https://a.example/x"),
            ("$ref", "//a.example/x"),
            ("$ref", "x.json#/a"),
            ("$ref", " #/a"),
            ("$ref", ""),
            ("$Ref", "https://a.example/x"),
            ("$DYNAMICREF", "file:///x"),
            ("$dynamicRef", "https://a.example#x"),
            ("$recursiveRef", "x"),
            ("$schema", "https://a.example/x"),
            ("$schema", "https://json-schema.org.a.example/schema"),
            ("$schema", "https://json-schema.org/draft-07/schema?x=y"),
            ("$\u{17f}chema", "https://a.example/x"),
        ] {
            assert!(!stays(key, text), "{key} {text}");
        }
        assert!(stays_inside("$ref", &Value::ObjectBegins));
    }
}
