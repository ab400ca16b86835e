//! Which run `last` is: the newest for a command that only shows, and says so where it is of another
//! repository; the last try of this repository for one that changes something.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::run::event::Kind;
use cto_core::task::source::CopiedRepo;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;

use crate::bundles::reader;
use crate::cli::Context;
use crate::cli::args::here::top_of;
use crate::evidence::{Liveness, liveness};
use crate::host::Home;
use crate::host::failure::Failure;
use crate::screen::output::tame;

const LAST: &str = "last";

/// For a command that only shows: finds a run, and says where `last` is of another repository than the
/// one somebody stands in.
pub fn to_show(context: &Context, name: &str) -> Result<PathBuf, Failure> {
    let dir = reader::find(&context.home()?, name)?;
    let here = top_of(Path::new("."));
    if let (LAST, Some(here), Some(copied)) = (name, here, copied(&dir))
        && let Some(named) = copied.repository
        && named.path_sha256 != digest(&here)
    {
        context.output.note(&format!(
            "note: the newest run is of another repository, {}",
            tame(&named.name)
        ));
    }
    Ok(dir)
}

/// For a command that changes a work tree: `last` is the last finished try of this repository, or its patch
/// judged again.
pub fn to_change(home: &Home, name: &str, repository: Option<&Path>) -> Result<PathBuf, Failure> {
    match name {
        LAST => last_here(home, repository, "nothing was changed", |_| true),
        name => reader::find(home, name),
    }
}

/// For a command that judges a patch again: `last` is the last finished try of this repository, however
/// often it was judged since.
pub fn to_judge(home: &Home, name: &str, repository: Option<&Path>) -> Result<PathBuf, Failure> {
    match name {
        LAST => last_here(home, repository, "nothing ran", |kind| kind == Kind::Run),
        name => reader::find(home, name),
    }
}

fn last_here(
    home: &Home,
    repository: Option<&Path>,
    so: &'static str,
    fits: fn(Kind) -> bool,
) -> Result<PathBuf, Failure> {
    let here = top_of(repository.unwrap_or(Path::new("."))).map(|top| digest(&top));
    let mut others = Vec::new();
    for run in reader::all_runs(home)?.into_iter().rev() {
        let dir = home.runs.join(run.as_str());
        let sealed = || liveness(&dir) == Liveness::Sealed;
        let report = reader::report(&dir).ok().filter(|report| fits(report.kind));
        let Some(named) = report
            .and_then(|report| reader::source(&dir, &report)?.repository)
            .filter(|_| sealed())
        else {
            continue;
        };
        if here == Some(named.path_sha256) {
            return Ok(dir);
        }
        others.push((run, named.name));
    }
    Err(refused(here.is_some(), &others).so(so))
}

fn refused(in_repository: bool, others: &[(RunId, String)]) -> Failure {
    const LISTED: usize = 5;
    let what = match in_repository {
        true => "there is no try of this repository",
        false => "this is no repository, so no try is the last one here",
    };
    let listed: Vec<String> = others
        .iter()
        .take(LISTED)
        .map(|(run, name)| format!("{run} of {}", tame(name)))
        .collect();
    let failure = Failure::usage("no_try_here", what);
    match listed.is_empty() {
        true => failure.hint("`cto runs` lists runs; name one"),
        false => failure.hint(format!("name one: {}", listed.join(", "))),
    }
}

fn copied(dir: &Path) -> Option<CopiedRepo> {
    reader::source(dir, &reader::report(dir).ok()?)
}

fn digest(top: &Path) -> Digest {
    Digest::of(top.as_os_str().as_bytes())
}
