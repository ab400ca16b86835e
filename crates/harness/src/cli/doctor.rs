//! `cto doctor`: what this host can contain, what is missing, and the exact fix.

use anstyle::AnsiColor;
use cto_core::advice;
use serde_json::json;

use super::Context;
use super::output::{dim, tame};
use crate::doctor;
use crate::failure::Failure;
use crate::jail::{self, probe};
use crate::toolchains::{self, Resolved};

#[derive(clap::Args)]
pub struct Args {}

pub fn run(context: &Context, _: &Args) -> Result<u8, Failure> {
    let home = context.home()?;
    let probe = probe::probe();
    let signs = doctor::look(&probe);
    let advice = advice::advise(&signs);
    let programs: Vec<(&str, Resolved)> =
        doctor::PROGRAMS.iter().map(|name| (*name, toolchains::resolve(name, &context.env, &home))).collect();
    let unused: Vec<&str> = doctor::UNUSED_VARIABLES.into_iter().filter(|name| context.env.get(name).is_some()).collect();
    let stages =
        if probe.works() { "all, as their proofs allow" } else { "only fake playing its own script at stage 2, uncontained" };
    let code = if probe.works() { 0 } else { 3 };
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "doctor",
            "containment": if probe.works() { "contained" } else { "unavailable" },
            "as_root": jail::is_root(),
            "kernel": signs.kernel,
            "jail": probe.report,
            "missing": probe.missing,
            "advice": advice,
            "reachable_stages": stages,
            "programs": programs.iter().map(|(name, found)| json!({"program": name, "found": describe(found)})).collect::<Vec<_>>(),
            "unused_variables": unused,
            "state_home": home.root.display().to_string(),
        }))?;
        return Ok(code);
    }
    let out = |text: &str| context.output.line(text);
    let dim = dim();
    let (word, style) = match probe.works() {
        true => ("CONTAINED", AnsiColor::Green.on_default().bold()),
        false => ("NOT CONTAINED", AnsiColor::Red.on_default().bold()),
    };
    out(&format!(
        "{style}{word}{style:#}  kernel {}, as {}",
        tame(&signs.kernel),
        if jail::is_root() { "root" } else { "an ordinary user" }
    ));
    out("");
    if let Some(report) = &probe.report {
        for layer in &report.layers {
            let mark = if layer.enforced { "ok     " } else { "MISSING" };
            out(&format!("  {mark} {:<18} {dim}{} ({}){dim:#}", layer.layer.as_str(), layer.layer.what(), tame(&layer.detail)));
        }
        for canary in &report.canaries {
            let mark = if canary.refused { "ok     " } else { "MISSING" };
            out(&format!("  {mark} {:<18} {dim}canary: {}{dim:#}", canary.canary.as_str(), tame(&canary.detail)));
        }
    } else {
        probe.missing.iter().for_each(|missing| out(&format!("  MISSING {}", tame(missing))));
    }
    out("");
    for (name, found) in &programs {
        out(&format!("  {dim}{name:<9}{dim:#} {}", tame(&describe(found))));
    }
    out(&format!("  {dim}state    {dim:#} {}", home.root.display()));
    out(&format!("  {dim}stages   {dim:#} {stages}"));
    for name in unused {
        out(&format!("  {dim}note     {dim:#} {name} is set and has no effect here"));
    }
    for advice in advice {
        out(&format!("\nproblem: {}\nfix:     {}", advice.problem, advice.fix));
    }
    Ok(code)
}

fn describe(found: &Resolved) -> String {
    match found {
        Resolved::Missing => "not found".into(),
        Resolved::System(path) => path.display().to_string(),
        Resolved::Toolchain(toolchain) => format!("{} (shown read-only in a jail)", toolchain.record.program),
        Resolved::Unusable(why) => format!("cannot be used in a jail: {why}"),
    }
}
