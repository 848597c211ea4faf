//! Questions that come again and again, whose answers stay in the device's memory.

use super::in_place::{check_answers, failure};
use super::like::Like;
use super::memory::{DeviceArray, DeviceArrayMut};
use crate::answer::halves;
use crate::reduction::Reduction;
use core::fmt;
use warpfold_core::op::{AnyState, Op};
use warpfold_core::{DType, Error, Result, fpenv};
use warpfold_cuda::engine::Prepared as Memory;
use warpfold_cuda::{Buffer, Engine};

/// A question about arrays of one type, shape and strides on one stream, whose answers go
/// to the device's memory without a wait.
///
/// It owns the memory that kernels work in. Once [`Reduction::prepare`] has made it, nothing
/// is allocated, so that [`enqueue`](Self::enqueue) can be captured in a CUDA graph. Keep it
/// as long as such a graph.
///
/// Arrays may lie anywhere. One that is aligned in another way than those before may take
/// other kernels, which are loaded then: enqueue it once before a capture.
pub struct Prepared {
    question: Reduction,
    reduced: Vec<bool>,
    shape: Vec<usize>,
    types: Vec<DType>,
    /// Dropped before the steps' memory: it waits for the stream.
    memory: Memory,
    steps: Vec<Step>,
    /// Dropped last: it may be all that keeps the stream.
    like: Like,
}

/// How the answers of an operation with one number come about.
enum Step {
    /// The device makes them of the elements.
    Numbers(Op),
    /// There are no elements: all answers are this one.
    Same(Buffer<'static>),
}

impl Reduction {
    /// Gets ready to leave the answers about arrays like this one in the device's memory,
    /// again and again on the array's stream. Reduces the array once, so that all kernels
    /// are loaded and all memory is allocated, and waits for that.
    ///
    /// # Errors
    /// Those of [`run`](Self::run) that are of no element. [`Error::DeviceMemory`] for
    /// answers that only the host finishes, which [`run_into`](Self::run_into) sends to the
    /// device: those under other rules than the default ones where these matter, of
    /// products and log-sum-exps of integers, and with an initial value.
    ///
    /// # Examples
    /// ```no_run
    /// # fn on(stream: &warpfold::DeviceStream, table: u64, means: u64) -> warpfold::Result<()> {
    /// use warpfold::{DType, DeviceArray, DeviceArrayMut, Op, Reduction};
    ///
    /// // SAFETY: a table of 1000 rows and room for their means lie there.
    /// let table = unsafe { DeviceArray::from_raw(DType::F32, table, &[1000, 256], stream)? };
    /// let prepared = Reduction::of(Op::Mean).axis(1).prepare(&table)?;
    /// for _ in 0..100 {
    ///     // SAFETY: as above.
    ///     let means = unsafe { DeviceArrayMut::from_raw(DType::F32, means, 1000, stream)? };
    ///     prepared.enqueue(&table, &mut [means])?;
    /// }
    /// prepared.check()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare(&self, array: &DeviceArray<'_>) -> Result<Prepared> {
        fpenv::usual(|| {
            let place = self.in_place(array, None)?;
            let (outputs, dtype) = (place.outputs(), array.dtype());
            let stream = array.stream();
            let memory = Memory::new(&stream.opened.engine, stream.stream).map_err(failure)?;
            let both = |&op: &Op| halves(op).into_iter().enumerate().map(move |half| (op, half));
            let asked = self.ops.iter().flat_map(both);
            let step = |(op, half)| self.step(op, half, array, outputs);
            let prepared = Prepared {
                question: self.clone(),
                like: Like::new(array),
                reduced: place.reduced.into_vec(),
                shape: place.shape,
                types: self.answer_types(dtype),
                steps: asked.map(step).collect::<Result<_>>()?,
                memory,
            };
            prepared.rehearse(array)?;
            Ok(prepared)
        })
    }

    /// How the answers of a half of an operation, which has this place, come about.
    ///
    /// # Errors
    /// [`Error::DeviceMemory`] for what only the host finishes; those of finishing.
    fn step(
        &self,
        op: Op,
        (place, half): (usize, Op),
        array: &DeviceArray<'_>,
        outputs: usize,
    ) -> Result<Step> {
        let dtype = array.dtype();
        let on_host = self.initial.is_some() || self.rules.matter_for(op, dtype);
        if on_host || !Engine::finishes(half, dtype) {
            return Err(Error::DeviceMemory {
                what: format!("{op} of {dtype} elements under these rules is finished by the host"),
                hint: "run_into waits, and sends the answers to the device",
            });
        }
        if !array.is_empty() || outputs == 0 {
            return Ok(Step::Numbers(half));
        }
        let none = AnyState::identity(op.kind(), dtype)?.finish(op, &self.rules)?;
        let same = if place == 0 { none.first() } else { none.second().unwrap_or(none.first()) };
        let opened = &array.stream().opened;
        let buffer = Buffer::new(opened.engine.device(), 8).map_err(failure)?;
        let bytes = same.to_bits().to_le_bytes();
        buffer.copy_in(array.stream().stream, 0, &bytes).map_err(failure)?;
        Ok(Step::Same(buffer))
    }
}

