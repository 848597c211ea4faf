//! One pass over tables that are joined.

use super::joined::{Joined, Kind, join};
use super::keyed::{Keyed, Unit};
use super::keys::{Scratch, no_keys};
use super::pair::Pair;
use crate::evidence::Evidence;
use crate::stream::failure::Failure;
use crate::stream::ledger::Ledger;
use crate::stream::numbered::read_numbered;
use crate::stream::undecided::not_whole;
use crate::stream::{Progress, watched};
use crate::table::Typing;
use crate::{Batch, Error, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use warpfold::internal::{GroupReader, GroupValues, SharedGroups};
use warpfold::{DType, GroupPartial, Keys, Order, Reduction};
use warpfold_threads::scoped;

/// What is asked of the groups.
#[derive(Clone, Debug)]
pub struct Question {
    /// Operations, rules and threads.
    pub reduction: Reduction,
    /// The order of the groups.
    pub order: Order,
    /// Whether rows without a key are left out.
    pub omit_missing: bool,
    /// How many rows of the whole are in front.
    pub start: u64,
    /// The most bytes that groups may take; `None` for as many as there are.
    pub memory_limit: Option<usize>,
}

/// How a column of values, or a pair of them, is read, and by which columns of the partial.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Fixed(usize),
    /// As integers, and as floats if the operations take them, until it is known.
    Open {
        integers: usize,
        floats: Option<usize>,
    },
}

/// Reduces the rows of joined tables, group by group: the states of all columns of
/// values.
///
/// # Errors
/// Tables with other columns than the first; errors of reading, and those of
/// [`Reduction::by`]; groups that take more memory than they may.
pub fn partial(
    inputs: Vec<Keyed>,
    question: &Question,
    progress: &dyn Progress,
) -> Result<GroupPartial> {
    reduced(inputs, question, false, progress)
}

/// The same for questions some of whose operations may have no answer in what a column of
/// values counts, such as a sum of dates: these are an error where they are finished.
///
/// # Errors
/// As for [`partial`], but for such operations.
pub fn partial_of_some(
    inputs: Vec<Keyed>,
    question: &Question,
    progress: &dyn Progress,
) -> Result<GroupPartial> {
    reduced(inputs, question, true, progress)
}

fn reduced(
    mut inputs: Vec<Keyed>,
    question: &Question,
    some: bool,
    progress: &dyn Progress,
) -> Result<GroupPartial> {
    let Some(first) = inputs.first() else {
        return Err(Error::format("", "there is nothing to reduce"));
    };
    for other in &inputs[1..] {
        check_same(first, other)?;
    }
    let name = first.name.clone();
    progress.begin(inputs.iter().map(|input| input.bytes).sum());
    let joined = join(&mut inputs)?;
    let pass = Pass::new(&inputs[0], joined, question, some)?;
    watched(&question.reduction, progress, |progress| pass.run(&name, inputs, progress))
}

fn check_same(first: &Keyed, other: &Keyed) -> Result<()> {
    let names = |keyed: &Keyed| -> Vec<String> {
        keyed.key_names().chain(keyed.value_names()).map(str::to_owned).collect()
    };
    if names(first) != names(other) {
        let (left, right) = (names(first).join(", "), names(other).join(", "));
        let what = format!("its columns are {right}, but those of {} are {left}", first.name);
        return Err(Error::format(&other.name, what).with_hint("choose them with -c and --by"));
    }
    Ok(())
}

struct Pass<'a> {
    question: &'a Question,
    /// Columns of values that are read together: two for `dot`.
    together: usize,
    keys: Vec<Kind>,
    readings: Vec<Reading>,
    /// What columns of values are called.
    names: Vec<String>,
    /// Of no rows.
    empty: GroupPartial,
    memory: AtomicUsize,
}

/// What one thread has made.
struct Desk<'a> {
    pass: &'a Pass<'a>,
    reader: GroupReader<'a>,
    scratch: Vec<Scratch>,
    evidence: Vec<Evidence>,
    floats: [Vec<f64>; 2],
    pair: Pair,
    gaps: Vec<(u64, u64)>,
    /// Bytes that the others were told of.
    told: usize,
}

