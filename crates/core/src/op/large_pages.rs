//! Large pages for large answers: memory that is written for the first time is handed over page by
//! page, which takes longer than to write it.

/// Asks for large pages where there is room for some in memory that was not written to yet. Whether
/// the system gives them matters for speed alone.
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) fn ask_for<T>(words: &[T]) {
    use core::ffi::{c_int, c_void};

    // As the C library has it, which the standard library is linked with.
    unsafe extern "C" {
        fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }

    /// `MADV_HUGEPAGE`.
    const HUGE: c_int = 14;
    /// The system's pages are no larger, but for some machines, which refuse then.
    const PAGE: usize = 4096;
    /// Of a large page, at least.
    const LARGE: usize = 4 << 20;

    let bytes = size_of_val(words);
    if bytes >= LARGE {
        let start = words.as_ptr().cast::<u8>();
        let skipped = start.align_offset(PAGE).min(bytes);
        let address = start.wrapping_add(skipped).cast_mut();
        // What is said of pages of which a part belongs to others would be of them, too.
        let whole = (bytes - skipped) / PAGE * PAGE;
        // SAFETY: whole pages of the slice, and advice that changes none of their bytes. An error
        // leaves everything as it was.
        let _ = unsafe { madvise(address.cast(), whole, HUGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(super) fn ask_for<T>(_: &[T]) {}
