//! `atom` and `red`: one lane after the other, in ascending order.

use super::access::Access;
use super::block::Block;
use super::execute::line_at;
use super::grid::Machine;
use super::lanes::indices;
use super::program::{Atomic, Code, Slot, Upper};
use super::space::{Window, window};
use super::warp::Group;
use crate::finding::Act;
use crate::ir::{AtomicOp, FloatBinary, FloatMode, IntBinary, Space, Type};
use crate::place::LANES;
use crate::value::{float, int};

/// What memory holds after an operation.
pub(crate) fn combine(op: AtomicOp, ty: Type, flush: bool, old: u64, a: u64, b: u64) -> u64 {
    if ty.is_float() {
        let mode = FloatMode { ftz: flush, ..FloatMode::default() };
        return match op {
            AtomicOp::Add => float::binary(FloatBinary::Add, ty, mode, old, a),
            AtomicOp::Min => float::binary(FloatBinary::Min, ty, mode, old, a),
            AtomicOp::Max => float::binary(FloatBinary::Max, ty, mode, old, a),
            _ => bitwise(op, ty, old, a, b),
        };
    }
    bitwise(op, ty, old, a, b)
}

fn bitwise(op: AtomicOp, ty: Type, old: u64, a: u64, b: u64) -> u64 {
    let integer = |op| int::binary(op, ty, old, a);
    match op {
        AtomicOp::Add => integer(IntBinary::Add),
        AtomicOp::Min => integer(IntBinary::Min),
        AtomicOp::Max => integer(IntBinary::Max),
        AtomicOp::And => old & a,
        AtomicOp::Or => old | a,
        AtomicOp::Xor => old ^ a,
        AtomicOp::Inc => {
            if old >= a {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::Dec => {
            if old == 0 || old > a {
                a
            } else {
                old - 1
            }
        }
        AtomicOp::Exchange => a,
        AtomicOp::CompareAndSwap => {
            if old == a {
                b
            } else {
                old
            }
        }
    }
}

impl Machine<'_> {
    pub(crate) fn atomic(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &Group,
        active: u32,
        code: &Code,
        atomic: &Atomic,
    ) {
        if active == 0 {
            return;
        }
        if let Some(upper) = atomic.upper {
            return self.atomic_pair(block, w, group, active, code, (atomic, upper));
        }
        let Block { memory, warps, .. } = block;
        let warp = &mut warps[w];
        let base = group.base;
        let addresses = self.addresses(warp, base, atomic.address);
        let bytes = atomic.ty.bytes();
        let (a, b) = (warp.registers[base.slot(atomic.a)], warp.registers[base.slot(atomic.b)]);
        let access = access_of(atomic, bytes, w, group, code);
        let registers = &mut warp.registers;
        // Additions of single precision flush subnormal numbers in global memory, not in shared memory.
        let flushes = |lane: usize| {
            atomic.ty == Type::F32
                && match atomic.space {
                    Space::Global => true,
                    Space::Generic => window(addresses[lane]).0 == Window::Global,
                    _ => false,
                }
        };
        let mask = atomic.ty.mask();
        let mut done = 0;
        self.visit(memory, active, &addresses, access, |at, start, lanes| {
            done |= lanes;
            for lane in indices(lanes) {
                let offset = addresses[lane].wrapping_sub(start) as usize;
                let old = at.load(offset, bytes);
                let new = combine(
                    atomic.op,
                    atomic.ty,
                    flushes(lane),
                    old,
                    a[lane] & mask,
                    b[lane] & mask,
                );
                at.store(offset, bytes, new);
                if let Some(dst) = atomic.dst {
                    registers[base.slot(dst)][lane] = old;
                }
            }
        });
        if let Some(dst) = atomic.dst {
            let dst = &mut warp.registers[base.slot(dst)];
            indices(active & !done).for_each(|lane| dst[lane] = mask);
        }
    }
}

impl Machine<'_> {
    /// A swap of 128 bits.
    fn atomic_pair(
        &mut self,
        block: &mut Block,
        w: usize,
        group: &Group,
        active: u32,
        code: &Code,
        (atomic, upper): (&Atomic, Upper),
    ) {
        let Block { memory, warps, .. } = block;
        let warp = &mut warps[w];
        let base = group.base;
        let addresses = self.addresses(warp, base, atomic.address);
        let values = |[low, high]: [Slot; 2]| {
            [warp.registers[base.slot(low)], warp.registers[base.slot(high)]]
        };
        let (a, b) = (values([atomic.a, upper.a]), values([atomic.b, upper.b]));
        let compares = atomic.op == AtomicOp::CompareAndSwap;
        // What cannot be read is all ones, as uninitialised memory.
        let mut read = [[u64::MAX; LANES]; 2];
        let access = access_of(atomic, 16, w, group, code);
        self.visit(memory, active, &addresses, access, |at, start, lanes| {
            for lane in indices(lanes) {
                let offset = addresses[lane].wrapping_sub(start) as usize;
                let old = [at.load(offset, 8), at.load(offset + 8, 8)];
                let [a, b] = [&a, &b].map(|halves| halves.map(|half| half[lane]));
                let new = if !compares || old == a { b } else { old };
                at.store(offset, 8, new[0]);
                at.store(offset + 8, 8, new[1]);
                read[0][lane] = old[0];
                read[1][lane] = old[1];
            }
        });
        for (slot, read) in atomic.dst.into_iter().chain([upper.dst]).zip(read) {
            let dst = &mut warp.registers[base.slot(slot)];
            indices(active).for_each(|lane| dst[lane] = read[lane]);
        }
    }
}

fn access_of(atomic: &Atomic, size: u32, w: usize, group: &Group, code: &Code) -> Access<'static> {
    Access {
        space: atomic.space,
        size,
        act: Act::Atomic,
        order: atomic.order,
        scope: atomic.scope,
        engine: None,
        line: line_at(code, group.pc),
        step: code.first + group.pc,
        w: w as u32,
        extent: atomic.extent,
        flag: false,
        load: 0,
        values: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_wrap_where_they_are_told() {
        let inc = |old| combine(AtomicOp::Inc, Type::U32, false, old, 3, 0);
        assert_eq!([0, 2, 3, 9].map(inc), [1, 3, 0, 0]);
        let dec = |old| combine(AtomicOp::Dec, Type::U32, false, old, 3, 0);
        assert_eq!([0, 1, 3, 9].map(dec), [3, 0, 2, 3]);
    }

    #[test]
    fn only_single_precision_in_global_memory_flushes() {
        let add = |flush| combine(AtomicOp::Add, Type::F32, flush, 1, 1, 0);
        assert_eq!((add(false), add(true)), (2, 0));
    }

    #[test]
    fn a_swap_needs_what_it_compares() {
        let cas = |old| combine(AtomicOp::CompareAndSwap, Type::B32, false, old, 5, 9);
        assert_eq!((cas(5), cas(6)), (9, 6));
    }
}
