//! Numbers of rows by their keys, and the order of the keys: `kernels/number.cu`.
//!
//! Keys that have no larger range than there are rows are numbers as they are, less the least of
//! them. Others are entered in a table, whose keys have numbers in the order in which they were
//! found. Several columns of keys are one, of which each is a digit.

use super::catalogue::{GROUP_ROWS, GROUP_THREADS, ORDER_DIGITS};
use super::kernels::Program;
use super::scratch::GroupMemory;
use super::{Array, Engine, Groups};
use crate::Result;
use crate::device::{Address, Argument, Launch, Stream};
use warpfold_core::DType;
use warpfold_core::op::{Kind, Op, Rules};

/// Rows that a block takes at once.
const TILE: u64 = (GROUP_THREADS * GROUP_ROWS) as u64;
/// Keys that may always be numbers themselves; more only where there are as many rows.
const FEW: u64 = 1 << 16;
/// The least slots of a table, and the most of the first one: it fits in the second cache.
const LEAST_LOG: u32 = 10;
const FIRST_LOG: u32 = 21;
/// How many times larger the next table is, and the part of a device's memory that one may take.
const GROWTH_LOG: u32 = 3;
const PART_OF_MEMORY: u64 = 8;
/// Bytes of a slot: a key and its number.
const SLOT: u64 = 12;
/// Bytes of a key that was found: twice a key and a place.
const FOUND: u64 = 24;
/// Bits of a digit, and blocks of a multiprocessor that share a pass of an order.
const DIGIT: u32 = ORDER_DIGITS.ilog2();
const BLOCKS: u32 = 2;

/// What a launch does: `Phase` of the kernel.
#[derive(Clone, Copy)]
enum Phase {
    Join,
    Enter,
    List,
    LookUp,
    Count,
    Place,
    Pick,
    Keys,
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

/// The distinct keys of rows.
#[derive(Default)]
pub(super) struct Numbered {
    digits: Vec<KeyDigit>,
    /// Those that were found in a table; none where keys are numbers themselves.
    listed: Option<Parameters>,
    /// Bits of a joint key.
    bits: u32,
    /// Keys in order, and where their groups are; nothing where both are what their places say.
    order: Keyed,
}

impl Numbered {
    /// Groups whose keys are their numbers.
    pub(super) fn dense(dtype: DType) -> Numbered {
        let digits = vec![KeyDigit { dtype, least: 0, factor: 1, range: 0 }];
        Numbered { digits, ..Numbered::default() }
    }

    /// The type of a column of keys.
    pub(super) fn key_type(&self, column: usize) -> Option<DType> {
        self.digits.get(column).map(|digit| digit.dtype)
    }
}

/// Rows whose keys get numbers.
pub(super) struct Numbering<'a> {
    pub(super) engine: &'a Engine,
    pub(super) stream: Stream,
    pub(super) memory: &'a mut GroupMemory,
}

