//! Whose is a directory that is named like a run? Other programs may keep theirs in the same place,
//! under the same names. Only what bears a mark of ours is ours; everything else is left as it is.

use serde::Deserialize;

use crate::bundle::attest::Envelope;
use crate::bundle::attest::statement::VERDICT_TYPE;
use crate::values::digest::Digest;
use crate::values::ids::RunId;

/// What `report.json` looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportMark {
    Missing,
    /// It holds the digest of itself that only our reports hold.
    Ours,
    Other,
}

/// What can be seen of a directory without believing any of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    pub report: ReportMark,
    /// `attestation.json` is a statement of ours: no run is sealed without one.
    pub is_attested: bool,
    /// `run.lock` is there and was written by us.
    pub has_own_lock: bool,
}

/// One mark is enough: what is ours and damaged is still ours.
pub fn is_ours(marks: Marks) -> bool {
    marks.is_attested || marks.has_own_lock || marks.report == ReportMark::Ours
}

pub fn report_mark(report: Option<&[u8]>) -> ReportMark {
    let Some(bytes) = report else {
        return ReportMark::Missing;
    };
    match serde_json::from_slice::<SelfDigested>(bytes) {
        Ok(_) => ReportMark::Ours,
        Err(_) => ReportMark::Other,
    }
}

/// The one entry of a report that nobody else would write; everything else is passed over.
#[derive(Deserialize)]
struct SelfDigested {
    #[serde(rename = "artifact_digests")]
    _digests: OwnDigest,
}

#[derive(Deserialize)]
struct OwnDigest {
    #[serde(rename = "report.json")]
    _report: Digest,
}

/// Is this a statement of ours about a run, whoever signed it?
pub fn is_own_attestation(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "predicateType")]
        predicate_type: String,
    }
    Envelope::open(bytes)
        .ok()
        .and_then(|opened| serde_json::from_slice::<Head>(&opened.payload).ok())
        .is_some_and(|head| head.predicate_type == VERDICT_TYPE)
}

/// The name we put into what we leave beside a run while it is open.
const PROGRAM: &str = "cto-harness";

/// What `run.lock` looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMark {
    Missing,
    /// It names us.
    Ours,
    /// To the byte what we wrote before locks named us. Somebody else may write the same two
    /// fields, so it counts only in a directory that holds nothing foreign.
    Former,
    Other,
}

/// What a directory holds, by the names at its top.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// No byte yet: nothing, or a lock nothing was written into.
    Nothing,
    OnlyOurNames,
    OtherNames,
}

/// What the entry of a run in `open/` looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryMark {
    Missing,
    /// It names us and the run.
    Ours,
    /// What we left before entries named us. Anybody can make an empty file.
    Empty,
    Other,
}

/// What we write into `run.lock`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockNote {
    #[serde(rename = "boot_id")]
    _boot_id: String,
    #[serde(rename = "pid")]
    _pid: u32,
    program: String,
}

pub fn lock_note(boot_id: &str, pid: u32) -> String {
    format!("{{\"boot_id\":\"{boot_id}\",\"pid\":{pid},\"program\":\"{PROGRAM}\"}}\n")
}

pub fn lock_mark(lock: Option<&[u8]>) -> LockMark {
    let Some(bytes) = lock else {
        return LockMark::Missing;
    };
    match serde_json::from_slice::<LockNote>(bytes) {
        Ok(note) if note.program == PROGRAM => LockMark::Ours,
        _ if is_former_lock(bytes) => LockMark::Former,
        _ => LockMark::Other,
    }
}

fn is_former_lock(bytes: &[u8]) -> bool {
    let inner = std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.strip_prefix("{\"boot_id\":\""))
        .and_then(|text| text.strip_suffix("}\n"));
    let Some((boot_id, pid)) = inner.and_then(|inner| inner.split_once("\",\"pid\":")) else {
        return false;
    };
    let is_pid = pid.parse::<u32>().is_ok_and(|it| it.to_string() == pid);
    is_pid && (boot_id.is_empty() || is_boot_id(boot_id))
}

/// As the kernel tells it: five groups of small hexadecimal digits.
fn is_boot_id(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || is_hex(byte))
}

/// The entry of a run in `open/`.
pub fn entry_note(run_id: &RunId) -> String {
    format!(
        "{{\"program\":\"{PROGRAM}\",\"run_id\":\"{}\"}}\n",
        run_id.as_str()
    )
}

