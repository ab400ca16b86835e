//! What an engine is started with: its arguments, its variables, its files and, where it has a
//! model, the gateway behind its door. All of it from the manifest; no engine has a way of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::containment::Containment;
use cto_core::engine::manifest::{
    EMPTY_DIRECTORY, Invocation, Program, SCRIPT_FILE, Told, WorkingDirectory, fill,
};
use cto_core::engine::prompt::{
    contract_prompt, contract_task, prompt_with_instructions, withheld,
};
use cto_core::gate::{advice, how_it_ended};
use cto_core::run::event::{Event, ModelUse};
use cto_core::values::blocker::Code;
use cto_core::values::ids::EngineId;
use cto_core::values::maybe_known::MaybeKnown;
use cto_core::values::text::tame_excerpt;
use cto_core::wire::calls::{CallRecord, GatewayReport, Outcome, ended_refused};
use cto_gateway::Gateway;
use cto_jail::Door;

use crate::evidence::{EvidenceError, OpenBundle};
use crate::host;
use crate::plan::provider::Provider;
use crate::run::engine::event_log::Follower;
use crate::run::engine::own_folder;
use crate::run::execution::{Execution, Stop, random};
use crate::supervise::launch::EngineStart;
use crate::task::request::Request;
use crate::workspace::of_run::{PLAIN, Workspace};

/// The kernel takes no longer argument than 128 KiB.
const MAX_ARGUMENT: usize = 120 * 1024;
/// What the engine is told beside its task, in the directory of the run's own.
const INSTRUCTIONS_FILE: &str = "instructions.md";
/// Model calls beyond this stand in their own file alone.
const MAX_CALL_EVENTS: usize = 1_000;

pub struct Outfit<'a> {
    invocation: &'a Invocation,
    provider: Option<&'a Provider>,
    /// Where the scratch directory is on the host, and under which name the engine knows it.
    on_host: PathBuf,
    inside: PathBuf,
    values: BTreeMap<&'static str, String>,
    /// Files that the engine finds below its scratch directory and may only read.
    read_only: Vec<(PathBuf, PathBuf)>,
}

impl<'a> Outfit<'a> {
    pub fn new(
        request: &Request,
        execution: &'a Execution<'a>,
        on_host: PathBuf,
        inside: PathBuf,
    ) -> Result<Self, Stop> {
        let invocation = &execution.plan.invocation;
        if invocation.argv.iter().any(|arg| arg == "{script}") {
            let script = request.script.as_deref().unwrap_or_default();
            write_script(&on_host.join(SCRIPT_FILE), script).map_err(Stop::Workspace)?;
        }
        let told = instructions(request);
        let way = invocation.instructions.as_ref();
        let mut text = match (&told, way) {
            (Some(told), Some(Told::Prompt)) => {
                prompt_with_instructions(&execution.plan.contract, told)
            }
            _ => contract_prompt(&execution.plan.contract),
        };
        if invocation.program == Program::Admitted {
            text.push_str(&withheld(&execution.plan.contract));
        }
        if text.len() > MAX_ARGUMENT {
            let detail = format!(
                "the task is {} bytes long as one text, more than an engine can be handed",
                text.len()
            );
            return Err(Stop::LateGate {
                gate: "contract",
                code: Code::ContractInvalid,
                detail,
            });
        }
        let in_words = told.as_deref().filter(|_| way == Some(&Told::Prompt));
        let mut values = of_the_task(execution, text, in_words, &inside)?;
        let mut read_only = Vec::new();
        match (told, way) {
            (Some(told), Some(Told::File(name))) => {
                let shown = show_read_only(&execution.work, &on_host, name, &told);
                read_only.push(shown.map_err(Stop::Workspace)?);
            }
            // The request was refused; an engine that is not told is not started.
            (Some(_), None) => {
                let detail = "the engine cannot be told its instructions".to_owned();
                return Err(Stop::LateGate {
                    gate: "contract",
                    code: Code::ContractInvalid,
                    detail,
                });
            }
            (None, _) | (Some(_), Some(Told::Prompt)) => {}
        }
        let packages = execution.plan.engine.as_ref();
        if let Some(packages) = packages.and_then(|engine| engine.packages.as_ref()) {
            values.insert("packages", packages.root.display().to_string());
        } else if invocation.names("{packages}") {
            return Err(Stop::Finding(
                "the admitted program lies in no packages, and its manifest names them".into(),
                Code::ProviderUnavailable,
            ));
        }
        if let Some(provider) = execution.provider {
            of_the_model(&mut values, provider, invocation);
        }
        if invocation.cwd == WorkingDirectory::Empty {
            let dir = on_host.join(EMPTY_DIRECTORY);
            host::make_private_dir(&dir).map_err(Stop::Workspace)?;
            cto_jail::hand_over(&dir).map_err(Stop::Workspace)?;
        }
        Ok(Self {
            invocation,
            provider: execution.provider,
            on_host,
            inside,
            values,
            read_only,
        })
    }

