//! Which bits of a warp's registers are undefined.
//!
//! A value loaded from memory that nobody wrote, or shuffled from a lane that takes no part, is no fault: padding is copied, and what lies
//! behind the end is read and thrown away. It becomes a fault where it decides something: at a branch, in an address, in an atomic, or in
//! global memory when the kernel ends. So such bits are followed through registers and memory, each with its *origin*, the access that
//! made it. A warp without undefined bits, which is nearly every one, pays for a look at an empty box.

use super::lanes::{Register, indices, join_masks};
use super::operands::Touch;
use super::program::{Guarded, Join, Slot, Step};
use super::warp::{Base, Warp};
use crate::finding::{Fault, Kind, Party};
use crate::ir::{BoolOp, Line};
use crate::place::{LANES, Place};
use rustc_hash::FxHashMap;

/// The access that made a value undefined: its number among [`Origins`].
pub(crate) type Origin = u32;

/// How a result's bits depend on those of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Any bit on all.
    All,
    /// On lower and equal ones: sums and products.
    Up,
    /// On the same bit of each.
    Bitwise,
    /// As the operation moves them: sources with a bit in this set are data, the others tell where to.
    Through(u8),
}

/// How a result's bits depend on those of the sources, and how many it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) how: How,
    pub(crate) bits: u8,
}

/// The undefined bits of a register, lane by lane.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    pub(crate) bits: Register,
    pub(crate) origins: [Origin; LANES],
}

impl Shadow {
    pub(crate) const CLEAR: Shadow = Shadow { bits: [0; LANES], origins: [0; LANES] };
}

/// Lanes in which one bit, or one byte of a parameter, is undefined.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Doubt {
    pub(crate) lanes: u32,
    pub(crate) origin: Origin,
}

impl Doubt {
    fn or(self, other: Doubt) -> Doubt {
        let origin = if self.lanes != 0 { self.origin } else { other.origin };
        Doubt { lanes: self.lanes | other.lanes, origin }
    }

    pub(crate) fn within(self, lanes: u32) -> Doubt {
        Doubt { lanes: self.lanes & lanes, ..self }
    }
}

/// All that is undefined in a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undefined {
    registers: FxHashMap<usize, Shadow>,
    predicates: FxHashMap<usize, Doubt>,
    params: FxHashMap<u64, Doubt>,
    carry: Doubt,
}

impl Undefined {
    fn is_empty(&self) -> bool {
        self.registers.is_empty()
            && self.predicates.is_empty()
            && self.params.is_empty()
            && self.carry.lanes == 0
    }

    /// Forgets the registers and predicates of frames that have returned.
    fn forget_from(&mut self, base: Base) {
        let first = base.registers as usize;
        self.registers.retain(|&slot, _| slot < first);
        let first = (base.predicates + super::program::PREDICATE_CONSTANTS) as usize;
        self.predicates.retain(|&slot, _| slot < first);
        self.params.retain(|&at, _| at < base.params);
    }

    fn set(&mut self, slot: usize, mask: u32, news: &Shadow) {
        let clear = indices(mask).all(|lane| news.bits[lane] == 0);
        if clear && !self.registers.contains_key(&slot) {
            return;
        }
        let held = self.registers.entry(slot).or_insert(Shadow::CLEAR);
        for lane in indices(mask) {
            held.bits[lane] = news.bits[lane];
            held.origins[lane] = news.origins[lane];
        }
        if held.bits.iter().all(|&bits| bits == 0) {
            self.registers.remove(&slot);
        }
    }

    fn set_doubt<K: core::hash::Hash + Eq>(
        map: &mut FxHashMap<K, Doubt>,
        key: K,
        mask: u32,
        doubt: Doubt,
    ) {
        let held = map.get(&key).copied().unwrap_or_default();
        let kept = Doubt { lanes: held.lanes & !mask, origin: held.origin };
        let news = doubt.within(mask).or(kept);
        if news.lanes == 0 {
            map.remove(&key)
        } else {
            map.insert(key, news)
        };
    }
}

