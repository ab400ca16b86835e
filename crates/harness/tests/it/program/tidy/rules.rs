//! Rules about one file: its size, its first words, its names, and what only one file may do.

use super::sources::{Source, sources};

const MAX_LINES: usize = 500;
const MAX_FUNCTION: usize = 100;
/// Tests may hold longer tables.
const MAX_TEST_FUNCTION: usize = 220;

/// A rule looks at one file and names what is wrong with it.
type Rule = fn(&Source) -> Vec<String>;

const RULES: [(&str, Rule); 9] = [
    ("size", too_long),
    ("functions", long_functions),
    ("first words", first_words),
    ("names", bad_names),
    ("unfinished", unfinished),
    ("core is alone", core_imports),
    ("readers never run", reader_imports),
    ("who answers", scripted_answers),
    ("one place", second_places),
];

fn too_long(source: &Source) -> Vec<String> {
    let lines = source.product_lines();
    (lines > MAX_LINES)
        .then(|| format!("{lines} lines"))
        .into_iter()
        .collect()
}

/// Counts the lines of each `fn` by its indentation: the formatter puts the closing brace under
/// the keyword.
fn long_functions(source: &Source) -> Vec<String> {
    let most = if source.is_test() {
        MAX_TEST_FUNCTION
    } else {
        MAX_FUNCTION
    };
    let lines: Vec<&str> = source.text.lines().collect();
    let product: Vec<&str> = source.product.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        let head = ["pub ", "pub(crate) ", "pub(super) ", "const "]
            .iter()
            .fold(body, |head, word| head.trim_start_matches(word));
        let Some(name) = head.strip_prefix("fn ") else {
            continue;
        };
        let end = format!("{}}}", &line[..line.len() - body.len()]);
        let length = lines[at..]
            .iter()
            .position(|line| **line == end)
            .map_or(1, |length| length + 1);
        let in_tests = product.get(at).is_none_or(|line| line.trim().is_empty());
        let most = if in_tests { MAX_TEST_FUNCTION } else { most };
        if !line.ends_with(';') && length > most {
            let name: String = name
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            found.push(format!("fn {name} has {length} lines"));
        }
    }
    found
}

fn first_words(source: &Source) -> Vec<String> {
    let excused = source.name().ends_with("_tests.rs") || source.text.starts_with("//!");
    (!excused)
        .then(|| "does not begin with `//!`".to_owned())
        .into_iter()
        .collect()
}

fn bad_names(source: &Source) -> Vec<String> {
    let bad = |part: &str| {
        let stem = part.trim_end_matches(".rs");
        matches!(
            stem,
            "utils" | "util" | "helpers" | "helper" | "common" | "manager"
        )
    };
    let parts = source.path.split('/').filter(|part| bad(part));
    parts.map(|part| format!("`{part}` says nothing")).collect()
}

fn unfinished(source: &Source) -> Vec<String> {
    let words = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("FIX", "ME"),
        concat!("dbg", "!("),
        concat!("//! RO", "OM."),
    ];
    let held = words.iter().filter(|word| source.text.contains(**word));
    held.map(|word| format!("holds {word}")).collect()
}

fn core_imports(source: &Source) -> Vec<String> {
    if !source.path.starts_with("crates/core/") {
        return Vec::new();
    }
    let ours = [
        "cto_testkit",
        "std::fs",
        "std::process",
        "std::net::Tcp",
        "std::env::",
        "SystemTime::now",
        "Instant::now",
    ];
    let used = ours.iter().filter(|name| source.product.contains(**name));
    used.map(|name| format!("core uses {name}")).collect()
}

/// Commands that only read; the order of rooms already keeps the room `bundles` from running.
fn reader_imports(source: &Source) -> Vec<String> {
    let readers = [
        "crates/harness/src/cli/program/docs.rs",
        "crates/harness/src/cli/evidence/runs.rs",
        "crates/harness/src/cli/evidence/diff.rs",
        "crates/harness/src/cli/evidence/replay.rs",
        "crates/harness/src/cli/evidence/show/mod.rs",
        "crates/harness/src/cli/evidence/verify.rs",
    ];
    if !source.starts(&readers) {
        return Vec::new();
    }
    let rooms = [
        "crate::run",
        "crate::supervise",
        "crate::workspace",
        "crate::plan",
        "cto_jail",
        "cto_gateway",
    ];
    let uses = |room: &&&str| {
        [format!("{room};"), format!("{room}::")]
            .iter()
            .any(|import| source.product.contains(import))
    };
    rooms
        .iter()
        .filter(uses)
        .map(|room| format!("a reader imports {room}"))
        .collect()
}

