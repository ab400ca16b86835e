//! Which engines there are: the list, engines of one's own, and what a check of one says.

pub mod check;
pub mod list;
pub mod own;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use cto_testkit::House;

/// The manifest of the stand-in.
pub const LAB: &str = r#"id = "lab"
title = "An agent of a lab"
gated_by_env = "CTO_HARNESS_ALLOW_LAB"
default_stage = 1

[invocation]
program = "admitted"
dialect = "plain"
argv = ["--model", "{model}", "--message", "{prompt}"]
packages = "pyvenv.cfg"
interpreter = "python3"
version_file = "lab_agent.dist-info"
tested_versions = ["1.2.3"]
answer = """
{path}
```
{text}```
"""

[invocation.env]
OPENAI_API_BASE = "{door}"
OPENAI_API_KEY = "{token}"

[[invocation.model.protocols]]
wire = "openai-chat"
name = "openai"
base = "/v1"
"#;

/// An agent that reads its edits from what its model says, as some do.
const AGENT: &str = r#"
import json, os, sys, urllib.request
if "--help" in sys.argv: sys.exit(print("usage: lab --model NAME --message TEXT"))
if "--version" in sys.argv: sys.exit(print("lab 1.2.3"))
import lab_agent
if "--connect" in sys.argv:
    import socket
    try: socket.create_connection(("192.0.2.1", 80), 1)
    except OSError: pass
word = lambda name: sys.argv[sys.argv.index(name) + 1]
body = {"model": word("--model"), "messages": [{"role": "user", "content": word("--message")}]}
head = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
url = os.environ["OPENAI_API_BASE"] + "/chat/completions"
request = urllib.request.Request(url, json.dumps(body).encode(), head)
answer = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
lab_agent.apply(answer)
"#;

const PACKAGE: &str = r#"
def apply(answer):
    path, rest = answer.strip().split("\n```\n", 1)
    with open(path, "w") as file:
        file.write(rest.rsplit("```", 1)[0])
    print("wrote " + path)
"#;

/// Where the operator's own manifests lie in a house.
pub fn own_directory(house: &House) -> PathBuf {
    let dir = house.root().join("home/.config/cto/engines");
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Writes a manifest of one's own.
pub fn put(house: &House, name: &str, text: &str) -> PathBuf {
    let file = own_directory(house).join(format!("{name}.toml"));
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    house.hand_over(&house.root().join("home"));
    file
}

/// A Python environment with the stand-in in it, as pip would install one; its program.
pub fn environment(house: &House) -> PathBuf {
    let root = house.root().canonicalize().unwrap().join("elsewhere/venv");
    let python = Path::new("/usr/bin/python3");
    let minor = Command::new(python)
        .args(["-c", "import sys; print(sys.version_info[1])"])
        .output()
        .unwrap();
    let minor = String::from_utf8(minor.stdout).unwrap();
    let site = root.join(format!("lib/python3.{}/site-packages", minor.trim()));
    fs::create_dir_all(site.join("lab_agent-1.2.3.dist-info")).unwrap();
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(
        root.join("pyvenv.cfg"),
        "home = /usr/bin\ninclude-system-site-packages = false\n",
    )
    .unwrap();
    symlink(python, root.join("bin/python3")).unwrap();
    fs::write(site.join("lab_agent.py"), PACKAGE).unwrap();
    let program = root.join("bin/lab");
    let text = format!("#!{}\n{AGENT}", root.join("bin/python3").display());
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    house.hand_over(&root);
    program
}
