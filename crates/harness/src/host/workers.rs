//! The same work for many items, some at a time: the only pool of threads there is. An item stays
//! on the thread it began on, and a thread lives until its work is done: the processes of a run are
//! tied to the thread that started them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};

/// Found once: the kernel is asked by some twenty system calls.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Does `work` for every item, `jobs` of them at a time, in order of the items. After `stop` says
/// so nothing new is begun; what was not begun, or did not come to its end, is `None`.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    work: &(dyn Fn(usize, &T) -> R + Sync),
) -> Vec<Option<R>> {
    let jobs = jobs.clamp(1, items.len().max(1));
    // A worker that died leaves its item without a result, and the others to their work.
    let (results, _) = collect(vec![(); jobs], items, stop, &|(), at, item| work(at, item));
    results
}

/// Does `work` for every item, one at a time with each of `states`, until all are done. Results are
/// in the order of the items.
pub fn each_with<S: Sync, T: Sync, R: Send>(
    states: &[S],
    items: &[T],
    work: &(dyn Fn(&S, &T) -> R + Sync),
) -> Vec<R> {
    let states = states.iter().collect();
    let (results, panicked) = collect(states, items, &|| false, &|state, _, item| {
        work(state, item)
    });
    whole(results, panicked)
}

/// Does one thing beside another, which is done on this thread. `None` is one that did not come to its
/// end.
pub fn both<A: Send, B>(
    beside: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> (Option<A>, B) {
    let waiting = Mutex::new(Some(beside));
    let take = || {
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    };
    std::thread::scope(|scope| {
        let started =
            std::thread::Builder::new().spawn_scoped(scope, || take().map(|beside| beside()));
        let here = here();
        match started {
            Ok(beside) => (beside.join().ok().flatten(), here),
            // The system gave no thread: then one after the other.
            Err(_) => (take().map(|beside| beside()), here),
        }
    })
}

/// Does `work` for every item, `threads` at a time; answers are in the order of the items.
pub fn for_all<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if threads.min(items.len()) <= 1 {
        return items.iter().map(work).collect();
    }
    let states = vec![(); threads.min(items.len())];
    let (results, panicked) = collect(states, items, &|| false, &|(), _, item| work(item));
    whole(results, panicked)
}

/// Does `work` for every item, `threads` at a time, and hands each answer to `take` on this thread,
/// about in order and never far behind.
pub fn for_all_in_passing<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> Option<R> + Sync,
    mut take: impl FnMut(R),
) {
    let (sender, receiver) = mpsc::sync_channel(1024);
    let next = AtomicUsize::new(0);
    let senders = vec![sender; threads.max(1)];
    let worker = |sender: mpsc::SyncSender<R>| {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::SeqCst)) {
            if work(item).is_some_and(|answer| sender.send(answer).is_err()) {
                break;
            }
        }
    };
    let panicked = share(senders, &worker, || {
        receiver.into_iter().for_each(&mut take)
    });
    // What no thread took, because the system gave none, is done here.
    while let Some(item) = items.get(next.fetch_add(1, Ordering::SeqCst)) {
        work(item).into_iter().for_each(&mut take);
    }
    whole(Vec::<Option<R>>::new(), panicked);
}

type Panic = Box<dyn Any + Send>;

/// Every result in its place, and what a worker panicked with.
fn collect<S: Send, T: Sync, R: Send>(
    mut states: Vec<S>,
    items: &[T],
    stop: &(dyn Fn() -> bool + Sync),
    work: &(dyn Fn(&S, usize, &T) -> R + Sync),
) -> (Vec<Option<R>>, Option<Panic>) {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    let worker = |state: S| {
        while !stop() {
            let at = next.fetch_add(1, Ordering::SeqCst);
            let Some(item) = items.get(at) else { break };
            let result = work(&state, at, item);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = done.get_mut(at) {
                *place = Some(result);
            }
        }
    };
    // This thread works too: one that the system does not give leaves its share to the others.
    let (own, mut own_panic) = (states.pop(), None);
    let panicked = share(states, &worker, || {
        let work = AssertUnwindSafe(|| own.into_iter().for_each(&worker));
        own_panic = catch_unwind(work).err();
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    (done, panicked.or(own_panic))
}

/// A thread for each state, as far as the system gives them, and `meanwhile` on this one. Ends when
/// all of them have.
fn share<S: Send>(
    states: Vec<S>,
    worker: &(dyn Fn(S) + Sync),
    meanwhile: impl FnOnce(),
) -> Option<Panic> {
    std::thread::scope(|scope| {
        let start = |state| std::thread::Builder::new().spawn_scoped(scope, move || worker(state));
        let workers: Vec<_> = states
            .into_iter()
            .filter_map(|state| start(state).ok())
            .collect();
        meanwhile();
        workers
            .into_iter()
            .fold(None, |first, worker| first.or(worker.join().err()))
    })
}

/// All results. A panic of a worker goes on here: nothing may pass for done that is not.
fn whole<R>(results: Vec<Option<R>>, panicked: Option<Panic>) -> Vec<R> {
    match panicked {
        Some(panic) => std::panic::resume_unwind(panic),
        None => results.into_iter().flatten().collect(),
    }
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

    #[test]
    fn every_state_works_and_a_panic_is_not_swallowed() {
        let found = each_with(&[(), ()], &[10, 20, 30], &|(), item| *item);
        assert_eq!(found, [10, 20, 30]);
        let broken = || for_all(2, &[1, 2, 3], |n| assert_ne!(*n, 2));
        assert!(std::panic::catch_unwind(broken).is_err());
        let mut taken = Vec::new();
        for_all_in_passing(
            3,
            &[1, 2, 3, 4],
            |n| (n % 2 == 0).then_some(*n),
            |n| taken.push(n),
        );
        taken.sort_unstable();
        assert_eq!(taken, [2, 4]);
    }
}
