//! Real devices, through the driver.
//!
//! The driver's library is loaded at run time, so programs also start on machines
//! without it. A missing library or function is an error that names it, never a panic.

mod api;
mod launch;
mod library;
mod link;
mod lookup;
#[cfg(all(test, unix))]
mod tests;

use crate::device::{
    Address, Argument, Current, Device, Footprint, KernelId, Launch, Leave, Limits, ModuleId, PAGE,
    Stream, UNKNOWN_MEMORY,
};
use crate::{Error, Result};
use api::{
    Api, CUcontext, CUdevice, CUevent, CUfunction, CUmodule, CUresult, CUstream, DeviceAttribute,
    FunctionAttribute, OLDEST_DRIVER,
};
use core::ffi::{CStr, c_int, c_void};
use core::ptr::{self, NonNull};
use launch::{Attributes, Parameters};
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsStr};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The oldest driver that can capture programmatic dependent launches.
const DEPENDENT_LAUNCHES: u32 = 12_030;

/// The oldest supported driver, in the driver's numbering: CUDA 12.0, version 525.
const OLDEST: c_int = 12_000;

/// A device of the driver, in its primary context, which all CUDA code of the process
/// shares.
///
/// Every call leaves the calling thread's current context as it was.
pub struct Driver {
    loaded: &'static Loaded,
    device: CUdevice,
    context: CUcontext,
    limits: Limits,
    /// Whether launches may be dependent: the device supports it, and the driver can
    /// capture it.
    dependent: bool,
    handles: Mutex<Handles>,
}

/// The handles that were given out, so that a wrong one is an error and not a crash.
#[derive(Default)]
struct Handles {
    modules: HashSet<u64>,
    /// Modules by their text.
    texts: HashMap<(u64, usize), ModuleId>,
    kernels: HashMap<u64, Shared>,
    /// Streams, and how many calls have used each.
    streams: HashMap<u64, u64>,
    /// Streams of other code, which destroys them.
    adopted: HashSet<u64>,
}

impl Handles {
    /// The stream of a call, which it counts.
    fn stream(&mut self, stream: Stream) -> Result<CUstream> {
        match self.streams.get_mut(&stream.0) {
            Some(calls) => *calls += 1,
            None if stream == Stream::DEFAULT || self.adopted.contains(&stream.0) => {}
            None => return Err(Error::ForeignHandle { what: "the stream" }),
        }
        Ok(stream.0 as CUstream)
    }

    /// Allows a kernel `bytes` of dynamic shared memory. The driver needs this call
    /// where dynamic and static shared memory exceed 48 KiB. A context is current.
    fn allow_shared(&mut self, api: &Api, kernel: KernelId, bytes: u32) -> Result<CUfunction> {
        let function = kernel.0 as CUfunction;
        let Some(allowed) = self.kernels.get_mut(&kernel.0) else {
            return Err(Error::ForeignHandle { what: "the kernel" });
        };
        if bytes > allowed.0 {
            // SAFETY: the function is one of a module that stays loaded.
            let set = unsafe {
                (api.cuFuncSetAttribute)(
                    function,
                    FunctionAttribute::MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    c_int::try_from(bytes).unwrap_or(c_int::MAX),
                )
            };
            api.check(set, || format!("requesting {bytes} bytes of shared memory"))?;
            allowed.0 = bytes;
        }
        Ok(function)
    }
}

/// Identifies the text of a module: a hash and its length.
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

/// The driver, loaded and initialised.
struct Loaded {
    api: Api,
    /// The CUDA version that it supports, in its numbering.
    version: u32,
}

impl Loaded {
    /// The driver in a library of this name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it is missing, too old, or lacks a function; its own
    /// errors.
    ///
    /// # Safety
    /// If there is such a library, it implements the driver's interface.
    unsafe fn new(name: &OsStr) -> Result<Loaded> {
        // SAFETY: the caller's promise.
        let api = unsafe { Api::load(name) }?;
        let mut version = 0;
        // SAFETY: one integer is written.
        let asked = unsafe { (api.cuDriverGetVersion)(&raw mut version) };
        api.check(asked, || "querying the driver's version".into())?;
        if version < OLDEST {
            return Err(Error::Unavailable {
                why: format!(
                    "the driver supports CUDA {}.{}, but 12.0 is needed",
                    version / 1000,
                    version % 1000 / 10
                ),
                hint: OLDEST_DRIVER.into(),
            });
        }
        // SAFETY: nothing is asked of the caller.
        api.check(unsafe { (api.cuInit)(0) }, || "initialising the driver".into())?;
        Ok(Loaded { api, version: version.unsigned_abs() })
    }

