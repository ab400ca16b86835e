//! Whose work a state home may be: in no repository, and nobody's but the operator's. Keys, records, approvals and what
//! is remembered lie there, and are believed because they lie there.

use std::io;
use std::path::{Path, PathBuf};

use super::{stranger_to, walk};
use crate::host::failure::Failure;

/// Keys, records, what signs and what is remembered lie in the state home, and an open bundle among the runs: where
/// someone else could have put them, they are not the operator's word.
pub fn is_ours(dir: &Path, own: Option<&Path>) -> Result<(), Failure> {
    let not_ours = || {
        Failure::blocked(
            "state_not_private",
            "the state directory could be someone else's work",
        )
        .at(dir.display().to_string())
        .so("nothing there is believed, and nothing ran")
        .hint("choose a place of your own with --home DIR or --runs-dir DIR; `mkdir -m 700 DIR` makes one")
    };
    match stranger_to(dir, own) {
        Ok(None) => Ok(()),
        Ok(Some(stranger)) => Err(not_ours().reason(stranger.to_string())),
        Err(error) => Err(not_ours().because(&error)),
    }
}

/// A clone brings along whatever its authors committed: in one, records and trusted keys of strangers would look like the
/// operator's own, also where the operator named the place. A repository the operator lives in is the operator's.
pub fn is_in_no_repository(root: &Path, user: Option<&Path>) -> Result<(), Failure> {
    let refused = || {
        Failure::blocked(
            "state_in_repository",
            "the state directory lies in a repository, and what was committed there could be believed",
        )
        .at(root.display().to_string())
        .so("nothing there is believed, and nothing ran")
        .hint("keep state outside of repositories, with --home DIR or CTO_STATE_DIR; only one that HOME itself lies in may hold it")
    };
    let lived_in = match user.map(repositories) {
        Some(Ok(found)) => found,
        // What cannot be looked at is nobody's home.
        Some(Err(_)) | None => Vec::new(),
    };
    let around = repositories(root).map_err(|error| refused().because(&error))?;
    match around.into_iter().find(|place| !lived_in.contains(place)) {
        None => Ok(()),
        Some(place) => Err(refused().reason(format!("{} is a repository", place.display()))),
    }
}

/// Every repository on the way to a place, links followed; of a place that is not there yet, on the way to what is.
fn repositories(place: &Path) -> io::Result<Vec<PathBuf>> {
    for there in place.ancestors() {
        match walk(there) {
            Ok(steps) => {
                let repositories = steps.into_iter().filter(|step| step.is_repository);
                return Ok(repositories.map(|step| step.path).collect());
            }
            // Nothing is there, or nothing can be: whoever uses the place says so.
            Err(error) if is_not_there(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Vec::new())
}

fn is_not_there(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_place_in_a_repository_is_refused_unless_the_operator_lives_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let at = |name: &str| top.join(name);
        for name in [
            "clone/.git",
            "clone/deep",
            "home/.git",
            "home/nested/.git",
            "plain",
        ] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::create_dir(at("tree")).unwrap();
        fs::write(at("tree/.git"), "gitdir: elsewhere\n").unwrap();
        symlink(at("plain"), at("clone/out")).unwrap();
        symlink(at("clone"), at("into")).unwrap();
        symlink(at("clone/out"), at("through")).unwrap();
        let home = at("home");
        let code = |name: &str, user: Option<&Path>| {
            is_in_no_repository(&at(name), user)
                .err()
                .map_or("", |failure| failure.code)
        };
        for (place, want) in [
            ("plain", ""),
            ("plain/not/there", ""),
            ("home/.local/state/cto", ""),
            ("home", ""),
            ("home/nested/state", "state_in_repository"),
            ("clone", "state_in_repository"),
            ("clone/deep/state", "state_in_repository"),
            ("clone/.git/state", "state_in_repository"),
            ("clone/out/state", "state_in_repository"),
            ("into/state", "state_in_repository"),
            ("through/state", "state_in_repository"),
            ("plain/../clone/state", "state_in_repository"),
            ("tree/state", "state_in_repository"),
        ] {
            assert_eq!(code(place, Some(&home)), want, "{place}");
        }
        assert_eq!(
            code("home/state", None),
            "state_in_repository",
            "nobody lives there"
        );
        assert_eq!(
            code("clone/state", Some(&at("clone/people/me"))),
            "",
            "above"
        );
        assert_eq!(
            code("clone/deep/state", Some(&at("clone/deep"))),
            "",
            "above"
        );
    }
}
