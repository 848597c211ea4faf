//! How many threads may work.

use std::sync::atomic::{AtomicUsize, Ordering};

/// More threads than this are never started.
const MOST: usize = 1024;

/// How many threads may work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// As many as the environment variable `RAYON_NUM_THREADS` says, or else as
    /// many as the process has processors; 1024 is the most.
    #[default]
    All,
    /// This many; 0 counts as 1, and 1024 is the most.
    Exactly(usize),
}

impl Threads {
    /// The number of threads that may work. Asking starts none.
    #[must_use]
    pub fn count(self) -> usize {
        let count = match self {
            Threads::All => all(),
            Threads::Exactly(n) => n,
        };
        count.clamp(1, MOST)
    }
}

/// [`Threads::Exactly`] this many.
impl From<usize> for Threads {
    fn from(count: usize) -> Threads {
        Threads::Exactly(count)
    }
}

/// What [`Threads::All`] stands for, found out once.
fn all() -> usize {
    // No lock: a process that is forked while another thread holds it would
    // wait forever.
    static ALL: AtomicUsize = AtomicUsize::new(0);
    match ALL.load(Ordering::Relaxed) {
        0 => {
            let all = asked()
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
            ALL.store(all, Ordering::Relaxed);
            all
        }
        all => all,
    }
}

/// What the environment asks for; 0 and what is not a number ask for nothing.
fn asked() -> Option<usize> {
    let text = std::env::var("RAYON_NUM_THREADS").ok()?;
    text.trim().parse().ok().filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_clamped() {
        assert_eq!(Threads::Exactly(0).count(), 1);
        assert_eq!(Threads::Exactly(7).count(), 7);
        assert_eq!(Threads::Exactly(usize::MAX).count(), MOST);
        assert!((1..=MOST).contains(&Threads::All.count()));
    }
}
