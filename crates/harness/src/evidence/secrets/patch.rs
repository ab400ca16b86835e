//! What a finished patch holds. Not a byte of it is changed, only counted.

use std::collections::BTreeSet;

use super::{Hits, Secrets, What};

/// Looks at a patch in pieces; nothing is changed, only counted.
pub struct PatchScan<'a> {
    secrets: &'a Secrets,
    tail: Vec<u8>,
    hits: Hits,
    /// Private values that a line adds.
    private: BTreeSet<Vec<u8>>,
}

/// What was found in a patch.
pub struct PatchHits {
    pub hits: Hits,
    /// Private values that a line adds: a leak, unless the repository names them itself.
    pub private: BTreeSet<Vec<u8>>,
}

impl<'a> PatchScan<'a> {
    pub(super) fn new(secrets: &'a Secrets) -> Self {
        Self {
            secrets,
            tail: Vec::new(),
            hits: Hits::default(),
            private: BTreeSet::new(),
        }
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.tail.extend_from_slice(chunk);
        // Whole lines only; one line of unreasonable length is looked at in pieces.
        let cut = match memchr::memrchr(b'\n', &self.tail) {
            Some(at) => at + 1,
            None if self.tail.len() > 1 << 20 => self.tail.len(),
            None => return,
        };
        let rest = self.tail.split_off(cut);
        let lines = std::mem::replace(&mut self.tail, rest);
        self.look(&lines);
    }

    pub fn finish(mut self) -> PatchHits {
        let lines = std::mem::take(&mut self.tail);
        self.look(&lines);
        PatchHits {
            hits: self.hits,
            private: self.private,
        }
    }

    fn look(&mut self, lines: &[u8]) {
        let secrets = self.secrets;
        for hit in secrets.find(b"", lines) {
            if hit.what == What::Known {
                self.hits.known += 1;
                continue;
            }
            let line_start = memchr::memrchr(b'\n', &lines[..hit.start]).map_or(0, |at| at + 1);
            if lines.get(line_start) != Some(&b'+') {
                continue;
            }
            match hit.what {
                What::Private => {
                    let found = &lines[hit.start..hit.end];
                    let inside: Vec<&[u8]> = secrets.private_in(found).collect();
                    match inside.is_empty() {
                        // In another spelling: it is asked for as it stands here.
                        true => drop(self.private.insert(found.to_vec())),
                        false => self.private.extend(inside.into_iter().map(<[u8]>::to_vec)),
                    }
                }
                What::Path(_) => self.hits.paths += 1,
                _ => self.hits.shapes += 1,
            }
        }
    }
}
