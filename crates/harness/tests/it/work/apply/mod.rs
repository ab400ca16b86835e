//! `cto apply`: into a work tree, as a commit, and bundles that are exchanged meanwhile.

pub mod commit;
pub mod race;
pub mod work_tree;
