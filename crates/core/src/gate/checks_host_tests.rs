//! What the gates ask of a host and a model, and in which order they ask.

use super::*;

#[test]
fn the_host_is_not_looked_at_while_a_record_blocks() {
    let world = World {
        manifest: gated(),
        stage: Stage::One,
        host: MaybeKnown::NotLookedAt,
        ..World::good()
    };
    let Next::Blocked(report) = plan::next_step(&world.input()) else {
        panic!("not blocked")
    };
    let unseen: Vec<&str> = report
        .gates
        .iter()
        .filter(|g| g.result == crate::gate::GateVerdict::NotSeen)
        .map(|g| g.gate.as_str())
        .collect();
    assert_eq!(
        unseen,
        [
            "provider",
            "toolchains",
            "containment",
            "source-state",
            "model-answer"
        ]
    );
    assert_eq!(report.gates.len(), GATES.len());
}

#[test]
fn phases_stand_in_order() {
    assert!(GATES.windows(2).all(|pair| pair[0].phase <= pair[1].phase));
    assert!(GATES.iter().any(|gate| gate.phase == Phase::Host));
}

#[test]
fn only_fakes_own_script_at_stage_two_runs_without_a_jail() {
    for (manifest, own_script) in [(gated(), true), (gated(), false), (fake(), false)] {
        for stage in [
            Stage::Two,
            Stage::Three,
            Stage::Four,
            Stage::Five,
            Stage::Six,
        ] {
            let world = World {
                manifest: manifest.clone(),
                stage,
                own_script,
                opened: true,
                host: no_jail(),
                ..World::good()
            };
            assert!(
                matches!(
                    containment(&world.input()),
                    Outcome::Blocked(Code::ContainmentUnavailable, _)
                ),
                "{stage:?}"
            );
        }
    }
    let world = World {
        stage: Stage::Three,
        host: no_jail(),
        ..World::good()
    };
    assert!(matches!(
        containment(&world.input()),
        Outcome::Blocked(Code::ContainmentUnavailable, _)
    ));
}

#[test]
fn the_plan_says_what_the_host_can_prove() {
    for (host, want) in [
        (host(), Containment::Strict),
        (no_jail(), Containment::None),
    ] {
        let world = World {
            host,
            ..World::good()
        };
        let Next::Ready(plan, _) = plan::next_step(&world.input()) else {
            panic!("blocked")
        };
        assert_eq!(plan.containment, want);
    }
}

#[test]
fn programs_are_taken_from_plain_commands() {
    for (command, want) in [
        ("python3 -m unittest", Some("python3")),
        ("A=1 B=2 grep -q x", Some("grep")),
        ("test -f x", None),
        ("ulimit -n 100; pytest", None),
        ("umask 22 && pytest", None),
        ("exec pytest", None),
        ("unset X; pytest", None),
        ("./run.sh", None),
        ("$X y", None),
        ("(cd x && y)", None),
        ("true", None),
        ("", None),
    ] {
        assert_eq!(first_program(command).as_deref(), want, "{command}");
    }
}

fn asked(outcome: Wire, content: bool) -> MaybeKnown<Answer> {
    let mut call = CallRecord::begun(1, 0, Protocol::OpenaiChat);
    call.ended(outcome, None);
    call.content = content;
    MaybeKnown::Known(Answer::Asked(Box::new(call), None))
}

#[test]
fn a_model_is_asked_last_and_every_answer_but_content_blocks() {
    let text = "id = \"fake\"\ntitle = \"t\"\ndefault_stage = 2\n[invocation]\nprogram = \"itself\"\nargv = []\ndialect = \"pi\"\n[[invocation.model.protocols]]\nwire = \"openai-chat\"\nname = \"x\"\n";
    // No gate of a record stands in the way here: what is asked is the order, and the last phase.
    let talking = Manifest::parse("fake.toml", text).unwrap();
    for (model, want) in [
        (MaybeKnown::NotLookedAt, vec!["look-at-model"]),
        (asked(Wire::Ok, true), vec![]),
        (
            asked(Wire::Ok, false),
            vec!["provider_response_shape_unavailable"],
        ),
        (
            asked(Wire::ReasoningOnly, false),
            vec!["provider_response_shape_unavailable"],
        ),
        (asked(Wire::Auth, false), vec!["provider_auth_unavailable"]),
        (asked(Wire::WrongModel, true), vec!["model_not_admitted"]),
        (asked(Wire::RateLimit, false), vec!["provider_unavailable"]),
        (
            asked(Wire::ServerError, false),
            vec!["provider_unavailable"],
        ),
        (asked(Wire::Transport, false), vec!["provider_unavailable"]),
        (asked(Wire::Stalled, false), vec!["provider_unavailable"]),
        (asked(Wire::Truncated, true), vec!["provider_unavailable"]),
        (asked(Wire::Redirected, false), vec!["provider_unavailable"]),
        (asked(Wire::ModelError, false), vec!["provider_unavailable"]),
        (
            MaybeKnown::Known(Answer::CouldNotAsk(
                Code::ProviderAuthUnavailable,
                "gone".into(),
            )),
            vec!["provider_auth_unavailable"],
        ),
    ] {
        let world = World {
            manifest: talking.clone(),
            model: model.clone(),
            ..World::good()
        };
        assert_eq!(world.codes(), want, "{model:?}");
    }
    let world = World {
        manifest: talking,
        host: no_git(),
        ..World::good()
    };
    assert_eq!(
        world.codes(),
        ["provider_unavailable"],
        "the network was used before the host was in order"
    );
}

