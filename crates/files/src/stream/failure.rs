//! The error that comes first in the file, whoever meets one first.

use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The error of several threads that comes first in the source, whoever meets
/// one first: what is said of a damaged file is the same every time.
///
/// Work is handed out in order, so whatever precedes a failure is already in
/// somebody's hands; it is finished, and what follows is dropped.
pub(crate) struct Failure {
    /// The place of the error, `u64::MAX` while there is none.
    place: AtomicU64,
    error: Mutex<Option<(u64, Error)>>,
}

impl Failure {
    pub(crate) fn new() -> Failure {
        Failure { place: AtomicU64::new(u64::MAX), error: Mutex::new(None) }
    }

    /// `place` orders the work: the number of a block, the index of an element.
    pub(crate) fn record(&self, place: u64, error: Error) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|&(earlier, _)| place < earlier) {
            self.place.store(place, Ordering::Relaxed);
            *first = Some((place, error));
        }
    }

    pub(crate) fn precedes(&self, place: u64) -> bool {
        self.place.load(Ordering::Relaxed) < place
    }

    pub(crate) fn into_result(self) -> Result<()> {
        match self.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }
}
