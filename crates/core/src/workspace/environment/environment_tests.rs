use super::*;
use EnvironmentKind as K;

fn dir() -> Signs {
    Signs {
        is_dir: true,
        ..Signs::default()
    }
}

#[test]
fn a_kind_is_a_name_and_a_sign() {
    let venv = Signs {
        pyvenv: true,
        ..dir()
    };
    let tagged = Signs {
        cache_tag: true,
        ..dir()
    };
    let beside = Signs {
        cargo_beside: true,
        ..dir()
    };
    let file = Signs::default();
    for (name, signs, want) in [
        (".venv", venv, Some(K::PythonVenv)),
        ("venv", venv, Some(K::PythonVenv)),
        ("py312", venv, Some(K::PythonVenv)),
        (".venv", dir(), None),
        ("node_modules", dir(), Some(K::NodeModules)),
        ("node_modules", file, None),
        ("target", tagged, Some(K::CargoTarget)),
        ("target", beside, Some(K::CargoTarget)),
        ("target", dir(), None),
        (".tox", dir(), Some(K::Tox)),
        (".nox", dir(), Some(K::Nox)),
        (".eggs", dir(), Some(K::Eggs)),
        ("click.egg-info", dir(), Some(K::EggInfo)),
        ("_version.py", file, Some(K::GeneratedFile)),
        ("_version.py", dir(), None),
        (
            "_s.cpython-312-x86_64-linux-gnu.so",
            file,
            Some(K::ExtensionModule),
        ),
        ("_s.abi3.so", file, Some(K::ExtensionModule)),
        ("libz.so", file, None),
        ("libz.so.1", file, None),
        ("x.o", file, None),
    ] {
        assert_eq!(kind_of(name.as_bytes(), signs), want, "{name} {signs:?}");
        assert!(
            want.is_none() || may_be_environment(name.as_bytes()),
            "{name}"
        );
    }
}

#[test]
fn output_that_hides_deletions_is_never_found() {
    let every_sign = Signs {
        is_dir: true,
        pyvenv: true,
        cache_tag: true,
        cargo_beside: true,
    };
    for name in [
        "build",
        "dist",
        "out",
        ".next",
        "__pycache__",
        "obj",
        "objects",
        "_build",
    ] {
        assert_eq!(kind_of(name.as_bytes(), every_sign), None, "{name}");
        assert!(!may_be_environment(name.as_bytes()), "{name}");
    }
}

fn small() -> EnvironmentFacts {
    EnvironmentFacts {
        kind: K::PythonVenv,
        ignored: true,
        is_link: false,
        taken_away: false,
        hidden: false,
        granted: true,
        readable: true,
        python_gone: false,
        foreign: false,
        forbidden: false,
        from_the_future: false,
        files: 10,
        bytes: 1000,
        hidden_files: 0,
        overlay: true,
    }
}

#[test]
fn every_fact_has_its_row() {
    let of = |change: &dyn Fn(&mut EnvironmentFacts)| {
        let mut facts = small();
        change(&mut facts);
        decide_environment(&facts).0
    };
    let large = |facts: &mut EnvironmentFacts| facts.files = MOST_COPIED_FILES + 1;
    type Row<'a> = (&'a str, &'a dyn Fn(&mut EnvironmentFacts), Carried);
    let rows: [Row<'_>; 17] = [
        ("small", &|_| {}, Carried::Copied),
        ("many files", &large, Carried::Overlay),
        (
            "many bytes",
            &|f| f.bytes = MOST_COPIED_BYTES + 1,
            Carried::Overlay,
        ),
        (
            "no overlay",
            &|f| (f.files, f.overlay) = (9_999, false),
            Carried::ReadOnly,
        ),
        ("small, no overlay", &|f| f.overlay = false, Carried::Copied),
        ("foreign", &|f| f.foreign = true, Carried::ReadOnly),
        (
            "foreign and large",
            &|f| (f.foreign, f.files) = (true, 9_999),
            Carried::ReadOnly,
        ),
        ("forbidden", &|f| f.forbidden = true, Carried::ReadOnly),
        (
            "read-only with too much to hide",
            &|f| (f.foreign, f.hidden_files) = (true, MOST_HIDDEN + 1),
            Carried::Not,
        ),
        ("not ignored", &|f| f.ignored = false, Carried::Not),
        ("a link", &|f| f.is_link = true, Carried::Not),
        ("taken away", &|f| f.taken_away = true, Carried::Not),
        ("hidden", &|f| f.hidden = true, Carried::Not),
        ("unreadable", &|f| f.readable = false, Carried::Not),
        ("not granted", &|f| f.granted = false, Carried::Not),
        ("no Python", &|f| f.python_gone = true, Carried::Not),
        ("endless", &|f| f.files = MOST_FILES + 1, Carried::Not),
    ];
    for (what, change, want) in rows {
        assert_eq!(of(change), want, "{what}");
        let (carried, why) = {
            let mut facts = small();
            change(&mut facts);
            decide_environment(&facts)
        };
        let silent = matches!(carried, Carried::Copied | Carried::Overlay);
        assert_eq!(why.is_none(), silent, "{what}: what is less is said");
    }
}

#[test]
fn the_future_counts_where_times_do() {
    for (kind, want) in [
        (K::CargoTarget, Carried::Not),
        (K::Named, Carried::Not),
        (K::PythonVenv, Carried::Copied),
        (K::NodeModules, Carried::Not),
        (K::Tox, Carried::Not),
        (K::Nox, Carried::Not),
        (K::Eggs, Carried::Copied),
    ] {
        let facts = EnvironmentFacts {
            kind,
            from_the_future: true,
            ..small()
        };
        assert_eq!(decide_environment(&facts).0, want, "{kind:?}");
    }
}

#[test]
fn the_verdict_names_what_came_along() {
    let used = |path: &str, kind, carried| EnvironmentUse {
        path: TreePath::new(path),
        kind,
        carried,
        why: None,
        files: 1,
        bytes: 1,
        hidden: 0,
        state: None,
    };
    assert_eq!(with_your(&[]), None);
    assert_eq!(with_your(&[used("x", K::Tox, Carried::Not)]), None);
    let all = [
        used("target", K::CargoTarget, Carried::Overlay),
        used(".tox", K::Tox, Carried::Not),
        used("a/_version.py", K::GeneratedFile, Carried::Copied),
    ];
    assert_eq!(
        with_your(&all).as_deref(),
        Some("with your target/, a/_version.py")
    );
}

#[test]
fn a_state_is_everything_the_kernel_says() {
    let seen = Seen {
        mode: 0o100_644,
        size: 3,
        inode: 7,
        modified: (1, 2),
        changed: (3, 4),
    };
    let digest = |list: &[(&str, Seen)]| {
        let mut state = StateDigest::default();
        for (path, seen) in list {
            state.take(path.as_bytes(), seen);
        }
        state.finish()
    };
    let same = digest(&[("a", seen)]);
    assert_eq!(same, digest(&[("a", seen)]));
    for other in [
        Seen {
            mode: 0o100_755,
            ..seen
        },
        Seen { size: 4, ..seen },
        Seen { inode: 8, ..seen },
        Seen {
            modified: (1, 3),
            ..seen
        },
        Seen {
            changed: (3, 5),
            ..seen
        },
    ] {
        assert_ne!(digest(&[("a", other)]), same, "{other:?}");
    }
    assert_ne!(digest(&[("b", seen)]), same);
    assert_ne!(digest(&[("a", seen), ("b", seen)]), same);
}
