//! Values and shapes go, however a stream is cut; the rest stays.

use super::*;
use proptest::prelude::*;

fn secrets(values: &[&str]) -> Secrets {
    Secrets {
        known: values.iter().map(|v| v.as_bytes().to_vec()).collect(),
        ..Secrets::default()
    }
}

// Assembled at run time: no token shape stands in this file.
fn token() -> String {
    format!("gh{}_{}", "p", "a1B2".repeat(10))
}

#[test]
fn known_values_and_shapes_are_taken_out() {
    assert!(SHAPES.is_some());
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
        let mut redactor = s.redactor();
        let mut out = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (head, tail) = rest.split_at((*cut).min(rest.len()));
            redactor.push(head, &mut |b| out.extend_from_slice(b));
            rest = tail;
        }
        redactor.finish(&mut |b| out.extend_from_slice(b));
        prop_assert!(find_bytes(&out, b"hunter2-hunter2").is_none());
        prop_assert!(find_bytes(&out, token().as_bytes()).is_none());
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
