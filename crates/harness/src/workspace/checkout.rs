//! Cached checkouts: a source's tree laid out once, under git's own name for it, for every later
//! run to start from. Private like the harness's repositories: a jail sees one only as an overlay's
//! lower half.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cto_core::containment::masks;
use cto_core::values::digest::Digest;
use cto_core::values::paths::TreePath;
use cto_core::workspace::checkout::{Kept, Manifest, checkout_key, surplus_checkouts};
use cto_core::workspace::tree::{self, Entry, Tree};
use rustix::fs::{FlockOperation, flock};

use crate::host::files;
use crate::host::programs::Program;
use crate::host::{self, Home};
use crate::workspace::WorkspaceError;
use crate::workspace::git::{Commit, Edit, HarnessRepo, ObjectFormat, SourceRepo, Submodule};
use crate::workspace::on_disk::{self, Content};
use crate::workspace::work_tree;

/// Raised when what lies in a checkout changes: the `.git` an engine gets, the layout, the
/// manifest.
const FORMAT: u32 = 2;
const MANIFEST: &str = "manifest";
/// Where files have the times of a work tree: which.
const TIMES: &str = "times";
/// Holds how many bytes the files have; its time says when the checkout was last used.
const USED: &str = "used";
/// Begins the name of a checkout that is being made, or taken away.
const ASIDE: &str = "aside-";
const MAX_MANIFEST: u64 = 4 << 30;

/// A whole checkout, kept from being pruned for as long as this lives.
pub struct Checkout {
    dir: PathBuf,
    pub manifest: Manifest,
    /// Where files have the times of a work tree: its state, and the files that are the same there.
    pub times: Option<(Digest, BTreeSet<TreePath>)>,
    _in_use: File,
}

fn checkouts(home: &Home) -> PathBuf {
    home.cache().join("checkouts")
}

/// Only what git would call a tree becomes a name.
fn names_begin(git_tree: &str) -> Option<String> {
    ObjectFormat::of_id(git_tree).map(|_| format!("{git_tree}-{FORMAT}-"))
}

/// The tree, what of it the `.git` in the checkout does not hold, and the state of the work tree
/// whose times its files have.
fn name(git_tree: &str, masked: &[TreePath], times: Option<&Digest>) -> Option<String> {
    let masks = checkout_key(masked);
    let key = match times {
        None => masks.to_string(),
        Some(times) => Digest::of(format!("{masks} {times}").as_bytes()).to_string(),
    };
    let key: String = key
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(16)
        .collect();
    names_begin(git_tree).map(|begin| format!("{begin}{key}"))
}

impl Checkout {
    /// The checkout of a tree with these masks and the times of this state, if a whole one is there.
    pub fn find(
        home: &Home,
        git_tree: &str,
        masked: &[TreePath],
        times: Option<&Digest>,
    ) -> Option<Self> {
        let found = Self::open(
            checkouts(home).join(name(git_tree, masked, times)?),
            git_tree,
        )?;
        let state = found.times.as_ref().map(|(state, _)| state);
        (found.manifest.masked == masked && state == times).then_some(found)
    }

    /// The same with any times: files and masks are right.
    pub fn find_masked(home: &Home, git_tree: &str, masked: &[TreePath]) -> Option<Self> {
        Self::find_where(home, git_tree, |found| found.manifest.masked == masked)
    }

    /// A whole checkout of this tree, whatever it masks: enough to know the tree by.
    pub fn find_any(home: &Home, git_tree: &str) -> Option<Self> {
        Self::find_where(home, git_tree, |_| true)
    }

    fn find_where(home: &Home, git_tree: &str, fits: impl Fn(&Self) -> bool) -> Option<Self> {
        let (root, begin) = (checkouts(home), names_begin(git_tree)?);
        let mut names: Vec<String> = kept(&root).into_iter().map(|kept| kept.name).collect();
        names.sort();
        names
            .into_iter()
            .filter(|name| name.starts_with(&begin))
            .filter_map(|name| Self::open(root.join(name), git_tree))
            .find(fits)
    }

    fn open(dir: PathBuf, git_tree: &str) -> Option<Self> {
        let in_use = held(&dir, FlockOperation::NonBlockingLockShared)?;
        let bytes = files::read_limited(&dir.join(MANIFEST), MAX_MANIFEST).ok()?;
        let manifest = Manifest::decode(&bytes)
            .ok()
            .filter(|manifest| manifest.git_tree == git_tree)?;
        // When it was last used only matters to a prune.
        let _ = File::open(dir.join(USED)).and_then(|file| file.set_modified(SystemTime::now()));
        Some(Self {
            times: read_times(&dir),
            dir,
            manifest,
            _in_use: in_use,
        })
    }

