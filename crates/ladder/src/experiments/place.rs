//! Where an experiment's kernels run.

use crate::buffers::Buffers;
use crate::error::{Error, Result};
use crate::lab::STREAM;
use crate::statistics::median;
use std::cell::RefCell;
use std::collections::HashMap;
use warpfold_cuda::{Address, Archive, Argument, Device, KernelId, Launch, ModuleId, Sim};
use warpfold_ptx::count::Counters;
use warpfold_ptx::machine::Options;

static KERNELS: Archive = Archive::new(include_bytes!("../../kernels/experiments/kernels.archive"));

/// A device with the experiments' kernels, and memory that it gets back.
pub(super) struct Place<'a> {
    id: &'static str,
    device: &'a dyn Device,
    modules: RefCell<HashMap<String, ModuleId>>,
    buffers: Buffers<'a>,
}

/// Intervals of the device's clock that are taken, and those before that do not
/// count.
const INTERVALS: usize = 21;
const WARM_UP: usize = 3;

/// An interval is at least so long, in seconds: the clock moves in steps of half a
/// microsecond.
const INTERVAL: f64 = 400e-6;

/// The most runs in an interval.
const MOST_RUNS: f64 = 100.0;

impl<'a> Place<'a> {
    pub(super) fn new(id: &'static str, device: &'a dyn Device) -> Place<'a> {
        Place { id, device, modules: RefCell::default(), buffers: Buffers::new(device) }
    }

    /// The device.
    pub(super) fn device(&self) -> &'a dyn Device {
        self.device
    }

    pub(super) fn done<T>(&self, result: warpfold_cuda::Result<T>) -> Result<T> {
        result.map_err(|source| Error::Device { id: self.id, source })
    }

    /// A kernel of a module.
    pub(super) fn kernel(&self, module: &str, name: &str) -> Result<KernelId> {
        let known = self.modules.borrow().get(module).copied();
        let loaded = match known {
            Some(loaded) => loaded,
            None => {
                let has = self.device.limits().capability;
                let ptx =
                    KERNELS.module(module, has).ok_or_else(|| match KERNELS.oldest(module) {
                        Some(needs) if needs > has => {
                            Error::ExperimentCapability { id: self.id, needs, has }
                        }
                        _ => Error::NoExperimentModule { id: self.id },
                    })?;
                let loaded = self.done(self.device.load(module, &ptx))?;
                self.modules.borrow_mut().insert(module.into(), loaded);
                loaded
            }
        };
        self.done(self.device.kernel(loaded, name))
    }

    /// Memory that holds nothing yet.
    pub(super) fn room(&self, bytes: u64) -> Result<Address> {
        self.done(self.buffers.allocate(bytes))
    }

    /// Memory with these bytes.
    pub(super) fn upload(&self, bytes: &[u8]) -> Result<Address> {
        let address = self.room(bytes.len() as u64)?;
        self.done(self.buffers.copy_in(address, bytes))?;
        Ok(address)
    }

    /// Memory that is zero.
    pub(super) fn zeros(&self, bytes: u64) -> Result<Address> {
        let address = self.room(bytes)?;
        self.clear(address, bytes)?;
        Ok(address)
    }

    /// Sets memory to zero.
    pub(super) fn clear(&self, address: Address, bytes: u64) -> Result<()> {
        self.done(self.buffers.clear(address, bytes))
    }

    /// Waits, and takes bytes back.
    pub(super) fn download(&self, address: Address, bytes: u64) -> Result<Vec<u8>> {
        let mut to = vec![0; bytes as usize];
        self.done(self.buffers.copy_out(address, &mut to))?;
        Ok(to)
    }

    /// Words of four bytes.
    pub(super) fn words(&self, address: Address, count: u64) -> Result<Vec<u32>> {
        let bytes = self.download(address, 4 * count)?;
        Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    /// Launches a kernel of this experiment, whose arguments are what it takes and
    /// whose memory is this place's.
    pub(super) fn launch(
        &self,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> Result<()> {
        self.done(self.start(kernel, launch, arguments))
    }

    fn start(
        &self,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> warpfold_cuda::Result<()> {
        // SAFETY: experiments name the kernel's parameters in order, and the addresses
        // are of memory that is theirs until the place is dropped, as long as the kernel
        // reads or writes.
        unsafe { self.device.launch(STREAM, kernel, launch, arguments) }
    }

    pub(super) fn wait(&self) -> Result<()> {
        self.done(self.device.wait(STREAM))
    }

    /// How many seconds a launch takes, as the median of many intervals; `None` without a clock.
    pub(super) fn time(
        &self,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> Result<Option<f64>> {
        let interval = |runs: u32| -> Result<Option<f64>> {
            let mut work = || (0..runs).try_for_each(|_| self.start(kernel, launch, arguments));
            let time = self.done(self.device.time(STREAM, &mut work))?;
            Ok(time.map(|time| time.as_secs_f64() / f64::from(runs)))
        };
        let mut once = 0.0;
        for _ in 0..WARM_UP {
            let Some(time) = interval(1)? else { return Ok(None) };
            once = time;
        }
        let runs = (INTERVAL / once).clamp(1.0, MOST_RUNS) as u32;
        let mut times = Vec::new();
        for _ in 0..INTERVALS {
            times.extend(interval(runs)?);
        }
        Ok(Some(median(&mut times)))
    }
}

/// The interpreter, which checks every access and counts.
pub(super) fn counting() -> Sim {
    Sim::new(Options { counters: true, ..Options::default() })
}

/// What the interpreter has counted since the last call.
pub(super) fn counters(sim: &Sim) -> Counters {
    let mut total = Counters::default();
    for report in sim.take_reports() {
        if let Some(counted) = report.outcome.counters {
            total.merge(&counted.total());
        }
    }
    total
}

/// The bytes of words.
pub(super) fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// `GB/s` of this many bytes.
pub(super) fn rate(bytes: u64, seconds: Option<f64>) -> Option<f64> {
    seconds.map(|seconds| bytes as f64 / seconds / 1e9)
}
