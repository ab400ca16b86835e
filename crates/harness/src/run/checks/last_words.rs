//! The end of what was printed, each stream apart, and the program or the module that its last words
//! say is missing.

use cto_core::checks::lacking;
use cto_core::checks::missing_module::{AskedReader, missing_modules};
use cto_core::run::checked::MissingModules;
use cto_core::run::event::ProcessEnd;
use cto_core::workspace::tree::Tree;

use crate::evidence::secrets::Secrets;
use crate::host::files;
use crate::supervise::Stream;
use crate::workspace::measure::Measured;

/// As much as is kept for counting failures.
const COUNTED: usize = 1 << 20;

/// The end of what was printed. A line of one stream must not begin in the middle of the other's.
pub(super) struct Recent {
    most: usize,
    stdout: Kept,
    stderr: Kept,
}

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Did something come before them?
    is_cut: bool,
}

impl Default for Recent {
    fn default() -> Self {
        Self::of(COUNTED)
    }
}

impl Recent {
    /// At most so much of each stream.
    pub fn of(most: usize) -> Self {
        Self {
            most,
            stdout: Kept::default(),
            stderr: Kept::default(),
        }
    }

    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let kept = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let fresh = bytes.len().min(self.most);
        let excess = (kept.bytes.len() + fresh).saturating_sub(self.most);
        kept.is_cut |= excess > 0 || fresh < bytes.len();
        kept.bytes.drain(..excess);
        kept.bytes.extend_from_slice(&bytes[bytes.len() - fresh..]);
    }

    pub fn text(&self) -> String {
        format!(
            "{}\n{}",
            String::from_utf8_lossy(&self.stdout.bytes),
            String::from_utf8_lossy(&self.stderr.bytes)
        )
    }

    /// Names go into the chain: they pass where all output passes.
    pub fn lacking(&self, end: ProcessEnd, secrets: &Secrets) -> Vec<String> {
        let [stdout, stderr] = self.clean(secrets);
        lacking::lacking(end, &[&stdout, &stderr])
    }

    /// Modules that a command on the result did not find, where the change asks for them.
    pub fn missing(
        &self,
        (command, end): (&str, ProcessEnd),
        secrets: &Secrets,
        measured: &Measured,
        baseline: &Tree,
    ) -> Option<MissingModules> {
        let [stdout, stderr] = self.clean(secrets);
        let tracked = baseline.keys().chain(measured.tree.keys());
        let mut asked = AskedReader::default();
        // What cannot be read asks for nothing.
        files::scan_file(&measured.patch, |chunk| asked.feed(chunk)).ok()?;
        let found = missing_modules(end, &[&stdout, &stderr], &asked.finish(), tracked);
        found.map(|(modules, lists)| MissingModules {
            command: command.to_owned(),
            modules,
            lists,
        })
    }

    fn clean(&self, secrets: &Secrets) -> [String; 2] {
        [&self.stdout, &self.stderr].map(|kept| {
            let (clean, _) = secrets.redact(kept.whole_lines());
            String::from_utf8_lossy(&clean).into_owned()
        })
    }
}

impl Kept {
    /// Of a line whose beginning is gone the rest may be half a secret, which nobody would find.
    fn whole_lines(&self) -> &[u8] {
        let first = match self.is_cut {
            true => memchr::memchr(b'\n', &self.bytes).map_or(self.bytes.len(), |at| at + 1),
            false => 0,
        };
        &self.bytes[first..]
    }
}

#[cfg(test)]
mod tests {
    use cto_core::checks::lacking::TAIL;

    use super::*;

    #[test]
    fn a_line_is_whole_whatever_came_between() {
        let mut recent = Recent::default();
        for (stream, text) in [
            (Stream::Stdout, "test one ... "),
            (Stream::Stderr, "Running two\n"),
            (Stream::Stdout, "FAILED\n"),
        ] {
            recent.push(stream, text.as_bytes());
        }
        let text = recent.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, ["test one ... FAILED", "Running two"]);
        recent.push(Stream::Stdout, &vec![b'x'; COUNTED + 9]);
        assert_eq!(recent.stdout.bytes.len(), COUNTED);
    }

    #[test]
    fn only_the_end_is_kept_and_no_secret_is_a_name() {
        let mut words = Recent::of(TAIL);
        let end = ProcessEnd::Exited { code: 1 };
        words.push(Stream::Stderr, b"sh: 1: a-known-value: not");
        words.push(Stream::Stderr, b" found\n");
        let mut secrets = Secrets::default();
        assert_eq!(words.lacking(end, &secrets), ["a-known-value"]);
        secrets.add([b"a-known-value".to_vec()]);
        assert_eq!(words.lacking(end, &secrets), [""; 0]);
        words.push(Stream::Stdout, &vec![b'x'; 3 * TAIL]);
        words.push(Stream::Stdout, b"y");
        assert_eq!(words.stdout.bytes.len(), TAIL);
        assert!(words.stdout.bytes.ends_with(b"xy"));
    }

    #[test]
    fn the_half_of_a_value_that_a_cut_left_is_left_out() {
        let mut words = Recent::of(40);
        let mut secrets = Secrets::default();
        secrets.add([b"a-known-value".to_vec()]);
        let text = b"sh: 1: a-known-value: not found\nsh: 1: other: not found\n";
        words.push(Stream::Stderr, text);
        assert!(words.text().contains("alue"), "the cut is in the value");
        assert_eq!(words.clean(&secrets)[1], "sh: 1: other: not found\n");
    }
}