/// An answer that no operator gave may come from one place only.
fn scripted_answers(source: &Source) -> Vec<String> {
    let may = [
        "crates/harness/src/run/approvals/mod.rs",
        "crates/harness/src/proof/matrix/",
        "crates/harness/src/cli/engines/matrix_row.rs",
    ];
    let scripts =
        !source.is_test() && !source.starts(&may) && source.product.contains("::scripted(");
    let validates = !source.is_test()
        && !source.starts(&[
            "crates/core/",
            "crates/harness/src/run/approvals/mod.rs",
            "crates/harness/src/proof/",
        ])
        && source.product.contains("Origin::Validator");
    let found = [
        (scripts, "only a row of the matrix scripts an approval"),
        (validates, "only the room proof makes a validator's run"),
    ];
    found
        .into_iter()
        .filter(|(wrong, _)| *wrong)
        .map(|(_, what)| what.to_owned())
        .collect()
}

/// Something that may be done in one place only, so that it cannot come to differ.
struct OnePlace {
    what: &'static str,
    /// Words that show it is done, in code; with strings where they are part of one.
    signs: &'static [&'static str],
    in_strings: bool,
    places: &'static [&'static str],
}

const ONE_PLACE: &[OnePlace] = &[
    OnePlace {
        what: "processes are started",
        signs: &[
            "process::Command",
            "Command::new",
            "process::{Child, Command",
            "process::{Command",
        ],
        in_strings: false,
        places: &[
            "crates/harness/src/workspace/git/",
            "crates/harness/src/supervise/",
            "crates/harness/src/doubles/",
            "crates/jail/",
            // A program of the operator, which signs or prints a credential.
            "crates/gateway/src/operator_program.rs",
        ],
    },
    OnePlace {
        what: "an unsafe call is made",
        signs: &["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"],
        in_strings: false,
        places: &["crates/jail/src/sys"],
    },
    OnePlace {
        what: "a document of a bundle is read without asking for its digest",
        signs: &["reader::document("],
        in_strings: false,
        places: &[
            // A run that was never sealed.
            "crates/harness/src/cli/evidence/replay.rs",
            // Whether a bundle is worth a verification.
            "crates/harness/src/records/proofs.rs",
            "crates/harness/src/run/fake_baseline.rs",
            // The open bundle of the run itself.
            "crates/harness/src/run/stage_proof.rs",
        ],
    },
    OnePlace {
        what: "an address is classified",
        signs: &[
            ".is_loopback()",
            ".is_private()",
            ".is_link_local()",
            "is_unspecified()",
        ],
        in_strings: false,
        places: &["crates/core/src/values/address.rs"],
    },
    OnePlace {
        what: "a base URL is taken apart",
        signs: &[
            "strip_prefix(\"http://\")",
            "strip_prefix(\"https://\")",
            "split_once(\"://\")",
        ],
        in_strings: true,
        // A double reads the address of its door, and shares no code with what it tests.
        places: &[
            "crates/core/src/wire/endpoint.rs",
            "crates/harness/src/doubles/",
        ],
    },
    OnePlace {
        what: "dangerous characters are listed",
        signs: &[
            "\\u{202a}",
            "\\u{202e}",
            "\\u{200b}",
            "\\u{feff}",
            "\\u{e0000}",
        ],
        in_strings: true,
        places: &["crates/core/src/values/text.rs"],
    },
    OnePlace {
        what: "a patch is read",
        signs: &["\"diff --git", "b\"diff --git"],
        in_strings: true,
        places: &[
            "crates/core/src/workspace/patch/",
            // How somebody's file spells one; nothing is decided by it.
            "crates/harness/src/task/typed_patch.rs",
        ],
    },
    OnePlace {
        what: "a pool of threads is run",
        signs: &["thread::scope"],
        in_strings: false,
        places: &[
            "crates/harness/src/host/workers.rs",
            // One thread per pipe of git, none of them a worker.
            "crates/harness/src/workspace/git/",
            // The control, while the checks run in the thread of the run.
            "crates/harness/src/run/checks/beside.rs",
            // One thread that asks git for tags while the copy is made.
            "crates/harness/src/workspace/checks_git.rs",
            "crates/harness/src/doubles/",
        ],
    },
    OnePlace {
        what: "a run is asked for",
        signs: &["= Request {", "(Request {", "    Request {"],
        in_strings: false,
        places: &["crates/harness/src/task/request.rs"],
    },
    OnePlace {
        what: "a place of the host is looked at for a jail",
        signs: &[
            "mounts::decide",
            "By::Operator",
            "By::Program",
            "By::Wish",
            "By::Harness",
        ],
        in_strings: false,
        places: &[
            "crates/harness/src/host/places/",
            "crates/core/src/containment/mounts/",
        ],
    },
    OnePlace {
        what: "a mount is made",
        signs: &["Mount::at", "Mount::in_place"],
        in_strings: false,
        places: &[
            "crates/harness/src/supervise/launch",
            "crates/harness/src/workspace/",
            "crates/jail/",
        ],
    },
    OnePlace {
        what: "a jail is shaped",
        signs: &["JailPlan {"],
        in_strings: false,
        places: &["crates/harness/src/supervise/launch", "crates/jail/"],
    },
];

