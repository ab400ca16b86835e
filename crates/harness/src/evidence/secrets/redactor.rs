//! Taking secrets out of a stream, also where one lies across two chunks.

use super::{Hits, MAX_HELD, MIN_WINDOW, Secrets, What};
use crate::evidence::host_names;

const KNOWN_MARK: &[u8] = b"[redacted:known-value]";
pub(super) const SHAPE_MARK: &[u8] = b"[redacted:token]";
const PRIVATE_MARK: &[u8] = b"[redacted:endpoint]";

/// Takes secrets out of a stream, also when they lie across two chunks.
pub struct Redactor<'a> {
    secrets: &'a Secrets,
    held: Vec<u8>,
    /// The last bytes that were let go, as they were.
    before: Vec<u8>,
    hits: Hits,
}

impl<'a> Redactor<'a> {
    pub(super) fn new(secrets: &'a Secrets) -> Self {
        Self {
            secrets,
            held: Vec::new(),
            before: Vec::new(),
            hits: Hits::default(),
        }
    }

    /// The beginning of a text that goes on: its first `limit` bytes, and of what lies across their end its mark alone.
    pub(super) fn beginning(mut self, text: &[u8], limit: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(limit.min(text.len()));
        self.emit(text, limit.min(text.len()), true, &mut |bytes| {
            out.extend_from_slice(bytes);
        });
        out
    }
}

impl Redactor<'_> {
    pub fn push(&mut self, mut chunk: &[u8], out: &mut dyn FnMut(&[u8])) {
        // A large chunk is looked at where it is, once the line begun before it is whole.
        if !self.held.is_empty()
            && let Some(at) = memchr::memchr(b'\n', chunk).filter(|at| *at < MAX_HELD)
        {
            let (line, rest) = chunk.split_at(at + 1);
            self.join(line, out);
            chunk = rest;
        }
        if self.held.is_empty() {
            let done = self.settle(chunk, out);
            self.held.extend_from_slice(&chunk[done..]);
        } else {
            self.join(chunk, out);
        }
    }

    fn join(&mut self, more: &[u8], out: &mut dyn FnMut(&[u8])) {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(more);
        let done = self.settle(&held, out);
        held.drain(..done);
        self.held = held;
    }

    /// Lets go of what needs not wait for more; returns how much that was.
    fn settle(&mut self, text: &[u8], out: &mut dyn FnMut(&[u8])) -> usize {
        let window = self.secrets.longest().max(MIN_WINDOW);
        let by_window = text.len().saturating_sub(window);
        // Whole lines need not wait: but for keys in PEM form, nothing we look for crosses a line
        // end.
        let by_line = match self.secrets.may_cross_lines(text) {
            true => 0,
            false => memchr::memrchr(b'\n', text).map_or(0, |at| at + 1),
        };
        let cut = by_window.max(by_line);
        if cut > 0 {
            self.emit(text, cut, false, out)
        } else {
            0
        }
    }

    pub fn finish(mut self, out: &mut dyn FnMut(&[u8])) -> Hits {
        let held = std::mem::take(&mut self.held);
        self.emit(&held, held.len(), true, out);
        self.hits
    }

    pub fn hits(&self) -> Hits {
        self.hits
    }

    /// Lets go of everything before `cut`, moved so that no match is split; returns where that was.
    fn emit(
        &mut self,
        held: &[u8],
        mut cut: usize,
        last: bool,
        out: &mut dyn FnMut(&[u8]),
    ) -> usize {
        let mut from = 0;
        for hit in self.secrets.find(&self.before, held) {
            if hit.start >= cut {
                break;
            }
            // What comes next tells whether a path ends here.
            let ahead = match hit.what {
                What::Path(_) => host_names::LOOK_AHEAD - 1,
                _ => 0,
            };
            let at_the_end = hit.end + ahead >= held.len();
            let may_grow = !last && at_the_end && hit.end - hit.start < MAX_HELD;
            if may_grow {
                cut = hit.start;
                break;
            }
            out(&held[from..hit.start]);
            match hit.what {
                What::Known => {
                    self.hits.known += 1;
                    out(KNOWN_MARK);
                }
                What::Shape => {
                    self.hits.shapes += 1;
                    out(SHAPE_MARK);
                }
                What::Private => {
                    self.hits.private += 1;
                    out(PRIVATE_MARK);
                }
                What::Path(name) => {
                    self.hits.paths += 1;
                    out(name.mark());
                }
            }
            from = hit.end;
            cut = cut.max(from);
        }
        out(&held[from..cut]);
        self.before.extend_from_slice(&held[..cut]);
        let old = self.before.len().saturating_sub(host_names::LOOK_BACK);
        self.before.drain(..old);
        cut
    }
}
