//! From request and facts to a plan that decides everything before the run, or to all blockers of
//! the first phase that has any.

use std::collections::BTreeMap;

use crate::containment::guard::Guard;
use crate::containment::mounts::search::SearchPath;
use crate::containment::mounts::stand::Stand;
use crate::containment::mounts::{Granted, HostPlace};
use crate::containment::ordinary::{LEAK_OPTIONS, without_leak_search};
use crate::containment::{Containment, GuardPlan};
use crate::engine::manifest::Invocation;
use crate::gate::{
    self, EngineUse, GateInput, GateReport, GateVerdict, InputUse, Phase, ToolchainUse,
};
use crate::task::contract::{Contract, Control, Limits, MutationMode};
use crate::task::source::{Looked, SourceLook};
use crate::values::maybe_known::MaybeKnown;
use crate::values::paths::TreePath;
use crate::workspace::checkout::WorkspaceKind;
use crate::workspace::environment::{EnvironmentUse, with_your};
use crate::workspace::tool_home::InHome;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub contract: Contract,
    pub invocation: Invocation,
    pub containment: Containment,
    /// What protects the workspace from the engine.
    pub guard: Guard,
    /// Why the containment is less than what was asked for.
    pub fallback: Option<String>,
    pub toolchains: Vec<ToolchainUse>,
    /// Where every process of the run looks for programs.
    pub search: SearchPath,
    /// The engine's own program, where it is not this binary.
    pub engine: Option<EngineUse>,
    pub inputs: Vec<InputUse>,
    /// What was found of the operator's environments; those that are carried have leave to be.
    pub environments: Vec<Environment>,
    /// Variables for tools, where somebody's own repository is copied.
    pub tools: BTreeMap<String, String>,
    /// The look at the repository that is copied; absent where none is.
    pub source: Option<SourceLook>,
    /// How the private workspace and the copies for verification are made.
    pub workspace: WorkspaceKind,
    /// Where the copy stands in the jails of the run.
    pub stand: Stand,
    pub control: Control,
    pub limits: Limits,
}

/// An environment of the operator's work tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Environment {
    pub record: EnvironmentUse,
    /// Where it is on the host; nothing where it is not carried.
    pub source: Option<Granted>,
    /// What in it no jail is shown, relative to it.
    pub hidden: Vec<TreePath>,
    /// What it needs besides: the Python it is based on.
    pub also: Vec<Granted>,
    /// Where a jail has it that is no part of the copy.
    pub in_home: Option<InHome>,
}

impl Plan {
    /// As the event and the report name them.
    pub fn environment_uses(&self) -> Vec<EnvironmentUse> {
        let records = self.environments.iter().map(|found| &found.record);
        records.cloned().collect()
    }

    /// What the event and the report say of the workspace's protection; without a jail there is
    /// none.
    pub fn guard_plan(&self) -> Option<GuardPlan> {
        let plan = || GuardPlan {
            mounts: self.guard.mounts() as u64,
            masked: self.guard.masked.clone(),
            shown: self.guard.shown.clone(),
            fallback: self.fallback.clone(),
            shown_of_host: self.shown_of_host(),
            not_searched: self.search.not_searched(),
            traced_checks: self.contract.trace,
            untraced: vec![format!("{LEAK_OPTIONS}={}", without_leak_search(None))],
        };
        (self.containment != Containment::None).then(plan)
    }

    /// Does a place of the host lie where the copy stands? Then the copy has it or nobody does: what
    /// would be mounted there is the original.
    pub fn is_of_copy(&self, granted: &Granted) -> bool {
        granted.path().starts_with(self.stand.path())
    }

    /// What of the host processes of the run are shown beyond the system.
    fn shown_of_host(&self) -> Vec<HostPlace> {
        let engine = self.engine.iter();
        let interpreters = engine.clone().flat_map(|engine| &engine.interpreter);
        let toolchains = self.toolchains.iter().chain(interpreters);
        let homes = self
            .environments
            .iter()
            .filter(|found| found.in_home.is_some());
        let granted = toolchains
            .flat_map(|toolchain| &toolchain.mounts)
            .chain(engine.flat_map(|engine| &engine.mounts))
            .chain(self.search.mounts())
            .filter(|granted| !self.is_of_copy(granted))
            .chain(self.inputs.iter().map(|input| &input.source))
            .chain(self.environments.iter().flat_map(|found| &found.also))
            .chain(homes.filter_map(|found| found.source.as_ref()));
        let mut shown: Vec<HostPlace> = granted.map(Granted::shown).collect();
        shown.sort();
        shown.dedup();
        shown
    }

    /// One line for the event and the terminal.
    pub fn summary(&self) -> String {
        let control = match &self.control {
            Control::Runner(_) => "failing tests added by the harness",
            Control::Patch(_) => "a patch of the case",
            Control::None(_) => "none",
        };
        let made = match self.workspace {
            WorkspaceKind::Copy => "",
            WorkspaceKind::Overlay => ", as an overlay of a cached checkout",
        };
        let stands = self
            .stand
            .words()
            .map(|words| format!(" {words}"))
            .unwrap_or_default();
        let fallback = self
            .fallback
            .as_ref()
            .map(|why| format!(" ({why})"))
            .unwrap_or_default();
        let with = with_your(&self.environment_uses());
        let with = with.map_or_else(String::new, |with| format!(", {with}"));
        let told: Vec<String> = self
            .tools
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let told = match told.is_empty() {
            true => String::new(),
            false => format!("; tools are told {}", told.join(" ")),
        };
        let start = match self.contract.reasons.green_start {
            true => "; the checks must be green before the engine starts",
            false => "",
        };
        let traced = match self.contract.trace {
            true => "; tracing: allowed in visible checks, refused elsewhere",
            false => "",
        };
        format!(
            "{} works on a {}{made}{stands}{with}; {} verification command(s), {} hidden; must-fail control: {control}; containment: {}{fallback}{start}{traced}{told}",
            self.contract.lane.engine,
            workspace(self.contract.mutation_mode),
            self.contract.verification_commands.len(),
            self.contract.hidden_verification.commands.len(),
            self.containment.as_str(),
        )
    }
}

