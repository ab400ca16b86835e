//! What differs from run to run is masked; all else must be what the page shows.

use std::sync::OnceLock;

use cto_testkit::without_styles;
use regex::Regex;

/// What differs from run to run, and what stands for it.
pub const MASKS: [(&str, &str); 15] = [
    (
        r"\d{8}T\d{6}Z-([a-z0-9-]+)-[a-z0-9]{4}([a-z0-9]{4})?\b",
        "RUN-$1",
    ),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "WHEN"),
    (r"\b\d\d-\d\d \d\d:\d\d\b", "WHEN"),
    // The columns of `cto run --all` and `cto runs`: short ids look like words elsewhere.
    (r"\s\d+\s+[a-z2-9]{8}$", "  N  ID"),
    (r"\b(fake|pi|\d+[KM])\s{2,}[a-z2-9]{8}(\s|$)", "$1  ID$2"),
    (r"\b[0-9a-f]{7,}\b", "HEX"),
    (r"\b\d+(\.\d+)? (ms|s)\b", "TIME"),
    (r"\b\d+(\.\d+)? ?%", "PART"),
    (r"\b\d+(\.\d+)? (bytes|KiB|MiB)", "SIZE"),
    (r"\b\d+(\.\d+)?[KM]\b", "SIZE"),
    (
        r"kernel \d[^ ,]*, as (root|an ordinary user)",
        "kernel N, as SOMEONE",
    ),
    (r"(?i)\bpython ?3\.\d+(\.\d+)?", "python3.N"),
    (r"[█·]{2,}", "BAR"),
    // The last column of `cto matrix`.
    (r"^([✓✗] .* )\d+$", "${1}N"),
    (r" {2,}", "  "),
];

pub fn masked(line: &str) -> String {
    let ready = || {
        MASKS
            .iter()
            .map(|(mask, _)| Regex::new(mask).unwrap())
            .collect()
    };
    static READY: OnceLock<Vec<Regex>> = OnceLock::new();
    let mut text = line.trim_end().to_owned();
    for (mask, (_, stands)) in READY.get_or_init(ready).iter().zip(MASKS) {
        text = mask.replace_all(&text, stands).into_owned();
    }
    text
}

/// A block, masked. `cto replay` says where nothing happened for long: on a slow machine, anywhere.
pub fn masked_lines(lines: &[String]) -> Vec<String> {
    let pause = |line: &&String| line.trim_start().starts_with('⋮');
    lines
        .iter()
        .filter(|line| !pause(line))
        .map(|line| masked(line))
        .collect()
}

