//! States that absorb with the kernels.

use crate::exact::{self, Elements, Plain, Product, Tuner};
use crate::integer;
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use crate::slices::Slices;
use crate::{count, order};
use warpfold_core::Element;
use warpfold_core::element::{Bool8, bf16, f16};
use warpfold_core::exact::Superacc;
use warpfold_core::fpenv;
use warpfold_core::layout::Traversal;
use warpfold_core::op::float_prod::Factors;
use warpfold_core::op::logsumexp::{BlockSum, ExpElement};
use warpfold_core::op::{
    Bits, Counts, Extrema, FloatElement, FloatLogSumExp, FloatProd, IntLogSumExp, IntProd, Kind,
    Moments, Run, Squares, State, Summary, Sums,
};

/// The context of a worker: the instruction set, and what its kernels have learnt about
/// the data so far.
#[derive(Clone, Debug)]
pub struct Context {
    isa: Isa,
    /// One for sums and one for sums of products.
    tuners: [Tuner; 2],
}

impl Context {
    /// Nothing learnt yet.
    #[must_use]
    pub fn new(isa: Isa) -> Self {
        Context { isa, tuners: [Tuner::default(); 2] }
    }
}

/// A state with a CPU kernel.
pub trait Accelerate: State {
    /// Absorbs elements of which the first has position `start`; the same
    /// result as [`State::absorb`]. States of pairs take both arrays, others
    /// the first.
    fn accelerate(&mut self, start: u64, slices: Slices<'_, Self::Item>, context: &mut Context);

    /// Absorbs elements whose positions are those of `walk`, beginning at index
    /// `base`. States that do not ask for indices take them as they come.
    fn accelerate_along(
        &mut self,
        start: u64,
        slices: Slices<'_, Self::Item>,
        walk: &Traversal,
        base: u64,
        context: &mut Context,
    ) {
        let _ = walk;
        self.accelerate(start + base, slices, context);
    }
}

/// An element type with exact kernels: every one has them.
pub trait CpuElement: Element {
    /// The exact sum of a short slice, rounded once, without a state; `None` where
    /// there is no such path.
    #[inline]
    fn short_sum(_items: &[Self], _isa: Isa) -> Option<Self> {
        None
    }
    /// Adds elements to an exact sum, or their absolute values.
    fn add(acc: &mut Superacc<Self::Sum>, items: &[Self], absolute: bool, context: &mut Context);
    /// Adds products of the elements of two arrays to an exact sum, or the squares of one's.
    fn add_products(acc: &mut Superacc<Self::Dot>, pairs: Slices<'_, Self>, context: &mut Context);
    /// Adds elements to one exact sum and their squares to another.
    fn add_moments(
        sum: &mut Superacc<Self::Sum>,
        squares: &mut Superacc<Self::Dot>,
        items: &[Self],
        context: &mut Context,
    ) {
        // One after the other over a block that stays in the cache.
        for items in items.chunks(exact::BLOCK) {
            Self::add(sum, items, false, context);
            Self::add_products(squares, Slices::one(items), context);
        }
    }
}

macro_rules! float {
    ($($t:ty, $short:expr;)*) => {$(
        impl CpuElement for $t {
            #[inline]
            fn short_sum(items: &[Self], isa: Isa) -> Option<Self> {
                let short: Option<fn(&[$t], Isa) -> Option<$t>> = $short;
                short.and_then(|short| short(items, isa))
            }
            fn add(acc: &mut Superacc<Self::Sum>, items: &[Self], absolute: bool, c: &mut Context) {
                let slices = Slices::one(items);
                if absolute {
                    exact::absorb::<Elements<$t, true>, _>(acc, slices, &mut c.tuners[0], c.isa);
                } else {
                    exact::absorb::<Plain<$t>, _>(acc, slices, &mut c.tuners[0], c.isa);
                }
            }
            fn add_products(acc: &mut Superacc<Self::Dot>, xy: Slices<'_, Self>, c: &mut Context) {
                // Those of one array with itself are squares, whoever asks for them.
                if core::ptr::eq(xy.items(), xy.others()) {
                    exact::absorb::<Product<$t, false>, _>(acc, xy, &mut c.tuners[1], c.isa);
                } else {
                    exact::absorb::<Product<$t, true>, _>(acc, xy, &mut c.tuners[1], c.isa);
                }
            }
            fn add_moments(
                sum: &mut Superacc<Self::Sum>,
                squares: &mut Superacc<Self::Dot>,
                items: &[Self],
                c: &mut Context,
            ) {
                exact::absorb_moments::<$t, _, _>(sum, squares, items, &mut c.tuners, c.isa);
            }
        }
    )*};
}
float! {
    f16, None;
    bf16, None;
    f32, Some(exact::short::sum_f32);
    f64, Some(exact::short::sum_f64);
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl CpuElement for $t {
            fn add(acc: &mut Superacc<Self::Sum>, items: &[Self], absolute: bool, c: &mut Context) {
                // No integer without a sign is smaller than its magnitude.
                if absolute && const { <$t>::DTYPE.is_signed_int() } {
                    integer::absorb::<_, integer::Absolute, _>(acc, Slices::one(items), c.isa);
                } else {
                    integer::absorb::<_, integer::Plain, _>(acc, Slices::one(items), c.isa);
                }
            }
            fn add_products(acc: &mut Superacc<Self::Dot>, xy: Slices<'_, Self>, c: &mut Context) {
                integer::absorb::<_, integer::Product, _>(acc, xy, c.isa);
            }
        }
    )*};
}
integer!(i8, i16, i32, i64, u8, u16, u32, u64, Bool8);

