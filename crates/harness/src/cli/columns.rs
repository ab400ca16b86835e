//! Rows of short cells, fitted to the terminal. In a pipe nothing is cut and nothing is headed: there, rows are data.

use std::io::IsTerminal;

use anstyle::Style;

use super::output::{Output, dim};

/// One cell: its text, and how it is shown.
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::new())
    }
}

/// The columns of a terminal, when there is one.
pub fn terminal_width() -> Option<usize> {
    let stdout = std::io::stdout();
    let size = stdout.is_terminal().then(|| terminal_size::terminal_size_of(&stdout))?;
    // A terminal that does not know its size is taken for the smallest one that is promised to look well.
    Some(size.map_or(80, |(width, _)| usize::from(width.0)).max(40))
}

/// Prints the rows under their heads. Only the last column is cut, where the terminal ends.
pub fn print(output: &Output, heads: &[&str], rows: Vec<Vec<Cell>>) {
    let width = terminal_width();
    let mut lines: Vec<Vec<Cell>> = Vec::with_capacity(rows.len() + 1);
    if width.is_some() && !rows.is_empty() {
        lines.push(heads.iter().map(|head| Cell::new(*head, dim())).collect());
    }
    lines.extend(rows);
    let widths: Vec<usize> =
        (0..heads.len()).map(|at| lines.iter().map(|row| length(&row[at].text)).max().unwrap_or(0)).collect();
    for line in lines {
        output.line(&render(&line, &widths, width));
    }
}

fn render(row: &[Cell], widths: &[usize], width: Option<usize>) -> String {
    let mut out = String::new();
    let mut used = 0;
    for (at, cell) in row.iter().enumerate() {
        let is_last = at + 1 == row.len();
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(used));
        let text = if is_last { cut(&cell.text, room) } else { cell.text.clone() };
        let padding = if is_last { 0 } else { widths[at].saturating_sub(length(&text)) + 2 };
        out.push_str(&format!("{}{text}{:#}{}", cell.style, cell.style, " ".repeat(padding)));
        used += widths[at] + 2;
    }
    out.trim_end().to_owned()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// As much as fits; what was cut off is shown as cut off.
pub fn cut(text: &str, room: usize) -> String {
    match length(text) <= room {
        true => text.to_owned(),
        false => text.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(texts: &[&str]) -> Vec<Cell> {
        texts.iter().map(|text| Cell::plain(*text)).collect()
    }

    #[test]
    fn only_the_last_column_is_cut_and_only_by_a_terminal() {
        let widths = [4, 3, 20];
        let cells = row(&["ab", "cde", "a reason of some length"]);
        assert_eq!(render(&cells, &widths, None), "ab    cde  a reason of some length");
        assert_eq!(render(&cells, &widths, Some(20)), "ab    cde  a reason…");
        assert_eq!(render(&row(&["ab", "cde", ""]), &widths, Some(20)), "ab    cde");
        assert_eq!(render(&cells, &widths, Some(5)), "ab    cde  …");
    }

    #[test]
    fn a_cut_counts_characters() {
        assert_eq!(cut("ééé", 3), "ééé");
        assert_eq!(cut("éééé", 3), "éé…");
        assert_eq!(cut("", 0), "");
    }
}
