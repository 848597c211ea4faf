//! Which arrays are read in one pass: columns of the same tables.

use super::table::{Output, Pass};
use super::{Inputs, Progress, lockstep};
use crate::table::{Table, Typing};
use crate::{Access, Error, Result, Source, TableColumn};
use std::sync::Arc;
use warpfold::internal::ForReaders;
use warpfold::{Axes, DType, Partial, Reduction};

/// Arrays that are reduced at once.
pub(super) enum Group {
    /// One, as it is.
    Array(Inputs),
    /// Columns of tables.
    Columns(Vec<Inputs>),
}

/// Puts neighbours together that are columns of the same tables.
pub(super) fn groups(arrays: Vec<Inputs>, reduction: &Reduction) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for mut array in arrays {
        if !is_columns(&array) || !takes_all(reduction)? {
            settle(&mut array)?;
            groups.push(Group::Array(array));
            continue;
        }
        match groups.last_mut() {
            Some(Group::Columns(columns)) if same_tables(&columns[0], &array) => {
                columns.push(array);
            }
            _ => groups.push(Group::Columns(vec![array])),
        }
    }
    Ok(groups)
}

/// Whether a column is reduced to one value.
fn takes_all(reduction: &Reduction) -> Result<bool> {
    let axes = reduction.named_axes();
    let reduced = axes.resolve(1);
    let reduced = reduced.map_err(|source| Error::Reduce { name: String::new(), source })?;
    Ok(matches!(axes, Axes::All) || reduced[..] == [true])
}

fn column(source: &Source) -> Option<&TableColumn> {
    match &source.access {
        Access::Column(column) => Some(column),
        _ => None,
    }
}

fn sources(array: &Inputs) -> impl Iterator<Item = &Source> {
    array.items.iter().chain(&array.others)
}

fn is_columns(array: &Inputs) -> bool {
    !array.items.is_empty() && sources(array).all(|source| column(source).is_some())
}

fn table(source: &Source) -> Option<&Arc<Table>> {
    column(source).map(|column| &column.table)
}

