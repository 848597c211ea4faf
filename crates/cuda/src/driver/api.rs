//! The driver's functions that are used here, loaded at run time.
//!
//! Types, names and numbers are those of the driver's public interface, as of CUDA
//! 12.0. They are written here and not taken from bindings. Bindings are made for one
//! version of CUDA, a program can choose only one, and a library that chooses it would
//! choose it for the whole program.
//!
//! Later drivers keep each of these entry points: names such as `_v2` exist so that the
//! meaning of a name never changes.

use super::library;
use crate::{Error, Result};
use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};

/// The oldest supported driver, for hints.
pub(super) const OLDEST_DRIVER: &str = "install the NVIDIA driver, version 525 or newer";

pub(super) type CUdevice = c_int;
pub(super) type CUdeviceptr = u64;
pub(super) type CUcontext = *mut c_void;
pub(super) type CUmodule = *mut c_void;
pub(super) type CUfunction = *mut c_void;
pub(super) type CUstream = *mut c_void;
pub(super) type CUevent = *mut c_void;
pub(super) type CUlinkState = *mut c_void;

/// The result of a call: a number, since a driver may know more of them than this
/// library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct CUresult(c_uint);

impl CUresult {
    pub(super) const SUCCESS: CUresult = CUresult(0);
    pub(super) const NOT_READY: CUresult = CUresult(600);
}

