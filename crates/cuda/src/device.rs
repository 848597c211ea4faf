//! The seam: what host code may ask of a device.

use crate::{Error, Result};
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc::{self, Layout};
use std::time::Duration;

/// A place in a device's memory.
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
    /// Whether it may come to the device before the launch ahead of it on the
    /// stream has ended, as far as the device can: the kernel waits itself
    /// (`griddepcontrol.wait`) before it touches memory that may not be ready.
    pub early: bool,
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
            early: false,
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

    /// The same, but early: for kernels that wait themselves.
    #[must_use]
    pub fn early(self) -> Launch {
        Launch { early: true, ..self }
    }

    /// The same with all blocks at once.
    #[must_use]
    pub fn cooperative(self) -> Launch {
        Launch { cooperative: true, ..self }
    }
}

/// The value of a kernel's parameter: up to eight bytes, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    bits: u64,
    size: usize,
}

impl Argument {
    /// Its bytes, as many as its type has.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.bits.to_le_bytes()[..self.size].to_vec()
    }

    /// Where its bits are, for the driver.
    pub(crate) fn bits(&self) -> &u64 {
        &self.bits
    }
}

macro_rules! argument {
    ($($t:ty => $bits:expr),* $(,)?) => {$(
        impl From<$t> for Argument {
            fn from(x: $t) -> Argument {
                let bits: fn($t) -> u64 = $bits;
                Argument { bits: bits(x), size: size_of::<$t>() }
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

/// What a device is and can hold.
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
    /// The most shared memory a block can have, in bytes, where it is asked for.
    pub shared_per_block: u32,
    /// Bytes of the L2 cache.
    pub l2_bytes: u64,
    /// Bytes of memory.
    pub memory: u64,
}

/// Memory is mapped by pages of at least so many bytes.
pub(crate) const PAGE: u64 = 2 << 20;

/// Why memory that is nobody's cannot be read.
pub(crate) const UNKNOWN_MEMORY: &str =
    "the device does not know this memory: it is null, freed, too short, or the host's own";

/// What a kernel takes of a multiprocessor, as far as the device knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Registers of a thread.
    pub registers: Option<u32>,
    /// Bytes of static shared memory of a block.
    pub shared: u32,
    /// Bytes of local memory of a thread, which spilled registers come to lie in.
    pub local: Option<u32>,
    /// The most threads that a block of it can have.
    pub threads: u32,
}

/// A device that is current on this thread until the value is dropped; then what was
/// current before is so again.
#[must_use = "the device is current as long as the value lives"]
pub struct Current<'a> {
    left: Option<&'a dyn Leave>,
    /// What is current is so on one thread.
    _thread: PhantomData<*mut ()>,
}

/// What has made itself current on a thread.
pub(crate) trait Leave {
    /// Makes current what was so before.
    fn leave(&self);
}

impl<'a> Current<'a> {
    /// Of a device that is current already, or of which there is no such thing.
    pub fn as_it_was() -> Current<'a> {
        Current { left: None, _thread: PhantomData }
    }

    /// Of a device that leaves when the value is dropped.
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

/// A device. Work on one stream is done in order; streams do not wait for each
/// other, except that whatever uses memory just freed must have been waited
/// for.
///
/// Addresses are plain numbers, so that whoever names one vouches for it:
/// [`Buffer`](crate::Buffer) is memory of one's own that needs no such promise.
///
/// # Errors
/// Every method says what the driver or the interpreter says, with what was
/// being done. Errors of kernels surface with a later call, mostly `wait`.
///
/// # Safety
/// Who implements it promises what others build upon without a check:
///
/// - [`allocate_pinned`](Self::allocate_pinned) gives memory of the host that is
///   valid for reads and writes of as many bytes as were asked for, initialised,
///   aligned as it says, and nobody else's until it is given back.
/// - [`address_of_pinned`](Self::address_of_pinned) is an address of that memory.
/// - [`allocate`](Self::allocate) gives memory of the device that is nobody else's
///   until it is given back.
/// - Copies and fills touch no bytes but those that their arguments name, and
///   [`copy_in`](Self::copy_in) and [`copy_out`](Self::copy_out) none of the host's
///   after they have returned.
/// - [`wait`](Self::wait) returns without an error only when everything on the
///   stream is done; [`is_done`](Self::is_done) is true only then.
/// - [`limits`](Self::limits), [`resident_blocks`](Self::resident_blocks) and
///   [`calls_on`](Self::calls_on) say what is so: launches are planned by it.
pub unsafe trait Device: Send + Sync {
    /// What the device is.
    fn limits(&self) -> &Limits;

    /// Makes the device current on this thread for libraries that work on whatever
    /// device is, as the CUDA runtime does. The methods here do not need it.
    ///
    /// # Errors
    /// The device is lost.
    fn make_current(&self) -> Result<Current<'_>> {
        Ok(Current::as_it_was())
    }

    /// `bytes` of uninitialised memory, aligned to at least 256 bytes.
    ///
    /// # Errors
    /// Above all, too little memory: see [`Error::is_out_of_memory`](crate::Error::is_out_of_memory).
    fn allocate(&self, bytes: u64) -> Result<Address>;

    /// Gives memory back.
    ///
    /// # Errors
    /// An address that was not allocated.
    ///
    /// # Safety
    /// [`allocate`](Self::allocate) of this device gave the address, and nobody uses
    /// the memory any more, no launch either.
    unsafe fn free(&self, address: Address) -> Result<()>;

    /// Copies to the device; `from` may change once this returns.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    ///
    /// # Safety
    /// As many bytes at `to` are the caller's to write to: an address may be that of
    /// somebody else's memory, on the device or on the host.
    unsafe fn copy_in(&self, stream: Stream, to: Address, from: &[u8]) -> Result<()>;

    /// Copies from the device, once everything before it on the stream is
    /// done; returns when `to` is filled.
    ///
    /// # Errors
    /// A range that is not in the device's memory; errors of kernels before it.
    ///
    /// # Safety
    /// As many bytes at `from` are the caller's to read, once everything before it on
    /// the stream is done.
    unsafe fn copy_out(&self, stream: Stream, from: Address, to: &mut [u8]) -> Result<()>;

    /// Begins to copy `bytes` bytes to the device; whether it waits is the
    /// device's affair. Only from pinned memory does the copy run beside the
    /// host's own work.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    ///
    /// # Safety
    /// `from` is valid for reads of `bytes` bytes, which nobody writes to until
    /// the stream was waited for; for `to` as for [`copy_in`](Self::copy_in), until
    /// then.
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

    /// Begins to copy `bytes` bytes from the device, once everything before it
    /// on the stream is done; whether it waits is the device's affair.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    ///
    /// # Safety
    /// `to` is valid for writes of `bytes` initialised bytes, which nobody else
    /// looks at until the stream was waited for; for `from` as for
    /// [`copy_out`](Self::copy_out), until then.
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

    /// `bytes` bytes of host memory, all zero and aligned to at least 256
    /// bytes, that the device copies from and to while the host does something
    /// else.
    ///
    /// # Errors
    /// Too little memory.
    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>> {
        let layout = host_layout(bytes)?;
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or(Error::HostMemory { bytes })
    }

    /// Gives pinned memory back.
    ///
    /// # Errors
    /// The device is lost.
    ///
    /// # Safety
    /// [`allocate_pinned`](Self::allocate_pinned) of this device gave `at` for
    /// as many bytes, and nobody uses it any more, no copy either.
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

    /// Why kernels cannot read these bytes, as far as can be told without reading
    /// them: nobody's memory, that of another device, or ordinary memory of the
    /// host. Looks at the first byte and the last; of a device that cannot tell,
    /// all can be read.
    fn why_unreadable(&self, address: Address, bytes: u64) -> Option<&'static str> {
        let _ = (address, bytes);
        None
    }

    /// Whether the device copies from these bytes while the host does something
    /// else: no need to copy them to pinned memory first.
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
    /// The bytes are the caller's to write to, until the stream was waited for.
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

    /// How many blocks of a kernel one multiprocessor runs at once, with so many
    /// threads and bytes of dynamic shared memory each. May be 0.
    ///
    /// # Errors
    /// More shared memory than a block can have.
    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<u32>;

    /// What a kernel takes; `None` if the device does not say.
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

    /// How many calls have named a stream so far, `None` if work comes there by
    /// other ways than this device. A launch that found a number is directly ahead
    /// of whatever comes while the number is one more.
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
