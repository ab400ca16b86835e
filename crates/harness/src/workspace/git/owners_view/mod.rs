//! A work tree as its owner's git sees it: which files it takes for which blobs, by the owner's own
//! settings. Those are asked for and allowed one by one; nothing else of a configuration counts, and
//! no program that one names is ever started. `lfs.rs` large files among them.

mod lfs;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::values::paths::TreePath;

use super::command::{Asking, asked, scrubbed, told_lines};
use super::source::SourceRepo;
use super::{GitError, HarnessRepo};
use crate::host::programs::Program;

const YES_OR_NO: &[&str] = &["true", "false"];
/// Settings that say how files and blobs correspond, and what they may say.
const SETTINGS: [(&str, &[&str]); 4] = [
    ("core.filemode", YES_OR_NO),
    ("core.symlinks", YES_OR_NO),
    ("core.autocrlf", &["true", "false", "input"]),
    ("core.eol", &["lf", "crlf", "native"]),
];

/// What the owner set, the last word of each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct OwnersView(Vec<(&'static str, &'static str)>);

impl OwnersView {
    /// Asks the repository's configuration, the system's and, with a home, the owner's own.
    pub fn ask(git: &Program, git_dir: &Path, home: Option<&Path>) -> Result<Asking, GitError> {
        let mut command = scrubbed(git);
        command
            .env("GIT_DIR", git_dir)
            .env_remove("GIT_CONFIG_NOSYSTEM")
            .env_remove("GIT_CONFIG_SYSTEM");
        if let Some(home) = home {
            command.env("HOME", home).env_remove("GIT_CONFIG_GLOBAL");
        }
        command.args(["config", "-z", "--show-scope", "--get-regexp"]);
        command.arg("^core\\.(filemode|symlinks|autocrlf|eol)$");
        Asking::start("config", command)
    }

    /// What it answered.
    pub fn read(asking: Result<Asking, GitError>) -> Self {
        // Nothing set is an answer too.
        Self::of(&asking.and_then(Asking::answer).unwrap_or_default())
    }

    fn of(told: &[u8]) -> Self {
        let text = String::from_utf8_lossy(told).into_owned();
        let mut parts = text.split('\0');
        let mut found = Self::default();
        while let (Some(scope), Some(line)) = (parts.next(), parts.next()) {
            let (name, value) = line.split_once('\n').unwrap_or((line, "true"));
            let value = match value.trim().to_ascii_lowercase().as_str() {
                "1" | "yes" | "on" => "true".to_owned(),
                "0" | "no" | "off" | "" => "false".to_owned(),
                other => other.to_owned(),
            };
            let known = SETTINGS.iter().find(|(known, _)| *known == name);
            let allowed = known.and_then(|(name, values)| {
                let value = values.iter().find(|allowed| **allowed == value)?;
                Some((*name, *value))
            });
            // Ours of the command line are not the owner's.
            if let Some((name, value)) = allowed.filter(|_| scope != "command") {
                found.0.retain(|(known, _)| *known != name);
                found.0.push((name, value));
            }
        }
        found
    }

    /// For the command line of a git that looks at the work tree.
    pub fn args(&self) -> impl Iterator<Item = String> {
        let settings = self.0.iter();
        settings.flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")])
    }

    fn says(&self, name: &str, value: &str) -> bool {
        let mut all = self.0.iter();
        all.any(|(known, said)| *known == name && *said == value)
    }
}

impl SourceRepo {
    /// Modes on disk say nothing here.
    pub fn ignores_modes(&self) -> bool {
        self.view.says("core.filemode", "false")
    }

    /// Links are texts here.
    pub fn has_no_links(&self) -> bool {
        self.view.says("core.symlinks", "false")
    }

    /// Could files of the work tree be other bytes than their blobs?
    pub fn converts(&self) -> bool {
        let attributes = [
            self.top.join(".gitattributes"),
            self.ours.join("info/attributes"),
        ];
        self.view.says("core.autocrlf", "true")
            || self.view.says("core.eol", "crlf")
            || attributes.iter().any(|file| file.exists())
    }

    /// Which of these files of the work tree its owner's git takes for the blobs that lie under the
    /// same names in `raw`. By their bytes alone: no time or size is believed.
    pub fn same_for_owner(
        &self,
        raw: &Path,
        paths: &[&TreePath],
    ) -> Result<BTreeSet<TreePath>, GitError> {
        const OPERATION: &str = "hash-object";
        // Names are told one a line.
        let paths: Vec<&TreePath> = paths
            .iter()
            .copied()
            .filter(|path| !path.as_bytes().contains(&b'\n'))
            .collect();
        if paths.is_empty() {
            return Ok(BTreeSet::new());
        }
        let name = |path: &TreePath| OsStr::from_bytes(path.as_bytes()).to_owned();
        let files: Vec<PathBuf> = paths.iter().map(|path| name(path).into()).collect();
        let blobs: Vec<PathBuf> = files.iter().map(|path| raw.join(path)).collect();
        let mut theirs = self.command();
        theirs.args([OPERATION, "--stdin-paths"]);
        let mut ours = self.command();
        ours.args([OPERATION, "--no-filters", "--stdin-paths"]);
        let theirs = told_lines(OPERATION, theirs, &files)?;
        let ours = told_lines(OPERATION, ours, &blobs)?;
        if theirs.len() != paths.len() || ours.len() != paths.len() {
            return Err(GitError::Answer {
                operation: OPERATION,
                answer: theirs.join(" "),
            });
        }
        let pairs = theirs.iter().zip(&ours).zip(paths);
        let same = pairs.filter(|((theirs, ours), _)| theirs == ours);
        Ok(same.map(|(_, path)| path.clone()).collect())
    }

    /// A blob's bytes as a file of this work tree has them.
    pub fn in_work_form(
        &self,
        keeper: &HarnessRepo,
        blob: &Path,
        path: &TreePath,
    ) -> Result<Vec<u8>, GitError> {
        let id = keeper.keep_blob(blob)?;
        let mut option = std::ffi::OsString::from("--path=");
        option.push(OsStr::from_bytes(path.as_bytes()));
        let mut command = self.command();
        command
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", keeper.objects())
            .args(["cat-file", "--filters"])
            .arg(option)
            .arg(&id);
        asked("cat-file", command)
    }
}

impl HarnessRepo {
    fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    fn keep_blob(&self, file: &Path) -> Result<String, GitError> {
        let mut command = self.command();
        command
            .args(["hash-object", "-w", "--no-filters", "--"])
            .arg(file);
        let id = asked("hash-object", command)?;
        Ok(String::from_utf8_lossy(id.trim_ascii()).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_settings_with_known_values_count_and_the_last_word_wins() {
        let told =
            b"system\0core.eol\nlf\0global\0core.autocrlf\ntrue\0local\0core.autocrlf\nInput\0\
                     local\0core.filemode\n0\0local\0core.eol\nweird\0local\0core.hookspath\n/x\0\
                     command\0core.autocrlf\nfalse\0";
        let view = OwnersView::of(told);
        let args: Vec<String> = view.args().collect();
        let said: Vec<&str> = args
            .iter()
            .map(String::as_str)
            .filter(|word| *word != "-c")
            .collect();
        assert_eq!(
            said,
            ["core.eol=lf", "core.autocrlf=input", "core.filemode=false"]
        );
        assert!(view.says("core.filemode", "false") && !view.says("core.autocrlf", "true"));
        assert_eq!(OwnersView::of(b""), OwnersView::default());
        // A name without a value is a yes.
        assert!(OwnersView::of(b"local\0core.autocrlf\0").says("core.autocrlf", "true"));
    }
}
