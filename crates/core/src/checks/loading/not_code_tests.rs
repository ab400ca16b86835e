//! The table of what need not be seen, and who takes a file out of it by naming it.

use super::*;
use crate::checks::loading::named::{BuildFile, is_build_file};

fn named(commands: &[&str], build_files: &[(&str, &str)]) -> Named {
    let paths: Vec<TreePath> = build_files
        .iter()
        .map(|(path, _)| TreePath::new(*path))
        .collect();
    let files = paths
        .iter()
        .zip(build_files)
        .map(|(path, (_, text))| BuildFile { path, text });
    Named::by(commands.iter().copied(), files)
}

#[test]
fn the_table_is_short() {
    use NotCode::{Documentation, IgnoreList, Legal, LockFile, Picture};
    for (path, want) in [
        ("README.md", Some(Documentation)),
        ("README", Some(Documentation)),
        ("guide/usage.rst", Some(Documentation)),
        ("a.adoc", Some(Documentation)),
        ("notes.TXT", Some(Documentation)),
        ("docs/conf.py", Some(Documentation)),
        ("CHANGELOG", Some(Documentation)),
        ("LICENSE", Some(Legal)),
        ("LICENSE-MIT", Some(Legal)),
        ("LICENSE.APACHE", Some(Legal)),
        ("licence.txt", Some(Legal)),
        ("AUTHORS", Some(Legal)),
        (".gitignore", Some(IgnoreList)),
        ("sub/.editorconfig", Some(IgnoreList)),
        ("Cargo.lock", Some(LockFile)),
        ("web/package-lock.json", Some(LockFile)),
        ("go.sum", Some(LockFile)),
        ("logo.svg", Some(Picture)),
        ("a/b.PNG", Some(Picture)),
        // Everything else has to be seen.
        ("license.py", None),
        ("authors.json", None),
        ("src/docs/render.py", None),
        ("mydocs/a.py", None),
        ("CMakeLists.txt", None),
        ("cmake/CMakeLists.txt", None),
        ("readme.py", None),
        ("changelog", Some(Documentation)),
        ("news/app.js", None),
        ("package.json", None),
        (".gitattributes", Some(IgnoreList)),
        (".github/CODEOWNERS", Some(IgnoreList)),
        (".github/workflows/ci.yml", None),
        ("Makefile", None),
        ("md", None),
        (".md", None),
        ("", None),
    ] {
        assert_eq!(
            not_code(&TreePath::new(path), &Named::default()),
            want,
            "{path}"
        );
    }
}

#[test]
fn who_names_a_file_reads_it() {
    let by = |commands: &[&str], path: &str| {
        not_code(&TreePath::new(path), &named(commands, &[])).is_none()
    };
    let tried = |commands: &[&str], files: &[(&str, &str)], path: &str| {
        let path = TreePath::new(path);
        let (all, found) = (named(commands, files), not_code(&path, &named(&[], files)));
        found.is_some() && is_tried(&path, &all)
    };
    for (command, path) in [
        ("python -m doctest README.md", "README.md"),
        ("pytest --doctest-glob=*.rst", "docs/usage.rst"),
        ("pytest --doctest-glob='*.md' src", "README.md"),
        ("cmp expected.txt out", "tests/expected.txt"),
        ("grep -q x ./notes.txt", "notes.txt"),
        ("diff \"LICENSE\" x", "LICENSE"),
    ] {
        assert!(by(&[command], path), "{command}: {path}");
        assert!(!by(&["pytest -q", "true *"], path), "{path}");
    }
    // A directory may hold pages that nobody reads.
    for (command, path) in [
        ("./check docs/", "docs/index.md"),
        ("cd docs && make html", "docs/api/index.rst"),
        ("python3 -m unittest discover tests", "tests/README.md"),
        ("pytest", "docs/conf.py"),
    ] {
        assert!(!by(&[command], path), "{command}: {path}");
        assert!(tried(&[command], &[], path), "{command}: {path}");
    }
    assert!(!tried(&["pytest -q"], &[], "README.md"));
    for (file, text, path) in [
        (
            "Makefile",
            "check:\n\tpython -m doctest README.md\n",
            "README.md",
        ),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\naddopts = \"--doctest-glob=*.md\"\n",
            "README.md",
        ),
        (
            "package.json",
            "{\"scripts\": {\"test\": \"markdown-doctest README.md\"}}",
            "README.md",
        ),
        ("build.rs", "include_str!(\"words.txt\")", "src/words.txt"),
        (
            "tox.ini",
            "commands = rst-lint {toxinidir}/README.rst",
            "README.rst",
        ),
    ] {
        assert!(tried(&[], &[(file, text)], path), "{file}: {path}");
    }
}

#[test]
fn a_package_shows_its_pages_and_does_not_read_them() {
    for (file, text) in [
        (
            "pyproject.toml",
            "[project]\nreadme = \"README.md\"\nlicense = {file = \"LICENSE\"}\n[tool.hatch.build.targets.sdist]\ninclude = [\n  \"README.md\",\n  \"LICENSE\",\n]\n",
        ),
        (
            "Cargo.toml",
            "[package]\nreadme = \"README.md\"\nlicense-file = \"LICENSE\"\ninclude = [\"src\", \"README.md\", \"LICENSE\"]\n",
        ),
        (
            "package.json",
            "{\"license\": \"MIT\", \"files\": [\n \"README.md\", \"LICENSE\"\n]}",
        ),
        (
            "setup.py",
            "with open('README.md') as f:\n    text = f.read()\nlicense_files=['LICENSE']\n",
        ),
        (
            "setup.cfg",
            "long_description = file: README.md\nlicense_files = LICENSE\n",
        ),
    ] {
        let all = named(&["pytest"], &[(file, text)]);
        for path in ["README.md", "LICENSE"] {
            assert!(!is_tried(&TreePath::new(path), &all), "{file}: {path}");
        }
    }
    let read = named(&[], &[("setup.py", "exec(open('version.txt').read())")]);
    assert!(is_tried(&TreePath::new("version.txt"), &read));
    // What cannot be read as what it should be is read line by line.
    let broken = named(&[], &[("package.json", "{ \"test\": \"check NOTES.txt\"")]);
    assert!(is_tried(&TreePath::new("NOTES.txt"), &broken));
}

#[test]
fn build_files_are_known() {
    for (path, want) in [
        ("Makefile", true),
        ("sub/makefile", true),
        ("rules.mk", true),
        ("jest.config.ts", true),
        ("a.gemspec", true),
        ("app.py", false),
        ("config.js", false),
    ] {
        assert_eq!(is_build_file(&TreePath::new(path)), want, "{path}");
    }
}

#[test]
fn one_file_of_code_makes_a_change_of_code() {
    use NotCode::{Documentation, Legal, LockFile};
    for (files, want) in [
        (
            &[Some(Documentation), Some(Legal)][..],
            Substance::OnlyDocumentation,
        ),
        (&[Some(Documentation), Some(LockFile)], Substance::NoCode),
        (&[Some(Documentation), None], Substance::Code),
        (&[None], Substance::Code),
    ] {
        assert_eq!(substance(files.iter().copied()), want, "{files:?}");
    }
}
