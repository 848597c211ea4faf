//! Turns panics of other projects' decoders into errors.

use crate::{Error, Result};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside [`quietly`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder; a panic in it, which only damaged data can cause, is an
/// error like any other.
pub(crate) fn quietly<T>(name: &str, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    let outer = GUARDED.replace(true);
    // What the decoder leaves behind is dropped, so a broken invariant of its
    // own cannot be seen; batches are plain memory.
    let result = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(outer);
    result.unwrap_or_else(|_| Err(Error::format(name, "damaged: the decoder failed")))
}

/// Keeps the panics that reading turns into errors from being printed.
///
/// Some decoders panic on damaged data. [`Block::decode`](crate::Block::decode) returns
/// an error then, but the panic hook has already written to stderr. A program that
/// wants one message instead of two calls this function once, at its start. All other
/// panics go to the previous hook.
pub fn hide_guarded_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_decoder_is_an_error() {
        hide_guarded_panics();
        let result: Result<()> = quietly("f.parquet", || panic!("index out of bounds"));
        let message = result.unwrap_err().to_string();
        assert_eq!(message, "f.parquet: damaged: the decoder failed");
        assert!(!GUARDED.get());
    }
}