    /// Finds the checkout, or makes it; `true` when it had to be made.
    pub fn find_or_make(
        home: &Home,
        git: &Program,
        source: &SourceRepo,
        wanted: &Wanted<'_>,
    ) -> Result<(Self, bool), WorkspaceError> {
        let find = |times: Option<&Digest>| Self::find(home, wanted.git_tree, wanted.masked, times);
        // Whose times are asked for is only known where the tree is.
        let known = wanted.work_tree.and_then(|top| {
            let known = Self::find_any(home, wanted.git_tree)?;
            Some(work_tree::look(top, &known.manifest.tree).key)
        });
        if (known.is_some() || wanted.work_tree.is_none())
            && let Some(found) = find(known.as_ref())
        {
            return Ok((found, false));
        }
        let missing = || WorkspaceError::Differs("the checkout cannot be kept");
        let root = checkouts(home);
        host::make_private_dir(&root).map_err(WorkspaceError::Io)?;
        sweep(&root);
        let aside = Aside::make(&root).map_err(WorkspaceError::Io)?;
        let times = lay_out(&aside.0, git, source, wanted)?;
        let found = || find(times.as_ref());
        let name = name(wanted.git_tree, wanted.masked, times.as_ref()).ok_or_else(missing)?;
        // One that is torn gives way; a whole one that somebody else made in the meantime is as
        // good as ours.
        if found().is_none() {
            remove(&root, &name);
        }
        files::rename_new(&aside.0, &root.join(&name)).map_err(WorkspaceError::Io)?;
        let made = found().ok_or_else(missing)?;
        prune(&root);
        Ok((made, true))
    }

    /// A directory as if it were a checkout.
    #[cfg(test)]
    pub fn of_tree(dir: PathBuf, tree: Tree) -> Self {
        let _in_use = File::open(&dir).unwrap();
        let (git_tree, commit, start_tree) =
            (String::new(), String::new(), tree::tree_digest(&tree));
        Self {
            dir,
            manifest: Manifest {
                git_tree,
                commit,
                start_tree,
                submodules: Vec::new(),
                masked: Vec::new(),
                tree,
            },
            times: None,
            _in_use,
        }
    }

    /// The files, and the `.git` the engine gets.
    pub fn files(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// Nothing but the ignore rules of the baseline.
    pub fn rules(&self) -> PathBuf {
        self.dir.join("rules")
    }

    /// The harness's own objects of the baseline.
    pub fn objects(&self) -> PathBuf {
        self.dir.join("harness.git/objects")
    }

    pub fn commit(&self) -> Commit {
        Commit {
            commit: self.manifest.commit.clone(),
            tree: self.manifest.git_tree.clone(),
        }
    }
}

/// Which tree a checkout must turn out to be, and what of it an engine is not shown.
pub struct Wanted<'a> {
    pub git_tree: &'a str,
    pub start_tree: Option<&'a Digest>,
    pub masked: &'a [TreePath],
    /// The top of the work tree whose times its files get.
    pub work_tree: Option<&'a Path>,
}

/// Opens and locks a checkout; none while it is being taken away, or once it was.
fn held(dir: &Path, how: FlockOperation) -> Option<File> {
    let file = File::open(dir).ok()?;
    flock(&file, how).ok()?;
    let (ours, now) = (file.metadata().ok()?, fs::metadata(dir).ok()?);
    ((ours.dev(), ours.ino()) == (now.dev(), now.ino())).then_some(file)
}

/// A directory of our own beside the checkouts; removed unless it got their kind of name.
struct Aside(PathBuf);

impl Aside {
    fn make(root: &Path) -> io::Result<Self> {
        let random = host::random_name(12).map_err(|failure| io::Error::other(failure.what))?;
        let dir = root.join(format!("{ASIDE}{}-{random}", std::process::id()));
        host::make_private_dir(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // What stays is swept by the next one who makes a checkout.
        let _ = files::remove_tree(&self.0);
    }
}

/// Removes what a process that is gone left half made.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name
            .strip_prefix(ASIDE)
            .and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = files::remove_tree(&entry.path());
        }
    }
}

/// Lets go of what the bounds of the cache do not cover, unless somebody uses it.
fn prune(root: &Path) {
    let kept = kept(root);
    for name in surplus_checkouts(&kept) {
        remove(root, name);
    }
}

fn remove(root: &Path, name: &str) {
    let dir = root.join(name);
    let Some(_alone) = held(&dir, FlockOperation::NonBlockingLockExclusive) else {
        return;
    };
    // Out of everybody's sight before the first file goes.
    let Ok(aside) = Aside::make(root) else { return };
    let _ = fs::rename(&dir, aside.0.join(name));
}

/// What the cache holds.
pub fn list(home: &Home) -> Vec<Kept> {
    kept(&checkouts(home))
}

fn kept(root: &Path) -> Vec<Kept> {
    let kept = |entry: fs::DirEntry| {
        let name = entry
            .file_name()
            .into_string()
            .ok()
            .filter(|name| !name.starts_with(ASIDE))?;
        let used = entry.path().join(USED);
        let time = fs::metadata(&used)
            .and_then(|meta| meta.modified())
            .unwrap_or(UNIX_EPOCH);
        let bytes = fs::read_to_string(&used)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0);
        let used = time
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO)
            .as_millis();
        Some(Kept {
            name,
            used: u64::try_from(used).unwrap_or(u64::MAX),
            bytes,
        })
    };
    fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(kept)
        .collect()
}

