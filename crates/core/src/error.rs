//! Errors of questions, arrays and states.

use crate::{DType, Op};

/// The result of a fallible step.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// An error with its cause; [`hint`](Error::hint) says what would help.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An operation without an identity met no elements.
    Empty {
        /// The operation.
        op: Op,
    },
    /// An exact integer total lies outside the answer's type.
    Overflow {
        /// The operation.
        op: Op,
        /// The total, or what is known of it.
        total: String,
        /// The type it does not fit.
        out: DType,
    },
    /// A product of integers whose state does not tell it to the last digit.
    LostDigits {
        /// The operation.
        op: Op,
        /// What is known of the product.
        total: String,
    },
    /// NaNs were found under `nan = error`.
    NanFound {
        /// How many.
        count: u64,
        /// The index of the first, where the state knows it.
        first: Option<u64>,
    },
    /// The operation is not defined for the element type.
    UnsupportedType {
        /// The operation.
        op: Op,
        /// The element type.
        dtype: DType,
    },
    /// The answer cannot be given in the type asked for.
    UnsupportedOut {
        /// The operation.
        op: Op,
        /// The element type.
        dtype: DType,
        /// The type asked for.
        out: DType,
    },
    /// An axis beyond the array's dimensions.
    AxisOutOfRange {
        /// The axis as given.
        axis: isize,
        /// The number of dimensions.
        ndim: usize,
    },
    /// The same axis named twice.
    AxisRepeated {
        /// The axis as given.
        axis: isize,
    },
    /// Two arrays that should agree have different shapes.
    ShapeMismatch {
        /// The first shape.
        left: Vec<usize>,
        /// The second shape.
        right: Vec<usize>,
    },
    /// Two arrays that should agree have different element types.
    DTypeMismatch {
        /// The first type.
        left: DType,
        /// The second type.
        right: DType,
    },
    /// `dot` was given one array, or another operation two.
    Arity {
        /// The operation.
        op: Op,
        /// How many it takes.
        takes: usize,
        /// How many there were.
        given: usize,
    },
    /// Shape and strides that reach outside the buffer, or overflow.
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
    PartialElement {
        /// How many bytes there were.
        bytes: usize,
        /// The element type.
        dtype: DType,
    },
    /// Two partial states that cannot be merged.
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
    UnitMismatch {
        /// What the first count.
        left: String,
        /// What the second count.
        right: String,
        /// What would help.
        hint: &'static str,
    },
    /// An operation whose answer would say nothing about what the integers count.
    UnsupportedUnit {
        /// The operation.
        op: Op,
        /// What they count: "days since 1970-01-01".
        unit: String,
    },
    /// Two partial states claim the same elements.
    Overlap {
        /// The first element held twice.
        at: u64,
    },
    /// A state whose answer depends on positions lacks elements between those
    /// that it holds.
    Gap {
        /// The first missing element.
        from: u64,
        /// The one after the last missing element.
        to: u64,
    },
    /// A piece whose last element has a position beyond 64 bits.
    StartTooLarge {
        /// Where it would begin.
        start: u64,
        /// How many elements it has.
        len: usize,
    },
    /// A partial of no operation, or of more than its byte form can list.
    Operations {
        /// How many there were.
        given: usize,
        /// The most there may be.
        most: usize,
    },
    /// More answers than memory holds.
    TooManyOutputs {
        /// How many there would be.
        outputs: usize,
    },
    /// Bytes that are not a state.
    DamagedState {
        /// What is wrong with them.
        why: String,
    },
    /// A state of a version this build does not read.
    StateVersion {
        /// The version in the bytes.
        found: u32,
        /// The version this build reads.
        reads: u32,
    },
    /// A state of a kind that earlier versions had.
    RetiredState {
        /// What it is: "a plain sum".
        was: &'static str,
    },
    /// A name of no operation, type or policy.
    UnknownName {
        /// What it should name: "an operation".
        what: &'static str,
        /// The name as given.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// An array that holds neither numbers nor truth values.
    NotNumbers {
        /// What it holds.
        found: String,
    },
    /// An array that holds nothing that rows can be grouped by.
    NotKeys {
        /// What it holds.
        found: String,
    },
    /// Bytes that end within an element.
    SplitElement {
        /// How many of its bytes there are.
        held: usize,
        /// How many it has.
        size: usize,
    },
    /// A group of rows that has no answer.
    InGroup {
        /// The group's key.
        group: String,
        /// Why it has no answer.
        source: Box<Error>,
    },
    /// Groups that take more memory than they may.
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
    /// Groups for which the system gives no memory.
    OutOfMemory {
        /// How many there were.
        groups: usize,
        /// How many rows had been read.
        rows: u64,
    },
    /// A key that is none of the dense numbers.
    KeyOutOfRange {
        /// The first such row.
        row: u64,
        /// Its key.
        key: String,
        /// How many groups there are.
        groups: usize,
    },
    /// A question that groups do not have.
    Groups {
        /// What is wrong.
        what: String,
        /// What would help.
        hint: String,
    },
    /// An array that a partial with several answers cannot take in by itself.
    SeveralOutputs {
        /// The shape of its answer.
        shape: Vec<usize>,
    },
    /// A segment that cannot be: it leaves the array, or ends before it begins.
    BadSegment {
        /// The first such segment.
        segment: usize,
        /// What is wrong with it.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// Segments that do not fit the array or each other.
    BadSegments {
        /// What is wrong with them.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// A segment that has no answer.
    InSegment {
        /// The first such segment.
        segment: usize,
        /// Why.
        source: Box<Error>,
    },
    /// An initial value that an operation or its elements' type does not take.
    BadInitial {
        /// Why not.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// An answer that was asked for as something else than it is.
    OtherAnswer {
        /// What it is, and what it was asked for as.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// A mask over something else than elements of one axis that follow each other.
    MaskOfArray {
        /// The array's shape.
        shape: Vec<usize>,
    },
    /// Nobody waits for the answer any more.
    Cancelled,
    /// An array in a device's memory that does not fit the question, or another array.
    DeviceMemory {
        /// What is wrong.
        what: String,
        /// What would help.
        hint: &'static str,
    },
    /// A device that this build or machine does not have.
    Device {
        /// What is missing.
        what: String,
        /// What would help.
        hint: String,
    },
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::Empty { op } => write!(f, "{op} of no elements has no value"),
            Error::Overflow { op, total, out } => {
                write!(f, "{op} is {total}, which does not fit {out}")
            }
            Error::LostDigits { op, total } => {
                write!(f, "{op} is {total}, and its state does not hold the digits")
            }
            Error::NanFound { count, first } => write!(
                f,
                "{count} NaN{} among the elements{}",
                if *count == 1 { "" } else { "s" },
                first.map_or_else(String::new, |i| format!(", the first at index {i}"))
            ),
            Error::UnsupportedType { op, dtype } => {
                write!(f, "{op} is not defined for {dtype} elements")
            }
            Error::UnsupportedOut { op, dtype, out } => {
                write!(f, "{op} of {dtype} elements cannot answer in {out}")
            }
            Error::AxisOutOfRange { axis, ndim } => write!(
                f,
                "axis {axis} is out of range for an array of {ndim} dimension{}",
                if *ndim == 1 { "" } else { "s" }
            ),
            Error::AxisRepeated { axis } => write!(f, "axis {axis} is named twice"),
            Error::ShapeMismatch { left, right } => {
                write!(f, "the shapes {left:?} and {right:?} differ")
            }
            Error::DTypeMismatch { left, right } => {
                write!(f, "the element types {left} and {right} differ")
            }
            Error::Arity { op, takes, given } => write!(
                f,
                "{op} takes {takes} array{}, not {given}",
                if *takes == 1 { "" } else { "s" }
            ),
            Error::ViewOutOfBounds { shape, strides, offset, len } => write!(
                f,
                "a view of shape {shape:?} and byte strides {strides:?} at offset {offset} leaves its buffer of {len} bytes"
            ),
            Error::PartialElement { bytes, dtype } => write!(
                f,
                "{bytes} bytes of {dtype} elements end within an element of {} bytes",
                dtype.size()
            ),
            Error::StateMismatch { what, left, right } => {
                write!(f, "states of different {what} cannot be merged: {left} and {right}")
            }
            Error::UnitMismatch { left, right, .. } => {
                write!(f, "values of different units do not go together: {left} and {right}")
            }
            Error::UnsupportedUnit { op, unit } => write!(f, "{op} is not defined for {unit}"),
            Error::NotKeys { found } => write!(f, "an array of {found} holds no keys"),
            Error::OutOfMemory { groups, rows } => {
                write!(f, "memory ran out at {groups} groups, after {rows} rows")
            }
            Error::OtherAnswer { what, .. } => f.write_str(what),
            Error::MaskOfArray { shape } => write!(
                f,
                "a mask takes one axis of elements that follow each other, not an array of shape {shape:?}"
            ),
            Error::Cancelled => f.write_str("the reduction was cancelled"),
            Error::Overlap { at } => write!(f, "two partial states both hold element {at}"),
            Error::Gap { from, to } => {
                write!(f, "elements {from} to {to} are missing from the merged states")
            }
            Error::StartTooLarge { start, len } => {
                write!(f, "a piece of {len} elements cannot begin at position {start}")
            }
            Error::Operations { given, most } => {
                write!(f, "a partial takes from 1 to {most} operations, not {given}")
            }
            Error::TooManyOutputs { outputs } => {
                write!(f, "{outputs} answers do not fit into memory")
            }
            Error::DamagedState { why } => write!(f, "not a state: {why}"),
            Error::StateVersion { found, reads } => {
                write!(f, "the state has version {found}; this build reads version {reads}")
            }
            Error::RetiredState { was } => {
                write!(f, "the state is {was}, which this version does not have")
            }
            Error::UnknownName { what, name, .. } => write!(f, "{name:?} is not {what}"),
            Error::NotNumbers { found } => write!(f, "an array of {found} holds no numbers"),
            Error::SplitElement { held, size } => {
                write!(f, "the bytes end within an element: {held} of its {size} bytes are there")
            }
            Error::InGroup { group, source } => write!(f, "group {group}: {source}"),
            Error::TooManyGroups { groups, rows, bytes, limit } => write!(
                f,
                "{groups} groups after {rows} rows take {bytes} bytes, and {limit} is the limit"
            ),
            Error::KeyOutOfRange { row, key, groups } => {
                write!(f, "row {row} has key {key}, which is not one of 0..{groups}")
            }
            Error::Groups { what, .. } => what.fmt(f),
            Error::SeveralOutputs { shape } => {
                write!(f, "a partial of shape {shape:?} does not know along which axes it goes on")
            }
            Error::BadSegment { segment, what, .. } => write!(f, "segment {segment} {what}"),
            Error::BadSegments { what, .. } => what.fmt(f),
            Error::InSegment { segment, source } => write!(f, "segment {segment}: {source}"),
            Error::BadInitial { what, .. } => what.fmt(f),
            Error::DeviceMemory { what, .. } => what.fmt(f),
            Error::Device { what, .. } => what.fmt(f),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::InGroup { source, .. } => Some(&**source),
            Error::InSegment { source, .. } => Some(&**source),
            _ => None,
        }
    }
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
            Error::OutOfMemory { .. } => {
                "fewer keys, columns, operations and threads take less; --memory-limit ends a run before the memory is used up"
                    .into()
            }
            Error::KeyOutOfRange { .. } => "give keys that are not dense without a number of groups".into(),
            Error::BadSegment { hint, .. }
            | Error::BadSegments { hint, .. }
            | Error::BadInitial { hint, .. }
            | Error::OtherAnswer { hint, .. }
            | Error::UnitMismatch { hint, .. }
            | Error::DeviceMemory { hint, .. } => (*hint).into(),
            Error::InSegment { source, .. } => match &**source {
                Error::Empty { .. } => {
                    "give empty segments a value with an initial one (--initial), or leave them out"
                        .into()
                }
                source => return source.hint(),
            },
            Error::MaskOfArray { .. } => {
                "copy the elements into a vector, or reduce those of a copy that are chosen".into()
            }
            Error::SeveralOutputs { .. } => {
                "make a partial of the piece over the same axes, and merge it".into()
            }
            _ => return None,
        })
    }
}
