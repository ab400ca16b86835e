//! What was said of a run after it was sealed: where its settlements lie, and the verdict that counts then. A
//! pointer in the operator's store leads to each; a settlement counts only where it is verified, now.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::attest::Trust;
use cto_core::bundle::report::{Continues, Report};
use cto_core::bundle::settlement::{Effective, Settlement, effective_verdict, may_be_settled};
use cto_core::values::digest::Digest;
use cto_core::values::ids::RunId;
use cto_core::values::json;
use cto_core::verify::{FoundBundle, Standing};

use crate::bundles::reader::MAX_DOCUMENT;
use crate::bundles::verifier;
use crate::evidence::keys::put_new;
use crate::host::{self, Home, files};

/// Where the words about runs lie, below the state home.
const OUTCOMES: &str = "operator/outcomes";

/// Where the words about one run lie.
pub fn desk_of(home: &Home, run: &RunId) -> PathBuf {
    home.root.join(OUTCOMES).join(run.as_str())
}

fn pointers(home: &Home, run: &RunId) -> PathBuf {
    desk_of(home, run).join("settlements")
}

/// Points from a run at a settlement of it. Nothing rests on it but that the settlement is found.
pub fn point_at(home: &Home, run: &RunId, settlement: &RunId) -> io::Result<()> {
    let dir = pointers(home, run);
    host::make_private_dir(&dir)?;
    put_new(&dir.join(settlement.as_str()), b"").map(drop)
}

/// Settlements of a run that somebody pointed at, the oldest first.
pub fn named(home: &Home, run: &RunId) -> io::Result<Vec<RunId>> {
    let entries = match fs::read_dir(pointers(home, run)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = entries.collect::<io::Result<Vec<_>>>()?.into_iter();
    let ids = names.filter_map(|entry| entry.file_name().to_str()?.parse::<RunId>().ok());
    let mut ids: Vec<RunId> = ids.collect();
    ids.sort_by_key(RunId::sort_key);
    Ok(ids)
}

/// Settlements of a run, each verified. One that is not sealed yet says nothing. Where one is gone or is not good
/// nobody knows what was said, and there is no answer: a word that was taken away must not look like none.
pub fn verified(home: &Home, run: &RunId, trust: &Trust) -> io::Result<Vec<Settlement>> {
    let mut good = Vec::new();
    for id in named(home, run)? {
        let read = || {
            let (found, verification) =
                verifier::examine(&home.runs.join(id.as_str()), trust).ok()?;
            let report = report_of(&found)?;
            (verification.standing == Standing::Good).then(|| Settlement::of(&report))
        };
        match read() {
            // Cut short before its word was in it, it tells of none.
            Some(settlement) => good.extend(settlement),
            None if home.open_runs().join(id.as_str()).exists() => {}
            None => {
                let what = format!("its settlement {id} is gone, or does not verify here");
                return Err(io::Error::other(what));
            }
        }
    }
    Ok(good)
}

/// Every run that something was said of, with its settlements.
pub fn all_named(home: &Home) -> io::Result<BTreeMap<RunId, Vec<RunId>>> {
    let entries = match fs::read_dir(home.root.join(OUTCOMES)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let names = entries.collect::<io::Result<Vec<_>>>()?.into_iter();
    let runs = names.filter_map(|entry| entry.file_name().to_str()?.parse::<RunId>().ok());
    runs.map(|run| named(home, &run).map(|said| (run, said)))
        .collect()
}

/// The same of a run that is only read: its list of files is read with it.
pub fn effective_at(home: &Home, dir: &Path, report: &Report, trust: &Trust) -> Option<Effective> {
    may_be_settled(report).ok()?;
    let sums = files::read_limited(&dir.join(bundle::SUMS), MAX_DOCUMENT).ok()?;
    effective(home, Digest::of(&sums), report, trust)
}

pub fn report_of(found: &FoundBundle) -> Option<Report> {
    json::read(found.documents.get(bundle::REPORT)?).ok()
}

/// What a run comes to with everything that was said of it; none where nobody has to say anything.
/// `sums` is the digest of its `SHA256SUMS`.
pub fn effective(home: &Home, sums: Digest, report: &Report, trust: &Trust) -> Option<Effective> {
    may_be_settled(report).ok()?;
    let own = Continues {
        run_id: report.run_id.clone(),
        sums_sha256: sums,
    };
    let said = verified(home, &report.run_id, trust).ok()?;
    Some(effective_verdict(report, &own, &said))
}
