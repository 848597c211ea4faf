//! Simulated devices, on the PTX interpreter: the same kernels, checked for
//! races and other faults, on a machine without a GPU.

use crate::device::{
    Address, Argument, Device, Footprint, KernelId, Launch, Limits, ModuleId, Stream,
    UNKNOWN_MEMORY,
};
use crate::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};
use warpfold_ptx::device::{self as ptx, Report, Setup};
use warpfold_ptx::machine::{Arg, Checks, Options, Shape};

/// A device that the interpreter simulates. It is modelled on compute capability 9.0.
/// Its times mean nothing.
pub struct Sim {
    limits: Limits,
    state: Mutex<State>,
}

/// What a multiprocessor of compute capability 9.0 runs at once.
const THREADS_AT_ONCE: u32 = 2048;
const BLOCKS_AT_ONCE: u32 = 32;

struct State {
    device: ptx::Device,
    modules: Vec<ptx::ModuleId>,
    kernels: Vec<ptx::Kernel>,
    /// How many calls have used each stream.
    calls: Vec<u64>,
    /// Reports of launches that are done and were not taken yet; `None` if they are not
    /// kept.
    reports: Option<Vec<Report>>,
}

impl Sim {
    /// A device that runs launches as `options` say.
    #[must_use]
    pub fn new(options: Options) -> Sim {
        let setup = Setup { options, ..Setup::default() };
        let limits = Limits {
            name: "simulated device".into(),
            capability: (9, 0),
            multiprocessors: setup.limits.multiprocessors,
            threads_per_multiprocessor: THREADS_AT_ONCE,
            threads_per_block: setup.limits.threads,
            shared_per_block: setup.limits.shared_opt_in,
            l2_bytes: 50 << 20,
            memory: setup.memory,
        };
        let state = State {
            device: ptx::Device::new(setup),
            modules: Vec::new(),
            kernels: Vec::new(),
            calls: vec![0],
            reports: Some(Vec::new()),
        };
        Sim { limits, state: Mutex::new(state) }
    }

    /// A device for long reductions: every check is on, a finding is an error of
    /// [`wait`](Device::wait), and no report is kept.
    #[must_use]
    pub fn checking() -> Sim {
        let sim = Sim::new(Options { checks: Checks::ALL, ..Options::default() });
        sim.state().reports = None;
        sim
    }

    /// The findings and counters of the launches that were waited for since the last
    /// call, in order.
    pub fn take_reports(&self) -> Vec<Report> {
        self.state().reports.as_mut().map(core::mem::take).unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sim {
    /// Frees memory: as [`Device::free`], but safe, since the address is checked.
    ///
    /// # Errors
    /// An address that was not allocated.
    pub fn free(&self, address: Address) -> Result<()> {
        let freed = self.state().device.free(address);
        while_doing(freed, || format!("freeing memory at {address:#x}"))
    }

    /// Copies to the device: as [`Device::copy_in`], but safe, since the range is
    /// checked.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    pub fn copy_in(&self, stream: Stream, to: Address, from: &[u8]) -> Result<()> {
        let mut state = self.state();
        state.stream(stream)?;
        let copied = state.device.write(to, from);
        while_doing(copied, || format!("copying {} bytes to {to:#x}", from.len()))
    }

    /// Copies from the device: as [`Device::copy_out`], but safe, since the range is
    /// checked.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    pub fn copy_out(&self, stream: Stream, from: Address, to: &mut [u8]) -> Result<()> {
        let mut state = self.state();
        state.stream(stream)?;
        let copied = state.device.read(from, to);
        while_doing(copied, || format!("copying {} bytes from {from:#x}", to.len()))
    }

    /// Sets bytes to a value: as [`Device::fill`], but safe, since the range is
    /// checked.
    ///
    /// # Errors
    /// A range that is not in the device's memory.
    pub fn fill(&self, stream: Stream, to: Address, value: u8, bytes: u64) -> Result<()> {
        let mut state = self.state();
        state.stream(stream)?;
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        let filled = state.device.fill(to, len, value);
        while_doing(filled, || format!("filling {bytes} bytes at {to:#x}"))
    }
}

impl State {
    /// The stream of a call, which it counts.
    fn stream(&mut self, stream: Stream) -> Result<ptx::Stream> {
        let number = u32::try_from(stream.0).ok();
        match number.and_then(|n| Some((n, self.calls.get_mut(n as usize)?))) {
            Some((number, calls)) => {
                *calls += 1;
                Ok(ptx::Stream(number))
            }
            None => Err(Error::ForeignHandle { what: "the stream" }),
        }
    }
}

/// Adds the step that failed to an error of the interpreter.
fn while_doing<T>(
    result: Result<T, ptx::DeviceError>,
    doing: impl FnOnce() -> String,
) -> Result<T> {
    result.map_err(|error| Error::Simulated { doing: doing(), why: error.to_string() })
}

// SAFETY: its memory is a part of the value and checked at every access; pinned
// memory is the trait's own; whatever is asked is done when the call returns.
unsafe impl Device for Sim {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn allocate(&self, bytes: u64) -> Result<Address> {
        let allocated = self.state().device.allocate(bytes.max(1));
        while_doing(allocated, || format!("allocating {bytes} bytes"))
    }