/// Constants of calls. Each kind has its own type, so that they cannot be confused.
macro_rules! numbers {
    ($($(#[$doc:meta])* $type:ident { $($name:ident = $value:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub(super) struct $type(pub(super) c_uint);

        impl $type {
            $(pub(super) const $name: $type = $type($value);)*
        }
    )*};
}
numbers! {
    /// `CUdevice_attribute`
    DeviceAttribute {
        MAX_THREADS_PER_BLOCK = 1,
        MULTIPROCESSOR_COUNT = 16,
        L2_CACHE_SIZE = 38,
        MAX_THREADS_PER_MULTIPROCESSOR = 39,
        COMPUTE_CAPABILITY_MAJOR = 75,
        COMPUTE_CAPABILITY_MINOR = 76,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    }
    /// `CUfunction_attribute`
    FunctionAttribute {
        MAX_THREADS_PER_BLOCK = 0,
        SHARED_SIZE_BYTES = 1,
        LOCAL_SIZE_BYTES = 3,
        NUM_REGS = 4,
        MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    }
    /// `CUpointer_attribute`
    PointerAttribute {
        MEMORY_TYPE = 2,
        IS_MANAGED = 8,
        DEVICE_ORDINAL = 9,
    }
    /// `CUmemorytype`
    MemoryType {
        HOST = 1,
        DEVICE = 2,
    }
    /// `CUjit_option`
    JitOption {
        ERROR_LOG_BUFFER = 5,
        ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    }
    /// `CUjitInputType`
    JitInput {
        PTX = 1,
        LIBRARY = 4,
    }
    /// `CUlaunchAttributeID`
    LaunchAttributeId {
        IGNORE = 0,
        COOPERATIVE = 2,
        CLUSTER_DIMENSION = 4,
        PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    }
}

/// `CU_MEMHOSTALLOC_PORTABLE`
pub(super) const HOST_PORTABLE: c_uint = 1;
/// `CU_MEMHOSTALLOC_DEVICEMAP`
pub(super) const HOST_DEVICEMAP: c_uint = 2;
/// `CU_STREAM_NON_BLOCKING`
pub(super) const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DEFAULT`
pub(super) const EVENT_DEFAULT: c_uint = 0;

/// `CUlaunchAttributeValue`, a union of 64 bytes: of its members, ours are up to
/// three integers at its beginning.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct LaunchAttributeValue(pub(super) [c_uint; 16]);

/// `CUlaunchAttribute`
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct LaunchAttribute {
    pub(super) id: LaunchAttributeId,
    pub(super) pad: [u8; 4],
    pub(super) value: LaunchAttributeValue,
}

/// `CUlaunchConfig`
#[repr(C)]
pub(super) struct LaunchConfig {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) stream: CUstream,
    pub(super) attributes: *mut LaunchAttribute,
    pub(super) attribute_count: c_uint,
}

const _: () = {
    assert!(size_of::<LaunchAttributeValue>() == 64);
    assert!(size_of::<LaunchAttribute>() == 72);
    // As the header lays it out where pointers have 64 bits.
    assert!(size_of::<*const ()>() != 8 || size_of::<LaunchConfig>() == 56);
};

macro_rules! api {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// The functions, all of them present.
        #[derive(Clone, Copy)]
        #[expect(non_snake_case, reason = "the driver's own names")]
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "system" fn($($argument: $type),*) -> CUresult,)*
        }

        impl Api {
            /// Their names, as the library has them.
            #[cfg(test)]
            pub(super) const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Those of a library.
            ///
            /// # Errors
            /// The name of the first one that is missing.
            fn of(library: &library::Library) -> Result<Api, &'static str> {
                Ok(Api {$(
                    // SAFETY: the type is the one that the driver's interface gives
                    // this name; the library is never unloaded.
                    $name: unsafe { library.function(concat!(stringify!($name), "\0")) }
                        .ok_or(stringify!($name))?,
                )*})
            }
        }
    };
}
api! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(error: CUresult, text: *mut *const c_char);
    cuGetErrorString(error: CUresult, text: *mut *const c_char);

    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: DeviceAttribute, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);

    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxPopCurrent_v2(context: *mut CUcontext);

    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemsetD8Async(to: CUdeviceptr, value: c_uchar, bytes: usize, stream: CUstream);
    cuMemHostAlloc(at: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(at: *mut c_void);
    cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, at: *mut c_void, flags: c_uint);
    cuPointerGetAttribute(value: *mut c_void, attribute: PointerAttribute, address: CUdeviceptr);
    cuPointerGetAttributes(
        count: c_uint,
        attributes: *mut PointerAttribute,
        values: *mut *mut c_void,
        address: CUdeviceptr,
    );

    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        options: c_uint,
        names: *mut JitOption,
        values: *mut *mut c_void,
    );
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuModuleUnload(module: CUmodule);
    cuLinkCreate_v2(
        options: c_uint,
        names: *mut JitOption,
        values: *mut *mut c_void,
        state: *mut CUlinkState,
    );
    cuLinkAddData_v2(
        state: CUlinkState,
        what: JitInput,
        data: *mut c_void,
        bytes: usize,
        name: *const c_char,
        options: c_uint,
        names: *mut JitOption,
        values: *mut *mut c_void,
    );
    cuLinkAddFile_v2(
        state: CUlinkState,
        what: JitInput,
        path: *const c_char,
        options: c_uint,
        names: *mut JitOption,
        values: *mut *mut c_void,
    );
    cuLinkComplete(state: CUlinkState, image: *mut *mut c_void, bytes: *mut usize);
    cuLinkDestroy(state: CUlinkState);

    cuFuncGetAttribute(value: *mut c_int, attribute: FunctionAttribute, function: CUfunction);
    cuFuncSetAttribute(function: CUfunction, attribute: FunctionAttribute, value: c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: CUfunction,
        threads: c_int,
        shared: usize,
    );
    cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: CUfunction,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );

    cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamSynchronize(stream: CUstream);
    cuStreamQuery(stream: CUstream);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventElapsedTime(milliseconds: *mut f32, begin: CUevent, end: CUevent);
    cuEventDestroy_v2(event: CUevent);
}

impl Api {
    /// The functions of a library, which is never unloaded.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the library or one of them is missing.
    ///
    /// # Safety
    /// If there is a library of this name, it is the driver's, or does as the
    /// driver's interface says.
    pub(super) unsafe fn load(name: &std::ffi::OsStr) -> Result<Api> {
        // SAFETY: the caller's promise.
        let library = unsafe { library::Library::open(name) }.map_err(|why| {
            let hint = format!("{OLDEST_DRIVER}; the toolkit is not needed");
            Error::Unavailable { why: format!("cannot load the driver's library: {why}"), hint }
        })?;
        Api::of(&library).map_err(|function| Error::Unavailable {
            why: format!("the driver's library, {}, has no {function}", name.to_string_lossy()),
            hint: OLDEST_DRIVER.into(),
        })
    }

    /// Adds the step that failed to the error of a call.
    pub(super) fn check(&self, said: CUresult, doing: impl FnOnce() -> String) -> Result<()> {
        if said == CUresult::SUCCESS {
            return Ok(());
        }
        let text = |ask: unsafe extern "system" fn(CUresult, *mut *const c_char) -> CUresult| {
            let mut text = core::ptr::null();
            // SAFETY: an address is written, or null for a number that is unknown.
            let asked = unsafe { ask(said, &raw mut text) };
            (asked == CUresult::SUCCESS && !text.is_null()).then(|| {
                // SAFETY: the driver's texts end in a zero byte and are never freed.
                unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
            })
        };
        let name = text(self.cuGetErrorName).unwrap_or_else(|| format!("CUDA error {}", said.0));
        let text = text(self.cuGetErrorString).unwrap_or_else(|| "no description".into());
        Err(Error::Driver { doing: doing(), name, text })
    }
}

/// The numbers and layouts here, beside those that cudarc has made from the driver's
/// header.
#[cfg(all(test, feature = "cudarc"))]
mod tests {
    use super::*;
    use core::mem::offset_of;
    use cudarc::driver::sys;

    #[test]
    fn numbers_are_those_of_the_header() {
        use sys::CUdevice_attribute as D;
        for (ours, theirs) in [
            (DeviceAttribute::MAX_THREADS_PER_BLOCK, D::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            (DeviceAttribute::MULTIPROCESSOR_COUNT, D::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            (DeviceAttribute::L2_CACHE_SIZE, D::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
            (
                DeviceAttribute::MAX_THREADS_PER_MULTIPROCESSOR,
                D::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            ),
            (
                DeviceAttribute::COMPUTE_CAPABILITY_MAJOR,
                D::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            ),
            (
                DeviceAttribute::COMPUTE_CAPABILITY_MINOR,
                D::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            ),
            (
                DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                D::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            ),
        ] {
            assert_eq!(ours.0, theirs as c_uint, "{theirs:?}");
        }
        use sys::CUfunction_attribute as F;
        for (ours, theirs) in [
            (FunctionAttribute::MAX_THREADS_PER_BLOCK, F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            (FunctionAttribute::SHARED_SIZE_BYTES, F::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
            (FunctionAttribute::LOCAL_SIZE_BYTES, F::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
            (FunctionAttribute::NUM_REGS, F::CU_FUNC_ATTRIBUTE_NUM_REGS),
            (
                FunctionAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES,
                F::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            ),
        ] {
            assert_eq!(ours.0, theirs as c_uint, "{theirs:?}");
        }
        use sys::CUpointer_attribute as P;
        for (ours, theirs) in [
            (PointerAttribute::MEMORY_TYPE, P::CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
            (PointerAttribute::IS_MANAGED, P::CU_POINTER_ATTRIBUTE_IS_MANAGED),
            (PointerAttribute::DEVICE_ORDINAL, P::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL),
        ] {
            assert_eq!(ours.0, theirs as c_uint, "{theirs:?}");
        }
        use sys::CUlaunchAttributeID as L;
        for (ours, theirs) in [
            (LaunchAttributeId::IGNORE, L::CU_LAUNCH_ATTRIBUTE_IGNORE),
            (LaunchAttributeId::COOPERATIVE, L::CU_LAUNCH_ATTRIBUTE_COOPERATIVE),
            (LaunchAttributeId::CLUSTER_DIMENSION, L::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION),
            (
                LaunchAttributeId::PROGRAMMATIC_STREAM_SERIALIZATION,
                L::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            ),
        ] {
            assert_eq!(ours.0, theirs as c_uint, "{theirs:?}");
        }
        for (ours, theirs) in [
            (CUresult::SUCCESS.0, sys::CUresult::CUDA_SUCCESS as c_uint),
            (CUresult::NOT_READY.0, sys::CUresult::CUDA_ERROR_NOT_READY as c_uint),
            (MemoryType::HOST.0, sys::CUmemorytype::CU_MEMORYTYPE_HOST as c_uint),
            (MemoryType::DEVICE.0, sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as c_uint),
            (JitOption::ERROR_LOG_BUFFER.0, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER as c_uint),
            (
                JitOption::ERROR_LOG_BUFFER_SIZE_BYTES.0,
                sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as c_uint,
            ),
            (JitInput::PTX.0, sys::CUjitInputType::CU_JIT_INPUT_PTX as c_uint),
            (JitInput::LIBRARY.0, sys::CUjitInputType::CU_JIT_INPUT_LIBRARY as c_uint),
            (HOST_PORTABLE, sys::CU_MEMHOSTALLOC_PORTABLE),
            (HOST_DEVICEMAP, sys::CU_MEMHOSTALLOC_DEVICEMAP),
            (STREAM_NON_BLOCKING, sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint),
            (EVENT_DEFAULT, sys::CUevent_flags::CU_EVENT_DEFAULT as c_uint),
        ] {
            assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn layouts_are_those_of_the_header() {
        use sys::{CUlaunchAttribute_st as TheirAttribute, CUlaunchConfig_st as TheirConfig};
        for (ours, theirs) in [
            (size_of::<LaunchConfig>(), size_of::<TheirConfig>()),
            (align_of::<LaunchConfig>(), align_of::<TheirConfig>()),
            (offset_of!(LaunchConfig, grid), offset_of!(TheirConfig, gridDimX)),
            (offset_of!(LaunchConfig, block), offset_of!(TheirConfig, blockDimX)),
            (offset_of!(LaunchConfig, shared_bytes), offset_of!(TheirConfig, sharedMemBytes)),
            (offset_of!(LaunchConfig, stream), offset_of!(TheirConfig, hStream)),
            (offset_of!(LaunchConfig, attributes), offset_of!(TheirConfig, attrs)),
            (offset_of!(LaunchConfig, attribute_count), offset_of!(TheirConfig, numAttrs)),
            (size_of::<LaunchAttribute>(), size_of::<TheirAttribute>()),
            (align_of::<LaunchAttribute>(), align_of::<TheirAttribute>()),
            (offset_of!(LaunchAttribute, id), offset_of!(TheirAttribute, id)),
            (offset_of!(LaunchAttribute, value), offset_of!(TheirAttribute, value)),
        ] {
            assert_eq!(ours, theirs);
        }
    }
}
