//! States that are left in the device's memory again and again.

use super::in_place::{check_answers, failure};
use super::like::Like;
use super::memory::{DeviceArray, DeviceArrayMut};
use crate::partial::Partial;
use crate::reduction::{Asked, Reduction};
use core::fmt;
use warpfold_core::op::Kind;
use warpfold_core::{DType, Error, Result, fpenv};
use warpfold_cuda::engine::{Input, Prepared as Memory};
use warpfold_cuda::{Buffer, Engine};

/// A question about whole arrays of one type and shape on one stream, whose unfinished
/// states go to the device's memory without a wait: words for other code to send, to
/// another process or to the host, where they are a [`Partial`].
///
/// As for [`Prepared`](crate::Prepared), nothing is allocated once this is made, and it is
/// kept as long as a CUDA graph that has captured it.
pub struct PreparedPartial {
    question: Reduction,
    /// The states, and the words of each.
    kinds: Vec<(Kind, usize)>,
    /// Dropped before what may be all that keeps the stream: it waits for that.
    memory: Memory,
    like: Like,
}

impl Reduction {
    /// Gets ready to leave the states of arrays like this one in the device's memory. Reduces
    /// the array once and waits for that.
    ///
    /// # Errors
    /// Those of [`partial`](Self::partial) that are of no element. [`Error::DeviceMemory`]
    /// for states that do not stay on a device: over some axes, of arrays whose elements do
    /// not follow each other or that have none, and of products of integers.
    /// [`partial`](Self::partial) brings all of these to the host.
    pub fn prepare_partial(&self, array: &DeviceArray<'_>) -> Result<PreparedPartial> {
        fpenv::usual(|| {
            let dtype = array.dtype();
            let (_, kinds, _) = self.asked(dtype, array.shape(), 1, 0)?;
            let place = self.in_place(array, None)?;
            let refused = |what: String| {
                let hint = "`partial` brings states of all arrays to the host";
                Err(Error::DeviceMemory { what, hint })
            };
            let Some(input) = place.whole(0) else {
                return refused(
                    "only states of whole arrays, whose elements follow each other, stay on devices"
                        .into(),
                );
            };
            let mut known = Vec::with_capacity(kinds.len());
            for kind in kinds {
                let bytes = Engine::output_len(kind, input);
                // Beyond 128 bits its digits are made of the elements, on the host.
                let all = kind != Kind::Prod || dtype.is_float();
                match bytes.filter(|_| all) {
                    Some(bytes) => known.push((kind, bytes / 8)),
                    None => {
                        return refused(format!("kernels keep 128 bits of products of {dtype}"));
                    }
                }
            }
            let opened = &array.stream().opened;
            let memory = Memory::new(&opened.engine, array.stream().stream).map_err(failure)?;
            let prepared = PreparedPartial {
                question: self.clone(),
                like: Like::new(array),
                kinds: known,
                memory,
            };
            let bytes = 8 * prepared.words() as u64;
            let buffer = Buffer::new(opened.engine.device(), bytes.max(1)).map_err(failure)?;
            // SAFETY: the buffer has room, is used on the stream alone, and lives until that
            // was waited for.
            let room = unsafe {
                DeviceArrayMut::from_raw(
                    DType::U64,
                    buffer.address(),
                    prepared.words(),
                    array.stream(),
                )
            };
            let done = room.and_then(|mut room| prepared.enqueue(array, 0, &mut room));
            done.and(array.stream().wait())?;
            Ok(prepared)
        })
    }
}

impl PreparedPartial {
    /// How many words of 64 bits the states take.
    #[must_use]
    pub fn words(&self) -> usize {
        self.kinds.iter().map(|&(_, words)| words).sum()
    }

    /// Leaves the states of an array, whose first element has index `start`, in the
    /// device's memory: [`words`](Self::words) numbers of [`DType::U64`]. Comes behind all
    /// work on the stream, and does not wait.
    ///
    /// # Errors
    /// [`Error::DeviceMemory`] for an array of another type, shape or stream than the one
    /// that this was prepared for, and for words of another number or that overlap the
    /// array: nothing is written then. [`Error::StartTooLarge`]; what the device says.
    pub fn enqueue(
        &self,
        array: &DeviceArray<'_>,
        start: u64,
        words: &mut DeviceArrayMut<'_>,
    ) -> Result<()> {
        self.like.check(array)?;
        check_answers(array, core::slice::from_ref(words), &[DType::U64], self.words())?;
        let len = array.len();
        if start.checked_add(len as u64).is_none() {
            return Err(Error::StartTooLarge { start, len });
        }
        fpenv::usual(|| {
            let mut next = words.address();
            let (_lent, _lent_too) = (array.lend(), words.lend());
            let place = self.question.in_place(array, None)?;
            let input: Input = place.whole(start).ok_or_else(|| Error::DeviceMemory {
                what: "the array is not aligned for its type".into(),
                hint: "`partial` brings states of all arrays to the host",
            })?;
            for &(kind, words) in &self.kinds {
                // SAFETY: who made the arrays has promised that the one may be read and the
                // other written, also after this returns; there is room for the words.
                let left = unsafe { self.memory.reduce_into(kind, input, next) };
                left.map_err(failure)?;
                next += 8 * words as u64;
            }
            Ok(())
        })
    }

    /// What such words are, brought to the host: the same as [`Reduction::partial`] makes
    /// of the array. Words may be added up, word by word in 64 bits that wrap, where all
    /// states are exact sums of floats: [`Op::Sum`](crate::Op::Sum), `Mean` and `Norm1`.
    ///
    /// # Errors
    /// [`Error::DamagedState`] for other words.
    pub fn partial(&self, words: &[u64]) -> Result<Partial> {
        let damaged = |why: String| Error::DamagedState { why };
        if words.len() != self.words() {
            return Err(damaged(format!("{} words, not {}", words.len(), self.words())));
        }
        let (dtype, shape) = (self.like.dtype(), self.like.shape());
        let (_, _, Asked { shape, ops, .. }) = self.question.asked(dtype, shape, 1, 0)?;
        let mut rest = words;
        let mut states = Vec::with_capacity(self.kinds.len());
        for &(kind, words) in &self.kinds {
            let (payload, after) = rest.split_at(words);
            rest = after;
            let array = self.like.array();
            let state = Engine::state_of_output(kind, array, bytemuck::cast_slice(payload));
            states.push(state.map_err(|error| damaged(error.to_string()))?);
        }
        Partial::new(dtype, shape, ops, vec![states])
    }
}

impl fmt::Debug for PreparedPartial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedPartial")
            .field("question", &self.question)
            .field("like", &self.like)
            .finish_non_exhaustive()
    }
}