    unsafe fn free(&self, address: Address) -> Result<()> {
        Sim::free(self, address)
    }

    unsafe fn copy_in(&self, stream: Stream, to: Address, from: &[u8]) -> Result<()> {
        Sim::copy_in(self, stream, to, from)
    }

    unsafe fn copy_out(&self, stream: Stream, from: Address, to: &mut [u8]) -> Result<()> {
        Sim::copy_out(self, stream, from, to)
    }

    fn why_unreadable(&self, address: Address, bytes: u64) -> Option<&'static str> {
        let last = address.checked_add(bytes.checked_sub(1)?);
        let state = self.state();
        let known = |at: u64| state.device.read(at, &mut [0]).is_ok();
        let readable = last.is_some_and(|last| known(address) && known(last));
        (!readable).then_some(UNKNOWN_MEMORY)
    }

    unsafe fn fill(&self, stream: Stream, to: Address, value: u8, bytes: u64) -> Result<()> {
        Sim::fill(self, stream, to, value, bytes)
    }

    fn load(&self, name: &str, ptx: &str) -> Result<ModuleId> {
        let mut state = self.state();
        let module = while_doing(state.device.load(ptx), || format!("loading {name}"))?;
        state.modules.push(module);
        Ok(ModuleId(state.modules.len() as u64 - 1))
    }

    fn kernel(&self, module: ModuleId, name: &str) -> Result<KernelId> {
        let mut state = self.state();
        let Some(&module) = usize::try_from(module.0).ok().and_then(|i| state.modules.get(i))
        else {
            return Err(Error::ForeignHandle { what: "the module" });
        };
        let kernel =
            while_doing(state.device.kernel(module, name), || format!("finding kernel {name}"))?;
        let place = state.kernels.iter().position(|&k| k == kernel).unwrap_or_else(|| {
            state.kernels.push(kernel);
            state.kernels.len() - 1
        });
        Ok(KernelId(place as u64))
    }

    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<u32> {
        let state = self.state();
        if usize::try_from(kernel.0).ok().and_then(|i| state.kernels.get(i)).is_none() {
            return Err(Error::ForeignHandle { what: "the kernel" });
        }
        // Registers are not modelled.
        let by_threads = THREADS_AT_ONCE / threads.max(1);
        let by_shared = self.limits.shared_per_block.checked_div(shared).unwrap_or(u32::MAX);
        Ok(by_threads.min(by_shared).min(BLOCKS_AT_ONCE))
    }

    fn footprint(&self, kernel: KernelId) -> Result<Option<Footprint>> {
        let mut state = self.state();
        let Some(&kernel) = usize::try_from(kernel.0).ok().and_then(|i| state.kernels.get(i))
        else {
            return Err(Error::ForeignHandle { what: "the kernel" });
        };
        let shared = state.device.static_shared(kernel);
        let shared = while_doing(shared, || "querying the attributes of a kernel".into())?;
        // PTX has as many registers as it likes, and nothing is spilled.
        let threads = self.limits.threads_per_block;
        let shared = u32::try_from(shared).unwrap_or(u32::MAX);
        Ok(Some(Footprint { registers: None, shared, local: None, threads }))
    }

    fn stream(&self) -> Result<Stream> {
        let mut state = self.state();
        state.calls.push(0);
        Ok(Stream(state.calls.len() as u64 - 1))
    }

    fn calls_on(&self, stream: Stream) -> Option<u64> {
        // No other code knows its streams.
        self.state().calls.get(usize::try_from(stream.0).ok()?).copied()
    }

    unsafe fn launch(
        &self,
        stream: Stream,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> Result<()> {
        let mut state = self.state();
        let stream = state.stream(stream)?;
        let Some(&kernel) = usize::try_from(kernel.0).ok().and_then(|i| state.kernels.get(i))
        else {
            return Err(Error::ForeignHandle { what: "the kernel" });
        };
        let doing = || format!("launching {launch:?}");
        if launch.shared > 0 {
            while_doing(state.device.opt_in_to_shared(kernel), doing)?;
        }
        let bytes: Vec<Vec<u8>> = arguments.iter().map(Argument::bytes).collect();
        let arguments: Vec<Arg<'_>> = bytes.iter().map(|b| Arg::Bytes(b)).collect();
        let shape = Shape {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            shared: launch.shared,
            cooperative: launch.cooperative,
        };
        while_doing(state.device.launch(kernel, &shape, &arguments, stream), doing)
    }

    fn wait(&self, stream: Stream) -> Result<()> {
        let mut state = self.state();
        let stream = state.stream(stream)?;
        let reports = state.device.synchronize(stream);
        let wrong = reports.iter().find_map(|report| {
            let outcome = &report.outcome;
            let found = outcome.findings.all().first().map(ToString::to_string);
            let why = found.or_else(|| outcome.halt.as_ref().map(ToString::to_string))?;
            Some(Error::Simulated { doing: format!("running kernel {}", report.kernel), why })
        });
        if let Some(kept) = &mut state.reports {
            kept.extend(reports);
        }
        wrong.map_or(Ok(()), Err)
    }

    fn is_done(&self, stream: Stream) -> Result<bool> {
        // Launches run when they are made.
        self.state().stream(stream).map(|_| true)
    }
}
