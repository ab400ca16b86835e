//! A cached checkout as data: how a workspace is made, the manifest that spares reading a tree
//! again, and which checkouts a bounded cache removes.

use crate::values::digest::Digest;
use crate::values::paths::TreePath;
use crate::workspace::tree::{Entry, FileKind, Tree};

/// How a private workspace is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkspaceKind {
    /// Every file is written anew.
    Copy,
    /// What changes lies in a directory of its own, over a cached checkout nobody writes to.
    Overlay,
}

/// Fewer files are copied sooner than two mounts and a cache are worth.
pub const OVERLAY_FROM: u64 = 256;

impl WorkspaceKind {
    /// An overlay needs a jail to be mounted in, a host that can, and a repository that is worth
    /// it.
    pub fn decide(jailed: bool, host_can: bool, source_files: Option<u64>) -> Self {
        match source_files {
            Some(files) if jailed && host_can && files >= OVERLAY_FROM => Self::Overlay,
            _ => Self::Copy,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Overlay => "overlay",
        }
    }
}

/// Everything a run must know of a checkout without reading its files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// As git names the tree.
    pub git_tree: String,
    /// The baseline commit the harness made of it.
    pub commit: String,
    /// Our own digest of the tree.
    pub start_tree: Digest,
    /// Paths and commits of other repositories the tree names.
    pub submodules: Vec<(TreePath, String)>,
    /// What the engine's own git directory in it does not hold.
    pub masked: Vec<TreePath>,
    pub tree: Tree,
}

/// One digest for a list of masked places: checkouts of one tree that hide different files are
/// different checkouts.
pub fn checkout_key(masked: &[TreePath]) -> Digest {
    let mut listed = Vec::new();
    for path in masked {
        put(&mut listed, path.as_bytes());
    }
    Digest::of(&listed)
}

const MAGIC: &[u8] = b"cto-checkout/2\n";
const DIGEST: usize = 32;

/// A manifest that is not what was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the manifest of a cached checkout is torn or changed")]
pub struct Broken;

