//! Packages that are changed in every way there is, and the ways in which a cache could be fooled.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::*;

struct Lab {
    dir: tempfile::TempDir,
    home: Home,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home {
            root: dir.path().join("state"),
            runs: dir.path().join("runs"),
        };
        let lab = Self { dir, home };
        fs::create_dir_all(lab.at("pi/dist")).unwrap();
        fs::create_dir_all(lab.at(".bin")).unwrap();
        fs::write(lab.at("pi/dist/cli.js"), "import './main.js'\n").unwrap();
        fs::write(lab.at("pi/dist/main.js"), "good()\n").unwrap();
        fs::write(lab.at("pi/package.json"), r#"{"version": "1.0.0"}"#).unwrap();
        symlink("../pi/dist/cli.js", lab.at(".bin/pi")).unwrap();
        lab
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("node_modules")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn pin(&self) -> Digest {
        pin(&self.home, &self.root()).unwrap()
    }

    fn check(&self, admitted: Digest) -> Checked {
        check(&self.home, &self.root(), admitted).unwrap()
    }

    fn look(&self) -> Look {
        Look::take(&self.home, &self.root(), LIMITS).unwrap()
    }

    /// Remembers the tree as if it had been looked at when all of it was old.
    fn settle(&self) -> Digest {
        let mut look = self.look();
        look.began += 3600;
        let (contents, sha256) = look.contents(None).unwrap();
        look.remember(sha256, &contents);
        tick();
        sha256
    }

    fn pinned(&self, admitted: Digest) -> PinnedPackages {
        let found = self.check(admitted);
        tick();
        PinnedPackages {
            root: self.root(),
            sha256: admitted,
            state: found.state,
            id: found.id,
        }
    }
}

/// Clocks of files tick slowly: what is changed after this has another time. What nobody waited for is
/// young, and read again.
fn tick() {
    std::thread::sleep(Duration::from_millis(20));
}

type Change = fn(&Lab);

/// Every way to change a tree, and what is said of it.
const CHANGES: &[(&str, Change)] = &[
    ("pi/dist/main.js was changed", |lab| {
        fs::write(lab.at("pi/dist/main.js"), "evil()\n").unwrap();
    }),
    ("pi/package.json was changed", |lab| {
        fs::remove_dir_all(lab.at("pi")).unwrap();
        fs::create_dir_all(lab.at("pi/dist")).unwrap();
        fs::write(lab.at("pi/dist/cli.js"), "import './main.js'\n").unwrap();
        fs::write(lab.at("pi/dist/main.js"), "good()\n").unwrap();
        fs::write(lab.at("pi/package.json"), r#"{"version": "2.0.0"}"#).unwrap();
    }),
    ("pi/dist/new.js was added", |lab| {
        fs::write(lab.at("pi/dist/new.js"), "").unwrap();
    }),
    ("z was added", |lab| fs::create_dir(lab.at("z")).unwrap()),
    ("pi/dist/main.js is gone", |lab| {
        fs::remove_file(lab.at("pi/dist/main.js")).unwrap();
    }),
    ("pi/dist/main.js has mode 0755, was 0644", |lab| {
        mode(lab, "pi/dist/main.js", 0o755);
    }),
    ("pi/dist has mode 0777, was 0755", |lab| {
        mode(lab, "pi/dist", 0o777);
    }),
    (".bin/pi leads elsewhere", |lab| {
        fs::remove_file(lab.at(".bin/pi")).unwrap();
        symlink("../pi/dist/main.js", lab.at(".bin/pi")).unwrap();
    }),
    ("pi/dist/main.js is of another kind", |lab| {
        fs::remove_file(lab.at("pi/dist/main.js")).unwrap();
        symlink("cli.js", lab.at("pi/dist/main.js")).unwrap();
    }),
];

fn mode(lab: &Lab, path: &str, mode: u32) {
    fs::set_permissions(lab.at(path), Permissions::from_mode(mode)).unwrap();
}

fn plain(lab: &Lab) {
    for path in ["", "pi", "pi/dist", ".bin"] {
        mode(lab, path, 0o755);
    }
    for path in ["pi/dist/cli.js", "pi/dist/main.js", "pi/package.json"] {
        mode(lab, path, 0o644);
    }
}

#[test]
fn whatever_is_changed_is_refused_by_its_path_and_as_often_as_it_is_asked() {
    for (words, change) in CHANGES {
        let lab = Lab::new();
        plain(&lab);
        let admitted = lab.settle();
        assert_eq!(lab.check(admitted).sha256, admitted, "{words}");
        change(&lab);
        for _ in 0..2 {
            let found = lab.check(admitted);
            assert_ne!(found.sha256, admitted, "{words}");
            assert_eq!(found.difference.as_deref(), Some(*words));
        }
    }
}

#[test]
fn a_tree_elsewhere_with_other_times_has_the_same_digest() {
    let (one, other) = (Lab::new(), Lab::new());
    plain(&one);
    plain(&other);
    let old = SystemTime::now() - Duration::from_secs(86_400);
    let file = fs::File::options()
        .write(true)
        .open(other.at("pi/dist/main.js"))
        .unwrap();
    file.set_modified(old).unwrap();
    assert_eq!(one.pin(), other.pin());
}

#[test]
fn what_was_touched_and_is_equal_passes() {
    let lab = Lab::new();
    let admitted = lab.settle();
    let before = lab.check(admitted).state;
    fs::write(lab.at("pi/dist/main.js"), "good()\n").unwrap();
    let found = lab.check(admitted);
    assert_eq!((found.sha256, found.difference), (admitted, None));
    assert_ne!(found.state, before);
}

#[test]
fn only_what_changed_is_read() {
    let lab = Lab::new();
    let admitted = lab.settle();
    // What is remembered of one file is a lie: who reads the file notices.
    let look = lab.look();
    let known = look.place.read().unwrap();
    let (mut contents, _) = look.contents(Some(&known)).unwrap();
    let at = |path: &str| {
        let is = |seen: &Seen| seen.path == path.as_bytes();
        look.seen.iter().position(is).unwrap()
    };
    contents[at("pi/dist/cli.js")] = Digest::of(b"lie");
    let lie = packages_digest(&look.entries(&contents));
    let late = Look {
        began: look.began + 3600,
        ..lab.look()
    };
    late.remember(lie, &contents);
    tick();
    assert_eq!(lab.check(lie).sha256, lie, "nothing is read");
    fs::write(lab.at("pi/dist/main.js"), "good()\n").unwrap();
    assert_eq!(lab.check(lie).sha256, lie, "the other file alone is read");
    fs::write(lab.at("pi/dist/cli.js"), "import './main.js'\n").unwrap();
    assert_eq!(lab.check(lie).sha256, admitted, "both are");
}

#[test]
fn what_is_young_is_not_believed_by_its_times() {
    let lab = Lab::new();
    let admitted = lab.pin();
    assert!(lab.look().place.head().unwrap().state.is_none());
    let known = lab.look().place.read().unwrap();
    let look = lab.look();
    let file = look.seen.iter().find(|seen| !seen.kind().is_dir()).unwrap();
    assert!(known.has(file) && known.content(file).is_none());
    assert_eq!(lab.check(admitted).sha256, admitted);
    lab.settle();
    assert!(lab.look().place.head().unwrap().state.is_some());
}

#[test]
fn what_others_could_have_written_is_not_believed() {
    let lab = Lab::new();
    let admitted = lab.settle();
    let place = lab.look().place;
    assert!(place.head().is_some());
    let file = fs::read_dir(lab.home.cache().join("packages"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    assert!(place.head().is_none() && place.read().is_none());
    assert_eq!(lab.check(admitted).sha256, admitted, "it is read anew");
    // A copy of the file about another directory is not about this one.
    let other = Lab::new();
    other.settle();
    fs::copy(&file, other.dir.path().join("x")).unwrap();
    let theirs = fs::read_dir(other.home.cache().join("packages"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::copy(&file, &theirs).unwrap();
    fs::set_permissions(&theirs, Permissions::from_mode(0o600)).unwrap();
    assert!(other.look().place.head().is_none());
}

#[test]
fn broken_memory_is_no_memory() {
    let lab = Lab::new();
    let admitted = lab.settle();
    let file = fs::read_dir(lab.home.cache().join("packages"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let whole = fs::read(&file).unwrap();
    for length in (0..whole.len()).step_by(5) {
        fs::write(&file, &whole[..length]).unwrap();
        let (head, known) = (lab.look().place.head(), lab.look().place.read());
        let says = |head: Head| head.sha256 == admitted;
        assert!(head.is_none_or(says), "{length}");
        assert!(known.is_none_or(|known| known.entries().is_none_or(|e| e.len() <= 8)));
    }
    fs::write(&file, b"\0\0\0\0\xff").unwrap();
    assert_eq!(lab.check(admitted).sha256, admitted);
}

#[test]
fn a_write_that_was_taken_back_is_seen_after_the_run() {
    let lab = Lab::new();
    let admitted = lab.settle();
    let then = lab.pinned(admitted);
    assert_eq!(changed_since(&lab.home, &then), None);
    fs::write(lab.at("pi/dist/main.js"), "evil()\n").unwrap();
    fs::write(lab.at("pi/dist/main.js"), "good()\n").unwrap();
    let words = changed_since(&lab.home, &then).unwrap();
    assert!(words.starts_with("pi/dist/main.js in its"), "{words}");
    let then = lab.pinned(admitted);
    fs::write(lab.at("pi/dist/new.js"), "").unwrap();
    fs::remove_file(lab.at("pi/dist/new.js")).unwrap();
    let words = changed_since(&lab.home, &then).unwrap();
    assert!(words.starts_with("pi/dist in its"), "{words}");
    let then = lab.pinned(admitted);
    fs::remove_file(lab.at("pi/dist/main.js")).unwrap();
    let words = changed_since(&lab.home, &then).unwrap();
    assert!(words.starts_with("pi/dist/main.js in its"), "{words}");
}

#[test]
fn a_young_tree_is_read_again_after_the_run() {
    let lab = Lab::new();
    let admitted = lab.pin();
    let then = lab.pinned(admitted);
    assert!(lab.look().place.head().unwrap().state.is_none());
    assert_eq!(changed_since(&lab.home, &then), None);
    // As if the change had not moved the time: the state is the same, the content is not.
    let other = PinnedPackages {
        sha256: Digest::of(b"other"),
        ..then
    };
    assert!(changed_since(&lab.home, &other).is_some());
}

#[test]
fn a_huge_tree_is_refused_and_not_walked_to_its_end() {
    let lab = Lab::new();
    let took = |entries, bytes| {
        let limits = Limits { entries, bytes };
        Look::take(&lab.home, &lab.root(), limits).err().unwrap()
    };
    assert!(
        Look::take(
            &lab.home,
            &lab.root(),
            Limits {
                entries: 8,
                bytes: 46
            }
        )
        .is_ok()
    );
    assert!(matches!(took(7, 46), Problem::TooMany(7)));
    assert!(matches!(took(8, 45), Problem::TooLarge(45)));
}

#[test]
fn what_has_no_content_and_what_is_not_there_are_named() {
    let lab = Lab::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        lab.at("pi/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let problem = pin(&lab.home, &lab.root()).unwrap_err().to_string();
    assert!(
        problem.starts_with("pi/pipe in its packages is neither"),
        "{problem}"
    );
    fs::remove_file(lab.at("pi/pipe")).unwrap();
    let look = lab.look();
    fs::remove_file(lab.at("pi/dist/main.js")).unwrap();
    let problem = look.contents(None).unwrap_err().to_string();
    assert!(
        problem.starts_with("pi/dist/main.js in its packages cannot be read"),
        "{problem}"
    );
    fs::write(lab.at("pi/dist/main.js"), "other").unwrap();
    let problem = look.contents(None).unwrap_err();
    assert!(matches!(problem, Problem::Unsteady(_)), "{problem}");
    fs::remove_dir_all(lab.root()).unwrap();
    assert!(pin(&lab.home, &lab.root()).is_err());
}

#[test]
fn no_link_leads_out() {
    let lab = Lab::new();
    let admitted = lab.settle();
    let outside = lab.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, lab.at("out")).unwrap();
    let refused = [
        pin(&lab.home, &lab.root()).err(),
        check(&lab.home, &lab.root(), admitted).err(),
    ];
    for problem in refused {
        let said = problem.unwrap().to_string();
        assert!(said.starts_with("out in its packages leads out"), "{said}");
    }
    fs::remove_file(lab.at("out")).unwrap();
    // A directory that became a link is another kind of entry, and is not walked.
    fs::rename(lab.at("pi"), lab.at("pushed")).unwrap();
    symlink("pushed", lab.at("pi")).unwrap();
    let found = lab.check(admitted);
    assert_eq!(found.difference.as_deref(), Some("pi is of another kind"));
}
