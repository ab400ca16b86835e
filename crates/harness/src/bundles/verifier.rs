//! Bundles as found, in directories and archives: every file hashed once, then core's question.
//!
//! Names come before bytes: what the list of files does not name is never opened.
//! Big files of one bundle, and bundles of one command, go to all cores.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::attest::Trust;
use cto_core::bundle::sums;
use cto_core::checks::missing_module::AskedReader;
use cto_core::checks::test_log::LogReader;
use cto_core::values::digest::{Digest, Hasher};
use cto_core::values::ids::RunId;
use cto_core::verify::links::linked_run;
use cto_core::verify::{self, FoundBundle, FoundFile, Verification};
use cto_core::workspace::patch::PatchReader;

use crate::bundles::pack::{self, PackError};
use crate::bundles::reader::MAX_DOCUMENT;
use crate::host;
use crate::host::files;
use crate::host::workers;

/// Files from this size on are worth a thread.
const BIG: u64 = 1 << 20;
/// No file of a bundle is larger. One full of holes costs its maker nothing, and reading it days.
const LARGEST: u64 = 32 << 30;
/// How far a bundle may stand on others that stand on others.
const DEPTH: usize = 8;

/// Verifies a directory, looking beside it for bundles it relies on.
pub fn verify_dir(dir: &Path, trust: &Trust) -> io::Result<Verification> {
    examine(dir, trust).map(|(_, verification)| verification)
}

/// The verification of a bundle, with what it was made from: whoever shows more shows those same
/// bytes.
pub fn examine(dir: &Path, trust: &Trust) -> io::Result<(FoundBundle, Verification)> {
    Verifier::alone(trust).examine(dir, None)
}

/// The same, and the patch among the documents: whoever uses it uses the bytes that were verified,
/// whatever lies under its name by then.
pub fn examine_with_patch(dir: &Path, trust: &Trust) -> io::Result<(FoundBundle, Verification)> {
    Verifier::alone(trust).examine(dir, Some(bundle::PATCH))
}

/// Whose signatures count, and where other bundles may be.
pub struct Verifier<'a> {
    pub trust: &'a Trust,
    /// Directories that hold bundles by run id.
    pub places: Vec<PathBuf>,
    pub threads: usize,
}

impl<'a> Verifier<'a> {
    fn alone(trust: &'a Trust) -> Self {
        Self {
            trust,
            places: Vec::new(),
            threads: workers::cores(),
        }
    }

    /// A directory, with what its verification was made from.
    pub fn dir_with_files(&self, dir: &Path) -> io::Result<(FoundBundle, Verification)> {
        self.examine(dir, None)
    }

    fn examine(&self, dir: &Path, keep: Option<&str>) -> io::Result<(FoundBundle, Verification)> {
        let found = read_dir(dir, self.threads, keep)?;
        let verification = self.verified(&found, dir.parent(), 0);
        Ok((found, verification))
    }

    /// An archive, read once from front to back; nothing is written anywhere.
    pub fn packed(
        &self,
        archive: impl Read,
        beside: Option<&Path>,
    ) -> Result<Verification, PackError> {
        let mut found = FoundBundle {
            read_at: Some(host::now()),
            ..FoundBundle::default()
        };
        // In an archive the list comes first: its name sorts before every other of the format.
        let mut listed = BTreeMap::new();
        let run = pack::walk(archive, |entry, content| {
            if !verify::is_expected(&entry.name, Some(&listed)) {
                return Err(PackError::Unlisted(entry.name.clone()));
            }
            take(&mut found, entry.name.clone(), entry.bytes, content, None)?;
            if entry.name == bundle::SUMS {
                let bytes = found.documents.get(bundle::SUMS).map(Vec::as_slice);
                listed = sums::parse_sums(bytes.unwrap_or_default())
                    .map_err(|error| PackError::Sums(error.to_string()))?;
            }
            Ok(())
        })?;
        found.named = Some(run);
        Ok(self.verified(&found, beside, 0))
    }

    fn verified(&self, found: &FoundBundle, beside: Option<&Path>, depth: usize) -> Verification {
        verify::verify(found, self.trust, &mut |wanted| {
            let near = wanted.iter().filter(|_| depth < DEPTH);
            // What cannot be read is not there: the verdict is then unknown, never good.
            let bundles = near.filter_map(|run| self.find(run, beside));
            bundles
                .filter_map(|(dir, other)| {
                    linked_run(&other, &self.verified(&other, dir.parent(), depth + 1))
                })
                .collect()
        })
    }

