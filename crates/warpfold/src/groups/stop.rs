//! Work that its caller may end before it is done.

use core::sync::atomic::{AtomicBool, Ordering};
use warpfold_core::{Error, Result};
use warpfold_threads::Pieces;

/// What the caller sets when nobody wants the answer any more; nothing, if that never happens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stop<'a>(Option<&'a AtomicBool>);

impl<'a> Stop<'a> {
    pub(super) fn at(flag: &'a AtomicBool) -> Self {
        Stop(Some(flag))
    }

    /// Nothing is published through the flag: relaxed is enough.
    fn is_set(self) -> bool {
        self.0.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// The next piece, until there are none or the work is to end. Who takes pieces calls
    /// [`check`](Self::check) behind the last: what was made of some of them is no answer.
    pub(super) fn take(self, pieces: &Pieces) -> Option<usize> {
        if self.is_set() { None } else { pieces.take() }
    }

    /// # Errors
    /// The work is to end.
    pub(super) fn check(self) -> Result<()> {
        if !self.is_set() {
            return Ok(());
        }
        Err(Error::Groups {
            what: "the reduction was stopped".into(),
            hint: "its caller asked for that".into(),
        })
    }
}
