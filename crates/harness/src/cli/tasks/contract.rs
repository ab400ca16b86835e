//! `cto contract`: what a run would be judged by, without running anything.

use cto_core::task::contract::ContractDocument;
use serde_json::json;

use crate::cli::Context;
use crate::cli::args::task::TaskArgs;
use crate::host::OwnProgram;
use crate::host::failure::Failure;
use crate::plan;
use crate::screen::output::dim;
use crate::task::cases;

#[derive(clap::Args)]
pub struct Args {
    /// A built-in case, or a path to a case directory
    #[arg(default_value = cases::DEFAULT_CASE)]
    case: String,
    #[command(flatten)]
    task: TaskArgs,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let request = args.task.request(context, &args.case)?;
    let home = context.home()?;
    let own = OwnProgram::find(&home)?;
    let footing = plan::footing(&request, &context.env, &home, &own);
    let request = plan::settled(&request, &footing)?;
    let document = plan::bound_contract(&request, &own, &footing.lane, &context.env, &home);
    let contract = match &document {
        ContractDocument::Valid(contract) => contract,
        ContractDocument::Invalid(invalid) => {
            let mut failure = Failure::usage("contract_invalid", "the contract is not valid")
                .at(request.case.label.clone())
                .so("no run could start from it")
                .hint("docs/cases.md shows a whole case.toml");
            failure.because = invalid.errors.iter().map(ToString::to_string).collect();
            return Err(failure);
        }
    };
    let sealed = document.seal().map_err(|e| {
        Failure::internal("contract_unwritable", "the contract cannot be written").because(&e)
    })?;
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "contract",
            "task_digest": sealed.task_digest,
            "contract_digest": sealed.contract_digest,
            "contract": contract,
        }))?;
        return Ok(0);
    }
    context.output.document(contract)?;
    let dim = dim();
    let digest = |name: &str, digest: &dyn std::fmt::Display, what: &str| {
        context.output.hanging(
            &format!("{dim}{name:<15}{dim:#} "),
            &format!("{digest} {dim}{what}{dim:#}"),
        );
    };
    context.output.line("");
    digest(
        "task_digest",
        &sealed.task_digest,
        "the task alone, equal for every engine",
    );
    digest(
        "contract_digest",
        &sealed.contract_digest,
        "with the lane: what an approval binds",
    );
    Ok(0)
}
