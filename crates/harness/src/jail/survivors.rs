//! Counting what is alive in a pid namespace, from outside.

use std::fs;

/// Processes of a namespace and the memory they hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    pub alive: u64,
    pub memory_kib: u64,
}

/// Walks /proc once. A zombie is not alive: it only waits to be reaped.
pub fn tally(pid_namespace: &str) -> Tally {
    let mut tally = Tally::default();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_pid = entry.file_name().to_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()));
        if !is_pid {
            continue;
        }
        let dir = entry.path();
        let here = fs::read_link(dir.join("ns/pid")).is_ok_and(|link| link.as_os_str() == pid_namespace);
        if !here {
            continue;
        }
        let status = fs::read_to_string(dir.join("status")).unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or_default();
        if field("State:").starts_with(['Z', 'X']) {
            continue;
        }
        tally.alive += 1;
        tally.memory_kib += field("VmRSS:").split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_this_process_in_its_own_namespace() {
        let own = fs::read_link("/proc/self/ns/pid").unwrap().display().to_string();
        let here = tally(&own);
        assert!(here.alive >= 1 && here.memory_kib > 0);
        assert_eq!(tally("pid:[0]"), Tally::default());
    }
}
