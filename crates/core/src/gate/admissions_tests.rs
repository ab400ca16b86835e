//! Gates that read records: a lane with everything on record, and what it lacks.

use serde_json::{Value, json};

use super::*;
use crate::containment::mounts::stand::Stand;
use crate::engine::manifest::Manifest;
use crate::gate::Interpreter;
use crate::gate::Packages;
use crate::gate::ladder::{LaneKey, StageProof};
use crate::gate::opening::{By, Opening, Why};
use crate::records::credential::CredentialWay;
use crate::records::tests as samples;
use crate::task::contract::tests::sample;
use crate::task::contract::{ContractDocument, MutationMode};
use crate::values::digest::Digest;
use crate::values::time::Utc;
use crate::wire::endpoint;

fn pi() -> Manifest {
    let text =
        "id = \"pi\"\ntitle = \"t\"\ngated_by_env = \"CTO_HARNESS_ALLOW_PI\"\ndefault_stage = 1\n";
    Manifest::parse("pi.toml", text).unwrap()
}

fn found<T: crate::records::Record>(value: &Value) -> Found<T> {
    let now = Utc::day("2026-06-15").unwrap();
    Found::of("/r/record.json", &serde_json::to_vec(value).unwrap(), now)
}

fn without(mut value: Value, fields: &[&str]) -> Value {
    fields
        .iter()
        .for_each(|field| drop(value.as_object_mut().unwrap().remove(*field)));
    value
}

fn changed(mut value: Value, field: &str, to: Value) -> Value {
    value[field] = to;
    value
}

