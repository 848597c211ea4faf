//! The race checker: shadow memory says who touched a byte, clocks say whether that came before.
//!
//! An access conflicts with an earlier one of another thread if one of them
//! writes. Conflicting accesses must be ordered, or both be strong with scopes that include each other. The
//! same value stored twice is a conflict of a kind of its own: the language gives such a program no meaning, but every device does what is meant.
//!
//! A cell keeps its last write and the reads since that are not before one another (the idea of FastTrack,
//! Flanagan and Freund 2009), with three additions that PTX needs. Strong writes may follow each other without
//! an order: all of them are kept. A strong access does not stand for a weak one of its own past, which
//! may race where it does not: `if (lane == 0) s = 0; atomicAdd(&s, x);`. And who comes after a strong read that saw a write comes after the write (PTX calls
//! it observation), even without fences: a read-modify-write stands for those it saw, and a read that saw a write it does not come after stays as its witness
//! until another write without an order replaces the value (a later weak access of who knows the witness may then be called a race).
//!
//! After a race the later access takes the earlier one's place, so each is reported once;
//! the first race on every byte is certain to be found.

use super::Request;
use super::discarded::Discarded;
use super::shadow::{Cell, Shadow};
use super::stamp::{Entry, Held, STAMPS, Sets, Slot, Stamp};
use crate::clock::{Clocks, Engine, Key, Known, Matter, Moment, Scope, issuer};
use crate::finding::{Access, Act, Fault, Kind, Space};
use crate::place::{Place, Warp, lanes};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::Arc;

/// Below this many stamps, and bytes of stamps and of sets, no count is needed.
const FLOOR_STAMPS: usize = 1 << 18;
const FLOOR_BYTES: usize = 8 << 20;

/// Reads without an order between them that a cell remembers; beyond it they are forgotten.
const CROWD: usize = 1024;

/// Which memory a request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Global memory.
    Global,
    /// The shared memory of a block, not always the accessing one in a cluster.
    Shared {
        /// The block.
        of: u32,
    },
}

impl Target {
    /// The name of an address in the memory for [`Clocks::strong`].
    #[must_use]
    pub fn key(self, address: u64) -> Key {
        match self {
            Target::Global => Key { shared_of: None, address },
            Target::Shared { of } => Key { shared_of: Some(of), address },
        }
    }

    fn space(self) -> Space {
        match self {
            Target::Global => Space::Global,
            Target::Shared { .. } => Space::Shared,
        }
    }
}

/// The race checker of one launch. Its clocks are moved by the machine.
#[derive(Debug)]
pub struct Races {
    /// Happens-before.
    pub clocks: Clocks,
    global: Shadow,
    shared: FxHashMap<u32, Shadow>,
    memory: Memory,
    forgotten: u64,
}

/// What cells refer to.
#[derive(Debug)]
struct Memory {
    /// Numbered from 1.
    stamps: Vec<Stamp>,
    sets: Sets,
    /// Sweep when there are this many stamps.
    sweep_at: usize,
    /// Bytes that sets may take.
    set_bytes: usize,
    /// Buffers for the entries of a cell.
    writes: Vec<Entry>,
    reads: Vec<Entry>,
    /// A buffer for the stamps of a request, by their moments.
    made: Vec<(Moment, u32)>,
    /// Loads whose values may be thrown away.
    discarded: Discarded,
}

/// The accessing lane.
struct Me<'a> {
    known: &'a Arc<Known>,
    stamp: u32,
    as_stamp: Stamp,
    place: Place,
    space: Space,
}

/// Whether a lane's store leaves some of its bytes, from an offset on and so many, as they are.
pub type Same<'a> = &'a dyn Fn(u32, usize, usize) -> bool;

/// How an access is made.
#[derive(Clone, Copy)]
pub struct Manner<'a> {
    /// The scope of strong accesses.
    pub scope: Scope,
    /// What carries out an asynchronous copy.
    pub engine: Option<Engine>,
    /// Whether a lane's store leaves some of its bytes as they are.
    pub same: Same<'a>,
    /// A branch looks at what is loaded: it may be old.
    pub flag: bool,
    /// Whether bulk copies need proxy fences.
    pub proxies: bool,
    /// The number of a load whose value may be thrown away, of [`Races::begin_load`]; else 0.
    pub load: u32,
}

/// The last question of the order between two warps, and its answer.
struct Asked<'a> {
    stamp: u32,
    known: Option<&'a Arc<Known>>,
    all: bool,
}