    /// Where it is started, where that is not its workspace.
    fn cwd(&self) -> Option<PathBuf> {
        match self.invocation.cwd {
            WorkingDirectory::Workspace => None,
            WorkingDirectory::Empty => Some(self.inside.join(EMPTY_DIRECTORY)),
        }
    }

    /// Puts the engine's own files into its workspace.
    pub fn lay_out(&self, workspace: &Workspace, policy: Containment) -> Result<(), Stop> {
        if self.invocation.workspace_files.is_empty() {
            return Ok(());
        }
        let changed = workspace.copy().changed_dir();
        own_folder::lay_out(
            self.invocation,
            workspace.baseline(),
            &changed,
            &self.values,
        )?;
        match policy {
            Containment::None => Ok(()),
            _ => workspace.copy().hand_over().map_err(Stop::Workspace),
        }
    }

    /// The log it will write in its workspace.
    pub fn event_log(&self, workspace: &Workspace) -> Option<(Follower, &str)> {
        let wanted = self.invocation.event_log.as_ref()?;
        let dir = fill::template(&wanted.dir, &self.values);
        let follower = Follower::new(&workspace.copy().changed_dir(), wanted, &dir);
        Some((follower, wanted.artifact.as_str()))
    }

    /// The contract, as it is told.
    pub fn prompt(&self) -> &str {
        self.values.get("prompt").map_or("", String::as_str)
    }

    /// The program, under the path at which the jail will be shown it.
    pub fn program(&self, execution: &Execution<'_>) -> Result<PathBuf, Stop> {
        match (&self.invocation.program, &execution.plan.engine) {
            (Program::Itself, _) => std::env::current_exe().map_err(Stop::Workspace),
            (Program::Admitted, Some(engine)) => Ok(PathBuf::from(&engine.program)),
            (Program::Admitted, None) => Err(Stop::Finding(
                "no admitted program is there to be run".into(),
                Code::ProviderUnavailable,
            )),
        }
    }

    /// With what that program is started.
    pub fn start<'s>(&'s self, program: &'s Path, programs: Option<&'s Path>) -> EngineStart<'s> {
        EngineStart {
            program,
            programs,
            args: self.args(),
            env: self.env(),
            door: self.needs_a_door(),
            env_of_door: self.env_of_door(),
            cwd: self.cwd(),
            read_only: &self.read_only,
            talked: self.invocation.dialect.is_talked_to(),
        }
    }

    fn args(&self) -> Vec<OsString> {
        let arg = |arg: &String| match arg.as_str() {
            "{script}" => self.inside.join(SCRIPT_FILE).into_os_string(),
            template => fill::template(template, &self.values).into(),
        };
        self.invocation.argv.iter().map(arg).collect()
    }

    fn env(&self) -> BTreeMap<OsString, OsString> {
        self.variables(false)
            .map(|(name, value)| (name.into(), fill::template(value, &self.values).into()))
            .collect()
    }

    /// Variables that name the door. Its port exists once the jail stands, so they are completed
    /// there; no variable holds a NUL, so that is where it belongs.
    fn env_of_door(&self) -> BTreeMap<OsString, Vec<OsString>> {
        let Some(provider) = self.provider else {
            return BTreeMap::new();
        };
        let mut values = self.values.clone();
        values.insert("door", format!("http://\0{}", provider.spoken.base));
        self.variables(true)
            .map(|(name, value)| {
                let filled = fill::template(value, &values);
                (
                    name.into(),
                    filled.split('\0').map(OsString::from).collect(),
                )
            })
            .collect()
    }

    /// The manifest's variables that name the door, or the others.
    fn variables(&self, of_door: bool) -> impl Iterator<Item = (&String, &String)> {
        let all = self.invocation.env.iter();
        all.filter(move |(_, value)| value.contains("{door}") == of_door)
    }

    fn needs_a_door(&self) -> bool {
        self.provider.is_some()
    }

    /// Writes the engine's files and opens the gateway behind its door. The jail stands; nothing
    /// runs in it yet.
    pub fn open(&self, door: Option<Door>) -> Result<Option<Gateway>, Stop> {
        let Some(provider) = self.provider else {
            self.write_files(&self.values).map_err(Stop::Workspace)?;
            return Ok(None);
        };
        let Some(door) = door else {
            let detail = "the jail has no door to the model".to_owned();
            return Err(Stop::LateGate {
                gate: "containment",
                code: Code::ContainmentUnavailable,
                detail,
            });
        };
        let mut values = self.values.clone();
        values.insert(
            "door",
            format!("http://127.0.0.1:{}{}", door.port, provider.spoken.base),
        );
        self.write_files(&values).map_err(Stop::Workspace)?;
        cto_gateway::start(door.listener, provider.route.clone())
            .map(Some)
            .map_err(Stop::Workspace)
    }

    fn write_files(&self, values: &BTreeMap<&'static str, String>) -> io::Result<()> {
        // A token belongs to the environment: no file is ever given one.
        let values = values
            .iter()
            .filter(|(name, _)| **name != "token")
            .map(|(name, value)| (*name, value.clone()))
            .collect();
        for file in &self.invocation.files {
            let text = fill::file(file.format, &file.text, &values);
            write_file(&self.on_host, &file.path, text.trim_start_matches('\n'))?;
        }
        Ok(())
    }
}

