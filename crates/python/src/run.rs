//! Reductions without the interpreter's lock, in pieces between which Ctrl-C is heard.

use crate::answers::append;
use crate::errors::OrRaise;
use pyo3::PyResult;
use pyo3::Python;
use pyo3::exceptions::PyRuntimeError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, scope};
use std::time::Duration;
use warpfold::internal::ForReaders;
use warpfold::{Answer, Column, Device, Partial, Reduction, Result, View};

/// Bytes that are reduced before Ctrl-C is looked for: some milliseconds.
const PIECE: usize = 64 << 20;

/// Elements that are reduced sooner than the lock is let go and taken again.
const FEW: usize = 512;

/// How long a thread waits for work beside it before it looks for Ctrl-C.
const HEARING: Duration = Duration::from_millis(20);

/// One array, or the two of a dot product.
pub(crate) type Views<'a> = [Option<&'a View<'a>>; 2];

fn once(question: &Reduction, views: Views<'_>) -> Result<Answer> {
    match views {
        [Some(left), Some(right)] => question.run_pair(left, right),
        [Some(view), _] => question.run(view),
        [None, _] => Answer::from_columns(Vec::new(), Vec::new()),
    }
}

/// The answers to a question.
///
/// # Errors
/// Those of [`Reduction::run`], and `KeyboardInterrupt`.
pub(crate) fn run(py: Python<'_>, question: &Reduction, views: Views<'_>) -> PyResult<Answer> {
    let Some(first) = views[0] else { return once(question, views).or_raise(py) };
    if first.len() <= FEW && matches!(question.named_device(), Device::Auto | Device::Cpu) {
        return once(question, views).or_raise(py);
    }
    if !is_long(first) || !matches!(question.named_device(), Device::Auto | Device::Cpu) {
        return py.detach(|| once(question, views)).or_raise(py);
    }
    // What is wrong with the question is said before anything is cut up.
    let reduced = question.named_axes().resolve(first.shape().len()).or_raise(py)?;
    if let Some(second) = views[1] {
        first.check_pair(second).or_raise(py)?;
    }
    let question = &question.settled(first.dtype(), Some(bytes(first) as u64));
    let mut pieces = Pieces { py, question, reduced: &reduced };
    pieces.answer(views)
}

/// The states of an array that is a piece of a larger one.
///
/// # Errors
/// Those of [`Reduction::partial`], and `KeyboardInterrupt`.
pub(crate) fn partial(
    py: Python<'_>,
    question: &Reduction,
    views: Views<'_>,
    start: u64,
) -> PyResult<Partial> {
    let made = py.detach(|| match views {
        [Some(left), Some(right)] => question.partial_pair(left, right, start),
        [Some(view), _] => question.partial(view, start),
        [None, _] => question.partial(&[0.0f64; 0], start),
    });
    py.check_signals()?;
    made.or_raise(py)
}

