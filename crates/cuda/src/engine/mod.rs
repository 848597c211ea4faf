//! Reduces arrays on a device: one launch makes a state.
//!
//! The kernels are in `kernels/`; each leaves in device memory the payload of the
//! state that `warpfold-core` defines, so that states made here merge with those
//! of any other backend and have the same bits.

mod abreast;
mod answer;
pub mod archive;
mod axes;
mod block_workspace;
mod boxes;
mod catalogue;
mod chosen;
mod collect;
mod column_table;
mod columns;
mod digits;
mod entry;
mod explanation;
mod feeder;
mod gather;
mod gathered;
mod grouped;
mod groups;
mod kernels;
mod known;
mod layout;
mod number;
mod numbering;
mod numbers;
mod output;
mod parts;
mod plan;
mod prepared;
mod question;
#[cfg(test)]
mod recorder;
mod result_slot;
mod route;
#[cfg(test)]
mod routes;
mod rows;
mod scratch;
mod segments;
mod short_rows;
mod slot;
mod strided;
mod table;
mod tiles;
mod view;
mod workspace;

pub use chosen::Chosen;
pub use explanation::{Explanation, Limit};
pub use feeder::Feeder;
pub use grouped::Grouped;
pub use groups::Groups;
pub use number::Number;
pub use plan::{ForcedWalk, MOST_ELEMENTS, Shape};
pub use prepared::Prepared;
pub use segments::{Boundaries, Segments, Width};
pub use view::DeviceView;

use crate::buffer::Buffer;
use crate::device::{Address, Device, KernelId, Launch, PAGE, Stream};
use crate::{Error, Result};
use core::sync::atomic::AtomicBool;
use digits::Digits;
use kernels::{Build, Program};
use plan::Capacity;
use route::Machine;
use scratch::Scratch;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind, Op};

/// Elements one after the other in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// Where the first one is: a multiple of the type's size.
    pub address: Address,
    /// How many there are.
    pub len: u64,
    /// Their type.
    pub dtype: DType,
}

/// What is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// The elements.
    pub array: Array,
    /// Where as many elements of the second array are, for a dot product.
    pub others: Option<Address>,
    /// The index of the first element, for states with positions.
    pub start: u64,
}

impl From<Array> for Input {
    /// All of an array.
    fn from(array: Array) -> Input {
        Input { array, others: None, start: 0 }
    }
}

/// Reduces arrays on one device.
///
/// Modules are loaded when first needed, and each stream gets its scratch memory
/// with its first reduction; after that a reduction is one launch. May be used
/// from several threads, on one stream or many.
pub struct Engine {
    device: Arc<dyn Device>,
    shape: Shape,
    kernels: Mutex<HashMap<(Kind, DType), Kernel>>,
    programs: Mutex<HashMap<Program, KernelId>>,
    scratch: Mutex<HashMap<Stream, Arc<Mutex<Scratch>>>>,
    slots: slot::Pool,
    /// Whether and how reductions were done: for whoever asks.
    explains: AtomicBool,
    explanations: Mutex<Vec<Explanation>>,
}

/// Says that no kernel can read an array.
fn refused(array: Array, why: &'static str) -> Error {
    let Array { address, len, dtype } = array;
    Error::Array { address, len, dtype, why }
}

/// Refuses an address that is no place for the state of an array.
fn check_state_address(to: Address, array: Array) -> Result<()> {
    if to.is_multiple_of(8) {
        return Ok(());
    }
    Err(refused(Array { address: to, ..array }, "a state needs a multiple of 8"))
}

/// Refuses arrays that kernels cannot walk.
fn check(array: Array) -> Result<()> {
    let Array { address, len, dtype } = array;
    let refused = |why| Err(refused(array, why));
    if !address.is_multiple_of(dtype.size() as u64) {
        return refused("not aligned for the type");
    }
    if len > MOST_ELEMENTS {
        return refused("more than 2^41 elements");
    }
    if len.checked_mul(dtype.size() as u64).and_then(|n| address.checked_add(n)).is_none() {
        return refused("it ends beyond the address space");
    }
    Ok(())
}

