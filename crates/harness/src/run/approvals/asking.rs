//! A request: every gate but the approval is asked, the repository is looked at and the whole contract resolved, and
//! what comes of that is kept in the store. Nothing is started.

use std::io;

use cto_core::bundle::approval::{Asking, ExecutionRequest};
use cto_core::gate::GateResult;
use cto_core::values::hint::{Reader, hint};
use cto_core::values::ids::RunId;
use cto_core::values::time::Utc;
use serde::Serialize;

use super::store::Store;
use crate::host::failure::Failure;
use crate::host::{self, Env, Home, OwnProgram};
use crate::plan;
use crate::task::request::Request;

pub fn cannot_read(error: &dyn std::error::Error) -> Failure {
    Failure::internal("store_unreadable", "the store of requests cannot be read")
        .because(error)
        .so("nothing ran")
}

fn cannot_write(error: &io::Error) -> Failure {
    Failure::internal("store_unwritable", "the request cannot be kept")
        .because(error)
        .so("nothing was asked for")
}

/// Writes down what a run asks for, or says which gate is closed. `asked_with` is kept beside it, and travels nowhere.
pub fn ask<T: Serialize>(
    (home, env): (&Home, &Env),
    request: &Request,
    work_id: Option<&str>,
    asked_with: &T,
) -> Result<ExecutionRequest, Failure> {
    home.create()?;
    let own = OwnProgram::find(home)?;
    let footing = plan::footing(request, env, home, &own);
    let request = plan::settled(request, &footing)?;
    let planned = plan::plan(&request, footing, true, (env, home), &own, &mut |_| true);
    let blocked: Vec<_> = planned.gates.blocked().collect();
    let contract = planned.contract.valid().filter(|_| planned.plan.is_some());
    let Some(contract) = contract else {
        return Err(refused(&request, &blocked));
    };
    if !contract.approval_required {
        return Err(
            Failure::usage("no_approval_needed", "this contract needs no approval")
                .so("nothing was written")
                .hint("`cto run` starts it; from stage 4 on every contract needs one"),
        );
    }
    let sealed = planned.contract.seal().map_err(|error| {
        Failure::internal("contract_unwritable", "the contract cannot be written").because(&error)
    })?;
    let (store, now) = (Store::of(home), host::now());
    let request_id = named(&store, &request, now)?;
    let work_id = work_id.unwrap_or(request_id.as_str());
    if !cto_core::records::is_name(work_id) {
        return Err(
            Failure::usage("bad_work_id", "a work id is a plain name").so("nothing was written")
        );
    }
    let asking = Asking {
        request_id: request_id.clone(),
        work_id,
        store_id: store.id().map_err(|error| cannot_write(&error))?,
        at: now,
    };
    let digests = (sealed.contract_digest, sealed.task_digest);
    let asked = ExecutionRequest::new(contract, digests, asking);
    store
        .put_request(&asked, asked_with)
        .map_err(|error| cannot_write(&error))?;
    Ok(asked)
}

/// A name that no request has yet.
fn named(store: &Store, request: &Request, now: Utc) -> Result<RunId, Failure> {
    let taken = store.all().map_err(|error| cannot_read(&error))?;
    for _ in 0..64 {
        let suffix = host::random_name(4)?;
        match RunId::new(now, &request.case.id, &suffix) {
            Ok(id) if !taken.contains(&id) => return Ok(id),
            Ok(_) | Err(_) => {}
        }
    }
    Err(Failure::internal("no_name", "no name for the request is free").so("nothing was written"))
}

fn refused(request: &Request, blocked: &[&GateResult]) -> Failure {
    let mut failure = Failure::blocked("not_requestable", "a gate before the approval is closed")
        .so("nothing was written");
    for gate in blocked {
        let code = gate.code.map_or("", |code| code.as_str());
        let detail = gate.detail.as_deref().unwrap_or(&gate.question);
        failure = failure.reason(format!("{code}: {detail}"));
    }
    let first = blocked
        .iter()
        .find_map(|gate| Some((gate.code?, &gate.detail)));
    match first {
        None => failure,
        Some((code, detail)) => {
            let reader = Reader {
                engine: &request.manifest.id,
                is_try: false,
            };
            failure.hint(hint(code, detail.as_deref(), reader))
        }
    }
}
