//! Pieces of work, handed out in turn.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Pieces `0..count`, each handed out once.
#[derive(Debug)]
pub struct Pieces {
    next: AtomicUsize,
    count: usize,
}

impl Pieces {
    /// This many pieces.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Pieces { next: AtomicUsize::new(0), count }
    }

    /// How many pieces there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The next piece, until there are none.
    pub fn take(&self) -> Option<usize> {
        // Nothing is published through the counter: relaxed is enough. It
        // cannot wrap: it is only raised while it is below `count` or once
        // more by each thread.
        let piece = self.next.fetch_add(1, Ordering::Relaxed);
        (piece < self.count).then_some(piece)
    }
}