impl<T: CpuElement> Accelerate for Sums<T> {
    fn accelerate(&mut self, _: u64, slices: Slices<'_, T>, context: &mut Context) {
        let absolute = self.kind() == Kind::AbsSum;
        T::add(&mut self.acc, slices.items(), absolute, context);
    }
}

impl<T: CpuElement> Accelerate for Squares<T> {
    fn accelerate(&mut self, _: u64, slices: Slices<'_, T>, context: &mut Context) {
        let one = Slices::one(slices.items());
        let slices = if self.kind() == Kind::Dot { slices } else { one };
        T::add_products(&mut self.acc, slices, context);
    }
}

impl<T: CpuElement> Accelerate for Moments<T> {
    fn accelerate(&mut self, _: u64, slices: Slices<'_, T>, context: &mut Context) {
        T::add_moments(&mut self.sum, &mut self.squares, slices.items(), context);
    }
}

/// Elements of which extremes are sought at once, before their positions.
const SEARCH_BLOCK: usize = 8192;

/// Lets extrema absorb elements whose first has index `start`, with the indices that are known of
/// the first NaN, and that `place` finds of extremes. What begins at index `from` may be equal.
fn absorb_found<T: Element>(
    state: &mut Extrema<T>,
    start: u64,
    from: u64,
    items: &[T],
    found: &order::Summary<T::Key>,
    first_nan: Option<u64>,
    place: &dyn Fn(T::Key) -> u64,
) {
    let some = items.len() as u64 > found.nans;
    // Only a better extreme is worth a search; one that is equal, if runs do not come in order.
    let place = |key, wanted: bool| (key, if wanted { place(key) } else { u64::MAX });
    let min = some.then(|| place(found.min, state.may_lower(found.min, from)));
    let max = some.then(|| place(found.max, state.may_raise(found.max, from)));
    let (count, nans) = (items.len() as u64, found.nans);
    state.absorb_summary(Summary { start, count, nans, first_nan, min, max });
}

impl<T: CpuElement> Accelerate for Extrema<T> {
    fn accelerate(&mut self, start: u64, slices: Slices<'_, T>, context: &mut Context) {
        let positional = self.kind() == Kind::ArgExtrema;
        let block = if positional { SEARCH_BLOCK } else { slices.items().len().max(1) };
        let mut start = start;
        for items in slices.items().chunks(block) {
            let found = order::summarise(items, context.isa);
            let first_nan = found.first_nan.map(|i| start + i as u64);
            absorb_found(self, start, start, items, &found, first_nan, &|key| {
                let place =
                    if positional { order::position(items, key, context.isa) } else { None };
                place.map_or(u64::MAX, |i| start + i as u64)
            });
            start += items.len() as u64;
        }
    }

