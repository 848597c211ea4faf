//! Loads, stores and fences: windows, checks, then the bytes.

use super::block::{Block, BlockMemory, extend};
use super::checks::Checks;
use super::execute::{line_at, read_param, write_param};
use super::grid::Machine;
use super::lanes::{Register, indices};
use super::program::{Code, Extent, Load, Place, PlaceBase, Program, Store};
use super::space::{FRAME_PARAM, RANK_SHIFT, Window, window};
use super::undefined::Shadow;
use super::warp::{Base, Group, Warp as Lanes32};
use crate::clock::{self, Engine, Matter, Strong};
use crate::finding::{Act, Fault, Findings, Kind};
use crate::ir::{FenceOrder, Line, Module, Order, Scope, Space, VariableId};
use crate::memory::race::{Manner, Same, Target};
use crate::memory::{Bytes, Request, Trouble};
use crate::place::{LANES, Place as Thread, Warp};

/// A scope as the clocks have it.
pub(crate) fn scope_of(scope: Scope) -> clock::Scope {
    match scope {
        Scope::Cta => clock::Scope::Block,
        Scope::Cluster => clock::Scope::Cluster,
        Scope::Gpu => clock::Scope::Device,
        Scope::Sys => clock::Scope::System,
    }
}

/// An access of a warp: what of, how much, how.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) space: Space,
    /// Bytes of each lane, all elements together.
    pub(crate) size: u32,
    pub(crate) act: Act,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
    pub(crate) engine: Option<Engine>,
    pub(crate) line: Line,
    /// The step, for counters.
    pub(crate) step: u32,
    pub(crate) w: u32,
    /// The shared variable that is meant.
    pub(crate) extent: Option<Extent>,
    /// A branch looks at what is loaded.
    pub(crate) flag: bool,
    /// The number of a load whose value may be thrown away; else 0.
    pub(crate) load: u32,
    /// What a store writes, lane by lane.
    pub(crate) values: Option<&'a dyn Fn(usize) -> Stored>,
}

/// The bytes that one lane stores.
pub(crate) type Stored = [u8; 32];

