//! Real devices, through the driver.
//!
//! The driver's library is looked for at run time, so that programs start on
//! machines without one. cudarc panics where the library or a symbol is
//! missing: [`Driver::probe`] asks first, and whoever holds a [`Driver`] knows
//! that both are there.

use crate::device::{
    Address, Argument, Device, Footprint, KernelId, Launch, Limits, ModuleId, PAGE, Stream,
    UNKNOWN_MEMORY,
};
use crate::{Error, Result, device_runtime};
use core::ffi::{CStr, c_int, c_uint, c_void};
use core::ptr::{self, NonNull};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use sys::CUdevice_attribute_enum as Attribute;

/// The oldest driver whose captures take launches that come early.
const EARLY: u32 = 12_030;

/// The oldest driver, as the driver counts: CUDA 12.0, version 525.
const OLDEST: c_int = 12_000;

/// A device behind the driver, in its primary context, which it shares with
/// whatever else the process runs on it.
pub struct Driver {
    device: sys::CUdevice,
    context: sys::CUcontext,
    limits: Limits,
    /// Whether launches may come early: the device can, and the driver can in
    /// captures, too.
    early: bool,
    handles: Mutex<Handles>,
}

/// What was given out, so that a wrong handle is an error and not a crash.
#[derive(Default)]
struct Handles {
    modules: HashSet<u64>,
    /// By what they were compiled from.
    texts: HashMap<(u64, usize), ModuleId>,
    kernels: HashMap<u64, Shared>,
    /// Streams, and how many calls have named each.
    streams: HashMap<u64, u64>,
    /// Streams that others have made, and will destroy.
    adopted: HashSet<u64>,
}

impl Handles {
    /// A stream that something is asked of.
    fn stream(&mut self, stream: Stream) -> Result<sys::CUstream> {
        match self.streams.get_mut(&stream.0) {
            Some(calls) => *calls += 1,
            None if stream == Stream::DEFAULT || self.adopted.contains(&stream.0) => {}
            None => return Err(Error::ForeignHandle { what: "the stream" }),
        }
        Ok(stream.0 as sys::CUstream)
    }

    /// Allows a kernel `bytes` of dynamic shared memory: a device wants to be
    /// asked if there are more than 48 KiB with the kernel's own. A context is
    /// current.
    fn allow_shared(&mut self, kernel: KernelId, bytes: u32) -> Result<sys::CUfunction> {
        let function = kernel.0 as sys::CUfunction;
        let Some(allowed) = self.kernels.get_mut(&kernel.0) else {
            return Err(Error::ForeignHandle { what: "the kernel" });
        };
        if bytes > allowed.0 {
            let attribute =
                sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is one of a module that stays loaded.
            let set = unsafe {
                result::function::set_function_attribute(
                    function,
                    attribute,
                    c_int::try_from(bytes).unwrap_or(c_int::MAX),
                )
            };
            while_doing(set, || format!("asking for {bytes} bytes of shared memory"))?;
            allowed.0 = bytes;
        }
        Ok(function)
    }
}

/// What tells the text of a module from others: a hash and its length.
fn ptx_key(ptx: &str) -> (u64, usize) {
    let mut hasher = DefaultHasher::new();
    ptx.hash(&mut hasher);
    (hasher.finish(), ptx.len())
}

/// Dynamic shared memory that a kernel has been allowed so far, in bytes.
struct Shared(u32);

// SAFETY: contexts, modules, functions and streams may be used from any thread
// that has made the context current, which every method does first.
unsafe impl Send for Driver {}
// SAFETY: as above; the driver's functions are thread-safe.
unsafe impl Sync for Driver {}

/// Says what was being done when the driver failed.
fn while_doing<T>(result: Result<T, DriverError>, doing: impl FnOnce() -> String) -> Result<T> {
    result.map_err(|error| {
        let text = |found: Result<&CStr, DriverError>| {
            found.map_or_else(|_| "?".into(), |text| text.to_string_lossy().into_owned())
        };
        Error::Driver {
            doing: doing(),
            name: text(error.error_name()),
            text: text(error.error_string()),
        }
    })
}

