//! `cto bundle pack|unpack`: a bundle as one file, to be handed to someone.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::bundles::pack::{self, PackError};
use crate::bundles::reader;
use crate::cli::Context;
use crate::cli::evidence::last;
use crate::evidence::{Liveness, liveness};
use crate::host;
use crate::host::failure::Failure;
use crate::host::files;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write a sealed bundle as one file; the same bundle gives the same bytes
    Pack {
        /// A run id, a unique part of one, `last`, or a bundle directory
        #[arg(default_value = "last")]
        run: String,
        /// Where to; `.tar` is left uncompressed, `-` is standard output [default: <run
        /// id>.tar.zst]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Unpack into a new directory named after the run
    Unpack {
        /// The packed bundle; `-` is standard input
        file: PathBuf,
        /// Where to make it
        #[arg(long, short = 'C', value_name = "DIR", default_value = ".")]
        directory: PathBuf,
    },
}

pub fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    match &args.command {
        Command::Pack { run, output } => pack(context, run, output.as_deref()),
        Command::Unpack { file, directory } => unpack(context, file, directory),
    }
}

fn pack(context: &Context, name: &str, output: Option<&Path>) -> Result<u8, Failure> {
    let dir = last::to_show(context, name)?;
    if liveness(&dir) != Liveness::Sealed {
        return Err(
            Failure::usage("not_sealed", "only a sealed bundle can be packed")
                .at(dir.display().to_string()),
        );
    }
    let run_id = reader::report(&dir)?.run_id;
    if output == Some(Path::new("-")) {
        pack::pack(&dir, &run_id, io::stdout(), true).map_err(|error| failure(&error, &dir))?;
        return Ok(0);
    }
    let to = output.map_or_else(
        || PathBuf::from(format!("{run_id}.tar.zst")),
        Path::to_owned,
    );
    let compress = to.extension().is_none_or(|end| end != "tar");
    let bytes = write_new(&to, |file| pack::pack(&dir, &run_id, file, compress))
        .map_err(|error| failure(&error, &to))?;
    let next = context.output.command(&format!("verify {}", to.display()));
    match context.output.json {
        true => context.output.document(&json!({
            "schema_version": 1, "command": "bundle pack",
            "run_id": run_id, "file": to.display().to_string(), "bytes": bytes, "next": next,
        }))?,
        false => context.output.line(&format!(
            "packed {} ({bytes} bytes)\n\nnext: {next}",
            to.display()
        )),
    }
    Ok(0)
}

/// A whole file under its name, or none.
fn write_new(
    to: &Path,
    write: impl FnOnce(&mut File) -> Result<(), PackError>,
) -> Result<u64, PackError> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(PackError::Exists(to.to_owned()));
    }
    let name = host::random_name(12).map_err(io::Error::other)?;
    let aside = to.with_file_name(format!(".packing-{name}"));
    let written = File::create_new(&aside)
        .map_err(PackError::from)
        .and_then(|mut file| {
            write(&mut file)?;
            file.flush()?;
            Ok(file.metadata()?.len())
        });
    let placed = written.and_then(|bytes| match files::rename_new(&aside, to)? {
        true => Ok(bytes),
        false => Err(PackError::Exists(to.to_owned())),
    });
    if placed.is_err() {
        let _ = fs::remove_file(&aside);
    }
    placed
}

fn unpack(context: &Context, file: &Path, directory: &Path) -> Result<u8, Failure> {
    let unpacked = match file == Path::new("-") {
        true => pack::unpack(io::stdin().lock(), directory),
        false => files::open_regular(file)
            .map_err(PackError::from)
            .and_then(|archive| pack::unpack(archive, directory)),
    };
    let to = unpacked.map_err(|error| failure(&error, file))?;
    let next = context.output.command(&format!("verify {}", to.display()));
    match context.output.json {
        true => context.output.document(&json!({
            "schema_version": 1, "command": "bundle unpack", "bundle": to.display().to_string(), "next": next,
        }))?,
        false => context.output.line(&format!("unpacked {}\n\nnext: {next}", to.display())),
    }
    Ok(0)
}

fn failure(error: &PackError, place: &Path) -> Failure {
    let mut failure = match error {
        PackError::Refused(_)
        | PackError::Frame(_)
        | PackError::Short
        | PackError::Unlisted(_)
        | PackError::Sums(_) => Failure::usage("archive_refused", "this is not a packed bundle")
            .so("nothing was unpacked"),
        PackError::Exists(_) => {
            Failure::usage("exists", "nothing is overwritten").hint("choose another place")
        }
        PackError::Strange(_) | PackError::Changed(_) => {
            Failure::usage("not_packable", "the bundle cannot be packed")
                .hint("`cto verify` says what is wrong with it")
        }
        PackError::Io(_) => {
            Failure::internal("archive_io", "the archive could not be read or written")
        }
    };
    if matches!(
        error,
        PackError::Refused(_)
            | PackError::Frame(_)
            | PackError::Short
            | PackError::Unlisted(_)
            | PackError::Sums(_)
    ) {
        // An answer about the archive, as `cto verify` gives it.
        failure.exits_with = Some(1);
    }
    failure.at(place.display().to_string()).because(error)
}
