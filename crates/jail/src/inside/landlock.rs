//! Landlock: even if a mount were wrong, writes go to workspace, scratch and temporary files only.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::FileType;

use crate::spec::{Mount, STAND_IN_DIR};

/// Restricts this process and its children. Returns what the kernel took, in words.
pub fn restrict(mounts: &[Mount]) -> io::Result<String> {
    let abi = ABI::V6;
    let (all, read) = (AccessFs::from_all(abi), AccessFs::from_read(abi));
    let device = AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::IoctlDev
        | AccessFs::ReadDir
        | AccessFs::Truncate;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let system: [(&str, BitFlags<AccessFs>); 15] = [
        ("/", AccessFs::ReadDir.into()),
        ("/usr", read),
        ("/bin", read),
        ("/sbin", read),
        ("/lib", read),
        ("/lib32", read),
        ("/lib64", read),
        ("/etc", read),
        (STAND_IN_DIR, read),
        ("/proc", read | AccessFs::WriteFile),
        ("/sys", read),
        ("/dev", device),
        ("/dev/shm", all),
        ("/dev/pts", device),
        ("/tmp", all),
    ];
    // A second name of the jail's own /tmp needs no rule of its own while that has the first.
    let second = mounts.iter().any(|mount| mount.target == Path::new("/tmp"));
    let second = second.then_some((Path::new("/var/tmp"), all));
    let declared = mounts.iter().map(|mount| {
        (
            mount.target.as_path(),
            if mount.writable { all } else { read },
        )
    });
    for (path, access) in system
        .iter()
        .map(|(path, access)| (Path::new(path), *access))
        .chain(second)
        .chain(declared)
    {
        // A directory this system does not have needs no rule.
        let Ok(fd) = PathFd::new(path) else { continue };
        let mode = rustix::fs::fstat(&fd)?.st_mode;
        let access = if FileType::from_raw_mode(mode).is_dir() {
            access
        } else {
            access & AccessFs::from_file(abi)
        };
        ruleset = ruleset
            .add_rule(PathBeneath::new(fd, access))
            .map_err(io::Error::other)?;
    }
    let status = ruleset.restrict_self().map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok("fully enforced".into()),
        RulesetStatus::PartiallyEnforced => Ok("enforced as far as this kernel can".into()),
        RulesetStatus::NotEnforced => Err(io::Error::other("this kernel has no Landlock")),
    }
}
