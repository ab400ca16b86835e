use super::super::tests::{Host, host, path};
use super::*;
use crate::containment::mounts::{Asked, By, Kept, KeptPlace, decide, installation::Installation};
use proptest::prelude::*;

const OPERATOR: u32 = 1000;

fn house(host: &Host, home: &Path, state: &Path) -> House {
    let kept = |what, path: &Path| KeptPlace {
        what,
        place: host.look(path),
    };
    House {
        operator: OPERATOR,
        home: Some(host.look(home).path),
        kept: vec![kept(Kept::Home, home), kept(Kept::State, state)],
        mounted: host.mounted(),
        ..House::default()
    }
}

/// What the shell would make of an entry: an installation around it, or its programs one by one.
fn entry(host: &Host, house: &House, typed: &Path) -> Entry {
    let place = host.look(typed);
    let ask = |place: &Place, links: &[super::super::Link]| {
        let known = place.path.ends_with("python").then(|| Installation {
            kind: "a Python",
            root: place.path.clone(),
            is_base: true,
            manager: None,
            by_path: true,
        });
        let repositories = host.repositories(&place.path);
        let asked = Asked {
            by: By::Program { links },
            writable: false,
            installation: known.as_ref(),
            repositories: Some(&repositories),
        };
        decide(&asked, place, house)
    };
    let held = match ask(&place, &place.links) {
        Ok(granted) => Held::Whole {
            dir: place.path.clone(),
            mounts: vec![granted],
        },
        Err(_) => {
            let candidates = ["a", "b", "python"].map(|name| {
                let program = host.look(&typed.join(name));
                let offer = match ask(&program, &program.links) {
                    Ok(granted) => Offer::Link {
                        to: program.path.clone(),
                        mounts: vec![granted],
                    },
                    Err(refused) => Offer::NotShown(refused.to_string()),
                };
                Candidate {
                    name: name.into(),
                    offer,
                    hides_another: true,
                }
            });
            Held::Programs(candidates.into())
        }
    };
    Entry {
        typed: typed.to_owned(),
        place,
        held: vec![held],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Whatever PATH says: nothing that is kept is shown by it, what others could have written is
    /// not searched, and every link of ours leads to what was granted.
    #[test]
    fn no_path_shows_what_is_kept(
        host in host(), home in path(), state in path(), repo in path(),
        typed in prop::collection::vec((path(), 0..6u8), 1..6),
    ) {
        let house = house(&host, &home, &state);
        let typed: Vec<PathBuf> = typed.into_iter().map(|(path, how)| match how {
            0 => path.strip_prefix("/").unwrap().to_owned(),
            1 => PathBuf::from("."),
            _ => path,
        }).collect();
        let entries: Vec<Entry> = typed.iter().map(|typed| entry(&host, &house, typed)).collect();
        let copied = host.look(&repo).path;
        let with = Searching { house: &house, copied: Some(&copied) };
        let found = arrange(entries, with);
        for granted in found.mounts() {
            let shown = host.shown(granted.path());
            for kept in &house.kept {
                prop_assert!(!shown.contains(&host.kept(&kept.place.path)), "{:?}", kept.what);
            }
            prop_assert!(!granted.path().starts_with(&copied), "{:?} of the repository", granted.path());
        }
        let mut last = 0;
        for part in &found.parts {
            match part {
                Part::Dir { dir, mounts } => {
                    prop_assert!(dir.is_absolute() && (is_in(dir, mounts) || dir.starts_with(&copied)));
                    let of = typed.iter().position(|typed| host.look(typed).path == *dir || typed == dir);
                    prop_assert!(of.is_some_and(|at| at >= last || at < typed.len()));
                    last = of.unwrap_or(last);
                    let place = host.look(dir);
                    let foreign = |step: &super::super::Step| step.open || ![0, OPERATOR].contains(&step.owner);
                    prop_assert!(is_system(dir) || !place.chain.iter().any(foreign), "{dir:?}");
                }
                Part::Ours(ours) => for offer in ours.values() {
                    if let Offer::Link { to, mounts } = offer {
                        prop_assert!(is_in(to, mounts) || to.starts_with(&copied), "{to:?}");
                    }
                },
            }
        }
    }
}

fn granted(path: &str) -> Granted {
    let host = super::super::tests::plain(&[path]);
    let asked = Asked {
        by: By::Operator { shown: &[] },
        writable: false,
        installation: None,
        repositories: None,
    };
    decide(&asked, &host.look(Path::new(path)), &House::default()).unwrap()
}

fn offered(names: &[(&str, Offer, bool)]) -> Vec<Held> {
    let candidate = |(name, offer, hides_another): &(&str, Offer, bool)| Candidate {
        name: (*name).to_owned(),
        offer: offer.clone(),
        hides_another: *hides_another,
    };
    vec![Held::Programs(names.iter().map(candidate).collect())]
}

#[test]
fn each_kind_of_entry_has_its_place() {
    let mut host = super::super::tests::plain(&[
        "/usr/bin",
        "/home/me/bin",
        "/home/me/kit/bin",
        "/home/me/open",
        "/home/me/theirs",
        "/home/me/repo/bin",
        "/home/me/repo/.venv/bin",
        "/home/me/repo/venv/bin",
    ]);
    host.open.insert("/home/me/open".into());
    host.owner.insert("/home/me/theirs".into(), 7);
    let house = House {
        operator: OPERATOR,
        home: Some("/home/me".into()),
        ..House::default()
    };
    let whole = |dir: &str, root: &str| {
        vec![Held::Whole {
            dir: dir.into(),
            mounts: vec![granted(root)],
        }]
    };
    let link = |to: &str| Offer::Link {
        to: to.into(),
        mounts: vec![granted(to)],
    };
    let not = || Offer::NotShown("a script".into());
    let one = offered(&[
        ("tool", link("/home/me/bin/tool"), false),
        ("mine", not(), false),
        ("git", not(), true),
    ]);
    let broken = offered(&[("python3", not(), true)]);
    let rows = [
        (".", vec![]),
        ("bin", vec![]),
        ("/nowhere", vec![]),
        ("/home/me/open", one.clone()),
        ("/home/me/theirs", one.clone()),
        ("/home/me/repo/bin", one.clone()),
        (
            "/home/me/repo/.venv/bin",
            whole("/home/me/repo/.venv/bin", "/home/me/repo/.venv"),
        ),
        // An environment that cannot be shown: its programs are not those of the system.
        ("/home/me/repo/venv/bin", broken),
        ("/home/me/bin", one),
        (
            "/home/me/kit/bin",
            whole("/home/me/kit/bin", "/home/me/kit"),
        ),
        ("/usr/bin", vec![]),
        (
            "/home/me/kit/bin",
            whole("/home/me/kit/bin", "/home/me/kit"),
        ),
    ];
    let entries = rows.map(|(typed, held)| Entry {
        typed: typed.into(),
        place: host.look(&Path::new("/").join(typed)),
        held,
    });
    let copied = Path::new("/home/me/repo");
    let found = arrange(
        entries.into(),
        Searching {
            house: &house,
            copied: Some(copied),
        },
    );
    let said: Vec<String> = found
        .parts
        .iter()
        .map(|part| match part {
            Part::Dir { dir, .. } => dir.display().to_string(),
            Part::Ours(ours) => ours.keys().cloned().collect::<Vec<_>>().join(" "),
        })
        .collect();
    // A script is not offered; one that hides another of its name is stood in for.
    assert_eq!(
        said,
        [
            "/home/me/repo/.venv/bin",
            "python3",
            "git tool",
            "/home/me/kit/bin",
            "/usr/bin"
        ]
    );
    let left: Vec<(String, String)> = found
        .left_out
        .iter()
        .map(|left| (left.path.clone(), left.why.to_string()))
        .collect();
    let want = [
        (".", "no absolute path"),
        ("bin", "no absolute path"),
        ("/nowhere", "no directory"),
        ("~/open", "others may write to ~/open"),
        ("~/theirs", "~/theirs belongs to somebody else"),
        ("~/repo/bin", "part of the repository"),
        ("~/repo/venv/bin", "one program of it"),
        ("~/bin", "2 programs of it"),
    ];
    assert_eq!(
        left,
        want.map(|(path, why)| (path.to_owned(), why.to_owned()))
    );
    assert_eq!(found.not_searched().len(), want.len() - 1);
    assert_eq!(
        found.not_shown.keys().collect::<Vec<_>>(),
        ["git", "mine", "python3"]
    );
    assert!(found.has_ours() && found.offers("tool").is_some() && found.offers("mine").is_none());
}

#[test]
fn a_place_that_path_cannot_name_is_no_part_of_it() {
    use std::os::unix::ffi::OsStrExt;
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"/home/me/\xff/bin"));
    let dirs = ["/home/me/a:b/bin", "/home/me/a\nb", "/home/me/kit/bin"];
    let host = super::super::tests::plain(&dirs);
    let house = House {
        operator: OPERATOR,
        home: Some("/home/me".into()),
        ..House::default()
    };
    let entry = |typed: &Path, real: &Path, dir: &Path| Entry {
        typed: typed.to_owned(),
        place: Place {
            path: real.to_owned(),
            ..host.look(Path::new("/home/me/kit/bin"))
        },
        held: vec![Held::Whole {
            dir: dir.to_owned(),
            mounts: vec![granted("/home/me/kit")],
        }],
    };
    let (plain, colon) = (Path::new("/home/me/kit/bin"), Path::new(dirs[0]));
    let line = Path::new(dirs[1]);
    // Typed so, a link to such a place, and a version behind a stand-in.
    for (typed, real, dir) in [
        (odd, odd, odd),
        (plain, odd, plain),
        (plain, colon, colon),
        (plain, line, line),
        (plain, plain, colon),
        (plain, plain, odd),
    ] {
        let with = Searching {
            house: &house,
            copied: None,
        };
        let found = arrange(vec![entry(typed, real, dir)], with);
        assert_eq!(found.parts, [], "{typed:?} {real:?} {dir:?}");
        assert_eq!(found.left_out[0].why, Why::Unspeakable);
        assert_eq!(found.variable("/programs"), "");
    }
    let with = Searching {
        house: &house,
        copied: None,
    };
    let found = arrange(vec![entry(plain, plain, plain)], with);
    assert_eq!(found.variable("/programs"), "/home/me/kit/bin");
}

