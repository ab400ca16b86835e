//! `cto verify`: good, bad or unknown, from the bundle's own bytes and the keys that count here.

use std::io;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use cto_core::bundle;
use cto_core::bundle::attest::Trust;
use cto_core::bundle::settlement::Effective;
use cto_core::run::rules::Rules;
use cto_core::verify::{FoundBundle, Problem, SignatureStanding, Standing, Verification};
use serde_json::{Value, json};

use crate::bundles::pack::PackError;
use crate::bundles::verifier::Verifier;
use crate::bundles::{reader, settlements};
use crate::cli::Context;
use crate::cli::evidence::last;
use crate::evidence::keys;
use crate::evidence::{Liveness, liveness};
use crate::host::Home;
use crate::host::failure::Failure;
use crate::host::files;
use crate::host::workers;
use crate::screen::output::{dim, status_style, tame};

#[derive(clap::Args)]
pub struct Args {
    /// Run ids, unique parts of them, `last`, bundle directories, or packed bundles
    #[arg(default_value = "last")]
    runs: Vec<String>,
    /// Verify every run in the runs directory
    #[arg(long, conflicts_with_all = ["runs", "stdin"])]
    all: bool,
    /// Read one packed bundle from standard input
    #[arg(long, conflicts_with = "runs")]
    stdin: bool,
    /// Trust only this public key (PEM or OpenSSH; repeatable)
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Trust only the keys in this directory (`.pem`, `.pub`; repeatable)
    #[arg(long, value_name = "DIR")]
    trust: Vec<PathBuf>,
}

/// What is to be verified.
enum Found {
    Dir(PathBuf),
    File(PathBuf),
    Stdin,
}

/// What came of it.
struct Answer {
    place: String,
    outcome: Outcome,
}

enum Outcome {
    Verified(Box<Verification>, Option<Effective>),
    /// Not even an archive.
    Refused(String),
    Unsealed(Liveness),
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let trust = trust(context, args)?;
    let bundles = bundles(context, args)?;
    let home = context.home().ok();
    let places = home.iter().map(|home| home.runs.clone()).collect();
    // Many bundles share the cores among them; one has them all for its files.
    let threads = if bundles.len() > 1 {
        1
    } else {
        workers::cores()
    };
    let verifier = Verifier {
        trust: &trust,
        places,
        threads,
    };
    let answers = workers::for_all(workers::cores(), &bundles, |found| {
        look(home.as_ref(), &verifier, found)
    });
    let answers = answers
        .into_iter()
        .collect::<Result<Vec<Answer>, Failure>>()?;
    if context.output.json {
        let documents: Vec<Value> = answers.iter().map(Answer::document).collect();
        context
            .output
            .document(&json!({"schema_version": 1, "command": "verify", "bundles": documents}))?;
    } else {
        answers.iter().for_each(|answer| answer.print(context));
        if answers.len() > 1 {
            let count = |code: u8| {
                answers
                    .iter()
                    .filter(|answer| answer.exit_code() == code)
                    .count()
            };
            context.output.line(&format!(
                "\n{} good, {} bad, {} unknown",
                count(0),
                count(1),
                count(3)
            ));
        }
    }
    Ok(answers.iter().map(Answer::exit_code).fold(0, worse))
}

/// The caller's keys alone where there are any, otherwise this machine's; what was revoked here
/// stays revoked.
fn trust(context: &Context, args: &Args) -> Result<Trust, Failure> {
    let own = context.trust()?;
    if args.key.is_empty() && args.trust.is_empty() {
        return Ok(own);
    }
    let mut trust = own.only_revocations();
    for file in &args.key {
        let key = keys::read_public(file)
            .map_err(|error| error.failure().at(file.display().to_string()))?;
        trust.named(&key, &file.display().to_string());
    }
    for dir in &args.trust {
        keys::read_trust(dir, &mut trust)
            .map_err(|error| error.failure().at(dir.display().to_string()))?;
    }
    Ok(trust)
}

fn bundles(context: &Context, args: &Args) -> Result<Vec<Found>, Failure> {
    if args.stdin {
        return Ok(vec![Found::Stdin]);
    }
    if args.all {
        let home = context.home()?;
        // What another program keeps here is neither good nor bad.
        return Ok(reader::all_runs(&home)?
            .iter()
            .map(|run| home.runs.join(run.as_str()))
            .filter(|dir| liveness(dir) != Liveness::Foreign)
            .map(Found::Dir)
            .collect());
    }
    args.runs
        .iter()
        .map(|name| match Path::new(name).is_file() {
            true => Ok(Found::File(name.into())),
            false if reader::is_path(name) => reader::bundle_at(name).map(Found::Dir),
            false => last::to_show(context, name).map(Found::Dir),
        })
        .collect()
}

