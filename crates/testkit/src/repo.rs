//! A person's own repository: real git, real commits, every byte of it comparable.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bundle::files_below;
use crate::house::House;

pub struct Repo {
    pub dir: PathBuf,
}

impl Repo {
    /// `answer.txt` says `wrong`, `src/keep.txt` is there, `*.log` is ignored; all committed.
    pub fn new(house: &House, name: &str) -> Self {
        Self::of_format(house, name, "sha1")
    }

    /// The same with objects named in git's other way, or in the usual one.
    pub fn of_format(house: &House, name: &str, format: &str) -> Self {
        let repo = Self {
            dir: house.root().join(name),
        };
        fs::create_dir_all(&repo.dir).unwrap();
        let format = format!("--object-format={format}");
        repo.git(&["init", "-q", "-b", "main", &format]);
        repo.write("answer.txt", "wrong\n");
        repo.write("src/keep.txt", "keep\n");
        repo.write(".gitignore", "*.log\n");
        repo.commit("start");
        repo
    }

    pub fn path(&self) -> &str {
        self.dir.to_str().unwrap()
    }

    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn program(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    pub fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// Git as its owner would use it; the answer is standard output.
    pub fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=owner",
                "-c",
                "user.email=owner@example.invalid",
                "-c",
                "safe.directory=*",
            ])
            .args(["-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(&self.dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Every file, git's own included, by name and digest.
    pub fn bytes(&self) -> Vec<(String, String)> {
        if self.dir.exists() {
            files_below(&self.dir)
        } else {
            Vec::new()
        }
    }
}
