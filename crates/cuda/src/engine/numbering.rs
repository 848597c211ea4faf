//! Numbers of rows by their keys, and the order of the keys: `kernels/number.cu`.
//!
//! Keys that have no larger range than there are rows are numbers as they are, less the least of
//! them. Others are entered in a table, whose keys are put in order. Or the rows themselves are put
//! in the order of their keys, which takes longer and does for any number of groups and any
//! operation. Several columns of keys are one, of which each is a digit.
//!
//! The table is probed linearly (Knuth, *The Art of Computer Programming*, 6.4); the sort goes from the
//! lowest digit to the highest (5.2.5).

use super::catalogue::{GROUP_ROWS, GROUP_THREADS, ORDER_DIGITS, ORDER_EDGES};
use super::kernels::Program;
use super::scratch::GroupMemory;
use super::segments::{Boundaries, Segments, Width};
use super::{Array, Engine, Groups};
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::DType;
use warpfold_core::op::{Kind, Op, Rules};

/// Rows that a block takes at once.
const TILE: u64 = (GROUP_THREADS * GROUP_ROWS) as u64;
/// Keys that may always be numbers themselves; more only where there are as many rows.
const FEW: u64 = 1 << 16;
/// The least and the most slots of a table: one that fits in the second cache.
const LEAST_LOG: u32 = 10;
const MOST_LOG: u32 = 22;
/// Bytes of a slot: a key and its number.
const SLOT: u64 = 12;
/// Bytes of a key that was found: twice a key and a place.
const FOUND: u64 = 24;
/// Distinct keys that are put in order in one launch, and lanes that share one of them.
const FEW_KEYS: u64 = 1 << 14;
const RANK_LANES: u64 = 8;
/// Bits of a digit, and blocks of a multiprocessor that share a pass of an order.
const DIGIT: u32 = ORDER_DIGITS.ilog2();
/// What stands for a digit where keys that differ from the one before are picked.
const EDGES: u32 = ORDER_EDGES as u32;
const BLOCKS: u32 = 2;

/// What a launch does: `Phase` of the kernel.
#[derive(Clone, Copy)]
enum Phase {
    Join,
    Enter,
    List,
    Number,
    LookUp,
    Rank,
    Count,
    Place,
    Pick,
    Keys,
    Widen,
    Positions,
}

/// Distinct keys, and a place or a number of each.
#[derive(Clone, Copy, Default)]
struct Keyed {
    keys: Address,
    places: Address,
}

/// The parameters of the kernel, which has the same words.
#[derive(Clone, Copy, Default)]
struct Parameters {
    keys: Address,
    from: Address,
    to: Address,
    n: u64,
    least: u64,
    factor: u64,
    range: u64,
    table: Address,
    numbers: Address,
    log: u32,
    found_count: Address,
    rows: Address,
    found: Keyed,
    others: Keyed,
    counts: Address,
    marks: Address,
    shift: u32,
    size: usize,
}

impl Parameters {
    fn block(&self, phase: Phase) -> Argument {
        let two = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        Argument::block([
            self.keys,
            self.from,
            self.to,
            self.n,
            self.least,
            self.factor,
            self.range,
            self.table,
            self.numbers,
            u64::from(self.log),
            self.found_count,
            self.found_count + 4,
            self.rows,
            self.found.keys,
            self.found.places,
            self.others.keys,
            self.others.places,
            self.counts,
            self.marks,
            two(self.shift, self.size as u32),
            phase as u64,
        ])
    }
}

/// What is put in order, each in memory of its own.
#[derive(Clone, Copy)]
enum Of {
    Keys,
    Rows,
}

/// A column of keys as a digit of the joint key.
#[derive(Clone, Copy)]
struct KeyDigit {
    dtype: DType,
    least: u64,
    /// Joint keys that differ in later columns only, and how many keys the column may have; 0
    /// of the first column, whose digit is what is left.
    factor: u64,
    range: u64,
}

/// The joint keys of rows.
pub(super) struct Joined {
    digits: Vec<KeyDigit>,
    /// A column of them, or the only one of the keys, and the least of these.
    pub(super) keys: Array,
    least: u64,
    /// How many there are from the least to the greatest, and bits of their differences.
    range: u128,
    bits: u32,
}

