use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A host made up: a tree of directories with links, and mounts of parts of it elsewhere. It
/// shares nothing with what it tests: what a mount shows is found by walking.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// From where to what.
    binds: BTreeMap<PathBuf, PathBuf>,
    dirs: BTreeSet<PathBuf>,
    repositories: BTreeSet<PathBuf>,
    pub owner: BTreeMap<PathBuf, u32>,
    pub open: BTreeSet<PathBuf>,
}

const OPERATOR: u32 = 1000;
const NAMES: [&str; 4] = ["a", "b", "c", "usr"];
const INSTALLED: &str = "python";

impl Host {
    /// The path in the tree itself, through mounts.
    pub fn kept(&self, path: &Path) -> PathBuf {
        let mut at = path.to_owned();
        // Each mount shows a part of the tree in which no other mount is seen.
        let found = self
            .binds
            .iter()
            .filter(|(point, _)| path.starts_with(point))
            .max_by_key(|(point, _)| point.components().count());
        if let Some((point, root)) = found {
            at = root.join(path.strip_prefix(point).unwrap());
        }
        at
    }

    fn exists(&self, path: &Path) -> bool {
        path == Path::new("/") || self.dirs.contains(&self.kept(path))
    }

    fn step(&self, path: &Path) -> Step {
        let kept = self.kept(path);
        let inode = self.dirs.iter().position(|dir| *dir == kept);
        Step {
            path: path.to_owned(),
            id: Id {
                device: 1,
                inode: inode.map_or(0, |at| at as u64 + 1),
            },
            owner: self.owner.get(&kept).copied().unwrap_or(OPERATOR),
            open: self.open.contains(&kept),
        }
    }

    pub fn look(&self, path: &Path) -> Place {
        let mut rest: Vec<_> = path.iter().rev().map(PathBuf::from).collect();
        rest.pop();
        let (mut at, mut links) = (PathBuf::from("/"), Vec::new());
        while let Some(part) = rest.pop() {
            let next = at.join(part);
            match self.links.get(&self.kept(&next)) {
                Some(target) if links.len() < 8 => {
                    links.push(Link {
                        dir: self.step(&at),
                        in_repository: !self.repositories(&at).is_empty(),
                        at: next,
                    });
                    at = "/".into();
                    rest.extend(target.iter().rev().map(PathBuf::from));
                    rest.pop();
                }
                _ => at = next,
            }
        }
        let existing = at.ancestors().filter(|dir| self.exists(dir));
        Place {
            kind: match self.exists(&at) {
                true => PlaceKind::Directory,
                false => PlaceKind::Missing,
            },
            chain: existing.map(|dir| self.step(dir)).collect(),
            path: at,
            links,
        }
    }

    pub fn repositories(&self, path: &Path) -> Vec<PathBuf> {
        let is = |dir: &&Path| self.repositories.contains(&self.kept(dir));
        path.ancestors().filter(is).map(Path::to_owned).collect()
    }

    /// Everything of the tree that a mount of this path shows, with what is mounted below it.
    pub fn shown(&self, path: &Path) -> BTreeSet<PathBuf> {
        let below = |root: &Path| {
            let of = |dir: &&PathBuf| dir.starts_with(root);
            self.dirs.iter().filter(of).cloned().collect::<Vec<_>>()
        };
        let mounted = self
            .binds
            .iter()
            .filter(|(point, _)| *point != path && point.starts_with(path))
            .flat_map(|(_, root)| below(root));
        below(&self.kept(path)).into_iter().chain(mounted).collect()
    }

    pub fn mounted(&self) -> Vec<Mounted> {
        let mount = |point: &Path, root: &Path| Mounted {
            point: point.to_owned(),
            device: (8, 1),
            root: root.to_owned(),
            kind: "ext4".into(),
        };
        let root = mount(Path::new("/"), Path::new("/"));
        let binds = self.binds.iter().map(|(point, root)| mount(point, root));
        [root].into_iter().chain(binds).collect()
    }
}

