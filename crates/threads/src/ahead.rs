//! Reading ahead: one thread fetches what others work on.

use crate::room::start;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::scope;

/// Items in the order in which they are fetched, for any number of threads.
pub struct Ahead<'a, T> {
    from: From<'a, T>,
}

enum From<'a, T> {
    /// A thread fetches them.
    Thread(Mutex<Receiver<T>>),
    /// Whoever wants one fetches it.
    Here(&'a Mutex<dyn FnMut() -> Option<T> + Send + 'a>),
}

impl<T> Ahead<'_, T> {
    /// The next item, until there are none.
    pub fn take(&self) -> Option<T> {
        match &self.from {
            From::Thread(items) => items.lock().unwrap_or_else(PoisonError::into_inner).recv().ok(),
            From::Here(fetch) => (fetch.lock().unwrap_or_else(PoisonError::into_inner))(),
        }
    }
}

/// Runs `work` on what `fetch` fetches until it says `None`. A thread of its own
/// fetches up to `room` items ahead; if the system refuses it, whoever takes an
/// item fetches it.
///
/// Also says whether `fetch` came to its end: if it panicked on its own thread,
/// items are missing.
///
/// # Panics
/// Where `work` does.
pub fn read_ahead<T: Send, R>(
    room: usize,
    fetch: impl FnMut() -> Option<T> + Send,
    work: impl FnOnce(&Ahead<'_, T>) -> R,
) -> (R, bool) {
    let fetch = Mutex::new(fetch);
    let (sender, receiver) = sync_channel(room);
    scope(|scope| {
        let fetch = &fetch;
        let thread = start(scope, move || {
            let mut fetch = fetch.lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(item) = fetch() {
                // Nobody wants more.
                if sender.send(item).is_err() {
                    break;
                }
            }
        });
        match thread {
            Ok(thread) => {
                let ahead = Ahead { from: From::Thread(Mutex::new(receiver)) };
                let result = work(&ahead);
                // Without a receiver the thread ends.
                drop(ahead);
                (result, thread.join().is_ok())
            }
            Err(_) => (work(&Ahead { from: From::Here(fetch) }), true),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_to(n: u32) -> impl FnMut() -> Option<u32> + Send {
        let mut next = 0;
        move || {
            next += 1;
            (next <= n).then_some(next)
        }
    }

    #[test]
    fn items_come_in_order_and_end() {
        let all = |ahead: &Ahead<'_, u32>| core::iter::from_fn(|| ahead.take()).collect::<Vec<_>>();
        assert_eq!(read_ahead(2, count_to(5), all), (vec![1, 2, 3, 4, 5], true));
        // As where the thread is refused.
        let fetch = Mutex::new(count_to(5));
        assert_eq!(all(&Ahead { from: From::Here(&fetch) }), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn nobody_waits_for_what_nobody_takes() {
        assert_eq!(read_ahead(1, count_to(1_000_000), |ahead| ahead.take()), (Some(1), true));
    }

    #[test]
    fn a_reader_that_panics_is_told() {
        let mut next = 0;
        let fetch = || {
            next += 1;
            assert!(next < 3, "on purpose");
            Some(next)
        };
        let (items, whole) =
            read_ahead(4, fetch, |ahead| core::iter::from_fn(|| ahead.take()).count());
        assert_eq!((items, whole), (2, false));
    }
}