    fn accelerate_along(
        &mut self,
        start: u64,
        slices: Slices<'_, T>,
        walk: &Traversal,
        base: u64,
        context: &mut Context,
    ) {
        if self.kind() != Kind::ArgExtrema || walk.in_order {
            return self.accelerate(start + base, slices, context);
        }
        let items = slices.items();
        let found = order::summarise(items, context.isa);
        let first_nan =
            (found.nans > 0).then(|| base + least_index(walk, start, items, |x| x.is_nan()));
        // `start` and `count` say which positions are held: the whole walk is
        // absorbed in the end, so that positions serve as well as indices.
        absorb_found(self, base + start, 0, items, &found, first_nan, &|key| {
            let equals = |x: &T| T::numeric(x.key()) == T::numeric(key);
            base + least_index(walk, start, items, equals)
        });
    }
}

/// Elements of which it is asked at once whether one is sought.
const ASKED: usize = 64;

/// The least index of the elements that `is` says it is, which begin at position `start`;
/// `u64::MAX` if there are none.
#[inline]
fn least_index<T>(
    walk: &Traversal,
    start: u64,
    items: &[T],
    is: impl Fn(&T) -> bool + Copy,
) -> u64 {
    // Indices ascend or descend along each row of the innermost dimension, and nowhere else.
    let (inner, step) = walk.dims.last().map_or((1, 1), |dim| (dim.len, dim.index_step));
    let mut least = u64::MAX;
    for (at, items) in (start..).step_by(ASKED).zip(items.chunks(ASKED)) {
        // Most have none, which is asked for without a branch an element, however short rows are.
        if !items.iter().fold(false, |any, x| any | is(x)) {
            continue;
        }
        let (mut at, mut rest, mut len) = (at, items, inner - at as usize % inner);
        while !rest.is_empty() {
            let (row, others) = rest.split_at(len.min(rest.len()));
            let place = if step < 0 { row.iter().rposition(is) } else { row.iter().position(is) };
            least = least.min(place.map_or(u64::MAX, |i| walk.index(at + i as u64)));
            (at, rest, len) = (at + row.len() as u64, others, inner);
        }
    }
    least
}

impl<T: CpuElement> Accelerate for Counts<T> {
    fn accelerate(&mut self, _: u64, slices: Slices<'_, T>, context: &mut Context) {
        let counted = count::count(slices.items(), context.isa);
        self.count += slices.items().len() as u64;
        self.nonzero += counted.nonzero;
        self.nans += counted.nans;
    }
}

impl<T: CpuElement> Accelerate for Bits<T> {
    fn accelerate(&mut self, _: u64, slices: Slices<'_, T>, context: &mut Context) {
        if T::DTYPE == warpfold_core::DType::Bool {
            // Any byte but 0 is true: bits alone do not say, a count does.
            let nonzero = count::count(slices.items(), context.isa).nonzero;
            self.and &= u64::from(nonzero == slices.items().len() as u64);
            self.or |= u64::from(nonzero > 0);
            self.xor ^= nonzero & 1;
            return;
        }
        let [and, or, xor] = count::fold_bits(slices.items(), context.isa);
        self.and &= and;
        self.or |= or;
        self.xor ^= xor;
    }
}

/// States that take in elements block by block, whose parts are rounded: each block by a kernel.
macro_rules! by_blocks {
    ($($state:ident of $element:ident, $kernel:ident makes $block:ident;)*) => {$(
        /// A block, compiled for an instruction set.
        struct $kernel<'a, T>(&'a [T]);

        impl<T: $element> Kernel for $kernel<'_, T> {
            type Out = $block;

            #[inline(always)]
            unsafe fn run<S: Simd>(self) -> $block {
                $block::of(self.0)
            }
        }

        impl<T: $element> Accelerate for $state<T> {
            fn accelerate(&mut self, _: u64, slices: Slices<'_, T>, context: &mut Context) {
                let isa = context.isa;
                fpenv::usual(|| {
                    self.absorb_with(slices.items(), |items| dispatch(isa, $kernel(items)));
                });
            }
        }
    )*};
}
by_blocks! {
    FloatProd of FloatElement, FactorsOf makes Factors;
    FloatLogSumExp of ExpElement, Exponentials makes BlockSum;
}

macro_rules! as_it_is {
    ($($state:ident),*) => {$(
        impl<T: CpuElement> Accelerate for $state<T> {
            fn accelerate(&mut self, start: u64, slices: Slices<'_, T>, _: &mut Context) {
                self.absorb(Run { start, items: slices.items(), others: &[] });
            }
        }
    )*};
}
as_it_is!(IntProd, IntLogSumExp);
