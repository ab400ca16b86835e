//! What an owner did in the repository while a run worked on its copy, and in which words it is told.
//! Whether it fails the run says `run/judge/source.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source at the end of a run, beside what it was at the start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Meanwhile {
    /// A change fails the run.
    pub judged: bool,
    /// Null where there was no second look.
    pub mutated: Option<bool>,
    /// The second look found a repository.
    pub found_again: bool,
    pub head_moved: bool,
    /// How many files are not what they were; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
}

impl Meanwhile {
    /// For the line that names the repository.
    pub fn words(&self) -> String {
        match (self.mutated, self.judged) {
            (None, _) => "not looked at again".into(),
            (Some(false), _) => "untouched".into(),
            (Some(true), true) => "CHANGED MEANWHILE".into(),
            (Some(true), false) if !self.found_again => {
                "you moved, removed or closed it meanwhile".into()
            }
            (Some(true), false) => {
                let files = match self.files {
                    None | Some(0) => None,
                    Some(1) => Some("changed 1 file".to_owned()),
                    Some(many) => Some(format!("changed {many} files")),
                };
                let head = self.head_moved.then(|| "moved HEAD".to_owned());
                let did: Vec<String> = files.into_iter().chain(head).collect();
                match did.is_empty() {
                    true => "you changed its refs, index or configuration meanwhile".into(),
                    false => format!("you {} meanwhile", did.join(" and ")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_said() {
        let row = |mutated, judged, found_again, head_moved, files| Meanwhile {
            judged,
            mutated,
            found_again,
            head_moved,
            files,
        };
        for (row, words) in [
            (row(None, true, false, false, None), "not looked at again"),
            (row(Some(false), false, true, false, None), "untouched"),
            (
                row(Some(true), true, true, true, Some(3)),
                "CHANGED MEANWHILE",
            ),
            (
                row(Some(true), false, true, false, Some(1)),
                "you changed 1 file meanwhile",
            ),
            (
                row(Some(true), false, true, true, Some(2)),
                "you changed 2 files and moved HEAD meanwhile",
            ),
            (
                row(Some(true), false, true, true, Some(0)),
                "you moved HEAD meanwhile",
            ),
            (
                row(Some(true), false, true, false, Some(0)),
                "you changed its refs, index or configuration meanwhile",
            ),
            (
                row(Some(true), false, false, false, None),
                "you moved, removed or closed it meanwhile",
            ),
        ] {
            assert_eq!(row.words(), words);
        }
    }
}
