//! No value passes, in no spelling and over no cut; every other byte does.

use super::*;
use proptest::prelude::*;

const KEY: &str = "key-of-the/operator-0123";

fn needles() -> Needles {
    Needles::exact([KEY.as_bytes()])
}

/// What passes of pieces, and whether the value was found.
fn passed(pieces: &[&[u8]]) -> (Vec<u8>, bool) {
    let needles = needles();
    let mut watch = Watch::new(&needles);
    let mut out = Vec::new();
    for piece in pieces {
        if watch.push(piece, &mut out) {
            return (out, true);
        }
    }
    let found = watch.finish(&mut out);
    (out, found)
}

/// Every letter as an escape of JSON.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\u{byte:04x}")).collect()
}

fn event(key: &str, text: &str) -> String {
    format!("data: {{\"choices\":[{{\"{key}\": \"{text}\"}}]}}\n\n")
}

#[test]
fn lines_do_not_wait() {
    let needles = needles();
    let mut watch = Watch::new(&needles);
    let mut out = Vec::new();
    watch.push(b"data: {}\n\n", &mut out);
    assert_eq!(out, b"data: {}\n\n");
    watch.push(b"a ke", &mut out);
    assert_eq!(out, b"data: {}\n\na ");
    watch.push(b"z", &mut out);
    assert_eq!(out, b"data: {}\n\na kez");
    // A few letters of it at the end of an event do not make the event wait.
    let words = event("content", "a key");
    watch.push(words.as_bytes(), &mut out);
    assert!(out.ends_with(words.as_bytes()));
    let more = event("content", "board, key-of");
    watch.push(more.as_bytes(), &mut out);
    assert!(!out.ends_with(more.as_bytes()), "these letters wait");
    let last = event("content", " the house");
    watch.push(last.as_bytes(), &mut out);
    assert!(out.ends_with(format!("{more}{last}").as_bytes()));
}

#[test]
fn every_spelling_is_found() {
    let in_json = KEY.replace('/', "\\/");
    let twice = in_json.replace('\\', "\\\\");
    for text in [
        KEY.to_owned(),
        format!("{{\"error\":\"{in_json}\"}}"),
        format!("{{\"arguments\":\"{{\\\"a\\\":\\\"{twice}\\\"}}\"}}"),
        format!("{{\"a\":\"{}\"}}", escaped(KEY)),
        format!("{{\"a\":[\"{}\"]}}", escaped(KEY)),
        format!("{{\"{}\":1}}", escaped(KEY)),
        "x=key-of-the%2Foperator-0123".to_owned(),
        "a2V5LW9mLXRoZS9vcGVyYXRvci0wMTIz".to_owned(),
    ] {
        assert!(passed(&[text.as_bytes()]).1, "{text}");
    }
    for text in [
        "key-of-the/operator-012",
        "KEY-OF-THE/OPERATOR-0123",
        "key-of-the operator",
    ] {
        assert_eq!(
            passed(&[text.as_bytes()]),
            (text.as_bytes().to_vec(), false)
        );
    }
}

#[test]
fn a_value_in_pieces_of_a_text_is_found() {
    for size in 1..KEY.len() {
        for (key, spell) in [
            ("content", false),
            ("text", true),
            ("partial_json", false),
            ("delta", true),
        ] {
            let events: Vec<String> = KEY
                .as_bytes()
                .chunks(size)
                .map(|piece| {
                    let piece = String::from_utf8_lossy(piece).into_owned();
                    event(key, &if spell { escaped(&piece) } else { piece })
                })
                .collect();
            let pieces: Vec<&[u8]> = events.iter().map(|event| event.as_bytes()).collect();
            let (out, found) = passed(&pieces);
            assert!(found, "in pieces of {size}");
            let seen = String::from_utf8(out).unwrap().matches("}\n\n").count();
            assert!(seen * size <= TOLD, "{seen} events of {size} letters");
        }
    }
    // What waits for the rest of a value does not wait for ever.
    let long = event("other", &"x".repeat(MAX_WAITING));
    let (out, found) = passed(&[event("content", "key-of-the").as_bytes(), long.as_bytes()]);
    assert!(!found && out.len() > long.len());
}

