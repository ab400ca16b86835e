//! Verification commands, hidden checks and their control: real runners in pristine copies, and
//! every way to make them lie. None of it may pass.

pub mod attacks;
pub mod cargo_attacks;
pub mod changed_tests;
pub mod cheats;
pub mod known_baseline;
pub mod loading;
pub mod node_attacks;
pub mod not_loaded;
pub mod pytest_attacks;
pub mod pytest_control;
pub mod runners;
pub mod shell_attacks;
pub mod unittest_attacks;
pub mod verification_log;

use cto_testkit::{Bundle, House, Repo, script};

use crate::assert_good;

/// A repository with these files.
fn repository(house: &House, name: &str, files: &[(&str, &str)]) -> Repo {
    let repo = Repo::new(house, name);
    for (path, text) in files {
        repo.write(path, text);
    }
    repo.commit("the beginning");
    house.hand_over(&repo.dir);
    repo
}

/// Tries a change of anything, whatever comes of it.
fn tried(house: &House, repo: &Repo, steps: &[String], more: &[&str]) -> Bundle {
    let asked = [&["--allow", "."], more].concat();
    let (answer, bundle) = house.try_on(repo, &script(steps), &asked);
    assert!(!answer.panicked(), "{answer:?}");
    assert_good(&bundle);
    bundle
}
