//! `cto keys`: which key signs here, and whose signatures count.

use std::path::{Path, PathBuf};

use cto_core::bundle::attest::{KeyRecord, KeySource, KeyState, PublicKey};
use serde_json::{Value, json};

use crate::cli::Context;
use crate::evidence::keys::{self, Choice, KeyStore, KeysError};
use crate::evidence::sign::{SignError, Signer};
use crate::evidence::signers;
use crate::host::failure::Failure;
use crate::screen::output::{dim, tame};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the keys known here; the one that signs comes first
    Show {
        /// Print only the public key that signs, as PEM, to hand to others
        #[arg(long)]
        public: bool,
    },
    /// Trust a public key (PEM, or an OpenSSH `.pub` file)
    Trust {
        /// The public key
        file: PathBuf,
        /// What to call it [default: the name of the file]
        #[arg(long)]
        label: Option<String>,
    },
    /// Let approvals count that this SSH key signs (an Ed25519 `.pub` file)
    Approver {
        /// Whose it is, as it stands in every approval
        name: String,
        /// The public key
        file: PathBuf,
    },
    /// Sign with a new machine key from now on; what the old one signed still counts
    Rotate,
    /// Let nothing this key signed count any more
    Revoke {
        /// The key id, or a beginning of it that fits one key
        id: String,
        /// Why; shown wherever the key is refused
        #[arg(long)]
        reason: String,
    },
    /// Choose what signs: the machine's key, an SSH key, or a program
    Use(UseArgs),
}

#[derive(clap::Args)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("signer").required(true).args(["machine", "ssh", "public"])))]
struct UseArgs {
    /// The key made on this machine
    #[arg(long)]
    machine: bool,
    /// An OpenSSH Ed25519 private key without a passphrase
    #[arg(long, value_name = "FILE")]
    ssh: Option<PathBuf>,
    /// The public key of a program that signs: it gets the bytes on standard input and prints
    /// base64
    #[arg(long, value_name = "FILE", requires = "program")]
    public: Option<PathBuf>,
    /// The program and its arguments, after `--`
    #[arg(last = true, value_name = "PROGRAM", requires = "public")]
    program: Vec<String>,
}

pub fn run(context: &Context, args: Args) -> Result<u8, Failure> {
    let store = KeyStore::of(&context.home()?);
    match args.command {
        None => show(context, &store, "keys"),
        Some(command) => act(context, &store, command),
    }
}

fn act(context: &Context, store: &KeyStore, command: Command) -> Result<u8, Failure> {
    match command {
        Command::Show { public: true } => {
            context
                .output
                .bytes(signer(store)?.key().to_pem().as_bytes());
            Ok(0)
        }
        Command::Show { public: false } => show(context, store, "keys show"),
        Command::Trust { file, label } => {
            let key = keys::read_public(&file).map_err(|error| {
                // A file that was named and is not there is a slip of the pen.
                let named = || Failure::usage("unreadable_key", "the public key cannot be read");
                let failure = match file.is_file() {
                    true => error.failure(),
                    false => named().because(&error).so("nothing was changed"),
                };
                failure.at(file.display().to_string())
            })?;
            let label =
                label.unwrap_or_else(|| file.file_name().unwrap_or_default().display().to_string());
            let record = store
                .trust_key(&key, &label)
                .map_err(|error| error.failure())?;
            answer(
                context,
                "trust",
                &[&record],
                "its signatures count here from now on",
            )
        }
        Command::Approver { name, file } => approver(context, &name, &file),
        Command::Rotate => {
            let (old, new) = store.rotate().map_err(|error| error.failure())?;
            let records: Vec<&KeyRecord> = [&new].into_iter().chain(old.as_ref()).collect();
            answer(
                context,
                "rotate",
                &records,
                "hand the new public key to those who verify: `cto keys show --public`",
            )
        }
        Command::Revoke { id, reason } => {
            let record = store
                .revoke(&id, &reason)
                .map_err(|error| error.failure())?;
            answer(
                context,
                "revoke",
                &[&record],
                "tell everyone who trusts it; each store knows only its own revocations",
            )
        }
        Command::Use(args) => choose(context, store, args),
    }
}

