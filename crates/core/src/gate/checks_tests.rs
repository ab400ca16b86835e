//! The truth table of the gates: one world in order, and one thing changed at a time.

use std::collections::BTreeMap;

use super::*;
use crate::containment::Containment;
use crate::containment::guard::{Decision, Guard};
use crate::containment::mounts::stand::Stand;
use crate::engine::manifest::Manifest;
use crate::gate::opening::{By, Why};
use crate::gate::plan::{self, Next};
use crate::gate::{Answer, GATES, HostFacts, Phase};
use crate::task::case_file::ContractIssue;
use crate::task::contract::tests::sample;
use crate::task::contract::{ContractDocument, InvalidContract, MutationMode};
use crate::task::source::tests as source_tests;
use crate::task::source::{Source, SourceLook, SourceStatus};
use crate::wire::Protocol;
use crate::wire::calls::{CallRecord, Outcome as Wire};

pub fn fake() -> Manifest {
    let text = "id = \"fake\"\ntitle = \"t\"\ndefault_stage = 2\n[invocation]\nprogram = \"itself\"\nargv = []\ndialect = \"fake\"\n";
    Manifest::parse("fake.toml", text).unwrap()
}

fn gated() -> Manifest {
    let text =
        "id = \"pi\"\ntitle = \"t\"\ngated_by_env = \"CTO_HARNESS_ALLOW_PI\"\ndefault_stage = 1\n";
    Manifest::parse("pi.toml", text).unwrap()
}

fn host() -> MaybeKnown<HostFacts> {
    let programs = ["python3"].map(|name| (name.to_owned(), Some(format!("/usr/bin/{name}"))));
    MaybeKnown::Known(HostFacts {
        programs: BTreeMap::from(programs),
        ..HostFacts::default()
    })
}

fn changed_host(change: impl FnOnce(&mut HostFacts)) -> MaybeKnown<HostFacts> {
    let MaybeKnown::Known(mut facts) = host() else {
        unreachable!()
    };
    change(&mut facts);
    MaybeKnown::Known(facts)
}

fn no_jail() -> MaybeKnown<HostFacts> {
    changed_host(|host| host.jail_missing = vec!["layer seccomp".into()])
}

fn no_git() -> MaybeKnown<HostFacts> {
    changed_host(|host| host.lane_missing = vec!["git was not found on PATH".into()])
}

fn unusable() -> MaybeKnown<HostFacts> {
    changed_host(|host| host.unusable = vec!["python3 is a file in the home directory".into()])
}

struct World {
    contract: ContractDocument,
    manifest: Manifest,
    stage: Stage,
    opened: bool,
    own_script: bool,
    answered: bool,
    host: MaybeKnown<HostFacts>,
    source: MaybeKnown<Looked>,
    disposable: MaybeKnown<Result<(), String>>,
    model: MaybeKnown<Answer>,
    confinement: Decision,
}

impl World {
    /// Everything in order: `fake`, stage 2, a valid contract, a host with Python.
    fn good() -> Self {
        Self {
            contract: ContractDocument::Valid(Box::new(sample())),
            manifest: fake(),
            stage: Stage::Two,
            opened: false,
            own_script: true,
            answered: false,
            host: host(),
            source: MaybeKnown::NotLookedAt,
            disposable: MaybeKnown::NotLookedAt,
            model: MaybeKnown::NotLookedAt,
            confinement: Decision {
                policy: Containment::Strict,
                guard: Guard::default(),
                fallback: None,
            },
        }
    }

    /// A repository is copied at stage 3, and a look at it found it clean.
    fn copying(change: impl FnOnce(&mut SourceLook), from_head: bool) -> Self {
        let mut look = source_tests::look();
        change(&mut look);
        let mut world = Self::contract(|c| {
            c.mutation_mode = MutationMode::CopiedRepo;
            c.source = Some(Source {
                from_head,
                ..source_tests::source()
            });
        });
        (world.stage, world.source) = (Stage::Three, MaybeKnown::Known(Looked::Found(look)));
        world
    }

    fn contract(change: impl FnOnce(&mut Contract)) -> Self {
        let mut contract = sample();
        change(&mut contract);
        Self {
            contract: ContractDocument::Valid(Box::new(contract)),
            ..Self::good()
        }
    }

