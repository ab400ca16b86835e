//! What of the host a jail is shown, and what it never is: whatever a link, a configuration file
//! or a flag says. As root and as an ordinary user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;

use cto_testkit::Repo;

use crate::fixtures::people::{Person, UNPRIVILEGED, people};
use crate::house;

pub const SECRET: &str = "the-very-secret";

pub fn put(person: &Person, path: &str, text: &str) {
    let place = person.at(path);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, text).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Everything the person's own, as if they had made it.
pub fn own(person: &Person, path: &str) {
    if person.as_user {
        let owner = format!("{UNPRIVILEGED}:{UNPRIVILEGED}");
        let place = person.at(path);
        let done = std::process::Command::new("chown")
            .args(["-Rh", &owner])
            .arg(place)
            .status();
        assert!(done.unwrap().success());
    }
}

/// A home with a secret beside a directory of programs, each of which tells it.
fn home_with_a_secret(person: &Person) {
    put(person, "home/docs/secret", SECRET);
    put(person, "home/.ssh/id", SECRET);
    let secret = person.at("home/docs/secret").display().to_string();
    for name in ["docs/bin/python3", "docs/bin/tool", "bin/python3"] {
        put(
            person,
            &format!("home/{name}"),
            &format!("#!/bin/sh\ncat {secret}\n"),
        );
    }
    own(person, "home");
}

pub fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

pub fn assert_refused(person: &Person, output: &Output, code: &str, naming: &str) {
    let text = said(output);
    assert!(!text.contains(SECRET), "{}: {text}", person.name);
    assert_eq!(output.status.code(), Some(125), "{}: {text}", person.name);
    assert!(
        text.contains(&format!("error[{code}]")),
        "{}: {text}",
        person.name
    );
    assert!(text.contains(naming), "{}: {naming}: {text}", person.name);
}

#[test]
fn what_an_environment_in_the_workspace_says_is_a_wish() {
    for person in people() {
        home_with_a_secret(&person);
        let docs = person.at("home/docs").display().to_string();
        symlink(person.at("home"), person.at("ws/l")).unwrap();
        let link = person.at("ws/l").display().to_string();
        let configs = [
            format!("home = {docs}/bin\n"),
            format!("include = x\nHOME={docs}/bin\nversion = 3\n"),
            format!("home = {link}/docs/bin\n"),
            format!("home = {docs}/../docs/bin/.\n"),
        ];
        for config in configs {
            put(&person, "ws/.venv/pyvenv.cfg", &config);
            put(&person, "ws/.venv/bin/python3", "#!/bin/sh\nexit 0\n");
            put(&person, "ws/.venv/lib/python3.11/site-packages/x.py", "");
            let mut command = person.command(&["exec", "--", "python3"]);
            let bin = person.at("ws/.venv/bin");
            let output = command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
            let output = output
                .args(["-c", &format!("cat {docs}/secret")])
                .output()
                .unwrap();
            assert_refused(&person, &output, "toolchain_unavailable", "pyvenv.cfg");
        }
    }
}

#[test]
fn a_program_that_is_a_link_out_of_the_workspace_is_a_wish() {
    for person in people() {
        home_with_a_secret(&person);
        for (dir, target) in [
            (".venv/bin", "home/docs/bin/tool"),
            ("node_modules/.bin", "home/docs/bin/tool"),
            ("tools", "ws/hop"),
        ] {
            fs::create_dir_all(person.at("ws").join(dir)).unwrap();
            let _ = fs::remove_file(person.at("ws/hop"));
            symlink(person.at("home/docs/bin/tool"), person.at("ws/hop")).unwrap();
            let name = person.at("ws").join(dir).join("tool");
            symlink(person.at(target), &name).unwrap();
            own(&person, "ws");
            let mut command = person.command(&["exec", "--", "tool"]);
            let path = format!("{}:/usr/bin:/bin", person.at("ws").join(dir).display());
            let output = command.env("PATH", path).output().unwrap();
            let name = name.display().to_string();
            assert_refused(&person, &output, "toolchain_unavailable", &name);
        }
    }
}