impl Races {
    /// The checker of a grid of `blocks` blocks with `threads` threads each, `cluster` blocks a cluster (1 for none).
    #[must_use]
    pub fn new(blocks: u32, threads: u32, cluster: u32) -> Races {
        let memory = Memory {
            stamps: Vec::new(),
            sets: Sets::default(),
            sweep_at: FLOOR_STAMPS,
            set_bytes: FLOOR_BYTES,
            writes: Vec::new(),
            reads: Vec::new(),
            made: Vec::new(),
            discarded: Discarded::default(),
        };
        Races {
            clocks: Clocks::new(blocks, threads, cluster),
            global: Shadow::default(),
            shared: FxHashMap::default(),
            memory,
            forgotten: 0,
        }
    }

    /// A block becomes resident.
    pub fn start_block(&mut self, block: u32) {
        self.clocks.start_block(block);
        self.shared.insert(block, Shadow::default());
    }

    /// A block has ended, and its shared memory with it: of what other blocks of the cluster and bulk copies did there, one of its threads must know.
    pub fn end_block(&mut self, block: u32, report: &mut dyn FnMut(Fault)) {
        if let Some(shadow) = self.shared.remove(&block) {
            if self.clocks.has_clusters() || self.clocks.has_bulk_copies(block) {
                self.find_late(block, &shadow, report);
            }
            shadow.discard(&mut self.memory.sets);
        }
        self.memory.discarded.settle(Some(block), report);
        self.clocks.end_block(block);
    }

    /// A load begins whose value may be thrown away; its number, for [`Manner::load`] and [`Races::use_value`]. `step` is the same for one instruction of the kernel.
    pub fn begin_load(&mut self, step: u32, lanes: u32) -> u32 {
        self.memory.discarded.begin(step, lanes)
    }

    /// Some lanes use what a load gave them.
    pub fn use_value(&mut self, load: u32, lanes: u32, report: &mut dyn FnMut(Fault)) {
        self.memory.discarded.use_value(load, lanes, report);
    }

    /// The launch is over. Where it did not come to its end, values that were not used yet may be used.
    pub fn end(&mut self, complete: bool, report: &mut dyn FnMut(Fault)) {
        match complete {
            true => self.memory.discarded.settle(None, report),
            false => self.memory.discarded.give_up(report),
        }
    }

    /// Reports accesses to a block's shared memory that may have come after its end, one of each instruction's.
    fn find_late(&self, block: u32, shadow: &Shadow, report: &mut dyn FnMut(Fault)) {
        let Memory { stamps, sets, .. } = &self.memory;
        let mut reported: Vec<u32> = Vec::new();
        for (address, cell) in shadow.places() {
            let entries = [cell.writes, cell.reads].into_iter().flat_map(|slot| sets.entries(slot));
            for Entry { stamp: number, lanes: all, .. } in entries {
                let stamp = &stamps[number as usize - 1];
                let own = stamp.warp.block == block && !is_bulk(stamp);
                if own || reported.contains(&number) {
                    continue;
                }
                let known =
                    |&lane: &u32| self.clocks.block_knows(block, stamp.warp, lane, stamp.moment);
                if let Some(lane) = lanes(all).find(|lane| !known(lane)) {
                    reported.push(number);
                    report(late(stamp, lane, address));
                }
            }
        }
    }

