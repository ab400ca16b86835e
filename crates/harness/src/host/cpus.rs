//! How many CPUs this process and everything it starts may use.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::host::failure::Failure;

/// Leaves the first so many of those we have to what is started from here on. It is for tools that
/// count them: a process that means to can take others.
pub fn limit(most: u32) -> Result<(), Failure> {
    let failed = |error: rustix::io::Errno| {
        Failure::internal("no_cpus", "the number of CPUs cannot be limited")
            .because(&error)
            .so("nothing ran")
    };
    let ours = sched_getaffinity(None).map_err(failed)?;
    let mut fewer = CpuSet::new();
    let kept = (0..CpuSet::MAX_CPU).filter(|cpu| ours.is_set(*cpu));
    kept.take(most as usize).for_each(|cpu| fewer.set(cpu));
    sched_setaffinity(None, &fewer).map_err(failed)
}
