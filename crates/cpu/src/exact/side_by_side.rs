//! Many exact sums at once, a lane each: the columns of a table.
//!
//! Each sum comes out as two f64, `high + low`, exactly: what the levels of a window
//! have moved from their anchors, or the plain sum that the range certificate
//! guarantees, and 0. One f64 add of the two is then the sum rounded once.

use super::range::{self, Word};
use super::terms::Widen;
use super::window::{Anchored, VECTORS, Window};
use crate::simd::{Kernel, Simd};
use crate::table::Table;
use warpfold_core::prefetch;

/// Rows that a window's lanes take in one call of [`WindowColumns`].
pub(crate) const WINDOW_ROWS: usize = 256;
/// Rows that [`RangeColumns`] takes in one call: as many tiles as an anchor
/// takes adds, but for some that add element by element.
pub(crate) const RANGE_ROWS: usize = (ADDS - SPARE) * PANEL;
/// Rows that [`RangeColumns`] sums in one tile, without a window.
pub(crate) const ROWS_IN_A_TILE: usize = range::K;
/// Adds that an anchor takes.
const ADDS: usize = 256;
/// Adds kept for tiles that are not certified, each of which takes
/// [`PANEL`].
const SPARE: usize = 4 * PANEL;
/// Rows of a group that are added before the next group of columns gets its
/// turn: where rows lie a large power of two apart, their lines share a set of
/// the cache, which holds 12 of them or 16.
const PANEL: usize = 8;
/// Bytes between rows from which on they compete for sets of the cache.
const FAR_APART: usize = 2048;
/// Columns of a call, at most: their sums stay in the L1 and L2 cache.
pub(crate) const MOST_COLUMNS: usize = 2048;
/// Columns that are summed in registers, at most, over all instruction sets.
pub(crate) const GROUP: usize = VECTORS * 8;
/// The most groups of columns that an instruction set can have, which is that of the fewest lanes, two.
const MOST_GROUPS: usize = MOST_COLUMNS / (VECTORS * 2);
/// Bytes ahead, in every row, at which the next columns are asked for.
const ASIDE: usize = 512;
/// Bytes ahead at which the rows of a narrow table are asked for.
const DOWN: usize = 3 << 10;

/// How a table is walked whose columns are summed.
trait Walked {
    /// The rows of a panel: few where they lie far apart.
    fn panel(&self) -> usize;
    /// How many rows below the current one to ask for.
    fn rows_ahead(&self, panel: usize) -> usize;
    /// Asks for what follows `count` elements.
    fn prefetch(&self, row: usize, column: usize, count: usize, down: usize);
}

impl<T> Walked for Table<'_, T> {
    /// The rows of a panel: few where they lie far apart.
    #[inline(always)]
    fn panel(&self) -> usize {
        if self.stride().unsigned_abs() < FAR_APART { range::K } else { PANEL }
    }

    /// How many rows below the current one to ask for: those of the next
    /// panel, or in a narrow table so many that memory keeps up.
    #[inline(always)]
    fn rows_ahead(&self, panel: usize) -> usize {
        panel.max(DOWN / self.stride().unsigned_abs().max(1))
    }

    /// Asks for what follows `count` elements: the next columns of the row,
    /// and the same columns of the row `down` rows below, if there is one.
    #[inline(always)]
    fn prefetch(&self, row: usize, column: usize, count: usize, down: usize) {
        let aside: *const u8 = self.at(row, column).cast();
        let below: *const u8 = self.at(row + down, column).cast();
        for byte in (0..count * size_of::<T>()).step_by(64) {
            prefetch::near(aside.wrapping_add(ASIDE + byte));
            if row + down < self.rows() {
                prefetch::far(below.wrapping_add(byte));
            }
        }
    }
}

/// Sums columns of f32 or bf16 by the range certificate.
pub(crate) struct RangeColumns<'a, T> {
    /// At most [`RANGE_ROWS`] rows, and [`MOST_COLUMNS`] columns in whole groups.
    pub(crate) table: Table<'a, T>,
    /// For sums of more rows than a certified tile has: a window for the sums
    /// of tiles.
    pub(crate) window: Option<Window>,
    /// Where the sums go, a pair for each column; of no more than
    /// [`ROWS_IN_A_TILE`] rows they have one part, and `low` is not written.
    pub(crate) high: &'a mut [f64],
    pub(crate) low: &'a mut [f64],
}