    /// The number of devices.
    fn count(&self) -> Result<u32> {
        let mut count = 0;
        // SAFETY: one integer is written.
        let asked = unsafe { (self.api.cuDeviceGetCount)(&raw mut count) };
        self.api.check(asked, || "counting devices".into())?;
        Ok(count.unsigned_abs())
    }

    /// The device with this number.
    fn device(&self, ordinal: u32) -> Result<CUdevice> {
        let count = self.count()?;
        if ordinal >= count {
            return Err(Error::Unavailable {
                why: format!("device {ordinal} was requested, but there {}", are(count)),
                hint: "devices are numbered from 0; CUDA_VISIBLE_DEVICES may hide some".into(),
            });
        }
        let mut device = 0;
        // SAFETY: one integer is written.
        let found = unsafe { (self.api.cuDeviceGet)(&raw mut device, ordinal.cast_signed()) };
        self.api.check(found, || format!("finding device {ordinal}"))?;
        Ok(device)
    }

    /// The properties of a device.
    fn limits(&self, device: CUdevice) -> Result<Limits> {
        let api = &self.api;
        let attribute = |attribute: DeviceAttribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: one integer is written.
            let asked = unsafe { (api.cuDeviceGetAttribute)(&raw mut value, attribute, device) };
            api.check(asked, || "querying the device's attributes".into())?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let doing = || "querying the device's name and memory".to_owned();
        let (mut name, mut memory) = ([0u8; 128], 0usize);
        // SAFETY: as many bytes are written as there is room for, at most.
        let named =
            unsafe { (api.cuDeviceGetName)(name.as_mut_ptr().cast(), name.len() as c_int, device) };
        api.check(named, doing)?;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        // SAFETY: one number is written.
        let asked = unsafe { (api.cuDeviceTotalMem_v2)(&raw mut memory, device) };
        let limits = Limits {
            name: String::from_utf8_lossy(name).into_owned(),
            capability: (
                attribute(DeviceAttribute::COMPUTE_CAPABILITY_MAJOR)?,
                attribute(DeviceAttribute::COMPUTE_CAPABILITY_MINOR)?,
            ),
            multiprocessors: attribute(DeviceAttribute::MULTIPROCESSOR_COUNT)?,
            threads_per_multiprocessor: attribute(DeviceAttribute::MAX_THREADS_PER_MULTIPROCESSOR)?,
            threads_per_block: attribute(DeviceAttribute::MAX_THREADS_PER_BLOCK)?,
            shared_per_block: attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            l2_bytes: attribute(DeviceAttribute::L2_CACHE_SIZE)?.into(),
            memory: memory as u64,
        };
        api.check(asked, doing).map(|()| limits)
    }
}

fn are(count: u32) -> String {
    match count {
        0 => "is none".into(),
        1 => "is one".into(),
        n => format!("are {n}"),
    }
}

/// The machine's driver, loaded once.
fn loaded() -> Result<&'static Loaded> {
    static DONE: OnceLock<Result<Loaded>> = OnceLock::new();
    // SAFETY: this is the name of the driver's library, in the places where the
    // system keeps its libraries or the user has told the loader to look.
    let done = DONE.get_or_init(|| unsafe { Loaded::new(library::NAME.as_ref()) });
    done.as_ref().map_err(Clone::clone)
}

impl Driver {
    /// The number of devices.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a driver, or with one that is too old.
    pub fn probe() -> Result<u32> {
        loaded()?.count()
    }

    /// The CUDA version that the driver supports, major and minor.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a driver, or with one that is too old.
    pub fn version() -> Result<(u32, u32)> {
        loaded().map(|Loaded { version, .. }| (version / 1000, version % 1000 / 10))
    }

