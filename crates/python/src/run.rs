//! Reductions without the interpreter's lock, in pieces between which Ctrl-C is heard.

use crate::errors::OrRaise;
use pyo3::PyResult;
use pyo3::Python;
use pyo3::exceptions::PyRuntimeError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, scope};
use std::time::Duration;
use warpfold::internal::WhileWanted;
use warpfold::{Answer, Device, Partial, Reduction, View};

/// Bytes above which Ctrl-C is heard while they are reduced: some milliseconds.
const LONG: usize = 64 << 20;

/// Elements that are reduced sooner than the lock is let go and taken again.
const FEW: usize = 512;

/// How long a thread waits for work beside it before it looks for Ctrl-C.
const HEARING: Duration = Duration::from_millis(20);

/// One array, or the two of a dot product.
pub(crate) type Views<'a> = [Option<&'a View<'a>>; 2];

/// The answers to a question.
///
/// # Errors
/// Those of [`Reduction::run`], and `KeyboardInterrupt`.
pub(crate) fn run(py: Python<'_>, question: &Reduction, views: Views<'_>) -> PyResult<Answer> {
    let Some(first) = views[0] else { return question.run_views(views).or_raise(py) };
    if first.len() <= FEW && matches!(question.named_device(), Device::Auto | Device::Cpu) {
        return question.run_views(views).or_raise(py);
    }
    if !is_long(first) || !matches!(question.named_device(), Device::Auto | Device::Cpu) {
        return py.detach(|| question.run_views(views)).or_raise(py);
    }
    let mut signals = Ok(());
    let made = py.detach(|| {
        question.run_while(views, &mut || {
            signals = Python::attach(|py| py.check_signals());
            signals.is_ok()
        })
    });
    signals?;
    made.or_raise(py)
}

/// The answers to a question of the elements that are marked.
///
/// # Errors
/// Those of [`Reduction::run_marked`], and `KeyboardInterrupt`.
pub(crate) fn marked(
    py: Python<'_>,
    question: &Reduction,
    view: &View<'_>,
    marks: &View<'_>,
) -> PyResult<Answer> {
    let made = py.detach(|| question.run_marked(view, marks));
    py.check_signals()?;
    made.or_raise(py)
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
    bytes(view) > LONG
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
