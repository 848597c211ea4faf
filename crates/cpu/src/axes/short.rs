//! Sums of a few floats for many outputs, without accumulators in memory.
//!
//! Of shorter floats than f64 a few elements, and their products, have a sum that f64 holds
//! nearly always: the rounding errors, which TwoSum gives exactly, are 0 then. Of f64 the
//! sum of the errors is exact nearly always; where the errors of that sum are 0, too, the sum
//! is two f64, which are added with one rounding. What else is lost is bounded: both ends of that
//! interval round alike nearly always. Products of shorter floats have twice their
//! bits, so that sums of them are rounded nearly always, but by far less than what the answer
//! is rounded by. What is not certain is left to accumulators that can do more.

use super::finish::Asked;
use super::fold::Left;
use super::measures::two_sums;
use super::round::{Narrow, two_sum};
use super::squares::FewSquares;
use super::sums::Operands;
use super::words::{Word, with_word};
use crate::exact::odd::sum_to_odd;
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;
use warpfold_core::exact::FloatFormat;
use warpfold_core::{DType, Element, fpenv, prefetch};

/// The most elements of an output that has a few.
pub(super) const MOST: usize = 64;
/// The same of f64: of more the errors of errors are not 0 often enough.
pub(super) const MOST_F64: usize = 16;

/// What is known of errors: nothing, whether they and the sum are all, or what else there may be.
const NONE: u8 = 0;
const EXACT: u8 = 1;
const BOUNDED: u8 = 2;

/// Lanes of two of the widest vectors.
const GROUP: usize = 16;

/// What is summed, known to the compiler: the elements.
const ELEMENT: u8 = 0;
/// Their magnitudes.
const MAGNITUDE: u8 = 1;
/// The products of pairs of elements that are shorter than f64. Of these sums there are no
/// errors, but the sums of magnitudes.
const PRODUCT: u8 = 2;
/// What the elements are more than the first of them, of those that are shorter than f64. Of these
/// sums there are no errors, but the sums of squares.
const DIFFERENCES: u8 = 3;
/// The difference of two f32, where it is exact.
const DIFFERENCE: u8 = 4;

/// Outputs of which one is left at most: where more are, others answer all.
const LEFT: usize = 4;

/// Leaves outputs to others; `None` if they are too many.
#[inline(always)]
pub(super) fn leave(
    left: &mut Left,
    some: impl Iterator<Item = usize>,
    outputs: usize,
) -> Option<()> {
    left.extend(some);
    (left.len() * LEFT <= outputs).then_some(())
}

/// Bytes ahead, in every row, at which the next columns are asked for: each row is a stream of
/// its own, and there are more of them than processors fetch ahead by themselves.
const AHEAD: usize = 256;
/// Bytes of a long element.
pub(super) const LONG: usize = 8;

/// Asks for what follows some elements of a row; not of long elements, of which a group has
/// several lines: the processor asks for those by itself.
#[inline(always)]
pub(super) fn ask_ahead<T>(row: *const T, elements: usize) {
    if const { size_of::<T>() < LONG } {
        for line in (0..elements * size_of::<T>()).step_by(64) {
            prefetch::near(row.cast::<u8>().wrapping_add(AHEAD + line));
        }
    }
}

