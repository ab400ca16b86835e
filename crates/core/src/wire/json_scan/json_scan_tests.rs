use super::*;
use proptest::prelude::*;

type Found = Vec<(String, String)>;

fn run(rigour: Rigour, pieces: &[&[u8]]) -> Result<Found, Fault> {
    let mut found = Vec::new();
    let mut scanner = Scanner::new(rigour);
    let mut see =
        |path: &str, value: Value<'_>| found.push((path.to_owned(), format!("{value:?}")));
    for piece in pieces {
        scanner.push(piece, &mut see)?;
    }
    scanner.finish(&mut see)?;
    Ok(found)
}

fn texts(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut scanner = Scanner::new(Rigour::Strict);
    let mut see = |path: &str, value: Value<'_>| {
        if let Some(text) = value.text() {
            found.push((path.to_owned(), text.to_owned()));
        }
    };
    scanner.push(text.as_bytes(), &mut see).unwrap();
    scanner.finish(&mut see).unwrap();
    found
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
        .collect()
}

#[test]
fn paths_lead_to_their_values() {
    let text = r#" {"a": "x", "b": [{"c": "y"}, "z", ["w"]], "d": {"e": {}}, "f": "v"} "#;
    assert_eq!(
        texts(text),
        pairs(&[
            ("a", "x"),
            ("b.*.c", "y"),
            ("b.*", "z"),
            ("b.*.*", "w"),
            ("f", "v")
        ])
    );
    assert_eq!(
        texts(r#"{"\u006dodel":"\u0061\ud83d\ude00\n"}"#),
        pairs(&[("model", "a\u{1f600}\n")])
    );
    assert_eq!(
        texts(r#"{"a.b":"1","*":"2","":"3","x":"4"}"#),
        pairs(&[("?", "1"), ("?", "2"), ("?", "3"), ("x", "4")])
    );
    assert_eq!(
        texts(r#"[{"m":"1"},{"m":"2"}]"#),
        pairs(&[("*.m", "1"), ("*.m", "2")])
    );
    assert_eq!(texts("\"top\""), pairs(&[("", "top")]));
}

#[test]
fn what_is_not_json_is_refused() {
    for bad in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "[1 2]",
        "{} {}",
        "{}x",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "--1",
        "tru",
        "nulll",
        "NaN",
        "\"\u{1}\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"a",
        "[}",
        "{]",
        "{\"a\":1 \"b\":2}",
        "[,1]",
        "\u{feff}{}",
    ] {
        assert_eq!(
            run(Rigour::Strict, &[bad.as_bytes()]),
            Err(Fault::Syntax),
            "{bad:?}"
        );
    }
    assert_eq!(run(Rigour::Strict, &[b"\"\xff\""]), Err(Fault::Syntax));
    assert_eq!(run(Rigour::Strict, &[b"\"\xc3"]), Err(Fault::Syntax));
    assert_eq!(
        run(Rigour::Strict, &[br#"{"a":1,"\u0061":2}"#]),
        Err(Fault::DuplicateKey)
    );
    assert!(run(Rigour::Plain, &[br#"{"a":1,"a":2}"#]).is_ok());
    assert_eq!(run(Rigour::Strict, &[br#""\ud800x""#]), Err(Fault::Syntax));
    assert_eq!(run(Rigour::Strict, &[br#""\udc00""#]), Err(Fault::Syntax));
    assert!(run(Rigour::Plain, &[br#""\ud800x\udc00""#]).is_ok());
    assert_eq!(
        run(Rigour::Plain, &["[".repeat(200).as_bytes()]),
        Err(Fault::Depth)
    );
    let many: String = (0..2000).map(|n| format!("\"{n}\":1,")).collect();
    assert_eq!(
        run(Rigour::Strict, &[format!("{{{many}\"x\":1}}").as_bytes()]),
        Err(Fault::TooManyKeys)
    );
}

#[test]
fn long_texts_are_shown_by_their_beginning() {
    let long = format!("{{\"k\":\"{}\"}}", "é".repeat(100_000));
    let mut seen = None;
    let mut scanner = Scanner::new(Rigour::Plain);
    scanner
        .push(long.as_bytes(), &mut |_, value| {
            if let Value::Text { text, whole } = value {
                seen = Some((text.len(), whole));
            }
        })
        .unwrap();
    assert!(scanner.is_whole());
    assert_eq!(seen, Some((KEPT, false)));
    assert!(scanner.kept.capacity() <= 2 * KEPT);
    scanner.reset();
    assert!(scanner.is_fresh());
}

fn documents() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        ".{0,20}".prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(".{0,6}", inner, 0..6)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn every_cut_sees_the_same(document in documents(), cut in 1usize..9) {
        let text = serde_json::to_vec(&document).unwrap();
        let whole = run(Rigour::Strict, &[&text]);
        prop_assert!(whole.is_ok(), "{:?}", String::from_utf8_lossy(&text));
        prop_assert_eq!(run(Rigour::Strict, &text.chunks(cut).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn it_agrees_with_another_reader(text in "[\\[\\]{}:,\"a1\\\\un0. eE+-]{0,30}") {
        let other = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(run(Rigour::Plain, &[text.as_bytes()]).is_ok(), other, "{}", text);
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = run(Rigour::Plain, &[&bytes]);
        let _ = run(Rigour::Strict, &bytes.chunks(1).collect::<Vec<_>>());
    }
}

/// What another reader finds in a document, in the words of the scanner.
fn walk(path: &str, value: &serde_json::Value, found: &mut Found) {
    let shown = |value: Value<'_>| format!("{value:?}");
    let below = |part: &str| match path {
        "" => part.to_owned(),
        _ => format!("{path}.{part}"),
    };
    let mut tell = |value: Value<'_>| found.push((path.to_owned(), shown(value)));
    match value {
        serde_json::Value::Null => tell(Value::Null),
        serde_json::Value::Bool(value) => tell(Value::Bool(*value)),
        serde_json::Value::Number(number) => tell(Value::Number(&number.to_string())),
        serde_json::Value::String(text) => tell(Value::Text { text, whole: true }),
        serde_json::Value::Array(items) => {
            tell(Value::ArrayBegins);
            for item in items {
                walk(&below("*"), item, found);
            }
            found.push((path.to_owned(), shown(Value::ArrayEnds)));
        }
        serde_json::Value::Object(map) => {
            tell(Value::ObjectBegins);
            for (key, item) in map {
                let odd = key.is_empty() || key.contains(['.', '*', '?']);
                walk(&below(if odd { ODD_KEY } else { key }), item, found);
            }
            found.push((path.to_owned(), shown(Value::ObjectEnds)));
        }
    }
}

/// The same document with space between its tokens, and letters of its texts as escapes.
fn respelled(text: &str, space: &str, escape_every: usize) -> String {
    let mut out = String::new();
    let (mut in_text, mut after_backslash, mut hex_digits) = (false, false, 0);
    for (at, c) in text.chars().enumerate() {
        let is_plain = in_text && !after_backslash && hex_digits == 0 && c != '"' && c != '\\';
        hex_digits = match (after_backslash, c) {
            (true, 'u') => 4,
            _ => i32::max(hex_digits - 1, 0),
        };
        match c {
            _ if is_plain && at % escape_every == 0 => {
                let mut units = [0u16; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            '{' | '[' | ']' | '}' | ',' | ':' if !in_text => {
                out.push_str(space);
                out.push(c);
                out.push_str(space);
            }
            _ => out.push(c),
        }
        if c == '"' && !after_backslash {
            in_text = !in_text;
        }
        after_backslash = in_text && c == '\\' && !after_backslash;
    }
    out
}

/// Replaces, inserts or deletes one character.
fn mutated(text: &str, at: usize, what: char, how: u8) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let at = at % (letters.len() + 1);
    match how % 3 {
        0 if at < letters.len() => letters[at] = what,
        1 if at < letters.len() => drop(letters.remove(at)),
        _ => letters.insert(at, what),
    }
    letters.into_iter().collect()
}

proptest! {
    #[test]
    fn it_finds_what_another_reader_finds(
        document in documents(),
        space in "[ \\t\\r\\n]{0,2}",
        escape_every in 1usize..5,
        cut in 1usize..9,
    ) {
        let plain = serde_json::to_string(&document).unwrap();
        let text = respelled(&plain, &space, escape_every);
        let again: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut want = Vec::new();
        // Not what was read again: the last digit of a float may differ.
        walk("", &document, &mut want);
        prop_assert_eq!(&again, &serde_json::from_str::<serde_json::Value>(&plain).unwrap());
        let got = run(Rigour::Strict, &text.as_bytes().chunks(cut).collect::<Vec<_>>());
        prop_assert_eq!(got, Ok(want), "{}", text);
    }

    /// One wrong character anywhere in a real document: both readers take it, or neither does.
    #[test]
    fn it_agrees_with_another_reader_about_damaged_documents(
        document in documents(),
        at in any::<usize>(),
        what in prop_oneof![
            proptest::sample::select("{}[]:,\"\\/u0123456789eE+-.tfn \t\n\u{0}\u{b}\u{a0}".chars().collect::<Vec<_>>()),
            any::<char>(),
        ],
        how in any::<u8>(),
    ) {
        let text = mutated(&serde_json::to_string(&document).unwrap(), at, what, how);
        let other = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(run(Rigour::Plain, &[text.as_bytes()]).is_ok(), other, "{}", text);
        let strict = run(Rigour::Strict, &[text.as_bytes()]);
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(value) => {
                let mut want = Vec::new();
                walk("", &value, &mut want);
                let is_same = strict.as_ref().is_ok_and(|found| found.len() == want.len());
                prop_assert!(is_same || strict == Err(Fault::DuplicateKey), "{}", text);
            }
            // A number may be too large for the other reader; the scanner keeps its digits.
            Err(error) if error.to_string().contains("out of range") => {}
            Err(_) => prop_assert!(strict.is_err(), "{}", text),
        }
    }

    /// Bytes that are not UTF-8 are not JSON, wherever they stand.
    #[test]
    fn bytes_that_are_no_text_are_refused(document in documents(), at in any::<usize>(), byte in 0x80u8..) {
        let mut bytes = serde_json::to_vec(&document).unwrap();
        let at = at % (bytes.len() + 1);
        bytes.insert(at, byte);
        let is_text = std::str::from_utf8(&bytes).is_ok();
        let other = is_text && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
        prop_assert_eq!(run(Rigour::Plain, &[&bytes]).is_ok(), other);
        prop_assert_eq!(run(Rigour::Plain, &bytes.chunks(1).collect::<Vec<_>>()).is_ok(), other);
    }
}
