//! Which command is which deed: one table over the words of a command line. Wrappers that start the
//! command themselves (`sh -c`, `env`, `xargs`, `npx`) need no row: what they start is seen by its
//! own start.
//!
//! - this file: what a start attempts; launchers, helpers of git, `gh api`, other hosts
//! - `table.rs` the programs and their commands; `line.rs` options and words of a command line
//! - `pushes.rs` which pushes stay inside the jail

mod line;
mod pushes;
mod table;

use super::Deed;
use Deed::{Merge, PrOpen, PublicPublication, Push};
use line::Line;
use table::{GIT_VALUED, LAUNCHERS, REMOTE, find_tool, lookup};

pub use pushes::{is_own_push, local_transport, received_in};
pub use table::STAND_INS;

/// Could a program of this name be one of the table? What cannot is not read any further.
pub fn is_worth_reading(path: &[u8], first: &[u8]) -> bool {
    [path, first].into_iter().any(|word| {
        let name = name_of(word);
        find_tool(&name).is_some()
            || lookup(REMOTE, &name).is_some()
            || lookup(LAUNCHERS, &name).is_some()
    })
}

/// What a start of `path` with these words attempts. `caller`: the words of the program that starts
/// it, which tell what a helper of git's is for.
pub fn of_command(path: &[u8], argv: &[&[u8]], caller: &[&[u8]]) -> Option<Deed> {
    let rest = argv.get(1..).unwrap_or_default();
    let given = argv.first().copied().unwrap_or_default();
    // A program can be started under any name, and any name can be given to a program.
    of_named(path, rest, caller).or_else(|| of_named(given, rest, caller))
}

fn of_named(program: &[u8], rest: &[&[u8]], caller: &[&[u8]]) -> Option<Deed> {
    const DEEPEST: usize = 4;
    let (mut program, mut rest) = (program, rest);
    for _ in 0..DEEPEST {
        if let Some(deed) = of_tool(program, rest, caller) {
            return Some(deed);
        }
        (program, rest) = launched(program, rest)?;
    }
    None
}

fn of_tool(program: &[u8], rest: &[&[u8]], caller: &[&[u8]]) -> Option<Deed> {
    let base = base(program);
    let name = name_of(program);
    if let Some(valued) = lookup(REMOTE, &name) {
        return of_remote(&name, &Line::read(rest, valued));
    }
    let tool = find_tool(&name)?;
    // `git-push` is `git push` under its own name.
    let dashed: Vec<&[u8]> = match base.strip_prefix(b"git-") {
        Some(word) if name == b"git" => [&[word], rest].concat(),
        _ => rest.to_vec(),
    };
    let line = Line::read(&dashed, tool.valued);
    let first = line.words.first().map(|(_, word)| *word);
    match (tool.names, first) {
        ("git", Some(word)) if word.starts_with(b"remote-") => return Some(helper(caller)),
        ("gh" | "glab", Some(b"api")) => return of_api(rest),
        _ => {}
    }
    let rehearsed = tool
        .rehearsal
        .split('|')
        .any(|option| !option.is_empty() && rest.contains(&option.as_bytes()));
    let row = tool
        .rows
        .iter()
        .find_map(|(row, deed)| Some((line.matches(row)?, *deed)));
    row.filter(|(at, _)| !rehearsed && !line.asks_for_help(*at))
        .map(|(_, deed)| deed)
}

/// A request through `gh api`: anything but a read.
fn of_api(rest: &[&[u8]]) -> Option<Deed> {
    let has = |part: &[u8]| rest.iter().any(|word| super::find(word, part).is_some());
    if rest.iter().any(|word| matches!(*word, b"--help" | b"-h")) {
        return None;
    }
    let method = rest.iter().enumerate().find_map(|(at, word)| match *word {
        b"-X" | b"--method" => rest.get(at + 1).copied(),
        word => word
            .strip_prefix(b"--method=")
            .or_else(|| word.strip_prefix(b"-X")),
    });
    let sends = rest.iter().any(|word| {
        ["-f", "-F", "--field", "--raw-field", "--input"]
            .iter()
            .any(|option| word.starts_with(option.as_bytes()))
    });
    let reads = match method {
        Some(method) => method.eq_ignore_ascii_case(b"get") || method.eq_ignore_ascii_case(b"head"),
        None => !sends,
    };
    match () {
        () if rest.contains(&&b"graphql"[..]) => has(b"mutation").then_some(PublicPublication),
        () if reads => None,
        () if rest
            .iter()
            .any(|word| word.ends_with(b"/merge") || word.ends_with(b"/merges")) =>
        {
            Some(Merge)
        }
        () if rest
            .iter()
            .any(|word| word.ends_with(b"/pulls") || word.ends_with(b"/merge_requests")) =>
        {
            Some(PrOpen)
        }
        () => Some(PublicPublication),
    }
}

