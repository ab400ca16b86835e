//! `cto eligibility`: may this engine be chosen for this case, and if not, what is missing. Runs
//! nothing.

use std::path::PathBuf;

use cto_core::gate::eligibility::{self, Eligibility, Escalation};
use cto_core::values::hint::{Reader, hint};
use serde_json::json;

use crate::cli::Context;
use crate::cli::args::task::TaskArgs;
use crate::cli::program::doctor_repo;
use crate::host::OwnProgram;
use crate::host::failure::Failure;
use crate::plan;
use crate::run::approvals::Approvals;
use crate::screen::output::{status_style, tame};
use crate::task::cases;
use crate::task::request::Request;
use cto_core::values::verdict::Status;

#[derive(clap::Args)]
pub struct Args {
    /// A built-in case, or a path to a case directory
    #[arg(default_value = cases::DEFAULT_CASE)]
    case: String,
    /// Answer for a `cto try` on a repository instead of a run of a case
    #[arg(long = "try", conflicts_with_all = ["case", "stage", "cases"])]
    for_a_try: bool,
    /// The repository of that try
    #[arg(long, value_name = "DIR", default_value = ".", requires = "for_a_try")]
    repo: PathBuf,
    #[command(flatten)]
    task: TaskArgs,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let request = match args.for_a_try {
        false => args.task.request(context, &args.case)?,
        true => {
            let attempt = doctor_repo::would_try(context, args.repo)?;
            let choice = args.task.choice(context)?;
            Request::look(&attempt, &choice, &context.env, context.configured_limits())?
        }
    };
    let home = context.home()?;
    let approvals = Approvals::store(&home, request.request_id.as_ref());
    let answered = approvals.answer(request.origin).is_some();
    let own = OwnProgram::find(&home)?;
    let footing = plan::footing(&request, &context.env, &home, &own);
    let request = plan::settled(&request, &footing)?;
    let planned = plan::plan(
        &request,
        footing,
        answered,
        (&context.env, &home),
        &own,
        &mut |_| true,
    );
    let sealed = planned.contract.seal().map_err(|error| {
        Failure::internal("contract_unwritable", "the contract cannot be written").because(&error)
    })?;
    let decision = eligibility::decide_backend(
        &request.manifest.id,
        request.stage,
        planned.contract.valid(),
        &sealed.contract_digest,
        &planned.gates,
    );
    let code = if decision.denied_backends.is_empty() {
        0
    } else {
        3
    };
    if context.output.json {
        context.output.document(
            &json!({"schema_version": 1, "command": "eligibility", "decision": decision, "gates": planned.gates.gates}),
        )?;
    } else {
        print(context, &decision);
        let first = planned
            .gates
            .blocked()
            .find_map(|gate| Some((gate.code?, &gate.detail)));
        if let Some((code, detail)) = first {
            let reader = Reader {
                engine: &request.manifest.id,
                is_try: args.for_a_try,
            };
            let hint = hint(code, detail.as_deref(), reader);
            context.output.row("hint", &hint);
        }
    }
    Ok(code)
}

fn print(context: &Context, decision: &Eligibility) {
    let eligible = decision.denied_backends.is_empty();
    let (word, style) = match eligible {
        true => ("ELIGIBLE", status_style(Status::Pass)),
        false => ("NOT ELIGIBLE", status_style(Status::Blocked)),
    };
    context.output.line(&format!(
        "{style}{word}{style:#}  {}",
        decision.selected_backend
    ));
    decision
        .reasons
        .iter()
        .for_each(|reason| context.output.row("because", &tame(reason)));
    context
        .output
        .row("passed", &decision.passed_gates.join(", "));
    context
        .output
        .row("missing", &decision.missing_gates.join(", "));
    let path = match decision.escalation_path {
        Escalation::Operator => "operator",
        Escalation::CoreRoute => "core_route",
        Escalation::HermesOperator => "hermes_operator",
        Escalation::Blocked => "blocked",
    };
    context.output.row("escalate", path);
}