#[test]
fn what_is_not_granted_is_not_linked_to() {
    let host = super::super::tests::plain(&["/home/me/bin"]);
    let house = House {
        operator: OPERATOR,
        ..House::default()
    };
    let out = Offer::Link {
        to: "/home/me/.ssh/id".into(),
        mounts: vec![granted("/home/me/kit")],
    };
    let entry = Entry {
        typed: "/home/me/bin".into(),
        place: host.look(Path::new("/home/me/bin")),
        held: offered(&[("id", out, false)]),
    };
    let found = arrange(
        vec![entry],
        Searching {
            house: &house,
            copied: None,
        },
    );
    assert_eq!(found.parts, []);
    assert!(found.not_shown["id"].contains("not shown"));
    let outside = Entry {
        typed: "/home/me/bin".into(),
        place: host.look(Path::new("/home/me/bin")),
        held: vec![Held::Whole {
            dir: "/home/me/bin".into(),
            mounts: vec![granted("/home/me/kit")],
        }],
    };
    assert_eq!(
        arrange(
            vec![outside],
            Searching {
                house: &house,
                copied: None
            }
        )
        .parts,
        []
    );
}

#[test]
fn a_stand_in_says_so_in_words_no_shell_obeys() {
    let why = "it's `rm -rf $HOME` \"quoted\"";
    let text = Offer::NotShown(why.into()).script("tool").unwrap();
    assert!(
        text.starts_with("#!/bin/sh\necho 'cto: tool is not shown") && text.ends_with("exit 127\n")
    );
    assert!(text.contains("it'\\''s `rm"), "{text}");
    assert_eq!(
        Offer::Link {
            to: "/x".into(),
            mounts: vec![]
        }
        .script("x"),
        None
    );
}
