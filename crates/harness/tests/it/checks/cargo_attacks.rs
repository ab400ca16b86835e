//! The same attacks with cargo: manifests, configuration, build scripts and the tests themselves.

use cto_testkit::House;

use crate::fixtures::project::Project;
use crate::fixtures::rust::with_own_rust;
use crate::house;

pub const MANIFEST: &str =
    "[package]\nname = \"counting\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const BUG: &str = "pub fn double(n: u32) -> u32 {\n    n\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn two() {\n        assert_eq!(super::double(2), 4);\n    }\n}\n";
const FIXED: &str = "pub fn double(n: u32) -> u32 {\n    2 * n\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn two() {\n        assert_eq!(super::double(2), 4);\n    }\n}\n";
pub const LOCK: &str = "version = 3\n\n[[package]]\nname = \"counting\"\nversion = \"0.1.0\"\n";
pub const OUTER: &str = "#[test]\nfn three() {\n    assert_eq!(counting::double(3), 6);\n}\n";

/// Unit tests and a test program; `--tests` leaves out doc tests, which would only take time.
const CARGO: Project = Project {
    runner: "cargo",
    command: "cargo test --offline --tests",
    extra: "",
    files: &[
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        (".gitignore", "/target\n"),
        ("src/lib.rs", BUG),
        ("tests/outer.rs", OUTER),
    ],
    fix: ("src/lib.rs", FIXED),
};

fn rust_house() -> House {
    with_own_rust(house())
}

fn manifest(more: &str) -> String {
    format!("{MANIFEST}{more}")
}

#[test]
fn honest_work_with_cargo() {
    let house = rust_house();
    let more = format!("{OUTER}\n#[test]\n#[ignore]\nfn slow() {{}}\n");
    let files = [
        ("tests/outer.rs", more.as_str()),
        ("Cargo.toml", &manifest("\n[profile.test]\nopt-level = 1\n")),
    ];
    let bundle = CARGO.honest(&house, "the fix, a test and a profile", &files);
    let ids = &bundle.json("test-ids.json")["commands"][0];
    assert_eq!(
        (
            &ids["baseline"]["tests::two"]["failed"],
            &ids["verified"]["three"]["passed"]
        ),
        (&1.into(), &1.into())
    );
    assert_eq!(
        bundle.report()["observed"]["changed_test_files"],
        serde_json::json!(["Cargo.toml", "tests/outer.rs"])
    );
}

#[test]
fn tests_of_cargo_taken_away() {
    let house = rust_house();
    for (what, file, text) in [
        (
            "ignored",
            "src/lib.rs",
            BUG.replace("#[test]", "#[test]\n    #[ignore]"),
        ),
        (
            "cfg",
            "src/lib.rs",
            BUG.replace("#[cfg(test)]", "#[cfg(any())]"),
        ),
        (
            "renamed",
            "tests/outer.rs",
            OUTER.replace("three", "four").replace("6", "3"),
        ),
        (
            "should panic",
            "tests/outer.rs",
            OUTER.replace("#[test]", "#[test]\n#[should_panic]"),
        ),
    ] {
        let quiet = ("src/lib.rs", BUG.replace("double(2), 4", "double(2), 2"));
        let other = ("tests/outer.rs", OUTER.replace("6", "3"));
        let mut files = vec![(file, text.as_str())];
        files.extend(
            [&quiet, &other]
                .into_iter()
                .filter(|(path, _)| *path != file)
                .map(|(path, text)| (*path, text.as_str())),
        );
        CARGO.told(&house, what, &files, "did not run again");
    }
}

#[test]
fn manifests_that_leave_tests_out() {
    let house = rust_house();
    // The fix is in: only the test that is gone tells.
    for (what, more) in [
        ("autotests", "autotests = false\n"),
        ("lib", "\n[lib]\ntest = false\n"),
        (
            "no harness",
            "\n[[test]]\nname = \"outer\"\nharness = false\n",
        ),
        (
            "another path",
            "\n[[test]]\nname = \"outer\"\npath = \"src/empty.rs\"\n",
        ),
    ] {
        let outer = if what == "no harness" {
            "fn main() {}\n"
        } else {
            OUTER
        };
        let text = manifest(more);
        let files = [
            ("Cargo.toml", text.as_str()),
            ("src/lib.rs", FIXED),
            ("src/empty.rs", ""),
            ("tests/outer.rs", outer),
        ];
        CARGO.attack(&house, what, &files);
    }
}

#[test]
fn configuration_and_build_scripts() {
    let house = rust_house();
    for (what, text) in [
        ("runner", "[target.'cfg(all())']\nrunner = \"true\"\n"),
        ("rustflags", "[build]\nrustflags = [\"--cfg\", \"off\"]\n"),
    ] {
        CARGO.told(
            &house,
            what,
            &[("src/lib.rs", FIXED), (".cargo/config.toml", text)],
            "changed what decides how checks are run",
        );
    }
    let rewrite = "fn main() {\n    let text = std::fs::read_to_string(\"tests/outer.rs\").unwrap();\n    std::fs::write(\"tests/outer.rs\", text.replace(\"6\", \"3\")).unwrap();\n}\n";
    let quiet = BUG.replace("double(2), 4", "double(2), 2");
    CARGO.told(
        &house,
        "a build script",
        &[("build.rs", rewrite), ("src/lib.rs", &quiet)],
        "rewritten by setup or a check: tests/outer.rs",
    );
    CARGO.honest(
        &house,
        "an honest build script",
        &[(
            "build.rs",
            "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n}\n",
        )],
    );
}
