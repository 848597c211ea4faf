//! Arrays in the host's memory, and who keeps them there.

use crate::buffer::Exported;
use crate::dlpack::Managed;
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;
use warpfold::{DType, View};

/// An array that a producer lends: its memory stays until this is dropped.
///
/// Who writes to it meanwhile, in another thread, gets some answer: that is so with every
/// library of arrays.
pub(crate) struct Dense {
    pub(crate) dtype: DType,
    /// The element of index 0 on every axis.
    origin: *const u8,
    pub(crate) shape: Vec<usize>,
    /// In bytes.
    pub(crate) strides: Vec<isize>,
    /// Dropped with the array.
    _owner: Owner,
}

/// Who keeps the memory of an array.
#[expect(dead_code, reason = "they are kept for what dropping them does")]
pub(crate) enum Owner {
    Buffer(Exported),
    DlPack(Managed),
    Words(Vec<u64>),
    Copy(warpfold::internal::OnHost),
    /// The owner, and the one that it lent us a view of itself by.
    Object(pyo3::Py<pyo3::PyAny>),
}

impl Dense {
    /// An array at a pointer.
    ///
    /// # Safety
    /// Every element that shape and strides describe may be read until `owner` is dropped.
    ///
    /// # Errors
    /// More elements than can be counted, or no pointer for some.
    pub(crate) unsafe fn new(
        dtype: DType,
        origin: *const u8,
        shape: Vec<usize>,
        strides: Vec<isize>,
        owner: Owner,
    ) -> PyResult<Dense> {
        let count = shape.iter().try_fold(dtype.size().cast_signed(), |n, &len| {
            n.checked_mul(isize::try_from(len.max(1)).ok()?)
        });
        // A broadcast axis repeats elements, which take no bytes.
        let repeats = || strides.contains(&0);
        if count.is_none() && !repeats() || shape.len() != strides.len() {
            return Err(PyValueError::new_err(format!(
                "an array of shape {shape:?} and byte strides {strides:?} does not fit into memory"
            )));
        }
        let elements = shape
            .iter()
            .try_fold(1isize, |n, &len| n.checked_mul(isize::try_from(len.max(1)).ok()?));
        if elements.is_none() {
            return Err(PyValueError::new_err(format!(
                "an array of shape {shape:?} has more elements than can be counted"
            )));
        }
        if origin.is_null() && !shape.contains(&0) {
            return Err(PyValueError::new_err(format!(
                "the producer of an array of shape {shape:?} gives no pointer to its elements"
            )));
        }
        Ok(Dense { dtype, origin, shape, strides, _owner: owner })
    }

    /// Numbers that nobody else has, in C order.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub(crate) fn of_words(dtype: DType, words: Vec<u64>, shape: Vec<usize>) -> PyResult<Dense> {
        let held = words.len() * 8;
        let needed = shape.iter().product::<usize>() * dtype.size();
        if needed > held {
            return Err(PyValueError::new_err(format!("{held} bytes do not hold shape {shape:?}")));
        }
        let strides = c_strides(dtype.size(), &shape);
        let origin = words.as_ptr().cast();
        // SAFETY: the words hold all elements, and moving the vector leaves them where they are.
        unsafe { Dense::new(dtype, origin, shape, strides, Owner::Words(words)) }
    }

    /// The array as the library takes it.
    pub(crate) fn view(&self) -> View<'_> {
        // SAFETY: who made this vouched for its elements, and `new` has counted them.
        unsafe { View::from_raw(self.dtype, self.origin, &self.shape, &self.strides) }
    }

    /// The address of the element of index 0.
    pub(crate) fn origin(&self) -> *const u8 {
        self.origin
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The array with an axis of length 1 behind its own.
    pub(crate) fn with_an_axis(mut self) -> Dense {
        self.shape.push(1);
        self.strides.push(0);
        self
    }

    /// The array broadcast to a shape; `None` if it cannot be.
    pub(crate) fn broadcast_view(&self, shape: &[usize]) -> Option<View<'_>> {
        let strides = self.broadcast(shape)?;
        // SAFETY: who made this vouched for its elements, some of which are repeated.
        Some(unsafe { View::from_raw(self.dtype, self.origin, shape, &strides) })
    }

    /// The same memory as elements of another type of the same size; `None` for another size.
    pub(crate) fn retyped(self, dtype: DType) -> Option<Dense> {
        (dtype.size() == self.dtype.size()).then_some(Dense { dtype, ..self })
    }

    /// The strides of the array broadcast to a shape; `None` if it cannot be.
    pub(crate) fn broadcast(&self, shape: &[usize]) -> Option<Vec<isize>> {
        let missing = shape.len().checked_sub(self.shape.len())?;
        let mut strides = vec![0; missing];
        for ((&own, &stride), &wanted) in
            self.shape.iter().zip(&self.strides).zip(&shape[missing..])
        {
            match own {
                own if own == wanted => strides.push(stride),
                1 => strides.push(0),
                _ => return None,
            }
        }
        Some(strides)
    }
}

/// The shape that arrays of two shapes are broadcast to; `None` if they cannot be, or to more elements
/// than can be counted.
pub(crate) fn broadcast_shape(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let ndim = a.len().max(b.len());
    let len = |shape: &[usize], axis: usize| match (axis + shape.len()).checked_sub(ndim) {
        Some(axis) => shape[axis],
        None => 1,
    };
    let both = (0..ndim).map(|axis| match (len(a, axis), len(b, axis)) {
        (m, n) if m == n => Some(m),
        (1, n) => Some(n),
        (m, 1) => Some(m),
        _ => None,
    });
    let shape = both.collect::<Option<Vec<usize>>>()?;
    let count = shape.iter().try_fold(1usize, |n, &len| n.checked_mul(len.max(1)))?;
    isize::try_from(count).is_ok().then_some(shape)
}

/// The strides in bytes of an array in C order.
pub(crate) fn c_strides(size: usize, shape: &[usize]) -> Vec<isize> {
    let mut stride = size.cast_signed();
    let mut strides = vec![0; shape.len()];
    for (to, &n) in strides.iter_mut().zip(shape).rev() {
        *to = stride;
        stride = stride.saturating_mul(n.max(1).cast_signed());
    }
    strides
}