impl<T: Word> Kernel for RangeColumns<'_, T> {
    /// Whether all sums are certified.
    type Out = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        let group = VECTORS * S::LANES;
        let table = self.table;
        assert!(table.columns().is_multiple_of(group));
        // SAFETY: rows and columns are the table's, and groups are whole.
        unsafe {
            let mut certificate = range::Certificate::<S>::new();
            let height = table.panel();
            let down = table.rows_ahead(height);
            let panel = |certificate: &mut range::Certificate<S>, first: usize, column: usize| {
                let rows = height.min(table.rows() - first);
                range::tile::<S, T, false>(certificate, rows, |row| {
                    table.prefetch(first + row, column, group, down);
                    table.at(first + row, column)
                })
            };
            if table.rows() <= ROWS_IN_A_TILE {
                // So few that the whole column is one tile, in panels.
                for first in (0..table.rows()).step_by(height) {
                    for column in (0..table.columns()).step_by(group) {
                        let sums = panel(&mut certificate, first, column);
                        let to = &mut self.high[column..column + group];
                        if first == 0 {
                            store::<S>(sums, to);
                        } else {
                            add_to::<S>(sums, to);
                        }
                    }
                }
                certificate.end_tile();
                return certificate.holds();
            }
            let Some(window) = self.window else { return false };
            let mut columns = [const { None }; MOST_GROUPS];
            let tiles = table.rows().div_ceil(height);
            // How many tiles of each group may add element by element.
            let mut spare = [(ADDS - tiles) / height; MOST_GROUPS];
            for first in (0..table.rows()).step_by(height) {
                for (g, column) in (0..table.columns()).step_by(group).enumerate() {
                    let sums = panel(&mut certificate, first, column);
                    let anchored = columns[g].get_or_insert_with(|| Anchored::<S, 2>::new(window));
                    if certificate.judge_tile() {
                        let [a, b, c, d] = sums;
                        anchored.add(0, a);
                        anchored.add(1, b);
                        anchored.add(2, c);
                        anchored.add(3, d);
                        continue;
                    }
                    // One wide element among many tiles: the window itself
                    // takes more than the certificate.
                    if spare[g] == 0 {
                        return false;
                    }
                    spare[g] -= 1;
                    for row in first..table.rows().min(first + height) {
                        add_row::<S, T>(anchored, table.at(row, column));
                    }
                }
            }
            write_sums::<S>(&mut columns, [self.high, self.low])
        }
    }
}

/// Sums columns in a window.
pub(crate) struct WindowColumns<'a, T> {
    /// At most [`WINDOW_ROWS`] rows, and [`MOST_COLUMNS`] columns in whole groups.
    pub(crate) table: Table<'a, T>,
    pub(crate) window: Window,
    /// Where the sums go, a pair for each column.
    pub(crate) high: &'a mut [f64],
    pub(crate) low: &'a mut [f64],
}

impl<T: Widen> Kernel for WindowColumns<'_, T> {
    /// Whether all sums are certified.
    type Out = bool;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> bool {
        let group = VECTORS * S::LANES;
        let table = self.table;
        assert!(table.columns().is_multiple_of(group));
        let down = table.rows_ahead(PANEL);
        // SAFETY: as in `RangeColumns`.
        unsafe {
            let mut columns = [const { None }; MOST_GROUPS];
            for first in (0..table.rows()).step_by(PANEL) {
                let rows = PANEL.min(table.rows() - first);
                for (g, column) in (0..table.columns()).step_by(group).enumerate() {
                    let mut anchored =
                        columns[g].take().unwrap_or_else(|| Anchored::<S, 2>::new(self.window));
                    for row in first..first + rows {
                        table.prefetch(row, column, group, down);
                        add_row::<S, T>(&mut anchored, table.at(row, column));
                    }
                    columns[g] = Some(anchored);
                }
            }
            write_sums::<S>(&mut columns, [self.high, self.low])
        }
    }
}

