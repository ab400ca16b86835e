//! A patch in numbers, the way git shows it: `file | 12 ++++----`.

use anstyle::AnsiColor;
use cto_core::values::text;
use cto_core::workspace::change::ChangeKind;
use cto_core::workspace::patch::{PatchFile, PatchReader};
use cto_core::workspace::patch_stat::PatchStat;

use crate::screen::output::dim;
use crate::screen::terminal;

const NARROWEST_BAR: usize = 10;

/// The numbers of a patch; none where it is not a patch, for example because it was withheld.
pub fn of_patch(patch: &[u8]) -> Option<PatchStat> {
    let mut reader = PatchReader::default();
    reader.feed(patch);
    reader.finish().ok().map(PatchStat::of_files)
}

/// One line a file and a last one with the sum; `columns` is the width of the terminal, if there is
/// one.
pub fn lines(stat: &PatchStat, columns: Option<usize>) -> Vec<String> {
    let room = columns.unwrap_or(80).clamp(40, 120);
    let numbers = stat
        .files
        .iter()
        .map(|file| count(file).len())
        .max()
        .unwrap_or(0);
    let longest = stat
        .files
        .iter()
        .map(|file| terminal::width(&name(file)))
        .max()
        .unwrap_or(0);
    // ` NAME | COUNT BAR`
    let names = longest.min(room.saturating_sub(5 + numbers + NARROWEST_BAR));
    let bar = room.saturating_sub(5 + numbers + names);
    let most = stat
        .files
        .iter()
        .map(|file| file.added.saturating_add(file.removed))
        .max()
        .unwrap_or(0);
    let mut lines: Vec<String> = stat
        .files
        .iter()
        .map(|file| {
            let name = cut_front(&name(file), names);
            let pad = " ".repeat(names.saturating_sub(terminal::width(&name)));
            format!(
                " {name}{pad} | {:>numbers$} {}",
                count(file),
                signs(file, most, bar)
            )
            .trim_end()
            .to_owned()
        })
        .collect();
    lines.push(format!(" {}", stat.summary()));
    lines
}

fn name(file: &PatchFile) -> String {
    text::tame(&file.path.to_string())
}

fn count(file: &PatchFile) -> String {
    if file.binary {
        "Bin".to_owned()
    } else {
        file.added.saturating_add(file.removed).to_string()
    }
}

/// As many signs as there are lines, or their share of the bar where they are too many.
fn signs(file: &PatchFile, most: u64, bar: usize) -> String {
    let length = |lines: u64| match most <= bar as u64 {
        true => usize::try_from(lines).unwrap_or(bar),
        // Something is never nothing.
        false => usize::try_from(u128::from(lines) * bar as u128 / u128::from(most))
            .unwrap_or(bar)
            .max(usize::from(lines > 0)),
    };
    let (added, removed) = (
        length(file.added),
        length(file.removed).min(bar.saturating_sub(length(file.added))),
    );
    let (green, red, dim) = (
        AnsiColor::Green.on_default(),
        AnsiColor::Red.on_default(),
        dim(),
    );
    let word = match file.change {
        ChangeKind::Modified => "",
        ChangeKind::Added => "new",
        ChangeKind::Deleted => "deleted",
        ChangeKind::ModeChanged => "mode",
        ChangeKind::TypeChanged => "type",
        ChangeKind::Unrecordable => "not recordable",
    };
    let word = if word.is_empty() || added + removed + word.len() + 1 > bar {
        String::new()
    } else {
        format!(" {dim}{word}{dim:#}")
    };
    let text = format!(
        "{green}{}{green:#}{red}{}{red:#}{word}",
        "+".repeat(added),
        "-".repeat(removed)
    );
    if added + removed == 0 {
        word.trim_start().to_owned()
    } else {
        text
    }
}

/// The end of a path says more than its beginning.
fn cut_front(text: &str, columns: usize) -> String {
    if terminal::width(text) <= columns {
        return text.to_owned();
    }
    let backwards: String = text.chars().rev().collect();
    terminal::cut(&backwards, columns).chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::values::paths::TreePath;

    fn shown(files: &[(&str, ChangeKind, u64, u64, bool)], columns: usize) -> Vec<String> {
        let files: Vec<PatchFile> = files
            .iter()
            .map(|(path, change, added, removed, binary)| PatchFile {
                path: TreePath::new(*path),
                change: *change,
                added: *added,
                removed: *removed,
                binary: *binary,
            })
            .collect();
        let sum = |count: fn(&PatchFile) -> u64| files.iter().map(count).sum();
        let stat = PatchStat {
            added: sum(|file| file.added),
            removed: sum(|file| file.removed),
            files,
        };
        lines(&stat, Some(columns))
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn looks_like_git() {
        assert_eq!(
            shown(
                &[
                    ("a.rs", ChangeKind::Modified, 3, 2, false),
                    ("img.png", ChangeKind::Added, 0, 0, true),
                    ("run.sh", ChangeKind::ModeChanged, 0, 0, false)
                ],
                80
            ),
            [
                " a.rs    |   5 +++--",
                " img.png | Bin new",
                " run.sh  |   0 mode",
                " 3 files changed, 3 insertions(+), 2 deletions(-)"
            ]
        );
    }

    #[test]
    fn fits_whatever_the_numbers() {
        let long = format!("{}/end.rs", "deep/".repeat(40));
        for columns in [40, 60, 80, 120] {
            let lines = shown(
                &[
                    (&long, ChangeKind::Modified, 100_000, 1, false),
                    ("b", ChangeKind::Deleted, 0, 4_000_000_000, false),
                    ("日本\u{1b}", ChangeKind::Added, 1, 0, false),
                ],
                columns,
            );
            assert!(
                lines
                    .iter()
                    .take(3)
                    .all(|line| terminal::width(line) <= columns),
                "{columns}: {lines:#?}"
            );
            assert!(
                lines[0].contains("end.rs") && lines[0].contains('+'),
                "{lines:#?}"
            );
            assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
        }
    }
}
