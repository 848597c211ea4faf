//! Slices and streams of cudarc: reduced in place, on a stream that the caller names.
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use warpfold_core::op::{Kind, Op, Rules};
//! use warpfold_cuda::SliceEngine;
//!
//! let context = CudaContext::new(0)?;
//! let stream = context.default_stream();
//! let numbers = stream.clone_htod(&[1e16, 1.0, -1e16])?;
//! let engine = SliceEngine::new(&context)?;
//! let state = engine.reduce(Kind::Sum, &numbers, &stream)?;
//! println!("{:?}", state.finish(Op::Sum, &Rules::default())?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! For pointers and streams of other libraries use [`Driver::adopt_stream`] and
//! [`Engine::reduce`].

use crate::device::Stream;
use crate::engine::{Array, Engine, Input};
use crate::{Driver, Error, Result};
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut,
    DeviceSlice, UnifiedSlice, UnifiedView, UnifiedViewMut,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use warpfold_core::Element;
use warpfold_core::op::{AnyState, Kind};

mod sealed {
    pub trait Sealed {}
}

/// A slice or a view of cudarc that can be read.
///
/// Sealed: anyone may implement [`DevicePtr`] and answer any address, which kernels would read.
///
/// ```compile_fail,E0277
/// # use cudarc::driver::sys::CUdeviceptr;
/// # use cudarc::driver::{CudaStream, DevicePtr, DeviceSlice, SyncOnDrop};
/// # use std::sync::Arc;
/// struct Liar(Arc<CudaStream>);
/// impl DeviceSlice<f64> for Liar {
///     fn len(&self) -> usize {
///         1 << 40
///     }
///     fn stream(&self) -> &Arc<CudaStream> {
///         &self.0
///     }
/// }
/// impl DevicePtr<f64> for Liar {
///     fn device_ptr<'a>(&'a self, _: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
///         (8, SyncOnDrop::Sync(None))
///     }
/// }
/// fn takes(_: &impl warpfold_cuda::CudarcSlice<f64>) {}
/// fn lie(liar: &Liar) {
///     takes(liar);
/// }
/// ```
pub trait CudarcSlice<T>: DevicePtr<T> + sealed::Sealed {}

/// A slice or a view of cudarc that can be written, too. Sealed as [`CudarcSlice`] is.
pub trait CudarcSliceMut<T>: CudarcSlice<T> + DevicePtrMut<T> {}

macro_rules! slices {
    ($trait:ident: $($slice:ty),*) => {$(
        impl<T> $trait<T> for $slice {}
    )*};
    ($($slice:ty),*) => {
        slices!(CudarcSlice: $($slice),*);
        $(impl<T> sealed::Sealed for $slice {})*
    };
}
slices!(
    CudaSlice<T>,
    CudaView<'_, T>,
    CudaViewMut<'_, T>,
    UnifiedSlice<T>,
    UnifiedView<'_, T>,
    UnifiedViewMut<'_, T>
);
slices!(CudarcSliceMut: CudaSlice<T>, CudaViewMut<'_, T>, UnifiedSlice<T>, UnifiedViewMut<'_, T>);

/// An [`Engine`] on the device of a cudarc context, which both share.
///
/// Only [`reduce`](Self::reduce) waits for the device, since it returns the state. The
/// first reduction of a kind, a type and a stream, or [`prepare`](Self::prepare),
/// allocates device memory and loads modules. Later ones do neither, so
/// [`reduce_into`](Self::reduce_into) can be captured in a graph.
pub struct SliceEngine {
    driver: Arc<Driver>,
    engine: Engine,
    context: Arc<CudaContext>,
    /// The streams used so far. They live as long as the engine, since their handles
    /// are the keys of their scratch memory.
    streams: Mutex<HashMap<usize, (Stream, Arc<CudaStream>)>>,
}

/// The number of a context's device, which shares the context with [`Driver`].
///
/// # Errors
/// A context that is not the device's primary one.
pub fn ordinal_of(context: &CudaContext) -> Result<u32> {
    if context.is_primary() {
        return Ok(u32::try_from(context.ordinal()).unwrap_or(u32::MAX));
    }
    Err(Error::Unavailable {
        why: "the context is not its device's primary one".into(),
        hint: "make it with CudaContext::new".into(),
    })
}

impl SliceEngine {
    /// An engine on a context's device.
    ///
    /// # Errors
    /// A context that is not the device's primary one; errors of the driver.
    pub fn new(context: &Arc<CudaContext>) -> Result<SliceEngine> {
        let ordinal = ordinal_of(context)?;
        let driver = Arc::new(Driver::open(ordinal)?);
        let engine = Engine::new(Arc::<Driver>::clone(&driver));
        let context = Arc::clone(context);
        Ok(SliceEngine { driver, engine, context, streams: Mutex::default() })
    }

