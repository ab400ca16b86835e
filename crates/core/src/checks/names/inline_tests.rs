//! Tests that stand inside a source file of Rust: was one of them changed?

/// The items below `#[cfg(test)]` and `#[test]`, each from its attribute to its end.
pub fn inline_tests(text: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if is_test_attribute(text.get(at..).unwrap_or_default()) {
            let end = item_end(text, at);
            found.push(text.get(at..end).unwrap_or_default());
            at = end;
        } else {
            at = token_end(text, at);
        }
    }
    found
}

/// Did the tests inside this file change, appear or go?
pub fn inline_tests_changed(before: &[u8], after: &[u8]) -> bool {
    inline_tests(before) != inline_tests(after)
}

/// `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(all(test, unix))]`, `#[rstest]`.
fn is_test_attribute(rest: &[u8]) -> bool {
    let Some(inner) = rest.strip_prefix(b"#[") else {
        return false;
    };
    let end = inner.iter().position(|byte| *byte == b']');
    let inner = inner.get(..end.unwrap_or(0)).unwrap_or_default();
    let text = String::from_utf8_lossy(inner);
    let text = text.trim();
    if let Some(condition) = text.strip_prefix("cfg(") {
        let mut words = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
        return words.any(|word| word == "test") && !condition.contains("not(test");
    }
    let name = text.split(['(', ' ']).next().unwrap_or_default();
    let last = name.rsplit("::").next().unwrap_or_default();
    matches!(
        last,
        "test" | "rstest" | "proptest" | "quickcheck" | "test_case" | "bench"
    )
}

/// The end of the item whose attribute begins here: its closing brace, or the semicolon of an item
/// without one.
fn item_end(text: &[u8], mut at: usize) -> usize {
    let mut depth = 0_i64;
    while at < text.len() {
        let next = token_end(text, at);
        match text.get(at) {
            Some(b'{' | b'(' | b'[') => depth += 1,
            Some(b')' | b']') => depth -= 1,
            Some(b'}') => {
                depth -= 1;
                if depth <= 0 {
                    return next;
                }
            }
            Some(b';') if depth <= 0 => return next,
            _ => {}
        }
        at = next;
    }
    text.len()
}

/// Past one token: a comment, a string, a character or one byte.
fn token_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let length = match rest {
        [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n'),
        [b'/', b'*', ..] => Some(block_comment(rest)),
        [b'"', ..] => Some(string(rest)),
        [b'r', ..] if !follows_a_name(text, at) => Some(raw_string(rest).unwrap_or(1)),
        [b'\'', b'\\', ..] => rest
            .iter()
            .skip(3)
            .position(|byte| *byte == b'\'')
            .map(|end| end + 4),
        // A character; otherwise a lifetime.
        [b'\'', _, b'\'', ..] => Some(3),
        _ => Some(1),
    };
    at + length.unwrap_or(rest.len()).max(1)
}

fn follows_a_name(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() && *byte != b'b' || *byte == b'_')
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest
        .get(1..)?
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let open = 1 + hashes;
    (rest.get(open) == Some(&b'"')).then_some(())?;
    let mut close = vec![b'"'];
    close.extend(std::iter::repeat_n(b'#', hashes));
    let body = rest.get(open + 1..)?;
    let end = body.windows(close.len()).position(|part| part == close);
    Some(end.map_or(rest.len(), |end| open + 1 + end + close.len()))
}

/// Comments of Rust stand in one another.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_u32, 0);
    while at < rest.len() {
        match rest.get(at..) {
            Some([b'/', b'*', ..]) => {
                depth += 1;
                at += 2;
            }
            Some([b'*', b'/', ..]) => {
                depth = depth.saturating_sub(1);
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        inline_tests(text.as_bytes())
            .into_iter()
            .map(|part| String::from_utf8_lossy(part).into_owned())
            .collect()
    }

    #[test]
    fn tests_inside_a_file_are_found_whole() {
        let module = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { let c = '}'; let s = \"}\"; let r = r#\"}\"#; /* } */ }\n}";
        let text = format!("fn f<'a>(x: &'a str) {{}}\n{module}\nfn g() {{}}\n");
        assert_eq!(found(&text), [module]);
        for (text, count) in [
            ("#[test]\nfn a() {}\n#[tokio::test]\nasync fn b() {}\n", 2),
            ("#[cfg(test)]\nmod tests;\nfn x() {}\n", 1),
            ("#[cfg(all(test, unix))]\nuse a::b;\n", 1),
            ("#[cfg(not(test))]\nfn a() {}\n", 0),
            ("#[cfg(feature = \"latest\")]\nfn a() {}\n", 0),
            (
                "// #[test]\n/* #[cfg(test)] /* */ mod x {} */\nconst X: &str = \"#[test]\";\n",
                0,
            ),
            ("const X: &str = r##\"\"# #[test] \"##;\n", 0),
            ("#[test]", 1),
            ("#[test]\nfn open() {", 1),
            ("", 0),
        ] {
            assert_eq!(found(text).len(), count, "{text}");
        }
    }

    #[test]
    fn only_a_change_of_tests_is_one() {
        let file = |code: &str, test: &str| {
            format!(
                "fn f() {{ {code} }}\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn a() {{ {test} }}\n}}\n"
            )
        };
        let changed = |a: String, b: String| inline_tests_changed(a.as_bytes(), b.as_bytes());
        assert!(!changed(file("1", "assert!(x)"), file("2", "assert!(x)")));
        assert!(changed(file("1", "assert!(x)"), file("1", "")));
        assert!(changed(file("1", "assert!(x)"), "fn f() { 1 }\n".into()));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(text in "[#\\[\\]test()cfg{};\"'/*r\\\\ \n]{0,80}") {
            inline_tests(text.as_bytes());
        }
    }
}