/// Is this line what is shown, where `…` is any text?
pub fn line_fits(shown: &str, printed: &str) -> bool {
    let mut pieces = shown.split('…');
    let Some(mut rest) = printed.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else {
        return rest.is_empty();
    };
    for piece in middle {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Are these lines what is shown, where a line `…` is any number of lines?
pub fn lines_fit(shown: &[String], printed: &[String]) -> bool {
    let Some((line, rest)) = shown.split_first() else {
        return printed.is_empty();
    };
    if line == "…" {
        return (0..=printed.len()).any(|skip| lines_fit(rest, &printed[skip..]));
    }
    let Some((first, more)) = printed.split_first() else {
        return false;
    };
    line_fits(line, first) && lines_fit(rest, more)
}

pub fn fits(shown: &[String], printed: &[String]) -> bool {
    lines_fit(&masked_lines(shown), &masked_lines(printed))
}

/// What stands on a terminal after all that was drawn on it, below a home called `~`.
pub fn as_seen(drawn: &str, home: &str) -> Vec<String> {
    let plain = without_styles(drawn).replace(home, "~");
    let last_drawn = |line: &str| {
        line.rsplit('\r')
            .next()
            .map(|text| text.trim_end().to_owned())
    };
    let mut lines: Vec<String> = plain.split('\n').filter_map(last_drawn).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

pub fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
pub fn what_differs_from_run_to_run_is_masked() {
    for (one, other) in [
        (
            "run 20261115T101647Z-a-case-sk3nq6cv",
            "run 20300101T000000Z-a-case-aaaaaaaa",
        ),
        ("contract cf0ea14135b6", "contract 07317f0fbc34"),
        ("(exit code 0, 96 ms)", "(exit code 0, 1203 ms)"),
        ("   0.015 s  x", "  12.015 s    x"),
        (
            "sh-word-count  pass    215  fmew7kqm",
            "sh-word-count  pass  1540  m7im2eg6",
        ),
        (
            "11-15 21:00  pass  a  fake    g7j3v52a",
            "01-02 03:04  pass  a  fake  abcdefgh",
        ),
        (
            "5 pass: 1.59 s wall, 78% of it",
            "5 pass: 10.1 s wall, 8% of it",
        ),
        (
            "packed x.tar.zst (18573 bytes)",
            "packed x.tar.zst (9 bytes)",
        ),
        (
            "CONTAINED  kernel 6.1.0-x, as root",
            "CONTAINED  kernel 5.14, as an ordinary user",
        ),
        (
            "since 2026-11-15T20:58:42.066Z",
            "since 2031-01-01T00:00:00.1Z",
        ),
        (
            "  python3   /usr/bin/python3.11",
            "  python3   /usr/bin/python3.9",
        ),
        ("  plan  █····   1 ms", "  plan  ···██  100 ms"),
        (
            "✓  no-diff  no_diff  diff.checked  1136",
            "✓  no-diff  no_diff  diff.checked  9",
        ),
    ] {
        assert_eq!(masked(one), masked(other));
    }
}

#[test]
pub fn what_must_not_differ_is_not_masked() {
    for (one, other) in [
        ("GREEN  47 green, 0 red", "GREEN  41 green, 0 red"),
        ("(exit code 0, 96 ms)", "(exit code 1, 96 ms)"),
        (
            "run 20261115T101647Z-a-case-sk3nq6cv",
            "run 20261115T101647Z-b-case-sk3nq6cv",
        ),
        ("engine fake  stage 2", "engine fake  stage 3"),
        ("pass  a  fake  g7j3v52a", "fail  a  fake  g7j3v52a"),
        ("  checks    green  hidden", "  checks    RED    hidden"),
        ("opened by  nothing at all", "opened by  anything at all"),
        ("✓  no-diff  no_diff  1136", "✗  no-diff  no_diff  1136"),
    ] {
        assert_ne!(masked(one), masked(other));
    }
}

#[test]
pub fn one_word_or_line_that_differs_is_noticed() {
    let printed = "PASS  a  stage 2\n\n  why  all green (3 ms)\n  run  one\nnext: cto verify";
    let printed = lines(printed);
    let same = |shown: &str| fits(&lines(shown), &printed);
    assert!(same(
        "PASS  a  stage 2\n\n  why  all green (96 ms)\n  run  one\nnext: cto verify"
    ));
    assert!(same(
        "PASS  a  stage 2\n\n  why  all … (…)\n…\nnext: cto verify"
    ));
    assert!(same("…\n  run  one\n…"));
    assert!(same("…"));
    for wrong in [
        "PASS  a  stage 2\n\n  why  all red (96 ms)\n  run  one\nnext: cto verify",
        "PASS  a  stage 2\n\n  why  all green (96 ms)\nnext: cto verify",
        "PASS  a  stage 2\n\n  why  all green (96 ms)\n  run  one\n  two\nnext: cto verify",
        "PASS  a  stage 2\n\n  why  all green (96 ms)\n  run  one",
        "PASS  a  stage 2\n\n  why  none … (…)\n…\nnext: cto verify",
        "…\n  run  two\n…",
        "…\n  run  one",
        "",
    ] {
        assert!(!same(wrong), "taken for the same: {wrong}");
    }
}

#[test]
pub fn a_terminal_is_read_as_a_person_reads_it() {
    let drawn = "run\n\r  … plan 1 ms\r  • plan 2 ms   \n\u{1b}[1mPASS\u{1b}[0m /tmp/x/home/a\n\n";
    assert_eq!(
        as_seen(drawn, "/tmp/x/home"),
        ["run", "  • plan 2 ms", "PASS ~/a"]
    );
}
