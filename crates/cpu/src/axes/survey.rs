//! The least and the greatest element of outputs: what is known of elements before they are added.

use super::round::Narrow;
use crate::exact::Widen;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd};
use crate::table::Table;
use warpfold_core::prefetch;

/// Lanes of the widest vector.
const MOST_LANES: usize = 8;

/// The elements of outputs.
#[derive(Clone, Copy)]
pub(super) enum Outputs<'a, T> {
    /// Each is a row.
    Rows(Rows<'a, T>),
    /// Each is a column.
    Columns(Table<'a, T>),
}

impl<T> Outputs<'_, T> {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        match self {
            Outputs::Rows(rows) => rows.count(),
            Outputs::Columns(table) => table.columns(),
        }
    }
}

/// Finds the least and the greatest element of each output, beside what there is, and whether there is
/// a NaN, which is neither.
pub(super) struct Survey<'a, T> {
    pub(super) outputs: Outputs<'a, T>,
    /// Three numbers of each output: see [`NONE`].
    pub(super) found: [&'a mut [f64]; 3],
}

/// What is found of no elements: the least one, the greatest one, and what is NaN where there is one.
pub(super) const NONE: [f64; 3] = [f64::INFINITY, f64::NEG_INFINITY, 0.0];

/// What elements that are infinite or NaN make of their sum, and of that of their magnitudes: finite if
/// there are none.
pub(super) fn specials([least, greatest, odd]: [f64; 3]) -> [f64; 2] {
    let infinite = |x: f64| if x.is_infinite() { x } else { 0.0 };
    // Of no numbers the least one is greater.
    let [low, high] = if least > greatest { [0.0; 2] } else { [least, greatest].map(infinite) };
    [low + high + odd, low.abs() + high.abs() + odd]
}

/// Compares as many elements as there are places.
#[inline(always)]
fn compare<T: Narrow>(items: &[T], [least, greatest, odd]: [&mut [f64]; 3]) {
    for (((item, least), greatest), odd) in items.iter().zip(least).zip(greatest).zip(odd) {
        let x = item.wide();
        *least = if x < *least { x } else { *least };
        *greatest = if x > *greatest { x } else { *greatest };
        *odd = if x.is_nan() { x } else { *odd };
    }
}

/// Two vectors of what was found, with two vectors of elements from `p` on.
///
/// # Safety
/// See [`Simd`] and [`Widen::widen`].
#[inline(always)]
unsafe fn compared<S: Simd, T: Widen>(found: [[S::F; 2]; 3], p: *const T) -> [[S::F; 2]; 3] {
    let [least, greatest, odd] = found;
    // SAFETY: passed on from the caller.
    unsafe {
        let [x, y] = T::widen::<S>(p);
        [
            [S::min(x, least[0]), S::min(y, least[1])],
            [S::max(x, greatest[0]), S::max(y, greatest[1])],
            [S::or_unordered(odd[0], x, x), S::or_unordered(odd[1], y, y)],
        ]
    }
}

impl<T: Widen + Narrow> Kernel for Survey<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Survey { outputs, found: [least, greatest, odd] } = self;
        let group = 2 * S::LANES;
        let mut lanes = [[0.0; 2 * MOST_LANES]; 3];
        match outputs {
            Outputs::Columns(table) => {
                let whole = table.columns() / group * group;
                for column in (0..whole).step_by(group) {
                    let some = column..column + group;
                    let to = [&mut *least, &mut *greatest, &mut *odd];
                    let to = to.map(|part| part[some.clone()].as_mut_ptr());
                    // SAFETY: the caller vouches for the instructions; a group of the table's columns,
                    // and as many places for what is found of them.
                    unsafe {
                        let mut found = [[S::splat(0.0); 2]; 3];
                        for (found, p) in found.iter_mut().zip(to) {
                            *found = [S::load(p), S::load(p.add(S::LANES))];
                        }
                        for row in 0..table.rows() {
                            found = compared::<S, T>(found, table.at(row, column));
                        }
                        for (p, [a, b]) in to.into_iter().zip(found) {
                            S::store(a, p);
                            S::store(b, p.add(S::LANES));
                        }
                    }
                }
                for row in 0..table.rows() {
                    let [least, greatest] = [&mut least[whole..], &mut greatest[whole..]];
                    compare(&table.row(row)[whole..], [least, greatest, &mut odd[whole..]]);
                }
            }
            Outputs::Rows(rows) => {
                for row in 0..rows.count() {
                    let items = rows.row(row);
                    let mut own = [&mut least[row..], &mut greatest[row..], &mut odd[row..]];
                    let Some(last) = items.len().checked_sub(group) else {
                        for item in items {
                            let own = own.each_mut().map(|part| &mut part[..1]);
                            compare(core::slice::from_ref(item), own);
                        }
                        continue;
                    };
                    // SAFETY: as above, of groups of the row, the last of which has some of the elements
                    // before it; the buffers hold two of the widest vectors.
                    unsafe {
                        let [low, high, any] = NONE;
                        let mut found =
                            [[S::splat(low); 2], [S::splat(high); 2], [S::splat(any); 2]];
                        for at in (0..items.len()).step_by(group) {
                            let items = &items[at.min(last)..][..group];
                            prefetch::ahead(items);
                            found = compared::<S, T>(found, items.as_ptr());
                        }
                        for (lanes, [a, b]) in lanes.iter_mut().zip(found) {
                            S::store(a, lanes.as_mut_ptr());
                            S::store(b, lanes[S::LANES..].as_mut_ptr());
                        }
                    }
                    let [low, high, any] = &lanes;
                    for lane in 0..group {
                        own[0][0] = own[0][0].min(low[lane]);
                        own[1][0] = own[1][0].max(high[lane]);
                        own[2][0] += any[lane];
                    }
                }
            }
        }
    }
}