impl Machine<'_> {
    /// The addresses of an operand. A frame's parameter memory has none.
    pub(crate) fn addresses(&self, warp: &Lanes32, base: Base, place: Place) -> Register {
        match place.base {
            PlaceBase::Slot(slot) => {
                let bases = &warp.registers[base.slot(slot)];
                core::array::from_fn(|lane| bases[lane].wrapping_add_signed(place.offset))
            }
            PlaceBase::FrameLocal => [base.local.wrapping_add_signed(place.offset); LANES],
            PlaceBase::FrameParam => [base.params.wrapping_add_signed(place.offset); LANES],
        }
    }

    pub(crate) fn load(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &Group,
        active: u32,
        code: &Code,
        load: &Load,
    ) {
        if active == 0 {
            return;
        }
        let Block { memory, warps, .. } = block;
        let warp = &mut warps[w];
        let base = group.base;
        let addresses = self.addresses(warp, base, load.address);
        let (bytes, bits) = (load.bytes, load.bytes * 8);
        if let PlaceBase::FrameParam = load.address.base {
            for (i, &dst) in load.dsts.iter().enumerate() {
                let values =
                    read_param(warp, addresses[0] + i as u64 * u64::from(bytes), bytes.into());
                let dst = &mut warp.registers[base.slot(dst)];
                for lane in indices(active) {
                    dst[lane] = extend(values[lane], bits, load.signed, load.register_bits);
                }
            }
            if warp.is_in_doubt() {
                for (i, &dst) in load.dsts.iter().enumerate() {
                    let at = addresses[0] + i as u64 * u64::from(bytes);
                    let mut shadow = warp.param_shadow(at, bytes.into()).unwrap_or(Shadow::CLEAR);
                    shadow.bits =
                        shadow.bits.map(|b| extend(b, bits, load.signed, load.register_bits));
                    warp.set_shadow(base, dst, active, &shadow);
                }
            }
            return;
        }
        let act = match load.order {
            Order::Weak => Act::Read,
            Order::Volatile => Act::VolatileRead,
            _ => Act::StrongRead,
        };
        let access = Access {
            space: load.space,
            size: bytes * load.dsts.len() as u32,
            act,
            order: load.order,
            scope: load.scope,
            engine: None,
            line: line_at(code, group.pc),
            step: code.first + group.pc,
            w: w as u32,
            extent: load.extent,
            flag: load.flag,
            load: self.begin_load(load, code.first + group.pc, active),
            values: None,
        };
        let framed = self.in_frames(access.space, active, &addresses);
        let room = warp.params.len() as u64;
        for lane in indices(self.inside(framed, &addresses, access, memory, room)) {
            let at = frame_offset(addresses[lane]);
            for (i, &dst) in load.dsts.iter().enumerate() {
                let values = read_param(warp, at + i as u64 * u64::from(bytes), bytes.into());
                let value = extend(values[lane], bits, load.signed, load.register_bits);
                warp.registers[base.slot(dst)][lane] = value;
            }
        }
        let active = active & !framed;
        let registers = &mut warp.registers;
        let mut done = 0;
        self.visit(memory, active, &addresses, access, |from, start, lanes| {
            done |= lanes;
            for (i, &dst) in load.dsts.iter().enumerate() {
                let dst = &mut registers[base.slot(dst)];
                let shift = (i as u32 * bytes) as usize;
                for lane in indices(lanes) {
                    let at = addresses[lane].wrapping_sub(start) as usize + shift;
                    dst[lane] = extend(from.load(at, bytes), bits, load.signed, load.register_bits);
                }
            }
        });
        if done != active {
            // What cannot be read is all ones, as uninitialised memory.
            for &dst in &load.dsts {
                let dst = &mut warp.registers[base.slot(dst)];
                indices(active & !done).for_each(|lane| {
                    dst[lane] = u64::MAX >> (64 - load.register_bits.clamp(1, 64))
                });
            }
        }
        if access.load != 0 {
            warp.give(access.load, &load.dsts, active);
        }
        if self.must_look_at_loads(warp) {
            self.look_at_load(memory, warp, base, active, load, &addresses, access);
        }
    }

    pub(crate) fn store(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &Group,
        active: u32,
        code: &Code,
        store: &Store,
    ) {
        if active == 0 {
            return;
        }
        let Block { memory, warps, .. } = block;
        let warp = &mut warps[w];
        let base = group.base;
        let addresses = self.addresses(warp, base, store.address);
        let bytes = store.bytes;
        if let PlaceBase::FrameParam = store.address.base {
            for (i, &value) in store.values.iter().enumerate() {
                let values = warp.registers[base.slot(value)];
                write_param(
                    warp,
                    addresses[0] + i as u64 * u64::from(bytes),
                    bytes.into(),
                    &values,
                    active,
                );
                if warp.is_in_doubt() {
                    let shadow = warp.shadow(base, value).cloned();
                    let at = addresses[0] + i as u64 * u64::from(bytes);
                    warp.set_param_shadow(at, bytes.into(), active, shadow.as_ref());
                }
            }
            return;
        }
        let act = match store.order {
            Order::Weak => Act::Write,
            Order::Volatile => Act::VolatileWrite,
            _ => Act::StrongWrite,
        };
        let access = Access {
            space: store.space,
            size: bytes * store.values.len() as u32,
            act,
            order: store.order,
            scope: store.scope,
            engine: None,
            line: line_at(code, group.pc),
            step: code.first + group.pc,
            w: w as u32,
            extent: store.extent,
            flag: false,
            load: 0,
            values: None,
        };
        let framed = self.in_frames(access.space, active, &addresses);
        let room = warp.params.len() as u64;
        for lane in indices(self.inside(framed, &addresses, access, memory, room)) {
            let at = frame_offset(addresses[lane]);
            for (i, &value) in store.values.iter().enumerate() {
                let values = warp.registers[base.slot(value)];
                let at = at + i as u64 * u64::from(bytes);
                write_param(warp, at, bytes.into(), &values, 1 << lane);
            }
        }
        let active = active & !framed;
        let registers = &warp.registers;
        let values = |lane: usize| -> Stored {
            let mut all = [0; 32];
            for (to, &value) in all.chunks_mut(bytes as usize).zip(&store.values) {
                let value = registers[base.slot(value)][lane].to_le_bytes();
                to.copy_from_slice(&value[..bytes as usize]);
            }
            all
        };
        let access = Access { values: Some(&values), ..access };
        let mut stored = 0;
        self.visit(memory, active, &addresses, access, |to, start, lanes| {
            stored |= lanes;
            for (i, &value) in store.values.iter().enumerate() {
                let values = &registers[base.slot(value)];
                let shift = (i as u32 * bytes) as usize;
                for lane in indices(lanes) {
                    to.store(
                        addresses[lane].wrapping_sub(start) as usize + shift,
                        bytes,
                        values[lane],
                    );
                }
            }
        });
        if warp.is_in_doubt() {
            let access = Access { values: None, ..access };
            self.look_at_store(memory, warp, base, stored, store, &addresses, access);
        }
    }

    /// The lanes whose addresses mean parameters of a called function's frame. NVRTC takes these for local memory.
    #[inline]
    fn in_frames(&self, space: Space, active: u32, addresses: &Register) -> u32 {
        let may_be = matches!(space, Space::Param | Space::Local | Space::Generic);
        if !self.program.takes_param_addresses || !may_be {
            return 0;
        }
        let within = |&lane: &usize| {
            let (window, at) = match space {
                Space::Generic => window(addresses[lane]),
                _ => (Window::Param, addresses[lane]),
            };
            matches!(window, Window::Param | Window::Local)
                && (FRAME_PARAM..2 * FRAME_PARAM).contains(&at)
        };
        indices(active).filter(within).fold(0, |mask, lane| mask | 1 << lane)
    }

    /// Of lanes that mean parameters of frames, those whose bytes there are; the others are reported.
    fn inside(
        &mut self,
        framed: u32,
        addresses: &Register,
        access: Access<'_>,
        memory: &BlockMemory,
        room: u64,
    ) -> u32 {
        let fits = |&lane: &usize| {
            let at = frame_offset(addresses[lane]);
            at + u64::from(access.size) <= room && at.is_multiple_of(u64::from(access.size))
        };
        let sound = indices(framed).filter(fits).fold(0, |mask, lane| mask | 1 << lane);
        if sound != framed {
            let request = Request {
                addresses,
                active: framed & !sound,
                size: access.size,
                act: access.act,
                warp: Warp { block: memory.index, warp: access.w },
                line: access.line,
            };
            let detail = "outside of the parameters of the functions that run, or not aligned";
            self.refuse(&request, crate::finding::Space::Param, detail);
        }
        sound
    }

    pub(crate) fn fence(
        &mut self,
        block: &Block,
        w: usize,
        active: u32,
        order: FenceOrder,
        scope: Scope,
    ) {
        if let Some(races) = &mut self.races
            && active != 0
        {
            let warp = Warp { block: block.memory.index, warp: w as u32 };
            let clocks = &mut races.clocks;
            match order {
                FenceOrder::Proxy { shared, global } => {
                    let matters = [(shared, Matter::AsyncShared), (global, Matter::AsyncGlobal)];
                    let matters =
                        matters.into_iter().filter_map(|(on, matter)| on.then_some(matter));
                    clocks.fence_proxy(warp, active, &matters.collect::<Vec<_>>());
                }
                _ => clocks.fence(warp, active, scope_of(scope)),
            }
        }
    }

    /// Sorts the lanes by the memory they mean, checks each part, and calls `f` with the memory's bytes, the address of its first byte and the lanes
    /// that may go on.
    pub(crate) fn visit(
        &mut self,
        memory: &BlockMemory,
        active: u32,
        addresses: &Register,
        access: Access<'_>,
        mut f: impl FnMut(&Bytes, u64, u32),
    ) {
        match access.space {
            Space::Global => self.visit_global(memory, active, addresses, access, &mut f),
            Space::Local => {
                self.visit_part(memory, Window::Local, active, addresses, access, &mut f)
            }
            Space::Const => {
                self.visit_part(memory, Window::Const, active, addresses, access, &mut f)
            }
            Space::Param => {
                self.visit_part(memory, Window::Param, active, addresses, access, &mut f)
            }
            Space::Shared | Space::SharedCluster => {
                self.visit_shared(memory, active, addresses, access, &mut f)
            }
            Space::Generic => {
                let mut left = active;
                while left != 0 {
                    let (which, _) = window(addresses[left.trailing_zeros() as usize]);
                    let mut inner = *addresses;
                    let mut part = 0;
                    for lane in indices(left) {
                        let (w, within) = window(addresses[lane]);
                        if w == which {
                            part |= 1 << lane;
                            inner[lane] = within;
                        }
                    }
                    left &= !part;
                    // The caller's offsets count from the generic address.
                    let lift = addresses[part.trailing_zeros() as usize]
                        .wrapping_sub(inner[part.trailing_zeros() as usize]);
                    let mut lifted = |bytes: &Bytes, start: u64, lanes: u32| {
                        f(bytes, start.wrapping_add(lift), lanes)
                    };
                    match which {
                        Window::Global => {
                            self.visit_global(memory, part, &inner, access, &mut lifted)
                        }
                        Window::Shared => {
                            self.visit_shared(memory, part, &inner, access, &mut lifted)
                        }
                        other => self.visit_part(memory, other, part, &inner, access, &mut lifted),
                    }
                }
            }
        }
    }

    fn visit_global(
        &mut self,
        memory: &BlockMemory,
        active: u32,
        addresses: &Register,
        access: Access<'_>,
        f: &mut dyn FnMut(&Bytes, u64, u32),
    ) {
        let global = self.global;
        let warp = Warp { block: memory.index, warp: access.w };
        let request = Request {
            addresses,
            active,
            size: access.size,
            act: access.act,
            warp,
            line: access.line,
        };
        self.count_global(&request, access);
        let request = match self.allocated.is_empty() {
            true => request,
            false => Request { active: self.check_heap(&request), ..request },
        };
        let active = request.active;
        if active == 0 {
            return;
        }
        let (findings, checks) = (&mut self.findings, self.options.checks);
        let unwritten = &mut self.unwritten;
        let mut report = |fault| sort(fault, checks, access, findings, unwritten);
        let view = global.view_all(&request);
        let sound = match view {
            Some(_) if !checks.uninitialised => active,
            _ => global.check(&request, &mut report),
        };
        let sound_request = Request { active: sound, ..request };
        if let Some(races) = &mut self.races
            && sound != 0
        {
            let same = |lane, first, length| {
                let now = |at, out: &mut [u8]| match global.view(at) {
                    Some(view) => view.bytes.read((at - view.base) as usize, out),
                    None => out.fill(0),
                };
                stores_the_same(&sound_request, access, lane, first, length, &now)
            };
            let manner = manner(access, &same);
            races.access_with(&sound_request, Target::Global, manner, &mut report);
            order(races, &sound_request, Target::Global, access);
        }
        match view {
            Some(view) => f(view.bytes, view.base, sound),
            None => {
                for lane in indices(sound) {
                    if let Some(view) = global.view(addresses[lane]) {
                        f(view.bytes, view.base, 1 << lane);
                    }
                }
            }
        }
    }

    fn visit_shared(
        &mut self,
        memory: &BlockMemory,
        active: u32,
        addresses: &Register,
        access: Access<'_>,
        f: &mut dyn FnMut(&Bytes, u64, u32),
    ) {
        let mut left = active;
        while left != 0 {
            let rank = addresses[left.trailing_zeros() as usize] >> RANK_SHIFT;
            let same = if rank == 0 && memory.peers.is_empty() {
                left
            } else {
                indices(left)
                    .filter(|&l| addresses[l] >> RANK_SHIFT == rank)
                    .fold(0, |m, l| m | 1 << l)
            };
            left &= !same;
            if rank == 0 {
                self.visit_shared_of(memory, 0, same, addresses, access, f);
            } else {
                let lift = rank << RANK_SHIFT;
                let inner = addresses.map(|a| a.wrapping_sub(lift));
                let mut lifted = |bytes: &Bytes, start: u64, lanes: u32| {
                    f(bytes, start.wrapping_add(lift), lanes)
                };
                self.visit_shared_of(memory, rank, same, &inner, access, &mut lifted);
            }
        }
    }

    fn visit_shared_of(
        &mut self,
        memory: &BlockMemory,
        rank: u64,
        active: u32,
        addresses: &Register,
        access: Access<'_>,
        f: &mut dyn FnMut(&Bytes, u64, u32),
    ) {
        let warp = Warp { block: memory.index, warp: access.w };
        let request = Request {
            addresses,
            active,
            size: access.size,
            act: access.act,
            warp,
            line: access.line,
        };
        let Some(shared) = memory.shared_of(rank) else {
            let detail =
                format!("in block {} of a cluster of {}", rank - 1, memory.peers.len().max(1));
            self.refuse(&request, crate::finding::Space::Shared, &detail);
            return;
        };
        self.count_shared(&request, access);
        let (findings, checks) = (&mut self.findings, self.options.checks);
        let unwritten = &mut self.unwritten;
        let mut report = |fault| sort(fault, checks, access, findings, unwritten);
        let sound = shared.region.check(&request, &mut report);
        if let Some(extent) = access.extent
            && !request.fits(extent.first, extent.end)
        {
            let inside = Request { active: sound, ..request };
            leaves_variable(self.module, self.program, &inside, extent, &mut report);
        }
        if let Some(races) = &mut self.races
            && sound != 0
        {
            let request = Request { active: sound, ..request };
            let target = Target::Shared { of: shared.block };
            let region = &shared.region;
            let same = |lane, first, length| {
                let now = |at: u64, out: &mut [u8]| {
                    region.bytes().read((at - region.base()) as usize, out)
                };
                stores_the_same(&request, access, lane, first, length, &now)
            };
            races.access_with(&request, target, manner(access, &same), &mut report);
            order(races, &request, target, access);
        }
        if sound != 0 {
            f(shared.region.bytes(), shared.region.base(), sound);
        }
    }

    /// Local memory, constants, parameters, and addresses that mean nothing.
    fn visit_part(
        &mut self,
        memory: &BlockMemory,
        which: Window,
        active: u32,
        addresses: &Register,
        access: Access<'_>,
        f: &mut dyn FnMut(&Bytes, u64, u32),
    ) {
        let warp = Warp { block: memory.index, warp: access.w };
        let request = Request {
            addresses,
            active,
            size: access.size,
            act: access.act,
            warp,
            line: access.line,
        };
        let region = match which {
            Window::Local => &memory.local,
            Window::Const => self.constant,
            Window::Param => self.arguments,
            _ => {
                self.refuse(&request, crate::finding::Space::Unknown, "in no memory's window");
                return;
            }
        };
        let (findings, checks) = (&mut self.findings, self.options.checks);
        let unwritten = &mut self.unwritten;
        let mut report = |fault| sort(fault, checks, access, findings, unwritten);
        let sound = region.check(&request, &mut report);
        if which == Window::Local {
            for lane in indices(sound) {
                let start = region.start(access.w * LANES as u32 + lane as u32) as u64;
                f(region.bytes(), 0u64.wrapping_sub(start), 1 << lane);
            }
        } else if sound != 0 {
            f(region.bytes(), 0, sound);
        }
    }

    /// Reports addresses that mean no memory.
    fn refuse(&mut self, request: &Request<'_>, space: crate::finding::Space, detail: &str) {
        for lane in indices(request.active) {
            let trouble = Trouble { kind: Kind::OutOfBounds, detail: detail.to_owned() };
            self.report(request.fault(space, lane as u32, trouble));
        }
    }
}