    fn input(&self) -> GateInput<'_> {
        GateInput {
            contract: &self.contract,
            manifest: &self.manifest,
            stage: self.stage,
            own_script: self.own_script,
            opening: match self.opened {
                true => Opening::Opened(By::Flag),
                false => Opening::Closed(Why::NotOpened),
            },
            approval_answered: self.answered,
            lane: MaybeKnown::NotLookedAt,
            host: self.host.clone(),
            source: self.source.clone(),
            disposable: self.disposable.clone(),
            model: self.model.clone(),
            environments: &[],
            source_files: None,
            source_refused: None,
            target: &crate::gate::target::TargetFound::NotAsked,
            confinement: Some(&self.confinement),
            stand: Stand::Neutral,
        }
    }

    fn codes(&self) -> Vec<&'static str> {
        match plan::next_step(&self.input()) {
            Next::Blocked(report) => report
                .blocked()
                .map(|gate| gate.code.unwrap().as_str())
                .collect(),
            Next::LookAtHost => vec!["look-at-host"],
            Next::LookAtSource => vec!["look-at-source"],
            Next::MakeHistory => vec!["make-history"],
            Next::LookAtModel => vec!["look-at-model"],
            Next::Ready(..) => Vec::new(),
        }
    }
}

fn dirty(look: &mut SourceLook) {
    look.status = SourceStatus::new(
        b"x",
        vec![crate::values::paths::TreePath::new("x")],
        Vec::new(),
    );
}

#[test]
fn truth_table() {
    let invalid = ContractDocument::Invalid(InvalidContract {
        invalid: true,
        errors: vec![ContractIssue {
            file: "case.toml".into(),
            line: 3,
            column: 4,
            message: "bad".into(),
        }],
    });
    let rows: Vec<(&str, World, &[&str])> = vec![
        ("good", World::good(), &[]),
        (
            "invalid contract",
            World {
                contract: invalid.clone(),
                ..World::good()
            },
            &["contract_invalid"],
        ),
        (
            "closed engine",
            World {
                manifest: gated(),
                stage: Stage::One,
                ..World::good()
            },
            &["engine_gate_closed"],
        ),
        (
            "closed engine, high stage",
            World {
                manifest: gated(),
                stage: Stage::Five,
                ..World::good()
            },
            &["engine_gate_closed"],
        ),
        (
            "closed engine, invalid contract: both, together",
            World {
                manifest: gated(),
                stage: Stage::One,
                contract: invalid,
                ..World::good()
            },
            &["contract_invalid", "engine_gate_closed"],
        ),
        (
            "opened, stage 1",
            World {
                manifest: gated(),
                stage: Stage::One,
                opened: true,
                ..World::good()
            },
            &["stage_gate_closed"],
        ),
        (
            "opened, stage 2, nothing on record",
            World {
                manifest: gated(),
                opened: true,
                ..World::good()
            },
            &[
                "provider_decision_closed",
                "model_not_admitted",
                "executable_not_admitted",
                "stage_not_proven",
            ],
        ),
        (
            "fake, stage 1",
            World {
                stage: Stage::One,
                ..World::good()
            },
            &["stage_gate_closed"],
        ),
        (
            "fake, stage 3",
            World {
                stage: Stage::Three,
                ..World::good()
            },
            &["source_not_admitted"],
        ),
        (
            "fake, stage 4",
            World {
                stage: Stage::Four,
                ..World::good()
            },
            &["stage_not_proven"],
        ),
        (
            "fake, stage 6",
            World {
                stage: Stage::Six,
                ..World::good()
            },
            &["stage_not_proven", "target_admission_missing"],
        ),
        (
            "an approved contract beyond what this version runs",
            World {
                stage: Stage::Four,
                answered: true,
                ..World::contract(|c| {
                    c.mutation_mode = MutationMode::SandboxRepo;
                    c.approval_required = true;
                })
            },
            &["stage_not_proven"],
        ),
        (
            "mode wider than stage",
            World::contract(|c| c.mutation_mode = MutationMode::SandboxRepo),
            &["stage_not_proven"],
        ),
        (
            "no test command",
            World::contract(|c| c.verification_commands.clear()),
            &["missing_test_command"],
        ),
        (
            "a rationale does not help at stage 2",
            World::contract(|c| {
                c.verification_commands.clear();
                c.no_test_rationale = Some("docs only".into());
            }),
            &["missing_test_command"],
        ),
        (
            "setup runs in the jail",
            World::contract(|c| c.setup = vec!["python3 -m venv .venv".into()]),
            &[],
        ),
        (
            "a green start is tried when there is a copy",
            World::contract(|c| c.reasons.green_start = true),
            &[],
        ),
        (
            "setup needs a program",
            World::contract(|c| c.setup = vec!["npm ci".into()]),
            &["toolchain_unavailable"],
        ),
        (
            "no jail, own script",
            World {
                host: no_jail(),
                ..World::good()
            },
            &[],
        ),
        (
            "no jail, foreign script",
            World {
                host: no_jail(),
                own_script: false,
                ..World::good()
            },
            &["containment_unavailable"],
        ),
        (
            "unusable toolchain",
            World {
                host: unusable(),
                ..World::good()
            },
            &["toolchain_unavailable"],
        ),
        (
            "inputs are mounted in the jail",
            World::contract(|c| c.inputs = vec![".venv/".parse().unwrap()]),
            &[],
        ),
        (
            "inputs without a jail",
            World {
                host: no_jail(),
                ..World::contract(|c| c.inputs = vec![".venv/".parse().unwrap()])
            },
            &["containment_unavailable"],
        ),
        (
            "missing program",
            World::contract(|c| c.verification_commands = vec!["nosuch -q".into()]),
            &["toolchain_unavailable"],
        ),
        (
            "missing toolchain",
            World::contract(|c| c.toolchains = vec!["node".into()]),
            &["toolchain_unavailable"],
        ),
        (
            "host not looked at",
            World {
                host: MaybeKnown::NotLookedAt,
                ..World::good()
            },
            &["look-at-host"],
        ),
    ];
    for (name, world, want) in rows {
        assert_eq!(world.codes(), want, "{name}");
    }
}

