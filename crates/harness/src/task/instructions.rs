//! What an engine is told beside its task: a text of the operator's, or of the case's. Its bytes are
//! taken once; the contract names them by digest, as it names a control patch. A repository never has a
//! say in it.

use std::path::Path;

use cto_core::engine::prompt::{MAX_INSTRUCTIONS, instructions_problem};
use cto_core::task::case_file::{CaseFile, ContractIssue, ControlSource};
use cto_core::values::digest::Digest;

use crate::host::failure::Failure;
use crate::host::files;
use crate::task::cases::Case;
use crate::task::request::Request;

/// A file that was typed. It was named by the operator, so a link of theirs is followed.
pub fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let refused = |code| {
        Failure::usage(code, "the instructions cannot be used")
            .at(file.display().to_string())
            .so("nothing ran")
    };
    let bytes = file
        .canonicalize()
        .and_then(|real| files::read_limited(&real, MAX_INSTRUCTIONS))
        .map_err(|error| refused("unreadable_instructions").because(&error))?;
    match instructions_problem(&bytes) {
        None => Ok(bytes),
        Some(why) => Err(refused("bad_instructions").reason(why)),
    }
}

/// What a case has for its engine, in a file beside the case file.
pub fn of_case<'c>(case: &'c Case, parsed: &CaseFile) -> Result<Option<&'c [u8]>, ContractIssue> {
    let Some(name) = &parsed.instructions else {
        return Ok(None);
    };
    let wrong = |why: &str| ContractIssue {
        file: case.label.clone(),
        line: 1,
        column: 1,
        message: format!("instructions: {why}"),
    };
    let Some(bytes) = case.beside.get(name) else {
        let why = format!("there is no file {name:?} beside the case file");
        return Err(wrong(&why));
    };
    match instructions_problem(bytes) {
        None => Ok(Some(bytes)),
        Some(why) => Err(wrong(&format!("{name:?}: {why}"))),
    }
}

/// An engine that cannot be told is not started without being told.
pub fn refuse_untold(request: &Request) -> Result<(), Failure> {
    let Some(invocation) = &request.manifest.invocation else {
        return Ok(());
    };
    // What is wrong with a case is said by its contract.
    let told = request.case.parsed().ok().is_some_and(|case| {
        let told = request.instructions(&case);
        told.is_ok_and(|told| told.is_some())
    });
    if !told || invocation.instructions.is_some() {
        return Ok(());
    }
    let engine = &request.manifest.id;
    Err(Failure::usage(
        "instructions_unsupported",
        format!("{engine} cannot be told instructions"),
    )
    .reason("its manifest does not say how")
    .so("nothing ran")
    .hint("put them into the task, or use another engine; `instructions` in a manifest says how"))
}

/// Texts beside a case that its contract names by their digests.
pub struct Texts {
    pub instructions: Option<Digest>,
    pub control_patch: Option<Digest>,
}

impl Texts {
    pub fn of(request: &Request, case: &CaseFile) -> Result<Self, ContractIssue> {
        let instructions = match &request.again {
            Some(first) => first.contract.instructions_sha256,
            None => request.instructions(case)?.map(Digest::of),
        };
        let control_patch = match &case.verification_control {
            Some(ControlSource::Patch(file)) => Some(file),
            _ => None,
        };
        let digest = |file: &String| match request.case.beside.get(file) {
            Some(bytes) => Ok(Digest::of(bytes)),
            None => Err(ContractIssue {
                file: request.case.label.clone(),
                line: 1,
                column: 1,
                message: format!(
                    "verification_control: there is no file {file:?} beside the case file"
                ),
            }),
        };
        Ok(Self {
            instructions,
            control_patch: control_patch.map(digest).transpose()?,
        })
    }
}
