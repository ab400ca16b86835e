//! What goes wrong on the wire, each twice: at the one request before Pi is started, and after it
//! was good.

use std::fs;

use cto_testkit::wait_until;
use serde_json::json;

use crate::assert_good;
use crate::fixtures::pi_lab::{DONE, Lab, PROBE, assert_no_leak, edit, pi, quick};

/// A turn that fails, by name.
const FAILURES: &[(&str, &str)] = &[
    (
        "401",
        "status = 401\nbody = '{\"error\":{\"message\":\"no such key\"}}'",
    ),
    (
        "403",
        "status = 403\nbody = '{\"error\":{\"message\":\"not yours\"}}'",
    ),
    (
        "429",
        "status = 429\nbody = '{\"error\":{\"message\":\"too many\"}}'",
    ),
    (
        "500",
        "status = 500\nbody = '{\"error\":{\"message\":\"broken\"}}'",
    ),
    ("hung up", "hang_up = true"),
    (
        "cut",
        "text = \"one two three four five six\"\ndrop_after = 1",
    ),
    (
        "silent",
        "text = \"one two three four five six\"\nsilent_after = 1",
    ),
];

#[test]
fn at_the_probe_nothing_is_started() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    let reasoning = ("reasoning only", "reasoning = \"hm, let me think\"");
    let other = ("another model", "text = \"hello\"\nmodel = \"another\"");
    let moved = (
        "redirect",
        "status = 302\nheaders = { location = \"http://127.0.0.1:9/\" }",
    );
    for (name, turn) in FAILURES.iter().copied().chain([reasoning, other, moved]) {
        let model = lab.model(&format!("[probe]\n{turn}\n{DONE}"));
        let (answer, bundle) = lab.run(&model, &[]);
        let (code, marker) = match name {
            "401" | "403" => (
                "provider_auth_unavailable",
                "backend/provider-auth-unavailable.txt",
            ),
            "reasoning only" => (
                "provider_response_shape_unavailable",
                "backend/provider-reasoning-only.txt",
            ),
            "another model" => (
                "model_not_admitted",
                "backend/provider-model-not-admitted.txt",
            ),
            _ => ("provider_unavailable", "backend/provider-unavailable.txt"),
        };
        assert_eq!(
            (answer.code, bundle.codes()),
            (Some(3), vec![code.to_owned()]),
            "{name}"
        );
        assert!(bundle.has(marker), "{name}: {:?}", bundle.names());
        assert_eq!(bundle.report()["process_started"], false, "{name}");
        assert!(!bundle.has("backend/stdout.log"), "{name}");
        assert_eq!(model.requests(), 1, "{name}");
        assert_no_leak(&bundle, &model);
        assert_good(&bundle);
    }
    nothing_to_ask(&lab);
}

/// Refused connections, no base URL, no credential: blocked without a single request.
fn nothing_to_ask(lab: &Lab) {
    let gone = lab.model(PROBE);
    let (authority, url) = (gone.authority.clone(), gone.url_file.clone());
    drop(gone);
    let run = |more: &[&str]| {
        let args = ["run", &lab.case, "--engine", "pi", "--stage", "2", "--json"];
        lab.house.run_args(&[&args[..], more].concat()).1
    };
    let refused = run(&["--base-url-file", &url]);
    assert_eq!(refused.codes(), ["provider_unavailable"]);
    assert_eq!(refused.anywhere(&authority), Vec::<String>::new());
    assert_eq!(refused.report()["failure_reason"], "provider unavailable");
    let nowhere = run(&[]);
    assert_eq!(nowhere.codes(), ["provider_local_config_unavailable"]);
    assert!(nowhere.has("backend/provider-local-config-unavailable.txt"));
    let with_key = lab.house.root().join("with-key");
    fs::write(&with_key, "http://user:hidden-in-the-url@127.0.0.1:9/v1\n").unwrap();
    let bad = run(&["--base-url-file", with_key.to_str().unwrap()]);
    assert_eq!(bad.codes(), ["provider_local_config_unavailable"]);
    assert_eq!(bad.anywhere("hidden-in-the-url"), Vec::<String>::new());
    let mut model = crate::fixtures::pi_lab::model();
    model["credential_source_class"] = json!("env:NOT_SET_ANYWHERE");
    lab.record("model", &model);
    let keyless = run(&["--base-url-file", &url]);
    assert!(
        keyless.has_code("provider_auth_unavailable"),
        "{:?}",
        keyless.codes()
    );
    assert!(keyless.has("backend/provider-auth-unavailable.txt"));
}

#[test]
fn after_a_good_probe_the_provider_is_gone_whatever_pi_says() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    for (name, turn) in FAILURES {
        let bundle = lab.play(&format!("{PROBE}[[turn]]\n{turn}\n"), &[]);
        assert_eq!(
            bundle.codes(),
            ["provider_unavailable"],
            "{name}: {:?}",
            bundle.report()["blockers"]
        );
        assert_eq!(bundle.status(), "blocked", "{name}");
        assert_eq!(
            bundle.report()["failure_reason"],
            "provider unavailable",
            "{name}"
        );
        assert_eq!(
            bundle.report()["backend_exit_code"],
            0,
            "{name}: Pi ends with 0 all the same"
        );
        assert_good(&bundle);
    }
}

#[test]
fn a_provider_that_goes_away_in_the_middle() {
    let Some(program) = pi() else { return };
    let lab = Lab::new(&program, &quick());
    // Right, and verified; then the provider fails: blocked all the same.
    let late = lab.play(&format!("{PROBE}{}[[turn]]\nstatus = 503\n", edit()), &[]);
    assert_eq!(
        (late.codes(), late.status()),
        (
            vec!["provider_unavailable".to_owned()],
            "blocked".to_owned()
        )
    );
    assert_eq!(late.report()["tests_passed"], true);
    // Nobody listens any more once the probe was answered.
    let model = lab.model(&format!("{PROBE}{DONE}"));
    let answered = || {
        lab.house
            .run_dirs()
            .iter()
            .filter(|dir| dir.join("backend/model-probe.json").is_file())
            .count()
    };
    let before = answered();
    let (probed, bundle) = std::thread::scope(|scope| {
        let run = scope.spawn(|| lab.run_on(&model.url_file));
        let probed = wait_until(|| answered() > before);
        model.end();
        (probed, run.join().unwrap())
    });
    assert!(probed, "the probe was never answered");
    assert_eq!(
        bundle.codes(),
        ["provider_unavailable"],
        "{:?}",
        bundle.report()["blockers"]
    );
    assert_eq!(bundle.report()["process_started"], true);
    assert_good(&bundle);
}