type Ask = fn(&GateInput<'_>) -> Outcome;

/// A lane of Pi with everything on record, at stage 2.
struct World {
    manifest: Manifest,
    contract: Contract,
    stage: Stage,
    opening: Opening,
    facts: LaneFacts,
    target: TargetFound,
}

fn binary(is_temporary: bool) -> Binary {
    Binary::Found {
        path: "/opt/pi/bin/pi".into(),
        sha256: Digest::of(b"pi"),
        is_temporary,
    }
}

fn packages(bytes: &[u8], difference: Option<&str>) -> Packages {
    Packages::Found {
        sha256: Digest::of(bytes),
        state: Digest::of(b"state"),
        id: crate::containment::mounts::Id {
            device: 1,
            inode: 1,
        },
        difference: difference.map(str::to_owned),
    }
}

fn url(text: &str) -> Endpoint {
    endpoint::Endpoint::parse(text).map_or_else(Endpoint::Refused, |endpoint| {
        Endpoint::Given(endpoint.facts())
    })
}

impl World {
    fn good() -> Self {
        let mut contract = sample();
        contract.lane.engine = "pi".parse().unwrap();
        contract.lane.executable_sha256 = MaybeKnown::Known(Digest::of(b"pi"));
        let facts = LaneFacts {
            decision: found(&samples::decision()),
            model: found(&without(samples::model(), &["endpoint_sha256"])),
            executable: found(&without(samples::executable(), &["missing_build_tools"])),
            source: found(&samples::source()),
            gate: Found::Missing,
            asked_provider: None,
            asked_model: None,
            binary: binary(false),
            package_version: Some("1.2.3".into()),
            interpreter: Interpreter::Found(Digest::of(b"node")),
            packages: packages(b"packages", None),
            endpoint: url("http://127.0.0.1:8000/v1"),
            credential: Credential::Ready(CredentialWay::None),
            auth_bridge: false,
            is_the_harness: false,
            proofs: Vec::new(),
            now: Utc::day("2026-06-15").unwrap(),
        };
        contract.lane.model = facts.pair();
        contract.lane.source_pin = facts.source_pin();
        let proof = StageProof {
            stage: Stage::One,
            lane: LaneKey::of(&contract.lane),
            run_id: "20260102T030405Z-demo-k3v9".parse().unwrap(),
            artifact: crate::bundle::STAGE1_PROOF,
            sha256: Digest::of(b"proof"),
        };
        let facts = LaneFacts {
            proofs: vec![proof],
            ..facts
        };
        Self {
            manifest: pi(),
            contract,
            stage: Stage::Two,
            opening: Opening::Opened(By::Flag),
            facts,
            target: TargetFound::NotAsked,
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut world = Self::good();
        change(&mut world);
        world
    }

    fn outcomes(&self) -> Vec<(&'static str, Outcome)> {
        let document = ContractDocument::Valid(Box::new(self.contract.clone()));
        let input = GateInput {
            contract: &document,
            manifest: &self.manifest,
            stage: self.stage,
            own_script: false,
            opening: self.opening.clone(),
            approval_answered: false,
            lane: MaybeKnown::Known(self.facts.clone()),
            host: MaybeKnown::NotLookedAt,
            source: MaybeKnown::NotLookedAt,
            disposable: MaybeKnown::NotLookedAt,
            model: MaybeKnown::NotLookedAt,
            environments: &[],
            source_files: None,
            source_refused: None,
            target: &self.target,
            confinement: None,
            stand: Stand::Neutral,
        };
        let gates: [(&'static str, Ask); 8] = [
            ("decision", provider_decision),
            ("model", model_admission),
            ("executable", executable_admission),
            ("source", source_admission),
            ("review", review),
            ("credentials", credentials),
            ("endpoint", endpoint_gate),
            ("proof", stage_proof),
        ];
        gates.map(|(name, gate)| (name, gate(&input))).to_vec()
    }

    /// `code: detail` of every blocked gate.
    fn blocks(&self) -> Vec<String> {
        let told = |outcome: Outcome| match outcome {
            Outcome::Blocked(code, detail) => {
                Some(format!("{}: {}", code.as_str(), detail.unwrap_or_default()))
            }
            _ => None,
        };
        self.outcomes()
            .into_iter()
            .filter_map(|(_, outcome)| told(outcome))
            .collect()
    }
}

fn endpoint_gate(input: &GateInput<'_>) -> Outcome {
    super::endpoint(input)
}

#[test]
fn everything_on_record_opens_every_gate_and_what_only_people_can_judge_is_shown() {
    let world = World::good();
    assert_eq!(world.blocks(), Vec::<String>::new());
    let noted = |name: &str| match world.outcomes().into_iter().find(|(gate, _)| *gate == name) {
        Some((_, Outcome::Noted(text))) => text,
        other => panic!("{other:?}"),
    };
    assert!(noted("review").contains("before any change"));
    assert!(noted("proof").contains("20260102T030405Z-demo-k3v9"));
}

#[test]
fn fake_a_closed_engine_and_stage_one_need_no_admission() {
    let text = "id = \"fake\"\ntitle = \"t\"\ndefault_stage = 2\n[invocation]\nprogram = \"itself\"\nargv = []\ndialect = \"fake\"\n";
    let nothing = LaneFacts::nothing(Utc::FIRST);
    for world in [
        World::with(|w| {
            (w.manifest, w.facts) = (Manifest::parse("f", text).unwrap(), nothing.clone())
        }),
        World::with(|w| (w.opening, w.facts) = (Opening::Closed(Why::NotOpened), nothing.clone())),
        World::with(|w| (w.stage, w.facts) = (Stage::One, nothing.clone())),
    ] {
        assert_eq!(world.blocks(), Vec::<String>::new());
    }
}

/// A source admitted for the stage that changes a repository of the operator's.
fn owned(world: &mut World, license: &str) {
    let source = changed(
        samples::source(),
        "allowed_execution_modes",
        json!(["owned-noncritical-repo"]),
    );
    let source = changed(
        changed(source, "license_status", json!(license)),
        "review_trigger",
        json!("look"),
    );
    world.facts.source = found(&source);
}

#[test]
fn higher_stages_need_what_stage_two_only_notes() {
    let codes = |world: World| {
        world
            .blocks()
            .iter()
            .map(|b| b.split(':').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let at = |stage: Stage, mode: MutationMode, change: fn(&mut World)| {
        let mut world = World::good();
        (world.stage, world.contract.mutation_mode) = (stage, mode);
        world.facts.model = found(&changed(
            without(samples::model(), &["endpoint_sha256"]),
            "review_trigger",
            json!("look"),
        ));
        world.facts.source = found(&changed(samples::source(), "review_trigger", json!("look")));
        world.facts.proofs[0].stage = Stage::try_from(stage.number() - 1).unwrap();
        change(&mut world);
        codes(world)
    };
    use MutationMode::{CopiedRepo, OwnedNoncriticalRepo, SandboxRepo};
    assert_eq!(at(Stage::Three, CopiedRepo, |_| ()), Vec::<String>::new());
    assert_eq!(
        at(Stage::Three, CopiedRepo, |w| w.facts.binary = binary(true)),
        ["executable_not_admitted"]
    );
    assert_eq!(
        at(Stage::Three, CopiedRepo, |w| w.facts.source =
            Found::Missing),
        ["source_not_admitted", "stage_not_proven"][..1]
    );
    assert_eq!(
        at(Stage::Four, SandboxRepo, |_| ()),
        ["source_not_admitted"],
        "its modes do not cover it"
    );
    assert_eq!(
        at(Stage::Three, CopiedRepo, |w| w.facts.executable =
            found(&samples::executable())),
        ["source_not_admitted"],
        "a build tool was missing"
    );
    assert_eq!(
        at(Stage::Five, OwnedNoncriticalRepo, |w| owned(w, "resolved")),
        Vec::<String>::new()
    );
    assert_eq!(
        at(Stage::Five, OwnedNoncriticalRepo, |w| owned(
            w,
            "unresolved"
        )),
        ["license_unresolved"]
    );
}

#[test]
fn a_double_admitted_by_an_operator_is_refused() {
    let world = World::with(|w| w.facts.is_the_harness = true);
    assert!(
        world
            .blocks()
            .iter()
            .any(|b| b.starts_with("executable_not_admitted: this is the harness itself"))
    );
}

#[test]
fn codex_through_case_needs_a_bridge_that_somebody_says_is_there() {
    let world = |asked: bool| {
        World::with(|w| {
            w.manifest =
                Manifest::parse("c", include_str!("../../../../engines/case.toml")).unwrap();
            w.facts.auth_bridge = asked;
            w.facts.model = found(&changed(
                samples::model(),
                "provider",
                json!("openai-codex"),
            ));
        })
    };
    let needs =
        |b: &String| b.starts_with("provider_auth_unavailable: this provider needs an auth bridge");
    assert!(world(false).blocks().iter().any(needs));
    assert!(!world(true).blocks().iter().any(needs));
}

#[path = "admissions_rows_tests.rs"]
mod rows;

#[test]
fn the_admission_of_a_repository_falls_due_like_every_record() {
    let target = |trigger: &str| {
        let record = changed(
            crate::records::tests::target(),
            "review_trigger",
            json!(trigger),
        );
        let now = Utc::day("2026-06-15").unwrap();
        TargetFound::read("t.json", &serde_json::to_vec(&record).unwrap(), now)
    };
    let review = |world: &World| {
        let gates = world.outcomes().into_iter();
        let review = gates
            .filter(|(name, _)| *name == "review")
            .map(|(_, outcome)| outcome);
        review.collect::<Vec<_>>().remove(0)
    };
    let fake = "id = \"fake\"\ntitle = \"t\"\ndefault_stage = 2\n[invocation]\nprogram = \"itself\"\nargv = []\ndialect = \"fake\"\n";
    for gated in [true, false] {
        let at = |trigger: &str| {
            let mut world = World::good();
            (world.stage, world.target) = (Stage::Five, target(trigger));
            world.facts.model = found(&changed(
                without(samples::model(), &["endpoint_sha256"]),
                "review_trigger",
                json!("look"),
            ));
            world.facts.source =
                found(&changed(samples::source(), "review_trigger", json!("look")));
            if !gated {
                world.manifest = Manifest::parse("f", fake).unwrap();
                world.facts = LaneFacts::nothing(Utc::day("2026-06-15").unwrap());
            }
            review(&world)
        };
        let due = at("date:2026-06-01");
        assert!(
            matches!(&due, Outcome::Blocked(Code::ReviewDue, Some(why)) if why.contains("arget")),
            "{gated}: {due:?}"
        );
        let words = at("before any other path");
        assert!(matches!(words, Outcome::Noted(_)), "{gated}: {words:?}");
        let moved = at("path:/elsewhere");
        assert!(
            matches!(moved, Outcome::Blocked(Code::ReviewDue, _)),
            "{gated}: {moved:?}"
        );
    }
}
