//! Values and shapes go, however a stream is cut; the rest stays.

use super::redactor::SHAPE_MARK;
use super::*;
use proptest::prelude::*;

fn secrets(values: &[&str]) -> Secrets {
    let mut secrets = Secrets::default();
    secrets.add_credentials(values.iter().map(|value| value.as_bytes().to_vec()));
    secrets
}

/// What a redactor lets through of a stream that is cut at these lengths, again and again.
fn in_pieces(secrets: &Secrets, text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut redactor = secrets.redactor();
    let (mut out, mut rest) = (Vec::new(), text);
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (head, tail) = rest.split_at((*cut).min(rest.len()));
        redactor.push(head, &mut |bytes| out.extend_from_slice(bytes));
        rest = tail;
    }
    redactor.finish(&mut |bytes| out.extend_from_slice(bytes));
    out
}

// Assembled at run time: no token shape stands in this file.
fn token() -> String {
    format!("gh{}_{}", "p", "a1B2".repeat(10))
}

#[test]
fn known_values_and_shapes_are_taken_out() {
    let text = format!("a {} b hunter2-hunter2 c", token());
    let (out, hits) = secrets(&["hunter2-hunter2"]).redact(text.as_bytes());
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "a [redacted:token] b [redacted:known-value] c"
    );
    assert_eq!(
        hits,
        Hits {
            known: 1,
            shapes: 1,
            ..Hits::default()
        }
    );
}

#[test]
fn ordinary_text_is_left_alone() {
    let text = b"task-sk-1 https://example.com/x?key=1 AKIA short ghp_short eyJ.eyJ";
    assert_eq!(secrets(&[]).redact(text).0, text);
}

#[test]
fn whole_lines_do_not_wait_and_keys_do() {
    let s = secrets(&[]);
    let mut redactor = s.redactor();
    let mut out = Vec::new();
    redactor.push(b"said\nhalf", &mut |b| out.extend_from_slice(b));
    assert_eq!(out, b"said\n");
    let header = format!("-----BEGIN {} KEY-----\n", "PRIVATE");
    let mut redactor = s.redactor();
    let mut out = Vec::new();
    redactor.push(header.as_bytes(), &mut |b| out.extend_from_slice(b));
    redactor.push(b"c2VjcmV0\n", &mut |b| out.extend_from_slice(b));
    assert_eq!(redactor.finish(&mut |b| out.extend_from_slice(b)).shapes, 1);
    assert_eq!(out, SHAPE_MARK);
}

#[test]
fn which_variables_count() {
    for (name, value, want) in [
        ("OPENAI_API_KEY", "abcdef123456xyz", true),
        ("OPENAI_API_KEY", "short", false),
        ("OPENAI_API_KEY", "aaaaaaaaaaaaaaaaaaaa", false),
        ("SSH_AUTH_SOCK", "/tmp/ssh-abcdef/agent.1", false),
        ("PATHS", "abcdef123456xyz", false),
    ] {
        assert_eq!(
            name_looks_secret(name) && could_be_secret(value.as_bytes()),
            want,
            "{name}={value}"
        );
    }
}

#[test]
fn patches_count_added_tokens_and_any_known_value() {
    let s = secrets(&["hunter2-hunter2"]);
    let scan = |text: String| {
        let mut scan = s.scan_patch();
        for chunk in text.as_bytes().chunks(7) {
            scan.push(chunk);
        }
        scan.finish().hits
    };
    assert_eq!(
        scan(format!("+x = {}\n", token())),
        Hits {
            known: 0,
            shapes: 1,
            ..Hits::default()
        }
    );
    assert_eq!(
        scan(format!("-x = {}\n context {}\n", token(), token())),
        Hits::default()
    );
    assert_eq!(
        scan("-hunter2-hunter2\n".into()),
        Hits {
            known: 1,
            shapes: 0,
            ..Hits::default()
        }
    );
}

