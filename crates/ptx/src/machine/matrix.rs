//! Tables that the lanes of a warp hold together: `ldmatrix`, `stmatrix`, `movmatrix`, `mma`; `wmma` is in [`super::fragment`].
//!
//! Every lane has a part of each table, as PTX lays down. Products of halves, of `tf32` and of eight bits are summed in double precision and
//! rounded once, where hardware sums in an order and with roundings that are not documented: the results agree within its error.

use super::access::{Access, Stored};
use super::block::Block;
use super::fragment;
use super::grid::Machine;
use super::lanes::{Register, indices};
use super::program::{Matrix, MatrixStep, Product};
use super::undefined::Shadow;
use super::warp::{Base, Warp};
use crate::finding::Act;
use crate::ir::{Line, MatrixType, Order, Scope, Type};
use crate::memory::Bytes;
use crate::place::LANES;
use crate::value::real::Format;

/// Rows and columns of a table in memory.
const SIDE: usize = 8;

impl Machine<'_> {
    /// Carries it out for the lanes that are there; an instruction that is not for all of them gives undefined results, here ones.
    pub(crate) fn matrix(
        &mut self,
        block: &mut Block,
        w: usize,
        base: Base,
        lanes: u32,
        (line, step): (Line, u32),
        matrix: &Matrix,
    ) {
        let Block { memory, warps, .. } = block;
        let warp = &mut warps[w];
        let mut access = Access {
            space: crate::ir::Space::Shared,
            size: 16,
            act: Act::Read,
            order: Order::Weak,
            scope: Scope::Cta,
            engine: None,
            line,
            step,
            w: w as u32,
            extent: None,
            flag: false,
            load: 0,
            values: None,
        };
        match &matrix.what {
            MatrixStep::Load { space, transposed, dsts, address } => {
                access.space = *space;
                let addresses = self.addresses(warp, base, *address);
                let rows = lanes & rows_of(dsts.len());
                let mut tables = [[[0xffff_u16; SIDE]; SIDE]; 4];
                self.visit(memory, rows, &addresses, access, |from: &Bytes, start, lanes| {
                    for lane in indices(lanes) {
                        let at = addresses[lane].wrapping_sub(start) as usize;
                        for (i, element) in tables[lane / SIDE][lane % SIDE].iter_mut().enumerate()
                        {
                            *element = from.load(at + 2 * i, 2) as u16;
                        }
                    }
                });
                let undefined = self.undefined_rows();
                for (i, &dst) in dsts.iter().enumerate() {
                    let table = &tables[i];
                    let mut shadow = Shadow::CLEAR;
                    for lane in indices(lanes) {
                        let [low, high] = [0, 1].map(|e| place(lane, e, *transposed));
                        let pick = |(row, column): (usize, usize)| u64::from(table[row][column]);
                        warp.registers[base.slot(dst)][lane] = pick(low) | pick(high) << 16;
                        for (e, (row, _)) in [low, high].into_iter().enumerate() {
                            if let Some(origin) = undefined[i * SIDE + row] {
                                shadow.bits[lane] |= 0xffff << (16 * e);
                                shadow.origins[lane] = origin;
                            }
                        }
                    }
                    warp.set_shadow(base, dst, lanes, &shadow);
                }
            }
            MatrixStep::Store { space, transposed, values, address } => {
                access.space = *space;
                access.act = Act::Write;
                let addresses = self.addresses(warp, base, *address);
                let rows = lanes & rows_of(values.len());
                let mut tables = [[[0_u16; SIDE]; SIDE]; 4];
                for (table, &value) in tables.iter_mut().zip(values) {
                    let register = &warp.registers[base.slot(value)];
                    for (lane, &bits) in register.iter().enumerate() {
                        for e in 0..2 {
                            let (row, column) = place(lane, e, *transposed);
                            table[row][column] = (bits >> (16 * e)) as u16;
                        }
                    }
                }
                let row = |lane: usize| &tables[lane / SIDE][lane % SIDE];
                let stored = |lane: usize| -> Stored {
                    let mut bytes = [0; 32];
                    for (two, element) in bytes.chunks_mut(2).zip(row(lane)) {
                        two.copy_from_slice(&element.to_le_bytes());
                    }
                    bytes
                };
                let access = Access { values: Some(&stored), ..access };
                self.visit(memory, rows, &addresses, access, |to: &Bytes, start, lanes| {
                    for lane in indices(lanes) {
                        let at = addresses[lane].wrapping_sub(start) as usize;
                        for (i, &element) in row(lane).iter().enumerate() {
                            to.store(at + 2 * i, 2, element.into());
                        }
                    }
                });
                let doubt = warp.in_either(base, values, lanes);
                for lane in indices(if doubt.lanes == 0 { 0 } else { rows }) {
                    let thread = (w * LANES + lane) as u32;
                    let at = (&*memory, *space, thread, addresses[lane]);
                    self.leave_undefined(at, 16, 0xffff, doubt.origin, line);
                }
            }
            MatrixStep::Transpose { dst, a } => {
                let register = warp.registers[base.slot(*a)];
                let doubt = warp.in_either(base, &[*a], lanes);
                let mut table = [[0_u64; SIDE]; SIDE];
                for (lane, &bits) in register.iter().enumerate() {
                    for e in 0..2 {
                        let (row, column) = place(lane, e, false);
                        table[row][column] = bits >> (16 * e) & 0xffff;
                    }
                }
                for lane in indices(lanes) {
                    let [low, high] = [0, 1].map(|e| place(lane, e, true));
                    warp.registers[base.slot(*dst)][lane] =
                        table[low.0][low.1] | table[high.0][high.1] << 16;
                }
                let everybody = if doubt.lanes == 0 { 0 } else { lanes };
                let doubt = super::undefined::Doubt { lanes: everybody, ..doubt };
                warp.set_all(base, *dst, lanes, doubt);
            }
            MatrixStep::Multiply(product) => multiply(warp, base, lanes, product),
            MatrixStep::LoadFragment { table, dsts } => {
                access.space = table.space;
                self.load_fragment(block, base, lanes, access, table, dsts);
            }
            MatrixStep::StoreFragment { table, values } => {
                access.space = table.space;
                self.store_fragment(block, base, lanes, access, table, values);
            }
            MatrixStep::MultiplyFragments(product) => {
                fragment::multiply(warp, base, lanes, product)
            }
        }
    }

    /// The rows, a lane each, that a load has found undefined, with where that comes from.
    pub(super) fn undefined_rows(&mut self) -> [Option<u32>; LANES] {
        let mut rows = [None; LANES];
        for fault in core::mem::take(&mut self.unwritten) {
            let lane = fault.place.lane() as usize;
            rows[lane] = Some(self.origins.number(fault));
        }
        rows
    }
}