/// Looks at, and changes, what is undefined in a warp.
impl Warp {
    /// Whether anything is.
    #[inline(always)]
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.undefined.is_some()
    }

    /// The undefined bits of a register, if it has some.
    pub(crate) fn shadow(&self, base: Base, slot: Slot) -> Option<&Shadow> {
        self.undefined.as_ref()?.registers.get(&base.slot(slot))
    }

    /// Sets the undefined bits of a register in some lanes.
    pub(crate) fn set_shadow(&mut self, base: Base, slot: Slot, mask: u32, news: &Shadow) {
        if self.undefined.is_none() && indices(mask).all(|lane| news.bits[lane] == 0) {
            return;
        }
        let slot = base.slot(slot);
        self.undefined.get_or_insert_default().set(slot, mask, news);
        self.settle_doubt();
    }

    /// A register is defined in some lanes.
    pub(crate) fn clear_shadow(&mut self, base: Base, slot: Slot, mask: u32) {
        self.set_shadow(base, slot, mask, &Shadow::CLEAR);
    }

    /// Lanes where a predicate is undefined.
    pub(crate) fn doubt(&self, base: Base, p: u32) -> Doubt {
        let slot = base.predicate(p);
        let of = self.undefined.as_ref().and_then(|u| u.predicates.get(&slot));
        of.copied().unwrap_or_default()
    }

    /// Sets where a predicate is undefined.
    pub(crate) fn set_doubt(&mut self, base: Base, p: u32, mask: u32, doubt: Doubt) {
        if p < super::program::PREDICATE_CONSTANTS
            || self.undefined.is_none() && doubt.lanes & mask == 0
        {
            return;
        }
        let slot = base.predicate(p);
        let undefined = self.undefined.get_or_insert_default();
        Undefined::set_doubt(&mut undefined.predicates, slot, mask, doubt);
        self.settle_doubt();
    }

    /// The undefined bits of parameter memory, as [`read_param`](super::execute::read_param) reads it.
    pub(crate) fn param_shadow(&self, at: u64, bytes: u64) -> Option<Shadow> {
        let params = &self.undefined.as_ref()?.params;
        let mut shadow = None;
        for i in 0..bytes {
            let Some(doubt) = params.get(&(at + i)) else { continue };
            let shadow = shadow.get_or_insert(Shadow::CLEAR);
            for lane in indices(doubt.lanes) {
                shadow.bits[lane] |= 0xff << (8 * i);
                shadow.origins[lane] = doubt.origin;
            }
        }
        shadow
    }

    /// Sets the undefined bytes of parameter memory; `None`: all are defined.
    pub(crate) fn set_param_shadow(
        &mut self,
        at: u64,
        bytes: u64,
        mask: u32,
        from: Option<&Shadow>,
    ) {
        let Some(undefined) = &mut self.undefined else { return };
        for i in 0..bytes {
            let mut doubt = Doubt::default();
            if let Some(shadow) = from {
                for lane in indices(mask) {
                    if shadow.bits[lane] >> (8 * i) & 0xff != 0 {
                        doubt = doubt.or(Doubt { lanes: 1 << lane, origin: shadow.origins[lane] });
                    }
                }
            }
            Undefined::set_doubt(&mut undefined.params, at + i, mask, doubt);
        }
        self.settle_doubt();
    }

    /// Copies what is undefined of parameter memory.
    pub(crate) fn copy_param_shadow(&mut self, from: u64, to: u64, bytes: u64, mask: u32) {
        let Some(undefined) = &mut self.undefined else { return };
        for i in 0..bytes {
            let doubt = undefined.params.get(&(from + i)).copied().unwrap_or_default();
            Undefined::set_doubt(&mut undefined.params, to + i, mask, doubt);
        }
    }

    /// A function has returned: its frame begins at `base`.
    pub(crate) fn leave_frame(&mut self, base: Base) {
        // Lanes that are still in it keep theirs.
        let others = self.groups.iter().any(|g| g.base.registers >= base.registers);
        if let Some(undefined) = &mut self.undefined
            && !others
        {
            undefined.forget_from(base);
            self.settle_doubt();
        }
    }

    fn settle_doubt(&mut self) {
        if self.undefined.as_ref().is_some_and(|u| u.is_empty()) {
            self.undefined = None;
        }
    }

    /// Follows undefined bits through a step that needs nothing but registers. Called before the step.
    #[cold]
    pub(crate) fn follow(&mut self, base: Base, group: u32, active: u32, guarded: &Guarded) {
        let unsure = match guarded.guard {
            Some(condition) => self.doubt(base, condition.slot).within(group),
            None => Doubt::default(),
        };
        self.follow_step(base, active | unsure.lanes, &guarded.step);
        if unsure.lanes == 0 {
            return;
        }
        // Where the guard is undefined, so is what it guards.
        let mut all = Shadow::CLEAR;
        for lane in indices(unsure.lanes) {
            all.bits[lane] = u64::MAX;
            all.origins[lane] = unsure.origin;
        }
        guarded.step.touch(&mut |touch| match touch {
            Touch::Write(dst) => self.set_shadow(base, dst, unsure.lanes, &all),
            Touch::WritePredicate(p) => self.set_doubt(base, p, unsure.lanes, unsure),
            _ => {}
        });
    }

    fn follow_step(&mut self, base: Base, lanes: u32, step: &Step) {
        match step {
            Step::Unary { f, dst, a, spread } => {
                self.spread(base, lanes, *dst, &[*a], *spread, |d, s| f(d, &s[0], lanes));
            }
            Step::Binary { f, dst, a, b, spread } => {
                let sources = [*a, *b];
                self.spread(base, lanes, *dst, &sources, *spread, |d, s| f(d, &s[0], &s[1], lanes));
            }
            Step::Ternary { f, dst, a, b, c, spread } => {
                self.spread(base, lanes, *dst, &[*a, *b, *c], *spread, |d, s| {
                    f(d, &s[0], &s[1], &s[2], lanes);
                });
            }
            Step::InsertBits { dst, sources, .. } => {
                let spread = Spread { how: How::All, bits: 64 };
                self.spread(base, lanes, *dst, sources, spread, |_, _| {});
            }
            Step::Compare { f, pairs, dst, other, a, b, join } => {
                let unsure = self.in_either(base, &[*a, *b], lanes);
                let (low, high) = f(self.register(base, *a), self.register(base, *b), lanes);
                let first = self.joined(base, low, unsure, join);
                let second = self.joined(base, if *pairs { high } else { !low }, unsure, join);
                self.set_doubt(base, *dst, lanes, first);
                if let Some(other) = other {
                    self.set_doubt(base, *other, lanes, second);
                }
            }
            Step::CompareInto { dst, a, b, join, .. } => {
                let mut unsure = self.in_either(base, &[*a, *b], lanes);
                if let Some((_, with)) = join {
                    unsure = unsure.or(self.doubt(base, with.slot));
                }
                self.set_all(base, *dst, lanes, unsure);
            }
            Step::Ask { dst, a, .. } => {
                let unsure = self.in_either(base, &[*a], lanes);
                self.set_doubt(base, *dst, lanes, unsure);
            }
            Step::Select { dst, a, b, pred } => {
                let unsure = self.doubt(base, *pred).within(lanes);
                let takes_a = self.predicates[base.predicate(*pred)];
                let mut shadow = Shadow::CLEAR;
                for (slot, mask) in [(*a, takes_a), (*b, !takes_a)] {
                    if let Some(source) = self.shadow(base, slot) {
                        for lane in indices(mask & lanes) {
                            shadow.bits[lane] = source.bits[lane];
                            shadow.origins[lane] = source.origins[lane];
                        }
                    }
                }
                for lane in indices(unsure.lanes) {
                    shadow.bits[lane] = u64::MAX;
                    shadow.origins[lane] = unsure.origin;
                }
                self.set_shadow(base, *dst, lanes, &shadow);
            }
            Step::MovePredicate { dst, a, .. } => {
                let unsure = self.doubt(base, *a);
                self.set_doubt(base, *dst, lanes, unsure);
            }
            Step::JoinPredicates { op, dst, a, b } => {
                let values = [*a, *b].map(|p| self.predicates[base.predicate(p)]);
                let unsure = [*a, *b].map(|p| self.doubt(base, p));
                self.set_doubt(base, *dst, lanes, join_doubts(*op, values, unsure));
            }
            Step::SelectPredicate { dst, a, b, pred } => {
                let [a, b, p] = [*a, *b, *pred].map(|p| self.doubt(base, p));
                let picks_a = self.predicates[base.predicate(*pred)];
                let doubt = a.within(picks_a).or(b.within(!picks_a)).or(p);
                self.set_doubt(base, *dst, lanes, doubt);
            }
            Step::Lop3Test { table, dst, sources, op, pred, with } => {
                let spread = Spread { how: How::Bitwise, bits: 32 };
                let unsure = self.in_either(base, sources, lanes);
                let lop3 = crate::value::bits::lop3;
                let values = sources.map(|s| *self.register(base, s));
                let holds = indices(lanes)
                    .filter(|&l| lop3(*table, values[0][l], values[1][l], values[2][l]) != 0)
                    .fold(0, |m, l| m | 1 << l);
                let joined = self.joined(base, holds, unsure, &Some((*op, *with)));
                self.spread(base, lanes, *dst, sources, spread, |d, s| {
                    for lane in 0..LANES {
                        d[lane] = lop3(*table, s[0][lane], s[1][lane], s[2][lane]);
                    }
                });
                self.set_doubt(base, *pred, lanes, joined);
            }
            Step::Carry { dst, sources, carry_in, carry_out, .. } => {
                let carry = self.undefined.as_ref().map_or(Doubt::default(), |u| u.carry);
                let mut unsure = self.in_either(base, sources, lanes);
                if *carry_in {
                    unsure = unsure.or(carry.within(lanes));
                }
                self.set_all(base, *dst, lanes, unsure);
                if *carry_out && let Some(undefined) = &mut self.undefined {
                    undefined.carry = unsure.or(carry.within(!lanes));
                    self.settle_doubt();
                }
            }
            Step::Pack { bits, dst, parts } => {
                let mut whole = Shadow::CLEAR;
                for (i, part) in parts.iter().enumerate() {
                    if let Some(part) = self.shadow(base, *part) {
                        for lane in indices(lanes) {
                            let bits_of = part.bits[lane] & (u64::MAX >> (64 - bits));
                            if bits_of != 0 {
                                whole.bits[lane] |= bits_of << (i as u32 * bits);
                                whole.origins[lane] = part.origins[lane];
                            }
                        }
                    }
                }
                self.set_shadow(base, *dst, lanes, &whole);
            }
            Step::Unpack { bits, dsts, a } => {
                let whole = self.shadow(base, *a).cloned().unwrap_or(Shadow::CLEAR);
                for (i, dst) in dsts.iter().enumerate() {
                    let shift = i as u32 * bits;
                    let cut = |x: u64| (x >> shift) & (u64::MAX >> (64 - bits));
                    let part = Shadow { bits: whole.bits.map(cut), origins: whole.origins };
                    self.set_shadow(base, *dst, lanes, &part);
                }
            }
            other => {
                // What else writes registers writes what is defined; accesses to memory and what lanes do together look after themselves.
                other.touch(&mut |touch| match touch {
                    Touch::Write(dst) => self.clear_shadow(base, dst, lanes),
                    Touch::WritePredicate(p) => self.set_doubt(base, p, lanes, Doubt::default()),
                    _ => {}
                });
            }
        }
    }

    fn register(&self, base: Base, slot: Slot) -> &Register {
        &self.registers[base.slot(slot)]
    }

    /// The lanes where one of some registers has an undefined bit.
    pub(crate) fn in_either(&self, base: Base, slots: &[Slot], lanes: u32) -> Doubt {
        let mut doubt = Doubt::default();
        for shadow in slots.iter().filter_map(|&slot| self.shadow(base, slot)) {
            for lane in indices(lanes).filter(|&lane| shadow.bits[lane] != 0) {
                doubt = doubt.or(Doubt { lanes: 1 << lane, origin: shadow.origins[lane] });
            }
        }
        doubt
    }

    /// Sets a register undefined in the lanes of a doubt, and defined in the others.
    pub(crate) fn set_all(&mut self, base: Base, dst: Slot, lanes: u32, doubt: Doubt) {
        let mut shadow = Shadow::CLEAR;
        for lane in indices(doubt.lanes & lanes) {
            shadow.bits[lane] = u64::MAX;
            shadow.origins[lane] = doubt.origin;
        }
        self.set_shadow(base, dst, lanes, &shadow);
    }

    fn joined(&self, base: Base, holds: u32, unsure: Doubt, join: &Join) -> Doubt {
        match join {
            None => unsure,
            Some((op, with)) => {
                let other = self.doubt(base, with.slot);
                join_doubts(*op, [holds, self.holds(base, *with)], [unsure, other])
            }
        }
    }

    fn spread(
        &mut self,
        base: Base,
        lanes: u32,
        dst: Slot,
        sources: &[Slot],
        spread: Spread,
        eval: impl Fn(&mut Register, &[Register]),
    ) {
        let shadows: Vec<Shadow> = sources
            .iter()
            .map(|&s| self.shadow(base, s).cloned().unwrap_or(Shadow::CLEAR))
            .collect();
        let mut result = Shadow::CLEAR;
        let mut touched = 0;
        for lane in indices(lanes) {
            if let Some(first) = shadows.iter().find(|s| s.bits[lane] != 0) {
                result.origins[lane] = first.origins[lane];
                touched |= 1 << lane;
            }
        }
        if touched != 0 {
            let mask = u64::MAX >> (64 - u32::from(spread.bits.clamp(1, 64)));
            let values =
                || -> Vec<Register> { sources.iter().map(|&s| *self.register(base, s)).collect() };
            let of = |lane: usize| shadows.iter().fold(0, |bits, s| bits | s.bits[lane]);
            match spread.how {
                How::All => indices(touched).for_each(|lane| result.bits[lane] = mask),
                How::Up => {
                    indices(touched)
                        .for_each(|lane| result.bits[lane] = u64::MAX << of(lane).trailing_zeros());
                }
                How::Bitwise => {
                    let values = values();
                    let mut plain = [0; LANES];
                    eval(&mut plain, &values);
                    // A bit is undefined if it changes when undefined bits of some sources do.
                    for flipped in 1..1_usize << sources.len() {
                        let mut others = values.clone();
                        for (at, (other, shadow)) in others.iter_mut().zip(&shadows).enumerate() {
                            if flipped >> at & 1 == 1 {
                                (0..LANES).for_each(|lane| other[lane] ^= shadow.bits[lane]);
                            }
                        }
                        let mut changed = [0; LANES];
                        eval(&mut changed, &others);
                        for lane in indices(touched) {
                            result.bits[lane] |= plain[lane] ^ changed[lane];
                        }
                    }
                }
                How::Through(data) => {
                    let mut inputs = values();
                    let mut lost = 0;
                    for (at, (input, shadow)) in inputs.iter_mut().zip(&shadows).enumerate() {
                        if data >> at & 1 == 1 {
                            *input = shadow.bits;
                        } else {
                            lost |= indices(touched)
                                .filter(|&lane| shadow.bits[lane] != 0)
                                .fold(0, |m, lane| m | 1 << lane);
                        }
                    }
                    eval(&mut result.bits, &inputs);
                    indices(lost).for_each(|lane| result.bits[lane] = mask);
                }
            }
            for lane in 0..LANES {
                result.bits[lane] &= if touched >> lane & 1 == 1 { mask } else { 0 };
            }
        }
        self.set_shadow(base, dst, lanes, &result);
    }
}

