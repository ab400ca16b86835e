//! The private root: a read-only system, devices, a masked /proc, and what the order declares.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cto_core::containment::Layer;
use cto_core::containment::mounts::SYSTEM;
use cto_core::containment::ordinary;
use cto_core::run::attempt::STAND_INS;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::inside::enter::{Failed, Named, Step};
use crate::inside::guard;
use crate::inside::overlay::{self, Layers};
use crate::spec::{JailSpec, Mount, RefusedMap, STAND_IN_DIR, Share};
use crate::sys::{self, DetachedTree};

/// A directory that exists everywhere; covered by the new root in our own mount namespace only.
const STAGE: &str = "/tmp";

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Parts of /proc that speak of, or to, the whole host.
const MASKED: [&str; 12] = [
    "/proc/sysrq-trigger",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kcore",
    "/proc/timer_list",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/kmsg",
    "/proc/config.gz",
];
/// A way with a link in it is refused.
const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);
const READ_ONLY: u64 = sys::ATTR_RDONLY | sys::ATTR_NOSUID | sys::ATTR_NODEV;

struct Root {
    base: PathBuf,
}

impl Root {
    fn at(&self, path: &Path) -> PathBuf {
        self.base.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn dir(&self, path: impl AsRef<Path>) -> Step<PathBuf> {
        let place = self.at(path.as_ref());
        fs::create_dir_all(&place).step(making(path.as_ref()))?;
        Ok(place)
    }

    /// A file of our own, in a directory that is there.
    fn file(&self, path: impl AsRef<Path>, text: &str) -> Step<PathBuf> {
        let place = self.at(path.as_ref());
        fs::write(&place, text).step(making(path.as_ref()))?;
        Ok(place)
    }

    /// A place to mount at, made where it is missing: one of the workspace that is there already
    /// stays as it is. No link on the way is followed: it would lead through the host's root.
    fn hold(&self, path: &Path, is_dir: bool) -> io::Result<OwnedFd> {
        match (self.find(path, is_dir), path.parent(), path.file_name()) {
            (Err(Errno::NOENT), Some(parent), Some(name)) => {
                make_empty(&self.hold(parent, true)?, name, is_dir)?;
                Ok(self.find(path, is_dir)?)
            }
            (found, ..) => Ok(found?),
        }
    }

    fn find(&self, path: &Path, is_dir: bool) -> rustix::io::Result<OwnedFd> {
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        flags.set(OFlags::DIRECTORY, is_dir);
        let (place, mode) = (self.at(path), Mode::empty());
        rustix::fs::openat2(rustix::fs::CWD, place, flags, mode, NO_LINKS)
    }

    /// Shows a tree of the host at a path inside.
    fn show(&self, tree: DetachedTree, target: &Path, attributes: u64) -> Step<()> {
        let bind = || format!("bind {}", target.display());
        let is_dir = tree.is_dir().step(bind())?;
        let place = self.hold(target, is_dir).step(making(target))?;
        tree.attach_at(place.as_fd(), attributes).step(bind())
    }

    /// Shows a path of the host at the same path inside, if the host has it.
    fn show_own(&self, path: &Path, attributes: u64) -> Step<()> {
        match DetachedTree::copy(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            tree => self.show(
                tree.step(format!("find {}", path.display()))?,
                path,
                attributes,
            ),
        }
    }
}

fn making(path: &Path) -> String {
    format!("make {}", path.display())
}

/// Makes a directory, or an empty file; that somebody else was faster is as good.
fn make_empty(dir: &OwnedFd, name: &OsStr, is_dir: bool) -> io::Result<()> {
    let made = if is_dir {
        let mode = Mode::from_raw_mode(0o755);
        // Whoever works below must get there, whatever the operator's umask is.
        rustix::fs::mkdirat(dir, name, mode)
            .and_then(|()| rustix::fs::chmodat(dir, name, mode, rustix::fs::AtFlags::empty()))
    } else {
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(dir, name, FileType::RegularFile, mode, 0)
    };
    match made {
        Err(Errno::EXIST) => Ok(()),
        made => Ok(made?),
    }
}

/// A way to what is held that nothing can come to cover.
fn held_path(held: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()))
}

/// Holds on to what leave was given for. The way to it has no link, and what is found there must be
/// what was looked at: anything else came there since.
fn pin_source(mount: &Mount) -> io::Result<OwnedFd> {
    let (flags, mode) = (OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let place = rustix::fs::openat2(rustix::fs::CWD, &mount.source, flags, mode, NO_LINKS)?;
    let found = rustix::fs::fstat(&place)?;
    match (found.st_dev, found.st_ino) == (mount.id.device, mount.id.inode) {
        true => Ok(place),
        false => Err(io::Error::other("another one came to its place")),
    }
}

/// Holds on to a place, whatever will cover the way to it.
pub fn pin(path: &Path) -> io::Result<OwnedFd> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?)
}

/// A source that was found before anything covers the way to it.
enum Held {
    Tree(DetachedTree),
    Overlay { lower: OwnedFd, layers: Layers },
}

