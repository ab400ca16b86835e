//! `cto doctor --repo DIR`: the test command on the last commit, in the jail. Nothing is changed, so nothing passes; what
//! can be known ahead is whether the tests run, how long they take, and whether failing ones turn them red.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anstyle::AnsiColor;
use clap::builder::RangedU64ValueParser;
use cto_core::bundle::report::Report;
use cto_core::bundle::report_md::describe_end;
use cto_core::containment::Containment;
use cto_core::engine::manifest::DEFAULT_ENGINE;
use cto_core::operator::project::memory::Settled;
use cto_core::operator::timeline::duration_text;
use cto_core::run::belief::Belief;
use cto_core::task::contract::{LimitChanges, Runner};
use cto_core::values::blocker::{Blocker, Code};
use cto_core::values::ids::RunId;
use cto_core::workspace::environment::with_your;
use serde_json::json;

use crate::cli::Context;
use crate::cli::args::here::{Here, top_of};
use crate::cli::args::project::{self, Given, Known};
use crate::cli::evidence::log;
use crate::cli::work::try_run;
use crate::host::failure::Failure;
use crate::host::{Home, workers};
use crate::run;
use crate::screen::output::{dim, tame};
use crate::screen::progress::{self, Progress, Stage};
use crate::supervise::cancel::Cancel;
use crate::task::attempt::Attempt;
use crate::task::engines;
use crate::task::lane::LaneOptions;
use crate::task::request::{EngineChoice, Request};
use crate::workspace::own_dir::OwnDir;

#[derive(Default, clap::Args)]
pub struct RepoArgs {
    /// Run the tests of this repository's last commit, and say what a try with them is worth
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The test command [default: as remembered by `cto project`, else what the files propose] (repeatable)
    #[arg(long, value_name = "COMMAND", requires = "repo")]
    test: Vec<String>,
    /// A command that prepares a copy (repeatable)
    #[arg(long, value_name = "COMMAND", requires = "repo")]
    setup: Vec<String>,
    /// A directory that git ignores and the tests need (repeatable)
    #[arg(long, value_name = "DIR", requires = "repo")]
    input: Vec<String>,
    /// The test runner that the tests use, where cto does not see it by itself
    #[arg(long, value_name = "NAME", value_parser = try_run::runner, requires = "repo")]
    runner: Option<Runner>,
    /// A program, or the directory of an installation, to show read-only (repeatable)
    #[arg(long, value_name = "PATH", requires = "repo")]
    toolchain: Vec<PathBuf>,
    /// A variable that setup and tests see (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]", requires = "repo")]
    env: Vec<String>,
    /// Seconds each test command may run
    #[arg(long, value_name = "SECONDS", requires = "repo", value_parser = RangedU64ValueParser::<u32>::new().range(1..=604_800))]
    test_timeout: Option<u32>,
}

impl RepoArgs {
    pub fn is_asked(&self) -> bool {
        self.repo.is_some()
    }
}

/// What is tried, and who said it.
struct Tried {
    attempt: Attempt,
    /// Where the test command comes from, in words.
    from: String,
    test_timeout: Option<u32>,
}

impl Tried {
    /// The top of the repository.
    fn place(&self) -> String {
        let top = self.attempt.top.as_ref().unwrap_or(&self.attempt.repo);
        top.display().to_string()
    }
}

pub fn run(context: &Context, args: RepoArgs) -> Result<u8, Failure> {
    let toolchains = args.toolchain.clone();
    let tried = settled(context, args)?;
    let choice = EngineChoice {
        manifest: engines::find(DEFAULT_ENGINE)?,
        allowed: Vec::new(),
        script: None,
        stage: None,
        contain: Containment::Strict,
        limits: LimitChanges {
            verification_seconds: tried.test_timeout,
            ..LimitChanges::default()
        },
        lane: LaneOptions::default(),
        toolchains,
        instructions: None,
        profile: None,
    };
    let limits = context.configured_limits();
    let request =
        Request::look(&tried.attempt, &choice, &context.env, limits)?.at_a_time(workers::cores());
    let cancel = Cancel::on_signals().map_err(|e| {
        Failure::internal("no_signals", "signals cannot be listened to").because(&e)
    })?;
    // A state of its own, gone with this look: no list of runs ever has it.
    let place = OwnDir::make(&context.home()?).map_err(|error| {
        Failure::internal("no_temporary_state", "no place for a look can be made").because(&error)
    })?;
    let home = Home {
        root: place.path().to_owned(),
        runs: place.path().join("harness-runs"),
    };
    let since = Instant::now();
    let mut progress = Unnamed(progress::for_stderr(
        context.output.json,
        false,
        &context.env,
    ));
    let sealed = run::run(&home, &context.env, &request, &cancel, &mut progress)?;
    let said = log::last_words(&sealed.dir, &sealed.report, LAST_WORDS);
    let found = Found {
        tried: &tried,
        report: &sealed.report,
        said,
        wall: since.elapsed(),
    };
    match context.output.json {
        true => found.document(context)?,
        false => found.print(context),
    }
    Ok(found.code())
}