/// Where a joined answer is undefined: one side is, and the other does not decide.
fn join_doubts(op: BoolOp, values: [u32; 2], unsure: [Doubt; 2]) -> Doubt {
    let plain = join_masks(op, values[0], values[1]);
    let mut lanes = 0;
    for flipped in 1..4 {
        let flip = |at: usize| if flipped >> at & 1 == 1 { unsure[at].lanes } else { 0 };
        lanes |= plain ^ join_masks(op, values[0] ^ flip(0), values[1] ^ flip(1));
    }
    let origin = if unsure[0].lanes & lanes != 0 { unsure[0].origin } else { unsure[1].origin };
    Doubt { lanes, origin }
}

/// Accesses that are told apart; beyond, one for each instruction.
const MOST_ORIGINS: usize = 1 << 14;

/// Words of memory that hold undefined values, of which the origin is remembered.
const MOST_WORDS: usize = 1 << 20;

/// A word of memory: whose, and its address there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Word {
    Global(u64),
    Shared(u32, u64),
    Local(u32, u32, u64),
}

impl Word {
    pub(crate) fn of_byte(self, at: u64) -> Word {
        match self {
            Word::Global(address) => Word::Global((address + at) / 4),
            Word::Shared(block, address) => Word::Shared(block, (address + at) / 4),
            Word::Local(block, thread, address) => Word::Local(block, thread, (address + at) / 4),
        }
    }