/// The first elements of all rows of tables, and how many rows there are; `None` of none or
/// of more than [`MOST`].
///
/// # Safety
/// The tables have elements of this type, and at least `columns` columns.
#[inline(always)]
pub(super) unsafe fn rows_of<T>(
    tables: &[Table<'_, ()>],
    columns: usize,
) -> Option<([*const T; MOST], usize)> {
    let (mut rows, mut len) = ([core::ptr::null(); MOST], 0);
    for table in tables {
        assert!(table.columns() >= columns);
        // SAFETY: the caller vouches for the elements.
        let table = unsafe { table.of_elements::<T>() };
        for row in 0..table.rows() {
            *rows.get_mut(len)? = table.at(row, 0);
            len += 1;
        }
    }
    (len > 0).then_some((rows, len))
}

/// Rows of elements, each with one of every output.
pub(super) struct Short<O: Operands> {
    /// The first elements of the rows, of both arrays if there are two.
    rows: [[*const O::Item; MOST]; 2],
    pub(super) len: usize,
    /// Every row has so many elements that may be read: see [`new`](Self::new).
    columns: usize,
    /// Columns that are not answered.
    pub(super) left: Left,
}

impl<O: Operands> Short<O> {
    /// The first `columns` columns of tables; `None` of too many rows.
    ///
    /// # Safety
    /// All elements of the tables may be read as long as this is used, and are of this type.
    #[inline(always)]
    pub(super) unsafe fn new(tables: [&[Table<'_, ()>]; 2], columns: usize) -> Option<Short<O>> {
        // SAFETY: passed on from the caller.
        let (first, len) = unsafe { rows_of(tables[0], columns)? };
        let mut rows = [first; 2];
        if O::PAIRED {
            // SAFETY: as above.
            let (second, others) = unsafe { rows_of(tables[1], columns)? };
            assert!(others == len);
            rows[1] = second;
        }
        Some(Short { rows, len, columns, left: Left::new() })
    }

    /// One of the first elements and one of the last ones.
    pub(super) fn ends(&self) -> [&O::Item; 2] {
        let (first, last) = (self.rows[0][0], self.rows[0][self.len - 1]);
        // SAFETY: elements of the tables, which have a column at least: see `new`.
        unsafe { [&*first, &*last.add(self.columns - 1)] }
    }

    /// The rows of the first array.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[O::Item]> {
        let columns = self.columns;
        // SAFETY: as above.
        self.rows[0][..self.len]
            .iter()
            .map(move |&p| unsafe { core::slice::from_raw_parts(p, columns) })
    }

    /// The columns that are not answered, if most of them are `found`.
    pub(super) fn found(mut self, found: bool, columns: usize) -> Option<Left> {
        (found && leave(&mut self.left, core::iter::empty(), columns).is_some())
            .then_some(self.left)
    }

    /// Hands sums of these terms to `out`; whether most of them are found.
    fn hand<const TERM: u8>(&mut self, isa: Isa, out: impl Out) -> bool {
        dispatch_accumulators(isa, ShortSums::<_, _, TERM> { rows: self, out })
    }

    /// Answers what is made of the sums of elements; whether most answers are found.
    pub(super) fn sums(&mut self, isa: Isa, asked: Asked, to: &mut [O::Item]) -> bool {
        let (len, inverse) = (self.len as f64, 1.0 / self.len as f64);
        match asked {
            Asked::Sum => self.hand::<ELEMENT>(isa, Sums::<_, false> { len, inverse: 1.0, to }),
            Asked::Second => {
                self.hand::<MAGNITUDE>(isa, Sums::<_, false> { len, inverse: 1.0, to })
            }
            Asked::Mean if self.len.is_power_of_two() => {
                self.hand::<ELEMENT>(isa, Sums::<_, false> { len, inverse, to })
            }
            Asked::Mean => self.hand::<ELEMENT>(isa, Sums::<_, true> { len, inverse, to }),
            _ => false,
        }
    }

    /// The same of products of pairs, or of squares.
    pub(super) fn products(&mut self, isa: Isa, asked: Asked, to: &mut [O::Item]) -> bool {
        let (len, two_f32) = (self.len as f64, self.len == 2 && O::Item::DTYPE == DType::F32);
        let none = matches!(asked, Asked::Variance { ddof, .. } if ddof >= self.len as u64);
        if const { Self::WIDE && !O::PAIRED } && !none {
            let (rows, to) =
                (self.rows[0].map(<*const O::Item>::cast), bytemuck::cast_slice_mut(to));
            let (rows, left) = (&rows[..self.len], &mut self.left);
            let few = FewSquares { rows, asked, to, left };
            return fpenv::flushing(|| dispatch_accumulators(isa, few));
        }
        match asked {
            Asked::Sum if !O::PAIRED => false,
            Asked::Sum | Asked::Second => {
                self.hand::<PRODUCT>(isa, Bounded::<_, false> { len, to })
            }
            Asked::Root => self.hand::<PRODUCT>(isa, Bounded::<_, true> { len, to }),
            Asked::Variance { ddof: 0, .. } if self.len == 1 => {
                self.hand::<ELEMENT>(isa, Zeros { to })
            }
            // Of no degrees of freedom.
            Asked::Variance { .. } if none => {
                to.fill(O::Item::at_once(f64::NAN));
                true
            }
            // Every fourth lies in the middle between two f32.
            Asked::Variance { ddof: 0, root: true }
                if two_f32 && self.hand::<DIFFERENCE>(isa, Halves { to: &mut *to }) =>
            {
                true
            }
            Asked::Variance { ddof, root } => {
                let divisor = len * (len - ddof as f64);
                if root {
                    self.hand::<DIFFERENCES>(isa, Variances::<_, true> { len, divisor, to })
                } else {
                    self.hand::<DIFFERENCES>(isa, Variances::<_, false> { len, divisor, to })
                }
            }
            _ => false,
        }
    }

    /// [`each`](Self::each) of these terms. What a type has no use for is not compiled.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn of_terms<S: Simd, const TERM: u8>(&mut self, out: &mut impl Out) -> bool {
        // SAFETY: passed on from the caller.
        unsafe {
            if const { TERM == DIFFERENCE } {
                return if const { Self::WORDS } { self.ranged::<S, TERM>(out) } else { false };
            }
            if const { TERM == PRODUCT || TERM == DIFFERENCES } {
                // Of f64 they are not exact.
                return if const { Self::WIDE } { false } else { self.each::<S, TERM, NONE>(out) };
            }
            if const { Self::WORDS } && self.ranged::<S, TERM>(out) {
                return true;
            }
            // The rounded sum of two is the answer, unless it is rounded again.
            if const { Self::WIDE } && self.len <= 2 {
                return self.each::<S, TERM, NONE>(out);
            }
            self.each::<S, TERM, EXACT>(out)
        }
    }

    /// Two vectors of terms of a row.
    ///
    /// # Safety
    /// See [`Simd`]; the columns are there, here and below.
    #[inline(always)]
    unsafe fn terms<S: Simd, const TERM: u8>(&self, row: usize, column: usize) -> [S::F; 2] {
        // SAFETY: the caller vouches for the columns; the rows may be read, see `new`.
        unsafe {
            let p = self.rows[0][row].wrapping_add(column);
            let q = self.rows[1][row].wrapping_add(column);
            ask_ahead(p, 2 * S::LANES);
            if O::PAIRED {
                ask_ahead(q, 2 * S::LANES);
            }
            let [a, b] = O::load::<S>(p, q);
            match TERM {
                ELEMENT | DIFFERENCES => [a[0], b[0]],
                MAGNITUDE => [S::abs(a[0]), S::abs(b[0])],
                _ => [S::mul(a[0], a[1]), S::mul(b[0], b[1])],
            }
        }
    }

    /// Adds to a sum, the sum of its errors, and two more: what is not 0 where `EXACT` errors of f64 are
    /// not all, or the sums of the errors of `BOUNDED` errors, and of magnitudes of these; of shorter
    /// floats, whose `EXACT` sums have no errors, of those of the sum.
    #[inline(always)]
    unsafe fn add<S: Simd, const TERM: u8, const ERRORS: u8>(
        [s, e, more, off]: [S::F; 4],
        x: S::F,
        one: S::F,
    ) -> [S::F; 4] {
        // SAFETY: passed on from the caller.
        unsafe {
            if TERM == PRODUCT {
                return [S::add(s, x), S::add(e, S::abs(x)), more, off];
            }
            if TERM == DIFFERENCES {
                return [S::add(s, x), S::add(e, S::mul(x, x)), more, off];
            }
            if ERRORS == NONE {
                return [S::add(s, x), e, more, off];
            }
            let [s, error] = two_sums::<S>(s, x, one);
            match (Self::WIDE, ERRORS) {
                (false, EXACT) => [s, e, more, S::add(off, S::abs(error))],
                (true, EXACT) => {
                    // The sum less the larger one is exact, and so is the sum if that is the other.
                    let sum = S::add(e, error);
                    let more = S::or_xor(more, S::sub(sum, e), error);
                    [s, sum, S::or_xor(more, S::sub(sum, error), e), off]
                }
                _ => {
                    let [e, rest] = two_sums::<S>(e, error, one);
                    [s, e, S::add(more, rest), S::add(off, S::abs(rest))]
                }
            }
        }
    }

    /// The sums of two vectors of columns: see [`add`](Self::add).
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn added<S: Simd, const TERM: u8, const ERRORS: u8>(
        &self,
        at: usize,
        one: S::F,
    ) -> [[S::F; 4]; 2] {
        // SAFETY: passed on from the caller.
        unsafe {
            let zero = S::splat(0.0);
            let first = self.terms::<S, TERM>(0, at);
            let [mut a, mut b] = match TERM {
                DIFFERENCES => [[zero; 4]; 2],
                _ => [[first[0], zero, zero, zero], [first[1], zero, zero, zero]],
            };
            if TERM == PRODUCT {
                (a[1], b[1]) = (S::abs(first[0]), S::abs(first[1]));
            }
            for row in 1..self.len {
                let [mut x, mut y] = self.terms::<S, TERM>(row, at);
                if TERM == DIFFERENCES {
                    [x, y] = [S::sub(x, first[0]), S::sub(y, first[1])];
                }
                a = Self::add::<S, TERM, ERRORS>(a, x, one);
                b = Self::add::<S, TERM, ERRORS>(b, y, one);
            }
            [a, b]
        }
    }

    /// Whether elements are words: see [`ranged`](Self::ranged).
    const WORDS: bool = matches!(<O::Item as Element>::DTYPE, DType::F32);
    /// Whether sums have errors that f64 do not hold often.
    const WIDE: bool = <O::Item as Element>::DTYPE.size() == 8;

    /// Hands the sums of all columns and of their errors to `out`, group by group, with the
    /// first column of each; some twice. The columns of groups that `out` was not sure of go to
    /// [`left`](Self::left); false if they are too many.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn each<S: Simd, const TERM: u8, const ERRORS: u8>(
        &mut self,
        out: &mut impl Out,
    ) -> bool {
        let group = 2 * S::LANES;
        let Some(last) = self.columns.checked_sub(group) else { return false };
        let (mut high, mut low, mut left) = ([0.0; GROUP], [0.0; GROUP], Left::new());
        let mut far = false;
        // SAFETY: whole groups of columns; the buffers hold two of the widest vectors.
        unsafe {
            let (zero, one) = (S::splat(0.0), S::splat(core::hint::black_box(1.0)));
            let share = self.len as f64 * f64::EPSILON;
            for column in (0..self.columns).step_by(group) {
                // What the last group leaves is counted with all of them: see `found`.
                if left.len() * LEFT > self.columns {
                    return false;
                }
                // The last group has some of the columns before it.
                let at = column.min(last);
                if const { Self::WIDE } && ERRORS == EXACT && far {
                    // As far apart as those before, as a rule.
                    far = self.bounded::<S, TERM>(at, one, out, &mut left);
                    continue;
                }
                let [a, b] = self.added::<S, TERM, ERRORS>(at, one);
                let exact = ERRORS == NONE && !Self::WIDE
                    || if const { Self::WIDE } {
                        // An infinity less itself is NaN, and so are errors of what is NaN. What is
                        // below the least number is 0.
                        let rest = S::or(S::sub(a[0], a[0]), a[2]);
                        let rest = S::or(rest, S::or(S::sub(b[0], b[0]), b[2]));
                        S::all_below(S::abs(rest), f64::from_bits(1))
                    } else {
                        // Sums of shorter floats are infinite or NaN if elements are: those are the
                        // answers, and the magnitudes of their errors NaN, which is not below.
                        S::none_below(S::sub(zero, a[3]), 0.0)
                            & S::none_below(S::sub(zero, b[3]), 0.0)
                    };
                S::store(a[0], high.as_mut_ptr());
                S::store(b[0], high[S::LANES..].as_mut_ptr());
                if !exact && const { Self::WIDE } {
                    S::store(a[1], low.as_mut_ptr());
                    S::store(b[1], low[S::LANES..].as_mut_ptr());
                    let mut odd = [0.0; GROUP];
                    S::store(S::or(S::sub(a[0], a[0]), a[2]), odd.as_mut_ptr());
                    S::store(S::or(S::sub(b[0], b[0]), b[2]), odd[S::LANES..].as_mut_ptr());
                    let sums = [&mut high, &mut low, &mut odd];
                    if !self.special::<S, TERM>(at, sums, out, &mut left) {
                        far = self.bounded::<S, TERM>(at, one, out, &mut left);
                    }
                } else if !exact {
                    // The errors' magnitudes tell the answer, as a rule.
                    let mut most = [0.0; GROUP];
                    S::store(a[3], most.as_mut_ptr());
                    S::store(b[3], most[S::LANES..].as_mut_ptr());
                    for i in 0..group {
                        most[i] *= 1.0 + share;
                        low[i] = -most[i];
                    }
                    if !out.put(at, &high[..group], [&low[..group], &most[..group]]) {
                        self.bounded::<S, TERM>(at, one, out, &mut left);
                    }
                } else if Self::WIDE && ERRORS == EXACT || TERM == PRODUCT || TERM == DIFFERENCES {
                    S::store(a[1], low.as_mut_ptr());
                    S::store(b[1], low[S::LANES..].as_mut_ptr());
                    settle(at, &high[..group], [&low[..group]], None, out, &mut left);
                } else {
                    settle(at, &high[..group], [], None, out, &mut left);
                }
            }
        }
        self.left = left;
        true
    }

    /// The same for a group of f64 some of which are infinite or NaN: `odd` has no bits but a sign
    /// where sums and their errors are all. False if that is not so of all others.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn special<S: Simd, const TERM: u8>(
        &self,
        at: usize,
        [high, low, odd]: [&mut [f64; GROUP]; 3],
        out: &mut impl Out,
        left: &mut Left,
    ) -> bool {
        let group = 2 * S::LANES;
        if high[..group].iter().all(|s| s.is_finite()) {
            return false;
        }
        // SAFETY: passed on from the caller.
        let (sums, mut any) = (unsafe { self.small::<S, TERM>(at) }, 0);
        for i in 0..group {
            let usual = sums[i].is_finite();
            high[i] = if usual { high[i] } else { 0.0 };
            low[i] = if usual { low[i] } else { 0.0 };
            any |= if usual { odd[i].abs().to_bits() } else { 0 };
        }
        if any == 0 {
            settle(at, &high[..group], [&low[..group]], Some(&sums[..group]), out, left);
        }
        any == 0
    }

    /// Sums of terms that are made so small that only an infinity or a NaN makes one of these.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn small<S: Simd, const TERM: u8>(&self, at: usize) -> [f64; GROUP] {
        let mut sums = [0.0; GROUP];
        // SAFETY: as in `each`.
        unsafe {
            let (scale, mut all) = (S::splat(1.0 / MOST as f64), [S::splat(0.0); 2]);
            for row in 0..self.len {
                let [a, b] = self.terms::<S, TERM>(row, at);
                all = [S::add(all[0], S::mul(a, scale)), S::add(all[1], S::mul(b, scale))];
            }
            S::store(all[0], sums.as_mut_ptr());
            S::store(all[1], sums[S::LANES..].as_mut_ptr());
        }
        sums
    }

    /// The same for a group whose sums are not exact; whether they are not, indeed.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn bounded<S: Simd, const TERM: u8>(
        &self,
        at: usize,
        one: S::F,
        out: &mut impl Out,
        left: &mut Left,
    ) -> bool {
        let group = 2 * S::LANES;
        let mut parts = [[0.0; GROUP]; 4];
        // SAFETY: as in `each`.
        unsafe {
            let [a, b] = self.added::<S, TERM, BOUNDED>(at, one);
            for (to, (a, b)) in parts.iter_mut().zip(a.into_iter().zip(b)) {
                S::store(a, to.as_mut_ptr());
                S::store(b, to[S::LANES..].as_mut_ptr());
            }
        }
        let [mut high, mut least, more, mut most] = parts;
        let share = self.len as f64 * f64::EPSILON;
        let mut far = false;
        // By a few operations, whose ends are taken apart by what these round.
        let mut ends = [[0.0; GROUP]; 2];
        for i in 0..group {
            let magnitudes = least[i].abs() + more[i].abs();
            let off = most[i] * share + magnitudes * (2.0 * f64::EPSILON) + f64::MIN_POSITIVE;
            let off = if most[i] == 0.0 { 0.0 } else { off };
            far |= most[i] != 0.0;
            let rest = least[i] + more[i];
            (ends[0][i], ends[1][i]) = (rest - off, rest + off);
        }
        if out.put(at, &high[..group], [&ends[0][..group], &ends[1][..group]]) {
            return far;
        }
        // Of f64 an infinite sum may be too large only.
        let mut special = high;
        if const { Self::WIDE } && high[..group].iter().any(|s| !s.is_finite()) {
            // SAFETY: passed on from the caller.
            special = unsafe { self.small::<S, TERM>(at) };
        }
        narrow_ends([&mut high, &mut least, &mut most], [&more, &special], share, Self::WIDE);
        let special = Self::WIDE.then_some(&special[..group]);
        settle(at, &high[..group], [&least[..group], &most[..group]], special, out, left);
        far
    }

    /// [`each`](Self::each) for f32, by plain sums whose elements are so near to each other that nothing
    /// is rounded: all are multiples of the last place of the least one, and f64 has 29 bits
    /// more.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn ranged<S: Simd, const TERM: u8>(&self, out: &mut impl Out) -> bool {
        let group = 2 * S::LANES;
        let Some(last) = self.columns.checked_sub(group) else { return false };
        let mut high = [0.0; GROUP];
        // SAFETY: as in `each`; f32 are words.
        unsafe {
            let (mask, zero) = (S::wsplat(u32::MAX >> 1), S::wsplat(0));
            let (mut least, mut most) = (S::wsplat(0), S::wsplat(0));
            let (mut sure, mut column) = (true, 0);
            while column < self.columns {
                let at = column.min(last);
                let mut sums = [S::splat(0.0); 2];
                for row in &self.rows[0][..self.len] {
                    ask_ahead(row.wrapping_add(at), 2 * S::LANES);
                    let bits = S::wload(row.wrapping_add(at).cast());
                    let magnitudes = S::wand(bits, mask);
                    most = S::wmax(most, magnitudes);
                    least = S::wmax(least, S::wsub(zero, magnitudes));
                    let (a, b) = S::widen(if TERM == MAGNITUDE { magnitudes } else { bits });
                    sums = if TERM == DIFFERENCE {
                        [S::sub(a, sums[0]), S::sub(b, sums[1])]
                    } else {
                        [S::add(sums[0], a), S::add(sums[1], b)]
                    };
                }
                S::store(sums[0], high.as_mut_ptr());
                S::store(sums[1], high[S::LANES..].as_mut_ptr());
                sure &= out.put(at, &high[..group], []);
                column += group;
            }
            let mut words = [[0; GROUP]; 2];
            S::wstore(least, words[0].as_mut_ptr());
            S::wstore(most, words[1].as_mut_ptr());
            let [least, most] = words;
            let least = least[..group].iter().fold(0, |least, &x| least.max(x));
            let most = most[..group].iter().fold(0, |most, &x| most.max(x));
            sure & is_within(least.wrapping_neg(), most, room(self.len as f64))
        }
    }
}

