//! Pushes that stay inside a jail, told by how git starts the other side of one.
//!
//! What a remote is called, and what configuration makes of it, is the engine's to write and to change at any
//! moment. What git starts for it is not a matter of words: another machine is reached by a helper, by `ssh` or by a
//! connection, each an attempt of its own; a directory of this one by exactly one shape of command.

use super::line::Line;
use super::table::GIT_VALUED;
use super::{base, name_of};

const RECEIVER: &[u8] = b"git-receive-pack";

/// Is this git's own push, which starts the other side as its child? Not what only leads to one (`git subtree`).
pub fn is_own_push(path: &[u8], argv: &[&[u8]]) -> bool {
    let given = argv.first().copied().unwrap_or_default();
    let rest = argv.get(1..).unwrap_or_default();
    [path, given]
        .into_iter()
        .any(|program| match base(program) {
            b"git-push" | b"git-send-pack" => true,
            _ if name_of(program) == b"git" => {
                let line = Line::read(rest, GIT_VALUED);
                let first = line.words.first().map(|(_, word)| *word);
                matches!(first, Some(b"push" | b"send-pack"))
            }
            _ => false,
        })
}

/// The directory that is to receive, where a child of git is started as git starts it on its own machine: by a
/// shell, with that one command and nothing else. None for any other shape, and for names that need quoting.
pub fn local_transport<'a>(path: &[u8], argv: &[&'a [u8]]) -> Option<&'a [u8]> {
    let [shell, b"-c", line, again] = argv else {
        return None;
    };
    let is_shell = |word: &[u8]| matches!(base(word), b"sh" | b"bash" | b"dash");
    let quoted = line.strip_prefix(RECEIVER)?.strip_prefix(b" '")?;
    let dir = quoted.strip_suffix(b"'")?;
    (is_shell(path) && is_shell(shell) && line == again && is_plain(dir)).then_some(dir)
}

/// The directory in which a start of git's receiver receives; none where it is told anything else.
pub fn received_in<'a>(path: &[u8], argv: &[&'a [u8]]) -> Option<&'a [u8]> {
    let dir = match argv {
        [given, dir] if [path, given].iter().any(|word| base(word) == RECEIVER) => dir,
        [given, b"receive-pack", dir] if [path, given].iter().any(|word| base(word) == b"git") => {
            dir
        }
        _ => return None,
    };
    is_plain(dir).then_some(*dir)
}

fn is_plain(dir: &[u8]) -> bool {
    let is_odd = |byte: &u8| matches!(byte, b'\'' | b'\\' | b'!' | b'\n' | 0);
    !dir.is_empty() && dir[0] != b'-' && !dir.iter().any(is_odd)
}

#[cfg(test)]
#[path = "pushes_tests.rs"]
mod tests;