    fn find(&self, run: &RunId, beside: Option<&Path>) -> Option<(PathBuf, FoundBundle)> {
        let places = beside
            .into_iter()
            .chain(self.places.iter().map(PathBuf::as_path));
        places
            .map(|place| place.join(run.as_str()))
            .find_map(|dir| {
                read_dir(&dir, self.threads, None)
                    .ok()
                    .map(|found| (dir, found))
            })
    }
}

/// Names and lengths first, then the list of files, then the bytes of what it names, hashed once.
fn read_dir(dir: &Path, threads: usize, keep: Option<&str>) -> io::Result<FoundBundle> {
    let mut found = FoundBundle {
        named: name_of(dir),
        read_at: Some(host::now()),
        ..FoundBundle::default()
    };
    let names = names(dir, &mut found.strangers)?;
    let listed = listed(dir, &names);
    let mut big = Vec::new();
    for (name, length) in names {
        if !verify::is_expected(&name, listed.as_ref()) {
            found.unread.insert(name);
        } else if verify::is_document(&name) && length > MAX_DOCUMENT {
            found.strangers.push(name);
        } else if length < BIG {
            let mut file = files::open_regular(&dir.join(&name))?;
            match file.metadata()?.len() {
                now if now < BIG => take(&mut found, name, now, &mut file, keep)?,
                // It grew since its name was read.
                _ => found.strangers.push(name),
            }
        } else {
            big.push((length, name));
        }
    }
    // The largest first, so that no core is left with one at the end.
    big.sort_by(|a, b| b.cmp(a));
    let parts = workers::for_all(threads, &big, |(length, name)| {
        let mut part = FoundBundle::default();
        let mut file = files::open_regular(&dir.join(name))?;
        take(&mut part, name.clone(), *length, &mut file, keep)?;
        Ok::<_, io::Error>(part)
    });
    for part in parts {
        let part = part?;
        found.files.extend(part.files);
        found.documents.extend(part.documents);
        if part.patch_paths.is_some() {
            (found.patch_paths, found.asked_for) = (part.patch_paths, part.asked_for);
        }
        found.test_log = found.test_log.or(part.test_log);
    }
    Ok(found)
}

/// Every regular file below a directory with its length; nothing is opened.
fn names(dir: &Path, strangers: &mut Vec<String>) -> io::Result<Vec<(String, u64)>> {
    let mut names = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        for entry in fs::read_dir(dir.join(&below))? {
            let entry = entry?;
            let relative = below.join(entry.file_name());
            let kind = entry.file_type()?;
            match std::str::from_utf8(relative.as_os_str().as_bytes()) {
                Ok(_) if kind.is_dir() => pending.push(relative),
                Ok(bundle::LOCK) if kind.is_file() => {}
                Ok(name) if kind.is_file() => match entry.metadata()?.len() {
                    length if length > LARGEST => strangers.push(name.to_owned()),
                    length => names.push((name.to_owned(), length)),
                },
                _ => strangers.push(relative.display().to_string()),
            }
        }
    }
    Ok(names)
}

/// What `SHA256SUMS` names. Read again with the other files: that reading is what counts.
fn listed(dir: &Path, names: &[(String, u64)]) -> Option<BTreeMap<String, Digest>> {
    let is_there = names
        .iter()
        .any(|(name, length)| name == bundle::SUMS && *length <= MAX_DOCUMENT);
    let bytes = is_there.then(|| files::read_limited(&dir.join(bundle::SUMS), MAX_DOCUMENT));
    sums::parse_sums(&bytes?.ok()?).ok()
}

fn name_of(dir: &Path) -> Option<RunId> {
    dir.file_name()?.to_str()?.parse().ok()
}