/// Makes sums, the sums of their errors, and the magnitudes of the errors of those sums, of which `more`
/// are the sums, one number each and what has to be added to it at least and at most. A function of its
/// own: it runs seldom, and has nothing to do with terms.
#[inline(never)]
fn narrow_ends(
    [high, least, most]: [&mut [f64; GROUP]; 3],
    [more, special]: [&[f64; GROUP]; 2],
    share: f64,
    is_wide: bool,
) {
    for i in 0..GROUP {
        let (s, [sum, low]) = (high[i], two_sum(high[i], least[i]));
        // Each sum is rounded, by at most half of this share of the magnitudes.
        let off = if most[i] == 0.0 { 0.0 } else { most[i] * share + f64::MIN_POSITIVE };
        // To odd, so that what is far below still says which way the middle is left, unless
        // little is left of the sum itself.
        let (a, b) = (sum_to_odd(low, more[i] - off), sum_to_odd(low, more[i] + off));
        let (far, unknown) = (sum.abs() * 1e-12, f64::INFINITY);
        let ends = if (a.abs() <= far) & (b.abs() <= far) { [a, b] } else { [unknown; 2] };
        // Infinities and NaNs of shorter floats are the answers.
        let (special, known) = (!special[i].is_finite(), if is_wide { 0.0 } else { s });
        high[i] = if special { known } else { sum };
        [least[i], most[i]] = if special { [0.0; 2] } else { ends };
    }
}

