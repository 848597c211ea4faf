//! Blocks in the order of the file, read ahead of those who work on them.

use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use warpfold_threads::{Ahead, read_ahead};

/// Runs `work` on the blocks that `next` takes off a file called `name`, each
/// with its number; a thread of its own is up to `room` blocks ahead. Nothing
/// more is read once `failed` is set. The second value says how reading went.
pub(crate) fn read_numbered<B: Send, R>(
    name: &str,
    room: usize,
    failed: &AtomicBool,
    mut next: impl FnMut(u64) -> Result<Option<B>> + Send,
    work: impl FnOnce(&Ahead<'_, (u64, B)>) -> R,
) -> (R, Result<()>) {
    let mut number = 0;
    let unread = Mutex::new(None);
    let fetch = || {
        if failed.load(Ordering::Relaxed) {
            return None;
        }
        match next(number) {
            Ok(block) => {
                let block = (number, block?);
                number += 1;
                Some(block)
            }
            Err(error) => {
                unread.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                failed.store(true, Ordering::Relaxed);
                None
            }
        }
    };
    let (result, whole) = read_ahead(room, fetch, work);
    let read = match unread.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None if !whole => Err(Error::format(name, "reading failed")),
        None => Ok(()),
    };
    (result, read)
}
