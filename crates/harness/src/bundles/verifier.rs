//! Bundles as found, in directories and archives: every file hashed once, then core's question.
//!
//! Big files of one bundle, and bundles of one command, go to all cores.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cto_core::bundle;
use cto_core::bundle::attest::Trust;
use cto_core::checks::test_log::LogReader;
use cto_core::values::digest::{Digest, Hasher};
use cto_core::values::ids::RunId;
use cto_core::verify::links::linked_run;
use cto_core::verify::{self, FoundBundle, FoundFile, Verification};
use cto_core::workspace::patch::PatchReader;

use crate::bundles::pack::{self, PackError};
use crate::bundles::reader::MAX_DOCUMENT;
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
    Verifier {
        trust,
        places: Vec::new(),
        threads: workers::cores(),
    }
    .examine(dir)
}

/// Whose signatures count, and where other bundles may be.
pub struct Verifier<'a> {
    pub trust: &'a Trust,
    /// Directories that hold bundles by run id.
    pub places: Vec<PathBuf>,
    pub threads: usize,
}

impl Verifier<'_> {
    pub fn dir(&self, dir: &Path) -> io::Result<Verification> {
        self.examine(dir).map(|(_, verification)| verification)
    }

    fn examine(&self, dir: &Path) -> io::Result<(FoundBundle, Verification)> {
        let found = read_dir(dir, self.threads)?;
        let verification = self.verified(&found, dir.parent(), 0);
        Ok((found, verification))
    }

    /// An archive, read once from front to back; nothing is written anywhere.
    pub fn packed(
        &self,
        archive: impl Read,
        beside: Option<&Path>,
    ) -> Result<Verification, PackError> {
        let mut found = FoundBundle::default();
        let run = pack::walk(archive, |entry, content| {
            take(&mut found, entry.name.clone(), entry.bytes, content)?;
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
            .find_map(|dir| read_dir(&dir, self.threads).ok().map(|found| (dir, found)))
    }
}

/// Every file of a directory, hashed once.
fn read_dir(dir: &Path, threads: usize) -> io::Result<FoundBundle> {
    let mut found = FoundBundle {
        named: name_of(dir),
        ..FoundBundle::default()
    };
    let mut big = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        for entry in fs::read_dir(dir.join(&below))? {
            let entry = entry?;
            let relative = below.join(entry.file_name());
            let kind = entry.file_type()?;
            match std::str::from_utf8(relative.as_os_str().as_bytes()) {
                Ok(_) if kind.is_dir() => pending.push(relative),
                Ok(bundle::LOCK) if kind.is_file() => {}
                Ok(name) if kind.is_file() => {
                    let mut file = files::open_regular(&entry.path())?;
                    match file.metadata()?.len() {
                        length if length > LARGEST => found.strangers.push(name.to_owned()),
                        length if length < BIG => {
                            take(&mut found, name.to_owned(), length, &mut file)?
                        }
                        length => big.push((length, name.to_owned(), entry.path())),
                    }
                }
                _ => found.strangers.push(relative.display().to_string()),
            }
        }
    }
    // The largest first, so that no core is left with one at the end.
    big.sort_by(|a, b| b.cmp(a));
    let parts = workers::for_all(threads, &big, |(length, name, path)| {
        let mut part = FoundBundle::default();
        take(
            &mut part,
            name.clone(),
            *length,
            &mut files::open_regular(path)?,
        )?;
        Ok::<_, io::Error>(part)
    });
    for part in parts {
        let part = part?;
        found.files.extend(part.files);
        found.documents.extend(part.documents);
        found.patch_paths = found.patch_paths.or(part.patch_paths);
        found.test_log = found.test_log.or(part.test_log);
    }
    Ok(found)
}

fn name_of(dir: &Path) -> Option<RunId> {
    dir.file_name()?.to_str()?.parse().ok()
}

/// One file: always its digest, for documents also the bytes, for the patch also its paths.
fn take(
    found: &mut FoundBundle,
    name: String,
    length: u64,
    content: &mut dyn Read,
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
    let mut patch = (name == bundle::PATCH).then(PatchReader::default);
    let mut log = (name == bundle::TEST_LOG).then(LogReader::default);
    files::read_chunks(content, length, |chunk| {
        hasher.update(chunk);
        bytes += chunk.len() as u64;
        if let Some(patch) = &mut patch {
            patch.feed(chunk);
        }
        if let Some(log) = &mut log {
            log.feed(chunk);
        }
    })?;
    if let Some(log) = log {
        found.test_log = Some(log.finish());
    }
    if let Some(patch) = patch {
        found.patch_paths = Some(patch.finish_paths());
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
        let found = read_dir(dir.path(), 3).unwrap();
        assert_eq!(found.files.len(), 5);
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
        fs::File::create(dir.path().join("holes"))
            .unwrap()
            .set_len(1 << 42)
            .unwrap();
        let found = read_dir(dir.path(), 1).unwrap();
        assert_eq!(
            (found.files.len(), found.strangers),
            (0, vec!["holes".to_owned()])
        );
    }
}
