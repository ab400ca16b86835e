//! Which runners the commands of a contract use, found on the tree that is copied, before anything of the run
//! is started. Files of that tree are read; nothing of it is executed.

use std::io::Read;

use cto_core::checks::runners::settle;
use cto_core::task::contract::Contract;
use cto_core::values::paths::TreePath;
use cto_core::workspace::tree::{FileKind, Tree};

use crate::plan::source::SourceView;
use crate::task::request::Request;

/// More than this of one file is not read.
const MOST: u64 = 1 << 20;

/// For a case with files of its own.
pub fn of_case(contract: &mut Contract, request: &Request) {
    settle(contract, is_declared(request), &mut |path| {
        let mut files = request.case.workspace.iter();
        let file = files.find(|file| file.path.as_bytes() == path.as_bytes())?;
        text(file.bytes.clone())
    });
}

/// For a repository that is copied.
pub fn of_source(contract: &mut Contract, request: &Request, view: &SourceView, tree: &Tree) {
    settle(contract, is_declared(request), &mut |path| {
        let path = TreePath::new(path.as_bytes());
        let kind = tree.get(&path)?.kind;
        if kind == FileKind::Symlink {
            return None;
        }
        let mut bytes = Vec::new();
        let mut take = |_: &TreePath, _, content: &mut dyn Read| {
            content.take(MOST + 1).read_to_end(&mut bytes)?;
            std::io::copy(content, &mut std::io::sink()).map(|_| ())
        };
        view.repo
            .file_of(&view.look.tree, (&path, kind), &mut take)
            .ok()?;
        text(bytes)
    });
}

/// Did the case, or who asked, say what the control is?
fn is_declared(request: &Request) -> bool {
    let case = request.case.parsed();
    case.is_ok_and(|case| case.verification_control.is_some())
}

/// The text of a file that is not too long to be read.
pub fn text(bytes: Vec<u8>) -> Option<String> {
    let short = bytes.len() as u64 <= MOST;
    short.then(|| String::from_utf8(bytes).ok()).flatten()
}
