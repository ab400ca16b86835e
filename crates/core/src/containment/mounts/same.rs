//! Whether two places overlap, whatever they are called: by name, by the kernel's number, and by
//! what a mount shows.

use std::path::{Path, PathBuf};

use super::{House, Id, Mounted, Place};

/// File systems that are not files but the kernel, or secrets that never reach a disk.
const NO_FILES: [&str; 22] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "bpf",
    "debugfs",
    "tracefs",
    "configfs",
    "securityfs",
    "selinuxfs",
    "pstore",
    "efivarfs",
    "mqueue",
    "nsfs",
    "binfmt_misc",
    "fusectl",
    "rpc_pipefs",
    "ramfs",
    "fuse.portal",
    "fuse.gvfsd-fuse",
];
/// A mount point with one of these names on its way holds what is handed to a service.
const SECRET_NAMES: [&str; 4] = ["secrets", "secret", "credentials", "serviceaccount"];

impl House {
    /// Does the tree of mounts at a path hold this place, or the way to it?
    pub(super) fn covers(&self, path: &Path, id: Option<Id>, kept: &Place) -> bool {
        let by_name =
            kept.path.starts_with(path) || kept.links.iter().any(|link| link.at.starts_with(path));
        let by_id = id.is_some_and(|id| kept.chain.iter().any(|step| step.id == id));
        let held = self.kept_at(&kept.path);
        let by_mount = |at: Option<(_, PathBuf)>| match (&held, at) {
            (Some((device, inside)), Some((other, root))) => {
                *device == other && inside.starts_with(root)
            }
            _ => false,
        };
        by_name
            || by_id
            || by_mount(self.kept_at(path))
            || self
                .mounts_below(path)
                .any(|mount| by_mount(Some((mount.device, mount.root.clone()))))
    }

    /// Does a place, or something mounted below it, lie in one that is kept?
    pub(super) fn lies_in(&self, place: &Place, kept: &Place) -> bool {
        let by_name = place.path.starts_with(&kept.path);
        let by_id = kept
            .own_step()
            .is_some_and(|own| place.chain.iter().any(|step| step.id == own.id));
        let held = self.kept_at(&kept.path);
        let by_mount = |at: Option<(_, PathBuf)>| match (&held, at) {
            (Some((device, inside)), Some((other, root))) => {
                *device == other && root.starts_with(inside)
            }
            _ => false,
        };
        by_name
            || by_id
            || by_mount(self.kept_at(&place.path))
            || self
                .mounts_below(&place.path)
                .any(|mount| by_mount(Some((mount.device, mount.root.clone()))))
    }

    /// Which file system keeps a path, and under which name: the same for every bind mount of it.
    fn kept_at(&self, path: &Path) -> Option<((u32, u32), PathBuf)> {
        let mount = self.mount_of(path)?;
        let rest = path.strip_prefix(&mount.point).ok()?;
        Some((mount.device, mount.root.join(rest)))
    }

    /// The mount a path lies in: the longest, and of several at one point the last.
    pub(super) fn mount_of(&self, path: &Path) -> Option<&Mounted> {
        self.mounted
            .iter()
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.components().count())
    }

    pub(super) fn mounts_below<'m>(&'m self, path: &'m Path) -> impl Iterator<Item = &'m Mounted> {
        self.mounted
            .iter()
            .filter(move |mount| mount.point != path && mount.point.starts_with(path))
    }
}

/// Is what is mounted there no files of people's?
pub(super) fn holds_secrets(mount: &Mounted) -> bool {
    let named = |part: std::path::Component<'_>| {
        let name = part.as_os_str().to_ascii_lowercase();
        SECRET_NAMES.iter().any(|secret| name == *secret)
    };
    let is_root = mount.point == Path::new("/");
    !is_root && (NO_FILES.contains(&mount.kind.as_str()) || mount.point.components().any(named))
}