#[test]
fn an_endpoint_is_as_private_as_its_parts() {
    let env = Env::from_pairs(&[
        ("OPENAI_BASE_URL", "http://localhost:8000/v1"),
        ("LAB_ENDPOINT", "https://gate.corp.example/v1"),
        ("ODD_ENDPOINT", "not an address 12345"),
        ("PLAIN", "https://plain.corp.example/v1"),
    ]);
    let secrets = Secrets::from_env(&env);
    let text = b"localhost:8000 gate.corp.example, not an address 12345, plain.corp.example\n";
    let (out, hits) = secrets.redact(text);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "localhost:8000 [redacted:endpoint], [redacted:known-value], plain.corp.example\n"
    );
    assert_eq!((hits.known, hits.private), (1, 1));
    let scan = |text: &str| {
        let mut scan = secrets.scan_patch();
        scan.push(text.as_bytes());
        let found = scan.finish();
        assert_eq!(found.hits.total(), 0);
        found.private.len()
    };
    assert_eq!(
        scan("-gate.corp.example\n gate.corp.example\n+localhost:8000\n"),
        0
    );
    assert_eq!(scan("+see gate.corp.example\n"), 1);
}

proptest! {
    /// However a stream is cut, the same bytes come out and no secret survives.
    #[test]
    fn chunking_never_matters(before in "[a-z \n]{0,700}", after in "[a-z \n]{0,700}", cuts in proptest::collection::vec(1usize..200, 1..20)) {
        let s = secrets(&["hunter2-hunter2"]);
        let text = format!("{before}hunter2-hunter2{} {after}", token());
        let whole = s.redact(text.as_bytes()).0;
        let out = in_pieces(&s, text.as_bytes(), &cuts);
        prop_assert!(memchr::memmem::find(&out, b"hunter2-hunter2").is_none());
        prop_assert!(memchr::memmem::find(&out, token().as_bytes()).is_none());
        prop_assert_eq!(out.len() >= before.len() + after.len(), true);
        prop_assert_eq!(out, whole);
    }
}

#[test]
fn paths_get_their_names_and_are_no_secrets() {
    let mut s = secrets(&["hunter2-hunter2"]);
    s.names = HostNames::of(&["/home/me/app".as_ref()], &["/home/me".as_ref()]);
    let (out, hits) = s.redact(b"/home/me/app/x /home/me/app2 hunter2-hunter2\n");
    assert_eq!(out, b"{repo}/x ~/app2 [redacted:known-value]\n");
    assert_eq!((hits.known, hits.paths, hits.total()), (1, 2, 1));
    let mut scan = s.scan_patch();
    scan.push(b"-/home/me/app\n /home/me/app\n+see /home/me/app/x\n+/home/me\n");
    let found = scan.finish();
    assert_eq!((found.hits.paths, found.hits.total()), (2, 0));
}

proptest! {
    /// A path that arrives in pieces is replaced like one that came whole, and whether it ends is
    /// not guessed.
    #[test]
    fn a_path_in_pieces_is_a_path(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "/home/me/app", "/home/me", "/app", "/root", "/", ".", "x", "2", " ", "\n", "\u{1b}[0m", "-I",
        ]), 0..40),
        filler in 0usize..9000,
        cuts in proptest::collection::vec(1usize..9, 1..20),
    ) {
        let mut s = secrets(&[]);
        s.names = HostNames::of(&["/home/me/app".as_ref()], &["/home/me".as_ref(), "/root".as_ref()]);
        let text = format!("{}{}", ".".repeat(filler), pieces.concat());
        let (whole, hits) = s.redact(text.as_bytes());
        let alone = s.names.replace(text.as_bytes());
        prop_assert_eq!(whole.as_slice(), alone.0.as_ref());
        prop_assert_eq!(hits.paths, alone.1);
        let mut redactor = s.redactor();
        let mut out = Vec::new();
        let (head, mut rest) = text.as_bytes().split_at(filler);
        redactor.push(head, &mut |b| out.extend_from_slice(b));
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (head, tail) = rest.split_at((*cut).min(rest.len()));
            redactor.push(head, &mut |b| out.extend_from_slice(b));
            rest = tail;
        }
        let in_pieces = redactor.finish(&mut |b| out.extend_from_slice(b));
        prop_assert_eq!(out, whole);
        prop_assert_eq!(in_pieces, hits);
    }
}

/// Every letter as an escape of JSON.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("\\u{byte:04X}")).collect()
}

