//! Threads of their own, for work that blocks: readers of files, feeders of
//! devices.

use crate::room::start;
use std::sync::{Mutex, PoisonError};
use std::thread::scope;

/// Runs `work` on this thread and beside it on new ones, `count` in all or as
/// many as the system gives. A result is `None` where `work` panicked; this
/// thread's comes first.
///
/// # Panics
/// Where `work` does on this thread.
pub fn scoped<R: Send>(count: usize, work: impl Fn() -> R + Sync) -> Vec<Option<R>> {
    scope(|scope| {
        let start = |_| start(scope, &work).ok();
        let others: Vec<_> = (1..count).map_while(start).collect();
        let mut results = vec![Some(work())];
        results.extend(others.into_iter().map(|thread| thread.join().ok()));
        results
    })
}

/// Runs `here` on this thread and `there` on a new one meanwhile, or afterwards
/// if the system refuses it. The second result is `None` if `there` panicked on
/// its own thread.
///
/// # Panics
/// Where `here` does.
pub fn join<A, B: Send>(
    here: impl FnOnce() -> A,
    there: impl FnOnce() -> B + Send,
) -> (A, Option<B>) {
    // Where no thread takes it, it is still there.
    let there = Mutex::new(Some(there));
    let run = || there.lock().unwrap_or_else(PoisonError::into_inner).take().map(|there| there());
    scope(|scope| {
        let thread = start(scope, run);
        let first = here();
        let second = match thread {
            Ok(thread) => thread.join().ok().flatten(),
            Err(_) => run(),
        };
        (first, second)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_done_once_by_each() {
        let calls = Mutex::new(0);
        let results = scoped(3, || *calls.lock().unwrap() += 1);
        assert_eq!(*calls.lock().unwrap(), results.len());
        assert!((1..=3).contains(&results.len()));
        assert_eq!(scoped(0, || 7), [Some(7)]);
        assert_eq!(join(|| 1, || 2), (1, Some(2)));
    }

    #[test]
    fn a_panic_beside_is_told() {
        let (here, there) = join(|| 1, || -> u8 { panic!("on purpose") });
        assert_eq!((here, there), (1, None));
    }
}
