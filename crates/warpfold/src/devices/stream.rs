//! Streams of devices, on which arrays in their memory are reduced.

use super::engines::{self, Opened};
use crate::device::Device;
use core::ffi::c_void;
use core::fmt;
use std::any::Any;
use std::sync::Arc;
use warpfold_core::{Error, Result};
use warpfold_cuda::Stream;

/// A stream of a device: a queue of work that the device does in order.
///
/// Arrays in a device's memory are reduced on a stream that the caller names, behind all
/// work that is on it. Clones name the same stream.
#[derive(Clone)]
pub struct DeviceStream {
    pub(crate) opened: Opened,
    pub(crate) stream: Stream,
    /// What keeps the stream alive, if that is known.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

impl DeviceStream {
    /// The default stream of a device, which is opened: the legacy default stream of CUDA.
    ///
    /// # Errors
    /// [`Device::Auto`] and [`Device::Cpu`], which have no streams; a device that this
    /// machine or build lacks.
    ///
    /// # Examples
    #[cfg_attr(feature = "sim", doc = "```")]
    #[cfg_attr(not(feature = "sim"), doc = "```ignore")]
    /// use warpfold::{Device, DeviceStream};
    ///
    /// let stream = DeviceStream::default_of(Device::Sim)?;
    /// assert_eq!(stream.device(), Device::Sim);
    /// assert!(DeviceStream::default_of(Device::Cpu).is_err());
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    pub fn default_of(device: Device) -> Result<DeviceStream> {
        let opened = opened(device)?;
        Ok(DeviceStream { opened, stream: Stream::DEFAULT, _owner: None })
    }

    /// A stream of other code, as the driver knows it: a `CUstream` or a `cudaStream_t`,
    /// made with the CUDA runtime, torch or another library.
    ///
    /// # Errors
    /// Those of [`default_of`](Self::default_of); a device that has no streams of other
    /// code.
    ///
    /// # Safety
    /// The stream belongs to the primary context of the device. It lives until the last
    /// value that names it is gone, and all work on it is done before it is destroyed.
    pub unsafe fn from_raw(device: Device, stream: *mut c_void) -> Result<DeviceStream> {
        let opened = opened(device)?;
        // SAFETY: passed on from the caller.
        let stream = unsafe { super::adopt(&opened, stream)? };
        Ok(DeviceStream { opened, stream, _owner: None })
    }

    /// A stream that is known to the engine.
    pub(crate) fn known(
        opened: Opened,
        stream: Stream,
        owner: Option<Arc<dyn Any + Send + Sync>>,
    ) -> DeviceStream {
        DeviceStream { opened, stream, _owner: owner }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> Device {
        self.opened.device
    }

    /// Waits for all work on the stream.
    ///
    /// # Errors
    /// What the device says of the work.
    pub fn wait(&self) -> Result<()> {
        self.opened.engine.device().wait(self.stream).map_err(super::in_place::failure)
    }

    /// Whether both are one stream.
    pub(crate) fn is(&self, other: &DeviceStream) -> bool {
        Arc::ptr_eq(&self.opened.engine, &other.opened.engine) && self.stream == other.stream
    }
}

impl fmt::Debug for DeviceStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceStream { opened, stream, .. } = self;
        f.debug_struct("DeviceStream")
            .field("device", &opened.device)
            .field("stream", stream)
            .finish_non_exhaustive()
    }
}

/// A device, by its number if it has one.
fn opened(device: Device) -> Result<Opened> {
    let device = match device {
        Device::Cuda(ordinal) => Device::Cuda(Some(ordinal.unwrap_or(0))),
        other => other,
    };
    let one = !matches!(device, Device::CudaAll | Device::Sims(_));
    let opened = if one { engines::of(device)? } else { None };
    opened.ok_or_else(|| Error::DeviceMemory {
        what: format!("device {device} has no stream"),
        hint: "name the device in whose memory the array lies: Device::Cuda or Device::Sim",
    })
}