    /// Accesses forgotten because more of them met without an order than memory was granted for.
    /// While it is 0, every race of the run is found.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The bytes that shadow memory takes: at most 16 for each byte accessed, and a constant.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let shadows = self.shared.values().chain([&self.global]);
        let cells: usize = shadows.map(Shadow::bytes).sum();
        let stamps = self.memory.stamps.capacity() * size_of::<Stamp>();
        cells + stamps + self.memory.sets.bytes() + self.memory.discarded.bytes()
    }

    /// As [`Races::access_with`], where nothing is known of the values that are stored.
    pub fn access(
        &mut self,
        request: &Request<'_>,
        target: Target,
        scope: Scope,
        engine: Option<Engine>,
        report: &mut dyn FnMut(Fault),
    ) {
        let same: Same<'_> = &|_, _, _| false;
        let manner = Manner { scope, engine, same, flag: true, proxies: false, load: 0 };
        self.access_with(request, target, manner, report);
    }

    /// Checks an access that bounds and alignment have let pass. Strong accesses are to be followed by [`Clocks::strong`] for each lane.
    pub fn access_with(
        &mut self,
        request: &Request<'_>,
        target: Target,
        manner: Manner<'_>,
        report: &mut dyn FnMut(Fault),
    ) {
        let Manner { scope, engine, .. } = manner;
        if self.memory.stamps.len() >= self.memory.sweep_at {
            self.sweep();
        }
        if self.memory.sets.bytes() > self.memory.set_bytes {
            self.memory.set_bytes = self.granted();
        }
        if let Some(engine) = engine {
            self.clocks.issue_copies(request.warp, request.active, engine);
        }
        let shadow = match target {
            Target::Global => &mut self.global,
            Target::Shared { of } => match self.shared.get_mut(&of) {
                Some(shadow) => shadow,
                None => {
                    // Its block has ended.
                    let Request { warp, act, size, line, .. } = *request;
                    let Some(lane) = lanes(request.active).next() else { return };
                    let stamp =
                        Stamp { warp, moment: 0, act, scope, size: size as u8, load: 0, line };
                    return report(late(&stamp, lane, request.addresses[lane as usize]));
                }
            },
        };
        let visit = Visit {
            clocks: &self.clocks,
            memory: &mut self.memory,
            shadow,
            forgotten: &mut self.forgotten,
            request,
            target,
            asked: Asked { stamp: 0, known: None, all: false },
            manner,
            overwritten: Vec::new(),
            open: Vec::new(),
        };
        let overwritten = visit.all(report);
        for address in overwritten {
            self.clocks.overwrite(target.key(address));
        }
    }

    /// The bytes that stamps, and as many that sets, may take.
    fn granted(&self) -> usize {
        let shadows = self.shared.values().chain([&self.global]);
        let buffers: usize = shadows.map(Shadow::buffer_bytes).sum();
        // Of 16 bytes for a byte, cells of single bytes take 8; stamps and sets share the rest.
        FLOOR_BYTES.max(buffers * 4)
    }

    /// Drops the stamps that no cell refers to, and forgets accesses where memory is short.
    #[cold]
    fn sweep(&mut self) {
        let granted = self.granted();
        self.memory.set_bytes = granted;
        let most = (granted / size_of::<Stamp>()).min(STAMPS / 2);
        let mut live = self.compact();
        if live > most {
            // The older half first.
            self.forget(live / 2, |cell| &mut cell.reads);
            live = self.compact();
        }
        if live > most {
            self.forget(live, |cell| &mut cell.reads);
            live = self.compact();
        }
        if live > most {
            self.forget(live / 2, |cell| &mut cell.writes);
            live = self.compact();
        }
        if live > most {
            self.forget(live, |cell| &mut cell.writes);
            live = self.compact();
        }
        self.memory.sweep_at = FLOOR_STAMPS.max(live * 2).max(granted / 128).min(STAMPS - 64);
    }

    /// Forgets, of one half of each cell, the accesses up to a stamp.
    fn forget(&mut self, last: usize, half: impl Fn(&mut Cell) -> &mut Slot) {
        let Memory { sets, writes: kept, .. } = &mut self.memory;
        for shadow in self.shared.values_mut().chain([&mut self.global]) {
            for cell in shadow.all_cells() {
                let slot = half(cell);
                if sets.entries(*slot).all(|entry| entry.stamp as usize > last) {
                    continue;
                }
                sets.take(slot, kept);
                let before = kept.len();
                kept.retain(|entry| entry.stamp as usize > last);
                self.forgotten += (before - kept.len()) as u64;
                *slot = sets.put(kept);
            }
        }
    }

    /// Renumbers the stamps that are referred to; how many there are.
    fn compact(&mut self) -> usize {
        let Memory { stamps, sets, discarded, .. } = &mut self.memory;
        let mut numbers = vec![0_u32; stamps.len() + 1];
        let mark = |slot: &mut Slot, numbers: &mut [u32]| {
            if let Held::One { stamp, .. } = slot.held() {
                numbers[stamp as usize] = 1;
            }
        };
        for shadow in self.shared.values_mut().chain([&mut self.global]) {
            for cell in shadow.all_cells() {
                mark(&mut cell.writes, &mut numbers);
                mark(&mut cell.reads, &mut numbers);
            }
        }
        sets.for_each(|entry| numbers[entry.stamp as usize] = 1);
        let mut kept = 0;
        for (old, number) in numbers.iter_mut().enumerate().skip(1) {
            if *number != 0 {
                stamps[kept as usize] = stamps[old - 1];
                kept += 1;
                *number = kept;
            }
        }
        stamps.truncate(kept as usize);
        let renumber = |slot: &mut Slot| {
            if let Held::One { stamp, sees, lane } = slot.held() {
                *slot = Slot::one(numbers[stamp as usize], sees, lane);
            }
        };
        for shadow in self.shared.values_mut().chain([&mut self.global]) {
            for cell in shadow.all_cells() {
                renumber(&mut cell.writes);
                renumber(&mut cell.reads);
            }
        }
        sets.for_each(|entry| entry.stamp = numbers[entry.stamp as usize]);
        let referred: FxHashSet<u32> = stamps.iter().map(|stamp| stamp.load).collect();
        discarded.keep(&referred);
        kept as usize
    }
}

