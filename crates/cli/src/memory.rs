//! Memory that the system refuses: an error, as any other. Where code can go on without, it
//! asks by `try_reserve`; elsewhere the standard library ends the process by `abort`, which
//! has a handler here. So there is no allocation, of ours or of others', that dumps core.

#![expect(unsafe_code, reason = "an allocator that notes refusals, and a handler of a signal")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The bytes of the last request that was refused: 0 if none was.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

struct Noted;

#[global_allocator]
static ALLOCATOR: Noted = Noted;

fn noted(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        REFUSED.store(bytes, Relaxed);
    }
    memory
}

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Noted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        noted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        noted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        noted(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// From now on a refused allocation ends the process with an error and status 1.
#[cfg(unix)]
pub(crate) fn watch() {
    use signal_hook::{consts::SIGABRT, low_level};
    let give_up = || {
        let bytes = REFUSED.load(Relaxed);
        if bytes > 0 {
            crate::failure::out_of_memory(bytes);
            crate::sink::remove_files();
            low_level::exit(1);
        }
    };
    // SAFETY: `abort` raises the signal in the thread whose allocation was refused, outside of
    // the allocator, so that the action runs as a function called there. It takes no lock that
    // the thread may hold, and does not allocate. A signal of another origin changes nothing:
    // it is the default action's.
    let _ = unsafe { low_level::register(SIGABRT, give_up) };
}

#[cfg(not(unix))]
pub(crate) fn watch() {}