impl Joined {
    /// Keys that are numbers of groups.
    pub(super) fn dense(keys: Array) -> Joined {
        let digits = vec![KeyDigit { dtype: keys.dtype, least: 0, factor: 1, range: 0 }];
        Joined { digits, keys, least: 0, range: 0, bits: 0 }
    }

    /// The type of a column of keys.
    pub(super) fn key_type(&self, column: usize) -> Option<DType> {
        self.digits.get(column).map(|digit| digit.dtype)
    }
}

/// Groups in the order of their keys: the joint keys of these, and their places among all numbers;
/// no addresses where both are what they count.
#[derive(Clone, Copy, Default)]
pub(super) struct Order(Keyed);

/// Rows in the order of their keys.
#[derive(Clone, Copy)]
pub(super) struct SortedRows {
    rows: Address,
    /// The first row of each group, of 32 bits, and how many rows there are.
    offsets: Address,
    /// How many groups.
    pub(super) count: u64,
    pub(super) order: Order,
}

impl Engine {
    /// The least of some integers, and how many there are from it to the greatest.
    ///
    /// # Safety
    /// As for [`Engine::reduce`].
    unsafe fn range(&self, keys: Array, stream: Stream) -> Result<Option<(u64, u128)>> {
        let dtype = keys.dtype;
        if dtype.is_float() || dtype == DType::Bool || keys.len == 0 {
            return Ok(None);
        }
        // SAFETY: passed on from the caller.
        let state = unsafe { self.reduce(Kind::Extrema, keys, stream) }?;
        let extremes = state.finish(Op::MinMax, &Rules::default())?;
        let Some(greatest) = extremes.second() else { return Ok(None) };
        let least = extremes.first().to_bits();
        // In the keys' own width, where it is no negative number.
        let bits = 8 * dtype.size() as u32;
        let apart = greatest.to_bits().wrapping_sub(least) & (u64::MAX >> (64 - bits));
        Ok(Some((least, u128::from(apart) + 1)))
    }

    /// The least of some integers, if floats of 64 bits have room for how far others are from it.
    ///
    /// # Safety
    /// As for [`Engine::reduce`].
    pub(super) unsafe fn least_of_near(&self, array: Array, stream: Stream) -> Result<Option<u64>> {
        // SAFETY: passed on from the caller.
        let range = unsafe { self.range(array, stream)? };
        Ok(range.filter(|&(_, range)| range <= 1 << f64::MANTISSA_DIGITS).map(|(least, _)| least))
    }

    /// Leaves how far integers are from the least of them at `to`, as floats of 64 bits.
    ///
    /// # Safety
    /// As for [`Engine::reduce`]; nobody else uses `to`, which has room for them.
    pub(super) unsafe fn widen(
        &self,
        array: Array,
        least: u64,
        to: Address,
        stream: Stream,
    ) -> Result<()> {
        let Array { address: keys, len: n, dtype } = array;
        let size = dtype.size();
        let all = Parameters { keys, to, n, least, size, ..Parameters::default() };
        self.launch_numbering(Phase::Widen, self.blocks_of_rows(n), &all, stream)
    }

    fn launch_numbering(
        &self,
        phase: Phase,
        blocks: u64,
        parameters: &Parameters,
        stream: Stream,
    ) -> Result<()> {
        let kernel = self.program(Program::Number)?;
        let launch = Launch::linear(blocks as u32, GROUP_THREADS as u32);
        // SAFETY: the callers name memory that has room for what the phase reads and writes.
        unsafe { self.device.launch(stream, kernel, &launch, &[parameters.block(phase)]) }
    }

    /// Blocks that take `n` rows or places, a tile at once.
    fn blocks_of_rows(&self, n: u64) -> u64 {
        let at_once = self.machine().blocks_at_once(Program::Number.blocks());
        n.div_ceil(TILE).clamp(1, u64::from(at_once))
    }
}

/// Rows whose keys get numbers.
pub(super) struct Numbering<'a> {
    pub(super) engine: &'a Engine,
    pub(super) stream: Stream,
    pub(super) memory: &'a mut GroupMemory,
}

