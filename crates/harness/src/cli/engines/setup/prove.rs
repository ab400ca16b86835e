//! The proofs of stages 1 and 2, by the same validators as `cto validate`, after every record is
//! there: a record that came later would be about another lane.

use cto_core::containment::Containment;
use cto_core::engine::manifest::Manifest;

use super::dialogue::Dialogue;
use crate::cli::Context;
use crate::host::failure::Failure;
use crate::host::{self, Home, files};
use crate::proof::matrix::make_root;
use crate::proof::validate::{self, Bench, Validation};
use crate::screen::progress;
use crate::task::cases;
use crate::task::lane::LaneOptions;

const WRITTEN: &str = "the records are written; the stages are not proven";

pub fn prove(
    context: &Context,
    dialogue: &Dialogue<'_>,
    manifest: &Manifest,
    case: &str,
    home: &Home,
) -> Result<(Validation, Validation), Failure> {
    let root = make_root(&context.env)?;
    let mut progress = progress::for_stderr(context.output.json, false, &context.env);
    let mut one = |name: &str| {
        dialogue.go_on(WRITTEN)?;
        let fixtures = root.join(name);
        host::make_private_dir(&fixtures).map_err(|e| {
            Failure::internal(
                "no_temporary_directory",
                "no place for fixtures can be made",
            )
            .because(&e)
        })?;
        let mut bench = Bench {
            env: &context.env,
            home,
            root: fixtures,
            engine: Some(manifest.clone()),
            double: None,
            // What a run without flags would use: the records.
            asked: LaneOptions::default(),
            contain: Containment::Strict,
            case: cases::find(case, None)?,
            cancel: dialogue.cancel,
            progress: progress.as_mut(),
            lane: None,
            closed: Default::default(),
        };
        let proven = (validate::find(name)?.run)(&mut bench);
        dialogue.go_on(WRITTEN)?;
        proven
    };
    let proven = one("stage1").and_then(|first| Ok((first, one("stage2")?)));
    // Litter at most: the fixtures' own bundles.
    let _ = files::remove_tree(&root);
    proven
}
