//! From the words that were typed to a command, or to an answer in the same shape as every other
//! one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{Error, ErrorKind};
use clap::{Args, FromArgMatches, ValueEnum};
use serde_json::json;

use super::{Cli, Command, Global, command_tree, old_names};
use crate::cli::work::exec;
use crate::host::failure::Failure;
use crate::screen::output::{Color, Output};

/// A command line that was understood.
pub struct Asked {
    pub cli: Cli,
    /// The words of the command: `run`, `config check`.
    pub command: String,
}

/// Understands the words, or answers and says how to end.
pub fn parse(argv: Vec<OsString>) -> Result<Asked, u8> {
    if let Some(asked) = parse_one_command(&argv) {
        return Ok(asked);
    }
    let tree = command_tree();
    let early = Early::of(&argv, &tree);
    let argv = old_names::translate(argv, &tree).map_err(|failure| early.fail(failure))?;
    let matches = tree
        .try_get_matches_from(argv)
        .map_err(|error| early.answer(&error))?;
    let command = words(&matches);
    let cli = Cli::from_arg_matches(&matches).map_err(|error| early.answer(&error))?;
    if cli.command.is_none() {
        return Err(early.nothing_asked());
    }
    Ok(Asked { cli, command })
}

/// Understands a command that is started often with no other one in the tree: to make them all takes
/// longer than the rest of a start. None for a mistake, and for a question about this program: the
/// whole tree answers those.
fn parse_one_command(argv: &[OsString]) -> Option<Asked> {
    match argv.get(1)?.to_str()? {
        "run" => parse_alone("run", argv, Command::Run),
        "try" => parse_alone("try", argv, Command::Try),
        "show" => parse_alone("show", argv, Command::Show),
        "verify" => parse_alone("verify", argv, Command::Verify),
        "exec" => parse_alone("exec", argv, Command::Exec),
        _ => None,
    }
}

fn parse_alone<A: Args>(
    name: &'static str,
    argv: &[OsString],
    command: fn(A) -> Command,
) -> Option<Asked> {
    if old_names::called_by(Path::new(argv.first()?)).is_some() {
        return None;
    }
    let tree = Global::augment_args(clap::Command::default().disable_help_subcommand(true));
    let asked = A::augment_args(clap::Command::default().name(name));
    let matches = tree.subcommand(asked).try_get_matches_from(argv).ok()?;
    let (_, own) = matches.subcommand()?;
    let cli = Cli {
        global: Global::from_arg_matches(&matches).ok()?,
        command: Some(command(A::from_arg_matches(own).ok()?)),
    };
    Some(Asked {
        cli,
        command: words(&matches),
    })
}

fn words(matches: &clap::ArgMatches) -> String {
    let mut words = Vec::new();
    let mut here = matches;
    while let Some((name, below)) = here.subcommand() {
        words.push(name);
        here = below;
    }
    words.join(" ")
}

/// What must be known to answer before the words are understood.
struct Early {
    output: Output,
    /// Its own failures have a code of their own.
    is_exec: bool,
}

impl Early {
    fn of(argv: &[OsString], tree: &clap::Command) -> Self {
        let ours: Vec<&str> = argv
            .iter()
            .skip(1)
            .take_while(|word| *word != "--")
            .filter_map(|word| word.to_str())
            .collect();
        let command = old_names::command_word(argv, tree).and_then(|at| argv[at].to_str());
        let command = command
            .filter(|name| tree.find_subcommand(name).is_some())
            .map(str::to_owned);
        let color =
            ours.iter()
                .enumerate()
                .find_map(|(at, word)| match word.strip_prefix("--color")? {
                    "" => ours.get(at + 1).copied(),
                    rest => rest.strip_prefix('='),
                });
        color
            .and_then(|name| Color::from_str(name, false).ok())
            .unwrap_or(Color::Auto)
            .apply();
        let is_exec = command.as_deref() == Some("exec");
        Self {
            output: Output::new(
                ours.contains(&"--json"),
                shown_program,
                command,
                None,
                None,
                None,
            ),
            is_exec,
        }
    }

    fn fail(&self, failure: Failure) -> u8 {
        let failure = if self.is_exec {
            exec::own(failure)
        } else {
            failure
        };
        self.output.failure(&failure);
        failure.exit_code()
    }

    /// Help and version are what was asked for; everything else is a usage error.
    fn answer(&self, error: &Error) -> u8 {
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !self.output.json
        {
            self.output
                .note(error.render().ansi().to_string().trim_end());
            return to_failure(error).exit_code();
        }
        if error.use_stderr() {
            return self.fail(to_failure(error));
        }
        if self.output.json {
            let command = match error.kind() {
                ErrorKind::DisplayVersion => "version",
                _ => "help",
            };
            let text = error.render().to_string();
            let document =
                json!({"schema_version": 1, "command": command, "text": text.trim_end()});
            if let Err(failure) = self.output.document(&document) {
                return self.fail(failure);
            }
        } else {
            self.output
                .line(error.render().ansi().to_string().trim_end());
        }
        match self.output.check_arrival() {
            Ok(()) => 0,
            Err(failure) => self.fail(failure),
        }
    }

    /// A person gets the short help. A script that forgot its command must not read it as a pass.
    fn nothing_asked(&self) -> u8 {
        let failure = Failure::usage("missing_command", "no command was given")
            .hint("`cto help` lists every command");
        if self.output.json {
            return self.fail(failure);
        }
        self.output
            .note(command_tree().render_help().ansi().to_string().trim_end());
        failure.exit_code()
    }
}

/// The parser's words in our own shape.
fn to_failure(error: &Error) -> Failure {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|paragraph| {
        paragraph
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    });
    let first = paragraphs.next().unwrap_or_default();
    let what = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    let more: Vec<String> = paragraphs
        .filter(|paragraph| !paragraph.is_empty() && !paragraph.starts_with("For more information"))
        .map(|paragraph| paragraph.replace("tip: ", "").replace("Usage: ", "usage: "))
        .collect();
    let failure = Failure::usage(code(error.kind()), what).so("nothing ran");
    match more.is_empty() {
        true => failure.hint("`cto help` lists every command"),
        false => failure.hint(more.join("; ")),
    }
}

fn code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::UnknownArgument => "unknown_argument",
        ErrorKind::InvalidSubcommand => "unknown_command",
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "missing_command"
        }
        ErrorKind::MissingRequiredArgument => "missing_argument",
        ErrorKind::ArgumentConflict => "argument_conflict",
        ErrorKind::InvalidValue
        | ErrorKind::ValueValidation
        | ErrorKind::NoEquals
        | ErrorKind::TooManyValues
        | ErrorKind::TooFewValues
        | ErrorKind::WrongNumberOfValues => "invalid_value",
        ErrorKind::InvalidUtf8 => "invalid_utf8",
        _ => "bad_usage",
    }
}

/// How the person reached this program.
pub fn shown_program() -> String {
    let typed = std::env::args_os()
        .next()
        .map(PathBuf::from)
        .unwrap_or_else(|| "cto".into());
    if old_names::called_by(&typed).is_some() {
        return "cto".to_owned();
    }
    if typed.components().count() < 2 {
        return typed.display().to_string();
    }
    let here = std::env::current_dir().unwrap_or_default();
    let near = typed
        .strip_prefix(&here)
        .ok()
        .filter(|_| here.parent().is_some());
    let shown = near.map_or(typed.clone(), Path::to_owned);
    match shown.components().count() {
        1 => format!("./{}", shown.display()),
        _ => shown.display().to_string(),
    }
}
