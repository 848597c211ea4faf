//! Slices and streams of cudarc, as reductions take them.

use super::engines;
use super::in_place::failure;
use super::memory::{DeviceArray, DeviceArrayMut, Held, Lent, LentMut};
use super::stream::DeviceStream;
use crate::device::Device;
use ::cudarc::driver::{CudaStream, DeviceSlice};
use core::marker::PhantomData;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use warpfold_core::{Element, Error, Item, Result};
use warpfold_cuda::engine::DeviceView;
use warpfold_cuda::{CudarcSlice, CudarcSliceMut, Engine, Stream, ordinal_of};

/// A stream that engines know, and the memory that they keep for it: as long as somebody
/// else has the stream.
struct Known {
    engine: Arc<Engine>,
    stream: Stream,
    theirs: Arc<CudaStream>,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

impl DeviceStream {
    /// A stream of cudarc.
    ///
    /// # Errors
    /// A stream whose context is not the primary one of its device; a device that cannot be
    /// opened.
    pub fn of(stream: &Arc<CudaStream>) -> Result<DeviceStream> {
        let ordinal = ordinal_of(stream.context()).map_err(failure)?;
        let device = Device::Cuda(Some(ordinal));
        let opened = engines::of(device)?.ok_or_else(|| Error::Device {
            what: format!("device {device} cannot be opened"),
            hint: "look with `warpfold doctor`".into(),
        })?;
        let owner: Arc<dyn Any + Send + Sync> = Arc::<CudaStream>::clone(stream);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&Known| Arc::ptr_eq(&known.theirs, stream);
        if let Some(known) = known.iter().find(same) {
            return Ok(DeviceStream::known(opened, known.stream, Some(owner)));
        }
        // SAFETY: a stream of the device's primary context, which `owner` and the list keep
        // alive.
        let adopted = unsafe { super::adopt(&opened, stream.cu_stream().cast())? };
        // Many values name the default stream, which ends with the process.
        if adopted != Stream::DEFAULT {
            // Nobody else can come by a stream that only the list has.
            known.retain(|known| {
                let used = Arc::strong_count(&known.theirs) > 1;
                used || !known.engine.release(known.stream).unwrap_or(true)
            });
            let (engine, theirs) = (Arc::clone(&opened.engine), Arc::clone(stream));
            known.push(Known { engine, stream: adopted, theirs });
        }
        Ok(DeviceStream::known(opened, adopted, Some(owner)))
    }
}

/// Refuses a slice of another context before cudarc makes the stream wait for its owner.
/// That would leave an error in the stream's context, for its next user.
fn check_context<T>(slice: &impl DeviceSlice<T>, stream: &Arc<CudaStream>) -> Result<()> {
    if slice.stream().context().cu_ctx() == stream.context().cu_ctx() {
        return Ok(());
    }
    Err(Error::DeviceMemory {
        what: "the slice and the stream are of different contexts".into(),
        hint: "name a stream of the slice's context",
    })
}

/// A slice that is read on a stream.
struct Read<'a, T, S> {
    slice: &'a S,
    stream: &'a CudaStream,
    items: PhantomData<fn() -> T>,
}

impl<T, S: CudarcSlice<T> + Sync> Lent for Read<'_, T, S> {
    fn lend(&self) -> Box<dyn Held + '_> {
        Box::new(self.slice.device_ptr(self.stream).1)
    }
}

/// A slice that is written on a stream.
struct Written<'a, T, S> {
    slice: &'a mut S,
    stream: &'a CudaStream,
    items: PhantomData<T>,
}

impl<T, S: CudarcSliceMut<T>> LentMut for Written<'_, T, S> {
    fn lend(&mut self) -> Box<dyn Held + '_> {
        Box::new(self.slice.device_ptr_mut(self.stream).1)
    }
}

impl<'a> DeviceArray<'a> {
    /// A slice or a view of cudarc, reduced on this stream of its context: behind what
    /// writes it, and before whoever writes it next. It has to be one of cudarc's own types, whose
    /// addresses can be trusted.
    ///
    /// ```no_run
    /// use cudarc::driver::CudaContext;
    /// use warpfold::{DeviceArray, Op, Reduction};
    ///
    /// let context = CudaContext::new(0)?;
    /// let stream = context.default_stream();
    /// let numbers = stream.clone_htod(&[1e16, 1.0, -1e16])?;
    /// let array = DeviceArray::of(&numbers, &stream)?;
    /// assert_eq!(Reduction::of(Op::Sum).run(&array)?.number::<f64>(Op::Sum), Some(1.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DeviceMemory`] for a slice of another context than the stream's; those of
    /// [`DeviceStream::of`].
    pub fn of<T: Item + 'a>(
        slice: &'a (impl CudarcSlice<T> + Sync),
        stream: &'a Arc<CudaStream>,
    ) -> Result<DeviceArray<'a>> {
        DeviceArray::of_strided(slice, 0, &[slice.len()], &[1], stream)
    }

    /// The same with a shape and a stride for each axis, counted in elements, where the
    /// element of index 0 has this place in the slice.
    ///
    /// # Errors
    /// Those of [`of`](Self::of); [`Error::ViewOutOfBounds`] if an element would lie
    /// outside of the slice.
    pub fn of_strided<T: Item + 'a>(
        slice: &'a (impl CudarcSlice<T> + Sync),
        offset: usize,
        shape: &[usize],
        strides: &[isize],
        stream: &'a Arc<CudaStream>,
    ) -> Result<DeviceArray<'a>> {
        let on = DeviceStream::of(stream)?;
        check_context(slice, stream)?;
        let dtype = T::Element::DTYPE;
        let size = dtype.size();
        let bytes = |n: isize| n.saturating_mul(size.cast_signed());
        let strides: Vec<isize> = strides.iter().map(|&stride| bytes(stride)).collect();
        let (from, held) = slice.device_ptr(stream);
        drop(held);
        let (offset, len) = (offset.saturating_mul(size), slice.len().saturating_mul(size));
        let address = from.checked_add(offset as u64);
        let view = DeviceView {
            address: address.unwrap_or(u64::MAX),
            dtype,
            shape: shape.to_vec(),
            strides,
        };
        let within = view.extent().is_ok_and(|(first, bytes)| {
            bytes == 0 && offset <= len
                || first >= from
                    && first.checked_add(bytes).is_some_and(|end| end <= from + len as u64)
        });
        if !within {
            let DeviceView { shape, strides, .. } = view;
            return Err(Error::ViewOutOfBounds { shape, strides, offset, len });
        }
        let lent: Arc<dyn Lent + 'a> = Arc::new(Read { slice, stream, items: PhantomData });
        DeviceArray::new(view, &on, Some(lent))
    }
}

impl<'a> DeviceArrayMut<'a> {
    /// A slice or a view of cudarc that answers are written to on this stream of its
    /// context: behind whoever uses it, and before whoever uses it next.
    ///
    /// # Errors
    /// Those of [`DeviceArray::of`].
    pub fn of<T: Item + 'a>(
        slice: &'a mut impl CudarcSliceMut<T>,
        stream: &'a Arc<CudaStream>,
    ) -> Result<DeviceArrayMut<'a>> {
        let on = DeviceStream::of(stream)?;
        check_context(slice, stream)?;
        let len = slice.len();
        let (address, held) = slice.device_ptr_mut(stream);
        drop(held);
        let lent: Box<dyn LentMut + 'a> = Box::new(Written { slice, stream, items: PhantomData });
        DeviceArrayMut::new(T::Element::DTYPE, address, len, &on, Some(lent))
    }
}
