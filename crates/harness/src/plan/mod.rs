//! From a request to a plan, or to every reason why there is none. Host and source are looked at
//! only when the gates before them have passed.
//!
//! - `mod.rs` the contract, the gates phase by phase, and each look
//! - `footing.rs` what is known before them: the engine's gate, its records, the stage and price meant
//! - `source.rs` the repository; `inputs.rs`, `environments.rs` what is put beside its files,
//!   `tool_homes.rs` what tools keep in the home; `this_host.rs` what it needs of this host
//! - `runners.rs` which test runners its commands use
//! - `engine_program.rs` the engine's program; `provider.rs` its model, `endpoint_way.rs` the way to it;
//!   `interview.rs` the same for a person who is about to admit it
//! - `doctor.rs` signs of what keeps a host from containing; `project.rs` what a repository proposes
//!
//! Imports host, task, evidence, workspace and records. Imported by run and cli.

pub mod doctor;
mod endpoint_way;
pub mod engine_program;
mod environments;
mod footing;
mod inputs;
pub mod interview;
pub mod project;
pub mod provider;
pub mod runners;
pub mod source;
mod this_host;
mod tool_homes;

pub use footing::{Footing, footing, settled};

use std::sync::Arc;
use std::time::{Duration, Instant};

use cto_core::bundle::report::timings::Step;
use cto_core::containment::Containment;
use cto_core::containment::guard::{self, Decision};
use cto_core::containment::mounts::stand::Stand;
use cto_core::gate::plan::{self, Next, Plan};
use cto_core::gate::{Answer, Credential, Endpoint, GateInput, GateReport, LaneFacts};
use cto_core::records::credential::CredentialWay;
use cto_core::run::trace::TraceOutcome;
use cto_core::task::contract::{
    self, Circumstances, Contract, ContractDocument, Forbidden, InvalidContract, Label, Lane, Stage,
};
use cto_core::values::blocker::Code;
use cto_core::values::digest::Digest;
use cto_core::values::event_type::EventType;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::paths::{PathStanding, TreePath, path_standing};
use cto_core::wire::calls::{CallRecord, Outcome};
use cto_core::wire::endpoint;
use cto_core::workspace::tree::{self, Tree};

use crate::evidence::clock::Before;
use crate::host::{Env, Home, OwnProgram, toolchains};
use crate::plan::provider::Provider;
use crate::plan::source::SourceView;
use crate::records::{self, targets};
use crate::task::instructions::Texts;
use crate::task::lane;
use crate::task::request::{Request, SourceRequest};
use crate::task::script;
use crate::workspace::checkout::Checkout;
use crate::workspace::environments::FirstLook;

/// Told how long somebody has been waited for; false gives it up.
pub type Still<'a> = &'a mut dyn FnMut(Duration) -> bool;

/// What planning came to.
pub struct Planned {
    pub contract: ContractDocument,
    /// Absent when a gate blocked.
    pub plan: Option<Plan>,
    pub gates: GateReport,
    /// What records and environment say about a lane that needs admissions.
    pub lane: MaybeKnown<LaneFacts>,
    /// The source as the first look found it; absent where none is copied or no gate let it be
    /// looked at.
    pub source: Option<SourceView>,
    /// The way to the model, where one was needed and every gate before it let it be made.
    pub provider: Option<Provider>,
    /// The request that was made over it.
    pub probe: Option<CallRecord>,
    /// What of planning has a line of its own in the trace.
    pub before: Vec<Before>,
    /// What the endpoint said when it refused that request.
    pub refusal: Option<String>,
    /// A checkout of the source's tree, made by an earlier run.
    pub checkout: Option<Arc<Checkout>>,
    /// What of the operator's environments was found beside its files.
    environments: Vec<plan::Environment>,
    /// When they were looked at.
    pub looked: Option<FirstLook>,
    /// The tree that is copied, where something beside its files is looked for.
    tree: Option<Tree>,
    source_files: Option<u64>,
    /// Where its copy stands in a jail.
    stand: Stand,
}

impl Planned {
    /// Before any gate was asked.
    fn begun(contract: ContractDocument, lane: MaybeKnown<LaneFacts>) -> Self {
        Self {
            contract,
            lane,
            plan: None,
            gates: GateReport {
                schema_version: 1,
                gates: Vec::new(),
            },
            source: None,
            provider: None,
            probe: None,
            before: Vec::new(),
            refusal: None,
            checkout: None,
            environments: Vec::new(),
            looked: None,
            tree: None,
            source_files: None,
            stand: Stand::Neutral,
        }
    }
}

