//! A case to begin with: small, whole, and runnable as it is written.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cto_core::values::ids::CaseId;
use include_dir::{Dir, include_dir};

use crate::host::failure::Failure;

static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../templates/case");

/// Where a template wants the name of the case.
const NAME: &str = "{{name}}";

/// What a case is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Language {
    Python,
    Sh,
    Rust,
    Node,
}

impl Language {
    fn directory(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Sh => "sh",
            Self::Rust => "rust",
            Self::Node => "node",
        }
    }
}

/// Writes a new case below `parent` and returns its directory. Nothing that is there is touched.
pub fn create(parent: &Path, name: &CaseId, language: Language) -> Result<PathBuf, Failure> {
    let dir = parent.join(name.as_str());
    let template = TEMPLATES.get_dir(language.directory()).ok_or_else(|| {
        Failure::internal(
            "bad_template",
            "this program holds no template for the language",
        )
    })?;
    let unwritable = |error: &io::Error| {
        Failure::usage("unwritable_case", "the case cannot be written")
            .at(dir.display().to_string())
            .because(error)
            .hint("choose another place with --dir DIR")
    };
    // Made exclusively: what is there, even a link to nowhere, is somebody's.
    match DirBuilder::new().create(&dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(
                Failure::usage("case_exists", "there is something of this name already")
                    .at(dir.display().to_string())
                    .so("nothing was written")
                    .hint("choose another name, or another place with --dir DIR"),
            );
        }
        Err(error) => return Err(unwritable(&error).so("nothing was written")),
    }
    match fill(template, template.path(), &dir, name) {
        Ok(()) => Ok(dir),
        Err(error) => {
            // It was ours alone, and half a case is none.
            let gone = fs::remove_dir_all(&dir).is_ok();
            Err(unwritable(&error).so(if gone {
                "nothing was left behind"
            } else {
                "what was written is incomplete"
            }))
        }
    }
}

fn fill(template: &Dir<'_>, root: &Path, dir: &Path, name: &CaseId) -> io::Result<()> {
    for file in template.files() {
        let place = dir.join(file.path().strip_prefix(root).map_err(io::Error::other)?);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        let text = file
            .contents_utf8()
            .ok_or(io::ErrorKind::InvalidData)?
            .replace(NAME, name.as_str());
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(place)?
            .write_all(text.as_bytes())?;
    }
    template
        .dirs()
        .try_for_each(|sub| fill(sub, root, dir, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::case_trial;
    use crate::task::case_dir;
    use cto_core::proof::case_check::Mark;

    #[test]
    fn every_template_is_a_sound_case() {
        let parent = tempfile::tempdir().unwrap();
        for language in [
            Language::Python,
            Language::Sh,
            Language::Rust,
            Language::Node,
        ] {
            let name: CaseId = format!("new-{}", language.directory()).parse().unwrap();
            let dir = create(parent.path(), &name, language).unwrap();
            let lines = case_trial::look_over(&case_dir::read(&dir).unwrap());
            assert!(lines.iter().all(|line| line.mark == Mark::Ok), "{lines:?}");
            assert_eq!(
                create(parent.path(), &name, language).unwrap_err().code,
                "case_exists"
            );
        }
    }
}