/// What a good run comes to with what was said of it afterwards, as far as this state home knows.
fn settled(
    home: Option<&Home>,
    trust: &Trust,
    found: &FoundBundle,
    verification: &Verification,
) -> Option<Effective> {
    let report = settlements::report_of(found)?;
    let good = verification.standing == Standing::Good;
    let sums = found.files.get(bundle::SUMS)?.sha256;
    settlements::effective(home.filter(|_| good)?, sums, &report, trust)
}

fn look(home: Option<&Home>, verifier: &Verifier<'_>, found: &Found) -> Result<Answer, Failure> {
    let unreadable = |error: &dyn std::error::Error, place: String| {
        Failure::internal("unreadable_bundle", "the bundle cannot be read")
            .at(place)
            .because(error)
    };
    let packed = |place: String, result: Result<Verification, PackError>| match result {
        Ok(verification) => Ok(Answer {
            place,
            outcome: Outcome::Verified(Box::new(verification), None),
        }),
        Err(PackError::Io(error)) => Err(unreadable(&error, place)),
        Err(refused) => Ok(Answer {
            place,
            outcome: Outcome::Refused(refused.to_string()),
        }),
    };
    match found {
        Found::Dir(dir) => {
            let place = dir.display().to_string();
            let outcome = match liveness(dir) {
                Liveness::Sealed => {
                    let (found, verification) = verifier
                        .dir_with_files(dir)
                        .map_err(|error| unreadable(&error, place.clone()))?;
                    let said = settled(home, verifier.trust, &found, &verification);
                    Outcome::Verified(Box::new(verification), said)
                }
                state => Outcome::Unsealed(state),
            };
            Ok(Answer { place, outcome })
        }
        Found::File(file) => {
            let place = file.display().to_string();
            let archive =
                files::open_regular(file).map_err(|error| unreadable(&error, place.clone()))?;
            packed(place, verifier.packed(archive, file.parent()))
        }
        Found::Stdin => packed(
            "standard input".into(),
            verifier.packed(io::stdin().lock(), None),
        ),
    }
}

/// Bad beats unknown beats good.
fn worse(a: u8, b: u8) -> u8 {
    let rank = |code: u8| match code {
        0 => 0,
        3 => 1,
        _ => 2,
    };
    if rank(b) > rank(a) { b } else { a }
}

impl Answer {
    fn exit_code(&self) -> u8 {
        match &self.outcome {
            Outcome::Unsealed(_) => 3,
            Outcome::Refused(_) => 1,
            Outcome::Verified(verification, _) => match verification.standing {
                Standing::Good => 0,
                Standing::Bad => 1,
                Standing::Unknown => 3,
            },
        }
    }

    fn document(&self) -> Value {
        let mut document =
            json!({"bundle": self.place, "exit_code": self.exit_code(), "verification": null});
        match &self.outcome {
            Outcome::Verified(verification, said) => {
                document["verification"] = json!(verification);
                if let Some(said) = said {
                    document["effective"] = json!(said);
                }
            }
            Outcome::Refused(why) => document["refused"] = json!(why),
            Outcome::Unsealed(state) => document["state"] = json!(word(*state)),
        }
        document
    }

    fn print(&self, context: &Context) {
        match &self.outcome {
            Outcome::Verified(verification, said) => {
                print(context, verification, said.as_ref(), &self.place);
            }
            Outcome::Refused(why) => {
                let style = style(Standing::Bad);
                context.output.line(&format!(
                    "{style}BAD{style:#}  {}  {}",
                    tame(&self.place),
                    tame(why)
                ));
            }
            Outcome::Unsealed(state) => {
                let style = style(Standing::Unknown);
                let name = Path::new(&self.place)
                    .file_name()
                    .unwrap_or_default()
                    .display()
                    .to_string();
                let (name, word) = (tame(&name), word(*state));
                context.output.line(&format!(
                    "{style}UNKNOWN{style:#}  {name}  {word}: there is no result to check"
                ));
                if *state == Liveness::Interrupted {
                    context.output.line(&format!(
                        "\nhint: `{}` closes interrupted runs",
                        context.output.command("recover")
                    ));
                }
            }
        }
    }
}

/// What a run without a result is called.
pub fn word(state: Liveness) -> &'static str {
    match state {
        Liveness::Live => "live",
        Liveness::Foreign => "foreign",
        Liveness::Interrupted | Liveness::Sealed => "unsealed",
    }
}

