//! Memory that grows with the groups: the system may refuse it.

use std::sync::{Mutex, PoisonError};
use warpfold_core::{Error, prefetch};

/// What growing leaves to others: buffers of readers and threads end the program where they find no memory.
const HEADROOM: usize = 64 << 20;

/// Less than this grows without a look at what is left.
pub(super) const LITTLE: usize = 1 << 20;

/// One thread grows at a time, so that two do not take the same headroom.
static GROWING: Mutex<()> = Mutex::new(());

/// There is no memory for another group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// Whoever knows how many groups and rows there were says so.
impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Error {
        Error::OutOfMemory { groups: 0, rows: 0 }
    }
}

/// Makes room for more items.
#[inline(always)]
pub(super) fn make_room<T>(items: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    if items.capacity() - items.len() < more {
        return refill(items, more);
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn refill<T>(items: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    // By half of what is there: of large arrays less is left empty than if they doubled.
    let more = more.max(items.capacity() / 2);
    let _one = GROWING.lock().unwrap_or_else(PoisonError::into_inner);
    items.try_reserve_exact(more).map_err(|_| OutOfMemory)?;
    let enough = items.capacity() * size_of::<T>() <= LITTLE || check_memory(HEADROOM).is_ok();
    if !enough {
        items.shrink_to_fit();
    }
    enough.then_some(()).ok_or(OutOfMemory)
}

/// So many items that are zero.
pub(super) fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut items = Vec::new();
    refill(&mut items, len)?;
    items.resize(len, T::default());
    Ok(items)
}

/// Makes items as many as there are groups.
pub(super) fn extend<T: Clone>(
    items: &mut Vec<T>,
    groups: usize,
    none: T,
) -> Result<(), OutOfMemory> {
    if groups > items.len() {
        make_room(items, groups - items.len())?;
        items.resize(groups, none);
    }
    Ok(())
}

/// How many rows before its turn a state is asked for: those of many groups are in no near cache.
pub(super) const AHEAD: usize = 16;

/// Asks for the state of the group whose turn comes some rows after `row`.
#[inline(always)]
pub(super) fn ask_ahead<T>(states: &[T], groups: &[u32], row: usize) {
    if let Some(&group) = groups.get(row + AHEAD) {
        ask(states, group);
    }
}

/// Asks for the state of a group.
#[inline(always)]
pub(super) fn ask<T>(states: &[T], group: u32) {
    prefetch::near(states.as_ptr().wrapping_add(group as usize).cast());
}

/// Finds out whether there are so many bytes, before they are asked for one by one.
///
/// # Errors
/// There are not.
#[inline(never)]
pub fn check_memory(bytes: usize) -> Result<(), OutOfMemory> {
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| OutOfMemory)
}
