//! The adapter of a provider: everything that must keep a gated engine from its model, and
//! everything that must not. Each check is a run of its own, of a double that ships in this binary,
//! in a state of its own.
//!
//! - this file: what comes before an engine, and a plain agent; `on_wire.rs` what passes between it and its model;
//!   `phases.rs` an engine that works in phases; `lab.rs` the place

mod lab;
mod on_wire;
mod phases;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use cto_core::bundle;
use cto_core::gate::ladder::RefusedRun;
use cto_core::task::contract::Stage;
use cto_core::values::blocker::Code;
use cto_core::values::verdict::Status;
use serde_json::{Value, json};

use lab::{Lab, decision, document, model, told, turn};

use super::{Bench, Validation};
use crate::host::failure::Failure;
use crate::task::lane::LaneOptions;
use crate::task::request::ProofOrder;

/// The model's answer when it is first asked.
const PROBE: &str = "[probe]\ntext = \"ready\"\n";
const FIX: &str = "import re\n\n\ndef slugify(text):\n    return re.sub(r\"[^a-z0-9]+\", \"-\", text.lower()).strip(\"-\")\n";

/// What is checked, in the order it is reported.
const CHECKS: [&str; 39] = [
    "model_provider_gate_blocks",
    "unadmitted_pair_blocks",
    "mismatch_blocks",
    "invalid_admission_blocks",
    "decision_missing_blocks",
    "not_decided_blocks",
    "external_blocked_when_local_required",
    "external_approved_needs_all_fields",
    "class_status_mismatch_blocks",
    "credentials_missing_blocks",
    "local_config_missing_blocks",
    "reasoning_only_blocks",
    "delayed_content_allows",
    "fallback_model_refused_on_wire",
    "ways_out_refused_on_wire",
    "credential_cut_on_wire",
    "public_address_passes_on_wire",
    "wrong_digest_blocks",
    "missing_binary_blocks",
    "non_executable_blocks",
    "shell_keyword_is_not_a_provider",
    "provider_timeout_fail_closed",
    "surviving_children_ended",
    "codex_auth_gap_blocks",
    "local_provider_delayed_content_allows_case",
    "qwen_local_openai_compat_allows_case",
    "lifecycle_supervision_accepts_committed_diff",
    "lifecycle_ignores_existing_history",
    "transport_vs_protocol_distinguished",
    "exit_zero_failure_detected",
    "no_commit_false_success_detected",
    "completed_with_critical_findings_rejected",
    "hard_rubric_failure_rejected",
    "config_without_models_default_blocks",
    "absent_provider_evidence_fails",
    "no_raw_prompt_in_argv",
    "cwd_is_not_the_repository",
    "truncated_envelope_is_protocol_failure",
    "no_secret_or_endpoint_in_any_artifact",
];

pub fn validate(bench: &mut Bench<'_>) -> Result<Validation, Failure> {
    if bench.engine.is_some() {
        return Err(Failure::usage(
            "no_engine_here",
            "this validator runs a double; it proves nothing about a real engine",
        )
        .so("nothing ran")
        .hint("leave out --engine"));
    }
    let mut lab = Lab::open(bench)?;
    lab.records_block()?;
    lab.files_block()?;
    lab.preflight_blocks()?;
    lab.prove_stage_one()?;
    lab.runs()?;
    lab.in_phases()?;
    lab.nothing_leaked()?;
    let mut validation = lab.validation;
    let place = |name: &str| CHECKS.iter().position(|known| *known == name);
    validation.checked.sort_by_key(|check| place(&check.name));
    if validation.checked.len() != CHECKS.len() {
        validation.errors.push("not everything was checked".into());
    }
    Ok(validation.done())
}

