//! What Case's model does, at the one request before a run and later: Case says the same of all of it, and the wire tells
//! it apart.

use super::*;

#[test]
fn what_the_model_does_before_a_run_starts_nothing() {
    houses()
        .into_iter()
        .map(lab)
        .for_each(|lab| before_a_run(&lab));
}

fn before_a_run(lab: &Lab) {
    let rows: [(&str, &str, &str); 7] = [
        (
            "401",
            "[probe]\nstatus = 401\n",
            "provider_auth_unavailable",
        ),
        ("429", "[probe]\nstatus = 429\n", "provider_unavailable"),
        ("500", "[probe]\nstatus = 500\n", "provider_unavailable"),
        ("refused", "leave_after = 0\n", "provider_unavailable"),
        (
            "cut",
            "[probe]\ntext = \"one two three four\"\ndrop_after = 1\n",
            "provider_unavailable",
        ),
        (
            "silent",
            "[probe]\ntext = \"one two three four\"\nsilent_after = 1\n",
            "provider_unavailable",
        ),
        (
            "reasoning alone",
            "[probe]\nreasoning = \"let me think\"\n",
            "provider_response_shape_unavailable",
        ),
    ];
    for (name, scenario, code) in rows {
        let bundle = lab.play(scenario, &[]);
        assert_verdict(name, &bundle, "blocked", &[code]);
        let report = bundle.report();
        assert_eq!(report["case_process_started"], false, "{name}");
        assert_eq!(report["case_model_admission_status"], "admitted", "{name}");
        assert!(!bundle.has("backend/case-events.jsonl"), "{name}");
    }
}

#[test]
fn a_model_that_is_lost_later_is_no_failure_of_the_protocol() {
    houses()
        .into_iter()
        .map(lab)
        .for_each(|lab| lost_later(&lab));
}

fn lost_later(lab: &Lab) {
    let probed = format!("select = \"requests\"\nafter = \"last\"\n{PROBE}");
    let lost: [(&str, &str); 5] = [
        ("401", "[[turn]]\nstatus = 401\n"),
        ("429", "[[turn]]\nstatus = 429\n"),
        ("500", "[[turn]]\nstatus = 500\n"),
        (
            "cut",
            "[[turn]]\ntext = \"one two three four\"\ndrop_after = 1\n",
        ),
        (
            "silent",
            "[[turn]]\ntext = \"one two three four\"\nsilent_after = 1\n",
        ),
    ];
    for (name, turn) in lost {
        let at_once = lab.play(&format!("{probed}{turn}"), &[]);
        assert_verdict(name, &at_once, "blocked", &["provider_unavailable"]);
        assert_eq!(at_once.report()["case_process_started"], true, "{name}");
        // The work was done by then, and whoever looks at it has no model any more.
        let late = format!("{probed}{}{turn}", implements());
        assert_verdict(
            &format!("{name}, later"),
            &lab.play(&late, &[]),
            "blocked",
            &["provider_unavailable"],
        );
    }
    let refused = format!("leave_after = 1\n{PROBE}");
    assert_verdict(
        "refused",
        &lab.play(&refused, &[]),
        "blocked",
        &["provider_unavailable"],
    );
    // Busy twice, and there at the third try: nothing was lost.
    let busy = "[[turn]]\nstatus = 429\n".repeat(2);
    let healed = scenario(&[busy, implements(), rest(4)]);
    assert_verdict("busy twice", &lab.play(&healed, &[]), "pass", &[]);
    // It is there again for the closer. That heals nothing.
    let gone = scenario(&["[[turn]]\nstatus = 500\n".repeat(6), rest(2)]);
    assert_verdict(
        "there again",
        &lab.play(&gone, &[]),
        "blocked",
        &["provider_unavailable"],
    );
}
