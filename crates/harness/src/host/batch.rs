//! Several pieces of work, some at a time. Each stays on the thread it began on, and a thread lives
//! until its work is done: the processes of a run are tied to the thread that started them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does `work` for every item, `jobs` of them at a time, in order of the items. After `stop` says
/// so nothing new is begun; what was not begun, or did not come to its end, is `None`.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    work: &(dyn Fn(usize, &T) -> R + Sync),
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    let worker = || {
        while !stop() {
            let index = next.fetch_add(1, Ordering::SeqCst);
            let Some(item) = items.get(index) else { break };
            let result = work(index, item);
            if let Some(slot) = done
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_mut(index)
            {
                *slot = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.clamp(1, items.len().max(1)))
            .map(|_| scope.spawn(worker))
            .collect();
        // A worker that died leaves its item without a result, and the others to their work.
        workers.into_iter().for_each(|worker| drop(worker.join()));
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for jobs in [0, 1, 3, 100] {
            let found = each(&[3u64, 1, 2], jobs, &|| false, &|index, item| {
                (index, item * 10)
            });
            assert_eq!(
                found,
                [Some((0, 30)), Some((1, 10)), Some((2, 20))],
                "{jobs}"
            );
        }
        assert!(each(&[] as &[u8], 2, &|| false, &|_, _| ()).is_empty());
    }

    #[test]
    fn as_many_at_a_time_as_asked() {
        // Passed only by three at once.
        let together = Barrier::new(3);
        let threads = each(&[(); 3], 3, &|| false, &|_, ()| {
            together.wait();
            rustix::thread::gettid().as_raw_nonzero()
        });
        assert_eq!(
            threads.into_iter().flatten().collect::<BTreeSet<_>>().len(),
            3
        );
    }

    #[test]
    fn nothing_new_is_begun_after_a_stop() {
        let begun = AtomicUsize::new(0);
        let stop = || begun.load(Ordering::SeqCst) >= 2;
        let found = each(&[(); 5], 1, &stop, &|index, ()| {
            begun.fetch_add(1, Ordering::SeqCst);
            index
        });
        assert_eq!(found, [Some(0), Some(1), None, None, None]);
    }
}
