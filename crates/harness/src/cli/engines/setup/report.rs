//! What a setup says at its end: what was written, what is proven, and the one next command.

use std::path::Path;

use cto_core::engine::manifest::Manifest;
use cto_core::gate::{Binary, LaneFacts};
use cto_core::operator::setup::Stale;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::engines::validate::answer_with;
use crate::host::failure::Failure;
use crate::proof::validate::{self, Validation};
use crate::records::Written;
use crate::screen::output::tame;

pub struct Report<'a> {
    pub stale: &'a [Stale],
    pub written: &'a [Written],
    /// As everything is now.
    pub lane: &'a LaneFacts,
    /// The file that holds the base URL, where it was asked for.
    pub url_file: Option<&'a Path>,
    pub questions: usize,
    pub stage1: &'a Validation,
    pub stage2: &'a Validation,
}

impl Report<'_> {
    pub fn print(&self, context: &Context, manifest: &Manifest) -> Result<u8, Failure> {
        let remains = self.remains(context, manifest);
        let code = if self.stage1.ok && self.stage2.ok {
            0
        } else {
            3
        };
        if context.output.json {
            let stale: Vec<Value> = self
                .stale
                .iter()
                .map(|stale| json!({"part": stale.part.title(), "why": stale.why}))
                .collect();
            let records: Vec<String> = self
                .written
                .iter()
                .map(|written| written.path.display().to_string())
                .collect();
            let url_file = self.url_file.map(|file| file.display().to_string());
            context.output.document(&json!({
                "schema_version": 1, "command": "setup", "engine": manifest.id, "stale": stale, "records": records,
                "executable": executable(self.lane), "model": model(self.lane), "base_url_file": url_file,
                "questions": self.questions, "stage1": self.stage1, "stage2": self.stage2, "remains": remains,
                "exit_code": code,
            }))?;
            return Ok(code);
        }
        for (name, validation) in [("stage1", self.stage1), ("stage2", self.stage2)] {
            context.output.line(&format!("\n{name}"));
            answer_with(context, validate::find(name)?, validation)?;
        }
        let title = if code == 0 {
            "\nnext"
        } else {
            "\nwhat remains"
        };
        context.output.line(title);
        for line in &remains {
            context.output.hanging("  - ", &tame(line));
        }
        Ok(code)
    }

    /// What a person does next, in order.
    fn remains(&self, context: &Context, manifest: &Manifest) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for validation in [self.stage1, self.stage2] {
            for error in validation.errors.iter().filter(|_| !validation.ok) {
                if !lines.contains(error) {
                    lines.push(error.clone());
                }
            }
        }
        if !lines.is_empty() {
            let again = context.output.command(&format!("setup {}", manifest.id));
            lines.push(format!("then prove what is not proven: {again}"));
            return lines;
        }
        if !self.lane.source_admitted() {
            lines.push(format!(
                "the source is not admitted, and a try needs it: {}",
                context
                    .output
                    .command(&format!("admit source show --engine {}", manifest.id))
            ));
        }
        lines.push(next(context, manifest));
        lines
    }
}

fn next(context: &Context, manifest: &Manifest) -> String {
    context
        .output
        .command(&format!("try --engine {} --task \"…\"", manifest.id))
}

fn executable(lane: &LaneFacts) -> Value {
    let version = lane.executable.known().map(|record| &record.version);
    match &lane.binary {
        Binary::Found { path, sha256, .. } => {
            json!({"path": path, "sha256": sha256, "version": version})
        }
        _ => Value::Null,
    }
}

/// The endpoint by its class and digest; its address is nobody's.
fn model(lane: &LaneFacts) -> Value {
    match lane.model.known() {
        None => Value::Null,
        Some(model) => json!({
            "provider": model.provider, "model": model.model, "aliases": model.aliases.clone().unwrap_or_default(),
            "endpoint_class": model.allowed_network_class, "endpoint_sha256": model.endpoint_sha256,
            "protocol": model.protocol,
        }),
    }
}

/// Everything holds: nothing is asked, written or run.
pub fn nothing_to_do(
    context: &Context,
    manifest: &Manifest,
    lane: &LaneFacts,
) -> Result<u8, Failure> {
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": "setup", "engine": manifest.id, "stale": [], "records": [],
            "executable": executable(lane), "model": model(lane), "base_url_file": null, "questions": 0,
            "stage1": null, "stage2": null, "remains": [next(context, manifest)], "exit_code": 0,
        }))?;
        return Ok(0);
    }
    context
        .output
        .line("Everything holds: records, program, endpoint, and the proofs of stages 1 and 2.");
    context.output.line("\nnext");
    context.output.hanging("  - ", &next(context, manifest));
    Ok(0)
}
