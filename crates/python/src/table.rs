//! The numbers of a table in one array: a row after the other.

use crate::cast::{bits_of, cast, common, lost, put, room};
use crate::dense::Dense;
use crate::errors::{OrRaise, with_note};
use crate::import::{Data, Imported};
use crate::masked::Masked;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfold::{DType, Input};

/// Numbers of one type, of shape (rows, columns), and where there is a number at all; `None` if it
/// is everywhere.
pub(crate) struct Matrix {
    pub(crate) array: Dense,
    pub(crate) mask: Option<Dense>,
}

/// The pieces of a column.
fn pieces<'a>(column: &'a Imported<'_>) -> PyResult<Vec<Input<'a>>> {
    match &column.data {
        Data::Dense(dense) if dense.shape.len() == 1 => Ok(vec![dense.view().into()]),
        Data::Column(chunks) => Ok(chunks.pieces().iter().map(Input::from).collect()),
        _ => Err(PyTypeError::new_err(
            "a column is an array of one axis of numbers in the host's memory\nhint: ravel it, or move it to the CPU",
        )),
    }
}

/// A column of numbers, in one piece.
///
/// # Errors
/// A column of something else, or an array of several axes.
pub(crate) fn column(py: Python<'_>, column: &Imported<'_>) -> PyResult<Masked> {
    let mut all: Option<Masked> = None;
    for piece in pieces(column)? {
        let dtype = piece.view().or_raise(py)?.dtype();
        all.get_or_insert_with(|| Masked::new(dtype)).append(&piece).or_raise(py)?;
    }
    Ok(all.unwrap_or_else(|| Masked::new(DType::F64)))
}

/// The numbers of all columns, brought to the type that they have in common.
///
/// # Errors
/// Columns of something else than numbers, or of different lengths; a number that the common type
/// does not have; no memory.
pub(crate) fn matrix(py: Python<'_>, columns: &[(String, Imported<'_>)]) -> PyResult<Matrix> {
    let mut all = Vec::with_capacity(columns.len());
    let mut dtype: Option<DType> = None;
    for (name, column) in columns {
        let typed = || -> PyResult<_> {
            let pieces = pieces(column)?;
            let dtype_of = |piece: &Input<'_>| piece.view().map(|view| view.dtype());
            let own = pieces.first().map(dtype_of).transpose().or_raise(py)?;
            Ok((pieces, own.unwrap_or(DType::F64)))
        };
        let (pieces, own) = typed().map_err(|error| with_note(py, error, name))?;
        dtype = Some(dtype.map_or(own, |dtype| common(dtype, own)));
        all.push((name, pieces, own));
    }
    let (dtype, width) = (dtype.unwrap_or(DType::F64), all.len());
    let len = |input: &Input<'_>| input.view().map_or(0, |view| view.len());
    let rows: usize = all.first().map_or(0, |(_, pieces, _)| pieces.iter().map(len).sum());
    let mut words = room(dtype, rows.saturating_mul(width))?;
    let items: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let mut mask: Option<Vec<u64>> = None;
    let size = dtype.size();
    for (at, (name, pieces, own)) in all.iter().enumerate() {
        if pieces.iter().map(len).sum::<usize>() != rows {
            return Err(PyValueError::new_err(format!(
                "the column {name:?} has another length than the first one"
            )));
        }
        let mut row = 0;
        for piece in pieces {
            let view = piece.view().or_raise(py)?;
            let mut bytes = vec![0; view.len() * own.size()];
            view.read_column(0, &mut bytes);
            for (i, item) in bytes.chunks_exact(own.size()).enumerate() {
                let place = row * width + at;
                row += 1;
                if !piece.is_valid(i) {
                    if mask.is_none() {
                        let mut all = room(DType::Bool, rows * width)?;
                        bytemuck::cast_slice_mut::<u64, u8>(&mut all).fill(1);
                        mask = Some(all);
                    }
                    if let Some(mask) = &mut mask {
                        bytemuck::cast_slice_mut::<u64, u8>(mask)[place] = 0;
                    }
                    continue;
                }
                let to = &mut items[place * size..(place + 1) * size];
                let bits = bits_of(item);
                let bits = cast(bits, *own, dtype).ok_or_else(|| lost(bits, *own, dtype));
                put(to, bits.map_err(|error| with_note(py, error, name))?);
            }
        }
    }
    let shape = vec![rows, width];
    let array = Dense::of_words(dtype, words, shape.clone())?;
    let mask = mask.map(|mask| Dense::of_words(DType::Bool, mask, shape)).transpose()?;
    Ok(Matrix { array, mask })
}
