//! Reductions of long arrays in pieces, between which somebody may end them.

use crate::answer::{Answer, Column};
use crate::cancel::Until;
use crate::initial;
use crate::partial::Partial;
use crate::reduction::Reduction;
use warpfold_core::layout::{View, output_shape};
use warpfold_core::{Error, Result};

/// Bytes that are reduced before somebody is asked again: some milliseconds.
const PIECE: usize = 64 << 20;

/// One array, or the two of a dot product.
pub(crate) type Views<'a> = [Option<&'a View<'a>>; 2];

/// What is asked between pieces: whether to go on.
type GoOn<'f> = &'f mut dyn FnMut() -> bool;

impl Reduction {
    /// The same as [`run`](Self::run) and [`run_pair`](Self::run_pair), as long as `go_on` says
    /// so, which is asked before each piece of a long array.
    ///
    /// # Errors
    /// Theirs, and [`Error::Cancelled`].
    pub(crate) fn run_while(&self, views: Views<'_>, go_on: GoOn<'_>) -> Result<Answer> {
        let question = self.alone(views);
        match cut(views, &question)? {
            Some(cut) if !question.ops.is_empty() => question.answers(views, cut, go_on),
            _ => asked(go_on, || question.run_whole(views)),
        }
    }

    /// The same as [`partial`](Self::partial) and [`partial_pair`](Self::partial_pair).
    ///
    /// # Errors
    /// Theirs, and [`Error::Cancelled`].
    pub(crate) fn partial_while(
        &self,
        views: Views<'_>,
        start: u64,
        go_on: GoOn<'_>,
    ) -> Result<Partial> {
        let question = self.alone(views);
        question.states_while(views, start, go_on)
    }

    /// The same question without a token, of a device that is chosen once for all pieces.
    fn alone(&self, views: Views<'_>) -> Reduction {
        let mut question = self.clone();
        question.until = Until::default();
        match views[0] {
            Some(view) if bytes(view) > PIECE => {
                question.settled(view.dtype(), Some(bytes(view) as u64))
            }
            _ => question,
        }
    }

    fn answers(&self, views: Views<'_>, cut: Cut, go_on: GoOn<'_>) -> Result<Answer> {
        if let (true, Some(view)) = (cut.reduced, views[0]) {
            // Each piece would count an initial value.
            let mut question = self.clone();
            question.initial = None;
            let initial = initial::of(self, view.dtype())?;
            let mut states = question.states_while(views, 0, go_on)?;
            if let Some(initial) = initial {
                initial::absorb(&question, &mut states, initial, view.len() as u64)?;
            }
            return states.finish(&self.rules);
        }
        let mut columns: Vec<Column> = Vec::new();
        for (_, [left, right]) in cut.pieces(views) {
            let made = self.run_while([left.as_ref(), right.as_ref()], go_on)?.into_columns();
            if columns.is_empty() {
                columns = made;
                continue;
            }
            columns.iter_mut().zip(&made).try_for_each(|(all, made)| all.append(made))?;
        }
        Answer::from_columns(cut.shape, columns)
    }

    fn states_while(&self, views: Views<'_>, start: u64, go_on: GoOn<'_>) -> Result<Partial> {
        let Some(cut) = cut(views, self)? else {
            return asked(go_on, || self.partial_views(views, start));
        };
        if let Some(view) = views[0] {
            // What is wrong with all of it is said before anything is cut up.
            self.asked(view.dtype(), view.shape(), views.iter().flatten().count(), start)?;
        }
        let mut parts = Vec::new();
        for (from, [left, right]) in cut.pieces(views) {
            let start = if cut.reduced { start + (from * cut.step) as u64 } else { start };
            let made = self.states_while([left.as_ref(), right.as_ref()], start, go_on)?;
            match parts.last_mut() {
                Some(all) if cut.reduced => Partial::merge(all, &made)?,
                _ => parts.push(made),
            }
        }
        Partial::joined(cut.shape, parts)
    }
}

/// What `work` makes, if somebody wants it before it begins and when it is done.
fn asked<R>(go_on: GoOn<'_>, work: impl FnOnce() -> Result<R>) -> Result<R> {
    if !go_on() {
        return Err(Error::Cancelled);
    }
    let made = work()?;
    if go_on() { Ok(made) } else { Err(Error::Cancelled) }
}

/// How an array is cut.
struct Cut {
    axis: usize,
    /// Whether that is one of those that are reduced.
    reduced: bool,
    /// Indices of a piece.
    len: usize,
    /// Positions from one index to the next, if it is.
    step: usize,
    /// The shape of the answers of the whole.
    shape: Vec<usize>,
}

/// Where an array is cut that is long: along the first axis that is kept, whose answers follow
/// each other, or else along the first that is reduced.
///
/// # Errors
/// Axes that it does not have; arrays that do not agree.
fn cut(views: Views<'_>, question: &Reduction) -> Result<Option<Cut>> {
    let Some(view) = views[0].filter(|view| bytes(view) > PIECE) else { return Ok(None) };
    if let Some(second) = views[1] {
        view.check_pair(second)?;
    }
    let reduced = question.named_axes().resolve(view.shape().len())?;
    let first =
        |wanted: bool| (0..reduced.len()).find(|&i| reduced[i] == wanted && view.shape()[i] > 1);
    let Some(axis) = first(false).or_else(|| first(true)) else { return Ok(None) };
    let each = (bytes(view) / view.shape()[axis]).max(1);
    let later = view.shape()[axis + 1..].iter().zip(&reduced[axis + 1..]);
    Ok(Some(Cut {
        axis,
        reduced: reduced[axis],
        len: (PIECE / each).max(1),
        step: later.filter(|(_, reduced)| **reduced).map(|(n, _)| n).product(),
        shape: output_shape(view.shape(), &reduced, question.keeps_dims()),
    }))
}

impl Cut {
    /// The pieces, and the index that each begins at.
    fn pieces<'a>(&self, views: Views<'a>) -> impl Iterator<Item = (usize, [Option<View<'a>>; 2])> {
        let (axis, step) = (self.axis, self.len);
        let len = views[0].map_or(0, |view| view.shape()[axis]);
        (0..len).step_by(step).map(move |from| {
            let range = from..len.min(from + step);
            (from, views.map(|view| view.and_then(|view| view.part(axis, range.clone()))))
        })
    }
}

fn bytes(view: &View<'_>) -> usize {
    view.len().saturating_mul(view.dtype().size())
}
