//! The private root: a read-only system, devices, a masked /proc, and what the order declares.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cto_core::run::attempt::STAND_INS;

use crate::enter::{Named, Step};
use crate::overlay::{self, Layers};
use crate::spec::{JailSpec, STAND_IN_DIR};
use crate::{guard, sys};

/// A directory that exists everywhere; covered by the new root in our own mount namespace only.
const STAGE: &str = "/tmp";

/// Read-only places of the host's /etc that programs need to find libraries, certificates and the
/// time.
const ETC: [&str; 7] = [
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
];
const SYSTEM_LINKS: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Parts of /proc that speak of, or to, the whole host.
const MASKED: [&str; 13] = [
    "/proc/sys",
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
        fs::create_dir_all(&place).step(format!("make {}", path.as_ref().display()))?;
        Ok(place)
    }

    fn file(&self, path: impl AsRef<Path>, text: &str) -> Step<PathBuf> {
        let place = self.at(path.as_ref());
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).step(format!("make {}", path.as_ref().display()))?;
        }
        // A place to mount over may be a file of the workspace already; its content stays.
        if !(text.is_empty() && place.is_file()) {
            fs::write(&place, text).step(format!("make {}", path.as_ref().display()))?;
        }
        Ok(place)
    }

    /// Binds a source of the host at the same or another path inside.
    fn bind(&self, source: &Path, target: &Path, is_dir: bool, attributes: u64) -> Step<()> {
        let place = if is_dir {
            self.dir(target)?
        } else {
            self.file(target, "")?
        };
        sys::bind(source, &place, attributes).step(format!("bind {}", target.display()))
    }
}

/// Holds on to a place, whatever will cover the way to it.
pub fn pin(path: &Path) -> io::Result<OwnedFd> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?)
}

/// Builds the new root and makes it the only one there is.
pub fn build_root(spec: &JailSpec, root: bool, maps: &[Option<OwnedFd>]) -> Step<()> {
    // Sources may lie below the directory that is about to be covered: hold on to them first.
    let mut pinned: Vec<(OwnedFd, bool, Option<Layers>)> = Vec::new();
    for mount in &spec.mounts {
        let fd = pin(&mount.source).step(format!("find {}", mount.target.display()))?;
        pinned.push((
            fd,
            mount.source.is_dir(),
            mount.over.as_ref().map(Layers::pin).transpose()?,
        ));
    }
    let (uid, gid) = if root {
        (spec.uid, spec.uid)
    } else {
        sys::effective_ids()
    };
    let base = Root { base: STAGE.into() };
    sys::mount(
        "tmpfs",
        &base.base,
        "tmpfs",
        libc::MS_NOSUID | libc::MS_NODEV,
        "mode=755,size=16m",
    )
    .step("make a new root")?;
    system(&base)?;
    own_etc(&base, uid, gid)?;
    devices(&base)?;
    for (target, options) in [
        ("/dev/shm", "mode=1777,size=256m"),
        ("/tmp", "mode=1777,size=2g"),
    ] {
        let place = base.dir(target)?;
        sys::mount(
            "tmpfs",
            &place,
            "tmpfs",
            libc::MS_NOSUID | libc::MS_NODEV,
            options,
        )
        .step(format!("mount {target}"))?;
    }
    for ((mount, (fd, is_dir, layers)), map) in spec.mounts.iter().zip(&pinned).zip(maps) {
        let source = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        let attributes = if mount.writable {
            sys::ATTR_NOSUID | sys::ATTR_NODEV
        } else {
            READ_ONLY
        };
        if let Some(layers) = layers {
            let (lower, place) = (base.dir("/run/lower")?, base.dir(&mount.target)?);
            overlay::mount(&source, &lower, layers, &place, map.as_ref())?;
            continue;
        }
        let Some(map) = map else {
            base.bind(&source, &mount.target, *is_dir, attributes)?;
            continue;
        };
        let place = base.dir(&mount.target)?;
        sys::bind_as(&source, &place, attributes, Some(map.as_fd()))
            .step(format!("bind {} as its owner", mount.target.display()))?;
    }
    if spec.watched {
        stand_ins(&base)?;
    }
    proc(&base)?;
    std::env::set_current_dir(&base.base).step("enter the new root")?;
    sys::pivot_here().step("pivot")?;
    if let Some(guarded) = &spec.guard {
        guard::put_up(guarded)?;
    }
    sys::make_read_only(Path::new("/")).step("make the root read-only")
}

fn system(base: &Root) -> Step<()> {
    base.bind(Path::new("/usr"), Path::new("/usr"), true, READ_ONLY)?;
    for name in SYSTEM_LINKS {
        let path = Path::new("/").join(name);
        match fs::read_link(&path) {
            Ok(target) => symlink(target, base.at(&path)).step(format!("link /{name}"))?,
            Err(_) if path.is_dir() => base.bind(&path, &path, true, READ_ONLY)?,
            Err(_) => {}
        }
    }
    Ok(())
}

fn own_etc(base: &Root, uid: u32, gid: u32) -> Step<()> {
    base.dir("/etc")?;
    for path in ETC.map(Path::new) {
        if path.exists() {
            base.bind(path, path, path.is_dir(), READ_ONLY)?;
        }
    }
    base.file(
        "/etc/passwd",
        &format!("engine:x:{uid}:{gid}::/scratch/home:/bin/sh\n"),
    )?;
    base.file("/etc/group", &format!("engine:x:{gid}:\n"))?;
    base.file("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")?;
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
    let place = base.file(Path::new(STAND_IN_DIR).join(first), TEXT)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).step("make stand-ins")?;
    for name in others {
        symlink(first, base.at(&Path::new(STAND_IN_DIR).join(name))).step("make stand-ins")?;
    }
    Ok(())
}

fn devices(base: &Root) -> Step<()> {
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        if path.exists() {
            base.bind(&path, &path, false, sys::ATTR_NOSUID)?;
        }
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

fn proc(base: &Root) -> Step<()> {
    let place = base.dir("/proc")?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    sys::mount("proc", &place, "proc", flags, "").step("mount /proc")?;
    let empty = base.dir(guard::EMPTY_DIR)?;
    let empty_file = base.file(guard::EMPTY_FILE, "")?;
    // Open modes on a root that becomes read-only: what refuses a write is then the mount, which
    // can be told.
    for (place, mode) in [(&empty, 0o777), (&empty_file, 0o666)] {
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).step("make empty places")?;
    }
    for path in MASKED.map(Path::new) {
        let target = base.at(path);
        let Ok(meta) = fs::symlink_metadata(&target) else {
            continue;
        };
        let cover = if meta.is_dir() {
            empty.as_path()
        } else {
            Path::new("/dev/null")
        };
        sys::bind(cover, &target, READ_ONLY).step(format!("mask {}", path.display()))?;
    }
    Ok(())
}
