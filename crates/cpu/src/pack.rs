//! Copying a table of elements together, whatever its strides.
//!
//! Tables are turned in blocks that fit registers, and of every second or fourth element
//! vectors are loaded of which the others are dropped. What the baseline of x86-64 has
//! for that is as fast as memory, so that nothing here depends on the instruction set.

use warpfold_core::prefetch;

/// Some bytes of words, which are made more if they are too few: memory for copies, which begins with a
/// line of the cache.
pub(crate) fn room(words: &mut Vec<u64>, bytes: usize) -> &mut [u8] {
    if words.len() * 8 < bytes + (LINE - 8) {
        words.resize((bytes + (LINE - 8)).div_ceil(8), 0);
    }
    let first = before_line(words);
    &mut bytemuck::cast_slice_mut(words)[first..first + bytes]
}

/// What was last written to the [`room`] of these words, and what is behind that.
pub(crate) fn written(words: &[u64]) -> &[u8] {
    bytemuck::cast_slice(words).get(before_line(words)..).unwrap_or_default()
}

/// Bytes of the words that lie before a line.
fn before_line(words: &[u64]) -> usize {
    words.as_ptr().addr().wrapping_neg() % LINE
}

/// A table in memory.
#[derive(Clone, Copy)]
pub(crate) struct Pack {
    /// The first element.
    pub(crate) from: *const u8,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub(crate) size: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Bytes from one row to the next, and from one column to the next.
    pub(crate) row_stride: isize,
    pub(crate) column_stride: isize,
}

impl Pack {
    /// Fills `to` with the rows, one after the other.
    ///
    /// # Safety
    /// Every element of the table may be read, aligned or not.
    pub(crate) unsafe fn fill(self, to: &mut [u8]) {
        assert!(to.len() == self.rows * self.columns * self.size);
        // SAFETY: passed on from the caller.
        unsafe { self.fill_beside(to, self.columns) }
    }

    /// Fills `to` with the rows, each of which begins `pitch` elements after the one before.
    /// What lies between them is left as it is.
    ///
    /// # Safety
    /// As for [`fill`](Self::fill).
    pub(crate) unsafe fn fill_beside(self, to: &mut [u8], pitch: usize) {
        if self.rows == 0 || self.columns == 0 {
            return;
        }
        assert!(pitch >= self.columns);
        assert!(to.len() >= ((self.rows - 1) * pitch + self.columns) * self.size);
        // SAFETY: `to` has room for the table; the caller vouches for its elements.
        unsafe { self.fill_at(to.as_mut_ptr(), pitch) }
    }

    /// The same from an address on: what lies between the rows may be another thread's.
    ///
    /// # Safety
    /// As for [`fill`](Self::fill), and there is room for the rows, aligned or not.
    pub(crate) unsafe fn fill_at(self, to: *mut u8, pitch: usize) {
        // SAFETY: passed on from the caller.
        unsafe {
            match self.size {
                1 => self.copy::<u8>(to.cast(), pitch),
                2 => self.copy::<u16>(to.cast(), pitch),
                4 => self.copy::<u32>(to.cast(), pitch),
                _ => self.copy::<u64>(to.cast(), pitch),
            }
        }
    }

    /// The address of an element.
    #[inline(always)]
    fn at<W>(&self, row: usize, column: usize) -> *const W {
        let offset =
            row.cast_signed() * self.row_stride + column.cast_signed() * self.column_stride;
        self.from.wrapping_offset(offset).cast()
    }