#[test]
fn a_program_does_not_bring_the_directory_around_its_own() {
    for person in people() {
        home_with_a_secret(&person);
        let docs = person.at("home/docs");
        let mut command = person.command(&["exec", "--", "tool"]);
        let path = format!("{}/bin:/usr/bin:/bin", docs.display());
        let text = said(&command.env("PATH", path).output().unwrap());
        assert!(!text.contains(SECRET), "{}: {text}", person.name);
        assert!(
            text.contains("No such file"),
            "{}: it ran: {text}",
            person.name
        );
        assert!(
            text.contains("shown read-only: ~/docs/bin/tool, a program"),
            "{text}"
        );
    }
}

#[test]
fn an_installation_is_shown_said_and_without_its_tokens() {
    for person in people() {
        let root = "home/.nvm/versions/node/v20";
        let host = person.at(root).display().to_string();
        let text = format!("#!/bin/sh\ncat {host}/etc/npmrc {host}/lib/x\n");
        put(&person, &format!("{root}/bin/node"), &text);
        put(&person, &format!("{root}/etc/npmrc"), SECRET);
        put(&person, &format!("{root}/lib/x"), "shown\n");
        own(&person, "home");
        let mut command = person.command(&["exec", "--", "node"]);
        let path = format!("{host}/bin:/usr/bin:/bin");
        let output = command.env("PATH", path).output().unwrap();
        assert_eq!(
            output.stdout,
            b"shown\n",
            "{}: {}",
            person.name,
            said(&output)
        );
        let err = String::from_utf8_lossy(&output.stderr);
        let line = "shown read-only: ~/.nvm/versions/node/v20, an nvm version\n";
        assert_eq!(err, line, "{}", person.name);
    }
}

#[test]
fn a_link_in_the_workspace_is_not_the_operators_word() {
    for person in people() {
        home_with_a_secret(&person);
        fs::create_dir_all(person.at("ws/deep")).unwrap();
        fs::create_dir_all(person.at("outside/ws2")).unwrap();
        own(&person, "outside");
        for (name, target) in [
            ("ws/build", "home/.ssh"),
            ("ws/hop", "ws/build"),
            ("ws/l", "home"),
            ("outside/ws2/build", "home/.ssh"),
        ] {
            symlink(person.at(target), person.at(name)).unwrap();
        }
        symlink("../../home/.ssh", person.at("ws/deep/relative")).unwrap();
        own(&person, "ws");
        let there = person.at("outside/ws2/build").display().to_string();
        let real = person.at("home/.ssh/id").display().to_string();
        for path in [
            "build",
            "hop",
            "./l/.ssh",
            "deep/relative",
            "l/docs/../.ssh",
            &there,
        ] {
            for flag in ["--ro", "--allow", "--workspace", "--tmp"] {
                let line = format!("cat {real} id; echo no >> {real}");
                let output = person.cto(&["exec", flag, path, "--", "sh", "-c", &line]);
                let (code, naming) = ("toolchain_unavailable", "leads to");
                assert_refused(&person, &output, code, naming);
            }
        }
        assert_eq!(
            fs::read_to_string(person.at("home/.ssh/id")).unwrap(),
            SECRET
        );
        // Typed by itself it is.
        let ssh = person.at("home/.ssh").display().to_string();
        let output = person.cto(&["exec", "--ro", &ssh, "--", "cat", &real]);
        assert_eq!(output.stdout, SECRET.as_bytes(), "{}", person.name);
        // A link to what is shown anyway leads nowhere new.
        symlink("deep", person.at("ws/inside")).unwrap();
        let output = person.cto(&["exec", "--ro", "inside", "--", "true"]);
        assert!(
            output.status.success(),
            "{}: {}",
            person.name,
            said(&output)
        );
    }
}

#[test]
fn state_beside_a_link_does_not_make_it_the_operators_word() {
    for person in people() {
        put(&person, "home/.ssh/id", SECRET);
        put(&person, "home/proj/sub/x", "");
        own(&person, "home");
        let (ssh, link) = (person.at("home/.ssh"), person.at("home/proj/build"));
        let planted = ["exec", "--", "ln", "-s", ssh.to_str().unwrap(), "build"];
        let mut command = person.command(&planted);
        let output = command.current_dir(person.at("home/proj")).output();
        assert!(output.unwrap().status.success(), "{}", person.name);
        let (link, secret) = (link.display().to_string(), ssh.join("id"));
        for variable in [
            "NOTHING",
            "CTO_HOME",
            "CTO_RUNS_DIR",
            "CTO_STATE_DIR",
            "XDG_STATE_HOME",
            "XDG_CONFIG_HOME",
            "HERMES_HOME",
        ] {
            for flag in ["--ro", "--allow"] {
                let mut command = person.command(&["exec", flag, &link, "--", "cat"]);
                command.arg(&secret).current_dir(person.at("home/proj/sub"));
                command.env(variable, person.at("home/proj/.kept"));
                let output = command.output().unwrap();
                assert_refused(&person, &output, "toolchain_unavailable", "leads to");
            }
        }
    }
}

