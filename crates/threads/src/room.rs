//! Whether there is memory for threads.
//!
//! A thread whose stack is there, and for which the standard library finds no memory a moment later,
//! ends the process: that is not an error which anybody could hear. So memory is asked for, and given
//! back, before threads are.

use std::hint::black_box;
use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// What a thread takes of the address space: its stack, and what it begins with.
const THREAD: usize = 3 << 20;

/// Whether the system would give memory for so many threads. Another thread may take that before they
/// start: this makes an abort rare, where the address space is limited, and not impossible.
#[must_use]
pub fn has_room(threads: usize) -> bool {
    let mut memory: Vec<u8> = Vec::new();
    let given = memory.try_reserve_exact(threads.saturating_mul(THREAD)).is_ok();
    // Otherwise compilers take it for granted.
    black_box(&memory);
    given
}

/// Starts a thread of a scope, if the system gives one and memory for it.
pub(crate) fn start<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> R + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, R>> {
    if has_room(1) {
        Builder::new().spawn_scoped(scope, work)
    } else {
        Err(io::ErrorKind::OutOfMemory.into())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_room_for_a_few_and_not_for_any_number() {
        assert!(super::has_room(4));
        assert!(!super::has_room(usize::MAX >> 8));
        assert!(!super::has_room(usize::MAX));
    }
}
