//! Opening: a run gets its name, its directory and everything its evidence must know beforehand.

use cto_core::bundle;
use cto_core::bundle::report::RunIdentity;
use cto_core::gate::LaneFacts;
use cto_core::values::ids::RunId;
use cto_core::values::json::JsonError;

use crate::evidence::keys::KeyStore;
use crate::evidence::secrets::{Quoted, Secrets};
use crate::evidence::sign::{SignError, Signer};
use crate::evidence::{EvidenceError, OpenBundle, Opening, reserve_run_dir};
use crate::host::failure::Failure;
use crate::host::{self, Env, Home, repositories};
use crate::plan::{Planned, source};
use crate::run::record;
use crate::screen::progress::Progress;
use crate::task::request::Request;

/// The keys, if the evidence can be signed with them: found out before anything runs.
pub fn keys(home: &Home) -> Result<KeyStore, Failure> {
    let keys = KeyStore::of(home);
    Signer::ready(&keys).map_err(|error| cannot_sign(&error))?;
    Ok(keys)
}

/// The contract goes into bundles as it is: what it holds cannot be taken out. Asked before anything is written, the bundle of
/// a run that this one is compared with included.
pub fn contract_is_clean(planned: &Planned, env: &Env) -> Result<(), Failure> {
    let sealed = planned
        .contract
        .seal()
        .map_err(|error| unwritable(&error))?;
    let ours = secrets_of(planned, env).of_documents(Quoted::Ourselves);
    match ours.redact(&sealed.bytes).1.total() {
        0 => Ok(()),
        _ => Err(Failure::usage(
            "secret_contract",
            "the task holds the credential of its model, or what is private of the endpoint",
        )
        .so("nothing ran")
        .hint("the contract stands in the bundle as it is; say it in other words")),
    }
}

/// What must not stand in the evidence.
fn secrets_of(planned: &Planned, env: &Env) -> Secrets {
    let mut secrets = Secrets::from_env(env);
    planned
        .provider
        .iter()
        .for_each(|provider| provider.add_to(&mut secrets));
    secrets
}

fn unwritable(error: &JsonError) -> Failure {
    Failure::internal("contract_unwritable", "the contract cannot be written").because(error)
}

/// Reserves the run's directory and opens its bundle.
pub fn open(
    request: &Request,
    planned: &Planned,
    keys: KeyStore,
    env: &Env,
    home: &Home,
    progress: &mut dyn Progress,
) -> Result<OpenBundle, Failure> {
    let contract = planned.contract.clone();
    let sealed_contract = contract.seal().map_err(|error| unwritable(&error))?;
    if let Some(view) = &planned.source {
        repositories::remember(home, &view.repo.top).map_err(|error| {
            Failure::internal("state_unwritable", "where the repository is cannot be kept")
                .at(home.repositories().display().to_string())
                .because(&error)
                .so("nothing ran")
        })?;
    }
    let mut secrets = secrets_of(planned, env);
    secrets.names = source::host_names(planned, request, env);
    let told = instructions(request, &secrets)?.map(|told| (bundle::INSTRUCTIONS, told));
    let own = engine_manifest(request, &secrets)?.map(|own| (bundle::ENGINE_MANIFEST, own));
    let started_at = host::now();
    let (run_id, dir) = reserve_run_dir(home, |suffix| {
        RunId::new(started_at, &request.case.id, suffix).ok()
    })?;
    progress.started(&run_id);
    let identity = RunIdentity {
        run_id: run_id.clone(),
        case_id: request.case.id.clone(),
        engine: record::engine_facts(request, planned),
        stage: request.stage,
        origin: request.origin,
        source_admitted: !request.manifest.is_gated()
            || planned.lane.known().is_some_and(LaneFacts::source_admitted),
        harness_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
    };
    let opening = Opening {
        identity,
        contract,
        sealed_contract,
        // A run that a gate stopped starts nothing and tells nobody anything: the digests in its contract say enough.
        beside: match planned.plan {
            Some(_) => told.into_iter().chain(own).collect(),
            None => Vec::new(),
        },
        secrets,
        keys,
        goes_on: None,
    };
    OpenBundle::open(home, dir, opening).map_err(|error| unsealed(&run_id, &error))
}

/// What the engine is told beside the task. It stands in the bundle as it is, so it may hold nothing
/// that would have to be taken out.
fn instructions(request: &Request, secrets: &Secrets) -> Result<Option<Vec<u8>>, Failure> {
    let case = request.case.parsed().ok();
    let case = case.filter(|_| request.again.is_none());
    let told = case
        .as_ref()
        .and_then(|case| request.instructions(case).ok()?);
    let Some(told) = told else {
        return Ok(None);
    };
    match secrets.redact(told).1.total() {
        0 => Ok(Some(told.to_vec())),
        _ => Err(Failure::usage(
            "secret_instructions",
            "the instructions hold a secret, or what is private of an endpoint",
        )
        .so("nothing ran")
        .hint("an engine is told them and their bytes stand in the bundle; take it out")),
    }
}

/// The manifest of an engine of the operator's own: strangers have no other copy. It stands in the bundle as it is, and
/// is what the contract names.
fn engine_manifest(request: &Request, secrets: &Secrets) -> Result<Option<Vec<u8>>, Failure> {
    let own = request.manifest.own_text.as_ref();
    let Some(text) = own.filter(|_| request.again.is_none()) else {
        return Ok(None);
    };
    match secrets.redact(text.as_bytes()).1.total() {
        0 => Ok(Some(text.clone().into_bytes())),
        _ => Err(Failure::usage(
            "secret_manifest",
            "the manifest of the engine holds a secret, or what is private of an endpoint",
        )
        .so("nothing ran")
        .hint("its bytes stand in the bundle; {door} and {token} say where the model is and what to show there")),
    }
}

fn cannot_sign(error: &SignError) -> Failure {
    let failure = match error {
        SignError::Keys(keys) => keys.failure(),
        _ => Failure::internal("cannot_sign", "the evidence could not be signed").because(error),
    };
    failure.so("nothing ran")
}

/// Without a seal there is no verdict.
pub fn unsealed(run_id: &RunId, error: &EvidenceError) -> Failure {
    if let EvidenceError::Secret { .. } = error {
        return Failure::internal(
            "secret_in_evidence",
            "the evidence held a secret and was not sealed",
        )
        .at(run_id.to_string())
        .because(error)
        .so("the run has no verdict; nothing counts as passed, and what held it is gone")
        .hint("take the secret out of the task or the repository, or use another credential");
    }
    Failure::internal("evidence_unwritable", "the evidence could not be sealed")
        .at(run_id.to_string())
        .because(error)
        .so("the run has no verdict; nothing counts as passed")
        .hint("free space under the runs root, then `cto recover`")
}