/// Resolves a contract, or says everything that is wrong with it.
pub fn contract_of(
    request: &Request,
    own: &OwnProgram,
    facts: &MaybeKnown<LaneFacts>,
    env: &Env,
) -> ContractDocument {
    let invalid = |errors| {
        ContractDocument::Invalid(InvalidContract {
            invalid: true,
            errors,
        })
    };
    let case = match request.case.parsed() {
        Ok(case) => case,
        Err(errors) => return invalid(errors),
    };
    let texts = match Texts::of(request, &case) {
        Ok(texts) => texts,
        Err(issue) => return invalid(vec![issue]),
    };
    let shown = request.toolchains.iter();
    let shown_as = shown.map(|path| toolchains::shorten(path, env)).collect();
    let circumstances = Circumstances {
        label: request.label,
        lane: Lane {
            engine: request.manifest.id.clone(),
            executable_sha256: match (request.manifest.is_gated(), facts) {
                (false, _) => MaybeKnown::Known(own.sha256),
                (true, MaybeKnown::Known(facts)) => facts
                    .binary_sha256()
                    .map_or(MaybeKnown::NotLookedAt, MaybeKnown::Known),
                (true, MaybeKnown::NotLookedAt) => MaybeKnown::NotLookedAt,
            },
            interpreter_sha256: facts.known().and_then(LaneFacts::interpreter_sha256),
            packages_sha256: facts.known().and_then(LaneFacts::packages_sha256),
            // The others are this very program, and bound with it.
            manifest_sha256: match request.manifest.is_gated() {
                true => request.manifest.sha256,
                false => None,
            },
            model: facts.known().and_then(LaneFacts::pair_to_record),
            stage: request.stage,
            target_head: target_head(request),
            target_branch: None,
            target_admission_sha256: request.admitted.as_ref().map(|found| found.sha256),
            script_sha256: request.script.as_deref().map(Digest::of),
            source_pin: facts.known().and_then(LaneFacts::source_pin),
            terminal_event: request
                .manifest
                .invocation
                .as_ref()
                .map_or(EventType::EngineResult, |i| i.dialect.terminal_event()),
            required_events: request
                .manifest
                .invocation
                .as_ref()
                .map_or_else(Vec::new, |i| i.dialect.required_events().to_vec()),
            // Where a source is copied, its tree decides; nobody has looked yet.
            containment: None,
            repository: None,
            toolchains: shown_as,
            programs: Vec::new(),
        },
        start_tree: match request.source {
            Some(_) => MaybeKnown::NotLookedAt,
            None => MaybeKnown::Known(tree::tree_digest(&request.case.baseline())),
        },
        source: request.source.as_ref().map(SourceRequest::unseen),
        hidden_files: request.case.hidden_digests(),
        instructions: texts.instructions,
        control_patch: texts.control_patch,
        limits: request.limits,
        variables: request.variables.clone(),
        trace: request.trace,
        reasons: request.reasons.clone(),
        also_forbidden: forbidden_there(request),
    };
    let mut contract = contract::resolve_contract(case, circumstances);
    if request.source.is_none() {
        runners::of_case(&mut contract, request);
        contract.lane.containment = Some(
            confine(
                asked_of(request, &contract),
                &contract,
                &request.case.baseline(),
            )
            .policy,
        );
    }
    ContractDocument::Valid(Box::new(contract))
}

/// The same once the host was looked at: with the programs its commands name.
pub fn bound_contract(
    request: &Request,
    own: &OwnProgram,
    facts: &MaybeKnown<LaneFacts>,
    env: &Env,
    home: &Home,
) -> ContractDocument {
    let mut document = contract_of(request, own, facts, env);
    let bound = this_host::programs(&document, request, env, home).bound;
    if let ContractDocument::Valid(contract) = &mut document {
        contract.lane.programs = bound;
    }
    document
}

/// How the engine of a request is confined. A patch that somebody named is put in whole and then judged,
/// where it leaves the scope: under `strict` it could only fail, and nobody would see by what.
fn asked_of(request: &Request, contract: &Contract) -> Containment {
    let leaves = |path: &TreePath| {
        path_standing(path, &contract.allowed_paths, &contract.forbidden_paths)
            != PathStanding::Allowed
    };
    let named = request.script.as_deref().and_then(script::patched_alone);
    match named.is_some_and(|named| named.iter().any(leaves)) {
        true => Containment::Contained,
        false => request.contain,
    }
}

