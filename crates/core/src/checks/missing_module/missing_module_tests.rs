use super::*;

const RED: ProcessEnd = ProcessEnd::Exited { code: 1 };

fn paths(names: &[&str]) -> Vec<TreePath> {
    names.iter().map(|name| TreePath::new(*name)).collect()
}

/// A patch that adds a line to each of some files.
fn patch(lists: &[(&str, &str)]) -> AskedFor {
    let file = |(path, line): &(&str, &str)| {
        format!(
            "diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,2 @@\n before\n+{line}\n"
        )
    };
    let text: String = lists.iter().map(file).collect();
    AskedFor::of(text.as_bytes())
}

fn asked(text: &str, lists: &[(&str, &str)]) -> Option<(Vec<String>, Vec<String>)> {
    let tracked = paths(&[
        "src/own_module/a.py",
        "own.py",
        "packages/mine/index.js",
        "sub/x.go",
        "my-crate/src/lib.rs",
    ]);
    let found = missing_modules(RED, &["", text], &patch(lists), tracked.iter())?;
    Some((found.0, found.1.iter().map(TreePath::to_string).collect()))
}

#[test]
fn each_language_says_it_in_its_own_words() {
    for (list, text, want) in [
        (
            "pyproject.toml",
            "E   ModuleNotFoundError: No module named 'requests'",
            "requests",
        ),
        (
            "requirements-dev.txt",
            "ModuleNotFoundError: No module named 'other.b.c'",
            "other",
        ),
        ("uv.lock", "ImportError: No module named yaml", "yaml"),
        (
            "setup.py",
            "/usr/bin/python3: No module named pytest_cov",
            "pytest_cov",
        ),
        (
            "package.json",
            "Error: Cannot find module 'left-pad'",
            "left-pad",
        ),
        (
            "package-lock.json",
            "Error: Cannot find module 'pad/lib/b.js'",
            "pad",
        ),
        (
            "web/package.json",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@x/y' imported from {repo}/a.js",
            "@x/y",
        ),
        (
            "yarn.lock",
            "src/a.ts(1,2): error TS2307: Cannot find module 'zod' or its corresponding type declarations.",
            "zod",
        ),
        (
            "pnpm-lock.yaml",
            "Error: Failed to resolve import \"vue\" from \"src/a.js\".",
            "vue",
        ),
        (
            "Cargo.toml",
            "error: no matching package named `serde` found",
            "serde",
        ),
        (
            "Cargo.lock",
            "error: failed to get `serde` as a dependency of package `x v0.1.0`",
            "serde",
        ),
        (
            "Cargo.toml",
            "error: failed to select a version for the requirement `serde = \"^2\"`",
            "serde",
        ),
        (
            "Cargo.toml",
            "error[E0463]: can't find crate for `rand`",
            "rand",
        ),
        (
            "go.mod",
            "a.go:3:8: no required module provides package github.com/x/y; to add it:",
            "github.com/x/y",
        ),
        (
            "go.mod",
            "a.go:3:8: cannot find module providing package github.com/x/y: module lookup",
            "github.com/x/y",
        ),
        (
            "go.sum",
            "missing go.sum entry for module providing package x.org/y (imported by z)",
            "x.org/y",
        ),
        (
            "go.mod",
            "go: github.com/x/y@v1.2.3: module lookup disabled by GOPROXY=off",
            "github.com/x/y",
        ),
    ] {
        let line = format!("x = [\"{want}\"]");
        let want = Some((vec![want.to_owned()], vec![list.to_owned()]));
        assert_eq!(
            asked(text, &[(list, &line), ("a.py", &line)]),
            want,
            "{text}"
        );
        // Whatever stands around it.
        let long = format!("1 passed\n{text}\n=== 1 error in 0.1s ===\n");
        assert_eq!(asked(&long, &[("x", "y"), (list, &line)]), want, "{text}");
        let none = [("a.py", line.as_str()), ("README.md", &line)];
        assert_eq!(asked(text, &none), None, "no list: {text}");
        let other = if list.contains("go.") {
            "package.json"
        } else {
            "go.mod"
        };
        assert_eq!(
            asked(text, &[(other, &line)]),
            None,
            "of another language: {text}"
        );
        assert_eq!(asked(text, &[("pom.xml", &line)]), None, "{text}");
        // A list that changed and does not ask for it.
        for line in ["version = \"2\"", "", "x = [\"another\"]"] {
            assert_eq!(asked(text, &[(list, line)]), None, "{line}: {text}");
        }
    }
}

