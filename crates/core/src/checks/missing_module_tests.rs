use super::*;

const RED: ProcessEnd = ProcessEnd::Exited { code: 1 };

fn paths(names: &[&str]) -> Vec<TreePath> {
    names.iter().map(|name| TreePath::new(*name)).collect()
}

fn asked(text: &str, changed: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
    let (changed, tracked) = (
        paths(changed),
        paths(&[
            "src/own_module/a.py",
            "own.py",
            "packages/mine/index.js",
            "sub/x.go",
            "my-crate/src/lib.rs",
        ]),
    );
    let found = missing_modules(RED, &["", text], changed.iter(), tracked.iter())?;
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
        let want = Some((vec![want.to_owned()], vec![list.to_owned()]));
        assert_eq!(asked(text, &[list, "a.py"]), want, "{text}");
        // Whatever stands around it.
        let long = format!("1 passed\n{text}\n=== 1 error in 0.1s ===\n");
        assert_eq!(asked(&long, &["x", list]), want, "{text}");
        assert_eq!(asked(text, &["a.py", "README.md"]), None, "no list: {text}");
        let other = if list.contains("go.") {
            "package.json"
        } else {
            "go.mod"
        };
        assert_eq!(asked(text, &[other]), None, "of another language: {text}");
        assert_eq!(asked(text, &["pom.xml"]), None, "{text}");
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
        assert_eq!(asked(text, &[list]), None, "{text}");
    }
}

#[test]
fn only_a_red_end_of_its_own_is_read_and_names_have_an_end() {
    let list = paths(&["package.json"]);
    let text = "Cannot find module 'a'";
    for end in [
        ProcessEnd::Exited { code: 0 },
        ProcessEnd::Signalled { signal: 9 },
        ProcessEnd::Lost,
    ] {
        assert_eq!(missing_modules(end, &[text], list.iter(), [].iter()), None);
    }
    let many: String = (0..99)
        .map(|n| format!("Cannot find module 'p{n}'\n"))
        .collect();
    let found = missing_modules(RED, &[&many], list.iter(), [].iter());
    assert_eq!(found.unwrap().0.len(), MOST);
    let long = format!("Cannot find module '{}'", "x".repeat(LONGEST_NAME + 1));
    assert_eq!(missing_modules(RED, &[&long], list.iter(), [].iter()), None);
}
