//! The end of what one command printed, each stream apart, and the program or the module it says is
//! missing.

use cto_core::checks::lacking::{self, TAIL};
use cto_core::checks::missing_module::missing_modules;
use cto_core::run::checked::MissingModules;
use cto_core::run::event::ProcessEnd;
use cto_core::workspace::tree::Tree;

use crate::evidence::secrets::Secrets;
use crate::supervise::Stream;
use crate::workspace::measure::Measured;

#[derive(Default)]
pub(super) struct LastWords {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl LastWords {
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let kept = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let fresh = bytes.len().min(TAIL);
        let excess = (kept.len() + fresh).saturating_sub(TAIL);
        kept.drain(..excess);
        kept.extend_from_slice(&bytes[bytes.len() - fresh..]);
    }

    /// Names go into the chain: they pass where all output passes.
    pub fn lacking(&self, end: ProcessEnd, secrets: &Secrets) -> Vec<String> {
        let [stdout, stderr] = self.clean(secrets);
        lacking::lacking(end, &[&stdout, &stderr])
    }

    /// Modules that a command on the result did not find, where a list of dependencies changed.
    pub fn missing(
        &self,
        (command, end): (&str, ProcessEnd),
        secrets: &Secrets,
        measured: &Measured,
        baseline: &Tree,
    ) -> Option<MissingModules> {
        let [stdout, stderr] = self.clean(secrets);
        let changed = measured.changes.iter().map(|change| &change.path);
        let tracked = baseline.keys().chain(measured.tree.keys());
        let found = missing_modules(end, &[&stdout, &stderr], changed, tracked);
        found.map(|(modules, lists)| MissingModules {
            command: command.to_owned(),
            modules,
            lists,
        })
    }

    fn clean(&self, secrets: &Secrets) -> [String; 2] {
        [&self.stdout, &self.stderr].map(|bytes| {
            let (clean, _) = secrets.redact(bytes);
            String::from_utf8_lossy(&clean).into_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_and_no_secret_is_a_name() {
        let mut words = LastWords::default();
        let end = ProcessEnd::Exited { code: 1 };
        words.push(Stream::Stderr, b"sh: 1: a-known-value: not");
        words.push(Stream::Stderr, b" found\n");
        let mut secrets = Secrets::default();
        assert_eq!(words.lacking(end, &secrets), ["a-known-value"]);
        secrets.add([b"a-known-value".to_vec()]);
        assert_eq!(words.lacking(end, &secrets), [""; 0]);
        words.push(Stream::Stdout, &vec![b'x'; 3 * TAIL]);
        words.push(Stream::Stdout, b"y");
        assert_eq!(words.stdout.len(), TAIL);
        assert!(words.stdout.ends_with(b"xy"));
    }
}