/// Writes the sums of groups of columns, and says whether all are certified.
#[inline(always)]
unsafe fn write_sums<S: Simd>(
    groups: &mut [Option<Anchored<S, 2>>],
    sums: [&mut [f64]; 2],
) -> bool {
    let (group, mut certified) = (VECTORS * S::LANES, true);
    let [high, low] = sums.map(|sums| sums.chunks_exact_mut(group));
    // In place: there could be far more groups than there are, and moving them takes longer than short columns.
    let groups = groups.iter_mut().map_while(Option::take);
    for (anchored, (to_high, to_low)) in groups.zip(high.zip(low)) {
        // SAFETY: the caller has the instructions.
        unsafe {
            let [high, low] = anchored.moved(&mut certified);
            store::<S>(high, to_high);
            store::<S>(low, to_low);
        }
    }
    certified
}

/// Adds a row of a group to its window.
#[inline(always)]
unsafe fn add_row<S: Simd, T: Widen>(anchored: &mut Anchored<S, 2>, p: *const T) {
    // SAFETY: the caller guarantees a whole row of a group at `p`.
    unsafe {
        let [a, b] = T::widen::<S>(p);
        let [c, d] = T::widen::<S>(p.add(2 * S::LANES));
        anchored.add(0, a);
        anchored.add(1, b);
        anchored.add(2, c);
        anchored.add(3, d);
    }
}

/// Adds the lanes of a group to what is there.
#[inline(always)]
unsafe fn add_to<S: Simd>(group: [S::F; VECTORS], to: &mut [f64]) {
    let [a, b, c, d] = group;
    // SAFETY: the caller has the instructions, and `to` is as long as a group.
    unsafe {
        let old = |v: usize| S::load(to[v * S::LANES..(v + 1) * S::LANES].as_ptr());
        let sums = [S::add(a, old(0)), S::add(b, old(1)), S::add(c, old(2)), S::add(d, old(3))];
        store::<S>(sums, to);
    }
}

/// Writes the lanes of a group.
#[inline(always)]
unsafe fn store<S: Simd>(group: [S::F; VECTORS], to: &mut [f64]) {
    let [a, b, c, d] = group;
    // SAFETY: the caller has the instructions, and each part is as long as a
    // vector.
    unsafe {
        S::store(a, to[..S::LANES].as_mut_ptr());
        S::store(b, to[S::LANES..2 * S::LANES].as_mut_ptr());
        S::store(c, to[2 * S::LANES..3 * S::LANES].as_mut_ptr());
        S::store(d, to[3 * S::LANES..4 * S::LANES].as_mut_ptr());
    }
}

/// `high + low`, rounded once to f32: after rounding to odd that is right, as f64 has more than two
/// bits more (Boldo and Melquiond 2008).
#[inline(always)]
pub(crate) fn rounded_to_f32(high: f64, low: f64) -> f32 {
    sum_to_odd(high, low) as f32
}

/// `high + low`, rounded to odd.
///
/// The f64 sum `t` errs by `e`, which TwoSum gives exactly. If `e` is not 0 and `t` ends in an even
/// bit, its neighbour towards the true sum is taken. Neither overflows: sums are far below f64's end.
#[inline(always)]
pub(crate) fn sum_to_odd(high: f64, low: f64) -> f64 {
    let t = high + low;
    let v = t - high;
    to_odd(t, (high - (t - v)) + (low - v))
}

/// `t + e` rounded to odd, where `t` is it rounded to nearest.
#[inline(always)]
fn to_odd(t: f64, e: f64) -> f64 {
    let bits = t.to_bits();
    let moves = u64::from(e != 0.0) & !bits & 1;
    // Away from zero if `e` has the sign of `t`; a `t` of 0 is exact.
    let towards = u64::from((e > 0.0) != (t > 0.0));
    f64::from_bits(bits.wrapping_add(moves).wrapping_sub(2 * (moves & towards)))
}
