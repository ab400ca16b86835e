//! `test.log` as it is written: a header, and around the output of every command a frame that no
//! output can forge. What the frames mean is in core (`test_log.rs`).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use cto_core::checks::test_log::{self, Section};
use cto_core::run::event::ProcessEnd;
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;

use crate::evidence::secrets::Secrets;
use crate::host::files;
use crate::supervise::Capture;

/// A log of its own with more is not kept.
const MOST_SECTIONS: u64 = 64;
/// The least that is kept of one command's output.
const LEAST: u32 = 4096;

pub struct TestLog<'a> {
    file: File,
    secrets: &'a Secrets,
    nonce: String,
    /// The run and the contract it is about.
    about: (RunId, Digest),
    sections: u64,
    /// What is kept of each section, so that no flood of one takes the room of another or of a
    /// frame.
    each: u32,
    /// In a log that waits: where frames belong. Their numbers are not known yet.
    waiting: Option<Vec<(u64, Frame)>>,
    error: Option<io::Error>,
}

/// A frame that has no number yet.
#[derive(Clone, Copy)]
enum Frame {
    Begin(Section),
    End(Section, ProcessEnd, u64),
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
        about: (RunId, Digest),
        limit: u32,
        expected: usize,
    ) -> Self {
        let each = (limit / u32::try_from(expected.max(1)).unwrap_or(u32::MAX)).max(LEAST);
        Self {
            file,
            secrets,
            nonce,
            about,
            sections: 0,
            each,
            waiting: None,
            error: None,
        }
    }

    /// A log that waits for one to be taken over by: what it holds was printed before there was a nonce.
    pub fn waiting(
        file: &Path,
        secrets: &'a Secrets,
        about: (RunId, Digest),
        limit: u32,
        expected: usize,
    ) -> io::Result<Self> {
        let mut new = OpenOptions::new();
        let file = new.read(true).write(true).create_new(true).open(file)?;
        Ok(Self {
            waiting: Some(Vec::new()),
            ..Self::new(file, secrets, String::new(), about, limit, expected)
        })
    }

    /// What the sections of one kind hold, in a log that waits.
    pub fn printed(&self, of: Section) -> io::Result<Vec<Vec<u8>>> {
        let (mut printed, mut begun) = (Vec::new(), None);
        for (place, frame) in self.waiting.iter().flatten() {
            match (frame, begun) {
                (Frame::Begin(section), _) => begun = (*section == of).then_some(*place),
                (Frame::End(..), Some(from)) => {
                    let mut file = &self.file;
                    let mut bytes = Vec::new();
                    file.seek(SeekFrom::Start(from))?;
                    file.take(place - from).read_to_end(&mut bytes)?;
                    printed.push(bytes);
                    begun = None;
                }
                (Frame::End(..), None) => {}
            }
        }
        (&self.file).seek(SeekFrom::End(0))?;
        Ok(printed)
    }

    /// A log for commands that run beside these, in a file of its own; [`TestLog::take_over`] puts
    /// it where it belongs.
    pub fn beside(&self, file: &Path) -> io::Result<Self> {
        let mut new = OpenOptions::new();
        Ok(Self {
            file: new.read(true).write(true).create_new(true).open(file)?,
            secrets: self.secrets,
            nonce: self.nonce.clone(),
            about: self.about.clone(),
            sections: 0,
            each: self.each,
            waiting: Some(Vec::new()),
            error: None,
        })
    }

    /// Everything the other log holds, in its order, as if it had been written here.
    pub fn take_over(&mut self, mut other: TestLog<'_>) {
        self.error = self.error.take().or(other.error.take());
        if let Err(error) = self.copy(&other) {
            self.error.get_or_insert(error);
        }
    }

    fn copy(&mut self, other: &TestLog<'_>) -> io::Result<()> {
        let mut from = &other.file;
        from.seek(SeekFrom::Start(0))?;
        let mut at = 0;
        for (place, frame) in other.waiting.iter().flatten() {
            io::copy(&mut from.take(place - at), &mut self.file)?;
            at = *place;
            self.frame(*frame);
        }
        io::copy(&mut from, &mut self.file)?;
        Ok(())
    }

    /// All that a log that waits holds, as a log by itself: with its own first lines, and frames of
    /// another nonce.
    pub fn written_again(&self, file: &Path, nonce: &str, head: &str) -> io::Result<Vec<u8>> {
        let mut log = Self {
            nonce: nonce.to_owned(),
            waiting: None,
            ..self.beside(file)?
        };
        log.line(head);
        log.copy(self)?;
        match log.error {
            Some(error) => Err(error),
            None => files::read_limited(file, u64::from(self.each).saturating_mul(MOST_SECTIONS)),
        }
    }

    /// The run and the contract it is about.
    pub fn about(&self) -> (RunId, Digest) {
        self.about.clone()
    }

    pub fn head(&mut self, tree: &Digest) {
        let (run_id, contract) = &self.about;
        let head = test_log::log_header(run_id, contract, tree, &self.nonce);
        self.line(&head);
    }

    /// A word of the harness between sections.
    pub fn say(&mut self, text: &str) {
        let (clean, _) = self.secrets.redact(text.as_bytes());
        self.write(&[b"\n", clean.as_slice(), b"\n"].concat());
    }

    pub fn begin(&mut self, section: Section, command: &str) -> io::Result<OpenSection<'a>> {
        self.frame(Frame::Begin(section));
        let mut capture = Capture::new(
            section.as_str(),
            self.file.try_clone()?,
            self.each,
            self.secrets,
        );
        capture.push(format!("$ {command}\n").as_bytes(), &mut |_| {});
        Ok(OpenSection { section, capture })
    }

    /// `clean` sees what the redactor held back.
    pub fn end(
        &mut self,
        open: OpenSection<'_>,
        (how, duration_ms): (ProcessEnd, u64),
        clean: &mut dyn FnMut(&[u8]),
    ) {
        let written = open.capture.finish(clean);
        self.error = self.error.take().or(written.error);
        self.frame(Frame::End(open.section, how, duration_ms));
    }

    fn frame(&mut self, frame: Frame) {
        self.sections += u64::from(matches!(frame, Frame::Begin(_)));
        if let Some(waiting) = &mut self.waiting {
            match self.file.stream_position() {
                Ok(place) => waiting.push((place, frame)),
                Err(error) => self.error = self.error.take().or(Some(error)),
            }
            return;
        }
        let text = match frame {
            Frame::Begin(section) => test_log::frame_begin(&self.nonce, self.sections, section),
            Frame::End(section, how, duration_ms) => {
                test_log::frame_end(&self.nonce, self.sections, section, how, duration_ms)
            }
        };
        self.line(&format!("\n{text}\n"));
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
    /// `clean` sees what passed the redactor.
    pub fn push(&mut self, bytes: &[u8], clean: &mut dyn FnMut(&[u8])) {
        self.capture.push(bytes, clean);
    }
}
