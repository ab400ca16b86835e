//! Four commands by flags, with the real agents: installed, set up, tried on a repository of one's own,
//! applied. As root and as an ordinary user.

use std::fs;
use std::path::Path;

use cto_testkit::{House, Repo};
use serde_json::{Value, json};

use crate::fixtures::people::houses;
use crate::fixtures::pi_lab::{
    ACP_CODEX, ACP_GEMINI, ACP_OPENCODE, ACP_PI, ACP_QWEN, Agent, CODEX, KEY, KEY_VARIABLE, Lab,
    OPENCODE, PI_24,
};

/// Works on whichever of the two it stands in: the case of the proof, or the repository.
const FIX: &str = r#"if [ -f strings.py ]; then printf 'import re\n\n\ndef slugify(text):\n    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")\n' > strings.py; fi
if [ -f greet.py ]; then sed -i 's/return "hello"/return "hello " + name/' greet.py; fi"#;

struct Way {
    agent: Agent,
    license: &'static str,
    /// Its tool that runs a command, and what that is told.
    tool: &'static str,
    arguments: fn(&str) -> Value,
    /// What is typed at setup beside the rest.
    more: &'static [&'static str],
}

fn repository(house: &House) -> Repo {
    let repo = Repo::new(house, "mine");
    repo.write("greet.py", "def greet(name):\n    return \"hello\"\n");
    repo.write(
        "test_greet.py",
        "import unittest\n\nfrom greet import greet\n\n\nclass Greets(unittest.TestCase):\n    def test_whom(self):\n        self.assertEqual(greet(\"Ada\"), \"hello Ada\")\n",
    );
    repo.commit("a greeting");
    house.hand_over(&repo.dir);
    repo
}

/// Setup, try, apply.
fn walk(way: &Way, program: &Path, house: House) {
    let engine = way.agent.engine;
    let open = format!(
        "CTO_HARNESS_ALLOW_{}",
        engine.to_uppercase().replace('-', "_")
    );
    let house = house.with(KEY_VARIABLE, KEY).with(&open, "1");
    let lab = Lab::bare(&way.agent, house);
    let call = (way.arguments)(FIX);
    let tool = way.tool;
    let model = lab.model(&format!(
        "[probe]\ntext = \"ready\"\n[[turn]]\ntext = \"I will fix it.\"\ntool = [{{ name = \"{tool}\", raw = '''{call}''' }}]\n[[turn]]\ntext = \"Done.\"\n"
    ));
    let url = lab.house.root().join("url");
    fs::copy(&model.url_file, &url).unwrap();
    private(&lab.house, &url);
    let mut setup = vec![
        "setup",
        engine,
        "--bin",
        program.to_str().unwrap(),
        "--base-url-file",
        url.to_str().unwrap(),
        "--credential",
        "env:LAB_KEY",
        "--model",
        "scripted",
        "--approval",
        "the owner",
        "--license",
        way.license,
        "--confirm",
        engine,
        "--json",
    ];
    setup.extend(way.more);
    let done = lab.house.cto(&setup);
    assert_eq!(done.code, Some(0), "{engine}: {done:?}");
    let said = done.json();
    for stage in ["stage1", "stage2"] {
        assert_eq!(said[stage]["ok"], true, "{engine}: {said}");
    }
    let repo = repository(&lab.house);
    let (tried, bundle) = lab.house.run_args(&[
        "try",
        "--repo",
        repo.path(),
        "--engine",
        engine,
        "--task",
        "Make greet() say hello to whom it is given",
        "--allow",
        "greet.py",
        "--test",
        "python3 -m unittest",
        "--json",
    ]);
    assert_eq!(
        tried.code,
        Some(0),
        "{engine}: {:?} {tried:?}",
        bundle.codes()
    );
    crate::assert_good(&bundle);
    crate::fixtures::pi_lab::assert_no_leak(&bundle, &model);
    let taken = lab
        .house
        .cto(&["apply", &bundle.run_id(), "--repo", repo.path()]);
    assert_eq!(taken.code, Some(0), "{engine}: {taken:?}");
    let text = fs::read_to_string(repo.dir.join("greet.py")).unwrap();
    assert!(text.contains("hello \" + name"), "{engine}: {text}");
}

/// For its owner alone: what it holds is theirs.
fn private(house: &House, path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    house.hand_over(path);
}

fn everybody(way: &Way) {
    let Some(program) = way.agent.installed() else {
        return;
    };
    for house in houses() {
        walk(way, &program, house);
    }
}

/// The ordinary user alone where there is one: what differs for root is shown by the others.
fn somebody(way: &Way) {
    let Some(program) = way.agent.installed() else {
        return;
    };
    walk(way, &program, houses().pop().unwrap());
}

#[test]
fn codex_in_four_commands() {
    everybody(&Way {
        agent: CODEX,
        license: "Apache-2.0",
        tool: "exec_command",
        arguments: |command| json!({"cmd": command}),
        more: &[],
    });
}

#[test]
fn opencode_in_four_commands() {
    everybody(&Way {
        agent: OPENCODE,
        license: "MIT",
        tool: "bash",
        arguments: |command| json!({"command": command, "description": "work"}),
        more: &[],
    });
}

#[test]
fn the_newer_pi_in_four_commands_on_the_node_beside_it() {
    everybody(&Way {
        agent: PI_24,
        license: "MIT",
        tool: "bash",
        arguments: |command| json!({"command": command}),
        more: &[],
    });
}

#[test]
fn gemini_in_four_commands_over_its_own_protocol() {
    everybody(&Way {
        agent: ACP_GEMINI,
        license: "Apache-2.0",
        tool: "run_shell_command",
        arguments: |command| json!({"command": command}),
        more: &["--model-protocol", "gemini-generate"],
    });
}

/// It is asked for its version alone: any other word begins a conversation that nobody ends.
#[test]
fn codex_behind_its_adapter_in_four_commands() {
    somebody(&Way {
        agent: ACP_CODEX,
        license: "Apache-2.0",
        tool: "exec_command",
        arguments: |command| json!({"cmd": command}),
        more: &[],
    });
}

#[test]
fn opencode_as_an_acp_agent_in_four_commands() {
    somebody(&Way {
        agent: ACP_OPENCODE,
        license: "MIT",
        tool: "bash",
        arguments: |command| json!({"command": command, "description": "work"}),
        more: &[],
    });
}

#[test]
fn qwen_in_four_commands() {
    somebody(&Way {
        agent: ACP_QWEN,
        license: "Apache-2.0",
        tool: "run_shell_command",
        arguments: |command| json!({"command": command, "is_background": false}),
        more: &[],
    });
}

#[test]
fn pi_behind_its_adapter_says_nothing_and_is_known_by_its_package() {
    everybody(&Way {
        agent: ACP_PI,
        license: "MIT",
        tool: "bash",
        arguments: |command| json!({"command": command}),
        more: &[],
    });
}
