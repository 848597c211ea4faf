//! Reducing the segments of arrays.

use super::aligned::{Purpose, align};
use super::load::{Loaded, Loader};
use super::{Inputs, Outcome, Progress};
use crate::{Error, Result, Source};
use warpfold::internal::{ForReaders, boundaries};
use warpfold::{Boundaries, Reduction, Segments};

/// Reduces the segments of each of several arrays of one axis: `offsets` are integers of any
/// type, one more than there are segments. The arrays are read into memory one by one.
///
/// # Errors
/// Errors of reading, offsets that are not integers or have no value, and those of
/// [`Segmented::run`](warpfold::Segmented::run); an array that takes more memory than the
/// limit, or than there is.
pub fn reduce_segments(
    mut arrays: Vec<Inputs>,
    offsets: Source,
    reduction: &Reduction,
    memory_limit: Option<usize>,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>> {
    let units = align(&mut arrays, reduction, Purpose::Answers)?;
    let all = || arrays.iter().flat_map(|inputs| inputs.items.iter().chain(&inputs.others));
    progress.begin(all().try_fold(0u64, |n, s| s.bytes.map(|b| n.saturating_add(b))));
    let loader = Loader { memory_limit, progress };
    let offsets = one(loader.load(vec![vec![offsets]])?)?;
    let offsets = Offsets::of(&offsets)?;
    let answered = arrays.into_iter().zip(units).map(|(inputs, unit)| {
        let outcome = array(inputs, &offsets, &reduction.about(unit.as_ref()), &loader)?;
        Ok(Outcome { unit, ..outcome })
    });
    answered.collect()
}

/// The only one.
fn one(mut loaded: Vec<Loaded>) -> Result<Loaded> {
    loaded.pop().ok_or_else(super::nothing)
}

fn array(
    inputs: Inputs,
    offsets: &Offsets<'_>,
    reduction: &Reduction,
    loader: &Loader<'_>,
) -> Result<Outcome> {
    let sides = [inputs.items, inputs.others].into_iter().filter(|side| !side.is_empty());
    let loaded = loader.load(sides.collect())?;
    let question = reduction.clone().segments(Segments::Offsets(&*offsets.0));
    let (answer, name, missing) = match &loaded[..] {
        [only] => (question.run(only.input()?), only.name(), only.missing()),
        [left, right] => {
            let answer = question.run_pair(left.input()?, right.input()?);
            (answer, left.name(), left.missing().max(right.missing()))
        }
        _ => return Err(super::nothing()),
    };
    let answer = answer.map_err(|source| Error::Reduce { name: name.into(), source })?;
    Ok(Outcome { answer, missing: missing as u64, unit: None })
}

/// Integers of a type that segments are told by.
struct Offsets<'a>(Box<dyn Boundaries + 'a>);

impl Offsets<'_> {
    /// # Errors
    /// An array of something else than integers, or with missing values.
    fn of(loaded: &Loaded) -> Result<Offsets<'_>> {
        if loaded.missing() > 0 {
            let what = format!("{} of the offsets have no value", loaded.missing());
            return Err(Error::format(loaded.name(), what).with_hint(HINT));
        }
        boundaries(&loaded.view()?).map(Offsets).ok_or_else(|| {
            let what = format!("offsets are integers, and these are {}", loaded.dtype());
            Error::format(loaded.name(), what).with_hint(HINT)
        })
    }
}

const HINT: &str = "n + 1 ascending integers say where n segments begin and end, such as 0, 3, 10";
