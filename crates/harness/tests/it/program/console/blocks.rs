//! The blocks of a page, and the commands of a `console` block.

use std::ops::Range;

/// How a block may begin. What is none of these would be run by nobody and seen by nobody.
pub const KINDS: [&str; 5] = ["console", "sh", "text", "toml", "diff"];

/// A fenced block of a page.
pub struct Block {
    pub kind: String,
    /// Where its first line is, counted from 0.
    pub first: usize,
    /// The file named just above it.
    pub file: Option<String>,
    pub lines: Vec<String>,
}

/// One command of a `console` block and what is shown below it.
pub struct Step {
    pub command: String,
    /// Lines of the page that hold the shown output, counted from 0.
    pub at: Range<usize>,
    pub shown: Vec<String>,
}

pub fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    let mut above = "";
    for (number, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => (open, above) = (false, ""),
            Some(kind) => {
                let name = above
                    .strip_prefix('`')
                    .and_then(|text| text.strip_suffix("`:"));
                let (kind, file) = (kind.to_owned(), name.map(str::to_owned));
                found.push(Block {
                    kind,
                    first: number + 1,
                    file,
                    lines: Vec::new(),
                });
                open = true;
            }
            None if open => found.last_mut().unwrap().lines.push(line.to_owned()),
            None if line.is_empty() => {}
            None => above = line,
        }
    }
    found
}

pub fn steps(block: &Block) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for (number, line) in block.lines.iter().enumerate() {
        let after = block.first + number + 1;
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => {
                let (command, shown) = (command.to_owned(), Vec::new());
                goes_on = command.ends_with('\\');
                found.push(Step {
                    command,
                    at: after..after,
                    shown,
                });
            }
            (None, Some(step)) if goes_on => {
                step.command = format!("{}\n{line}", step.command);
                goes_on = line.ends_with('\\');
                step.at = after..after;
            }
            (None, Some(step)) => {
                step.shown.push(line.clone());
                step.at.end = after;
            }
            (None, None) => panic!("line {after} comes before any command"),
        }
    }
    found
}