/// Everything of a checkout, written and synced; it counts once it has its name.
fn lay_out(
    dir: &Path,
    git: &Program,
    source: &SourceRepo,
    wanted: &Wanted<'_>,
) -> Result<Option<Digest>, WorkspaceError> {
    let place = dir.join("tree");
    let repo = HarnessRepo::init(git, &dir.join("harness.git"), source.format)?;
    let (tree, commit, submodules) = copy_head(source, &repo, &place, wanted)?;
    let io = WorkspaceError::Io;
    let rules = dir.join("rules");
    fs::create_dir(&rules).map_err(io)?;
    let holds_rules = |(path, entry): &(&TreePath, &Entry)| on_disk::holds_rules(path, entry);
    for (path, entry) in tree.iter().filter(holds_rules) {
        on_disk::write_entry(
            &rules,
            path,
            entry.kind,
            &mut Content::of(&place, path, entry.kind),
        )
        .map_err(io)?;
    }
    on_disk::date(&place, &tree, on_disk::some_time_ago()).map_err(io)?;
    let work_tree = wanted.work_tree.map(|top| {
        let look = work_tree::look(top, &tree);
        let same = look.read(&tree);
        (look, same)
    });
    if let Some((look, same)) = &work_tree {
        look.give_times(&place, same).map_err(io)?;
    }
    let masked = masks::seen_of_masked(&tree, wanted.masked);
    repo.furnish(&place, &commit, &masked)?;
    repo.refresh(&place)?;
    let manifest = Manifest {
        git_tree: commit.tree,
        commit: commit.commit,
        start_tree: tree::tree_digest(&tree),
        submodules: submodules
            .into_iter()
            .map(|module| (module.path, module.commit))
            .collect(),
        masked: wanted.masked.to_vec(),
        tree,
    };
    if let Some((look, same)) = &work_tree {
        look.give_times_of_dirs(&place).map_err(io)?;
        write_times(dir, &look.key, same).map_err(io)?;
    }
    fs::write(dir.join(USED), manifest.bytes().to_string()).map_err(io)?;
    fs::write(dir.join(MANIFEST), manifest.encode()).map_err(io)?;
    let synced = File::open(dir).and_then(|dir| rustix::fs::syncfs(dir).map_err(io::Error::from));
    synced.map_err(io)?;
    Ok(work_tree.map(|(look, _)| look.key))
}

/// The state of a work tree, and the files that are the same there, each behind a zero.
fn write_times(dir: &Path, state: &Digest, same: &BTreeSet<TreePath>) -> io::Result<()> {
    let mut bytes = state.to_string().into_bytes();
    for path in same {
        bytes.push(0);
        bytes.extend_from_slice(path.as_bytes());
    }
    fs::write(dir.join(TIMES), bytes)
}

fn read_times(dir: &Path) -> Option<(Digest, BTreeSet<TreePath>)> {
    let bytes = files::read_limited(&dir.join(TIMES), MAX_MANIFEST).ok()?;
    let mut parts = bytes.split(|byte| *byte == 0);
    let state = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    Some((state, parts.map(TreePath::new).collect()))
}

/// Copies the source's HEAD, and proves by git's own tree id that the copy is exactly that.
pub fn copy_head(
    source: &SourceRepo,
    repo: &HarnessRepo,
    dir: &Path,
    wanted: &Wanted<'_>,
) -> Result<(Tree, Commit, Vec<Submodule>), WorkspaceError> {
    let differs = || WorkspaceError::Differs("the copy is not what HEAD of the source holds");
    fs::create_dir(dir).map_err(WorkspaceError::Io)?;
    let mut tree = Tree::new();
    let submodules: Vec<Submodule> = source.each_file(&mut |path, kind, content| {
        let entry = on_disk::write_entry(dir, path, kind, content)?;
        tree.insert(path.clone(), entry);
        Ok(())
    })?;
    if wanted.start_tree != Some(&tree::tree_digest(&tree)) {
        return Err(differs());
    }
    let mut edits = Vec::new();
    for (path, entry) in &tree {
        let content = Box::new(Content::of(dir, path, entry.kind));
        edits.push((
            path,
            Edit::Write {
                kind: entry.kind,
                bytes: entry.bytes,
                content,
            },
        ));
    }
    edits.extend(submodules.iter().map(|module| {
        (
            &module.path,
            Edit::Submodule {
                commit: &module.commit,
            },
        )
    }));
    let commit = repo.import_baseline(edits)?;
    if commit.tree != wanted.git_tree {
        return Err(differs());
    }
    empty_directories(dir, submodules.iter().map(|module| &module.path))
        .map_err(WorkspaceError::Io)?;
    Ok((tree, commit, submodules))
}

/// As git itself leaves a submodule that is not checked out.
pub fn empty_directories<'p>(
    dir: &Path,
    submodules: impl IntoIterator<Item = &'p TreePath>,
) -> io::Result<()> {
    for path in submodules {
        let place = on_disk::locate(dir, path);
        on_disk::make_parent(dir, &place)?;
        fs::create_dir(&place)?;
    }
    Ok(())
}