pub fn entry_mark(entry: Option<&[u8]>, run_id: &RunId) -> EntryMark {
    match entry {
        None => EntryMark::Missing,
        Some(b"") => EntryMark::Empty,
        Some(bytes) if bytes == entry_note(run_id).as_bytes() => EntryMark::Ours,
        Some(_) => EntryMark::Other,
    }
}

/// Can a run of ours have this name at its top?
pub fn is_name_at_top(name: &str) -> bool {
    let dir = |of: &str| of.split('/').next().unwrap_or(of) == name;
    let others = [
        super::SOURCE,
        super::TEST_IDS,
        super::STAGE1_PROOF,
        super::STAGE2_NO_TARGET,
        super::STAGE2_COMPARISON,
        super::LOCK,
        super::RESERVE,
        super::REPORT_TEMP,
        super::BACKEND_DIR,
        super::RELIED_DIR,
    ];
    super::ALWAYS
        .into_iter()
        .chain(super::SIGNED)
        .chain(others)
        .any(dir)
}

pub fn is_own_lock(lock: LockMark, holds: Holds) -> bool {
    match lock {
        LockMark::Ours => true,
        LockMark::Former => holds != Holds::OtherNames,
        LockMark::Missing | LockMark::Other => false,
    }
}

/// Was this run begun by us? Runs were listed before there was anything in their directory, so an entry
/// without a name is believed only there.
pub fn is_begun_here(entry: EntryMark, lock: LockMark, holds: Holds) -> bool {
    is_own_lock(lock, holds)
        || entry == EntryMark::Ours
        || entry == EntryMark::Empty && holds == Holds::Nothing
}

/// Was a run that has no report sealed once? It is signed before its report gets its name, and its
/// lock goes after: signed and without a lock means that there was a report.
pub fn was_sealed(is_attested: bool, lock: LockMark) -> bool {
    is_attested && lock == LockMark::Missing
}

