//! What was said of a run, as it was signed: `<state home>/operator/outcomes/<run>/`. Append-only, like everything
//! in the operator's store: every word is a file under the next number, made whole, and stays.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use cto_core::values::ids::RunId;
use cto_core::values::json;

use crate::bundles::settlements;
use crate::evidence::keys::put_new;
use crate::host::{self, Home};
use crate::records::believed_file;
use crate::run::approvals::store::Kept;

const MAX_FILE: u64 = 1 << 20;
/// Nobody says more of one run.
const MOST: usize = 1000;

/// The words about one run, while nobody else may say one.
pub struct Words {
    dir: PathBuf,
    _held: File,
}

impl Words {
    /// Takes the words of a run for this process; none where another has them.
    pub fn hold(home: &Home, run: &RunId) -> io::Result<Option<Self>> {
        let dir = settlements::desk_of(home, run);
        host::make_private_dir(&dir)?;
        let held = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(dir.join("lock"))?;
        match rustix::fs::flock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { dir, _held: held })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn at(&self, number: usize) -> PathBuf {
        self.dir.join(format!("{number:04}.json"))
    }

    /// The last word that was kept.
    pub fn last(&self) -> io::Result<Option<Kept>> {
        match self.next()? {
            1 => Ok(None),
            next => {
                let path = self.at(next - 1);
                let bytes = believed_file(&path, MAX_FILE).map_err(io::Error::other)?;
                json::read(&bytes).map(Some).map_err(io::Error::other)
            }
        }
    }

    fn next(&self) -> io::Result<usize> {
        for number in 1..=MOST {
            match self.at(number).symlink_metadata() {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(number),
                found => found?,
            };
        }
        Err(io::Error::other("too much was said of this run"))
    }

    /// Keeps a further word.
    pub fn put(&self, word: &Kept) -> io::Result<()> {
        let bytes = json::pretty(word).map_err(io::Error::other)?;
        match put_new(&self.at(self.next()?), &bytes)? {
            true => Ok(()),
            false => Err(ErrorKind::AlreadyExists.into()),
        }
    }
}
