//! Whether stdin, stdout or stderr were closed when the program began.
//!
//! Before `main`, the runtime of Rust opens `/dev/null` in place of each that is closed:
//! an answer would be written there, and lost without an error. Later nothing tells it from
//! a `/dev/null` that the caller gave, which other programs open in the same way. So a
//! function looks that the loader calls before the runtime begins.

#![cfg_attr(unix, expect(unsafe_code, reason = "nothing safe runs before the runtime"))]

use crate::failure::Obstacle;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of stdin, stdout and stderr.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// # Errors
/// Stdin was closed: there is nothing to read, not even an end.
pub(crate) fn check_stdin() -> Result<(), Obstacle> {
    check(0, "stdin", "name a file, or pipe something in")
}

/// # Errors
/// Stdout was closed: what is written there would be lost.
pub(crate) fn check_stdout() -> Result<(), Obstacle> {
    check(1, "stdout", ELSEWHERE)
}

/// # Errors
/// Stderr was closed: what is written there would be lost.
#[cfg(unix)]
pub(crate) fn check_stderr() -> Result<(), Obstacle> {
    check(2, "stderr", ELSEWHERE)
}

const ELSEWHERE: &str = "write to a file: -o FILE";

fn check(number: usize, name: &str, hint: &'static str) -> Result<(), Obstacle> {
    match CLOSED[number].load(Ordering::Relaxed) {
        true => Err(Obstacle { what: format!("{name} is closed"), hint }),
        false => Ok(()),
    }
}

#[cfg(unix)]
mod before_main {
    use super::{CLOSED, Ordering};
    use std::ffi::c_int;

    unsafe extern "C" {
        fn fcntl(descriptor: c_int, command: c_int, ...) -> c_int;
    }

    /// Asks for the flags of a descriptor; the same number on every Unix.
    const F_GETFD: c_int = 1;

    /// The loader calls what this section lists.
    // SAFETY: the section holds addresses of functions of C, and this is one. It needs
    // nothing of the runtime, which has not begun.
    #[used]
    #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
    #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        for (closed, descriptor) in CLOSED.iter().zip(0..) {
            // SAFETY: this is the function of C of that name; with this command it takes no
            // third argument, and changes nothing.
            let flags = unsafe { fcntl(descriptor, F_GETFD) };
            closed.store(flags == -1, Ordering::Relaxed);
        }
    }
}
