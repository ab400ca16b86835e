use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use proptest::prelude::*;

use super::*;
use crate::containment::mounts::{Id, KeptPlace, Mounted, PlaceKind, RUNTIME, Step};

const OPERATOR: u32 = 1000;

fn place(path: &Path) -> Place {
    let step = |dir: &Path| Step {
        path: dir.to_owned(),
        id: Id {
            device: 1,
            inode: dir.as_os_str().as_bytes().iter().fold(7, |sum: u64, byte| {
                sum.wrapping_mul(1_000_003).wrapping_add((*byte).into())
            }),
        },
        owner: OPERATOR,
        open: false,
    };
    Place {
        path: path.to_owned(),
        kind: PlaceKind::Directory,
        links: Vec::new(),
        chain: path.ancestors().map(step).collect(),
    }
}

fn house(home: &str, kept: &[(Kept, &str)]) -> House {
    let kept = kept.iter().map(|(what, path)| KeptPlace {
        what: *what,
        place: place(Path::new(path)),
    });
    House {
        operator: OPERATOR,
        home: Some(home.into()),
        kept: kept.collect(),
        mounted: vec![Mounted {
            point: "/".into(),
            device: (8, 1),
            root: "/".into(),
            kind: "ext4".into(),
        }],
        ..House::default()
    }
}

fn usual() -> House {
    house(
        "/home/me",
        &[
            (Kept::Home, "/home/me"),
            (Kept::State, "/home/me/.local/state/cto"),
            (Kept::Config, "/home/me/.config/cto"),
            (Kept::OtherHome, "/root"),
            (Kept::Runtime, "/var/run"),
        ],
    )
}

fn stands(path: &str) -> Stand {
    Stand::of(&place(Path::new(path)), &usual())
}

#[test]
fn a_repository_stands_where_it_is_wherever_people_work() {
    for path in [
        "/home/me/project",
        "/home/me/.config/nvim",
        "/home/me/a b/ü",
        "/workspace",
        "/workspaces/app",
        "/app",
        "/tmp/clone",
        "/var/tmp/clone",
        "/dev/shm/clone",
        "/usr/src/app",
        "/usr/local/src/app",
        "/opt/app",
        "/root/app",
        "/srv/git/x",
        "/var/lib/jenkins/workspace/x",
        "/run/media/me/disk/x",
        "/scratchy",
        "/etcetera",
    ] {
        assert_eq!(stands(path), Stand::Own(path.into()), "{path}");
        assert_eq!(stands(path).path(), Path::new(path));
    }
}