    /// # Safety
    /// As for [`fill`](Self::fill); `to` has room for the table, aligned or not.
    unsafe fn copy<W: Word>(self, to: *mut W, pitch: usize) {
        let Pack { rows, columns, row_stride, column_stride, .. } = self;
        let size = size_of::<W>().cast_signed();
        // SAFETY: rows of the table, each to its place.
        unsafe {
            if column_stride == size {
                for row in 0..rows {
                    let (from, to) = (self.at::<W>(row, 0), to.add(row * pitch));
                    if columns < SHORT {
                        one_by_one(from, size, to, 1, columns);
                    } else {
                        core::ptr::copy_nonoverlapping(
                            from.cast::<u8>(),
                            to.cast(),
                            columns * size_of::<W>(),
                        );
                    }
                }
            } else if row_stride == size && rows >= W::SIDE && columns >= W::SIDE {
                self.turn(to, pitch);
            } else if columns < W::SIDE && rows > columns && rows <= FEW_ROWS {
                for column in 0..columns {
                    one_by_one(self.at(0, column), row_stride, to.add(column), pitch, rows);
                }
            } else {
                let step = if column_stride % size == 0 { column_stride / size } else { 0 };
                let follow = rows == 1 || row_stride == columns.cast_signed() * column_stride;
                for row in 0..rows {
                    let (from, to) = (self.at::<W>(row, 0), to.add(row * pitch));
                    let done = match step {
                        2 if SKIPS => every_second(from, to, columns, follow),
                        4 if SKIPS => every_fourth(from, to, columns),
                        _ => 0,
                    };
                    let from = from.wrapping_byte_offset(done.cast_signed() * column_stride);
                    one_by_one(from, column_stride, to.add(done), 1, columns - done);
                }
            }
        }
    }

    /// Copies columns whose elements follow each other, in blocks.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy); there is a block at least.
    unsafe fn turn<W: Word>(self, to: *mut W, pitch: usize) {
        let Pack { rows, columns, column_stride, .. } = self;
        let (last_row, last_column) = (rows - W::SIDE, columns - W::SIDE);
        // Columns that begin soon after each other are read in the order of memory. Of others the next
        // ones are asked for: no processor does that by itself from page to page.
        let near = column_stride.unsigned_abs() < AHEAD;
        for left in (0..columns).step_by(W::SIDE) {
            // The last blocks have some of the rows and columns before them once more.
            let left = left.min(last_column);
            for top in (0..rows).step_by(W::SIDE) {
                let top = top.min(last_row);
                // SAFETY: blocks of the table.
                unsafe {
                    let (from, to) = (self.at::<W>(top, left), to.add(top * pitch + left));
                    if near {
                        prefetch::near(from.cast::<u8>().wrapping_add(AHEAD));
                    } else if (top * size_of::<W>()).is_multiple_of(LINE) {
                        for column in left + COLUMNS_AHEAD..left + COLUMNS_AHEAD + W::SIDE {
                            prefetch::near(self.at::<u8>(top, column));
                        }
                    }
                    turn(from, column_stride, to, pitch);
                }
            }
        }
    }
}

/// Bytes ahead at which memory is asked for.
const AHEAD: usize = 1 << 10;
/// Columns ahead, where they lie farther apart.
const COLUMNS_AHEAD: usize = 8;
/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// Rows of fewer elements are not worth a call of `memcpy`.
const SHORT: usize = 16;
/// Of so many rows each has a line in the first cache: shorter ones are copied column by column.
const FEW_ROWS: usize = 64;

/// Copies elements `stride` bytes apart to places `step` elements apart, each by a load of its own.
///
/// # Safety
/// The elements may be read, and `to` has room for them.
#[inline(always)]
unsafe fn one_by_one<W: Word>(from: *const W, stride: isize, to: *mut W, step: usize, len: usize) {
    let mut from = from;
    // Of the longest elements four are loaded before they are stored.
    let whole = if size_of::<W>() == 8 && step == 1 { len / 4 * 4 } else { 0 };
    for i in (0..whole).step_by(4) {
        // SAFETY: the caller vouches for it, here and below.
        unsafe {
            let four = [0, 1, 2, 3].map(|i| from.wrapping_byte_offset(i * stride).read_unaligned());
            to.add(i).cast::<[W; 4]>().write_unaligned(four);
        }
        from = from.wrapping_byte_offset(4 * stride);
    }
    for i in whole..len {
        // SAFETY: as above.
        unsafe { to.add(i * step).write_unaligned(from.read_unaligned()) };
        from = from.wrapping_byte_offset(stride);
    }
}

