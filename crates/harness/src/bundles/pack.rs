//! A bundle as one file: `cto bundle pack`, `unpack`, and the way `cto verify` reads an archive.
//!
//! What may stand in an archive is decided in `cto_core::bundle::archive`. The compression is a
//! Zstandard frame, read by a decoder without unsafe parsing in C: an archive comes from strangers.

use std::cell::Cell;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::archive::{self, ArchiveError, BLOCK, Entry, Limits, Unpacker};
use cto_core::values::digest::Hasher;
use cto_core::values::ids::RunId;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, FrameCompressor};

use crate::host;
use crate::host::files;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A skippable frame after the data, which every other reader passes over: it holds SHA-256 of all
/// bytes before it. Compressed data has many spellings of one content; with this, not even those
/// can be exchanged.
const TRAILER_HEAD: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 32, 0, 0, 0];
/// Ours is far smaller; a frame that wants more is not one of ours.
const MAX_WINDOW: u64 = 8 << 20;

#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("the archive is refused: {0}")]
    Refused(#[from] ArchiveError),
    #[error("the archive is refused: the compressed data {0}")]
    Frame(String),
    #[error("the archive ends too early")]
    Short,
    #[error("the archive is refused: {0:?} is not listed in SHA256SUMS, which must come first")]
    Unlisted(String),
    #[error("the archive is refused: SHA256SUMS: {0}")]
    Sums(String),
    #[error("{} is not a regular file with a plain name", .0.display())]
    Strange(PathBuf),
    #[error("{} changed while it was packed", .0.display())]
    Changed(PathBuf),
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    #[error("reading or writing failed")]
    Io(#[from] io::Error),
}

// ---- reading
// -------------------------------------------------------------------------------------

/// Counts and digests what goes through.
struct Counted<'a, R> {
    inner: R,
    count: &'a Cell<u64>,
    hasher: Hasher,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        self.count.set(self.count.get() + n as u64);
        Ok(n)
    }
}

/// Reads an archive from front to back and hands each file to `each`. Returns the run it is a
/// bundle of.
pub fn walk(
    archive: impl Read,
    each: impl FnMut(&Entry, &mut dyn Read) -> Result<(), PackError>,
) -> Result<RunId, PackError> {
    walk_within(archive, Limits::default(), each)
}

fn walk_within(
    archive: impl Read,
    limits: Limits,
    each: impl FnMut(&Entry, &mut dyn Read) -> Result<(), PackError>,
) -> Result<RunId, PackError> {
    let taken = Cell::new(0);
    let mut source = BufReader::with_capacity(128 << 10, archive);
    let mut magic = [0u8; 4];
    let start = read_up_to(&mut source, &mut magic)?;
    let source = io::Cursor::new(magic).take(start as u64).chain(source);
    let mut source = Counted {
        inner: source,
        count: &taken,
        hasher: Hasher::default(),
    };
    if magic != ZSTD_MAGIC {
        let run = entries(&mut source, limits, &taken, each)?;
        return ended(&mut source).map(|()| run);
    }
    let frame =
        |error: &dyn std::fmt::Display| PackError::Frame(format!("cannot be read: {error}"));
    let mut decoder = StreamingDecoder::new_with_max_window_size(source, MAX_WINDOW)
        .map_err(|error| frame(&error))?;
    let run = entries(&mut decoder, limits, &taken, each)?;
    ended(&mut decoder)?;
    trailer(&mut decoder.into_inner()).map(|()| run)
}

fn trailer<R: Read>(source: &mut Counted<'_, R>) -> Result<(), PackError> {
    let expected = [
        TRAILER_HEAD.to_vec(),
        source.hasher.clone().finish().to_bytes().to_vec(),
    ]
    .concat();
    let mut found = vec![0u8; expected.len()];
    if read_up_to(source, &mut found)? != expected.len() || found != expected {
        return Err(PackError::Frame(
            "does not have its digest at the end".into(),
        ));
    }
    ended(source)
}