#[test]
fn files_a_jail_left_do_not_make_a_directory_an_installation() {
    for person in people() {
        let repositories = [("git", ".git"), ("hg", ".hg"), ("jj", ".jj")];
        let marks = "mkdir -p bin lib/python3.1; touch lib/python3.1/os.py; cp $0 bin/python3";
        for (name, top) in repositories.into_iter().chain([("data", "plain")]) {
            let dir = format!("home/{name}/tools");
            let secret = person.at(&dir).join("secret").display().to_string();
            put(&person, &format!("{dir}/secret"), SECRET);
            put(&person, &format!("home/{name}/{top}/x"), "");
            let tool = format!("#!/bin/sh\ncat {secret}\n");
            put(&person, &format!("{dir}/bin/mytool"), &tool);
            own(&person, "home");
            let mut command = person.command(&["exec", "--", "sh", "-c", marks, "bin/mytool"]);
            let output = command.current_dir(person.at(&dir)).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            let base = person.at(&dir).join("bin").display().to_string();
            // What an environment says it is based on.
            let config = format!("home = {base}\n");
            put(&person, "ws/.venv/pyvenv.cfg", &config);
            put(&person, "ws/.venv/bin/python3", &tool);
            put(&person, "ws/.venv/lib/python3.11/site-packages/x.py", "");
            own(&person, "ws");
            let mut command = person.command(&["exec", "--", "python3"]);
            let path = format!("{}:/usr/bin:/bin", person.at("ws/.venv/bin").display());
            let output = command.env("PATH", path).output().unwrap();
            assert_refused(&person, &output, "toolchain_unavailable", "pyvenv.cfg");
            // What PATH says of a repository.
            if name != "data" {
                let mut command = person.command(&["exec", "--", "mytool"]);
                let path = format!("{base}:/usr/bin:/bin");
                let text = said(&command.env("PATH", path).output().unwrap());
                assert!(!text.contains(SECRET), "{}: {text}", person.name);
                assert!(text.contains("bin/mytool, a program"), "{text}");
            }
        }
    }
}

#[test]
fn homes_and_what_could_become_state_are_refused_from_the_first_use_on() {
    for person in people() {
        for dir in [
            "home/.local/state",
            "home/.config",
            "home/.hermes/profiles",
            "linked",
        ] {
            fs::create_dir_all(person.at(dir)).unwrap();
        }
        own(&person, "home");
        own(&person, "linked");
        assert!(!person.at("home/.local/state/cto").exists());
        for path in [
            "home",
            "",
            "home/../home",
            "home/.local",
            "home/.local/state",
            "home/.config",
            "home/.hermes",
            "home/.hermes/profiles",
        ] {
            for flag in ["--workspace", "--allow", "--ro", "--tmp"] {
                let place = person.at(path).display().to_string();
                let output = person.cto(&["exec", flag, &place, "--", "touch", "planted"]);
                assert_refused(&person, &output, "state_exposed", "");
            }
        }
        let mut command = person.command(&["exec", "--", "touch", "planted"]);
        let output = command.current_dir(person.at("home")).output().unwrap();
        assert_refused(&person, &output, "state_exposed", "");
        // A state home that is named, and is a link to where nothing is yet.
        symlink(person.at("linked/not/yet"), person.at("home/state")).unwrap();
        let state = person.at("home/state").display().to_string();
        let linked = person.at("linked").display().to_string();
        let args = ["--home", &state, "exec", "--allow", &linked, "--", "true"];
        assert_refused(&person, &person.cto(&args), "state_exposed", "");
        assert!(!person.at("home/planted").exists());
    }
}

