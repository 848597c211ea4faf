//! The interface between host code and a device.

use crate::{Error, Result};
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc::{self, Layout};
use std::time::Duration;

/// An address in a device's memory.
pub type Address = u64;

/// A loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId(pub(crate) u64);

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelId(pub(crate) u64);

/// A queue of work that a device does in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(pub(crate) u64);

impl Stream {
    /// The stream that every device has.
    pub const DEFAULT: Stream = Stream(0);
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Blocks of a cluster along x, y and z, if there are clusters.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// Whether all blocks run at once, so that they may wait for each other.
    pub cooperative: bool,
    /// Whether the launch may begin before the launch before it on the stream has
    /// ended: programmatic dependent launch. The kernel itself waits
    /// (`griddepcontrol.wait`) before it touches memory that may not be ready. Devices
    /// without the feature ignore it.
    pub dependent: bool,
}

impl Launch {
    /// `blocks` blocks of `threads` threads in a row.
    #[must_use]
    pub fn linear(blocks: u32, threads: u32) -> Launch {
        Launch {
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            cluster: None,
            shared: 0,
            cooperative: false,
            dependent: false,
        }
    }

    /// The same with dynamic shared memory.
    #[must_use]
    pub fn shared(self, bytes: u32) -> Launch {
        Launch { shared: bytes, ..self }
    }

    /// The same with clusters of `blocks` blocks in a row.
    #[must_use]
    pub fn clusters(self, blocks: u32) -> Launch {
        Launch { cluster: Some([blocks, 1, 1]), ..self }
    }

    /// The same, as a programmatic dependent launch: only for kernels that wait
    /// themselves.
    #[must_use]
    pub fn dependent(self) -> Launch {
        Launch { dependent: true, ..self }
    }

    /// The same with all blocks at once.
    #[must_use]
    pub fn cooperative(self) -> Launch {
        Launch { cooperative: true, ..self }
    }
}

/// The value of a kernel's parameter: a number, or a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument(Value);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// Up to eight bytes, little-endian.
    Number { bits: u64, size: usize },
    /// Whole words.
    Block(Box<[u64]>),
}

impl Argument {
    /// A struct of so many words, as a kernel takes one by value: its fields in
    /// their places, padding included.
    #[must_use]
    pub fn block(words: impl Into<Box<[u64]>>) -> Argument {
        Argument(Value::Block(words.into()))
    }

    /// Its bytes: as many as its type has.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match &self.0 {
            Value::Number { bits, size } => bits.to_le_bytes()[..*size].to_vec(),
            Value::Block(words) => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        }
    }

    /// Where its bits are, for the driver.
    pub(crate) fn bits(&self) -> *const u64 {
        match &self.0 {
            Value::Number { bits, .. } => bits,
            Value::Block(words) => words.as_ptr(),
        }
    }
}

macro_rules! argument {
    ($($t:ty => $bits:expr),* $(,)?) => {$(
        impl From<$t> for Argument {
            fn from(x: $t) -> Argument {
                let bits: fn($t) -> u64 = $bits;
                Argument(Value::Number { bits: bits(x), size: size_of::<$t>() })
            }
        }
    )*};
}
argument! {
    u8 => u64::from,
    u16 => u64::from,
    u32 => u64::from,
    u64 => |x| x,
    i32 => |x| u64::from(x.cast_unsigned()),
    i64 => i64::cast_unsigned,
    f32 => |x| u64::from(x.to_bits()),
    f64 => f64::to_bits,
}

/// What a device is, and how much it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Its name: `NVIDIA H200`.
    pub name: String,
    /// The compute capability, major and minor.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Threads that a multiprocessor has room for.
    pub threads_per_multiprocessor: u32,
    /// The most threads a block can have.
    pub threads_per_block: u32,
    /// The most shared memory that a block can request, in bytes.
    pub shared_per_block: u32,
    /// Bytes of the L2 cache.
    pub l2_bytes: u64,
    /// Bytes of memory.
    pub memory: u64,
}

/// The least size of a page of device memory, in bytes.
pub(crate) const PAGE: u64 = 2 << 20;

/// Why memory that no device knows cannot be read.
pub(crate) const UNKNOWN_MEMORY: &str =
    "the device does not know this memory: it is null, freed, too short, or the host's own";

/// The resources of a multiprocessor that a kernel takes, as far as the device knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// Bytes of local memory of a thread, which holds spilled registers.
    pub local: Option<u32>,
    /// The most threads that a block of the kernel can have.
    pub threads: u32,
}

/// Keeps a device current on this thread until it is dropped. Then the device that was
/// current before is current again.
#[must_use = "the device is current as long as the value lives"]
pub struct Current<'a> {
    left: Option<&'a dyn Leave>,
    /// A device is current on one thread.
    _thread: PhantomData<*mut ()>,
}

