//! What somebody asks of the harness. Every request is built here and nowhere else: a struct
//! literal of `Request` outside this file is a mistake.
//!
//! Nothing here knows a command line. To ask for a run, find a case, choose an engine and add what
//! differs from the defaults; `run::run` takes the result:
//!
//! ```text
//! let case = cases::find("r1-string-slugify", None)?;
//! let request = Request::case(case, engines::find("fake")?)
//!     .playing(script, false)
//!     .contained(Containment::Strict)
//!     .keeping_workspace(true);
//! let sealed = run::run(&home, &env, &request, &cancel, &mut progress)?;
//! ```
//!
//! Where an engine's stage, its script and its limits come as names somebody typed or posted,
//! fill an [`EngineChoice`]: it looks them up, asks the engine's variables, and says what is wrong
//! with them. [`Request::attempt`] is the same for somebody's own words on their own repository.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cto_core::containment::Containment;
use cto_core::engine::manifest::{DEFAULT_ENGINE, Manifest};
use cto_core::engine::profile::Profile;
use cto_core::gate::ladder::RefusedRun;
use cto_core::gate::opening::Asked;
use cto_core::records::{Recorded, TargetAdmission};
use cto_core::run::event::Origin;
use cto_core::task::again::REVERIFY;
use cto_core::task::case_file::{CaseFile, ContractIssue};
use cto_core::task::contract::{Label, LimitChanges, Reasons, Stage};
use cto_core::task::source::{Source, SourceClass, SourceRecord};
use cto_core::values::ids::{EngineId, RunId};
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::paths::TreePath;

use crate::host::Env;
use crate::host::failure::Failure;
use crate::task::again::First;
use crate::task::attempt::Attempt;
use crate::task::cases::Case;
use crate::task::engines;
use crate::task::instructions;
use crate::task::lane::{self, LaneOptions};
use crate::task::script;

/// One run, as it is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    pub case: Case,
    pub manifest: Manifest,
    pub stage: Stage,
    /// Nobody named the stage: the plan takes the second where the first is proven.
    pub stage_by_default: bool,
    /// What is said of a gated engine's gate.
    pub gate: Asked,
    /// The script a scripted engine plays.
    pub script: Option<Vec<u8>>,
    /// The script ships with the case.
    pub own_script: bool,
    pub limits: LimitChanges,
    /// Looked at for gated engines alone.
    pub lane: LaneOptions,
    /// A proof to leave in the bundle, where the run shows what it must.
    pub proof: Option<ProofOrder>,
    /// The containment asked for: strict, or contained.
    pub contain: Containment,
    pub origin: Origin,
    pub label: Label,
    /// The repository to copy, where the case brings no files of its own.
    pub source: Option<SourceRequest>,
    /// Why the repository that was named must not be copied.
    pub source_refused: Option<String>,
    /// The request whose approval the run uses.
    pub request_id: Option<RunId>,
    /// The admission of the repository that may be changed, by its file.
    pub target: Option<PathBuf>,
    /// The same as it was read; set by planning alone.
    pub admitted: Option<Box<Recorded<TargetAdmission>>>,
    /// Which of the operator's environments come along; none where nobody asked.
    pub environments: Option<EnvironmentChoice>,
    /// Places of the host to show beside the programs that are found, absolute.
    pub toolchains: Vec<PathBuf>,
    /// Variables every process of the run sees.
    pub variables: BTreeMap<String, String>,
    /// Leave the workspace of a run that did not pass.
    pub keep: bool,
    /// How many of its checks may run at a time.
    pub jobs: usize,
    /// Visible checks may trace their own processes.
    pub trace: bool,
    /// The baseline is run although it may be known.
    pub fresh_baseline: bool,
    /// What is said ahead about how far its checks must be believed.
    pub reasons: Reasons,
    /// Every changed file is tried alone, however long that takes.
    pub see_all: bool,
    /// What the engine is told beside the task, in place of what its case has for it.
    pub instructions: Option<Vec<u8>>,
    /// The patch of an earlier run: no engine works, and that patch is judged.
    pub again: Option<First>,
    /// The checks and their control are run although nothing changed. That is never a pass.
    pub untouched: bool,
    /// At stage 2 a gated engine's run is compared with `fake` on the same case. Only a validator's row,
    /// which says itself what must come of it, is not; then it proves nothing.
    pub compared: bool,
}