/// Fills a buffer as far as there is something.
fn read_up_to(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn block(source: &mut impl Read) -> Result<[u8; BLOCK], PackError> {
    let mut block = [0u8; BLOCK];
    match decoded(read_up_to(source, &mut block))? {
        BLOCK => Ok(block),
        _ => Err(PackError::Short),
    }
}

/// Errors of the decoder come as I/O errors of kind `Other`.
fn decoded<T>(result: io::Result<T>) -> Result<T, PackError> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::Other => PackError::Frame(format!("cannot be read: {error}")),
        io::ErrorKind::UnexpectedEof => PackError::Short,
        _ => PackError::Io(error),
    })
}

fn ended(source: &mut impl Read) -> Result<(), PackError> {
    match decoded(read_up_to(source, &mut [0u8; 1]))? {
        0 => Ok(()),
        _ => Err(ArchiveError::End.into()),
    }
}

fn entries(
    source: &mut impl Read,
    limits: Limits,
    taken: &Cell<u64>,
    mut each: impl FnMut(&Entry, &mut dyn Read) -> Result<(), PackError>,
) -> Result<RunId, PackError> {
    let mut unpacker = Unpacker::new(limits);
    let mut before = 0u64;
    while let Some(entry) = unpacker.header(&block(source)?)? {
        let given = Cell::new(0);
        let guard = || unpacker.ratio(taken.get(), before + given.get());
        let mut content = Content {
            inner: source.by_ref().take(entry.bytes),
            given: &given,
            guard,
            refused: None,
        };
        let done = each(&entry, &mut content);
        if let Some(refused) = content.refused {
            return Err(refused.into());
        }
        done?;
        if given.get() != entry.bytes {
            return Err(PackError::Short);
        }
        let mut padding = [0u8; BLOCK];
        let padding = &mut padding[..entry.padding()];
        if decoded(read_up_to(source, padding))? != padding.len() {
            return Err(PackError::Short);
        }
        if padding.iter().any(|byte| *byte != 0) {
            return Err(ArchiveError::Padding.into());
        }
        before = before.saturating_add(entry.bytes);
    }
    if block(source)?.iter().any(|byte| *byte != 0) {
        return Err(ArchiveError::End.into());
    }
    unpacker
        .run()
        .cloned()
        .ok_or(PackError::Refused(ArchiveError::Empty))
}

/// One file's content, stopped when it grows out of all proportion.
struct Content<'a, R, G> {
    inner: io::Take<R>,
    given: &'a Cell<u64>,
    guard: G,
    refused: Option<ArchiveError>,
}

impl<R: Read, G: Fn() -> Result<(), ArchiveError>> Read for Content<'_, R, G> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Err(error) = (self.guard)() {
            self.refused = Some(error);
            return Err(io::Error::new(io::ErrorKind::InvalidData, "refused"));
        }
        let n = self.inner.read(buffer)?;
        self.given.set(self.given.get() + n as u64);
        Ok(n)
    }
}

/// Unpacks into a directory of its own below `into`; nothing is there under its name until all of
/// it is.
pub fn unpack(archive: impl Read, into: &Path) -> Result<PathBuf, PackError> {
    let name = host::random_name(12).map_err(io::Error::other)?;
    let aside = into.join(format!(".unpacking-{name}"));
    private_dir(&aside)?;
    let result = unpack_to(archive, into, &aside);
    if result.is_err() {
        let _ = fs::remove_dir_all(&aside);
    }
    result
}