impl Numbering<'_> {
    /// The joint keys of rows, of one column or several; none where keys are no integers, or have
    /// more than 64 bits together.
    ///
    /// # Safety
    /// As for [`Engine::reduce`], of every column.
    pub(super) unsafe fn join(&mut self, columns: &[Array]) -> Result<Option<Joined>> {
        let mut digits = Vec::with_capacity(columns.len());
        let mut all = 1u128;
        for &keys in columns.iter().rev() {
            // SAFETY: passed on from the caller.
            let Some((least, range)) = (unsafe { self.engine.range(keys, self.stream)? }) else {
                return Ok(None);
            };
            let Ok(factor) = u64::try_from(all) else { return Ok(None) };
            let is_first = digits.len() + 1 == columns.len();
            let range_behind = if is_first { 0 } else { range as u64 };
            digits.push(KeyDigit { dtype: keys.dtype, least, factor, range: range_behind });
            all = all.saturating_mul(range);
        }
        digits.reverse();
        let (Some(&first), true) = (columns.first(), all <= 1 << 64) else { return Ok(None) };
        let bits = u128::BITS - (all - 1).leading_zeros();
        let mut joined = Joined { keys: first, least: 0, range: all, bits, digits };
        if let [one] = &joined.digits[..] {
            joined.least = one.least;
            return Ok(Some(joined));
        }
        let (device, n) = (&*self.engine.device, first.len);
        let (to, _) = self.memory.joined.reserve(device, self.stream, 8 * n, 8 * n)?;
        for (i, (keys, digit)) in columns.iter().zip(&joined.digits).enumerate() {
            let from = if i == 0 { 0 } else { to };
            let (keys, size) = (keys.address, keys.dtype.size());
            let KeyDigit { least, range: factor, .. } = *digit;
            let all =
                Parameters { keys, from, to, n, least, factor, size, ..Parameters::default() };
            self.launch(Phase::Join, self.blocks(n), &all)?;
        }
        joined.keys = Array { address: to, len: n, dtype: DType::U64 };
        Ok(Some(joined))
    }

    /// Groups whose numbers are in the order of their keys, and these; none where keys that have a
    /// large range are too many for a table.
    ///
    /// # Safety
    /// As for [`Engine::reduce`], of the keys.
    pub(super) unsafe fn number(&mut self, joined: &Joined) -> Result<Option<(Groups, Order)>> {
        let Joined { keys, least, range, .. } = *joined;
        if range <= u128::from(keys.len.max(FEW)) {
            let groups = Groups { keys, least, count: range as u64 };
            return Ok(Some((groups, Order::default())));
        }
        // SAFETY: passed on from the caller.
        unsafe { self.enter(joined) }
    }

    fn launch(&self, phase: Phase, blocks: u64, parameters: &Parameters) -> Result<()> {
        self.engine.launch_numbering(phase, blocks, parameters, self.stream)
    }

    /// Blocks that take `n` rows or places, a tile at once.
    fn blocks(&self, n: u64) -> u64 {
        self.engine.blocks_of_rows(n)
    }

    /// Enters keys in a table, and numbers rows by the order of the distinct ones.
    ///
    /// # Safety
    /// As for [`number`](Self::number).
    unsafe fn enter(&mut self, joined: &Joined) -> Result<Option<(Groups, Order)>> {
        let Joined { keys, least, bits, .. } = *joined;
        let (device, stream, n) = (&*self.engine.device, self.stream, keys.len);
        let (rows, _) = self.memory.rows.reserve(device, stream, 4 * n, 4 * n)?;
        let log = (2 * n).next_power_of_two().ilog2().clamp(LEAST_LOG, MOST_LOG);
        let slots = (1u64 << log) + 1;
        let bytes = SLOT * slots;
        let (table, _) = self.memory.table.reserve(device, stream, bytes, bytes)?;
        let found = self.keyed(Of::Keys, n.min(slots))?;
        let (numbers, size) = (table + 8 * slots, keys.dtype.size());
        let all =
            Parameters { keys: keys.address, least, table, numbers, log, rows, size, ..found };
        // SAFETY: the memory was made here, with as many bytes.
        unsafe { device.fill(stream, table, 0xff, 8 * slots)? };
        self.launch(Phase::Enter, self.blocks(n), &Parameters { n, ..all })?;
        self.launch(Phase::List, self.blocks(slots), &Parameters { n: slots, ..all })?;
        let [count, full] = self.counts(&all)?.map(u64::from);
        if full != 0 {
            return Ok(None);
        }
        let sorted = self.sort(Of::Keys, Parameters { n: count, ..all }, bits)?;
        self.launch(Phase::Number, self.blocks(count), &sorted)?;
        self.launch(Phase::LookUp, self.blocks(n), &Parameters { n, ..sorted })?;
        let keys = Array { address: rows, len: n, dtype: DType::U32 };
        let order = Order(Keyed { places: 0, ..sorted.found });
        Ok(Some((Groups { keys, least: 0, count }, order)))
    }

    /// Room for `most` keys that are put in order, and counters of what is found, which are zero.
    fn keyed(&mut self, of: Of, most: u64) -> Result<Parameters> {
        let (device, stream) = (&*self.engine.device, self.stream);
        let counts = 4 * ORDER_DIGITS as u64 * self.order_blocks(most);
        let bytes = FOUND * most + counts + 8;
        let memory = match of {
            Of::Keys => &mut self.memory.found,
            Of::Rows => &mut self.memory.sorted,
        };
        let (at, _) = memory.reserve(device, stream, bytes, bytes)?;
        let keyed = |i: u64| Keyed { keys: at + 8 * i * most, places: at + (16 + 4 * i) * most };
        let counts_at = at + FOUND * most;
        let (found_count, others) = (counts_at + counts, keyed(1));
        // SAFETY: the words are in the memory that was made here.
        unsafe { device.fill(stream, found_count, 0, 8)? };
        let (found, counts) = (keyed(0), counts_at);
        Ok(Parameters { found, others, counts, found_count, ..Parameters::default() })
    }

    /// Puts keys of some bits in order, and places beside them.
    fn sort(&self, of: Of, mut all: Parameters, bits: u32) -> Result<Parameters> {
        let mut source = all.found;
        if matches!(of, Of::Rows) {
            // Rows are still in their places.
            source.places = 0;
        }
        if matches!(of, Of::Keys) && all.n <= FEW_KEYS {
            let blocks = (all.n * RANK_LANES).div_ceil(GROUP_THREADS as u64);
            self.launch(Phase::Rank, blocks, &all)?;
            (all.found, all.others) = (all.others, all.found);
            return Ok(all);
        }
        for shift in (0..bits.max(1)).step_by(DIGIT as usize) {
            all.shift = shift;
            self.pass(&Parameters { found: source, ..all })?;
            (all.found, all.others) = (all.others, all.found);
            source = all.found;
        }
        Ok(all)
    }

    /// How many keys were found, and whether some were not; waits for that.
    fn counts(&self, all: &Parameters) -> Result<[u32; 2]> {
        let mut counts = [0u32; 2];
        let bytes = bytemuck::cast_slice_mut(&mut counts);
        // SAFETY: the words are in memory that `keyed` has made.
        unsafe { self.engine.device.copy_out(self.stream, all.found_count, bytes)? };
        Ok(counts)
    }

    /// One pass of an order.
    fn pass(&self, all: &Parameters) -> Result<()> {
        let blocks = self.order_blocks(all.n);
        self.launch(Phase::Count, blocks, all)?;
        self.launch(Phase::Place, blocks, all)
    }

    /// Leaves out groups without a mark in `present`, of `count` whose keys are their numbers; says
    /// how many there are.
    ///
    /// # Safety
    /// There is a byte for each.
    pub(super) unsafe fn leave_out(
        &mut self,
        present: Address,
        count: u64,
    ) -> Result<(u64, Order)> {
        let all = Parameters { marks: present, n: count, ..self.keyed(Of::Keys, count)? };
        self.launch(Phase::List, self.blocks(count), &all)?;
        let n = u64::from(self.counts(&all)?[0]);
        if n == count {
            return Ok((n, Order::default()));
        }
        let bits = u64::BITS - (count - 1).leading_zeros();
        Ok((n, Order(self.sort(Of::Keys, Parameters { n, ..all }, bits)?.found)))
    }

    /// Puts rows in the order of their keys, and finds where groups begin.
    ///
    /// # Safety
    /// As for [`Engine::reduce`], of the keys.
    pub(super) unsafe fn sort_rows(&mut self, joined: &Joined) -> Result<SortedRows> {
        let Joined { keys, least, bits, .. } = *joined;
        let n = keys.len;
        let all = Parameters { n, ..self.keyed(Of::Rows, n + 1)? };
        let (to, size) = (all.found.keys, keys.dtype.size());
        let join = Parameters { keys: keys.address, to, least, size, ..all };
        self.launch(Phase::Join, self.blocks(n), &join)?;
        let all = self.sort(Of::Rows, all, bits)?;
        self.pass(&Parameters { shift: EDGES, ..all })?;
        let (rows, offsets) = (all.found.places, all.others.places);
        let order = Order(Keyed { places: 0, ..all.others });
        Ok(SortedRows { rows, offsets, count: self.counts(&all)?[0].into(), order })
    }

    /// Elements in the order of the keys, and the groups as segments of them.
    ///
    /// # Safety
    /// As for [`Engine::reduce`], of the values; rows are as many.
    pub(super) unsafe fn segments(
        &mut self,
        sorted: &SortedRows,
        values: Array,
    ) -> Result<(Array, Segments)> {
        let (n, size) = (values.len, values.dtype.size());
        let bytes = n * size as u64;
        let gathered = &mut self.memory.gathered;
        let (to, _) = gathered.reserve(&*self.engine.device, self.stream, bytes, bytes)?;
        let rows = Order(Keyed { keys: 0, places: sorted.rows });
        // SAFETY: passed on from the caller; the room was made here.
        unsafe { self.pick_into(rows, (values.address, size), n, to)? };
        let boundaries = Boundaries::Offsets(sorted.offsets, Width::Unsigned32);
        Ok((Array { address: to, ..values }, Segments { count: sorted.count, boundaries }))
    }

    /// Turns positions within groups into numbers of rows.
    ///
    /// # Safety
    /// There are as many words at `to`, each less than the rows of its group.
    pub(super) unsafe fn positions(&self, sorted: &SortedRows, to: Address) -> Result<()> {
        let n = sorted.count;
        let found = Keyed { keys: 0, places: sorted.rows };
        let all = Parameters { n, from: sorted.offsets, to, found, ..Parameters::default() };
        self.launch(Phase::Positions, self.blocks(n), &all)
    }

    /// Leaves the first `n` keys of a column in order at `to`.
    ///
    /// # Safety
    /// There is room for them.
    pub(super) unsafe fn keys_into(
        &self,
        (joined, order): (&Joined, Order),
        column: usize,
        n: u64,
        to: Address,
    ) -> Result<()> {
        let Some(&digit) = joined.digits.get(column) else { return Ok(()) };
        let KeyDigit { dtype, least, factor, range } = digit;
        let (size, found) = (dtype.size(), order.0);
        let all = Parameters { to, n, least, factor, range, size, found, ..Parameters::default() };
        self.launch(Phase::Keys, self.blocks(n), &all)
    }

    /// Leaves what `from` has of the first `n` groups in the order of their keys at `to`: items
    /// of `size` bytes.
    ///
    /// # Safety
    /// There are items of all groups, and there is room for them.
    pub(super) unsafe fn pick_into(
        &self,
        order: Order,
        (from, size): (Address, usize),
        n: u64,
        to: Address,
    ) -> Result<()> {
        let all = Parameters { from, to, n, size, found: order.0, ..Parameters::default() };
        self.launch(Phase::Pick, self.blocks(n), &all)
    }

    /// Blocks that share a pass of an order.
    fn order_blocks(&self, n: u64) -> u64 {
        let most = BLOCKS * self.engine.device.limits().multiprocessors.max(1);
        n.div_ceil(TILE).clamp(1, u64::from(most))
    }
}

#[cfg(test)]
mod tests {
    use super::super::archive;
    use super::*;

    #[test]
    fn kernels_take_blocks_of_this_size() {
        let bytes = Parameters::default().block(Phase::Positions).bytes().len();
        let ptx = archive::module("number_u64", (9, 0)).unwrap();
        let parameter = format!(".param .align 8 .b8 number_u64_param_0[{bytes}]");
        assert!(ptx.contains(&parameter), "no {parameter}");
    }
}
