//! `cto try`: the operator's own words on a private copy of the operator's own repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::report::Report;
use cto_core::run::event::Origin;
use cto_core::task::contract::{Action, Label, Stage};
use cto_core::task::source::{SourceClass, SourceRecord};
use cto_core::values::ids::CaseId;
use cto_core::values::paths::PathRule;
use cto_core::values::verdict::Status;

use crate::cli::Context;
use crate::cli::evidence::diff;
use crate::cli::evidence::show;
use crate::cli::work::run::{self, LaneArgs};
use crate::evidence::SealedBundle;
use crate::host::failure::Failure;
use crate::host::files;
use crate::host::toolchains;
use crate::screen::stat_view;
use crate::screen::terminal;
use crate::task::cases::Case;
use crate::task::request::Request;
use crate::task::request::SourceRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The repository; its HEAD is copied, and it is only ever read
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// What should be done, in your words
    #[arg(long, value_name = "TEXT")]
    task: String,
    /// A file or directory that may change; `.` for all of it (repeatable)
    #[arg(long, value_name = "PATH", required = true)]
    allow: Vec<String>,
    /// A file or directory that must not change, even if allowed (repeatable)
    #[arg(long, value_name = "PATH")]
    forbid: Vec<String>,
    /// The command that verifies it, run where the engine never was (repeatable)
    #[arg(long, value_name = "COMMAND", required = true)]
    test: Vec<String>,
    /// Copy the last commit although there are uncommitted changes
    #[arg(long)]
    from_head: bool,
    /// A command that prepares a copy, e.g. `npm ci --offline` (repeatable)
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<String>,
    /// An ignored directory to show read-only in the copy, e.g. node_modules (repeatable)
    #[arg(long, value_name = "DIR")]
    input: Vec<String>,
    /// A patch that must turn the test red, where the test command is not one cto knows
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// Show the engine's output while it runs
    #[arg(long, short)]
    verbose: bool,
    /// Keep the workspace of a run that does not pass
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    lane: LaneArgs,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let (verbose, keep) = (args.verbose, args.keep);
    let request = Request {
        keep,
        ..request(context, args)?
    };
    let (home, sealed) = run::execute(context, &request, verbose)?;
    let report = &sealed.report;
    let next = match report.status {
        Status::Pass => context.output.command(&format!("apply {}", report.run_id)),
        Status::Fail | Status::Blocked => {
            context.output.command(&format!("show {}", report.run_id))
        }
    };
    if context.output.json {
        context.output.document(&run::answer(
            "try",
            &sealed,
            &next,
            run::kept_workspace(&home, &request, report),
        ))?;
        return Ok(report.status.exit_code());
    }
    print(context, &sealed);
    run::say_kept(context, &home, &request, report);
    context.output.line(&format!("\nnext: {next}"));
    Ok(report.status.exit_code())
}

/// Lines of the patch that are shown at once.
const PREVIEW: usize = 60;

fn print(context: &Context, sealed: &SealedBundle) {
    let report: &Report = &sealed.report;
    show::print(context, report, &sealed.dir);
    let stat =
        stat_view::of_patch(&sealed.dir.join(bundle::PATCH)).filter(|stat| !stat.files.is_empty());
    if let Some(stat) = stat {
        context.output.line("");
        stat_view::lines(&stat, terminal::columns())
            .iter()
            .for_each(|line| context.output.line(line));
        context.output.line("");
        diff::preview(context, &sealed.dir.join(bundle::PATCH), PREVIEW);
    }
}

fn request(context: &Context, args: Args) -> Result<Request, Failure> {
    if args.lane.plays_nothing() {
        return Err(Failure::usage("script_missing", "the fake engine plays a script, and none was given")
            .so("nothing ran")
            .hint("--script FILE takes a patch (`git diff > fix.patch`) or a script of steps; see `cto help try`"));
    }
    let (path, record) = record(context, &args.repo)?;
    let case = case(&args)?;
    let source = SourceRequest {
        path,
        record,
        from_head: args.from_head,
    };
    let request = args
        .lane
        .request(context, case, Some(Stage::Three.number()))?;
    Ok(Request {
        origin: Origin::Operator,
        label: Label::Try,
        source: Some(source),
        ..request
    })
}

/// The source record, from the typed command alone: nothing has been looked at yet.
fn record(context: &Context, repo: &Path) -> Result<(PathBuf, SourceRecord), Failure> {
    let bad = |error: &dyn std::error::Error| {
        Failure::usage("bad_path", "the repository's path cannot be used")
            .at(repo.display().to_string())
            .because(error)
    };
    let path = std::path::absolute(repo).map_err(|error| bad(&error))?;
    if path.to_str().is_none() {
        return Err(Failure::usage(
            "bad_path",
            "the repository's path is not UTF-8, so no record can name it",
        )
        .so("nothing ran"));
    }
    let owner = ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| context.env.get(name)?.to_str().map(str::to_owned));
    let uid = rustix::process::geteuid().as_raw();
    let record = SourceRecord {
        path: toolchains::shorten(&path, &context.env),
        owner: owner.unwrap_or_else(|| format!("uid {uid}")),
        ownership_evidence: "named by the operator in `cto try --repo`".into(),
        class: SourceClass::OwnedLocal,
    };
    Ok((path, record))
}

