//! Sums, sums of products, and moments.

use super::memory::OutOfMemory;
use super::table::{Rows, Table, as_same, items};
use super::totals::{Term, Totals, Wide};
use super::words::damaged;
use warpfold_core::element::{bf16, f16};
use warpfold_core::exact::Superacc;
use warpfold_core::exact::format::Format;
use warpfold_core::exact::round::Truncated;
use warpfold_core::exact::short_variance;
use warpfold_core::op::{Kind, Moments, Op, Rules, Squares, State, Sums, Value};
use warpfold_core::{DType, Element, Result, Scalar};

/// Bits of an element's significand.
const fn width(dtype: DType) -> u32 {
    match dtype {
        DType::Bool => 1,
        DType::I8 | DType::U8 | DType::BF16 => 8,
        DType::F16 => 11,
        DType::I16 | DType::U16 => 16,
        DType::F32 => 24,
        DType::I32 | DType::U32 => 32,
        DType::F64 => 53,
        _ => 64,
    }
}

/// Whether elements may be negative.
const fn is_signed(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_signed_int()
}

/// Elements, or their magnitudes.
#[derive(Clone)]
pub(super) struct SumTable<T: Element> {
    kind: Kind,
    totals: Totals<T::Sum, i128>,
}

/// Squares, or products of two arrays.
#[derive(Clone)]
pub(super) struct ProductTable<T: Element> {
    kind: Kind,
    totals: Totals<T::Dot, Wide>,
}

impl<T: Element> SumTable<T> {
    pub(super) fn new(kind: Kind) -> Self {
        SumTable { kind, totals: Totals::new(width(T::DTYPE)) }
    }

    fn add(&mut self, rows: Rows<'_>) {
        let terms = items::<T>(rows.items).iter().map(|x| Term::from(x.parts()));
        if const { is_signed(T::DTYPE) } && self.kind == Kind::AbsSum {
            self.totals.add_all(rows.groups, terms.map(Term::abs));
        } else {
            self.totals.add_all(rows.groups, terms);
        }
    }

    fn state(&self, group: u32) -> Sums<T> {
        let mut state = Sums::identity(self.kind);
        state.acc = self.totals.sum(group);
        state
    }
}

impl<T: Element> ProductTable<T> {
    pub(super) fn new(kind: Kind) -> Self {
        ProductTable { kind, totals: Totals::new(2 * width(T::DTYPE)) }
    }

    fn add(&mut self, rows: Rows<'_>) {
        let left = items::<T>(rows.items);
        let right = if self.kind == Kind::Dot { items::<T>(rows.others) } else { left };
        let terms = left.iter().zip(right).map(|(x, y)| Term::product(x.parts(), y.parts()));
        self.totals.add_all(rows.groups, terms);
    }

    fn state(&self, group: u32) -> Squares<T> {
        let mut state = Squares::identity(self.kind);
        state.acc = self.totals.sum(group);
        state
    }
}

/// Whether an answer is a float that is rounded once: of integers, of which decimals are some, those that
/// are no totals.
fn is_rounded(dtype: DType, op: Op, rules: &Rules) -> bool {
    let totals = matches!(op, Op::Sum | Op::Norm1 | Op::SumSq | Op::Dot);
    rules.out.is_none() && (dtype.is_float() || !totals && rules.decimals.is_none())
}

/// What a cell alone answers: a float that needs no more than a division and a rounding.
#[inline]
fn simple(dtype: DType, sum: Option<(Truncated, u64)>, op: Op, rules: &Rules) -> Option<Value> {
    if !is_rounded(dtype, op, rules) {
        return None;
    }
    let (sum, count) = sum?;
    Some(rounded(
        dtype,
        match op {
            Op::Sum | Op::Norm1 | Op::SumSq | Op::Dot => sum,
            Op::Mean if count > 0 => sum.divide(count),
            Op::Norm2 => sum.sqrt(),
            _ => return None,
        },
    ))
}

/// What two cells answer, of elements and of their squares.
fn spread(
    dtype: DType,
    cells: [Option<(Truncated, u64)>; 2],
    op: Op,
    rules: &Rules,
) -> Option<Value> {
    if !is_rounded(dtype, op, rules) || rules.ddof_fraction != 0 {
        return None;
    }
    let [(sum, count), (squares, _)] = [cells[0]?, cells[1]?];
    let found = short_variance(sum, squares, count, rules.ddof)?;
    Some(rounded(
        dtype,
        match op {
            Op::Var => found,
            Op::Std => found.sqrt(),
            _ => return None,
        },
    ))
}

/// A number as a float of this type, of integers as f64.
fn rounded(dtype: DType, number: Truncated) -> Value {
    Value::One(match dtype {
        DType::F16 => Scalar::F16(number.round::<f16>()),
        DType::BF16 => Scalar::BF16(number.round::<bf16>()),
        DType::F32 => Scalar::F32(number.round::<f32>()),
        _ => Scalar::F64(number.round::<f64>()),
    })
}

