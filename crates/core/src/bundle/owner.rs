//! Whose is a directory that is named like a run? Other programs may keep theirs in the same place,
//! under the same names. Only what bears a mark of ours is ours; everything else is left as it is.

use serde::Deserialize;

use crate::bundle::attest::Envelope;
use crate::bundle::attest::statement::VERDICT_TYPE;
use crate::values::digest::Digest;

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

/// What we write into `run.lock`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockNote {
    #[serde(rename = "boot_id")]
    _boot_id: String,
    #[serde(rename = "pid")]
    _pid: u32,
}

pub fn is_own_lock(bytes: &[u8]) -> bool {
    serde_json::from_slice::<LockNote>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_lock_of_ours_says_who_and_since_which_boot() {
        assert!(is_own_lock(b"{\"boot_id\":\"a-b\",\"pid\":7}\n"));
        for other in [
            &b""[..],
            b"7",
            b"{}",
            b"{\"pid\":7}",
            b"{\"boot_id\":\"a\",\"pid\":7,\"host\":\"h\"}",
            b"{\"boot_id\":\"a\",\"pid\":\"7\"}",
            b"\xff",
        ] {
            assert!(!is_own_lock(other), "{other:?}");
        }
    }
}
