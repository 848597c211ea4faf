//! Devices other than the CPU, as far as they are compiled in: the features `cuda` and
//! `sim`.

#[cfg(any(feature = "cuda", feature = "sim"))]
#[expect(unsafe_code, reason = "pinned memory is lent to a device")]
mod arrays;
#[cfg(feature = "cuda")]
mod driver;
#[cfg(any(feature = "cuda", feature = "sim"))]
mod engines;
#[cfg(any(feature = "cuda", feature = "sim"))]
mod fed;
#[cfg(not(any(feature = "cuda", feature = "sim")))]
mod none;

#[cfg(feature = "cuda")]
pub(crate) use driver::is_open;
#[cfg(any(feature = "cuda", feature = "sim"))]
pub(crate) use engines::{Opened, of, remember_explanations, take_explanations};
#[cfg(any(feature = "cuda", feature = "sim"))]
pub(crate) use fed::Fed;
#[cfg(not(any(feature = "cuda", feature = "sim")))]
pub(crate) use none::{Fed, Opened, of, remember_explanations, take_explanations};

#[cfg(not(all(feature = "cuda", feature = "sim")))]
use {crate::device::Device, warpfold_core::Error};

/// Whether a CUDA device has been opened.
#[cfg(not(feature = "cuda"))]
pub(crate) fn is_open(_ordinal: u32) -> bool {
    false
}

/// The error of asking for a device that is not compiled in.
#[cfg(not(all(feature = "cuda", feature = "sim")))]
fn compiled_out(device: Device) -> Error {
    let feature = if device == Device::Sim { "sim" } else { "cuda" };
    Error::Device {
        what: format!("device {device} is not in this build of warpfold"),
        hint: format!(
            "enable the feature `{feature}` of the crate warpfold; --device cpu gives the same answers"
        ),
    }
}