/// The lanes that give the rows of so many tables.
fn rows_of(tables: usize) -> u32 {
    u32::MAX >> (32 - SIDE * tables.clamp(1, 4))
}

/// Row and column of the low or the high element of a lane's register.
fn place(lane: usize, element: usize, transposed: bool) -> (usize, usize) {
    let (row, column) = (lane / 4, lane % 4 * 2 + element);
    if transposed { (column, row) } else { (row, column) }
}

/// An element of a factor, as a number that is exact.
pub(super) fn number(ty: MatrixType, bits: u64) -> f64 {
    match ty {
        MatrixType::Plain(Type::F64) => f64::from_bits(bits),
        MatrixType::Plain(Type::S8) => f64::from(bits as u8 as i8),
        MatrixType::Plain(Type::U8) => f64::from(bits as u8),
        // Hardware looks at the upper 19 bits only.
        MatrixType::Plain(Type::Tf32) => f32::from_bits(bits as u32 & !0x1fff).into(),
        MatrixType::Plain(Type::Bf16) => f32::from_bits((bits as u32) << 16).into(),
        MatrixType::Plain(_) => half(bits),
        MatrixType::Eight(eight) => eight.to_f32(bits).into(),
        MatrixType::Four { signed: true } => f64::from((bits as u8 as i8) << 4 >> 4),
        MatrixType::Four { signed: false } | MatrixType::Bit => f64::from(bits as u8),
    }
}

/// A half in double precision.
fn half(bits: u64) -> f64 {
    let mode = crate::ir::FloatMode::default();
    let bits = crate::value::convert::convert(Type::F64, Type::F16, 64, mode, false, bits & 0xffff);
    f64::from_bits(bits)
}

/// The element of a lane's part: `at` counts registers' elements, 32 or 64 bits a register.
pub(super) fn element(
    warp: &Warp,
    base: Base,
    slots: &[u32],
    bits: u32,
    lane: usize,
    at: usize,
) -> u64 {
    let each = if bits == 64 { 1 } else { (32 / bits) as usize };
    let register: &Register = &warp.registers[base.slot(slots[at / each])];
    let shift = (at % each) as u32 * bits;
    (register[lane] >> shift) & (u64::MAX >> (64 - bits))
}

