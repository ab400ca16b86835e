//! Managers of versions keep programs behind links: the operator's own program is found, not the
//! system's of the same name.

use std::fs;
use std::os::unix::fs::symlink;

use super::{CHECK, Lab};

/// uv names the newest patch of a minor version by a link, and environments name the link.
#[test]
fn an_environment_of_uv_is_based_on_a_link() {
    for config_by_link in [true, false] {
        let lab = Lab::new();
        let (real, link) = (
            ".local/share/uv/python/cpython-3.12.7-linux-x86_64-gnu",
            ".local/share/uv/python/cpython-3.12-linux-x86_64-gnu",
        );
        lab.program(&format!("{real}/bin/python3.12"), CHECK);
        symlink("python3.12", lab.home(real).join("bin/python3")).unwrap();
        lab.program(&format!("{real}/lib/python3.12/os.py"), "");
        symlink("cpython-3.12.7-linux-x86_64-gnu", lab.home(link)).unwrap();
        lab.repo.write(".venv/.gitignore", "*");
        lab.repo
            .write(".venv/lib/python3.12/site-packages/x.py", "");
        let base = lab
            .home(if config_by_link { link } else { real })
            .join("bin");
        let config = format!("home = {}\nuv = 0.13.7\n", base.display());
        lab.repo.write(".venv/pyvenv.cfg", &config);
        fs::create_dir_all(lab.repo.at(".venv/bin")).unwrap();
        symlink(
            lab.home(link).join("bin/python3.12"),
            lab.repo.at(".venv/bin/python"),
        )
        .unwrap();
        symlink("python", lab.repo.at(".venv/bin/python3")).unwrap();
        // The system's own Python knows no such word.
        for test in ["python3 --of-uv", "sh -c 'true && python3 --of-uv'"] {
            let bundle = lab.passes(&[&lab.repo.at(".venv/bin")], test, &[]);
            let shown = bundle.text("containment.json");
            assert!(shown.contains("a uv Python"), "{test}");
        }
    }
}

/// `npm` is a link to a script for the `node` beside it.
#[test]
fn programs_of_nvm_are_those_of_its_own_version() {
    let lab = Lab::new();
    let root = ".nvm/versions/node/v20.11.0";
    // Knows its own programs by the name they were started with.
    lab.program(
        &format!("{root}/bin/node"),
        "#!/bin/sh\ncase $1 in */v20.11.0/bin/np[mx]) grep -q 2 answer;; *) exit 9;; esac\n",
    );
    for (name, file) in [("npm", "npm-cli.js"), ("npx", "npx-cli.js")] {
        let script = "#!/usr/bin/env node\n";
        lab.program(&format!("{root}/lib/node_modules/npm/bin/{file}"), script);
        // What the package has under that name is for other systems.
        let other = "#!/bin/sh\nexit 8\n";
        lab.program(&format!("{root}/lib/node_modules/npm/bin/{name}"), other);
        let target = format!("../lib/node_modules/npm/bin/{file}");
        symlink(target, lab.home(root).join("bin").join(name)).unwrap();
    }
    lab.program(&format!("{root}/lib/node_modules/npm/package.json"), "{}");
    for name in ["npm test", "npx eslint"] {
        lab.passes(&[&lab.home(root).join("bin")], name, &[]);
    }
}