/// Copies every second element, and returns how many it has copied: those whose gaps
/// lie before the last element. Memory is asked for beyond these if others `follow` there.
///
/// The gaps may be another thread's to write, and are on pages of elements. So they are read by
/// instructions that compilers know nothing of, which is to read each byte by itself, atomically, and
/// what was read of gaps is dropped.
///
/// # Safety
/// As for [`one_by_one`].
#[inline(always)]
unsafe fn every_second<W: Word>(from: *const W, to: *mut W, len: usize, follow: bool) -> usize {
    let step = BYTES / size_of::<W>();
    let done = len.saturating_sub(1) / step * step;
    let far = if follow { done } else { done.saturating_sub(AHEAD / size_of::<W>()) };
    for at in (0..done).step_by(step) {
        // SAFETY: the gap behind element `done - 1` ends before the next element.
        unsafe {
            let from = from.add(2 * at);
            if at < far {
                prefetch::near(from.cast::<u8>().wrapping_add(2 * AHEAD));
            }
            let both = W::even(vector(from), vector(from.add(step)));
            to.add(at).cast::<Vector>().write(both);
        }
    }
    done
}

/// The same of every fourth.
///
/// # Safety
/// As for [`every_second`].
#[inline(always)]
unsafe fn every_fourth<W: Word>(from: *const W, to: *mut W, len: usize) -> usize {
    let step = BYTES / size_of::<W>();
    let done = len.saturating_sub(1) / step * step;
    for at in (0..done).step_by(step) {
        // SAFETY: as above.
        unsafe {
            let from = from.add(4 * at);
            let half = |i: usize| {
                W::even(vector(from.add(2 * i * step)), vector(from.add((2 * i + 1) * step)))
            };
            to.add(at).cast::<Vector>().write(W::even(half(0), half(1)));
        }
    }
    done
}

/// Bytes of a [`Vector`].
const BYTES: usize = 16;
/// Whether there is an instruction that reads a vector behind the back of the compiler. Miri, which has
/// none, looks at the bounds in the tests here, where gaps are nobody else's.
const SKIPS: bool = cfg!(any(x86_vectors, neon_vectors, all(test, miri)));

/// Any elements.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Vector([u8; BYTES]);

/// A vector at an address.
///
/// # Safety
/// These bytes are there, whoever may write those that are dropped.
#[inline(always)]
unsafe fn vector<W>(from: *const W) -> Vector {
    #[cfg(not(any(x86_vectors, neon_vectors)))]
    // SAFETY: the caller vouches for the bytes, which nobody writes in tests; here and below.
    let bytes = unsafe { from.cast::<[u8; BYTES]>().read() };
    #[cfg(x86_vectors)]
    // SAFETY: SSE2 is part of x86-64.
    let bytes = unsafe {
        let bytes;
        core::arch::asm!("movdqu {}, [{}]", out(xmm_reg) bytes, in(reg) from,
            options(pure, readonly, nostack, preserves_flags));
        core::mem::transmute::<core::arch::x86_64::__m128i, [u8; BYTES]>(bytes)
    };
    #[cfg(neon_vectors)]
    // SAFETY: NEON is part of this architecture.
    let bytes = unsafe {
        let bytes;
        core::arch::asm!("ldr {:q}, [{}]", out(vreg) bytes, in(reg) from,
            options(pure, readonly, nostack, preserves_flags));
        core::mem::transmute::<core::arch::aarch64::uint8x16_t, [u8; BYTES]>(bytes)
    };
    Vector(bytes)
}

/// An element as an integer of its size.
trait Word: bytemuck::Pod {
    /// Rows and columns of the blocks that are turned.
    const SIDE: usize;

    /// The elements of two vectors in turn: those of the lower halves, and of the upper ones.
    fn zip(a: Vector, b: Vector) -> [Vector; 2];

    /// The elements 0, 2, 4, ... of two vectors.
    fn even(a: Vector, b: Vector) -> Vector;
}

