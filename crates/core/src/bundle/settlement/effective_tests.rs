//! Every order of words, and what a run comes to.

use super::super::decide::tests::{report, stage5};
use super::*;
use crate::run::judge::tests::good;
use crate::task::contract::tests::sample;
use crate::values::digest::Digest;

fn own(run: &Report) -> Continues {
    Continues {
        run_id: run.run_id.clone(),
        sums_sha256: Digest::of(b"sums"),
    }
}

fn id(number: usize) -> RunId {
    format!("20260103T03040{number}Z-demo-k3v9")
        .parse()
        .unwrap()
}

/// `a` accepted and landed, `n` accepted and refused by the target, `r` rejected, `v` taken back, `V` tried to
/// take back, `x` cut short.
fn said(run: &Report, words: &str) -> Vec<Settlement> {
    let of = |(at, word): (usize, char)| {
        let accepts = matches!(word, 'a' | 'n' | 'x');
        Settlement {
            run_id: id(at),
            continues: own(run),
            status: match word {
                'a' => Status::Pass,
                'x' => Status::Blocked,
                _ => Status::Fail,
            },
            outcome: match accepts {
                true => Outcome::Accepted,
                false => Outcome::Rejected,
            },
            reverts: matches!(word, 'v' | 'V').then(|| id(words.find('a').unwrap_or(9))),
            landed: matches!(word, 'a' | 'v').then(|| (LandMode::Merge, "c1".to_owned())),
            cut_short: word == 'x',
        }
    };
    words.chars().enumerate().map(of).collect()
}

#[test]
fn the_last_word_that_was_carried_out_counts() {
    use Standing::{Accepted, Contradicted, NotLanded, Rejected, Reverted, Waits};
    let run = report(stage5(), &good());
    for (words, standing, status) in [
        ("", Waits, Status::Blocked),
        ("x", Waits, Status::Blocked),
        ("a", Accepted, Status::Pass),
        ("xa", Accepted, Status::Pass),
        ("n", NotLanded, Status::Fail),
        ("na", Accepted, Status::Pass),
        ("nr", Rejected, Status::Fail),
        ("r", Rejected, Status::Fail),
        ("av", Reverted, Status::Fail),
        ("aV", Accepted, Status::Fail),
        ("aVv", Reverted, Status::Fail),
        ("ar", Contradicted, Status::Fail),
        ("ra", Contradicted, Status::Fail),
        ("aa", Contradicted, Status::Fail),
        ("rr", Contradicted, Status::Fail),
        ("v", Contradicted, Status::Fail),
        ("nv", Contradicted, Status::Fail),
        ("ava", Contradicted, Status::Fail),
        ("avv", Contradicted, Status::Fail),
        ("arv", Contradicted, Status::Fail),
    ] {
        let mut settlements = said(&run, words);
        let now = effective_verdict(&run, &own(&run), &settlements);
        assert_eq!((now.standing, now.status), (standing, status), "{words:?}");
        // Not their order on disk decides.
        settlements.reverse();
        assert_eq!(
            effective_verdict(&run, &own(&run), &settlements),
            now,
            "{words:?}"
        );
    }
}

#[test]
fn what_was_said_of_another_bundle_or_of_no_such_run_is_nothing() {
    let run = report(stage5(), &good());
    let mut settlements = said(&run, "a");
    settlements[0].continues.sums_sha256 = Digest::of(b"other");
    let now = effective_verdict(&run, &own(&run), &settlements);
    assert_eq!(
        (now.standing, now.status),
        (Standing::Waits, Status::Blocked)
    );
    let pass = report(sample(), &good());
    let now = effective_verdict(&pass, &own(&pass), &said(&pass, "r"));
    assert_eq!(
        (now.standing, now.status),
        (Standing::OwnVerdict, Status::Pass)
    );
}