/// Loads and initialises the driver, once; its version, as it counts.
fn initialise() -> Result<u32> {
    static DONE: OnceLock<Result<u32>> = OnceLock::new();
    DONE.get_or_init(|| {
        // SAFETY: this loads the library named `cuda` or `nvcuda`, whose
        // initialisers are the driver's own.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::Unavailable {
                why: "the driver's library, libcuda, is not on this machine".into(),
                hint: "install the NVIDIA driver, version 525 or newer; the toolkit is not needed"
                    .into(),
            });
        }
        let mut version = 0;
        // SAFETY: the library is there, and every version of it has this
        // function, which writes one integer.
        let asked = unsafe { sys::cuDriverGetVersion(&raw mut version) }.result();
        while_doing(asked, || "asking for the driver's version".into())?;
        if version < OLDEST {
            return Err(Error::Unavailable {
                why: format!(
                    "the driver knows CUDA {}.{}, but 12.0 is needed",
                    version / 1000,
                    version % 1000 / 10
                ),
                hint: "install the NVIDIA driver, version 525 or newer".into(),
            });
        }
        while_doing(result::init(), || "initialising the driver".into())?;
        Ok(version.unsigned_abs())
    })
    .clone()
}

impl Driver {
    /// How many devices there are.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a driver, or with one that is too old.
    pub fn probe() -> Result<u32> {
        initialise()?;
        let count = while_doing(result::device::get_count(), || "counting devices".into())?;
        Ok(count.unsigned_abs())
    }

    /// The CUDA version that the driver knows, major and minor.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a driver, or with one that is too old.
    pub fn version() -> Result<(u32, u32)> {
        initialise().map(|version| (version / 1000, version % 1000 / 10))
    }

    /// What the device with this number is, without opening it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there is none.
    pub fn describe(ordinal: u32) -> Result<Limits> {
        limits(device(ordinal)?)
    }

    /// The device with this number, from 0.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there is none.
    pub fn open(ordinal: u32) -> Result<Driver> {
        let device = device(ordinal)?;
        let limits = limits(device)?;
        let doing = || format!("opening device {ordinal}");
        // SAFETY: the device exists; `drop` releases the context.
        let context = while_doing(unsafe { result::primary_ctx::retain(device) }, doing)?;
        let early = limits.capability >= (9, 0) && initialise()? >= EARLY;
        Ok(Driver { device, context, limits, early, handles: Mutex::default() })
    }

    /// Lets work go on a stream that somebody else has made: with cudarc, torch or
    /// the runtime, all of which share the primary context.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Safety
    /// The stream belongs to this device's primary context and lives as long as
    /// anything is asked of it here.
    pub unsafe fn adopt_stream(&self, stream: sys::CUstream) -> Result<Stream> {
        self.enter()?;
        let stream = stream as u64;
        let mut handles = self.handles();
        if stream != Stream::DEFAULT.0 && !handles.streams.contains_key(&stream) {
            handles.adopted.insert(stream);
        }
        Ok(Stream(stream))
    }

    /// Makes the context current on this thread.
    fn enter(&self) -> Result<()> {
        // SAFETY: the context is retained until `self` is dropped.
        let entered = unsafe { result::ctx::set_current(self.context) };
        while_doing(entered, || "making the device current".into())
    }

    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream of this device, in a current context.
    fn enter_stream(&self, stream: Stream) -> Result<sys::CUstream> {
        self.enter()?;
        self.handles().stream(stream)
    }
}

impl Driver {
    /// Loads PTX that ends in a zero byte, or machine code; a context is current.
    fn load_image(&self, name: &str, image: *const c_void) -> Result<ModuleId> {
        let mut log = Log::new();
        let (mut options, mut values) = (Log::OPTIONS, log.values());
        let mut module = ptr::null_mut();
        // SAFETY: the image is as above; the two options and their values belong
        // together, and the log is as long as they say.
        let loaded = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut module,
                image,
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        while_doing(loaded.result(), || format!("loading {name}")).map_err(|e| log.tell(e))?;
        self.handles().modules.insert(module as u64);
        Ok(ModuleId(module as u64))
    }
}

/// The compiler's words about a module.
struct Log(Vec<u8>);

