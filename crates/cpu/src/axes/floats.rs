//! Sums of floats for many outputs, of elements or of the products of two arrays: what is asked of them,
//! and what is done about elements that sums do not hold. [`super::sums`] has the loops.

use super::exponentials::Logarithms;
use super::finish::{Asked, Pair, Request, Scales, Scratch, TOGETHER, Wanted};
use super::fold::{
    Accumulators, Cells, Fold, Left, Part, RaggedCells, RaggedFold, begin_with, of_one_fold,
};
use super::lanes::{Laned, LanedCells};
use super::lengths::Lengths;
use super::lift::{Lift, lift, lower};
use super::measures::{FLUSHED, LARGEST_SCALE, LEAST_SQUARES, LOST, Measure, origin};
use super::round::{Interval, Narrow};
use super::short::{self, Short, Single};
use super::sums::{Alone, Bounds, Of, Operands, Paired, Parts, Sums, Traits};
use super::survey::{self, Survey};
use crate::exact::Widen;
use crate::isa::Isa;
use crate::ragged::Ragged;
use crate::rows::Rows;
use crate::simd::dispatch_accumulators;
use crate::table::Table;
use core::alloc::Layout;
use core::ops::Range;
use warpfold_core::{DType, fpenv};

/// Elements that are scaled at a time.
const SCALED: usize = 1024;

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

/// An operation on elements of type `T`, by one measure: whatever that is, this is compiled once for each `T`.
pub(super) struct Floats<T: 'static> {
    isa: Isa,
    asked: Asked,
    /// The type of the answers: that of the elements, or one that elements were widened from.
    dtype: DType,
    surveyed: Surveyed,
    /// Whether elements are, or were, shorter than f64, so that no sums are beyond that.
    pub(super) short: bool,
    /// The measure's loops, and what they say of it.
    sums: &'static dyn Sums<T>,
    traits: Traits,
}

impl<T> Clone for Floats<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Floats<T> {}

impl<T: Widen + Narrow> Floats<T> {
    pub(super) fn new<O: Operands<Item = T>, M: Measure<P>, const P: usize>(
        isa: Isa,
        asked: Asked,
        dtype: DType,
        _measure: M,
    ) -> Self {
        Self::of_sums(isa, asked, dtype, const { &Of::<O, M, P>::NEW })
    }

    /// By loops that know no other measure.
    pub(super) fn of_sums(
        isa: Isa,
        asked: Asked,
        dtype: DType,
        sums: &'static dyn Sums<T>,
    ) -> Self {
        let (surveyed, short, traits) = (Surveyed::No, T::DTYPE.size() < 8, sums.traits());
        Floats { isa, asked, dtype, surveyed, short, sums, traits }
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

    /// Whether elements are f64 that may be scaled.
    fn scales(&self) -> bool {
        let Traits { scales, paired, .. } = self.traits;
        T::DTYPE == DType::F64 && scales && !paired
    }

    /// Adds elements. Beside the largest of a survey those that are subnormal, and their squares, are
    /// too small to matter: see [`FLUSHED`].
    fn run(&self, add: impl FnOnce()) {
        if self.traits.flushes || self.is_surveyed() {
            fpenv::flushing(add);
        } else {
            add();
        }
    }

    /// Whether the answer of a single element is its magnitude, or itself; `None` if it is neither.
    fn single_magnitude(&self) -> Option<bool> {
        let Traits { paired, products, .. } = self.traits;
        match self.asked {
            _ if paired => None,
            // The logarithm of an exponential, unless it is tiny: see `single_logarithms`.
            Asked::Sum | Asked::Mean | Asked::LogSum => Some(false),
            Asked::Second => (!products).then_some(true),
            // The root of a square.
            Asked::Root => Some(true),
            Asked::Variance { .. } | Asked::High | Asked::Low => None,
        }
    }
}

impl<T: Widen + Narrow> Fold for Floats<T> {
    fn item(&self) -> Layout {
        Layout::new::<T>()
    }