pub(super) fn path() -> impl Strategy<Value = PathBuf> {
    let name = prop_oneof![4 => prop::sample::select(&NAMES[..]), 1 => Just(INSTALLED)];
    prop::collection::vec(name, 1..4).prop_map(|parts| {
        let parts: PathBuf = parts.iter().collect();
        Path::new("/").join(parts)
    })
}

pub(super) fn host() -> impl Strategy<Value = Host> {
    let paths = |most| prop::collection::vec(path(), 0..most);
    let pairs = |most| prop::collection::vec((path(), path()), 0..most);
    (paths(10), pairs(4), pairs(3), paths(2), paths(2), paths(2)).prop_map(
        |(dirs, links, binds, repositories, foreign, open)| {
            let all = |path: &Path| path.ancestors().map(Path::to_owned).collect::<Vec<_>>();
            let mut host = Host::default();
            host.dirs.extend(dirs.iter().flat_map(|dir| all(dir)));
            for (at, target) in links {
                let parent = at.parent().unwrap().to_owned();
                host.dirs.extend(all(&parent));
                let below = |dir: &PathBuf| dir.starts_with(&at);
                // A name is a link or a directory.
                if !host.dirs.iter().any(below) {
                    host.links.insert(at, target);
                }
            }
            let is_link = |links: &BTreeMap<PathBuf, PathBuf>, dir: &Path| {
                dir.ancestors().any(|part| links.contains_key(part))
            };
            let links = host.links.clone();
            host.dirs.retain(|dir| !is_link(&links, dir));
            let points: Vec<_> = host.dirs.iter().cloned().collect();
            for (at, root) in binds {
                let plain = points.contains(&at) && points.contains(&root);
                if plain && !host.binds.keys().any(|other| root.starts_with(other)) {
                    host.binds.insert(at, root);
                }
            }
            host.repositories.extend(repositories);
            host.owner.extend(foreign.into_iter().map(|dir| (dir, 7)));
            host.open.extend(open);
            host
        },
    )
}

