//! The hash chain of a run's events: each line binds the one before it, the first binds run and
//! contract.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::run::event::Event;
use crate::run::rules::RulesNumber;
use crate::values::digest::Digest;
use crate::values::ids::RunId;
use crate::values::json::{self, JsonError};
use crate::values::time::Utc;

/// One line of `events.normalized.jsonl`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventLine {
    pub seq: u64,
    pub ts: Utc,
    pub run_id: RunId,
    pub event: Event,
    pub prev: Digest,
    pub hash: Digest,
}

#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    #[error("line {line}: {source}")]
    Json { line: usize, source: JsonError },
    #[error("line {0} is not in canonical form")]
    NotCanonical(usize),
    #[error("line {0} has no {1}")]
    Missing(usize, &'static str),
    #[error("line {line}: seq is {found}, expected {expected}")]
    Seq {
        line: usize,
        found: u64,
        expected: u64,
    },
    #[error("line {0}: prev is not the hash of the line before")]
    Prev(usize),
    #[error("line {0}: hash does not match the line")]
    Hash(usize),
    #[error("line {0} belongs to another run")]
    Run(usize),
    #[error("the last line is torn")]
    Torn,
}

const EVENT_DOMAIN: &str = "cto-event/1\n";
const CHAIN_DOMAIN: &str = "cto-chain/1\n";

/// The first `prev` of a run: binds the chain to its run id and contract.
pub fn chain_start(run_id: &RunId, contract_digest: &Digest) -> Digest {
    Digest::tagged(
        CHAIN_DOMAIN,
        format!("{run_id}\n{contract_digest}\n").as_bytes(),
    )
}

impl EventLine {
    /// Makes the next line of a chain: canonical bytes with a line end, and the new head.
    pub fn make(
        seq: u64,
        ts: Utc,
        run_id: &RunId,
        event: &Event,
        prev: Digest,
    ) -> Result<(Vec<u8>, Digest), JsonError> {
        let mut map = match serde_json::to_value(event).map_err(JsonError::Write)? {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        map.insert("seq".into(), seq.into());
        map.insert("ts".into(), ts.to_string().into());
        map.insert("run_id".into(), run_id.as_str().into());
        map.insert("prev".into(), prev.to_hex().into());
        let hash = Digest::tagged(EVENT_DOMAIN, &json::canonical(&map)?);
        map.insert("hash".into(), hash.to_hex().into());
        let mut bytes = json::canonical(&map)?;
        bytes.push(b'\n');
        Ok((bytes, hash))
    }

    fn read(number: usize, bytes: &[u8]) -> Result<Self, ChainError> {
        let at = |source| ChainError::Json {
            line: number,
            source,
        };
        let value = json::parse_strict(bytes).map_err(at)?;
        if json::canonical_value(&value).map_err(at)? != bytes {
            return Err(ChainError::NotCanonical(number));
        }
        let Value::Object(mut map) = value else {
            return Err(ChainError::Missing(number, "object"));
        };
        let hash: Digest = take(&mut map, number, "hash")?;
        let without = Value::Object(map);
        if Digest::tagged(EVENT_DOMAIN, &json::canonical_value(&without).map_err(at)?) != hash {
            return Err(ChainError::Hash(number));
        }
        let Value::Object(mut map) = without else {
            return Err(ChainError::Missing(number, "object"));
        };
        let seq = take(&mut map, number, "seq")?;
        let ts = take(&mut map, number, "ts")?;
        let run_id = take(&mut map, number, "run_id")?;
        let prev = take(&mut map, number, "prev")?;
        let event =
            serde_json::from_value(Value::Object(map)).map_err(|e| at(JsonError::Shape(e)))?;
        Ok(Self {
            seq,
            ts,
            run_id,
            event,
            prev,
            hash,
        })
    }
}

fn take<T: for<'de> Deserialize<'de>>(
    map: &mut Map<String, Value>,
    line: usize,
    key: &'static str,
) -> Result<T, ChainError> {
    let value = map.remove(key).ok_or(ChainError::Missing(line, key))?;
    serde_json::from_value(value).map_err(|e| ChainError::Json {
        line,
        source: JsonError::Shape(e),
    })
}

/// Where a chain says it begins: for one that goes on from a bundle nobody has at hand.
pub fn first_prev(bytes: &[u8]) -> Option<Digest> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    EventLine::read(1, line).ok().map(|line| line.prev)
}

/// The rules a chain names in its first line, whatever becomes of the rest.
pub fn named_rules(bytes: &[u8]) -> Option<RulesNumber> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    match EventLine::read(1, line).ok()?.event {
        Event::RunStarted(started) => Some(started.rules),
        Event::OperatorOutcomeRecorded(said) => Some(said.rules),
        _ => None,
    }
}

/// Reads and checks a whole chain from its expected first `prev`. Order of types is
/// `run::facts::fold`'s business.
pub fn read_chain(
    bytes: &[u8],
    start: Digest,
    run_id: &RunId,
) -> Result<Vec<EventLine>, ChainError> {
    let (lines, rest) = read_prefix(bytes, start, run_id)?;
    if rest < bytes.len() {
        Err(ChainError::Torn)
    } else {
        Ok(lines)
    }
}

/// Like [`read_chain`], but a torn last line is left over: the offset where it begins is returned.
pub fn read_prefix(
    bytes: &[u8],
    start: Digest,
    run_id: &RunId,
) -> Result<(Vec<EventLine>, usize), ChainError> {
    match walk(bytes, start, run_id) {
        (_, _, Some(error)) => Err(error),
        (lines, offset, None) => Ok((lines, offset)),
    }
}

