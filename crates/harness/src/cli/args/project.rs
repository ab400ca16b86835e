//! What is known of a repository before a try: what is remembered of it, what its files propose, and what a person at a
//! terminal answers, once. `cto try`, `cto doctor --repo` and `cto project` ask here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cto_core::operator::project::fields::{FIELDS, Field};
use cto_core::operator::project::memory::{Kept, Memory, Said, Settled, Values};
use cto_core::operator::project::propose::{Candidate, Proposal};
use cto_core::values::text::tame;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::args::ask;
use crate::cli::args::here::top_of;
use crate::host::Home;
use crate::host::failure::Failure;
use crate::plan::project::ProjectView;
use crate::screen::output::shell_word;
use crate::task::projects::Project;

/// Flags as they were typed, paths counted from the top, by the key of their field.
pub type Given = BTreeMap<&'static str, Vec<String>>;

/// What is known of the repository around a directory.
pub struct Known {
    home: Home,
    pub top: PathBuf,
    pub remembered: Values,
    /// Another repository lies there than the one that was remembered.
    pub is_another: bool,
    view: Option<ProjectView>,
}

impl Known {
    /// Looks at what is remembered; none where there is no work tree at all. The repository itself is opened only
    /// where something of it is needed.
    pub fn look(context: &Context, repo: &Path) -> Result<Option<Self>, Failure> {
        let Some(top) = top_of(repo) else {
            return Ok(None);
        };
        let mut known = Self {
            home: context.home()?,
            top,
            remembered: Values::new(),
            is_another: false,
            view: None,
        };
        let Some(memory) = Project::at(&known.home, &known.top).read()? else {
            return Ok(Some(known));
        };
        // Where it cannot be opened nothing is believed of it; what runs next says why.
        let is_it = known
            .opened(context)
            .and_then(|view| view.is(&memory.repository));
        match is_it {
            Ok(true) => known.remembered = memory.remembered,
            Ok(false) | Err(_) => known.is_another = true,
        }
        Ok(Some(known))
    }

    fn opened(&mut self, context: &Context) -> Result<&ProjectView, String> {
        let view = match self.view.take() {
            Some(view) => view,
            None => ProjectView::open(&self.top, &context.env, &self.home)?,
        };
        Ok(self.view.insert(view))
    }

    pub fn proposal(&mut self, context: &Context) -> Result<Proposal, Failure> {
        let proposal = self.opened(context).and_then(ProjectView::proposal);
        proposal.map_err(|why| self.unusable(why))
    }

    fn unusable(&self, why: String) -> Failure {
        Failure::usage("no_repository", "the repository cannot be looked at")
            .at(self.top.display().to_string())
            .reason(why)
            .so("nothing ran")
            .hint("name the top of a git work tree that has a commit: --repo DIR")
    }

    /// Remembers values for the repository that lies there now.
    pub fn remember(&mut self, context: &Context, values: Values) -> Result<(), Failure> {
        let identity = self.opened(context).and_then(ProjectView::identity);
        let identity = identity.map_err(|why| self.unusable(why))?;
        let is_another = self.is_another;
        let project = Project::at(&self.home, &self.top);
        let mut now = Values::new();
        project.change(|known| {
            let fresh = || Memory::new(project.path().clone(), identity.clone());
            let mut memory = known.filter(|_| !is_another).unwrap_or_else(fresh);
            memory.repository = identity.clone();
            memory.take(values).map_err(|why| {
                Failure::usage("not_to_be_remembered", "this cannot be remembered")
                    .reason(why)
                    .so("nothing was remembered")
            })?;
            now = memory.remembered.clone();
            Ok(memory)
        })?;
        (self.remembered, self.is_another) = (now, false);
        Ok(())
    }
}