proptest! {
    /// Whatever comes, in whatever pieces: without the value every byte passes as it is, and with
    /// it none from where it begins.
    #[test]
    fn no_cut_lets_a_value_through(before in "[a-z {}\":,\\\\\n-]{0,60}|(key-of-|k|ke|data: ){0,9}", after in "[a-z\n\"]{0,20}", has in any::<bool>(), cuts in proptest::collection::vec(1usize..9, 1..6)) {
        let text = format!("{before}{}{after}", if has { KEY } else { "" });
        let mut pieces = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (head, tail) = rest.split_at((*cut).min(rest.len()));
            pieces.push(head);
            rest = tail;
        }
        let (out, found) = passed(&pieces);
        prop_assert_eq!(found, has, "{}", text);
        if has {
            prop_assert!(before.as_bytes().starts_with(&out));
        } else {
            prop_assert_eq!(out, text.as_bytes());
        }
    }
}

/// How one letter or a few of a text come in an answer: the shape of an event, with the key, the
/// index and the piece put in.
const SHAPES: [&str; 12] = [
    r#"{"id":"c","model":"lab-1","choices":[{"index":IX,"delta":{"KEY":"PIECE"}}]}"#,
    // The index comes after what it counts.
    r#"{"choices":[{"delta":{"KEY":"PIECE"},"finish_reason":null,"index":IX}],"id":"c"}"#,
    r#"{"choices":[{"delta":{"tool_calls":[{"index":IX,"function":{"KEY":"PIECE"}}]},"index":0}]}"#,
    r#"{"choices":[{"index":IX.0,"delta":{"role":"assistant","KEY" : "PIECE"}}]}"#,
    r#"{"type":"content_block_delta","index":IX,"delta":{"type":"text_delta","KEY":"PIECE"}}"#,
    r#"{"type":"response.output_text.delta","item_id":"m","output_index":IX,"content_index":0,"KEY":"PIECE","obfuscation":"xyz"}"#,
    r#"{"KEY":"PIECE","content_index":0,"output_index":IX,"type":"response.output_text.delta"}"#,
    r#"{"candidates":[{"content":{"parts":[{"KEY":"PIECE"}],"role":"model"},"index":"IX"}]}"#,
    r#"{"choices":[{"index":IX,"logprobs":{"KEY":["PIECE"]}}]}"#,
    "{\"choices\":[{\"index\":IX,\ndata: \"delta\":{\"KEY\"\ndata: :\ndata: \"PIECE\"}}]}",
    r#"{"choices":[{"index":1e99,"delta":{"KEY":"q"}},{"index":IX,"delta":{"KEY":"PIECE"}}]}"#,
    r#"{"list":[{"deep":[[{"KEY":"PIECE","no_key":{"index":9}}]],"index":IX}]}"#,
];

/// One way to cut and write a text: which shape, key, spelling, line end, and how much is between.
#[derive(Debug, Clone)]
struct Written {
    shape: usize,
    key: String,
    index: u8,
    sizes: Vec<usize>,
    escape: u8,
    line_end: usize,
    between: Vec<u8>,
    others: usize,
}

fn a_writing() -> impl Strategy<Value = Written> {
    let key = prop_oneof![
        Just("content".to_owned()),
        Just("arguments".to_owned()),
        Just("delta".to_owned()),
        "[a-z]{1,6}",
        Just("é".to_owned()),
    ];
    let rest = (
        any::<u8>(),
        0usize..3,
        proptest::collection::vec(0u8..7, 0..4),
        0usize..50,
    );
    let sizes = proptest::collection::vec(1usize..9, 1..5);
    (0..SHAPES.len(), key, 0u8..4, sizes, rest).prop_map(
        |(shape, key, index, sizes, (escape, line_end, between, others))| Written {
            shape,
            key,
            index,
            sizes,
            escape,
            line_end,
            between,
            others,
        },
    )
}

