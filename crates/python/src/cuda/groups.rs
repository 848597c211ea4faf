//! Groups of rows in a device's memory, whose keys and answers stay there.

use super::{DeviceArray, Place, failure, opened, parts_of};
use crate::answers::type_of;
use crate::import::Family;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use warpfold::{DType, Reduction};
use warpfold_cuda::Stream;
use warpfold_cuda::engine::{Grouped, Number};

/// Keys by column, and answers by operation.
pub(crate) type Left<'py> = (Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>);

impl DeviceArray {
    /// The keys of the groups of rows, and the answers about these values, in the order of the
    /// keys, if the device makes all of them; waits for them. Keys go to the library of each
    /// column.
    ///
    /// # Errors
    /// What the device says.
    pub(crate) fn groups<'py>(
        &self,
        py: Python<'py>,
        question: &Reduction,
        keys: &[(&DeviceArray, &Family<'py>)],
        family: &Family<'py>,
    ) -> PyResult<Option<Left<'py>>> {
        let (dtype, rules) = (self.view.dtype, question.rules());
        let parts = question.ops().iter().map(|&op| parts_of(op, dtype, rules));
        let parts: Vec<[Option<Number>; 2]> = parts.collect();
        if parts.iter().any(|parts| parts[0].is_none()) {
            return Ok(None);
        }
        let numbers: Vec<Number> = parts.iter().flatten().flatten().copied().collect();
        let here = |array: &DeviceArray| array.run().filter(|_| array.ordinal == self.ordinal);
        let columns = keys.iter().map(|(keys, _)| here(keys)).collect::<Option<Vec<_>>>();
        let Some((values, columns)) = self.run().zip(columns) else { return Ok(None) };
        let opened = opened(py, self.ordinal)?;
        for array in keys.iter().map(|(keys, _)| *keys).chain([self]) {
            array.wait_for_its_stream(py)?;
        }
        let made = py.detach(|| {
            // SAFETY: producers made the columns readable on the default stream, and their owners
            // live until this returns.
            unsafe { opened.engine.group(&numbers, values, &columns, None, Stream::DEFAULT) }
        });
        let mut made = match made {
            Err(error) if error.is_out_of_memory() => return Ok(None),
            made => made.map_err(|error| failure(py, &error))?,
        };
        let Some(made) = made.as_mut() else { return Ok(None) };
        if (0..numbers.len()).any(|place| made.answer_type(place).is_none()) {
            return Ok(None);
        }
        let shape = [made.count()];
        let mut left = |dtype: DType, family: &Family<'py>, leave: Leave<'_>| {
            let place = self.room(py, dtype, &shape, &opened, family)?;
            let to = place.address();
            py.detach(|| leave(made, to)).map_err(|error| failure(py, &error))?;
            Place::given(place, py, self.ordinal, dtype, &shape, family)
        };
        let mut keys_there = Vec::with_capacity(keys.len());
        for (column, (keys, family)) in keys.iter().enumerate() {
            // SAFETY: there is room for a key of each group, had for the work of this stream.
            let leave = |all: &mut Grouped<'_>, to| unsafe { all.keys_into(column, to) };
            keys_there.push(left(keys.view.dtype, family, &leave)?);
        }
        let mut answers = Vec::with_capacity(question.ops().len());
        let mut places = 0..numbers.len();
        for parts in parts {
            let parts = parts.iter().flatten().zip(places.by_ref()).map(|(number, place)| {
                // SAFETY: as above, of answers.
                let leave = |all: &mut Grouped<'_>, to| unsafe { all.numbers_into(place, to) };
                left(type_of(number.op, dtype), family, &leave)
            });
            let mut parts = parts.collect::<PyResult<Vec<_>>>()?;
            answers.push(match parts.len() {
                1 => parts.remove(0),
                _ => PyTuple::new(py, parts)?.into_any(),
            });
        }
        Ok(Some((keys_there, answers)))
    }
}

/// What leaves something of groups at an address.
type Leave<'a> = &'a (dyn Fn(&mut Grouped<'_>, u64) -> warpfold_cuda::Result<()> + Sync);