    /// Which byte of its word that is.
    fn place_of_byte(self, at: u64) -> u64 {
        let (Word::Global(address) | Word::Shared(_, address) | Word::Local(.., address)) = self;
        (address + at) % 4
    }
}

/// The accesses that made values undefined, and where in memory such values are.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    faults: Vec<Fault>,
    lines: FxHashMap<(Kind, Line), Origin>,
    /// With a bit for each byte of the word that was undefined.
    words: FxHashMap<Word, (Origin, u8)>,
}

impl Origins {
    /// The number of an access.
    pub(crate) fn number(&mut self, fault: Fault) -> Origin {
        let key = (fault.kind, fault.line);
        if self.faults.len() >= MOST_ORIGINS
            && let Some(&known) = self.lines.get(&key)
        {
            return known;
        }
        self.faults.push(fault);
        let number = self.faults.len() as Origin - 1;
        self.lines.insert(key, number);
        number
    }

    /// The byte of memory `at` bytes from an address holds an undefined value.
    pub(crate) fn remember(&mut self, address: Word, at: u64, origin: Origin) {
        let word = address.of_byte(at);
        if self.words.len() < MOST_WORDS || self.words.contains_key(&word) {
            let (last, bytes) = self.words.entry(word).or_insert((origin, 0));
            *last = origin;
            *bytes |= 1 << address.place_of_byte(at);
        }
    }

