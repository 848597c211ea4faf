//! Which walks this process has taken, for readers who want to know: a flag for each.

use core::sync::atomic::{AtomicU32, Ordering};

/// How elements are brought to what reduces them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Walk {
    /// Runs of elements that lie together, one after the other, into a state of each
    /// thread.
    Runs,
    /// Rows where they lie, for all outputs, without states.
    Rows,
    /// Columns where they lie.
    Columns,
    /// Rows of copies that fit the first cache.
    CopiedRows,
    /// Columns of such copies.
    CopiedColumns,
    /// Runs or columns into a state of each output.
    States,
}

impl Walk {
    /// All of them.
    pub const ALL: [Walk; 6] = [
        Walk::Runs,
        Walk::Rows,
        Walk::Columns,
        Walk::CopiedRows,
        Walk::CopiedColumns,
        Walk::States,
    ];

    /// A line for readers.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Walk::Runs => "runs of elements, into a state of each thread",
            Walk::Rows => "rows where they lie",
            Walk::Columns => "columns where they lie",
            Walk::CopiedRows => "rows, copied together in the cache",
            Walk::CopiedColumns => "columns, copied together in the cache",
            Walk::States => "a state for each output",
        }
    }
}

static TAKEN: AtomicU32 = AtomicU32::new(0);

/// Notes that a walk was taken.
pub fn note(walk: Walk) {
    let flag = 1 << walk as u32;
    // Threads that reduce small arrays only read it.
    if TAKEN.load(Ordering::Relaxed) & flag == 0 {
        TAKEN.fetch_or(flag, Ordering::Relaxed);
    }
}

/// The walks that were taken in this process since the last call, in the order of
/// [`Walk::ALL`].
#[must_use]
pub fn take() -> Vec<Walk> {
    let taken = TAKEN.swap(0, Ordering::Relaxed);
    Walk::ALL.into_iter().filter(|&walk| taken >> walk as u32 & 1 == 1).collect()
}
