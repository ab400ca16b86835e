//! Times set in a private copy in which code of an engine may have run: no link on the way to a path
//! is followed.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use cto_core::values::paths::TreePath;
use cto_core::workspace::times::{self, Stamps, Time, WorkTree};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::workspace::environments::{Laid, Live};
use crate::workspace::measure::Measured;
use crate::workspace::of_run::Workspace;
use crate::workspace::private_copy::PrivateCopy;

/// The present, to the nanosecond.
pub fn now() -> Time {
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    (
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        i64::from(since.subsec_nanos()),
    )
}

/// The present, and after a time that is hardly past: clocks of files tick slowly. The second of a
/// time is waited for to its end and no longer: one that is still to come is no reason to wait.
pub fn now_after(newest: Time) -> Time {
    const TICKS: u32 = 1_100;
    for _ in 0..TICKS {
        let now = now();
        if now > newest || now.0 < newest.0 {
            return now;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    now()
}

/// Could a file that has this time have been written after `since`? Clocks of files lag behind.
pub fn may_be_since((second, nanosecond): Time, since: Time) -> bool {
    const LAG: i64 = 20_000_000;
    let nanoseconds = nanosecond + LAG;
    (
        second + nanoseconds / 1_000_000_000,
        nanoseconds % 1_000_000_000,
    ) >= since
}

/// The last moment of the second of a time. Some tools know no more of a file's time than its second,
/// Python of what it compiled among them.
pub fn end_of_second((second, _): Time) -> Time {
    (second, 999_999_999)
}

/// Gives everything in a copy its time: what is to be young is as young as `start`, and `also`
/// too.
pub fn stamp(
    copy: &PrivateCopy,
    stamps: &Stamps,
    also: &BTreeSet<TreePath>,
    start: Time,
) -> io::Result<()> {
    let renewed: Vec<TreePath> = stamps.renewed.union(also).cloned().collect();
    let young: Vec<TreePath> = stamps
        .dirs
        .iter()
        .filter(|(dir, time)| time.is_none() && !dir.as_bytes().is_empty())
        .map(|(dir, _)| dir.clone())
        .collect();
    // What is below an overlay is brought up where its time changes.
    copy.edit(&[renewed.as_slice(), young.as_slice()].concat(), |_| ())?;
    let below = Below::open(&copy.changed_dir())?;
    for path in &renewed {
        below.set(path, start)?;
    }
    for (dir, time) in &stamps.dirs {
        below.set(dir, time.unwrap_or(start))?;
    }
    Ok(())
}

impl Workspace {
    /// Gives everything in a copy its time, for a process that is about to start there. The copy
    /// holds `measured`, or the baseline; `also` is what was put into it since. What is young is
    /// younger than what was seen in an environment, `live`.
    pub fn stamp(
        &self,
        copy: &PrivateCopy,
        laid: &Laid,
        measured: Option<&Measured>,
        also: &BTreeSet<TreePath>,
        live: &Live,
    ) -> io::Result<()> {
        let Some(work_tree) = &self.work_tree else {
            return Ok(());
        };
        let tree = measured.map_or(self.baseline(), |measured| &measured.tree);
        // Its owner may have made what is there now of files with these names and other bytes.
        let nothing_known = WorkTree::default();
        let known = if live.other {
            &nothing_known
        } else {
            work_tree
        };
        let reach = self.environments.reach();
        let stamps = times::stamps(known, self.baseline(), tree, &laid.places(), reach);
        stamp(copy, &stamps, also, now_after(live.newest))
    }
}

/// A directory, and what lies in it without a link on the way.
struct Below(OwnedFd);

impl Below {
    fn open(dir: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, dir, flags, Mode::empty())?))
    }

    /// Sets a time where the path leads to something; what is not there needs none.
    fn set(&self, path: &TreePath, (tv_sec, tv_nsec): Time) -> io::Result<()> {
        let time = Timespec { tv_sec, tv_nsec };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        let bytes = path.as_bytes();
        let (dir, name) = match bytes.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&bytes[..at], &bytes[at + 1..]),
            None if bytes.is_empty() => (&b"."[..], &b"."[..]),
            None => (&b"."[..], bytes),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let no_links = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let dir = std::ffi::OsStr::from_bytes(dir);
        let set =
            rustix::fs::openat2(&self.0, dir, flags, Mode::empty(), no_links).and_then(|dir| {
                let name = std::ffi::OsStr::from_bytes(name);
                rustix::fs::utimensat(&dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)
            });
        match set {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn a_second_is_waited_for_to_its_end_and_no_longer() {
        let before = now();
        assert!(now_after(end_of_second(before)).0 > before.0);
        let ahead = (now().0 + 3_600, 0);
        assert!(
            now_after(ahead) < ahead,
            "what is to come is not waited for"
        );
        assert!(now_after((0, 0)) >= before);
    }

    #[test]
    fn a_file_written_now_may_be_of_now() {
        let house = tempfile::tempdir().unwrap();
        let since = now();
        fs::write(house.path().join("x"), "").unwrap();
        let meta = fs::metadata(house.path().join("x")).unwrap();
        assert!(may_be_since((meta.ctime(), meta.ctime_nsec()), since));
        for (time, is) in [
            ((10, 0), true),
            ((9, 990_000_000), true),
            ((9, 900_000_000), false),
            ((0, 0), false),
        ] {
            assert_eq!(may_be_since(time, (10, 0)), is, "{time:?}");
        }
    }

    #[test]
    fn no_time_is_set_behind_a_link() {
        let house = tempfile::tempdir().unwrap();
        let (copy, away) = (house.path().join("copy"), house.path().join("away"));
        for dir in [&copy, &away, &copy.join("real")] {
            fs::create_dir_all(dir).unwrap();
        }
        for file in [away.join("file"), copy.join("real/file"), copy.join("top")] {
            fs::write(file, "x").unwrap();
        }
        symlink(&away, copy.join("planted")).unwrap();
        symlink(away.join("file"), copy.join("real/link")).unwrap();
        let before = fs::metadata(away.join("file")).unwrap().mtime();
        let paths = [
            "planted/file",
            "real/link",
            "real/file",
            "top",
            "gone",
            "top/below",
        ];
        let also: BTreeSet<TreePath> = paths.iter().map(|path| TreePath::new(*path)).collect();
        let stamps = Stamps {
            dirs: [
                ("", Some((7, 8))),
                ("real", None),
                ("planted", Some((5, 6))),
            ]
            .map(|(dir, time)| (TreePath::new(dir), time))
            .into(),
            ..Stamps::default()
        };
        stamp(
            &PrivateCopy::Plain(copy.clone()),
            &stamps,
            &also,
            (1_000, 9),
        )
        .unwrap();
        assert_eq!(fs::metadata(away.join("file")).unwrap().mtime(), before);
        assert_ne!(fs::metadata(&away).unwrap().mtime(), 5);
        let time = |path: &str| {
            let meta = fs::symlink_metadata(copy.join(path)).unwrap();
            (meta.mtime(), meta.mtime_nsec())
        };
        for young in ["real/file", "real/link", "top", "real"] {
            assert_eq!(time(young), (1_000, 9), "{young}");
        }
        assert_eq!(time(""), (7, 8));
    }
}
