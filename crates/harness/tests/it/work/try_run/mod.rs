//! `cto try`: a private copy of somebody's own repository, which stays exactly as it was.

mod asked;
mod beside;
mod copied;
mod green_start;
mod hostile_source;
mod meanwhile;
mod own_path;
mod project;
mod reverify;
mod traps;

use cto_testkit::{Answer, Bundle, House, Repo, script, write};

use crate::assert_good;

const TEST: &str = "grep -qx right answer.txt";

/// The right change, by a scripted engine.
fn fix() -> String {
    script(&[write("answer.txt", "right\n")])
}

/// What somebody does to a repository, and how it is called.
type Done<'a> = (&'a str, &'a dyn Fn(&Repo));

fn try_with(house: &House, repo: &Repo, steps: &str, more: &[&str]) -> (Answer, Bundle) {
    house.try_on(repo, steps, more)
}

/// The same, and it passes.
fn passes(house: &House, repo: &Repo, steps: &str, more: &[&str]) -> Bundle {
    let (answer, bundle) = try_with(house, repo, steps, more);
    let log = bundle.text("test.log");
    assert_eq!(answer.code, Some(0), "{more:?}: {answer:?} {log}");
    bundle
}

/// Blocked before anything ran, by this code, and the repository is byte for byte as it was.
fn assert_refused(house: &House, repo: &Repo, more: &[&str], code: &str) -> Bundle {
    let before = repo.bytes();
    let (answer, bundle) = try_with(house, repo, &fix(), more);
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert_eq!(bundle.codes(), [code], "{answer:?}");
    assert_eq!(bundle.report()["process_started"], false);
    assert_eq!(repo.bytes(), before);
    assert!(house.work_entries().is_empty());
    assert_good(&bundle);
    bundle
}