/// The longest good beginning of a chain, and what ends it before the last byte.
pub fn read_while_good(
    bytes: &[u8],
    start: Digest,
    run_id: &RunId,
) -> (Vec<EventLine>, Option<ChainError>) {
    let (lines, offset, error) = walk(bytes, start, run_id);
    let torn = (offset < bytes.len()).then_some(ChainError::Torn);
    (lines, error.or(torn))
}

/// Whole lines as long as they are good, the offset behind them, and what was wrong with the next.
fn walk(
    bytes: &[u8],
    start: Digest,
    run_id: &RunId,
) -> (Vec<EventLine>, usize, Option<ChainError>) {
    let mut lines: Vec<EventLine> = Vec::new();
    let mut offset = 0;
    while let Some(end) = memchr::memchr(b'\n', &bytes[offset..]) {
        let prev = lines.last().map_or(start, |line| line.hash);
        match next_line(lines.len() + 1, &bytes[offset..offset + end], prev, run_id) {
            Ok(line) => lines.push(line),
            Err(error) => return (lines, offset, Some(error)),
        }
        offset += end + 1;
    }
    (lines, offset, None)
}

fn next_line(
    number: usize,
    bytes: &[u8],
    prev: Digest,
    run_id: &RunId,
) -> Result<EventLine, ChainError> {
    let line = EventLine::read(number, bytes)?;
    if line.seq != number as u64 {
        return Err(ChainError::Seq {
            line: number,
            found: line.seq,
            expected: number as u64,
        });
    }
    if line.prev != prev {
        return Err(ChainError::Prev(number));
    }
    if line.run_id != *run_id {
        return Err(ChainError::Run(number));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::event::EngineText;

    fn run_id() -> RunId {
        "20260102T030405Z-demo-abcd".parse().unwrap()
    }

    fn chain(texts: &[&str]) -> (Vec<u8>, Digest) {
        let start = chain_start(&run_id(), &Digest::of(b"contract"));
        let mut bytes = Vec::new();
        let mut prev = start;
        for (index, text) in texts.iter().enumerate() {
            let event = Event::EngineMessage(EngineText {
                text: (*text).into(),
            });
            let ts = Utc::from_millis(1_767_323_045_678).unwrap();
            let (line, hash) =
                EventLine::make(index as u64 + 1, ts, &run_id(), &event, prev).unwrap();
            bytes.extend(line);
            prev = hash;
        }
        (bytes, start)
    }

    #[test]
    fn a_chain_reads_back() {
        let (bytes, start) = chain(&["one", "two", "é\u{1f600}"]);
        let lines = read_chain(&bytes, start, &run_id()).unwrap();
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[2].event,
            Event::EngineMessage(EngineText {
                text: "é\u{1f600}".into()
            })
        );
    }

    #[test]
    fn every_single_byte_matters() {
        let (bytes, start) = chain(&["one", "two"]);
        for at in 0..bytes.len() {
            for flip in [0x01u8, 0x20, 0x80] {
                let mut bad = bytes.clone();
                bad[at] ^= flip;
                assert!(
                    read_chain(&bad, start, &run_id()).is_err(),
                    "byte {at} ^ {flip:#x}"
                );
            }
        }
    }

    #[test]
    fn dropped_reordered_duplicated_and_transplanted_lines_are_caught() {
        let (bytes, start) = chain(&["one", "two", "three"]);
        let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        let join = |order: &[usize]| {
            order
                .iter()
                .flat_map(|i| lines[*i].to_vec())
                .collect::<Vec<u8>>()
        };
        for order in [&[0, 2][..], &[1, 0, 2], &[0, 0, 1, 2], &[1, 2]] {
            assert!(
                read_chain(&join(order), start, &run_id()).is_err(),
                "{order:?}"
            );
        }
        let other = chain_start(&run_id(), &Digest::of(b"another contract"));
        assert!(matches!(
            read_chain(&bytes, other, &run_id()),
            Err(ChainError::Prev(1))
        ));
    }

    #[test]
    fn a_torn_tail_is_an_error_or_a_prefix() {
        let (bytes, start) = chain(&["one", "two"]);
        let torn = &bytes[..bytes.len() - 3];
        assert!(matches!(
            read_chain(torn, start, &run_id()),
            Err(ChainError::Torn)
        ));
        let (lines, offset) = read_prefix(torn, start, &run_id()).unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!(torn[offset - 1], b'\n');
    }

    #[test]
    fn the_good_beginning_ends_at_the_first_bad_line() {
        let (bytes, start) = chain(&["one", "two", "three"]);
        let good = |bytes: &[u8]| {
            let (lines, error) = read_while_good(bytes, start, &run_id());
            (lines.len(), error.map(|error| error.to_string()))
        };
        assert_eq!(good(&bytes), (3, None));
        let at = bytes
            .windows(3)
            .position(|window| window == b"two")
            .unwrap();
        let mut bad = bytes.clone();
        bad[at] = b'T';
        assert_eq!(
            good(&bad),
            (1, Some("line 2: hash does not match the line".into()))
        );
        assert_eq!(
            good(&bytes[..bytes.len() - 1]),
            (2, Some("the last line is torn".into()))
        );
        assert_eq!(good(b""), (0, None));
    }
}
