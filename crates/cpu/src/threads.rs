//! Worker threads: as many as asked for, taking pieces of work in turn.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// More threads than this are never started.
const MOST: usize = 1024;

/// How many threads may work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// As many as the global Rayon pool has.
    #[default]
    All,
    /// This many; 0 counts as 1, and 1024 is the most.
    Exactly(usize),
}

impl Threads {
    /// The number of threads that will work.
    #[must_use]
    pub fn count(self) -> usize {
        match self {
            Threads::All => rayon::current_num_threads(),
            Threads::Exactly(n) => n.clamp(1, MOST),
        }
    }

    /// Runs `work` on up to `count` threads with everything it borrows. Each
    /// call of `work` is one worker; the results come in no order that means
    /// anything.
    pub(crate) fn run<R: Send>(self, most: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
        let count = self.count().min(most);
        if count <= 1 {
            return vec![work()];
        }
        let results = Mutex::new(Vec::with_capacity(count));
        let spawn = || {
            rayon::scope(|scope| {
                for _ in 0..count {
                    scope.spawn(|_| {
                        let result = work();
                        results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                    });
                }
            });
        };
        match self {
            Threads::Exactly(_) if self.count() != rayon::current_num_threads() => {
                match pool(self.count()) {
                    Some(pool) => pool.install(spawn),
                    // The system gives no more threads: the ones there are do it.
                    None => spawn(),
                }
            }
            _ => spawn(),
        }
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pool of `n` threads, made once: starting threads costs more than many
/// reductions.
fn pool(n: usize) -> Option<Arc<rayon::ThreadPool>> {
    static POOLS: OnceLock<Mutex<HashMap<usize, Arc<rayon::ThreadPool>>>> = OnceLock::new();
    let pools = POOLS.get_or_init(Mutex::default);
    let mut pools = pools.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.get(&n) {
        return Some(Arc::clone(pool));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().ok()?;
    let pool = Arc::new(pool);
    pools.insert(n, Arc::clone(&pool));
    Some(pool)
}

/// Pieces `0..count`, each handed out once.
#[derive(Debug)]
pub(crate) struct Pieces {
    next: AtomicUsize,
    count: usize,
}

impl Pieces {
    pub(crate) fn new(count: usize) -> Self {
        Pieces { next: AtomicUsize::new(0), count }
    }

    /// How many pieces there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The next piece, until there are none.
    pub(crate) fn take(&self) -> Option<usize> {
        // Nothing is published through the counter: relaxed is enough. It
        // cannot wrap: it is only raised while it is below `count` or once
        // more by each thread.
        let piece = self.next.fetch_add(1, Ordering::Relaxed);
        (piece < self.count).then_some(piece)
    }
}
