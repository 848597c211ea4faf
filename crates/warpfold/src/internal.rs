//! What this workspace's readers of files and its command line need of the
//! library. It is no part of the public interface: it changes without notice.

use crate::{Answer, Array, Partial, Reduction, Unit};
use warpfold_core::layout::View;
use warpfold_core::{DType, Result};

#[cfg(feature = "cuda")]
pub use crate::devices::check_process;
#[cfg(any(feature = "cuda", feature = "sim"))]
pub use crate::devices::{OnHost, engine_of, stream_of};
pub use crate::explain::{remember_explanations, take_explanations};
pub use crate::groups::{Counted, GroupReader, GroupValues, SharedGroups, Widening};
pub use crate::segments::boundaries;
pub use crate::workers::Workers;
pub use warpfold_core::element::Known;
pub use warpfold_core::layout::{PerAxis, Traversal};
pub use warpfold_core::op::{AnyState, Kind, State};
pub use warpfold_cpu::isa::Isa;

/// What readers ask of a reduction that hand it elements piece by piece.
pub trait ForReaders: Sized {
    /// The same question with the choice of [`Device::Auto`](crate::Device::Auto) made, for
    /// this many bytes in the host's memory or a file, if that is known. Small inputs never
    /// open a device.
    ///
    /// [`Reduction::run`] and [`Reduction::partial`] do this by themselves; a caller that
    /// needs several [`workers`](Self::workers) calls it first.
    #[must_use]
    fn settled(&self, dtype: DType, bytes: Option<u64>) -> Self;

    /// The same question about what counts something: floats that answer for decimals have
    /// their point where it belongs.
    #[must_use]
    fn about(&self, unit: Option<&Unit>) -> Self;

    /// Lets a partial take in an array that is another piece of what it is a piece of: the
    /// same as [`Reduction::partial`] and [`Partial::merge`], without states for the piece
    /// where the CPU works. Who calls it vouches for that the partial has not absorbed any of
    /// the piece's positions.
    ///
    /// # Errors
    /// As for [`Reduction::partial`] and [`Partial::merge`]; the partial is then what it was
    /// before.
    fn absorb<'a>(&self, into: &mut Partial, array: impl Into<Array<'a>>, start: u64)
    -> Result<()>;

    /// The same for two arrays.
    ///
    /// # Errors
    /// As for [`absorb`](Self::absorb).
    fn absorb_pair<'a>(
        &self,
        into: &mut Partial,
        left: impl Into<Array<'a>>,
        right: impl Into<Array<'a>>,
        start: u64,
    ) -> Result<()>;

    /// Workers on the states that a full reduction over elements of type `dtype` needs: what
    /// a reader of files or streams feeds, one for each of its threads.
    ///
    /// # Errors
    /// As for [`Reduction::run`], but for those of the array.
    fn workers(&self, dtype: DType, arrays: usize) -> Result<Workers>;

    /// Bytes of each array that such workers best absorb at once.
    #[must_use]
    fn best_run(&self) -> usize;

    /// How many threads are of use where each does nothing but read and feed such workers.
    #[must_use]
    fn most_readers(&self) -> usize;

    /// Puts the states of such workers together.
    ///
    /// # Errors
    /// What a device says about runs that were absorbed;
    /// [`Error::Operations`](crate::Error::Operations) if no operation is asked for.
    fn gather(&self, dtype: DType, workers: Workers) -> Result<Partial>;

    /// The states of no elements that an output needs.
    ///
    /// # Errors
    /// An operation that the type does not have.
    fn identities(&self, dtype: DType) -> Result<Vec<AnyState>>;
}

/// Whoever asks for an answer may have a say in whether it is still wanted.
pub trait WhileWanted {
    /// The same as [`Reduction::run`] of one array, or as [`Reduction::run_pair`] of two, whose
    /// elements all have values.
    ///
    /// # Errors
    /// Theirs.
    fn run_views(&self, views: [Option<&View<'_>>; 2]) -> Result<Answer>;

    /// The same as [`Reduction::run`] of one array, or as [`Reduction::run_pair`] of two, as
    /// long as `go_on` says so, which is asked before each piece of a long array.
    ///
    /// # Errors
    /// Theirs, and [`Error::Cancelled`](crate::Error::Cancelled).
    fn run_while(
        &self,
        views: [Option<&View<'_>>; 2],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Answer>;

    /// Whether the token of the reduction was cancelled, if it has one.
    fn is_cancelled(&self) -> bool;
}

impl WhileWanted for Reduction {
    fn run_views(&self, views: [Option<&View<'_>>; 2]) -> Result<Answer> {
        self.until.check()?;
        self.run_whole(views)
    }

    fn run_while(
        &self,
        views: [Option<&View<'_>>; 2],
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Answer> {
        Reduction::run_while(self, views, go_on)
    }

    fn is_cancelled(&self) -> bool {
        self.until.is_over()
    }
}

/// Copies an array in a device's memory to the host's; waits for it.
///
/// # Errors
/// What the device says; an array that the host has no memory for.
#[cfg(any(feature = "cuda", feature = "sim"))]
pub fn to_host(array: &crate::DeviceArray<'_>) -> Result<OnHost> {
    array.to_host()
}

impl ForReaders for Reduction {
    fn settled(&self, dtype: DType, bytes: Option<u64>) -> Reduction {
        Reduction::settled(self, dtype, bytes)
    }

    fn about(&self, unit: Option<&Unit>) -> Reduction {
        let mut about = self.clone();
        about.rules = Unit::rules_for(unit, &about.rules);
        about
    }

    fn absorb<'a>(
        &self,
        into: &mut Partial,
        array: impl Into<Array<'a>>,
        start: u64,
    ) -> Result<()> {
        Reduction::absorb(self, into, array.into(), start)
    }

    fn absorb_pair<'a>(
        &self,
        into: &mut Partial,
        left: impl Into<Array<'a>>,
        right: impl Into<Array<'a>>,
        start: u64,
    ) -> Result<()> {
        Reduction::absorb_pair(self, into, left.into(), right.into(), start)
    }

    fn workers(&self, dtype: DType, arrays: usize) -> Result<Workers> {
        Reduction::workers(self, dtype, arrays)
    }

    fn best_run(&self) -> usize {
        Reduction::best_run(self)
    }

    fn most_readers(&self) -> usize {
        Reduction::most_readers(self)
    }

    fn gather(&self, dtype: DType, workers: Workers) -> Result<Partial> {
        Reduction::gather(self, dtype, workers)
    }

    fn identities(&self, dtype: DType) -> Result<Vec<AnyState>> {
        Reduction::identities(self, dtype)
    }
}