/// May the entry of this run be taken out of `open/`?
pub fn is_own_entry(entry: EntryMark, is_run_ours: bool) -> bool {
    entry == EntryMark::Ours || entry == EntryMark::Empty && is_run_ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_and_without_a_lock_means_that_there_was_a_report() {
        for (lock, signed) in [
            (LockMark::Missing, true),
            (LockMark::Ours, false),
            (LockMark::Former, false),
            (LockMark::Other, false),
        ] {
            assert_eq!(was_sealed(true, lock), signed, "{lock:?}");
            assert!(!was_sealed(false, lock), "{lock:?}");
        }
    }

    #[test]
    fn any_mark_makes_it_ours_and_none_does_not() {
        for report in [ReportMark::Missing, ReportMark::Ours, ReportMark::Other] {
            for (is_attested, has_own_lock) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let marks = Marks {
                    report,
                    is_attested,
                    has_own_lock,
                };
                let want = report == ReportMark::Ours || is_attested || has_own_lock;
                assert_eq!(is_ours(marks), want, "{marks:?}");
            }
        }
    }

    #[test]
    fn a_report_of_ours_holds_its_own_digest() {
        let digest = Digest::of(b"x");
        let ours = format!("{{\"artifact_digests\": {{\"report.json\": \"{digest}\"}}}}");
        assert_eq!(report_mark(Some(ours.as_bytes())), ReportMark::Ours);
        assert_eq!(report_mark(None), ReportMark::Missing);
        for other in [
            "",
            "{}",
            "[]",
            "{\"status\": \"pass\", \"run_id\": \"20260102T030405Z-quick-k3v9\"}",
            "{\"artifact_digests\": {\"report.json\": \"new\"}}",
            "{\"artifact_digests\": {\"report.json\": 1}}",
            "{\"artifact_digests\": [\"report.json\"]}",
            "{\"artifact_digests\": {\"report.md\": \"x\"}}",
        ] {
            assert_eq!(
                report_mark(Some(other.as_bytes())),
                ReportMark::Other,
                "{other}"
            );
        }
    }

    const BOOT: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

    #[test]
    fn a_lock_of_ours_names_us() {
        assert_eq!(lock_mark(None), LockMark::Missing);
        for boot in [BOOT, ""] {
            let note = lock_note(boot, 7);
            assert_eq!(lock_mark(Some(note.as_bytes())), LockMark::Ours, "{note}");
            let former = format!("{{\"boot_id\":\"{boot}\",\"pid\":7}}\n");
            let mark = lock_mark(Some(former.as_bytes()));
            assert_eq!(mark, LockMark::Former, "{former}");
        }
        let other = |text: String| assert_eq!(lock_mark(Some(text.as_bytes())), LockMark::Other);
        for text in [
            "",
            "7",
            "{}",
            "{\"pid\":7}",
            "{\"pid\":1234,\"boot_id\":\"x\"}",
            "{\"boot_id\":\"a-b\",\"pid\":7}\n",
            "{\"boot_id\":\"\",\"pid\":7,\"program\":\"another\"}\n",
            "{\"boot_id\":\"\",\"pid\":7,\"program\":\"cto-harness\",\"host\":\"h\"}\n",
        ] {
            other(text.to_owned());
        }
        for text in [
            format!("{{\"boot_id\":\"{BOOT}\",\"pid\":7}}"),
            format!("{{\"boot_id\": \"{BOOT}\", \"pid\": 7}}\n"),
            format!("{{\"pid\":7,\"boot_id\":\"{BOOT}\"}}\n"),
            format!("{{\"boot_id\":\"{BOOT}\",\"pid\":\"7\"}}\n"),
            format!("{{\"boot_id\":\"{BOOT}\",\"pid\":07}}\n"),
            format!("{{\"boot_id\":\"{BOOT}\",\"pid\":7,\"host\":\"h\"}}\n"),
            format!("{{\"boot_id\":\"{}\",\"pid\":7}}\n", BOOT.to_uppercase()),
        ] {
            other(text);
        }
        assert_eq!(lock_mark(Some(b"\xff")), LockMark::Other);
    }

    #[test]
    fn an_entry_of_ours_names_us_and_its_run() {
        let run: RunId = "20260101T000000Z-quick-abcdefgh".parse().unwrap();
        let another: RunId = "20260101T000000Z-quick-abcdefgi".parse().unwrap();
        let note = entry_note(&run);
        assert_eq!(entry_mark(Some(note.as_bytes()), &run), EntryMark::Ours);
        assert_eq!(
            entry_mark(Some(note.as_bytes()), &another),
            EntryMark::Other
        );
        assert_eq!(entry_mark(None, &run), EntryMark::Missing);
        assert_eq!(entry_mark(Some(b""), &run), EntryMark::Empty);
        for other in ["\n", "theirs", "{}", note.trim_end()] {
            assert_eq!(entry_mark(Some(other.as_bytes()), &run), EntryMark::Other);
        }
    }

    #[test]
    fn begun_here_is_what_names_us_or_can_be_nobody_elses() {
        use EntryMark as Entry;
        let entries = [Entry::Missing, Entry::Ours, Entry::Empty, Entry::Other];
        let locks = [
            LockMark::Missing,
            LockMark::Ours,
            LockMark::Former,
            LockMark::Other,
        ];
        for entry in entries {
            for lock in locks {
                for holds in [Holds::Nothing, Holds::OnlyOurNames, Holds::OtherNames] {
                    let want = match (entry, lock, holds) {
                        (Entry::Ours, _, _) | (_, LockMark::Ours, _) => true,
                        (_, LockMark::Former, Holds::OtherNames) => false,
                        (_, LockMark::Former, _) => true,
                        (Entry::Empty, _, Holds::Nothing) => true,
                        _ => false,
                    };
                    let found = is_begun_here(entry, lock, holds);
                    assert_eq!(found, want, "{entry:?} {lock:?} {holds:?}");
                }
            }
        }
        for (entry, ours, want) in [
            (Entry::Ours, false, true),
            (Entry::Ours, true, true),
            (Entry::Empty, true, true),
            (Entry::Empty, false, false),
            (Entry::Other, true, false),
            (Entry::Other, false, false),
            (Entry::Missing, true, false),
        ] {
            assert_eq!(is_own_entry(entry, ours), want, "{entry:?} {ours}");
        }
    }

    #[test]
    fn names_at_the_top_of_a_run() {
        for name in [
            "report.md",
            "gates.json",
            "run.lock",
            ".reserve",
            "backend",
            "relied",
            "attestation.json",
            "attestations",
            "stage1-gate-proof.json",
        ] {
            assert!(is_name_at_top(name), "{name}");
        }
        for name in [
            "",
            "notes.txt",
            "stdout.log",
            "Report.md",
            "backend/",
            "scratch",
        ] {
            assert!(!is_name_at_top(name), "{name}");
        }
    }
}