/// A device that was made current on a thread.
pub(crate) trait Leave {
    /// Makes the device current that was current before.
    fn leave(&self);
}

impl<'a> Current<'a> {
    /// Changes nothing: for a device that is current already, or that needs no such
    /// step.
    pub fn as_it_was() -> Current<'a> {
        Current { left: None, _thread: PhantomData }
    }

    /// For a device that leaves when the value is dropped.
    pub(crate) fn until_left(device: &'a dyn Leave) -> Current<'a> {
        Current { left: Some(device), _thread: PhantomData }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(device) = self.left {
            device.leave();
        }
    }
}

/// A device. Work on one stream is done in order. Streams do not wait for each other.
/// Before memory is freed, the caller waits for all work that uses it.
///
/// Addresses are plain numbers, so the caller of a method promises that they are valid.
/// [`Buffer`](crate::Buffer) owns its memory and needs no such promise.
///
/// # Errors
/// Every method returns the error of the driver or the interpreter, with the step that
/// failed. An error of a kernel is returned by a later call, mostly `wait`.
///
/// # Safety
/// An implementation promises the following, which callers rely on without a check:
///
/// - [`allocate_pinned`](Self::allocate_pinned) returns host memory that is valid for
///   reads and writes of the requested number of bytes, initialised, aligned as
///   documented, and not used by anything else until it is freed.
/// - [`address_of_pinned`](Self::address_of_pinned) is an address of that memory.
/// - [`allocate`](Self::allocate) returns device memory that is not used by anything
///   else until it is freed.
/// - Copies and fills access only the bytes that their arguments name.
///   [`copy_in`](Self::copy_in) and [`copy_out`](Self::copy_out) access no host memory
///   after they have returned.
/// - [`wait`](Self::wait) returns without an error only when everything on the
///   stream is done; [`is_done`](Self::is_done) is true only then.
/// - [`limits`](Self::limits), [`resident_blocks`](Self::resident_blocks) and
///   [`calls_on`](Self::calls_on) return the truth: launches are planned with it.
pub unsafe trait Device: Send + Sync {
    /// What the device is.
    fn limits(&self) -> &Limits;

