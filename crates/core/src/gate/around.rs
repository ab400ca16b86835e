//! What stands around an engine's program and was admitted with it: the version of its package, the
//! packages themselves, and what runs it. The program itself is a matter of `admissions.rs`.

use super::lane::{Interpreter, LaneFacts, Packages};
use crate::engine::manifest::Manifest;
use crate::engine::manifest::interpreter::too_old;
use crate::records::{ExecutableAdmission, RecordKind};

/// What is not as it was admitted around a file that is: the version of its package, the packages
/// themselves, and what runs it.
pub fn beside(
    manifest: &Manifest,
    facts: &LaneFacts,
    record: &ExecutableAdmission,
) -> Option<String> {
    if let Some((admitted, found)) = record.other_version(facts.package_version.as_deref()) {
        return Some(format!(
            "the package around the file is version {found}, and {admitted} is admitted"
        ));
    }
    if let Some(why) = packages_differ(&facts.packages, record) {
        return Some(why);
    }
    if let Some(name) = record.interpreter.as_deref() {
        match &facts.interpreter {
            Interpreter::Missing(why) => return Some(why.clone()),
            Interpreter::Found(found) if Some(*found) != record.interpreter_sha256 => {
                return Some(format!(
                    "{name} that is found now is another file than the one it was admitted with"
                ));
            }
            Interpreter::Found(_) | Interpreter::NotRecorded => {}
        }
    }
    interpreter_too_old(manifest, record)
}

/// Why what runs the program may not: the file is the one that was asked for its version when it was
/// admitted.
pub fn interpreter_too_old(manifest: &Manifest, record: &ExecutableAdmission) -> Option<String> {
    // One that is not on record is a matter of the review: one cause, one blocker.
    if interpreter_not_recorded(manifest, record) {
        return None;
    }
    let name = manifest.invocation.as_ref()?.interpreter.as_deref()?;
    let why = too_old(manifest, name, record.interpreter_version.as_deref())?;
    Some(format!("{why}; `cto setup {}` looks again", record.engine))
}

/// Does the manifest name what runs the program, and the record another one or none? Then whatever PATH
/// has by that name would run it, and nobody looked at that.
pub fn interpreter_not_recorded(manifest: &Manifest, record: &ExecutableAdmission) -> bool {
    let wanted = manifest.invocation.as_ref();
    let wanted = wanted.and_then(|own| own.interpreter.as_deref());
    wanted.is_some_and(|name| record.pinned_interpreter() != Some(name))
}

/// What the record should pin of what stands around the program, and does not: each a reason to look
/// again.
pub fn not_pinned(
    manifest: &Manifest,
    facts: &LaneFacts,
    record: &ExecutableAdmission,
) -> Vec<String> {
    let kind = RecordKind::Executable.title();
    let missing = |what: &str| {
        let engine = &manifest.id;
        format!(
            "{kind}: it holds no digest of {what}; `cto setup {engine}` looks at it and admits it anew"
        )
    };
    let name = manifest.invocation.as_ref();
    let name = name.and_then(|own| own.interpreter.as_deref());
    let packages = facts.packages == Packages::NotPinned;
    let packages = packages.then(|| missing("the packages around the file"));
    let interpreter = name.filter(|_| interpreter_not_recorded(manifest, record));
    let interpreter = interpreter.map(|name| missing(&format!("{name}, which runs the file")));
    packages.into_iter().chain(interpreter).collect()
}

/// Why what the program was installed with is not what was admitted. Packages that no record pins are
/// no difference: the record is due for review.
pub fn packages_differ(found: &Packages, record: &ExecutableAdmission) -> Option<String> {
    match (found, record.packages_sha256) {
        (Packages::None | Packages::NotPinned, None) => None,
        (Packages::None | Packages::NotPinned, Some(_)) => {
            Some("the packages it was admitted with are no longer around the file".into())
        }
        (Packages::Unusable(why), _) => Some(why.clone()),
        (Packages::Found { sha256, .. }, Some(admitted)) if *sha256 == admitted => None,
        (Packages::Found { difference, .. }, _) => Some(match difference {
            Some(what) => format!(
                "its packages are not those that are admitted: {what}; if that was you, `cto setup {}` admits them as they are",
                record.engine
            ),
            None => "its packages have another digest than the one that is admitted".into(),
        }),
    }
}
