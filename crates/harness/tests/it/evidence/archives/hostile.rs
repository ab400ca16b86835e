//! Hostile archives: none is unpacked, none verifies.

use std::fs;
use std::path::PathBuf;

use cto_testkit::{Bundle, files_below};

use super::{pack, verify_stdin};
use crate::fixtures::verifiers::{by_script, public_key};
use crate::passed;

/// A tar header with anything in it and a checksum that fits.
struct Header {
    name: String,
    prefix: String,
    kind: u8,
    size: String,
    link: String,
}

impl Header {
    fn file(run: &str, name: &str, bytes: usize) -> Self {
        Self {
            name: name.into(),
            prefix: run.into(),
            kind: b'0',
            size: format!("{bytes:011o}\0"),
            link: String::new(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0u8; 512];
        let mut put = |at: usize, text: &[u8]| out[at..at + text.len()].copy_from_slice(text);
        put(0, &self.name.as_bytes()[..self.name.len().min(100)]);
        put(100, b"0000644\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, self.size.as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[self.kind]);
        put(157, self.link.as_bytes());
        put(257, b"ustar\x0000");
        put(329, b"0000000\0");
        put(337, b"0000000\0");
        put(345, self.prefix.as_bytes());
        let sum: u32 = out.iter().map(|byte| u32::from(*byte)).sum();
        out[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out
    }
}

/// An archive of a bundle with one entry put at its beginning or end.
fn with_entry(bundle: &Bundle, first: bool, header: &Header, content: &[u8]) -> Vec<u8> {
    let entry = |header: &Header, content: &[u8]| {
        let mut out = header.bytes();
        out.extend(content);
        out.resize(out.len().next_multiple_of(512), 0);
        out
    };
    let run = bundle.run_id();
    let mut parts: Vec<Vec<u8>> = bundle
        .names()
        .iter()
        .map(|name| {
            entry(
                &Header::file(&run, name, bundle.bytes(name).len()),
                &bundle.bytes(name),
            )
        })
        .collect();
    parts.insert(if first { 0 } else { parts.len() }, entry(header, content));
    parts.push(vec![0; 1024]);
    parts.concat()
}

fn hostile(bundle: &Bundle) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let run = bundle.run_id();
    let first = |header: Header, content: &[u8]| with_entry(bundle, true, &header, content);
    let named = |name: &str| first(Header::file(&run, name, 1), b"x");
    let of_kind = |kind: u8, link: &str| {
        first(
            Header {
                kind,
                link: link.into(),
                ..Header::file(&run, "0", 0)
            },
            b"",
        )
    };
    let under = |prefix: &str| {
        first(
            Header {
                prefix: prefix.into(),
                ..Header::file(&run, "0", 1)
            },
            b"x",
        )
    };
    let whole = with_entry(bundle, false, &Header::file(&run, "zz", 0), b"");
    let pax = "20 path=../../escape\n";
    vec![
        ("zip slip", named("../../escape"), "leaves the bundle"),
        (
            "an absolute name",
            named("/tmp/escape"),
            "leaves the bundle",
        ),
        (
            "a part that climbs",
            named("a/../../escape"),
            "leaves the bundle",
        ),
        ("a dot", named("./0"), "leaves the bundle"),
        ("a backslash", named("..\\escape"), "leaves the bundle"),
        ("an empty part", named("a//b"), "leaves the bundle"),
        ("no name", named(""), "leaves the bundle"),
        (
            "a control character",
            named("a\u{1b}[31m"),
            "leaves the bundle",
        ),
        ("a lock", named("run.lock"), "leaves the bundle"),
        ("another directory", under("elsewhere"), "leaves the bundle"),
        (
            "a directory that climbs",
            under(&format!("{run}/..")),
            "leaves the bundle",
        ),
        ("no directory", under(""), "leaves the bundle"),
        (
            "another run",
            under("20200101T000000Z-quick-abcdefgh"),
            "belongs to another run",
        ),
        ("a link", of_kind(b'2', "/etc/passwd"), "a link"),
        ("a hard link", of_kind(b'1', "/etc/passwd"), "a link"),
        ("a character device", of_kind(b'3', ""), "a device or pipe"),
        ("a block device", of_kind(b'4', ""), "a device or pipe"),
        ("a pipe", of_kind(b'6', ""), "a device or pipe"),
        ("a directory", of_kind(b'5', ""), "a directory"),
        ("a sparse file", of_kind(b'S', ""), "a kind of its own"),
        (
            "a pax header",
            first(
                Header {
                    kind: b'x',
                    ..Header::file(&run, "0", pax.len())
                },
                pax.as_bytes(),
            ),
            "an extended header",
        ),
        (
            "a global pax header",
            of_kind(b'g', ""),
            "an extended header",
        ),
        (
            "a long name",
            first(
                Header {
                    kind: b'L',
                    ..Header::file(&run, "0", 9)
                },
                b"../escape",
            ),
            "an extended header",
        ),
        ("a long link", of_kind(b'K', ""), "an extended header"),
        (
            "a file twice",
            with_entry(bundle, false, &Header::file(&run, "trace.jsonl", 1), b"x"),
            "twice or out of order",
        ),
        (
            "out of order",
            with_entry(bundle, false, &Header::file(&run, "0", 1), b"x"),
            "twice or out of order",
        ),
        (
            "a huge size",
            first(
                Header {
                    size: "77777777777\0".into(),
                    ..Header::file(&run, "0", 0)
                },
                b"x",
            ),
            "ends too early",
        ),
        (
            "a size in base 256",
            first(
                Header {
                    size: "\u{7f}\u{7f}\u{7f}\u{7f}".into(),
                    ..Header::file(&run, "0", 0)
                },
                b"",
            ),
            "plain number",
        ),
        (
            "a negative size",
            first(
                Header {
                    size: "-0000000001\0".into(),
                    ..Header::file(&run, "0", 0)
                },
                b"",
            ),
            "plain number",
        ),
        (
            "a size with a space",
            first(
                Header {
                    size: " 0000000000\0".into(),
                    ..Header::file(&run, "0", 0)
                },
                b"",
            ),
            "plain number",
        ),
        (
            "cut off",
            whole[..whole.len() - 1500].to_vec(),
            "ends too early",
        ),
        (
            "without its end",
            whole[..whole.len() - 512].to_vec(),
            "ends too early",
        ),
        (
            "something after the end",
            [whole.as_slice(), b"x"].concat(),
            "does not end where it should",
        ),
        (
            "a second archive after the end",
            [whole.as_slice(), &whole].concat(),
            "does not end where it should",
        ),
        ("nothing but zeros", vec![0; 1024], "is empty"),
        ("nothing", Vec::new(), "ends too early"),
        (
            "text",
            b"hello world, this is no archive\n".repeat(40),
            "refused",
        ),
        (
            "a frame that is none",
            b"\x28\xb5\x2f\xfdgarbage and more garbage".to_vec(),
            "compressed data",
        ),
    ]
}

#[test]
fn no_hostile_archive_is_unpacked_or_verified() {
    let (house, bundle) = passed();
    let key = public_key(&house);
    let into = house.root().join("into");
    fs::create_dir(&into).unwrap();
    let place = house.root().join("elsewhere/hostile");
    fs::create_dir(&place).unwrap();
    let mut files = Vec::new();
    for (number, (what, bytes, why)) in hostile(&bundle).into_iter().enumerate() {
        let file = place.join(format!("{number}.tar"));
        fs::write(&file, &bytes).unwrap();
        let before = files_below(house.root());
        let unpacked = house.cto(&[
            "bundle",
            "unpack",
            file.to_str().unwrap(),
            "-C",
            into.to_str().unwrap(),
        ]);
        assert!(
            !unpacked.panicked() && unpacked.code == Some(1),
            "{what}: {unpacked:?}"
        );
        assert!(
            unpacked.stderr.contains(why) && unpacked.stderr.contains("nothing was unpacked"),
            "{what}: {unpacked:?}"
        );
        let verified = house.cto(&["verify", file.to_str().unwrap()]);
        // An entry that nothing lists is refused by its name, before anything else is asked of it.
        let reasons = [why, "is not listed in SHA256SUMS"];
        assert!(
            verified.code == Some(1) && reasons.iter().any(|why| verified.stdout.contains(why)),
            "{what}: {verified:?}"
        );
        assert!(!verified.stdout.contains('\u{1b}'), "{what}: {verified:?}");
        assert_eq!(
            files_below(house.root()),
            before,
            "{what}: something was written"
        );
        if !what.contains("frame") {
            files.push((what, file));
        }
    }
    let paths: Vec<PathBuf> = files.iter().map(|(_, file)| file.clone()).collect();
    for ((what, _), code) in files.iter().zip(by_script(&key, &paths)) {
        assert_eq!(code, 1, "{what}: verify.py took it");
    }
}

#[test]
fn a_tampered_archive_is_as_bad_as_a_tampered_bundle() {
    let (house, bundle) = passed();
    let file = pack(&house, &bundle, "one.tar");
    let whole = fs::read(&file).unwrap();
    let patch = whole
        .windows(10)
        .position(|window| window == b"diff --git")
        .unwrap();
    let mut changed = whole.clone();
    changed[patch + 70] ^= 1;
    let answer = verify_stdin(&house, &changed, &[]);
    assert!(
        answer.code == Some(1) && answer.stdout.contains("patch.diff"),
        "{answer:?}"
    );
    let compressed = fs::read(pack(&house, &bundle, "one.tar.zst")).unwrap();
    for at in (0..compressed.len()).step_by(compressed.len() / 60) {
        let mut changed = compressed.clone();
        changed[at] ^= 0x10;
        let answer = verify_stdin(&house, &changed, &["--json"]);
        assert!(!answer.panicked(), "byte {at}: {answer:?}");
        assert_eq!(answer.code, Some(1), "byte {at}: {answer:?}");
    }
}