/// Hands the sums of columns to `out`, and those of `special` that are infinite or NaN; the columns of
/// which it is not sure are left.
#[inline(always)]
fn settle<const N: usize>(
    at: usize,
    high: &[f64],
    low: [&[f64]; N],
    special: Option<&[f64]>,
    out: &mut impl Out,
    left: &mut Left,
) {
    if !out.put(at, high, low) {
        unsure(at, high, low, out, left);
    }
    if let Some(special) = special
        && !out.set(at, special)
    {
        leave_special(at, special, left);
    }
}

/// Leaves the columns whose sums are infinite or NaN.
#[inline(never)]
fn leave_special(at: usize, sums: &[f64], left: &mut Left) {
    left.extend((0..sums.len()).filter(|&i| !sums[i].is_finite()).map(|i| at + i));
}

/// Leaves the columns that `out` is not sure of: a loop of its own, since it runs seldom.
#[inline(never)]
fn unsure<const N: usize>(
    at: usize,
    high: &[f64],
    low: [&[f64]; N],
    out: &mut impl Out,
    left: &mut Left,
) {
    for i in 0..high.len() {
        let mut rest = low;
        for low in &mut rest {
            *low = &low[i..=i];
        }
        if !out.put(at + i, &high[i..=i], rest) {
            left.push(at + i);
        }
    }
}

