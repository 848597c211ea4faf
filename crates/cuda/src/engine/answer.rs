//! What the device can finish: which number of which state.

use super::catalogue::{FINISH_THREADS, FINISH_WORDS};
use super::kernels::{Program, Tally};
use super::number::Number;
use super::{Engine, lock};
use crate::device::{Address, Argument, Launch, Stream};
use crate::{Error, Result};
use warpfold_core::DType;
use warpfold_core::op::{Kind, Op};

/// The number that is asked of a state; `Ask` in `kernels/answer.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Ask {
    Total,
    Mean,
    Least,
    Greatest,
    Count,
    Nonzero,
    Nans,
    Any,
    All,
    ArgMin,
    ArgMax,
    Range,
    Magnitude,
    And,
    Or,
    Xor,
    Norm,
    Variance,
    Deviation,
    /// The only number of a state: of a product, and of a sum of exponentials.
    Root,
    /// How many elements are no NaNs.
    Numbers,
}

/// An operation whose answers are finished on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) ask: Ask,
    pub(super) kind: Kind,
    /// The type of the elements.
    pub(super) dtype: DType,
    /// The type of the numbers.
    pub(super) out: DType,
    /// Whether NaNs are as if they were not there, where that matters.
    pub(super) omits: bool,
    /// Whether outputs that have nothing but the last element there could be are told of, as totals
    /// are that do not fit: by the walk over views, of extremes.
    pub(super) tells: bool,
    /// The bits of one more element of every output: of sums and products of floats, by the walk over
    /// views.
    pub(super) initial: Option<u64>,
    /// The delta degrees of freedom.
    ddof: u32,
}

impl Answer {
    /// How an operation is finished there, if it is.
    pub(super) fn of(number: impl Into<Number>, dtype: DType) -> Option<Answer> {
        let Number { op, omits_nan, ddof } = number.into();
        let ask = match op {
            _ if !op.supports(dtype) => return None,
            Op::Sum | Op::Norm1 | Op::SumSq => Ask::Total,
            Op::Mean => Ask::Mean,
            Op::Norm2 => Ask::Norm,
            Op::Var => Ask::Variance,
            Op::Std => Ask::Deviation,
            Op::Min => Ask::Least,
            Op::Max => Ask::Greatest,
            Op::Count => Ask::Count,
            Op::CountNonzero => Ask::Nonzero,
            Op::CountNan => Ask::Nans,
            Op::Any => Ask::Any,
            Op::All => Ask::All,
            Op::ArgMin => Ask::ArgMin,
            Op::ArgMax => Ask::ArgMax,
            Op::Range => Ask::Range,
            Op::NormInf => Ask::Magnitude,
            Op::And => Ask::And,
            Op::Or => Ask::Or,
            Op::Xor => Ask::Xor,
            Op::Prod | Op::LogSumExp if dtype.is_float() => Ask::Root,
            _ => return None,
        };
        let omits = omits_nan && dtype.is_float() && op != Op::CountNan;
        Some(Answer {
            ask,
            kind: op.kind(),
            dtype,
            out: op.answer_type(dtype),
            omits,
            tells: false,
            initial: None,
            ddof,
        })
    }

    /// What is asked of payloads, as kernels are told it: the delta degrees of freedom are
    /// behind its first byte.
    fn asked_of_payloads(&self) -> u32 {
        self.ask as u32 | self.ddof << 8
    }

    /// What is asked of elements: where these are put in order, whether they have signs is
    /// behind the first byte, as kernels for integers that have none serve all.
    pub(super) fn asked(&self) -> u32 {
        let ordered = matches!(self.tally(), Some(Tally::Extremes | Tally::Positions));
        self.asked_of_payloads() | u32::from(ordered && self.dtype.is_signed_int()) << 8
    }

