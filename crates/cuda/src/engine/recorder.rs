//! A device that only writes down what it is told: for tests of what the engine decides.

use crate::device::{Address, Argument, Device, KernelId, Launch, Limits, ModuleId, Stream};
use crate::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) kernel: String,
    pub(super) launch: Launch,
    pub(super) arguments: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Record {
    names: Vec<String>,
    launches: Vec<Recorded>,
    allocated: u64,
}

/// A device with these limits, whose memory holds nothing and whose kernels do nothing.
pub(super) struct Recorder {
    limits: Limits,
    record: Mutex<Record>,
}

/// Where memory begins: far above the arrays of tests.
const MEMORY: Address = 1 << 60;

impl Recorder {
    pub(super) fn new(limits: Limits) -> Recorder {
        Recorder { limits, record: Mutex::default() }
    }

    /// An H200.
    pub(super) fn h200() -> Limits {
        Limits {
            name: "recorder".into(),
            capability: (9, 0),
            multiprocessors: 132,
            threads_per_multiprocessor: 2048,
            threads_per_block: 1024,
            shared_per_block: 227 << 10,
            l2_bytes: 50 << 20,
            memory: 140 << 30,
        }
    }

    /// A small device of an older generation.
    pub(super) fn small() -> Limits {
        Limits {
            capability: (7, 5),
            multiprocessors: 2,
            threads_per_multiprocessor: 1024,
            shared_per_block: 64 << 10,
            l2_bytes: 1 << 20,
            memory: 32 << 20,
            ..Recorder::h200()
        }
    }

    /// The launches since the last call.
    pub(super) fn take(&self) -> Vec<Recorded> {
        core::mem::take(&mut self.record().launches)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: host memory comes from the default methods, which allocate it; device memory is
// numbers that nothing stands behind, so that nobody can use it; nothing is ever under way.
unsafe impl Device for Recorder {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn allocate(&self, bytes: u64) -> Result<Address> {
        let mut record = self.record();
        let at = MEMORY + record.allocated;
        record.allocated += bytes.next_multiple_of(256);
        Ok(at)
    }

    unsafe fn free(&self, _: Address) -> Result<()> {
        Ok(())
    }

    unsafe fn copy_in(&self, _: Stream, _: Address, _: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn copy_out(&self, _: Stream, _: Address, to: &mut [u8]) -> Result<()> {
        to.fill(0);
        Ok(())
    }

    unsafe fn fill(&self, _: Stream, _: Address, _: u8, _: u64) -> Result<()> {
        Ok(())
    }

    fn load(&self, name: &str, _: &str) -> Result<ModuleId> {
        let mut record = self.record();
        record.names.push(name.into());
        Ok(ModuleId(record.names.len() as u64 - 1))
    }

    fn kernel(&self, module: ModuleId, _: &str) -> Result<KernelId> {
        Ok(KernelId(module.0))
    }

    fn resident_blocks(&self, _: KernelId, threads: u32, _: u32) -> Result<u32> {
        Ok(self.limits.threads_per_multiprocessor / threads.max(1) / 2)
    }

    fn stream(&self) -> Result<Stream> {
        Ok(Stream::DEFAULT)
    }

    unsafe fn launch(
        &self,
        _: Stream,
        kernel: KernelId,
        launch: &Launch,
        arguments: &[Argument],
    ) -> Result<()> {
        let mut record = self.record();
        let Some(kernel) = record.names.get(kernel.0 as usize).cloned() else {
            let why = "it was not loaded".into();
            return Err(Error::Unavailable { why, hint: "load it first".into() });
        };
        let arguments = arguments.iter().map(Argument::bytes).collect();
        record.launches.push(Recorded { kernel, launch: *launch, arguments });
        Ok(())
    }

    fn wait(&self, _: Stream) -> Result<()> {
        Ok(())
    }

    fn is_done(&self, _: Stream) -> Result<bool> {
        Ok(true)
    }
}
