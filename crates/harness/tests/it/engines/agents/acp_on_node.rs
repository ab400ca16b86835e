//! Agents that are talked to and run on Node: Gemini CLI, Qwen Code and Pi behind its adapter. Through the
//! whole path against a scripted model, as root and as an ordinary user; and what runs them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cto_testkit::{Answer, Bundle};
use serde_json::{Value, json};

use crate::fixtures::people::houses;
use crate::fixtures::pi_lab::{
    ACP_GEMINI, ACP_PI, ACP_QWEN, Agent, DONE, Lab, PROBE, assert_no_leak, tool,
};
use crate::{assert_good, house};

const FIX: &str = r#"printf 'import re\n\n\ndef slugify(text):\n    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")\n' > strings.py"#;
const PROMPTED: &str = "Say MARK-7431 in every message.\n";

/// Nothing was tried that is forbidden, nothing said that was not understood.
fn assert_quiet(bundle: &Bundle) {
    let ended = bundle.event("engine.ended").unwrap();
    let said = bundle.text("backend/stdout.log");
    assert_eq!(ended["unknown_lines"], 0, "{said}");
    let actions = &ended["actions"];
    assert_eq!(actions["recorded"], true, "{actions}");
    let seen = actions["attempts"].as_array().map_or(0, Vec::len);
    assert_eq!(seen, 0, "{actions}");
    assert_eq!(ended["model"]["refused"], 0, "{ended}");
}

fn passes(agent: &Agent, shell: fn(&str) -> String) {
    let Some(program) = agent.installed() else {
        return;
    };
    for house in houses() {
        let lab = Lab::of(agent, &program, house, "r1-string-slugify".into());
        let turns = [shell(FIX), shell("python3 -m unittest")];
        let model = lab.model(&format!("{PROBE}{}{DONE}", turns.concat()));
        let words = lab.house.root().join("AGENTS.md");
        fs::write(&words, PROMPTED).unwrap();
        lab.house.hand_over(&words);
        let (answer, bundle) = lab.run(&model, &["--instructions", words.to_str().unwrap()]);
        let said = || bundle.text("backend/stdout.log") + &bundle.text("backend/stderr.log");
        assert_eq!(answer.code, Some(0), "{:?} {}", bundle.codes(), said());
        assert_no_leak(&bundle, &model);
        assert_good(&bundle);
        assert_quiet(&bundle);
        assert_eq!(bundle.changed_files(), ["strings.py"]);
        assert!(model.heard("MARK-7431"), "{}", agent.engine);
        let report = bundle.report();
        assert_eq!(report["claimed"]["status"], "completed");
        let engine = &report["engine"];
        assert_eq!(
            (&engine["version"], &engine["warnings"]),
            (&json!(agent.version), &Value::Null)
        );
    }
}

#[test]
fn gemini_passes_the_default_case() {
    passes(&ACP_GEMINI, |command| {
        tool("run_shell_command", json!({"command": command}))
    });
}

#[test]
fn qwen_passes_the_default_case() {
    passes(&ACP_QWEN, |command| {
        tool(
            "run_shell_command",
            json!({"command": command, "is_background": false}),
        )
    });
}

#[test]
fn pi_behind_its_adapter_passes_the_default_case() {
    passes(&ACP_PI, |command| tool("bash", json!({"command": command})));
}

/// The packages of an agent without the Node that lies beside them.
fn without_node(program: &Path, to: &Path) {
    let modules = program
        .ancestors()
        .find(|dir| dir.ends_with("node_modules"))
        .unwrap();
    let made = std::process::Command::new("cp")
        .args(["-al", modules.to_str().unwrap(), to.to_str().unwrap()])
        .status();
    // Another file system: then in full.
    if !made.unwrap().success() {
        let _ = fs::remove_dir_all(to);
        let made = std::process::Command::new("cp")
            .arg("-a")
            .arg(modules)
            .arg(to)
            .status();
        assert!(made.unwrap().success());
    }
    fs::remove_file(to.join(".bin/node")).unwrap();
}

/// This machine's Node is 20; the agent wants 22.
#[test]
fn an_interpreter_that_is_too_old_or_cannot_be_used_is_refused_with_what_to_install() {
    let Some(program) = ACP_QWEN.installed() else {
        return;
    };
    let version = std::process::Command::new("node").arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    if !version.as_ref().is_ok_and(|text| text.starts_with("v20.")) {
        return cto_testkit::skip("this machine's own Node is not 20");
    }
    let house = house();
    let modules = house.root().join("node_modules");
    without_node(&program, &modules);
    let bin = modules.join(".bin/qwen");
    let admit = || -> Answer {
        house.cto(&[
            "admit",
            "executable",
            "new",
            "--engine",
            "acp-qwen",
            "--bin",
            bin.to_str().unwrap(),
        ])
    };
    let refused = |what: &str, words: &[&str]| {
        let answer = admit();
        assert_eq!(answer.code, Some(3), "{what}: {answer:?}");
        for word in [&["executable_not_admitted"], words].concat() {
            assert!(answer.stderr.contains(word), "{what}: {word}: {answer:?}");
        }
    };
    refused(
        "too old",
        &[
            "acp-qwen needs node 22 or newer, and this one is 20",
            "npm install --prefix",
            "node-linux-",
        ],
    );
    symlink("../gone", modules.join(".bin/node")).unwrap();
    refused("leads nowhere", &["leads nowhere", "npm install --prefix"]);
    fs::remove_file(modules.join(".bin/node")).unwrap();
    symlink("/usr/bin/node", modules.join(".bin/node")).unwrap();
    refused("leads out", &["leads out of them"]);
}