/// The pages of memory on which an array begins and ends.
fn pages(array: Array) -> [u64; 2] {
    let bytes = array.len.saturating_mul(array.dtype.size() as u64);
    let last = array.address.saturating_add(bytes.saturating_sub(1));
    [array.address, last].map(|at| at / PAGE)
}

/// A loaded kernel.
#[derive(Clone, Copy)]
struct Kernel {
    id: KernelId,
    capacity: Capacity,
}

/// How an input is reduced.
#[derive(Clone, Copy)]
struct Planned {
    kernel: KernelId,
    launch: Launch,
    /// Bytes of a workspace that blocks share, beside what they always have.
    workspace: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// An engine for a device.
    #[must_use]
    pub fn new(device: Arc<dyn Device>) -> Engine {
        Engine::with_shape(device, Shape::default())
    }

    /// An engine whose launches have a forced shape. The bits are the same for
    /// every shape.
    #[must_use]
    pub fn with_shape(device: Arc<dyn Device>, shape: Shape) -> Engine {
        Engine {
            device,
            shape,
            kernels: Mutex::default(),
            programs: Mutex::default(),
            scratch: Mutex::default(),
            slots: slot::Pool::default(),
            explains: AtomicBool::new(false),
            explanations: Mutex::default(),
        }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Whether there is a kernel for this state.
    #[must_use]
    pub fn supports(kind: Kind, dtype: DType) -> bool {
        kernels::supports(kind, dtype)
    }

    /// Whether the device finishes the answers of an operation over these elements, under
    /// the default rules: see [`numbers_of_view`](Self::numbers_of_view).
    #[must_use]
    pub fn finishes(op: Op, dtype: DType) -> bool {
        answer::Answer::of(op, dtype).is_some()
    }

    /// How many bytes the payloads have that [`reduce_into`](Self::reduce_into)
    /// writes, if there is a kernel and it writes payloads of one length: of
    /// [`Kind::ArgExtrema`], of all arrays but empty ones.
    #[must_use]
    pub fn payload_len(kind: Kind, dtype: DType) -> Option<usize> {
        kernels::payload_len(kind, dtype)
    }

    /// Gets ready what reductions of this kind and type on this stream need: the
    /// kernel and scratch memory. The first reduction would do it, but not in a
    /// capture.
    ///
    /// # Errors
    /// [`Error::NoKernel`]; what the device says.
    pub fn prepare(&self, kind: Kind, dtype: DType, stream: Stream) -> Result<()> {
        self.kernel(kind, dtype)?;
        self.scratch(stream).map(drop)
    }

    /// How many bytes [`reduce_into`](Self::reduce_into) writes for an input, if
    /// there is a kernel.
    #[must_use]
    pub fn output_len(kind: Kind, input: impl Into<Input>) -> Option<usize> {
        output::len(kind, &input.into())
    }

    /// The state that [`reduce_into`](Self::reduce_into) has written of an input:
    /// a payload, of some kinds padded. A product of integers that 128 bits do not hold
    /// [lacks digits](warpfold_core::op::IntProd::lacks_digits), which
    /// [`reduce`](Self::reduce) makes of the elements.
    ///
    /// # Errors
    /// [`Error::State`] if the bytes are none; [`Error::NoKernel`].
    pub fn state_of_output(kind: Kind, input: impl Into<Input>, output: &[u8]) -> Result<AnyState> {
        let input = input.into();
        let dtype = input.array.dtype;
        if !kernels::supports(kind, dtype) {
            return Err(Error::NoKernel { kind, dtype });
        }
        output::state(kind, &input, output)
    }

    /// The state of an array in the device's memory, after everything before it
    /// on the stream; waits for it.
    ///
    /// # Errors
    /// [`Error::NoKernel`]; [`Error::Array`] for a misaligned or too long array;
    /// [`Error::Arrays`] for a dot product without a second array, or another
    /// state with one; what the device says.
    ///
    /// # Safety
    /// The array is in memory of this device, written by what comes before on
    /// the stream and by nobody until this returns.
    pub unsafe fn reduce(
        &self,
        kind: Kind,
        input: impl Into<Input>,
        stream: Stream,
    ) -> Result<AnyState> {
        // SAFETY: passed on from the caller.
        let states = unsafe { self.reduce_all(&[kind], input, stream)? };
        let [state] = <[AnyState; 1]>::try_from(states)
            .map_err(|states| Error::Arrays { kind, given: states.len() })?;
        Ok(state)
    }

    /// The states of several kinds, with one wait.
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce).
    ///
    /// # Safety
    /// As for [`reduce`](Self::reduce).
    pub unsafe fn reduce_all(
        &self,
        kinds: &[Kind],
        input: impl Into<Input>,
        stream: Stream,
    ) -> Result<Vec<AnyState>> {
        let input = input.into();
        let dtype = input.array.dtype;
        let len = |&kind: &Kind| output::len(kind, &input).ok_or(Error::NoKernel { kind, dtype });
        let lens: Vec<usize> = kinds.iter().map(len).collect::<Result<_>>()?;
        let all: usize = lens.iter().sum();
        self.check_readable(&input)?;
        let scratch = self.scratch(stream)?;
        // Held until the payloads are read: another thread's would overwrite them.
        let mut scratch = lock(&scratch);
        // What is padded is longer.
        let whole = kinds.iter().all(|&kind| kernels::payload_len(kind, dtype).is_some());
        let slot = scratch.slot.as_mut().filter(|slot| whole && slot.holds(all));
        let watched = slot.is_some();
        let to = match slot {
            Some(slot) => {
                slot.empty(all);
                slot.address()
            }
            None => scratch.output(&*self.device, stream, all)?,
        };
        let mut next = to;
        for (&kind, &len) in kinds.iter().zip(&lens) {
            // SAFETY: the input is the caller's promise; what is left has room.
            unsafe { self.launch(kind, input, &mut scratch, next, stream)? };
            next += len as u64;
        }
        let output = match &scratch.slot {
            Some(slot) if watched => {
                if !slot.watch(all) {
                    self.device.wait(stream)?;
                }
                slot.payload(all)
            }
            _ => {
                let mut output = vec![0; all];
                // SAFETY: the scratch memory has room for as many bytes there, and
                // is held until they are read.
                unsafe { self.device.copy_out(stream, to, &mut output)? };
                // The copy waited already; this says what the kernels did wrong.
                self.device.wait(stream)?;
                output
            }
        };
        let mut digits = Digits::new(&*self.device, stream);
        let mut rest = &output[..];
        let mut states = Vec::with_capacity(kinds.len());
        for (&kind, &len) in kinds.iter().zip(&lens) {
            let (payload, after) = rest.split_at(len);
            rest = after;
            let mut state = output::state(kind, &input, payload)?;
            // SAFETY: the caller's promise about the array.
            unsafe { digits.restore(&mut state, input.array)? };
            states.push(state);
        }
        Ok(states)
    }