const PYTHON: &str = "ModuleNotFoundError: No module named '";
const NODE: &str = "Error: Cannot find module '";
const RUST: &str = "error: no matching package named `";
const GO: &str = "a.go:3:8: no required module provides package ";

/// What people write for a module, in each of the lists.
#[test]
fn a_list_asks_for_a_module_in_the_ways_that_lists_have() {
    for (list, line, text) in [
        (
            "requirements.txt",
            "Left-Pad>=1.0; python_version<'4'",
            "left_pad",
        ),
        (
            "requirements.txt",
            "git+https://host/x/leftpad.git@v1",
            "leftpad",
        ),
        (
            "requirements.txt",
            "https://host/leftpad-1.0-py3-none-any.whl",
            "leftpad",
        ),
        ("pyproject.toml", "dependencies = [\"PyYAML~=6.0\"]", "yaml"),
        ("pyproject.toml", "python-dateutil = \"*\"", "dateutil"),
        ("setup.py", "    install_requires=['Pillow'],", "PIL"),
        ("setup.cfg", "    scikit-learn", "sklearn"),
        ("setup.cfg", "    zope.interface", "zope"),
        ("uv.lock", "name = \"google-auth\"", "google.auth"),
        ("poetry.lock", "name = \"attrs\"", "attr"),
    ] {
        let text = format!("{PYTHON}{text}'");
        assert!(asked(&text, &[(list, line)]).is_some(), "{line}: {text}");
    }
    for (list, line, name) in [
        ("package.json", "    \"left-pad\": \"^1\"", "left-pad"),
        ("package.json", "    \"@x/y\": \"^1\"", "@x/y"),
        (
            "package-lock.json",
            "  \"node_modules/@x/y\": {",
            "@x/y/lib",
        ),
        ("yarn.lock", "left-pad@^1.0.0:", "left-pad"),
        ("pnpm-lock.yaml", "  /@x/y@1.2.3:", "@x/y"),
    ] {
        let text = format!("{NODE}{name}'");
        assert!(asked(&text, &[(list, line)]).is_some(), "{line}: {text}");
    }
    for (list, line, name) in [
        ("Cargo.toml", "left-pad = \"1\"", "left_pad"),
        ("Cargo.toml", "[dependencies.left_pad]", "left-pad"),
        ("Cargo.toml", "x = { package = \"left-pad\" }", "left-pad"),
        ("Cargo.lock", "name = \"left-pad\"", "left-pad"),
    ] {
        let text = format!("{RUST}{name}` found");
        assert!(asked(&text, &[(list, line)]).is_some(), "{line}: {text}");
    }
    for (list, line) in [
        ("go.mod", "require github.com/x/y v1.2.3"),
        ("go.mod", "\tgithub.com/x/y v1.2.3 // indirect"),
        ("go.sum", "github.com/x/y v1.2.3/go.mod h1:abc="),
    ] {
        let text = format!("{GO}github.com/x/y/part; to add it:");
        assert!(asked(&text, &[(list, line)]).is_some(), "{line}: {text}");
    }
}

#[test]
fn what_only_resembles_it_asks_for_nothing() {
    for (list, line, text) in [
        // A test that says at every run what it does without.
        (
            "pyproject.toml",
            "version = \"1.2\"",
            "could not import 'numpy': No module named 'numpy'",
        ),
        // A word written wrong in the change.
        (
            "setup.cfg",
            "description = collections of things",
            "No module named 'colections'",
        ),
        ("setup.py", "import nosuch", "No module named 'nosuch'"),
        (
            "noxfile.py",
            "    from nosuch import x",
            "No module named 'nosuch'",
        ),
        (
            "pyproject.toml",
            "x = [\"numpydoc\"]",
            "No module named 'numpy'",
        ),
        (
            "pyproject.toml",
            "x = [\"pnumpy\"]",
            "No module named 'numpy'",
        ),
        (
            "package.json",
            "\"left-pads\": \"1\"",
            "Cannot find module 'left-pad'",
        ),
        (
            "package.json",
            "\"@other/y\": \"1\"",
            "Cannot find module '@x/y'",
        ),
        (
            "Cargo.toml",
            "serde_json = \"1\"",
            "error: no matching package named `serde` found",
        ),
        (
            "go.mod",
            "require github.com/x/yy v1",
            "no required module provides package github.com/x/y; to",
        ),
        (
            "go.mod",
            "require github.com/x/y/v2 v2",
            "no required module provides package github.com/x/y; to",
        ),
    ] {
        assert_eq!(asked(text, &[(list, line)]), None, "{line}: {text}");
    }
    // Removed, or there before.
    for line in ["-left-pad", " left-pad"] {
        let counts = if line.starts_with('-') {
            "-1 +0,0"
        } else {
            "-1 +1"
        };
        let text = format!("diff --git a/setup.cfg b/setup.cfg\n@@ {counts} @@\n{line}\n");
        let (asked, list) = (AskedFor::of(text.as_bytes()), TreePath::new("setup.cfg"));
        assert!(!asked.asks(&list, "left_pad"), "{line}");
        let added = text.replace(&format!("\n{line}"), "\n+left-pad");
        let added = added.replace(counts, "-0,0 +1");
        assert!(AskedFor::of(added.as_bytes()).asks(&list, "left_pad"));
    }
}