/// How far apart the exponents of so many f32 may be of which sums lose nothing in f64; negative
/// if there are too many.
#[inline(always)]
pub(super) fn room(len: f64) -> i32 {
    // Multiples of 2^(a - 150), each below 2^(b - 126): `len 2^(b - a)` is 2^29 at most. The number
    // below `len` has the exponent of the greatest power of two that is less.
    let above = (len.max(1.0).to_bits() - 1) >> 52;
    (1022 + 29 - above as i32).min(28)
}

/// Whether the exponents are no further apart than this, and the largest is that of a number: of the bits
/// of the least magnitude that is not 0, or of 0, and of the largest.
#[inline(always)]
pub(super) fn is_within(least: u32, most: u32, room: i32) -> bool {
    const INFINITY: u32 = 0x7f80_0000;
    // Subnormals have the exponent of the least normal numbers, and so do zeros alone.
    let exponent = |bits: u32| (bits >> 23).max(1).cast_signed();
    let apart = exponent(most) - exponent(least);
    (most < INFINITY) & (apart <= room)
}

/// Writes the sums of single elements, or of their magnitudes; false if there are no such.
pub(super) struct Single<'a, O: Operands, const MAGNITUDES: bool> {
    pub(super) rows: &'a Short<O>,
    pub(super) to: &'a mut [O::Item],
}

