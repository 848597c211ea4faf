//! A simulated device that says it is another one, or fails when it is told to. It
//! loads each of the engine's modules once, however many engines ask for it.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use warpfold_cuda::{
    Address, Argument, Device, Error, Footprint, KernelId, Launch, Limits, ModuleId, Result, Sim,
    Stream,
};

pub(crate) struct Altered {
    sim: Sim,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: HashSet<Address>,
    modules: HashMap<String, ModuleId>,
    largest: Option<u64>,
    calls_left: Option<u64>,
    launches: u64,
    waits: u64,
    launched: Vec<(bool, Vec<u8>)>,
    shares_streams: bool,
}

impl Altered {
    pub(crate) fn new(sim: Sim, change: impl FnOnce(&mut Limits)) -> Altered {
        let mut limits = sim.limits().clone();
        change(&mut limits);
        Altered { sim, limits, state: Mutex::default() }
    }

    /// Allocations of more bytes fail for want of memory.
    pub(crate) fn refuse_above(&self, bytes: u64) {
        self.state.lock().unwrap().largest = Some(bytes);
    }

    /// After so many calls all fail, until told otherwise.
    pub(crate) fn fail_after(&self, calls: Option<u64>) {
        self.state.lock().unwrap().calls_left = calls;
    }

    /// How many allocations nobody has freed.
    pub(crate) fn held(&self) -> usize {
        self.state.lock().unwrap().held.len()
    }

    /// How many launches there were.
    pub(crate) fn launches(&self) -> u64 {
        self.state.lock().unwrap().launches
    }

    /// How often somebody waited for a stream or a copy.
    pub(crate) fn waits(&self) -> u64 {
        self.state.lock().unwrap().waits
    }

    /// Of each launch since this was last asked, whether it was a dependent one, and
    /// the bytes of its last argument.
    pub(crate) fn launched(&self) -> Vec<(bool, Vec<u8>)> {
        core::mem::take(&mut self.state.lock().unwrap().launched)
    }

    /// From now on others may put work on its streams.
    pub(crate) fn share_streams(&self) {
        self.state.lock().unwrap().shares_streams = true;
    }

    fn fails(&self) -> Result<()> {
        match &mut self.state.lock().unwrap().calls_left {
            Some(0) => Err(Error::Simulated { doing: "a call".into(), why: "told to fail".into() }),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

// SAFETY: memory is the interpreter's, which checks every access, whatever is said of
// the device.
unsafe impl Device for Altered {
    fn limits(&self) -> &Limits {
        &self.limits
    }
    fn allocate(&self, bytes: u64) -> Result<Address> {
        self.fails()?;
        if self.state.lock().unwrap().largest.is_some_and(|most| bytes > most) {
            let why = "out of memory".into();
            return Err(Error::Simulated { doing: format!("allocating {bytes} bytes"), why });
        }
        let address = self.sim.allocate(bytes)?;
        self.state.lock().unwrap().held.insert(address);
        Ok(address)
    }
    unsafe fn free(&self, address: Address) -> Result<()> {
        // Giving back works on a device that fails.
        self.sim.free(address)?;
        assert!(self.state.lock().unwrap().held.remove(&address));
        Ok(())
    }
    unsafe fn copy_in(&self, stream: Stream, to: Address, from: &[u8]) -> Result<()> {
        self.fails()?;
        self.state.lock().unwrap().waits += 1;
        self.sim.copy_in(stream, to, from)
    }
    unsafe fn copy_out(&self, stream: Stream, from: Address, to: &mut [u8]) -> Result<()> {
        self.fails()?;
        self.state.lock().unwrap().waits += 1;
        self.sim.copy_out(stream, from, to)
    }
    unsafe fn fill(&self, stream: Stream, to: Address, value: u8, bytes: u64) -> Result<()> {
        self.fails()?;
        self.sim.fill(stream, to, value, bytes)
    }
    fn load(&self, name: &str, ptx: &str) -> Result<ModuleId> {
        self.fails()?;
        // Some kernels are the same for every device, and compiled for the oldest.
        let (major, minor) = self.limits.capability;
        let target = ptx.split(".target sm_").nth(1).and_then(|rest| rest.get(..2)?.parse().ok());
        let fits = target.is_some_and(|target: u32| target <= 10 * major + minor);
        assert!(fits, "{name} is not for this device");
        let modules = &mut self.state.lock().unwrap().modules;
        if let Some(&module) = modules.get(name) {
            return Ok(module);
        }
        let module = self.sim.load(name, ptx)?;
        modules.insert(name.into(), module);
        Ok(module)
    }
    fn kernel(&self, module: ModuleId, name: &str) -> Result<KernelId> {
        self.sim.kernel(module, name)
    }
    fn resident_blocks(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<u32> {
        self.sim.resident_blocks(kernel, threads, shared)
    }
    fn footprint(&self, kernel: KernelId) -> Result<Option<Footprint>> {
        self.sim.footprint(kernel)
    }
    fn stream(&self) -> Result<Stream> {
        self.sim.stream()
    }
    fn why_unreadable(&self, address: Address, bytes: u64) -> Option<&'static str> {
        self.sim.why_unreadable(address, bytes)
    }
    fn calls_on(&self, stream: Stream) -> Option<u64> {
        let shared = self.state.lock().unwrap().shares_streams;
        self.sim.calls_on(stream).filter(|_| !shared)
    }
    unsafe fn launch(
        &self,
        stream: Stream,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> Result<()> {
        self.fails()?;
        let mut state = self.state.lock().unwrap();
        state.launches += 1;
        state.launched.extend(arguments.last().map(|last| (launch.dependent, last.bytes())));
        drop(state);
        // SAFETY: passed on from the caller.
        unsafe { self.sim.launch(stream, kernel, launch, arguments) }
    }
    fn wait(&self, stream: Stream) -> Result<()> {
        self.fails()?;
        self.state.lock().unwrap().waits += 1;
        self.sim.wait(stream)
    }
    fn is_done(&self, stream: Stream) -> Result<bool> {
        self.sim.is_done(stream)
    }
}