impl Lab<'_, '_> {
    /// Nothing runs without a model that is admitted, and a decision that allows it.
    fn records_block(&mut self) -> Result<(), Failure> {
        let good = self.good.clone();
        let url = Some(self.model(PROBE)?);
        let with = |change: &dyn Fn(&mut LaneOptions)| {
            let mut asked = LaneOptions {
                base_url_file: url.clone(),
                ..good.clone()
            };
            change(&mut asked);
            asked
        };
        let nothing = LaneOptions {
            base_url_file: url.clone(),
            ..LaneOptions::default()
        };
        self.blocks(
            "model_provider_gate_blocks",
            Code::ModelNotAdmitted,
            "missing_admission",
            nothing,
        )?;
        let mut admissions = Vec::new();
        for (name, field, value) in [
            ("not-admitted", "status", json!("not_admitted")),
            ("invalid", "approval_source", Value::Null),
            ("another", "provider", json!("another")),
        ] {
            let mut record = model();
            record[field] = value;
            admissions.push(self.record(name, &record)?);
        }
        let admission = |at: usize| {
            let file = admissions[at].clone();
            with(&|asked| asked.model_admission = Some(file.clone()))
        };
        self.blocks(
            "unadmitted_pair_blocks",
            Code::ModelNotAdmitted,
            "not_admitted",
            admission(0),
        )?;
        let asks_another = with(&|asked| asked.model = Some("Scripted".into()));
        self.blocks(
            "mismatch_blocks",
            Code::ModelNotAdmitted,
            "mismatch",
            asks_another,
        )?;
        self.blocks(
            "invalid_admission_blocks",
            Code::ModelNotAdmitted,
            "invalid_admission",
            admission(1),
        )?;
        let another = admission(2);
        self.decisions_block(&url, another)
    }

    fn decisions_block(
        &mut self,
        url: &Option<PathBuf>,
        another: LaneOptions,
    ) -> Result<(), Failure> {
        let good = self.good.clone();
        let mut decisions = Vec::new();
        for (name, status, class, whole) in [
            ("undecided", "not_decided", "local_case_compatible", true),
            (
                "partial",
                "external_provider_approved",
                "external_anthropic",
                false,
            ),
            (
                "disagreeing",
                "external_provider_approved",
                "local_case_compatible",
                true,
            ),
        ] {
            let mut record = decision();
            (record["decision_status"], record["provider_class"]) = (status.into(), class.into());
            if !whole && let Some(fields) = record.as_object_mut() {
                fields.remove("effect");
            }
            decisions.push(self.record(name, &record)?);
        }
        let decided = |file: PathBuf| LaneOptions {
            base_url_file: url.clone(),
            decision: Some(file),
            ..good.clone()
        };
        let code = Code::ProviderDecisionClosed;
        let nowhere = self.bench.root.join("no-such-record.json");
        self.blocks(
            "decision_missing_blocks",
            code,
            "no decision record",
            decided(nowhere),
        )?;
        self.blocks(
            "not_decided_blocks",
            code,
            "not_decided",
            decided(decisions[0].clone()),
        )?;
        self.blocks(
            "external_blocked_when_local_required",
            code,
            "local_provider_required",
            another,
        )?;
        self.blocks(
            "external_approved_needs_all_fields",
            code,
            "effect",
            decided(decisions[1].clone()),
        )?;
        self.blocks(
            "class_status_mismatch_blocks",
            code,
            "does not agree",
            decided(decisions[2].clone()),
        )
    }

