//! Every kind of file has a way to fail, and says what its failing shows.

use proptest::prelude::*;

use super::*;

fn made(path: &str, bytes: &[u8]) -> Forms {
    let path = TreePath::new(path);
    let file = File {
        path: &path,
        kind: FileKind::Regular,
        bytes,
    };
    forms(file, "k9")
}

fn runs(path: &str, text: &str) -> Option<String> {
    let form = made(path, text.as_bytes()).runs?;
    Some(String::from_utf8(form.bytes).unwrap())
}

fn breaks(path: &str, text: &str) -> String {
    String::from_utf8(made(path, text.as_bytes()).breaks.unwrap().bytes).unwrap()
}

#[test]
fn each_kind_of_file_fails_in_its_own_way() {
    use How::{BrokenLine, DoesNotCompile, Emptied, EndsItsProcess, FailingExample, Filled};
    for (path, text, run, broken) in [
        ("a.py", "x", Some(EndsItsProcess), Some(BrokenLine)),
        (
            "tool",
            "#!/usr/bin/env python3.12\n",
            Some(EndsItsProcess),
            Some(BrokenLine),
        ),
        ("a.pyi", "x", None, Some(BrokenLine)),
        ("a.mjs", "x", Some(EndsItsProcess), Some(BrokenLine)),
        ("a.tsx", "x", Some(EndsItsProcess), Some(BrokenLine)),
        ("a.d.ts", "x", None, Some(BrokenLine)),
        ("a.ts", "<?xml version='1.0'?>", None, Some(BrokenLine)),
        (
            "a.vue",
            "<script>\n</script>",
            Some(EndsItsProcess),
            Some(BrokenLine),
        ),
        ("a.vue", "<template/>", None, Some(BrokenLine)),
        (
            "a.go",
            "package a\n",
            Some(EndsItsProcess),
            Some(BrokenLine),
        ),
        ("a.rs", "x", None, Some(DoesNotCompile)),
        ("build.rs", "x", None, Some(DoesNotCompile)),
        ("a.c", "x", Some(EndsItsProcess), Some(DoesNotCompile)),
        ("a.CPP", "x", Some(EndsItsProcess), Some(DoesNotCompile)),
        ("a.h", "x", None, Some(DoesNotCompile)),
        ("a.cs", "x", None, Some(DoesNotCompile)),
        ("a.sh", "x", Some(EndsItsProcess), Some(BrokenLine)),
        (
            "bin/run",
            "#!/bin/sh\n",
            Some(EndsItsProcess),
            Some(BrokenLine),
        ),
        ("a.rb", "x", Some(EndsItsProcess), Some(BrokenLine)),
        ("Rakefile", "x", Some(EndsItsProcess), Some(BrokenLine)),
        ("a.php", "<?php x", Some(EndsItsProcess), Some(BrokenLine)),
        ("a.php", "<p>no code</p>", Some(Emptied), None),
        ("a.pm", "x", Some(EndsItsProcess), Some(BrokenLine)),
        (
            "t/a.t",
            "use strict;\n",
            Some(EndsItsProcess),
            Some(BrokenLine),
        ),
        ("a.t", "text", Some(Emptied), Some(BrokenLine)),
        ("A.java", "x", None, Some(BrokenLine)),
        ("a.json", "{}", None, Some(BrokenLine)),
        ("a.yaml", "a: 1", None, Some(BrokenLine)),
        ("Makefile", "all:\n", None, Some(BrokenLine)),
        ("CMakeLists.txt", "x", None, Some(BrokenLine)),
        ("a.html", "x", Some(Emptied), None),
        ("a.j2", "x", Some(Emptied), None),
        ("a.csv", "x", Some(Emptied), None),
        ("a.csv", "", Some(Filled), None),
        ("py.typed", "", Some(Filled), None),
        ("a.py", "", Some(EndsItsProcess), Some(BrokenLine)),
        ("README.md", "x", Some(FailingExample), None),
        ("a.unknown", "x", Some(Emptied), Some(BrokenLine)),
        ("a.py", "binary\0", Some(Emptied), None),
        ("picture.png", "\0", Some(Emptied), None),
    ] {
        let found = made(path, text.as_bytes());
        assert_eq!(found.runs.as_ref().map(|form| form.how), run, "{path}");
        assert_eq!(found.breaks.as_ref().map(|form| form.how), broken, "{path}");
    }
}

#[test]
fn a_link_points_nowhere() {
    let path = TreePath::new("current");
    let file = File {
        path: &path,
        kind: FileKind::Symlink,
        bytes: b"releases/1.0",
    };
    let found = forms(file, "k9");
    let form = found.strongest().unwrap();
    assert_eq!(
        (form.how, form.proves),
        (How::PointsNowhere, Proves::Parsed)
    );
    assert!(!form.bytes.contains(&b'/') && form.bytes.starts_with(b"wk9_"));
}