    /// Leaves an array's state in the device's memory at `to`, in
    /// [`output_len`](Self::output_len) bytes, and does not wait. They are what
    /// [`state_of_output`](Self::state_of_output) makes the state of: where there is a
    /// [`payload_len`](Self::payload_len), a payload. The limbs of sums may have
    /// carries to move: [`AnyState::from_payload`] takes them as they are.
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce), and a misaligned `to`.
    ///
    /// # Safety
    /// As for [`reduce`](Self::reduce), until the stream was waited for; and
    /// nobody else uses those bytes at `to`, a multiple of 8.
    pub unsafe fn reduce_into(
        &self,
        kind: Kind,
        input: impl Into<Input>,
        to: Address,
        stream: Stream,
    ) -> Result<()> {
        let input = input.into();
        check_state_address(to, input.array)?;
        let scratch = self.scratch(stream)?;
        let mut scratch = lock(&scratch);
        // The driver's answer takes a good part of a launch: it is asked once for
        // small arrays that lie together and are reduced in a row.
        let calls = self.device.calls_on(stream);
        if input.others.is_some() || !scratch.is_being_read(calls, pages(input.array)) {
            self.check_readable(&input)?;
        }
        // SAFETY: passed on from the caller.
        unsafe { self.launch(kind, input, &mut scratch, to, stream) }
    }

    /// The state of one array in the host's memory, copied to the device.
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce), and bytes that are no whole number of
    /// elements.
    pub fn reduce_host(
        &self,
        kind: Kind,
        dtype: DType,
        bytes: &[u8],
        stream: Stream,
    ) -> Result<AnyState> {
        let size = dtype.size();
        let len = (bytes.len() / size) as u64;
        if !bytes.len().is_multiple_of(size) {
            let why = "the bytes end within an element";
            return Err(Error::Array { address: 0, len, dtype, why });
        }
        if !Engine::supports(kind, dtype) {
            return Err(Error::NoKernel { kind, dtype });
        }
        let buffer = Buffer::new(&self.device, bytes.len() as u64)?;
        let address = buffer.address();
        let state = buffer.copy_in(stream, 0, bytes).and_then(|()| {
            // SAFETY: the array was allocated and filled here.
            unsafe { self.reduce(kind, Array { address, len, dtype }, stream) }
        });
        if state.is_err() {
            // Launches may still read it. The first error says more.
            let _ = self.device.wait(stream);
        }
        let freed = buffer.free();
        let state = state?;
        freed.map(|()| state)
    }

    /// Refuses arrays that the device cannot read: a fault there would end all
    /// that the process has on the device.
    fn check_readable(&self, input: &Input) -> Result<()> {
        let Array { len, dtype, .. } = input.array;
        for address in [Some(input.array.address), input.others].into_iter().flatten() {
            let array = Array { address, ..input.array };
            check(array)?;
            let bytes = len * dtype.size() as u64;
            match self.device.why_unreadable(address, bytes) {
                Some(why) if bytes > 0 => return Err(refused(array, why)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Launches the kernel.
    ///
    /// # Safety
    /// As for [`reduce_into`](Self::reduce_into); `scratch` is the stream's.
    unsafe fn launch(
        &self,
        kind: Kind,
        input: Input,
        scratch: &mut Scratch,
        to: Address,
        stream: Stream,
    ) -> Result<()> {
        let Input { array, others, start } = input;
        let Array { len, dtype, .. } = array;
        for address in [Some(array.address), others].into_iter().flatten() {
            check(Array { address, ..array })?;
        }
        if kind.is_positional() && start.checked_add(len).is_none() {
            return Err(refused(array, "its positions end beyond 2^64"));
        }
        let given = 1 + usize::from(others.is_some());
        if given != 1 + usize::from(kind.takes_pairs()) {
            return Err(Error::Arrays { kind, given });
        }
        let Planned { kernel, mut launch, workspace } = self.planned(kind, &input, scratch)?;
        self.remember_states("whole", kind, &input, 1, (launch, workspace))?;
        let memory = match workspace {
            0 => scratch.address(),
            bytes => scratch.for_blocks(&*self.device, stream, bytes)?,
        };
        let calls = self.device.calls_on(stream);
        let bytes = len.saturating_mul(dtype.size() as u64);
        let ready = [Some(array.address), others]
            .into_iter()
            .flatten()
            .all(|address| scratch.is_ready(calls, address, bytes));
        // One that reads what the launch ahead writes comes after it: even behind
        // the wait, a cache for what is only read may keep what was there before.
        launch.dependent &= ready || !scratch.is_ahead(calls);
        // What is ahead is not known where others use the stream.
        launch.dependent &= !scratch.is_beside;
        let words = [array.address, others.unwrap_or(0), len, start, 0, memory, to, 0];
        let arguments = kernels::arguments(words, ready);
        scratch.launched(None, [0, 0]);
        // SAFETY: the kernels have these parameters; they read the arrays, the
        // caller's promise, and write the scratch memory and the payload. What is
        // ready was written before the launch ahead, as only this engine's
        // launches come without another call on the stream.
        unsafe { self.device.launch(stream, kernel, &launch, &arguments)? };
        let output = calls.map(|calls| (calls, to, scratch::MOST_PAYLOAD));
        scratch.launched(output, pages(array));
        Ok(())
    }

    /// What launch reduces an input: what was found for the stream's last one, if
    /// that was like it.
    fn planned(&self, kind: Kind, input: &Input, scratch: &mut Scratch) -> Result<Planned> {
        let Array { len, dtype, .. } = input.array;
        if let Some((like, planned)) = scratch.planned
            && like == (kind, dtype, len)
        {
            return Ok(planned);
        }
        let kernel = self.kernel(kind, dtype)?;
        let arrays = 1 + usize::from(input.others.is_some());
        let launch = plan::plan(&kernel.capacity, self.shape, len, arrays * dtype.size());
        let workspace = block_workspace::bytes(kind, dtype, launch.grid[0]);
        let planned = Planned { kernel: kernel.id, launch, workspace };
        scratch.planned = Some(((kind, dtype, len), planned));
        Ok(planned)
    }

    fn kernel(&self, kind: Kind, dtype: DType) -> Result<Kernel> {
        // Held while loading, so that a module is loaded once.
        let mut kernels = lock(&self.kernels);
        if let Some(&kernel) = kernels.get(&(kind, dtype)) {
            return Ok(kernel);
        }
        let name = kernels::name(kind, dtype).ok_or(Error::NoKernel { kind, dtype })?;
        let id = self.load(&name)?;
        let kernel = Kernel { id, capacity: self.capacity(id, kernels::build(kind, dtype))? };
        kernels.insert((kind, dtype), kernel);
        Ok(kernel)
    }

    /// What of the device decides routes.
    fn machine(&self) -> Machine<'_> {
        Machine { limits: self.device.limits(), shape: self.shape }
    }

    /// A kernel that leaves no state.
    fn program(&self, program: Program) -> Result<KernelId> {
        // As above.
        let mut programs = lock(&self.programs);
        if let Some(&id) = programs.get(&program) {
            return Ok(id);
        }
        let id = self.load(&program.name())?;
        programs.insert(program, id);
        Ok(id)
    }

    /// Loads a module and looks for its kernel.
    fn load(&self, name: &str) -> Result<KernelId> {
        let capability = self.device.limits().capability;
        let ptx = archive::module(name, capability).ok_or_else(|| {
            let why = format!(
                "{} has compute capability {}.{}",
                self.device.limits().name,
                capability.0,
                capability.1
            );
            let hint = "the kernels need a device of compute capability 7.5 or newer".into();
            Error::Unavailable { why, hint }
        })?;
        let module = self.device.load(name, &ptx)?;
        self.device.kernel(module, name)
    }

    /// What of a kernel the device runs at once: without the shared memory of
    /// its threads if the device has too little.
    fn capacity(&self, kernel: KernelId, build: Build) -> Result<Capacity> {
        for shared_per_thread in [build.shared_per_thread, 0] {
            let shared = shared_per_thread * build.threads;
            if shared > self.device.limits().shared_per_block {
                continue;
            }
            let blocks = self.device.resident_blocks(kernel, build.threads, shared)?;
            if blocks > 0 {
                let build = Build { shared_per_thread, ..build };
                return Ok(Capacity {
                    build,
                    resident: blocks * self.device.limits().multiprocessors,
                });
            }
        }
        // The device will say what it lacks.
        Ok(Capacity { build: Build { shared_per_thread: 0, ..build }, resident: 1 })
    }

    /// Frees the scratch memory of a stream that is not used any more, once its work is
    /// done; says whether it did: not while another thread reduces on it. A stream that is
    /// used again gets new memory.
    ///
    /// # Errors
    /// What the device says of the work on the stream.
    pub fn release(&self, stream: Stream) -> Result<bool> {
        let mut all = lock(&self.scratch);
        // Whoever reduces has taken a share of it under this lock.
        let Some(scratch) = all.remove(&stream) else { return Ok(true) };
        if Arc::strong_count(&scratch) > 1 {
            all.insert(stream, scratch);
            return Ok(false);
        }
        let waited = self.device.wait(stream);
        lock(&scratch).give_back(&*self.device);
        waited.map(|()| true)
    }

    fn scratch(&self, stream: Stream) -> Result<Arc<Mutex<Scratch>>> {
        let mut all = lock(&self.scratch);
        if let Some(scratch) = all.get(&stream) {
            return Ok(Arc::clone(scratch));
        }
        let scratch = Arc::new(Mutex::new(Scratch::new(&self.device, stream)?));
        all.insert(stream, Arc::clone(&scratch));
        Ok(scratch)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for (stream, scratch) in lock(&self.scratch).drain() {
            // Launches may still use it. Errors cannot be reported here.
            let _ = self.device.wait(stream);
            lock(&scratch).give_back(&*self.device);
        }
    }
}
