//! More than there is: memory, files in memory, descriptors, processes, depth.

use std::fs::{self, File};
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use super::{Attack, refused};

pub const ATTACKS: &[Attack] = &[
    Attack::new("allocate-mib", allocate),
    Attack::new("fill-mib", fill),
    Attack::new("open-files", open_files),
    Attack::new("start-processes", start_processes),
];

fn number(word: &str) -> io::Result<usize> {
    word.parse().map_err(io::Error::other)
}

fn allocate(mib: &str) -> io::Result<()> {
    let mut held: Vec<u8> = Vec::new();
    held.try_reserve_exact(number(mib)? << 20)
        .map_err(io::Error::other)
}

/// Fills a directory to this size: `/dev/shm 300`.
fn fill(what: &str) -> io::Result<()> {
    let (dir, mib) = what.split_once(' ').ok_or(io::ErrorKind::InvalidInput)?;
    let path = format!("{dir}/attack");
    let filled = number(mib).and_then(|mib| {
        let mut file = File::create(&path)?;
        let block = vec![b'x'; 1 << 20];
        (0..mib).try_for_each(|_| file.write_all(&block))
    });
    fs::remove_file(&path)?;
    filled
}

fn open_files(count: &str) -> io::Result<()> {
    let mut held = Vec::new();
    for _ in 0..number(count)? {
        held.push(File::open("/dev/null")?);
    }
    Ok(())
}

fn start_processes(count: &str) -> io::Result<()> {
    let mut held: Vec<Child> = Vec::new();
    let wanted = number(count)?;
    let mut why = None;
    while held.len() < wanted && why.is_none() {
        match Command::new("sleep")
            .arg("60")
            .stdout(Stdio::null())
            .spawn()
        {
            Ok(child) => held.push(child),
            Err(error) => why = Some(error),
        }
    }
    for child in &mut held {
        child.kill()?;
        child.wait()?;
    }
    why.map_or(Ok(()), |error| {
        Err(refused(format!("after {} processes: {error}", held.len())))
    })
}
