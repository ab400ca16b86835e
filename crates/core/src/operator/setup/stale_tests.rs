use super::super::drafts::tests::{answers, package};
use super::*;
use crate::gate::Credential;
use crate::gate::ladder::StageProof;
use crate::records::{Recorded, SourceAdmissionRecord};
use crate::task::contract::Stage;
use crate::values::digest::Digest;
use crate::wire::endpoint::{EndpointClass, EndpointError, EndpointFacts};

fn known<T>(record: Option<T>) -> Found<T> {
    Found::Known(Box::new(Recorded {
        record: record.unwrap(),
        path: "/state/records/pi/x.json".into(),
        sha256: Digest::of(b"x"),
    }))
}

fn integrity() -> Result<String, NoIntegrity> {
    answers().source.unwrap().integrity
}

fn manifest() -> Manifest {
    let text = include_str!("../../../../../engines/pi.toml");
    Manifest::parse("pi", text).unwrap()
}

/// A lane that a setup has just finished.
pub(crate) fn finished() -> LaneFacts {
    let answers = answers();
    let drafts = answers.drafts().unwrap();
    let mut lane = LaneFacts {
        decision: known(drafts.decision),
        model: known(drafts.model),
        executable: known(drafts.executable),
        source: known(drafts.source),
        binary: Binary::Found {
            path: "/opt/pi/cli.js".into(),
            sha256: Digest::of(b"pi"),
            is_temporary: false,
        },
        package_version: Some("1.2.3".into()),
        interpreter: Interpreter::Found(Digest::of(b"node")),
        endpoint: Endpoint::Given(EndpointFacts {
            class: EndpointClass::Loopback,
            sha256: Digest::of(b"http://127.0.0.1:9/v1"),
        }),
        credential: Credential::Ready(CredentialWay::None),
        ..LaneFacts::nothing(answers.now)
    };
    let key = lane_key(&answers.engine, manifest().sha256, &lane);
    lane.proofs = [Stage::One, Stage::Two]
        .map(|stage| StageProof {
            stage,
            lane: key.clone(),
            run_id: "20261118T080000Z-quick-abcdefgh".parse().unwrap(),
            artifact: "x",
            sha256: Digest::of(b"x"),
        })
        .to_vec();
    lane
}

fn parts(lane: &LaneFacts, integrity: &Result<String, NoIntegrity>) -> Vec<Part> {
    let package = package();
    let standing = Standing {
        manifest: &manifest(),
        lane,
        package: Some((&package, integrity)),
        other_model_asked: false,
    };
    standing.stale().iter().map(|stale| stale.part).collect()
}

fn changed(change: impl FnOnce(&mut LaneFacts)) -> Vec<Part> {
    let mut lane = finished();
    change(&mut lane);
    parts(&lane, &integrity())
}

#[test]
fn what_a_setup_finished_is_not_stale() {
    assert_eq!(parts(&finished(), &integrity()), []);
}

#[test]
fn only_what_changed_is_mended() {
    use Part::{Executable, Model, Proofs, Source};
    let facts = |class, text: &[u8]| {
        Endpoint::Given(EndpointFacts {
            class,
            sha256: Digest::of(text),
        })
    };
    assert_eq!(
        changed(|lane| *lane = LaneFacts::nothing(lane.now)),
        [Model, Executable, Source, Proofs]
    );
    assert_eq!(changed(|lane| lane.proofs.clear()), [Proofs]);
    assert_eq!(changed(|lane| drop(lane.proofs.pop())), [Proofs]);
    for change in [
        (|lane| lane.decision = Found::Missing) as fn(&mut LaneFacts),
        |lane| lane.model = Found::Invalid(Vec::new()),
        |lane| lane.endpoint = Endpoint::NotGiven,
        |lane| lane.endpoint = Endpoint::Refused(EndpointError::Empty),
        |lane| lane.endpoint = Endpoint::Unreadable("x".into()),
    ] {
        assert_eq!(changed(change), [Model, Proofs]);
    }
    for endpoint in [
        facts(EndpointClass::Loopback, b"other"),
        facts(EndpointClass::Hosted, b"http://127.0.0.1:9/v1"),
    ] {
        assert_eq!(changed(|lane| lane.endpoint = endpoint), [Model, Proofs]);
    }
    let file = |path: &str, bytes: &[u8]| Binary::Found {
        path: path.into(),
        sha256: Digest::of(bytes),
        is_temporary: false,
    };
    for binary in [
        file("/opt/pi/cli.js", b"another"),
        file("/opt/other/cli.js", b"pi"),
        Binary::NotThere,
    ] {
        assert_eq!(changed(|lane| lane.binary = binary), [Executable, Proofs]);
    }
    for change in [
        (|lane| lane.package_version = Some("1.2.4".into())) as fn(&mut LaneFacts),
        |lane| lane.interpreter = Interpreter::Found(Digest::of(b"other")),
        |lane| lane.interpreter = Interpreter::Missing("x".into()),
        |lane| lane.executable = Found::Missing,
        |lane| {
            let mut of_before = lane.executable.known().unwrap().clone();
            of_before.interpreter = None;
            of_before.interpreter_sha256 = None;
            lane.executable = known(Some(of_before));
            lane.interpreter = Interpreter::NotRecorded;
        },
        |lane| lane.packages = Packages::NotPinned,
        |lane| lane.packages = Packages::Unusable("x".into()),
    ] {
        assert_eq!(changed(change), [Executable, Proofs]);
    }
    assert_eq!(
        changed(|lane| lane.source = Found::Missing),
        [Source, Proofs]
    );
    assert_eq!(
        parts(&finished(), &Err(NoIntegrity::NoLock)),
        [Source, Proofs],
        "the lock file is gone"
    );
}

