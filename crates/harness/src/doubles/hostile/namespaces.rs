//! Another view of the machine: mounts, roots and namespaces.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use cto_jail::hostile::{new_namespace, set_host_name};
use rustix::mount::{MountFlags, UnmountFlags};

use super::Attack;

pub const ATTACKS: &[Attack] = &[
    Attack::new("new-namespace", new_namespace),
    Attack::new("join-namespace", join_namespace),
    Attack::new("mount-tmpfs", |path| {
        Ok(rustix::mount::mount(
            c"tmpfs",
            path,
            c"tmpfs",
            MountFlags::empty(),
            c"size=64k",
        )?)
    }),
    Attack::new("mount-proc", |path| {
        Ok(rustix::mount::mount(
            c"proc",
            path,
            c"proc",
            MountFlags::empty(),
            c"",
        )?)
    }),
    Attack::new("bind-mount", |path| {
        Ok(rustix::mount::mount_bind("/", path)?)
    }),
    Attack::new("remount-writable", |path| {
        Ok(rustix::mount::mount_remount(path, MountFlags::BIND, c"")?)
    }),
    Attack::new("unmount", |path| {
        Ok(rustix::mount::unmount(path, UnmountFlags::DETACH)?)
    }),
    Attack::new("change-root", |path| std::os::unix::fs::chroot(path)),
    Attack::new("pivot-root", |path| {
        Ok(rustix::process::pivot_root(path, path)?)
    }),
    Attack::new("set-host-name", set_host_name),
];

fn join_namespace(path: &str) -> io::Result<()> {
    let namespace = File::open(path)?;
    Ok(rustix::thread::move_into_link_name_space(
        namespace.as_fd(),
        None,
    )?)
}
