//! Where programs outside a jail may come from: each rule on its own, and all of them together over
//! random ways.

use proptest::prelude::*;

use super::super::ownership::tests::{dir, file, way};
use super::super::ownership::{Owner, Step, StepKind};
use super::*;

fn around(current: &str) -> Surroundings {
    Surroundings {
        current: Some(current.into()),
        home: Some("/home/me".into()),
        state: vec!["/home/me/.local/state/cto".into()],
    }
}

fn search(path: &str) -> Result<PlaceClass, PassedOver> {
    let named_in = Path::new(path).parent();
    may_run(
        Named::BySearch,
        named_in,
        &way(path),
        &around("/home/me/app"),
    )
}

fn given(path: &str, current: &str) -> Result<PlaceClass, PassedOver> {
    may_run(Named::ByOperator, None, &way(path), &around(current))
}

#[test]
fn a_search_finds_programs_of_the_system_alone() {
    for (path, class) in [
        ("/usr/bin/git", PlaceClass::System),
        ("/bin/git", PlaceClass::System),
        ("/sbin/git", PlaceClass::System),
        ("/usr/lib/git-core/git", PlaceClass::System),
        ("/usr/local/bin/git", PlaceClass::UsrLocal),
        ("/opt/git/bin/git", PlaceClass::Opt),
        ("/opt/homebrew/bin/git", PlaceClass::Homebrew),
        ("/home/linuxbrew/.linuxbrew/bin/git", PlaceClass::Homebrew),
        ("/nix/store/abc-git-2.50/bin/git", PlaceClass::NixStore),
    ] {
        assert_eq!(search(path), Ok(class), "{path}");
    }
    for path in [
        "/home/me/.cargo/bin/git",
        "/home/me/bin/git",
        "/usrlocal/bin/git",
        "/tmp/usr/bin/git",
        "/home/linuxbrew/bin/git",
        "/nix/var/git",
        "/opt",
        "/git",
        "/srv/git/bin/git",
        "/root/git",
    ] {
        assert!(
            matches!(search(path), Err(PassedOver::NoSystemDirectory(_))),
            "{path}: {:?}",
            search(path)
        );
    }
}

#[test]
fn a_link_of_anybody_leads_to_no_program_of_the_system() {
    for named_in in ["/home/me/bin", "/home/me/app/venv/bin", "/srv", "/"] {
        let found = may_run(
            Named::BySearch,
            Some(Path::new(named_in)),
            &way("/usr/bin/python3"),
            &around("/"),
        );
        assert_eq!(
            found,
            Err(PassedOver::NoSystemDirectory(named_in.into())),
            "{named_in}"
        );
    }
}

#[test]
fn no_repository_and_no_environment_lies_on_the_way() {
    let mark = |path: &str, at: &str, change: fn(&mut Step)| {
        let mut way = way(path);
        way.iter_mut()
            .filter(|step| step.path == Path::new(at))
            .for_each(change);
        (
            may_run(
                Named::BySearch,
                Path::new(path).parent(),
                &way,
                &around("/"),
            ),
            may_run(Named::ByOperator, None, &way, &around("/")),
        )
    };
    for (path, top) in [
        ("/opt/project/bin/git", "/opt/project"),
        ("/opt/project/bin/git", "/opt/project/bin"),
        ("/usr/local/src/p/.tools/git", "/usr/local/src/p"),
        ("/opt/bin/git", "/opt"),
    ] {
        let repository = Err(PassedOver::InRepository(top.into()));
        let environment = Err(PassedOver::InEnvironment(top.into()));
        let both = mark(path, top, |step| step.is_repository = true);
        assert_eq!(both, (repository.clone(), repository), "{path}");
        let both = mark(path, top, |step| step.is_environment = true);
        assert_eq!(both, (environment.clone(), environment), "{path}");
    }
    // Where a system keeps its own files in one.
    for (path, top) in [
        ("/opt/homebrew/bin/git", "/opt/homebrew"),
        ("/usr/bin/git", "/"),
    ] {
        let (found, _) = mark(path, top, |step| step.is_repository = true);
        assert!(found.is_ok(), "{path}");
    }
}

#[test]
fn the_current_directory_is_no_place_for_programs() {
    for (path, current) in [
        ("/srv/p/bin/key", "/srv/p"),
        ("/srv/p/bin/key", "/srv/p/bin"),
        ("/srv/p/bin/key", "/srv"),
        ("/opt/p/bin/git", "/opt/p"),
        ("/usr/local/src/p/git", "/usr/local/src/p"),
        ("/home/me/bin/key", "/home/me/bin"),
    ] {
        assert_eq!(
            given(path, current),
            Err(PassedOver::BelowCurrent(current.into())),
            "{path}"
        );
    }
    for (path, current) in [
        ("/usr/bin/git", "/usr/bin"),
        ("/usr/bin/git", "/usr"),
        ("/usr/bin/git", "/"),
        ("/usr/local/bin/git", "/usr/local"),
        ("/nix/store/abc/bin/git", "/nix/store/abc"),
        ("/opt/homebrew/bin/git", "/opt/homebrew/bin"),
        ("/home/me/bin/key", "/home/me"),
        ("/home/me/bin/key", "/home"),
        ("/home/me/bin/key", "/home/me/app"),
    ] {
        assert!(
            given(path, current).is_ok(),
            "{path} {:?}",
            given(path, current)
        );
    }
}

