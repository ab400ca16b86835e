//! A buffer for bytes that must wait: a request until it has been checked, an answer until it has
//! named its model. Small ones stay in memory, large ones go to a file without a name, so that many
//! at once do not fill the memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const IN_MEMORY: usize = 64 * 1024;
pub const MAX_HELD: u64 = 32 * 1024 * 1024;
/// Of all buffers of one gateway together: an engine opens many connections, and its limits do not count what is held here.
const MAX_HELD_TOGETHER: u64 = 256 * 1024 * 1024;

/// What the buffers of one gateway hold together.
#[derive(Clone, Default)]
pub struct HeldTogether(Arc<AtomicU64>);

impl HeldTogether {
    fn take(&self, bytes: u64) -> bool {
        let taken = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
                held.checked_add(bytes)
                    .filter(|all| *all <= MAX_HELD_TOGETHER)
            });
        taken.is_ok()
    }
}

#[derive(Default)]
pub struct SpillBuffer {
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
    together: HeldTogether,
}

impl Drop for SpillBuffer {
    fn drop(&mut self) {
        self.together.0.fetch_sub(self.length, Ordering::AcqRel);
    }
}

impl SpillBuffer {
    /// One of several that share a bound.
    pub fn among(together: &HeldTogether) -> Self {
        let mut own = Self::default();
        own.together = together.clone();
        own
    }

    pub fn len(&self) -> u64 {
        self.length
    }

    /// Is there room for so many more bytes?
    pub fn has_room(&self, more: usize) -> bool {
        self.length.saturating_add(more as u64) <= MAX_HELD
    }

    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.together.take(bytes.len() as u64) {
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        self.length += bytes.len() as u64;
        if let Some(file) = &mut self.file {
            return file.write_all(bytes);
        }
        if self.memory.len() + bytes.len() <= IN_MEMORY {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(&self.memory)?;
        file.write_all(bytes)?;
        self.memory = Vec::new();
        self.file = Some(file);
        Ok(())
    }

    /// Hands out all of it in order; may be called again.
    pub fn each(&mut self, hand: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return hand(&self.memory);
        };
        file.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0u8; IN_MEMORY];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                n => hand(&buffer[..n])?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        for size in [0, 10, IN_MEMORY, IN_MEMORY + 1, 300_000] {
            let bytes: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let mut buffer = SpillBuffer::default();
            for piece in bytes.chunks(7001) {
                buffer.push(piece).unwrap();
            }
            for _ in 0..2 {
                let mut out = Vec::new();
                buffer.each(&mut |piece| out.write_all(piece)).unwrap();
                assert_eq!(out, bytes);
            }
            assert_eq!(buffer.len(), bytes.len() as u64);
            assert_eq!(buffer.file.is_some(), size > IN_MEMORY);
        }
    }

    #[test]
    fn many_at_once_hold_no_more_than_they_may_together() {
        let together = HeldTogether::default();
        let piece = vec![b'x'; 1 << 20];
        let mut all: Vec<SpillBuffer> = (0..16).map(|_| SpillBuffer::among(&together)).collect();
        for buffer in &mut all {
            (0..16).for_each(|_| buffer.push(&piece).unwrap());
        }
        let mut late = SpillBuffer::among(&together);
        assert!(late.push(b"y").is_err());
        assert_eq!(late.len(), 0, "what was not taken is not counted");
        drop(all.pop());
        late.push(b"y").unwrap();
        drop((all, late));
        assert_eq!(together.0.load(Ordering::Acquire), 0, "all is given back");
    }
}