#[test]
fn declarations_go_where_they_are_always_taken() {
    let go = runs("a.go", "//go:build linux\n\npackage a // no end of line").unwrap();
    assert_eq!(
        go,
        "//go:build linux\n\npackage a // no end of line\n\nfunc init() { panic(97) }\n"
    );
    let rust = breaks("src/lib.rs", "//! Doc\n#![no_std]\nfn a() {} // end");
    assert!(rust.starts_with("//! Doc\n#![no_std]\nfn a() {} // end\n\ncompile_error!(\"wk9_"));
    let c = breaks("a.c", "\u{feff}/* comment\n*/\n");
    assert!(c.starts_with("\u{feff}#error \"wk9_"), "{c}");
    let c = runs("a.c", "int a;").unwrap();
    assert!(c.starts_with("int a;\n\n__attribute__((constructor)) static void wk9_"));
    let (a, b) = (runs("a.c", "").unwrap(), runs("b.c", "").unwrap());
    assert_ne!(a, b, "two files in one program");
}

#[test]
fn scripts_end_behind_their_first_lines() {
    for (path, text, want) in [
        (
            "a.sh",
            "#!/bin/sh\n# shellcheck disable=SC1\n\nset -e\n",
            "#!/bin/sh\n# shellcheck disable=SC1\n\neval 'exit 97'\nset -e\n",
        ),
        ("a.sh", "#!/bin/sh", "#!/bin/sh\neval 'exit 97'\n"),
        (
            "a.rb",
            "# frozen_string_literal: true\n\nrequire 'x'\n",
            "# frozen_string_literal: true\n\nKernel.send(:exit!, 97)\nrequire 'x'\n",
        ),
        (
            "a.rb",
            "=begin\ntext\n=end\n",
            "Kernel.send(:exit!, 97)\n=begin\ntext\n=end\n",
        ),
        (
            "a.pl",
            "#!/usr/bin/perl -w\nuse strict;\n",
            "#!/usr/bin/perl -w\nexit(97) if 1;\nuse strict;\n",
        ),
        (
            "a.lua",
            "--[[ long\n]]\nx()\n",
            "os.exit(97)\n--[[ long\n]]\nx()\n",
        ),
        (
            "a.php",
            "<?php\n// x\ndeclare(strict_types=1);\n\nnamespace A\\B;\n\nuse C;\n",
            "<?php\n// x\ndeclare(strict_types=1);\n\nnamespace A\\B;\nexit(97);\n\n\nuse C;\n",
        ),
        (
            "a.php",
            "#!/usr/bin/env php\n<?PHP namespace A { f(); }",
            "#!/usr/bin/env php\n<?PHP namespace A {\nexit(97);\n f(); }",
        ),
        (
            "a.php",
            "<p><?php\n# x\n#[A]\nclass B {}",
            "<p><?php\nexit(97);\n\n# x\n#[A]\nclass B {}",
        ),
    ] {
        assert_eq!(runs(path, text).as_deref(), Some(want), "{path}");
    }
}

#[test]
fn a_broken_line_stands_first() {
    for (path, text, before) in [
        ("a.json", "{}", ""),
        ("a.py", "#!/usr/bin/python3\nx\n", "#!/usr/bin/python3\n"),
        ("A.java", "class A {}\n", ""),
        ("a.rb", "\u{feff}x\n", "\u{feff}"),
    ] {
        let found = breaks(path, text);
        assert!(found.starts_with(&format!("{before}]}}) wk9_")), "{found}");
        let line = found.trim_start_matches(before).lines().next().unwrap();
        assert!(!line.contains([':', '=', '#', '\'']), "{line}");
    }
}

proptest! {
    /// Any name and any bytes: there is a way to fail, it is another file, and a twin is neither.
    #[test]
    fn every_file_can_be_made_to_fail(
        stem in "[a-zA-Z_.]{0,8}",
        end in proptest::sample::select(vec![
            "", ".py", ".js", ".ts", ".go", ".rs", ".c", ".h", ".sh", ".rb", ".php", ".pl", ".vue",
            ".json", ".html", ".csv", ".md", ".java", ".unknown", ".lua", ".awk", ".t",
        ]),
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let found = made(&format!("{stem}{end}"), &bytes);
        prop_assert!(found.strongest().is_some());
        for form in [&found.runs, &found.breaks].into_iter().flatten() {
            prop_assert_ne!(&form.bytes, &bytes);
            if let Some(harmless) = &form.harmless {
                prop_assert_ne!(harmless, &bytes);
                prop_assert_ne!(harmless, &form.bytes);
            }
        }
        prop_assert!(found.runs.is_none_or(|form| form.proves == Proves::Loaded));
        prop_assert!(found.breaks.is_none_or(|form| form.proves == Proves::Parsed && form.harmless.is_none()));
    }
}