/// Writes a block's columns, which are `stride` bytes apart and hold their elements side by side, as
/// rows that begin `pitch` elements apart.
///
/// What the vectors hold together is numbered by column and row. To zip the first half of them with the
/// second one moves the upper bit of a number to its end, and after all bits of the column it is that of
/// row and column.
///
/// # Safety
/// The block may be read, and there is room for it.
#[inline(always)]
unsafe fn turn<W: Word>(from: *const W, stride: isize, to: *mut W, pitch: usize) {
    /// The most vectors of a block.
    const MOST: usize = 8;
    type Half = [u8; BYTES / 2];
    let (column, size) = const { (W::SIDE * size_of::<W>(), size_of::<W>()) };
    let half = const { W::SIDE * W::SIDE * size_of::<W>() / BYTES / 2 };
    let from = |i: usize| from.wrapping_byte_offset(i.cast_signed() * stride);
    let to = |i: usize| to.wrapping_byte_add(i * pitch * size);
    let mut block = [Vector([0; BYTES]); MOST];
    for (i, vector) in block.iter_mut().enumerate().take(2 * half) {
        // SAFETY: a column of the block, or two; the caller vouches for these and for the rows below.
        *vector = unsafe {
            if column == BYTES {
                from(i).cast::<Vector>().read()
            } else {
                let two = [from(2 * i), from(2 * i + 1)];
                Vector(bytemuck::must_cast(two.map(|one| one.cast::<Half>().read())))
            }
        };
    }
    for _ in 0..const { W::SIDE.ilog2() } {
        let zipped = block;
        for i in 0..half {
            [block[2 * i], block[2 * i + 1]] = W::zip(zipped[i], zipped[half + i]);
        }
    }
    for (i, vector) in block.iter().enumerate().take(2 * half) {
        // SAFETY: as above.
        unsafe {
            if column == BYTES {
                to(i).cast::<Vector>().write(*vector);
            } else {
                let [one, two]: [Half; 2] = bytemuck::must_cast(vector.0);
                to(2 * i).cast::<Half>().write(one);
                to(2 * i + 1).cast::<Half>().write(two);
            }
        }
    }
}

#[cfg(x86_vectors)]
mod sse2 {
    use super::{Vector, Word};
    use core::arch::x86_64::*;
    use core::mem::transmute;

    macro_rules! word {
        ($($word:ty, $side:literal, $low:ident, $high:ident, |$a:ident, $b:ident| $even:expr;)*) => {$(
            // SAFETY, for every block: SSE2 is part of x86-64; vectors are bytes.
            #[expect(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
            impl Word for $word {
                const SIDE: usize = $side;

                #[inline(always)]
                fn zip(a: Vector, b: Vector) -> [Vector; 2] {
                    unsafe {
                        let [a, b]: [__m128i; 2] = transmute([a, b]);
                        transmute([$low(a, b), $high(a, b)])
                    }
                }

                #[inline(always)]
                fn even(a: Vector, b: Vector) -> Vector {
                    unsafe {
                        let [$a, $b]: [__m128i; 2] = transmute([a, b]);
                        transmute($even)
                    }
                }
            }
        )*};
    }
    word! {
        u8, 8, _mm_unpacklo_epi8, _mm_unpackhi_epi8, |a, b| {
            let mask = _mm_set1_epi16(0xff);
            _mm_packus_epi16(_mm_and_si128(a, mask), _mm_and_si128(b, mask))
        };
        u16, 8, _mm_unpacklo_epi16, _mm_unpackhi_epi16, |a, b| {
            // Words that fit a half, with its sign.
            let low = |v| _mm_srai_epi32::<16>(_mm_slli_epi32::<16>(v));
            _mm_packs_epi32(low(a), low(b))
        };
        u32, 4, _mm_unpacklo_epi32, _mm_unpackhi_epi32, |a, b| {
            let [a, b] = [_mm_castsi128_ps(a), _mm_castsi128_ps(b)];
            _mm_castps_si128(_mm_shuffle_ps::<0b10_00_10_00>(a, b))
        };
        u64, 2, _mm_unpacklo_epi64, _mm_unpackhi_epi64, |a, b| _mm_unpacklo_epi64(a, b);
    }
}

/// The same in plain words.
#[cfg(not(x86_vectors))]
mod words {
    use super::{BYTES, Vector, Word};