    /// The engine, for arrays that are not slices.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine's handle of a stream.
    ///
    /// # Errors
    /// A stream of another context.
    pub fn stream(&self, stream: &Arc<CudaStream>) -> Result<Stream> {
        if stream.context().cu_ctx() != self.context.cu_ctx() {
            return Err(Error::ForeignHandle { what: "the stream" });
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = stream.cu_stream();
        if let Some((known, _)) = streams.get(&(handle as usize)) {
            return Ok(*known);
        }
        // SAFETY: a stream of the same context, kept alive by the map.
        let known = unsafe { self.driver.adopt_stream(handle.cast())? };
        streams.insert(handle as usize, (known, Arc::clone(stream)));
        Ok(known)
    }

    /// Refuses a slice of another context before cudarc makes the stream wait for its
    /// owner. That would leave an error in the stream's context, for its next user.
    fn own<T>(&self, slice: &impl DeviceSlice<T>) -> Result<()> {
        if slice.stream().context().cu_ctx() == self.context.cu_ctx() {
            Ok(())
        } else {
            Err(Error::ForeignHandle { what: "the slice" })
        }
    }

    /// Allocates and loads what a kind and type of reduction on a stream needs, since a
    /// capture does not allow that.
    ///
    /// # Errors
    /// [`Error::NoKernel`]; errors of the driver.
    pub fn prepare<T: Element>(&self, kind: Kind, stream: &Arc<CudaStream>) -> Result<()> {
        self.engine.prepare(kind, T::DTYPE, self.stream(stream)?)
    }

    /// The state of a slice, after all work before it on the stream. Waits for it.
    ///
    /// # Errors
    /// Those of [`Engine::reduce`], and a stream or a slice of another context.
    pub fn reduce<T: Element>(
        &self,
        kind: Kind,
        slice: &impl CudarcSlice<T>,
        stream: &Arc<CudaStream>,
    ) -> Result<AnyState> {
        let on = self.stream(stream)?;
        self.own(slice)?;
        let (address, _read) = slice.device_ptr(stream);
        let array = Array { address, len: slice.len() as u64, dtype: T::DTYPE };
        // SAFETY: the slice is borrowed until the state has come back, and cudarc
        // makes the stream wait for those who wrote it.
        unsafe { self.engine.reduce(kind, array, on) }
    }

    /// The state of the products of two slices; waits for it.
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce); slices of different lengths.
    pub fn reduce_pair<T: Element>(
        &self,
        kind: Kind,
        left: &impl CudarcSlice<T>,
        right: &impl CudarcSlice<T>,
        stream: &Arc<CudaStream>,
    ) -> Result<AnyState> {
        let on = self.stream(stream)?;
        self.own(left)?;
        self.own(right)?;
        let (address, _read) = left.device_ptr(stream);
        let (others, _read_too) = right.device_ptr(stream);
        let array = Array { address, len: left.len() as u64, dtype: T::DTYPE };
        if left.len() != right.len() {
            let Array { address, len, dtype } = array;
            return Err(Error::Array {
                address,
                len,
                dtype,
                why: "the second array has another length",
            });
        }
        let input = Input { others: Some(others), ..Input::from(array) };
        // SAFETY: as in `reduce`, for both.
        unsafe { self.engine.reduce(kind, input, on) }
    }

    /// Leaves the state of a slice on the device, in the first
    /// [`payload_len`](Engine::payload_len) / 8 words of `to`; does not wait.
    ///
    /// # Errors
    /// Those of [`Engine::reduce_into`]; too few words; a stream or a slice of
    /// another context.
    pub fn reduce_into<T: Element>(
        &self,
        kind: Kind,
        slice: &impl CudarcSlice<T>,
        to: &mut impl CudarcSliceMut<u64>,
        stream: &Arc<CudaStream>,
    ) -> Result<()> {
        let on = self.stream(stream)?;
        let words = to.len();
        self.own(slice)?;
        self.own(to)?;
        let (address, _read) = slice.device_ptr(stream);
        let (to, _written) = to.device_ptr_mut(stream);
        let array = Array { address, len: slice.len() as u64, dtype: T::DTYPE };
        if Engine::payload_len(kind, T::DTYPE).is_some_and(|bytes| bytes > 8 * words) {
            let Array { dtype, .. } = array;
            let why = "the state needs more words";
            return Err(Error::Array { address: to, len: words as u64, dtype, why });
        }
        // SAFETY: cudarc makes code that uses or frees the slices on another stream
        // wait for this one, and on this one they follow.
        unsafe { self.engine.reduce_into(kind, array, to, on) }
    }
}
