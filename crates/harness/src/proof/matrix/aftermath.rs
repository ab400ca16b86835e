//! What the host shows after a row: whether its honeypot was touched, what is still running or
//! mounted, and which paths exist that must not.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cto_core::proof::matrix::{Row, Words};

use crate::host;

/// How long the kernel may take to remove a process that has ended.
const CLEANUP_LIMIT: Duration = Duration::from_secs(5);

/// Sockets of the host that are open while a row runs. Nothing may connect to them.
pub struct Honeypot {
    port: TcpListener,
    nameless: UnixListener,
    path: UnixListener,
    words: Words,
}

impl Honeypot {
    pub fn open(place: &Path) -> io::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?;
        let name = format!(
            "cto-hostile-{}",
            host::random_name(10).map_err(io::Error::other)?
        );
        let nameless = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let path = UnixListener::bind(place.join("door"))?;
        let words = Words::from([
            ("place".to_owned(), place.display().to_string()),
            ("port".to_owned(), port.local_addr()?.port().to_string()),
            ("abstract".to_owned(), name),
        ]);
        port.set_nonblocking(true)?;
        nameless.set_nonblocking(true)?;
        path.set_nonblocking(true)?;
        Ok(Self {
            port,
            nameless,
            path,
            words,
        })
    }

    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The sockets that something connected to.
    pub fn touched(&self) -> Vec<String> {
        let came = [
            (self.port.accept().is_ok(), "a port of the host was reached"),
            (
                self.nameless.accept().is_ok(),
                "an abstract socket of the host was reached",
            ),
            (
                self.path.accept().is_ok(),
                "a socket file of the host was reached",
            ),
        ];
        came.into_iter()
            .filter(|(taken, _)| *taken)
            .map(|(_, what)| what.to_owned())
            .collect()
    }
}

/// Paths of the host that a row must not create, and whether each existed before.
pub struct PathsThatMustNotExist(Vec<(PathBuf, bool)>);

impl PathsThatMustNotExist {
    pub fn of(row: &Row) -> Self {
        let there = |path: &Path| fs::symlink_metadata(path).is_ok();
        Self(
            row.prevented
                .iter()
                .map(PathBuf::from)
                .map(|path| (path.clone(), there(&path)))
                .collect(),
        )
    }

    /// The paths that exist now. Those that did not exist before are removed again: the host
    /// belongs to somebody.
    pub fn found(&self) -> Vec<String> {
        let found: Vec<&(PathBuf, bool)> = self
            .0
            .iter()
            .filter(|(path, _)| fs::symlink_metadata(path).is_ok())
            .collect();
        for (path, before) in &found {
            if !before {
                // Named all the same; what cannot be taken away is still there to be seen.
                let _ = fs::remove_file(path);
            }
        }
        found
            .into_iter()
            .map(|(path, _)| format!("{} is there", path.display()))
            .collect()
    }
}

/// Processes that still see a place, and mounts of ours that do. The kernel lists both by the end
/// of a path: a mount is named from the root of its file system.
pub fn left_over(place: &Path) -> Vec<String> {
    let mut ends = place
        .iter()
        .rev()
        .take(2)
        .map(|part| part.to_string_lossy().into_owned());
    let (Some(row), Some(root)) = (ends.next(), ends.next()) else {
        return Vec::new();
    };
    let below = format!("/{root}/{row}/");
    let since = Instant::now();
    loop {
        let found = seeing(&below);
        if found.is_empty() || since.elapsed() > CLEANUP_LIMIT {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn seeing(below: &str) -> Vec<String> {
    let sees = |process: &str| {
        fs::read_to_string(format!("/proc/{process}/mountinfo"))
            .is_ok_and(|mounts| mounts.contains(below))
    };
    if sees("self") {
        return vec!["a mount was left".to_owned()];
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let living = processes.filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && sees(name));
    living
        .map(|pid| format!("process {pid} was left running"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    #[test]
    fn whoever_comes_through_a_door_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let honeypot = Honeypot::open(dir.path()).unwrap();
        assert!(honeypot.touched().is_empty());
        let word = |name: &str| honeypot.words()[name].clone();
        let _port = TcpStream::connect(format!("127.0.0.1:{}", word("port"))).unwrap();
        assert_eq!(honeypot.touched(), ["a port of the host was reached"]);
        let _path = UnixStream::connect(format!("{}/door", word("place"))).unwrap();
        let _name =
            UnixStream::connect_addr(&SocketAddr::from_abstract_name(word("abstract")).unwrap())
                .unwrap();
        assert_eq!(honeypot.touched().len(), 2);
    }

    #[test]
    fn what_appears_is_named_and_taken_away_again() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, "").unwrap();
        let mut row = cto_core::proof::matrix::attack_matrix()
            .unwrap()
            .rows
            .remove(0);
        row.prevented = vec![old.display().to_string(), new.display().to_string()];
        let must_not_exist = PathsThatMustNotExist::of(&row);
        fs::write(&new, "").unwrap();
        assert_eq!(must_not_exist.found().len(), 2);
        assert!(old.exists() && !new.exists());
    }
}
