//! The structures of `dlpack.h`, versions 0.8 and 1.x.

use std::ffi::{CStr, c_void};
use warpfold::DType;

pub(crate) const CPU: i32 = 1;
pub(crate) const CUDA: i32 = 2;
/// Pinned memory of the host.
pub(crate) const CUDA_HOST: i32 = 3;
pub(crate) const CUDA_MANAGED: i32 = 13;

/// The version that we write, and the newest that we ask for.
pub(crate) const VERSION: (u32, u32) = (1, 1);

pub(super) const NAME: &CStr = c"dltensor";
pub(super) const USED: &CStr = c"used_dltensor";
pub(super) const VERSIONED_NAME: &CStr = c"dltensor_versioned";
pub(super) const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Device {
    pub(super) kind: i32,
    pub(super) id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Type {
    pub(super) code: u8,
    pub(super) bits: u8,
    pub(super) lanes: u16,
}

#[repr(C)]
pub(super) struct DlTensor {
    pub(super) data: *mut c_void,
    pub(super) device: Device,
    pub(super) ndim: i32,
    pub(super) dtype: Type,
    pub(super) shape: *mut i64,
    /// In elements; null for C order.
    pub(super) strides: *mut i64,
    pub(super) byte_offset: u64,
}

#[repr(C)]
pub(super) struct Unversioned {
    pub(super) tensor: DlTensor,
    pub(super) context: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

#[repr(C)]
pub(super) struct Versioned {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) context: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    pub(super) flags: u64,
    pub(super) tensor: DlTensor,
}

const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const COMPLEX: u8 = 5;
const BOOL: u8 = 6;

impl Type {
    /// The type of elements, if it is one of ours.
    pub(super) fn known(self) -> Option<DType> {
        Some(match (self.code, self.bits, self.lanes) {
            (BOOL, 8, 1) => DType::Bool,
            (INT, 8, 1) => DType::I8,
            (INT, 16, 1) => DType::I16,
            (INT, 32, 1) => DType::I32,
            (INT, 64, 1) => DType::I64,
            (UINT, 8, 1) => DType::U8,
            (UINT, 16, 1) => DType::U16,
            (UINT, 32, 1) => DType::U32,
            (UINT, 64, 1) => DType::U64,
            (FLOAT, 16, 1) => DType::F16,
            (BFLOAT, 16, 1) => DType::BF16,
            (FLOAT, 32, 1) => DType::F32,
            (FLOAT, 64, 1) => DType::F64,
            _ => return None,
        })
    }

    /// The type of the parts of complex elements.
    pub(super) fn parts(self) -> Option<DType> {
        match (self.code, self.bits, self.lanes) {
            (COMPLEX, 64, 1) => Some(DType::F32),
            (COMPLEX, 128, 1) => Some(DType::F64),
            _ => None,
        }
    }

    /// What DLPack calls complex numbers with parts of a type of ours.
    pub(super) fn of_parts(dtype: DType) -> Type {
        Type { code: COMPLEX, bits: (16 * dtype.size()) as u8, lanes: 1 }
    }

    /// What DLPack calls a type of ours.
    pub(super) fn of(dtype: DType) -> Type {
        let code = match dtype {
            DType::Bool => BOOL,
            DType::BF16 => BFLOAT,
            _ if dtype.is_float() => FLOAT,
            _ if dtype.is_signed_int() => INT,
            _ => UINT,
        };
        Type { code, bits: (8 * dtype.size()) as u8, lanes: 1 }
    }
}