impl Written {
    fn event(&self, key: &str, index: u8, piece: &str, odd: bool) -> String {
        let spelled = if odd && self.escape & 1 == 1 {
            escaped(piece)
        } else {
            piece.to_owned()
        };
        // A key may be written in another way each time, too.
        let key = if odd && self.escape & 2 == 2 {
            key.encode_utf16()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect()
        } else {
            key.to_owned()
        };
        let text = SHAPES[self.shape]
            .replace("IX", &index.to_string())
            .replace("KEY", &key)
            .replace("PIECE", &spelled);
        let event = format!("data: {text}\n\n");
        event.replace('\n', ["\n", "\r\n", "\r"][self.line_end])
    }

    /// A text in pieces, with other answers and other keys between them.
    fn stream(&self, text: &str) -> String {
        let mut out = String::new();
        for n in 0..self.others {
            out += &self.event(&format!("other{n}"), 7, "k", false);
        }
        let (mut rest, mut sizes) = (text, self.sizes.iter().cycle());
        let mut at = 0;
        while !rest.is_empty() {
            let size = (*sizes.next().unwrap()).min(rest.len());
            let (piece, tail) = rest.split_at(size);
            out += &self.event(&self.key, self.index, piece, at % 2 == 1);
            for kind in &self.between {
                out += &match kind {
                    0 => ": ping \"{\n\n".to_owned(),
                    1 => self.event(&self.key, self.index + 1, "q", false),
                    2 => self.event(&self.key, self.index + 2, "key-o", false),
                    3 => self.event(&format!("k{at}"), self.index, "key-of-", false),
                    4 => "event: x\nid: 5\ndata: {\"index\":8,\"other\":\"q\"}\n\n".to_owned(),
                    5 => "data: \"q\"\n\n".to_owned(),
                    _ => format!("data: {{\"index\":{},\"other\":\"k\"}}\n\n", self.index),
                };
            }
            rest = tail;
            at += 1;
        }
        out + "data: [DONE]\n\n"
    }
}

/// What a reader has after an answer: the texts of whole events, by key and by the indexes around
/// them.
fn read_together(out: &[u8]) -> Vec<String> {
    use crate::wire::http::sse::{Events, Part};
    use std::collections::BTreeMap;

    fn walk(value: &serde_json::Value, key: &str, marks: &str, all: &mut BTreeMap<String, String>) {
        match value {
            serde_json::Value::String(text) => {
                *all.entry(key.to_owned()).or_default() += text;
                *all.entry(format!("{key}@{marks}")).or_default() += text;
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|item| walk(item, key, marks, all));
            }
            serde_json::Value::Object(map) => {
                let mut marks = marks.to_owned();
                for name in ["index", "output_index"] {
                    let index = map
                        .get(name)
                        .and_then(|index| index.as_f64().or_else(|| index.as_str()?.parse().ok()));
                    if let Some(index) = index {
                        marks += &format!("/{index}");
                    }
                }
                map.iter()
                    .for_each(|(key, inner)| walk(inner, key, &marks, all));
            }
            _ => {}
        }
    }
    let (mut all, mut data) = (BTreeMap::new(), Vec::new());
    Events::default().push(out, &mut |part| match part {
        Part::Data(bytes) => data.extend_from_slice(bytes),
        Part::EventEnds => {
            if let Ok(value) = serde_json::from_slice(&data) {
                walk(&value, "", "", &mut all);
            }
            data.clear();
        }
    });
    all.into_values().collect()
}

