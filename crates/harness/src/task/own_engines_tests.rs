//! Which files are read as manifests, and what becomes of those that cannot be.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::task::engines;

fn text(id: &str) -> String {
    let variable = id.to_uppercase().replace('-', "_");
    format!(
        "id = \"{id}\"\ntitle = \"T\"\ngated_by_env = \"CTO_HARNESS_ALLOW_{variable}\"\ndefault_stage = 1\n\
         [invocation]\nprogram = \"admitted\"\ndialect = \"plain\"\nargv = [\"{{prompt}}\"]\n"
    )
}

struct Lab {
    _root: tempfile::TempDir,
    dir: OwnDirectory,
}

impl Lab {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("engines");
        fs::create_dir(&path).unwrap();
        Self {
            dir: OwnDirectory { path, typed: true },
            _root: root,
        }
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        path
    }

    fn read(&self) -> (Vec<Manifest>, Vec<Broken>) {
        read(&self.dir, &engines::all().unwrap()).unwrap()
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named_and_disturbs_no_other() {
    let lab = Lab::new();
    lab.put("good.toml", text("good"));
    lab.put("notes.txt", "no manifest");
    lab.put(".hidden.toml", "an editor's");
    let open = lab.put("open.toml", text("open"));
    fs::set_permissions(open, Permissions::from_mode(0o666)).unwrap();
    let group = lab.put("group.toml", text("group"));
    fs::set_permissions(&group, Permissions::from_mode(0o664)).unwrap();
    // Whoever runs this test may have a group of their own, which is as good as themselves.
    let private = crate::host::way::group_is_private(&group, &group.metadata().unwrap());
    symlink("good.toml", lab.dir.path.join("link.toml")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        lab.dir.path.join("pipe.toml"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    fs::create_dir(lab.dir.path.join("folder.toml")).unwrap();
    lab.put("huge.toml", vec![b'#'; 10 << 20]);
    lab.put("binary.toml", b"id = \"\xff\"");
    lab.put("empty.toml", "\n");
    lab.put("pi.toml", text("pi"));
    lab.put("twin.toml", text("good"));
    lab.put("key.toml", format!("colour = 1\n{}", text("key")));
    lab.put("No Name.toml", text("no-name"));
    let (good, broken) = lab.read();
    let names: Vec<&str> = good.iter().map(|found| found.id.as_str()).collect();
    match private {
        true => assert_eq!(names, ["good", "group"]),
        false => assert_eq!(names, ["good"]),
    }
    for (file, id, why) in [
        ("open.toml", Some("open"), "others may write it"),
        ("link.toml", Some("link"), "is a link"),
        ("pipe.toml", Some("pipe"), "is no regular file"),
        ("folder.toml", Some("folder"), "is no regular file"),
        ("huge.toml", Some("huge"), "is larger than 1048576 bytes"),
        ("binary.toml", Some("binary"), "is not text"),
        ("empty.toml", Some("empty"), "is empty"),
        (
            "pi.toml",
            Some("pi"),
            "pi.toml:1:6: pi is an engine of the house",
        ),
        (
            "twin.toml",
            Some("twin"),
            "twin.toml:1:6: a file has the name of its engine: good.toml",
        ),
        (
            "key.toml",
            Some("key"),
            "key.toml:1:1: unknown field `colour`",
        ),
        (
            "No Name.toml",
            None,
            "No Name.toml:1:6: a file has the name of its engine",
        ),
    ] {
        let found = broken
            .iter()
            .find(|broken| broken.file.ends_with(file))
            .unwrap();
        assert!(found.why.contains(why), "{file}: {}", found.why);
        assert_eq!(found.id.as_ref().map(|id| id.as_str()), id, "{file}");
    }
    assert_eq!(broken.len(), 11 + usize::from(!private));
}

#[test]
fn a_directory_others_may_write_or_a_repository_holds_no_manifest() {
    let lab = Lab::new();
    lab.put("good.toml", text("good"));
    let mode = |mode| fs::set_permissions(&lab.dir.path, Permissions::from_mode(mode)).unwrap();
    mode(0o777);
    let (good, broken) = lab.read();
    assert!(good.is_empty() && broken[0].why.contains("someone else"));
    // Sticky vouches for directories, not for files.
    mode(0o1777);
    assert!(lab.read().0.is_empty());
    mode(0o700);
    assert_eq!(lab.read().0.len(), 1);
    fs::create_dir(lab.dir.path.parent().unwrap().join(".git")).unwrap();
    let (good, broken) = lab.read();
    assert!(good.is_empty() && broken[0].why.contains("repository"));
}

#[test]
fn only_a_directory_that_was_typed_has_to_be_there() {
    let lab = Lab::new();
    let gone = |typed| OwnDirectory {
        path: lab.dir.path.join("gone"),
        typed,
    };
    assert_eq!(read(&gone(false), &[]).unwrap(), (Vec::new(), Vec::new()));
    assert_eq!(
        read(&gone(true), &[]).unwrap_err().code,
        "no_engines_directory"
    );
    let env = |pairs: &[(&str, &str)]| OwnDirectory::find(None, &Env::from_pairs(pairs));
    let path = |pairs: &[(&str, &str)]| env(pairs).unwrap().map(|dir| dir.path);
    assert_eq!(
        path(&[("HOME", "/h")]),
        Some("/h/.config/cto/engines".into())
    );
    let xdg = [("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")];
    assert_eq!(path(&xdg), Some("/x/cto/engines".into()));
    assert_eq!(path(&[]), None);
    assert_eq!(env(&[("HOME", "h")]).unwrap_err().code, "config_relative");
    let many = Lab::new();
    for number in 0..=MAX_FILES {
        fs::write(many.dir.path.join(format!("{number}")), "").unwrap();
    }
    assert!(many.read().1[0].why.contains("more than 1000 names"));
}