fn second_places(source: &Source) -> Vec<String> {
    if source.is_test() {
        return Vec::new();
    }
    let done = |one: &&OnePlace| {
        let code = if one.in_strings {
            &source.product_with_strings
        } else {
            &source.product
        };
        !source.starts(one.places) && one.signs.iter().any(|sign| code.contains(sign))
    };
    ONE_PLACE
        .iter()
        .filter(done)
        .map(|one| format!("{} only in {}", one.what, one.places.join(", ")))
        .collect()
}

fn broken(source: &Source) -> Vec<String> {
    let found = RULES.iter().map(|(rule, check)| (rule, check(source)));
    found
        .flat_map(|(rule, what)| what.into_iter().map(move |what| format!("{rule}: {what}")))
        .collect()
}

#[test]
fn every_source_file_is_tidy() {
    let wrong: Vec<String> = sources()
        .iter()
        .flat_map(|s| {
            broken(s)
                .into_iter()
                .map(|what| format!("{}: {what}", s.path))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_rule_can_fail() {
    let long: String = (0..=MAX_LINES).map(|_| "//! x\n").collect();
    let function = format!(
        "//! x\npub fn big() {{\n{}}}\n",
        "    x();\n".repeat(MAX_FUNCTION)
    );
    let cli = "crates/harness/src/cli/evidence/show/mod.rs";
    for (path, text, want) in [
        ("crates/core/src/a.rs", long.as_str(), "size: 501 lines"),
        (
            "crates/core/src/a.rs",
            &function,
            "functions: fn big has 102 lines",
        ),
        (
            "crates/core/src/a.rs",
            "use x;\n",
            "first words: does not begin with `//!`",
        ),
        (
            "crates/core/src/utils.rs",
            "//! x\n",
            "names: `utils.rs` says nothing",
        ),
        (
            "crates/harness/src/helpers/mod.rs",
            "//! x\n",
            "names: `helpers` says nothing",
        ),
        (
            "crates/harness/src/a.rs",
            concat!("//! x\nfn a() { todo", "!() }\n"),
            concat!("unfinished: holds todo", "!("),
        ),
        (
            "crates/core/src/a.rs",
            "//! x\nuse std::fs;\n",
            "core is alone: core uses std::fs",
        ),
        (
            cli,
            "//! x\nuse crate::run::x;\n",
            "readers never run: a reader imports crate::run",
        ),
        (
            cli,
            "//! x\nuse cto_gateway;\n",
            "readers never run: a reader imports cto_gateway",
        ),
        (
            "crates/harness/src/cli/run.rs",
            "//! x\nfn a() { Approvals::scripted(b) }\n",
            "who answers: only a row of the matrix scripts an approval",
        ),
        (
            "crates/harness/src/cli/try_run.rs",
            "//! x\nconst A: Origin = Origin::Validator;\n",
            "who answers: only the room proof makes a validator's run",
        ),
    ] {
        assert_eq!(broken(&Source::new(path, text)), [want], "{path}");
    }
}

#[test]
fn a_second_place_is_noticed() {
    for one in ONE_PLACE {
        for sign in one.signs {
            let text = format!("//! x\n#[cfg(test)]\nmod tests {{}}\nfn a() {{ {sign} }}\n");
            // Signs that are half a string are closed here.
            let text = if sign.matches('"').count() == 1 {
                text.replace(sign, &format!("{sign}\""))
            } else {
                text
            };
            let text = if one.in_strings && !sign.contains('"') {
                text.replace(sign, &format!("'{sign}'"))
            } else {
                text
            };
            let elsewhere = second_places(&Source::new("crates/harness/src/cli/a.rs", &text));
            assert_eq!(elsewhere.len(), 1, "{sign}: {elsewhere:?}");
            let place = format!("{}x.rs", one.places[0]);
            assert!(
                second_places(&Source::new(&place, &text)).is_empty(),
                "{sign}"
            );
            let comment = format!("//! x\n// {sign}\n");
            assert!(
                second_places(&Source::new("crates/core/src/a.rs", &comment)).is_empty(),
                "{sign}"
            );
        }
    }
}

#[test]
fn rules_do_not_fire_on_tidy_files() {
    let fine = "//! x\npub fn small() {\n    x();\n}\n\n#[cfg(test)]\nmod tests {\n    use std::process::Command;\n}\n";
    for path in [
        "crates/core/src/a.rs",
        "crates/harness/src/reader.rs",
        "crates/harness/src/git.rs",
    ] {
        let source = Source::new(path, fine);
        assert!(broken(&source).is_empty(), "{path}: {:?}", broken(&source));
    }
}
