//! The pool: one for the process, made when there is work for it, and as large
//! as the largest share of work so far.

use crate::{Threads, has_room};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How often a pool that the system refused is not asked for again.
const PATIENCE: u32 = 1000;

/// The process's pool, if there is one.
struct State {
    pool: Option<Arc<ThreadPool>>,
    /// A number of threads that the system refused.
    refused: usize,
    /// How many times that number, or a larger one, is not asked for.
    patience: u32,
}

static STATE: Mutex<State> = Mutex::new(State { pool: None, refused: 0, patience: 0 });

/// The process that made the pool; 0 while nobody has.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Whether this process may use the pool. A process that was forked from the
/// one that made it has the pool's memory and none of its threads: whoever gave
/// them work would wait forever, and so would whoever waits for [`STATE`], which
/// another thread may have held.
fn owns() -> bool {
    let process = process::id();
    match OWNER.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => true,
        Err(owner) => owner == process,
    }
}

/// The pool, grown to `count` threads or as many as the system gives; `None` if
/// it gives none, or in a process that was forked from the pool's.
fn pool(count: usize) -> Option<Arc<ThreadPool>> {
    if !owns() {
        return None;
    }
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let has = state.pool.as_ref().map_or(0, |pool| pool.current_num_threads());
    if has < count && (count < state.refused || state.patience == 0) {
        state.grow(has, count);
    } else if has < count {
        state.patience -= 1;
    }
    state.pool.clone()
}

impl State {
    /// Replaces the pool by a larger one. The old one's threads end with the
    /// work that they have.
    fn grow(&mut self, has: usize, count: usize) {
        let mut count = count;
        while count > has {
            let made = has_room(count).then(|| {
                ThreadPoolBuilder::new()
                    .num_threads(count)
                    .thread_name(|i| format!("warpfold-{i}"))
                    .build()
            });
            if let Some(Ok(pool)) = made {
                self.pool = Some(Arc::new(pool));
                return;
            }
            (self.refused, self.patience) = (count, PATIENCE);
            count /= 2;
        }
    }
}

impl Threads {
    /// Runs `work` on this thread and on others of the pool, `most` in all at
    /// most. Each call of `work` is one worker; the results, one at least, come
    /// in no order that means anything.
    ///
    /// There are fewer workers where the system refuses threads: `work` takes
    /// what is to be done from something that all share, such as
    /// [`Pieces`](crate::Pieces). In a process that was forked from one with a
    /// pool there is one worker.
    ///
    /// # Panics
    /// Where `work` does.
    pub fn run<R: Send>(self, most: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
        let results = Mutex::new(Vec::new());
        self.each(most, &|| {
            let result = work();
            results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `one` on each worker. Compiled once, whatever the work: many reductions
    /// come here.
    fn each(self, most: usize, one: &(dyn Fn() + Sync)) {
        let count = if most > 1 { self.count().min(most) } else { 1 };
        let pool = if count > 1 { pool(count - 1) } else { None };
        let Some(pool) = pool else { return one() };
        pool.in_place_scope(|scope| {
            for _ in 1..count.min(pool.current_num_threads() + 1) {
                scope.spawn(|_| one());
            }
            one();
        });
    }
}