    /// Makes the device current on this thread, for libraries that use the current
    /// device, such as the CUDA runtime. The methods of this trait do not need it.
    ///
    /// # Errors
    /// The device is lost.
    fn make_current(&self) -> Result<Current<'_>> {
        Ok(Current::as_it_was())
    }

    /// `bytes` of uninitialised memory, aligned to at least 256 bytes.
    ///
    /// # Errors
    /// Mostly too little memory: see [`Error::is_out_of_memory`](crate::Error::is_out_of_memory).
    fn allocate(&self, bytes: u64) -> Result<Address>;

    /// Frees memory.
    ///
    /// # Errors
    /// An address that was not allocated.
    ///
    /// # Safety
    /// [`allocate`](Self::allocate) of this device returned the address, and nothing
    /// uses the memory any more, including launches.
    unsafe fn free(&self, address: Address) -> Result<()>;

    /// Copies to the device; `from` may change once this returns.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    ///
    /// # Safety
    /// The caller may write `from.len()` bytes at `to`. An address can also belong to
    /// memory of other code, on the device or on the host.
    unsafe fn copy_in(&self, stream: Stream, to: Address, from: &[u8]) -> Result<()>;

    /// Copies from the device, once all work before it on the stream is done. Returns
    /// when `to` is filled.
    ///
    /// # Errors
    /// A range that is not in the device's memory; errors of kernels before it.
    ///
    /// # Safety
    /// The caller may read `to.len()` bytes at `from`, once all work before this call
    /// on the stream is done.
    unsafe fn copy_out(&self, stream: Stream, from: Address, to: &mut [u8]) -> Result<()>;

    /// Starts to copy `bytes` bytes to the device. The device decides whether the call
    /// waits. Only a copy from pinned memory runs while the host does other work.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    ///
    /// # Safety
    /// `from` is valid for reads of `bytes` bytes, and nothing writes to them until the
    /// caller has waited for the stream. `to` is as for [`copy_in`](Self::copy_in), for
    /// the same time.
    unsafe fn start_copy_in(
        &self,
        stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise; the borrow ends with the call.
        unsafe { self.copy_in(stream, to, core::slice::from_raw_parts(from, bytes)) }
    }

    /// Starts to copy `bytes` bytes from the device, once all work before it on the
    /// stream is done. The device decides whether the call waits.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    ///
    /// # Safety
    /// `to` is valid for writes of `bytes` initialised bytes, and nothing else accesses
    /// them until the caller has waited for the stream. `from` is as for
    /// [`copy_out`](Self::copy_out), for the same time.
    unsafe fn start_copy_out(
        &self,
        stream: Stream,
        from: Address,
        to: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise; the borrow ends with the call.
        unsafe { self.copy_out(stream, from, core::slice::from_raw_parts_mut(to, bytes)) }
    }

    /// `bytes` bytes of host memory, all zero and aligned to at least 256 bytes, that
    /// the device copies from and to while the host does other work.
    ///
    /// # Errors
    /// Too little memory.
    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>> {
        let layout = host_layout(bytes)?;
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or(Error::HostMemory { bytes })
    }

    /// Frees pinned memory.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Safety
    /// [`allocate_pinned`](Self::allocate_pinned) of this device returned `at` for
    /// `bytes` bytes, and nothing uses the memory any more, including copies.
    unsafe fn free_pinned(&self, at: NonNull<u8>, bytes: usize) -> Result<()> {
        let layout = host_layout(bytes)?;
        // SAFETY: allocated with the same layout.
        unsafe { alloc::dealloc(at.as_ptr(), layout) };
        Ok(())
    }

    /// The address at which kernels read and write pinned memory of this device,
    /// if they can.
    fn address_of_pinned(&self, at: NonNull<u8>) -> Option<Address> {
        let _ = at;
        None
    }

    /// Why kernels cannot read these bytes, as far as the device can tell without
    /// reading them. They may be unallocated, on another device, or in ordinary host
    /// memory. Only the first byte and the last are checked. `None` if the device
    /// cannot tell.
    fn why_unreadable(&self, address: Address, bytes: u64) -> Option<&'static str> {
        let _ = (address, bytes);
        None
    }

    /// Whether the device copies from these bytes while the host does other work, so
    /// that they need no copy in pinned memory.
    fn is_pinned(&self, bytes: &[u8]) -> bool {
        let _ = bytes;
        false
    }

    /// Sets `bytes` bytes to `value`.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    ///
    /// # Safety
    /// The caller may write to the bytes until it has waited for the stream.
    unsafe fn fill(&self, stream: Stream, to: Address, value: u8, bytes: u64) -> Result<()>;

    /// Loads PTX; `name` is for messages.
    ///
    /// # Errors
    /// PTX that the device cannot run, with the compiler's words.
    fn load(&self, name: &str, ptx: &str) -> Result<ModuleId>;

    /// The kernel of a module with this name.
    ///
    /// # Errors
    /// There is none.
    fn kernel(&self, module: ModuleId, name: &str) -> Result<KernelId>;

    /// How many blocks of a kernel one multiprocessor runs at once, with `threads`
    /// threads and `shared` bytes of dynamic shared memory each. May be 0.
    ///
    /// # Errors
    /// More shared memory than a block can have.
    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<u32>;

    /// The resources that a kernel takes; `None` if the device cannot tell.
    ///
    /// # Errors
    /// A kernel of another device.
    fn footprint(&self, kernel: KernelId) -> Result<Option<Footprint>> {
        let _ = kernel;
        Ok(None)
    }

    /// A new stream.
    ///
    /// # Errors
    /// The device is lost.
    fn stream(&self) -> Result<Stream>;

    /// How many calls have used a stream so far; `None` if work also gets there without
    /// this device. If the number has grown by one since a launch, nothing else is
    /// between that launch and the next one.
    fn calls_on(&self, stream: Stream) -> Option<u64> {
        let _ = stream;
        None
    }

    /// Puts a launch on a stream.
    ///
    /// # Errors
    /// A shape that the device or the kernel does not allow.
    ///
    /// # Safety
    /// `arguments` have the types of the kernel's parameters, and the kernel
    /// reads and writes only memory that its caller may, until it is waited
    /// for. A simulated device checks both.
    unsafe fn launch(
        &self,
        stream: Stream,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> Result<()>;

    /// Waits for everything on a stream.
    ///
    /// # Errors
    /// Those of the work on it.
    fn wait(&self, stream: Stream) -> Result<()>;

    /// Whether everything on a stream is done.
    ///
    /// # Errors
    /// Those of the work on it.
    fn is_done(&self, stream: Stream) -> Result<bool>;

    /// How long the device takes for what `work` puts on a stream, by the device's
    /// own clock; `None` if it has none. Waits for the stream.
    ///
    /// # Errors
    /// Those of `work`, and of the work on the stream.
    fn time(
        &self,
        stream: Stream,
        work: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<Duration>> {
        work()?;
        self.wait(stream)?;
        Ok(None)
    }
}

/// Plain host memory, for devices that have no other.
fn host_layout(bytes: usize) -> Result<Layout> {
    Layout::from_size_align(bytes.max(1), 256).map_err(|_| Error::HostMemory { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_as_long_as_their_types() {
        assert_eq!(Argument::from(0x1234u16).bytes(), [0x34, 0x12]);
        assert_eq!(Argument::from(-1i32).bytes(), [0xff; 4]);
        assert_eq!(Argument::from(1.0f32).bytes(), [0, 0, 0x80, 0x3f]);
        assert_eq!(Argument::from(1u64).bytes().len(), 8);
    }
}