    /// The origin of what a word holds.
    pub(crate) fn of_word(&self, word: Word) -> Option<Origin> {
        self.words.get(&word).map(|&(origin, _)| origin)
    }

    /// Words of global memory that were given undefined values, by address: which of their
    /// four bytes were, a bit each, and the origin of the values.
    pub(crate) fn outputs(&self) -> Vec<(u64, u32, Origin)> {
        let mut found: Vec<_> = (self.words.iter())
            .filter_map(|(word, &(origin, bytes))| match word {
                Word::Global(at) => Some((at * 4, u32::from(bytes), origin)),
                _ => None,
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// The fault that an undefined value is where it decides something.
    pub(crate) fn fault(
        &self,
        origin: Origin,
        decides: &str,
        other: Option<(Place, Line)>,
    ) -> Fault {
        let mut fault = self.faults[origin as usize].clone();
        let separator = if fault.detail.is_empty() { "" } else { "; " };
        fault.detail = format!("{}{separator}the value {decides}", fault.detail).into();
        fault.other = other.map(|(place, line)| Party { place, line, act: None });
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_alone_makes_the_other_side_matter_no_more() {
        let unsure = |lanes| Doubt { lanes, origin: 0 };
        let doubts = [unsure(0b0011), Doubt::default()];
        assert_eq!(join_doubts(BoolOp::And, [0b0000, 0b0001], doubts).lanes, 0b0001);
        assert_eq!(join_doubts(BoolOp::Or, [0b0000, 0b0001], doubts).lanes, 0b0010);
        assert_eq!(join_doubts(BoolOp::Xor, [0b0000, 0b0001], doubts).lanes, 0b0011);
        let both = [unsure(1), unsure(1)];
        assert_eq!(join_doubts(BoolOp::And, [0, 0], both).lanes, 1);
    }
}
