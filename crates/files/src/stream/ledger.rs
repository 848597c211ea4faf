//! Where blocks begin, when that is only known once those before them have
//! been decoded.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};

/// The rows of blocks as they become known, in any order.
#[derive(Debug)]
pub(crate) struct Ledger {
    book: Mutex<Book>,
    changed: Condvar,
}

#[derive(Debug)]
struct Book {
    /// Rows of blocks whose predecessors are not all known.
    early: BTreeMap<u64, u64>,
    /// Starts of blocks that were not requested yet.
    starts: BTreeMap<u64, u64>,
    next: u64,
    next_start: u64,
    aborted: bool,
}

impl Ledger {
    /// A ledger whose first block begins at `start`.
    pub(crate) fn new(start: u64) -> Self {
        let book = Book {
            early: BTreeMap::new(),
            starts: BTreeMap::from([(0, start)]),
            next: 0,
            next_start: start,
            aborted: false,
        };
        Ledger { book: Mutex::new(book), changed: Condvar::new() }
    }

    /// Says how many rows block `block` has.
    pub(crate) fn record(&self, block: u64, rows: u64) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.early.insert(block, rows);
        while let Some(rows) = {
            let next = book.next;
            book.early.remove(&next)
        } {
            book.next += 1;
            book.next_start = book.next_start.saturating_add(rows);
            let (next, start) = (book.next, book.next_start);
            book.starts.insert(next, start);
        }
        self.changed.notify_all();
    }

    /// Where block `block` begins; waits until that is known. `None` once the
    /// ledger is aborted. May be asked once for each block.
    pub(crate) fn start_of(&self, block: u64) -> Option<u64> {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if book.aborted {
                return None;
            }
            if let Some(start) = book.starts.remove(&block) {
                return Some(start);
            }
            book = self.changed.wait(book).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Where the next block after all recorded ones would begin.
    pub(crate) fn end(&self) -> u64 {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).next_start
    }

    /// Wakes everybody who waits: there was an error.
    pub(crate) fn abort(&self) {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).aborted = true;
        self.changed.notify_all();
    }
}