/// Refuses a sum that elements of a type cannot have.
#[inline(never)]
fn check<F: Format>(kind: Kind, dtype: DType, acc: &Superacc<F>) -> Result<()> {
    let positive = matches!(kind, Kind::AbsSum | Kind::SquareSum) || !is_signed(dtype);
    if !dtype.is_float() && (acc.nans, acc.pos_infs, acc.neg_infs) != (0, 0, 0) {
        return Err(damaged("integers with NaNs or infinities"));
    }
    let below = acc.neg_infs > 0 || acc.with_canonical(|l| l.last().is_some_and(|&l| l < 0));
    if positive && below {
        return Err(damaged("a negative sum of non-negative terms"));
    }
    Ok(())
}

macro_rules! table {
    ($table:ident) => {
        impl<T: Element> Table for $table<T> {
            fn states(&self) -> (Kind, DType) {
                (self.kind, T::DTYPE)
            }

            fn grow(&mut self, groups: usize) -> Result<(), OutOfMemory> {
                self.totals.grow(groups)
            }

            fn absorb(&mut self, rows: Rows<'_>) {
                assert_eq!(rows.groups.len() * size_of::<T>(), rows.items.len());
                self.add(rows);
            }

            fn merge(&mut self, other: &dyn Table, groups: &[u32]) -> bool {
                let Some(other) = as_same(self, other) else { return false };
                self.totals.merge(&other.totals, groups);
                true
            }

            fn scale(&mut self, factor: u64) -> bool {
                // Terms of products have the factor twice.
                let times = if matches!(self.kind, Kind::SquareSum | Kind::Dot) { 2 } else { 1 };
                let scaled =
                    if T::DTYPE.is_float() { None } else { self.totals.scaled(factor, times) };
                scaled.map(|totals| self.totals = totals).is_some()
            }

            fn ask(&self, group: u32) {
                self.totals.ask(group);
            }

            fn value(&self, op: Op, rules: &Rules, group: u32, _rows: u64) -> Result<Value> {
                match simple(T::DTYPE, self.totals.simple(group), op, rules) {
                    Some(value) => Ok(value),
                    None => self.state(group).finish(op, rules),
                }
            }

            fn write(&self, group: u32, out: &mut Vec<u8>) {
                self.totals.write(group, out);
            }

            fn read(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
                let acc = self.totals.read(group, bytes)?;
                check(self.kind, T::DTYPE, &acc)
            }

            fn bytes(&self) -> usize {
                self.totals.bytes()
            }
        }
    };
}
table!(SumTable);
table!(ProductTable);

/// Sums beside sums of squares.
#[derive(Clone)]
pub(super) struct MomentTable<T: Element> {
    sums: SumTable<T>,
    squares: ProductTable<T>,
}

impl<T: Element> MomentTable<T> {
    pub(super) fn new() -> Self {
        let squares = ProductTable::new(Kind::SquareSum);
        MomentTable { sums: SumTable::new(Kind::Sum), squares }
    }

    fn state(&self, group: u32) -> Moments<T> {
        let mut state = Moments::identity(Kind::Moments);
        state.sum = self.sums.totals.sum(group);
        state.squares = self.squares.totals.sum(group);
        state
    }
}

impl<T: Element> Table for MomentTable<T> {
    fn states(&self) -> (Kind, DType) {
        (Kind::Moments, T::DTYPE)
    }

    fn grow(&mut self, groups: usize) -> Result<(), OutOfMemory> {
        self.sums.grow(groups)?;
        self.squares.grow(groups)
    }

    fn absorb(&mut self, rows: Rows<'_>) {
        self.sums.absorb(rows);
        self.squares.absorb(rows);
    }

    fn merge(&mut self, other: &dyn Table, groups: &[u32]) -> bool {
        let Some(other) = as_same(self, other) else { return false };
        self.sums.totals.merge(&other.sums.totals, groups);
        self.squares.totals.merge(&other.squares.totals, groups);
        true
    }

    fn scale(&mut self, factor: u64) -> bool {
        let (mut sums, mut squares) = (self.sums.clone(), self.squares.clone());
        let scaled = sums.scale(factor) && squares.scale(factor);
        if scaled {
            (self.sums, self.squares) = (sums, squares);
        }
        scaled
    }

    fn ask(&self, group: u32) {
        self.sums.ask(group);
        self.squares.ask(group);
    }

    fn value(&self, op: Op, rules: &Rules, group: u32, rows: u64) -> Result<Value> {
        match op {
            Op::Sum | Op::Mean => self.sums.value(op, rules, group, rows),
            Op::SumSq | Op::Norm2 => self.squares.value(op, rules, group, rows),
            _ => {
                let cells = [self.sums.totals.simple(group), self.squares.totals.simple(group)];
                match spread(T::DTYPE, cells, op, rules) {
                    Some(value) => Ok(value),
                    None => self.state(group).finish(op, rules),
                }
            }
        }
    }

    fn write(&self, group: u32, out: &mut Vec<u8>) {
        self.sums.write(group, out);
        self.squares.write(group, out);
    }

    fn read(&mut self, group: u32, bytes: &mut &[u8]) -> Result<()> {
        self.sums.read(group, bytes)?;
        self.squares.read(group, bytes)?;
        let [count, nans, pos, neg] = self.sums.totals.sum(group).counters();
        if self.squares.totals.sum(group).counters() != [count, nans, pos + neg, 0] {
            return Err(damaged("its sum and its sum of squares count different elements"));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.squares.bytes()
    }
}