fn same_table(left: &Source, right: &Source) -> bool {
    matches!((table(left), table(right)), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
}

/// Whether a pair's columns come from one table each time.
fn within_tables(array: &Inputs) -> bool {
    array.others.is_empty()
        || array.items.len() == array.others.len()
            && array.items.iter().zip(&array.others).all(|(a, b)| same_table(a, b))
}

fn same_tables(left: &Inputs, right: &Inputs) -> bool {
    left.items.len() == right.items.len()
        && left.others.len() == right.others.len()
        && left.items.iter().zip(&right.items).all(|(a, b)| same_table(a, b))
        && within_tables(left)
        && within_tables(right)
}

/// Makes columns that are joined with other arrays plain sources of these arrays'
/// type, if that holds the numbers that text is read as; of what their first
/// cells show otherwise.
fn settle(array: &mut Inputs) -> Result<()> {
    let told = |s: &&Source| column(s).is_none_or(|c| !c.is_open());
    let dtype = sources(array).find(told).map(|source| source.dtype);
    let dtype = dtype.filter(|d| matches!(d, DType::I64 | DType::U64 | DType::F64));
    for source in array.items.iter_mut().chain(&mut array.others) {
        let Access::Column(column) = &source.access else { continue };
        if column.is_open() {
            source.dtype = dtype.unwrap_or(source.dtype);
        }
        source.access = Access::Sequential(column.blocks(source.dtype)?);
    }
    Ok(())
}

/// How the columns of an array are read, all of them.
fn typing(array: &Inputs) -> Result<Typing> {
    let mut typing = Typing::Open;
    for column in sources(array).filter_map(column) {
        match (typing, column.typing) {
            (Typing::Fixed(a), Typing::Fixed(b)) if a != b => {
                return Err(Error::format(
                    &column.table.name,
                    format!("its type is {b}, but that of {} is {a}", array.items[0].name),
                ));
            }
            (_, Typing::Fixed(dtype)) => typing = Typing::Fixed(dtype),
            (Typing::Open, Typing::Open) if column.decimals => {
                typing = Typing::Fixed(DType::F64);
            }
            // Nobody reduces texts: they are keys.
            (_, Typing::Open | Typing::Text) => {}
        }
    }
    Ok(typing)
}

/// Reduces columns of the same tables, or a pair of columns of different ones.
pub(super) fn partials(
    columns: Vec<Inputs>,
    reduction: &Reduction,
    start: u64,
    progress: &dyn Progress,
) -> Result<Vec<Partial>> {
    // Text does not tell how many bytes its numbers take in memory.
    let reduction = &reduction.settled(DType::F64, None);
    for array in &columns {
        check(array, reduction)?;
    }
    let tables: Vec<&Table> = columns[0].items.iter().filter_map(table).map(|t| &**t).collect();
    let readers = || tables.iter().map(|table| &*table.reader);
    let bytes = readers().try_fold(0u64, |n, r| r.bytes().map(|b| n.saturating_add(b)));
    progress.begin(bytes);
    let partials = match &columns[..] {
        [pair] if !within_tables(pair) => vec![of_two_tables(pair, reduction, start, progress)?],
        _ => in_one_pass(&columns, &tables, reduction, start, progress)?,
    };
    if !reduction.keeps_dims() {
        return Ok(partials);
    }
    let reshaped = partials.into_iter().zip(&columns).map(|(partial, array)| {
        let name = array.items[0].name.clone();
        partial.reshaped(vec![1]).map_err(|source| Error::Reduce { name, source })
    });
    reshaped.collect()
}

/// Checks the question against the types that an array can have.
fn check(array: &Inputs, reduction: &Reduction) -> Result<()> {
    let name = &array.items[0].name;
    let wrong = |source| Error::Reduce { name: name.clone(), source };
    let arrays = 1 + usize::from(!array.others.is_empty());
    match typing(array)? {
        Typing::Fixed(dtype) => reduction.check_type(dtype, arrays).map_err(wrong)?,
        Typing::Open | Typing::Text => {
            reduction.check_type(DType::I64, arrays).map_err(wrong)?;
        }
    }
    if !array.others.is_empty() && array.items.len() != array.others.len() {
        return Err(Error::format(
            name,
            format!(
                "dot takes as many pieces of the second array as of the first, not {} and {}",
                array.others.len(),
                array.items.len()
            ),
        ));
    }
    Ok(())
}

/// The columns of joined tables, each read once.
fn in_one_pass(
    columns: &[Inputs],
    tables: &[&Table],
    reduction: &Reduction,
    start: u64,
    progress: &dyn Progress,
) -> Result<Vec<Partial>> {
    let (mut outputs, mut typings) = (Vec::new(), Vec::new());
    for array in columns {
        let typing = typing(array)?;
        let mut place = || {
            typings.push(typing);
            typings.len() - 1
        };
        let left = place();
        let right = (!array.others.is_empty()).then(place);
        let name = array.items[0].name.clone();
        outputs.push(Output { name, columns: [Some(left), right], typing });
    }
    let places = |i: usize| {
        let arrays = columns.iter().flat_map(move |array| {
            let pair = [array.items.get(i), array.others.get(i)];
            pair.into_iter().flatten().filter_map(column).map(|column| column.place)
        });
        arrays.zip(typings.iter().copied()).collect::<Vec<_>>()
    };
    let read = |(i, table): (usize, &&Table)| table.reader.read(&places(i));
    let blocks = tables.iter().enumerate().map(read).collect::<Result<Vec<_>>>()?;
    let columns = typings.len();
    Pass { outputs: &outputs, columns, reduction, start, progress }.run(blocks)
}

/// Pairs whose columns lie in different tables.
fn of_two_tables(
    array: &Inputs,
    reduction: &Reduction,
    start: u64,
    progress: &dyn Progress,
) -> Result<Partial> {
    let typing = typing(array)?;
    let name = array.items[0].name.clone();
    let output = Output { name: name.clone(), columns: [Some(0), Some(1)], typing };
    let mut whole: Option<Partial> = None;
    let mut at = start;
    for (left, right) in array.items.iter().zip(&array.others) {
        let read = |source: &Source| match column(source) {
            Some(column) => column.table.reader.read(&[(column.place, typing)]),
            None => Err(Error::format(&source.name, "not a column")),
        };
        let blocks = [read(left)?, read(right)?];
        let names = [&*left.name, &*right.name];
        let (partial, end) = lockstep::partial(names, blocks, &output, reduction, at, progress)?;
        at = end;
        match &mut whole {
            None => whole = Some(partial),
            Some(whole) => whole
                .merge(&partial)
                .map_err(|source| Error::Reduce { name: name.clone(), source })?,
        }
    }
    whole.ok_or_else(|| Error::format(name, "there is nothing to reduce"))
}