fn style(standing: Standing) -> Style {
    match standing {
        Standing::Good => AnsiColor::Green.on_default().bold(),
        Standing::Bad => AnsiColor::Red.on_default().bold(),
        Standing::Unknown => AnsiColor::Yellow.on_default().bold(),
    }
}

fn print(context: &Context, verification: &Verification, said: Option<&Effective>, place: &str) {
    let out = |text: &str| context.output.line(text);
    let (dim, style) = (dim(), style(verification.standing));
    let word = match verification.standing {
        Standing::Good => "GOOD",
        Standing::Bad => "BAD",
        Standing::Unknown => "UNKNOWN",
    };
    let name = verification
        .run_id
        .clone()
        .unwrap_or_else(|| place.to_owned());
    out(&format!("{style}{word}{style:#}  {}", tame(&name)));
    context.output.hanging(
        &format!("  {dim}signed{dim:#}   "),
        &tame(&signed_by(verification)),
    );
    let checks = verification.checked.iter().map(|check| {
        if check.ok {
            check.name.clone()
        } else {
            format!("{}!", check.name)
        }
    });
    context.output.hanging(
        &format!("  {dim}checked{dim:#}  "),
        &checks.collect::<Vec<_>>().join(", "),
    );
    let list = |what: &str, problems: &[Problem]| {
        for problem in problems {
            let (artifact, message) = (tame(&problem.artifact), tame(&problem.message));
            let text = format!("{artifact}: {message} {dim}[{}]{dim:#}", problem.check);
            context
                .output
                .hanging(&format!("  {dim}{what}{dim:#}  "), &text);
        }
    };
    list("problem", &verification.problems);
    list("unknown", &verification.unknowns);
    list("not re-derived", &verification.not_re_derived);
    if let Some(status) = verification.status {
        let style = status_style(status);
        let rules = verification
            .rules
            .map_or(String::new(), |rules| format!(" by rules {}", rules.0));
        out(&format!(
            "  {dim}verdict{dim:#}  {style}{}{style:#}, re-derived from the evidence{rules}",
            status.as_str()
        ));
    }
    if let Some(said) = said {
        let style = status_style(said.status);
        let by = said
            .by
            .as_ref()
            .map_or(String::new(), |by| format!(", by {by}"));
        out(&format!(
            "  {dim}counts{dim:#}   {style}{}{style:#}: {}{by}",
            said.status.as_str(),
            said.words()
        ));
    }
    out("");
    context.output.hanging("", meaning(verification));
}

fn signed_by(verification: &Verification) -> String {
    let signature = &verification.signature;
    let key = signature.key_id.map(|id| id.short()).unwrap_or_default();
    let label = signature.label.clone().unwrap_or_default();
    match signature.standing {
        SignatureStanding::Own => format!("here, by {label} (key {key})"),
        SignatureStanding::Trusted => format!("by {label} (key {key})"),
        SignatureStanding::Unknown => format!("by unknown key {key}"),
        SignatureStanding::Revoked => format!("by revoked key {key}"),
        SignatureStanding::Invalid => {
            "not by anyone: there is no signature over these files".to_owned()
        }
    }
}

/// What the answer proves and what it does not, in words.
fn meaning(verification: &Verification) -> &'static str {
    match (verification.standing, verification.signature.standing) {
        (Standing::Good, SignatureStanding::Own) => {
            "Nothing changed since the harness sealed it here. The key belongs to the user who runs the harness: the \
             signature proves that user's machine made this bundle, not that its user or root did not make it up."
        }
        (Standing::Good, _) => {
            "Nothing changed since the holder of that key sealed it. The signature proves who vouches for the bundle: \
             trust in what it says is trust in that machine, its user and its root."
        }
        (Standing::Unknown, SignatureStanding::Unknown) => {
            "Whole and consistent, but nobody trusted here vouches for it: anyone can make such a bundle with a key of \
             their own. Get the public key from someone you trust, then `cto verify --key FILE` or `cto keys trust FILE`."
        }
        (Standing::Unknown, _)
            if verification
                .rules
                .is_some_and(|number| Rules::of(number).is_none()) =>
        {
            "A newer cto made this bundle. Verify it with that version."
        }
        (Standing::Unknown, _)
            if verification
                .unknowns
                .iter()
                .any(|unknown| unknown.check == "freshness") =>
        {
            "Whole and consistent, but from the future by the clock of this machine. Set right whichever clock is \
             wrong, then verify it again."
        }
        (Standing::Unknown, _) => {
            "The bundles it relies on could not be checked here: name them too, or put them beside it."
        }
        (Standing::Bad, _) => {
            "Do not rely on this bundle: what it says is not what its evidence says."
        }
    }
}
