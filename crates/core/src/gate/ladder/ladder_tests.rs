use super::*;

fn lane() -> LaneKey {
    LaneKey {
        engine: "pi".parse().unwrap(),
        source_pin: Some("v1".into()),
        executable_sha256: MaybeKnown::Known(Digest::of(b"pi")),
        interpreter_sha256: None,
        packages_sha256: None,
        manifest_sha256: None,
        model: Some(ModelPair {
            provider: "p".into(),
            model: "m".into(),
        }),
        containment: Some(Containment::Strict),
    }
}

fn proof(lane: LaneKey, run: &str) -> StageProof {
    StageProof {
        stage: Stage::One,
        lane,
        run_id: run.parse().unwrap(),
        artifact: bundle::STAGE1_PROOF,
        sha256: Digest::of(b""),
    }
}

#[test]
fn a_tree_nobody_looked_at_is_compared_later() {
    let proofs = [proof(lane(), "20260102T030405Z-demo-k3v9")];
    assert!(matches!(
        find_proof(
            &proofs,
            1,
            &LaneKey {
                containment: None,
                ..lane()
            }
        ),
        Standing::Proven(_)
    ));
}

#[test]
fn a_proof_belongs_to_its_lane_and_the_newest_counts() {
    let (old, new) = ("20260102T030405Z-demo-k3v9", "20260103T030405Z-demo-k3v9");
    let proofs = [proof(lane(), new), proof(lane(), old)];
    assert!(
        matches!(find_proof(&proofs, 1, &lane()), Standing::Proven(found) if found.run_id.as_str() == new)
    );
    assert_eq!(find_proof(&proofs, 2, &lane()), Standing::Unproven);
    assert_eq!(
        find_proof(
            &proofs,
            1,
            &LaneKey {
                engine: "case".parse().unwrap(),
                ..lane()
            }
        ),
        Standing::Unproven
    );
    type Change = fn(&mut LaneKey);
    let changes: [(Change, &str); 7] = [
        (
            |l| l.interpreter_sha256 = Some(Digest::of(b"node")),
            "interpreter",
        ),
        (
            |l| l.packages_sha256 = Some(Digest::of(b"packages")),
            "packages",
        ),
        (
            |l| l.manifest_sha256 = Some(Digest::of(b"manifest")),
            "manifest",
        ),
        (
            |l| l.containment = Some(Containment::Contained),
            "containment policy",
        ),
        (|l| l.source_pin = None, "source pin"),
        (
            |l| l.executable_sha256 = MaybeKnown::NotLookedAt,
            "executable digest",
        ),
        (|l| l.model = None, "model pair"),
    ];
    for (change, what) in changes {
        let mut other = lane();
        change(&mut other);
        assert_eq!(
            find_proof(&proofs, 1, &other),
            Standing::Demoted(vec![what])
        );
    }
}

#[test]
fn a_lane_whose_record_names_no_interpreter_compares_none() {
    let with = |bytes: &[u8]| LaneKey {
        interpreter_sha256: Some(Digest::of(bytes)),
        ..lane()
    };
    let proofs = [proof(with(b"node"), "20260102T030405Z-demo-k3v9")];
    assert!(matches!(
        find_proof(&proofs, 1, &lane()),
        Standing::Proven(_)
    ));
    assert!(matches!(
        find_proof(&proofs, 1, &with(b"node")),
        Standing::Proven(_)
    ));
    assert_eq!(
        find_proof(&proofs, 1, &with(b"other")),
        Standing::Demoted(vec!["interpreter"])
    );
}

#[test]
fn nobody_is_meant_to_run_beyond_the_first_stage_they_proved() {
    let mut asked = crate::task::contract::tests::sample().lane;
    asked.engine = "pi".parse().unwrap();
    let run = "20260102T030405Z-demo-k3v9";
    let proofs = |stages: &[Stage]| -> Vec<StageProof> {
        let of = |stage: &Stage| StageProof {
            stage: *stage,
            ..proof(LaneKey::of(&asked), run)
        };
        stages.iter().map(of).collect()
    };
    let other = [proof(lane(), run)];
    for (engine, proofs, want) in [
        (Stage::One, proofs(&[]), Stage::One),
        (Stage::One, proofs(&[Stage::One]), Stage::Two),
        (Stage::One, proofs(&[Stage::One, Stage::Two]), Stage::Two),
        (Stage::One, proofs(&[Stage::Two]), Stage::One),
        (Stage::One, other.to_vec(), Stage::One),
        (Stage::Two, proofs(&[Stage::One, Stage::Two]), Stage::Two),
    ] {
        assert_eq!(default_stage(engine, &proofs, &asked), want, "{proofs:?}");
    }
}