impl Manifest {
    /// The bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.tree
            .values()
            .fold(0, |sum, entry| sum.saturating_add(entry.bytes))
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for text in [&self.git_tree, &self.commit] {
            put(&mut out, text.as_bytes());
        }
        out.extend(self.start_tree.to_bytes());
        out.extend((self.submodules.len() as u64).to_le_bytes());
        for (path, commit) in &self.submodules {
            put(&mut out, path.as_bytes());
            put(&mut out, commit.as_bytes());
        }
        out.extend((self.masked.len() as u64).to_le_bytes());
        for path in &self.masked {
            put(&mut out, path.as_bytes());
        }
        out.extend((self.tree.len() as u64).to_le_bytes());
        for (path, entry) in &self.tree {
            out.push(letter(entry.kind));
            out.extend(entry.bytes.to_le_bytes());
            out.extend(entry.sha256.to_bytes());
            put(&mut out, path.as_bytes());
        }
        let whole = Digest::of(&out);
        out.extend(whole.to_bytes());
        out
    }

    /// Reads what `encode` wrote; anything else, by as little as one bit, is refused.
    pub fn decode(bytes: &[u8]) -> Result<Self, Broken> {
        let (body, digest) = bytes
            .split_at_checked(bytes.len().saturating_sub(DIGEST))
            .ok_or(Broken)?;
        if Digest::of(body).to_bytes() != digest {
            return Err(Broken);
        }
        let mut rest = body.strip_prefix(MAGIC).ok_or(Broken)?;
        let (git_tree, commit) = (text(&mut rest)?, text(&mut rest)?);
        let start_tree = take_digest(&mut rest)?;
        let mut submodules = Vec::new();
        for _ in 0..number(&mut rest)? {
            submodules.push((TreePath::of(name(&mut rest)?), text(&mut rest)?));
        }
        let mut masked = Vec::new();
        for _ in 0..number(&mut rest)? {
            masked.push(TreePath::of(name(&mut rest)?));
        }
        let mut entries = Vec::new();
        for _ in 0..number(&mut rest)? {
            let kind = kind(take::<1>(&mut rest)?[0])?;
            let (bytes, sha256) = (number(&mut rest)?, take_digest(&mut rest)?);
            entries.push((
                TreePath::of(name(&mut rest)?),
                Entry {
                    kind,
                    bytes,
                    sha256,
                },
            ));
        }
        let in_order = entries.is_sorted_by(|a, b| a.0 < b.0);
        if !rest.is_empty() || !in_order {
            return Err(Broken);
        }
        Ok(Self {
            git_tree,
            commit,
            start_tree,
            submodules,
            masked,
            tree: entries.into_iter().collect(),
        })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

fn letter(kind: FileKind) -> u8 {
    match kind {
        FileKind::Regular => b'r',
        FileKind::Executable => b'x',
        FileKind::Symlink => b'l',
    }
}

fn kind(letter: u8) -> Result<FileKind, Broken> {
    match letter {
        b'r' => Ok(FileKind::Regular),
        b'x' => Ok(FileKind::Executable),
        b'l' => Ok(FileKind::Symlink),
        _ => Err(Broken),
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Broken> {
    let (taken, left) = rest.split_first_chunk::<N>().ok_or(Broken)?;
    *rest = left;
    Ok(*taken)
}

fn number(rest: &mut &[u8]) -> Result<u64, Broken> {
    take::<8>(rest).map(u64::from_le_bytes)
}

fn take_digest(rest: &mut &[u8]) -> Result<Digest, Broken> {
    take::<DIGEST>(rest).map(Digest::from_bytes)
}

fn name<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], Broken> {
    let length = usize::try_from(number(rest)?).map_err(|_| Broken)?;
    let (taken, left) = rest.split_at_checked(length).ok_or(Broken)?;
    *rest = left;
    Ok(taken)
}

fn text(rest: &mut &[u8]) -> Result<String, Broken> {
    String::from_utf8(name(rest)?.to_vec()).map_err(|_| Broken)
}

/// A checkout of the cache, as the cache sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    pub name: String,
    /// When it was last used; any clock that only goes forward.
    pub used: u64,
    pub bytes: u64,
}

/// The most checkouts a cache keeps, and the most bytes of files in them.
pub const MAX_KEPT: usize = 8;
pub const MAX_KEPT_BYTES: u64 = 16 << 30;

/// What a cache lets go: the longest unused beyond its bounds, and never the one used last.
pub fn surplus_checkouts(kept: &[Kept]) -> Vec<&str> {
    let mut newest_first: Vec<&Kept> = kept.iter().collect();
    newest_first.sort_by(|a, b| (b.used, &b.name).cmp(&(a.used, &a.name)));
    let mut bytes = 0u64;
    let mut goes = Vec::new();
    for (place, checkout) in newest_first.into_iter().enumerate() {
        bytes = bytes.saturating_add(checkout.bytes);
        if place >= MAX_KEPT || (place > 0 && bytes > MAX_KEPT_BYTES) {
            goes.push(checkout.name.as_str());
        }
    }
    goes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tree;

    fn sample() -> Manifest {
        let entry = |kind, text: &str| Entry {
            kind,
            bytes: text.len() as u64,
            sha256: Digest::of(text.as_bytes()),
        };
        let tree = Tree::from([
            (TreePath::new("a"), entry(FileKind::Regular, "a")),
            (
                TreePath::new(&b"b/\xff\n"[..]),
                entry(FileKind::Executable, "bb"),
            ),
            (TreePath::new("l"), entry(FileKind::Symlink, "a")),
        ]);
        Manifest {
            git_tree: "4b825dc642cb6eb9a060e54bf8d69288fbee4904".into(),
            commit: "1".repeat(40),
            start_tree: tree::tree_digest(&tree),
            submodules: vec![(TreePath::new("mod"), "2".repeat(40))],
            masked: vec![TreePath::new(".env"), TreePath::new(".pi")],
            tree,
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        assert_eq!(Manifest::decode(&sample().encode()), Ok(sample()));
        assert_eq!(sample().bytes(), 4);
    }

    #[test]
    fn other_masks_are_another_checkout() {
        let key = |masked: &[&str]| {
            checkout_key(
                &masked
                    .iter()
                    .map(|it| TreePath::new(*it))
                    .collect::<Vec<_>>(),
            )
        };
        let all = [&[][..], &["a"], &["a", "b"], &["ab"], &["a/b"], &["b"]];
        let keys: std::collections::BTreeSet<Digest> = all.iter().map(|it| key(it)).collect();
        assert_eq!(keys.len(), all.len());
    }

    #[test]
    fn any_byte_changed_or_missing_breaks_it() {
        let bytes = sample().encode();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(Manifest::decode(&changed), Err(Broken), "byte {at}");
            assert_eq!(Manifest::decode(&bytes[..at]), Err(Broken), "cut at {at}");
        }
        assert_eq!(Manifest::decode(&[bytes, vec![0]].concat()), Err(Broken));
    }

    #[test]
    fn a_manifest_with_a_true_digest_and_no_sense_is_refused() {
        let sealed = |body: &[u8]| [body, &Digest::of(body).to_bytes()].concat();
        let body = sample().encode();
        let body = &body[..body.len() - DIGEST];
        assert_eq!(
            Manifest::decode(&sealed(&[body, b"more"].concat())),
            Err(Broken)
        );
        assert_eq!(
            Manifest::decode(&sealed(&body[..body.len() - 1])),
            Err(Broken)
        );
        let huge = [MAGIC, &u64::MAX.to_le_bytes()].concat();
        assert_eq!(Manifest::decode(&sealed(&huge)), Err(Broken));
        assert_eq!(Manifest::decode(&[]), Err(Broken));
    }

    #[test]
    fn an_overlay_only_where_it_can_be_and_pays() {
        use WorkspaceKind::*;
        for (jailed, can, files, want) in [
            (true, true, Some(OVERLAY_FROM), Overlay),
            (true, true, Some(OVERLAY_FROM - 1), Copy),
            (true, true, None, Copy),
            (true, false, Some(u64::MAX), Copy),
            (false, true, Some(u64::MAX), Copy),
        ] {
            assert_eq!(
                WorkspaceKind::decide(jailed, can, files),
                want,
                "{jailed} {can} {files:?}"
            );
        }
    }

    #[test]
    fn the_longest_unused_go_first_and_the_last_used_never() {
        let kept = |name: &str, used, bytes| Kept {
            name: name.into(),
            used,
            bytes,
        };
        assert!(surplus_checkouts(&[kept("only", 0, u64::MAX)]).is_empty());
        let huge = [kept("old", 1, 1), kept("new", 2, MAX_KEPT_BYTES)];
        assert_eq!(surplus_checkouts(&huge), ["old"]);
        let many: Vec<Kept> = (0..MAX_KEPT as u64 + 2)
            .map(|used| kept(&format!("c{used}"), used, 1))
            .collect();
        assert_eq!(surplus_checkouts(&many), ["c1", "c0"]);
        assert!(surplus_checkouts(&many[2..]).is_empty());
    }
}
