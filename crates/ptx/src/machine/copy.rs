//! Copies beside the program, and the barriers in shared memory that tell when they are done.
//!
//! A copy is carried out at once; the race checker ensures that no thread relies on it before waiting for it. For the checker the copy is done by a
//! thread of its own.

use super::access::Access;
use super::atomic;
use super::block::{Block, BlockMemory, Shared};
use super::execute::line_at;
use super::grid::Machine;
use super::lanes::{Register, indices};
use super::launch::Halt;
use super::mbarrier::{Born, Mbarrier};
use super::program::{
    Arrival, BulkWay, Code, CopyAsync, CopyBulk, PhaseWait, Place, Slot, Step, StoreAsync,
};
use super::space::{RANK_SHIFT, Window, window};
use super::undefined::Origin;
use super::warp::{Base, Group, Warp as Lanes32};
use crate::clock::Engine;
use crate::finding::{Access as Meant, Act, Fault, Kind, Party, Space as Memory};
use crate::ir::{AtomicOp, Order, Scope, Space, Type};
use crate::memory::Bytes;
use crate::place::{LANES, Place as Thread, Warp};
use std::rc::Rc;

/// What a lane copied that is undefined: the bytes, a bit each, and where they come from.
pub(super) type Undefined = (usize, u32, Origin);

/// Bytes that a bulk copy moves at a time.
pub(super) const PIECE: u32 = 16;

/// Who copies, and where in the program.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub(super) line: crate::ir::Line,
    step: u32,
    pub(super) w: usize,
    pub(super) base: Base,
}

impl Site {
    fn access(&self, space: Space, size: u32, act: Act, engine: Engine) -> Access<'static> {
        Access {
            space,
            size,
            act,
            order: Order::Weak,
            scope: Scope::Cta,
            engine: Some(engine),
            line: self.line,
            step: self.step,
            w: self.w as u32,
            extent: None,
            flag: false,
            load: 0,
            values: None,
        }
    }
}