fn in_cuts<'t>(text: &'t str, cuts: &[usize]) -> Vec<&'t [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), text.as_bytes());
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (head, tail) = rest.split_at((*cut).min(rest.len()));
        pieces.push(head);
        rest = tail;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// However a value is cut, whichever key and index its pieces stand under and whatever comes
    /// between them: who puts the texts of one key, or of one index of it, together, has it not.
    #[test]
    fn no_reader_can_put_a_value_together(written in a_writing(), before in "[a-z ]{0,5}", cuts in proptest::collection::vec(1usize..200, 1..6)) {
        let stream = written.stream(&format!("{before}{KEY} after"));
        // The reader of this test would have it, if all of it passed.
        prop_assert!(read_together(stream.as_bytes()).iter().any(|text| text.contains(KEY)), "{}", stream);
        let (out, found) = passed(&in_cuts(&stream, &cuts));
        prop_assert!(found, "{}", stream);
        prop_assert!(stream.as_bytes().starts_with(&out));
        for text in read_together(&out) {
            prop_assert!(!text.contains(&KEY[..8]), "{} of {}", text, stream);
        }
    }

    /// The same with what only begins like it: every byte passes, as it is.
    #[test]
    fn what_is_no_value_passes_byte_for_byte(written in a_writing(), missing in 12usize..24, cuts in proptest::collection::vec(1usize..200, 1..6)) {
        let mut text = KEY.to_owned();
        text.replace_range(missing..=missing, "_");
        let stream = written.stream(&format!("{text}{text}"));
        prop_assert_eq!(passed(&in_cuts(&stream, &cuts)), (stream.clone().into_bytes(), false), "{}", stream);
    }

    /// In one document, over all of its texts, over its keys, over its values, and over words that
    /// are partly thought and partly said.
    #[test]
    fn no_order_of_texts_in_a_document_holds_a_value(sizes in proptest::collection::vec(1usize..9, 1..5), kind in 0usize..9, cuts in proptest::collection::vec(1usize..90, 1..6)) {
        let (mut pieces, mut rest, mut sizes) = (Vec::new(), KEY, sizes.iter().cycle());
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        let joined = |each: &dyn Fn(usize, &str) -> String, with: &str| {
            let all: Vec<String> = pieces.iter().enumerate().map(|(n, piece)| each(n, piece)).collect();
            all.join(with)
        };
        let text = match kind {
            0 => format!("{{\"tokens\":[{}]}}", joined(&|_, piece| format!("\"{piece}\""), ", ")),
            1 => format!("{{\"top\":{{{}}}}}", joined(&|n, piece| format!("\"{piece}\":{n}"), ",")),
            2 => format!("[{}]", joined(&|_, piece| format!("{{\"text\" :\n \"{piece}\"}}"), ",\n\n")),
            3 => format!("[{}]", joined(&|n, piece| format!("{{\"k{n}\":\"{piece}\"}}"), ",")),
            4 => joined(&|_, piece| format!("\"{piece}\""), "\n"),
            5 => joined(&|n, piece| format!("data: {{\"id\":\"c\",\"{}\":\"{piece}\",\"object\":\"o\"}}\n\n", ["content", "reasoning_content"][n % 2]), ""),
            6 => joined(&|n, piece| format!("data: {{\"index\":1,\"delta\":{{\"{}\":\"{piece}\"}}}}\n\ndata: {{\"index\":9,\"text\":\"q\"}}\n\n", ["text", "thinking", "partial_json"][n % 3]), ""),
            // Parts of one answer, interleaved; and one answer of several, whatever its parts.
            7 => joined(&|_, piece| format!("data: {{\"other\":\"{piece}\",\"output_index\":0,\"content_index\":0}}\n\ndata: {{\"other\":\"q\",\"output_index\":0,\"content_index\":1}}\n\n"), ""),
            _ => joined(&|n, piece| format!("data: {{\"index\":0,\"calls\":[{{\"other\":\"{piece}\",\"index\":{n}}}]}}\n\ndata: {{\"index\":1,\"other\":\"q\"}}\n\n"), ""),
        };
        let (out, found) = passed(&in_cuts(&text, &cuts));
        prop_assert!(found, "{}", text);
        prop_assert!(text.as_bytes().starts_with(&out));
    }
}

