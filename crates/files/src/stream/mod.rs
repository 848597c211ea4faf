//! Reducing sources: reading and reducing overlap, and memory stays bounded.
//!
//! A full reduction needs no more than a buffer for each thread (`flat`). A
//! reduction over some axes goes through the array in boxes (`boxes`). Columns of
//! one table are reduced in one pass over it (`table`).

mod aligned;
mod boxes;
pub(crate) mod failure;
mod feed;
mod flat;
pub(crate) mod ledger;
mod load;
mod lockstep;
pub(crate) mod numbered;
mod segments;
mod table;
mod together;
pub(crate) mod undecided;

use crate::{Access, Error, Extent, Order, Result, Source, Unit};
use aligned::{Purpose, align};
pub use segments::{Cuts, reduce_segments};
use together::{Group, groups};
use warpfold::internal::{ForReaders, WhileWanted};
use warpfold::{Answer, Axes, DType, Partial, Reduction};

/// Receives the progress of reading.
pub trait Progress: Sync {
    /// The bytes that will be read, where they are known.
    fn begin(&self, total: Option<u64>);
    /// This many more bytes have been read and reduced.
    fn advance(&self, bytes: u64);
    /// Whether nobody waits for the answer any more. It is asked after each piece, and
    /// ends the reduction with [`Error::Cancelled`].
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Reports bytes that were read and reduced.
///
/// # Errors
/// [`Error::Cancelled`] if nobody waits for the rest.
fn advance(progress: &dyn Progress, bytes: u64) -> Result<()> {
    progress.advance(bytes);
    if progress.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}

/// Does `work`, which the token of the reduction ends as `progress` does.
///
/// # Errors
/// Those of `work`; [`Error::Cancelled`].
pub(crate) fn watched<R>(
    reduction: &Reduction,
    progress: &dyn Progress,
    work: impl FnOnce(&dyn Progress) -> Result<R>,
) -> Result<R> {
    match work(&Watched { progress, reduction }) {
        Err(Error::Reduce { source: warpfold::Error::Cancelled, .. }) => Err(Error::Cancelled),
        made => made,
    }
}

struct Watched<'a> {
    progress: &'a dyn Progress,
    reduction: &'a Reduction,
}

impl Progress for Watched<'_> {
    fn begin(&self, total: Option<u64>) {
        self.progress.begin(total);
    }
    fn advance(&self, bytes: u64) {
        self.progress.advance(bytes);
    }
    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled() || self.reduction.is_cancelled()
    }
}

/// Ignores progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _total: Option<u64>) {}
    fn advance(&self, _bytes: u64) {}
}

/// The sources to read.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The pieces of one array, in order: they are joined along its first axis.
    pub items: Vec<Source>,
    /// The pieces of the second array, for `dot`; as many, and of the same
    /// shapes.
    pub others: Vec<Source>,
}

/// The answers, and what was read for them.
#[derive(Debug)]
pub struct Outcome {
    /// The answers.
    pub answer: Answer,
    /// Rows that had no value.
    pub missing: u64,
    /// What the elements count, if the files say so.
    pub unit: Option<Unit>,
}

/// Bytes that boxes and their states may take if the caller sets no limit.
const DEFAULT_MEMORY: usize = 192 << 20;

/// Reduces the inputs to answers.
///
/// # Errors
/// Errors of reading, and those of [`Reduction::run`].
pub fn reduce(
    inputs: Inputs,
    reduction: &Reduction,
    memory_limit: Option<usize>,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let outcome = reduce_all(vec![inputs], reduction, memory_limit, progress)?.pop();
    outcome.ok_or_else(nothing)
}

