//! Bytes that wait: a request until its model is known, an answer until it has said its name.
//! Little ones wait in memory, large ones in a file without a name, so that many at once do not
//! fill the memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

const IN_MEMORY: usize = 64 * 1024;
pub const MAX_HELD: u64 = 32 * 1024 * 1024;

#[derive(Default)]
pub struct Hold {
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
}

impl Hold {
    pub fn len(&self) -> u64 {
        self.length
    }

    /// May so many more bytes wait?
    pub fn has_room(&self, more: usize) -> bool {
        self.length.saturating_add(more as u64) <= MAX_HELD
    }

    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
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

    /// All of it, in order, as often as needed.
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
            let mut hold = Hold::default();
            for piece in bytes.chunks(7001) {
                hold.push(piece).unwrap();
            }
            for _ in 0..2 {
                let mut out = Vec::new();
                hold.each(&mut |piece| out.write_all(piece)).unwrap();
                assert_eq!(out, bytes);
            }
            assert_eq!(hold.len(), bytes.len() as u64);
            assert_eq!(hold.file.is_some(), size > IN_MEMORY);
        }
    }
}
