//! Sums of floats for many outputs, of elements or of the products of two arrays.

#![expect(
    clippy::needless_range_loop,
    reason = "several arrays are indexed alike, in loops that compilers unroll"
)]

use super::exponentials::Logarithms;
use super::finish::{Asked, Intervals, Pair, Request, Scales, Scratch, TOGETHER, Wanted};
use super::fold::{
    Accumulators, Cells, Fold, Left, Part, RaggedCells, RaggedFold, begin_with, of_one_fold,
};
use super::lengths::Lengths;
use super::lift::{Lift, lift, lower};
use super::measures::{FLUSHED, LARGEST_SCALE, LEAST_SQUARES, LOST, Measure, origin};
use super::round::{Interval, Narrow};
use super::short::{self, Short, Single};
use super::survey::{self, Outputs, Survey};
use crate::exact::Widen;
use crate::isa::Isa;
use crate::ragged::Ragged;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;
use bytemuck::Zeroable;
use core::alloc::Layout;
use core::hint::black_box;
use core::marker::PhantomData;
use core::ops::Range;
use warpfold_core::{DType, Element, fpenv, prefetch};

/// Lanes of the widest vector.
const MOST_LANES: usize = 8;

/// Elements of rows that are added side by side.
const SHORT: usize = 16;

/// Elements that are scaled at a time.
const SCALED: usize = 1024;

/// No bits, all bits, none: which elements count.
static MASK: [f64; 6 * MOST_LANES] = {
    let mut mask = [0.0; 6 * MOST_LANES];
    let mut i = 2 * MOST_LANES;
    while i < 4 * MOST_LANES {
        mask[i] = f64::from_bits(u64::MAX);
        i += 1;
    }
    mask
};
/// What sums take in.
pub(super) trait Operands: Copy + Send + Sync + 'static {
    /// The elements.
    type Item: Widen + Narrow;
    /// Whether there is a second array.
    const PAIRED: bool;
    /// Two vectors of pairs: of the elements at `p` with those at `q`, or with themselves if
    /// there is no second array.
    ///
    /// # Safety
    /// As for [`Widen::widen`], for `q` too if there is one.
    unsafe fn load<S: Simd>(p: *const Self::Item, q: *const Self::Item) -> [[S::F; 2]; 2];
}

/// Elements of one array.
#[derive(Clone, Copy)]
pub(super) struct Alone<T>(PhantomData<T>);

impl<T: Widen + Narrow> Operands for Alone<T> {
    type Item = T;
    const PAIRED: bool = false;
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const T, _: *const T) -> [[S::F; 2]; 2] {
        // SAFETY: passed on from the caller.
        let [a, b] = unsafe { T::widen::<S>(p) };
        [[a, a], [b, b]]
    }
}

/// Elements of two arrays.
#[derive(Clone, Copy)]
pub(super) struct Paired<T>(PhantomData<T>);

impl<T: Widen + Narrow> Operands for Paired<T> {
    type Item = T;
    const PAIRED: bool = true;
    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const T, q: *const T) -> [[S::F; 2]; 2] {
        // SAFETY: passed on from the caller.
        let ([a, b], [c, d]) = unsafe { (T::widen::<S>(p), T::widen::<S>(q)) };
        [[a, c], [b, d]]
    }
}

/// Pairs with what adds nothing where the lanes of `mask` have no bits: zeros, or the origin.
#[inline(always)]
unsafe fn masked<S: Simd, M: Measure<P>, const P: usize>(
    pair: [S::F; 2],
    mask: *const f64,
    neutral: S::F,
) -> [S::F; 2] {
    // SAFETY: passed on from the caller: a whole vector of the mask.
    unsafe {
        let mask = S::load(mask);
        let [x, y] = pair;
        let kept = [S::and(x, mask), S::and(y, mask)];
        if const { !M::SHIFTED } {
            return kept;
        }
        let beside = S::and(neutral, mask);
        [S::or_xor(kept[0], neutral, beside), S::or_xor(kept[1], neutral, beside)]
    }
}

/// Whether all elements are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surveyed {
    No,
    /// And not added: outputs of infinities and NaNs are answered, of which sums do not tell that may
    /// overflow.
    Specials,
    /// Before they are added, and scaled if they are f64: their sums do not overflow then.
    Scaled,
}

/// An operation on floats, by one measure.
pub(super) struct Floats<O, M, const P: usize> {
    isa: Isa,
    asked: Asked,
    /// The type of the answers: that of the elements, or one that elements were widened from.
    dtype: DType,
    surveyed: Surveyed,
    /// Whether elements are, or were, shorter than f64, so that no sums are beyond that.
    pub(super) short: bool,
    measure: PhantomData<(O, M)>,
}

impl<O, M, const P: usize> Clone for Floats<O, M, P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<O, M, const P: usize> Copy for Floats<O, M, P> {}

impl<O: Operands, M: Measure<P>, const P: usize> Floats<O, M, P> {
    pub(super) fn new(isa: Isa, asked: Asked, dtype: DType, _measure: M) -> Self {
        let short = <O::Item as Element>::DTYPE.size() < 8;
        Floats { isa, asked, dtype, surveyed: Surveyed::No, short, measure: PhantomData }
    }

    /// The same with what suits all elements of an output.
    pub(super) fn surveyed(self) -> Self {
        Floats { surveyed: Surveyed::Scaled, ..self }
    }

    /// The same for outputs of infinities and NaNs, and for no others.
    pub(super) fn specials(self) -> Self {
        Floats { surveyed: Surveyed::Specials, ..self }
    }

    fn is_surveyed(&self) -> bool {
        self.surveyed != Surveyed::No
    }

    /// Adds elements. Beside the largest of a survey those that are subnormal, and their squares, are
    /// too small to matter: see [`FLUSHED`].
    fn run(&self, kernel: impl Kernel) {
        if M::FLUSHES || self.is_surveyed() {
            fpenv::flushing(|| dispatch_accumulators(self.isa, kernel));
        } else {
            dispatch_accumulators(self.isa, kernel);
        }
    }
}

