//! The failing tests of cargo, and where they go.

use super::Edit;
use crate::checks::runners::kits::words::Words;
use crate::values::paths::TreePath;

/// Kinds of failing tests, with what stands before a function and behind its name. They need nothing that a
/// crate without the standard library lacks.
pub(super) const FAILURES: [(&str, &str); 9] = [
    ("", "() {\n    assert!(#1 == #2);"),
    ("", "() {\n    assert_eq!(#1, #2);"),
    ("", "() {\n    assert_eq!(\"$1\", \"$2\");"),
    ("", "() {\n    assert_eq!([#1], [#2]);"),
    ("", "() {\n    assert_ne!(\"$1\", \"$1\");"),
    ("", "() {\n    panic!(\"$1\");"),
    ("", "() {\n    \"$1\".parse::<u8>().unwrap();"),
    ("", "() -> Result<(), &'static str> {\n    Err(\"$1\")"),
    ("#[should_panic]\n", "() {"),
];

fn failures(words: &mut Words) -> String {
    let mut kinds = FAILURES;
    words.shuffle(&mut kinds);
    let mut text = String::new();
    for (before, test) in kinds {
        let name = words.word();
        let test = words.fill(test);
        text.push_str(&format!("#[test]\n{before}fn {name}{test}\n}}\n\n"));
    }
    text
}

/// In every package, as a test of its own and inside the crate, and in every test program that a
/// command names: `--lib`, `--test NAME` and a workspace each run only a part of them.
pub(super) fn edits(nonce: &str, baseline: &[TreePath], commands: &[String]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let named = test_programs(commands);
    for path in baseline {
        let text = String::from_utf8_lossy(path.as_bytes()).into_owned();
        let mut words = Words::new(nonce, &text);
        if let Some(package) = text
            .strip_suffix("Cargo.toml")
            .filter(|dir| dir.is_empty() || dir.ends_with('/'))
        {
            // Some projects want a line about every crate.
            let (name, about) = (words.word(), words.word());
            edits.push(Edit::Create {
                path: format!("{package}tests/{name}.rs"),
                text: format!("//! {about}\n\n{}", failures(&mut words)),
            });
        }
        let is_named = named.iter().any(|name| is_program(&text, name));
        if is_named || IN_CRATE.iter().any(|name| is_at(&text, name)) {
            let (module, tests) = (words.word(), failures(&mut words));
            let inside = format!("\n#[cfg(test)]\nmod {module} {{\n{tests}}}\n");
            edits.push(Edit::Append {
                path: path.clone(),
                text: inside,
            });
        }
    }
    edits
}

/// The names of test programs that commands choose by `--test NAME`.
fn test_programs(commands: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    for command in commands {
        let mut words = command.split_whitespace();
        while let Some(word) = words.next() {
            let name = match word.strip_prefix("--test") {
                Some("") => words.next(),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            names.extend(name.map(|name| name.trim_matches(['\'', '"']).to_owned()));
        }
    }
    names
}

/// Is this the file of such a program, in any package? Cargo knows two layouts, and names may be
/// patterns.
fn is_program(path: &str, name: &str) -> bool {
    path.match_indices("tests/").any(|(at, tests)| {
        let (before, file) = (&path[..at], &path[at + tests.len()..]);
        let program = file
            .strip_suffix("/main.rs")
            .or_else(|| file.strip_suffix(".rs"));
        (before.is_empty() || before.ends_with('/'))
            && program.is_some_and(|program| !program.contains('/') && fits(name, program))
    })
}

/// Does a pattern with `*` and `?` fit a name?
fn fits(pattern: &str, name: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => name.is_empty(),
        Some('*') => {
            let starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            let rest = letters.as_str();
            starts.into_iter().any(|at| fits(rest, &name[at..]))
        }
        Some(wanted) => {
            let mut others = name.chars();
            let other = others.next();
            (other == Some(wanted) || (wanted == '?' && other.is_some()))
                && fits(letters.as_str(), others.as_str())
        }
    }
}

/// Where failing tests are put into a crate itself.
pub(super) const IN_CRATE: [&str; 2] = ["src/lib.rs", "src/main.rs"];

/// Is this the file, in the tree's own top or in any package?
pub(super) fn is_at(path: &str, name: &str) -> bool {
    path.strip_suffix(name)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}