/// How the race checker sees an access.
fn manner<'a>(access: Access<'_>, same: Same<'a>) -> Manner<'a> {
    Manner {
        scope: scope_of(access.scope),
        engine: access.engine,
        same,
        flag: access.flag,
        load: access.load,
        proxies: true,
    }
}

/// What becomes of a fault: a read of what nobody wrote is one only if its value decides something.
fn sort(
    fault: Fault,
    checks: Checks,
    access: Access<'_>,
    findings: &mut Findings,
    unwritten: &mut Vec<Fault>,
) {
    if !checks.allow(fault.kind) {
        return;
    }
    if fault.kind == Kind::Uninitialised && !access.act.writes() {
        unwritten.push(fault);
    } else {
        findings.report(fault);
    }
}

/// Reports the lanes whose address is in another shared variable than the one it is computed from. Memory does as it is told.
#[cold]
fn leaves_variable(
    module: &Module,
    program: &Program,
    request: &Request<'_>,
    extent: Extent,
    report: &mut dyn FnMut(Fault),
) {
    let named = |id: VariableId| &*module.variables[id.index()].name;
    for lane in indices(request.active) {
        let address = request.addresses[lane];
        if address >= extent.first && address + u64::from(request.size) <= extent.end {
            continue;
        }
        let (whose, bytes) = (named(extent.variable), extent.end - extent.first);
        let distance = match address.checked_sub(extent.end) {
            Some(over) => format!("{over} bytes past"),
            None if address < extent.first => format!("{} bytes before", extent.first - address),
            None => "over the end of".into(),
        };
        let at = |id: &&(VariableId, u64, u64)| address >= id.1 && address < id.2;
        let there = match program.shared.iter().find(at) {
            Some(&(id, ..)) => format!(", in `{}`", named(id)),
            None => String::new(),
        };
        let detail = format!("{distance} the {bytes} bytes of `{whose}`{there}");
        let trouble = Trouble { kind: Kind::OutOfBounds, detail };
        report(request.fault(crate::finding::Space::Shared, lane as u32, trouble));
    }
}

