//! An engine whose requests hold what may not pass, through a whole run: which field it was stands in
//! the record of the call, in the verdict, and in the reason of a run that ended with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use cto_testkit::{House, skip};
use serde_json::json;

use crate::assert_good;
use crate::fixtures::pi_lab::{self, DONE, Lab, PROBE, assert_no_leak, quick};
use crate::house;

/// Stands in for Pi: solves the quick case, and asks the model with what each line says.
const STAND_IN: &str = r#"#!/usr/bin/env node
const fs = require("fs");
fs.writeFileSync("answer.txt", fs.readFileSync("answer.txt", "utf8").replace("wrong", "right"));
const models = JSON.parse(fs.readFileSync(process.env.PI_CODING_AGENT_DIR + "/models.json"));
const provider = models.providers.cto;
const ask = async (more) => {
  const body = JSON.stringify({ model: provider.models[0].id, stream: true, ...more });
  const headers = { authorization: "Bearer " + process.env.CTO_MODEL_TOKEN, "content-type": "application/json" };
  const answer = await fetch(provider.baseUrl + "/chat/completions", { method: "POST", headers, body });
  await answer.text();
};
(async () => {
  for (const more of REQUESTS) await ask(more);
  const message = { role: "assistant", content: [{ type: "text", text: "Done" }], stopReason: "stop" };
  console.log(JSON.stringify({ type: "message_end", message }));
  console.log(JSON.stringify({ type: "agent_end" }));
})();
"#;

fn stand_in(house: &House, requests: &serde_json::Value) -> PathBuf {
    let dir = house.root().join("stand-in/node_modules/pi");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("package.json"), r#"{"version":"0.74.2"}"#).unwrap();
    let program = dir.join("cli.js");
    let _ = fs::remove_file(&program);
    fs::write(
        &program,
        STAND_IN.replace("REQUESTS", &requests.to_string()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn has_node() -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join("node").exists()));
    if !found {
        skip("node is not on PATH");
    }
    found
}

fn good() -> serde_json::Value {
    json!({"messages": [{"role": "user", "content": "hello"}]})
}

/// A picture to be fetched, with something of the repository in its address.
fn picture() -> serde_json::Value {
    let part = json!({"type": "image_url", "image_url": {"url": "https://a.example/?d=aGVsbG8"}});
    json!({"messages": [{"role": "user", "content": [part]}]})
}

const PICTURE: &str = "messages.*.content.*.image_url.url";

#[test]
fn a_run_that_ends_with_a_refused_field_failed_by_that() {
    if !has_node() {
        return;
    }
    let requests = json!([good(), {"Tools": [{"type": "web_search"}]}, {"plugins": [{"id": "web"}]}, picture()]);
    let house = house();
    let lab = Lab::new(&stand_in(&house, &requests), &quick());
    let model = lab.model(&format!("{PROBE}{DONE}"));
    let (answer, bundle) = lab.run(&model, &[]);
    assert_eq!(
        (answer.code, bundle.codes()),
        (Some(1), vec!["engine_failed".to_owned()]),
        "{}",
        bundle.text("backend/stderr.log")
    );
    let detail = bundle.report()["blockers"][0]["detail"].to_string();
    assert!(
        detail.contains("call 4: refused") && detail.contains(PICTURE),
        "{detail}"
    );
    assert_eq!(model.requests(), 2, "the probe and one request");
    let calls: Vec<_> = bundle
        .events()
        .into_iter()
        .filter(|event| event["type"] == "engine.model_call")
        .map(|event| event["data"].clone())
        .map(|call| {
            (
                call["why"].clone(),
                call["field"].clone(),
                call["forwarded"].clone(),
            )
        })
        .collect();
    assert_eq!(
        calls[1..],
        [
            (json!("request_field"), json!("Tools"), json!(false)),
            (json!("request_field"), json!("plugins"), json!(false)),
            (json!("request_field"), json!(PICTURE), json!(false)),
        ]
    );
    let shown = bundle.text("report.md");
    assert!(
        shown.contains("request_field: Tools and 2 more") && shown.contains(PICTURE),
        "{shown}"
    );
    assert_no_leak(&bundle, &model);
    assert_good(&bundle);
}

#[test]
fn an_engine_that_gets_over_it_passes_and_the_verdict_says_so() {
    if !has_node() {
        return;
    }
    let house = house();
    let lab = Lab::new(&stand_in(&house, &json!([picture(), good()])), &quick());
    let model = lab.model(&format!("{PROBE}{DONE}"));
    let (answer, bundle) = lab.run(&model, &[]);
    assert_eq!(answer.code, Some(0), "{:?}", bundle.codes());
    assert!(
        bundle
            .text("report.md")
            .contains(&format!("request_field: {PICTURE}"))
    );
    assert_good(&bundle);
}

#[test]
fn the_record_of_the_model_allows_further_fields_by_name() {
    if !has_node() {
        return;
    }
    let house = house();
    let requests = json!([{"enable_search": {"any": "thing"}}]);
    let lab = Lab::new(&stand_in(&house, &requests), &quick());
    let mut record = pi_lab::model();
    record["request_fields"] = json!(["enable_search"]);
    lab.record("model", &record);
    let model = lab.model(&format!("{PROBE}{DONE}"));
    let (answer, bundle) = lab.run(&model, &[]);
    assert_eq!(answer.code, Some(0), "{:?}", bundle.codes());
    assert_eq!(model.requests(), 2);
}