/// What the operator says about environments of the work tree.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentChoice {
    /// None but those that are named.
    pub cold: bool,
    /// Not these.
    pub without: Vec<TreePath>,
}

impl Request {
    /// A case and who works on it: at the engine's default stage, strictly contained, asked for by
    /// the operator; a gated engine stays closed.
    pub fn case(case: Case, manifest: Manifest) -> Self {
        Self {
            case,
            stage: manifest.default_stage,
            manifest,
            stage_by_default: false,
            gate: Asked::Validator { open: false },
            script: None,
            own_script: false,
            limits: LimitChanges::default(),
            lane: LaneOptions::default(),
            proof: None,
            contain: Containment::Strict,
            origin: Origin::Operator,
            label: Label::Case,
            source: None,
            source_refused: None,
            request_id: None,
            target: None,
            admitted: None,
            environments: None,
            toolchains: Vec::new(),
            variables: BTreeMap::new(),
            keep: false,
            jobs: 1,
            trace: false,
            fresh_baseline: false,
            reasons: Reasons::default(),
            see_all: false,
            instructions: None,
            again: None,
            untouched: false,
            compared: true,
        }
    }

    /// The patch of an earlier run, judged again: its stage, its label, its words, and no engine.
    pub fn again(
        first: First,
        case: Case,
        source: Option<SourceRequest>,
        environments: EnvironmentChoice,
    ) -> Result<Self, Failure> {
        // Nothing of it is ever started: there is no way from a plan without an engine to one.
        let mut manifest = engines::find(DEFAULT_ENGINE)?;
        manifest.id = REVERIFY.parse().map_err(|error| {
            Failure::internal("bad_manifest", "what stands for no engine has no name")
                .because(&error)
        })?;
        let contract = &first.contract;
        let mut request = Self::case(case, manifest).at_stage(contract.lane.stage);
        request.label = contract.label;
        request.variables.clone_from(&contract.variables);
        request.trace = contract.trace;
        request.reasons = contract.reasons.clone();
        request.environments = source.is_some().then_some(environments);
        request.source = source;
        request.again = Some(first);
        Ok(request)
    }

    /// Somebody's own words on a private copy of their own repository.
    pub fn attempt(
        attempt: &Attempt,
        choice: &EngineChoice,
        env: &Env,
        configured: LimitChanges,
    ) -> Result<Self, Failure> {
        if choice.plays_nothing() {
            return Err(Failure::usage("script_missing", "the fake engine plays a script, and none was given")
                .so("nothing ran")
                .hint("--script FILE takes a patch (`git diff > fix.patch`) or a script of steps; see `cto help try`"));
        }
        Self::of_attempt(attempt, choice, env, configured)
    }

    fn of_attempt(
        attempt: &Attempt,
        choice: &EngineChoice,
        env: &Env,
        configured: LimitChanges,
    ) -> Result<Self, Failure> {
        let source = attempt.source(env)?;
        let case = attempt.case()?;
        let choice = EngineChoice {
            stage: Some(Stage::Three.number()),
            ..choice.clone()
        };
        let mut request = choice.request(case, env, configured)?.copying(Some(source));
        request.label = Label::Try;
        request.variables = attempt.variables(env)?;
        request.environments = Some(attempt.environments()?);
        request.trace = attempt.trace;
        request.fresh_baseline = attempt.fresh_baseline;
        request.reasons = attempt.reasons()?;
        request.see_all = attempt.see_all;
        Ok(request)
    }

    /// The checks of an attempt on the last commit as it is: the engine does nothing.
    pub fn look(
        attempt: &Attempt,
        choice: &EngineChoice,
        env: &Env,
        configured: LimitChanges,
    ) -> Result<Self, Failure> {
        Ok(Self {
            untouched: true,
            ..Self::of_attempt(attempt, choice, env, configured)?
        })
    }