#[test]
fn where_it_cannot_the_reason_is_said_without_the_path() {
    let long = format!("/home/me/{}", "d/".repeat(600));
    let rows: [(&str, Unfit); 31] = [
        ("/", Unfit::JailsOwn),
        ("/tmp", Unfit::JailsOwn),
        ("/var", Unfit::JailsOwn),
        ("/var/tmp", Unfit::JailsOwn),
        ("/dev/shm", Unfit::JailsOwn),
        ("/dev", Unfit::JailsOwn),
        ("/run", Unfit::JailsOwn),
        ("/etc", Unfit::JailsOwn),
        ("/etc/nixos", Unfit::JailsOwn),
        ("/home", Unfit::JailsOwn),
        ("/scratch", Unfit::JailsOwn),
        ("/scratch/me/x", Unfit::JailsOwn),
        ("/engine/x", Unfit::JailsOwn),
        ("/refused", Unfit::JailsOwn),
        ("/usr", Unfit::System),
        ("/usr/src", Unfit::System),
        ("/usr/local", Unfit::System),
        ("/usr/share/x", Unfit::System),
        ("/lib64", Unfit::System),
        ("/bin", Unfit::System),
        ("/proc/1", Unfit::Kept(Kept::Runtime)),
        ("/sys/x", Unfit::Kept(Kept::Runtime)),
        ("/dev/x", Unfit::Kept(Kept::Runtime)),
        ("/run/user/1000/x", Unfit::Kept(Kept::Runtime)),
        ("/home/me", Unfit::Kept(Kept::Home)),
        ("/root", Unfit::Kept(Kept::OtherHome)),
        ("/home/me/.local", Unfit::Kept(Kept::State)),
        ("/home/me/.local/state/cto", Unfit::Kept(Kept::State)),
        ("/home/me/.local/state/cto/x", Unfit::Kept(Kept::State)),
        ("/home/me/new\nline", Unfit::Control),
        (&long, Unfit::TooLong),
    ];
    for (path, why) in rows {
        let stand = stands(path);
        assert_eq!(stand, Stand::Instead(why), "{path}");
        assert_eq!(stand.path(), Path::new(NEUTRAL));
        let words = stand.words().unwrap();
        assert!(words.starts_with("at /workspace since"), "{words}");
        assert!(path == "/" || !words.contains(path), "{words}");
    }
    let raw = Path::new(OsStr::from_bytes(b"/home/me/\xff"));
    assert_eq!(
        Stand::of(&place(raw), &usual()),
        Stand::Instead(Unfit::NotUtf8)
    );
    let gone = Place {
        kind: PlaceKind::Missing,
        ..place(Path::new("/home/me/x"))
    };
    assert_eq!(Stand::of(&gone, &usual()), Stand::Instead(Unfit::Moved));
    assert_eq!(Stand::default().path(), Path::new(NEUTRAL));
    assert_eq!(Stand::default().words(), None);
}

#[test]
fn a_home_in_the_repository_and_a_state_home_beside_it() {
    let within = house("/srv/app/home", &[(Kept::Home, "/srv/app/home")]);
    let app = place(Path::new("/srv/app"));
    assert_eq!(
        Stand::of(&app, &within),
        Stand::Instead(Unfit::Kept(Kept::Home))
    );
    let beside = house("/srv/home", &[(Kept::State, "/srv/app-state")]);
    assert_eq!(Stand::of(&app, &beside), Stand::Own("/srv/app".into()));
}

/// A path of a few names that collide often with everything of interest.
fn paths() -> impl Strategy<Value = PathBuf> {
    let name = prop::sample::select(vec![
        "home", "me", "usr", "src", "etc", "tmp", "scratch", "engine", "refused", "run", "proc",
        "a", "state", "local",
    ]);
    prop::collection::vec(name, 0..5).prop_map(|names| {
        let mut path = PathBuf::from("/");
        path.extend(names);
        path
    })
}

proptest! {
    #[test]
    fn it_never_covers_and_never_lies_in_what_is_not_its_own(
        repository in paths(), home in paths(), state in paths(), config in paths(),
    ) {
        let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
        let (home, state, config) = (text(&home), text(&state), text(&config));
        let house = house(&home, &[
            (Kept::Home, &home), (Kept::State, &state), (Kept::Config, &config),
        ]);
        let stand = Stand::of(&place(&repository), &house);
        let at = stand.path();
        if let Stand::Own(own) = &stand {
            prop_assert_eq!(own, &repository);
            for never_above in [&home, &state, &config] {
                prop_assert!(!Path::new(never_above).starts_with(at), "{at:?} {never_above}");
            }
            for never_below in [&state, &config] {
                prop_assert!(!at.starts_with(never_below), "{at:?} {never_below}");
            }
            for dir in SYSTEM.iter().chain(&JAILS_WHOLLY).chain(&JAILS_AROUND) {
                prop_assert!(!Path::new(dir).starts_with(at), "{at:?} covers {dir}");
            }
            for dir in JAILS_WHOLLY.iter().chain(&RUNTIME) {
                let of_people = at.starts_with("/dev/shm") || at.starts_with("/run/media");
                prop_assert!(of_people || !at.starts_with(dir), "{at:?} lies in {dir}");
            }
        }
    }
}