fn workspace(mode: MutationMode) -> &'static str {
    match mode {
        MutationMode::None => "nothing",
        MutationMode::CopiedFixture => "private copy of the case's files",
        MutationMode::CopiedRepo => "private copy of a repository",
        MutationMode::SandboxRepo => "disposable repository",
        MutationMode::OwnedNoncriticalRepo | MutationMode::CandidateDefault => {
            "private copy of the target"
        }
    }
}

/// The next step towards a plan. The caller looks at host and source only when this asks for
/// it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    LookAtHost,
    LookAtSource,
    /// The first commits of a disposable repository are made, to know which they are.
    MakeHistory,
    LookAtModel,
    Blocked(GateReport),
    Ready(Box<Plan>, GateReport),
}

pub fn next_step(input: &GateInput<'_>) -> Next {
    let mut gates = gate::run_phase(Phase::Records, input);
    if blocked(&gates) {
        return unseen(gates, &[Phase::Host, Phase::Look, Phase::Network]);
    }
    if matches!(input.host, MaybeKnown::NotLookedAt) {
        return Next::LookAtHost;
    }
    gates.extend(gate::run_phase(Phase::Host, input));
    if blocked(&gates) {
        return unseen(gates, &[Phase::Look, Phase::Network]);
    }
    if input
        .contract
        .valid()
        .is_some_and(|contract| contract.source.is_some())
        && matches!(input.source, MaybeKnown::NotLookedAt)
    {
        return Next::LookAtSource;
    }
    let policy = input
        .contract
        .valid()
        .and_then(|contract| contract.branch_policy.as_ref());
    if policy.is_some() && matches!(input.disposable, MaybeKnown::NotLookedAt) {
        return Next::MakeHistory;
    }
    gates.extend(gate::run_phase(Phase::Look, input));
    if blocked(&gates) {
        return unseen(gates, &[Phase::Network]);
    }
    if input.manifest.uses_a_model() && matches!(input.model, MaybeKnown::NotLookedAt) {
        return Next::LookAtModel;
    }
    gates.extend(gate::run_phase(Phase::Network, input));
    // The gates guarantee both; asking again keeps this total without trusting them.
    let (Some(contract), Some(invocation), Some(decision), false) = (
        input.contract.valid(),
        &input.manifest.invocation,
        input.confinement,
        blocked(&gates),
    ) else {
        return Next::Blocked(report(gates));
    };
    let containment = containment(input, decision.policy);
    let host_can = input.host.known().is_some_and(|host| host.overlay);
    let plan = Plan {
        contract: contract.clone(),
        invocation: invocation.clone(),
        containment,
        guard: decision.guard.clone(),
        fallback: decision.fallback.clone(),
        toolchains: input
            .host
            .known()
            .map(|host| host.toolchains.clone())
            .unwrap_or_default(),
        search: input
            .host
            .known()
            .map(|host| host.search.clone())
            .unwrap_or_default(),
        engine: input.host.known().and_then(|host| host.engine.clone()),
        inputs: inputs_apart(input),
        environments: input.environments.to_vec(),
        tools: BTreeMap::new(),
        source: input.source.known().and_then(found),
        workspace: WorkspaceKind::decide(
            containment != Containment::None,
            host_can,
            input.source_files,
        ),
        stand: input.stand.clone(),
        control: contract.verification_control.clone(),
        limits: input.manifest.limits(&contract.limits),
    };
    Next::Ready(Box::new(plan), report(gates))
}

/// What is shown read-only: nothing that was decided about as an environment.
fn inputs_apart(input: &GateInput<'_>) -> Vec<InputUse> {
    let decided = |asked: &InputUse| {
        let of_copy = |found: &&Environment| found.in_home.is_none();
        let holds = |found: &Environment| {
            let (path, place) = (asked.path.as_bytes(), found.record.path.as_bytes());
            let rest = path.strip_prefix(place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        input.environments.iter().filter(of_copy).any(holds)
    };
    let inputs = input.host.known().map(|host| host.inputs.as_slice());
    let inputs = inputs.unwrap_or_default().iter();
    inputs.filter(|asked| !decided(asked)).cloned().collect()
}

/// Blocked before these phases were looked at.
fn unseen(mut gates: Vec<gate::GateResult>, phases: &[Phase]) -> Next {
    gates.extend(phases.iter().flat_map(|phase| gate::not_seen(*phase)));
    Next::Blocked(report(gates))
}

fn found(looked: &Looked) -> Option<SourceLook> {
    match looked {
        Looked::Found(look) => Some(look.clone()),
        Looked::Unusable(_) => None,
    }
}

/// The containment of the policy where the host can prove it; otherwise none. Where that is not
/// enough, the containment gate has already blocked.
fn containment(input: &GateInput<'_>, policy: Containment) -> Containment {
    match &input.host {
        MaybeKnown::Known(host) if host.jail_missing.is_empty() => policy,
        MaybeKnown::Known(_) | MaybeKnown::NotLookedAt => Containment::None,
    }
}

fn blocked(gates: &[gate::GateResult]) -> bool {
    gates.iter().any(|gate| gate.result == GateVerdict::Blocked)
}

fn report(gates: Vec<gate::GateResult>) -> GateReport {
    GateReport {
        schema_version: 1,
        gates,
    }
}