#[test]
fn approvals_and_what_every_lane_needs() {
    let rows: Vec<(&str, World, &[&str])> = vec![
        (
            "approval needed",
            World::contract(|c| c.approval_required = true),
            &["approval_missing"],
        ),
        (
            "approval answered",
            World {
                answered: true,
                ..World::contract(|c| c.approval_required = true)
            },
            &[],
        ),
        (
            "an answer nobody asked for opens nothing",
            World {
                answered: true,
                stage: Stage::One,
                ..World::good()
            },
            &["stage_gate_closed"],
        ),
        (
            "no git",
            World {
                host: no_git(),
                ..World::good()
            },
            &["provider_unavailable"],
        ),
        (
            "no git and no jail: both, together",
            World {
                host: changed_host(|h| {
                    (h.lane_missing, h.jail_missing) = (vec!["x".into()], vec!["y".into()])
                }),
                own_script: false,
                ..World::good()
            },
            &["provider_unavailable", "containment_unavailable"],
        ),
    ];
    for (name, world, want) in rows {
        assert_eq!(world.codes(), want, "{name}");
    }
}

#[test]
fn a_source_is_copied_only_with_a_record_and_a_clean_look() {
    let rows: Vec<(&str, World, &[&str])> = vec![
        ("a clean source", World::copying(|_| {}, false), &[]),
        (
            "a source not looked at",
            World {
                source: MaybeKnown::NotLookedAt,
                ..World::copying(|_| {}, false)
            },
            &["look-at-source"],
        ),
        (
            "a dirty source",
            World::copying(dirty, false),
            &["dirty_starting_tree"],
        ),
        (
            "a dirty source, copied from HEAD",
            World::copying(dirty, true),
            &[],
        ),
        (
            "no repository",
            World {
                source: MaybeKnown::Known(Looked::Unusable("no".into())),
                ..World::copying(|_| {}, false)
            },
            &["source_not_admitted"],
        ),
        (
            "a copied repository without a record",
            World {
                stage: Stage::Three,
                ..World::contract(|c| c.mutation_mode = MutationMode::CopiedRepo)
            },
            &["source_not_admitted"],
        ),
        (
            "a repository at stage 2",
            World {
                stage: Stage::Two,
                ..World::copying(|_| {}, false)
            },
            &["stage_not_proven"],
        ),
        (
            "a source, host without a jail",
            World {
                host: no_jail(),
                ..World::copying(dirty, false)
            },
            &["containment_unavailable"],
        ),
    ];
    for (name, world, want) in rows {
        assert_eq!(world.codes(), want, "{name}");
    }
}

#[path = "checks_host_tests.rs"]
mod host;