impl<O: Operands, M: Measure<P>, const P: usize> Fold for Floats<O, M, P> {
    fn item(&self) -> Layout {
        Layout::new::<O::Item>()
    }

    fn is_quick(&self, elements: usize) -> bool {
        let short = <O::Item as Element>::DTYPE.size() < 8;
        // Single elements are copied, whatever their type.
        if elements == 1 && single_magnitude::<O, M, P>(self.asked).is_some() {
            return true;
        }
        if self.asked == Asked::LogSum || self.asked.is_half() {
            return false;
        }
        let exact = if short { elements <= short::MOST } else { elements <= short::MOST_F64 };
        exact && (short || !(M::PRODUCTS && O::PAIRED) || elements == 1)
    }

    fn has_neutral(&self) -> bool {
        !O::PAIRED
    }

    fn has_sums(&self) -> bool {
        // Sums of differences are none of elements.
        !M::SHIFTED
    }

    fn is_for_specials(&self) -> bool {
        self.surveyed == Surveyed::Specials
    }

    fn cells(&self) -> Box<dyn Cells> {
        Box::new(FloatCells::new(self))
    }
}

impl<O: Operands, M: Measure<P>, const P: usize> RaggedFold for Floats<O, M, P> {
    fn ragged(&self) -> Box<dyn RaggedCells> {
        Box::new(FloatCells::new(self))
    }
}

/// The accumulators: the parts of the sums.
struct FloatCells<O: Operands, M, const P: usize> {
    fold: Floats<O, M, P>,
    /// What is asked for if nothing else is.
    own: Asked,
    parts: [Vec<f64>; P],
    /// The elements that are origins, of measures that have some.
    firsts: Vec<O::Item>,
    /// Whether elements are looked at, and not added: the first two parts are the least and the
    /// greatest one.
    surveys: bool,
    /// Whether elements are left to another stage.
    leaves: bool,
    /// What a survey finds of each output: the least element, the greatest one, and NaN if there is one.
    found: [Vec<f64>; 3],
    /// What elements of each output are lifted by, and multiplied by then.
    lifts: Vec<u64>,
    scales: Vec<f64>,
    /// Such elements.
    scaled: Vec<f64>,
    scratch: Scratch,
}

impl<O: Operands, M: Measure<P>, const P: usize> FloatCells<O, M, P> {
    /// Whether elements are f64 that may be scaled.
    const SCALES: bool =
        M::SCALES && !O::PAIRED && matches!(<O::Item as Element>::DTYPE, DType::F64);