/// For whoever plays it to read, whatever the operator's umask keeps from others.
fn write_script(path: &Path, script: impl AsRef<[u8]>) -> io::Result<()> {
    fs::write(path, script)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

/// Writes a file below the scratch directory, for whoever will use that.
fn write_file(scratch: &Path, name: &str, text: &str) -> io::Result<()> {
    let path = scratch.join(name);
    if let Some(dir) = path.parent() {
        host::make_private_dir(dir)?;
    }
    let mut file = fs::OpenOptions::new();
    file.write(true).create(true).truncate(true).mode(0o600);
    file.open(&path)?.write_all(text.as_bytes())?;
    match Path::new(name).components().next() {
        Some(first) => cto_jail::hand_over(&scratch.join(first)),
        None => Ok(()),
    }
}

/// A file of the run's own that is to be mounted below the scratch directory, and its name there. What
/// lies in the scratch directory itself is the place to mount it at, and all there is without a jail.
fn show_read_only(
    work: &Path,
    scratch: &Path,
    name: &str,
    text: &str,
) -> io::Result<(PathBuf, PathBuf)> {
    write_file(scratch, name, text)?;
    write_file(work, INSTRUCTIONS_FILE, text)?;
    Ok((work.join(INSTRUCTIONS_FILE), PathBuf::from(name)))
}

/// What the engine is told beside the task: the bytes that the contract names.
fn instructions(request: &Request) -> Option<String> {
    let case = request.case.parsed().ok()?;
    let told = request.instructions(&case).ok()??;
    String::from_utf8(told.to_vec()).ok()
}

/// What stands for the names of a manifest, but for those of a model.
fn of_the_task(
    execution: &Execution<'_>,
    prompt: String,
    instructions: Option<&str>,
    inside: &Path,
) -> Result<BTreeMap<&'static str, String>, Stop> {
    let contract = &execution.plan.contract;
    let workspace = match execution.plan.containment {
        Containment::None => execution.work.join(PLAIN),
        _ => execution.plan.stand.path().to_owned(),
    };
    let verification = contract.verification_commands.first();
    Ok(BTreeMap::from([
        ("prompt", prompt),
        ("scratch", inside.display().to_string()),
        ("attempt", format!("cto-{}", random(12)?)),
        ("workspace", workspace.display().to_string()),
        ("task", contract_task(contract, instructions)),
        ("title", contract.title.trim().to_owned()),
        (
            "verification",
            verification.cloned().unwrap_or_else(|| "true".into()),
        ),
        ("now", host::now().to_string()),
    ]))
}