/// Steps without a name of a run: nobody could ask for it afterwards.
struct Unnamed(Box<dyn Progress>);

impl Progress for Unnamed {
    fn started(&mut self, _: &RunId) {}

    fn step(&mut self, name: &str, detail: &str) {
        self.0.step(name, detail);
    }

    fn stage(&self) -> Stage {
        self.0.stage()
    }

    fn done(&mut self) {
        self.0.done();
    }
}

/// Typed, else remembered, else proposed; nobody is asked.
/// What a try on a repository would be, by what is remembered or proposed of it: nobody is asked, and
/// nothing is remembered.
pub fn would_try(context: &Context, repo: PathBuf) -> Result<Attempt, Failure> {
    let args = RepoArgs {
        repo: Some(repo),
        ..RepoArgs::default()
    };
    let tried = settled(context, args)?;
    Ok(Attempt {
        // A try copies a clean tree unless it is told otherwise.
        from_head: false,
        ..tried.attempt
    })
}

fn settled(context: &Context, args: RepoArgs) -> Result<Tried, Failure> {
    let repo = args.repo.unwrap_or_else(|| PathBuf::from("."));
    let here = Here::of(&repo);
    let given = Given::from([
        ("input", here.seen_at_top("--input", &args.input)?),
        ("test", args.test),
        ("setup", args.setup),
        ("runner", try_run::words(args.runner)),
        ("test_timeout", try_run::words(args.test_timeout)),
    ]);
    let mut known = Known::look(context, &repo)?.ok_or_else(|| {
        Failure::usage("no_repository", "there is no git work tree")
            .at(repo.display().to_string())
            .so("nothing ran")
            .hint("name one with --repo DIR")
    })?;
    let typed = project::typed_names(&given, false);
    let settled = Settled::of(&given, &typed, &known.remembered);
    let (test, from) = match settled.said("test") {
        Some(said) => (settled.get("test"), said.as_str().to_owned()),
        None => {
            let proposal = known.proposal(context)?;
            let Some(best) = proposal.tests.first() else {
                return Err(project::untold(&["test"], &proposal).at(repo.display().to_string()));
            };
            (
                vec![best.command.clone()],
                format!("proposed, from {}", best.from),
            )
        }
    };
    let runner = settled.get("runner");
    Ok(Tried {
        from,
        test_timeout: try_run::number(&settled.get("test_timeout")),
        attempt: Attempt {
            top: top_of(&repo),
            repo,
            task: "Look at the tests of this repository".to_owned(),
            allow: vec![".".to_owned()],
            test,
            // What is not committed is no part of it, as in every copy.
            from_head: true,
            setup: settled.get("setup"),
            input: settled.get("input"),
            no_input: settled.get("no_input"),
            runner: runner.first().and_then(|name| Runner::parse(name)),
            env: args.env,
            ..Attempt::default()
        },
    })
}

const LAST_WORDS: usize = 12;

/// How the look ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Works,
    Red,
    /// It could not be run, or a program or module was not there.
    Blocked,
}

struct Found<'a> {
    tried: &'a Tried,
    report: &'a Report,
    said: Vec<String>,
    wall: Duration,
}