/// What work makes that ends soon after the flag was set which it is given: Ctrl-C sets it. The
/// work is done on a thread beside this one, or on this one where the system refuses a thread.
///
/// # Errors
/// `KeyboardInterrupt`, or whatever else a handler of signals raises.
pub(crate) fn heard<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> R + Send,
) -> PyResult<R> {
    let stop = Arc::new(AtomicBool::new(false));
    // Whatever ends the work drops the sender.
    let (sender, receiver) = channel::<()>();
    let (work, receiver) = (Mutex::new(Some((work, sender))), Mutex::new(receiver));
    let run = || {
        let taken = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map(|(work, _sender)| work(&stop))
    };
    scope(|scope| {
        let mut signals = Ok(());
        let made = match Builder::new().spawn_scoped(scope, run) {
            Ok(thread) => {
                let waits = || {
                    let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
                    receiver.recv_timeout(HEARING) == Err(RecvTimeoutError::Timeout)
                };
                while signals.is_ok() && py.detach(waits) {
                    signals = py.check_signals();
                }
                stop.store(signals.is_err(), Ordering::Relaxed);
                py.detach(|| thread.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            Err(_) => py.detach(run),
        };
        signals.and_then(|()| py.check_signals())?;
        made.ok_or_else(|| PyRuntimeError::new_err("the work was done twice: please report it"))
    })
}

fn bytes(view: &View<'_>) -> usize {
    view.len().saturating_mul(view.dtype().size())
}

fn is_long(view: &View<'_>) -> bool {
    bytes(view) > PIECE
}

struct Pieces<'a, 'py> {
    py: Python<'py>,
    question: &'a Reduction,
    reduced: &'a [bool],
}

impl Pieces<'_, '_> {
    /// The answers of arrays that may be long. Those along the first axis that is kept follow
    /// each other; an array with one output is absorbed piece by piece.
    fn answer(&mut self, views: Views<'_>) -> PyResult<Answer> {
        let [Some(first), second] = views else {
            return once(self.question, views).or_raise(self.py);
        };
        let long = |wanted: bool| {
            let axes = first.shape().iter().zip(self.reduced);
            axes.enumerate()
                .find(|(_, (n, reduced))| **reduced == wanted && **n > 1)
                .map(|(i, (n, _))| (i, *n))
        };
        if !is_long(first) {
            let made = self.py.detach(|| once(self.question, views));
            self.py.check_signals()?;
            return made.or_raise(self.py);
        }
        if let Some((axis, len)) = long(false) {
            let mut columns: Option<Vec<Column>> = None;
            for (from, to) in cuts(first, axis, len) {
                let (left, right) = parts(first, second, axis, from, to);
                let made = self.answer([Some(&left), right.as_ref()])?.into_columns();
                append(&mut columns, made);
            }
            let shape = output_shape(first.shape(), self.reduced, self.question.keeps_dims());
            return Answer::from_columns(shape, columns.unwrap_or_default()).or_raise(self.py);
        }
        match long(true) {
            Some((axis, len)) if !self.question.ops().is_empty() => {
                let later = first.shape()[axis + 1..].iter().zip(&self.reduced[axis + 1..]);
                let step: usize = later.filter(|(_, reduced)| **reduced).map(|(n, _)| *n).product();
                let mut all: Option<Partial> = None;
                for (from, to) in cuts(first, axis, len) {
                    let (left, right) = parts(first, second, axis, from, to);
                    let start = from as u64 * step as u64;
                    let made = self.py.detach(|| match (&mut all, &right) {
                        (Some(all), None) => self.question.absorb(all, &left, start),
                        (Some(all), Some(right)) => {
                            self.question.absorb_pair(all, &left, right, start)
                        }
                        (None, None) => {
                            self.question.partial(&left, start).map(|made| all = Some(made))
                        }
                        (None, Some(right)) => self
                            .question
                            .partial_pair(&left, right, start)
                            .map(|made| all = Some(made)),
                    });
                    self.py.check_signals()?;
                    made.or_raise(self.py)?;
                }
                match all {
                    Some(all) => all.finish(self.question.rules()).or_raise(self.py),
                    None => once(self.question, views).or_raise(self.py),
                }
            }
            _ => {
                let made = self.py.detach(|| once(self.question, views));
                self.py.check_signals()?;
                made.or_raise(self.py)
            }
        }
    }
}

/// Where an axis is cut, so that pieces have about the bytes that they should.
fn cuts(view: &View<'_>, axis: usize, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let each = (bytes(view) / view.shape()[axis]).max(1);
    let step = (PIECE / each).max(1);
    (0..len).step_by(step).map(move |from| (from, len.min(from + step)))
}

fn parts<'a>(
    first: &View<'a>,
    second: Option<&View<'a>>,
    axis: usize,
    from: usize,
    to: usize,
) -> (View<'a>, Option<View<'a>>) {
    (part(first, axis, from, to), second.map(|view| part(view, axis, from, to)))
}

/// The elements of a view from one index of an axis to before another.
pub(crate) fn part<'a>(view: &View<'a>, axis: usize, from: usize, to: usize) -> View<'a> {
    let mut shape = view.shape().to_vec();
    shape[axis] = to - from;
    let offset = view.strides()[axis].wrapping_mul(from.cast_signed());
    let origin = view.origin().wrapping_offset(offset);
    // SAFETY: these are some of the elements of a view, which lives as long.
    unsafe { View::from_raw(view.dtype(), origin, &shape, view.strides()) }
}

/// The shape of the answers: without the reduced axes, or with a 1 in place of each.
pub(crate) fn output_shape(shape: &[usize], reduced: &[bool], keepdims: bool) -> Vec<usize> {
    let axes = shape.iter().zip(reduced);
    axes.filter_map(|(&n, &reduced)| if reduced { keepdims.then_some(1) } else { Some(n) })
        .collect()
}