    pub fn at_stage(self, stage: Stage) -> Self {
        Self {
            stage,
            stage_by_default: false,
            ..self
        }
    }

    /// Opens a gated engine for this one run of a validator, or shuts it.
    pub fn opened(self, open: bool) -> Self {
        Self {
            gate: Asked::Validator { open },
            ..self
        }
    }

    /// The script of a scripted engine, and whether it ships with the case.
    pub fn playing(self, script: Option<Vec<u8>>, own_script: bool) -> Self {
        Self {
            script,
            own_script,
            ..self
        }
    }

    pub fn limited(self, limits: LimitChanges) -> Self {
        Self { limits, ..self }
    }

    pub fn in_lane(self, lane: LaneOptions) -> Self {
        Self { lane, ..self }
    }

    pub fn proving(self, proof: Option<ProofOrder>) -> Self {
        Self { proof, ..self }
    }

    /// Compared with nothing: for a validator's rows.
    pub fn uncompared(self) -> Self {
        Self {
            compared: false,
            ..self
        }
    }

    pub fn contained(self, contain: Containment) -> Self {
        Self { contain, ..self }
    }

    pub fn asked_by(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// The checks must be green before the engine starts.
    pub fn green_start(mut self, wanted: bool) -> Self {
        self.reasons.green_start = wanted;
        self
    }

    /// With everything else that makes a task, as another request says it.
    pub fn with_words_of(self, other: &Self) -> Self {
        Self {
            variables: other.variables.clone(),
            reasons: other.reasons.clone(),
            trace: other.trace,
            instructions: other.instructions.clone(),
            ..self
        }
    }

    /// What the engine is told beside the task: what was typed, then what the case has for it. A file
    /// of the case's that is not there or no instructions is a mistake of the case.
    pub fn instructions(&self, case: &CaseFile) -> Result<Option<&[u8]>, ContractIssue> {
        match &self.instructions {
            Some(typed) => Ok(Some(typed)),
            None => instructions::of_case(&self.case, case),
        }
    }

    /// Copies a repository instead of the case's own files.
    pub fn copying(self, source: Option<SourceRequest>) -> Self {
        Self { source, ..self }
    }

    /// Runs the case on a copy of the repository that a record names, or says why not.
    pub fn on_source(self, named: Result<SourceRequest, String>) -> Self {
        match named {
            Ok(source) => self.copying(Some(source)),
            Err(why) => Self {
                source_refused: Some(why),
                ..self
            },
        }
    }

    /// Runs the case on a private copy of the repository that an admission names.
    pub fn on_target(self, found: &Recorded<TargetAdmission>) -> Self {
        let source = SourceRequest {
            path: PathBuf::from(&found.record.target_repository_path),
            record: SourceRecord {
                path: None,
                owner: found.record.repository_owner.clone(),
                ownership_evidence: found.record.ownership_evidence.clone(),
                class: SourceClass::OwnedLocal,
            },
            from_head: false,
        };
        Self {
            admitted: Some(Box::new(found.clone())),
            ..self.copying(Some(source))
        }
    }

    /// Shows places of the host beside the programs that are found.
    pub fn showing(self, toolchains: Vec<PathBuf>) -> Self {
        Self { toolchains, ..self }
    }

    pub fn keeping_workspace(self, keep: bool) -> Self {
        Self { keep, ..self }
    }

    /// How many of its checks may run at a time.
    pub fn at_a_time(self, jobs: usize) -> Self {
        Self { jobs, ..self }
    }
}

/// A source as the operator asked for it.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    pub path: PathBuf,
    pub record: SourceRecord,
    pub from_head: bool,
}

impl SourceRequest {
    /// What the contract says before anybody has looked.
    pub fn unseen(&self) -> Source {
        Source {
            record: self.record.clone(),
            from_head: self.from_head,
            head: MaybeKnown::NotLookedAt,
        }
    }
}