impl Machine<'_> {
    /// Steps that have to do with copies.
    pub(crate) fn beside(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &Group,
        active: u32,
        code: &Code,
        step: &Step,
    ) -> Result<(), Halt> {
        if active == 0 {
            return Ok(());
        }
        let line = line_at(code, group.pc);
        let site = Site { line, step: code.first + group.pc, w, base: group.base };
        let warp = Warp { block: block.memory.index, warp: w as u32 };
        match step {
            Step::CopyAsync(copy) => self.copy_async(block, site, active, copy),
            Step::CopyBulk(copy) => self.copy_bulk(block, site, active, copy),
            Step::CopyTensor(copy) => self.copy_tensor(block, site, active, copy),
            Step::StoreAsync(store) => self.store_async(block, site, active, store),
            Step::CopyCommit { bulk } => {
                if let Some(races) = &mut self.races {
                    for &engine in engines(*bulk, false) {
                        races.clocks.commit_copies(warp, active, engine);
                    }
                }
            }
            Step::CopyWait { bulk, read, pending } => {
                if let Some(races) = &mut self.races {
                    for &engine in engines(*bulk, *read) {
                        match pending {
                            Some(n) => races.clocks.wait_copies(warp, active, engine, *n as usize),
                            None => races.clocks.wait_all_copies(warp, active, engine),
                        }
                    }
                }
            }
            Step::CopyArrive { space, address, no_increment } => {
                self.with_mbarriers(block, site, active, *space, *address, |machine, lane, m| {
                    if let Some(races) = &mut machine.races {
                        races.clocks.complete_copies(m.gate(), warp, 1 << lane, Engine::Copy);
                    }
                    // Without `.noinc` the barrier expects one arrival more, which is this one.
                    if *no_increment {
                        m.arrive(1, false);
                    }
                });
            }
            Step::MbarrierInit { space, address, count } => {
                self.init(block, site, active, *space, *address, *count)
            }
            Step::MbarrierInvalidate { space, address } => {
                let addresses = self.addresses(&block.warps[w], group.base, *address);
                for lane in indices(active) {
                    if let Some((shared, at)) =
                        self.locate(&block.memory, site, lane, *space, addresses[lane])
                    {
                        shared.mbarriers.borrow_mut().remove(&at);
                    }
                }
            }
            Step::MbarrierArrive(arrival) => self.arrive(block, site, active, arrival),
            Step::MbarrierTransaction { space, address, bytes, complete } => {
                let bytes = block.warps[w].registers[group.base.slot(*bytes)];
                self.with_mbarriers(block, site, active, *space, *address, |_, lane, m| {
                    if *complete { m.complete(bytes[lane]) } else { m.expect(bytes[lane]) }
                });
            }
            Step::MbarrierWait(wait) => self.test(block, site, active, wait),
            _ => {}
        }
        Ok(())
    }

    fn init(
        &mut self,
        block: &mut Block,
        site: Site,
        active: u32,
        space: Space,
        address: Place,
        count: Slot,
    ) {
        let warp = &block.warps[site.w];
        let counts = warp.registers[site.base.slot(count)];
        let addresses = self.addresses(warp, site.base, address);
        for lane in indices(active) {
            if let Some((shared, at)) =
                self.locate(&block.memory, site, lane, space, addresses[lane])
            {
                shared.region.bytes().store((at - shared.region.base()) as usize, 8, 0);
                let place = Thread::of_lane(
                    Warp { block: block.memory.index, warp: site.w as u32 },
                    lane as u32,
                );
                let moment = self.races.as_ref().and_then(|r| r.clocks.observer(place));
                let born = moment.map(|(_, moment)| Born { place, moment, line: site.line });
                let mut mbarrier = Mbarrier::new(counts[lane] as u32);
                mbarrier.born = born;
                shared.mbarriers.borrow_mut().insert(at, mbarrier);
            }
        }
    }

    fn arrive(&mut self, block: &mut Block, site: Site, active: u32, arrival: &Arrival) {
        let registers = &block.warps[site.w].registers;
        let read = |slot: Option<Slot>, default: u64| {
            slot.map_or([default; LANES], |s| registers[site.base.slot(s)])
        };
        let (counts, expected) = (read(arrival.count, 1), read(arrival.expect, 0));
        let warp = Warp { block: block.memory.index, warp: site.w as u32 };
        let mut states = [0; LANES];
        self.with_mbarriers(
            block,
            site,
            active,
            arrival.space,
            arrival.address,
            |machine, lane, m| {
                if let Some(races) = &mut machine.races
                    && arrival.release
                {
                    races.clocks.arrive(m.gate(), warp, 1 << lane);
                }
                states[lane] = m.state();
                m.expect(expected[lane]);
                m.arrive(counts[lane] as u32, arrival.drop);
            },
        );
        if let Some(dst) = arrival.dst {
            let dst = &mut block.warps[site.w].registers[site.base.slot(dst)];
            indices(active).for_each(|lane| dst[lane] = states[lane]);
        }
    }

    fn test(&mut self, block: &mut Block, site: Site, active: u32, wait: &PhaseWait) {
        let phases = block.warps[site.w].registers[site.base.slot(wait.phase)];
        let warp = Warp { block: block.memory.index, warp: site.w as u32 };
        let mut past = 0;
        self.with_mbarriers(block, site, active, wait.space, wait.address, |machine, lane, m| {
            let is_past =
                if wait.parity { m.is_past_parity(phases[lane]) } else { m.is_past(phases[lane]) };
            past |= u32::from(is_past) << lane;
            if let Some(races) = &mut machine.races
                && is_past
                && wait.acquire
            {
                races.clocks.depart(m.learned(), warp, 1 << lane);
            }
        });
        block.warps[site.w].set_predicate(site.base, wait.dst, past, active);
    }

    /// Calls `f` with each lane's barrier; addresses without one are reported.
    fn with_mbarriers(
        &mut self,
        block: &Block,
        site: Site,
        active: u32,
        space: Space,
        address: Place,
        mut f: impl FnMut(&mut Self, usize, &mut Mbarrier),
    ) {
        let addresses = self.addresses(&block.warps[site.w], site.base, address);
        for lane in indices(active) {
            self.with_mbarrier(&block.memory, site, lane, space, addresses[lane], |machine, m| {
                f(machine, lane, m)
            });
        }
    }

    fn with_mbarrier(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        space: Space,
        address: u64,
        f: impl FnOnce(&mut Self, &mut Mbarrier),
    ) {
        let Some((shared, at)) = self.locate(memory, site, lane, space, address) else { return };
        match shared.mbarriers.borrow_mut().get_mut(&at) {
            Some(mbarrier) => {
                if let Some(born) = mbarrier.born {
                    self.check_born(memory, site, lane, born, at);
                }
                f(self, mbarrier);
            }
            None => self.complain(
                memory,
                site,
                lane,
                Kind::Uninitialised,
                address,
                "where no mbarrier was initialised",
            ),
        }
    }

    /// Whether a thread that uses a barrier comes after its initialisation.
    fn check_born(&mut self, memory: &BlockMemory, site: Site, lane: usize, born: Born, at: u64) {
        let warp = Warp { block: memory.index, warp: site.w as u32 };
        let place = Thread::of_lane(warp, lane as u32);
        let Some(races) = &self.races else { return };
        let Some((known, _)) = races.clocks.observer(place) else { return };
        let (its, its_lane) = (born.place.warp(), born.place.lane());
        if place == born.place || races.clocks.knows(known, place.block, its, its_lane, born.moment)
        {
            return;
        }
        self.report(Fault {
            kind: Kind::Race,
            line: site.line,
            place,
            access: Some(Meant { space: Memory::Shared, act: Act::Atomic, address: at, size: 8 }),
            other: Some(Party { place: born.place, line: born.line, act: Some(Act::Write) }),
            missing: None,
            detail: "an mbarrier whose initialisation may come later".into(),
        });
    }

    /// The shared memory and the offset that an address of a barrier means.
    fn locate(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        space: Space,
        address: u64,
    ) -> Option<(Rc<Shared>, u64)> {
        let within = match space {
            Space::Generic => match window(address) {
                (Window::Shared, within) => within,
                _ => {
                    self.complain(
                        memory,
                        site,
                        lane,
                        Kind::OutOfBounds,
                        address,
                        "which is not shared memory",
                    );
                    return None;
                }
            },
            _ => address,
        };
        let Some(shared) = memory.shared_of(within >> RANK_SHIFT) else {
            self.complain(
                memory,
                site,
                lane,
                Kind::OutOfBounds,
                address,
                "in a block that is not in the cluster",
            );
            return None;
        };
        let at = within & ((1 << RANK_SHIFT) - 1);
        if let Some(trouble) = shared.region.trouble(at, 8) {
            self.complain(memory, site, lane, trouble.kind, address, &trouble.detail);
            return None;
        }
        Some((shared.clone(), at))
    }

    fn complain(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        kind: Kind,
        address: u64,
        detail: &str,
    ) {
        let warp = Warp { block: memory.index, warp: site.w as u32 };
        self.report(Fault {
            kind,
            line: site.line,
            place: Thread::of_lane(warp, lane as u32),
            access: Some(Meant { space: Memory::Shared, act: Act::Atomic, address, size: 8 }),
            other: None,
            missing: None,
            detail: detail.to_owned().into(),
        });
    }

    /// `cp.async`.
    fn copy_async(&mut self, block: &mut Block, site: Site, active: u32, copy: &CopyAsync) {
        let Block { memory, warps, .. } = block;
        let warp = &warps[site.w];
        let (to, from) =
            (self.addresses(warp, site.base, copy.dst), self.addresses(warp, site.base, copy.src));
        let ignored = copy.ignore.map_or(0, |c| warp.holds(site.base, c)) & active;
        let mut read = [u64::from(copy.size); LANES];
        if let Some(slot) = copy.src_size {
            let sizes = warp.registers[site.base.slot(slot)];
            read = sizes.map(|s| s.min(copy.size.into()));
        }
        indices(ignored).for_each(|lane| read[lane] = 0);
        let mut data = [[0u8; PIECE as usize]; LANES];
        let whole =
            indices(active).filter(|&l| read[l] == u64::from(copy.size)).fold(0, |m, l| m | 1 << l);
        let mut undefined = self.fetch(
            memory,
            site,
            whole,
            &from,
            copy.size,
            Space::Global,
            Engine::Copy,
            &mut data,
        );
        for lane in indices(active & !whole) {
            let some = self.fetch_some(memory, site, lane, from[lane], read[lane], &mut data[lane]);
            undefined.extend(some);
        }
        self.put_down(memory, site, active, &to, copy.size, Space::Shared, Engine::Copy, &data);
        self.leave_copied(memory, site, &to, copy.size, Space::Shared, &undefined);
    }

    /// Reads fewer bytes than a copy writes, one by one.
    fn fetch_some(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        from: u64,
        bytes: u64,
        data: &mut [u8; PIECE as usize],
    ) -> Vec<Undefined> {
        let mut undefined = Vec::new();
        for i in 0..bytes {
            let addresses = [from + i; LANES];
            let mut one = [[0u8; PIECE as usize]; LANES];
            let found = self.fetch(
                memory,
                site,
                1 << lane,
                &addresses,
                1,
                Space::Global,
                Engine::Copy,
                &mut one,
            );
            undefined.extend(found.into_iter().map(|(lane, mask, o)| (lane, mask << i, o)));
            data[i as usize] = one[lane][0];
        }
        undefined
    }

    /// Where a copy has put down what was undefined, memory is.
    pub(super) fn leave_copied(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        to: &Register,
        size: u32,
        space: Space,
        undefined: &[Undefined],
    ) {
        for &(lane, mask, origin) in undefined {
            let thread = (site.w * LANES + lane) as u32;
            self.leave_undefined((memory, space, thread, to[lane]), size, mask, origin, site.line);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a place in the program and one in memory")]
    pub(super) fn fetch(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lanes: u32,
        from: &Register,
        size: u32,
        space: Space,
        engine: Engine,
        data: &mut [[u8; PIECE as usize]; LANES],
    ) -> Vec<Undefined> {
        if lanes == 0 {
            return Vec::new();
        }
        let access = site.access(space, size, Act::AsyncRead, engine);
        self.visit(memory, lanes, from, access, |bytes: &Bytes, start, lanes| {
            for lane in indices(lanes) {
                let at = from[lane].wrapping_sub(start) as usize;
                bytes.read(at, &mut data[lane][..size as usize]);
            }
        });
        if self.unwritten.is_empty() {
            return Vec::new();
        }
        self.undefined_of_copy(memory, space, from, size)
    }

    #[expect(clippy::too_many_arguments, reason = "a place in the program and one in memory")]
    pub(super) fn put_down(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lanes: u32,
        to: &Register,
        size: u32,
        space: Space,
        engine: Engine,
        data: &[[u8; PIECE as usize]; LANES],
    ) {
        let access = site.access(space, size, Act::AsyncWrite, engine);
        self.visit(memory, lanes, to, access, |bytes: &Bytes, start, lanes| {
            for lane in indices(lanes) {
                let at = to[lane].wrapping_sub(start) as usize;
                for (i, word) in data[lane][..size as usize].chunks(4).enumerate() {
                    let mut raw = [0; 4];
                    raw[..word.len()].copy_from_slice(word);
                    bytes.store(at + 4 * i, word.len() as u32, u32::from_le_bytes(raw).into());
                }
            }
        });
    }

    /// `cp.async.bulk`: lane by lane, piece by piece.
    fn copy_bulk(&mut self, block: &mut Block, site: Site, active: u32, copy: &CopyBulk) {
        let Block { memory, warps, .. } = block;
        let warp = &warps[site.w];
        let (to, from) =
            (self.addresses(warp, site.base, copy.dst), self.addresses(warp, site.base, copy.src));
        let sizes = warp.registers[site.base.slot(copy.size)];
        let (source, sink) = match copy.way {
            BulkWay::GlobalToShared { .. } => (Space::Global, Space::Shared),
            BulkWay::SharedToCluster { .. } => (Space::Shared, Space::Shared),
            BulkWay::SharedToGlobal => (Space::Shared, Space::Global),
        };
        let (mbarriers, masks) = self.mbarriers_of(warp, site, &copy.way);
        for lane in indices(active) {
            let bytes = u64::from(sizes[lane] as u32);
            for rank in ranks(masks.map(|masks| masks[lane])) {
                if !self.move_bulk(
                    memory,
                    site,
                    lane,
                    (rank_moved(to[lane], rank), sink),
                    (from[lane], source),
                    bytes,
                    copy.reduce,
                ) {
                    break;
                }
                if let Some(mbarriers) = mbarriers {
                    let mbarrier = rank_moved(mbarriers[lane], rank);
                    self.complete(memory, site, lane, mbarrier, bytes);
                }
            }
        }
    }

    /// The mbarriers that learn of a copy, and the blocks of the cluster that get one.
    pub(super) fn mbarriers_of(
        &self,
        warp: &Lanes32,
        site: Site,
        way: &BulkWay,
    ) -> (Option<Register>, Option<Register>) {
        match *way {
            BulkWay::GlobalToShared { mbarrier, multicast } => (
                Some(self.addresses(warp, site.base, mbarrier)),
                multicast.map(|slot| warp.registers[site.base.slot(slot)]),
            ),
            BulkWay::SharedToCluster { mbarrier } => {
                (Some(self.addresses(warp, site.base, mbarrier)), None)
            }
            BulkWay::SharedToGlobal => (None, None),
        }
    }

    /// An mbarrier learns of the bytes of a lane's copy, and of what was done for it.
    pub(super) fn complete(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        mbarrier: u64,
        bytes: u64,
    ) {
        let warp = Warp { block: memory.index, warp: site.w as u32 };
        self.with_mbarrier(memory, site, lane, Space::Shared, mbarrier, |machine, m| {
            if let Some(races) = &mut machine.races {
                races.clocks.complete_copies(m.gate(), warp, 1 << lane, Engine::Bulk);
            }
            m.complete(bytes);
        });
    }

    /// `st.async`, `red.async`: lane by lane, and the mbarrier learns of the bytes.
    fn store_async(&mut self, block: &mut Block, site: Site, active: u32, store: &StoreAsync) {
        let Block { memory, warps, .. } = block;
        let warp = &warps[site.w];
        let to = self.addresses(warp, site.base, store.dst);
        let mbarriers = self.addresses(warp, site.base, store.mbarrier);
        let element = store.ty.bytes() as usize;
        let size = (element * store.values.len()) as u32;
        let mut data = [[0u8; PIECE as usize]; LANES];
        for (i, &value) in store.values.iter().enumerate() {
            let values = &warp.registers[site.base.slot(value)];
            for lane in indices(active) {
                let raw = values[lane].to_le_bytes();
                data[lane][i * element..][..element].copy_from_slice(&raw[..element]);
            }
        }
        for lane in indices(active) {
            let faults = self.findings.total();
            match store.reduce {
                Some(op) => {
                    let data = &data[lane][..element];
                    let to = (to[lane], Space::Shared);
                    self.combine(memory, site, lane, to, Engine::Bulk, data, (op, store.ty));
                }
                None => {
                    let lanes = 1 << lane;
                    self.put_down(
                        memory,
                        site,
                        lanes,
                        &to,
                        size,
                        Space::Shared,
                        Engine::Bulk,
                        &data,
                    );
                }
            }
            if self.findings.total() != faults {
                continue;
            }
            self.complete(memory, site, lane, mbarriers[lane], size.into());
        }
    }

    /// What was copied and is undefined is combined with what memory holds.
    pub(super) fn decide_copied(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        undefined: &[Undefined],
    ) {
        let warp = Warp { block: memory.index, warp: site.w as u32 };
        let place = Thread::of_lane(warp, lane as u32);
        for &(_, _, origin) in undefined {
            self.decide(origin, "goes into an atomic", Some((place, site.line)));
        }
    }

    /// Combines a piece with the elements at its destination, each in one step.
    #[expect(clippy::too_many_arguments, reason = "a place in the program and one in memory")]
    pub(super) fn combine(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        (to, space): (u64, Space),
        engine: Engine,
        data: &[u8],
        (op, ty): (AtomicOp, Type),
    ) {
        let bytes = ty.bytes();
        // As additions of single precision in global memory do.
        let flush = ty == Type::F32 && space == Space::Global;
        for (i, element) in data.chunks(bytes as usize).enumerate() {
            let mut raw = [0; 8];
            raw[..element.len()].copy_from_slice(element);
            let value = u64::from_le_bytes(raw);
            let addresses = [to.wrapping_add(i as u64 * u64::from(bytes)); LANES];
            let access =
                Access { scope: Scope::Gpu, ..site.access(space, bytes, Act::Atomic, engine) };
            self.visit(memory, 1 << lane, &addresses, access, |at: &Bytes, start, lanes| {
                for lane in indices(lanes) {
                    let offset = addresses[lane].wrapping_sub(start) as usize;
                    let old = at.load(offset, bytes);
                    at.store(offset, bytes, atomic::combine(op, ty, flush, old, value, 0));
                }
            });
        }
    }

    /// Moves the bytes of one lane's copy; false if it ran into a fault.
    #[expect(clippy::too_many_arguments, reason = "a place in the program and two in memory")]
    fn move_bulk(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        to: (u64, Space),
        from: (u64, Space),
        bytes: u64,
        reduce: Option<(AtomicOp, Type)>,
    ) -> bool {
        let faults = self.findings.total();
        let mut data = [[0u8; PIECE as usize]; LANES];
        for at in (0..bytes).step_by(PIECE as usize) {
            let (source, sink) = ([from.0.wrapping_add(at); LANES], [to.0.wrapping_add(at); LANES]);
            let lanes = 1 << lane;
            let undefined =
                self.fetch(memory, site, lanes, &source, PIECE, from.1, Engine::Bulk, &mut data);
            let stores = if from.1 == Space::Shared && to.1 == Space::Global {
                Engine::BulkStore
            } else {
                Engine::Bulk
            };
            if let Some(reduce) = reduce {
                self.decide_copied(memory, site, lane, &undefined);
                self.combine(memory, site, lane, (sink[lane], to.1), stores, &data[lane], reduce);
            } else {
                self.put_down(memory, site, lanes, &sink, PIECE, to.1, stores, &data);
                self.leave_copied(memory, site, &sink, PIECE, to.1, &undefined);
            }
            // A copy of a wrong size would be reported for each of its pieces.
            if self.findings.total() != faults {
                return false;
            }
        }
        true
    }
}

/// The rank fields of the blocks that get a copy: of those in a mask, or the one to which the address points.
pub(super) fn ranks(mask: Option<u64>) -> Vec<u64> {
    match mask {
        None => vec![0],
        Some(mask) => {
            (0..16).filter(|r| mask >> r & 1 == 1).map(|r| (r + 1) << RANK_SHIFT).collect()
        }
    }
}

/// The same place in the block with a rank field.
pub(super) fn rank_moved(address: u64, rank: u64) -> u64 {
    if rank == 0 { address } else { address & ((1 << RANK_SHIFT) - 1) | rank }
}

/// What carries out copies of a kind, or only their reads.
fn engines(bulk: bool, read: bool) -> &'static [Engine] {
    match (bulk, read) {
        (false, _) => &[Engine::Copy],
        (true, true) => &[Engine::Bulk],
        (true, false) => &[Engine::Bulk, Engine::BulkStore],
    }
}