/// What a try is run with. What neither flags nor memory say is asked at a terminal, and refused elsewhere.
pub fn settle(
    context: &Context,
    repo: &Path,
    given: &Given,
    control: bool,
) -> Result<Settled, Failure> {
    let typed = typed_names(given, control);
    let Some(mut known) = Known::look(context, repo)? else {
        let settled = Settled::of(given, &typed, &Values::new());
        return match missing(&settled).as_slice() {
            [] => Ok(settled),
            fields => Err(untold(fields, &Proposal::default())
                .at(repo.display().to_string())
                .reason("there is no git work tree here that could propose anything")),
        };
    };
    let settled = Settled::of(given, &typed, &known.remembered);
    let fields = missing(&settled);
    if fields.is_empty() {
        say(context, &known.remembered, &settled);
        return Ok(settled);
    }
    let proposal = known.proposal(context)?;
    if context.output.json || !ask::somebody() {
        let refused = untold(&fields, &proposal).at(known.top.display().to_string());
        return Err(match known.is_another {
            true => refused.reason("what is remembered for this path is of another repository"),
            false => refused,
        });
    }
    if known.is_another {
        context
            .output
            .note("Another repository lies here than the one that was remembered.");
    }
    let answers = asked(context, &fields, &proposal)?;
    known.remember(context, answers)?;
    context.output.note(&format!(
        "Remembered. `{}` shows it, `set` and `forget` change it.",
        context.output.command("project show")
    ));
    Ok(Settled::of(given, &typed, &known.remembered))
}

/// The keys of what was typed.
pub fn typed_names(given: &Given, control: bool) -> Vec<&'static str> {
    let typed = given.iter().filter(|(_, values)| !values.is_empty());
    let typed = typed.map(|(key, _)| *key);
    typed.chain(control.then_some("control")).collect()
}

/// What no try can do without.
fn missing(settled: &Settled) -> Vec<&'static str> {
    ["test", "allow"]
        .into_iter()
        .filter(|key| settled.said(key).is_none())
        .collect()
}

