//! Looks compared, and documents that contradict themselves.

use super::*;

pub fn source() -> Source {
    let record = SourceRecord {
        path: None,
        owner: "operator".into(),
        ownership_evidence: "typed".into(),
        class: SourceClass::OwnedLocal,
    };
    Source {
        record,
        from_head: false,
        head: MaybeKnown::Known("c0".into()),
    }
}

pub fn repository() -> RepositoryName {
    RepositoryName::of(b"/home/me/project")
}

pub fn look() -> SourceLook {
    SourceLook {
        head: "c0".into(),
        branch: Some("main".into()),
        tree: "t0".into(),
        status: SourceStatus::new(b"", Vec::new(), Vec::new()),
        fingerprint: Digest::of(b"f"),
    }
}

fn dirty(names: &[&str]) -> SourceStatus {
    SourceStatus::new(
        names.join("\0").as_bytes(),
        names.iter().map(|name| TreePath::new(*name)).collect(),
        Vec::new(),
    )
}

#[test]
fn dirt_is_named() {
    assert_eq!(look().status.dirt(), None);
    assert_eq!(dirty(&["a"]).dirt().unwrap(), "1 path is not committed: a");
    let many: Vec<String> = (0..30).map(|n| format!("f{n}")).collect();
    let many = dirty(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        many.dirt().unwrap(),
        "30 paths are not committed: f0, f1, f2, f3, f4 and 25 more"
    );
    assert_eq!(many.first.len(), SourceStatus::SHOWN);
    let merging = SourceStatus::new(b"", Vec::new(), vec!["MERGE_HEAD".into()]);
    assert_eq!(merging.dirt().unwrap(), "unfinished: MERGE_HEAD");
}