#[test]
fn what_a_jail_has_of_its_own_is_no_workspace() {
    for person in people() {
        for path in [
            "/tmp",
            "/tmp/.",
            "/usr",
            "/etc",
            "/",
            "/proc",
            "/dev/shm",
            "/run",
            "/home",
            "/usr/bin",
            "/usr/lib",
            "/usr/local",
            "/usr/local/bin",
            "/etc/ssl",
            "/boot",
            "/var",
            "/var/lib",
            "/opt",
            "/bin",
        ] {
            for flag in ["--workspace", "--allow", "--tmp"] {
                let output = person.cto(&["exec", flag, path, "--", "true"]);
                let text = said(&output);
                assert_eq!(
                    output.status.code(),
                    Some(125),
                    "{}: {path}: {text}",
                    person.name
                );
            }
        }
    }
}

#[test]
fn a_place_that_is_exchanged_between_look_and_mount_is_not_shown() {
    for person in people() {
        put(&person, "home/.ssh/id", SECRET);
        put(&person, "outside/real/id", "harmless");
        symlink(person.at("home/.ssh"), person.at("outside/link")).unwrap();
        own(&person, "home");
        own(&person, "outside");
        let (real, link, at) = (
            person.at("outside/real"),
            person.at("outside/link"),
            person.at("outside/x"),
        );
        fs::rename(&real, &at).unwrap();
        let file = at.join("id").display().to_string();
        let place = at.display().to_string();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let over = std::sync::atomic::Ordering::Relaxed;
        let mut heard = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(over) {
                    fs::rename(&at, &real).unwrap();
                    fs::rename(&link, &at).unwrap();
                    fs::rename(&at, &link).unwrap();
                    fs::rename(&real, &at).unwrap();
                }
            });
            // Nothing is asserted here: the thread would go on for ever.
            for _ in 0..40 {
                heard.push(person.cto(&["exec", "--ro", &place, "--", "cat", &file]));
            }
            stop.store(true, over);
        });
        for output in heard {
            let text = said(&output);
            assert!(!text.contains(SECRET), "{}: {text}", person.name);
        }
    }
}

#[test]
fn a_run_says_what_it_showed_and_grants_no_wish_of_the_repository() {
    let house = house();
    let repo = Repo::new(&house, "python");
    repo.write(".gitignore", "/.venv/\n");
    repo.write("answer", "1\n");
    repo.commit("a bug");
    let home = house.root().join("home");
    let python = home.join(".pyenv/versions/3.12/bin");
    fs::create_dir_all(&python).unwrap();
    fs::create_dir_all(home.join(".pyenv/versions/3.12/lib/python3.12")).unwrap();
    fs::write(home.join(".pyenv/versions/3.12/lib/python3.12/os.py"), "").unwrap();
    fs::create_dir_all(home.join("docs/bin")).unwrap();
    let script = "#!/bin/sh\ngrep -q 2 answer\n";
    for file in [python.join("python3"), home.join("docs/bin/python3")] {
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let site = repo.at(".venv/lib/python3.12/site-packages");
    fs::create_dir_all(site).unwrap();
    repo.program(".venv/bin/python3", script);
    let bin = repo.at(".venv/bin").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let house = house.with("PATH", &path);
    let change = cto_testkit::script(&[cto_testkit::write("answer", "2\n")]);
    let file = house.script("change", &change);
    let try_with = |base: &Path| {
        repo.write(".venv/pyvenv.cfg", &format!("home = {}\n", base.display()));
        house.run_args(&[
            "try",
            "--repo",
            repo.path(),
            "--task",
            "Two",
            "--allow",
            "answer",
            "--test",
            "python3 -c x",
            "--script",
            &file,
            "--json",
        ])
    };
    let (answer, bundle) = try_with(&home.join("docs/bin"));
    assert_eq!(answer.code, Some(3), "{}", answer.stderr);
    let blocked = bundle.text("report.json");
    assert!(blocked.contains("toolchain_unavailable"), "{blocked}");
    let gates = bundle.text("gates.json");
    assert!(gates.contains("pyvenv.cfg leads to"), "{gates}");
    let (answer, bundle) = try_with(&python);
    assert_eq!(
        answer.code,
        Some(0),
        "{} {}",
        answer.stderr,
        bundle.text("test.log")
    );
    for file in ["containment.json", "events.normalized.jsonl"] {
        let text = bundle.text(file);
        assert!(text.contains("a pyenv version"), "{file}: {text}");
        assert!(text.contains("~/.pyenv/versions/3.12"), "{file}: {text}");
    }
}