/// At most two questions, each with what Enter means.
pub fn asked(
    context: &Context,
    fields: &[&'static str],
    proposal: &Proposal,
) -> Result<Values, Failure> {
    let mut answers = Values::new();
    if fields.contains(&"test") {
        answers.insert("test".to_owned(), asked_test(context, &proposal.tests)?);
    }
    if fields.contains(&"allow") {
        answers.extend(asked_scope(context, proposal)?);
    }
    Ok(answers)
}

fn typed_answer(values: Vec<String>) -> Kept {
    Kept {
        values,
        from: "typed".to_owned(),
    }
}

fn asked_test(context: &Context, tests: &[Candidate]) -> Result<Kept, Failure> {
    let note = |text: &str| context.output.note(text);
    note("Which command tests this repository? (--test)");
    for (number, test) in tests.iter().enumerate() {
        let word = if number == 0 { "proposed" } else { "or" };
        note(&format!("  {word:<9} {}", from_file(test)));
    }
    note(match tests {
        [] => "Nothing here shows one. Type it:",
        _ => "Enter takes what is proposed, or type another:",
    });
    let answer = own_words(ask::line()?);
    match (answer.is_empty(), tests.first()) {
        (false, _) => Ok(typed_answer(vec![answer])),
        (true, Some(best)) => Ok(Kept {
            values: vec![best.command.clone()],
            from: tame(&best.from),
        }),
        (true, None) => Err(no_answer("--test COMMAND")),
    }
}

/// What is typed beyond taking what is proposed: a yes is no command and no path.
fn own_words(answer: String) -> String {
    match answer.to_ascii_lowercase().as_str() {
        "y" | "yes" => String::new(),
        _ => answer,
    }
}

fn from_file(test: &Candidate) -> String {
    format!("{}  (from {})", tame(&test.command), tame(&test.from))
}

fn asked_scope(context: &Context, proposal: &Proposal) -> Result<Values, Failure> {
    let note = |text: &str| context.output.note(text);
    note("What may change? (--allow)");
    if let Some(scope) = &proposal.scope {
        note(&format!("  proposed  {}", scope.allow.join(" ")));
        if !scope.without.is_empty() {
            note(&format!("  without   {}", scope.without.join(" ")));
        }
    }
    note(match proposal.scope {
        Some(_) => "Enter takes what is proposed, or type paths: exactly those may change:",
        None => "Nothing here shows it. Type paths; . is everything:",
    });
    let answer = own_words(ask::line()?);
    let mut answers = Values::new();
    match (answer.is_empty(), &proposal.scope) {
        (false, _) => {
            let paths = answer.split_whitespace().map(str::to_owned).collect();
            answers.insert("allow".to_owned(), typed_answer(paths));
        }
        (true, Some(scope)) => {
            for (key, values) in [("allow", &scope.allow), ("forbid", &scope.forbid)] {
                if !values.is_empty() {
                    let from = "its files".to_owned();
                    let values = values.clone();
                    answers.insert(key.to_owned(), Kept { values, from });
                }
            }
        }
        (true, None) => return Err(no_answer("--allow PATH")),
    }
    Ok(answers)
}

fn no_answer(flag: &str) -> Failure {
    Failure::usage("missing_answer", "there was no answer")
        .so("nothing ran")
        .hint(format!("type it, or give it as {flag}"))
}

/// Nobody is there to ask: the proposal, as flags to paste.
pub fn untold(fields: &[&'static str], proposal: &Proposal) -> Failure {
    let what = match fields {
        ["test"] => "nobody said which command tests this repository",
        ["allow"] => "nobody said what may change in this repository",
        _ => "nobody said which command tests this repository, and what may change",
    };
    let mut refused = Failure::usage("not_told", what).so("nothing ran");
    let mut flags = Vec::new();
    if fields.contains(&"test") {
        for (number, test) in proposal.tests.iter().enumerate() {
            let word = if number == 0 { "proposed" } else { "or" };
            refused = refused.reason(format!("{word}: {}", from_file(test)));
        }
        let best = proposal.tests.first().map(|test| test.command.clone());
        flags.push(best.map_or("--test COMMAND".to_owned(), |best| flag("--test", &best)));
    }
    if fields.contains(&"allow") {
        match &proposal.scope {
            Some(scope) => {
                flags.extend(scope.allow.iter().map(|path| flag("--allow", path)));
                flags.extend(scope.forbid.iter().map(|path| flag("--forbid", path)));
            }
            None => flags.push("--allow PATH".to_owned()),
        }
    }
    refused.hint(format!(
        "add these flags, or remember them with `cto project set`:\n{}",
        flags.join(" ")
    ))
}

/// A flag as it is pasted into a shell.
pub fn flag(name: &str, value: &str) -> String {
    match value.starts_with('-') {
        true => format!("{name}={}", shell_word(value)),
        false => format!("{name} {}", shell_word(value)),
    }
}

/// Values of one flag, for a line that people read.
fn shown(field: &Field, values: &[String]) -> String {
    const SHOWN: usize = 3;
    let some = values.iter().take(SHOWN);
    let some: Vec<String> = some.map(|value| flag(field.flag, value)).collect();
    let more = match values.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", tame(&some.join(" ")))
}

/// Where values came from that nobody typed now.
fn say(context: &Context, remembered: &Values, settled: &Settled) {
    if context.output.json {
        return;
    }
    for (field, values, said) in settled.remembered() {
        let from = remembered.get(field.key).map(|kept| kept.from.as_str());
        let from = match from {
            Some("typed") | None => String::new(),
            Some(from) => format!(", from {}", tame(from)),
        };
        let line = shown(field, values);
        context
            .output
            .note(&format!("{}{from}: {line}", said.as_str()));
    }
}

/// What of it was remembered, for a document.
pub fn remembered_json(settled: &Settled) -> Value {
    let rows = settled.remembered();
    let rows = rows.map(|(field, values, _)| (field.key.to_owned(), json!(values)));
    Value::Object(rows.collect())
}

/// Is a command that a run needed one that was remembered?
pub fn is_from_memory(settled: &Settled) -> bool {
    let said = |key: &str| settled.said(key);
    [said("test"), said("setup")].contains(&Some(Said::Remembered))
}

/// The whole of what is remembered as rows, for people.
pub fn rows(context: &Context, values: &Values) {
    for field in FIELDS {
        let Some(kept) = values.get(field.key) else {
            continue;
        };
        let from = match kept.from.as_str() {
            "typed" => String::new(),
            from => format!("  (from {})", tame(from)),
        };
        let line = kept.values.iter().map(|value| tame(&shell_word(value)));
        let line = line.collect::<Vec<_>>().join(" ");
        context.output.row(field.key, &format!("{line}{from}"));
    }
}
