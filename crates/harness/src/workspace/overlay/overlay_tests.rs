//! Upper directories as the kernel leaves them, and as no kernel should, made by hand.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::host::files;

/// A checkout of `files`, and an overlay over it.
struct Place {
    _root: tempfile::TempDir,
    overlay: Overlay,
}

const FILES: [&str; 6] = ["a", "d/x", "d/y", "d/deep/z", "run", "gone/only"];

fn place() -> Place {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("checkout");
    for file in FILES {
        put(&dir.join("tree"), file, file);
    }
    fs::set_permissions(dir.join("tree/run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("d", dir.join("tree/link")).unwrap();
    put(&dir.join("tree"), ".git/HEAD", "ref: refs/heads/main\n");
    let tree = on_disk::walk(&dir.join("tree")).unwrap().tree;
    let checkout = Checkout::of_tree(dir, tree);
    let overlay = Overlay::fresh(Arc::new(checkout), &root.path().join("overlay")).unwrap();
    Place {
        _root: root,
        overlay,
    }
}

fn put(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Place {
    fn upper(&self, name: &str) -> PathBuf {
        self.overlay.upper().join(name)
    }

    /// The names of the tree that is measured.
    fn names(&self) -> Vec<String> {
        self.overlay
            .walk(&Apart::new(), Bounds::default())
            .unwrap()
            .tree
            .keys()
            .map(ToString::to_string)
            .collect()
    }

    /// What is measured from the changes alone is what a walk over the merged files finds.
    fn agrees(&self) -> Walked {
        let plain = self._root.path().join("merged");
        files::remove_tree(&plain).unwrap();
        self.overlay.lay_out(&plain).unwrap();
        let (walked, merged) = (
            self.overlay.walk(&Apart::new(), Bounds::default()).unwrap(),
            on_disk::walk(&plain).unwrap(),
        );
        assert_eq!(walked.tree, merged.tree);
        assert_eq!(walked.nested_repositories, merged.nested_repositories);
        walked
    }
}

#[test]
fn nothing_changed_is_the_baseline() {
    let place = place();
    assert_eq!(place.agrees().tree, *place.overlay.baseline());
    let files = Overlay::of_files(
        place.overlay.checkout.clone(),
        &place._root.path().join("files"),
    )
    .unwrap();
    assert_eq!(
        files.walk(&Apart::new(), Bounds::default()).unwrap().tree,
        *place.overlay.baseline()
    );
    let plain = place._root.path().join("plain");
    files.lay_out(&plain).unwrap();
    assert!(
        !plain.join(".git").exists(),
        "a copy of files has no git directory"
    );
}

#[test]
fn every_form_a_change_has() {
    let place = place();
    put(&place.overlay.upper(), "a", "other");
    make_whiteout(&place.upper("run")).unwrap();
    make_whiteout(&place.upper("gone")).unwrap();
    make_whiteout(&place.upper(".git")).unwrap();
    fs::create_dir(place.upper("d")).unwrap();
    make_whiteout(&place.upper("d/deep")).unwrap();
    put(&place.overlay.upper(), "d/new", "new");
    assert_eq!(place.names(), ["a", "d/new", "d/x", "d/y", "link"]);
    place.agrees();
    make_opaque(&place.upper("d")).unwrap();
    assert_eq!(place.names(), ["a", "d/new", "link"]);
}

#[test]
fn a_file_and_a_directory_take_each_others_place() {
    let place = place();
    put(&place.overlay.upper(), "a/inside", "x");
    put(&place.overlay.upper(), "link/x", "not the one below d");
    put(&place.overlay.upper(), "d", "a file now");
    assert_eq!(
        place.names(),
        ["a/inside", "d", "gone/only", "link/x", "run"]
    );
    let walked = place.agrees();
    assert_eq!(walked.tree[&TreePath::new("d")].bytes, 10);
}

#[test]
fn a_device_that_hides_nothing_is_seen() {
    let place = place();
    make_whiteout(&place.upper("new")).unwrap();
    make_whiteout(&place.upper("new.git")).unwrap();
    fs::create_dir(place.upper("d")).unwrap();
    make_opaque(&place.upper("d")).unwrap();
    make_whiteout(&place.upper("d/x")).unwrap();
    let found = place
        .overlay
        .walk(&Apart::new(), Bounds::default())
        .unwrap()
        .unrecordable;
    assert_eq!(found, ["d/x", "new", "new.git"].map(TreePath::new));
}

#[test]
fn marks_of_other_rules_are_refused() {
    for (mark, dir) in [
        ("redirect", true),
        ("redirect", false),
        ("metacopy", false),
        ("whiteout", false),
        ("whiteout", true),
    ] {
        let place = place();
        match dir {
            true => fs::create_dir(place.upper("d")).unwrap(),
            false => fs::write(place.upper("a"), "").unwrap(),
        }
        let at = place.upper(if dir { "d" } else { "a" });
        let set = |name: &str, value: &[u8]| {
            rustix::fs::lsetxattr(&at, name, value, rustix::fs::XattrFlags::empty()).unwrap()
        };
        // What a process inside gets when it tries: another name, without a meaning.
        set(&format!("user.overlay.overlay.{mark}"), b"y");
        place
            .overlay
            .walk(&Apart::new(), Bounds::default())
            .unwrap();
        set(
            &format!("user.overlay.{mark}"),
            b"/a/place/that/is/longer/than/any/mark",
        );
        assert!(
            place
                .overlay
                .walk(&Apart::new(), Bounds::default())
                .is_err(),
            "{mark} {dir}"
        );
    }
    let place = place();
    fs::create_dir(place.upper("d")).unwrap();
    rustix::fs::lsetxattr(
        place.upper("d"),
        OPAQUE,
        b"x",
        rustix::fs::XattrFlags::empty(),
    )
    .unwrap();
    assert!(
        place
            .overlay
            .walk(&Apart::new(), Bounds::default())
            .is_err(),
        "the other form of whiteouts"
    );
}

#[test]
fn repositories_within_are_named_wherever_they_are() {
    let place = place();
    for name in [".GIT/x", "d/.git/config", "e/.Git"] {
        put(&place.overlay.upper(), name, "x");
    }
    put(&place.overlay.upper(), ".git/index.lock", "");
    assert_eq!(
        place.agrees().nested_repositories,
        [".GIT", "d/.git", "e/.Git"].map(TreePath::new)
    );
    assert!(place.overlay.is_added(Path::new(".git/index.lock")));
    assert!(!place.overlay.is_added(Path::new(".git/HEAD")));
}

#[test]
fn what_cannot_be_entered_hides_what_is_below_it() {
    if cto_testkit::is_root() {
        return cto_testkit::skip("root may enter every directory");
    }
    for mode in [0o000, 0o400, 0o100, 0o300] {
        let place = place();
        fs::create_dir(place.upper("d")).unwrap();
        fs::set_permissions(place.upper("d"), fs::Permissions::from_mode(mode)).unwrap();
        let walked = place
            .overlay
            .walk(&Apart::new(), Bounds::default())
            .unwrap();
        assert_eq!(walked.unreadable, [TreePath::new("d")], "{mode:o}");
        assert_eq!(place.names(), ["a", "gone/only", "link", "run"], "{mode:o}");
    }
}

fn edit(place: &Place, paths: &[&str], change: impl FnOnce(&Path)) {
    let paths: Vec<TreePath> = paths.iter().map(|path| TreePath::new(*path)).collect();
    place.overlay.edit(&paths, change).unwrap();
    place.agrees();
}

#[test]
fn an_edit_sees_the_files_it_names_and_what_it_removes_is_gone() {
    let place = place();
    edit(&place, &["d/x", "gone/only", "run", "new/file"], |dir| {
        assert_eq!(fs::read_to_string(dir.join("d/x")).unwrap(), "d/x");
        assert!(fs::metadata(dir.join("run")).unwrap().permissions().mode() & 0o100 != 0);
        assert!(!dir.join("d/y").exists() && !dir.join("new").exists());
        // As git does: a directory that holds nothing goes with its last file.
        for (file, parent) in [("d/x", "d"), ("gone/only", "gone")] {
            fs::remove_file(dir.join(file)).unwrap();
            fs::remove_dir(dir.join(parent)).unwrap();
        }
        put(dir, "new/file", "x");
    });
    assert_eq!(
        place.names(),
        ["a", "d/deep/z", "d/y", "link", "new/file", "run"]
    );
    let hidden = fs::symlink_metadata(place.upper("gone")).unwrap();
    assert!(is_whiteout(&hidden), "no empty directory is left of it");
    assert!(fs::symlink_metadata(place.upper("d")).unwrap().is_dir());
}

#[test]
fn what_was_hidden_stays_hidden_when_its_directory_comes_back() {
    let place = place();
    edit(&place, &["d/x", "d/y", "d/deep/z"], |dir| {
        fs::remove_dir_all(dir.join("d")).unwrap()
    });
    assert!(is_whiteout(
        &fs::symlink_metadata(place.upper("d")).unwrap()
    ));
    edit(&place, &["d/other"], |dir| put(dir, "d/other", "x"));
    assert_eq!(place.names(), ["a", "d/other", "gone/only", "link", "run"]);
    edit(&place, &["gone/only"], |dir| {
        fs::remove_file(dir.join("gone/only")).unwrap()
    });
    edit(&place, &["gone/only"], |dir| put(dir, "gone/only", "again"));
    assert_eq!(place.names(), ["a", "d/other", "gone/only", "link", "run"]);
}

#[test]
fn a_link_on_the_way_is_seen_as_one() {
    let place = place();
    edit(&place, &["link/x"], |dir| {
        assert!(fs::symlink_metadata(dir.join("link")).unwrap().is_symlink());
        assert!(
            on_disk::make_parent(dir, &dir.join("link/x")).is_err(),
            "no link is followed"
        );
    });
    edit(&place, &["d/deep"], |dir| {
        assert!(dir.join("d/deep").is_dir(), "a directory is seen as one")
    });
    edit(&place, &["a/below"], |dir| assert!(dir.join("a").is_file()));
    assert_eq!(place.names().len(), FILES.len() + 1);
}

#[test]
fn a_directory_becomes_a_file_and_a_file_a_directory() {
    let place = place();
    edit(
        &place,
        &["d/x", "d/y", "d/deep/z", "d", "a", "a/in"],
        |dir| {
            fs::remove_dir_all(dir.join("d")).unwrap();
            fs::write(dir.join("d"), "file").unwrap();
            fs::remove_file(dir.join("a")).unwrap();
            put(dir, "a/in", "x");
        },
    );
    assert_eq!(place.names(), ["a/in", "d", "gone/only", "link", "run"]);
}