impl Held {
    fn take(mount: &Mount) -> Step<Self> {
        let find = || format!("find {}", mount.target.display());
        let source = pin_source(mount).step(find())?;
        match &mount.over {
            None => DetachedTree::copy_held(source.as_fd())
                .step(find())
                .map(Self::Tree),
            Some(over) => Ok(Self::Overlay {
                lower: source,
                layers: Layers::pin(over)?,
            }),
        }
    }

    fn show(self, base: &Root, mount: &Mount, map: Option<&OwnedFd>) -> Step<()> {
        let attributes = if mount.writable {
            sys::ATTR_NOSUID | sys::ATTR_NODEV
        } else {
            READ_ONLY
        };
        match self {
            Self::Tree(tree) => {
                map.map_or(Ok(()), |map| as_its_users(&tree, map, mount))?;
                base.show(tree, &mount.target, attributes)
            }
            Self::Overlay { lower, layers } => {
                let lower = held_path(&lower);
                let stage = base.dir("/run/lower")?;
                // One in a workspace has other people's files on the way to it.
                let place = base.hold(&mount.target, true).step(making(&mount.target))?;
                overlay::mount(&lower, &stage, &layers, &held_path(&place), map)
            }
        }
    }
}

/// Shows a tree as owned by the jail's uid. Whether its file system has that is not known before it
/// was tried; without it nobody in the jail could write there.
fn as_its_users(tree: &DetachedTree, map: &OwnedFd, mount: &Mount) -> Step<()> {
    tree.map_owners(map.as_fd()).map_err(|error| Failed {
        step: format!("show {} as its user's", mount.source.display()),
        error,
        refused: Some(RefusedMap {
            dir: mount.source.clone(),
            is_below: tree.map_owners_of_first(map.as_fd()).is_ok(),
        }),
    })
}

/// Builds the new root and makes it the only one there is. As root, whoever works in it is somebody else: its
/// own directories and files are for everybody to read, whatever the operator's umask keeps from others. What
/// runs inside has that umask again.
pub fn build_root(spec: &JailSpec, root: bool, maps: &[Option<OwnedFd>]) -> Step<()> {
    let own = rustix::process::umask(Mode::from_raw_mode(0o022));
    let built = build(spec, root, maps);
    rustix::process::umask(own);
    built
}

fn build(spec: &JailSpec, root: bool, maps: &[Option<OwnedFd>]) -> Step<()> {
    // Sources may lie below the directory that is about to be covered: hold on to them first.
    let held: Vec<Held> = spec.mounts.iter().map(Held::take).collect::<Step<_>>()?;
    let (uid, gid) = if root {
        (spec.uid, spec.uid)
    } else {
        sys::effective_ids()
    };
    let base = Root { base: STAGE.into() };
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    sys::mount("tmpfs", &base.base, "tmpfs", flags, "mode=755,size=16m").step("make a new root")?;
    system(&base)?;
    own_etc(&base, uid, gid)?;
    devices(&base)?;
    for (target, options) in [
        ("/dev/shm", "mode=1777,size=256m"),
        ("/tmp", "mode=1777,size=2g"),
    ] {
        let place = base.dir(target)?;
        sys::mount("tmpfs", &place, "tmpfs", flags, options).step(format!("mount {target}"))?;
    }
    second_name_of_tmp(&base)?;
    for ((mount, held), map) in spec.mounts.iter().zip(held).zip(maps) {
        held.show(&base, mount, map.as_ref())?;
    }
    if spec.watched {
        stand_ins(&base)?;
    }
    let limited = !root && spec.layers.contains(&Layer::ResourceLimits);
    proc(&base, limited.then_some(&spec.share))?;
    std::env::set_current_dir(&base.base).step("enter the new root")?;
    sys::pivot_here().step("pivot")?;
    guard::hide(&spec.hidden)?;
    if let Some(guarded) = &spec.guard {
        guard::put_up(guarded)?;
    }
    sys::make_read_only(Path::new("/")).step("make the root read-only")
}

/// The same files: a second place for them is no more memory, and no place more that may be written.
fn second_name_of_tmp(base: &Root) -> Step<()> {
    let tmp = base.at(Path::new("/tmp"));
    sys::bind_unchanged(&tmp, &base.dir("/var/tmp")?).step("mount /var/tmp")
}

fn system(base: &Root) -> Step<()> {
    for path in SYSTEM.map(Path::new) {
        match fs::read_link(path) {
            Ok(target) => {
                symlink(target, base.at(path)).step(format!("link {}", path.display()))?;
            }
            Err(_) => base.show_own(path, READ_ONLY)?,
        }
    }
    for path in ordinary::OF_SYS {
        base.show_own(Path::new(path), READ_ONLY)?;
    }
    Ok(())
}