/// An access to the shared memory of a block that may have ended.
fn late(stamp: &Stamp, lane: u32, address: u64) -> Fault {
    let Stamp { act, size, line, .. } = *stamp;
    let detail = if is_bulk(stamp) {
        "the block ended without a wait for the copy: cp.async.bulk.wait_group, or the mbarrier that counts its bytes"
    } else {
        "the block that owns the memory may have ended: it must wait for the cluster before it ends"
    };
    Fault {
        kind: Kind::Freed,
        line,
        place: stamp.party(lane).place,
        access: Some(Access { space: Space::Shared, act, address, size: u32::from(size) }),
        other: None,
        missing: None,
        detail: Cow::Borrowed(detail),
    }
}

/// One request on its way through the cells.
struct Visit<'a> {
    clocks: &'a Clocks,
    memory: &'a mut Memory,
    shadow: &'a mut Shadow,
    forgotten: &'a mut u64,
    request: &'a Request<'a>,
    target: Target,
    asked: Asked<'a>,
    manner: Manner<'a>,
    /// Where strong accesses began whose place a weak write took.
    overwritten: Vec<u64>,
    /// Of the lane's write, the loads that race with it and whose values no lane has used: their stamps, and the lanes.
    open: Vec<(u32, u32)>,
}

impl<'a> Visit<'a> {
    fn all(mut self, report: &mut dyn FnMut(Fault)) -> Vec<u64> {
        let Manner { scope, engine, load, .. } = self.manner;
        let Request { active, size, act, warp, line, .. } = *self.request;
        let number = engine.map_or(warp.warp, |e| e.agents_of(warp.warp));
        let whose = Warp { block: warp.block, warp: number };
        // Lanes of a warp mostly live in the same moment.
        let mut made = core::mem::take(&mut self.memory.made);
        made.clear();
        let observers = self.clocks.observers(warp.block);
        for lane in lanes(active) {
            let place = Place::of_lane(warp, lane);
            let Some((known, now)) = observers.of(place.thread) else { continue };
            let moment = engine.map_or(now, |e| self.clocks.moment_of_agent(place, e));
            let as_stamp = Stamp { warp: whose, moment, act, scope, size: size as u8, load, line };
            let stamp = match made.iter().rev().find(|&&(m, _)| m == moment) {
                Some(&(_, stamp)) => stamp,
                None => {
                    self.memory.stamps.push(as_stamp);
                    let stamp = self.memory.stamps.len() as u32;
                    made.push((moment, stamp));
                    stamp
                }
            };
            let me = Me { known, stamp, as_stamp, place, space: self.target.space() };
            let address = self.request.addresses[lane as usize];
            let race = self.lane(&me, address, size);
            if race.is_some() || !self.open.is_empty() {
                self.tell(&me, address, race, report);
            }
        }
        self.memory.made = made;
        self.overwritten
    }

    /// Reports a lane's race, or lets it wait for the use of a value.
    #[cold]
    fn tell(
        &mut self,
        me: &Me<'_>,
        address: u64,
        race: Option<Race>,
        report: &mut dyn FnMut(Fault),
    ) {
        let (load, lane) = (me.as_stamp.load, 1 << me.place.lane());
        if let Some((kind, other)) = race {
            let fault = self.fault(me, address, kind, other);
            let discarded = &mut self.memory.discarded;
            if kind == Kind::Race && discarded.unused(load) & lane != 0 {
                discarded.wait(load, lane, fault, report);
            } else {
                report(fault);
            }
        }
        let is_fault = matches!(race, Some((kind, _)) if !kind.is_remark());
        for (stamp, lanes) in core::mem::take(&mut self.open) {
            if !is_fault {
                let other = (stamp, lanes.trailing_zeros());
                let fault = self.fault(me, address, Kind::Race, other);
                let load = self.stamp(stamp).load;
                self.memory.discarded.wait(load, lanes, fault, report);
            }
        }
    }

    fn fault(&self, me: &Me<'_>, address: u64, kind: Kind, (stamp, lane): (u32, u32)) -> Fault {
        let Stamp { act, line, .. } = me.as_stamp;
        let other = self.stamp(stamp);
        let plain = kind == Kind::Race && act == Act::Write && other.act == Act::Write;
        let detail = match (plain, stamp == me.stamp) {
            (true, true) => "written by two lanes of one instruction, with two values",
            (true, false) => "written twice without an order",
            _ => "",
        };
        let access = Access { space: me.space, act, address, size: self.request.size };
        let between_blocks = matches!(kind, Kind::Race | Kind::UnorderedVolatile);
        let missing = (between_blocks && me.space == Space::Global)
            .then(|| self.clocks.missing_fence(me.place, other.warp, lane, other.moment))
            .flatten();
        Fault {
            kind,
            line,
            place: me.place,
            access: Some(access),
            other: Some(other.party(lane)),
            missing,
            detail: Cow::Borrowed(detail),
        }
    }