/// What the kernel will protect in a workspace that starts with this tree.
fn confine(asked: Containment, contract: &Contract, tree: &Tree) -> Decision {
    guard::decide_guard(
        asked,
        tree,
        &contract.allowed_paths,
        &contract.forbidden_paths,
        &contract.inputs,
    )
}

/// Asks the gates, phase by phase, and looks where they say it is time to look.
pub fn plan(
    request: &Request,
    footing: Footing,
    approval_answered: bool,
    (env, home): (&Env, &Home),
    own: &OwnProgram,
    still: Still<'_>,
) -> Planned {
    let Footing {
        opening,
        lane,
        target,
        ..
    } = footing;
    let mut planned = Planned::begun(contract_of(request, own, &lane, env), lane);
    let (mut host, mut looked, mut answer) = (
        MaybeKnown::NotLookedAt,
        MaybeKnown::NotLookedAt,
        MaybeKnown::NotLookedAt,
    );
    let mut disposable = MaybeKnown::NotLookedAt;
    let mut confinement = match (&request.source, planned.contract.valid()) {
        (None, Some(contract)) => Some(confine(
            asked_of(request, contract),
            contract,
            &request.case.baseline(),
        )),
        _ => None,
    };
    let refused = source_refused(request, home);
    loop {
        let input = GateInput {
            contract: &planned.contract,
            manifest: &request.manifest,
            stage: request.stage,
            opening: opening.clone(),
            own_script: request.own_script,
            approval_answered,
            lane: planned.lane.clone(),
            source_refused: refused.as_deref(),
            target: &target,
            host: host.clone(),
            source: looked.clone(),
            disposable: disposable.clone(),
            model: answer.clone(),
            source_files: planned.source_files,
            environments: &planned.environments,
            confinement: confinement.as_ref(),
            stand: planned.stand.clone(),
        };
        match plan::next_step(&input) {
            Next::Blocked(gates) => return Planned { gates, ..planned },
            Next::Ready(mut plan, gates) => {
                plan.tools = environments::tools(&planned, request);
                return Planned {
                    plan: Some(*plan),
                    gates,
                    ..planned
                };
            }
            Next::LookAtHost if host == MaybeKnown::NotLookedAt => {
                let mut facts = this_host::look(&planned.contract, request, env, home);
                engine_program::find(request, &planned.lane, env, home, &mut facts);
                if let ContractDocument::Valid(contract) = &mut planned.contract {
                    contract.lane.programs.clone_from(&facts.bound);
                }
                host = MaybeKnown::Known(facts);
            }
            Next::LookAtSource if looked == MaybeKnown::NotLookedAt => {
                let (found, decided) = source::look_at(&mut planned, request, env, home);
                if let (Some(decided), Some(host)) = (&decided, host.known()) {
                    let (found, looked) =
                        environments::gather(&mut planned, request, host, env, home, decided);
                    (planned.environments, planned.looked) = (found, Some(looked));
                }
                (looked, confinement) = (MaybeKnown::Known(found), decided);
            }
            Next::MakeHistory if disposable == MaybeKnown::NotLookedAt => {
                let made = source::disposable::make_history(&mut planned, request, env, home);
                disposable = MaybeKnown::Known(made);
            }
            Next::LookAtModel if answer == MaybeKnown::NotLookedAt => {
                answer =
                    MaybeKnown::Known(ask_the_model(&mut planned, request, (env, home), still));
            }
            // Asked for what was just supplied: an empty gate list judges as a missing event, never
            // as a pass.
            Next::LookAtHost | Next::LookAtSource | Next::MakeHistory | Next::LookAtModel => {
                return planned;
            }
        }
    }
}

/// Only a repository that is changed has a commit that a contract binds.
fn target_head(request: &Request) -> MaybeKnown<String> {
    match (request.label, request.stage) {
        (Label::Case, Stage::Four | Stage::Five) => MaybeKnown::NotLookedAt,
        _ => MaybeKnown::Known("none".into()),
    }
}

/// Why the repository that was named must not be copied, before anything of it is looked at.
fn source_refused(request: &Request, home: &Home) -> Option<String> {
    request.source_refused.clone().or_else(|| {
        let source = request.source.as_ref();
        let copied = request.label == Label::Case && request.admitted.is_none();
        let source = source.filter(|_| copied)?;
        targets::is_no_target(&source.path, None, home).err()
    })
}

