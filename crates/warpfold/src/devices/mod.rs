//! Devices other than the CPU, as far as they are compiled in: the features `cuda` and
//! `sim`.

#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "pinned memory is lent to a device")]
mod arrays;
#[cfg(feature = "cudarc")]
#[expect(unsafe_code, reason = "streams and slices of cudarc become the engine's")]
mod cudarc;
#[cfg(feature = "cuda")]
#[expect(unsafe_code, reason = "streams of other code are adopted")]
mod driver;
#[cfg(any(feature = "cuda", feature = "sim"))]
mod engines;
#[cfg(any(feature = "cuda", feature = "sim"))]
mod fed;
#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "memory of other code is reduced where it lies")]
mod groups;
#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "memory of other code is reduced where it lies")]
mod in_place;
#[cfg(any(feature = "cuda", feature = "sim"))]
mod like;
#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "memory of other code is vouched for")]
mod memory;
#[cfg(not(any(feature = "cuda", feature = "sim")))]
mod none;
#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "memory of other code is copied to the host")]
mod on_host;
#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "memory of other code is reduced where it lies")]
mod prepared;
#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "memory of other code is reduced where it lies")]
mod prepared_partial;
#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "memory of other code is reduced where it lies")]
mod segments;
#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "streams of other code are vouched for")]
mod stream;

#[cfg(feature = "cuda")]
pub use driver::check_process;
#[cfg(feature = "cuda")]
pub(crate) use driver::is_open;
#[cfg(any(feature = "cuda", feature = "sim"))]
pub(crate) use engines::{Opened, of, remember_explanations, take_explanations};
#[cfg(any(feature = "cuda", feature = "sim"))]
pub(crate) use fed::Fed;
#[cfg(any(feature = "cuda", feature = "sim"))]
pub(crate) use in_place::knows;
#[cfg(not(any(feature = "cuda", feature = "sim")))]
pub(crate) use none::{
    DeviceArray, Fed, OnHost, Opened, knows, of, remember_explanations, take_explanations,
};
#[cfg(any(feature = "cuda", feature = "sim"))]
pub use on_host::OnHost;
#[cfg(any(feature = "cuda", feature = "sim"))]
pub use {
    memory::{DeviceArray, DeviceArrayMut},
    prepared::Prepared,
    prepared_partial::PreparedPartial,
    stream::DeviceStream,
};

#[cfg(not(all(feature = "cuda", feature = "sim")))]
use {crate::device::Device, warpfold_core::Error};

/// Whether a CUDA device has been opened.
#[cfg(not(feature = "cuda"))]
pub(crate) fn is_open(_ordinal: u32) -> bool {
    false
}

/// How many devices are fed where this one is named.
pub(crate) fn count(device: crate::device::Device) -> usize {
    match device {
        #[cfg(feature = "cuda")]
        crate::device::Device::CudaAll => {
            warpfold_cuda::Driver::probe().map_or(1, |count| count.max(1) as usize)
        }
        _ => 1,
    }
}

/// The error of asking for a device that is not compiled in.
#[cfg(not(all(feature = "cuda", feature = "sim")))]
fn compiled_out(device: Device) -> Error {
    let sim = matches!(device, Device::Sim | Device::Sims(_));
    let feature = if sim { "sim" } else { "cuda" };
    Error::Device {
        what: format!("device {device} is not in this build of warpfold"),
        hint: format!(
            "enable the feature `{feature}` of the crate warpfold; --device cpu gives the same answers"
        ),
    }
}

/// The engine of the process on a device, whose memory it allocates.
///
/// # Errors
/// The CPU; a device that this machine or build lacks.
#[cfg(any(feature = "cuda", feature = "sim"))]
pub fn engine_of(
    device: crate::device::Device,
) -> warpfold_core::Result<std::sync::Arc<warpfold_cuda::Engine>> {
    DeviceStream::default_of(device).map(|stream| stream.opened.engine)
}

/// A stream that the engine of the process on a device has made.
///
/// # Errors
/// Those of [`engine_of`].
#[cfg(any(feature = "cuda", feature = "sim"))]
pub fn stream_of(
    device: crate::device::Device,
    stream: warpfold_cuda::Stream,
) -> warpfold_core::Result<DeviceStream> {
    let opened = DeviceStream::default_of(device)?.opened;
    Ok(DeviceStream::known(opened, stream, None))
}

/// A stream of other code.
///
/// # Errors
/// A device that has no such streams; what the device says.
///
/// # Safety
/// The stream belongs to the device's primary context and lives as long as it is used.
#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "the caller vouches for the stream")]
unsafe fn adopt(
    opened: &Opened,
    stream: *mut core::ffi::c_void,
) -> warpfold_core::Result<warpfold_cuda::Stream> {
    match opened.device {
        #[cfg(feature = "cuda")]
        // SAFETY: passed on from the caller.
        crate::device::Device::Cuda(ordinal) => unsafe {
            driver::adopt(ordinal.unwrap_or(0), stream)
        },
        other => {
            let _ = stream;
            Err(warpfold_core::Error::DeviceMemory {
                what: format!("device {other} has no streams of other code"),
                hint: "use its default stream",
            })
        }
    }
}