    /// The properties of the device with this number, without opening it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there is no such device.
    pub fn describe(ordinal: u32) -> Result<Limits> {
        let loaded = loaded()?;
        loaded.limits(loaded.device(ordinal)?)
    }

    /// The device with this number, from 0.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if there is no such device.
    pub fn open(ordinal: u32) -> Result<Driver> {
        Driver::open_in(loaded()?, ordinal)
    }

    /// A device of this driver.
    fn open_in(loaded: &'static Loaded, ordinal: u32) -> Result<Driver> {
        let device = loaded.device(ordinal)?;
        let limits = loaded.limits(device)?;
        let mut context = ptr::null_mut();
        // SAFETY: an address is written; `drop` releases the context.
        let retained = unsafe { (loaded.api.cuDevicePrimaryCtxRetain)(&raw mut context, device) };
        loaded.api.check(retained, || format!("opening device {ordinal}"))?;
        let dependent = limits.capability >= (9, 0) && loaded.version >= DEPENDENT_LAUNCHES;
        Ok(Driver { loaded, device, context, limits, dependent, handles: Mutex::default() })
    }

    /// Uses a stream that other code has made, with cudarc, torch or the CUDA runtime.
    /// All of them share the primary context. The stream is a `CUstream` or a
    /// `cudaStream_t`, which are the same.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Safety
    /// The stream belongs to this device's primary context, and lives until the last
    /// call that uses it.
    pub unsafe fn adopt_stream(&self, stream: *mut c_void) -> Result<Stream> {
        let _current = self.enter()?;
        let stream = stream as u64;
        let mut handles = self.handles();
        if stream != Stream::DEFAULT.0 && !handles.streams.contains_key(&stream) {
            handles.adopted.insert(stream);
        }
        Ok(Stream(stream))
    }

    fn api(&self) -> &'static Api {
        &self.loaded.api
    }

    /// Makes the context current on this thread, until the value is dropped.
    fn enter(&self) -> Result<Current<'_>> {
        let mut current = ptr::null_mut();
        // SAFETY: an address is written. An error says that there is a context which
        // does not exist any more: it is not this one.
        let asked = unsafe { (self.api().cuCtxGetCurrent)(&raw mut current) };
        if asked == CUresult::SUCCESS && current == self.context {
            return Ok(Current::as_it_was());
        }
        // SAFETY: the context is retained until `self` is dropped, which outlives the
        // value that takes it away again.
        let entered = unsafe { (self.api().cuCtxPushCurrent_v2)(self.context) };
        self.api().check(entered, || "making the device current".into())?;
        Ok(Current::until_left(self))
    }

    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream of this device, in a current context.
    fn enter_stream(&self, stream: Stream) -> Result<(Current<'_>, CUstream)> {
        let current = self.enter()?;
        Ok((current, self.handles().stream(stream)?))
    }

    /// Waits for a stream; a context is current.
    ///
    /// # Safety
    /// The stream exists.
    unsafe fn synchronize(&self, stream: CUstream, doing: impl FnOnce() -> String) -> Result<()> {
        // SAFETY: the caller's promise.
        let waited = unsafe { (self.api().cuStreamSynchronize)(stream) };
        self.api().check(waited, doing)
    }
}