    fn is_quick(&self, elements: usize) -> bool {
        let short = T::DTYPE.size() < 8;
        // Single elements are copied, whatever their type.
        if elements == 1 && self.single_magnitude().is_some() {
            return true;
        }
        if self.asked == Asked::LogSum || self.asked.is_half() {
            return false;
        }
        let exact = if short { elements <= short::MOST } else { elements <= short::MOST_F64 };
        exact && (short || !(self.traits.products && self.traits.paired) || elements == 1)
    }

    fn has_neutral(&self) -> bool {
        !self.traits.paired
    }

    fn has_sums(&self) -> bool {
        // Sums of differences are none of elements.
        !self.traits.shifted
    }

    fn is_for_specials(&self) -> bool {
        self.surveyed == Surveyed::Specials
    }

    fn cells(&self) -> Box<dyn Cells> {
        Box::new(FloatCells::new(self))
    }
}

impl<T: Widen + Narrow> RaggedFold for Floats<T> {
    fn ragged(&self) -> Box<dyn RaggedCells> {
        Box::new(FloatCells::new(self))
    }
}

/// The accumulators: the parts of the sums.
struct FloatCells<T: Narrow> {
    fold: Floats<T>,
    /// What is asked for if nothing else is.
    own: Asked,
    parts: Parts,
    /// The elements that are origins, of measures that have some.
    firsts: Vec<T>,
    /// Whether elements are looked at, and not added: the first two parts are the least and the
    /// greatest one.
    surveys: bool,
    /// Whether elements are left to another stage.
    leaves: bool,
    /// What a survey finds of each output.
    found: LanedCells<Survey<T>>,
    /// What elements of each output are lifted by, and multiplied by then.
    lifts: Vec<u64>,
    scales: Vec<f64>,
    /// Such elements.
    scaled: Vec<f64>,
    scratch: Scratch,
}

impl<T: Widen + Narrow> FloatCells<T> {
    fn new(fold: &Floats<T>) -> Self {
        FloatCells {
            fold: *fold,
            own: fold.asked,
            parts: Parts::default(),
            firsts: Vec::new(),
            surveys: false,
            leaves: false,
            found: LanedCells::new(Laned { isa: fold.isa, lanes: Survey::NEW }),
            lifts: Vec::new(),
            scales: Vec::new(),
            scaled: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Makes these elements the origins of outputs from `place` on.
    fn set_origins(&mut self, place: usize, items: impl Iterator<Item = T>) {
        if self.fold.traits.shifted {
            let origins = &mut self.parts[origin(self.fold.traits.parts)];
            self.firsts.resize(origins.len(), T::zeroed());
            for ((origin, first), x) in
                origins[place..].iter_mut().zip(&mut self.firsts[place..]).zip(items)
            {
                let is_usual = x.wide().is_finite();
                *first = if is_usual { x } else { T::zeroed() };
                *origin = first.wide();
            }
        }
    }

    /// Adds each row to its output, from `place` on.
    fn add_rows(&mut self, place: usize, rows: [Rows<'_, T>; 2]) {
        if self.surveys {
            return self.found.add_rows(place, rows[0], 0);
        }
        if self.fold.scales() {
            let row = (rows[0].count() > 0).then(|| rows[0].row(0));
            if self.leaves(row.and_then(|row| row.first().zip(row.last()))) {
                return;
            }
        }
        if self.fold.scales() && self.fold.is_surveyed() {
            return self.add_scaled_rows(place, rows[0]);
        }
        let firsts = self.firsts.get(place..place + rows[0].count()).unwrap_or_default();
        let (fold, parts) = (self.fold, &mut self.parts);
        fold.run(|| fold.sums.rows(fold.isa, rows, firsts, parts, place));
    }

    /// Adds each column to its output, from `place` on.
    fn add_columns(&mut self, place: usize, tables: [Table<'_, T>; 2]) {
        let one = tables[0];
        if self.surveys {
            return self.found.add_columns(place, one, 0);
        }
        if self.fold.scales() {
            let row = |row: usize| one.row(row).first();
            let last = one.rows().checked_sub(1);
            if self.leaves(last.and_then(|last| row(0).zip(row(last)))) {
                return;
            }
        }
        if self.fold.scales() && self.fold.is_surveyed() {
            return self.add_scaled_columns(place, one);
        }
        let (fold, parts) = (self.fold, &mut self.parts);
        fold.run(|| fold.sums.columns(fold.isa, tables, parts, place));
    }

    /// Whether elements are left to the stage that surveys them: sums of subnormal ones take long, and
    /// their squares are 0. Two of them have to do for a table, and a table for all.
    fn leaves(&mut self, ends: Option<(&T, &T)>) -> bool {
        if !self.fold.is_surveyed() && !self.leaves {
            let is_tiny = |(x, y): (&T, &T)| x.wide().is_subnormal() && y.wide().is_subnormal();
            self.leaves = ends.is_some_and(is_tiny);
        }
        self.leaves
    }

    /// Adds rows of f64, scaled.
    fn add_scaled_rows(&mut self, place: usize, rows: Rows<'_, T>) {
        self.scaled.resize(SCALED, 0.0);
        for row in 0..rows.count() {
            let output = place + row..place + row + 1;
            let (lifts, scales) = (&self.lifts[output.clone()], &self.scales[output.clone()]);
            let fold = self.fold;
            let first =
                fold.traits.shifted.then(|| self.parts[origin(fold.traits.parts)][place + row]);
            let first = first.map(T::at_once);
            for items in rows.row(row).chunks(SCALED) {
                let to = &mut self.scaled[..items.len()];
                let items = Table::of(bytemuck::cast_slice(items), items.len());
                let lift = Lift { items, lifts, scales, to: &mut *to };
                fold.run(|| dispatch_accumulators(fold.isa, lift));
                let rows = [Rows::Table(Table::of(bytemuck::cast_slice(to), to.len())); 2];
                let parts = &mut self.parts;
                fold.run(|| fold.sums.rows(fold.isa, rows, first.as_slice(), parts, place + row));
            }
        }
    }

    /// Adds columns of f64, scaled.
    fn add_scaled_columns(&mut self, place: usize, table: Table<'_, T>) {
        assert!(T::DTYPE == DType::F64);
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
            // SAFETY: rows of the table, whose elements are f64, as was asserted.
            let items = unsafe { items.of_elements() };
            let (fold, lift) = (self.fold, Lift { items, lifts, scales, to: &mut *to });
            fold.run(|| dispatch_accumulators(fold.isa, lift));
            let tables = [Table::of(bytemuck::cast_slice(to), columns); 2];
            let parts = &mut self.parts;
            fold.run(|| fold.sums.columns(fold.isa, tables, parts, place));
        }
    }

    /// Answers outputs of a few elements: see [`Cells::quick`].
    fn quick_alone(&mut self, mut rows: Short<Alone<T>>, to: &mut [T]) -> Option<Left> {
        let Floats { isa, asked, .. } = self.fold;
        if self.fold.scales() {
            let [first, last] = rows.ends();
            self.leaves = false;
            if rows.len > 1 && self.leaves(Some((first, last))) {
                return self.quick_lifted(&rows, to);
            }
        }
        let one = if rows.len == 1 { self.fold.single_magnitude() } else { None };
        let out = &mut *to;
        let found = match one {
            Some(false) => dispatch_accumulators(isa, Single::<_, false> { rows: &rows, to: out }),
            Some(true) => dispatch_accumulators(isa, Single::<_, true> { rows: &rows, to: out }),
            None if asked == Asked::LogSum => return None,
            None if self.fold.traits.products => rows.products(isa, asked, out),
            None => rows.sums(isa, asked, out),
        };
        if asked == Asked::LogSum {
            let [lost, least] = const { single_logarithms(matches!(T::DTYPE, DType::F64)) };
            for (i, x) in to.iter_mut().enumerate() {
                let magnitude = x.wide().abs();
                if magnitude < lost {
                    *x = T::at_once(0.0);
                } else if (magnitude != 0.0) & (magnitude < least) {
                    rows.left.push(i);
                }
            }
        }
        rows.found(found, to.len())
    }

    /// Answers outputs of a few elements that are subnormal, or zeros, from lifted copies; `None` if some
    /// are neither.
    fn quick_lifted(&mut self, rows: &Short<Alone<T>>, to: &mut [T]) -> Option<Left> {
        assert!(T::DTYPE == DType::F64);
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
        let mut rows = unsafe { Short::<Alone<T>>::new([&table, &[]], to.len()) }?;
        let found = if self.fold.traits.products {
            rows.products(isa, asked, to)
        } else {
            rows.sums(isa, asked, to)
        };
        let squares = matches!(asked, Asked::Variance { root: false, .. })
            || self.fold.traits.products && asked == Asked::Second;
        let what = [squares, asked == Asked::Mean];
        lower(bytemuck::cast_slice_mut(to), what, rows.len, &mut rows.left);
        rows.found(found, to.len())
    }

    /// What a survey found of an output.
    fn found(&self, output: usize) -> [f64; 3] {
        [self.found.a[output], self.found.b[output], self.found.c[output]]
    }

    /// The sums of some outputs that were surveyed: infinite or NaN ones are known, and of others
    /// elements were lost that are far smaller than the largest, unless all are lifted.
    fn surveyed(&self, outputs: Range<usize>, lens: &[f64; TOGETHER], pair: &mut Pair) {
        for (i, output) in outputs.enumerate() {
            let found = self.found(output);
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

impl<T: Widen + Narrow> Accumulators for FloatCells<T> {
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
        let parts = &mut self.parts[..self.fold.traits.parts];
        parts.iter_mut().for_each(|part| begin_with(part, count, 0.0));
    }

    fn answer(&mut self, lengths: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>) {
        let Floats { isa, asked, dtype, short, traits, .. } = self.fold;
        let Traits { products, paired, .. } = traits;
        if self.leaves {
            missing.extend(0..to.len() / dtype.size());
            return;
        }
        let exact = if dtype == DType::F16 && !products { EXACT_F16 } else { 0.0 };
        let is_long = T::DTYPE == DType::F64;
        // Where a product underflowed its error is lost.
        let losing = products && is_long;
        let least = (losing && !paired && asked.second()).then_some(LEAST_SQUARES);
        let lost = if losing && paired { LOST } else { 0.0 };
        let is_scaled = self.fold.is_surveyed() && self.fold.scales();
        let mut scratch = core::mem::take(&mut self.scratch);
        let scales = is_scaled.then_some(Scales { of: &self.scales, squares: products });
        let wanted = Wanted { asked, dtype, least, scales };
        let request = Request { isa, lengths, scratch: &mut scratch, missing };
        request.finish(wanted, to, &mut |outputs, lens, pair| {
            let (first, second) = (
                asked.first().then_some(&mut pair.first),
                asked.second().then_some(&mut pair.second),
            );
            let bounds = Bounds { lens, exact, lost, short, first, second };
            self.fold.sums.bounds(isa, &self.parts, outputs.clone(), bounds);
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

impl<T: Widen + Narrow> Cells for FloatCells<T> {
    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        assert!(!self.fold.traits.paired);
        // SAFETY: the caller vouches for the elements, here and below.
        self.add_rows(place, [Rows::Table(unsafe { table.of_elements() }); 2]);
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        assert!(!self.fold.traits.paired);
        // SAFETY: as above.
        self.add_columns(place, [unsafe { table.of_elements() }; 2]);
    }

    fn begin_survey(&mut self, count: usize) -> bool {
        self.surveys = self.fold.is_surveyed();
        if self.surveys {
            self.found.clear(count);
            // Those of other elements are none of these.
            self.firsts.fill(T::zeroed());
        }
        self.surveys
    }

    fn end_survey(&mut self, count: usize) -> bool {
        self.surveys = false;
        let Traits { frame, shifted, parts, .. } = self.fold.traits;
        let frame = |i: usize| frame(self.found.a[i], self.found.b[i]);
        let frames: Vec<[f64; 2]> = (0..count).map(frame).collect();
        self.set_origins(0, frames.iter().map(|&[first, _]| T::at_once(first)));
        if !self.fold.scales() {
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
            if shifted {
                self.parts[origin(parts)][i] *= scale;
            }
            is_usual |= survey::specials(self.found(i))[1].is_finite();
        }
        is_usual && self.fold.surveyed == Surveyed::Scaled
    }

    fn wants_origins(&self) -> bool {
        self.fold.traits.shifted && !self.fold.is_surveyed()
    }

    fn neutral(&self, place: usize, to: &mut [u8]) {
        let items: &mut [T] = bytemuck::cast_slice_mut(to);
        if let Some(neutral) = self.fold.traits.neutral {
            items.fill(T::at_once(neutral));
        } else if self.fold.traits.shifted {
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
        let table: Table<'_, T> = unsafe { table.of_elements() };
        if table.rows() == 1 {
            self.set_origins(place, table.row(0).iter().copied());
        } else {
            self.set_origins(place, (0..table.rows()).map(|row| table.row(row)[0]));
        }
    }

    unsafe fn row_pairs(&mut self, place: usize, tables: [Table<'_, ()>; 2]) {
        assert!(self.fold.traits.paired);
        // SAFETY: as above.
        let [one, two] = unsafe { [tables[0].of_elements(), tables[1].of_elements()] };
        self.add_rows(place, [Rows::Table(one), Rows::Table(two)]);
    }

    unsafe fn column_pairs(&mut self, place: usize, tables: [Table<'_, ()>; 2]) {
        assert!(self.fold.traits.paired);
        // SAFETY: as above.
        self.add_columns(place, unsafe { [tables[0].of_elements(), tables[1].of_elements()] });
    }

    unsafe fn quick(&mut self, tables: [&[Table<'_, ()>]; 2], to: &mut [u8]) -> Option<Left> {
        if self.fold.asked.is_half() {
            return None;
        }
        let to: &mut [T] = bytemuck::cast_slice_mut(to);
        // SAFETY: passed on from the caller.
        unsafe {
            if self.fold.traits.paired {
                let mut rows = Short::<Paired<T>>::new(tables, to.len())?;
                let found = rows.products(self.fold.isa, self.fold.asked, to);
                return rows.found(found, to.len());
            }
            self.quick_alone(Short::<Alone<T>>::new(tables, to.len())?, to)
        }
    }

    fn merge(&mut self, others: &dyn Cells) {
        let others = of_one_fold::<Self>(others);
        self.leaves |= others.leaves;
        self.fold.sums.merge(self.fold.isa, &mut self.parts, &others.parts);
    }
}

impl<T: Widen + Narrow> RaggedCells for FloatCells<T> {
    unsafe fn take(&mut self, rows: Ragged<'_, ()>) {
        assert!(!self.fold.traits.paired);
        // SAFETY: the caller vouches for the elements, here and below.
        let rows: Ragged<'_, T> = unsafe { rows.of_elements() };
        let count = rows.rows();
        if self.begin_survey(count) {
            self.add_rows(0, [Rows::Ragged(rows); 2]);
            if !self.end_survey(count) {
                return;
            }
        } else if self.fold.traits.shifted {
            let first = |row: usize| rows.row(row).first().copied();
            let zero = T::zeroed();
            self.set_origins(0, (0..rows.rows()).map(|row| first(row).unwrap_or(zero)));
        }
        self.add_rows(0, [Rows::Ragged(rows); 2]);
    }

    unsafe fn take_pairs(&mut self, rows: [Ragged<'_, ()>; 2]) {
        assert!(self.fold.traits.paired);
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

/// f16 are multiples of 2^-24 below 2^16: in f64 sums of so many are exact.
const EXACT_F16: f64 = 8192.0;