impl<O: Operands, const MAGNITUDES: bool> Kernel for Single<'_, O, MAGNITUDES> {
    type Out = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        let Single { rows, to } = self;
        if O::PAIRED || rows.len != 1 || rows.columns < to.len() {
            return false;
        }
        let row = rows.rows[0][0];
        let [infinity, nan] = [O::Item::INFINITY_BITS, O::Item::NAN_BITS];
        with_word!(O::Item::DTYPE.size(), W => {
            let to = bytemuck::cast_slice_mut::<_, W>(to);
            // SAFETY: the row has as many elements, which may be read: see `Short::new`. The words
            // are as wide.
            unsafe { single::<W, MAGNITUDES>(row.cast(), to, [W::of(infinity), W::of(nan)]) }
        });
        true
    }
}

/// Copies floats or magnitudes by their words, zeros as the positive one, and NaNs as the usual one.
///
/// # Safety
/// The row has as many words as `to`, which may be read.
#[inline(always)]
unsafe fn single<W: Word, const MAGNITUDES: bool>(
    row: *const W,
    to: &mut [W],
    [infinity, nan]: [W; 2],
) {
    let zero = W::of(0);
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: the caller vouches for it.
        let word = unsafe { *row.add(i) };
        let magnitude = word & W::GREATEST;
        let known = if MAGNITUDES || magnitude == zero { magnitude } else { word };
        *to = if magnitude > infinity { nan } else { known };
    }
}

