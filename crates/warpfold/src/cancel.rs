//! Reductions that nobody waits for any more.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use warpfold_core::{Error, Result};
use warpfold_threads::Pieces;

/// Ends reductions from another thread: those that were made with it, by
/// [`Reduction::until`](crate::Reduction::until). Its clones are the same token.
///
/// ```
/// use warpfold::{CancelToken, Error, Op, Reduction};
///
/// let token = CancelToken::new();
/// let sum = Reduction::of(Op::Sum).until(&token);
/// assert_eq!(sum.run(&[1.0, 2.0])?.number::<f64>(Op::Sum), Some(3.0));
///
/// let other = token.clone();
/// std::thread::spawn(move || other.cancel()).join().expect("it does not panic");
/// assert_eq!(sum.run(&[1.0, 2.0]), Err(Error::Cancelled));
/// # Ok::<(), warpfold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    cancelled: Arc<AtomicBool>,
}

impl CancelToken {
    /// A token that has not been cancelled.
    #[must_use]
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Ends the reductions with this token soon, and those that begin later at once.
    pub fn cancel(&self) {
        // Nothing is published through the flag: relaxed is enough.
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it has been cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// A flag of other code, which is set where the reductions are to end: that of a handler of
/// signals.
impl From<Arc<AtomicBool>> for CancelToken {
    fn from(cancelled: Arc<AtomicBool>) -> CancelToken {
        CancelToken { cancelled }
    }
}

/// The token of a reduction, if it has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Until(pub(crate) Option<CancelToken>);

impl Until {
    pub(crate) fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(CancelToken::is_cancelled)
    }

    /// The next piece, until there are none or the work is to end. Who takes pieces calls
    /// [`check`](Self::check) behind the last: what was made of some of them is no answer.
    pub(crate) fn take(&self, pieces: &Pieces) -> Option<usize> {
        if self.is_over() { None } else { pieces.take() }
    }

    /// # Errors
    /// [`Error::Cancelled`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_over() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
