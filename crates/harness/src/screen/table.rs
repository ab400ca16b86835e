//! Rows in straight columns: fitted to a terminal, plain and whole everywhere else.

use anstyle::Style;
use cto_core::values::text;

use crate::screen::output::dim;
use crate::screen::terminal;

/// What may happen to a column when the terminal is too narrow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Ids, digests, numbers: shown whole or not useful at all.
    Whole,
    /// Words: cut, with a mark where something is missing.
    Cut,
    /// Numbers, whole and to the right.
    Right,
}

pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::styled(text, Style::new())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::styled(text, Style::new())
    }
}

pub struct Table {
    columns: Vec<(&'static str, Fit)>,
    rows: Vec<Vec<Cell>>,
}

const GAP: usize = 2;
const NARROWEST: usize = 8;

impl Table {
    pub fn new(columns: &[(&'static str, Fit)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// One row, a cell a column. Text from outside is tamed here.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(
            cells
                .into_iter()
                .map(|cell| Cell {
                    text: text::tame(&cell.text),
                    ..cell
                })
                .collect(),
        );
    }

    /// The lines to print; `columns` is the width of the terminal, if there is one.
    pub fn lines(&self, columns: Option<usize>) -> Vec<String> {
        let widths = self.widths(columns);
        let head: Vec<Cell> = self
            .columns
            .iter()
            .map(|(title, _)| Cell::styled(*title, dim()))
            .collect();
        let titled = self.columns.iter().any(|(title, _)| !title.is_empty());
        let rows = titled.then_some(&head).into_iter().chain(&self.rows);
        let needed = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        match columns.filter(|room| needed > *room) {
            Some(room) => rows.flat_map(|row| self.stacked(row, room)).collect(),
            None => rows.map(|row| self.line(row, &widths)).collect(),
        }
    }

    /// One row over several lines, where no column can give way any further.
    fn stacked(&self, row: &[Cell], room: usize) -> Vec<String> {
        let (mut lines, mut used): (Vec<String>, usize) = (Vec::new(), 0);
        for (at, cell) in row.iter().enumerate().take(self.columns.len()) {
            let most = room.saturating_sub(GAP);
            let text = match self.columns[at].1 {
                Fit::Cut => terminal::cut(&cell.text, most),
                Fit::Whole | Fit::Right => cell.text.clone(),
            };
            let (wide, style) = (terminal::width(&text), cell.style);
            if wide == 0 {
                continue;
            }
            let shown = format!("{style}{text}{style:#}");
            match lines.last_mut() {
                Some(line) if used + GAP + wide <= room => {
                    line.push_str(&format!("{}{shown}", " ".repeat(GAP)));
                    used += GAP + wide;
                }
                None => {
                    lines.push(shown);
                    used = wide;
                }
                Some(_) => {
                    lines.push(format!("{}{shown}", " ".repeat(GAP)));
                    used = GAP + wide;
                }
            }
        }
        lines
    }

    /// What each column needs; then the widest that may be cut gives way until everything fits.
    fn widths(&self, columns: Option<usize>) -> Vec<usize> {
        let cell =
            |row: &Vec<Cell>, at: usize| row.get(at).map_or(0, |cell| terminal::width(&cell.text));
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, (title, _))| {
                self.rows
                    .iter()
                    .map(|row| cell(row, at))
                    .max()
                    .unwrap_or(0)
                    .max(terminal::width(title))
            })
            .collect();
        let Some(room) = columns else { return widths };
        let gaps = GAP * widths.len().saturating_sub(1);
        loop {
            let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
            let cuttable = |at: &usize| self.columns[*at].1 == Fit::Cut && widths[*at] > NARROWEST;
            let widest = (0..widths.len())
                .filter(cuttable)
                .max_by_key(|at| widths[*at]);
            match widest {
                Some(at) if over > 0 => widths[at] -= over.min(widths[at] - NARROWEST),
                _ => return widths,
            }
        }
    }

    fn line(&self, row: &[Cell], widths: &[usize]) -> String {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate().take(widths.len()) {
            let fit = self.columns[at].1;
            let text = if fit == Fit::Cut {
                terminal::cut(&cell.text, widths[at])
            } else {
                cell.text.clone()
            };
            let pad = " ".repeat(widths[at].saturating_sub(terminal::width(&text)));
            let style = cell.style;
            match fit {
                Fit::Right => line.push_str(&format!("{pad}{style}{text}{style:#}")),
                // No blanks behind the last word of a line.
                _ if at + 1 == row.len() => line.push_str(&format!("{style}{text}{style:#}")),
                _ => line.push_str(&format!("{style}{text}{style:#}{pad}")),
            }
            if at + 1 < row.len() {
                line.push_str(&" ".repeat(GAP));
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("id", Fit::Whole), ("n", Fit::Right), ("words", Fit::Cut)]);
        table.row(vec![
            "20260102T030405Z-demo-abcd".into(),
            "7".into(),
            "a long sentence that goes on and on".into(),
        ]);
        table.row(vec!["x".into(), "12".into(), "\u{1b}[2J".into()]);
        table
    }

    fn plain(lines: &[String]) -> Vec<String> {
        lines
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn without_a_terminal_everything_is_whole() {
        let lines = plain(&table().lines(None));
        assert_eq!(lines[0], "id                           n  words");
        assert_eq!(
            lines[1],
            "20260102T030405Z-demo-abcd   7  a long sentence that goes on and on"
        );
        assert_eq!(lines[2], "x                           12  \u{fffd}[2J");
    }

    #[test]
    fn on_a_terminal_words_give_way_and_ids_never() {
        for columns in [30, 40, 45, 80] {
            let lines = table().lines(Some(columns));
            let id = "20260102T030405Z-demo-abcd";
            assert!(lines.iter().any(|line| line.contains(id)), "{columns}");
            assert!(
                lines.iter().all(|line| terminal::width(line) <= columns),
                "{columns}: {lines:?}"
            );
        }
        assert_eq!(
            plain(&table().lines(Some(30)))[1..],
            [
                "20260102T030405Z-demo-abcd  7",
                "  a long sentence that goes o…",
                "x  12  \u{fffd}[2J"
            ]
        );
        assert_eq!(
            plain(&table().lines(Some(45)))[1],
            "20260102T030405Z-demo-abcd   7  a long sente…"
        );
    }

    #[test]
    fn the_widest_gives_way_first() {
        let mut table = Table::new(&[("", Fit::Cut), ("", Fit::Cut)]);
        table.row(vec!["short one".into(), "x".repeat(60).into()]);
        assert_eq!(
            table.lines(Some(40))[0].split("  ").next(),
            Some("short one")
        );
    }
}