/// Who takes sums.
trait Out {
    /// Takes those of some columns, and those of their errors: none where there are no errors, or
    /// what they are at least and at most. Returns whether all answers are right.
    fn put<const N: usize>(&mut self, column: usize, high: &[f64], low: [&[f64]; N]) -> bool;
    /// Answers those of some columns whose sums are infinite or NaN; false if that is not known.
    #[inline(always)]
    fn set(&mut self, column: usize, sums: &[f64]) -> bool {
        let _ = (column, sums);
        false
    }
}

/// Makes sums that are infinite or NaN answers; without a branch, as any may be.
#[inline(always)]
fn set_special<T: Narrow>(to: &mut [T], sums: &[f64]) {
    for (to, &sum) in to.iter_mut().zip(sums) {
        let answer = if sum.is_nan() { T::from_bits(T::NAN_BITS) } else { T::at_once(sum) };
        *to = if sum.is_finite() { *to } else { answer };
    }
}

/// Hands sums of `TERM` to `out`, and returns whether most of them are right.
struct ShortSums<'a, O: Operands, X, const TERM: u8> {
    rows: &'a mut Short<O>,
    out: X,
}

impl<O: Operands, X: Out, const TERM: u8> Kernel for ShortSums<'_, O, X, TERM> {
    type Out = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        let ShortSums { rows, mut out } = self;
        // SAFETY: passed on from the caller.
        unsafe { rows.of_terms::<S, TERM>(&mut out) }
    }
}

/// Writes what both ends of the sums of errors make of sums, `$of` being told on which side they
/// are; whether these are always the same, and `$of` is sure. No closure: that may stay a call.
macro_rules! answer {
    ($to:expr, $low:ident, |$i:ident, $end:ident, $side:ident| $of:expr) => {{
        let mut sure = true;
        for ($i, to) in $to.iter_mut().enumerate() {
            let ($end, $side) = ($low.first().map_or(0.0, |low| low[$i]), -1.0);
            let (least, right) = $of;
            *to = least;
            sure &= right;
            if N > 1 {
                let ($end, $side) = ($low[N - 1][$i], 1.0);
                let (most, right) = $of;
                sure &= right & (least.bits() == most.bits()) & $low[0][$i].is_finite();
            }
        }
        sure
    }};
}

/// Where sums go, divided by `len` or, if there is no quotient, multiplied by the inverse, a power of
/// two.
struct Sums<'a, T, const QUOTIENT: bool> {
    len: f64,
    inverse: f64,
    to: &'a mut [T],
}

impl<T: Narrow, const QUOTIENT: bool> Out for Sums<'_, T, QUOTIENT> {
    #[inline(always)]
    fn set(&mut self, column: usize, sums: &[f64]) -> bool {
        set_special(&mut self.to[column..], sums);
        true
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, column: usize, high: &[f64], low: [&[f64]; N]) -> bool {
        let (len, inverse) = (self.len, self.inverse);
        let to = &mut self.to[column..column + high.len()];
        // Ends are rounded to odd, which is not all that a quotient has to know.
        let share = if N > 1 { 2.0 * f64::EPSILON } else { 0.0 };
        answer!(to, low, |i, end, side| if QUOTIENT {
            T::mean(high[i], end + side * end.abs() * share, len, inverse)
        } else {
            T::scaled(high[i], end, inverse)
        })
    }
}

/// Where rounded sums of `len` terms go, of which the sums of magnitudes are known.
struct Bounded<'a, T, const ROOT: bool> {
    len: f64,
    to: &'a mut [T],
}

impl<T: Narrow, const ROOT: bool> Out for Bounded<'_, T, ROOT> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, column: usize, high: &[f64], low: [&[f64]; N]) -> bool {
        let to = &mut self.to[column..column + high.len()];
        let share = (self.len + 8.0) * f64::EPSILON;
        let mut sure = true;
        for i in 0..to.len() {
            // Zeros add up to a positive one. A root is off by half as much, and rounded.
            let high = high[i] + 0.0;
            let (high, off) = if ROOT {
                let root = high.sqrt();
                (root, root * share)
            } else {
                (high, low[0][i] * share)
            };
            // Of infinities and NaNs the sum is certain.
            let off = if high.abs() < f64::INFINITY { off } else { 0.0 };
            let [least, most] = [T::at_once(high - off), T::at_once(high + off)];
            to[i] = least;
            sure &= least.bits() == most.bits();
        }
        sure
    }
}

