//! What a list says first, from nothing to a lane that is done.

use super::*;
use crate::gate::opening::{By, Why};
use crate::operator::setup::stale::tests::finished;
use crate::values::digest::Digest;

fn pi() -> Manifest {
    let text = include_str!("../../../../../engines/pi.toml");
    Manifest::parse("pi", text).unwrap()
}

fn seen(lane: &LaneFacts, opening: &Opening) -> (u8, String, String) {
    let found = overview(&pi(), opening, lane);
    let what = found.missing.map(|missing| missing.what);
    (
        found.stage,
        what.unwrap_or_default(),
        found.next.unwrap_or_default(),
    )
}

#[test]
fn the_first_thing_missing_has_a_command() {
    let open = Opening::Opened(By::Variable);
    let closed = Opening::Closed(Why::NotOpened);
    let nothing = LaneFacts::nothing(finished().now);
    let (stage, what, next) = seen(&nothing, &open);
    assert_eq!((stage, what.as_str()), (0, "no program is admitted"));
    assert_eq!(next, "setup pi --bin FILE");

    let mut lane = finished();
    lane.proofs.clear();
    let (stage, what, next) = seen(&lane, &open);
    assert_eq!((stage, what.as_str()), (0, "proofs: stage 1 is not proven"));
    assert_eq!(next, "setup pi");

    let mut lane = finished();
    (lane.model, lane.binary) = (Found::Missing, Binary::NotThere);
    let (_, what, next) = seen(&lane, &open);
    assert!(what.starts_with("program: "), "{what}");
    assert_eq!(next, "setup pi");

    let (stage, what, next) = seen(&finished(), &closed);
    assert!(stage == 2 && what.contains("opens with"), "{what}");
    assert_eq!(next, "engines open pi");
    let (stage, what, next) = seen(&finished(), &open);
    assert_eq!(
        (stage, what.as_str(), next.as_str()),
        (2, "", "run --engine pi")
    );
    let by_terminal = Opening::Closed(Why::NoTerminal("standard input is no terminal"));
    let (_, _, next) = seen(&finished(), &by_terminal);
    assert_eq!(next, "run --engine pi --allow-engine pi");
    let (_, _, next) = seen(&finished(), &Opening::Closed(Why::Variable));
    assert_eq!(next, "", "a variable that closes is somebody's word");
}

#[test]
fn a_changed_manifest_takes_the_stages_back() {
    let mut changed = pi();
    changed.sha256 = Some(Digest::of(b"another command line"));
    let open = Opening::Opened(By::Flag);
    let found = overview(&changed, &open, &finished());
    assert_eq!(found.stage, 0);
    let what = found.missing.unwrap().what;
    assert_eq!(what, "proofs: stage 1 is proven for another manifest");
}

#[test]
fn every_record_has_a_word() {
    let open = Opening::Opened(By::Flag);
    let words = |lane: &LaneFacts| overview(&pi(), &open, lane).admissions;
    let nothing = LaneFacts::nothing(finished().now);
    assert!(words(&nothing).iter().all(|(_, word)| *word == "missing"));
    let mut lane = finished();
    lane.model = Found::Invalid(Vec::new());
    let found = words(&lane);
    let of = |kind| found.iter().find(|(have, _)| *have == kind).unwrap().1;
    assert_eq!(of(RecordKind::Executable), "admitted");
    assert_eq!(of(RecordKind::Model), "invalid");
    assert_eq!(of(RecordKind::Decision), "decided");
}

#[test]
fn the_default_lane_misses_nothing() {
    let fake = include_str!("../../../../../engines/fake.toml");
    let fake = Manifest::parse("fake", fake).unwrap();
    let nothing = LaneFacts::nothing(finished().now);
    let found = overview(&fake, &Opening::Opened(By::Default), &nothing);
    assert_eq!((found.stage, found.missing), (2, None));
    assert!(found.admissions.is_empty());
}
