//! The real mocha, jest and vitest, started as people start them: what passes through them is proven, and
//! what leaves early, hides tests or lies about them does not pass.

use std::path::Path;

use cto_testkit::{Bundle, House, Repo, write};

use super::super::tried;
use crate::fixtures::runners::{install, installed};
use crate::house;

/// A runner, its tests, and the bug in what they test.
struct Kit {
    name: &'static str,
    command: &'static str,
    tests: &'static str,
    bug: &'static str,
    fixed: &'static str,
}

const MOCHA: Kit = Kit {
    name: "mocha",
    command: "mocha",
    tests: "const assert = require('assert');\nconst { double } = require('../app.js');\ndescribe('double', () => {\n  it('zero', () => assert.strictEqual(double(0), 0));\n  it('two', () => assert.strictEqual(double(2), 4));\n});\n",
    bug: "exports.double = (n) => n;\n",
    fixed: "exports.double = (n) => 2 * n;\n",
};
const JEST: Kit = Kit {
    name: "jest",
    command: "jest",
    tests: "const { double } = require('../app.js');\ndescribe('double', () => {\n  test('zero', () => expect(double(0)).toBe(0));\n  test('two', () => expect(double(2)).toBe(4));\n});\n",
    ..MOCHA
};
const VITEST: Kit = Kit {
    name: "vitest",
    command: "vitest run",
    tests: "import { test, expect } from 'vitest';\nimport { double } from '../app.js';\ntest('zero', () => expect(double(0)).toBe(0));\ntest('two', () => expect(double(2)).toBe(4));\n",
    bug: "export const double = (n) => n;\n",
    fixed: "export const double = (n) => 2 * n;\n",
};

impl Kit {
    fn repository(&self, house: &House, packages: &Path, script: &str) -> Repo {
        let repo = Repo::new(house, self.name);
        repo.write(".gitignore", "node_modules/\n");
        repo.write("app.js", self.bug);
        let kind = match self.bug.starts_with("export ") {
            true => "module",
            false => "commonjs",
        };
        repo.write(
            "package.json",
            &format!("{{\"type\": {kind:?}, \"scripts\": {{\"test\": {script:?}}}}}\n"),
        );
        repo.write("test/app.test.js", self.tests);
        repo.write(
            "test/more.test.js",
            &self
                .tests
                .replace("double'", "more'")
                .replace("'two'", "'deux'"),
        );
        repo.commit("the beginning");
        install(house, &repo, packages);
        repo
    }
}

#[track_caller]
fn assert_proven(bundle: &Bundle, what: &str) {
    let why = format!(
        "{what}: {} {}",
        bundle.report()["blockers"],
        bundle.text("test.log")
    );
    assert_eq!(bundle.status(), "pass", "{why}");
    assert_eq!(bundle.report()["belief"]["word"], "proven", "{why}");
}

/// The reason for which it was not believed.
#[track_caller]
fn untrusted(bundle: &Bundle, what: &str) -> String {
    let why = format!(
        "{what}: {} {}",
        bundle.report()["blockers"],
        bundle.text("test.log")
    );
    assert_eq!(bundle.codes(), ["verification_untrusted"], "{why}");
    let detail = bundle.report()["blockers"][0]["detail"].clone();
    detail.as_str().unwrap_or_default().to_owned()
}

const NPM: [&str; 2] = ["--test", "npm test"];

/// What every runner has to stand.
fn attacks(kit: &Kit, exits: &str, silences: &str) {
    let Some(packages) = installed(kit.name) else {
        return;
    };
    let house = house();
    let repo = kit.repository(&house, &packages, kit.command);
    let bundle = tried(&house, &repo, &[write("app.js", kit.fixed)], &NPM);
    assert_proven(&bundle, kit.name);
    let found = &bundle.json("contract.json")["recognised"][0]["found"][0];
    assert_eq!(found["runner"], kit.name);
    let ids = bundle.json("test-ids.json");
    let named = ids["commands"][0]["baseline"].as_object().unwrap();
    assert_eq!(named.len(), 4, "{named:?}");
    assert!(named.keys().all(|id| id.starts_with("test/")), "{named:?}");
    for (what, path, text) in [
        (
            "leaves while it is loaded",
            "app.js",
            format!("process.exit(0);\n{}", kit.bug),
        ),
        (
            "leaves in a test",
            "app.js",
            kit.bug.replace("=> n", "=> n === 2 ? process.exit(0) : n"),
        ),
        (
            "tests vanish",
            "test/app.test.js",
            kit.tests
                .replace("'two'", "'too'")
                .replace("toBe(4)", "toBe(2)")
                .replace("(2), 4", "(2), 2"),
        ),
        (
            "silences assertions",
            "app.js",
            format!("{silences}{}", kit.bug),
        ),
    ] {
        let bundle = tried(&house, &repo, &[write(path, &text)], &NPM);
        // A runner that notices by itself is red; none may be green.
        if bundle.codes() == ["verification_failed"] {
            continue;
        }
        let why = untrusted(&bundle, what);
        if what.starts_with("leaves") {
            assert!(why.contains(exits), "{what}: {why}");
        }
    }
}

#[test]
fn mocha_is_heard() {
    let silences = "const assert = require('assert');\nassert.strictEqual = () => {};\n";
    attacks(&MOCHA, "mocha began and left no report", silences);
}

#[test]
fn jest_is_heard() {
    let silences = "globalThis.expect = () => ({ toBe() {} });\n";
    attacks(&JEST, "jest began and left no report", silences);
}

#[test]
fn vitest_is_heard() {
    let silences = "Object.is = () => true;\n";
    attacks(&VITEST, "", silences);
}

/// Words people put around a runner, options that select or stop early, reporters without a count.
#[test]
fn mocha_as_people_start_it() {
    let kit = MOCHA;
    let Some(packages) = installed(kit.name) else {
        return;
    };
    let house = house();
    for script in [
        "mocha -b -R dot",
        "NODE_ENV=test mocha --grep two",
        "mocha --reporter min test/app.test.js",
    ] {
        let repo = kit.repository(&house, &packages, script);
        let bundle = tried(&house, &repo, &[write("app.js", kit.fixed)], &NPM);
        assert_proven(&bundle, script);
        std::fs::remove_dir_all(&repo.dir).unwrap();
    }
    let repo = kit.repository(&house, &packages, "mocha");
    for command in [
        "node_modules/.bin/mocha --bail -R min",
        "env A=1 timeout 600 npx mocha -g two",
        "cd test && npx mocha app.test.js",
    ] {
        let bundle = tried(
            &house,
            &repo,
            &[write("app.js", kit.fixed)],
            &["--test", command],
        );
        assert_proven(&bundle, command);
    }
    // A change of what the command does: what the control showed was shown of the former one.
    let altered = "{\"type\": \"commonjs\", \"scripts\": {\"test\": \"mocha -R dot\"}}\n";
    let steps = [write("app.js", kit.fixed), write("package.json", altered)];
    let bundle = tried(&house, &repo, &steps, &NPM);
    assert_eq!(bundle.status(), "pass", "{}", bundle.text("test.log"));
    assert_eq!(bundle.report()["belief"]["word"], "partly");
    let done = bundle.event("verification.completed").unwrap();
    assert_eq!(done["recognised_otherwise"][0], "npm test");
}
