//! A packed bundle: a tar file of one fixed form. Each bundle has exactly one archive.
//!
//! Every entry is a regular file `<run id>/<name>`, sorted by name, without owner and time. A
//! header is read by building it again and comparing all 512 bytes. So links, devices, extended
//! headers, other spellings of a number and names with `..` need no rule of their own: they never
//! compare equal.

use crate::bundle;
use crate::values::ids::RunId;

pub const BLOCK: usize = 512;

/// How large an archive may be when unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub entries: u64,
    pub bytes: u64,
    /// Bytes unpacked per byte read, once `free` bytes have been unpacked.
    pub ratio: u64,
    pub free: u64,
}

impl Default for Limits {
    fn default() -> Self {
        // Text repeated by an engine shrinks a thousandfold; nothing honest shrinks more and is
        // larger than this.
        Self {
            entries: 10_000,
            bytes: 16 << 30,
            ratio: 2_000,
            free: 1 << 30,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    #[error("entry {0} is not a plain file as a packed bundle holds it ({1})")]
    Header(u64, &'static str),
    #[error("entry {0} has a name that leaves the bundle or cannot be in one")]
    Name(u64),
    #[error("entry {0} belongs to another run than the first")]
    Run(u64),
    #[error("entry {0} comes twice or out of order")]
    Order(u64),
    #[error("it holds more than {0} files")]
    Count(u64),
    #[error("it holds more than {0} bytes")]
    Size(u64),
    #[error("it unpacks to more than {0} times its size")]
    Ratio(u64),
    #[error("bytes between the entries are not zero")]
    Padding,
    #[error("it does not end where it should")]
    End,
    #[error("it is empty")]
    Empty,
    #[error("{0:?} cannot be packed: the name is too long or not one of a bundle")]
    Unpackable(String),
}

/// One file of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub name: String,
    pub bytes: u64,
}

impl Entry {
    /// Zeros after the content, up to the next header.
    pub fn padding(&self) -> usize {
        padding(self.bytes)
    }
}

pub fn padding(bytes: u64) -> usize {
    (BLOCK - (bytes % BLOCK as u64) as usize) % BLOCK
}

/// The one header of a file in a packed bundle.
pub fn header(run: &RunId, name: &str, bytes: u64) -> Result<[u8; BLOCK], ArchiveError> {
    let packable =
        bundle::is_safe_name(name) && name != bundle::LOCK && name.len() <= 100 && bytes < 1 << 33;
    if !packable {
        return Err(ArchiveError::Unpackable(name.chars().take(80).collect()));
    }
    let mut out = [0u8; BLOCK];
    let mut put = |at: usize, field: &[u8]| {
        for (slot, byte) in out.iter_mut().skip(at).zip(field) {
            *slot = *byte;
        }
    };
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{bytes:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(329, b"0000000\0");
    put(337, b"0000000\0");
    put(345, run.as_str().as_bytes());
    let sum: u32 = out.iter().map(|byte| u32::from(*byte)).sum();
    for (slot, byte) in out
        .iter_mut()
        .skip(148)
        .zip(format!("{sum:06o}\0 ").bytes())
    {
        *slot = byte;
    }
    Ok(out)
}

/// Reads headers one after the other; the caller reads the contents.
pub struct Unpacker {
    limits: Limits,
    run: Option<RunId>,
    last: Option<String>,
    entries: u64,
    bytes: u64,
}

impl Unpacker {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            run: None,
            last: None,
            entries: 0,
            bytes: 0,
        }
    }

    /// The run this is a bundle of, once there was an entry.
    pub fn run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// The next file, or `None` at the first block of the end.
    pub fn header(&mut self, block: &[u8; BLOCK]) -> Result<Option<Entry>, ArchiveError> {
        if block.iter().all(|byte| *byte == 0) {
            return if self.entries == 0 {
                Err(ArchiveError::Empty)
            } else {
                Ok(None)
            };
        }
        self.entries += 1;
        let number = self.entries;
        if number > self.limits.entries {
            return Err(ArchiveError::Count(self.limits.entries));
        }
        let (run, entry) = read(number, block)?;
        if self.run.get_or_insert_with(|| run.clone()) != &run {
            return Err(ArchiveError::Run(number));
        }
        if self.last.as_ref().is_some_and(|last| *last >= entry.name) {
            return Err(ArchiveError::Order(number));
        }
        self.bytes = self.bytes.saturating_add(entry.bytes);
        if self.bytes > self.limits.bytes {
            return Err(ArchiveError::Size(self.limits.bytes));
        }
        self.last = Some(entry.name.clone());
        Ok(Some(entry))
    }

    /// Checks the ratio of unpacked to read bytes; called now and then while contents are read.
    pub fn ratio(&self, taken_in: u64, given_out: u64) -> Result<(), ArchiveError> {
        let bomb = given_out > self.limits.free && given_out / self.limits.ratio > taken_in;
        if bomb {
            Err(ArchiveError::Ratio(self.limits.ratio))
        } else {
            Ok(())
        }
    }
}

fn read(number: u64, block: &[u8; BLOCK]) -> Result<(RunId, Entry), ArchiveError> {
    let refuse = |why| ArchiveError::Header(number, why);
    match block[156] {
        b'0' => {}
        b'1' | b'2' => return Err(refuse("a link")),
        b'3' | b'4' | b'6' => return Err(refuse("a device or pipe")),
        b'5' => return Err(refuse("a directory")),
        b'x' | b'g' | b'L' | b'K' => return Err(refuse("an extended header")),
        _ => return Err(refuse("a kind of its own")),
    }
    let field = |at: usize, length: usize| {
        let bytes = &block[at..at + length];
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
        std::str::from_utf8(&bytes[..end])
    };
    let name = field(0, 100).map_err(|_| ArchiveError::Name(number))?;
    let run = field(345, 155)
        .ok()
        .and_then(|run| run.parse::<RunId>().ok())
        .ok_or(ArchiveError::Name(number))?;
    let bytes = field(124, 12)
        .ok()
        .and_then(|digits| u64::from_str_radix(digits, 8).ok());
    let bytes = bytes.ok_or(refuse("its length is not a plain number"))?;
    let again = header(&run, name, bytes).map_err(|_| ArchiveError::Name(number))?;
    if again != *block {
        return Err(refuse("its header is written in another way"));
    }
    Ok((
        run,
        Entry {
            name: name.to_owned(),
            bytes,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run() -> RunId {
        "20260102T030405Z-demo-abcd".parse().unwrap()
    }

    fn unpacker() -> Unpacker {
        Unpacker::new(Limits {
            entries: 3,
            bytes: 1000,
            ratio: 10,
            free: 100,
        })
    }

    #[test]
    fn a_header_reads_back() {
        let mut unpacker = unpacker();
        let entry = unpacker
            .header(&header(&run(), "backend/stdout.log", 513).unwrap())
            .unwrap()
            .unwrap();
        assert_eq!(
            entry,
            Entry {
                name: "backend/stdout.log".into(),
                bytes: 513
            }
        );
        assert_eq!((entry.padding(), padding(512), padding(0)), (511, 0, 0));
        assert_eq!(unpacker.run(), Some(&run()));
        assert_eq!(unpacker.header(&[0; BLOCK]), Ok(None));
    }

    #[test]
    fn every_bit_of_a_header_matters() {
        let good = header(&run(), "patch.diff", 7).unwrap();
        for at in 0..BLOCK * 8 {
            let mut bad = good;
            bad[at / 8] ^= 1 << (at % 8);
            assert!(unpacker().header(&bad).is_err(), "bit {at}");
        }
    }

    /// A header with any name and kind and a checksum that fits.
    fn forged(name: &str, kind: u8, prefix: &str) -> [u8; BLOCK] {
        let mut out = header(&run(), "x", 0).unwrap();
        out[..100].fill(0);
        out[345..500].fill(0);
        out[..name.len()].copy_from_slice(name.as_bytes());
        out[345..345 + prefix.len()].copy_from_slice(prefix.as_bytes());
        out[156] = kind;
        out[148..156].fill(b' ');
        let sum: u32 = out.iter().map(|byte| u32::from(*byte)).sum();
        out[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out
    }

    #[test]
    fn hostile_entries() {
        let id = "20260102T030405Z-demo-abcd";
        assert!(unpacker().header(&forged("fine", b'0', id)).is_ok());
        for name in [
            "../x", "/x", "a/../x", "a//x", "./x", "", "a\\x", "run.lock", "a\nb",
        ] {
            assert_eq!(
                unpacker().header(&forged(name, b'0', id)),
                Err(ArchiveError::Name(1)),
                "{name:?}"
            );
        }
        for prefix in ["", "..", "/etc", "20260102T030405Z-demo-abcd/..", "demo"] {
            assert_eq!(
                unpacker().header(&forged("fine", b'0', prefix)),
                Err(ArchiveError::Name(1)),
                "{prefix:?}"
            );
        }
        for kind in *b"1234567xgLKAS\0 " {
            assert!(
                matches!(
                    unpacker().header(&forged("fine", kind, id)),
                    Err(ArchiveError::Header(1, _))
                ),
                "{kind}"
            );
        }
    }

    #[test]
    fn order_run_count_and_size() {
        let entry = |name: &str, bytes| header(&run(), name, bytes).unwrap();
        let mut one = unpacker();
        one.header(&entry("b", 1)).unwrap();
        assert_eq!(one.header(&entry("b", 1)), Err(ArchiveError::Order(2)));
        assert_eq!(one.header(&entry("a", 1)), Err(ArchiveError::Order(3)));
        let mut two = unpacker();
        two.header(&entry("a", 600)).unwrap();
        assert_eq!(two.header(&entry("b", 600)), Err(ArchiveError::Size(1000)));
        let mut three = unpacker();
        for name in ["a", "b", "c"] {
            three.header(&entry(name, 0)).unwrap();
        }
        assert_eq!(three.header(&entry("d", 0)), Err(ArchiveError::Count(3)));
        let mut four = unpacker();
        four.header(&entry("a", 0)).unwrap();
        let other = header(&"20260102T030405Z-demo-abce".parse().unwrap(), "b", 0).unwrap();
        assert_eq!(four.header(&other), Err(ArchiveError::Run(2)));
        assert_eq!(unpacker().header(&[0; BLOCK]), Err(ArchiveError::Empty));
    }

    #[test]
    fn bombs() {
        assert_eq!(unpacker().ratio(1, 100), Ok(()));
        assert_eq!(unpacker().ratio(11, 110), Ok(()));
        assert_eq!(unpacker().ratio(9, 110), Err(ArchiveError::Ratio(10)));
    }

    #[test]
    fn what_cannot_be_packed() {
        for name in ["", "../x", "run.lock", &"x".repeat(101)] {
            assert!(header(&run(), name, 0).is_err(), "{name}");
        }
        assert!(header(&run(), "x", 1 << 33).is_err());
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), BLOCK)) {
            let block: [u8; BLOCK] = bytes.try_into().unwrap();
            let _ = unpacker().header(&block);
        }
    }
}
