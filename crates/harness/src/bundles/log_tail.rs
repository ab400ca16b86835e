//! The end of a log, found by seeking: however large it is, little of it is read, and less is kept.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use cto_core::checks::test_log::{self, Section};
use cto_core::run::event::ProcessEnd;

/// What is read at a time on the way to a frame.
const STEP: u64 = 64 << 10;
/// No frame is longer.
const FRAME: u64 = 256;
/// The most that is shown of one part.
const MOST: u64 = 1 << 20;
/// A log has no more sections than a few per command; numbers above are not looked for.
const SECTIONS: u64 = 4096;

/// The last lines of something.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tail {
    pub lines: Vec<Vec<u8>>,
    /// There was more before them.
    pub is_cut: bool,
}

/// The last lines of a whole file.
pub fn of_file(file: &mut File, lines: usize) -> io::Result<Tail> {
    let end = file.metadata()?.len();
    before(file, 0, end, lines)
}

/// The last lines of the section that is `wanted`, asked from the last one on; each is told by its
/// number. Frames are known by their tokens: no output can begin or end a section.
pub fn of_section(
    file: &mut File,
    nonce: &str,
    mut wanted: impl FnMut(u64, Section) -> bool,
    lines: usize,
) -> io::Result<Option<Tail>> {
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(STEP);
        let bytes = range(file, start, (end + FRAME).min(file.metadata()?.len()))?;
        let mut places: Vec<usize> = marks(&bytes);
        places.retain(|at| start + *at as u64 <= end);
        for at in places.into_iter().rev() {
            let line = bytes[at..].split(|byte| *byte == b'\n').next();
            let line = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
            let Some((number, section)) = ended(&line, nonce) else {
                continue;
            };
            if wanted(number, section) {
                let begin = test_log::frame_begin(nonce, number, section);
                return within(file, &begin, start + at as u64, lines).map(Some);
            }
        }
        end = start;
    }
    Ok(None)
}

/// Where lines begin that could be frames.
fn marks(bytes: &[u8]) -> Vec<usize> {
    const MARK: &[u8] = b"\n[cto:";
    let found = bytes.windows(MARK.len()).enumerate();
    found
        .filter(|(_, window)| *window == MARK)
        .map(|(at, _)| at + 1)
        .collect()
}

/// The section that a line ends, if it carries the token of its end.
fn ended(line: &str, nonce: &str) -> Option<(u64, Section)> {
    let mut words = line.split(' ').skip(1);
    let (word, number) = (words.next()?, words.next()?.parse::<u64>().ok()?);
    if word != "end" || number > SECTIONS {
        return None;
    }
    let sections = [
        Section::Setup,
        Section::Check,
        Section::Hidden,
        Section::Control,
        Section::Baseline,
        Section::Loading,
    ];
    let is = |section: &Section| {
        let like = test_log::frame_end(nonce, number, *section, ProcessEnd::Lost, 0);
        like.split_once(": ")
            .is_some_and(|(head, _)| line.starts_with(&format!("{head}: ")))
    };
    sections
        .into_iter()
        .find(is)
        .map(|section| (number, section))
}

/// The last lines between a frame that begins a section and the place where it ends.
fn within(file: &mut File, begin: &str, end: u64, lines: usize) -> io::Result<Tail> {
    let start = end.saturating_sub(MOST);
    let bytes = range(file, start, end)?;
    let begin = format!("{begin}\n");
    let found = bytes
        .windows(begin.len())
        .rposition(|window| window == begin.as_bytes());
    let from = found.map_or(start, |at| start + (at + begin.len()) as u64);
    let mut tail = before(file, from, end, lines)?;
    tail.is_cut |= found.is_none();
    Ok(tail)
}

/// The last lines between two places.
fn before(file: &mut File, from: u64, end: u64, lines: usize) -> io::Result<Tail> {
    let start = end.saturating_sub(MOST).max(from);
    let bytes = range(file, start, end)?;
    let text = bytes.trim_ascii_end();
    let mut all: Vec<&[u8]> = match text.is_empty() {
        true => Vec::new(),
        false => text.split(|byte| *byte == b'\n').collect(),
    };
    // The first line is a piece of one, where what is before it was not read.
    if start > from && all.len() > 1 {
        all.remove(0);
    }
    let more = all.len().saturating_sub(lines);
    Ok(Tail {
        is_cut: more > 0 || start > from,
        lines: all
            .split_off(more)
            .into_iter()
            .map(<[u8]>::to_vec)
            .collect(),
    })
}

fn range(file: &mut File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(end.saturating_sub(start))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const NONCE: &str = "nonce";

    fn log(sections: &[(Section, &str)]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"cto-test-log/1\nrun x\n").unwrap();
        for (number, (section, text)) in sections.iter().enumerate() {
            let number = number as u64 + 1;
            let (begin, end) = (
                test_log::frame_begin(NONCE, number, *section),
                test_log::frame_end(NONCE, number, *section, ProcessEnd::Exited { code: 1 }, 3),
            );
            write!(file, "\n{begin}\n{text}\n{end}\n").unwrap();
        }
        file
    }

    fn text(tail: &Tail) -> String {
        let lines = tail.lines.iter().map(|line| String::from_utf8_lossy(line));
        lines.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn each_section_is_found_and_no_output_imitates_a_frame() {
        let forged = test_log::frame_end("other", 1, Section::Check, ProcessEnd::Lost, 0);
        let long = format!("$ a\n{}{forged}\nlast\n", "x\n".repeat(100_000));
        let mut file = log(&[
            (Section::Setup, "$ s\nready\n"),
            (Section::Check, &long),
            (Section::Check, "$ b\nred\n"),
            (Section::Control, "$ a\n"),
        ]);
        let mut of = |wanted: u64| {
            of_section(&mut file, NONCE, |number, _| number == wanted, 3)
                .unwrap()
                .unwrap()
        };
        assert_eq!(text(&of(1)), "$ s|ready");
        assert_eq!(text(&of(2)), format!("x|{forged}|last"));
        assert!(of(2).is_cut && !of(1).is_cut);
        assert_eq!(text(&of(3)), "$ b|red");
        assert_eq!(text(&of(4)), "$ a");
        let none = of_section(&mut file, NONCE, |number, _| number == 9, 3).unwrap();
        assert_eq!(none, None);
        let none = of_section(&mut file, "a third", |_, _| true, 3).unwrap();
        assert_eq!(none, None, "frames of another nonce are output");
    }

    #[test]
    fn a_frame_on_the_edge_of_a_step_is_found() {
        for around in 0..300 {
            let padding = "y".repeat((STEP as usize) - 150 + around);
            let mut file = log(&[
                (Section::Check, "$ a\nred\n"),
                (Section::Baseline, &padding),
            ]);
            let found = of_section(&mut file, NONCE, |_, s| s == Section::Check, 9).unwrap();
            assert_eq!(text(&found.unwrap()), "$ a|red", "{around}");
        }
    }

    #[test]
    fn a_file_is_read_from_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(of_file(&mut file, 5).unwrap(), Tail::default());
        // A hole of a gigabyte, and a few lines behind it.
        file.set_len(1 << 30).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"\none\ntwo\nthree\n").unwrap();
        let tail = of_file(&mut file, 2).unwrap();
        assert_eq!((text(&tail).as_str(), tail.is_cut), ("two|three", true));
    }
}