impl Log {
    /// Room for them.
    const BYTES: usize = 16 << 10;

    const OPTIONS: [sys::CUjit_option; 2] = [
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];

    fn new() -> Log {
        Log(vec![0; Log::BYTES])
    }

    /// The values of the options.
    fn values(&mut self) -> [*mut c_void; 2] {
        [self.0.as_mut_ptr().cast(), ptr::without_provenance_mut(Log::BYTES)]
    }

    /// The driver's words, and those of its compiler.
    fn tell(&self, error: Error) -> Error {
        let log = CStr::from_bytes_until_nul(&self.0).unwrap_or_default().to_string_lossy();
        match error {
            Error::Driver { doing, name, text } if !log.trim().is_empty() => {
                Error::Driver { doing, name, text: format!("{text}: {}", log.trim()) }
            }
            other => other,
        }
    }
}

/// A module linked with the device runtime.
struct Linked {
    state: sys::CUlinkState,
    /// Its machine code, which goes with the state.
    image: *const c_void,
    /// Where the linker writes what it has to say, as long as the state is there.
    log: Log,
    /// The addresses that it was given.
    _values: Box<[*mut c_void; 2]>,
}

impl Linked {
    /// Links PTX; a context is current.
    fn new(name: &str, ptx: &CStr) -> Result<Linked> {
        let library = device_runtime::find()?;
        let doing = || format!("linking {name} with {}", library.display());
        let path = CString::new(library.as_os_str().as_encoded_bytes());
        let path = path.map_err(|_| Error::Library {
            why: format!("{} has a zero byte in its name", library.display()),
            hint: "give it another name".into(),
        })?;
        let mut log = Log::new();
        let (mut options, mut values) = (Log::OPTIONS, Box::new(log.values()));
        let mut state = ptr::null_mut();
        // SAFETY: options and values belong together; the values and the log, which is
        // as long as they say, live as long as the state.
        let created = unsafe {
            sys::cuLinkCreate_v2(
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
                &raw mut state,
            )
        };
        while_doing(created.result(), doing)?;
        let mut linked = Linked { state, image: ptr::null(), log, _values: values };
        let bytes = ptx.to_bytes_with_nul();
        // SAFETY: the text is as long as is said, zero byte included; there are no
        // options.
        let added = unsafe {
            sys::cuLinkAddData_v2(
                state,
                sys::CUjitInputType::CU_JIT_INPUT_PTX,
                bytes.as_ptr().cast_mut().cast(),
                bytes.len(),
                c"warpfold".as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        while_doing(added.result(), doing).map_err(|e| linked.log.tell(e))?;
        // SAFETY: the path ends in a zero byte; there are no options.
        let added = unsafe {
            sys::cuLinkAddFile_v2(
                state,
                sys::CUjitInputType::CU_JIT_INPUT_LIBRARY,
                path.as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        let (mut image, mut size) = (ptr::null_mut(), 0);
        let completed = while_doing(added.result(), doing).and_then(|()| {
            // SAFETY: an address and a size are written.
            let completed = unsafe { sys::cuLinkComplete(state, &raw mut image, &raw mut size) };
            while_doing(completed.result(), doing)
        });
        // A library of another age than the driver is as good as none.
        completed.map_err(|error| Error::Library {
            why: linked.log.tell(error).to_string(),
            hint: format!(
                "the library must not be newer than the driver; {} may name another one",
                device_runtime::VARIABLE
            ),
        })?;
        linked.image = image;
        Ok(linked)
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        // Errors have nobody to go to.
        // SAFETY: created in `new`, and nobody else has it.
        let _ = unsafe { sys::cuLinkDestroy(self.state) };
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            let handles = core::mem::take(&mut *self.handles());
            // Errors have nobody to go to; the context dies with the process.
            for stream in handles.streams.into_keys() {
                // SAFETY: created here, and nobody can use it any more.
                let _ = unsafe { result::stream::destroy(stream as sys::CUstream) };
            }
            for module in handles.modules {
                // SAFETY: as above.
                let _ = unsafe { result::module::unload(module as sys::CUmodule) };
            }
        }
        // SAFETY: retained in `open`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// The device with this number.
fn device(ordinal: u32) -> Result<sys::CUdevice> {
    let count = Driver::probe()?;
    if ordinal >= count {
        return Err(Error::Unavailable {
            why: format!("device {ordinal} was asked for, and there {}", are(count)),
            hint: "devices are numbered from 0; CUDA_VISIBLE_DEVICES may hide some".into(),
        });
    }
    let found = result::device::get(ordinal.cast_signed());
    while_doing(found, || format!("looking for device {ordinal}"))
}

fn are(count: u32) -> String {
    match count {
        0 => "is none".into(),
        1 => "is one".into(),
        n => format!("are {n}"),
    }
}

/// What a device says of itself.
fn limits(device: sys::CUdevice) -> Result<Limits> {
    let attribute = |attribute: Attribute| -> Result<u32> {
        // SAFETY: the device exists.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        let value = while_doing(value, || "asking what the device can do".into())?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let doing = || "asking what the device is".to_owned();
    Ok(Limits {
        name: while_doing(result::device::get_name(device), doing)?,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        threads_per_multiprocessor: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        )?,
        threads_per_block: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        shared_per_block: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        // SAFETY: the device exists.
        memory: while_doing(unsafe { result::device::total_mem(device) }, doing)? as u64,
    })
}

/// The device that the driver knows this byte by; a context is current.
fn ordinal_of(address: Address) -> Option<sys::CUdevice> {
    let mut ordinal: c_int = 0;
    // SAFETY: the attribute is one such integer; the address is only looked up,
    // and one that the driver does not know is an error.
    let asked = unsafe {
        sys::cuPointerGetAttribute(
            (&raw mut ordinal).cast(),
            sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            address,
        )
    };
    (asked == sys::CUresult::CUDA_SUCCESS).then_some(ordinal)
}

/// Why kernels of a device cannot read this byte; a context is current.
fn why_unreadable_at(address: Address, device: sys::CUdevice) -> Option<&'static str> {
    use sys::CUpointer_attribute as Attribute;
    let (mut kind, mut managed, mut of): (c_uint, c_uint, c_int) = (0, 0, 0);
    let mut attributes = [
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    ];
    let mut values: [*mut c_void; 3] =
        [(&raw mut kind).cast(), (&raw mut managed).cast(), (&raw mut of).cast()];
    // SAFETY: as many values as attributes, each an integer of 32 bits; the
    // address is only looked up, and of one that the driver does not know the
    // type is 0.
    let asked = unsafe {
        sys::cuPointerGetAttributes(
            attributes.len() as c_uint,
            attributes.as_mut_ptr(),
            values.as_mut_ptr(),
            address,
        )
    };
    let device_memory = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as c_uint;
    if asked != sys::CUresult::CUDA_SUCCESS || kind == 0 {
        Some(UNKNOWN_MEMORY)
    } else if kind == device_memory && managed == 0 && of != device {
        Some("it is memory of another device")
    } else {
        None
    }
}

/// Whether the driver knows this byte of host memory; a context is current.
fn is_pinned_at(byte: &u8) -> bool {
    let mut kind: c_uint = 0;
    // SAFETY: the attribute is one such integer; the address is only looked up,
    // and one that the driver does not know is an error.
    let asked = unsafe {
        sys::cuPointerGetAttribute(
            (&raw mut kind).cast(),
            sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            ptr::from_ref(byte).addr() as sys::CUdeviceptr,
        )
    };
    asked == sys::CUresult::CUDA_SUCCESS && kind == sys::CUmemorytype::CU_MEMORYTYPE_HOST as c_uint
}

/// The most arguments of a launch; no kernel here has a quarter of them.
const MOST_ARGUMENTS: usize = 64;

/// What a launch is beside its shape, without an allocation.
struct Attributes {
    all: [sys::CUlaunchAttribute; 3],
    count: usize,
}

impl Default for Attributes {
    fn default() -> Attributes {
        let none = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_IGNORE,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { pad: [0; 64] },
        };
        Attributes { all: [none; 3], count: 0 }
    }
}

impl Attributes {
    fn push(
        &mut self,
        id: sys::CUlaunchAttributeID,
        set: impl FnOnce(&mut sys::CUlaunchAttributeValue),
    ) {
        if let Some(next) = self.all.get_mut(self.count) {
            next.id = id;
            set(&mut next.value);
            self.count += 1;
        }
    }
}

impl Device for Driver {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn allocate(&self, bytes: u64) -> Result<Address> {
        self.enter()?;
        let doing = || format!("allocating {bytes} bytes");
        // The driver refuses to allocate nothing.
        let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        // SAFETY: a context is current.
        while_doing(unsafe { result::malloc_sync(size) }, doing)
    }

    fn free(&self, address: Address) -> Result<()> {
        self.enter()?;
        // SAFETY: the driver checks that the address is an allocation.
        let freed = unsafe { result::free_sync(address) };
        while_doing(freed, || format!("freeing memory at {address:#x}"))
    }

    fn copy_in(&self, stream: Stream, to: Address, from: &[u8]) -> Result<()> {
        let stream = self.enter_stream(stream)?;
        if from.is_empty() {
            return Ok(());
        }
        let doing = || format!("copying {} bytes to {to:#x}", from.len());
        // SAFETY: the driver checks the device's range; from pageable memory
        // it returns when `from` has been read, and for pinned memory there is
        // the wait below.
        let copied = unsafe { result::memcpy_htod_async(to, from, stream) };
        while_doing(copied, doing)?;
        // SAFETY: the stream exists.
        while_doing(unsafe { result::stream::synchronize(stream) }, doing)
    }

    fn copy_out(&self, stream: Stream, from: Address, to: &mut [u8]) -> Result<()> {
        let stream = self.enter_stream(stream)?;
        if to.is_empty() {
            return Ok(());
        }
        let len = to.len();
        let doing = || format!("copying {len} bytes from {from:#x}");
        // SAFETY: the driver checks the device's range; `to` is borrowed until
        // the stream has been waited for.
        let copied = unsafe { result::memcpy_dtoh_async(to, from, stream) };
        while_doing(copied, doing)?;
        // SAFETY: the stream exists.
        while_doing(unsafe { result::stream::synchronize(stream) }, doing)
    }

    unsafe fn start_copy_in(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        let stream = self.enter_stream(stream)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the driver checks the device's range; the caller keeps the
        // host's until the stream was waited for.
        let copied = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, stream) };
        while_doing(copied.result(), || format!("copying {bytes} bytes to {to:#x}"))
    }

    unsafe fn start_copy_out(
        &self,
        stream: Stream,
        from: Address,
        to: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let stream = self.enter_stream(stream)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: as above.
        let copied = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream) };
        while_doing(copied.result(), || format!("copying {bytes} bytes from {from:#x}"))
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.enter()?;
        let size = bytes.max(1);
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: a context is current.
        let allocated = unsafe { result::malloc_host(size, flags) };
        let at = while_doing(allocated, || format!("allocating {bytes} bytes of pinned memory"))?;
        let at = NonNull::new(at.cast::<u8>()).ok_or(Error::HostMemory { bytes })?;
        // SAFETY: just allocated, with as many bytes.
        unsafe { at.as_ptr().write_bytes(0, size) };
        Ok(at)
    }

    unsafe fn free_pinned(&self, at: NonNull<u8>, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller's promise.
        let freed = unsafe { result::free_host(at.as_ptr().cast()) };
        while_doing(freed, || format!("freeing {bytes} bytes of pinned memory"))
    }

    fn address_of_pinned(&self, at: NonNull<u8>) -> Option<Address> {
        self.enter().ok()?;
        let mut address = 0;
        // SAFETY: the driver checks that the memory is pinned and mapped, and
        // writes one address.
        let asked =
            unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, at.as_ptr().cast(), 0) };
        asked.result().ok().map(|()| address)
    }

    fn is_pinned(&self, bytes: &[u8]) -> bool {
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
        self.enter().is_ok() && is_pinned_at(first) && is_pinned_at(last)
    }

    fn why_unreadable(&self, address: Address, bytes: u64) -> Option<&'static str> {
        let Some(last) = address.checked_add(bytes.checked_sub(1)?) else {
            return Some(UNKNOWN_MEMORY);
        };
        if self.enter().is_err() {
            // What comes next says it.
            return None;
        }
        // Each question costs as much as a tenth of a launch. Memory is mapped by
        // pages: what ends on the page it begins on is there as a whole.
        let ends = [address, last];
        let ends = if address / PAGE == last / PAGE { &ends[..1] } else { &ends };
        ends.iter()
            .filter(|&&at| ordinal_of(at) != Some(self.device))
            .find_map(|&at| why_unreadable_at(at, self.device))
    }

    fn fill(&self, stream: Stream, to: Address, value: u8, bytes: u64) -> Result<()> {
        let stream = self.enter_stream(stream)?;
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the driver checks the range.
        let filled = unsafe { result::memset_d8_async(to, value, size, stream) };
        while_doing(filled, || format!("filling {bytes} bytes at {to:#x}"))
    }

    fn load(&self, name: &str, ptx: &str) -> Result<ModuleId> {
        self.enter()?;
        // Modules stay loaded, and to compile one takes up to a second: whoever asks
        // for the same text gets the same module.
        let text = ptx_key(ptx);
        if let Some(&module) = self.handles().texts.get(&text) {
            return Ok(module);
        }
        let doing = || format!("loading {name}");
        let image = CString::new(ptx).map_err(|_| Error::Driver {
            doing: doing(),
            name: "CUDA_ERROR_INVALID_PTX".into(),
            text: "the text holds a zero byte".into(),
        })?;
        let module = if device_runtime::is_needed(ptx) {
            let linked = Linked::new(name, &image)?;
            self.load_image(name, linked.image)?
        } else {
            self.load_image(name, image.as_ptr().cast())?
        };
        self.handles().texts.insert(text, module);
        Ok(module)
    }

    fn kernel(&self, module: ModuleId, name: &str) -> Result<KernelId> {
        self.enter()?;
        if !self.handles().modules.contains(&module.0) {
            return Err(Error::ForeignHandle { what: "the module" });
        }
        let doing = || format!("looking for kernel {name}");
        let c_name = CString::new(name).map_err(|_| Error::Driver {
            doing: doing(),
            name: "CUDA_ERROR_NOT_FOUND".into(),
            text: "the name holds a zero byte".into(),
        })?;
        // SAFETY: the module is loaded.
        let found = unsafe { result::module::get_function(module.0 as sys::CUmodule, c_name) };
        let function = while_doing(found, doing)?;
        self.handles().kernels.entry(function as u64).or_insert(Shared(0));
        Ok(KernelId(function as u64))
    }

    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<u32> {
        self.enter()?;
        let function = self.handles().allow_shared(kernel, shared)?;
        let mut blocks = 0;
        // SAFETY: the function is one of a module that stays loaded; one
        // integer is written.
        let asked = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                function,
                c_int::try_from(threads).unwrap_or(c_int::MAX),
                shared as usize,
            )
        };
        while_doing(asked.result(), || "asking how many blocks run at once".into())?;
        Ok(blocks.unsigned_abs())
    }

    fn footprint(&self, kernel: KernelId) -> Result<Option<Footprint>> {
        use sys::CUfunction_attribute_enum as Of;
        self.enter()?;
        let function = self.handles().allow_shared(kernel, 0)?;
        let ask = |attribute: Of| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the function is one of a module that stays loaded; one
            // integer is written.
            let asked = unsafe { sys::cuFuncGetAttribute(&raw mut value, attribute, function) };
            while_doing(asked.result(), || "asking what a kernel takes".into())?;
            Ok(value.unsigned_abs())
        };
        Ok(Some(Footprint {
            registers: Some(ask(Of::CU_FUNC_ATTRIBUTE_NUM_REGS)?),
            shared: ask(Of::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local: Some(ask(Of::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?),
            threads: ask(Of::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        }))
    }

    fn stream(&self) -> Result<Stream> {
        self.enter()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking);
        let stream = while_doing(stream, || "making a stream".into())? as u64;
        self.handles().streams.insert(stream, 0);
        Ok(Stream(stream))
    }

    fn calls_on(&self, stream: Stream) -> Option<u64> {
        self.handles().streams.get(&stream.0).copied()
    }

    unsafe fn launch(
        &self,
        stream: Stream,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> Result<()> {
        self.enter()?;
        let (stream, function) = {
            let mut handles = self.handles();
            (handles.stream(stream)?, handles.allow_shared(kernel, launch.shared)?)
        };
        let mut attributes = Attributes::default();
        if let Some([x, y, z]) = launch.cluster {
            let dimensions = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            attributes
                .push(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, |value| {
                    value.clusterDim = dimensions
                });
        }
        if launch.cooperative {
            attributes.push(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, |value| {
                value.cooperative = 1
            });
        }
        if launch.early && self.early {
            attributes.push(
                sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                |value| value.programmaticStreamSerializationAllowed = 1,
            );
        }
        let config = sys::CUlaunchConfig {
            gridDimX: launch.grid[0],
            gridDimY: launch.grid[1],
            gridDimZ: launch.grid[2],
            blockDimX: launch.block[0],
            blockDimY: launch.block[1],
            blockDimZ: launch.block[2],
            sharedMemBytes: launch.shared,
            hStream: stream,
            attrs: attributes.all.as_mut_ptr(),
            numAttrs: attributes.count as c_uint,
        };
        if arguments.len() > MOST_ARGUMENTS {
            return Err(Error::Driver {
                doing: format!("launching {launch:?}"),
                name: "CUDA_ERROR_INVALID_VALUE".into(),
                text: format!("{} arguments, of at most {MOST_ARGUMENTS}", arguments.len()),
            });
        }
        let mut parameters = [ptr::null_mut::<c_void>(); MOST_ARGUMENTS];
        for (parameter, argument) in parameters.iter_mut().zip(arguments) {
            *parameter = ptr::from_ref(argument.bits()).cast_mut().cast();
        }
        // SAFETY: the caller vouches for the kernel and its arguments; the
        // configuration and the parameters live until the call returns, which
        // is as long as the driver looks at them.
        let launched = unsafe {
            sys::cuLaunchKernelEx(
                &raw const config,
                function,
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        while_doing(launched.result(), || format!("launching {launch:?}"))
    }

    fn wait(&self, stream: Stream) -> Result<()> {
        let stream = self.enter_stream(stream)?;
        // SAFETY: the stream exists.
        let waited = unsafe { result::stream::synchronize(stream) };
        while_doing(waited, || "waiting for the device".into())
    }

    fn is_done(&self, stream: Stream) -> Result<bool> {
        let stream = self.enter_stream(stream)?;
        // SAFETY: the stream exists.
        match unsafe { sys::cuStreamQuery(stream) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => while_doing(other.result(), || "asking the device".into()).map(|()| true),
        }
    }

    fn time(
        &self,
        stream: Stream,
        work: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<Duration>> {
        let raw = self.enter_stream(stream)?;
        let doing = || "timing the device".to_owned();
        let (begin, end) = (Event::new()?, Event::new()?);
        // SAFETY: events and stream exist.
        while_doing(unsafe { result::event::record(begin.0, raw) }, doing)?;
        work()?;
        self.enter()?;
        // SAFETY: as above.
        while_doing(unsafe { result::event::record(end.0, raw) }, doing)?;
        self.wait(stream)?;
        // SAFETY: both were recorded on the stream, which was waited for.
        let milliseconds = while_doing(unsafe { result::event::elapsed(begin.0, end.0) }, doing)?;
        Ok(Some(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3)))
    }
}

/// A point in a stream's work, with the time at which the device came to it.
struct Event(sys::CUevent);

impl Event {
    /// A context is current.
    fn new() -> Result<Event> {
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        while_doing(result::event::create(flags), || "making an event".into()).map(Event)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // Errors have nobody to go to.
        // SAFETY: created here, and nobody else has it.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_driver_is_an_error_with_a_hint() {
        match Driver::probe() {
            Ok(count) => assert!(Driver::open(count).is_err(), "there are only {count}"),
            Err(error) => {
                assert!(matches!(error, Error::Unavailable { .. }), "{error}");
                assert!(error.hint().is_some());
                assert_eq!(Driver::open(0).err(), Some(error));
            }
        }
    }
}
