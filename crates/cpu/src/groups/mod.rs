//! Reductions of groups: many states of one kind, each for the rows with one key.
//!
//! Rows come with the numbers of their groups, which [`Numbering`] and [`TextNumbering`]
//! give to keys. A [`Table`] has the states of all groups of one kind and one element
//! type, in a form that is small and cheap to add to:
//!
//! | states | in a table |
//! |---|---|
//! | sums, squares, moments | a fixed-point integer of 128 or 256 bits, which moves with the data; a superaccumulator only for a group that does not fit (`totals.rs`) |
//! | extrema | two keys and two counts, and positions where they are asked for |
//! | counts, bits | three words |
//! | all others | the states themselves |
//!
//! Every answer is finished by the state of `warpfold_core`, or rounded by the same
//! function from the same exact number: the bits are those of a reduction of the group
//! alone.

mod counts;
mod extrema;
mod memory;
mod numbering;
mod states;
mod sums;
mod table;
mod texts;
mod totals;
pub mod words;

pub use memory::{OutOfMemory, check_memory};
pub use numbering::{Numbering, hash};
pub use table::{Finished, LEFT_OUT, Positions, Rows, Table, new_table, pick};
pub use texts::{TextNumbering, hash_text};
