//! The habits of the house, checked: sizes, import direction, first words of a file, fresh
//! documents. With `CTO_REGENERATE=1` the generated files are written instead of compared.

use std::fs;
use std::path::{Path, PathBuf};

const MAX_LINES: usize = 500;
const MAX_FUNCTION: usize = 70;

struct Source {
    /// Relative to the repository.
    path: String,
    text: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Every Rust file of the three crates.
fn sources() -> Vec<Source> {
    let root = repository();
    let mut found = Vec::new();
    let mut pending = vec![root.join("crates")];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let relative = path.strip_prefix(&root).unwrap().display().to_string();
                found.push(Source {
                    path: relative,
                    text: fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 40, "the sources were not found");
    found
}

impl Source {
    fn is_test(&self) -> bool {
        self.path.contains("/tests/")
            || self.path.ends_with("_tests.rs")
            || self.path.starts_with("crates/testkit/")
    }

    /// What is compiled into the product: everything before the tests.
    fn product(&self) -> &str {
        self.text.split("#[cfg(test)]").next().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    fn starts(&self, prefixes: &[&str]) -> bool {
        prefixes.iter().any(|prefix| self.path.starts_with(prefix))
    }
}

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
    ("who spawns", spawners),
    ("who answers", scripted_answers),
];

fn too_long(source: &Source) -> Vec<String> {
    let lines = source.product().lines().count();
    (lines > MAX_LINES)
        .then(|| format!("{lines} lines"))
        .into_iter()
        .collect()
}

/// Counts the lines of each `fn` by its indentation: the formatter puts the closing brace under the
/// keyword.
fn long_functions(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        let head = body
            .trim_start_matches("pub ")
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("const ");
        let Some(name) = head.strip_prefix("fn ") else {
            continue;
        };
        let end = format!("{}}}", &line[..line.len() - body.len()]);
        let length = lines[at..]
            .iter()
            .position(|line| **line == end)
            .map_or(1, |length| length + 1);
        if !line.ends_with(';') && length > MAX_FUNCTION {
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
        matches!(
            part.trim_end_matches(".rs"),
            "utils" | "util" | "helpers" | "helper" | "common" | "manager"
        )
    };
    source
        .path
        .split('/')
        .filter(|part| bad(part))
        .map(|part| format!("`{part}` says nothing"))
        .collect()
}

fn unfinished(source: &Source) -> Vec<String> {
    let words = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("FIX", "ME"),
        concat!("dbg", "!("),
    ];
    words
        .iter()
        .filter(|word| source.text.contains(**word))
        .map(|word| format!("holds {word}"))
        .collect()
}

fn core_imports(source: &Source) -> Vec<String> {
    if !source.path.starts_with("crates/core/") {
        return Vec::new();
    }
    let ours = [
        "cto_harness",
        "cto_testkit",
        "std::fs",
        "std::process",
        "std::net",
        "std::env::",
        "SystemTime::now",
        "Instant::now",
    ];
    ours.iter()
        .filter(|name| source.product().contains(**name))
        .map(|name| format!("core uses {name}"))
        .collect()
}

fn reader_imports(source: &Source) -> Vec<String> {
    let readers = [
        "crates/harness/src/bundles/reader.rs",
        "crates/harness/src/bundles/verifier.rs",
        "crates/harness/src/bundles/pack.rs",
        "crates/harness/src/bundles/runs_root.rs",
        "crates/harness/src/index/",
        "crates/harness/src/cli/runs",
        "crates/harness/src/cli/program/docs.rs",
        "crates/harness/src/cli/diff",
        "crates/harness/src/cli/replay",
        "crates/harness/src/cli/show",
        "crates/harness/src/cli/verify",
    ];
    if !source.starts(&readers) {
        return Vec::new();
    }
    let rooms = [
        "run",
        "engine_run",
        "supervise",
        "jail",
        "gateway",
        "measure",
        "verification",
        "workspace",
        "git",
        "recover",
    ];
    let uses = |room: &&&str| {
        let text = source.product();
        [
            format!("crate::{room};"),
            format!("crate::{room}::"),
            format!("super::{room};"),
            format!("super::{room}::"),
        ]
        .iter()
        .any(|import| text.contains(import))
    };
    rooms
        .iter()
        .filter(uses)
        .map(|room| format!("a reader imports {room}"))
        .collect()
}

fn spawners(source: &Source) -> Vec<String> {
    let may = [
        "crates/harness/src/git/",
        "crates/harness/src/supervise/",
        "crates/harness/src/doubles/",
        "crates/jail/src/",
        // A program of the operator that holds a key; nothing of a contract is started there.
        "crates/harness/src/evidence/sign/command.rs",
        // A program of the operator that prints a credential.
        "crates/harness/src/gateway/credential.rs",
    ];
    if source.is_test() || source.starts(&may) {
        return Vec::new();
    }
    let text = source.product();
    let spawns = [
        "process::Command",
        "Command::new",
        "process::{Child, Command",
        "process::{Command",
    ]
    .iter()
    .any(|way| text.contains(way));
    let only = "only git/, supervise/, jail/, doubles/ and sign/command.rs start processes";
    spawns.then(|| only.to_owned()).into_iter().collect()
}

/// An answer that no operator gave may come from one place only.
fn scripted_answers(source: &Source) -> Vec<String> {
    let may = [
        "crates/harness/src/run/approvals.rs",
        "crates/harness/src/cli/engines/matrix_row.rs",
    ];
    let scripts =
        !source.is_test() && !source.starts(&may) && source.product().contains("::scripted(");
    let validates = !source.is_test()
        && !source.starts(&[
            "crates/core/",
            "crates/harness/src/matrix/",
            "crates/harness/src/run/approvals.rs",
            "crates/harness/src/proof/case_trial.rs",
            "crates/harness/src/proof/validate/mod.rs",
        ])
        && source.product().contains("Origin::Validator");
    let found = [
        (scripts, "only a row of the matrix scripts an approval"),
        (
            validates,
            "only a row of the matrix, a validator or the trial of a case is a validator's run",
        ),
    ];
    found
        .into_iter()
        .filter(|(wrong, _)| *wrong)
        .map(|(_, what)| what.to_owned())
        .collect()
}

fn broken(source: &Source) -> Vec<String> {
    RULES
        .iter()
        .flat_map(|(rule, check)| {
            check(source)
                .into_iter()
                .map(move |what| format!("{rule}: {what}"))
        })
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
    for (path, text, want) in [
        ("crates/core/src/a.rs", long.as_str(), "size: 501 lines"),
        (
            "crates/core/src/a.rs",
            &function,
            "functions: fn big has 72 lines",
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
            "//! x\nuse cto_harness::x;\n",
            "core is alone: core uses cto_harness",
        ),
        (
            "crates/core/src/a.rs",
            "//! x\nuse std::fs;\n",
            "core is alone: core uses std::fs",
        ),
        (
            "crates/harness/src/bundles/reader.rs",
            "//! x\nuse crate::work::run::x;\n",
            "readers never run: a reader imports run",
        ),
        (
            "crates/harness/src/cli/program/docs.rs",
            "//! x\nuse crate::work::measure;\n",
            "readers never run: a reader imports measure",
        ),
        (
            "crates/harness/src/bundles/index/mod.rs",
            "//! x\nuse crate::jail::contained::x;\n",
            "readers never run: a reader imports jail",
        ),
        (
            "crates/harness/src/bundles/index/store.rs",
            "//! x\nuse crate::engines::gateway;\n",
            "readers never run: a reader imports gateway",
        ),
        (
            "crates/harness/src/run/mod.rs",
            "//! x\nuse std::process::Command;\n",
            "who spawns: only git/, supervise/, jail/, doubles/ and sign/command.rs start processes",
        ),
        (
            "crates/harness/src/cli/work/run.rs",
            "//! x\nfn a() { Approvals::scripted(b) }\n",
            "who answers: only a row of the matrix scripts an approval",
        ),
        (
            "crates/harness/src/cli/work/try_run.rs",
            "//! x\nconst A: Origin = Origin::Validator;\n",
            "who answers: only a row of the matrix, a validator or the trial of a case is a validator's run",
        ),
    ] {
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(broken(&source), [want], "{path}");
    }
}

#[test]
fn rules_do_not_fire_on_tidy_files() {
    let fine = "//! x\npub fn small() {\n    x();\n}\n\n#[cfg(test)]\nmod tests {\n    use std::process::Command;\n}\n";
    for path in [
        "crates/core/src/a.rs",
        "crates/harness/src/bundles/reader.rs",
        "crates/harness/src/git.rs",
    ] {
        let source = Source {
            path: path.to_owned(),
            text: fine.to_owned(),
        };
        assert!(broken(&source).is_empty(), "{path}: {:?}", broken(&source));
    }
}

/// Generated files that differ from what is committed under `root`.
fn stale(root: &Path, generated: &[(String, String)]) -> Vec<String> {
    let differs = |(name, text): &&(String, String)| {
        fs::read_to_string(root.join(name)).ok().as_ref() != Some(text)
    };
    generated
        .iter()
        .filter(differs)
        .map(|(name, _)| name.clone())
        .collect()
}

#[test]
fn generated_documents_and_schemas_are_fresh() {
    let generated = cto_harness::cli::program::docs::all();
    assert!(generated.len() >= 12, "{}", generated.len());
    if std::env::var_os("CTO_REGENERATE").is_some_and(|value| value == "1") {
        for (name, text) in &generated {
            let path = repository().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    let stale = stale(&repository(), &generated);
    assert!(
        stale.is_empty(),
        "stale: {}; write them anew with CTO_REGENERATE=1",
        stale.join(", ")
    );
    let known: Vec<PathBuf> = generated
        .iter()
        .map(|(name, _)| repository().join(name))
        .collect();
    for entry in fs::read_dir(repository().join("schemas"))
        .unwrap()
        .flatten()
    {
        assert!(
            known.contains(&entry.path()),
            "{} is generated by nothing",
            entry.path().display()
        );
    }
}

#[test]
fn a_stale_document_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let generated = [
        ("a.md".to_owned(), "new".to_owned()),
        ("b.md".to_owned(), "same".to_owned()),
        ("c.md".into(), "x".into()),
    ];
    fs::write(dir.path().join("a.md"), "old").unwrap();
    fs::write(dir.path().join("b.md"), "same").unwrap();
    assert_eq!(stale(dir.path(), &generated), ["a.md", "c.md"]);
}

#[test]
fn the_map_stays_short() {
    let Ok(text) = fs::read_to_string(repository().join("ARCHITECTURE.md")) else {
        return;
    };
    assert!(
        text.lines().count() <= 150,
        "ARCHITECTURE.md has {} lines",
        text.lines().count()
    );
}
