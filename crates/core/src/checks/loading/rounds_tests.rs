//! What decides together, what is tried alone, and when that ends.

use super::*;
use crate::checks::loading::forms;
use crate::run::belief::ControlSeen;
use crate::workspace::tree::FileKind;

fn file(path: &TreePath) -> File<'_> {
    File {
        path,
        kind: FileKind::Regular,
        bytes: b"x",
    }
}

fn candidates(paths: &[&str]) -> Vec<Candidate> {
    let paths: Vec<TreePath> = paths.iter().map(|path| TreePath::new(*path)).collect();
    paths
        .iter()
        .map(|path| Candidate {
            weight: weight(file(path), &Named::default(), false),
            forms: forms(file(path), "k9"),
        })
        .collect()
}

#[test]
fn code_decides_before_content_and_content_before_tests() {
    use Proves::{Loaded, Parsed};
    for (paths, want) in [
        (
            &["a.py", "b.py"][..],
            &[(Loaded, &[0, 1][..]), (Parsed, &[0, 1])][..],
        ),
        (
            &["tests/test_a.py", "a.py"],
            &[(Loaded, &[1]), (Parsed, &[1])],
        ),
        (
            &["a.py", "pyproject.toml", "conftest.py"],
            &[(Loaded, &[0]), (Parsed, &[0])],
        ),
        (
            &["a.py", "data.csv", "a.html"],
            &[(Loaded, &[0]), (Parsed, &[0])],
        ),
        (
            &["a.html", "b.json", "test_a.py"],
            &[(Loaded, &[0]), (Parsed, &[1])],
        ),
        (
            &["test_a.py", "pyproject.toml"],
            &[(Loaded, &[0]), (Parsed, &[0, 1])],
        ),
        (&["a.rs", "b.rs"], &[(Parsed, &[0, 1])]),
        (&["a.c", "a.h"], &[(Loaded, &[0]), (Parsed, &[0, 1])]),
        (&["a.py", "b.rs"], &[(Loaded, &[0]), (Parsed, &[0, 1])]),
        (&[], &[]),
    ] {
        let found: Vec<(Proves, Vec<usize>)> = together(&candidates(paths))
            .into_iter()
            .map(|round| (round.proves, round.files))
            .collect();
        let want: Vec<(Proves, Vec<usize>)> = want
            .iter()
            .map(|(proves, files)| (*proves, files.to_vec()))
            .collect();
        assert_eq!(found, want, "{paths:?}");
    }
}

#[test]
fn another_round_is_for_commands_it_could_say_more_of() {
    let seen = |control, loading| CommandSeen { control, loading };
    let red = ControlSeen::RedByFailingTests;
    let none = ControlSeen::NotRun;
    use crate::run::belief::LoadingSeen::{Loaded, NotRed};
    for (commands, want) in [
        (&[seen(red, Loaded), seen(none, NotRed)][..], &[1][..]),
        (&[seen(red, Loaded), seen(red, NotRed)], &[]),
        (&[seen(red, NotRed), seen(none, NotRed)], &[0, 1]),
        (&[seen(none, Loaded)], &[]),
        (&[], &[]),
    ] {
        assert_eq!(again(commands), want, "{commands:?}");
    }
}

#[test]
fn lines_that_do_nothing_are_tried_where_a_look_could_have_been_enough() {
    use Ended::{AtALimit, Green, Red};
    for (ended, code, said, want) in [
        (Red, Some(1), "", true),
        (Red, None, "", true),
        (Red, Some(97), "", false),
        (Green, Some(0), "exit status 97", false),
        (AtALimit, None, "", true),
        (Red, Some(1), "  exitCode: 97,\n", false),
        (Red, Some(1), "exit status 97\nFAIL", false),
        (Red, Some(2), "make: *** [Makefile:2: test] Error 97", false),
        (Red, Some(1), "exit status 971", true),
        (Red, Some(1), "97 files", true),
        (Red, Some(1), "exitCode: 1", true),
    ] {
        assert_eq!(
            wants_twin(ended, code, said),
            want,
            "{ended:?} {code:?} {said}"
        );
    }
}

#[test]
fn a_program_that_a_command_names_and_what_is_gone_never_answer_for_the_rest() {
    let named = Named::by(["sh ./prep.sh && grep -q x README.md"], []);
    let of = |path: &str, put_back| weight(file(&TreePath::new(path)), &named, put_back);
    assert_eq!(of("prep.sh", false), Weight::Tests);
    assert_eq!(of("other.sh", false), Weight::Source);
    assert_eq!(of("README.md", false), Weight::Source);
    assert_eq!(of("other.md", false), Weight::Content);
    assert_eq!(of("other.sh", true), Weight::Deleted);
}

#[test]
fn only_what_is_not_known_is_tried_alone() {
    let files = candidates(&["test_a.py", "a.py", "b.py", "c.csv"]);
    let round = |files: &[usize]| Round {
        proves: Proves::Loaded,
        files: files.to_vec(),
    };
    for (decided, want) in [
        (vec![(round(&[1, 2]), true)], &[1, 2, 3, 0][..]),
        (vec![(round(&[1, 2]), false)], &[3, 0]),
        (
            vec![(round(&[1]), false), (round(&[1, 2]), true)],
            &[1, 2, 3, 0],
        ),
        (vec![(round(&[2]), true)], &[1, 3, 0]),
        (vec![], &[1, 2, 3, 0]),
    ] {
        assert_eq!(singly(&files, &decided), want, "{decided:?}");
    }
    assert!(goes_on(0, 0, false) && goes_on(2_999, 10, false) && !goes_on(3_000, 10, false));
    assert!(goes_on(4_999, 5_000, false) && !goes_on(5_000, 5_000, false));
    assert!(goes_on(9_999, 10, true));
}
