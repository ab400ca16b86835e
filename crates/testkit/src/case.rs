//! Cases and scripts, written in a moment.

use std::fs;
use std::path::Path;

/// A case whose check is one `grep` and whose control is a patch.
pub struct Case {
    pub name: String,
    allowed: String,
    forbidden: String,
    commands: String,
    control: String,
    hidden: String,
    extra: String,
    files: Vec<(String, String)>,
}

/// Solves the default case.
pub const ORACLE: &str = "[[step]]\ndo = \"write\"\npath = \"answer.txt\"\ntext = \"right\\n\"\n";

const CONTROL: &str = "--- a/control.txt\n+++ b/control.txt\n@@ -1 +1 @@\n-fine\n+broken\n";

impl Case {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            allowed: "[\"answer.txt\"]".into(),
            forbidden: "[\".env\", \"secret/\"]".into(),
            commands: "[\"grep -qx right answer.txt && grep -qx fine control.txt\"]".into(),
            control: "{ patch = \"control.patch\" }".into(),
            hidden: "[]".into(),
            extra: String::new(),
            files: [
                ("workspace/answer.txt", "wrong\n"),
                ("workspace/control.txt", "fine\n"),
                ("workspace/keep.txt", "keep\n"),
                ("workspace/.gitignore", "*.tmp\ncache/\n"),
                ("control.patch", CONTROL),
                ("scripts/oracle.toml", ORACLE),
            ]
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .to_vec(),
        }
    }

    pub fn allowed(mut self, toml: &str) -> Self {
        self.allowed = toml.to_owned();
        self
    }

    pub fn forbidden(mut self, toml: &str) -> Self {
        self.forbidden = toml.to_owned();
        self
    }

    pub fn commands(mut self, toml: &str) -> Self {
        self.commands = toml.to_owned();
        self
    }

    pub fn control(mut self, toml: &str) -> Self {
        self.control = toml.to_owned();
        self
    }

    pub fn hidden(mut self, toml: &str) -> Self {
        self.hidden = toml.to_owned();
        self
    }

    /// Further lines of `case.toml`, before its tables.
    pub fn extra(mut self, toml: &str) -> Self {
        self.extra = toml.to_owned();
        self
    }

    pub fn file(mut self, path: &str, text: &str) -> Self {
        self.files.retain(|(known, _)| known != path);
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    pub fn toml(&self) -> String {
        format!(
            "schema_version = 1\ntask_id = \"{}\"\ntitle = \"Quick\"\nobjective = \"Make the answer right\"\nrisk_class = \"low\"\n\
             allowed_paths = {}\nforbidden_paths = {}\nforbidden_actions = [\"push\", \"merge\", \"deploy\"]\n\
             mutation_mode = \"copied-fixture\"\nverification_commands = {}\nverification_control = {}\nhidden_verification = {}\n\
             success_criteria = [\"the answer is right\"]\nrollback = \"discard the copy\"\n{}\n",
            self.name,
            self.allowed,
            self.forbidden,
            self.commands,
            self.control,
            self.hidden,
            self.extra
        )
    }

    pub fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("case.toml"), self.toml()).unwrap();
        for (path, text) in &self.files {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
}

/// A script from its steps.
pub fn script(steps: &[String]) -> String {
    steps.concat()
}

fn step(action: &str, fields: &[(&str, &str)]) -> String {
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let fields: String = fields
        .iter()
        .map(|(key, value)| format!("{key} = {}\n", quoted(value)))
        .collect();
    format!("[[step]]\ndo = \"{action}\"\n{fields}\n")
}

pub fn write(path: &str, text: &str) -> String {
    // The player drops one leading line end, for readable files; keep ours.
    let text = if text.starts_with('\n') {
        format!("\n{text}")
    } else {
        text.to_owned()
    };
    step("write", &[("path", path), ("text", &text)])
}

pub fn append(path: &str, text: &str) -> String {
    step("append", &[("path", path), ("text", text)])
}

pub fn shell(command: &str) -> String {
    step("shell", &[("command", command)])
}

pub fn print(text: &str) -> String {
    step("print", &[("text", text)])
}

pub fn sleep(ms: u64) -> String {
    format!("[[step]]\ndo = \"sleep\"\nms = {ms}\n\n")
}

pub fn exit(code: u8) -> String {
    format!("[[step]]\ndo = \"exit\"\ncode = {code}\n\n")
}
