//! `cto doctor`: what this host can contain, what is missing, and the exact fix.

use std::path::Path;

use anstyle::AnsiColor;
use cto_core::containment::advice::{self, Advice};
use cto_core::operator::amounts::Size;
use cto_jail::probe::{self, Probe};
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::program::doctor_repo;
use crate::cli::work::exec;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::host::programs;
use crate::host::toolchains::{self, Resolved};
use crate::plan::doctor;
use crate::screen::output::{dim, tame};
use crate::supervise;
use crate::supervise::launch::{ExecLaunch, ExecOrder, Launch, Streams};
use crate::workspace::checkout;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    repository: doctor_repo::RepoArgs,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    if args.repository.is_asked() {
        return doctor_repo::run(context, args.repository);
    }
    let home = context.home()?;
    let probe = probe::probe();
    let signs = doctor::look(&probe);
    let mut advice = advice::advise_host(&signs);
    let here = Here::look(context, &home, &probe);
    advice.extend(here.advice());
    let shown: Vec<(&str, Resolved)> = doctor::PROGRAMS
        .iter()
        .map(|name| (*name, toolchains::resolve(name, &context.env, &home)))
        .collect();
    let git = programs::git(&context.env, &home);
    let unused: Vec<&str> = doctor::UNUSED_VARIABLES
        .into_iter()
        .filter(|name| context.env.get(name).is_some())
        .collect();
    let stages = if probe.works() {
        "all, as their proofs allow"
    } else {
        "only fake playing its own script at stage 2, uncontained"
    };
    let kept = checkouts(&home);
    let code = if probe.works() { 0 } else { 3 };
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1,
            "command": "doctor",
            "containment": if probe.works() { "contained" } else { "unavailable" },
            "as_root": cto_jail::is_root(),
            "kernel": signs.kernel,
            "jail": probe.report,
            "missing": probe.missing,
            "advice": advice,
            "reachable_stages": stages,
            "programs": shown.iter().map(|(name, found)| json!({"program": name, "found": describe(found)})).collect::<Vec<_>>(),
            "here": here.to_json(),
            "git": match &git {
                Ok(git) => json!({"path": git.path().display().to_string(), "place": git.class()}),
                Err(none) => json!({"refused": none.to_string()}),
            },
            "unused_variables": unused,
            "checkouts": {"count": kept.0, "bytes": kept.1},
            "state_home": home.root.display().to_string(),
        }))?;
        return Ok(code);
    }
    print_layers(context, &probe, &here, &signs.kernel);
    context.output.line("");
    for (name, found) in &shown {
        context.output.row(name, &tame(&describe(found)));
    }
    let outside = match &git {
        Ok(git) => format!("git is {}", git.path().display()),
        Err(none) => none.to_string(),
    };
    context.output.row("outside", &tame(&outside));
    context.output.row("exec", &tame(&here.sentence()));
    context
        .output
        .row("state", &home.root.display().to_string());
    context.output.row(
        "checkouts",
        &format!("{} kept, {} of files", kept.0, Size(kept.1)),
    );
    context.output.row("stages", stages);
    for name in unused {
        context
            .output
            .row("note", &format!("{name} is set and has no effect here"));
    }
    advice.iter().for_each(|advice| tell(context, advice));
    Ok(code)
}

