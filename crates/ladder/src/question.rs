//! Questions to a rung.

use crate::error::{Error, Result};
use crate::rung::{Plan, Rung};
use warpfold_core::{DType, Op};

/// A rung, and the array that it reduces.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub(crate) rung: &'static Rung,
    pub(crate) dtype: DType,
    pub(crate) op: Op,
    pub(crate) n: u64,
    pub(crate) block: u32,
    pub(crate) offset: u64,
    /// Blocks for each multiprocessor; as many as fit if `None`.
    pub(crate) per_multiprocessor: Option<u32>,
}

/// The most blocks of a grid along x.
const MOST_BLOCKS: u64 = i32::MAX as u64;

impl Question {
    /// The reduction of `n` elements in blocks of `block` threads.
    ///
    /// # Errors
    /// A question that the rung cannot answer; the minimum of no elements.
    pub fn new(rung: &'static Rung, dtype: DType, op: Op, n: u64, block: u32) -> Result<Question> {
        if !rung.dtypes.contains(&dtype) {
            return Err(Error::DType { rung, dtype });
        }
        if !rung.ops.contains(&op) || !op.supports(dtype) {
            return Err(Error::Op { rung, op, dtype });
        }
        if !rung.blocks.allow(block) {
            return Err(Error::Block { rung, block });
        }
        if n == 0 && matches!(op, Op::Min | Op::Max) {
            return Err(warpfold_core::Error::Empty { op }.into());
        }
        let question = Question { rung, dtype, op, n, block, offset: 0, per_multiprocessor: None };
        let too_many = usize::try_from(n).ok().and_then(|n| n.checked_mul(dtype.size())).is_none();
        if too_many || matches!(question.tiles(n), Some(blocks) if blocks > MOST_BLOCKS) {
            return Err(Error::Elements { rung, n, block });
        }
        Ok(question)
    }

    /// The same over an array whose first element is `elements` elements behind a
    /// multiple of 256 bytes.
    #[must_use]
    pub fn misaligned(self, elements: u64) -> Question {
        Question { offset: elements, ..self }
    }

    /// The same with this many blocks for each multiprocessor, if the grid depends on
    /// the device. If blocks wait for each other, at most as many as fit.
    #[must_use]
    pub fn on_each_multiprocessor(self, blocks: u32) -> Question {
        Question { per_multiprocessor: Some(blocks), ..self }
    }

    /// The number of blocks for each multiprocessor, if it was chosen.
    #[must_use]
    pub fn per_multiprocessor(&self) -> Option<u32> {
        self.per_multiprocessor
    }

    /// The rung.
    #[must_use]
    pub fn rung(&self) -> &'static Rung {
        self.rung
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The operation.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// How many elements there are.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Threads of a block.
    #[must_use]
    pub fn block(&self) -> u32 {
        self.block
    }

    /// Blocks of a pass over `n` values; `None` if their number depends on the device.
    pub(crate) fn tiles(&self, n: u64) -> Option<u64> {
        let tiles = |columns: u32| n.div_ceil(u64::from(columns) * u64::from(self.block));
        // One block is always enough for one tile: so the passes come to an end.
        match self.rung.plan {
            Plan::Passes { columns, .. } if tiles(columns) <= 1 => Some(1),
            Plan::Passes { columns, surplus, .. } => {
                Some(tiles(columns).saturating_mul(surplus.into()))
            }
            Plan::TailLaunches { most } => Some(tiles(1).clamp(1, most.into())),
            _ => None,
        }
    }

    /// The type of the additions: 16-bit floats are added as f32.
    pub(crate) fn added(&self) -> DType {
        match self.dtype {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        }
    }
}
