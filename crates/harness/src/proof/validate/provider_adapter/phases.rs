//! An engine that works in phases, commits by itself and ends with 0 whatever happened: what its words may not do, and
//! what must not keep it from its model. The double of such an engine plays; each row is what its model says.

use cto_core::bundle;
use cto_core::task::contract::{LimitChanges, Stage};
use cto_core::values::blocker::Code;
use cto_core::values::verdict::Status;
use serde_json::{Value, json};

use super::lab::{Lab, calls, decision, model, told, turn};
use super::{FIX, PROBE};
use crate::bundles::reader;
use crate::doubles;
use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::task::engines;
use crate::task::lane::LaneOptions;

/// A model that is asked for under the operator's own name for its provider.
const LOCAL: (&str, &str) = ("qwen-local", "qwen3.6-35b-a3b");

fn says(text: &str) -> String {
    format!("[[turn]]\ntext = '''{text}'''\n")
}

fn envelope(result: &Value) -> String {
    says(&format!("<<<AGENT_RESULT\n{result}\nAGENT_RESULT>>>"))
}

fn fine() -> String {
    envelope(&json!({"status": "completed", "summary": "done"}))
}

fn failed() -> String {
    envelope(&json!({"status": "failed", "error": "I could not"}))
}

/// Writes the solution, commits it, and ends.
fn implements() -> String {
    let write = turn("write", &json!({"path": "strings.py", "content": FIX}));
    let commit = "git add -A -- ':!.case/' && git commit -qm done";
    let commit = turn("bash", &json!({"command": commit}));
    [write, commit, fine()].concat()
}

fn scenario(turns: &[String]) -> String {
    format!("select = \"requests\"\n{PROBE}{}", turns.concat())
}

/// A review in which one thing is wrong, between work that is sound and a closer that runs all the same.
fn reviewed(result: &Value) -> Vec<String> {
    vec![implements(), fine(), envelope(result), fine(), fine()]
}

fn codes(sealed: &SealedBundle) -> Vec<Code> {
    let blockers = sealed.report.blockers.iter();
    blockers.map(|blocker| blocker.code).collect()
}

/// How the engine ended, as its bundle has it.
fn ended(sealed: &SealedBundle) -> Value {
    let events = reader::digested(&sealed.dir, &sealed.report, bundle::EVENTS).unwrap_or_default();
    let lines = events.split(|byte| *byte == b'\n');
    let mut events = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let ended = events.find(|event| event["type"] == "engine.ended");
    ended.map_or(Value::Null, |event| event["data"].clone())
}

impl Lab<'_, '_> {
    /// From here on the double of an engine that works in phases.
    pub fn in_phases(&mut self) -> Result<(), Failure> {
        let all = engines::all()?;
        let double = all.iter().find_map(doubles::in_place_of);
        self.manifest = double.ok_or_else(|| {
            Failure::internal("no_double", "no engine of this program has a double")
        })?;
        let own = std::env::current_exe().and_then(|own| own.canonicalize());
        let own = own.map_err(|error| {
            Failure::internal("own_program", "this program cannot find itself").because(&error)
        })?;
        let record = self.record("executable-of-phases", &self.executable(&own)?)?;
        self.good.executable_admission = Some(record);
        self.prove_stage_one()?;
        self.bridges()?;
        self.false_successes()?;
        self.no_evidence()?;
        self.stays()?;
        self.how_it_is_started()
    }

