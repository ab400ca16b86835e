//! Whatever the bytes, no parser of a stranger's, an operator's or an engine's input panics or
//! hangs. `CTO_FUZZ=1000000` tries that many.
//!
//! Inputs are made from the golden bundles: bits flipped, pieces cut, repeated and exchanged, words
//! of the formats put anywhere. The same seed gives the same inputs.

use std::collections::BTreeMap;
use std::path::Path;

use cto_core::bundle::attest::{Envelope, KeyRecord, PublicKey, Statement, Trust, Verdict};
use cto_core::bundle::report::Report;
use cto_core::bundle::sums;
use cto_core::containment::ContainmentReport;
use cto_core::engine::dialect::{DialectParser, Source, WireSeen};
use cto_core::engine::manifest::{Dialect, Manifest};
use cto_core::gate::GateReport;
use cto_core::operator::settings;
use cto_core::run::chain;
use cto_core::run::trace::TraceLine;
use cto_core::task::case_file;
use cto_core::task::contract::ContractDocument;
use cto_core::values::digest::Digest;
use cto_core::values::json;
use cto_core::verify::{FoundBundle, FoundFile, Links, Standing, is_document, verify};
use cto_core::workspace::patch::PatchReader;
use cto_core::workspace::patch_stat::PatchStat;
use cto_harness::bundles::pack;
use cto_harness::task::script;

/// xorshift64*: good enough to pick bytes, the same everywhere.
pub struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

const WORDS: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"-1",
    b"1e999",
    b"9007199254740993",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"\n",
    b"../",
    b"  ",
    b"==",
    b"{\"a\":1,\"a\":1}",
    b"ustar\x0000",
    b"77777777777\0",
    b"\x28\xb5\x2f\xfd",
    b"DSSEv1 ",
    b"----",
    b"@@",
];

