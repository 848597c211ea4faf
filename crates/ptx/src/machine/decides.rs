//! Where undefined values come from and where they decide something: see [`super::undefined`].

use super::access::Access;
use super::block::{Block, BlockMemory, extend};
use super::execute::line_at;
use super::grid::Machine;
use super::lanes::{Register, indices};
use super::program::{
    BarrierKind, Callee, Code, Guarded, Load, Place as Operand, PlaceBase, Slot, Step, Store,
};
use super::space::{RANK_SHIFT, Window, window};
use super::undefined::{Doubt, Origin, Shadow, Word};
use super::warp::{Base, Group, Warp};
use crate::ir::{Line, Space};
use crate::memory::Bytes;
use crate::place::{LANES, Place};

impl Machine<'_> {
    /// Looks at a step of a warp that has undefined values, before it is carried out.
    #[cold]
    pub(crate) fn look_into(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &Group,
        active: u32,
        guarded: &Guarded,
        code: &Code,
    ) {
        let (base, line) = (group.base, line_at(code, group.pc));
        let warp = &mut block.warps[w];
        let place =
            |lane: u32| Place { block: block.memory.index, thread: (w * LANES) as u32 + lane };
        let mut decided = Vec::new();
        let mut register = |warp: &Warp, slot: Slot, what: &'static str| {
            decided.push((warp.in_either(base, &[slot], active), what));
        };
        let address = |warp: &Warp, operand: Operand| match operand.base {
            PlaceBase::Slot(slot) => warp.in_either(base, &[slot], active),
            _ => Doubt::default(),
        };
        const ADDRESS: &str = "is an address";
        const COORDINATE: &str = "is a handle or a coordinate";
        const ATOMIC: &str = "goes into an atomic";
        match &guarded.step {
            Step::Load(load) => decided.push((address(warp, load.address), ADDRESS)),
            Step::Store(store) => decided.push((address(warp, store.address), ADDRESS)),
            Step::Atomic(atomic) => {
                register(warp, atomic.a, ATOMIC);
                register(warp, atomic.b, ATOMIC);
                if let Some(upper) = atomic.upper {
                    register(warp, upper.a, ATOMIC);
                    register(warp, upper.b, ATOMIC);
                }
                decided.push((address(warp, atomic.address), ADDRESS));
                for dst in atomic.dst.into_iter().chain(atomic.upper.map(|upper| upper.dst)) {
                    warp.clear_shadow(base, dst, active);
                }
            }
            Step::CopyAsync(copy) => {
                decided.push((address(warp, copy.dst), ADDRESS));
                decided.push((address(warp, copy.src), ADDRESS));
            }
            Step::CopyBulk(copy) => {
                register(warp, copy.size, ADDRESS);
                decided.push((address(warp, copy.dst), ADDRESS));
                decided.push((address(warp, copy.src), ADDRESS));
            }
            Step::CopyTensor(copy) => {
                let offsets = copy.offsets.iter().flatten();
                copy.at.iter().chain(offsets).for_each(|&slot| register(warp, slot, ADDRESS));
                decided.push((address(warp, copy.map), ADDRESS));
                decided.push((address(warp, copy.tile), ADDRESS));
            }
            Step::StoreAsync(store) => {
                for &value in &store.values {
                    register(warp, value, "is stored beside the program");
                }
                decided.push((address(warp, store.dst), ADDRESS));
            }
            Step::Texture(texture) => {
                for &slot in texture.at.iter().chain([&texture.image]) {
                    register(warp, slot, COORDINATE);
                }
            }
            Step::SurfaceLoad(access) | Step::SurfaceStore(access) => {
                for &slot in access.at.iter().chain([&access.image]) {
                    register(warp, slot, COORDINATE);
                }
            }
            Step::ImageExtent { dst, image, .. } => {
                register(warp, *image, COORDINATE);
                warp.clear_shadow(base, *dst, active);
            }
            Step::Allocate { dst, size, .. } => {
                register(warp, *size, "is the size of an allocation");
                warp.clear_shadow(base, *dst, active);
            }
            Step::StackSave { dst } => warp.clear_shadow(base, *dst, active),
            Step::StackRestore { a } => register(warp, *a, ADDRESS),
            Step::BranchTable { index, .. } => register(warp, *index, "decides a branch"),
            Step::Call(call) => {
                if let Callee::Indirect(slot) = call.callee {
                    register(warp, slot, "decides a call");
                }
            }
            Step::Barrier(barrier) => {
                if let BarrierKind::Reduce { pred, fold, dst } = barrier.kind {
                    let doubt = warp.doubt(base, pred.slot).within(active);
                    decided.push((doubt, "is a vote at a barrier"));
                    match fold {
                        crate::ir::BarrierFold::Popc => warp.clear_shadow(base, dst, active),
                        _ => warp.set_doubt(base, dst, active, Doubt::default()),
                    }
                }
            }
            Step::Shuffle(_)
            | Step::Vote { .. }
            | Step::Match { .. }
            | Step::Redux { .. }
            | Step::Matrix(_) => {}
            step => {
                if step.is_computed() {
                    warp.follow(base, group.mask, active, guarded);
                } else if let Some(condition) = guarded.guard {
                    let doubt = warp.doubt(base, condition.slot).within(group.mask);
                    decided.push((doubt, "decides a branch"));
                }
            }
        }
        if let (Some(condition), Step::Load(_) | Step::Store(_) | Step::Atomic(_)) =
            (guarded.guard, &guarded.step)
        {
            let doubt = warp.doubt(base, condition.slot).within(group.mask);
            decided.push((doubt, "decides an access"));
        }
        let decided: Vec<_> = decided.into_iter().filter(|(doubt, _)| doubt.lanes != 0).collect();
        for (doubt, what) in decided {
            let at = place(doubt.lanes.trailing_zeros());
            self.decide(doubt.origin, what, Some((at, line)));
        }
    }

    pub(super) fn decide(&mut self, origin: Origin, what: &str, other: Option<(Place, Line)>) {
        let fault = self.origins.fault(origin, what, other);
        self.report(fault);
    }

    /// Whether what a load has just read is to be looked at, or registers in doubt are written over.
    #[inline(always)]
    pub(crate) fn must_look_at_loads(&self, warp: &Warp) -> bool {
        !self.unwritten.is_empty() || warp.is_in_doubt()
    }

    /// The destinations of a load are as undefined as what it read.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "an instruction, its lanes and its place")]
    pub(crate) fn look_at_load(
        &mut self,
        memory: &BlockMemory,
        warp: &mut Warp,
        base: Base,
        active: u32,
        load: &Load,
        addresses: &Register,
        access: Access<'_>,
    ) {
        let bits = load.bytes * 8;
        let mut shadows = vec![Shadow::CLEAR; load.dsts.len()];
        for fault in core::mem::take(&mut self.unwritten) {
            let lane = fault.place.lane() as usize;
            let thread = fault.place.thread;
            let mut origin = None;
            for (i, shadow) in shadows.iter_mut().enumerate() {
                let address = addresses[lane].wrapping_add(i as u64 * u64::from(load.bytes));
                let Some((bytes, offset, word)) =
                    self.bytes_at(memory, access.space, thread, address)
                else {
                    continue;
                };
                let unwritten = unwritten(bytes, offset, load.bytes);
                if unwritten == 0 {
                    continue;
                }
                let first = u64::from(unwritten.trailing_zeros() / 8);
                let known = self.origins.of_word(word.of_byte(first));
                let origin = *origin.get_or_insert_with(|| {
                    known.unwrap_or_else(|| self.origins.number(fault.clone()))
                });
                shadow.bits[lane] = extend(unwritten, bits, load.signed, load.register_bits);
                shadow.origins[lane] = origin;
            }
        }
        for (&dst, shadow) in load.dsts.iter().zip(&shadows) {
            warp.set_shadow(base, dst, active, shadow);
        }
    }

    /// Memory becomes as undefined as what a store wrote there.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "an instruction, its lanes and its place")]
    pub(crate) fn look_at_store(
        &mut self,
        memory: &BlockMemory,
        warp: &Warp,
        base: Base,
        stored: u32,
        store: &Store,
        addresses: &Register,
        access: Access<'_>,
    ) {
        for (i, &value) in store.values.iter().enumerate() {
            let Some(shadow) = warp.shadow(base, value) else { continue };
            for lane in indices(stored) {
                let undefined = bytes_of_bits(shadow.bits[lane], store.bytes);
                if undefined != 0 {
                    let address = addresses[lane].wrapping_add(i as u64 * u64::from(store.bytes));
                    let thread = access.w * LANES as u32 + lane as u32;
                    let at = (memory, access.space, thread, address);
                    self.leave_undefined(
                        at,
                        store.bytes,
                        undefined,
                        shadow.origins[lane],
                        access.line,
                    );
                }
            }
        }
    }

    /// Some bytes of memory hold an undefined value from now on.
    pub(crate) fn leave_undefined(
        &mut self,
        (memory, space, thread, address): (&BlockMemory, Space, u32, u64),
        size: u32,
        undefined: u32,
        origin: Origin,
        line: Line,
    ) {
        let Some((bytes, offset, word)) = self.bytes_at(memory, space, thread, address) else {
            return;
        };
        if offset + size as usize > bytes.len() || offset % size as usize != 0 {
            return;
        }
        if bytes.is_tracked() {
            bytes.set_undefined(offset, size, undefined);
            for at in (0..size).filter(|at| undefined >> at & 1 == 1) {
                self.origins.remember(word, at.into(), origin);
            }
        } else {
            // What memory holds cannot be followed: storing it is the last that is seen of it.
            let place = Place { block: memory.index, thread };
            self.decide(origin, "is stored", Some((place, line)));
        }
    }

    /// What was read for an asynchronous copy and is undefined: for each lane the bytes, and the origin.
    pub(crate) fn undefined_of_copy(
        &mut self,
        memory: &BlockMemory,
        space: Space,
        addresses: &Register,
        size: u32,
    ) -> Vec<(usize, u32, Origin)> {
        let mut found = Vec::new();
        for fault in core::mem::take(&mut self.unwritten) {
            let lane = fault.place.lane() as usize;
            let thread = fault.place.thread;
            let Some((bytes, offset, word)) = self.bytes_at(memory, space, thread, addresses[lane])
            else {
                continue;
            };
            let undefined: u32 = (0..size)
                .filter(|&i| bytes.first_unwritten(offset + i as usize, 1).is_some())
                .fold(0, |m, i| m | 1 << i);
            let first = u64::from(undefined.trailing_zeros());
            let known = self.origins.of_word(word.of_byte(first));
            let origin = known.unwrap_or_else(|| self.origins.number(fault));
            found.push((lane, undefined, origin));
        }
        found
    }

    /// The bytes that an address means, the place there, and the name of its word.
    fn bytes_at<'m>(
        &'m self,
        memory: &'m BlockMemory,
        space: Space,
        thread: u32,
        address: u64,
    ) -> Option<(&'m Bytes, usize, Word)> {
        let (which, within) = match space {
            Space::Generic => window(address),
            Space::Global => (Window::Global, address),
            Space::Shared | Space::SharedCluster => (Window::Shared, address),
            Space::Local => (Window::Local, address),
            Space::Const | Space::Param => return None,
        };
        match which {
            Window::Global => {
                let view = self.global.view(within)?;
                Some((view.bytes, (within - view.base) as usize, Word::Global(within)))
            }
            Window::Shared => {
                let shared = memory.shared_of(within >> RANK_SHIFT)?;
                let at = within & ((1 << RANK_SHIFT) - 1);
                let offset = at.checked_sub(shared.region.base())? as usize;
                Some((shared.region.bytes(), offset, Word::Shared(shared.block, at)))
            }
            Window::Local => {
                let offset = memory.local.start(thread) + within as usize;
                Some((memory.local.bytes(), offset, Word::Local(memory.index, thread, within)))
            }
            _ => None,
        }
    }

    /// Reports undefined values that are in global memory now that the kernel has ended.
    pub(crate) fn report_outputs(&mut self) {
        for (word, bytes, origin) in self.origins.outputs() {
            let is_unwritten = |address: u64| {
                let view = self.global.view(address)?;
                view.bytes.first_unwritten((address - view.base) as usize, 1)
            };
            let mut given = (0..4).filter(|place| bytes >> place & 1 == 1);
            // Once a word, as a load of it is reported once.
            if given.any(|place| is_unwritten(word + place).is_some()) {
                self.decide(origin, "is in global memory when the kernel ends", None);
            }
        }
    }
}

/// The bits of a value in memory that were never written.
fn unwritten(bytes: &Bytes, offset: usize, size: u32) -> u64 {
    (0..size)
        .filter(|&i| bytes.first_unwritten(offset + i as usize, 1).is_some())
        .fold(0, |bits, i| bits | 0xff << (8 * i))
}

/// The bytes, a bit each, in which a value has an undefined bit.
fn bytes_of_bits(bits: u64, size: u32) -> u32 {
    (0..size).filter(|i| bits >> (8 * i) & 0xff != 0).fold(0, |m, i| m | 1 << i)
}
