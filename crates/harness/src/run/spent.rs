//! Copies that nobody asks anything of any more, removed on a thread of their own while the next commands
//! run. A file system may take longer to forget a directory than it took to make it. Where there is little
//! room, the next copy may need what this one takes: then it goes first.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};

use crate::host::files;

/// Where they are handed in.
pub struct Spent(Sender<PathBuf>);

/// Where they come out.
pub struct ToRemove(Receiver<PathBuf>);

pub fn spent() -> (Spent, ToRemove) {
    let (give, take) = mpsc::channel();
    (Spent(give), ToRemove(take))
}

impl Spent {
    pub fn take(&self, dir: PathBuf) {
        if !has_room(&dir) {
            let _ = files::remove_tree(&dir);
            return;
        }
        // Where nobody removes it any more, it goes with the run.
        let _ = self.0.send(dir);
    }
}

/// Is there room for another copy and all that is built in it? What cannot be asked has none.
fn has_room(dir: &Path) -> bool {
    const ENOUGH: u64 = 4 << 30;
    rustix::fs::statvfs(dir)
        .is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) >= ENOUGH)
}

impl ToRemove {
    /// Removes what is handed in, until nobody can hand in anything.
    pub fn remove_all(self) {
        for dir in self.0 {
            // What cannot be removed goes with the run.
            let _ = files::remove_tree(&dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::*;

    #[test]
    fn all_that_was_handed_in_is_gone_in_the_end() {
        let house = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            let (spent, to_remove) = spent();
            scope.spawn(move || to_remove.remove_all());
            for name in ["a", "b", "never-was"] {
                let dir = house.path().join(name);
                if name.len() == 1 {
                    fs::create_dir_all(dir.join("below")).unwrap();
                }
                spent.take(dir);
            }
        });
        assert_eq!(fs::read_dir(house.path()).unwrap().count(), 0);
    }
}