impl<'a> Pass<'a> {
    fn new(first: &Keyed, joined: Joined, question: &'a Question, some: bool) -> Result<Pass<'a>> {
        let reduction = &question.reduction;
        let wrong = |source| Error::Reduce { name: first.name.clone(), source };
        let together = reduction.ops().iter().map(|op| op.arity()).max().unwrap_or(1);
        let Joined { keys, values } = joined;
        for (name, unit) in first.value_names().zip(&values).map(|(n, kind)| (n, &kind.unit)) {
            let Some(unit) = unit else { continue };
            let refused = reduction.ops().iter().find(|op| !unit.allows(**op));
            if let Some(&op) = refused.filter(|_| !some) {
                let source = warpfold::Error::UnsupportedUnit { op, unit: unit.to_string() };
                return Err(Error::Reduce { name: format!("{}:{name}", first.name), source });
            }
        }
        if together == 2 && values.len() != 2 {
            let what = format!("dot takes two columns of values, not {}", values.len());
            return Err(Error::format(&first.name, what).with_hint("choose two: -c NAME,NAME"));
        }
        let mut columns: Vec<(String, DType)> = Vec::new();
        let mut readings = Vec::new();
        let mut units = Vec::new();
        let names: Vec<&str> = first.value_names().collect();
        for (values, names) in values.chunks(together).zip(names.chunks(together)) {
            let fixed = |place: usize| match values[place].typing {
                Typing::Fixed(dtype) => Some(dtype),
                _ => None,
            };
            let fixed = match together {
                1 => fixed(0),
                // Two columns have one type, as two arrays have.
                _ => match (fixed(0), fixed(1)) {
                    (Some(left), Some(right)) if left != right => {
                        return Err(wrong(warpfold::Error::DTypeMismatch { left, right }));
                    }
                    (Some(DType::F64), _) | (_, Some(DType::F64)) => Some(DType::F64),
                    (left, right) => left.and(right),
                },
            };
            units.extend(values[0].unit.clone().map(|unit| (columns.len(), unit)));
            let mut add = |dtype| {
                columns.push((names.join(", "), dtype));
                columns.len() - 1
            };
            readings.push(match fixed {
                Some(dtype) => Reading::Fixed(add(dtype)),
                None => {
                    let integers = add(DType::I64);
                    let floats = reduction.check_type(DType::F64, together).is_ok();
                    Reading::Open { integers, floats: floats.then(|| add(DType::F64)) }
                }
            });
        }
        let none = keys.iter().map(no_keys);
        let none = Keys::new(none.collect::<warpfold::Result<Vec<_>>>().map_err(wrong)?);
        let by = reduction.by(none).order(question.order).omit_missing(question.omit_missing);
        let mut empty = by.empty(&columns).map_err(wrong)?;
        empty.name_keys(first.key_names().map(str::to_owned).collect());
        units.into_iter().for_each(|(column, unit)| empty.count_values(column, unit));
        let names = names.into_iter().map(str::to_owned).collect();
        let memory = AtomicUsize::new(0);
        Ok(Pass { question, together, keys, readings, names, empty, memory })
    }

    fn run(&self, name: &str, inputs: Vec<Keyed>, progress: &dyn Progress) -> Result<GroupPartial> {
        let ledger = Ledger::new(self.question.start);
        let shared = SharedGroups::new(self.empty.clone());
        let wrong = |source| Error::Reduce { name: name.into(), source };
        let threads = self.question.reduction.thread_count().max(1);
        let failure = Failure::new();
        let failed = AtomicBool::new(false);
        let mut tables = inputs.into_iter();
        let mut table = None;
        let next = |number| -> Result<Option<Unit>> {
            loop {
                if table.is_none() {
                    match tables.next() {
                        Some(next) => table = Some(next.read()?),
                        None => return Ok(None),
                    }
                }
                let Some(units) = &mut table else { return Ok(None) };
                if let Some(unit) = units.next()? {
                    if let Some(rows) = unit.rows() {
                        ledger.record(number, rows);
                    }
                    return Ok(Some(unit));
                }
                table = None;
            }
        };
        let (desks, read) = read_numbered(name, threads + 1, &failed, next, |ahead| {
            scoped(threads, || -> Result<_> {
                let mut desk = Desk::new(self, shared.reader().map_err(wrong)?);
                let mut batch = Batch::new(DType::F64);
                while let Some((number, unit)) = ahead.take() {
                    if failure.precedes(number) {
                        continue;
                    }
                    let bytes = unit.bytes();
                    if let Err(error) = desk.unit(unit, number, &mut batch, &ledger, &shared) {
                        failed.store(true, Ordering::Relaxed);
                        failure.record(number, error);
                        // Those who wait for this unit's rows must not.
                        ledger.abort();
                        continue;
                    }
                    progress.advance(bytes);
                }
                Ok((desk.reader.into_own().map_err(wrong)?, desk.evidence))
            })
        });
        failure.into_result()?;
        read?;
        let (mut own, mut evidence): (Vec<_>, Option<Vec<Evidence>>) = (Vec::new(), None);
        for desk in desks {
            let (partial, seen) = desk.ok_or_else(|| Error::format(name, "a thread failed"))??;
            own.push(partial);
            match &mut evidence {
                None => evidence = Some(seen),
                Some(all) => all.iter_mut().zip(seen).for_each(|(all, seen)| all.merge(seen)),
            }
        }
        let evidence = evidence.ok_or_else(|| Error::format(name, "no thread ran"))?;
        let mut partial = shared.finish(own).map_err(|error| {
            wrong(match error {
                warpfold::Error::OutOfMemory { groups, .. } => {
                    let rows = ledger.end() - self.question.start;
                    warpfold::Error::OutOfMemory { groups, rows }
                }
                error => error,
            })
        })?;
        self.check_memory(&partial)?;
        let end = ledger.end();
        let start = self.question.start;
        partial.add_span(start, end - start).map_err(wrong)?;
        let places = self.readings.iter().zip(evidence.chunks(self.together));
        let places = places.map(|(reading, columns)| {
            let mut together = columns[0].clone();
            columns[1..].iter().for_each(|other| together.merge(other.clone()));
            self.decide(*reading, &together)
        });
        partial.keep_columns(&places.collect::<Result<Vec<_>>>()?);
        Ok(partial)
    }

    /// Which column of the partial a column of values has turned out to be.
    fn decide(&self, reading: Reading, evidence: &Evidence) -> Result<usize> {
        let (integers, floats) = match reading {
            Reading::Fixed(place) => return Ok(place),
            Reading::Open { integers, floats } => (integers, floats),
        };
        if let Some((_, cell)) = &evidence.decimal {
            return floats.ok_or_else(|| not_whole(cell, self.question.reduction.ops()));
        }
        if let Some((_, cell)) = evidence.huge.as_ref().or(evidence.large.as_ref()) {
            let what = format!("{} is beyond 64 bits with a sign", cell.place());
            return Err(Error::format(&cell.file, what)
                .with_hint("say as what the column is read: --dtype u64 or --dtype f64"));
        }
        // Without a single number it is of floats, as elsewhere.
        Ok(if evidence.integers { integers } else { floats.unwrap_or(integers) })
    }

    /// # Errors
    /// More memory than there may be.
    fn check_memory(&self, all: &GroupPartial) -> Result<()> {
        let bytes = all.memory();
        match self.question.memory_limit {
            Some(limit) if bytes > limit => {
                let (groups, rows) = (all.len(), all.rows());
                let source = warpfold::Error::TooManyGroups { groups, rows, bytes, limit };
                Err(Error::Reduce { name: self.names.join(", "), source })
            }
            _ => Ok(()),
        }
    }
}

impl<'a> Desk<'a> {
    fn new(pass: &'a Pass<'a>, reader: GroupReader<'a>) -> Desk<'a> {
        Desk {
            pass,
            reader,
            scratch: pass.keys.iter().map(|_| Scratch::default()).collect(),
            evidence: vec![Evidence::default(); pass.readings.len() * pass.together],
            floats: Default::default(),
            pair: Pair::default(),
            gaps: Vec::new(),
            told: 0,
        }
    }

    fn unit(
        &mut self,
        unit: Unit,
        number: u64,
        batch: &mut Batch,
        ledger: &Ledger,
        shared: &SharedGroups,
    ) -> Result<()> {
        let Desk { pass, reader, scratch, evidence, floats, pair, gaps, told } = self;
        let (known, name) = (unit.rows(), unit.name.clone());
        let mut columns = unit.decode(batch)?;
        let rows = columns[0].rows();
        match known {
            None => ledger.record(number, rows),
            Some(known) if known != rows => {
                return Err(Error::format(
                    name,
                    format!("{rows} rows where {known} were promised"),
                ));
            }
            Some(_) => {}
        }
        // Without a start there is an error already.
        let Some(start) = ledger.start_of(number) else { return Ok(()) };
        let wrong = |source| Error::Reduce { name: name.clone(), source };
        if start.checked_add(rows).is_none() {
            return Err(wrong(warpfold::Error::StartTooLarge { start, len: rows as usize }));
        }
        let (keys, values) = columns.split_at_mut(pass.keys.len());
        let keys = keys.iter().zip(scratch.iter_mut()).zip(&pass.keys);
        let keys = keys.map(|((batch, scratch), kind)| scratch.keys(batch, kind));
        let keys = Keys::new(keys.collect::<warpfold::Result<Vec<_>>>().map_err(wrong)?);
        reader.number(&keys, 0..rows as usize, start).map_err(|error| {
            wrong(match error {
                // Other threads have read rows, too.
                warpfold::Error::OutOfMemory { groups, .. } => {
                    let rows = start - pass.question.start;
                    warpfold::Error::OutOfMemory { groups, rows }
                }
                error => error,
            })
        })?;
        for (batch, evidence) in values.iter_mut().zip(evidence) {
            evidence.add(&mut core::mem::take(&mut batch.evidence), number);
        }
        for (batches, &reading) in values.chunks(pass.together).zip(&pass.readings) {
            // A pair is read as one type, whatever the cells of this block look like.
            let uniform = batches.iter().all(|batch| batch.dtype() == batches[0].dtype());
            let found = if uniform { batches[0].dtype() } else { DType::F64 };
            let mut absorb = |place: usize, dtype: DType| {
                let same = |batch: &Batch| batch.dtype() == dtype;
                let of = batches.iter().zip(floats.iter_mut());
                let items: Vec<&[u8]> = of
                    .map(
                        |(batch, floats)| {
                            if same(batch) { batch.bytes() } else { as_floats(batch, floats) }
                        },
                    )
                    .collect();
                let values = match (batches, &items[..]) {
                    ([left, right], &[items, others]) => {
                        pair.rows([items, others], dtype.size(), [left.gaps(), right.gaps()], rows)
                    }
                    _ => {
                        gaps.clear();
                        gaps.extend(batches[0].gaps().iter().map(|gap| (gap.row, gap.len)));
                        let wide = &batches[0].wide[..];
                        GroupValues { items: items[0], others: &[], gaps, wide }
                    }
                };
                reader.absorb_values(place, values);
            };
            match reading {
                Reading::Fixed(place) => match (found, pass.dtype(place)) {
                    // One of joined tables is of floats, this one may be of integers.
                    (_, DType::F64) => absorb(place, DType::F64),
                    (found, wanted) if found == wanted => absorb(place, wanted),
                    _ => return Err(Error::format(name, "a block is of another type")),
                },
                Reading::Open { integers, floats } => {
                    // A block of another type has said so: these states are not asked for.
                    if found == DType::I64 {
                        absorb(integers, DType::I64);
                    }
                    if let Some(floats) = floats {
                        absorb(floats, DType::F64);
                    }
                }
            }
        }
        // Less than before, where the thread's groups became others'.
        let more = reader.memory().wrapping_sub(core::mem::replace(told, reader.memory()));
        let own = pass.memory.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
        let all = own + shared.memory();
        match pass.question.memory_limit {
            Some(limit) if all > limit => {
                let (groups, rows) = (reader.groups(), start + rows - pass.question.start);
                Err(wrong(warpfold::Error::TooManyGroups { groups, rows, bytes: all, limit }))
            }
            _ => Ok(()),
        }
    }
}

impl Pass<'_> {
    fn dtype(&self, place: usize) -> DType {
        self.empty.value_columns().nth(place).map_or(DType::F64, |(_, dtype, _)| dtype)
    }
}

/// The numbers of a batch of text as floats.
fn as_floats<'a>(batch: &'a Batch, floats: &'a mut Vec<f64>) -> &'a [u8] {
    floats.clear();
    let bytes = batch.bytes();
    if bytes.is_empty() {
        return &[];
    }
    match batch.dtype() {
        DType::F64 => return bytes,
        DType::U64 => {
            floats.extend(bytemuck::cast_slice::<u8, u64>(bytes).iter().map(|&n| n as f64))
        }
        _ => floats.extend(bytemuck::cast_slice::<u8, i64>(bytes).iter().map(|&n| n as f64)),
    }
    for &place in &batch.negative_zeros {
        floats[place as usize] = -0.0;
    }
    bytemuck::cast_slice(floats)
}
