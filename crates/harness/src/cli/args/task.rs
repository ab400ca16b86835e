//! What shapes a contract and who works on it, as words of a command line: shared by `run`, `try`, `request`,
//! `contract` and `eligibility`.

use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use cto_core::containment::Containment;
use cto_core::engine::manifest::{DEFAULT_ENGINE, Manifest};
use cto_core::engine::profile::Profile;
use cto_core::task::contract::LimitChanges;
use cto_core::values::ids::EngineId;
use serde::{Deserialize, Serialize};

use crate::cli::Context;
use crate::cli::args::records::RecordArgs;
use crate::host::Env;
use crate::host::failure::Failure;
use crate::records::{self, targets};
use crate::task::cases::{self, Case};
use crate::task::engines;
use crate::task::request::{EngineChoice, Request};

/// Who works on it; shared with `cto try`.
#[derive(clap::Args, Clone, Serialize, Deserialize)]
pub struct LaneArgs {
    /// The engine that works on it [default: fake]
    #[arg(long)]
    engine: Option<String>,
    /// Knobs of an engine under one name: its engine, model, stage and limits (qwen-local). Program, records and the
    /// address of the model still come from you
    #[arg(long, value_name = "NAME", hide_short_help = true, conflicts_with_all = ["model_provider", "model"])]
    #[serde(default)]
    profile: Option<String>,
    /// Open a gated engine for this command
    #[arg(long, value_name = "ENGINE")]
    allow_engine: Vec<EngineId>,
    /// What `fake` plays: a script of the case (oracle, nop, cheat), a script file, or a patch file
    #[arg(long, value_name = "NAME|FILE")]
    script: Option<String>,
    /// How the engine is confined: strict, or contained (all of its copy is writable, and judged
    /// afterwards)
    #[arg(long, value_name = "HOW", default_value = "strict", value_parser = ["strict", "contained"])]
    contain: String,
    /// Seconds the engine may run
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    timeout: Option<u32>,
    /// Seconds the engine may stay silent
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    idle: Option<u32>,
    /// A program, or the directory of an installation, to show read-only where cto does not find it
    /// by itself (repeatable)
    #[arg(long, value_name = "PATH")]
    toolchain: Vec<PathBuf>,
    /// A text the engine is told beside the task (an AGENTS.md, say); none is by default
    #[arg(long, value_name = "FILE")]
    instructions: Option<PathBuf>,
    #[command(flatten)]
    records: RecordArgs,
}

/// What shapes the contract; shared with `cto contract`.
#[derive(clap::Args, Clone, Serialize, Deserialize)]
pub struct TaskArgs {
    /// The stage of the proof ladder to run at [default: 2 for fake; for others 1, and 2 once 1 is proven]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=6))]
    stage: Option<u8>,
    /// Stage 3: the record of a repository of yours; the case is run on a copy of its last commit
    #[arg(long, value_name = "FILE")]
    source: Option<PathBuf>,
    /// Stage 5: the admission of the repository that may be changed [env:
    /// CTO_HARNESS_<ENGINE>_STAGE5_TARGET_ADMISSION_FILE]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    target: Option<PathBuf>,
    /// Look for cases in this directory instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    // Last: its records have a heading of their own, and what follows would stand below it.
    #[command(flatten)]
    lane: LaneArgs,
}

impl TaskArgs {
    pub fn request(&self, context: &Context, case: &str) -> Result<Request, Failure> {
        let dir = self.cases_dir(context)?;
        self.request_for(context, cases::find(case, dir.as_deref())?)
    }

    /// Who would work on something that is no case.
    pub fn choice(&self, context: &Context) -> Result<EngineChoice, Failure> {
        self.lane.choice(context, self.stage)
    }

    pub fn request_for(&self, context: &Context, case: Case) -> Result<Request, Failure> {
        let choice = self.choice(context)?;
        let mut request = choice.request(case, &context.env, context.configured_limits())?;
        self.check_stage(&request)?;
        request.target.clone_from(&self.target);
        Ok(match &self.source {
            None => request,
            Some(file) => request.on_source(records::sources::named(file)),
        })
    }