/// A proof the operator asked for, beside the run itself.
#[derive(Clone, Debug)]
pub enum ProofOrder {
    /// The run without its gate, which went before.
    Stage1 { refused: RefusedRun },
}

/// Who works on a case and how: nothing of it but the engine was looked up yet.
#[derive(Clone, Debug)]
pub struct EngineChoice {
    pub manifest: Manifest,
    /// Gated engines opened for this run.
    pub allowed: Vec<EngineId>,
    /// A script of the case, a script file or a patch file.
    pub script: Option<String>,
    pub stage: Option<u8>,
    pub contain: Containment,
    pub limits: LimitChanges,
    pub lane: LaneOptions,
    /// Places of the host to show, as they were typed.
    pub toolchains: Vec<PathBuf>,
    /// A file of the operator's that the engine is told beside the task.
    pub instructions: Option<PathBuf>,
    /// Knobs under one name; its pair is in `lane` already.
    pub profile: Option<Profile>,
}

impl EngineChoice {
    /// What is to be shown, each once, under names that can be written down.
    fn shown(&self) -> Result<Vec<PathBuf>, Failure> {
        shown(&self.toolchains)
    }

    /// `fake` was left without anything to play.
    fn plays_nothing(&self) -> bool {
        self.manifest.id.as_str() == DEFAULT_ENGINE && self.script.is_none()
    }

    /// The request for a case. A limit comes from here, then from the engine's variable, then from the profile, then
    /// from `configured`.
    pub fn request(
        &self,
        case: Case,
        env: &Env,
        configured: LimitChanges,
    ) -> Result<Request, Failure> {
        let manifest = self.manifest.clone();
        let profile = self.profile.as_ref();
        let stage = lane::stage(&manifest, self.stage, env)?;
        let stage = stage.or(profile.map(|profile| profile.stage));
        let named = profile.map(Profile::limits).unwrap_or_default();
        let gate = engines::asked(&manifest, &self.allowed, env);
        let own_script = case.built_in
            && self
                .script
                .as_deref()
                .is_none_or(|name| case.scripts.contains_key(name));
        let script = script::find(&manifest, &case, self.script.as_deref())?;
        let seconds = lane::seconds(&manifest, env)?;
        let limits = LimitChanges {
            engine_wall_seconds: self
                .limits
                .engine_wall_seconds
                .or(seconds)
                .or(named.engine_wall_seconds)
                .or(configured.engine_wall_seconds),
            engine_idle_seconds: self
                .limits
                .engine_idle_seconds
                .or(named.engine_idle_seconds)
                .or(configured.engine_idle_seconds),
            model_calls: match self.limits.model_calls {
                Some(calls) => Some(calls),
                None => lane::model_calls(&manifest, env)?.or(named.model_calls),
            },
            model_tokens: match self.limits.model_tokens {
                Some(tokens) => Some(tokens),
                None => lane::model_tokens(&manifest, env)?.or(named.model_tokens),
            },
            ..self.limits
        };
        let request = Request::case(case, manifest);
        let typed = self.instructions.as_deref();
        let request = Request {
            instructions: typed.map(instructions::read).transpose()?,
            stage_by_default: stage.is_none(),
            stage: stage.unwrap_or(request.stage),
            gate,
            ..request
        };
        instructions::refuse_untold(&request)?;
        Ok(request
            .playing(script, own_script)
            .limited(limits)
            .in_lane(self.lane.clone())
            .showing(self.shown()?)
            .contained(self.contain))
    }
}

/// Places of the host that were typed, each once, under names that can be written down.
pub fn shown(typed: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut shown = Vec::new();
    for typed in typed {
        let bad = || {
            Failure::usage("bad_path", "the path of a toolchain cannot be used")
                .at(typed.display().to_string())
                .so("nothing ran")
        };
        let path = std::path::absolute(typed).map_err(|error| bad().because(&error))?;
        if path.to_str().is_none_or(|text| text.contains([':', '\n'])) {
            return Err(bad().reason("it is not UTF-8, or holds a colon or a line break"));
        }
        if !shown.contains(&path) {
            shown.push(path);
        }
    }
    Ok(shown)
}