#[test]
fn what_is_given_is_a_program_and_not_in_the_state_home() {
    assert_eq!(given("/srv/tools/git", "/"), Ok(PlaceClass::Given));
    let state = "/home/me/.local/state/cto";
    assert_eq!(
        given(&format!("{state}/copies/git"), "/"),
        Err(PassedOver::InState(state.into()))
    );
    for (kind, want) in [
        (StepKind::Directory, PassedOver::NotAFile),
        (StepKind::Special, PassedOver::NotAFile),
        (
            StepKind::File { executable: false },
            PassedOver::NotExecutable,
        ),
    ] {
        let mut way = way("/usr/bin/git");
        way.last_mut().unwrap().kind = kind;
        let found = may_run(Named::ByOperator, None, &way, &around("/"));
        assert_eq!(found, Err(want));
    }
    assert_eq!(
        may_run(Named::ByOperator, None, &[], &around("/")),
        Err(PassedOver::NotAFile)
    );
}

#[test]
fn a_program_of_the_operator_is_told_of_no_place_of_work() {
    let told = |path: &str, repository: &str, current: &str| {
        let mut way = way(path);
        way.iter_mut()
            .filter(|step| step.path == Path::new(repository))
            .for_each(|step| step.is_repository = true);
        !leads_into_work(&way, &around(current))
    };
    assert!(told("/home/me/lib/x", "", "/home/me/app"));
    assert!(
        told("/home/me/lib/x", "/home/me", "/home/me/app"),
        "dotfiles"
    );
    assert!(!told("/home/me/app/src", "", "/home/me/app"));
    assert!(!told("/srv/project/src", "/srv/project", "/"));
    assert!(!told("/home/me/.local/state/cto/copies/x", "", "/"));
}

fn a_step() -> impl Strategy<Value = Step> {
    (
        prop::sample::select(vec![
            "/",
            "/usr",
            "/usr/bin",
            "/opt",
            "/opt/p",
            "/opt/p/bin",
            "/nix/store/a",
            "/home/me",
            "/home/me/app",
            "/home/me/app/bin",
            "/tmp",
            "/usr/local/src",
        ]),
        prop::sample::select(vec![Owner::Root, Owner::Operator, Owner::Other(7)]),
        prop::sample::select(vec![0o755u32, 0o775, 0o777, 0o1777, 0o700]),
        any::<(bool, bool, bool)>(),
    )
        .prop_map(
            |(path, owner, mode, (private, repository, environment))| Step {
                owner,
                mode,
                group_is_private: private,
                is_repository: repository,
                is_environment: environment,
                ..dir(path)
            },
        )
}

proptest! {
    /// Whatever way was found: what may run could be written by root and the operator alone, and by
    /// nothing that works in a repository, an environment or the current directory.
    #[test]
    fn nothing_of_a_stranger_runs(
        steps in prop::collection::vec(a_step(), 1..8),
        by_search in any::<bool>(),
        mode in prop::sample::select(vec![0o755u32, 0o775, 0o777]),
    ) {
        let mut steps = steps;
        let last = steps.last().unwrap().path.join("git");
        steps.push(Step { mode, ..file(last.to_str().unwrap()) });
        let named = if by_search { Named::BySearch } else { Named::ByOperator };
        let around = around("/home/me/app");
        let found = may_run(named, last.parent(), &steps, &around);
        if found.is_ok() {
            for step in &steps {
                prop_assert!(!matches!(step.owner, Owner::Other(_)));
                prop_assert!(!step.is_environment);
                prop_assert!(!step.is_repository || ["/", "/etc"].iter().any(|top| step.path == Path::new(top)));
                prop_assert!(!step.path.starts_with("/home/me/app"));
                let open = step.mode & 0o002 != 0 || (step.mode & 0o020 != 0 && !step.group_is_private);
                prop_assert!(!open || step.mode & 0o1000 != 0);
            }
            prop_assert!(!by_search || class_of(&last).is_some());
        }
    }
}

#[test]
fn programs_of_the_operator_are_told_names_of_a_list() {
    for name in [
        "HOME",
        "LC_ALL",
        "VAULT_ADDR",
        "SSH_AUTH_SOCK",
        "XDG_RUNTIME_DIR",
    ] {
        assert!(is_told(name), "{name}");
    }
    for name in [
        "BASH_ENV",
        "ENV",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "JDK_JAVA_OPTIONS",
        "GIT_DIR",
        "PWD",
        "OLDPWD",
        "VIRTUAL_ENV",
        "home",
        "",
        "OPENAI_API_KEY",
        "SSH_ASKPASS",
    ] {
        assert!(!is_told(name), "{name}");
    }
}