impl Leave for Driver {
    fn leave(&self) {
        let mut left = ptr::null_mut();
        // Errors cannot be reported here.
        // SAFETY: an address is written.
        let _ = unsafe { (self.api().cuCtxPopCurrent_v2)(&raw mut left) };
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Ok(_current) = self.enter() {
            let handles = core::mem::take(&mut *self.handles());
            // Errors cannot be reported here; the context dies with the process.
            for stream in handles.streams.into_keys() {
                // SAFETY: created here, and not used any more.
                let _ = unsafe { (self.api().cuStreamDestroy_v2)(stream as CUstream) };
            }
            for module in handles.modules {
                // SAFETY: loaded here, and not used any more.
                let _ = unsafe { (self.api().cuModuleUnload)(module as CUmodule) };
            }
        }
        // SAFETY: retained in `open_in`, and not current on account of `self`.
        let _ = unsafe { (self.api().cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

// SAFETY: pinned memory is the driver's own, of as many bytes as were asked for,
// aligned to a page and set to zero; it stays until it is given back.
unsafe impl Device for Driver {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn make_current(&self) -> Result<Current<'_>> {
        self.enter()
    }

    fn allocate(&self, bytes: u64) -> Result<Address> {
        let _current = self.enter()?;
        // The driver refuses to allocate nothing.
        let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        let mut address = 0;
        // SAFETY: an address is written.
        let allocated = unsafe { (self.api().cuMemAlloc_v2)(&raw mut address, size) };
        self.api().check(allocated, || format!("allocating {bytes} bytes"))?;
        Ok(address)
    }

    unsafe fn free(&self, address: Address) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the caller gives its own allocation back.
        let freed = unsafe { (self.api().cuMemFree_v2)(address) };
        self.api().check(freed, || format!("freeing memory at {address:#x}"))
    }

    unsafe fn copy_in(&self, stream: Stream, to: Address, from: &[u8]) -> Result<()> {
        let (_current, stream) = self.enter_stream(stream)?;
        if from.is_empty() {
            return Ok(());
        }
        let doing = || format!("copying {} bytes to {to:#x}", from.len());
        // SAFETY: the device's range is the caller's; `from` is borrowed until the
        // stream has been waited for: from pageable memory the call returns when it
        // has been read, and for pinned memory there is the wait below.
        let copied = unsafe {
            (self.api().cuMemcpyHtoDAsync_v2)(to, from.as_ptr().cast(), from.len(), stream)
        };
        self.api().check(copied, doing)?;
        // SAFETY: the stream exists.
        unsafe { self.synchronize(stream, doing) }
    }

    unsafe fn copy_out(&self, stream: Stream, from: Address, to: &mut [u8]) -> Result<()> {
        let (_current, stream) = self.enter_stream(stream)?;
        if to.is_empty() {
            return Ok(());
        }
        let len = to.len();
        let doing = || format!("copying {len} bytes from {from:#x}");
        // SAFETY: the device's range is the caller's; `to` is borrowed until the
        // stream has been waited for.
        let copied =
            unsafe { (self.api().cuMemcpyDtoHAsync_v2)(to.as_mut_ptr().cast(), from, len, stream) };
        self.api().check(copied, doing)?;
        // SAFETY: the stream exists.
        unsafe { self.synchronize(stream, doing) }
    }

    unsafe fn start_copy_in(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        let (_current, stream) = self.enter_stream(stream)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both ranges are the caller's, until the stream was waited for.
        let copied = unsafe { (self.api().cuMemcpyHtoDAsync_v2)(to, from.cast(), bytes, stream) };
        self.api().check(copied, || format!("copying {bytes} bytes to {to:#x}"))
    }

    unsafe fn start_copy_out(
        &self,
        stream: Stream,
        from: Address,
        to: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let (_current, stream) = self.enter_stream(stream)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both ranges are the caller's, until the stream was waited for.
        let copied = unsafe { (self.api().cuMemcpyDtoHAsync_v2)(to.cast(), from, bytes, stream) };
        self.api().check(copied, || format!("copying {bytes} bytes from {from:#x}"))
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>> {
        let _current = self.enter()?;
        let size = bytes.max(1);
        let flags = api::HOST_PORTABLE | api::HOST_DEVICEMAP;
        let mut at = ptr::null_mut();
        // SAFETY: an address is written.
        let allocated = unsafe { (self.api().cuMemHostAlloc)(&raw mut at, size, flags) };
        self.api().check(allocated, || format!("allocating {bytes} bytes of pinned memory"))?;
        let at = NonNull::new(at.cast::<u8>()).ok_or(Error::HostMemory { bytes })?;
        // SAFETY: just allocated, with as many bytes.
        unsafe { at.as_ptr().write_bytes(0, size) };
        Ok(at)
    }

    unsafe fn free_pinned(&self, at: NonNull<u8>, bytes: usize) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the caller's promise.
        let freed = unsafe { (self.api().cuMemFreeHost)(at.as_ptr().cast()) };
        self.api().check(freed, || format!("freeing {bytes} bytes of pinned memory"))
    }

    fn address_of_pinned(&self, at: NonNull<u8>) -> Option<Address> {
        let _current = self.enter().ok()?;
        let mut address = 0;
        // SAFETY: the driver checks that the memory is pinned and mapped, and
        // writes one address.
        let asked = unsafe {
            (self.api().cuMemHostGetDevicePointer_v2)(&raw mut address, at.as_ptr().cast(), 0)
        };
        (asked == CUresult::SUCCESS).then_some(address)
    }

    fn is_pinned(&self, bytes: &[u8]) -> bool {
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
        let Ok(_current) = self.enter() else { return false };
        [first, last].into_iter().all(|byte| lookup::is_pinned_at(self.api(), byte))
    }

    fn why_unreadable(&self, address: Address, bytes: u64) -> Option<&'static str> {
        let Some(last) = address.checked_add(bytes.checked_sub(1)?) else {
            return Some(UNKNOWN_MEMORY);
        };
        // If this fails, what comes next says it.
        let _current = self.enter().ok()?;
        // Each question costs as much as a tenth of a launch. Memory is mapped by
        // pages: what ends on the page it begins on is there as a whole.
        let ends = [address, last];
        let ends = if address / PAGE == last / PAGE { &ends[..1] } else { &ends };
        let api = self.api();
        ends.iter()
            .filter(|&&at| lookup::ordinal_of(api, at) != Some(self.device))
            .find_map(|&at| lookup::why_unreadable_at(api, at, self.device))
    }

    unsafe fn fill(&self, stream: Stream, to: Address, value: u8, bytes: u64) -> Result<()> {
        let (_current, stream) = self.enter_stream(stream)?;
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the range is the caller's.
        let filled = unsafe { (self.api().cuMemsetD8Async)(to, value, size, stream) };
        self.api().check(filled, || format!("filling {bytes} bytes at {to:#x}"))
    }

    fn load(&self, name: &str, ptx: &str) -> Result<ModuleId> {
        let _current = self.enter()?;
        // Modules stay loaded, and compiling one takes up to a second: a caller that
        // asks for the same text gets the same module.
        let text = ptx_key(ptx);
        if let Some(&module) = self.handles().texts.get(&text) {
            return Ok(module);
        }
        let module = self.compile(name, ptx)?;
        self.handles().texts.insert(text, module);
        Ok(module)
    }

    fn kernel(&self, module: ModuleId, name: &str) -> Result<KernelId> {
        let _current = self.enter()?;
        if !self.handles().modules.contains(&module.0) {
            return Err(Error::ForeignHandle { what: "the module" });
        }
        let doing = || format!("finding kernel {name}");
        let c_name = CString::new(name).map_err(|_| Error::Driver {
            doing: doing(),
            name: "CUDA_ERROR_NOT_FOUND".into(),
            text: "the name holds a zero byte".into(),
        })?;
        let (module, c_name): (CUmodule, &CStr) = (module.0 as CUmodule, &c_name);
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded, the name ends in a zero byte, and an address
        // is written.
        let found =
            unsafe { (self.api().cuModuleGetFunction)(&raw mut function, module, c_name.as_ptr()) };
        self.api().check(found, doing)?;
        self.handles().kernels.entry(function as u64).or_insert(Shared(0));
        Ok(KernelId(function as u64))
    }

    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<u32> {
        let _current = self.enter()?;
        let function = self.handles().allow_shared(self.api(), kernel, shared)?;
        let mut blocks = 0;
        // SAFETY: the function is one of a module that stays loaded; one
        // integer is written.
        let asked = unsafe {
            (self.api().cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                &raw mut blocks,
                function,
                c_int::try_from(threads).unwrap_or(c_int::MAX),
                shared as usize,
            )
        };
        self.api().check(asked, || "querying the occupancy of a kernel".into())?;
        Ok(blocks.unsigned_abs())
    }

    fn footprint(&self, kernel: KernelId) -> Result<Option<Footprint>> {
        let _current = self.enter()?;
        let function = self.handles().allow_shared(self.api(), kernel, 0)?;
        let ask = |attribute: FunctionAttribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the function is one of a module that stays loaded; one
            // integer is written.
            let asked =
                unsafe { (self.api().cuFuncGetAttribute)(&raw mut value, attribute, function) };
            self.api().check(asked, || "querying the attributes of a kernel".into())?;
            Ok(value.unsigned_abs())
        };
        Ok(Some(Footprint {
            registers: Some(ask(FunctionAttribute::NUM_REGS)?),
            shared: ask(FunctionAttribute::SHARED_SIZE_BYTES)?,
            local: Some(ask(FunctionAttribute::LOCAL_SIZE_BYTES)?),
            threads: ask(FunctionAttribute::MAX_THREADS_PER_BLOCK)?,
        }))
    }