    fn files_block(&mut self) -> Result<(), Failure> {
        let url = Some(self.model(PROBE)?);
        let with = |lab: &Self, record: Option<PathBuf>, bin: Option<PathBuf>| LaneOptions {
            base_url_file: url.clone(),
            executable_admission: record.or_else(|| lab.good.executable_admission.clone()),
            bin,
            ..lab.good.clone()
        };
        let code = Code::ExecutableNotAdmitted;
        let plain = self.write("program", b"#!/bin/sh\n")?;
        let admitted = self.executable(&plain)?;
        let not_executable = self.record("not-executable", &admitted)?;
        let mut other = admitted.clone();
        other["sha256"] = "0".repeat(64).into();
        let other = self.record("other-digest", &other)?;
        let mut gone = admitted.clone();
        gone["path"] = self.bench.root.join("gone").display().to_string().into();
        let gone = self.record("gone", &gone)?;
        let asked = with(self, Some(not_executable), None);
        self.blocks("non_executable_blocks", code, "may not be executed", asked)?;
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o700)).map_err(|error| {
            Failure::internal("no_fixture", "a fixture cannot be changed").because(&error)
        })?;
        let asked = with(self, Some(other), None);
        self.blocks("wrong_digest_blocks", code, "another digest", asked)?;
        let asked = with(self, Some(gone), None);
        self.blocks(
            "missing_binary_blocks",
            Code::ProviderUnavailable,
            "no longer at its path",
            asked,
        )?;
        let asked = with(self, None, Some("case".into()));
        self.blocks(
            "shell_keyword_is_not_a_provider",
            code,
            "not an absolute path",
            asked,
        )
    }

    fn preflight_blocks(&mut self) -> Result<(), Failure> {
        let url = Some(self.model(PROBE)?);
        let missing = format!("file:{}", self.bench.root.join("no-such-key").display());
        let keyless = LaneOptions {
            base_url_file: url,
            credential: Some(missing),
            ..self.good.clone()
        };
        self.blocks(
            "credentials_missing_blocks",
            Code::ProviderAuthUnavailable,
            "",
            keyless,
        )?;
        let nowhere = LaneOptions {
            base_url_file: None,
            ..self.good.clone()
        };
        self.blocks(
            "local_config_missing_blocks",
            Code::ProviderLocalConfigUnavailable,
            "",
            nowhere,
        )
    }

    /// The proof of stage 1, for runs of this validator and for nobody else.
    pub(super) fn prove_stage_one(&mut self) -> Result<(), Failure> {
        self.prove_stage_one_of(&self.good.clone())
    }

    /// The same of the lane with these records: another model is another lane.
    pub(super) fn prove_stage_one_of(&mut self, lane: &LaneOptions) -> Result<(), Failure> {
        let closed = self.request(lane.clone(), Stage::One).opened(false);
        let refused = self.bench.run(&closed)?;
        let refused = RefusedRun {
            run_id: refused.report.run_id.clone(),
            sums_sha256: refused.sums_sha256,
            blocker: Code::EngineGateClosed,
        };
        let opened = self
            .request(lane.clone(), Stage::One)
            .proving(Some(ProofOrder::Stage1 { refused }));
        self.bench.run(&opened)?;
        Ok(())
    }

    fn runs(&mut self) -> Result<(), Failure> {
        let url = self.model("[probe]\nreasoning = \"let me think about that\"\n")?;
        let thinking = LaneOptions {
            base_url_file: Some(url),
            ..self.good.clone()
        };
        let code = Code::ProviderResponseShapeUnavailable;
        self.blocks("reasoning_only_blocks", code, "", thinking)?;

        let write = turn("write", &json!({"path": "strings.py", "content": FIX}));
        let done = "[[turn]]\ntext = \"Done.\"\n";
        let slow = format!(
            "[probe]\nreasoning = \"{}\"\ntext = \"ready\"\nlatency_ms = 5\n{write}{done}",
            "hm ".repeat(60)
        );
        let sealed = self.plays(&slow)?;
        self.validation.check(
            "delayed_content_allows",
            sealed.report.status == Status::Pass,
            || told(&sealed),
        );

        self.on_wire(&format!("{write}{done}"))?;

        let sealed = self.plays(&format!(
            "{PROBE}[[turn]]\ntext = \"one two three four five\"\nsilent_after = 1\n"
        ))?;
        let closed = sealed.report.status == Status::Blocked
            && sealed
                .report
                .blockers
                .iter()
                .any(|b| matches!(b.code, Code::ProviderUnavailable | Code::Timeout));
        self.validation
            .check("provider_timeout_fail_closed", closed, || told(&sealed));

        let leave = turn(
            "bash",
            &json!({"command": "setsid sleep 600 >/dev/null 2>&1 & echo begun"}),
        );
        let sealed = self.plays(&format!("{PROBE}{write}{leave}{done}"))?;
        let containment: Value = document(&sealed, bundle::CONTAINMENT);
        let engine = containment["processes"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|row| row["process"] == "engine")
            .cloned();
        let ended = engine
            .is_some_and(|row| row["survivors"] == 0 && row["ended_with_it"].as_u64() >= Some(1));
        let held = ended && sealed.report.status == Status::Pass;
        self.validation
            .check("surviving_children_ended", held, || told(&sealed));
        Ok(())
    }

    /// Every byte of every bundle this validator made.
    fn nothing_leaked(&mut self) -> Result<(), Failure> {
        let unreadable = |error| {
            Failure::internal("unreadable_bundle", "a bundle cannot be read").because(&error)
        };
        let mut pending = vec![self.bench.home.runs.clone()];
        let mut found = Vec::new();
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                if path.is_dir() {
                    pending.push(path);
                    continue;
                }
                let bytes = fs::read(&path).map_err(unreadable)?;
                let holds =
                    |needle: &String| memchr::memmem::find(&bytes, needle.as_bytes()).is_some();
                if holds(&self.credential) || self.authorities.iter().any(holds) {
                    found.push(path.file_name().unwrap_or_default().display().to_string());
                }
            }
        }
        let clean = found.is_empty() && !self.authorities.is_empty();
        self.validation
            .check("no_secret_or_endpoint_in_any_artifact", clean, || {
                format!("found in {}", found.join(", "))
            });
        Ok(())
    }
}