#[test]
fn every_bad_end_of_the_first_request_has_its_next_step() {
    use crate::gate::advice;
    use crate::wire::calls::RefusalReason;
    let pi = "pi".parse().unwrap();
    let told = |outcome, why, status: Option<u16>| {
        let mut call = CallRecord::begun(1, 0, Protocol::OpenaiChat);
        call.ended(outcome, why);
        call.status = status.map_or(MaybeKnown::NotLookedAt, MaybeKnown::Known);
        call.model_answered = MaybeKnown::Known("m-2026-01-01\u{1b}[2J".into());
        advice(&call, &pi).unwrap_or_default()
    };
    for (outcome, why, status, want) in [
        (Wire::Auth, None, Some(401), "renew it"),
        (Wire::Auth, None, Some(403), "`cto setup pi`"),
        (
            Wire::WrongModel,
            Some(RefusalReason::OtherName),
            Some(200),
            "answered as m-2026-01-01",
        ),
        (
            Wire::WrongModel,
            Some(RefusalReason::OtherName),
            Some(200),
            "alias",
        ),
        (
            Wire::WrongModel,
            Some(RefusalReason::NoName),
            Some(200),
            "which model",
        ),
        (Wire::Redirected, None, Some(302), "never followed"),
        (Wire::ModelError, None, Some(404), "/v1"),
        (Wire::ModelError, None, Some(400), "`cto setup pi`"),
        (Wire::ModelError, None, Some(422), "`cto setup pi`"),
        (Wire::Stalled, None, None, "--first-byte"),
        (
            Wire::Transport,
            Some(RefusalReason::TlsUntrusted),
            None,
            "authority",
        ),
        (Wire::Transport, Some(RefusalReason::Proxy), None, "proxy"),
    ] {
        let said = told(outcome, why, status);
        assert!(said.contains(want), "{outcome:?}: {said}");
        assert!(!said.contains('\u{1b}'), "{said}");
    }
    assert_eq!(told(Wire::ServerError, None, Some(500)), "");
}

#[test]
fn the_words_of_a_refusal_stand_beside_its_blocker_on_one_short_line() {
    let mut call = CallRecord::begun(1, 0, Protocol::OpenaiChat);
    call.ended(Wire::ModelError, None);
    call.status = MaybeKnown::Known(400);
    let words = format!(
        "{{\n  \"error\": \"no\u{1b}such field\"\n}}{}",
        "x".repeat(9000)
    );
    let text = "id = \"fake\"\ntitle = \"t\"\ndefault_stage = 2\n[invocation]\nprogram = \"itself\"\nargv = []\ndialect = \"pi\"\n[[invocation.model.protocols]]\nwire = \"openai-chat\"\nname = \"x\"\n";
    let world = World {
        manifest: Manifest::parse("fake.toml", text).unwrap(),
        model: MaybeKnown::Known(Answer::Asked(Box::new(call), Some(words))),
        ..World::good()
    };
    let Next::Blocked(report) = plan::next_step(&world.input()) else {
        panic!("not blocked")
    };
    let detail = report
        .blocked()
        .find_map(|gate| gate.detail.clone())
        .unwrap();
    assert!(
        detail.contains("it said: { \"error\": \"no\u{fffd}such field\" }x"),
        "{detail}"
    );
    assert!(!detail.contains('\n') && detail.len() < 600, "{detail}");
}

#[test]
fn a_disposable_repository_is_made_after_the_host_was_looked_at() {
    use crate::task::source::branch_policy::BranchPolicy;
    let mut world = World::contract(|c| c.branch_policy = Some(BranchPolicy::disposable()));
    assert_eq!(world.codes(), ["make-history"]);
    world.disposable = MaybeKnown::Known(Err("no git".into()));
    assert_eq!(world.codes(), ["provider_unavailable"]);
    world.disposable = MaybeKnown::Known(Ok(()));
    assert_eq!(world.codes(), [] as [&str; 0]);
    world.host = MaybeKnown::NotLookedAt;
    assert_eq!(world.codes(), ["look-at-host"]);
}
