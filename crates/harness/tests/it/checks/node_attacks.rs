//! The same attacks with the test runner of node, and with npm before it.

use std::path::Path;

use cto_testkit::{shell, skip, write};

use crate::fixtures::project::Project;
use crate::house;

const NODE_TESTS: &str = "import test, { describe, it } from 'node:test';\nimport assert from 'node:assert';\nimport { double } from './app.mjs';\n\ntest('zero', () => assert.strictEqual(double(0), 0));\ndescribe('double', () => {\n  it('two', () => assert.strictEqual(double(2), 4));\n});\n";

const NODE_BUG: &str = "export const double = (n) => n;\n";

const NODE_FIXED: &str = "export const double = (n) => 2 * n;\n";

const NODE: Project = Project {
    runner: "node",
    command: "node --test",
    extra: "",
    files: &[
        ("app.mjs", NODE_BUG),
        ("app.test.mjs", NODE_TESTS),
        (
            "package.json",
            "{\"scripts\": {\"test\": \"node --test\"}}\n",
        ),
    ],
    fix: ("app.mjs", NODE_FIXED),
};

const NPM: Project = Project {
    command: "npm test",
    extra: "toolchains = [\"node\"]",
    ..NODE
};

#[test]
fn node_and_its_tests() {
    let house = house();
    let bundle = NODE.honest(
        &house,
        "the fix",
        &[(
            "new.test.mjs",
            "import test from 'node:test';\ntest('new', () => console.log('ok 1 - x'));\n",
        )],
    );
    assert_eq!(
        bundle.json("test-ids.json")["commands"][0]["baseline"]["app.test.mjs: double > two"]["failed"],
        1
    );
    for (what, file, text) in [
        (
            "process.exit in a module",
            "app.mjs",
            format!("process.exit(0);\n{NODE_BUG}"),
        ),
        (
            "process.exit at the end",
            "app.mjs",
            format!("process.on('exit', () => {{ process.exitCode = 0; }});\n{NODE_BUG}"),
        ),
        (
            "skip",
            "app.test.mjs",
            NODE_TESTS.replace("it('two',", "it.skip('two',"),
        ),
        (
            "todo",
            "app.test.mjs",
            NODE_TESTS.replace("it('two',", "it.todo('two',"),
        ),
        (
            "renamed",
            "app.test.mjs",
            NODE_TESTS.replace(
                "it('two', () => assert.strictEqual(double(2), 4))",
                "it('too', () => {})",
            ),
        ),
        (
            "suite renamed",
            "app.test.mjs",
            NODE_TESTS.replace("describe('double', ", "describe.skip('double', "),
        ),
        ("emptied", "app.test.mjs", String::new()),
    ] {
        NODE.attack(&house, what, &[(file, &text)]);
    }
    let planted = [write("node", "#!/bin/sh\nexit 0\n"), shell("chmod +x node")];
    assert_eq!(
        NODE.attack_by(&house, "a planted node", &planted).codes(),
        ["verification_failed"]
    );
}

#[test]
fn npm_and_its_configuration() {
    if !Path::new("/usr/bin/npm").exists() {
        assert!(std::env::var_os("REQUIRE_NPM").is_none(), "npm is not here");
        return skip("there is no /usr/bin/npm");
    }
    let house = house();
    NPM.honest(
        &house,
        "the fix",
        &[(
            "package.json",
            "{\"name\": \"x\", \"scripts\": {\"test\": \"node --test\"}}\n",
        )],
    );
    for (what, command) in [
        ("exit 0", "exit 0"),
        ("or true", "node --test || true"),
        ("only", "node --test --test-only"),
        (
            "a pattern",
            "node --test --test-name-pattern=zero --test-name-pattern=cto",
        ),
        (
            "red only with the control",
            "node --test > out.txt; cat out.txt; ! grep -q 'cto control' out.txt",
        ),
    ] {
        NPM.attack(
            &house,
            what,
            &[(
                "package.json",
                &format!("{{\"scripts\": {{\"test\": \"{command}\"}}}}\n"),
            )],
        );
    }
    for (what, text) in [
        ("script-shell", "script-shell=/bin/true\n"),
        ("node-options", "node-options=--require=./exit.cjs\n"),
    ] {
        NPM.attack(
            &house,
            what,
            &[(".npmrc", text), ("exit.cjs", "process.exit(0);\n")],
        );
    }
    let bin = [
        shell("mkdir -p node_modules/.bin"),
        write("node_modules/.bin/node", "#!/bin/sh\nexit 0\n"),
        shell("chmod +x node_modules/.bin/node"),
    ];
    NPM.attack_by(&house, "node_modules/.bin", &bin);
}
