//! What this workspace's readers of files and its command line need of the
//! library. It is no part of the public interface: it changes without notice.

#[cfg(any(feature = "cuda", feature = "sim"))]
pub use crate::devices::{engine_of, stream_of};
pub use crate::explain::{remember_explanations, take_explanations};
pub use crate::groups::{GroupValues, NumberedRows};
pub use crate::segments::boundaries;
pub use crate::workers::Workers;
pub use warpfold_core::element::Known;
pub use warpfold_core::op::{AnyState, Kind, State};
pub use warpfold_cpu::isa::Isa;