    /// One lane's access; the first race, with the other's stamp and lane.
    fn lane(&mut self, me: &Me<'a>, address: u64, size: u32) -> Option<(Kind, (u32, u32))> {
        let cells = self.shadow.cells(address, size, &mut self.memory.sets);
        let mut view = View {
            clocks: self.clocks,
            memory: self.memory,
            asked: &mut self.asked,
            forgotten: self.forgotten,
            overwritten: &mut self.overwritten,
            open: &mut self.open,
            manner: self.manner,
            begin: address,
            bytes: size as usize / cells.len(),
            address,
        };
        let step = u64::from(size) / cells.len() as u64;
        let mut race = None;
        for cell in cells {
            let found =
                if me.as_stamp.act.writes() { view.write(me, cell) } else { view.read(me, cell) };
            // Of the cells of one access, a fault comes before a remark.
            if let Some(found) = found
                && race.is_none_or(|(kind, _)| kind == Kind::SameValue && found.0 != kind)
            {
                race = Some(found);
            }
            view.address += step;
        }
        race
    }

    fn stamp(&self, number: u32) -> &Stamp {
        &self.memory.stamps[number as usize - 1]
    }
}

/// A race: its kind, and the other's stamp and lane.
type Race = (Kind, (u32, u32));

/// What a cell's check needs.
struct View<'v, 'a> {
    clocks: &'a Clocks,
    memory: &'v mut Memory,
    asked: &'v mut Asked<'a>,
    forgotten: &'v mut u64,
    overwritten: &'v mut Vec<u64>,
    open: &'v mut Vec<(u32, u32)>,
    manner: Manner<'a>,
    /// The access's first byte, and the bytes of a cell.
    begin: u64,
    bytes: usize,
    /// The cell's first byte.
    address: u64,
}

