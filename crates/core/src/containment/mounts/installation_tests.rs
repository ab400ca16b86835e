use super::*;

#[test]
fn installations_are_known_by_their_own_files() {
    const PYTHON_MARKS: [&str; 3] = ["bin/python3", "lib/python3.*/os.py", "bin"];
    type Row = (
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
        Option<&'static str>,
    );
    let rows: [Row; 16] = [
        (
            "/home/me/.pyenv/versions/3.12",
            &PYTHON_MARKS,
            &[],
            Some("a pyenv version"),
        ),
        (
            "/home/me/.local/share/uv/python/cpython-3.12",
            &PYTHON_MARKS,
            &[],
            Some("a uv Python"),
        ),
        ("/opt/python", &PYTHON_MARKS, &[], Some("a Python")),
        (
            "/home/me/conda",
            &["conda-meta/history", "bin"],
            &[".condarc"],
            Some("a conda installation"),
        ),
        (
            "/home/me/p/.venv",
            &["pyvenv.cfg", "bin", "lib/python3.*/site-packages"],
            &[".gitignore"],
            Some("a Python environment"),
        ),
        (
            "/home/me/.rustup/toolchains/stable",
            &["bin/cargo", "lib/rustlib"],
            &[],
            Some("a rustup toolchain"),
        ),
        (
            "/home/me/.nvm/versions/node/v20",
            &["bin/node"],
            &[],
            Some("an nvm version"),
        ),
        (
            "/home/me/.asdf/installs/lua/5.4",
            &["bin", "../../../shims"],
            &[],
            Some("a version of asdf or mise"),
        ),
        (
            "/home/linuxbrew/.linuxbrew/Cellar/jq/1.7",
            &["INSTALL_RECEIPT.json"],
            &[".brew"],
            Some("a Homebrew keg"),
        ),
        (
            "/nix/store/0123456789abcdef0123456789abcdef-python3",
            &[],
            &[],
            Some("a Nix store path"),
        ),
        ("/nix/store", &[], &[], None),
        (
            "/opt/go",
            &["VERSION", "bin/go", "src/runtime"],
            &[],
            Some("a Go"),
        ),
        (
            "/srv/p/node_modules",
            &[],
            &[".bin"],
            Some("packages of npm"),
        ),
        ("/home/me/Documents", &["bin"], &[], None),
        ("/home/me", &PYTHON_MARKS, &[".ssh"], None),
        (
            "/home/me/p",
            &["pyvenv.cfg", "bin", "lib/python3.*/site-packages"],
            &[".env"],
            None,
        ),
    ];
    for (root, marks, hidden, want) in rows {
        let signs = Signs {
            root: root.into(),
            marks: marks.iter().copied().collect(),
            hidden: Some(hidden.iter().map(|name| (*name).to_owned()).collect()),
        };
        assert_eq!(recognise(&signs).map(|found| found.kind), want, "{root}");
        let unread = Signs {
            hidden: None,
            ..signs
        };
        let known = root.starts_with("/nix/store/") || root.ends_with("node_modules");
        assert_eq!(recognise(&unread).is_some(), known, "{root}");
    }
    // A manager that may be a clone is known by its name; any other is somebody's repository.
    for (root, manager) in [
        ("/home/me/.pyenv/versions/3.12", Some("/home/me/.pyenv")),
        ("/srv/proj/versions/3.12", None),
        ("/home/me/proj/.tools/versions/3.12", None),
    ] {
        let signs = Signs {
            root: root.into(),
            marks: PYTHON_MARKS.into_iter().collect(),
            hidden: Some(vec![]),
        };
        let found = recognise(&signs).unwrap();
        assert_eq!(found.manager.as_deref(), manager.map(Path::new), "{root}");
        assert!(found.by_path);
    }
    let found = candidates(Path::new("/p/lib/node_modules/x/node_modules/y/bin/y.js"));
    assert_eq!(found.last().unwrap(), Path::new("/p/lib/node_modules"));
    assert!(!found.iter().any(|dir| dir == Path::new("/")));
}

#[test]
fn a_strange_name_is_told_and_not_passed_over() {
    let signs = |root: &str, marks: &[&'static str], hidden: Option<&[&str]>| Signs {
        root: root.into(),
        marks: marks.iter().copied().collect(),
        hidden: hidden.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
    };
    let python = [PYTHON, PYTHON_LIBRARY];
    for (hidden, strange) in [
        (Some(&[][..]), None),
        (Some(&[".gitignore", ".DS_Store"][..]), None),
        (Some(&[".lock", ".ssh", ".aws"][..]), Some(".aws")),
        (None, None),
    ] {
        let signs = signs("/home/me/kit", &python, hidden);
        let (known, mixed) = (recognise(&signs), mixed(&signs));
        assert_eq!(mixed.as_ref().map(|mixed| mixed.hidden.as_str()), strange);
        assert_eq!(known.is_some(), hidden.is_some() && strange.is_none());
        assert!(known.is_none() || mixed.is_none());
    }
    // What is no installation is none with a strange name either.
    assert_eq!(
        mixed(&signs("/home/me/docs", &[BIN], Some(&[".aws"]))),
        None
    );
    let packages = signs("/srv/x/node_modules", &[], Some(&[".bin", ".cache"]));
    assert!(recognise(&packages).is_some() && mixed(&packages).is_none());
}
