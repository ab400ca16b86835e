//! Output to a capped file: redacted while it arrives, counted and digested whole, head and tail
//! kept.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};

use cto_core::run::event::OutputRecord;
use cto_core::values::digest::Hasher;

use crate::evidence::secrets::{Hits, Redactor, Secrets};

pub struct Capture<'a> {
    name: String,
    redactor: Redactor<'a>,
    store: Store,
}

struct Store {
    file: File,
    head_left: usize,
    tail_limit: usize,
    tail: VecDeque<u8>,
    dropped: u64,
    total: u64,
    hasher: Hasher,
    error: Option<io::Error>,
}

/// What was captured, and what was found in it.
pub struct Captured {
    pub record: OutputRecord,
    pub hits: Hits,
    /// The first write that failed, if one did.
    pub error: Option<io::Error>,
}

impl<'a> Capture<'a> {
    /// `name` is the artifact's, relative to the bundle; `limit` is what the file may keep.
    pub fn new(name: &str, file: File, limit: u32, secrets: &'a Secrets) -> Self {
        let half = limit as usize / 2;
        let store = Store {
            file,
            head_left: half,
            tail_limit: half,
            tail: VecDeque::new(),
            dropped: 0,
            total: 0,
            hasher: Hasher::default(),
            error: None,
        };
        Self {
            name: name.to_owned(),
            redactor: secrets.redactor(),
            store,
        }
    }

    /// Takes raw bytes; `clean` sees what was kept of them after redaction.
    pub fn push(&mut self, bytes: &[u8], clean: &mut dyn FnMut(&[u8])) {
        let store = &mut self.store;
        self.redactor.push(bytes, &mut |out| {
            store.take(out);
            clean(out);
        });
    }

    pub fn finish(self, clean: &mut dyn FnMut(&[u8])) -> Captured {
        let Self {
            name,
            redactor,
            mut store,
        } = self;
        let hits = redactor.finish(&mut |out| {
            store.take(out);
            clean(out);
        });
        let kept_bytes = store.close();
        let record = OutputRecord {
            file: name,
            bytes: store.total,
            sha256: store.hasher.finish(),
            kept_bytes,
            redactions: hits.total(),
            paths_replaced: hits.paths,
        };
        Captured {
            record,
            hits,
            error: store.error,
        }
    }
}

impl Store {
    fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.hasher.update(bytes);
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_left));
        self.head_left -= head.len();
        self.write(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.tail_limit);
        self.dropped += excess as u64;
        self.tail.drain(..excess);
    }

    fn write(&mut self, bytes: &[u8]) {
        // After the first failure nothing more is written; the error decides the run.
        if self.error.is_none()
            && let Err(error) = self.file.write_all(bytes)
        {
            self.error = Some(error);
        }
    }

    fn close(&mut self) -> u64 {
        if self.dropped > 0 {
            let note = format!(
                "\n[cto: {} bytes not kept; length and digest of all are in the events]\n",
                self.dropped
            );
            self.write(note.as_bytes());
        }
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        self.write(&tail);
        self.total - self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cto_core::values::digest::Digest;

    fn capture(limit: u32, chunks: &[&[u8]]) -> (Captured, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let secrets = Secrets::default();
        let mut capture = Capture::new("log", File::create(&path).unwrap(), limit, &secrets);
        for chunk in chunks {
            capture.push(chunk, &mut |_| {});
        }
        let done = capture.finish(&mut |_| {});
        (done, std::fs::read(path).unwrap())
    }

    #[test]
    fn small_output_is_kept_whole() {
        let (done, file) = capture(4096, &[b"hello ", b"world"]);
        assert_eq!(file, b"hello world");
        assert_eq!(done.record.sha256, Digest::of(b"hello world"));
        assert_eq!((done.record.bytes, done.record.kept_bytes), (11, 11));
    }

    #[test]
    fn a_flood_keeps_head_and_tail_and_counts_all() {
        let all: Vec<u8> = (0..100_000u32)
            .flat_map(|n| format!("{n}\n").into_bytes())
            .collect();
        let chunks: Vec<&[u8]> = all.chunks(1000).collect();
        let (done, file) = capture(4096, &chunks);
        assert_eq!(done.record.bytes, all.len() as u64);
        assert_eq!(done.record.sha256, Digest::of(&all));
        assert_eq!(done.record.kept_bytes, 4096);
        let text = String::from_utf8(file).unwrap();
        assert!(
            text.starts_with("0\n1\n")
                && text.ends_with("99999\n")
                && text.contains("bytes not kept")
        );
        assert!(text.len() < 4300);
    }
}