    /// What makes the number of any rows without a payload, if anything does:
    /// what comes in the place of elements that there
    /// are not would widen a range, and counts without NaNs are finished from payloads.
    pub(super) fn tally(&self) -> Option<Tally> {
        let of_squares = matches!(self.kind, Kind::SquareSum | Kind::Moments);
        Some(match self.ask {
            _ if of_squares && !self.dtype.is_float() => Tally::IntegerSquares,
            Ask::Count | Ask::All if self.omits => return None,
            Ask::Norm => Tally::Squares,
            Ask::Variance | Ask::Deviation => Tally::Variances,
            Ask::Total if of_squares => Tally::Squares,
            Ask::Total | Ask::Mean => Tally::Sums,
            Ask::Least | Ask::Greatest | Ask::Magnitude => Tally::Extremes,
            Ask::Count | Ask::Nonzero | Ask::Nans | Ask::Any | Ask::All | Ask::Numbers => {
                Tally::Counts
            }
            Ask::ArgMin | Ask::ArgMax => Tally::Positions,
            Ask::And | Ask::Or | Ask::Xor => Tally::Bits,
            Ask::Root if self.kind == Kind::Prod => Tally::Products,
            Ask::Root => Tally::LogSumExps,
            Ask::Range => return None,
        })
    }

    /// Whether it is of a total, of elements or of squares.
    pub(super) fn is_of_sums(&self) -> bool {
        matches!(self.ask, Ask::Total | Ask::Mean | Ask::Norm | Ask::Variance | Ask::Deviation)
    }

    /// What kernels are told of it beside what is asked: `Flags` in `kernels/layout.cuh`, `TELLS` in
    /// `kernels/strided_extremes.cuh`.
    pub(super) fn flags(&self) -> u32 {
        let has_initial = self.initial.is_some();
        let flags = [self.kind == Kind::AbsSum, self.omits, self.tells, has_initial];
        flags.iter().rev().fold(0, |all, &flag| all << 1 | u32::from(flag))
    }

    /// The same about segments and groups, whose counts do not know how many NaNs are omitted: what
    /// is no NaN is counted then.
    pub(super) fn of_parts(number: impl Into<Number>, dtype: DType) -> Option<Answer> {
        let answer = Answer::of(number, dtype)?;
        Some(match answer.ask {
            Ask::Count if answer.omits => Answer { ask: Ask::Numbers, omits: false, ..answer },
            // NaNs are not zero.
            Ask::All => Answer { omits: false, ..answer },
            _ => answer,
        })
    }

    /// How payloads become numbers: `Manner` in `kernels/finish.cuh`.
    fn manner(&self) -> u32 {
        let in_f64 = self.out == DType::F64 && self.dtype.is_float();
        u32::from(self.omits) | u32::from(in_f64) << 1
    }

    /// Whether the number of `len` elements may not fit its type: totals of
    /// integers of 64 bits, of squares of 32 bits and more, or of 2^32 and more
    /// shorter ones. Or whether there may be none: an extreme of nothing but NaNs that
    /// are omitted.
    pub(super) fn may_overflow(&self, len: usize) -> bool {
        let extremes = [Ask::Least, Ask::Greatest, Ask::ArgMin, Ask::ArgMax, Ask::Range];
        if (self.omits || self.tells) && extremes.contains(&self.ask) {
            return true;
        }
        let integers = self.ask == Ask::Total && !self.dtype.is_float();
        let long = if self.kind == Kind::SquareSum { 4 } else { 8 };
        integers && (self.dtype.size() >= long || len as u64 >= 1 << 32)
    }
}

/// Payloads in a device's memory, and where their numbers go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payloads {
    pub(super) at: Address,
    /// Words from one to the next.
    pub(super) words: usize,
    pub(super) count: usize,
    /// Where the first one's number goes.
    pub(super) to: Address,
    /// Numbers from one to the next.
    pub(super) step: usize,
    /// Whether the launch ahead on the stream left them.
    pub(super) is_ahead: bool,
}

