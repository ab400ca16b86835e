//! The same thing for many items, a few at a time. No process is started from here: those are tied
//! to the thread of their run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does `each` for every item, `threads` at a time; answers are in the order of the items.
pub fn for_all<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    each: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let answer = each(item);
            answers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(at, answer);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            // A thread the system does not give leaves its share to the others.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    answers
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .into_values()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_keep_their_order() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 2, 7, 200] {
            assert_eq!(
                for_all(threads, &items, |n| n * 2),
                items.iter().map(|n| n * 2).collect::<Vec<_>>()
            );
        }
        assert!(for_all(4, &[] as &[u8], |n| *n).is_empty());
    }
}