impl Numbering<'_> {
    /// The groups of rows by their keys, of one column or several; none where keys are no
    /// integers, or more than 64 bits together, or more than a table has room for.
    ///
    /// # Safety
    /// As for [`Engine::reduce`], of every column.
    pub(super) unsafe fn number(
        &mut self,
        columns: &[Array],
    ) -> Result<Option<(Groups, Numbered)>> {
        let mut digits = Vec::with_capacity(columns.len());
        let mut total = 1u128;
        for &keys in columns.iter().rev() {
            // SAFETY: passed on from the caller.
            let Some((least, range)) = (unsafe { self.range(keys)? }) else { return Ok(None) };
            let Ok(factor) = u64::try_from(total) else { return Ok(None) };
            let is_first = digits.len() + 1 == columns.len();
            let range_behind = if is_first { 0 } else { range as u64 };
            digits.push(KeyDigit { dtype: keys.dtype, least, factor, range: range_behind });
            total = total.saturating_mul(range);
        }
        digits.reverse();
        let (Some(&first), true) = (columns.first(), total <= 1 << 64) else { return Ok(None) };
        let bits = u128::BITS - (total - 1).leading_zeros();
        let (keys, least) = match &digits[..] {
            [one] => (first, one.least),
            // SAFETY: passed on from the caller.
            _ => (unsafe { self.join(columns, &digits)? }, 0),
        };
        let mut numbered = Numbered { digits, bits, ..Numbered::default() };
        if total <= u128::from(keys.len.max(FEW)) {
            return Ok(Some((Groups { keys, least, count: total as u64 }, numbered)));
        }
        // SAFETY: passed on from the caller.
        let Some((keys, listed)) = (unsafe { self.enter(keys, least)? }) else { return Ok(None) };
        numbered.listed = Some(listed);
        Ok(Some((Groups { keys, least: 0, count: listed.n }, numbered)))
    }

    /// The least key of a column, and how many there are from it to the greatest.
    ///
    /// # Safety
    /// As for [`Engine::reduce`].
    unsafe fn range(&self, keys: Array) -> Result<Option<(u64, u128)>> {
        let dtype = keys.dtype;
        if dtype.is_float() || dtype == DType::Bool || keys.len == 0 {
            return Ok(None);
        }
        // SAFETY: passed on from the caller.
        let state = unsafe { self.engine.reduce(Kind::Extrema, keys, self.stream) }?;
        let extremes = state.finish(Op::MinMax, &Rules::default())?;
        let Some(greatest) = extremes.second() else { return Ok(None) };
        let least = extremes.first().to_bits();
        // In the keys' own width, where it is no negative number.
        let bits = 8 * dtype.size() as u32;
        let apart = greatest.to_bits().wrapping_sub(least) & (u64::MAX >> (64 - bits));
        Ok(Some((least, u128::from(apart) + 1)))
    }

    fn launch(&self, phase: Phase, blocks: u64, parameters: &Parameters) -> Result<()> {
        let engine = self.engine;
        let kernel = engine.program(Program::Number)?;
        let launch = Launch::linear(blocks as u32, GROUP_THREADS as u32);
        // SAFETY: the callers below name memory that has room for what the phase reads and writes.
        unsafe { engine.device.launch(self.stream, kernel, &launch, &[parameters.block(phase)]) }
    }

    /// Blocks that take `n` rows or places, a tile at once.
    fn blocks(&self, n: u64) -> u64 {
        let at_once = self.engine.machine().blocks_at_once(Program::Number.blocks());
        n.div_ceil(TILE).clamp(1, u64::from(at_once))
    }

    /// The joint keys of rows.
    ///
    /// # Safety
    /// As for [`number`](Self::number).
    unsafe fn join(&mut self, columns: &[Array], digits: &[KeyDigit]) -> Result<Array> {
        let (device, n) = (&*self.engine.device, columns[0].len);
        let (to, _) = self.memory.joined.reserve(device, self.stream, 8 * n, 8 * n)?;
        for (i, (keys, digit)) in columns.iter().zip(digits).enumerate() {
            let from = if i == 0 { 0 } else { to };
            let (keys, size) = (keys.address, keys.dtype.size());
            let KeyDigit { least, range: factor, .. } = *digit;
            let all =
                Parameters { keys, from, to, n, least, factor, size, ..Parameters::default() };
            self.launch(Phase::Join, self.blocks(n), &all)?;
        }
        Ok(Array { address: to, len: n, dtype: DType::U64 })
    }

    /// Enters keys in a table, and numbers rows by it; lists the distinct ones.
    ///
    /// # Safety
    /// As for [`number`](Self::number).
    unsafe fn enter(&mut self, keys: Array, least: u64) -> Result<Option<(Array, Parameters)>> {
        let (device, stream, n) = (&*self.engine.device, self.stream, keys.len);
        let (rows, _) = self.memory.rows.reserve(device, stream, 4 * n, 4 * n)?;
        let most = device.limits().memory / PART_OF_MEMORY;
        let enough = (2 * n).next_power_of_two().ilog2().max(LEAST_LOG);
        let mut log = enough.min(FIRST_LOG);
        loop {
            let slots = (1u64 << log) + 1;
            if SLOT * slots > most || log > 30 {
                return Ok(None);
            }
            let (table, _) =
                self.memory.table.reserve(device, stream, SLOT * slots, SLOT * slots)?;
            let mut all = self.found(n.min(slots))?;
            all = Parameters { keys: keys.address, n, least, table, log, rows, ..all };
            (all.numbers, all.size) = (table + 8 * slots, keys.dtype.size());
            // SAFETY: the memory was made here, with as many bytes.
            unsafe { device.fill(stream, table, 0xff, 8 * slots)? };
            self.launch(Phase::Enter, self.blocks(n), &all)?;
            self.launch(Phase::List, self.blocks(slots), &Parameters { n: slots, ..all })?;
            let [found, full] = self.counts(&all)?;
            if full == 0 {
                self.launch(Phase::LookUp, self.blocks(n), &all)?;
                let numbers = Array { address: rows, len: n, dtype: DType::U32 };
                return Ok(Some((numbers, Parameters { n: u64::from(found), ..all })));
            }
            if log == enough {
                // So many keys have the same upper bits that a table does not tell them apart.
                return Ok(None);
            }
            log = (log + GROWTH_LOG).min(enough);
        }
    }

    /// Room for keys that are found, and counters that are zero.
    fn found(&mut self, most: u64) -> Result<Parameters> {
        let (device, stream) = (&*self.engine.device, self.stream);
        let counts = 4 * ORDER_DIGITS as u64 * self.order_blocks(most);
        let bytes = FOUND * most + counts + 8;
        let (at, _) = self.memory.found.reserve(device, stream, bytes, bytes)?;
        let keyed = |i: u64| Keyed { keys: at + 8 * i * most, places: at + (16 + 4 * i) * most };
        let counts_at = at + FOUND * most;
        let found_count = counts_at + counts;
        // SAFETY: the words are in the memory that was made here.
        unsafe { device.fill(stream, found_count, 0, 8)? };
        let (found, others) = (keyed(0), keyed(1));
        Ok(Parameters { found, others, counts: counts_at, found_count, ..Parameters::default() })
    }

    /// How many keys were found, and whether some were not; waits for that.
    fn counts(&self, all: &Parameters) -> Result<[u32; 2]> {
        let mut counts = [0u32; 2];
        let bytes = bytemuck::cast_slice_mut(&mut counts);
        // SAFETY: the words are in memory that `found` has made.
        unsafe { self.engine.device.copy_out(self.stream, all.found_count, bytes)? };
        Ok(counts)
    }

    /// Puts the keys of groups in order, where groups without a mark in `present` have none; says
    /// how many there are.
    ///
    /// # Safety
    /// `present` has a byte for each of `count` groups.
    pub(super) unsafe fn order(
        &mut self,
        numbered: &mut Numbered,
        present: Address,
        count: u64,
    ) -> Result<u64> {
        let mut all = match numbered.listed {
            Some(listed) => listed,
            None => {
                let all = Parameters { marks: present, n: count, ..self.found(count)? };
                self.launch(Phase::List, self.blocks(count), &all)?;
                let [found, _] = self.counts(&all)?;
                Parameters { n: u64::from(found), ..all }
            }
        };
        if numbered.listed.is_none() && all.n == count {
            return Ok(count);
        }
        let blocks = self.order_blocks(all.n);
        for shift in (0..numbered.bits).step_by(DIGIT as usize) {
            all.shift = shift;
            self.launch(Phase::Count, blocks, &all)?;
            self.launch(Phase::Place, blocks, &all)?;
            (all.found, all.others) = (all.others, all.found);
        }
        numbered.order = all.found;
        Ok(all.n)
    }

    /// Leaves the first `n` keys of a column in order at `to`.
    ///
    /// # Safety
    /// There is room for them.
    pub(super) unsafe fn keys_into(
        &self,
        numbered: &Numbered,
        column: usize,
        n: u64,
        to: Address,
    ) -> Result<()> {
        let Some(&digit) = numbered.digits.get(column) else { return Ok(()) };
        let KeyDigit { dtype, least, factor, range } = digit;
        let (size, found) = (dtype.size(), numbered.order);
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
        numbered: &Numbered,
        (from, size): (Address, usize),
        n: u64,
        to: Address,
    ) -> Result<()> {
        let all = Parameters { from, to, n, size, found: numbered.order, ..Parameters::default() };
        self.launch(Phase::Pick, self.blocks(n), &all)
    }

    /// Blocks that share a pass of an order.
    fn order_blocks(&self, n: u64) -> u64 {
        let most = BLOCKS * self.engine.device.limits().multiprocessors.max(1);
        n.div_ceil(TILE).clamp(1, u64::from(most))
    }
}