    macro_rules! word {
        ($($word:ty, $side:literal;)*) => {$(
            impl Word for $word {
                const SIDE: usize = $side;

                #[inline(always)]
                fn zip(a: Vector, b: Vector) -> [Vector; 2] {
                    const LANES: usize = BYTES / size_of::<$word>();
                    let [a, b]: [[$word; LANES]; 2] = bytemuck::must_cast([a.0, b.0]);
                    let zipped: [[$word; 2]; LANES] = core::array::from_fn(|i| [a[i], b[i]]);
                    bytemuck::must_cast::<_, [[u8; BYTES]; 2]>(zipped).map(Vector)
                }

                #[inline(always)]
                fn even(a: Vector, b: Vector) -> Vector {
                    const LANES: usize = BYTES / size_of::<$word>();
                    let all: [$word; 2 * LANES] = bytemuck::must_cast([a.0, b.0]);
                    let even: [$word; LANES] = core::array::from_fn(|i| all[2 * i]);
                    Vector(bytemuck::must_cast(even))
                }
            }
        )*};
    }
    word!(u8, 8; u16, 8; u32, 4; u64, 2;);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<W: Word + PartialEq + core::fmt::Debug>(make: fn(usize) -> W) {
        let items: Vec<W> = (0..4000).map(make).collect();
        let size = size_of::<W>();
        let sizes = [(1, 1), (3, 5), (8, 8), (17, 33), (4, 40), (40, 4), (23, 2), (1, 90), (9, 1)];
        for (rows, columns) in sizes.into_iter().take(if cfg!(miri) { 4 } else { 9 }) {
            // As they lie, turned, with gaps, both, and backwards.
            for (row, column) in [
                (columns as isize, 1),
                (1, rows as isize),
                (2 * columns as isize, 2),
                (1, rows as isize + 3),
                (3, 3 * rows as isize),
                (4 * columns as isize + 1, 4),
                (3 * columns as isize, 3),
                (columns as isize, -1),
                (2 * columns as isize, -2),
                (-(4 * columns as isize), 4),
            ] {
                let place = |r: usize, c: usize| r as isize * row + c as isize * column;
                let ends = [(0, 0), (0, columns - 1), (rows - 1, 0), (rows - 1, columns - 1)];
                let low = ends.map(|(r, c)| place(r, c)).into_iter().min().unwrap();
                let high = ends.map(|(r, c)| place(r, c)).into_iter().max().unwrap();
                // Nothing before the first or behind the last element is there to be read.
                let part = items[..(high - low + 1) as usize].to_vec().into_boxed_slice();
                let pack = Pack {
                    from: part.as_ptr().wrapping_offset(-low).cast(),
                    size,
                    rows,
                    columns,
                    row_stride: row * size as isize,
                    column_stride: column * size as isize,
                };
                let mut to = vec![0u8; rows * columns * size];
                // SAFETY: elements of `part`, and so is what lies between them.
                unsafe { pack.fill(&mut to) };
                for (i, got) in to.chunks_exact(size).enumerate() {
                    let expected = items[(place(i / columns, i % columns) - low) as usize];
                    let got: W = bytemuck::pod_read_unaligned(got);
                    assert_eq!(got, expected, "{rows} {columns} {row} {column}: {i}");
                }
                // The same with room behind the rows.
                let pitch = columns + 3;
                let mut wide = vec![0xa5u8; (rows * pitch - 3) * size];
                // SAFETY: as above.
                unsafe { pack.fill_beside(&mut wide, pitch) };
                for (row, got) in wide.chunks(pitch * size).enumerate() {
                    let (got, behind) = got.split_at(columns * size);
                    assert_eq!(got, &to[row * columns * size..][..columns * size]);
                    assert!(behind.iter().all(|&byte| byte == 0xa5));
                }
            }
        }
    }

    #[test]
    fn tables_are_copied_whatever_their_strides() {
        check::<u8>(|i| (i * 37 + i / 256) as u8);
        check::<u16>(|i| (i * 40_503) as u16);
        check::<u32>(|i| (i as u32).wrapping_mul(2_654_435_761));
        check::<u64>(|i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }

    #[test]
    fn elements_need_not_be_aligned() {
        let bytes: Vec<u8> = (0..900).map(|i| (i * 7) as u8).collect();
        for (row_stride, column_stride) in [(80, 8), (8, 80), (160, 16), (8, 88)] {
            let from = bytes[1..].as_ptr();
            let pack = Pack { from, size: 8, rows: 5, columns: 5, row_stride, column_stride };
            let mut to = [0u8; 200];
            // SAFETY: elements of `bytes`.
            unsafe { pack.fill(&mut to) };
            for (i, got) in to.chunks_exact(8).enumerate() {
                let at = 1 + i as isize / 5 * row_stride + i as isize % 5 * column_stride;
                assert_eq!(got, &bytes[at as usize..at as usize + 8]);
            }
        }
    }
}
