//! Two columns of values, row by row: what `dot` takes.

use crate::batch::Gap;
use warpfold::internal::GroupValues;

/// Memory for rows of which one column has a value and the other has none.
#[derive(Debug, Default)]
pub(super) struct Pair {
    words: [Vec<u64>; 2],
    gaps: Vec<(u64, u64)>,
}

impl Pair {
    /// The elements of the rows in which both columns have a value. `items` are those of
    /// each, of `size` bytes, without those of its gaps.
    pub(super) fn rows<'a>(
        &'a mut self,
        items: [&'a [u8]; 2],
        size: usize,
        gaps: [&[Gap]; 2],
        rows: u64,
    ) -> GroupValues<'a> {
        self.gaps.clear();
        if gaps[0] == gaps[1] {
            self.gaps.extend(gaps[0].iter().map(|gap| (gap.row, gap.len)));
            return GroupValues { items: items[0], others: items[1], gaps: &self.gaps, wide: &[] };
        }
        let mut taken = [0, 0];
        for (words, items) in self.words.iter_mut().zip(items) {
            words.resize(items.len().div_ceil(8), 0);
        }
        let mut kept = 0;
        let mut runs = gaps.map(|gaps| Runs { gaps, rows });
        let mut row = 0;
        while row < rows {
            // As many rows as have the same in both columns.
            let [(left, end), (right, other)] = runs.each_mut().map(|runs| runs.at(row));
            let end = end.min(other);
            let bytes = (end - row) as usize * size;
            if left && right {
                for ((words, items), from) in self.words.iter_mut().zip(items).zip(taken) {
                    let to: &mut [u8] = bytemuck::cast_slice_mut(words);
                    to[kept..kept + bytes].copy_from_slice(&items[from..from + bytes]);
                }
                kept += bytes;
            } else {
                match self.gaps.last_mut() {
                    Some((first, len)) if *first + *len == row => *len += end - row,
                    _ => self.gaps.push((row, end - row)),
                }
            }
            for (taken, has) in taken.iter_mut().zip([left, right]) {
                *taken += if has { bytes } else { 0 };
            }
            row = end;
        }
        let [items, others] =
            self.words.each_ref().map(|words| &bytemuck::cast_slice(words)[..kept]);
        GroupValues { items, others, gaps: &self.gaps, wide: &[] }
    }
}

/// Runs of rows with a value and without, asked for in ascending order.
struct Runs<'a> {
    gaps: &'a [Gap],
    rows: u64,
}

impl Runs<'_> {
    /// Whether this row has a value, and up to where all rows are like it.
    fn at(&mut self, row: u64) -> (bool, u64) {
        while let [gap, rest @ ..] = self.gaps {
            if gap.row + gap.len > row {
                return if gap.row <= row { (false, gap.row + gap.len) } else { (true, gap.row) };
            }
            self.gaps = rest;
        }
        (true, self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements of a column, and its gaps.
    fn column(rows: &[Option<u16>]) -> (Vec<u16>, Vec<Gap>) {
        let mut gaps: Vec<Gap> = Vec::new();
        for (row, _) in rows.iter().enumerate().filter(|(_, value)| value.is_none()) {
            match gaps.last_mut() {
                Some(gap) if gap.row + gap.len == row as u64 => gap.len += 1,
                _ => gaps.push(Gap { row: row as u64, len: 1 }),
            }
        }
        (rows.iter().copied().flatten().collect(), gaps)
    }

    #[test]
    fn rows_that_lack_one_value_are_left_out() {
        let mut pair = Pair::default();
        // Every pattern of five rows in both columns.
        for pattern in 0..1u32 << 10 {
            let rows = |shift: u32, first: u16| -> Vec<Option<u16>> {
                let has = |i: u32| pattern >> (shift + i) & 1 == 1;
                (0..5).map(|i| has(i).then_some(first + i as u16)).collect()
            };
            let (left, right) = (rows(0, 10), rows(5, 20));
            let (a, b) = (column(&left), column(&right));
            let items = [bytemuck::cast_slice(&a.0), bytemuck::cast_slice(&b.0)];
            let found = pair.rows(items, 2, [&a.1, &b.1], 5);
            let both = left.iter().zip(&right).map(|(l, r)| l.zip(*r));
            let (l, r): (Vec<u16>, Vec<u16>) = both.clone().flatten().unzip();
            assert_eq!(found.items, bytemuck::cast_slice::<u16, u8>(&l), "{pattern:b}");
            assert_eq!(found.others, bytemuck::cast_slice::<u16, u8>(&r), "{pattern:b}");
            let missing = found.gaps.iter().flat_map(|&(first, len)| first..first + len);
            let expected = both.enumerate().filter(|(_, row)| row.is_none());
            assert!(missing.eq(expected.map(|(row, _)| row as u64)), "{pattern:b}");
        }
    }
}
