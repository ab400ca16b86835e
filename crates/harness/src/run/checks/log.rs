//! `test.log` as it is written: a header, and around the output of every command a frame that no
//! output can forge. What the frames mean is in core (`test_log.rs`).

use std::fs::File;
use std::io::{self, Write};

use cto_core::checks::test_log::{self, Section};
use cto_core::run::event::ProcessEnd;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;

use crate::evidence::secrets::Secrets;
use crate::supervise::Capture;

/// The least that is kept of one command's output.
const LEAST: u32 = 4096;

pub struct TestLog<'a> {
    file: File,
    secrets: &'a Secrets,
    nonce: String,
    sections: u64,
    /// What is kept of each section, so that no flood of one takes the room of another or of a
    /// frame.
    each: u32,
    error: Option<io::Error>,
}

/// The section that is being written.
pub struct OpenSection<'a> {
    section: Section,
    capture: Capture<'a>,
}

impl<'a> TestLog<'a> {
    /// `limit` is for all `expected` sections together.
    pub fn new(
        file: File,
        secrets: &'a Secrets,
        nonce: String,
        limit: u32,
        expected: usize,
    ) -> Self {
        let each = (limit / u32::try_from(expected.max(1)).unwrap_or(u32::MAX)).max(LEAST);
        Self {
            file,
            secrets,
            nonce,
            sections: 0,
            each,
            error: None,
        }
    }

    pub fn head(&mut self, run_id: &RunId, contract: &Digest, tree: &Digest) {
        let head = test_log::log_header(run_id, contract, tree, &self.nonce);
        self.line(&head);
    }

    /// A word of the harness between sections.
    pub fn say(&mut self, text: &str) {
        let (clean, _) = self.secrets.redact(text.as_bytes());
        self.write(&[b"\n", clean.as_slice(), b"\n"].concat());
    }

    pub fn begin(&mut self, section: Section, command: &str) -> io::Result<OpenSection<'a>> {
        self.sections += 1;
        let frame = test_log::frame_begin(&self.nonce, self.sections, section);
        self.line(&format!("\n{frame}\n"));
        let mut capture = Capture::new(
            section.as_str(),
            self.file.try_clone()?,
            self.each,
            self.secrets,
        );
        capture.push(format!("$ {command}\n").as_bytes(), &mut |_| {});
        Ok(OpenSection { section, capture })
    }

    pub fn end(&mut self, open: OpenSection<'_>, how: ProcessEnd, duration_ms: u64) {
        let written = open.capture.finish(&mut |_| {});
        self.error = self.error.take().or(written.error);
        let frame = test_log::frame_end(&self.nonce, self.sections, open.section, how, duration_ms);
        self.line(&format!("\n{frame}\n"));
    }

    /// The number of the section that was written last.
    pub fn number(&self) -> u64 {
        self.sections
    }

    /// The nonce may be told, and the first write that failed must be.
    pub fn close(self) -> (String, Option<io::Error>) {
        (self.nonce, self.error)
    }

    fn line(&mut self, text: &str) {
        self.write(text.as_bytes());
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.error.is_none()
            && let Err(error) = self.file.write_all(bytes)
        {
            self.error = Some(error);
        }
    }
}

impl OpenSection<'_> {
    pub fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes, &mut |_| {});
    }
}