/// Where the variances of `len` elements go, by the sums of what they are more than the first of
/// them, and those of its squares: a variance does not change where all elements do by the same,
/// and differences have fewer bits that cancel.
///
/// A difference is off by at most `u = 2^-53` of itself. Of `n` numbers the sums `s` and `q` are
/// off by at most `n u` times those of the magnitudes and of the squares. The sum of the
/// magnitudes times itself is at most `n q`, so that `n q - s^2` is off by less than `4 n u n q`
/// and `4 u n q`, and by what three operations round.
struct Variances<'a, T, const ROOT: bool> {
    len: f64,
    /// `n (n - ddof)`, which is positive.
    divisor: f64,
    to: &'a mut [T],
}

impl<T: Narrow, const ROOT: bool> Out for Variances<'_, T, ROOT> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, column: usize, high: &[f64], low: [&[f64]; N]) -> bool {
        let to = &mut self.to[column..column + high.len()];
        let (len, inverse) = (self.len, 1.0 / self.divisor);
        let share = (4.0 * len + 16.0) * f64::EPSILON;
        let mut sure = true;
        for i in 0..to.len() {
            let (sum, all) = (high[i], low[0][i] * len);
            let variance = (all - sum * sum) * inverse;
            // The inverse and the product are rounded, too.
            let off = all * inverse * share + variance.abs() * (4.0 * f64::EPSILON);
            let (mut least, mut most) = (variance - off, variance + off);
            // Equal elements have none, and squares of infinities and NaNs no variance. Of what may
            // be 0 or less nothing else is known.
            let usual = all < f64::INFINITY;
            sure &= (least > 0.0) | (all == 0.0) | !usual;
            if ROOT {
                least = least.max(0.0).sqrt() * (1.0 - 2.0 * f64::EPSILON);
                most = most.sqrt() * (1.0 + 2.0 * f64::EPSILON);
            }
            let of = |end| T::at_once(if usual { end } else { f64::NAN });
            let (least, most) = (of(least), of(most));
            to[i] = least;
            sure &= least.bits() == most.bits();
        }
        sure
    }
}

/// Where halves of the magnitudes of exact differences go: deviations of two elements.
struct Halves<'a, T> {
    to: &'a mut [T],
}

impl<T: Narrow> Out for Halves<'_, T> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, column: usize, high: &[f64], _: [&[f64]; N]) -> bool {
        for (to, high) in self.to[column..column + high.len()].iter_mut().zip(high) {
            *to = T::at_once(high.abs() * 0.5);
        }
        true
    }
}

/// Where the variances of single elements go: zeros, but NaNs of infinities and NaNs.
struct Zeros<'a, T> {
    to: &'a mut [T],
}

impl<T: Narrow> Out for Zeros<'_, T> {
    #[inline(always)]
    fn set(&mut self, column: usize, sums: &[f64]) -> bool {
        self.put(column, sums, [])
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, column: usize, high: &[f64], _: [&[f64]; N]) -> bool {
        for (to, high) in self.to[column..column + high.len()].iter_mut().zip(high) {
            // A positive zero.
            let zero = high * 0.0 + 0.0;
            *to = if zero.is_nan() { T::from_bits(T::NAN_BITS) } else { T::at_once(zero) };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_where_f64_has_room_for_them() {
        let bits = |x: f64| (x as f32).to_bits();
        let exact =
            |least: f64, most: f64, len: u32| is_within(bits(least), bits(most), room(len.into()));
        // From the last place of 1 to 64 times a number below 2^24.
        assert!(exact(1.0, 2f64.powi(24) - 1.0, 64));
        assert!(!exact(1.0, 2f64.powi(24), 64));
        assert!(exact(1.0, 2f64.powi(28), 2) && !exact(1.0, 2f64.powi(28), 3));
        assert!(exact(1.0, 2f64.powi(28), 1) && !exact(1.0, 2f64.powi(29), 1));
        // Subnormals are multiples of the least.
        assert!(exact(2f64.powi(-149), 2f64.powi(-101), 1));
        assert!(exact(2f64.powi(-149), 2f64.powi(-126), 64));
        assert!(!exact(2f64.powi(-149), 2f64.powi(-97), 1));
        assert!(is_within(0, 0, room(64.0)));
        assert!(!is_within(bits(1.0), f32::INFINITY.to_bits(), room(1.0)));
        assert!(!is_within(bits(1.0), f32::NAN.to_bits(), room(1.0)));
    }
}