/// Nothing of a patch is read twice as another kind of line, however it comes.
#[test]
fn a_patch_is_read_the_same_in_any_pieces() {
    let text = "diff --git a/x.py b/x.py\n@@ -0,0 +1,2 @@\n+diff --git a/setup.cfg b/setup.cfg\n++left-pad\ndiff --git a/setup.cfg b/setup.cfg\n@@ -1 +1 @@\n-a\n+right-pad";
    let list = TreePath::new("setup.cfg");
    let whole = AskedFor::of(text.as_bytes());
    assert!(whole.asks(&list, "right_pad") && !whole.asks(&list, "left_pad"));
    for size in 1..text.len() {
        let mut reader = AskedReader::default();
        text.as_bytes()
            .chunks(size)
            .for_each(|chunk| reader.feed(chunk));
        assert_eq!(reader.finish(), whole, "{size}");
    }
    for broken in ["no patch\n", "diff --git a/x b/x\n@@ -1 +1 @@\n?\n"] {
        let found = AskedFor::of(format!("{broken}{text}").as_bytes());
        assert_eq!(found, AskedFor::default(), "{broken}");
    }
}

#[test]
fn what_the_repository_has_or_had_is_the_changes_to_keep() {
    for (list, text) in [
        (
            "pyproject.toml",
            "ModuleNotFoundError: No module named 'own_module'",
        ),
        (
            "pyproject.toml",
            "ModuleNotFoundError: No module named 'own_module.b'",
        ),
        (
            "pyproject.toml",
            "ModuleNotFoundError: No module named 'own'",
        ),
        ("package.json", "Error: Cannot find module './lib/a.js'"),
        ("package.json", "Error: Cannot find module '/x/a.js'"),
        ("package.json", "Cannot find module '@/components/a'"),
        (
            "package.json",
            "Cannot find package '@acme/mine' imported from",
        ),
        (
            "go.mod",
            "no required module provides package example.com/x/sub; to add it:",
        ),
        (
            "Cargo.toml",
            "error: no matching package named `my-crate` found",
        ),
        (
            "Cargo.toml",
            "error[E0463]: can't find crate for `my_crate`",
        ),
        (
            "pyproject.toml",
            "ModuleNotFoundError: No module named '[redacted:token]'",
        ),
        ("pyproject.toml", "AssertionError: nothing"),
        ("pyproject.toml", "No module named "),
    ] {
        let all = "own_module own mine @acme/mine my-crate example.com/x/sub redacted token ./lib/a.js /x/a.js";
        assert_eq!(asked(text, &[(list, all)]), None, "{text}");
    }
}

#[test]
fn only_a_red_end_of_its_own_is_read_and_names_have_an_end() {
    let list = patch(&[("package.json", "\"a\": \"1\"")]);
    let text = "Cannot find module 'a'";
    assert!(missing_modules(RED, &[text], &list, [].iter()).is_some());
    for end in [
        ProcessEnd::Exited { code: 0 },
        ProcessEnd::Signalled { signal: 9 },
        ProcessEnd::Lost,
    ] {
        assert_eq!(missing_modules(end, &[text], &list, [].iter()), None);
    }
    let names: Vec<String> = (0..MOST_SAID).map(|n| format!("p{n:03}")).collect();
    let many: String = names
        .iter()
        .map(|name| format!("Cannot find module '{name}'\n"))
        .collect();
    let list = patch(&[("package.json", &names.join(" "))]);
    let found = missing_modules(RED, &[&many], &list, [].iter());
    assert_eq!(found.unwrap().0.len(), MOST);
    let long = "x".repeat(LONGEST_NAME + 1);
    let list = patch(&[("package.json", &long)]);
    let text = format!("Cannot find module '{long}'");
    assert_eq!(missing_modules(RED, &[&text], &list, [].iter()), None);
}