    fn new(fold: &Floats<O, M, P>) -> Self {
        FloatCells {
            fold: *fold,
            own: fold.asked,
            parts: [const { Vec::new() }; P],
            firsts: Vec::new(),
            surveys: false,
            leaves: false,
            found: [const { Vec::new() }; 3],
            lifts: Vec::new(),
            scales: Vec::new(),
            scaled: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Makes these elements the origins of outputs from `place` on.
    fn set_origins(&mut self, place: usize, items: impl Iterator<Item = O::Item>) {
        if const { M::SHIFTED } {
            let origins = &mut self.parts[origin(P)];
            self.firsts.resize(origins.len(), <O::Item as bytemuck::Zeroable>::zeroed());
            for ((origin, first), x) in
                origins[place..].iter_mut().zip(&mut self.firsts[place..]).zip(items)
            {
                let is_usual = x.wide().is_finite();
                *first = if is_usual { x } else { <O::Item as bytemuck::Zeroable>::zeroed() };
                *origin = first.wide();
            }
        }
    }

    /// Looks at elements.
    fn survey(&mut self, place: usize, outputs: Outputs<'_, O::Item>) {
        let found = some_of(&mut self.found, place..place + outputs.count());
        dispatch_accumulators(self.fold.isa, Survey { outputs, found });
    }

    /// Adds each row to its output, from `place` on.
    fn add_rows(&mut self, place: usize, rows: [Rows<'_, O::Item>; 2]) {
        if self.surveys {
            return self.survey(place, Outputs::Rows(rows[0]));
        }
        if const { Self::SCALES } {
            let row = (rows[0].count() > 0).then(|| rows[0].row(0));
            if self.leaves(row.and_then(|row| row.first().zip(row.last()))) {
                return;
            }
        }
        if const { Self::SCALES } && self.fold.is_surveyed() {
            return self.add_scaled_rows(place, rows[0]);
        }
        let some = place..place + rows[0].count();
        assert!(rows[1].count() == some.len());
        let firsts = self.firsts.get(some.clone()).unwrap_or_default();
        let parts = some_of(&mut self.parts, some);
        self.fold.run(RowByRow::<O, M, P> { rows, firsts, parts, measure: PhantomData });
    }

    /// Adds each column to its output, from `place` on.
    fn add_columns(&mut self, place: usize, tables: [Table<'_, O::Item>; 2]) {
        let [one, two] = tables;
        if self.surveys {
            return self.survey(place, Outputs::Columns(one));
        }
        if const { Self::SCALES } {
            let row = |row: usize| one.row(row).first();
            let last = one.rows().checked_sub(1);
            if self.leaves(last.and_then(|last| row(0).zip(row(last)))) {
                return;
            }
        }
        if const { Self::SCALES } && self.fold.is_surveyed() {
            return self.add_scaled_columns(place, one);
        }
        assert!(one.columns() == two.columns() && one.rows() == two.rows());
        let parts = some_of(&mut self.parts, place..place + one.columns());
        self.fold.run(Columns::<O, M, P> { tables, parts, measure: PhantomData });
    }

    /// Whether elements are left to the stage that surveys them: sums of subnormal ones take long, and
    /// their squares are 0. Two of them have to do for a table, and a table for all.
    fn leaves(&mut self, ends: Option<(&O::Item, &O::Item)>) -> bool {
        if !self.fold.is_surveyed() && !self.leaves {
            let is_tiny =
                |(x, y): (&O::Item, &O::Item)| x.wide().is_subnormal() && y.wide().is_subnormal();
            self.leaves = ends.is_some_and(is_tiny);
        }
        self.leaves
    }

    /// Adds rows of f64, scaled.
    fn add_scaled_rows(&mut self, place: usize, rows: Rows<'_, O::Item>) {
        self.scaled.resize(SCALED, 0.0);
        for row in 0..rows.count() {
            let output = place + row..place + row + 1;
            let (lifts, scales) = (&self.lifts[output.clone()], &self.scales[output.clone()]);
            let firsts = match self.parts[P - 1].get(output.start) {
                Some(&origin) if M::SHIFTED => &[O::Item::at_once(origin)][..],
                _ => &[],
            };
            for items in rows.row(row).chunks(SCALED) {
                let to = &mut self.scaled[..items.len()];
                let items = Table::of(bytemuck::cast_slice(items), items.len());
                self.fold.run(Lift { items, lifts, scales, to });
                let rows = [Rows::Table(Table::of(bytemuck::cast_slice(to), to.len())); 2];
                let parts = some_of(&mut self.parts, output.clone());
                self.fold.run(RowByRow::<O, M, P> { rows, firsts, parts, measure: PhantomData });
            }
        }
    }

    /// Adds columns of f64, scaled.
    fn add_scaled_columns(&mut self, place: usize, table: Table<'_, O::Item>) {
        let columns = table.columns();
        let outputs = place..place + columns;
        let (lifts, scales) = (&self.lifts[outputs.clone()], &self.scales[outputs.clone()]);
        let step = (SCALED / columns.max(1)).max(1);
        for row in (0..table.rows()).step_by(step) {
            let rows = step.min(table.rows() - row);
            self.scaled.resize(rows * columns, 0.0);
            let to = &mut self.scaled[..];
            let origin = table.at(row, 0).cast();
            let items = Table::of_any(origin, table.stride(), rows, columns);
            // SAFETY: rows of the table, whose elements are f64.
            let items = unsafe { items.of_elements() };
            self.fold.run(Lift { items, lifts, scales, to });
            let tables = [Table::of(bytemuck::cast_slice(to), columns); 2];
            let parts = some_of(&mut self.parts, outputs.clone());
            self.fold.run(Columns::<O, M, P> { tables, parts, measure: PhantomData });
        }
    }

    /// Answers outputs of a few elements that are subnormal, or zeros, from lifted copies; `None` if some
    /// are neither.
    fn quick_lifted(&mut self, rows: &Short<O>, to: &mut [O::Item]) -> Option<Left> {
        let Floats { isa, asked, .. } = self.fold;
        self.scaled.resize(rows.len * to.len(), 0.0);
        let lifts = [lift(f64::from_bits(1))];
        for (row, to) in rows.rows().zip(self.scaled.chunks_exact_mut(to.len())) {
            let row: &[u64] = bytemuck::cast_slice(row);
            let any = row.iter().fold(0, |any, x| any | x);
            if any & f64::INFINITY.to_bits() != 0 {
                return None;
            }
            let items = Table::of(row, row.len());
            dispatch_accumulators(isa, Lift { items, lifts: &lifts, scales: &[1.0], to });
        }
        let table = Table::of(&self.scaled, to.len());
        let table = [Table::of_any(table.at(0, 0).cast(), table.stride(), rows.len, to.len())];
        // SAFETY: the copies, which are f64.
        let mut rows = unsafe { Short::<O>::new([&table, &[]], to.len()) }?;
        let found = if const { M::PRODUCTS } {
            rows.products(isa, asked, to)
        } else {
            rows.sums(isa, asked, to)
        };
        let squares = matches!(asked, Asked::Variance { root: false, .. })
            || M::PRODUCTS && asked == Asked::Second;
        let what = [squares, asked == Asked::Mean];
        lower(bytemuck::cast_slice_mut(to), what, rows.len, &mut rows.left);
        rows.found(found, to.len())
    }

    /// The sums of some outputs that were surveyed: infinite or NaN ones are known, and of others
    /// elements were lost that are far smaller than the largest, unless all are lifted.
    fn surveyed(&self, outputs: Range<usize>, lens: &[f64; TOGETHER], pair: &mut Pair) {
        for (i, output) in outputs.enumerate() {
            let found = self.found.each_ref().map(|part| part[output]);
            let [least, greatest, _] = found;
            let is_exact = self.lifts[output] != 0 || (least == 0.0) & (greatest == 0.0);
            let lost = if is_exact { 0.0 } else { (lens[i] + 8.0) * FLUSHED };
            let (first, second) = (pair.first.get(i), pair.second.get(i));
            let [special, infinite] = survey::specials(found);
            let is_scaled = self.fold.surveyed == Surveyed::Scaled;
            let number = Interval { off: first.off + lost, ..first }.only_if(is_scaled);
            pair.first.set(i, number.or_special(special));
            // Magnitudes and squares of which something was lost are none, or their sum is not 0.
            let lost = if second.high == 0.0 { 0.0 } else { lost };
            let number = Interval { off: second.off + lost, ..second }.only_if(is_scaled);
            pair.second.set(i, number.or_special(infinite));
        }
    }
}

impl<O: Operands, M: Measure<P>, const P: usize> Accumulators for FloatCells<O, M, P> {
    fn ask(&mut self, question: Part) -> bool {
        self.fold.asked = match question {
            Part::Own => self.own,
            Part::Sums(asked) if self.fold.has_sums() => asked,
            _ => return false,
        };
        true
    }

    fn clear(&mut self, count: usize) {
        self.leaves = false;
        self.parts.iter_mut().for_each(|part| begin_with(part, count, 0.0));
    }

    fn answer(&mut self, lengths: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>) {
        let Floats { isa, asked, dtype, short, .. } = self.fold;
        if self.leaves {
            missing.extend(0..to.len() / dtype.size());
            return;
        }
        let exact = if dtype == DType::F16 && !M::PRODUCTS { EXACT_F16 } else { 0.0 };
        let is_long = <O::Item as Element>::DTYPE == DType::F64;
        // Where a product underflowed its error is lost.
        let losing = M::PRODUCTS && is_long;
        let least = (losing && !O::PAIRED && asked.second()).then_some(LEAST_SQUARES);
        let lost = if losing && O::PAIRED { LOST } else { 0.0 };
        let is_scaled = self.fold.is_surveyed() && Self::SCALES;
        let mut scratch = core::mem::take(&mut self.scratch);
        let scales = is_scaled.then_some(Scales { of: &self.scales, squares: M::PRODUCTS });
        let wanted = Wanted { asked, dtype, least, scales };
        let request = Request { isa, lengths, scratch: &mut scratch, missing };
        request.finish(wanted, to, &mut |outputs, lens, pair| {
            let parts = self.parts.each_ref().map(|part| &part[outputs.clone()]);
            let (first, second) = (
                asked.first().then_some(&mut pair.first),
                asked.second().then_some(&mut pair.second),
            );
            let measure = PhantomData;
            dispatch_accumulators(
                isa,
                Bounds::<O, M, P> { parts, lens, exact, lost, short, first, second, measure },
            );
            if is_scaled {
                self.surveyed(outputs.clone(), lens, pair);
            }
            if asked == Asked::LogSum {
                dispatch_accumulators(isa, Logarithms { pair, is_long });
                for i in (0..outputs.len()).filter(|&i| lens[i] == 0.0) {
                    pair.first.set(i, Interval::of_special(f64::NEG_INFINITY));
                }
            }
        });
        self.scratch = scratch;
    }
}

impl<O: Operands, M: Measure<P>, const P: usize> Cells for FloatCells<O, M, P> {
    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        assert!(!O::PAIRED);
        // SAFETY: the caller vouches for the elements, here and below.
        self.add_rows(place, [Rows::Table(unsafe { table.of_elements() }); 2]);
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        assert!(!O::PAIRED);
        // SAFETY: as above.
        self.add_columns(place, [unsafe { table.of_elements() }; 2]);
    }

    fn begin_survey(&mut self, count: usize) -> bool {
        self.surveys = self.fold.is_surveyed();
        if self.surveys {
            for (part, none) in self.found.iter_mut().zip(survey::NONE) {
                begin_with(part, count, none);
            }
            // Those of other elements are none of these.
            self.firsts.fill(<O::Item as bytemuck::Zeroable>::zeroed());
        }
        self.surveys
    }

    fn end_survey(&mut self, count: usize) -> bool {
        self.surveys = false;
        let [least, greatest, _] = &self.found;
        let frames = least[..count].iter().zip(greatest).map(|(&x, &y)| M::frame(x, y));
        let frames: Vec<[f64; 2]> = frames.collect();
        self.set_origins(0, frames.iter().map(|&[first, _]| O::Item::at_once(first)));
        if const { !Self::SCALES } {
            return true;
        }
        self.lifts.clear();
        self.scales.clear();
        let mut is_usual = false;
        for (i, &[first, scale]) in frames.iter().enumerate() {
            let lift = lift(first);
            let scale = if lift == 0 { scale } else { LARGEST_SCALE };
            self.lifts.push(lift);
            self.scales.push(scale);
            if const { M::SHIFTED } {
                self.parts[origin(P)][i] *= scale;
            }
            let found = self.found.each_ref().map(|part| part[i]);
            is_usual |= survey::specials(found)[1].is_finite();
        }
        is_usual && self.fold.surveyed == Surveyed::Scaled
    }

    fn wants_origins(&self) -> bool {
        M::SHIFTED && !self.fold.is_surveyed()
    }

    fn neutral(&self, place: usize, to: &mut [u8]) {
        let items: &mut [O::Item] = bytemuck::cast_slice_mut(to);
        if let Some(neutral) = M::NEUTRAL {
            items.fill(O::Item::at_once(neutral));
        } else if const { M::SHIFTED } {
            // There are none before a survey.
            match self.firsts.get(place..place + items.len()) {
                Some(firsts) => items.copy_from_slice(firsts),
                None => to.fill(0),
            }
        } else {
            to.fill(0);
        }
    }

    unsafe fn origins(&mut self, place: usize, table: Table<'_, ()>) {
        // SAFETY: as above.
        let table: Table<'_, O::Item> = unsafe { table.of_elements() };
        if table.rows() == 1 {
            self.set_origins(place, table.row(0).iter().copied());
        } else {
            self.set_origins(place, (0..table.rows()).map(|row| table.row(row)[0]));
        }
    }

    unsafe fn row_pairs(&mut self, place: usize, tables: [Table<'_, ()>; 2]) {
        assert!(O::PAIRED);
        // SAFETY: as above.
        let [one, two] = unsafe { [tables[0].of_elements(), tables[1].of_elements()] };
        self.add_rows(place, [Rows::Table(one), Rows::Table(two)]);
    }

    unsafe fn column_pairs(&mut self, place: usize, tables: [Table<'_, ()>; 2]) {
        assert!(O::PAIRED);
        // SAFETY: as above.
        self.add_columns(place, unsafe { [tables[0].of_elements(), tables[1].of_elements()] });
    }

    unsafe fn quick(&mut self, tables: [&[Table<'_, ()>]; 2], to: &mut [u8]) -> Option<Left> {
        let Floats { isa, asked, .. } = self.fold;
        if asked.is_half() {
            return None;
        }
        let to: &mut [O::Item] = bytemuck::cast_slice_mut(to);
        // SAFETY: passed on from the caller.
        let mut rows = unsafe { Short::<O>::new(tables, to.len()) }?;
        if const { Self::SCALES } {
            let [first, last] = rows.ends();
            self.leaves = false;
            if rows.len > 1 && self.leaves(Some((first, last))) {
                return self.quick_lifted(&rows, to);
            }
        }
        let one = if rows.len == 1 { single_magnitude::<O, M, P>(asked) } else { None };
        let out = &mut *to;
        let found = match one {
            Some(false) => dispatch_accumulators(isa, Single::<_, false> { rows: &rows, to: out }),
            Some(true) => dispatch_accumulators(isa, Single::<_, true> { rows: &rows, to: out }),
            None if asked == Asked::LogSum => return None,
            None if const { O::PAIRED || M::PRODUCTS } => rows.products(isa, asked, out),
            None => rows.sums(isa, asked, out),
        };
        if asked == Asked::LogSum {
            let [lost, least] =
                const { single_logarithms(matches!(<O::Item as Element>::DTYPE, DType::F64)) };
            let is_lost = |x: &&mut O::Item| x.wide().abs() < lost;
            to.iter_mut().filter(is_lost).for_each(|x| *x = O::Item::at_once(0.0));
            let is_tiny = |x: O::Item| (x.wide() != 0.0) & (x.wide().abs() < least);
            rows.left.extend((0..to.len()).filter(|&i| is_tiny(to[i])));
        }
        rows.found(found, to.len())
    }

    fn merge(&mut self, others: &dyn Cells) {
        let others = of_one_fold::<Self>(others);
        self.leaves |= others.leaves;
        merge::<M, P>(&mut self.parts, &others.parts);
    }
}

impl<O: Operands, M: Measure<P>, const P: usize> RaggedCells for FloatCells<O, M, P> {
    unsafe fn take(&mut self, rows: Ragged<'_, ()>) {
        assert!(!O::PAIRED);
        // SAFETY: the caller vouches for the elements, here and below.
        let rows: Ragged<'_, O::Item> = unsafe { rows.of_elements() };
        let count = rows.rows();
        if self.begin_survey(count) {
            self.add_rows(0, [Rows::Ragged(rows); 2]);
            if !self.end_survey(count) {
                return;
            }
        } else if const { M::SHIFTED } {
            let first = |row: usize| rows.row(row).first().copied();
            let zero = <O::Item as bytemuck::Zeroable>::zeroed();
            self.set_origins(0, (0..rows.rows()).map(|row| first(row).unwrap_or(zero)));
        }
        self.add_rows(0, [Rows::Ragged(rows); 2]);
    }

    unsafe fn take_pairs(&mut self, rows: [Ragged<'_, ()>; 2]) {
        assert!(O::PAIRED);
        // SAFETY: as above.
        let [one, two] = unsafe { [rows[0].of_elements(), rows[1].of_elements()] };
        self.add_rows(0, [Rows::Ragged(one), Rows::Ragged(two)]);
    }
}

/// What a log-sum-exp of one element, `x`, is: 0 below the first of these magnitudes, and `x` from the
/// second on (`core/op/logsumexp.rs`).
///
/// Below the first one the term is 1: of f64 it is `1 + x` in two f64, and the second is rounded to a
/// multiple of 2^-129; of shorter floats one f64 holds it. What terms are rounded by, 2^-94 and
/// 2^-47.9, is less than half of the last place of the second one, and `x` is a number.
const fn single_logarithms(is_long: bool) -> [f64; 2] {
    let [lost, least] = if is_long { [-131, -38] } else { [-54, -22] };
    [crate::exact::power_of_two(lost), crate::exact::power_of_two(least)]
}

/// Whether the answer of a single element is its magnitude, or itself; `None` if it is neither.
fn single_magnitude<O: Operands, M: Measure<P>, const P: usize>(asked: Asked) -> Option<bool> {
    match asked {
        _ if O::PAIRED => None,
        // The logarithm of an exponential, unless it is tiny: see `single_logarithms`.
        Asked::Sum | Asked::Mean | Asked::LogSum => Some(false),
        Asked::Second => (!M::PRODUCTS).then_some(true),
        // The root of a square.
        Asked::Root => Some(true),
        Asked::Variance { .. } | Asked::High | Asked::Low => None,
    }
}

/// The parts of some outputs.
fn some_of<const P: usize>(parts: &mut [Vec<f64>; P], some: Range<usize>) -> [&mut [f64]; P] {
    parts.each_mut().map(|part| &mut part[some.clone()])
}

/// Adds the parts of other elements.
fn merge<M: Measure<P>, const P: usize>(to: &mut [Vec<f64>; P], others: &[Vec<f64>; P]) {
    for i in 0..to[0].len() {
        let own: [f64; P] = core::array::from_fn(|p| to[p][i]);
        let merged = M::merged(own, core::array::from_fn(|p| others[p][i]));
        to.iter_mut().zip(merged).for_each(|(part, x)| part[i] = x);
    }
}

/// The intervals that the sums of some outputs lie in: what is asked of them is then the
/// same for all measures.
struct Bounds<'a, 'b, O, M, const P: usize> {
    /// At most [`TOGETHER`] outputs.
    parts: [&'a [f64]; P],
    lens: &'a [f64; TOGETHER],
    /// Plain sums of so many elements are exact.
    exact: f64,
    /// What may be lost of the first sum for each element, whatever the measure says.
    lost: f64,
    /// See [`Floats`].
    short: bool,
    /// The sums that are asked for.
    first: Option<&'b mut Intervals>,
    second: Option<&'b mut Intervals>,
    measure: PhantomData<(O, M)>,
}

impl<O: Operands, M: Measure<P>, const P: usize> Kernel for Bounds<'_, '_, O, M, P> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Bounds { parts, lens, exact, lost, short, first, second, .. } = self;
        let count = parts[0].len().min(TOGETHER);
        let mut columns = parts;
        for p in 0..P {
            columns[p] = &parts[p][..count];
        }
        if let Some(to) = first {
            for i in 0..count {
                let found = M::first(output(&columns, i), lens[i]);
                let found = Interval { off: found.off + lens[i] * lost, ..found };
                let sure = (exact > 0.0) & (lens[i] <= exact) & found.high.is_finite();
                let off = if sure { 0.0 } else { found.off };
                let own = if short { found.high } else { M::special(output(&columns, i)) };
                to.set(i, Interval { off, ..found }.or_special(own));
            }
        }
        if let Some(to) = second {
            for i in 0..count {
                let found = M::second(output(&columns, i), lens[i]);
                let sure = (exact > 0.0) & (lens[i] <= exact) & found.high.is_finite();
                let off = if sure { 0.0 } else { found.off };
                let own = if short { found.high } else { M::special(output(&columns, i)) };
                to.set(i, Interval { off, ..found }.or_special(own));
            }
        }
    }
}

/// The parts of one output.
#[inline(always)]
fn output<const P: usize>(parts: &[&[f64]; P], i: usize) -> [f64; P] {
    let mut one = [0.0; P];
    for p in 0..P {
        one[p] = parts[p][i];
    }
    one
}

/// f16 are multiples of 2^-24 below 2^16: in f64 sums of so many are exact.
const EXACT_F16: f64 = 8192.0;

/// Adds each column of a table to its output.
struct Columns<'a, O: Operands, M, const P: usize> {
    /// The second is that of the second array, if there is one.
    tables: [Table<'a, O::Item>; 2],
    /// As long as the tables are wide.
    parts: [&'a mut [f64]; P],
    measure: PhantomData<M>,
}

impl<O: Operands, M: Measure<P>, const P: usize> Kernel for Columns<'_, O, M, P> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        let group = 2 * S::LANES;
        let columns = self.tables[0].columns();
        // SAFETY: groups are columns of the table and lie within the parts; narrower
        // tables and their parts are copied to where there is room.
        unsafe {
            let one = S::splat(black_box(1.0));
            if columns < S::LANES {
                return self.narrow::<S>(one);
            } else if columns < group {
                return self.halves::<S>(one);
            }
            let mut column = 0;
            while column < columns {
                // Of the last whole group some columns may be done already.
                let from = column.min(columns - group);
                let mut acc = self.parts::<S>(from);
                self.group::<S>(&mut acc, from, one);
                for p in 0..P {
                    if from == column {
                        let to = &mut self.parts[p][column..column + group];
                        S::store(acc[0][p], to.as_mut_ptr());
                        S::store(acc[1][p], to[S::LANES..].as_mut_ptr());
                    } else {
                        let mut lanes = [0.0; 2 * MOST_LANES];
                        S::store(acc[0][p], lanes.as_mut_ptr());
                        S::store(acc[1][p], lanes[S::LANES..].as_mut_ptr());
                        self.parts[p][column..].copy_from_slice(&lanes[column - from..group]);
                    }
                }
                column = from + group;
            }
        }
    }
}

impl<O: Operands, M: Measure<P>, const P: usize> Columns<'_, O, M, P> {
    /// The parts of a group of columns.
    #[inline(always)]
    unsafe fn parts<S: Simd>(&self, column: usize) -> [[S::F; P]; 2] {
        // SAFETY: a whole group, which the caller vouches for.
        unsafe {
            let mut acc = [[S::splat(0.0); P]; 2];
            for p in 0..P {
                let from = &self.parts[p][column..column + 2 * S::LANES];
                acc[0][p] = S::load(from.as_ptr());
                acc[1][p] = S::load(from[S::LANES..].as_ptr());
            }
            acc
        }
    }

    /// Adds the rows of a group of columns.
    #[inline(always)]
    unsafe fn group<S: Simd>(&self, acc: &mut [[S::F; P]; 2], column: usize, one: S::F) {
        let [table, other] = self.tables;
        let mut now = *acc;
        let size = size_of::<O::Item>();
        let (mut next, step) = table.ahead(size * column, 2 * S::LANES * size);
        let (mut beside, other_step) = other.ahead(size * column, 2 * S::LANES * size);
        for row in 0..table.rows() {
            // Every line of a group.
            for line in (0..2 * S::LANES * size).step_by(64) {
                prefetch::near(next.wrapping_add(line));
            }
            next = next.wrapping_offset(step);
            if O::PAIRED {
                for line in (0..2 * S::LANES * size).step_by(64) {
                    prefetch::near(beside.wrapping_add(line));
                }
                beside = beside.wrapping_offset(other_step);
            }
            // SAFETY: a whole group, which the caller vouches for.
            unsafe {
                let [a, b] = O::load::<S>(table.at(row, column), other.at(row, column));
                M::step::<S>(&mut now[0], a, one);
                M::step::<S>(&mut now[1], b, one);
            }
        }
        *acc = now;
    }

    /// The same for a table that is a vector wide but no group: the first columns and the last ones,
    /// some of which both have.
    #[inline(always)]
    unsafe fn halves<S: Simd>(&mut self, one: S::F) {
        let [table, other] = self.tables;
        let last = table.columns() - S::LANES;
        let ends = |table: Table<'_, O::Item>, row: usize| {
            let mut both = [<O::Item as Zeroable>::zeroed(); 2 * MOST_LANES];
            let row = table.row(row);
            both[..S::LANES].copy_from_slice(&row[..S::LANES]);
            both[S::LANES..2 * S::LANES].copy_from_slice(&row[last..]);
            both
        };
        // SAFETY: whole vectors of the parts, which are as long as the table is wide, and a group in
        // `both`.
        unsafe {
            let mut acc = [[S::splat(0.0); P]; 2];
            for p in 0..P {
                acc[0][p] = S::load(self.parts[p].as_ptr());
                acc[1][p] = S::load(self.parts[p][last..].as_ptr());
            }
            for row in 0..table.rows() {
                let beside = if O::PAIRED {
                    ends(other, row)
                } else {
                    [<O::Item as Zeroable>::zeroed(); 2 * MOST_LANES]
                };
                let [a, b] = O::load::<S>(ends(table, row).as_ptr(), beside.as_ptr());
                M::step::<S>(&mut acc[0], a, one);
                M::step::<S>(&mut acc[1], b, one);
            }
            for p in 0..P {
                S::store(acc[0][p], self.parts[p].as_mut_ptr());
                S::store(acc[1][p], self.parts[p][last..].as_mut_ptr());
            }
        }
    }

    /// The same for a narrower one.
    #[inline(always)]
    unsafe fn narrow<S: Simd>(&mut self, one: S::F) {
        let [table, other] = self.tables;
        let mut lanes = [[0.0; MOST_LANES]; P];
        for (lanes, part) in lanes.iter_mut().zip(&self.parts) {
            lanes[..table.columns()].copy_from_slice(part);
        }
        // SAFETY: the buffers hold a vector.
        unsafe {
            let mut acc = [S::splat(0.0); P];
            for p in 0..P {
                acc[p] = S::load(lanes[p].as_ptr());
            }
            for row in 0..table.rows() {
                let padded = pad::<O>([table.row(row), other.row(row)]);
                let [a, _] = O::load::<S>(padded[0].as_ptr(), padded[1].as_ptr());
                M::step::<S>(&mut acc, a, one);
            }
            for p in 0..P {
                S::store(acc[p], lanes[p].as_mut_ptr());
                self.parts[p].copy_from_slice(&lanes[p][..table.columns()]);
            }
        }
    }
}

/// Adds each row to its output.
struct RowByRow<'a, 'b, O: Operands, M, const P: usize> {
    /// The second are those of the second array, if there is one.
    rows: [Rows<'a, O::Item>; 2],
    /// The elements that are origins, of measures that have some.
    firsts: &'b [O::Item],
    /// As many as there are rows.
    parts: [&'b mut [f64]; P],
    measure: PhantomData<M>,
}

impl<O: Operands, M: Measure<P>, const P: usize> Kernel for RowByRow<'_, '_, O, M, P> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // SAFETY: whole groups are elements of a row or may be read behind it; the rest is
        // read from a padded copy, and zeros add nothing.
        unsafe {
            let one = S::splat(black_box(1.0));
            let count = self.rows[0].count();
            let mut waiting = [[S::splat(0.0); MOST_LANES]; P];
            // As many rows as a vector has lanes: their sums are lanes of one.
            for first in (0..count).step_by(S::LANES) {
                let some = S::LANES.min(count - first);
                let whole = some == S::LANES;
                let mut acc = self.sums::<S>(first, some);
                match if whole { self.shortness::<S>(first) } else { None } {
                    Some(most) => self.side_by_side::<S>(first, most, &mut acc, one),
                    None => {
                        // How often is not known to the compiler: what adds a row is large.
                        // Lanes that have no row are not looked at.
                        for lane in 0..some {
                            let total = self.row::<S>(first + lane, one);
                            for p in 0..P {
                                waiting[p][lane] = total[p];
                            }
                        }
                        Self::join_lanes::<S>(&mut acc, &waiting, one);
                    }
                }
                for p in 0..P {
                    let to = &mut self.parts[p][first..first + some];
                    if whole {
                        S::store(acc[p], to.as_mut_ptr());
                    } else {
                        let mut lanes = [0.0; MOST_LANES];
                        S::store(acc[p], lanes.as_mut_ptr());
                        to.copy_from_slice(&lanes[..some]);
                    }
                }
            }
        }
    }
}

/// A few elements, with zeros behind them: two of the widest vectors, and the second array's.
#[inline(always)]
fn pad<O: Operands>(items: [&[O::Item]; 2]) -> [[O::Item; 2 * MOST_LANES]; 2] {
    let mut padded = [[<O::Item as Zeroable>::zeroed(); 2 * MOST_LANES]; 2];
    for (to, items) in padded.iter_mut().zip(items).take(if O::PAIRED { 2 } else { 1 }) {
        for (to, &x) in to.iter_mut().zip(items) {
            *to = x;
        }
    }
    padded
}

impl<'a, O: Operands, M: Measure<P>, const P: usize> RowByRow<'a, '_, O, M, P> {
    /// The parts of some outputs, at most as many as a vector has lanes.
    ///
    /// # Safety
    /// See [`Simd`].
    #[inline(always)]
    unsafe fn sums<S: Simd>(&self, first: usize, some: usize) -> [S::F; P] {
        // SAFETY: a whole vector; fewer parts are copied to where there is room.
        unsafe {
            let mut acc = [S::splat(0.0); P];
            for p in 0..P {
                let from = &self.parts[p][first..first + some];
                acc[p] = if some == S::LANES {
                    S::load(from.as_ptr())
                } else {
                    let mut lanes = [0.0; MOST_LANES];
                    lanes[..some].copy_from_slice(from);
                    S::load(lanes.as_ptr())
                };
            }
            acc
        }
    }

    /// The origin of an output, and an element that adds nothing, in all lanes.
    #[inline(always)]
    unsafe fn origin<S: Simd>(&self, output: usize) -> [S::F; 2] {
        let (mut subtracted, mut neutral) = (0.0, 0.0);
        if const { M::SHIFTED } {
            subtracted = self.parts[origin(P)][output];
            neutral = M::NEUTRAL.unwrap_or_else(|| self.firsts[output].wide());
        }
        // SAFETY: passed on from the caller.
        unsafe { [S::splat(subtracted), S::splat(neutral)] }
    }

    /// A row, and the second array's.
    #[inline(always)]
    fn items(&self, row: usize) -> [&'a [O::Item]; 2] {
        let items = self.rows[0].row(row);
        let others = if O::PAIRED { self.rows[1].row(row) } else { items };
        [items, &others[..items.len()]]
    }

    /// Where a row begins, and the second array's: what comes after them may be read from
    /// here.
    #[inline(always)]
    fn starts(&self, row: usize) -> [*const O::Item; 2] {
        let start = self.rows[0].start(row);
        [start, if O::PAIRED { self.rows[1].start(row) } else { start }]
    }

    /// How many elements after a row may be read, too.
    #[inline(always)]
    fn beyond(&self, row: usize) -> usize {
        let beyond = self.rows[0].beyond(row);
        if O::PAIRED { beyond.min(self.rows[1].beyond(row)) } else { beyond }
    }

    /// Adds up the lanes of as many rows as a vector has: each row is a lane of `acc`.
    #[inline(always)]
    unsafe fn join_lanes<S: Simd>(acc: &mut [S::F; P], rows: &[[S::F; MOST_LANES]; P], one: S::F) {
        // SAFETY: the buffers hold the widest vector.
        unsafe {
            if M::ROUGH {
                for p in 0..P {
                    acc[p] = S::add(acc[p], S::sum_each(rows[p]));
                }
                return;
            }
            // How many there are is hidden from the compiler, here and below: loops that are unrolled
            // are most of the code.
            let mut turned = [[acc[0]; MOST_LANES]; P];
            for (turned, &rows) in turned.iter_mut().zip(black_box(&rows[..])) {
                *turned = S::transpose(rows);
            }
            for lane in 0..black_box(S::LANES).min(MOST_LANES) {
                let mut others = *acc;
                for p in 0..P {
                    others[p] = turned[p][lane];
                }
                M::join::<S>(acc, others, one);
            }
        }
    }

    /// The elements of the longest of as many rows as a vector has lanes, if it is so short
    /// that adding up the lanes of each row would take longer than adding the rows, and if
    /// whole groups may be read where these have ended.
    #[inline(always)]
    fn shortness<S: Simd>(&self, first: usize) -> Option<usize> {
        if !self.rows[0].may_be_short() {
            return None;
        }
        let (mut most, mut room) = (0, usize::MAX);
        for row in first..first + S::LANES {
            let len = self.items(row)[0].len();
            most = most.max(len);
            room = room.min(len + self.beyond(row));
        }
        (most <= SHORT && most.next_multiple_of(2 * S::LANES) <= room).then_some(most)
    }

    /// Adds as many rows as a vector has lanes, each to its lane of `acc`, none of more than
    /// `most` elements. What lies behind a row adds nothing.
    #[inline(always)]
    unsafe fn side_by_side<S: Simd>(
        &self,
        first: usize,
        most: usize,
        acc: &mut [S::F; P],
        one: S::F,
    ) {
        let group = 2 * S::LANES;
        let mut at = 0;
        while at < most {
            // SAFETY: whole groups of all rows may be read, as `shortness` found; the mask has
            // two vectors from each of these places on.
            unsafe {
                // The first factors of two vectors, and the second ones.
                let mut rows = [[[one; MOST_LANES]; 2]; 2];
                for lane in 0..S::LANES {
                    let left = self.items(first + lane)[0].len().saturating_sub(at).min(group);
                    let mask = MASK.as_ptr().add(4 * MOST_LANES - left);
                    let [p, q] = self.starts(first + lane).map(|start| start.wrapping_add(at));
                    let [a, b] = O::load::<S>(p, q);
                    let [_, neutral] = self.origin::<S>(first + lane);
                    let a = masked::<S, M, P>(a, mask, neutral);
                    let b = masked::<S, M, P>(b, mask.add(S::LANES), neutral);
                    (rows[0][0][lane], rows[0][1][lane]) = (a[0], a[1]);
                    (rows[1][0][lane], rows[1][1][lane]) = (b[0], b[1]);
                }
                for (half, &[rows, others]) in black_box(&rows[..]).iter().enumerate() {
                    if at + half * S::LANES >= most {
                        break;
                    }
                    let columns = S::transpose(rows);
                    let others = if O::PAIRED { S::transpose(others) } else { columns };
                    for lane in 0..black_box(S::LANES).min(MOST_LANES) {
                        M::step::<S>(acc, [columns[lane], others[lane]], one);
                    }
                }
            }
            at += group;
        }
    }

    /// The lanes of one row.
    #[inline(always)]
    unsafe fn row<S: Simd>(&self, row: usize, one: S::F) -> [S::F; P] {
        let (beyond, [p, q]) = (self.beyond(row), self.starts(row));
        let ([row, other], output) = (self.items(row), row);
        let group = 2 * S::LANES;
        let whole = row.len() / group * group;
        // SAFETY: as in `run`.
        unsafe {
            let [subtracted, neutral] = self.origin::<S>(output);
            let mut acc = [[S::splat(0.0); P]; 2];
            if const { M::SHIFTED } {
                acc[0][origin(P)] = subtracted;
                acc[1][origin(P)] = subtracted;
            }
            for at in (0..whole).step_by(group) {
                prefetch::ahead(&row[at..at + group]);
                if O::PAIRED {
                    prefetch::ahead(&other[at..at + group]);
                }
                let [a, b] = O::load::<S>(p.wrapping_add(at), q.wrapping_add(at));
                M::step::<S>(&mut acc[0], a, one);
                M::step::<S>(&mut acc[1], b, one);
            }
            let rest = row.len() - whole;
            if rest != 0 {
                // A whole group of which some elements count.
                let padded;
                let (p, q, mask) = if whole != 0 {
                    let from = row.len() - group;
                    (p.wrapping_add(from), q.wrapping_add(from), 2 * MOST_LANES - (group - rest))
                } else if rest + beyond >= group {
                    (p, q, 4 * MOST_LANES - rest)
                } else {
                    padded = pad::<O>([row, other]);
                    (padded[0].as_ptr(), padded[1].as_ptr(), 4 * MOST_LANES - rest)
                };
                let mask = MASK.as_ptr().add(mask);
                let [a, b] = O::load::<S>(p, q);
                M::step::<S>(&mut acc[0], masked::<S, M, P>(a, mask, neutral), one);
                let mask = mask.add(S::LANES);
                M::step::<S>(&mut acc[1], masked::<S, M, P>(b, mask, neutral), one);
            }
            let [mut total, others] = acc;
            M::join::<S>(&mut total, others, one);
            total
        }
    }
}
