//! What several examples take times with.

#![allow(dead_code, reason = "no example needs all of it")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The processor time of this thread; where that cannot be asked, the time that passes.
pub(super) fn thread_time() -> Duration {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    {
        #[repr(C)]
        struct Time {
            seconds: i64,
            nanoseconds: i64,
        }
        unsafe extern "C" {
            fn clock_gettime(clock: i32, time: *mut Time) -> i32;
        }
        const THREAD: i32 = 3;
        let mut time = Time { seconds: 0, nanoseconds: 0 };
        // SAFETY: the standard library links the C library, whose function this is; on
        // Linux of 64 bits `timespec` has these two fields.
        let status = unsafe { clock_gettime(THREAD, &raw mut time) };
        assert_eq!(status, 0, "Linux has a clock for each thread");
        Duration::new(time.seconds.unsigned_abs(), time.nanoseconds as u32)
    }
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    passed()
}

/// The processor time of one thread, which other processes do not disturb, or the time that passes for several.
pub(super) fn time_of(threads: usize) -> Duration {
    if threads == 1 { thread_time() } else { passed() }
}

fn passed() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Asks for pages of 2 MiB, as NumPy does for its arrays: where the system gives them
/// only to those who ask, small ones alone cost a third of the speed.
pub(super) fn ask_for_huge_pages(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        unsafe extern "C" {
            fn madvise(start: *mut u8, bytes: usize, advice: i32) -> i32;
        }
        const HUGE: usize = 2 << 20;
        const ADVICE: i32 = 14;
        let skip = start.align_offset(HUGE);
        if let Some(bytes) = bytes.checked_sub(skip).filter(|&bytes| bytes >= HUGE) {
            // SAFETY: the C library's function; whole pages of an allocation, whose
            // contents the advice leaves alone. It may be refused.
            unsafe { madvise(start.wrapping_add(skip), bytes / HUGE * HUGE, ADVICE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}