    /// Providers under another name, and one whose credential does not get through.
    fn bridges(&mut self) -> Result<(), Failure> {
        let url = Some(self.model(PROBE)?);
        let paired = |provider: &str, name: &str| {
            let (mut admitted, mut decided) = (model(), decision());
            for record in [&mut admitted, &mut decided] {
                (record["provider"], record["model"]) = (provider.into(), name.into());
            }
            (admitted, decided)
        };
        let (admitted, mut decided) = paired("openai-codex", "gpt-5.5");
        decided["decision_status"] = "external_provider_approved".into();
        decided["provider_class"] = "external_openai_codex".into();
        let asked = LaneOptions {
            base_url_file: url,
            model_admission: Some(self.record("codex-model", &admitted)?),
            decision: Some(self.record("codex-decision", &decided)?),
            ..self.good.clone()
        };
        let code = Code::ProviderAuthUnavailable;
        self.blocks("codex_auth_gap_blocks", code, "auth bridge", asked)?;

        let whole = [implements(), fine(), fine(), fine(), fine()].concat();
        let slow = format!(
            "select = \"requests\"\n[probe]\nreasoning = \"{}\"\ntext = \"ready\"\nlatency_ms = 5\n{whole}",
            "hm ".repeat(60)
        );
        let sealed = self.plays(&slow)?;
        let name = "local_provider_delayed_content_allows_case";
        self.check_status(name, &sealed, Status::Pass);

        let (admitted, decided) = paired(LOCAL.0, LOCAL.1);
        let asked = LaneOptions {
            base_url_file: Some(self.model(&scenario(&[whole]))?),
            model_admission: Some(self.record("local-model", &admitted)?),
            decision: Some(self.record("local-decision", &decided)?),
            ..self.good.clone()
        };
        self.prove_stage_one_of(&asked)?;
        let sealed = self.run(asked)?;
        let own = self.manifest.invocation.as_ref();
        let bridge = own.and_then(|own| own.model.as_ref()?.runtime_provider.clone());
        let prefix = self.manifest.flat_fields.clone().unwrap_or_default();
        let field = |ending: &str| sealed.report.flat.get(&format!("{prefix}{ending}"));
        let both = field("_model_provider") == Some(&json!(LOCAL.0))
            && field("_model") == Some(&json!(LOCAL.1))
            && field("_runtime_model_provider") == Some(&json!(bridge))
            && bridge.is_some_and(|bridge| bridge != LOCAL.0);
        let held = both && sealed.report.status == Status::Pass;
        let name = "qwen_local_openai_compat_allows_case";
        self.validation.check(name, held, || told(&sealed));
        Ok(())
    }

    /// What it claims and has not earned, each with its own blocker and no other.
    fn false_successes(&mut self) -> Result<(), Failure> {
        let unanswered = "[[turn]]\nstatus = 500\n".repeat(6);
        let cut = || says("<<<AGENT_RESULT {\"status\": \"completed\"");
        let category = json!({"category": "scope", "verdict": "fail", "hard": true});
        let critical = json!({"status": "completed", "findings": {"critical": 1}});
        let hard = json!({"status": "completed", "rubric": {"role": "reviewer", "categories": [category]}});
        let by_wire = self.plays(&scenario(&[unanswered, fine(), fine()]))?;
        let by_protocol = self.plays(&scenario(&[says("done"), says("done"), fine(), fine()]))?;
        let told_apart = codes(&by_wire) == [Code::ProviderUnavailable]
            && codes(&by_protocol) == [Code::AgentProtocolFailed]
            && by_protocol.dir.join(bundle::PROTOCOL_NOTE).is_file();
        self.validation
            .check("transport_vs_protocol_distinguished", told_apart, || {
                format!("{}; {}", told(&by_wire), told(&by_protocol))
            });
        let rows: [(&str, Vec<String>, Code); 5] = [
            (
                "exit_zero_failure_detected",
                vec![failed(), failed(), fine(), fine()],
                Code::EngineFailed,
            ),
            (
                "no_commit_false_success_detected",
                vec![fine(), fine(), fine(), fine(), fine()],
                Code::NoDiff,
            ),
            (
                "completed_with_critical_findings_rejected",
                reviewed(&critical),
                Code::ReviewerRejected,
            ),
            (
                "hard_rubric_failure_rejected",
                reviewed(&hard),
                Code::ReviewerRejected,
            ),
            (
                "truncated_envelope_is_protocol_failure",
                vec![cut(), cut(), fine(), fine()],
                Code::AgentProtocolFailed,
            ),
        ];
        for (name, turns, code) in rows {
            let sealed = self.plays(&scenario(&turns))?;
            // It ended with 0 each time, and that says nothing.
            let held = codes(&sealed) == [code] && sealed.report.backend_exit_code == Some(0);
            self.validation.check(name, held, || told(&sealed));
        }
        Ok(())
    }

    /// Without settings it would ask a model of its own choice, and it can end without having worked at all.
    fn no_evidence(&mut self) -> Result<(), Failure> {
        let sound = self.manifest.clone();
        let whole = scenario(&[implements(), fine(), fine(), fine(), fine()]);
        if let Some(own) = &mut self.manifest.invocation {
            for file in own
                .files
                .iter_mut()
                .filter(|file| file.text.contains("\"models\": {\"default\""))
            {
                file.text = r#"{"version": 1, "projects": "./projects.json"}"#.to_owned();
            }
        }
        let changed = self.manifest != sound;
        let sealed = self.plays(&whole)?;
        let asked = calls(&sealed).iter().any(|call| call["forwarded"] == true);
        let held = changed && !asked && codes(&sealed) == [Code::MissingRequiredEvent];
        let name = "config_without_models_default_blocks";
        self.validation.check(name, held, || told(&sealed));

        // A task that is said to be past everything: it skips all phases and says that it completed.
        self.manifest = sound.clone();
        if let Some(own) = &mut self.manifest.invocation {
            for file in &mut own.workspace_files {
                file.text = file
                    .text
                    .replace("\"status\": \"active\"", "\"status\": \"merged\"");
            }
        }
        let changed = self.manifest != sound;
        let sealed = self.plays(&whole)?;
        let held = changed
            && sealed.report.status == Status::Fail
            && codes(&sealed).contains(&Code::MissingRequiredEvent);
        self.validation
            .check("absent_provider_evidence_fails", held, || told(&sealed));
        self.manifest = sound;
        Ok(())
    }

