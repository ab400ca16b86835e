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
    watch.finish(&mut out);
    (out, false)
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