/// The verdict, and every layer and canary under it.
fn print_layers(context: &Context, probe: &Probe, here: &Here, kernel: &str) {
    let out = |text: &str| context.output.line(text);
    let dim = dim();
    let (green, red) = (
        AnsiColor::Green.on_default().bold(),
        AnsiColor::Red.on_default().bold(),
    );
    let (word, style) = match (probe.works(), here) {
        (true, Here::NoJail(_)) => ("CONTAINED EXCEPT HERE", red),
        (true, _) => ("CONTAINED", green),
        (false, _) => ("NOT CONTAINED", red),
    };
    out(&format!(
        "{style}{word}{style:#}  kernel {}, as {}",
        tame(kernel),
        if cto_jail::is_root() {
            "root"
        } else {
            "an ordinary user"
        }
    ));
    out("");
    let check = |good: bool, name: &str, text: &str| {
        let (mark, style) = if good {
            ("ok     ", green)
        } else {
            ("MISSING", red)
        };
        context.output.hanging(
            &format!("  {style}{mark}{style:#} {name:<18} "),
            &format!("{dim}{text}{dim:#}"),
        );
    };
    if let Some(report) = &probe.report {
        for layer in &report.layers {
            // How the kernel says it matters only where it says no; the document has it always.
            let detail = if layer.enforced {
                String::new()
            } else {
                format!(" ({})", tame(&layer.detail))
            };
            check(
                layer.enforced,
                layer.layer.as_str(),
                &format!("{}{detail}", layer.layer.what()),
            );
        }
        for canary in &report.canaries {
            check(
                canary.refused,
                canary.canary.as_str(),
                &format!("canary: {}", tame(&canary.detail)),
            );
        }
    } else {
        probe.missing.iter().for_each(|missing| {
            context
                .output
                .hanging(&format!("  {red}MISSING{red:#} "), &tame(missing))
        });
    }
}

/// What `cto exec` would do in the current directory. Runs work in the state home, wherever they
/// are asked for.
enum Here {
    Works,
    /// No jail around it could be entered.
    NoJail(Failure),
    /// It is no directory to be shown to a command.
    Refused(Failure),
    /// Nothing can be contained on this host.
    NotTried,
}

impl Here {
    /// Enters the jail that `cto exec` would, and starts nothing in it.
    fn look(context: &Context, home: &Home, probe: &Probe) -> Self {
        if !probe.works() {
            return Self::NotTried;
        }
        let order = ExecOrder {
            workspace: Path::new("."),
            writable: &[],
            read_only: &[],
            tmp: None,
            variables: &[],
            secrets: &[],
            // It would put stand-ins into git directories, and a look leaves nothing.
            guarded: false,
            traced: false,
            layers: None,
            command: &["/bin/true".into()],
        };
        match Launch::exec(&order, &context.env, home) {
            Err(failure) => Self::Refused(exec::own(failure)),
            Ok(ExecLaunch { mut launch, .. }) => {
                launch.streams = Streams::Taken;
                match supervise::start(&launch) {
                    Ok(_) => Self::Works,
                    Err(error) => Self::NoJail(exec::own(exec::not_contained(&error))),
                }
            }
        }
    }

    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::NoJail(failure) | Self::Refused(failure) => Some(failure),
            Self::Works | Self::NotTried => None,
        }
    }

    fn sentence(&self) -> String {
        match (self, self.failure()) {
            (_, Some(failure)) => format!("refused in this directory: {}", failure.what),
            (Self::Works, _) => "works in this directory".into(),
            _ => "cannot be contained".into(),
        }
    }

    fn advice(&self) -> Option<Advice> {
        let Self::NoJail(failure) = self else {
            return None;
        };
        let mut problem = format!("`cto exec` is refused in this directory: {}", failure.what);
        for reason in &failure.because {
            problem = format!("{problem}; {reason}");
        }
        Some(Advice {
            problem,
            fix: failure.hint.clone().unwrap_or_default(),
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "exec": if matches!(self, Self::Works) { "contained" } else { "refused" },
            "error": self.failure().map(|failure| failure.to_json(None)["error"].clone()),
        })
    }
}

fn tell(context: &Context, advice: &Advice) {
    context.output.line("");
    context.output.hanging("problem: ", &advice.problem);
    context.output.hanging("fix:     ", &advice.fix);
}

/// How many checkouts of repositories are kept, and the bytes of their files.
fn checkouts(home: &Home) -> (usize, u64) {
    let kept = checkout::list(home);
    (
        kept.len(),
        kept.iter()
            .fold(0, |sum, checkout| sum.saturating_add(checkout.bytes)),
    )
}

fn describe(found: &Resolved) -> String {
    match found {
        Resolved::Missing => "not found".into(),
        Resolved::System(path) => path.display().to_string(),
        Resolved::Toolchain(toolchain) => {
            format!("{} (shown read-only in a jail)", toolchain.record.program)
        }
        Resolved::Unusable(why) => format!("cannot be used in a jail: {why}"),
    }
}