/// What the admission of a repository forbids beside the case.
fn forbidden_there(request: &Request) -> Forbidden {
    let admitted = request.admitted.as_ref().map(|found| &found.record);
    admitted.map_or_else(Forbidden::default, |record| Forbidden {
        paths: record.forbidden_paths.clone(),
        actions: record.forbidden_actions.clone(),
    })
}

/// Makes the way to the model and sends one real request over it.
fn ask_the_model(
    planned: &mut Planned,
    request: &Request,
    (env, home): (&Env, &Home),
    still: Still<'_>,
) -> Answer {
    let could_not = |code, why: &str| Answer::CouldNotAsk(code, why.to_owned());
    let (Some(facts), Some(contract)) = (planned.lane.known(), planned.contract.valid()) else {
        return could_not(Code::ModelNotAdmitted, "nothing is known of this lane");
    };
    let Some(admission) = facts.model.known() else {
        return could_not(Code::ModelNotAdmitted, "no model is admitted");
    };
    let Some(engine) = request
        .manifest
        .invocation
        .as_ref()
        .and_then(|invocation| invocation.model.as_ref())
    else {
        return could_not(Code::ModelNotAdmitted, "the engine has no model");
    };
    let Some(Ok(base_url)) =
        records::base_url(&request.manifest.id, &request.lane, env, Some(admission))
    else {
        return could_not(
            Code::ProviderLocalConfigUnavailable,
            "no base URL was supplied for this run",
        );
    };
    // It is read a second time, and what is sent goes to what was read last: only to what the gates saw.
    let seen = endpoint::Endpoint::parse(&base_url).map(|endpoint| endpoint.facts());
    if !matches!((&facts.endpoint, seen), (Endpoint::Given(then), Ok(now)) if *then == now) {
        return could_not(
            Code::ModelNotAdmitted,
            "the base URL is no longer the one that the gates saw",
        );
    }
    let Credential::Ready(way) = &facts.credential else {
        return could_not(
            Code::ProviderAuthUnavailable,
            "the credential cannot be had",
        );
    };
    let class = |way: &CredentialWay| provider::class_of(way, env, home);
    let credential = match class(way) {
        Ok(class) => class,
        Err(why) => return could_not(Code::ProviderAuthUnavailable, &why),
    };
    let to_proxy = admission
        .proxy_credential
        .as_deref()
        .and_then(|text| CredentialWay::read(text).ok().flatten());
    let proxy_credential = match to_proxy.as_ref().map(class).transpose() {
        Ok(class) => class.flatten(),
        Err(why) => return could_not(Code::ProviderAuthUnavailable, &why),
    };
    let first_byte = match lane::first_byte(&request.manifest, env) {
        Ok(from_env) => request.lane.first_byte.or(from_env),
        Err(failure) => {
            return could_not(Code::ProviderLocalConfigUnavailable, &failure.to_string());
        }
    };
    let chosen = provider::Chosen {
        admission,
        base_url,
        credential,
        proxy_credential,
        protocol: records::protocol(&request.manifest.id, &request.lane, env),
        first_byte,
    };
    match provider::prepare(
        &chosen,
        engine,
        &request.manifest.limits(&contract.limits),
        env,
    ) {
        Err(failure) => could_not(Code::ProviderUnavailable, &failure.to_string()),
        Ok(Err(answer)) => answer,
        Ok(Ok(provider)) => {
            let since = Instant::now();
            let heard = match provider.ask(still) {
                Ok(heard) => heard,
                Err(given_up) => {
                    return could_not(Code::ProviderUnavailable, &given_up.to_string());
                }
            };
            planned.before.push(probed(&heard.call, since));
            planned.probe = Some(heard.call.clone());
            planned.refusal.clone_from(&heard.error_body);
            planned.provider = Some(provider);
            Answer::Asked(Box::new(heard.call), heard.error_body)
        }
    }
}

/// The probe as the trace has it: how it ended and how long it took.
fn probed(call: &CallRecord, since: Instant) -> Before {
    Before {
        action: "model.probe",
        step: Step::Probe,
        outcome: match call.outcome {
            Outcome::Ok => TraceOutcome::Ok,
            _ => TraceOutcome::Failed,
        },
        took: since.elapsed(),
        detail: Some(call.outcome.as_str().to_owned()),
    }
}