    fn stream(&self) -> Result<Stream> {
        let _current = self.enter()?;
        let mut stream = ptr::null_mut();
        // SAFETY: an address is written.
        let made =
            unsafe { (self.api().cuStreamCreate)(&raw mut stream, api::STREAM_NON_BLOCKING) };
        self.api().check(made, || "making a stream".into())?;
        self.handles().streams.insert(stream as u64, 0);
        Ok(Stream(stream as u64))
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
        let _current = self.enter()?;
        let (stream, function) = {
            let mut handles = self.handles();
            let stream = handles.stream(stream)?;
            (stream, handles.allow_shared(self.api(), kernel, launch.shared)?)
        };
        let mut attributes = Attributes::new(launch, self.dependent);
        let mut parameters = Parameters::new(launch, arguments)?;
        let config = attributes.config(launch, stream);
        // SAFETY: the caller guarantees the kernel and its arguments; the
        // configuration, the attributes it points to, and the parameters live until the
        // call returns, which is as long as the driver looks at them.
        let launched = unsafe {
            (self.api().cuLaunchKernelEx)(
                &raw const config,
                function,
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.api().check(launched, || format!("launching {launch:?}"))
    }

    fn wait(&self, stream: Stream) -> Result<()> {
        let (_current, stream) = self.enter_stream(stream)?;
        // SAFETY: the stream exists.
        unsafe { self.synchronize(stream, || "waiting for the device".into()) }
    }

    fn is_done(&self, stream: Stream) -> Result<bool> {
        let (_current, stream) = self.enter_stream(stream)?;
        // SAFETY: the stream exists.
        match unsafe { (self.api().cuStreamQuery)(stream) } {
            CUresult::NOT_READY => Ok(false),
            other => self.api().check(other, || "asking the device".into()).map(|()| true),
        }
    }

    fn time(
        &self,
        stream: Stream,
        work: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<Duration>> {
        let (begin, end) = (Event::new(self)?, Event::new(self)?);
        begin.record(stream)?;
        // The caller's context is current here, as it is everywhere outside.
        work()?;
        end.record(stream)?;
        self.wait(stream)?;
        let milliseconds = end.since(&begin)?;
        Ok(Some(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3)))
    }
}

/// A point in a stream's work, with the time at which the device reached it.
struct Event<'a> {
    driver: &'a Driver,
    event: CUevent,
}

impl<'a> Event<'a> {
    fn new(driver: &'a Driver) -> Result<Event<'a>> {
        let _current = driver.enter()?;
        let mut event = ptr::null_mut();
        // SAFETY: an address is written.
        let made = unsafe { (driver.api().cuEventCreate)(&raw mut event, api::EVENT_DEFAULT) };
        driver.api().check(made, || "making an event".into())?;
        Ok(Event { driver, event })
    }

    fn record(&self, stream: Stream) -> Result<()> {
        let (_current, stream) = self.driver.enter_stream(stream)?;
        // SAFETY: event and stream exist.
        let recorded = unsafe { (self.driver.api().cuEventRecord)(self.event, stream) };
        self.driver.api().check(recorded, || "timing the device".into())
    }

    /// Milliseconds since an event. The device has reached both.
    fn since(&self, begin: &Event<'_>) -> Result<f32> {
        let _current = self.driver.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events exist; one number is written.
        let asked = unsafe {
            (self.driver.api().cuEventElapsedTime)(&raw mut milliseconds, begin.event, self.event)
        };
        self.driver.api().check(asked, || "timing the device".into())?;
        Ok(milliseconds)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let Ok(_current) = self.driver.enter() else { return };
        // SAFETY: created here, and owned by nothing else.
        let _ = unsafe { (self.driver.api().cuEventDestroy_v2)(self.event) };
    }
}