/// An installation here is a directory of that name.
fn installed(place: &Place) -> Option<Installation> {
    place.path.ends_with(INSTALLED).then(|| Installation {
        kind: "a Python",
        root: place.path.clone(),
        is_base: true,
        manager: None,
        by_path: true,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whoever asks, and however: no mount shows anything of what is kept, nor the way to it.
    #[test]
    fn no_mount_ever_covers_what_is_kept(
        host in host(),
        home in path(), state in path(), other in path(),
        asked_for in path(), wisher in path(),
        writable in any::<bool>(), operator in prop_oneof![Just(0u32), Just(OPERATOR)],
        by in 0..4,
    ) {
        let kept = |what, path: &Path| KeptPlace { what, place: host.look(path) };
        let house = House {
            operator,
            home: Some(host.look(&home).path),
            kept: vec![kept(Kept::Home, &home), kept(Kept::State, &state), kept(Kept::OtherHome, &other)],
            mounted: host.mounted(),
            workshop: vec![],
            runs: None,
            reach: vec![],
            shown: FoundOnce::default(),
        };
        let place = host.look(&asked_for);
        let (known, repositories) = (installed(&place), host.repositories(&place.path));
        let by = match by {
            0 => By::Operator { shown: &[] },
            1 => By::Program { links: &place.links },
            2 => By::Wish { file: &wisher, shown: &[] },
            _ => By::Harness,
        };
        let asked = Asked { by, writable, installation: known.as_ref(), repositories: Some(&repositories) };
        let Ok(granted) = decide(&asked, &place, &house) else { return Ok(()) };
        let shown = host.shown(granted.path());
        for kept in &house.kept {
            let real = host.kept(&kept.place.path);
            // What does not exist is shown by whatever holds the place where it will.
            let nearest = |path: &Path| {
                let mut at = path.ancestors();
                at.find(|dir| host.dirs.contains(*dir)).map(Path::to_owned)
            };
            prop_assert!(!shown.contains(&real), "{:?} is shown", kept.what);
            // Nor does what every jail is shown.
            if kept.what != Kept::OtherHome {
                let system = host.shown(Path::new("/usr"));
                prop_assert!(!system.contains(&real), "{:?} is in the system", kept.what);
                prop_assert!(!kept.place.path.starts_with("/usr"), "{:?} would be", kept.what);
            }
            if !host.dirs.contains(&real) {
                let holder = nearest(&real).unwrap_or_default();
                prop_assert!(!shown.contains(&holder) || !granted.path().starts_with("/")
                    || !kept.place.path.starts_with(granted.path()), "{:?} would be", kept.what);
            }
            if kept.what == Kept::State {
                let inside = shown.iter().find(|dir| dir.starts_with(&real));
                prop_assert_eq!(inside, None, "of the state");
            }
            for link in &kept.place.links {
                prop_assert!(!link.at.starts_with(granted.path()), "the way to {:?}", kept.what);
            }
        }
        // A wish is an installation of root's or the operator's, outside every repository.
        if let By::Wish { .. } = by {
            prop_assert!(known.is_some() && !writable);
            let steps = &place.chain;
            prop_assert!(steps.iter().all(|step| !step.open && [0, operator].contains(&step.owner)));
            let home = house.home.as_ref().unwrap();
            prop_assert!(repositories.iter().all(|dir| home.starts_with(dir)));
        }
        // A link on the way that a jail could have made never leads out of an installation. A
        // home, and what holds one, is refused to every jail; nothing else is beyond doubt.
        if let By::Operator { .. } = by && known.is_none() {
            let own_home = &house.kept[0].place;
            for link in &place.links {
                let holds_home = own_home.path.starts_with(&link.dir.path)
                    || host.shown(&link.dir.path).contains(&host.kept(&own_home.path))
                    || own_home.links.iter().any(|other| other.at.starts_with(&link.dir.path))
                    || own_home.chain.iter().any(|step| step.id == link.dir.id);
                let foreign = operator != 0 && link.dir.owner != operator && !link.dir.open;
                let work = link.in_repository && (operator == 0 || link.dir.owner != 0);
                let system = link.dir.path.starts_with("/usr");
                prop_assert!(system || !work && (foreign || holds_home), "{:?}", link.at);
            }
        }
        // A program brings a whole installation only from where nobody works.
        if let By::Program { .. } = by {
            let home = house.home.as_ref().unwrap();
            prop_assert!(known.is_some() && repositories.iter().all(|dir| home.starts_with(dir)));
        }
    }
}

pub(super) fn plain(paths: &[&str]) -> Host {
    let mut host = Host::default();
    for path in paths {
        let all = Path::new(path).ancestors().map(Path::to_owned);
        host.dirs.extend(all);
    }
    host
}

fn named(host: &Host, house: &House, path: &str, writable: bool) -> Result<Granted, Refused> {
    let asked = Asked {
        by: By::Operator { shown: &[] },
        writable,
        installation: None,
        repositories: None,
    };
    decide(&asked, &host.look(Path::new(path)), house)
}

#[test]
fn what_the_kernel_and_the_host_keep_for_themselves_is_not_shown() {
    let paths = [
        "/proc/1",
        "/sys/x",
        "/dev/x",
        "/dev/shm/ws",
        "/run/user/1000/x",
        "/run/secrets",
        "/run/media/me/disk/ws",
        "/srv/app/secrets/db",
        "/srv/plain",
        "/tmp/ws",
        "/etc/x",
        "/usr/src/app",
        "/home/me/ws",
        "/home/you/ws",
        "/mnt/gvfs/x",
    ];
    let mut host = plain(&paths);
    host.owner.insert("/home/you".into(), 1001);
    let mut house = House {
        operator: OPERATOR,
        mounted: host.mounted(),
        kept: vec![KeptPlace {
            what: Kept::Home,
            place: host.look(Path::new("/home/me")),
        }],
        ..House::default()
    };
    for (point, kind) in [
        ("/srv/app/secrets", "tmpfs"),
        ("/mnt/gvfs", "fuse.gvfsd-fuse"),
    ] {
        house.mounted.push(Mounted {
            point: point.into(),
            device: (0, 40),
            root: "/".into(),
            kind: kind.into(),
        });
    }
    for (path, fine) in [
        ("/proc/1", false),
        ("/sys/x", false),
        ("/dev/x", false),
        ("/dev/shm", false),
        ("/dev/shm/ws", true),
        ("/run/user/1000/x", false),
        ("/run/secrets", false),
        ("/run", false),
        ("/run/media/me/disk/ws", true),
        ("/srv/app/secrets/db", false),
        ("/srv/app", false),
        ("/srv/plain", true),
        ("/mnt", false),
        ("/tmp", false),
        ("/tmp/ws", true),
        ("/", false),
        ("/etc", false),
        ("/etc/x", false),
        ("/usr", false),
        ("/usr/src/app", true),
        ("/home", false),
        ("/home/me", false),
        ("/home/me/ws", true),
        ("/home/you", false),
        ("/home/you/ws", true),
        ("/nowhere", false),
    ] {
        let granted = named(&host, &house, path, true);
        assert_eq!(granted.is_ok(), fine, "{path}: {granted:?}");
    }
}

#[test]
fn a_bind_mount_is_what_it_shows() {
    let mut host = plain(&[
        "/home/me/.local/state/cto/keys",
        "/mnt/k",
        "/mnt/all",
        "/srv/ws/inner",
    ]);
    for (at, root) in [
        ("/mnt/k", "/home/me/.local/state/cto/keys"),
        ("/mnt/all", "/home"),
        ("/srv/ws/inner", "/home/me/.local/state/cto"),
    ] {
        host.binds.insert(at.into(), root.into());
    }
    let state = KeptPlace {
        what: Kept::State,
        place: host.look(Path::new("/home/me/.local/state/cto")),
    };
    let house = House {
        operator: OPERATOR,
        mounted: host.mounted(),
        kept: vec![state],
        ..House::default()
    };
    for path in [
        "/mnt/k",
        "/mnt/all",
        "/mnt/all/me",
        "/mnt",
        "/srv/ws",
        "/srv",
    ] {
        let refused = named(&host, &house, path, false);
        assert!(
            matches!(refused, Err(Refused::Exposes(Kept::State, _))),
            "{path}: {refused:?}"
        );
    }
}

#[test]
fn the_harness_hands_over_only_what_it_made() {
    let host = plain(&[
        "/state/copies/run-1/copy",
        "/state/keys",
        "/state/runs/r/backend/scratch",
    ]);
    let house = House {
        workshop: vec!["/state/copies".into()],
        runs: Some("/state/runs".into()),
        kept: vec![KeptPlace {
            what: Kept::State,
            place: host.look(Path::new("/state")),
        }],
        ..House::default()
    };
    let asked = Asked {
        by: By::Harness,
        writable: true,
        installation: None,
        repositories: None,
    };
    for (path, fine) in [
        ("/state/copies/run-1/copy", true),
        ("/state/runs/r/backend/scratch", true),
        ("/state/runs/r/backend", false),
        ("/state/runs/r", false),
        ("/state/copies", false),
        ("/state/keys", false),
        ("/state", false),
    ] {
        let granted = decide(&asked, &host.look(Path::new(path)), &house);
        assert_eq!(granted.is_ok(), fine, "{path}: {granted:?}");
    }
}

#[path = "kept_tests.rs"]
mod kept_tests;
