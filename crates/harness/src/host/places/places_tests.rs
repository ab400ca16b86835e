use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["home/.ssh", "home/docs", "ws"] {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        Self { dir }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn put(&self, path: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), "").unwrap();
    }

    fn python(&self, path: &str) {
        self.put(&format!("{path}/bin/python3"));
        self.put(&format!("{path}/lib/python3.12/os.py"));
    }

    fn places(&self) -> Places {
        let home = self.at("home").display().to_string();
        let state = Home {
            root: self.at("home/.local/state/cto"),
            runs: self.at("home/.local/state/cto/harness-runs"),
        };
        Places::of(&Env::from_pairs(&[("HOME", &home)]), &state)
    }
}

#[test]
fn a_path_is_followed_link_by_link_also_to_where_nothing_is() {
    let lab = Lab::new();
    symlink("b", lab.at("ws/a")).unwrap();
    symlink(lab.at("home"), lab.at("ws/b")).unwrap();
    symlink("../nowhere/at/all", lab.at("ws/gone")).unwrap();
    symlink("loop", lab.at("ws/loop")).unwrap();
    let places = lab.places();
    let found = places.look(&lab.at("ws/a/docs/../.ssh"));
    assert_eq!(
        (found.path, found.kind),
        (lab.at("home/.ssh"), PlaceKind::Directory)
    );
    let links: Vec<_> = found.links.into_iter().map(|link| link.at).collect();
    assert_eq!(links, [lab.at("ws/a"), lab.at("ws/b")]);
    let gone = places.look(&lab.at("ws/gone/more"));
    assert_eq!(
        (gone.path, gone.kind),
        (lab.at("nowhere/at/all/more"), PlaceKind::Missing)
    );
    assert_eq!(places.look(&lab.at("ws/loop")).kind, PlaceKind::Missing);
}

#[test]
fn state_that_is_not_there_yet_is_kept_all_the_same() {
    let lab = Lab::new();
    symlink(lab.at("elsewhere/cto"), lab.at("home/.config")).unwrap();
    fs::create_dir_all(lab.at("home/.local/state")).unwrap();
    fs::create_dir_all(lab.at("home/.hermes/profiles")).unwrap();
    fs::create_dir_all(lab.at("elsewhere")).unwrap();
    let places = lab.places();
    for (path, fine) in [
        ("home", false),
        ("", false),
        ("home/.local", false),
        ("home/.local/state", false),
        ("home/.hermes", false),
        ("home/.hermes/profiles", false),
        ("elsewhere", false),
        ("home/docs", true),
        ("ws", true),
    ] {
        let granted = places.named(&lab.at(path), true, &[]);
        assert_eq!(granted.is_ok(), fine, "{path}: {granted:?}");
    }
}

#[test]
fn a_link_in_a_workspace_is_a_wish() {
    let lab = Lab::new();
    lab.python("home/.pyenv/versions/3.11");
    for (name, target) in [
        ("ssh", "home/.ssh"),
        ("docs", "home/docs"),
        ("python", "home/.pyenv/versions/3.11"),
        ("inside", "ws/sub"),
    ] {
        symlink(lab.at(target), lab.at("ws").join(name)).unwrap();
    }
    fs::create_dir(lab.at("ws/sub")).unwrap();
    let places = lab.places();
    let ws = [places.named(&lab.at("ws"), true, &[]).unwrap()];
    for (name, writable, fine) in [
        ("ssh", false, false),
        ("ssh", true, false),
        ("docs", false, false),
        ("python", false, true),
        ("python", true, false),
        ("inside", true, true),
    ] {
        let granted = places.named(&lab.at("ws").join(name), writable, &ws);
        assert_eq!(granted.is_ok(), fine, "{name}: {granted:?}");
    }
    // What the operator types is theirs to show.
    assert!(places.named(&lab.at("home/.ssh"), false, &ws).is_ok());
    // A link in a home, which no jail can write to, is the operator's own word.
    symlink(lab.at("ws"), lab.at("home/work")).unwrap();
    assert!(lab.places().named(&lab.at("home/work"), true, &[]).is_ok());
}