#[test]
fn more_beginnings_than_can_be_kept_in_mind_end_the_answer() {
    let open = |n: usize| event(&format!("k{n}"), "key");
    let many: String = (0..pieces::MAX_OPEN).map(open).collect();
    assert!(passed(&[many.as_bytes()]).1);
    // Any number of keys that hold nothing of it, and some that do, are no matter.
    let none: String = (0..5000).map(|n| event(&format!("k{n}"), "word")).collect();
    let some: String = (0..200).map(open).collect();
    let text = format!("{none}{some}");
    assert_eq!(passed(&[text.as_bytes()]), (text.into_bytes(), false));
}

#[test]
fn what_comes_long_after_the_beginning_still_belongs_to_it() {
    let (head, tail) = KEY.split_at(9);
    let long = event("other", &"x".repeat(MAX_WAITING));
    let begun = event("content", head);
    let needles = needles();
    let (mut watch, mut out) = (Watch::new(&needles), Vec::new());
    let both = format!("{begun}{long}");
    assert!(!watch.push(both.as_bytes(), &mut out));
    assert_eq!(out.len(), both.len(), "it does not wait for ever");
    assert!(watch.push(event("content", tail).as_bytes(), &mut out));
    assert_eq!(out.len(), both.len());
    // Half of it is not let go at all.
    let begun = event("content", &KEY[..KEY.len() / 2]);
    let (out, found) = passed(&[begun.as_bytes(), long.as_bytes()]);
    assert!(found && !String::from_utf8_lossy(&out).contains(&KEY[..4]));
}

#[test]
fn a_long_text_is_taken_in_parts_and_a_deep_one_ends() {
    let text = "word ".repeat(20_000);
    for more in ["", KEY] {
        let document = format!("{{\"choices\":[{{\"text\":\"{text}{more}\"}}]}}");
        let (out, found) = passed(&in_cuts(&document, &[1000]));
        assert_eq!((found, out.len() > 60_000), (!more.is_empty(), true));
    }
    let needles = needles();
    let deep = format!("{}{}", "[{\"a\":".repeat(5000), "}]".repeat(5000));
    let (mut watch, mut out) = (Watch::new(&needles), Vec::new());
    let text = format!("{deep}\n{}", event("text", "word"));
    assert!(!watch.push(text.as_bytes(), &mut out));
    assert_eq!(out, text.as_bytes());
    // Documents in a list do not wait for each other.
    let (mut watch, mut out) = (Watch::new(&needles), Vec::new());
    let list = b"[{\"parts\":[{\"text\":\"a\"}]}\n,\r\n{\"text\":\"b\"}";
    assert!(!watch.push(list, &mut out));
    assert_eq!(out, list);
    // A document that does not end waits for no more than its event.
    let (mut watch, mut out) = (Watch::new(&needles), Vec::new());
    let broken = b"data: {\"a\":[\"b\n\ndata: {\"c\":\"d\"}\n\n";
    assert!(!watch.push(broken, &mut out));
    assert_eq!(out, broken);
}

#[test]
fn where_a_long_document_is_cut_makes_no_difference() {
    let (head, tail) = KEY.split_at(10);
    for length in documents::MAX_LETTERS - 40..documents::MAX_LETTERS {
        let long = "x".repeat(length);
        let document = format!("{{\"a\":\"{long}\",\"text\":\"{head}\"}}\n");
        let rest = format!("{{\"b\":\"q\"}}\n{{\"text\":\"{tail}\"}}\n");
        assert!(
            passed(&[document.as_bytes(), rest.as_bytes()]).1,
            "{length}"
        );
    }
}