#[test]
fn a_credential_is_looked_for_whatever_it_looks_like() {
    for value in [
        "abc1",
        "hunter2",
        "aaaaaaaaaaaaaaaa",
        "/etc/my-key",
        "a\"b\\c/d",
    ] {
        let mut s = Secrets::default();
        s.add_credentials([value.as_bytes().to_vec()]);
        let (out, hits) = s.redact(format!("x{value}y").as_bytes());
        assert_eq!(out, b"x[redacted:known-value]y", "{value}");
        assert_eq!(hits.known, 1);
        let mut s = Secrets::default();
        s.add([value.as_bytes().to_vec()]);
        assert_eq!(
            s.redact(value.as_bytes()).1.known,
            0,
            "a variable's is no alarm"
        );
    }
    let mut s = Secrets::default();
    let placeholders = ["EMPTY", "ollama", "none", "x", "123"];
    s.add_credentials(placeholders.map(|word| word.as_bytes().to_vec()));
    assert!(s.knows_nothing(), "what stands for no key is none");
    let mut s = Secrets::default();
    s.add_header("X-Api-Key", b"hunter2".to_vec());
    s.add_header("X-Region", b"north-1".to_vec());
    assert_eq!(
        s.redact(b"hunter2 north-1").0,
        b"[redacted:known-value] north-1"
    );
}

#[test]
fn every_spelling_of_a_value_is_found() {
    let s = secrets(&["key/of+the \"op\"\n0123456789é"]);
    let plain = "key/of+the \"op\"\n0123456789é";
    let json = serde_json::to_string(plain).unwrap();
    let json = json.trim_matches('"');
    let twice = serde_json::to_string(json).unwrap();
    let partly = json.replace('k', "\\u006b").replace('/', "\\/");
    let all = plain
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect::<String>();
    for text in [
        plain.to_owned(),
        json.to_owned(),
        twice.trim_matches('"').to_owned(),
        partly.clone(),
        partly.replace('\\', "\\\\"),
        all,
        "key%2Fof%2bthe%20%22op%22%0A0123456789%C3%a9".to_owned(),
    ] {
        let (out, hits) = s.redact(format!("<{text}>").as_bytes());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "<[redacted:known-value]>",
            "{text}"
        );
        assert_eq!(hits.known, 1);
    }
    let s = secrets(&["key-of-the-operator-0123456789"]);
    let (out, _) = s.redact(b"Basic eGtleS1vZi10aGUtb3BlcmF0b3ItMDEyMzQ1Njc4OXg=");
    assert!(out.starts_with(b"Basic eG") && out.len() < 50, "{out:?}");
}

#[test]
fn a_host_is_the_same_in_other_capitals_and_in_a_patch() {
    let mut s = Secrets::default();
    s.add_private(&Endpoint::parse("https://gate.corp.example/v1").unwrap());
    for text in [
        "GATE.Corp.example",
        &escaped("gate.corp.example"),
        "https:\\/\\/gate.corp.example\\/v1",
    ] {
        let (out, hits) = s.redact(text.as_bytes());
        assert_eq!(out, b"[redacted:endpoint]", "{text}");
        assert_eq!(hits.private, 1);
        let mut scan = s.scan_patch();
        scan.push(format!("+see {text}\n").as_bytes());
        assert!(!scan.finish().private.is_empty(), "{text}");
    }
}

proptest! {
    /// However its letters are escaped and however the stream is cut, nothing of a value is left.
    #[test]
    fn no_mixture_of_escapes_hides_a_value(ways in proptest::collection::vec(0usize..4, 15), cuts in proptest::collection::vec(1usize..40, 1..9), filler in 0usize..9000) {
        let s = secrets(&["hunter2-hunter2"]);
        let spelled: String = "hunter2-hunter2".bytes().zip(&ways).map(|(byte, way)| match way {
            0 => char::from(byte).to_string(),
            1 => format!("\\u{byte:04x}"),
            2 => format!("\\\\u{byte:04X}"),
            _ => format!("%{byte:02x}"),
        }).collect();
        let text = format!("{}<{spelled}>", ".".repeat(filler));
        let out = in_pieces(&s, text.as_bytes(), &cuts);
        prop_assert!(out.ends_with(b".<[redacted:known-value]>") || out == b"<[redacted:known-value]>", "{}", spelled);
    }
}

#[test]
fn a_beginning_is_cleaned_before_it_is_cut() {
    let s = secrets(&["hunter2-hunter2"]);
    let text = b"0123456789 hunter2-hunter2 and more";
    for limit in 0..text.len() {
        let out = s.redact_beginning(text, limit);
        assert!(memchr::memmem::find(&out, b"hun").is_none(), "{limit}");
    }
    assert_eq!(
        s.redact_beginning(text, 13),
        b"0123456789 [redacted:known-value]"
    );
    assert_eq!(s.redact_beginning(text, 5), b"01234");
}