impl<'a> View<'_, 'a> {
    fn stamp(&self, number: u32) -> &Stamp {
        &self.memory.stamps[number as usize - 1]
    }

    /// Whether a lane's stamped access comes before what `me` does now.
    #[inline]
    fn before(&mut self, me: &Me<'a>, number: u32, lane: u32) -> bool {
        let asked = &*self.asked;
        if asked.stamp == number
            && asked.all
            && asked.known.is_some_and(|known| Arc::ptr_eq(known, me.known))
        {
            return true;
        }
        self.before_unasked(me, number, lane)
    }

    fn before_unasked(&mut self, me: &Me<'a>, number: u32, lane: u32) -> bool {
        let Stamp { warp, moment, .. } = *self.stamp(number);
        // A thread comes after itself; an agent is another thread. (A warp number with an agent's mark never equals a place's.)
        if warp == me.place.warp() && lane == me.place.lane() {
            return true;
        }
        let block = me.place.block;
        if self.clocks.knows_all(me.known, block, warp, moment) {
            *self.asked = Asked { stamp: number, known: Some(me.known), all: true };
            return true;
        }
        self.clocks.knows(me.known, block, warp, lane, moment)
    }

    /// What two accesses without an order are, if they must have one.
    fn race(&self, me: &Me<'a>, number: u32) -> Option<Kind> {
        let (mine, other) = (&me.as_stamp, self.stamp(number));
        if !mine.act.writes() && !other.act.writes() {
            return None;
        }
        if !is_strong(mine.act) || !is_strong(other.act) {
            return Some(Kind::Race);
        }
        if order_is_only_believed(mine, other, me.space) {
            return Some(Kind::UnorderedVolatile);
        }
        (!self.morally_strong(mine, other)).then_some(Kind::NarrowScope)
    }

    /// Whether two strong accesses are strong for each other.
    fn morally_strong(&self, a: &Stamp, b: &Stamp) -> bool {
        let includes = |s| self.clocks.includes(s, a.warp.block, b.warp.block);
        is_strong(a.act) && is_strong(b.act) && includes(a.scope) && includes(b.scope)
    }

    fn read(&mut self, me: &Me<'a>, cell: &mut Cell) -> Option<Race> {
        let ordered = match cell.writes.held() {
            Held::Nothing => true,
            Held::One { stamp, lane, .. } => self.before(me, stamp, lane),
            Held::Set(_) => false,
        };
        if !ordered {
            return self.read_unordered(me, cell);
        }
        self.add_read(me, cell, false);
        if self.manner.proxies && is_bulk(&me.as_stamp) {
            return self.not_seen_by_proxy(me, cell);
        }
        None
    }

    /// A store before a bulk copy's read that no proxy fence lets the copy see.
    #[cold]
    fn not_seen_by_proxy(&self, me: &Me<'a>, cell: &Cell) -> Option<Race> {
        let matter = match me.space {
            Space::Shared => Matter::AsyncShared,
            _ => Matter::AsyncGlobal,
        };
        self.memory.sets.entries(cell.writes).find_map(|entry| {
            let Stamp { warp, moment, act, .. } = *self.stamp(entry.stamp);
            let seen = |&lane: &u32| self.clocks.has_learned(me.place, matter, warp, lane, moment);
            let unseen = lanes(entry.lanes).find(|lane| !seen(lane));
            let unseen = unseen.filter(|_| act != Act::AsyncWrite)?;
            Some((Kind::MissingProxyFence, (entry.stamp, unseen)))
        })
    }

    /// The first of some lanes of a `volatile` write that `me` believes to come before its `volatile` read.
    fn trusted(&self, me: &Me<'a>, number: u32, left: u32) -> Option<u32> {
        let (mine, other) = (&me.as_stamp, self.stamp(number));
        if self.manner.flag
            || me.space != Space::Global
            || mine.act != Act::VolatileRead
            || other.act != Act::VolatileWrite
        {
            return None;
        }
        let Stamp { warp, moment, .. } = *other;
        lanes(left)
            .find(|&lane| self.clocks.has_learned(me.place, Matter::Belief, warp, lane, moment))
    }

    /// Remembers a read beside those it does not come after.
    #[inline]
    fn add_read(&mut self, me: &Me<'a>, cell: &mut Cell, sees: bool) {
        let lane = me.place.lane();
        match cell.reads.held() {
            Held::Nothing => cell.reads = Slot::one(me.stamp, sees, lane),
            // Two lanes of one instruction are one entry.
            Held::One { stamp, sees: saw, lane: other }
                if stamp != me.stamp
                    && !saw
                    && self.stands_for(me, stamp)
                    && self.before(me, stamp, other)
                    && self.takes_over(me, stamp, 1 << other) != 0 =>
            {
                cell.reads = Slot::one(me.stamp, sees, lane);
            }
            Held::One { .. } => self.add_to_crowd(me, cell, sees),
            Held::Set(number) => match self.memory.sets.get(number).last() {
                Some(last) if last.stamp == me.stamp && last.sees == sees => {
                    self.memory.sets.widen_last(number, 1 << lane);
                }
                // Looked through whenever it has doubled, so that each read costs a constant.
                _ if !self.memory.sets.get(number).len().is_power_of_two() => {
                    self.memory
                        .sets
                        .push(number, Entry { stamp: me.stamp, sees, lanes: 1 << lane });
                }
                _ => self.add_to_crowd(me, cell, sees),
            },
        }
    }

    fn add_to_crowd(&mut self, me: &Me<'a>, cell: &mut Cell, sees: bool) {
        let mut reads = core::mem::take(&mut self.memory.reads);
        self.memory.sets.take(&mut cell.reads, &mut reads);
        self.drop_earlier(me, &mut reads);
        let entry = Entry { stamp: me.stamp, sees, lanes: 1 << me.place.lane() };
        let short = self.memory.sets.bytes() > self.memory.set_bytes;
        if short && !reads.is_empty() {
            *self.forgotten += reads.len() as u64;
            reads.clear();
        }
        if let Some(same) = reads.iter_mut().find(|e| e.stamp == entry.stamp && e.sees == sees) {
            same.lanes |= entry.lanes;
        } else {
            if reads.len() >= CROWD {
                // Half of them, so that the crowd is not looked through at every read.
                *self.forgotten += reads.drain(..CROWD / 2).count() as u64;
            }
            reads.push(entry);
        }
        cell.reads = self.memory.sets.put(&reads);
        self.memory.reads = reads;
    }

    /// Drops the reads that `me` comes after and stands for; another access cannot stand for a witness.
    fn drop_earlier(&mut self, me: &Me<'a>, reads: &mut Vec<Entry>) {
        reads.retain_mut(|entry| {
            if entry.stamp != me.stamp && !entry.sees && self.stands_for(me, entry.stamp) {
                let left = self.unordered(me, *entry);
                entry.lanes &= !self.takes_over(me, entry.stamp, entry.lanes & !left);
            }
            entry.lanes != 0
        });
    }

    /// Whether all that races with an earlier access races with `me`, if `me` comes after it.
    #[inline]
    fn stands_for(&self, me: &Me<'a>, number: u32) -> bool {
        let (mine, other) = (&me.as_stamp, self.stamp(number));
        match (is_strong(mine.act), is_strong(other.act)) {
            (false, _) => true,
            (true, false) => false,
            _ => !is_volatile(other.act) || order_is_only_believed(mine, other, me.space),
        }
    }

    /// Of the lanes of a read that `me`, another read, comes after and stands for: those that need not be remembered. The value that one of them read may have been
    /// used, and then so is that of `me`, since a race with the one is told as a race with the other. A value that is not used yet is remembered, but for one that `me` writes over.
    fn takes_over(&mut self, me: &Me<'a>, number: u32, those: u32) -> u32 {
        let load = me.as_stamp.load;
        if load == 0 || those == 0 {
            return those;
        }
        let Stamp { warp, load: other, .. } = *self.stamp(number);
        let discarded = &mut self.memory.discarded;
        let own = 1 << me.place.lane();
        let open = discarded.unused(other) & those;
        if open != those {
            discarded.count_as_used(load, own);
        }
        let over = warp == me.place.warp() && discarded.same_step(load, other);
        those & !open | if over { open & own } else { 0 }
    }

    /// The lanes of an entry that `me` does not come after.
    fn unordered(&mut self, me: &Me<'a>, entry: Entry) -> u32 {
        let mut left = entry.lanes;
        for lane in lanes(entry.lanes) {
            if self.before(me, entry.stamp, lane) {
                left &= !(1 << lane);
            }
        }
        left
    }

    /// Whether `me` comes after a read that saw the value of the cell's latest write.
    fn comes_after_a_witness(&mut self, me: &Me<'a>, slot: Slot) -> bool {
        match slot.held() {
            Held::Nothing => false,
            Held::One { stamp, sees, lane } => sees && self.before(me, stamp, lane),
            Held::Set(number) => (0..self.memory.sets.get(number).len()).any(|at| {
                let entry = self.memory.sets.get(number)[at];
                entry.sees && self.unordered(me, entry) != entry.lanes
            }),
        }
    }

    /// A read where some write is not known to come before.
    #[cold]
    fn read_unordered(&mut self, me: &Me<'a>, cell: &mut Cell) -> Option<Race> {
        let witness = self.comes_after_a_witness(me, cell.reads);
        let (mut race, mut sees) = (None, false);
        let mut writes = core::mem::take(&mut self.memory.writes);
        let before = cell.writes;
        self.memory.sets.take(&mut cell.writes, &mut writes);
        let mut later = writes.len();
        // Plain stores that stand side by side stored the same value: who comes after one of them has it.
        let mut has_value = false;
        for &entry in &writes {
            later -= 1;
            let latest = if later == 0 { latest_lane(entry.lanes) } else { 0 };
            let left = self.unordered(me, entry) & if witness { !latest } else { u32::MAX };
            let plain = self.stamp(entry.stamp).act == Act::Write;
            has_value |= plain && left != entry.lanes;
            if left != 0 {
                let found = match self.race(me, entry.stamp) {
                    Some(kind) => Some((kind, (entry.stamp, left.trailing_zeros()))),
                    None => self
                        .trusted(me, entry.stamp, left)
                        .map(|lane| (Kind::UnorderedVolatile, (entry.stamp, lane))),
                };
                race = race.or(found);
            }
            sees = latest & left != 0 && self.observes(me, entry.stamp);
        }
        cell.writes = match before.held() {
            Held::Set(_) => self.memory.sets.put(&writes),
            _ => before,
        };
        self.memory.writes = writes;
        self.add_read(me, cell, sees);
        match race {
            Some((Kind::Race, other @ (stamp, _)))
                if has_value && self.stamp(stamp).act == Act::Write =>
            {
                Some((Kind::SameValue, other))
            }
            race => race,
        }
    }

    /// Whether a store writes what the cell holds.
    fn stores_the_same(&self, me: &Me<'a>) -> bool {
        (self.manner.same)(me.place.lane(), (self.address - self.begin) as usize, self.bytes)
    }

    /// Whether reading a write's value makes `me` come after it for those that follow.
    fn observes(&self, me: &Me<'a>, write: u32) -> bool {
        let reads = !matches!(me.as_stamp.act, Act::StrongWrite | Act::VolatileWrite);
        reads && self.morally_strong(&me.as_stamp, self.stamp(write))
    }

    fn write(&mut self, me: &Me<'a>, cell: &mut Cell) -> Option<Race> {
        let writes = match cell.writes.held() {
            Held::Nothing => true,
            Held::One { stamp, lane, .. } => {
                self.note_overwriting(me, stamp);
                self.stands_for(me, stamp) && self.before(me, stamp, lane)
            }
            Held::Set(_) => false,
        };
        let reads = match cell.reads.held() {
            Held::Nothing => true,
            Held::One { stamp, lane, .. } => {
                self.stands_for(me, stamp) && self.before(me, stamp, lane)
            }
            Held::Set(_) => false,
        };
        if writes && reads {
            *cell =
                Cell { writes: Slot::one(me.stamp, false, me.place.lane()), reads: Slot::NOTHING };
            return None;
        }
        self.write_unordered(me, cell)
    }

    #[inline]
    fn note_overwriting(&mut self, me: &Me<'a>, write: u32) {
        let Stamp { act, size, .. } = *self.stamp(write);
        if !is_strong(me.as_stamp.act) && is_strong(act) {
            self.overwritten.push(self.address & !(u64::from(size) - 1));
        }
    }

    /// A write where some access is not known to come before.
    #[cold]
    fn write_unordered(&mut self, me: &Me<'a>, cell: &mut Cell) -> Option<Race> {
        let witness = self.comes_after_a_witness(me, cell.reads);
        let mut writes = core::mem::take(&mut self.memory.writes);
        let mut reads = core::mem::take(&mut self.memory.reads);
        self.memory.sets.take(&mut cell.writes, &mut writes);
        self.memory.sets.take(&mut cell.reads, &mut reads);
        let mut race = None;
        let mut later = writes.len();
        writes.retain_mut(|entry| {
            later -= 1;
            self.note_overwriting(me, entry.stamp);
            if later == 0 && (witness || self.takes(me, entry.stamp)) {
                entry.lanes &= !latest_lane(entry.lanes);
            }
            let left = self.unordered(me, *entry);
            self.supersede(me, entry, left, &mut race)
        });
        reads.retain_mut(|entry| {
            entry.sees = false;
            let left = self.unordered(me, *entry);
            self.supersede(me, entry, left, &mut race)
        });
        if writes.len() >= CROWD || self.memory.sets.bytes() > self.memory.set_bytes {
            *self.forgotten += (writes.len() + reads.len()) as u64;
            writes.clear();
            reads.clear();
        }
        let lane = 1 << me.place.lane();
        match writes.last_mut() {
            Some(entry) if entry.stamp == me.stamp => entry.lanes |= lane,
            _ => writes.push(Entry { stamp: me.stamp, sees: false, lanes: lane }),
        }
        *cell = Cell { writes: self.memory.sets.put(&writes), reads: self.memory.sets.put(&reads) };
        self.memory.writes = writes;
        self.memory.reads = reads;
        race
    }

    /// Lets the write `me` take the place of the lanes it comes after or races with, `left` being those it does not come after; whether any remain.
    fn supersede(
        &mut self,
        me: &Me<'a>,
        entry: &mut Entry,
        left: u32,
        race: &mut Option<Race>,
    ) -> bool {
        let mut stay = left;
        if left != 0
            && let Some(kind) = self.race(me, entry.stamp)
        {
            let Stamp { act: other_act, load, .. } = *self.stamp(entry.stamp);
            // A lane that has used what it loaded comes before those that have not.
            let used = left & !self.memory.discarded.unused(load);
            let other = (entry.stamp, if used != 0 { used } else { left }.trailing_zeros());
            // A read that may have seen one of several stores of the same value sees it from each of them.
            let remarked = matches!(race, Some((Kind::SameValue, _)));
            let harmless = is_store(other_act) || remarked && other_act == Act::Read;
            if is_store(me.as_stamp.act) && harmless && self.stores_the_same(me) {
                *race = race.or(Some((Kind::SameValue, other)));
            } else {
                if used == 0 && kind == Kind::Race {
                    if !self.open.contains(&(entry.stamp, left)) {
                        self.open.push((entry.stamp, left));
                    }
                } else if remarked || race.is_none() {
                    // A fault takes the place of a remark.
                    *race = Some((kind, other));
                }
                stay = 0;
            }
        }
        if !self.stands_for(me, entry.stamp) {
            stay |= entry.lanes & !left;
        }
        entry.lanes = stay;
        stay != 0
    }

    /// Whether a read-modify-write takes a write's value and hands it on: who comes after the one comes after the other.
    fn takes(&self, me: &Me<'a>, latest: u32) -> bool {
        me.as_stamp.act == Act::Atomic && self.observes(me, latest)
    }
}

