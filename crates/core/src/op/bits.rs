//! Bitwise and, or, exclusive or.

use super::{Kind, Op, Rules, Run, State, Value, answer, payload};
use crate::DType;
use crate::element::{Element, Key};
use crate::error::Result;
use core::marker::PhantomData;

/// The three bitwise folds of integers; of truth values, the logical ones.
///
/// Answers [`Op::And`], [`Op::Or`] and [`Op::Xor`]. The folds are the
/// elements' bits, zero-extended; a truth value is the bit 0 or 1, whatever
/// byte the array stores.
#[derive(Clone, Copy, Debug)]
pub struct Bits<T: Element> {
    /// The conjunction; all ones of no elements.
    pub and: u64,
    /// The disjunction.
    pub or: u64,
    /// The exclusive or.
    pub xor: u64,
    item: PhantomData<T>,
}

impl<T: Element> Bits<T> {
    /// The bits that an element has.
    pub const MASK: u64 = match T::DTYPE {
        DType::Bool => 1,
        dtype => u64::MAX >> (64 - 8 * dtype.size()),
    };
}

impl<T: Element> State for Bits<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        Kind::Bits
    }

    fn identity(kind: Kind) -> Self {
        assert_eq!(kind, Kind::Bits);
        Bits { and: Self::MASK, or: 0, xor: 0, item: PhantomData }
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        for x in run.items {
            // The key of a truth value is 0 or 1, that of an integer itself.
            let bits = x.key().to_bits64() & Self::MASK;
            self.and &= bits;
            self.or |= bits;
            self.xor ^= bits;
        }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.and &= other.and;
        self.or |= other.or;
        self.xor ^= other.xor;
        Ok(())
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        finish(op, T::DTYPE, [self.and, self.or, self.xor], rules)
    }

    fn write(&self, out: &mut Vec<u8>) {
        [self.and, self.or, self.xor].iter().for_each(|&b| payload::write_u64(out, b));
    }

    fn read(kind: Kind, bytes: &[u8]) -> Result<Self> {
        payload::check_kind(kind, &[Kind::Bits])?;
        let [and, or, xor] = payload::read_words(bytes)?;
        let empty = and == Self::MASK && or == 0 && xor == 0;
        let within = (and | or | xor) & !Self::MASK == 0 && (and | xor) & !or == 0;
        if !empty && !within {
            return Err(payload::damaged("its bits contradict each other"));
        }
        Ok(Bits { and, or, xor, item: PhantomData })
    }
}

/// Compiled once for all types of elements.
fn finish(op: Op, dtype: DType, [and, or, xor]: [u64; 3], rules: &Rules) -> Result<Value> {
    let bits = match op {
        _ if !op.supports(dtype) => return Err(answer::not_answered(op, dtype)),
        Op::And => and,
        Op::Or => or,
        Op::Xor => xor,
        _ => return Err(answer::not_answered(op, dtype)),
    };
    if dtype == DType::Bool {
        return answer::truth(op, dtype, bits != 0, rules).map(Value::One);
    }
    // Back to the value: bits are zero-extended, the value may be negative.
    let unused = 64 - 8 * dtype.size();
    let value = if dtype.is_signed_int() {
        i128::from(((bits << unused) as i64) >> unused)
    } else {
        i128::from(bits)
    };
    answer::integer(op, dtype, value, dtype, rules).map(Value::One)
}