pub fn mutate(dice: &mut Dice, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        match dice.below(7) {
            0 if !bytes.is_empty() => {
                let at = at % bytes.len();
                bytes[at] ^= 1 << dice.below(8);
            }
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..(at + dice.below(64)).min(bytes.len()))),
            3 => {
                let word = WORDS[dice.below(WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            4 => {
                let from = dice.below(other.len() + 1);
                let piece = other[from..(from + dice.below(256)).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let piece = bytes[at..(at + dice.below(128)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes
                .iter_mut()
                .skip(at)
                .take(8)
                .for_each(|byte| *byte = dice.next() as u8),
        }
    }
    bytes
}

struct Seeds {
    found: FoundBundle,
    /// Documents, statements inside envelopes, keys and archives, by what reads them.
    texts: Vec<(&'static str, Vec<u8>)>,
    trust: Trust,
}

fn seeds() -> Seeds {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let dir = golden.join("v1/pass");
    let bundle = cto_testkit::Bundle::at(&dir);
    let mut found = FoundBundle::default();
    for name in bundle.names() {
        let bytes = bundle.bytes(&name);
        found.files.insert(
            name.clone(),
            FoundFile {
                bytes: bytes.len() as u64,
                sha256: Digest::of(&bytes),
            },
        );
        if is_document(&name) {
            found.documents.insert(name, bytes);
        }
    }
    let mut patch = PatchReader::default();
    patch.feed(&bundle.bytes("patch.diff"));
    found.patch_paths = Some(patch.finish_paths());
    let pem = std::fs::read_to_string(golden.join("test-key.pem")).unwrap();
    let key = PublicKey::from_text(&pem).unwrap();
    let mut trust = Trust::default();
    trust.named(&key, "golden");
    assert_eq!(
        verify(&found, &trust, &mut |_| Links::new()).standing,
        Standing::Good,
        "the seed is good"
    );
    let statement = cto_testkit::canonical(&cto_testkit::payload(&bundle.json("attestation.json")));
    let at = cto_core::values::time::Utc::from_millis(0).unwrap();
    let record = json::pretty(&KeyRecord::new(
        &key,
        "x",
        cto_core::bundle::attest::KeySource::Own,
        at,
    ))
    .unwrap();
    let run = bundle.report()["run_id"].as_str().unwrap().parse().unwrap();
    let packed = |compress| {
        let mut out = Vec::new();
        pack::pack(&dir, &run, &mut out, compress).unwrap();
        out
    };
    let texts = vec![
        ("envelope", bundle.bytes("attestation.json")),
        ("statement", statement),
        ("sums", bundle.bytes("SHA256SUMS")),
        ("chain", bundle.bytes("events.normalized.jsonl")),
        ("report", bundle.bytes("report.json")),
        ("contract", bundle.bytes("contract.json")),
        ("gates", bundle.bytes("gates.json")),
        ("patch", bundle.bytes("patch.diff")),
        (
            "case",
            include_bytes!("../../../../../cases/sh-word-count/case.toml").to_vec(),
        ),
        (
            "script",
            include_bytes!("../../../../../cases/sh-word-count/scripts/oracle.toml").to_vec(),
        ),
        (
            "manifest",
            include_bytes!("../../../../../engines/fake.toml").to_vec(),
        ),
        (
            "config",
            b"home = \"/var/lib/cto\"\ntimeout = 600\ncolor = \"never\"\n".to_vec(),
        ),
        (
            "line",
            b"{\"type\":\"result\",\"status\":\"completed\",\"summary\":\"done\"}".to_vec(),
        ),
        (
            "line",
            include_bytes!("../../../../core/src/engine/dialect/recorded/codex-0.166-pass.jsonl")
                .to_vec(),
        ),
        ("containment", bundle.bytes("containment.json")),
        ("trace", bundle.bytes("trace.jsonl")),
        ("key", pem.into_bytes()),
        ("record", record),
        ("tar", packed(false)),
        ("zstd", packed(true)),
    ];
    Seeds {
        found,
        texts,
        trust,
    }
}

fn read(kind: &str, bytes: &[u8]) {
    match kind {
        "envelope" => drop(Envelope::open(bytes)),
        "statement" => drop(json::read::<Statement<Verdict>>(bytes)),
        "sums" => drop(sums::parse_sums(bytes)),
        "chain" => {
            let run = "20260102T030405Z-demo-abcd".parse().unwrap();
            let start = chain::first_prev(bytes).unwrap_or(Digest::of(b""));
            drop(chain::read_chain(bytes, start, &run));
        }
        "report" => drop(json::read::<Report>(bytes)),
        "contract" => drop(ContractDocument::read(bytes)),
        "gates" => drop(json::read::<GateReport>(bytes)),
        "patch" => drop(PatchStat::of(bytes)),
        "case" => drop(case_file::parse_case("case.toml", bytes)),
        "script" => drop(script::from_file(bytes.to_vec()).map(|script| script::parse(&script))),
        "manifest" => drop(Manifest::parse(
            "engine.toml",
            &String::from_utf8_lossy(bytes),
        )),
        "config" => drop(settings::parse_config("config.toml", bytes)),
        "line" => {
            for dialect in Dialect::ALL {
                let mut parser = DialectParser::new(*dialect);
                bytes
                    .split(|byte| *byte == b'\n')
                    .for_each(|line| drop(parser.hear(Source::Stdout, line)));
                drop(parser.ended(&WireSeen::default()));
                let mut parser = DialectParser::new(*dialect);
                drop(parser.begin());
                bytes
                    .split(|byte| *byte == b'\n')
                    .for_each(|line| drop(parser.converse(line, line)));
            }
        }
        "containment" => drop(json::read::<ContainmentReport>(bytes)),
        "trace" => bytes
            .split(|b| *b == b'\n')
            .for_each(|line| drop(json::read::<TraceLine>(line))),
        "key" => drop(PublicKey::from_text(&String::from_utf8_lossy(bytes))),
        "record" => drop(KeyRecord::read(bytes)),
        _ => {
            let skip = |_: &cto_core::bundle::archive::Entry, content: &mut dyn std::io::Read| {
                std::io::copy(content, &mut std::io::sink())
                    .map(drop)
                    .map_err(pack::PackError::from)
            };
            drop(pack::walk(bytes, skip));
        }
    }
}

/// One document of a good bundle exchanged for a mutated one: never good, never a panic.
fn whole(dice: &mut Dice, seeds: &Seeds) {
    let names: Vec<&String> = seeds.found.documents.keys().collect();
    let (name, other) = (
        names[dice.below(names.len())],
        names[dice.below(names.len())],
    );
    let bytes = mutate(
        dice,
        &seeds.found.documents[name],
        &seeds.found.documents[other],
    );
    if bytes == seeds.found.documents[name] {
        return;
    }
    let mut files = seeds.found.files.clone();
    files.insert(
        name.clone(),
        FoundFile {
            bytes: bytes.len() as u64,
            sha256: Digest::of(&bytes),
        },
    );
    let mut documents: BTreeMap<String, Vec<u8>> = seeds.found.documents.clone();
    documents.insert(name.clone(), bytes);
    let found = FoundBundle {
        files,
        documents,
        patch_paths: seeds.found.patch_paths.clone(),
        ..FoundBundle::default()
    };
    let verification = verify(&found, &seeds.trust, &mut |_| Links::new());
    assert_ne!(verification.standing, Standing::Good, "{name}");
}

/// How many are tried.
pub fn inputs() -> u64 {
    let asked = std::env::var("CTO_FUZZ").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

#[test]
fn no_input_panics() {
    let (count, seeds) = (inputs(), seeds());
    std::thread::scope(|scope| {
        for half in 0..2u64 {
            let seeds = &seeds;
            scope.spawn(move || {
                let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (half + 1));
                for number in (half..count).step_by(2) {
                    // One in a hundred is a whole bundle: those cost as much as all the others.
                    if number / 2 % 100 == 0 {
                        whole(&mut dice, seeds);
                        continue;
                    }
                    let (kind, seed) = &seeds.texts[dice.below(seeds.texts.len())];
                    let (_, other) = &seeds.texts[dice.below(seeds.texts.len())];
                    read(kind, &mutate(&mut dice, seed, other));
                }
            });
        }
    });
}
