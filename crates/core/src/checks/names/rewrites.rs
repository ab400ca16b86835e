//! Tracked files that setup or a check wrote to: what was measured is what must have been checked.

use crate::checks::loading::language::is_source_by_name;
use crate::checks::loading::not_code::by_table;
use crate::checks::names::test_files::{self, Names};
use crate::values::paths::TreePath;
use crate::workspace::tree::FileKind;

/// Who wrote to the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writer {
    /// The contract's preparation, before anything was checked.
    Setup,
    Check,
}

/// What a rewritten file means, mildest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rewrite {
    /// The untouched copy is rewritten at the same path: that is how these checks are.
    Scratch,
    /// People are told.
    Named,
    /// `verification_untrusted`: something else was checked than was measured.
    Untrusted,
}

/// What it means that this tracked file is not as it was measured. `on_the_baseline` says that the
/// same writer wrote to the same path of the untouched copy.
pub fn rewrite(path: &TreePath, kind: FileKind, writer: Writer, on_the_baseline: bool) -> Rewrite {
    let names = Names::Broad;
    // A script may have no end to its name, and a link leads to anything.
    let code = is_source_by_name(path)
        || kind != FileKind::Regular
        || test_files::is_test_file(names, path)
        || test_files::is_runner_config(names, path);
    match (writer, on_the_baseline, code) {
        // Setup comes before the checks: whatever it writes, the checks see that, and whoever applies
        // the change does not.
        (Writer::Setup, ..) if code || by_table(path).is_none() => Rewrite::Untrusted,
        (Writer::Setup, ..) => Rewrite::Named,
        (Writer::Check, true, _) => Rewrite::Scratch,
        (Writer::Check, false, true) => Rewrite::Untrusted,
        (Writer::Check, false, false) => Rewrite::Named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_checked_as_it_was_measured() {
        use FileKind::{Executable, Regular, Symlink};
        use Rewrite::{Named, Scratch, Untrusted};
        for (path, kind, setup, check) in [
            ("src/app.py", Regular, Untrusted, Untrusted),
            ("lib.rs", Regular, Untrusted, Untrusted),
            ("page.php", Regular, Untrusted, Untrusted),
            ("bin/tool", Executable, Untrusted, Untrusted),
            ("README.md", Symlink, Untrusted, Untrusted),
            ("tests/data.json", Regular, Untrusted, Untrusted),
            ("package.json", Regular, Untrusted, Untrusted),
            ("Makefile", Regular, Untrusted, Untrusted),
            ("data/table.csv", Regular, Untrusted, Named),
            ("package-lock.json", Regular, Named, Named),
            ("README.md", Regular, Named, Named),
        ] {
            let path = TreePath::new(path);
            let found = |writer, baseline| rewrite(&path, kind, writer, baseline);
            assert_eq!(found(Writer::Setup, false), setup, "{path}");
            assert_eq!(found(Writer::Setup, true), setup, "{path}");
            assert_eq!(found(Writer::Check, false), check, "{path}");
            assert_eq!(found(Writer::Check, true), Scratch, "{path}");
        }
    }
}