impl Engine {
    /// Makes numbers of `count` payloads in the device's memory, as
    /// [`reduce_into`](Self::reduce_into) leaves them, one behind the other:
    /// what [`AnyState::finish`](warpfold_core::op::AnyState::finish) answers
    /// under the default rules. Says whether they were made: `false` where an
    /// operation is not finished on devices, or where a total does not fit its
    /// type, and then what is at `to` means nothing. Waits only if totals may
    /// not fit: those of integers.
    ///
    /// # Errors
    /// [`Error::Array`] for misaligned addresses; what the device says.
    ///
    /// # Safety
    /// The payloads of the operation's kind, of at least one element each, were
    /// left by what comes before on the stream, and nobody else writes to them
    /// or to the numbers until it was waited for.
    pub unsafe fn finish_into(
        &self,
        op: Op,
        dtype: DType,
        payloads: Address,
        count: usize,
        to: Address,
        stream: Stream,
    ) -> Result<bool> {
        let Some(answer) = Answer::of(op, dtype) else { return Ok(false) };
        let Some(bytes) = Engine::payload_len(answer.kind, dtype) else { return Ok(false) };
        for (address, dtype) in [(payloads, DType::U64), (to, answer.out)] {
            check_alignment(address, count, dtype)?;
        }
        let words = bytes / 8;
        let all = Payloads { at: payloads, words, count, to, step: 1, is_ahead: false };
        let scratch = self.scratch(stream)?;
        let mut scratch = lock(&scratch);
        // SAFETY: passed on from the caller.
        unsafe { self.finish(answer, &all, scratch.overflow(), stream)? };
        if !answer.may_overflow(usize::MAX) {
            return Ok(true);
        }
        scratch.saw_overflow(&*self.device, stream).map(|seen| !seen)
    }

    /// Launches the kernel that makes numbers of payloads.
    ///
    /// # Safety
    /// As for [`finish_into`](Self::finish_into); `overflow` is the word for
    /// them in the stream's scratch memory.
    pub(super) unsafe fn finish(
        &self,
        answer: Answer,
        payloads: &Payloads,
        overflow: Address,
        stream: Stream,
    ) -> Result<()> {
        let kernel = self.program(Program::finish(answer.kind, answer.dtype))?;
        let Payloads { at, words, count, to, step, is_ahead } = *payloads;
        let most = 1 << 30;
        // In shared memory payloads are an odd number of words apart.
        let each = (FINISH_WORDS / (words | 1)).clamp(1, FINISH_THREADS) as u32;
        for first in (0..count).step_by(most) {
            let now = (count - first).min(most) as u32;
            let launch = Launch::linear(now.div_ceil(each), FINISH_THREADS as u32);
            let launch = if is_ahead { launch.dependent() } else { launch };
            let size = answer.out.size();
            let arguments = [
                Argument::from(at + 8 * (first * words) as u64),
                Argument::from(words as u64),
                Argument::from(now),
                Argument::from(each),
                Argument::from(answer.asked_of_payloads()),
                Argument::from(answer.manner()),
                Argument::from(to + (first * step * size) as u64),
                Argument::from(step as i64),
                Argument::from(overflow),
            ];
            // SAFETY: the kernel has these parameters; it reads the payloads and
            // writes the numbers and the word for overflow.
            unsafe { self.device.launch(stream, kernel, &launch, &arguments)? };
        }
        Ok(())
    }
}

/// Refuses an address that is no place for numbers of this type.
pub(super) fn check_alignment(address: Address, count: usize, dtype: DType) -> Result<()> {
    if address.is_multiple_of(dtype.size() as u64) {
        return Ok(());
    }
    let why = "not aligned for the type";
    Err(Error::Array { address, len: count as u64, dtype, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_that_nobody_watches_fit() {
        let mut watched = 0;
        for dtype in DType::ALL.into_iter().filter(|d| !d.is_float()) {
            let bits = 8 * dtype.size();
            let largest: u128 = match dtype {
                DType::Bool => 1,
                _ if dtype.is_signed_int() => 1 << (bits - 1),
                _ => (1 << bits) - 1,
            };
            for op in [Op::Sum, Op::Norm1, Op::SumSq] {
                let answer = Answer::of(op, dtype).unwrap();
                let most =
                    if answer.out == DType::I64 { i64::MAX as u128 } else { u64::MAX.into() };
                let term = if op == Op::SumSq { largest * largest } else { largest };
                for len in [1, 2, 1 << 16, (1 << 32) - 1] {
                    let fits = term.checked_mul(len as u128).is_some_and(|total| total <= most);
                    assert!(fits || answer.may_overflow(len), "{op} of {len} {dtype}");
                    watched += usize::from(answer.may_overflow(len));
                }
            }
        }
        assert!(watched > 0);
    }
}