/// One file: always its digest, for documents and what is to be kept also the bytes, for the patch
/// also its paths.
fn take(
    found: &mut FoundBundle,
    name: String,
    length: u64,
    content: &mut dyn Read,
    keep: Option<&str>,
) -> io::Result<()> {
    if verify::is_document(&name) && length <= MAX_DOCUMENT {
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
        content.take(MAX_DOCUMENT).read_to_end(&mut bytes)?;
        let file = FoundFile {
            bytes: bytes.len() as u64,
            sha256: Digest::of(&bytes),
        };
        found.documents.insert(name.clone(), bytes);
        found.files.insert(name, file);
        return Ok(());
    }
    let mut hasher = Hasher::default();
    let mut bytes = 0;
    let mut patch =
        (name == bundle::PATCH).then(|| (PatchReader::default(), AskedReader::default()));
    let mut log = (name == bundle::TEST_LOG).then(LogReader::default);
    let mut kept = (keep == Some(name.as_str())).then(Vec::new);
    files::read_chunks(content, length, |chunk| {
        hasher.update(chunk);
        bytes += chunk.len() as u64;
        if let Some((paths, asked)) = &mut patch {
            paths.feed(chunk);
            asked.feed(chunk);
        }
        if let Some(log) = &mut log {
            log.feed(chunk);
        }
        if let Some(kept) = &mut kept {
            kept.extend_from_slice(chunk);
        }
    })?;
    if let Some(kept) = kept {
        found.documents.insert(name.clone(), kept);
    }
    if let Some(log) = log {
        found.test_log = Some(log.finish());
    }
    if let Some((paths, asked)) = patch {
        found.patch_paths = Some(paths.finish_paths());
        found.asked_for = asked.finish();
    }
    found.files.insert(
        name,
        FoundFile {
            bytes,
            sha256: hasher.finish(),
        },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_and_small_files_are_all_found() {
        let dir = tempfile::tempdir().unwrap();
        for (name, length) in [
            ("a", 10),
            ("b", 3 << 20),
            ("c", 2 << 20),
            ("report.json", 2 << 20),
            ("patch.diff", 2 << 20),
        ] {
            fs::write(dir.path().join(name), vec![7u8; length]).unwrap();
        }
        list(dir.path(), &["a", "b", "c", "patch.diff", "report.json"]);
        let found = read_dir(dir.path(), 3, Some("patch.diff")).unwrap();
        assert_eq!(found.files.len(), 6);
        assert_eq!(found.documents["patch.diff"], vec![7u8; 2 << 20]);
        assert_eq!(
            found.files["b"],
            FoundFile {
                bytes: 3 << 20,
                sha256: Digest::of(&vec![7u8; 3 << 20])
            }
        );
        assert!(found.documents.contains_key("report.json") && found.patch_paths.is_some());
    }

    #[test]
    fn a_file_larger_than_any_is_named_and_not_read() {
        let dir = tempfile::tempdir().unwrap();
        holes(dir.path(), "holes", 1 << 42);
        let found = read_dir(dir.path(), 1, None).unwrap();
        assert_eq!(
            (found.files.len(), found.strangers),
            (0, vec!["holes".to_owned()])
        );
    }

    fn list(dir: &Path, names: &[&str]) {
        let lines: String = names
            .iter()
            .map(|name| format!("{}  {name}\n", Digest::of(b"")))
            .collect();
        fs::write(dir.join(bundle::SUMS), lines).unwrap();
    }

    fn holes(dir: &Path, name: &str, length: u64) {
        let file = fs::File::create(dir.join(name)).unwrap();
        file.set_len(length).unwrap();
    }

    /// As large as any file may be: reading one of them would take minutes.
    #[test]
    fn what_nothing_lists_is_named_and_not_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("attestations")).unwrap();
        let unlisted = [".x", "attestations/more.json", "backend.log", "test.log"];
        unlisted
            .iter()
            .for_each(|name| holes(dir.path(), name, LARGEST));
        for sums in [Some(&["report.json"][..]), None] {
            if let Some(names) = sums {
                list(dir.path(), names);
            } else {
                fs::write(dir.path().join(bundle::SUMS), "no list").unwrap();
                fs::remove_file(dir.path().join("test.log")).unwrap();
            }
            let found = read_dir(dir.path(), 1, None).unwrap();
            assert_eq!(found.files.len(), 1, "{sums:?}: {:?}", found.files);
            let there = if sums.is_some() { 4 } else { 3 };
            assert_eq!(found.unread.len(), there, "{:?}", found.unread);
        }
    }
}