fn multiply(warp: &mut Warp, base: Base, lanes: u32, product: &Product) {
    let Product { shape, a_type, b_type, c_type, ty, saturate, dsts, a, b, c, .. } = product;
    let (m, n, k) = (shape.0 as usize, shape.1 as usize, shape.2 as usize);
    let each = (32 / a_type.bits()).max(1) as usize;
    let (mut left, mut right) = (vec![0.0; m * k], vec![0.0; k * n]);
    for lane in 0..LANES {
        let (group, within) = (lane / 4, lane % 4);
        for at in 0..m * k / LANES {
            let (register, e) = (at / each, at % each);
            let (row, step) = if m == 16 {
                (group + 8 * (register % 2), register / 2)
            } else {
                (group, register)
            };
            let column = step * 4 * each + within * each + e;
            left[row * k + column] =
                number(*a_type, element(warp, base, a, a_type.bits(), lane, at));
        }
        for at in 0..k * n / LANES {
            let (register, e) = (at / each, at % each);
            let row = register * 4 * each + within * each + e;
            right[row * n + group] =
                number(*b_type, element(warp, base, b, b_type.bits(), lane, at));
        }
    }
    let all: Vec<u32> = [a, b, c].into_iter().flat_map(|slots| slots.iter().copied()).collect();
    let doubt = warp.in_either(base, &all, lanes);
    let mut sums = vec![[0_u64; LANES]; m * n / LANES];
    for (at, register) in sums.iter_mut().enumerate() {
        for lane in indices(lanes) {
            let (row, column) = (lane / 4 + 8 * (at / 2), lane % 4 * 2 + at % 2);
            let addend = addend(*c_type, element(warp, base, c, c_type.bits(), lane, at));
            let factors = (0..k).map(|i| product.pair(left[row * k + i], right[i * n + column]));
            register[lane] = sum(*ty, *saturate, addend, factors);
        }
    }
    let packed = if ty.bits() == 16 { 2 } else { 1 };
    for (i, &dst) in dsts.iter().enumerate() {
        let dst = &mut warp.registers[base.slot(dst)];
        for lane in indices(lanes) {
            let part = |e: usize| sums[i * packed + e][lane] << (16 * e);
            dst[lane] = (0..packed).fold(0, |bits, e| bits | part(e));
        }
    }
    let everybody = if doubt.lanes == 0 { 0 } else { lanes };
    for &dst in dsts {
        let doubt = super::undefined::Doubt { lanes: everybody, ..doubt };
        warp.set_all(base, dst, lanes, doubt);
    }
}

impl Product {
    /// Two factors. Single bits that count where they differ are such whose difference is not 0: their product is its square.
    pub(super) fn pair(&self, x: f64, y: f64) -> (f64, f64) {
        if self.differing { (x - y, x - y) } else { (x, y) }
    }
}

/// What products are added to, as a number that is exact.
pub(super) fn addend(ty: Type, bits: u64) -> f64 {
    match ty {
        Type::S32 => (bits as u32 as i32).into(),
        Type::F64 => f64::from_bits(bits),
        Type::F16 => half(bits),
        _ => f32::from_bits(bits as u32).into(),
    }
}

/// The products of a row and a column, and what they are added to.
pub(super) fn sum(
    ty: Type,
    saturate: bool,
    addend: f64,
    factors: impl Iterator<Item = (f64, f64)>,
) -> u64 {
    match ty {
        Type::S32 => {
            // At most 64 products of 16 bits, or 256 of one: exact in any order.
            let total = factors.fold(addend as i64, |sum, (x, y)| sum + (x * y) as i64);
            let clamped = total.clamp(i32::MIN.into(), i32::MAX.into());
            (if saturate { clamped } else { total }) as u32 as u64
        }
        Type::F64 => factors.fold(addend, |sum, (x, y)| libm::fma(x, y, sum)).to_bits(),
        Type::F16 => {
            let total = factors.fold(addend, |sum, (x, y)| sum + x * y);
            let mode = crate::ir::FloatMode::default();
            crate::value::convert::convert(Type::F16, Type::F64, 16, mode, false, total.to_bits())
        }
        _ => {
            let total = factors.fold(addend, |sum, (x, y)| sum + x * y) as f32;
            if total.is_nan() { Format::F32.nan() } else { total.to_bits().into() }
        }
    }
}
