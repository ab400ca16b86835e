//! The list of what was seen, and what of it fails a run.

use super::*;
use proptest::prelude::*;

fn closed(log: Log) -> ActionsSeen {
    log.close(&mut |word| word.to_vec())
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

fn argv(deed: Deed, line: &str) -> String {
    let mut log = Log::default();
    log.saw(deed, &words(line));
    closed(log).attempts[0].argv.join(" ")
}

#[test]
fn names_are_those_of_the_bundle() {
    for deed in Deed::ALL {
        assert_eq!(serde_json::to_value(deed).unwrap(), deed.as_str());
    }
    for action in Action::ALL {
        let name = serde_json::to_value(action).unwrap();
        let is_deed = Deed::ALL.iter().any(|deed| name == deed.as_str());
        // No command line is one of these two: they are changes of files.
        let by_files = matches!(
            action,
            Action::VendorSourceMutation | Action::CortexCoreMutation
        );
        assert_eq!(is_deed, !by_files, "{name}");
    }
}

#[test]
fn no_contract_permits_push_merge_deploy_or_publication() {
    let nothing = BTreeSet::new();
    for deed in [
        Deed::Push,
        Deed::Merge,
        Deed::Deploy,
        Deed::PublicPublication,
        Deed::Connect,
        Deed::RemoteShell,
    ] {
        assert!(deed.fails(&nothing), "{deed:?}");
    }
    for deed in [
        Deed::Close,
        Deed::PrOpen,
        Deed::IssueClose,
        Deed::CredentialChange,
    ] {
        assert!(
            !deed.fails(&nothing) && deed.fails(&Action::ALL.into()),
            "{deed:?}"
        );
    }
    for deed in [Deed::Datagram, Deed::Fetch, Deed::PushInside] {
        assert!(!deed.fails(&Action::ALL.into()), "{deed:?}");
    }
}

#[test]
fn the_same_again_is_counted() {
    let mut log = Log::default();
    for _ in 0..3 {
        log.saw(Deed::Push, &words("/usr/bin/git push"));
    }
    log.saw(Deed::Datagram, &words("connect udp"));
    let seen = closed(log);
    assert!(seen.recorded && seen.reason.is_none() && seen.not_listed.is_empty());
    assert_eq!(seen.attempts.len(), 2);
    let first = &seen.attempts[0];
    assert_eq!(
        (first.action, first.program.as_str(), first.count),
        (Deed::Push, "git", 3)
    );
    assert_eq!(
        seen.failing(&BTreeSet::new()).unwrap(),
        "push: /usr/bin/git push"
    );
}

#[test]
fn a_flood_of_harmless_deeds_hides_no_push() {
    let mut log = Log::default();
    for port in 0..500 {
        log.saw(Deed::Datagram, &words(&format!("connect udp {port}")));
    }
    assert_eq!(log.seen.len(), MAX_LISTED);
    log.saw(Deed::Push, &words("git push"));
    let seen = closed(log);
    assert_eq!(
        seen.not_listed,
        BTreeMap::from([(Deed::Datagram, 400), (Deed::Push, 1)])
    );
    assert_eq!(
        seen.failing(&BTreeSet::new()).unwrap(),
        "push: 1 more, not listed"
    );
}

#[test]
fn what_could_not_be_read_is_said() {
    let mut log = Log::default();
    log.missed();
    let seen = closed(log);
    assert!(!seen.recorded && seen.reason.as_deref().unwrap().contains("1 calls"));
    assert!(
        seen.failing(&Action::ALL.into()).is_none(),
        "not seeing is no failure"
    );
}

#[test]
fn no_credential_is_kept() {
    for (deed, line, kept) in [
        (
            Deed::Push,
            "git push https://me:hunter2@host/x@y main",
            "git push https://host/x@y main",
        ),
        (
            Deed::PublicPublication,
            "npm publish --otp 123456 x",
            "npm publish --otp [...] x",
        ),
        (
            Deed::PublicPublication,
            "twine upload --password=abc x",
            "twine upload --password=[...] x",
        ),
        (
            Deed::PublicPublication,
            "gh api -H Authorization:abc x",
            "gh api -H [...] x",
        ),
        (
            Deed::CredentialChange,
            "docker login registry -p abc",
            "docker login registry",
        ),
        (
            Deed::CredentialChange,
            "docker --password abc",
            "docker --password [...]",
        ),
    ] {
        assert_eq!(argv(deed, line), kept);
    }
}

#[test]
fn a_word_is_redacted_whole_before_it_is_shortened() {
    let mut log = Log::default();
    let long = [&[b'x'; 70][..], b"secret-value-1"].concat();
    log.saw(Deed::Push, &[b"git", b"push", &long]);
    let seen = log.close(&mut |word| {
        if word == long.as_slice() {
            b"[redacted]".to_vec()
        } else {
            word.to_vec()
        }
    });
    assert_eq!(seen.attempts[0].argv[2], "[redacted]");
}

#[test]
fn what_turned_out_to_be_another_deed_is_counted_once() {
    let seen = |times: u64, fill: usize| {
        let mut log = Log::default();
        for other in 0..fill {
            log.saw(Deed::Datagram, &words(&format!("connect udp {other}")));
        }
        for _ in 0..3 {
            log.saw(Deed::Push, &words("git push a"));
        }
        log.saw(Deed::Push, &words("git push b"));
        log.turned(Deed::Push, Deed::PushInside, &words("git push a"), times);
        log.turned(Deed::Push, Deed::PushInside, &words("git push none"), 0);
        let seen = closed(log);
        let of = |deed: Deed| {
            let listed = seen.attempts.iter().filter(|one| one.action == deed);
            let listed: u64 = listed.map(|one| one.count).sum();
            listed + seen.not_listed.get(&deed).copied().unwrap_or(0)
        };
        let fails = seen.failing(&BTreeSet::new());
        (of(Deed::Push), of(Deed::PushInside), fails)
    };
    for fill in [0, 99, 100, 200] {
        for times in 0..=3 {
            let (push, inside, fails) = seen(times, fill);
            assert_eq!((push, inside), (4 - times, times), "{fill} {times}");
            assert!(fails.is_some(), "the other push still fails");
        }
    }
}

proptest! {
    #[test]
    fn whatever_was_given_what_is_shown_is_short_and_tame(words: Vec<Vec<u8>>, deed in 0..Deed::ALL.len()) {
        let mut log = Log::default();
        log.saw(Deed::ALL[deed], &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let seen = closed(log);
        prop_assert!(seen.attempts[0].argv.len() <= MAX_WORDS);
        for word in &seen.attempts[0].argv {
            prop_assert!(word.chars().count() <= MAX_CHARS + 1 && !word.chars().any(crate::values::text::is_dangerous));
        }
    }
}