/// Writes who may approve here.
fn approver(context: &Context, name: &str, file: &Path) -> Result<u8, Failure> {
    let bad = |why: String| {
        Failure::usage("bad_approver", "this key cannot be let approve")
            .at(file.display().to_string())
            .reason(why)
            .so("nothing was changed")
    };
    let bytes = crate::host::files::read_limited(file, 16 << 10).map_err(|e| bad(e.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| bad("it is not text".into()))?;
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    let path = signers::add(&context.home()?, name, &words.join(" ")).map_err(bad)?;
    if context.output.json {
        context.output.document(&json!({
            "schema_version": 1, "command": "keys approver", "approver": name,
            "path": path.display().to_string(),
        }))?;
        return Ok(0);
    }
    context.output.line(&format!("{name} may approve here"));
    context.output.row("written", &path.display().to_string());
    Ok(0)
}

fn signer(store: &KeyStore) -> Result<Signer, Failure> {
    Signer::ready(store).map_err(|error| unusable(&error))
}

fn unusable(error: &SignError) -> Failure {
    match error {
        SignError::Keys(keys) => keys.failure(),
        _ => Failure::usage("bad_signer", "the signer cannot be used").because(error),
    }
}

fn choose(context: &Context, store: &KeyStore, args: UseArgs) -> Result<u8, Failure> {
    let choice = match (args.ssh, args.public) {
        (Some(file), _) => Choice::Ssh {
            file: absolute(&file)?,
        },
        (None, Some(public)) => {
            let key = keys::read_public(&public)
                .map_err(|error| error.failure().at(public.display().to_string()))?;
            Choice::Command {
                argv: by_path(args.program)?,
                public_key: key.to_pem(),
            }
        }
        (None, None) => Choice::Machine,
    };
    let (signer, label) = Signer::of(store, &choice).map_err(|error| unusable(&error))?;
    // Asked once now, so that a wrong program is found before a run depends on it.
    signer
        .sign(b"cto keys use")
        .map_err(|error| unusable(&error))?;
    let record = store
        .choose(&choice, signer.key(), &label)
        .map_err(|error| error.failure())?;
    answer(
        context,
        "use",
        &[&record],
        "it signs what is sealed here from now on",
    )
}

/// The program by its absolute path: a name would be searched for again whenever it signs.
fn by_path(mut argv: Vec<String>) -> Result<Vec<String>, Failure> {
    let Some(program) = argv.first_mut() else {
        return Ok(argv);
    };
    let named = Failure::usage("bad_signer", "the signer cannot be used");
    if !program.contains('/') {
        return Err(named
            .reason(format!("{program:?} is a name, not a path"))
            .hint("name the program by its absolute path"));
    }
    let path = std::path::absolute(&*program).map_err(|error| named.because(&error))?;
    *program = path.display().to_string();
    Ok(argv)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize()
        .map_err(|error| KeysError::Read(path.to_owned(), error).failure())
}

fn row(record: &KeyRecord, signs: bool) -> Value {
    let mut value = serde_json::to_value(record).unwrap_or_default();
    value["signs"] = signs.into();
    value
}

fn answer(
    context: &Context,
    command: &str,
    records: &[&KeyRecord],
    then: &str,
) -> Result<u8, Failure> {
    if context.output.json {
        let keys: Vec<Value> = records.iter().map(|record| row(record, false)).collect();
        context.output.document(
            &json!({"schema_version": 1, "command": format!("keys {command}"), "keys": keys}),
        )?;
        return Ok(0);
    }
    for record in records {
        context
            .output
            .line(&format!("{} {}", record.key_id, state_word(record)));
        context.output.hanging("  ", &tame(&record.label));
    }
    context.output.line("");
    context.output.hanging("", then);
    Ok(0)
}

fn state_word(record: &KeyRecord) -> &'static str {
    match (&record.state, record.source) {
        (KeyState::Trusted, KeySource::Own) => "own",
        (KeyState::Trusted, KeySource::Operator) => "trusted",
        (KeyState::Rotated { .. }, _) => "rotated",
        (KeyState::Revoked { .. }, _) => "revoked",
    }
}

fn show(context: &Context, store: &KeyStore, command: &str) -> Result<u8, Failure> {
    let mut records = store.records().map_err(|error| error.failure())?;
    let key = signing_key(store, &records)?;
    let signs = |record: &KeyRecord| key.as_ref().is_some_and(|key| key.id() == record.key_id);
    records.sort_by_key(|record| (!signs(record), record.added_at));
    if context.output.json {
        let rows: Vec<Value> = records
            .iter()
            .map(|record| row(record, signs(record)))
            .collect();
        context
            .output
            .document(&json!({"schema_version": 1, "command": command, "keys": rows}))?;
        return Ok(0);
    }
    if records.is_empty() {
        context.output.line("No keys yet: the first run makes one.");
        return Ok(0);
    }
    let dim = dim();
    for record in &records {
        let mark = if signs(record) { "signs" } else { "" };
        let since = match &record.state {
            KeyState::Trusted => format!("since {}", record.added_at),
            KeyState::Rotated { at } => format!("at {at}"),
            KeyState::Revoked { at, reason } => format!("at {at}: {}", tame(reason)),
        };
        context.output.line(&format!(
            "{} {:<8} {mark}",
            record.key_id,
            state_word(record)
        ));
        context.output.hanging(
            "  ",
            &format!("{}, {dim}{since}{dim:#}", tame(&record.label)),
        );
    }
    Ok(0)
}

/// The key that would sign now. Looking makes none: without a first run there is none.
fn signing_key(store: &KeyStore, records: &[KeyRecord]) -> Result<Option<PublicKey>, Failure> {
    let made = records
        .iter()
        .any(|record| record.source == KeySource::Own && record.state == KeyState::Trusted);
    match made {
        true => signer(store).map(|signer| Some(signer.key().clone())),
        false => Ok(None),
    }
}
