//! What lies where it is started, and what its environment says of proxies: a real Case was seen to take orders from both, so
//! the double does. Whoever starts it in somebody's repository, or hands on their proxies, shows it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

pub struct Surroundings {
    /// Of `.env`: for commands, and for itself where its environment has none of that name.
    pub variables: Vec<(String, String)>,
    /// Of `.pi/settings.json`: what runs its commands.
    pub shell: Option<String>,
    /// Of a package that calls itself `case`: words for its agents.
    prompts: Option<PathBuf>,
}

impl Surroundings {
    /// Reads them, and runs what they want run before anything else.
    pub fn of(place: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(place.join(name)).unwrap_or_default();
        let json = |name: &str| serde_json::from_str::<Value>(&text(name)).unwrap_or_default();
        let variables: Vec<(String, String)> = text(".env")
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter(|(name, _)| env::var_os(name).is_none())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let bunfig: Option<toml::Table> = text("bunfig.toml").parse().ok();
        let preload = bunfig.and_then(|table| table.get("preload").cloned());
        for file in preload.iter().filter_map(toml::Value::as_array).flatten() {
            // A real one runs JavaScript; a shell must do here.
            let _ = Command::new("/bin/sh")
                .arg(file.as_str().unwrap_or_default())
                .current_dir(place)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status();
        }
        let shell = json(".pi/settings.json")["shellPath"]
            .as_str()
            .map(str::to_owned);
        let is_case = json("package.json")["name"] == "case";
        Self {
            variables,
            shell,
            prompts: is_case.then(|| place.join("prompts")),
        }
    }

    pub fn variable(&self, name: &str) -> Option<String> {
        let own = env::var(name).ok();
        own.or_else(|| {
            let found = self.variables.iter().find(|(have, _)| have == name);
            found.map(|(_, value)| value.clone())
        })
    }

    pub fn prompt(&self, role: &str) -> Option<String> {
        let file = self.prompts.as_ref()?.join(format!("{role}.md"));
        fs::read_to_string(file).ok()
    }

    /// Whom it asks instead, even for an address of this machine's own.
    pub fn proxy(&self, host: &str) -> Option<String> {
        let named = |names: [&str; 2]| names.iter().find_map(|name| self.variable(name));
        let spared = named(["NO_PROXY", "no_proxy"]).unwrap_or_default();
        if spared.split(',').any(|name| name.trim() == host) {
            return None;
        }
        let url = named(["HTTP_PROXY", "http_proxy"])?;
        let rest = url.strip_prefix("http://").unwrap_or(&url);
        Some(rest.trim_end_matches('/').to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_taken_from_what_lies_there_and_from_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let none = Surroundings::of(dir.path());
        assert!(
            none.variables.is_empty() && none.shell.is_none() && none.prompt("closer").is_none()
        );
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            ".env",
            "PATH=/nowhere\nOF_A_FILE=1\nNO_PROXY=127.0.0.1\nHTTP_PROXY=http://proxy:1/\n",
        );
        put("bunfig.toml", "preload = [\"./run.js\"]\n");
        put("run.js", "//bin/true; touch preloaded; exit\n");
        put(".pi/settings.json", "{\"shellPath\": \"/bin/dash\"}");
        put("package.json", "{\"name\": \"case\"}");
        put("prompts/closer.md", "Close.\n");
        let all = Surroundings::of(dir.path());
        assert_eq!(all.variable("OF_A_FILE").as_deref(), Some("1"));
        assert_ne!(
            all.variable("PATH").as_deref(),
            Some("/nowhere"),
            "its own goes before"
        );
        assert_eq!(all.shell.as_deref(), Some("/bin/dash"));
        assert_eq!(all.prompt("closer").as_deref(), Some("Close.\n"));
        assert!(dir.path().join("preloaded").exists());
        assert_eq!(all.proxy("127.0.0.1"), None);
        assert_eq!(all.proxy("elsewhere").as_deref(), Some("proxy:1"));
        put("package.json", "{\"name\": \"other\"}");
        assert_eq!(Surroundings::of(dir.path()).prompt("closer"), None);
    }
}