/// The task as a case of its own, written the way a person would write one.
fn case(args: &Args) -> Result<Case, Failure> {
    let id = task_id(&args.task)?;
    let list = |items: &[String]| {
        toml::Value::Array(items.iter().map(|item| item.as_str().into()).collect())
    };
    let title: String = args
        .task
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(120)
        .collect();
    let mut beside = BTreeMap::new();
    let mut table = toml::Table::from_iter([
        ("schema_version".to_owned(), 1.into()),
        ("task_id".to_owned(), id.as_str().into()),
        ("title".to_owned(), title.into()),
        ("objective".to_owned(), args.task.as_str().into()),
        (
            "repo_scope".to_owned(),
            "private copy of the operator's repository".into(),
        ),
        ("authority_basis".to_owned(), "typed by the operator".into()),
        ("risk_class".to_owned(), "low".into()),
        (
            "allowed_paths".to_owned(),
            list(&rules("--allow", &args.allow)?),
        ),
        (
            "forbidden_paths".to_owned(),
            list(&rules("--forbid", &args.forbid)?),
        ),
        ("forbidden_actions".to_owned(), list(&action_names())),
        ("mutation_mode".to_owned(), "copied-repo".into()),
        (
            "approval_policy".to_owned(),
            "not required for a private copy".into(),
        ),
        ("verification_commands".to_owned(), list(&args.test)),
        ("setup".to_owned(), list(&args.setup)),
        ("inputs".to_owned(), list(&args.input)),
        (
            "success_criteria".to_owned(),
            list(&["the test commands are green in a pristine copy".to_owned()]),
        ),
        ("rollback".to_owned(), "the copy is thrown away".into()),
    ]);
    if let Some(file) = &args.control {
        let bytes = files::read_limited(file, 16 << 20).map_err(|error| {
            Failure::usage("unreadable_control", "the control patch cannot be read")
                .at(file.display().to_string())
                .because(&error)
                .so("nothing ran")
        })?;
        beside.insert("control.patch".to_owned(), bytes);
        let control = toml::Table::from_iter([("patch".to_owned(), "control.patch".into())]);
        table.insert("verification_control".to_owned(), control.into());
    }
    Ok(Case {
        id,
        built_in: false,
        inputs: Some(args.repo.clone()),
        label: "cto try".into(),
        text: table.to_string().into_bytes(),
        workspace: Vec::new(),
        hidden: Vec::new(),
        scripts: BTreeMap::new(),
        beside,
    })
}

/// `.` is everything; whether `src` is a file or a directory shows when the source is looked at.
fn rules(flag: &str, typed: &[String]) -> Result<Vec<String>, Failure> {
    let mut rules = Vec::new();
    for path in typed {
        let plain = path
            .strip_prefix("./")
            .unwrap_or(path)
            .trim_end_matches('/');
        if matches!(plain, "" | ".") {
            rules.extend(["*".to_owned(), "*/".to_owned()]);
            continue;
        }
        let checked = plain.parse::<PathRule>().map_err(|problem| {
            Failure::usage("bad_path", format!("{flag} {path:?}: {problem}"))
                .so("nothing ran")
                .hint("write it relative to the repository's top")
        })?;
        let slash = if path.ends_with('/') { "/" } else { "" };
        rules.push(format!("{}{slash}", checked.as_str()));
    }
    // Of `src` and `src/` the wider stays.
    let all = rules.clone();
    rules.retain(|rule| rule.contains('*') || !all.contains(&format!("{rule}/")));
    rules.sort();
    rules.dedup();
    Ok(rules)
}

fn action_names() -> Vec<String> {
    let name = |action: &Action| {
        serde_json::to_value(action)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
    };
    Action::ALL.iter().filter_map(name).collect()
}

/// A short name from the first words of the task.
fn task_id(task: &str) -> Result<CaseId, Failure> {
    let empty = || {
        Failure::usage("empty_task", "--task is empty")
            .so("nothing ran")
            .hint("say in a sentence what should change")
    };
    if task.trim().is_empty() {
        return Err(empty());
    }
    let mut slug = String::from("try");
    for word in task
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        if slug.len() + 1 + word.len() > 40 {
            break;
        }
        slug = format!("{slug}-{}", word.to_ascii_lowercase());
    }
    slug.parse().map_err(|_| empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_gets_a_short_name() {
        for (task, want) in [
            ("Fix the slugify bug!", "try-fix-the-slugify-bug"),
            ("  ünïcode only é ", "try-n-code-only"),
            ("日本語", "try"),
            (
                "a word that goes on and on and on until it is far too long",
                "try-a-word-that-goes-on-and-on-and-on",
            ),
        ] {
            assert_eq!(task_id(task).unwrap().as_str(), want);
        }
        assert!(task_id(" \n").is_err());
    }

    #[test]
    fn paths_are_what_people_mean() {
        let rules = |typed: &[&str]| {
            rules(
                "--allow",
                &typed.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(rules(&["src"]).unwrap(), ["src"]);
        assert_eq!(rules(&["src", "src/", "src"]).unwrap(), ["src/"]);
        assert_eq!(rules(&["./src/", "src/"]).unwrap(), ["src/"]);
        assert_eq!(rules(&["."]).unwrap(), ["*", "*/"]);
        for bad in ["/etc", "../x", "a//b", "a/./b"] {
            assert!(rules(&[bad]).is_err(), "{bad}");
        }
    }
}
