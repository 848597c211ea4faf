//! Errors of questions, arrays and states.

use crate::{DType, Op};

/// The result of a fallible step.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// An error with its cause; [`hint`](Error::hint) says what would help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation without an identity met no elements.
    #[error("{op} of no elements has no value")]
    Empty {
        /// The operation.
        op: Op,
    },
    /// An exact integer total lies outside the answer's type.
    #[error("{op} is {total}, which does not fit {out}")]
    Overflow {
        /// The operation.
        op: Op,
        /// The total, or what is known of it.
        total: String,
        /// The type it does not fit.
        out: DType,
    },
    /// A product of integers whose state does not tell it to the last digit.
    #[error("{op} is {total}, and its state does not hold the digits")]
    LostDigits {
        /// The operation.
        op: Op,
        /// What is known of the product.
        total: String,
    },
    /// NaNs were found under `nan = error`.
    #[error("{count} NaN{} among the elements{}", if *count == 1 { "" } else { "s" },
        first.map_or_else(String::new, |i| format!(", the first at index {i}")))]
    NanFound {
        /// How many.
        count: u64,
        /// The index of the first, where the state knows it.
        first: Option<u64>,
    },
    /// The operation is not defined for the element type.
    #[error("{op} is not defined for {dtype} elements")]
    UnsupportedType {
        /// The operation.
        op: Op,
        /// The element type.
        dtype: DType,
    },
    /// The answer cannot be given in the type asked for.
    #[error("{op} of {dtype} elements cannot answer in {out}")]
    UnsupportedOut {
        /// The operation.
        op: Op,
        /// The element type.
        dtype: DType,
        /// The type asked for.
        out: DType,
    },
    /// An axis beyond the array's dimensions.
    #[error("axis {axis} is out of range for an array of {ndim} dimension{}", if *ndim == 1 { "" } else { "s" })]
    AxisOutOfRange {
        /// The axis as given.
        axis: isize,
        /// The number of dimensions.
        ndim: usize,
    },
    /// The same axis named twice.
    #[error("axis {axis} is named twice")]
    AxisRepeated {
        /// The axis as given.
        axis: isize,
    },
    /// Two arrays that should agree have different shapes.
    #[error("the shapes {left:?} and {right:?} differ")]
    ShapeMismatch {
        /// The first shape.
        left: Vec<usize>,
        /// The second shape.
        right: Vec<usize>,
    },
    /// Two arrays that should agree have different element types.
    #[error("the element types {left} and {right} differ")]
    DTypeMismatch {
        /// The first type.
        left: DType,
        /// The second type.
        right: DType,
    },
    /// `dot` was given one array, or another operation two.
    #[error("{op} takes {takes} array{}, not {given}", if *takes == 1 { "" } else { "s" })]
    Arity {
        /// The operation.
        op: Op,
        /// How many it takes.
        takes: usize,
        /// How many there were.
        given: usize,
    },
    /// Shape and strides that reach outside the buffer, or overflow.
    #[error(
        "a view of shape {shape:?} and byte strides {strides:?} at offset {offset} leaves its buffer of {len} bytes"
    )]
    ViewOutOfBounds {
        /// The view's shape.
        shape: Vec<usize>,
        /// The view's strides in bytes.
        strides: Vec<isize>,
        /// The byte offset of the first element.
        offset: usize,
        /// The buffer's length in bytes.
        len: usize,
    },
    /// Bytes handed over as elements that end within one.
    #[error("{bytes} bytes of {dtype} elements end within an element of {} bytes", dtype.size())]
    PartialElement {
        /// How many bytes there were.
        bytes: usize,
        /// The element type.
        dtype: DType,
    },
    /// Two partial states that cannot be merged.
    #[error("states of different {what} cannot be merged: {left} and {right}")]
    StateMismatch {
        /// What differs: operation, element type, shape.
        what: &'static str,
        /// The first state's.
        left: String,
        /// The second state's.
        right: String,
    },
    /// Values that stand for different things: microseconds here and nanoseconds there,
    /// or plain integers.
    #[error("values of different units do not go together: {left} and {right}")]
    UnitMismatch {
        /// What the first count.
        left: String,
        /// What the second count.
        right: String,
        /// What would help.
        hint: &'static str,
    },
    /// An operation whose answer would say nothing about what the integers count.
    #[error("{op} is not defined for {unit}")]
    UnsupportedUnit {
        /// The operation.
        op: Op,
        /// What they count: "days since 1970-01-01".
        unit: String,
    },
    /// Two partial states claim the same elements.
    #[error("two partial states both hold element {at}")]
    Overlap {
        /// The first element held twice.
        at: u64,
    },
    /// A state whose answer depends on positions lacks elements between those
    /// that it holds.
    #[error("elements {from} to {to} are missing from the merged states")]
    Gap {
        /// The first missing element.
        from: u64,
        /// The one after the last missing element.
        to: u64,
    },
    /// A piece whose last element has a position beyond 64 bits.
    #[error("a piece of {len} elements cannot begin at position {start}")]
    StartTooLarge {
        /// Where it would begin.
        start: u64,
        /// How many elements it has.
        len: usize,
    },
    /// A partial of no operation, or of more than its byte form can list.
    #[error("a partial takes from 1 to {most} operations, not {given}")]
    Operations {
        /// How many there were.
        given: usize,
        /// The most there may be.
        most: usize,
    },
    /// More answers than memory holds.
    #[error("{outputs} answers do not fit into memory")]
    TooManyOutputs {
        /// How many there would be.
        outputs: usize,
    },
    /// Bytes that are not a state.
    #[error("not a state: {why}")]
    DamagedState {
        /// What is wrong with them.
        why: String,
    },
    /// A state of a version this build does not read.
    #[error("the state has version {found}; this build reads version {reads}")]
    StateVersion {
        /// The version in the bytes.
        found: u32,
        /// The version this build reads.
        reads: u32,
    },
    /// A state of a kind that earlier versions had.
    #[error("the state is {was}, which this version does not have")]
    RetiredState {
        /// What it is: "a plain sum".
        was: &'static str,
    },
    /// A name of no operation, type or policy.
    #[error("{name:?} is not {what}")]
    UnknownName {
        /// What it should name: "an operation".
        what: &'static str,
        /// The name as given.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// An array that holds neither numbers nor truth values.
    #[error("an array of {found} holds no numbers")]
    NotNumbers {
        /// What it holds.
        found: String,
    },
    /// An array that holds nothing that rows can be grouped by.
    #[error("an array of {found} holds no keys")]
    NotKeys {
        /// What it holds.
        found: String,
    },
    /// Bytes that end within an element.
    #[error("the bytes end within an element: {held} of its {size} bytes are there")]
    SplitElement {
        /// How many of its bytes there are.
        held: usize,
        /// How many it has.
        size: usize,
    },
    /// A group of rows that has no answer.
    #[error("group {group}: {source}")]
    InGroup {
        /// The group's key.
        group: String,
        /// Why it has no answer.
        source: Box<Error>,
    },
    /// Groups that take more memory than they may.
    #[error("{groups} groups after {rows} rows take {bytes} bytes, and {limit} is the limit")]
    TooManyGroups {
        /// How many there were when the limit was reached.
        groups: usize,
        /// How many rows had been read.
        rows: u64,
        /// The memory that they take.
        bytes: usize,
        /// The most that they may take.
        limit: usize,
    },
    /// A key that is none of the dense numbers.
    #[error("row {row} has key {key}, which is not one of 0..{groups}")]
    KeyOutOfRange {
        /// The first such row.
        row: u64,
        /// Its key.
        key: String,
        /// How many groups there are.
        groups: usize,
    },
    /// A question that groups do not have.
    #[error("{what}")]
    Groups {
        /// What is wrong.
        what: String,
        /// What would help.
        hint: String,
    },
    /// An array that a partial with several answers cannot take in by itself.
    #[error("a partial of shape {shape:?} does not know along which axes it goes on")]
    SeveralOutputs {
        /// The shape of its answer.
        shape: Vec<usize>,
    },
    /// A segment that cannot be: it leaves the array, or ends before it begins.
    #[error("segment {segment} {what}")]
    BadSegment {
        /// The first such segment.
        segment: usize,
        /// What is wrong with it.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// Segments that do not fit the array or each other.
    #[error("{what}")]
    BadSegments {
        /// What is wrong with them.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// A segment that has no answer.
    #[error("segment {segment}: {source}")]
    InSegment {
        /// The first such segment.
        segment: usize,
        /// Why.
        source: Box<Error>,
    },
    /// An initial value that an operation or its elements' type does not take.
    #[error("{what}")]
    BadInitial {
        /// Why not.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// An array in a device's memory that does not fit the question, or another array.
    #[error("{what}")]
    DeviceMemory {
        /// What is wrong.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// A device that this build or machine does not have.
    #[error("{what}")]
    Device {
        /// What is missing.
        what: String,
        /// What would help.
        hint: String,
    },
}

impl Error {
    /// What the caller can do, in one line without a full stop.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Error::Overflow { .. } => {
                "ask for a float answer (--out f64) or for wrapping arithmetic (--wrap)".into()
            }
            Error::LostDigits { .. } => {
                "make the state again: earlier versions, and kernels, keep 128 bits of a product"
                    .into()
            }
            Error::NanFound { .. } => {
                "skip NaNs with --nan omit, or let them through with --nan propagate".into()
            }
            Error::AxisOutOfRange { ndim, .. } => match ndim {
                0 => "the array is a scalar and has no axes".into(),
                n => format!("axes run from 0 to {}, or from -{n} to -1", n - 1),
            },
            Error::Overlap { .. } => {
                "say where each piece begins with --start, and give each piece once".into()
            }
            Error::Gap { .. } => {
                "merge the missing piece too, and say where each piece begins with --start".into()
            }
            Error::PartialElement { .. } => {
                "hand over whole elements, and keep the rest for the next run".into()
            }
            Error::StateMismatch { what: "element type", .. } => {
                "pieces have one type: partial --dtype f64 reads text as floats".into()
            }
            Error::StateVersion { .. } => {
                "write the state again with this version of warpfold".into()
            }
            Error::RetiredState { .. } => {
                "make the state again with this version, without --accuracy fast if it was there"
                    .into()
            }
            Error::UnknownName { known, .. } => format!("there are {}", known.join(", ")),
            Error::UnsupportedUnit { .. } => {
                "ask for min, max, range or mean, or cast the column to plain numbers".into()
            }
            Error::NotKeys { .. } => {
                "keys are numbers, truth values, dates, times or texts: cast it to one of these".into()
            }
            Error::NotNumbers { .. } => "cast it to a type of numbers first".into(),
            Error::SplitElement { .. } => "give the rest of its bytes first".into(),
            Error::Device { hint, .. } | Error::Groups { hint, .. } => hint.clone(),
            Error::InGroup { source, .. } => return source.hint(),
            Error::TooManyGroups { .. } => {
                "a larger --memory-limit lets it go on, if there is the memory; fewer keys, columns and operations take less"
                    .into()
            }
            Error::KeyOutOfRange { .. } => "give keys that are not dense without a number of groups".into(),
            Error::BadSegment { hint, .. }
            | Error::BadSegments { hint, .. }
            | Error::BadInitial { hint, .. }
            | Error::UnitMismatch { hint, .. }
            | Error::DeviceMemory { hint, .. } => (*hint).into(),
            Error::InSegment { source, .. } => match &**source {
                Error::Empty { .. } => {
                    "give empty segments a value with an initial one (--initial), or leave them out"
                        .into()
                }
                source => return source.hint(),
            },
            Error::SeveralOutputs { .. } => {
                "make a partial of the piece over the same axes, and merge it".into()
            }
            _ => return None,
        })
    }
}
