//! The first commits of a disposable repository, made once to know which they are: contract and approval name the
//! commit, and the run makes the very same.

use cto_core::task::contract::ContractDocument;
use cto_core::values::maybe_known::MaybeKnown;

use super::words;
use crate::host::{Env, Home, programs};
use crate::plan::Planned;
use crate::task::request::Request;
use crate::workspace::git::{HarnessRepo, ObjectFormat};
use crate::workspace::own_dir::OwnDir;

/// Fixes in the contract from which commit the repository will start.
pub fn make_history(
    planned: &mut Planned,
    request: &Request,
    env: &Env,
    home: &Home,
) -> Result<(), String> {
    let git = programs::git(env, home).map_err(|none| none.to_string())?;
    let ours = OwnDir::make(home).map_err(|error| words(&error))?;
    let repo = HarnessRepo::init(&git, &ours.path().join("made.git"), ObjectFormat::default());
    let made = repo.and_then(|repo| repo.import_start(&request.case.workspace, true));
    let made = made.map_err(|error| words(&error))?;
    if let ContractDocument::Valid(contract) = &mut planned.contract {
        let base = MaybeKnown::Known(made.commit);
        contract.lane.target_head = base.clone();
        if let Some(policy) = &mut contract.branch_policy {
            policy.base_commit = base;
        }
    }
    Ok(())
}