    /// It stays when its pipeline has ended. One that committed is ended then; that its repository has commits from before
    /// is no work of its own.
    fn stays(&mut self) -> Result<(), Failure> {
        let write = turn("write", &json!({"path": "strings.py", "content": FIX}));
        let uncommitted = [write, fine()].concat();
        let habits = json!(["lingers", "restless"]);
        let stays = envelope(&json!({"status": "completed", "summary": "done", "double": habits}));
        for (name, work, ended_early) in [
            (
                "lifecycle_supervision_accepts_committed_diff",
                implements(),
                true,
            ),
            ("lifecycle_ignores_existing_history", uncommitted, false),
        ] {
            let scenario = scenario(&[work, fine(), fine(), fine(), stays.clone()]);
            let asked = LaneOptions {
                base_url_file: Some(self.model(&scenario)?),
                ..self.good.clone()
            };
            let limits = LimitChanges {
                engine_idle_seconds: Some(2),
                ..LimitChanges::default()
            };
            let request = self.request(asked, Stage::Two).limited(limits);
            let sealed = self.run_request(&request)?;
            let ended = ended(&sealed);
            let (before, after) = (&ended["head"]["before"], &ended["head"]["after"]);
            // There is a commit from before in any case.
            let has_history = before["commit"].is_string();
            let dismissed = ended["end"] == json!({"kind": "dismissed", "because": "lingered"});
            let marked = sealed.dir.join(bundle::LIFECYCLE_NOTE).is_file();
            let held = match ended_early {
                true => {
                    dismissed && marked && before != after && sealed.report.status == Status::Pass
                }
                false => {
                    let late = [Code::Timeout, Code::LifecycleTimeoutAfterValidPatch];
                    !dismissed && !marked && before == after && codes(&sealed) == late
                }
            };
            self.validation
                .check(name, held && has_history, || told(&sealed));
        }
        Ok(())
    }

    /// Its command line and where it stands, as a command of its own sees them.
    fn how_it_is_started(&mut self) -> Result<(), Failure> {
        let look = "tr '\\0' ' ' < /proc/$PPID/cmdline; echo; readlink /proc/$PPID/cwd";
        let look = turn("bash", &json!({"command": look}));
        let sealed = self.plays(&scenario(&[
            look,
            implements(),
            fine(),
            fine(),
            fine(),
            fine(),
        ]))?;
        let log = self.manifest.invocation.as_ref();
        let log = log.and_then(|own| own.event_log.as_ref());
        let name = log.map(|log| format!("{}/{}", bundle::BACKEND_DIR, log.artifact));
        let log = reader::digested(&sealed.dir, &sealed.report, &name.unwrap_or_default());
        let log = log.unwrap_or_default();
        let lines = log.split(|byte| *byte == b'\n');
        let seen = lines
            .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
            .find(|line| line["event"] == "tool_end");
        let seen = seen.map(|line| line["result"].as_str().unwrap_or_default().to_owned());
        let seen = seen.unwrap_or_default();
        let (words, place) = seen.split_once('\n').unwrap_or_default();
        let place = place.trim();
        let objective = self.bench.case.parsed().ok();
        let objective = objective.map(|case| case.objective).unwrap_or_default();
        let spoken = objective
            .lines()
            .map(str::trim)
            .filter(|line| line.len() > 8);
        let passed = sealed.report.status == Status::Pass;
        let silent =
            words.contains(" --task ") && !spoken.into_iter().any(|line| words.contains(line));
        self.validation
            .check("no_raw_prompt_in_argv", passed && silent, || told(&sealed));
        let elsewhere = place.starts_with('/') && place.ends_with("/cwd");
        self.validation
            .check("cwd_is_not_the_repository", passed && elsewhere, || {
                format!("it stands in {place:?}; {}", told(&sealed))
            });
        Ok(())
    }

    fn check_status(&mut self, name: &str, sealed: &SealedBundle, status: Status) {
        let held = sealed.report.status == status;
        self.validation.check(name, held, || told(sealed));
    }
}