fn unpack_to(archive: impl Read, into: &Path, aside: &Path) -> Result<PathBuf, PackError> {
    let run = walk(archive, |entry, content| {
        let path = aside.join(&entry.name);
        if let Some(parent) = path.parent() {
            host::make_private_dir(parent)?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        io::copy(content, &mut file)?;
        Ok(file.sync_data()?)
    })?;
    let to = into.join(run.as_str());
    match files::rename_new(aside, &to)? {
        true => Ok(to),
        false => Err(PackError::Exists(to)),
    }
}

fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

// ---- writing
// -------------------------------------------------------------------------------------

/// Writes a bundle as an archive. The same bundle gives the same bytes.
pub fn pack(dir: &Path, run: &RunId, to: impl Write, compress: bool) -> Result<(), PackError> {
    let mut source = Source::new(dir, run)?;
    let mut drain = Drain {
        inner: BufWriter::with_capacity(128 << 10, to),
        hasher: Hasher::default(),
        failed: None,
    };
    if compress {
        // It takes errors for bugs, so neither end shows it one.
        let mut compressor = FrameCompressor::new(CompressionLevel::Fastest);
        compressor.set_source(&mut source);
        compressor.set_drain(&mut drain);
        compressor.compress();
        let digest = drain.hasher.clone().finish();
        let _ = drain
            .write_all(&TRAILER_HEAD)
            .and_then(|()| drain.write_all(&digest.to_bytes()));
    } else {
        let _ = io::copy(&mut source, &mut drain);
    }
    match (source.failed, drain.failed) {
        (Some(error), _) => Err(error),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Ok(drain.inner.flush()?),
    }
}

/// Names and lengths of a bundle's files, in the order of an archive.
fn list(dir: &Path) -> Result<Vec<(String, u64)>, PackError> {
    let mut found = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        for entry in fs::read_dir(dir.join(&below))? {
            let entry = entry?;
            let relative = below.join(entry.file_name());
            let kind = entry.file_type()?;
            match relative.to_str() {
                Some(_) if kind.is_dir() => pending.push(relative),
                Some(name) if kind.is_file() && bundle::is_safe_name(name) => {
                    if name != bundle::LOCK {
                        found.push((name.to_owned(), entry.metadata()?.len()));
                    }
                }
                _ => return Err(PackError::Strange(dir.join(relative))),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The bytes of an archive, made while they are read. A failure ends them and is kept.
struct Source<'a> {
    dir: &'a Path,
    run: &'a RunId,
    files: std::vec::IntoIter<(String, u64)>,
    /// The part being read, and how much of it must still come.
    now: Box<dyn Read>,
    left: u64,
    name: String,
    at_end: bool,
    failed: Option<PackError>,
}

impl<'a> Source<'a> {
    fn new(dir: &'a Path, run: &'a RunId) -> Result<Self, PackError> {
        let files = list(dir)?.into_iter();
        Ok(Self {
            dir,
            run,
            files,
            now: Box::new(io::empty()),
            left: 0,
            name: String::new(),
            at_end: false,
            failed: None,
        })
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, PackError> {
        loop {
            let n = read_up_to(&mut self.now, buffer)?;
            self.left -= n as u64;
            if n > 0 {
                return Ok(n);
            }
            if self.left > 0 {
                return Err(PackError::Changed(self.dir.join(&self.name)));
            }
            if !self.advance()? {
                return Ok(0);
            }
        }
    }

    fn advance(&mut self) -> Result<bool, PackError> {
        let Some((name, bytes)) = self.files.next() else {
            self.now = Box::new(io::repeat(0).take(2 * BLOCK as u64));
            self.left = if self.at_end { 0 } else { 2 * BLOCK as u64 };
            return Ok(!std::mem::replace(&mut self.at_end, true));
        };
        let header = archive::header(self.run, &name, bytes)?;
        let file = files::open_regular(&self.dir.join(&name))?;
        if file.metadata()?.len() != bytes {
            return Err(PackError::Changed(self.dir.join(&name)));
        }
        let padding = archive::padding(bytes) as u64;
        self.left = BLOCK as u64 + bytes + padding;
        self.now = Box::new(
            io::Cursor::new(header)
                .chain(file.take(bytes))
                .chain(io::repeat(0).take(padding)),
        );
        self.name = name;
        Ok(true)
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.failed.is_some() {
            return Ok(0);
        }
        Ok(self.fill(buffer).unwrap_or_else(|error| {
            self.failed = Some(error);
            0
        }))
    }
}

/// Takes everything; remembers the first failure.
struct Drain<W> {
    inner: W,
    hasher: Hasher,
    failed: Option<io::Error>,
}

impl<W: Write> Write for Drain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        if self.failed.is_none()
            && let Err(error) = self.inner.write_all(bytes)
        {
            self.failed = Some(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "20260102T030405Z-demo-abcd";

    fn sample() -> (tempfile::TempDir, PathBuf, RunId) {
        let keep = tempfile::tempdir().unwrap();
        let dir = keep.path().join(RUN);
        fs::create_dir_all(dir.join("backend")).unwrap();
        fs::write(dir.join("report.json"), "{}").unwrap();
        fs::write(dir.join("backend/stdout.log"), vec![b'x'; 300_000]).unwrap();
        fs::write(dir.join("empty"), "").unwrap();
        fs::write(dir.join("run.lock"), "not packed").unwrap();
        (keep, dir, RUN.parse().unwrap())
    }

    fn packed(dir: &Path, run: &RunId, compress: bool) -> Vec<u8> {
        let mut out = Vec::new();
        pack(dir, run, &mut out, compress).unwrap();
        out
    }

    fn refusal(bytes: &[u8]) -> String {
        let limits = Limits {
            entries: 10,
            bytes: 1 << 20,
            ratio: 100,
            free: 1000,
        };
        let skip = |_: &Entry, content: &mut dyn Read| {
            io::copy(content, &mut io::sink())
                .map(drop)
                .map_err(PackError::from)
        };
        match walk_within(bytes, limits, skip) {
            Ok(_) => "accepted".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn there_and_back_and_always_the_same() {
        let (keep, dir, run) = sample();
        for compress in [true, false] {
            let bytes = packed(&dir, &run, compress);
            assert_eq!(bytes, packed(&dir, &run, compress));
            let into = keep.path().join(format!("into-{compress}"));
            fs::create_dir(&into).unwrap();
            let to = unpack(bytes.as_slice(), &into).unwrap();
            assert_eq!(to, into.join(RUN));
            assert_eq!(list(&to).unwrap(), list(&dir).unwrap());
            assert!(!to.join("run.lock").exists());
            assert!(matches!(
                unpack(bytes.as_slice(), &into),
                Err(PackError::Exists(_))
            ));
            assert_eq!(
                fs::read_dir(&into).unwrap().count(),
                1,
                "something was left behind"
            );
        }
    }

    #[test]
    fn every_cut_and_everything_added_is_refused() {
        let (_keep, dir, run) = sample();
        fs::write(dir.join("backend/stdout.log"), "short").unwrap();
        for compress in [true, false] {
            let bytes = packed(&dir, &run, compress);
            assert_eq!(refusal(&bytes), "accepted");
            for length in 0..bytes.len() {
                assert_ne!(
                    refusal(&bytes[..length]),
                    "accepted",
                    "{length} of {}",
                    bytes.len()
                );
            }
            for more in [&b"\0"[..], &[0; 512], b"x", &bytes] {
                assert_ne!(refusal(&[bytes.as_slice(), more].concat()), "accepted");
            }
        }
    }

    #[test]
    fn any_changed_bit_of_a_plain_archive_is_refused_or_changes_a_content() {
        let (_keep, dir, run) = sample();
        fs::write(dir.join("backend/stdout.log"), "short").unwrap();
        let bytes = packed(&dir, &run, false);
        for at in (0..bytes.len()).step_by(3) {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            let content = (1024 - 512..1024 - 507).contains(&at) || (2048..2050).contains(&at);
            assert_eq!(refusal(&bad) == "accepted", content, "byte {at}");
        }
    }

    #[test]
    fn any_changed_bit_of_a_compressed_archive_is_refused() {
        let (_keep, dir, run) = sample();
        let bytes = packed(&dir, &run, true);
        for at in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[at / 8] ^= 1 << (at % 8);
            assert_ne!(refusal(&bad), "accepted", "bit {at}");
        }
    }

    #[test]
    fn bombs_are_stopped_while_they_unpack() {
        let (_keep, dir, run) = sample();
        fs::write(dir.join("backend/stdout.log"), vec![0; 900_000]).unwrap();
        assert!(refusal(&packed(&dir, &run, true)).contains("100 times its size"));
        fs::write(dir.join("backend/stdout.log"), vec![0; 2 << 20]).unwrap();
        assert!(refusal(&packed(&dir, &run, true)).contains("more than 1048576 bytes"));
    }

    #[test]
    fn links_and_pipes_are_not_packed() {
        let (_keep, dir, run) = sample();
        std::os::unix::fs::symlink("/etc/passwd", dir.join("link")).unwrap();
        assert!(matches!(
            pack(&dir, &run, io::sink(), true),
            Err(PackError::Strange(_))
        ));
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let (_keep, dir, run) = sample();
        for compress in [true, false] {
            assert!(matches!(
                pack(&dir, &run, Full, compress),
                Err(PackError::Io(_))
            ));
        }
    }
}
