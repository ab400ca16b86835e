//! What is kept, and what a jail left: truth tables on the made-up host.

use super::*;

fn kept(host: &Host, what: Kept, path: &str) -> KeptPlace {
    KeptPlace {
        what,
        place: host.look(Path::new(path)),
    }
}

#[test]
fn what_is_kept_beside_a_link_does_not_make_it_the_operators() {
    let mut host = plain(&["/home/me/.ssh", "/home/me/proj/sub", "/home/me/repo"]);
    for link in ["/home/me/proj/build", "/home/me/repo/build", "/home/me/own"] {
        host.links.insert(link.into(), "/home/me/.ssh".into());
    }
    host.repositories.insert("/home/me/repo".into());
    let all = [Kept::State, Kept::Config, Kept::OtherHome, Kept::Runtime];
    for operator in [0, OPERATOR] {
        for beside in all.into_iter().map(Some).chain([None]) {
            for reach in [vec![], vec![PathBuf::from("/home/me/proj")]] {
                let mut house = House {
                    operator,
                    home: Some("/home/me".into()),
                    kept: vec![kept(&host, Kept::Home, "/home/me")],
                    mounted: host.mounted(),
                    reach,
                    ..House::default()
                };
                for dir in ["/home/me/proj/.cto", "/home/me/repo/.cto"] {
                    house.kept.extend(beside.map(|what| kept(&host, what, dir)));
                }
                for (path, fine) in [
                    ("/home/me/proj/build", false),
                    ("/home/me/repo/build", false),
                    ("/home/me/own", true),
                    ("/home/me/.ssh", true),
                ] {
                    let granted = named(&host, &house, path, false);
                    assert_eq!(granted.is_ok(), fine, "{beside:?} {path}: {granted:?}");
                }
            }
        }
    }
}

#[test]
fn files_alone_make_no_installation_where_jails_write() {
    let paths = ["/home/me/x/python", "/home/me/hg/python", "/opt/python"];
    let mut host = plain(&paths);
    host.repositories.insert("/home/me/hg".into());
    for dir in ["/", "/home", "/opt", "/opt/python"] {
        host.owner.insert(dir.into(), 0);
    }
    let house = |operator, reach: &str| House {
        operator,
        home: Some("/home/me".into()),
        mounted: host.mounted(),
        reach: vec![reach.into()],
        ..House::default()
    };
    let file = Path::new("/home/me/ws/.venv/pyvenv.cfg");
    // operator, where jails write, the place, is its path known, as a program, as a wish
    for (operator, reach, path, by_path, program, wish) in [
        (OPERATOR, "/home/me/ws", paths[0], false, true, false),
        (OPERATOR, "/home/me/ws", paths[0], true, true, true),
        (OPERATOR, "/home/me/x", paths[0], true, false, true),
        (OPERATOR, "/home/me/ws", paths[1], true, false, false),
        (OPERATOR, "/home/me/ws", paths[2], false, true, true),
        (OPERATOR, "/opt/python", paths[2], false, false, true),
        (0, "/home/me/ws", paths[2], false, true, true),
    ] {
        let place = host.look(Path::new(path));
        let known = Installation {
            by_path,
            ..installed(&place).unwrap()
        };
        let repositories = host.repositories(&place.path);
        let decided = |by| {
            let asked = Asked {
                by,
                writable: false,
                installation: Some(&known),
                repositories: Some(&repositories),
            };
            decide(&asked, &place, &house(operator, reach)).is_ok()
        };
        let shown = &[];
        assert_eq!(
            decided(By::Program { links: &[] }),
            program,
            "{path} {reach}"
        );
        assert_eq!(decided(By::Wish { file, shown }), wish, "{path} {by_path}");
    }
    // What root's jails write is root's: there the owner says nothing.
    let mut host = plain(&["/home/me/x/python"]);
    host.owner
        .extend(host.dirs.clone().into_iter().map(|dir| (dir, 0)));
    let place = host.look(Path::new("/home/me/x/python"));
    let known = Installation {
        by_path: false,
        ..installed(&place).unwrap()
    };
    let asked = Asked {
        by: By::Wish { file, shown: &[] },
        writable: false,
        installation: Some(&known),
        repositories: Some(&[]),
    };
    assert!(decide(&asked, &place, &house(0, "/home/me/ws")).is_err());
    assert!(decide(&asked, &place, &house(OPERATOR, "/home/me/ws")).is_ok());
}

#[test]
fn what_the_host_runs_by_is_never_written() {
    let rows = [
        ("/usr/bin", false),
        ("/usr/lib/x", false),
        ("/usr/local", false),
        ("/usr/local/share/x", false),
        ("/usr/src", false),
        ("/usr/src/app", true),
        ("/usr/local/src/app", true),
        ("/bin/x", false),
        ("/lib64/x", false),
        ("/etc/ssl", false),
        ("/boot", false),
        ("/boot/efi", false),
        ("/var", false),
        ("/var/lib", false),
        ("/var/lib/dpkg/info", false),
        ("/var/spool/cron", false),
        ("/var/lib/jenkins/ws", true),
        ("/opt", false),
        ("/opt/homebrew/bin", false),
        ("/opt/app", true),
        ("/nix", false),
        ("/nix/store/x", false),
        ("/srv/ws", true),
    ];
    let host = plain(&rows.map(|(path, _)| path));
    let house = House {
        mounted: host.mounted(),
        ..House::default()
    };
    for (path, fine) in rows {
        let granted = named(&host, &house, path, true);
        assert_eq!(granted.is_ok(), fine, "{path}: {granted:?}");
    }
}

#[test]
fn there_is_no_jail_while_what_is_kept_lies_in_the_system() {
    let mut host = plain(&[
        "/srv/ws",
        "/usr/home/me",
        "/etc/ssl/certs",
        "/etc/ssl/private",
        "/etc/java-21-x",
        "/data",
        "/lib64",
    ]);
    host.links.insert("/usr/link".into(), "/data".into());
    host.binds.insert("/lib64".into(), "/data".into());
    for (what, path, fine) in [
        (Kept::Home, "/usr/home/me", false),
        (Kept::State, "/usr/home/me/not/yet", false),
        (Kept::Config, "/etc/ssl/certs", false),
        (Kept::Config, "/etc/java-21-x/mine", false),
        (Kept::Config, "/etc/ssl/private", true),
        (Kept::State, "/data/state", false),
        (Kept::State, "/usr/link/state", false),
        (Kept::OtherHome, "/usr/home/me", true),
        (Kept::Config, "/etc/cto", true),
        (Kept::Home, "/home/me", true),
    ] {
        let house = House {
            operator: OPERATOR,
            mounted: host.mounted(),
            kept: vec![kept(&host, what, path)],
            ..House::default()
        };
        for writable in [false, true] {
            let granted = named(&host, &house, "/srv/ws", writable);
            assert_eq!(granted.is_ok(), fine, "{what:?} {path}: {granted:?}");
        }
    }
}
