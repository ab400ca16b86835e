//! Everything that is written, written at once: the records in one step, and before it the one file
//! that holds a typed base URL. Where the records cannot be written, that file is as it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cto_core::operator::setup::answers::TypedUrl;
use cto_core::records::RecordKind;

use crate::host::failure::Failure;
use crate::host::way::operator_file::{self, Privacy};
use crate::host::{self, Env, settings};
use crate::records::{RecordStore, Written};

const DIRECTORY: &str = "endpoints";
const MAX_URL_FILE: u64 = 4096;

/// The file of the operator's that holds a typed base URL.
pub fn url_file(engine: &str, env: &Env) -> Result<Option<PathBuf>, Failure> {
    let dir = settings::operators_directory(env)?;
    Ok(dir.map(|dir| dir.join(DIRECTORY).join(engine)))
}

/// Writes the records and, where one was typed, the URL they are about.
pub fn write(
    store: &RecordStore,
    records: &[(RecordKind, Vec<u8>)],
    url: Option<(&Path, &TypedUrl)>,
) -> Result<Vec<Written>, Failure> {
    let Some((path, url)) = url else {
        return store.write_together(records);
    };
    let kept = Kept::put(path, url.file().as_bytes())?;
    match store.write_together(records) {
        Ok(written) => {
            kept.done();
            Ok(written)
        }
        Err(failure) => {
            kept.undo();
            Err(failure)
        }
    }
}

/// A file that has its new content, and the way back.
struct Kept {
    path: PathBuf,
    /// The file that was there before, under another name.
    before: Option<PathBuf>,
}

impl Kept {
    fn put(path: &Path, bytes: &[u8]) -> Result<Self, Failure> {
        let failed = |error: &io::Error| {
            Failure::internal(
                "endpoint_unwritable",
                "the file of the base URL cannot be written",
            )
            .at(path.display().to_string())
            .because(error)
            .so("nothing was written")
            .hint("name a file that holds it instead: --base-url-file FILE")
        };
        let dir = path.parent().unwrap_or(Path::new("/"));
        let part = beside(path, "part");
        let made = host::make_private_dir(dir).and_then(|()| staged(&part, bytes));
        if let Err(error) = made {
            let _ = fs::remove_file(&part);
            return Err(failed(&error));
        }
        // A file that no run would believe is not worth having.
        if let Err(why) = operator_file::read(&part, MAX_URL_FILE, Privacy::Private) {
            let _ = fs::remove_file(&part);
            return Err(Failure::blocked(
                "endpoint_unwritable",
                "the file of the base URL would not be believed",
            )
            .at(path.display().to_string())
            .reason(format!("it {why}"))
            .so("nothing was written")
            .hint("set XDG_CONFIG_HOME to a directory of your own, outside of every repository"));
        }
        Self::exchange(path, &part).map_err(|error| {
            let _ = fs::remove_file(&part);
            failed(&error)
        })
    }

    fn exchange(path: &Path, part: &Path) -> io::Result<Self> {
        let before = beside(path, "before");
        let _ = fs::remove_file(&before);
        let before = match fs::hard_link(path, &before) {
            Ok(()) => Some(before),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        fs::rename(part, path)?;
        if let Some(dir) = path.parent() {
            File::open(dir)?.sync_all()?;
        }
        Ok(Self {
            path: path.to_owned(),
            before,
        })
    }

    fn done(self) {
        if let Some(before) = self.before {
            let _ = fs::remove_file(before);
        }
    }

    fn undo(self) {
        let _ = match self.before {
            Some(before) => fs::rename(before, &self.path),
            None => fs::remove_file(&self.path),
        };
    }
}

fn beside(path: &Path, word: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{word}"))
}

fn staged(part: &Path, bytes: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(part);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(part)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::host::Home;

    fn url(text: &str) -> TypedUrl {
        TypedUrl::read(text).unwrap()
    }

    fn store(dir: &Path) -> RecordStore {
        let home = Home {
            root: dir.join("state"),
            runs: dir.join("runs"),
        };
        RecordStore::of(&home, &"pi".parse().unwrap())
    }

    #[test]
    fn the_file_is_the_operators_alone_and_goes_back_where_records_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config/cto/endpoints/pi");
        let (good, bad) = (store(dir.path()), store(&dir.path().join("blocked")));
        let one = [(RecordKind::Model, b"{}".to_vec())];
        let text = || fs::read_to_string(&file).ok();
        // A file where the state should be: no record can be written.
        fs::write(dir.path().join("blocked"), "").unwrap();
        let first = url("http://127.0.0.1:1/v1");
        assert!(write(&bad, &one, Some((&file, &first))).is_err());
        assert_eq!(text(), None, "nothing is left");
        write(&good, &one, Some((&file, &first))).unwrap();
        assert_eq!(text().as_deref(), Some("http://127.0.0.1:1/v1\n"));
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = url("http://127.0.0.1:2/v1");
        assert!(write(&bad, &one, Some((&file, &second))).is_err());
        assert_eq!(text().as_deref(), Some("http://127.0.0.1:1/v1\n"));
        write(&good, &one, Some((&file, &second))).unwrap();
        assert_eq!(text().as_deref(), Some("http://127.0.0.1:2/v1\n"));
        let left = fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "no part and no file of before");
    }

    #[test]
    fn a_configuration_in_a_repository_keeps_no_url() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("home/.git")).unwrap();
        let file = dir.path().join("home/.config/cto/endpoints/pi");
        let one = [(RecordKind::Model, b"{}".to_vec())];
        let refused = write(
            &store(dir.path()),
            &one,
            Some((&file, &url("http://127.0.0.1:1/v1"))),
        );
        let failure = refused.unwrap_err();
        assert_eq!(failure.code, "endpoint_unwritable");
        assert!(failure.because[0].contains("repository"), "{failure}");
        assert!(!file.exists() && !dir.path().join("state").exists());
    }
}