fn own_etc(base: &Root, uid: u32, gid: u32) -> Step<()> {
    base.dir("/etc")?;
    for path in ordinary::OF_ETC {
        base.show_own(Path::new(path), READ_ONLY)?;
    }
    let names = fs::read_dir("/etc").step("look into /etc")?;
    for name in names.flatten().map(|entry| entry.file_name()) {
        if name.to_str().is_some_and(ordinary::is_of_family) {
            base.show_own(&Path::new("/etc").join(name), READ_ONLY)?;
        }
    }
    base.file("/etc/passwd", &ordinary::passwd(uid, gid))?;
    base.file("/etc/group", &ordinary::group(gid))?;
    base.file("/etc/hosts", &ordinary::hosts())?;
    base.file(ordinary::GIT_CONFIG_PLACE[1], ordinary::GIT_CONFIG)?;
    base.file(
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\n",
    )?;
    base.file("/etc/resolv.conf", "")?;
    Ok(())
}

/// Programs that only publish, last on PATH: where the real one is not installed, asking for it is
/// seen and answered.
fn stand_ins(base: &Root) -> Step<()> {
    const TEXT: &str = "#!/bin/sh\necho \"cto: ${0##*/} does not work here: nothing is pushed, merged, deployed or published from inside a run\" >&2\nexit 126\n";
    let [first, others @ ..] = STAND_INS;
    base.dir(STAND_IN_DIR)?;
    let place = base.file(Path::new(STAND_IN_DIR).join(first), TEXT)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).step("make stand-ins")?;
    for name in others {
        symlink(first, base.at(&Path::new(STAND_IN_DIR).join(name))).step("make stand-ins")?;
    }
    Ok(())
}

fn devices(base: &Root) -> Step<()> {
    base.dir("/dev")?;
    for name in DEVICES {
        base.show_own(&Path::new("/dev").join(name), sys::ATTR_NOSUID)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, base.at(&Path::new("/dev").join(name)))
            .step(format!("link /dev/{name}"))?;
    }
    let pts = base.dir("/dev/pts")?;
    let options = "newinstance,ptmxmode=0666,mode=620";
    sys::mount(
        "devpts",
        &pts,
        "devpts",
        libc::MS_NOSUID | libc::MS_NOEXEC,
        options,
    )
    .step("mount /dev/pts")
}

fn proc(base: &Root, share: Option<&Share>) -> Step<()> {
    let place = base.dir("/proc")?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    sys::mount("proc", &place, "proc", flags, "").step("mount /proc")?;
    if let Some(share) = share {
        // Of this user namespace alone; what is used here still counts for the operator.
        for (name, most) in [
            ("max_inotify_instances", share.inotify_instances),
            ("max_inotify_watches", share.inotify_watches),
        ] {
            fs::write(place.join("sys/user").join(name), most.to_string())
                .step(format!("set {name}"))?;
        }
    }
    let empty = base.dir(guard::EMPTY_DIR)?;
    let empty_file = base.file(guard::EMPTY_FILE, "")?;
    // Open modes on a root that becomes read-only: what refuses a write is then the mount, which
    // can be told.
    for (place, mode) in [(&empty, 0o777), (&empty_file, 0o666)] {
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).step("make empty places")?;
    }
    settings(base, &place)?;
    // The first of each kind is made read-only; the others are copies of it.
    let (mut masked_dir, mut masked_file): (Option<PathBuf>, Option<PathBuf>) = (None, None);
    for path in MASKED.map(Path::new) {
        let target = base.at(path);
        let Ok(meta) = fs::symlink_metadata(&target) else {
            continue;
        };
        let (mask, cover) = if meta.is_dir() {
            (&mut masked_dir, empty.as_path())
        } else {
            (&mut masked_file, Path::new("/dev/null"))
        };
        let covered = match mask {
            Some(first) => sys::bind_unchanged(first, &target),
            None => sys::bind(cover, &target, READ_ONLY),
        };
        covered.step(format!("mask {}", path.display()))?;
        mask.get_or_insert(target);
    }
    Ok(())
}

/// Instead of the kernel's settings, what they are now: texts, of which nothing can be set. Who
/// does not know their names finds none.
fn settings(base: &Root, proc: &Path) -> Step<()> {
    const PLACE: &str = "/run/settings";
    let (real, shown) = (proc.join("sys"), Path::new(PLACE));
    let mut live = None;
    for name in ordinary::SETTINGS.iter().chain([&ordinary::LIVE_SETTING]) {
        // A kernel that has no such setting needs none.
        let Ok(text) = fs::read_to_string(real.join(name)) else {
            continue;
        };
        let place = shown.join(name);
        base.dir(place.parent().unwrap_or(shown))?;
        let made = base.file(&place, &text)?;
        if *name == ordinary::LIVE_SETTING {
            live = Some(made);
        }
    }
    let shown = base.dir(shown)?;
    if let Some(place) = live {
        sys::bind(&real.join(ordinary::LIVE_SETTING), &place, READ_ONLY)
            .step("show a setting that changes")?;
    }
    let unlisted = fs::Permissions::from_mode(0o111);
    fs::set_permissions(&shown, unlisted).step("make settings")?;
    sys::bind(&shown, &real, READ_ONLY).step("mask /proc/sys")
}