/// Reduces several arrays, each to its own answers. Columns of one table are read
/// in one pass.
///
/// # Errors
/// As for [`reduce`].
pub fn reduce_all(
    mut arrays: Vec<Inputs>,
    reduction: &Reduction,
    memory_limit: Option<usize>,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>> {
    let units = align(&mut arrays, reduction, Purpose::Answers)?;
    let finished = |name: String, unit: Option<Unit>, partial: Partial| {
        let answer = partial.finish(reduction.about(unit.as_ref()).rules());
        let answer = answer.map_err(|source| Error::Reduce { name, source })?;
        Ok(Outcome { answer, missing: partial.missing(), unit: None })
    };
    let outcomes = watched(reduction, progress, |progress| {
        each(
            arrays,
            reduction,
            |inputs| array(inputs, reduction, memory_limit, progress),
            |columns| {
                let first = |c: &Inputs| (c.items[0].name.clone(), c.items[0].unit());
                let names: Vec<(String, Option<Unit>)> = columns.iter().map(first).collect();
                let partials = together::partials(columns, reduction, 0, progress)?;
                let named = names.into_iter().zip(partials);
                named.map(|((name, unit), p)| finished(name, unit, p)).collect()
            },
        )
    })?;
    let counted = outcomes.into_iter().zip(units);
    Ok(counted.map(|(outcome, unit)| Outcome { unit, ..outcome }).collect())
}

/// Reduces the inputs, the first of whose elements has index `start`, to
/// states.
///
/// # Errors
/// Errors of reading, and those of [`Reduction::partial`].
pub fn partial(
    inputs: Inputs,
    reduction: &Reduction,
    start: u64,
    memory_limit: Option<usize>,
    progress: &dyn Progress,
) -> Result<Partial> {
    let arrays = vec![inputs];
    let partial =
        states(arrays, reduction, (start, Purpose::States), memory_limit, progress)?.pop();
    partial.ok_or_else(nothing)
}

/// Reduces several arrays, the first of whose elements have index `start`, each to
/// its own states. Columns of one table are read in one pass. Operations that have no answer in
/// what a column counts are an error where they are finished.
///
/// # Errors
/// As for [`partial`].
pub fn partials(
    arrays: Vec<Inputs>,
    reduction: &Reduction,
    start: u64,
    memory_limit: Option<usize>,
    progress: &dyn Progress,
) -> Result<Vec<Partial>> {
    states(arrays, reduction, (start, Purpose::SomeStates), memory_limit, progress)
}

fn states(
    mut arrays: Vec<Inputs>,
    reduction: &Reduction,
    (start, purpose): (u64, Purpose),
    memory_limit: Option<usize>,
    progress: &dyn Progress,
) -> Result<Vec<Partial>> {
    let units = align(&mut arrays, reduction, purpose)?;
    let partials = watched(reduction, progress, |progress| {
        each(
            arrays,
            reduction,
            |inputs| array_partial(inputs, reduction, start, memory_limit, progress),
            |columns| together::partials(columns, reduction, start, progress),
        )
    })?;
    let counted = partials.into_iter().zip(units).map(|(partial, unit)| match unit {
        Some(unit) => partial.counting(unit),
        None => Ok(partial),
    });
    let wrong = |source| Error::Reduce { name: String::new(), source };
    counted.collect::<warpfold::Result<_>>().map_err(wrong)
}

/// Does `one` with each array and `many` with columns of the same tables, in the
/// arrays' order.
fn each<T>(
    arrays: Vec<Inputs>,
    reduction: &Reduction,
    one: impl Fn(Inputs) -> Result<T>,
    many: impl Fn(Vec<Inputs>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let mut all = Vec::with_capacity(arrays.len());
    for group in groups(arrays, reduction)? {
        match group {
            Group::Array(inputs) => all.push(one(inputs)?),
            Group::Columns(columns) => all.extend(many(columns)?),
        }
    }
    Ok(all)
}

fn nothing() -> Error {
    Error::format("no input", "there is nothing to reduce")
}

fn array(
    inputs: Inputs,
    reduction: &Reduction,
    memory_limit: Option<usize>,
    progress: &dyn Progress,
) -> Result<Outcome> {
    let unit = inputs.items.first().and_then(Source::unit);
    let plan = Plan::new(inputs, reduction, progress)?;
    let reduction = &reduction.settled(plan.dtype, plan.bytes).about(unit.as_ref());
    let name = plan.name.clone();
    let wrong = |source| Error::Reduce { name: name.clone(), source };
    if plan.full && !plan.in_chunks(reduction) {
        let partial = flat::partial(plan.pieces, reduction, 0, progress)?;
        let answer = partial.finish(reduction.rules()).map_err(wrong)?;
        let answer = if reduction.keeps_dims() {
            answer.reshaped(vec![1; plan.ndim]).map_err(wrong)?
        } else {
            answer
        };
        return Ok(Outcome { answer, missing: partial.missing(), unit: None });
    }
    let memory = memory_limit.unwrap_or(DEFAULT_MEMORY);
    let answer = boxes::answer(plan, reduction, memory, progress)?;
    Ok(Outcome { answer, missing: 0, unit: None })
}

fn array_partial(
    inputs: Inputs,
    reduction: &Reduction,
    start: u64,
    memory_limit: Option<usize>,
    progress: &dyn Progress,
) -> Result<Partial> {
    let plan = Plan::new(inputs, reduction, progress)?;
    let reduction = &reduction.settled(plan.dtype, plan.bytes);
    if plan.full && !plan.in_chunks(reduction) {
        let name = plan.name.clone();
        let partial = flat::partial(plan.pieces, reduction, start, progress)?;
        return if reduction.keeps_dims() {
            partial.reshaped(vec![1; plan.ndim]).map_err(|source| Error::Reduce { name, source })
        } else {
            Ok(partial)
        };
    }
    let memory = memory_limit.unwrap_or(DEFAULT_MEMORY);
    boxes::partial(plan, reduction, start, memory, progress)
}

/// A piece of the array, and for `dot` the same piece of the second one.
struct Piece {
    items: Source,
    others: Option<Source>,
}

/// The pieces, checked against each other.
struct Plan {
    pieces: Vec<Piece>,
    /// Their name in an error about all of them.
    name: String,
    dtype: DType,
    /// The bytes of all elements in memory, where their number is known.
    bytes: Option<u64>,
    /// The number of axes.
    ndim: usize,
    /// Which axes are reduced.
    reduced: Vec<bool>,
    /// Whether all are.
    full: bool,
}

/// The shape as far as it is known: a column has one axis.
fn shape_of(source: &Source) -> Vec<Option<usize>> {
    match &source.extent {
        Extent::Array { shape, .. } => shape.iter().copied().map(Some).collect(),
        Extent::Column { rows } => vec![rows.and_then(|r| usize::try_from(r).ok())],
    }
}

impl Plan {
    fn new(inputs: Inputs, reduction: &Reduction, progress: &dyn Progress) -> Result<Plan> {
        let Some(first) = inputs.items.first() else { return Err(nothing()) };
        let name = first.name.clone();
        let wrong = |source| Error::Reduce { name: name.clone(), source };
        let paired = !inputs.others.is_empty();
        reduction.check_type(first.dtype, 1 + usize::from(paired)).map_err(wrong)?;
        let ndim = shape_of(first).len();
        let reduced = reduction.named_axes().resolve(ndim).map_err(wrong)?;
        let all: Vec<&Source> = inputs.items.iter().chain(&inputs.others).collect();
        for other in &all {
            let mismatch = |what: &str, left: String, right: String| {
                disagree([first, other], what, [left, right])
            };
            if other.dtype != first.dtype {
                return Err(mismatch("type", first.dtype.to_string(), other.dtype.to_string()));
            }
            if let Extent::Array { shape, .. } = &other.extent {
                check_shape(&other.name, shape, other.dtype)?;
            }
            let (left, right) = (shape_of(first), shape_of(other));
            if left.len() != right.len() || left.iter().skip(1).ne(right.iter().skip(1)) {
                return Err(mismatch("shape", shape_text(&left), shape_text(&right)));
            }
        }
        if paired {
            if inputs.items.len() != inputs.others.len() {
                return Err(Error::format(
                    name,
                    format!(
                        "dot takes as many pieces of the second array as of the first, not {} and {}",
                        inputs.others.len(),
                        inputs.items.len()
                    ),
                ));
            }
            for (left, right) in inputs.items.iter().zip(&inputs.others) {
                let (a, b) = (shape_of(left), shape_of(right));
                let known = a.iter().chain(&b).all(Option::is_some);
                if known && a != b {
                    return Err(Error::format(
                        right.name.clone(),
                        format!(
                            "its shape is {}, but that of {} is {}",
                            shape_text(&b),
                            left.name,
                            shape_text(&a)
                        ),
                    ));
                }
                if let (Some(a), Some(b)) = (order_of(left), order_of(right))
                    && a != b
                {
                    return Err(Error::format(
                        right.name.clone(),
                        format!("it is stored in another order of axes than {}", left.name),
                    )
                    .with_hint("save both arrays in C order"));
                }
            }
        }
        let total = all.iter().try_fold(0u64, |n, s| s.bytes.map(|b| n.saturating_add(b)));
        progress.begin(total);
        let dtype = first.dtype;
        let bytes = all.iter().try_fold(0u64, |n, s| {
            let elements: Option<u64> =
                shape_of(s).iter().try_fold(1u64, |n, &d| n.checked_mul(d? as u64));
            n.checked_add(elements?.checked_mul(dtype.size() as u64)?)
        });
        let full = matches!(reduction.named_axes(), Axes::All) || reduced.iter().all(|&r| r);
        let mut others = inputs.others.into_iter();
        let pieces =
            inputs.items.into_iter().map(|items| Piece { items, others: others.next() }).collect();
        Ok(Plan { pieces, name, dtype, bytes, ndim, reduced: reduced.into_vec(), full })
    }

    /// Whether the array is read in boxes, though all of it is reduced: it lies in chunks, and it matters
    /// where elements are, so that chunks are not taken in turn.
    fn in_chunks(&self, reduction: &Reduction) -> bool {
        let chunked = |piece: &Piece| matches!(&piece.items.access, Access::Random(reader) if reader.chunks().is_some());
        let placed = wants_indices(reduction) || self.pieces.iter().any(|p| p.others.is_some());
        self.ndim > 0 && placed && self.pieces.iter().all(chunked)
    }
}

/// Two sources that cannot be joined.
fn disagree([first, other]: [&Source; 2], what: &str, [left, right]: [String; 2]) -> Error {
    Error::format(
        other.name.clone(),
        format!("its {what} is {right}, but that of {} is {left}", first.name),
    )
    .with_hint(
        "several inputs are joined along the first axis: types and the other axes must agree",
    )
}

fn shape_text(shape: &[Option<usize>]) -> String {
    let axes: Vec<_> =
        shape.iter().map(|n| n.map_or_else(|| "?".into(), |n| n.to_string())).collect();
    format!("({})", axes.join(", "))
}

/// The order of an array's elements, where there is more than one: not for
/// columns, and not for arrays with one axis that is longer than 1 or without
/// elements.
fn order_of(source: &Source) -> Option<Order> {
    match &source.extent {
        Extent::Array { shape, order } => {
            let long = shape.iter().filter(|&&n| n > 1).count();
            (long > 1 && !shape.contains(&0)).then_some(*order)
        }
        Extent::Column { .. } => None,
    }
}

/// Refuses a shape that no array in memory has, as NumPy does: without its
/// axes of length 0 it must be countable, since they may be reduced away.
fn check_shape(name: &str, shape: &[usize], dtype: DType) -> Result<()> {
    let bytes = shape
        .iter()
        .filter(|&&n| n > 0)
        .try_fold(dtype.size().cast_signed(), |n, &d| n.checked_mul(isize::try_from(d).ok()?));
    match bytes {
        Some(_) => Ok(()),
        None => Err(Error::format(name, format!("the shape {shape:?} is larger than any array"))
            .with_hint("axes of length 0 do not make the others smaller: check the header")),
    }
}

/// Whether a reduction wants indices in C order.
fn wants_indices(reduction: &Reduction) -> bool {
    reduction.ops().iter().any(|op| op.kind().has_positions())
}
