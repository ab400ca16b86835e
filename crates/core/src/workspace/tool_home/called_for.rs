//! Which programs a command starts, as far as its words tell. A name inside a path, of a file or of
//! an option starts nothing: a directory of tests that is called like a tool calls for none.

/// Words before a program that start it, or begin a command.
const BEFORE: [&str; 23] = [
    "!", "{", "command", "do", "elif", "else", "env", "eval", "exec", "if", "ionice", "nice",
    "nohup", "setsid", "stdbuf", "sudo", "then", "time", "timeout", "until", "while", "xargs",
    "unbuffer",
];

/// Does this command start one of these programs?
pub fn starts(command: &str, programs: &[&str]) -> bool {
    let is_one = |word: &str| programs.contains(&word.rsplit('/').next().unwrap_or(word));
    simple_commands(command).any(|simple| may_be_started(simple).into_iter().any(is_one))
}

/// The word that is a program, and those that are one if the words before belong to options
/// (`timeout -s KILL 60 PROGRAM`): each option may have one.
fn may_be_started(simple: &str) -> Vec<&str> {
    let (mut found, mut to_come, mut is_begun) = (Vec::new(), 1, false);
    for word in simple.split_whitespace() {
        is_begun |= BEFORE.contains(&word);
        if word.starts_with('-') {
            to_come += usize::from(is_begun);
        } else if !stands_before(word) {
            // Behind the first, a path in the repository is what a program is to look at.
            let is_path = word.contains('/') && !word.starts_with(['/', '.', '~']);
            if found.is_empty() || !is_path {
                found.push(word);
            }
            to_come -= 1;
        }
        if to_come == 0 {
            break;
        }
    }
    found
}

/// The parts of a command of which each may start a program: between separators, and what is quoted
/// for another shell.
pub fn simple_commands(command: &str) -> impl Iterator<Item = &str> {
    command.split([';', '&', '|', '(', ')', '\n', '"', '\'', '`'])
}

/// Amounts and variables of what starts a program stand before it too.
fn stands_before(word: &str) -> bool {
    let is_setting = word.split_once('=').is_some_and(|(name, _)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(plain)
    });
    BEFORE.contains(&word) || is_setting || word.starts_with(|c: char| c.is_ascii_digit())
}