#[test]
fn every_difference_between_two_looks_is_a_finding() {
    let same = |_: &mut SourceLook| {};
    type Row = (&'static str, fn(&mut SourceLook), bool);
    let rows: [Row; 5] = [
        ("same", same, false),
        ("branch name alone", |look| look.branch = None, false),
        ("head", |look| look.head = "c1".into(), true),
        ("status", |look| look.status = dirty(&["x"]), true),
        (
            "fingerprint",
            |look| look.fingerprint = Digest::of(b"g"),
            true,
        ),
    ];
    for (name, change, want) in rows {
        let mut after = look();
        change(&mut after);
        let mut document = CopiedRepo::begun(&source(), Some(&repository()), &look());
        let finding = document.ended(&Looked::Found(after), None, true);
        assert_eq!(finding.is_some(), want, "{name}");
        assert_eq!(document.source_repository_mutated, Some(want), "{name}");
        let findings: Vec<Finding> = finding.into_iter().collect();
        assert_eq!(
            document.contradictions(
                (&source(), Some(&repository())),
                &findings,
                Some(true),
                false,
                Some("t0")
            ),
            Vec::<&str>::new(),
            "{name}"
        );
    }
    let mut gone = CopiedRepo::begun(&source(), Some(&repository()), &look());
    assert!(
        gone.ended(&Looked::Unusable("it is gone".into()), None, true)
            .is_some()
    );
}

#[test]
fn contradictions_are_found() {
    const STARTED: bool = true;
    let whole = || {
        let mut document = CopiedRepo::begun(&source(), Some(&repository()), &look());
        assert_eq!(document.ended(&Looked::Found(look()), None, true), None);
        (
            document.copied_fixture_start_clean,
            document.copied_fixture_end_clean,
        ) = (Some(true), Some(true));
        document
    };
    assert_eq!(
        whole().contradictions(
            (&source(), Some(&repository())),
            &[],
            Some(true),
            STARTED,
            Some("t0")
        ),
        Vec::<&str>::new()
    );
    let rows: [fn(&mut CopiedRepo); 11] = [
        |d| d.record.owner = "someone".into(),
        |d| d.from_head = true,
        |d| d.repository = None,
        |d| d.repository = Some(RepositoryName::of(b"/home/me/other/project")),
        |d| d.record.path = Some("~/project".into()),
        |d| d.source_head_before = "c9".into(),
        |d| d.source_repository_mutated = None,
        |d| d.source_fingerprint_after = Some(Digest::of(b"other")),
        |d| d.source_repository_mutated = Some(true),
        |d| d.copied_fixture_start_clean = Some(false),
        |d| d.copied_fixture_end_clean = Some(false),
    ];
    for (number, change) in rows.into_iter().enumerate() {
        let mut document = whole();
        change(&mut document);
        assert!(
            !document
                .contradictions(
                    (&source(), Some(&repository())),
                    &[],
                    Some(true),
                    STARTED,
                    Some("t0")
                )
                .is_empty(),
            "row {number}"
        );
    }
    let mut unclean = whole();
    unclean.source_status_before = dirty(&["x"]);
    unclean.source_status_after = Some(dirty(&["x"]));
    assert_eq!(
        unclean.contradictions(
            (&source(), Some(&repository())),
            &[],
            Some(true),
            STARTED,
            Some("t0")
        ),
        ["the source was not clean"]
    );
    assert!(
        !whole()
            .contradictions(
                (&source(), Some(&repository())),
                &[],
                Some(true),
                STARTED,
                Some("t1")
            )
            .is_empty(),
        "another tree"
    );
    let cut = CopiedRepo::begun(&source(), Some(&repository()), &look());
    let interrupted = [Finding {
        code: Code::Interrupted,
        detail: None,
    }];
    assert!(
        cut.contradictions(
            (&source(), Some(&repository())),
            &interrupted,
            Some(true),
            false,
            Some("t0")
        )
        .is_empty()
    );
    assert!(
        !cut.contradictions(
            (&source(), Some(&repository())),
            &[],
            Some(true),
            false,
            Some("t0")
        )
        .is_empty()
    );
    assert!(
        !cut.contradictions(
            (&source(), Some(&repository())),
            &interrupted,
            Some(true),
            STARTED,
            Some("t0")
        )
        .is_empty()
    );
}

#[test]
fn a_change_that_is_not_judged_is_a_note() {
    let mut after = look();
    after.head = "c1".into();
    after.fingerprint = Digest::of(b"g");
    let ended = |judged| {
        let mut document = CopiedRepo::begun(&source(), Some(&repository()), &look());
        let finding = document.ended(&Looked::Found(after.clone()), Some(2), judged);
        (document, Vec::from_iter(finding))
    };
    let wrong = |document: &CopiedRepo, findings: &[Finding], judged| {
        document.contradictions(
            (&source(), Some(&repository())),
            findings,
            judged,
            false,
            Some("t0"),
        )
    };
    let (note, none) = ended(false);
    let (failed, found) = ended(true);
    assert!(none.is_empty() && found.len() == 1);
    assert_eq!(note.source_repository_mutated, Some(true));
    assert_eq!(
        (note.judged, note.source_files_changed),
        (Some(false), Some(2))
    );
    assert!(wrong(&note, &none, Some(false)).is_empty());
    assert!(wrong(&failed, &found, Some(true)).is_empty());
    // Nobody may say by himself that a change is not judged, or leave it out, or make one up.
    for judged in [None, Some(true)] {
        assert!(!wrong(&note, &none, judged).is_empty(), "{judged:?}");
        assert!(!wrong(&note, &found, judged).is_empty(), "{judged:?}");
    }
    assert!(!wrong(&note, &found, Some(false)).is_empty());
    assert!(!wrong(&failed, &found, Some(false)).is_empty());
    // Rules of before ask for nothing, and were given nothing.
    let mut before = failed;
    before.judged = None;
    assert!(wrong(&before, &found, None).is_empty());
    assert!(!wrong(&before, &found, Some(true)).is_empty());
    let mut invented = CopiedRepo::begun(&source(), Some(&repository()), &look());
    assert_eq!(invented.ended(&Looked::Found(look()), Some(2), false), None);
    assert_eq!(invented.source_files_changed, None);
    invented.source_files_changed = Some(2);
    assert!(!wrong(&invented, &[], Some(false)).is_empty());
}
