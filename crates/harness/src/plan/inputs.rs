//! Inputs of a contract: where they lie on this host, and whether they can stand where they are
//! asked for.

use std::path::{Path, PathBuf};

use cto_core::containment::masks;
use cto_core::task::contract::Contract;
use cto_core::values::paths::{PathRule, TreePath};
use cto_core::workspace::tree::Tree;

/// Why an input cannot be where it is asked for: it stands beside the copied files, never over one,
/// and not where the engine is shown nothing.
pub fn out_of_place(contract: &Contract, tree: &Tree, masked: &[TreePath]) -> Option<String> {
    contract.inputs.iter().find_map(|input| {
        let name = input.as_str();
        if let Some(mask) = masks::mask_over(masked, input) {
            return Some(format!(
                "the input {name:?} overlaps with {mask}, which the engine is not shown; allow {mask} by its name"
            ));
        }
        overlaps(input, tree)
            .then(|| format!("the input {name:?} is tracked, so the copy has it already"))
    })
}

fn overlaps(input: &PathRule, tree: &Tree) -> bool {
    let input = input.as_str().trim_end_matches('/');
    let above = |path: &[u8], other: &[u8]| {
        path.strip_prefix(other)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    tree.keys().any(|path| {
        above(path.as_bytes(), input.as_bytes()) || above(input.as_bytes(), path.as_bytes())
    })
}

/// Where an input lies. A link on the way could lead anywhere on the host.
pub fn input_at(dir: &Path, path: &str) -> Option<PathBuf> {
    let real = dir.canonicalize().ok()?.join(path);
    (real.canonicalize().ok()? == real).then_some(real)
}
