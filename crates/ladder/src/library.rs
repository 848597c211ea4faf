//! The library's own engine, as a rung beside the others.

use crate::error::{Error, Result};
use crate::lab::{Lab, STREAM, Timing};
use crate::memory::Memory;
use crate::question::Question;
use crate::runner::{self, Runner};
use std::sync::Arc;
use std::time::Duration;
use warpfold_core::op::{Kind, Numbers};
use warpfold_core::{DType, Op, Rules, Scalar};
use warpfold_cuda::Address;
use warpfold_cuda::engine::{Array, Engine, Input};

/// A question to the engine.
pub(crate) struct Library<'a> {
    memory: Memory<'a>,
    engine: Arc<Engine>,
    id: &'static str,
    kind: Kind,
    op: Op,
    dtype: DType,
    len: u64,
    /// Where the state comes to lie, and its bytes.
    out: Address,
    left: usize,
}

impl<'a> Library<'a> {
    pub(crate) fn new(
        lab: &'a Lab,
        question: &Question,
        elements: &Numbers,
        copies: u64,
    ) -> Result<Library<'a>> {
        let Question { rung, dtype, op, n: len, .. } = *question;
        let kind = op.kind();
        let memory = Memory::new(lab.device(), question, elements, copies)?;
        let array = Array { address: memory.input(0), len, dtype };
        let left = Engine::output_len(kind, array).ok_or(Error::Op { rung, op, dtype })?;
        let out = memory.allocate(left as u64)?;
        let engine = Arc::clone(lab.engine());
        memory.done(engine.prepare(kind, dtype, STREAM))?;
        Ok(Library { memory, engine, id: rung.id, kind, op, dtype, len, out, left })
    }

    fn input(&self, turn: usize) -> Input {
        Array { address: self.memory.input(turn), len: self.len, dtype: self.dtype }.into()
    }

    fn start(&self, turn: usize) -> warpfold_cuda::Result<()> {
        // SAFETY: the array was filled before on the stream, it is not written, and the
        // state has the room that it needs.
        unsafe { self.engine.reduce_into(self.kind, self.input(turn), self.out, STREAM) }
    }
}

impl Runner for Library<'_> {
    fn answer(&self) -> Result<Scalar> {
        let Library { memory, kind, .. } = self;
        memory.done(self.start(0))?;
        memory.done(memory.device.wait(STREAM))?;
        let mut left = vec![0; self.left];
        memory.read(self.out, &mut left)?;
        let state = memory.done(Engine::state_of_output(*kind, self.input(0), &left))?;
        let out = self.dtype.is_float().then_some(DType::F64);
        let rules = Rules::new().out(out).wrap(true);
        let scalar = state.finish(self.op, &rules)?.first();
        Ok(match self.dtype.is_float() {
            true => scalar,
            false => Scalar::from_bits(self.dtype, scalar.to_bits()),
        })
    }

    fn times(&self, timing: &Timing, runs: u32) -> Result<Vec<Duration>> {
        runner::on_device(self.memory.device, self.id, timing, runs, &|turn| self.start(turn))
    }
}