impl Found<'_> {
    /// What stands against it. That nothing changed, and that nothing was compared, is as it must be.
    fn blockers(&self) -> Vec<&Blocker> {
        let must = [
            Code::NoDiff,
            Code::VerificationUntrusted,
            Code::VerificationUnproven,
            Code::ChangeNotChecked,
        ];
        let found = self.report.blockers.iter();
        let could_run = !self.report.verification.is_empty();
        found
            .filter(|blocker| !(could_run && must.contains(&blocker.code)))
            .filter(|blocker| blocker.code != Code::NoDiff)
            .collect()
    }

    fn ending(&self) -> Ending {
        let lines = &self.report.verification;
        let red =
            |blocker: &&Blocker| matches!(blocker.code, Code::VerificationFailed | Code::Timeout);
        let blockers = self.blockers();
        match blockers.iter().all(red) {
            true if blockers.is_empty() && !lines.is_empty() => Ending::Works,
            true if !blockers.is_empty() => Ending::Red,
            _ => Ending::Blocked,
        }
    }

    fn code(&self) -> u8 {
        match self.ending() {
            Ending::Works => 0,
            Ending::Red => 1,
            Ending::Blocked => 3,
        }
    }

    fn word(&self) -> &'static str {
        match self.ending() {
            Ending::Works => "works",
            Ending::Red => "red",
            Ending::Blocked => "blocked",
        }
    }

    fn belief(&self) -> Option<Belief> {
        (self.ending() == Ending::Works).then(|| self.report.at_best())
    }

    /// Why the belief is what it is.
    fn because(&self) -> Option<String> {
        let control = self.report.verification_control.as_ref();
        let reason = control.and_then(|control| control.reason.clone());
        Some(match self.belief()? {
            Belief::Proven => {
                "failing tests turned it red; a try also shows whether it loads the change".into()
            }
            Belief::Partly => format!(
                "{}; a try shows whether it is red where the change fails to load",
                reason.unwrap_or_else(|| "it has no must-fail control".into())
            ),
            Belief::None => "failing tests were added, and it stayed green".into(),
        })
    }

    /// The flag that mends what is missing.
    fn hint(&self) -> Option<String> {
        let mends = match self.ending() {
            Ending::Works => match self.belief()? {
                Belief::Proven => return None,
                Belief::Partly => {
                    "--runner NAME names the test runner behind the command, or `cto try --control FILE` gives a patch that must turn it red"
                }
                Belief::None => {
                    "look for what ends the command with 0 whatever its tests do: `|| true`, a pipe, a summary"
                }
            },
            Ending::Red => {
                "tests that are red before a change are no reason against a try; what they lack may be: --input DIR brings an ignored directory along, --setup COMMAND prepares the copy, --env NAME gives a variable"
            }
            Ending::Blocked => {
                let lacks = |blocker: &&Blocker| blocker.code == Code::ToolchainUnavailable;
                match self.blockers().iter().any(lacks) {
                    true => {
                        "install it, or put it on PATH; --toolchain PATH shows a program that is not found, --setup COMMAND prepares the copy, --test COMMAND is another command"
                    }
                    false => {
                        let code = self.blockers().first().map(|blocker| blocker.code);
                        return code.map(|code| code.info().hint.to_owned());
                    }
                }
            }
        };
        let remembered = match self.tried.from.as_str() {
            "remembered" => "; `cto project set` changes what is remembered",
            _ => "",
        };
        Some(format!("{mends}{remembered}"))
    }

    fn document(&self, context: &Context) -> Result<(), Failure> {
        let lines = self.report.verification.iter();
        let tests = lines.map(|line| {
            json!({
                "command": line.command, "passed": line.passed, "exit_code": line.exit_code,
                "duration_ms": line.duration_ms,
            })
        });
        context.output.document(&json!({
            "schema_version": 1,
            "command": "doctor",
            "repository": self.tried.place(),
            "ending": self.word(),
            "commands": self.tried.attempt.test,
            "from": self.tried.from,
            "tests": tests.collect::<Vec<_>>(),
            "belief": self.belief(),
            "because": self.because(),
            "blockers": self.blockers(),
            "said": self.said,
            "hint": self.hint(),
            "wall_ms": u64::try_from(self.wall.as_millis()).unwrap_or(u64::MAX),
            "exit_code": self.code(),
        }))
    }

    fn print(&self, context: &Context) {
        let out = &context.output;
        let (colour, dim) = (
            match self.ending() {
                Ending::Works => AnsiColor::Green,
                Ending::Red => AnsiColor::Red,
                Ending::Blocked => AnsiColor::Yellow,
            },
            dim(),
        );
        let style = colour.on_default().bold();
        let place = tame(&self.tried.place());
        out.hanging(
            &format!("{style}{}{style:#}  ", self.word().to_uppercase()),
            &format!("the tests of {place}, as last committed"),
        );
        out.line("");
        for (number, command) in self.tried.attempt.test.iter().enumerate() {
            let from = tame(&self.tried.from);
            out.row(
                if number == 0 { "test" } else { "" },
                &format!("{}  {dim}({from}){dim:#}", tame(command)),
            );
        }
        for line in &self.report.verification {
            let (word, took) = (
                if line.passed { "green" } else { "RED" },
                duration_text(i64::try_from(line.duration_ms).unwrap_or(i64::MAX)),
            );
            let end = describe_end(line.end);
            out.row("took", &format!("{took}  {word} ({end})"));
        }
        if let (Some(belief), Some(because)) = (self.belief(), self.because()) {
            let text = format!("at best {}: {}", belief.loud(), tame(&because));
            out.row("belief", &text);
        }
        if let Some(with) = with_your(&self.report.environments) {
            out.row("with", &tame(with.strip_prefix("with ").unwrap_or(&with)));
        }
        for blocker in self.blockers() {
            out.row(
                "why",
                &format!("{}: {}", blocker.code.as_str(), blocker.message),
            );
            blocker
                .detail
                .iter()
                .for_each(|detail| out.row("", &tame(detail)));
        }
        for (at, words) in self.said.iter().enumerate() {
            out.row(if at == 0 { "said" } else { "" }, words);
        }
        if let Some(hint) = self.hint() {
            out.line("");
            out.hanging("hint: ", &hint);
        }
    }
}