fn of_the_model(
    values: &mut BTreeMap<&'static str, String>,
    provider: &Provider,
    invocation: &Invocation,
) {
    values.insert("model", provider.route.model.clone());
    values.insert("protocol", provider.spoken.name.clone());
    values.insert("token", provider.route.token.reveal().to_owned());
    values.insert("context_window", provider.sizes.context_window.to_string());
    values.insert("output_limit", provider.sizes.output_limit.to_string());
    values.insert("compat", provider.compat.clone());
    let told = invocation.model.as_ref();
    let told = told.and_then(|model| model.runtime_provider.clone());
    values.insert("runtime_provider", told.unwrap_or_default());
}

/// Records what went over the wire: every call in a file of its own, the first of them as events.
pub fn record_calls(
    bundle: &mut OpenBundle,
    lane: (&EngineId, &str),
    report: GatewayReport,
) -> Result<ModelUse, EvidenceError> {
    let mut found = model_use(lane, &report);
    for text in found
        .refused_fields
        .iter_mut()
        .chain(&mut found.ended_refused)
    {
        *text = bundle.clean(text);
    }
    if let Some(warning) = refused_warning(&found) {
        bundle.warn(warning);
    }
    if found.credential_in_answer > 0 {
        let count = found.credential_in_answer;
        bundle.warn(format!(
            "answers of the model that held the credential: {count}; each was cut"
        ));
    }
    let mut lines = Vec::new();
    for (at, mut call) in report.calls.into_iter().enumerate() {
        // Names come from the engine or the endpoint: whatever they are, they are made harmless.
        for name in [
            &mut call.model_asked,
            &mut call.model_answered,
            &mut call.finish_reason,
        ] {
            if let MaybeKnown::Known(text) = name {
                *text = bundle.clean(text);
            }
        }
        call.field = call.field.map(|field| bundle.clean(&field));
        lines.extend(cto_core::values::json::canonical(&call)?);
        lines.push(b'\n');
        if at < MAX_CALL_EVENTS {
            bundle.emit(Event::EngineModelCall(Box::new(call)))?;
        }
    }
    bundle.write(bundle::MODEL_CALLS, &lines)?;
    Ok(found)
}

/// What a lane, an engine and its admitted model, made of it.
fn model_use((engine, model): (&EngineId, &str), report: &GatewayReport) -> ModelUse {
    let known = |seen: &MaybeKnown<u64>| seen.known().copied().unwrap_or(0);
    let sum = |of: fn(&CallRecord) -> &MaybeKnown<u64>| {
        report
            .calls
            .iter()
            .map(|call| known(of(call)))
            .fold(0, u64::saturating_add)
    };
    let cached = report.calls.iter().filter_map(|call| call.tokens.cached);
    let cached = cached.fold(0, u64::saturating_add);
    let last = |outcome: Outcome| {
        report
            .calls
            .iter()
            .rev()
            .find(|call| call.outcome == outcome)
    };
    // What broke in the middle of a run has its next step beside it, as before one.
    let told = |call: &CallRecord| {
        let advice = advice(call, engine)
            .map(|advice| format!("; {advice}"))
            .unwrap_or_default();
        tame_excerpt(&format!(
            "call {}: {}{advice}",
            call.seq,
            how_it_ended(call)
        ))
    };
    let unavailable = report
        .wire_failure()
        .and_then(last)
        .or_else(|| last(Outcome::WrongModel))
        .map(told);
    ModelUse {
        calls: report.spent.calls,
        refused: report.refused() as u64 + report.unrecorded,
        input_tokens: sum(|call| &call.tokens.input).min(MAX_COUNT),
        cached_tokens: cached.min(MAX_COUNT),
        output_tokens: sum(|call| &call.tokens.output).min(MAX_COUNT),
        spent_micros: report.spent.micros.map(|micros| micros.min(MAX_COUNT)),
        unavailable,
        over_budget: report.budget_exceeded.map(|why| why.sentence().to_owned()),
        refused_fields: report.refused_fields(),
        ended_refused: ended_refused(&report.calls, model).map(told),
        credential_in_answer: report.credential_in_answer(),
    }
}

/// What the verdict says of requests whose fields were refused, however the run ended.
fn refused_warning(found: &ModelUse) -> Option<String> {
    let (first, more) = found.refused_fields.split_first()?;
    let more = match more.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!(
        "requests to the model were refused: {first}{more}; each is in {}",
        bundle::MODEL_CALLS
    ))
}

/// No number of anything hashed is larger.
const MAX_COUNT: u64 = (1 << 53) - 1;
