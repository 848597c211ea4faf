//! Reducing the segments of arrays.

use super::aligned::{Purpose, align};
use super::load::{Loaded, Loader};
use super::{Inputs, Outcome, Progress, watched};
use crate::{Error, Result, Source};
use warpfold::internal::{ForReaders, boundaries};
use warpfold::{Boundaries, Reduction, Segments};

/// What says where segments are: integers of any type. [`Segments`] says how.
#[derive(Debug)]
pub enum Cuts {
    /// One more than there are segments, ascending.
    Offsets(Source),
    /// Where each segment begins, and where each ends.
    StartsStops(Source, Source),
}

/// Reduces the segments of each of several arrays of one axis. The arrays are read into
/// memory one by one.
///
/// # Errors
/// Errors of reading, offsets that are not integers or have no value, and those of
/// [`Segmented::run`](warpfold::Segmented::run), which name the offsets' file where it is
/// to blame; an array that takes more memory than the limit, or than there is.
pub fn reduce_segments(
    mut arrays: Vec<Inputs>,
    cuts: Cuts,
    reduction: &Reduction,
    memory_limit: Option<usize>,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>> {
    let units = align(&mut arrays, reduction, Purpose::Answers)?;
    let all = || arrays.iter().flat_map(|inputs| inputs.items.iter().chain(&inputs.others));
    progress.begin(all().try_fold(0u64, |n, s| s.bytes.map(|b| n.saturating_add(b))));
    watched(reduction, progress, |progress| {
        let loader = Loader { memory_limit, progress };
        let load = |source| one(loader.load(vec![vec![source]])?);
        let mut each = |segments: Segments<'_>, name: &str| {
            let answered = core::mem::take(&mut arrays).into_iter().zip(&units);
            let answered = answered.map(|(inputs, unit)| {
                let question = reduction.about(unit.as_ref());
                let outcome = array(inputs, (segments, name), &question, &loader)?;
                Ok(Outcome { unit: unit.clone(), ..outcome })
            });
            answered.collect()
        };
        match cuts {
            Cuts::Offsets(offsets) => {
                let offsets = load(offsets)?;
                let held = Offsets::of(&offsets, OFFSETS)?;
                each(Segments::Offsets(&*held.0), offsets.name())
            }
            Cuts::StartsStops(starts, stops) => {
                let (starts, stops) = (load(starts)?, load(stops)?);
                let name = format!("{} and {}", starts.name(), stops.name());
                let held = (Offsets::of(&starts, STARTS)?, Offsets::of(&stops, STARTS)?);
                each(Segments::StartsStops(&*held.0.0, &*held.1.0), &name)
            }
        }
    })
}

/// The only one.
fn one(mut loaded: Vec<Loaded>) -> Result<Loaded> {
    loaded.pop().ok_or_else(super::nothing)
}

fn array(
    inputs: Inputs,
    (segments, cuts): (Segments<'_>, &str),
    reduction: &Reduction,
    loader: &Loader<'_>,
) -> Result<Outcome> {
    let sides = [inputs.items, inputs.others].into_iter().filter(|side| !side.is_empty());
    let loaded = loader.load(sides.collect())?;
    let question = reduction.clone().segments(segments);
    let (answer, name, missing) = match &loaded[..] {
        [only] => (question.run(only.input()?), only.name(), only.missing()),
        [left, right] => {
            let answer = question.run_pair(left.input()?, right.input()?);
            (answer, left.name(), left.missing().max(right.missing()))
        }
        _ => return Err(super::nothing()),
    };
    let answer = answer.map_err(|source| {
        let name = match source {
            warpfold::Error::BadSegment { .. } | warpfold::Error::BadSegments { .. } => {
                format!("{cuts}, for {name}")
            }
            _ => name.into(),
        };
        Error::Reduce { name, source }
    })?;
    Ok(Outcome { answer, missing: missing as u64, unit: None })
}

/// Integers of a type that segments are told by.
struct Offsets<'a>(Box<dyn Boundaries + 'a>);

impl Offsets<'_> {
    /// # Errors
    /// An array of something else than integers, or with missing values.
    fn of<'a>(loaded: &'a Loaded, hint: &str) -> Result<Offsets<'a>> {
        if loaded.missing() > 0 {
            let what = format!("{} of the offsets have no value", loaded.missing());
            return Err(Error::format(loaded.name(), what).with_hint(hint));
        }
        boundaries(&loaded.view()?).map(Offsets).ok_or_else(|| {
            let what = format!("offsets are integers, and these are {}", loaded.dtype());
            Error::format(loaded.name(), what).with_hint(hint)
        })
    }
}

const OFFSETS: &str =
    "n + 1 ascending integers say where n segments begin and end, such as 0, 3, 10";
const STARTS: &str = "integers say where each segment begins, and as many where each ends";
