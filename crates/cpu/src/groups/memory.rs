//! Memory that grows with the groups: the system may refuse it.

use warpfold_core::Error;

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
    items.try_reserve(more).map_err(|_| OutOfMemory)
}

/// So many items that are zero.
pub(super) fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut items = Vec::new();
    items.try_reserve_exact(len).map_err(|_| OutOfMemory)?;
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

/// Finds out whether there are so many bytes, before they are asked for one by one.
///
/// # Errors
/// There are not.
pub fn check_memory(bytes: usize) -> Result<(), OutOfMemory> {
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| OutOfMemory)
}