    /// The engine, and the admission that the flag names.
    pub fn named_target(&self, context: &Context) -> Result<(Manifest, Option<PathBuf>), Failure> {
        Ok((self.choice(context)?.manifest, self.target.clone()))
    }

    /// Keeps the admission that a variable names as the flag would: a request is run again, and its result settled,
    /// with other variables.
    pub fn keep_target(&mut self, request: &Request, env: &Env) -> Result<(), Failure> {
        let flag = self.target.as_deref();
        let named = targets::named(&request.manifest, flag, request.stage, env);
        self.target = named.as_deref().map(absolute).transpose()?;
        Ok(())
    }

    /// Names files as they are found from anywhere: a request is run again from another directory.
    pub fn name_from_anywhere(&mut self) -> Result<(), Failure> {
        let lane = &mut self.lane;
        let named = [&mut self.source, &mut self.target, &mut self.cases];
        let paths = named.into_iter().chain([&mut lane.instructions]);
        let paths = paths.flatten().chain(lane.records.files());
        let paths = paths.chain(&mut lane.toolchain);
        for path in paths {
            *path = absolute(path)?;
        }
        if let Some(script) = &mut lane.script
            && Path::new(script).is_file()
        {
            *script = absolute(Path::new(script))?.display().to_string();
        }
        Ok(())
    }

    /// What belongs to one stage is refused at any other.
    fn check_stage(&self, request: &Request) -> Result<(), Failure> {
        let stage = request.stage.number();
        let misplaced = [
            ("--source", self.source.is_some(), stage == 3, 3),
            ("--target", self.target.is_some(), stage >= 5, 5),
        ];
        match misplaced.iter().find(|(_, given, fits, _)| *given && !fits) {
            None => Ok(()),
            Some((flag, _, _, wanted)) => Err(Failure::usage(
                "wrong_stage",
                format!("{flag} belongs to stage {wanted}, and this run is at stage {stage}"),
            )
            .so("nothing ran")
            .hint(format!("add --stage {wanted}, or leave {flag} out"))),
        }
    }

    pub fn cases_dir(&self, context: &Context) -> Result<Option<PathBuf>, Failure> {
        self.cases
            .clone()
            .map_or_else(|| context.configured_cases(), |dir| Ok(Some(dir)))
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| {
        Failure::usage("bad_path", "a path cannot be made absolute")
            .at(path.display().to_string())
            .because(&error)
    })
}

impl LaneArgs {
    /// The flags as names; `stage` is the flag, where there is one.
    pub fn choice(&self, context: &Context, stage: Option<u8>) -> Result<EngineChoice, Failure> {
        let profile = self.profile()?;
        let mut lane = self.records.asked(context.configured_prices()?)?;
        if let Some(profile) = &profile {
            lane.provider = Some(profile.provider.clone());
            lane.model = Some(profile.model.clone());
        }
        let of_profile = profile.as_ref().map(|profile| profile.engine.as_str());
        let engine = self.engine.as_deref().or(of_profile);
        Ok(EngineChoice {
            manifest: context.engine(engine.unwrap_or(DEFAULT_ENGINE))?,
            allowed: self.allow_engine.clone(),
            script: self.script.clone(),
            stage,
            contain: if self.contain == "contained" {
                Containment::Contained
            } else {
                Containment::Strict
            },
            limits: LimitChanges {
                engine_wall_seconds: self.timeout,
                engine_idle_seconds: self.idle,
                model_calls: self.records.model_calls(),
                model_tokens: self.records.tokens(),
                ..LimitChanges::default()
            },
            lane,
            toolchains: self.toolchain.clone(),
            instructions: self.instructions.clone(),
            profile,
        })
    }

    /// The profile that was named. It is of one engine, and of no other.
    fn profile(&self) -> Result<Option<Profile>, Failure> {
        let Some(name) = &self.profile else {
            return Ok(None);
        };
        let profile = engines::profile(name)?;
        match self.engine.as_deref() {
            Some(engine) if engine != profile.engine.as_str() => Err(Failure::usage(
                "another_engine",
                format!(
                    "the profile {name} is of {}, and --engine names {engine}",
                    profile.engine
                ),
            )
            .so("nothing ran")
            .hint("leave --engine out, or the profile")),
            _ => Ok(Some(profile)),
        }
    }
}
