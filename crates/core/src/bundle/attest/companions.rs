//! The same facts in two public formats: SLSA provenance v1 and in-toto test-result v0.1.
//!
//! They add nothing to `attestation.json`, which binds their bytes; they let a tool that knows
//! those formats read who made a change and how its tests ended.

use serde_json::{Value, json};

use super::Sealed;
use super::key::PublicKey;
use super::statement::{STATEMENT_TYPE, Statement, Subject, result_subjects};
use crate::bundle;
use crate::bundle::report::VerificationLine;
use crate::run::belief::Belief;
use crate::run::event::CheckKind;
use crate::values::maybe_known::MaybeKnown;

pub const PROVENANCE: &str = "attestations/provenance.json";
pub const TEST_RESULT: &str = "attestations/test-result.json";
const PROVENANCE_TYPE: &str = "https://slsa.dev/provenance/v1";
const TEST_RESULT_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";
const BUILD_TYPE: &str = "urn:cto-harness:run:v1";

/// Both companions by file name, as they are signed.
pub fn statements(
    sealed: &Sealed<'_>,
    signer: &PublicKey,
) -> [(&'static str, Statement<Value>); 2] {
    let about = |predicate_type: &str, predicate| Statement {
        kind: STATEMENT_TYPE.to_owned(),
        subject: change(sealed),
        predicate_type: predicate_type.to_owned(),
        predicate,
    };
    [
        (
            PROVENANCE,
            about(PROVENANCE_TYPE, provenance(sealed, signer)),
        ),
        (TEST_RESULT, about(TEST_RESULT_TYPE, test_result(sealed))),
    ]
}

/// What a run makes: a change, as a patch and as a tree.
fn change(sealed: &Sealed<'_>) -> Vec<Subject> {
    files(sealed, &[bundle::PATCH])
        .chain(result_subjects(sealed.report))
        .collect()
}

fn files<'a>(sealed: &'a Sealed<'_>, names: &'a [&str]) -> impl Iterator<Item = Subject> + 'a {
    names.iter().filter_map(|name| {
        sealed
            .sums
            .get(*name)
            .map(|digest| Subject::file(name, *digest))
    })
}

fn provenance(sealed: &Sealed<'_>, signer: &PublicKey) -> Value {
    let report = sealed.report;
    let mut inputs: Vec<Subject> = files(sealed, &[bundle::CONTRACT]).collect();
    if let MaybeKnown::Known(executable) = report.engine.executable_sha256 {
        inputs.push(Subject::file(
            &format!("engine {}", report.backend),
            executable,
        ));
    }
    inputs.extend(
        report
            .toolchains
            .iter()
            .map(|tool| Subject::file(&format!("toolchain {}", tool.name), tool.sha256)),
    );
    let byproducts: Vec<Subject> =
        files(sealed, &[bundle::EVENTS, bundle::TEST_LOG, bundle::REPORT]).collect();
    json!({
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "case_id": report.case_id,
                "engine": report.backend,
                "stage": report.stage.number(),
                "contract_digest": report.contract_digest,
            },
            "internalParameters": {"task_digest": report.task_digest, "containment": report.containment},
            "resolvedDependencies": inputs,
        },
        "runDetails": {
            "builder": {
                "id": format!("urn:cto-harness:builder:{}", signer.id()),
                "version": {"cto": report.harness_version},
            },
            "metadata": {
                "invocationId": report.run_id,
                "startedOn": report.run_started_at,
                "finishedOn": report.run_finished_at,
            },
            "byproducts": byproducts,
        },
    })
}

/// Checks that did not run, or whose control was not red, have not passed. Those that are believed in part
/// alone, or not at all, are a warning: the format has no word that says less than passed.
fn test_result(sealed: &Sealed<'_>) -> Value {
    let report = sealed.report;
    let doubtful = |line: &VerificationLine| {
        let belief = line.belief.unwrap_or(Belief::Proven);
        line.passed && belief != Belief::Proven
    };
    let named = |wanted: &dyn Fn(&VerificationLine) -> bool| {
        let lines = report.verification.iter().filter(|line| wanted(line));
        lines
            .map(|line| match line.kind {
                CheckKind::Visible => line.command.clone(),
                CheckKind::Hidden => format!("hidden: {}", line.command),
            })
            .collect::<Vec<String>>()
    };
    let word = report.belief.as_ref().map(|belief| belief.word);
    let result = match (report.tests_passed, word) {
        (Some(true), None | Some(Belief::Proven)) => "PASSED",
        (Some(true), Some(Belief::Partly | Belief::None)) => "WARNED",
        _ => "FAILED",
    };
    let mut predicate = json!({
        "result": result,
        "configuration": files(sealed, &[bundle::CONTRACT]).collect::<Vec<_>>(),
        "passedTests": named(&|line| line.passed && !doubtful(line)),
        "warnedTests": named(&doubtful),
        "failedTests": named(&|line| !line.passed),
    });
    if let Some(word) = word {
        predicate["belief"] = json!(word);
    }
    predicate
}
