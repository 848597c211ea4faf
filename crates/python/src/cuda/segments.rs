//! Segments of an array in a device's memory, whose answers stay there.

use super::{Asked, DeviceArray, Opened, failure, opened};
use crate::import::Family;
use crate::segments::{Form, Integers};
use pyo3::prelude::*;
use std::sync::Arc;
use warpfold::{Reduction, Scalar};
use warpfold_cuda::engine::{Boundaries, Number, Segments, Width};
use warpfold_cuda::{Buffer, Stream};

impl DeviceArray {
    /// The answers about segments of this array, left in the device's memory, if the device makes
    /// all of them; waits for them.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn segments<'py>(
        &self,
        py: Python<'py>,
        question: &Reduction,
        form: &Form<Integers>,
        initial: Option<Scalar>,
        family: &Family<'py>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let (dtype, rules) = (self.view.dtype, question.rules());
        let Some(array) = self.run().filter(|array| array.len > 0) else { return Ok(None) };
        let len = array.len as usize;
        if question.ops().iter().any(|&op| Number::under(op, dtype, rules).is_none()) {
            return Ok(None);
        }
        let opened = opened(py, self.ordinal)?;
        let mut sent = Vec::new();
        let mut place = |integers| self.place(py, &opened, integers, &mut sent);
        let told = match form {
            Form::Fixed(each) => {
                let whole = *each > 0 && len.is_multiple_of(*each);
                whole.then(|| (len / each, Boundaries::Fixed(*each as u64)))
            }
            Form::Offsets(offsets) => place(offsets)?.and_then(|(len, address, width)| {
                Some((len.checked_sub(1)?, Boundaries::Offsets(address, width)))
            }),
            Form::StartsStops(starts, stops) => match (place(starts)?, place(stops)?) {
                (Some((n, first, width)), Some((m, second, other))) if n == m => {
                    Some((n, Boundaries::StartsStops((first, width), (second, other))))
                }
                _ => None,
            },
            Form::Lengths(_) => None,
        };
        let Some((count, boundaries)) = told.filter(|&(count, _)| count > 0) else {
            return Ok(None);
        };
        self.wait_for_its_stream(py)?;
        let segments = Segments { count: count as u64, boundaries };
        let asked =
            Asked { array: self, opened: &opened, chosen: None, reduced: &[true], shape: &[count] };
        let leave = |numbers: &[Number], to: &[u64], _| {
            let (engine, stream) = (&opened.engine, Stream::DEFAULT);
            // SAFETY: producers made elements and boundaries readable on the default stream, and
            // their owners live until this returns; the memory has room for as many answers.
            unsafe {
                engine.numbers_of_segments_into(numbers, array, &segments, initial, to, stream)
            }
        };
        let answers = asked.answers(py, question.ops(), rules, family, leave)?;
        Ok(answers.into_iter().collect())
    }

    /// How many integers tell segments of this array, where they lie in the device's memory, and as
    /// what; those of the host are sent there and kept in `sent`.
    fn place(
        &self,
        py: Python<'_>,
        opened: &Arc<Opened>,
        integers: &Integers,
        sent: &mut Vec<Buffer<'static>>,
    ) -> PyResult<Option<(usize, u64, Width)>> {
        match integers {
            Integers::There(array) => {
                let width = Width::of(array.view.dtype).filter(|_| array.ordinal == self.ordinal);
                array.wait_for_its_stream(py)?;
                let told = array.run().zip(width);
                Ok(told.map(|(run, width)| (run.len as usize, run.address, width)))
            }
            Integers::Here(dense) => {
                let view = dense.view();
                let (Some(bytes), Some(width)) = (view.contiguous(), Width::of(view.dtype()))
                else {
                    return Ok(None);
                };
                let made = Buffer::new(opened.engine.device(), bytes.len() as u64)
                    .and_then(|buffer| buffer.copy_in(Stream::DEFAULT, 0, bytes).map(|()| buffer));
                let buffer = made.map_err(|error| failure(py, &error))?;
                let address = buffer.address();
                sent.push(buffer);
                Ok(Some((view.len(), address, width)))
            }
        }
    }
}