impl Prepared {
    /// The shape of each answer.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The types of the answers, in the order of [`Reduction::answer_types`].
    #[must_use]
    pub fn answer_types(&self) -> &[DType] {
        &self.types
    }

    fn outputs(&self) -> usize {
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// Leaves the answers about an array in the device's memory, behind all work on the
    /// stream, and does not wait: an array for each operation, and two for [`Op::MinMax`]
    /// and [`Op::ArgMinMax`].
    ///
    /// A total of integers that does not fit its type is left without its upper bits, and
    /// [`check`](Self::check) is an error then.
    ///
    /// # Errors
    /// [`Error::DeviceMemory`] for an array of another type, shape, strides or stream than
    /// the one that this was prepared for, and for answers of other types or sizes or that
    /// overlap the array or each other: nothing is written then. What the device says.
    pub fn enqueue(
        &self,
        array: &DeviceArray<'_>,
        answers: &mut [DeviceArrayMut<'_>],
    ) -> Result<()> {
        self.like.check(array)?;
        check_answers(array, answers, &self.types, self.outputs())?;
        fpenv::usual(|| {
            let _lent = array.lend();
            for ((step, to), dtype) in self.steps.iter().zip(answers).zip(&self.types) {
                let (address, len) = (to.address(), to.len());
                let _lent = to.lend();
                match step {
                    Step::Numbers(_) if len == 0 => {}
                    &Step::Numbers(op) => {
                        // SAFETY: who made the arrays has promised that the one may be read
                        // and the other written, also after this returns; there is a
                        // number for each output.
                        let left = unsafe {
                            self.memory.numbers_into(op, array.view(), &self.reduced, address)
                        };
                        if !left.map_err(failure)? {
                            return Err(Error::DeviceMemory {
                                what: format!("the device has too little memory for {op}"),
                                hint: "run_into answers by parts",
                            });
                        }
                    }
                    Step::Same(buffer) => {
                        let from = buffer.address();
                        // SAFETY: the buffer lives as long as this, which waits for the
                        // stream in the end; the places are the caller's, as above.
                        let copied =
                            unsafe { self.memory.repeat(dtype.size(), from, address, len) };
                        copied.map_err(failure)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Waits for the stream, and fails if a total of integers did not fit its type since
    /// the last call, in graphs, too. Under [`Reduction::wrap`] none fails.
    ///
    /// # Errors
    /// [`Error::Overflow`], without the total; what the device says of the work.
    pub fn check(&self) -> Result<()> {
        let seen = self.memory.saw_overflow().map_err(failure)?;
        if !seen || self.question.rules().wrap {
            return Ok(());
        }
        let totals = [Op::Sum, Op::Norm1, Op::SumSq];
        let op = self.question.ops().iter().find(|op| totals.contains(op));
        let op = op.copied().unwrap_or(Op::Sum);
        let out = op.answer_type(self.like.dtype());
        Err(Error::Overflow { op, total: "beyond 64 bits".into(), out })
    }

    /// Does everything once, into memory that nobody wants.
    fn rehearse(&self, array: &DeviceArray<'_>) -> Result<()> {
        let device = self.like.stream().opened.engine.device();
        let outputs = self.outputs();
        let room = |dtype: &DType| {
            let bytes = (outputs as u64).saturating_mul(dtype.size() as u64);
            Buffer::new(device, bytes.max(1)).map_err(failure)
        };
        let buffers: Vec<Buffer<'_>> = self.types.iter().map(room).collect::<Result<_>>()?;
        let to = |(buffer, &dtype): (&Buffer<'_>, &DType)| {
            // SAFETY: the buffer is written on the stream alone, and lives until that was
            // waited for, below.
            unsafe {
                DeviceArrayMut::from_raw(dtype, buffer.address(), outputs, self.like.stream())
            }
        };
        let mut answers: Vec<DeviceArrayMut<'_>> =
            buffers.iter().zip(&self.types).map(to).collect::<Result<_>>()?;
        let done = self.enqueue(array, &mut answers);
        // A total that does not fit is nobody's: it is forgotten. Where work has failed,
        // the first error says more.
        let waited = self.memory.saw_overflow().map_err(failure);
        done.and(waited.map(drop))
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("question", &self.question)
            .field("like", &self.like)
            .finish_non_exhaustive()
    }
}
