//! Never stale, by real TypeScript that remembers what it compiled (`.tsbuildinfo`): over output that
//! the operator names, and with the compiler in `node_modules`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cto_testkit::{copy_dir, shell, skip, write};

use super::*;

/// Where TypeScript is, on hosts that have it.
fn compiler() -> Option<PathBuf> {
    let named = std::env::var_os("CTO_TEST_TYPESCRIPT").map(PathBuf::from);
    let system = [
        "/usr/share/nodejs/typescript",
        "/usr/lib/node_modules/typescript",
    ];
    let mut places = named.into_iter().chain(system.map(PathBuf::from));
    places.find(|dir| dir.join("lib/tsc.js").is_file())
}

const CONFIG: &str = "{\"compilerOptions\": {\"incremental\": true, \"composite\": true, \"outDir\": \"out\", \
                      \"rootDir\": \"src\", \"types\": [], \"module\": \"commonjs\", \"strict\": true}, \
                      \"include\": [\"src\"]}\n";
const APP: &str = "import { part } from './part';\nexport const answer: number = part + 41;\n";
const CHECK: &str =
    "import { answer } from './app';\nif (answer !== 42) { throw new Error('wrong'); }\n";
const TEST: &str = "node node_modules/typescript/lib/tsc.js -b && node out/check.js";

fn build(repo: &Repo) {
    let done = Command::new("sh")
        .args(["-c", TEST])
        .current_dir(&repo.dir)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn tsc_compiles_anew_what_changed() {
    let Some(typescript) = compiler() else {
        return skip("there is no TypeScript");
    };
    let house = house_with("overlay");
    let repo = Repo::new(&house, "typed");
    for (path, text) in [
        (".gitignore", "node_modules\n/out/\n*.tsbuildinfo\n"),
        ("package.json", "{}\n"),
        ("tsconfig.json", CONFIG),
        ("src/app.ts", APP),
        ("src/part.ts", "export const part: number = 1;\n"),
        ("src/check.ts", CHECK),
    ] {
        repo.write(path, text);
    }
    repo.commit("a project");
    let lib = repo.at("node_modules/typescript/lib");
    fs::create_dir_all(lib.parent().unwrap()).unwrap();
    copy_dir(&typescript.join("lib"), &lib);
    build(&repo);
    let more = ["--input", "out", "--test", TEST];
    let wrong = APP.replace("41", "40");
    for (what, steps, code) in [
        (
            "a comment",
            vec![write("src/app.ts", &format!("// Why.\n{APP}"))],
            0,
        ),
        ("equal size", vec![write("src/app.ts", &wrong)], 1),
        (
            "a part of equal size",
            vec![write("src/part.ts", "export const part: number = 2;\n")],
            1,
        ),
        ("a deletion", vec![shell("rm src/part.ts")], 1),
        ("a rename", vec![shell("mv src/part.ts src/piece.ts")], 1),
        (
            "a type",
            vec![write("src/part.ts", "export const part: string = 'a';\n")],
            1,
        ),
    ] {
        let (answer, bundle) = attempt(&house, &repo, &steps, &more);
        assert_eq!(
            answer.code,
            Some(code),
            "{what}: {}",
            bundle.text("test.log")
        );
        crate::assert_good(&bundle);
    }
    // HEAD is broken and the work tree is not; its owner has just built it.
    repo.write("src/app.ts", &wrong);
    repo.commit("a bug");
    repo.write("src/app.ts", APP);
    build(&repo);
    let more = [&more[..], &["--from-head"]].concat();
    let (answer, bundle) = attempt(&house, &repo, &[write("notes", "n\n")], &more);
    assert_eq!(answer.code, Some(1), "{}", bundle.text("test.log"));
}