#[test]
fn only_what_looks_like_an_installation_is_shown_whole() {
    let lab = Lab::new();
    lab.put("home/docs/bin/tool");
    lab.python("home/.pyenv/versions/3.11");
    lab.python("home/mixed");
    lab.python("home/repo/tools");
    lab.put("home/repo/tools/bin/mytool");
    lab.put("home/repo/.hg/store");
    fs::create_dir(lab.at("home/mixed/.aws")).unwrap();
    let places = lab.places();
    for (program, shown) in [
        ("home/docs/bin/tool", "home/docs/bin/tool"),
        (
            "home/.pyenv/versions/3.11/bin/python3",
            "home/.pyenv/versions/3.11",
        ),
        ("home/repo/tools/bin/mytool", "home/repo/tools/bin/mytool"),
    ] {
        let granted = places.program(&lab.at(program)).unwrap().unwrap();
        assert_eq!(granted.path(), lab.at(shown), "{program}");
    }
    // Cut down to one file it would be another program.
    let refused = places
        .program(&lab.at("home/mixed/bin/python3"))
        .unwrap_err();
    assert_eq!(refused.code(), "toolchain_unavailable");
    assert!(refused.to_string().contains(".aws"), "{refused}");
    let wish = places.wish(&lab.at("ws/x"), &lab.at("home/mixed/bin/python3"), &[]);
    assert!(wish.unwrap_err().to_string().contains(".aws"));
    // A home is never shown, so what it looks like does not matter.
    lab.python("home");
    lab.put("home/bin/tool");
    let granted = lab.places().program(&lab.at("home/bin/tool")).unwrap();
    assert_eq!(granted.unwrap().path(), lab.at("home/bin/tool"));
}

#[test]
fn a_wish_needs_an_installation_that_nobody_else_could_have_made() {
    let lab = Lab::new();
    for path in [
        "home/plain",
        "home/uv/python/good",
        "home/uv/python/open",
        "home/repo/uv/python/3",
        "home/hg/uv/python/3",
        "home/jj/uv/python/3",
        "home/svn/versions/3.12",
        "home/.pyenv/versions/3.12",
    ] {
        lab.python(path);
    }
    fs::set_permissions(
        lab.at("home/uv/python/open"),
        fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    lab.put("home/repo/.git/config");
    lab.put("home/hg/.hg/store");
    lab.put("home/jj/.jj/repo");
    lab.put("home/svn/.svn/wc.db");
    // Managers are clones of their own.
    lab.put("home/.pyenv/.git/config");
    lab.put("home/docs/python3");
    let (places, config) = (lab.places(), lab.at("ws/.venv/pyvenv.cfg"));
    for (program, fine) in [
        ("home/uv/python/good/bin/python3", true),
        ("home/.pyenv/versions/3.12/bin/python3", true),
        ("home/uv/python/open/bin/python3", false),
        ("home/repo/uv/python/3/bin/python3", false),
        ("home/hg/uv/python/3/bin/python3", false),
        ("home/jj/uv/python/3/bin/python3", false),
        ("home/svn/versions/3.12/bin/python3", false),
        // As an ordinary user's; what is root's is vouched for, but to root itself.
        ("home/plain/bin/python3", false),
        ("home/docs/python3", false),
    ] {
        let granted = places.wish(&config, &lab.at(program), &[]);
        assert_eq!(granted.is_ok(), fine, "{program}: {granted:?}");
        if let Err(refused) = granted {
            assert!(refused.to_string().contains("pyvenv.cfg"), "{refused}");
        }
    }
}

#[test]
fn the_kernels_table_of_mounts_is_read() {
    let mounted = mount_table();
    assert!(mounted.iter().any(|mount| mount.point == Path::new("/")));
    assert!(mounted.iter().any(|mount| mount.kind == "proc"));
    assert_eq!(kept::unescaped(b"/a\\040b\\134c"), PathBuf::from("/a b\\c"));
}