#[test]
fn a_source_record_of_somebodys_own_is_left_alone() {
    let change = |change: fn(&mut SourceAdmissionRecord)| {
        changed(|lane| {
            let mut own = lane.source.known().unwrap().clone();
            change(&mut own);
            lane.source = known(Some(own));
            // The proofs are about that record, too.
            let key = lane_key(&"pi".parse().unwrap(), manifest().sha256, lane);
            lane.proofs
                .iter_mut()
                .for_each(|proof| proof.lane = key.clone());
        })
    };
    assert_eq!(change(|own| own.source_type = "git".into()), []);
    assert_eq!(change(|own| own.pinned_commit = Some("a".repeat(40))), []);
    assert_eq!(
        change(|own| own.pinned_tag = Some("other".into())),
        [Part::Source, Part::Proofs]
    );
}

#[test]
fn an_interpreter_that_a_manifest_no_longer_takes_is_stale() {
    let (mut manifest, package) = (manifest(), package());
    let mut parts = |minimum: Option<&str>| -> Vec<Part> {
        let own = manifest.invocation.as_mut().unwrap();
        own.interpreter_min_version = minimum.map(str::to_owned);
        let (lane, integrity) = (finished(), integrity());
        let standing = Standing {
            manifest: &manifest,
            lane: &lane,
            package: Some((&package, &integrity)),
            other_model_asked: false,
        };
        standing.stale().iter().map(|stale| stale.part).collect()
    };
    assert_eq!(parts(Some("100")), [Part::Executable, Part::Proofs]);
    assert_eq!(parts(None), []);
}

#[test]
fn another_model_is_asked_for() {
    let lane = finished();
    let standing = Standing {
        manifest: &manifest(),
        lane: &lane,
        package: None,
        other_model_asked: true,
    };
    assert_eq!(standing.stale()[0].part, Part::Model);
}

#[test]
fn at_most_eight_questions_and_none_where_nothing_is_stale() {
    let stale = |parts: &[Part]| -> Vec<Stale> {
        let of = |part: &Part| Stale {
            part: *part,
            why: String::new(),
        };
        parts.iter().map(of).collect()
    };
    use Part::{Executable, Model, Proofs, Source};
    let all = stale(&[Model, Executable, Source, Proofs]);
    let asked = questions(&all, true, true);
    // One more where the endpoint answers by another name.
    assert_eq!(asked.len() + 1, 8, "{asked:?}");
    assert_eq!(questions(&[], true, true), []);
    assert_eq!(questions(&stale(&[Proofs]), true, true), [Question::Name]);
    assert_eq!(
        questions(&stale(&[Executable, Proofs]), true, true),
        [Question::Approval, Question::Name]
    );
    assert_eq!(
        questions(&stale(&[Source, Proofs]), true, true),
        [Question::Approval, Question::License, Question::Name]
    );
    assert!(!questions(&all, true, false).contains(&Question::License));
    assert_eq!(questions(&all, false, true)[0], Question::Program);
}
