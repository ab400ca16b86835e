use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn program(&self, path: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn python(&self, root: &str) {
        self.program(&format!("{root}/bin/python3"));
        self.program(&format!("{root}/lib/python3.11/os.py"));
    }

    fn resolve(&self, name: &str, path: &[&str]) -> Resolved {
        let path = path
            .iter()
            .map(|p| self.at(p).display().to_string())
            .collect::<Vec<_>>()
            .join(":");
        let home = self.dir.path().display().to_string();
        let env = Env::from_pairs(&[("HOME", &home), ("PATH", &format!("{path}:/usr/bin:/bin"))]);
        let state = Home {
            root: self.at(".local/state/cto"),
            runs: self.at(".local/state/cto/harness-runs"),
        };
        resolve(name, &env, &state)
    }
}

fn mount(resolved: Resolved) -> String {
    match resolved {
        Resolved::Toolchain(toolchain) => toolchain.mounts[0].target().display().to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pyenv_shim_leads_to_its_version() {
    let lab = Lab::new();
    lab.program(".pyenv/shims/python3");
    lab.python(".pyenv/versions/3.11.7");
    std::fs::write(lab.at(".pyenv/version"), "3.11.7\n").unwrap();
    assert_eq!(
        mount(lab.resolve("python3", &[".pyenv/shims"])),
        lab.at(".pyenv/versions/3.11.7")
            .canonicalize()
            .unwrap()
            .display()
            .to_string()
    );
    std::fs::write(lab.at(".pyenv/version"), "9.9\n").unwrap();
    assert!(matches!(
        lab.resolve("nosuch", &[".pyenv/shims"]),
        Resolved::Missing
    ));
}

#[test]
fn a_rustup_link_leads_to_its_toolchain() {
    let lab = Lab::new();
    lab.program(".cargo/bin/rustup");
    symlink("rustup", lab.at(".cargo/bin/cargo")).unwrap();
    lab.program(".rustup/toolchains/stable-x/bin/cargo");
    lab.program(".rustup/toolchains/stable-x/lib/rustlib/components");
    std::fs::write(
        lab.at(".rustup/settings.toml"),
        "default_toolchain = \"stable\"\n",
    )
    .unwrap();
    let want = lab
        .at(".rustup/toolchains/stable-x")
        .canonicalize()
        .unwrap()
        .display()
        .to_string();
    assert_eq!(mount(lab.resolve("cargo", &[".cargo/bin"])), want);
    std::fs::write(
        lab.at(".rustup/settings.toml"),
        "default_toolchain = \"nightly\"\n",
    )
    .unwrap();
    assert!(matches!(
        lab.resolve("cargo", &[".cargo/bin"]),
        Resolved::Unusable(_)
    ));
}

#[test]
fn a_virtual_environment_keeps_its_link_and_brings_its_base() {
    let lab = Lab::new();
    lab.python(".pyenv/versions/3.11");
    lab.program("project/.venv/bin/pytest");
    lab.program("project/.venv/lib/python3.11/site-packages/x.py");
    symlink(
        lab.at(".pyenv/versions/3.11/bin/python3"),
        lab.at("project/.venv/bin/python3"),
    )
    .unwrap();
    std::fs::write(
        lab.at("project/.venv/pyvenv.cfg"),
        format!("home = {}\n", lab.at(".pyenv/versions/3.11/bin").display()),
    )
    .unwrap();
    for name in ["python3", "pytest"] {
        let Resolved::Toolchain(found) = lab.resolve(name, &["project/.venv/bin"]) else {
            panic!("{name}")
        };
        let want = |path: &str| lab.at(path).display().to_string();
        let targets = found
            .mounts
            .iter()
            .map(|mount| mount.target().display().to_string());
        assert_eq!(
            targets.collect::<Vec<_>>(),
            [
                want("project/.venv"),
                lab.at(".pyenv/versions/3.11")
                    .canonicalize()
                    .unwrap()
                    .display()
                    .to_string()
            ]
        );
        assert_eq!(found.bin, Some(want("project/.venv/bin")));
        assert_eq!(found.record.also.len(), 1);
    }
}

#[test]
fn cargo_is_shown_fetched_crates_and_nothing_else_of_its_home() {
    let lab = Lab::new();
    lab.program("rust/bin/cargo");
    lab.program("rust/bin/rustc");
    lab.program("rust/lib/rustlib/components");
    std::fs::create_dir_all(lab.at(".cargo/registry")).unwrap();
    std::fs::write(lab.at(".cargo/credentials.toml"), "secret").unwrap();
    let Resolved::Toolchain(found) = lab.resolve("cargo", &["rust/bin"]) else {
        panic!()
    };
    assert_eq!(found.mounts.len(), 2);
    assert_eq!(found.mounts[1].target(), lab.at(".cargo/registry"));
    assert_eq!(
        found.env["CARGO_HOME"],
        lab.at(".cargo").display().to_string()
    );
    lab.program("rust/bin/other");
    let Resolved::Toolchain(other) = lab.resolve("other", &["rust/bin"]) else {
        panic!()
    };
    assert!(other.mounts.len() == 1 && other.env.is_empty());
}

#[test]
fn a_home_is_never_shown_whole() {
    let lab = Lab::new();
    lab.program("bin/tool");
    lab.program(".local/bin/tool2");
    lab.program(".nvm/versions/node/v20/bin/node2");
    lab.program(".nvm/versions/node/v20/bin/node");
    lab.program(".cargo/bin/tool3");
    let real = |path: &str| lab.at(path).canonicalize().unwrap().display().to_string();
    assert_eq!(
        mount(lab.resolve("tool", &["bin"])),
        real("bin/tool"),
        "root would be HOME"
    );
    assert_eq!(
        mount(lab.resolve("tool2", &[".local/bin"])),
        real(".local/bin/tool2"),
        "root would hold our state"
    );
    assert_eq!(
        mount(lab.resolve("tool3", &[".cargo/bin"])),
        real(".cargo/bin/tool3"),
        "root would hold registry tokens"
    );
    assert_eq!(
        mount(lab.resolve("node2", &[".nvm/versions/node/v20/bin"])),
        real(".nvm/versions/node/v20")
    );
}

#[test]
fn a_program_below_usr_is_searched_for_where_it_lies() {
    for (program, dir) in [
        ("/usr/bin/python3", None),
        ("/usr/local/bin/cargo", None),
        (
            "/usr/local/rustup/toolchains/stable-x/bin/cargo",
            Some("/usr/local/rustup/toolchains/stable-x/bin"),
        ),
    ] {
        assert_eq!(not_searched(Path::new(program)), dir.map(PathBuf::from));
    }
}

#[test]
fn system_programs_need_nothing_and_homes_are_not_named() {
    let lab = Lab::new();
    assert!(matches!(lab.resolve("sh", &[]), Resolved::System(_)));
    assert!(matches!(
        lab.resolve("surely-not-there", &[]),
        Resolved::Missing
    ));
    lab.program(".nvm/versions/node/v20/bin/node2");
    lab.program(".nvm/versions/node/v20/bin/node");
    let Resolved::Toolchain(found) = lab.resolve("node2", &[".nvm/versions/node/v20/bin"]) else {
        panic!()
    };
    assert!(
        found
            .record
            .program
            .ends_with(".nvm/versions/node/v20/bin/node2")
    );
}
