//! The agent's own configuration below HOME, read for what may be offered: base URL, protocol and
//! names of models. Never the current directory, never a repository, no file of credentials, no
//! link that leads out of HOME; nothing is changed.

use std::path::{Component, Path, PathBuf};

use cto_core::engine::manifest::Manifest;
use cto_core::operator::setup::agent::{self, Known};

use crate::host::Env;
use crate::host::way::operator_file::{self, Privacy};

/// Where it was found, and what may be offered of it.
#[derive(Debug)]
pub struct OwnConfig {
    pub path: PathBuf,
    pub known: Vec<Known>,
}

/// What the agent was told of. A file that may not be read offers nothing.
pub fn look(manifest: &Manifest, env: &Env) -> Option<OwnConfig> {
    let invocation = manifest.invocation.as_ref()?;
    let name = Path::new(invocation.own_config.as_deref()?);
    let home = env.path("HOME").filter(|home| home.is_absolute())?;
    let home = home.canonicalize().ok()?;
    // The file that would be opened, whatever leads to it.
    let real = home.join(name).canonicalize().ok()?;
    let below = real.strip_prefix(&home).ok()?;
    if below.components().any(is_of_credentials) {
        return None;
    }
    let text = operator_file::read_text(&real, agent::MAX_FILE, Privacy::Public).ok()?;
    let known = agent::read(invocation.dialect, text.as_bytes());
    (!known.is_empty()).then_some(OwnConfig { path: real, known })
}

fn is_of_credentials(part: Component<'_>) -> bool {
    let name = part.as_os_str().to_string_lossy().to_lowercase();
    name.starts_with("auth") || name.starts_with("credential")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const FILE: &str = r#"{"providers": {"mine": {"baseUrl": "http://127.0.0.1:8000/v1", "apiKey": "hidden-word", "models": [{"id": "m"}]}}}"#;

    #[test]
    fn it_is_read_below_home_and_nowhere_else() {
        let manifest = crate::task::engines::find("pi").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let env = Env::from_pairs(&[("HOME", home.to_str().unwrap())]);
        let file = home.join(".pi/agent/models.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert!(look(&manifest, &env).is_none(), "nothing is there");
        fs::write(&file, FILE).unwrap();
        let found = look(&manifest, &env).unwrap();
        assert_eq!(found.known[0].models, ["m"]);
        assert!(!format!("{found:?}").contains("hidden"));
        let again = |change: &dyn Fn()| {
            change();
            look(&manifest, &env).is_some()
        };
        // A link inside is followed; one that leads out, or to a file of credentials, is not.
        for (target, is_read) in [
            (home.join("dots/models.json"), true),
            (home.join(".pi/agent/auth.json"), false),
            (dir.path().join("models.json"), false),
        ] {
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::write(&target, FILE).unwrap();
            let linked = again(&|| {
                fs::remove_file(&file).unwrap();
                symlink(&target, &file).unwrap();
            });
            assert_eq!(linked, is_read, "{}", target.display());
        }
        let in_repository = again(&|| {
            fs::remove_file(&file).unwrap();
            fs::write(&file, FILE).unwrap();
            fs::create_dir(home.join(".git")).unwrap();
        });
        assert!(!in_repository);
        assert_eq!(fs::read_to_string(&file).unwrap(), FILE, "never changed");
        assert!(look(&manifest, &Env::from_pairs(&[("HOME", "home")])).is_none());
    }
}
