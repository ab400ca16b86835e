//! The order by which the result of an approved run lands, and the one that takes it back. A run names the commit
//! when it ends, and its settlement makes that commit again: both ask here, so that both make the same.

use std::path::Path;

use cto_core::values::digest::Digest;
use cto_core::values::ids::{CaseId, RunId};
use cto_core::values::time::Utc;
use cto_core::workspace::landing::Way;
use cto_core::workspace::landing::message::{self, Trailers, Who};
use cto_core::workspace::patch::{PatchError, PatchReader};

use super::{Change, Clean, Order};
use crate::host::Home;
use crate::host::programs::Program;

/// A result, as its run knows it at its end and its bundle for ever. The commit follows from this alone.
#[derive(Clone, Copy)]
pub struct RunResult<'a> {
    /// Of the contract: what the commit is called.
    pub title: &'a str,
    pub case: &'a CaseId,
    pub run: &'a RunId,
    /// `run_started_at` of the report: the time of the commit.
    pub started_at: Utc,
    /// The request that was approved.
    pub request: Option<&'a RunId>,
    pub patch: &'a [u8],
    /// The target's HEAD when the run looked at it, by the names git gives commit and tree.
    pub head: &'a str,
    pub tree: &'a str,
    /// The branch that was checked out there then: the only one that `Way::Merge` may move.
    pub branch: Option<&'a str>,
}

/// Where it lands, and with what.
#[derive(Clone, Copy)]
pub struct Into<'a> {
    pub git: &'a Program,
    pub home: &'a Home,
    pub repository: &'a Path,
    /// Of its path, as the contract's lane names it.
    pub only: Option<Digest>,
    pub users_home: Option<&'a Path>,
    pub aside: &'a Path,
}

/// The order whose commit is the result of the run, whichever way it lands.
pub fn result_order<'a>(
    result: &RunResult<'a>,
    into: Into<'a>,
    way: Way,
) -> Result<Order<'a>, PatchError> {
    let mut reader = PatchReader::default();
    reader.feed(result.patch);
    let change = Change::Patch {
        tree: result.tree,
        bytes: result.patch,
        paths: reader.finish_paths()?,
    };
    let branch = result.branch.filter(|_| way == Way::Merge);
    let order = order(
        result,
        into,
        (way, change, words(result)),
        result.started_at,
    );
    Ok(Order {
        branch,
        head: Some(result.head),
        ..order
    })
}

/// The order that takes a landed result back, on whatever stands on it by now.
pub fn undo_order<'a>(
    result: &RunResult<'a>,
    into: Into<'a>,
    (commit, words, when): (&'a str, &'a str, Utc),
) -> Order<'a> {
    let change = Change::Undo { commit };
    let order = order(result, into, (Way::Merge, change, words), when);
    Order {
        branch: result.branch,
        ..order
    }
}

fn order<'a>(
    result: &RunResult<'a>,
    into: Into<'a>,
    (way, change, words): (Way, Change<'a>, &'a str),
    when: Utc,
) -> Order<'a> {
    Order {
        git: into.git,
        home: into.home,
        repository: into.repository,
        only: into.only,
        users_home: into.users_home,
        way,
        change,
        branch: None,
        head: None,
        clean: Clean::Everything,
        run: result.run,
        approval: result.request.map(RunId::as_str),
        words,
        author: Who::harness(),
        committer: Who::harness(),
        when,
        awaits_settlement: true,
        aside: into.aside,
    }
}

/// The title of the task; its id where that title is no message.
fn words<'a>(result: &RunResult<'a>) -> &'a str {
    let trailers = Trailers {
        run: result.run.clone(),
        approval: None,
        reverts: None,
    };
    match message::message(result.title, &trailers) {
        Ok(_) => result.title,
        Err(_) => result.case.as_str(),
    }
}
