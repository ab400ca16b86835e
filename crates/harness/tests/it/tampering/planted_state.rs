//! A state home that somebody else filled: keys, people and records that look like the operator's own.

use std::fs;

use crate::passed;

/// A clone holds what its authors committed: people and keys that nobody on this machine ever trusted.
#[test]
fn a_state_home_in_a_clone_is_not_believed() {
    let (house, bundle) = passed();
    let clone = house.root().join("elsewhere/clone");
    let planted = clone.join("state");
    fs::create_dir_all(planted.join("records")).unwrap();
    fs::write(
        planted.join("records/signers"),
        "mallory ssh-ed25519 AAAA\n",
    )
    .unwrap();
    let init = std::process::Command::new("git")
        .args(["init", "-q"])
        .arg(&clone)
        .status();
    assert!(init.unwrap().success());
    house.hand_over(&clone);
    let link = house.root().join("elsewhere/link");
    std::os::unix::fs::symlink(&planted, &link).unwrap();
    let (planted, link) = (planted.to_str().unwrap(), link.to_str().unwrap());
    let runs = house.run_dirs().len();
    let of_run = bundle.run_id();
    let commands: [&[&str]; 6] = [
        &["run", "r1-string-slugify"],
        &["requests"],
        &["keys", "show"],
        &["engines"],
        &["config"],
        &["verify", &of_run],
    ];
    for args in commands {
        for place in [planted, link] {
            let words = [&["--home", place, "--json"], args].concat();
            let answer = house.cto(&words);
            assert_eq!(answer.code, Some(3), "{words:?}: {answer:?}");
            assert_eq!(
                answer.json()["error"]["code"],
                "state_in_repository",
                "{words:?}: {answer:?}"
            );
        }
        let mut command = house.command(args);
        let output = command.env("CTO_STATE_DIR", planted).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        assert!(
            said.contains("state_in_repository") && said.contains("hint: "),
            "{args:?}: {said}"
        );
    }
    // Beside it is not in it, also for somebody who stands in the clone.
    let beside = ["--home", "../beside", "config"];
    let mut command = house.command(&beside);
    let output = command.current_dir(&clone).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut command = house.command(&["--home", "../clone/state", "config"]);
    let output = command.current_dir(&clone).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(house.run_dirs().len(), runs, "nothing ran");
    let left = fs::read_dir(planted).unwrap().count();
    assert_eq!(left, 1, "nothing was written into the clone");
}
