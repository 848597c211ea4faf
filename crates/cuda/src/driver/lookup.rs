//! What the driver knows about an address. All functions need a current context.

use super::api::{Api, CUdevice, CUdeviceptr, CUresult, MemoryType, PointerAttribute};
use crate::device::{Address, UNKNOWN_MEMORY};
use core::ffi::{c_int, c_uint, c_void};
use core::ptr;

/// The device to which this byte belongs, as the driver knows.
pub(super) fn ordinal_of(api: &Api, address: Address) -> Option<CUdevice> {
    let mut ordinal: c_int = 0;
    // SAFETY: the attribute is one such integer; the address is only looked up,
    // and one that the driver does not know is an error.
    let asked = unsafe {
        (api.cuPointerGetAttribute)(
            (&raw mut ordinal).cast(),
            PointerAttribute::DEVICE_ORDINAL,
            address,
        )
    };
    (asked == CUresult::SUCCESS).then_some(ordinal)
}

/// Why kernels of a device cannot read this byte.
pub(super) fn why_unreadable_at(
    api: &Api,
    address: Address,
    device: CUdevice,
) -> Option<&'static str> {
    let (mut kind, mut managed, mut of): (c_uint, c_uint, c_int) = (0, 0, 0);
    let mut attributes = [
        PointerAttribute::MEMORY_TYPE,
        PointerAttribute::IS_MANAGED,
        PointerAttribute::DEVICE_ORDINAL,
    ];
    let mut values: [*mut c_void; 3] =
        [(&raw mut kind).cast(), (&raw mut managed).cast(), (&raw mut of).cast()];
    // SAFETY: as many values as attributes, each an integer of 32 bits; the
    // address is only looked up, and of one that the driver does not know the
    // type is 0.
    let asked = unsafe {
        (api.cuPointerGetAttributes)(
            attributes.len() as c_uint,
            attributes.as_mut_ptr(),
            values.as_mut_ptr(),
            address,
        )
    };
    if asked != CUresult::SUCCESS || kind == 0 {
        Some(UNKNOWN_MEMORY)
    } else if kind == MemoryType::DEVICE.0 && managed == 0 && of != device {
        Some("it is memory of another device")
    } else {
        None
    }
}

/// Whether the driver knows this byte of host memory.
pub(super) fn is_pinned_at(api: &Api, byte: &u8) -> bool {
    let mut kind: c_uint = 0;
    // SAFETY: the attribute is one such integer; the address is only looked up,
    // and one that the driver does not know is an error.
    let asked = unsafe {
        (api.cuPointerGetAttribute)(
            (&raw mut kind).cast(),
            PointerAttribute::MEMORY_TYPE,
            ptr::from_ref(byte).addr() as CUdeviceptr,
        )
    };
    asked == CUresult::SUCCESS && kind == MemoryType::HOST.0
}