/// Lanes of one instruction write in ascending order.
fn latest_lane(lanes: u32) -> u32 {
    lanes.checked_ilog2().map_or(0, |lane| 1 << lane)
}

/// Whether a bulk copy does it.
fn is_bulk(stamp: &Stamp) -> bool {
    stamp.warp.warp == Engine::Bulk.agents_of(issuer(stamp.warp.warp))
}

fn is_store(act: Act) -> bool {
    matches!(act, Act::Write | Act::VolatileWrite | Act::StrongWrite)
}

fn is_strong(act: Act) -> bool {
    !matches!(act, Act::Read | Act::Write | Act::AsyncRead | Act::AsyncWrite)
}

/// Whether two accesses are `volatile` ones of threads that old code believes to be in step: any of a block in its shared
/// memory, lanes of a warp in global memory. PTX calls them strong, and nothing orders them. Those of different warps in
/// global memory are flags that blocks wait for, with fences around them.
fn order_is_only_believed(a: &Stamp, b: &Stamp, space: Space) -> bool {
    let near = space == Space::Shared || a.warp == b.warp;
    near && is_volatile(a.act) && is_volatile(b.act)
}

fn is_volatile(act: Act) -> bool {
    matches!(act, Act::VolatileRead | Act::VolatileWrite)
}
