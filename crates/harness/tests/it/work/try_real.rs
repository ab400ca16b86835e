//! `cto try` on the projects people have: cargo with fetched crates, Python in a virtual
//! environment.

use std::process::Command;

use cto_testkit::{Repo, script, write};

use crate::assert_good;
use crate::fixtures::rust::with_own_rust;
use crate::house;

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_cargo_project_with_a_dependency() {
    let house = with_own_rust(house());
    let repo = Repo::new(&house, "rust");
    let manifest = "[package]\nname = \"counting\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nmemchr = \"2\"\n";
    repo.write("Cargo.toml", manifest);
    repo.write(".gitignore", "/target\n");
    let library = |count: &str| {
        format!(
            "pub fn count(text: &str) -> usize {{\n    {count}\n}}\n\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn bananas() {{\n        assert_eq!(super::count(\"banana\"), 3);\n    }}\n}}\n"
        )
    };
    let right = library("memchr::memchr_iter(b'a', text.as_bytes()).count()");
    repo.write("src/lib.rs", &library("text.len()"));
    run(Command::new("cargo")
        .args(["generate-lockfile", "--offline"])
        .current_dir(&repo.dir));
    repo.commit("a bug");
    for (text, code, want) in [
        (right.as_str(), 0, "pass"),
        (&library("text.len() / 2 + text.len() % 2 + 1"), 1, "fail"),
        // Green without running anything.
        (
            &format!(
                "{right}\n#[cfg(test)]\n#[no_mangle]\npub extern \"C\" fn cto() {{}}\n#[cfg(test)]\n#[used]\n#[link_section = \".init_array\"]\nstatic END: extern \"C\" fn() = {{ extern \"C\" fn end() {{ std::process::exit(0) }} end }};\n"
            ),
            1,
            "fail",
        ),
    ] {
        let file = house.script("change", &script(&[write("src/lib.rs", text)]));
        let args = [
            "try",
            "--repo",
            repo.path(),
            "--task",
            "Count the letter",
            "--allow",
            "src",
            "--test",
            "cargo test",
        ];
        let (answer, bundle) =
            house.run_args(&[&args[..], &["--script", &file, "--json"]].concat());
        assert_eq!(
            answer.code,
            Some(code),
            "{} {}",
            answer.stderr,
            bundle.text("test.log")
        );
        assert_eq!(bundle.status(), want);
        assert_good(&bundle);
    }
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_python_project_in_a_virtual_environment() {
    let house = house();
    let repo = Repo::new(&house, "python");
    repo.write(".gitignore", "/.venv/\n__pycache__/\n");
    repo.write("answer.py", "ANSWER = 1\n");
    repo.commit("a bug");
    run(Command::new("python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(&repo.dir));
    let found = Command::new(repo.at(".venv/bin/python3"))
        .args([
            "-c",
            "import sysconfig; print(sysconfig.get_path('purelib'))",
        ])
        .output()
        .unwrap();
    let site = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    let checker =
        "import sys\nsys.path.insert(0, '.')\nfrom answer import ANSWER\nsys.exit(ANSWER != 2)\n";
    std::fs::write(format!("{site}/only_in_the_venv.py"), checker).unwrap();
    let path = format!(
        "{}:{}",
        repo.at(".venv/bin").display(),
        std::env::var("PATH").unwrap()
    );
    let house = house.with("PATH", &path);
    let file = house.script("change", &script(&[write("answer.py", "ANSWER = 2\n")]));
    let test = "python3 -m only_in_the_venv";
    let args = [
        "try",
        "--repo",
        repo.path(),
        "--task",
        "Two",
        "--allow",
        "answer.py",
        "--test",
        test,
        "--script",
        &file,
        "--json",
    ];
    let (answer, bundle) = house.run_args(&args);
    assert_eq!(
        answer.code,
        Some(0),
        "{} {}",
        answer.stderr,
        bundle.text("test.log")
    );
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}