/// A transport helper of git's serves a push or a fetch; only who started it knows.
fn helper(caller: &[&[u8]]) -> Deed {
    let rest = caller.get(1..).unwrap_or_default();
    if caller
        .first()
        .is_some_and(|program| base(program) == b"git")
    {
        let line = Line::read(rest, GIT_VALUED);
        return if line
            .words
            .first()
            .is_some_and(|(_, word)| matches!(*word, b"push" | b"send-pack"))
        {
            Push
        } else {
            Deed::Fetch
        };
    }
    // Under another name any of its words may be the one.
    let pushes = |word: &&[u8]| {
        matches!(
            base(word),
            b"push" | b"send-pack" | b"git-push" | b"git-send-pack" | b"http-push"
        )
    };
    if caller.iter().any(pushes) {
        Push
    } else {
        Deed::Fetch
    }
}

fn of_remote(name: &[u8], line: &Line<'_>) -> Option<Deed> {
    let asks = |word: &[u8]| {
        matches!(
            word,
            b"--help" | b"--version" | b"-V" | b"-Q" | b"-G" | b"-h"
        )
    };
    if line.options.iter().any(|(_, option)| asks(option)) {
        return None;
    }
    let says = |part: &[u8]| {
        line.all
            .iter()
            .any(|word| super::find(word, part).is_some())
    };
    let names_host = |word: &[u8]| {
        let colon = word.iter().position(|b| *b == b':');
        word.starts_with(b"scp://")
            || word.starts_with(b"rsync://")
            || colon.is_some_and(|at| at > 0 && !word[..at].contains(&b'/'))
    };
    match name {
        b"scp" | b"rsync" => line
            .words
            .iter()
            .any(|(_, word)| names_host(word))
            .then_some(Deed::RemoteShell),
        _ if line.words.is_empty() => None,
        b"ssh" if says(b"git-receive-pack") => Some(Push),
        b"ssh" if says(b"git-upload-pack") || says(b"git-upload-archive") => Some(Deed::Fetch),
        _ => Some(Deed::RemoteShell),
    }
}

/// The program a launcher starts, and its words.
fn launched<'a>(program: &[u8], rest: &'a [&'a [u8]]) -> Option<(&'a [u8], &'a [&'a [u8]])> {
    let name = name_of(program);
    let valued = lookup(LAUNCHERS, &name)?;
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        match *word {
            // Code on the command line, not a program.
            b"-c" if name == b"python" => return None,
            b"-e" | b"--eval" | b"-p" | b"--print" if name != b"sudo" => return None,
            b"-m" if name == b"python" => return Some((rest.get(at + 1)?, rest.get(at + 2..)?)),
            [b'-', ..] => {
                at += 1 + usize::from(valued.split(' ').any(|option| option.as_bytes() == *word))
            }
            // `sudo NAME=value command`
            word if name == b"sudo" && word.contains(&b'=') => at += 1,
            word => return Some((word, rest.get(at + 1..)?)),
        }
    }
    None
}

fn base(word: &[u8]) -> &[u8] {
    word.rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// The name a program goes by in the table: `npm-cli.js` is `npm`, `git-push` is `git`,
/// `python3.12` is `python`.
fn name_of(word: &[u8]) -> Vec<u8> {
    let mut name = base(word);
    for ending in [&b".js"[..], b".cjs", b".mjs", b".py", b".rb"] {
        name = name.strip_suffix(ending).unwrap_or(name);
    }
    let name = name.strip_suffix(b"-cli").unwrap_or(name);
    let known: &[u8] = match name {
        _ if name.starts_with(b"git-") => b"git",
        _ if name.starts_with(b"yarn-") => b"yarn",
        _ if name.starts_with(b"python") || name.starts_with(b"pypy") => b"python",
        _ if name.starts_with(b"ld-linux") || name.starts_with(b"ld-musl") => b"ld.so",
        b"nodejs" => b"node",
        name => name,
    };
    known.to_vec()
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