/// Whether a lane's store leaves some of its bytes as they are: those of memory, or of a lane before it in the same instruction.
fn stores_the_same(
    request: &Request<'_>,
    access: Access<'_>,
    lane: u32,
    first: usize,
    length: usize,
    now: &dyn Fn(u64, &mut [u8]),
) -> bool {
    let Some(values) = access.values else { return false };
    let own = values(lane as usize);
    let address = request.addresses[lane as usize];
    let before = indices(request.active & ((1 << lane) - 1))
        .filter(|&other| request.addresses[other] == address)
        .last();
    let mut there = [0; 32];
    match before {
        Some(other) => there = values(other),
        None => now(address + first as u64, &mut there[first..first + length]),
    }
    own[first..first + length] == there[first..first + length]
}

/// Where an address of a frame's parameter lies in the warp's parameter memory, whether it is generic or not.
fn frame_offset(address: u64) -> u64 {
    (address & 0xffff_ffff) - FRAME_PARAM
}

/// Moves the clocks of strong accesses.
fn order(
    races: &mut crate::memory::race::Races,
    request: &Request<'_>,
    target: Target,
    access: Access<'_>,
) {
    // What an engine does carries no order of the thread that asked for it.
    if access.engine.is_some() || access.order == Order::Weak && access.act != Act::Atomic {
        return;
    }
    let reads = !matches!(access.act, Act::VolatileWrite | Act::StrongWrite);
    let strong = Strong {
        reads,
        writes: access.act.writes(),
        acquires: reads && matches!(access.order, Order::Acquire | Order::AcqRel),
        releases: access.act.writes() && matches!(access.order, Order::Release | Order::AcqRel),
        scope: if access.order == Order::Volatile {
            clock::Scope::System
        } else {
            scope_of(access.scope)
        },
    };
    for lane in indices(request.active) {
        let place = Thread::of_lane(request.warp, lane as u32);
        races.clocks.strong(place, target.key(request.addresses[lane]), strong);
    }
}
