//! More privilege than was given: set-id bits, devices, capabilities, another uid.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use rustix::process::{Resource, Rlimit};
use rustix::thread::Uid;

use super::{Attack, refused};

pub const ATTACKS: &[Attack] = &[
    Attack::new("set-id-bit", set_id_bit),
    Attack::new("device-node", device_node),
    Attack::new("file-capability", file_capability),
    Attack::new("hold-capabilities", hold_capabilities),
    Attack::new("gain-privileges", gain_privileges),
    Attack::new("become-uid", become_uid),
    Attack::new("raise-limit", raise_limit),
    Attack::new("spare-from-oom", |pid| {
        fs::write(format!("/proc/{pid}/oom_score_adj"), "-1000")
    }),
];

/// A file that runs as its owner, by mode: `4755`.
fn set_id_bit(mode: &str) -> io::Result<()> {
    let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
    fs::write("set-id", "x")?;
    let tried = fs::set_permissions("set-id", Permissions::from_mode(mode));
    let found = fs::metadata("set-id")?.permissions().mode() & 0o6000;
    fs::remove_file("set-id")?;
    tried?;
    if found == 0 {
        Err(refused("the bit is not there"))
    } else {
        Ok(())
    }
}

/// A block or character device, as `b 7 0`.
fn device_node(device: &str) -> io::Result<()> {
    let words: Vec<&str> = device.split(' ').collect();
    let [kind, major, minor] = words.as_slice() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let kind = if *kind == "b" {
        FileType::BlockDevice
    } else {
        FileType::CharacterDevice
    };
    let number = |word: &str| word.parse::<u32>().map_err(io::Error::other);
    let device = rustix::fs::makedev(number(major)?, number(minor)?);
    let made = rustix::fs::mknodat(CWD, "device", kind, Mode::from_raw_mode(0o666), device);
    let _ = fs::remove_file("device");
    Ok(made?)
}

fn file_capability(_: &str) -> io::Result<()> {
    // Version 2, effective, every capability of the first word.
    let value = [
        1u8, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    fs::write("capable", "x")?;
    let tried = rustix::fs::setxattr(
        "capable",
        "security.capability",
        &value,
        XattrFlags::empty(),
    );
    fs::remove_file("capable")?;
    Ok(tried?)
}

fn status_word(name: &str) -> io::Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let found = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found
        .map(|word| word.trim().to_owned())
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// One of the sets of `/proc/self/status`: `CapEff`.
fn hold_capabilities(set: &str) -> io::Result<()> {
    let held = u64::from_str_radix(&status_word(set)?, 16).map_err(io::Error::other)?;
    if held == 0 {
        Err(refused("the set is empty"))
    } else {
        Ok(())
    }
}

fn gain_privileges(_: &str) -> io::Result<()> {
    if status_word("NoNewPrivs")? == "1" {
        Err(refused("no new privileges"))
    } else {
        Ok(())
    }
}

fn become_uid(uid: &str) -> io::Result<()> {
    let uid = Uid::from_raw(uid.parse().map_err(io::Error::other)?);
    Ok(rustix::thread::set_thread_res_uid(uid, uid, uid)?)
}

fn raise_limit(resource: &str) -> io::Result<()> {
    let resource = match resource {
        "processes" => Resource::Nproc,
        "files" => Resource::Nofile,
        "memory" => Resource::Data,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let now = rustix::process::getrlimit(resource);
    let Some(most) = now.maximum else {
        return Ok(());
    };
    Ok(rustix::process::setrlimit(
        resource,
        Rlimit {
            current: Some(most + 1),
            maximum: Some(most + 1),
        },
    )?)
}
