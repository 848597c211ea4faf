//! From the loaded module to the form that is executed: see [`super::program`].

use super::arithmetic;
use super::discarded;
use super::lanes::{binary, ternary, test, unary};
use super::operands::{Frame, Unset, shared_slots};
use super::program::{
    Argument, Arrival, Atomic, Barrier, BarrierKind, BulkWay, Call, Callee, Code, Condition,
    Constant, CopyAsync, CopyBulk, CopyTensor, Extent, Fragment, FragmentTable, Guarded, Join,
    Load, Matrix, MatrixStep, PREDICATE_CONSTANTS, Passed, PhaseWait, Place, PlaceBase, Predicate,
    Product, Program, REGISTER, Shuffle, Slot, Step, Store, StoreAsync, SurfaceAccess, Texture,
    Upper,
};
use super::space::{self, RANK_SHIFT, SYSTEM_SHARED, Window};
use super::stack::STACK;
use super::undefined::{How, Spread};
use crate::flow::{CallGraph, Flags, Flow, Pointers};
use crate::ir::{
    self, Address, BarrierOp, Base, BulkCopy, Class, FragmentPart, Function, FunctionId,
    FunctionKind, IntBinary, IntTernary, IntUnary, Line, Module, Op, Operand, Order,
    ParameterPlace, Phase, Reg, Scope, Space, Special, Type, VariableId,
};
use crate::value::real::Format;
use crate::value::{bits, convert, float, int};
use rustc_hash::FxHashMap;

/// An instruction that the interpreter has no form for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The instruction.
    pub line: Line,
    /// What is the matter.
    pub what: String,
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let DecodeError { line, what } = self;
        write!(f, "PTX line {}: {what}", line.ptx)
    }
}

impl core::error::Error for DecodeError {}

/// Local memory of a thread whose functions call each other in circles.
const RECURSIVE_STACK: u64 = 32 << 10;

/// Registers of a function, and bytes of parameters, that a frame may have.
const LARGEST_FRAME: u32 = 1 << 16;

/// Where the variables of a loaded module are: an address in its own space for each of global and constant memory, else 0.
pub(crate) struct Addresses<'a> {
    pub(crate) module: &'a Module,
    pub(crate) of: &'a [u64],
}

/// Makes a kernel ready.
pub(crate) fn decode(
    addresses: &Addresses<'_>,
    kernel: FunctionId,
) -> Result<Program, DecodeError> {
    let module = addresses.module;
    let graph = CallGraph::new(module);
    let mut reached = vec![kernel];
    let device = |id: &FunctionId| module.functions[id.index()].kind == FunctionKind::Device;
    reached.extend(graph.reachable(kernel).into_iter().filter(device));
    let layout = graph.shared_layout(module, kernel).ok_or_else(|| DecodeError {
        line: module.functions[kernel.index()].line,
        what: "more shared memory than there are addresses".into(),
    })?;
    let mut decoder = Decoder {
        addresses,
        shared: layout.offsets.iter().map(|&(id, at)| (id, SYSTEM_SHARED + at)).collect(),
        reached: &reached,
        constants: Vec::new(),
        index: FxHashMap::default(),
        needs_order: false,
        needs_heap: false,
        allocates: false,
        takes_param_addresses: false,
        loads_volatile_data: false,
        stores_volatile: false,
    };
    let mut functions = Vec::with_capacity(reached.len());
    let mut first = 0;
    for &id in &reached {
        let code = decoder.function(&module.functions[id.index()], first, id == kernel)?;
        first += code.steps.len() as u32 + 1;
        functions.push(code);
    }
    let frames = |bytes: fn(&Code) -> u64| functions.iter().map(bytes).sum::<u64>();
    let frame_bytes = if graph.recursion(kernel).is_empty() {
        // Every function once: no chain of calls needs more.
        frames(|c| c.local_bytes.next_multiple_of(16))
    } else {
        frames(|c| c.local_bytes.next_multiple_of(16)) + RECURSIVE_STACK
    };
    let local_bytes = frame_bytes + if decoder.allocates { STACK } else { 0 };
    let sized = |&(id, at): &(VariableId, u64)| {
        let variable = &module.variables[id.index()];
        let first = SYSTEM_SHARED + at;
        (!variable.dynamic).then_some((id, first, first + variable.size))
    };
    let shared = layout.offsets.iter().filter_map(sized).collect();
    Ok(Program {
        functions,
        constants: decoder.constants,
        static_shared: layout.dynamic_offset,
        shared,
        frame_bytes,
        local_bytes,
        bounds: module.functions[kernel.index()].bounds.clone(),
        needs_order: decoder.needs_order,
        trusts_volatile: decoder.loads_volatile_data && decoder.stores_volatile,
        needs_heap: decoder.needs_heap,
        takes_param_addresses: decoder.takes_param_addresses,
        steps: first,
        ids: reached.iter().map(|id| id.0).collect(),
    })
}

struct Decoder<'a> {
    addresses: &'a Addresses<'a>,
    shared: FxHashMap<VariableId, u64>,
    reached: &'a [FunctionId],
    constants: Vec<Constant>,
    index: FxHashMap<Constant, Slot>,
    needs_order: bool,
    needs_heap: bool,
    /// It allocates local memory.
    allocates: bool,
    takes_param_addresses: bool,
    loads_volatile_data: bool,
    stores_volatile: bool,
}

/// The function that is being decoded.
struct Scene<'a> {
    function: &'a Function,
    /// Slots of the registers, of predicates and others apart.
    slots: Vec<u32>,
    pointers: Pointers,
    flags: Flags,
    is_kernel: bool,
    line: Line,
}

impl Scene<'_> {
    fn unsupported(&self, what: impl Into<String>) -> DecodeError {
        DecodeError { line: self.line, what: what.into() }
    }

    fn reg(&self, reg: Reg) -> Slot {
        self.slots[reg.index()] | REGISTER
    }

    fn pred(&self, reg: Reg) -> Predicate {
        self.slots[reg.index()] + PREDICATE_CONSTANTS
    }

    fn condition(&self, p: ir::Predicate) -> Condition {
        Condition { slot: self.pred(p.reg), negated: p.negated }
    }

    /// Where the parameters and the results are.
    fn passed(&self) -> (Vec<Passed>, Vec<Passed>) {
        let passed = |p: &ir::Parameter| match p.place {
            ParameterPlace::Memory(_) => Passed::Memory { offset: p.offset, bytes: p.bytes() },
            ParameterPlace::Register(r) => Passed::Register(self.reg(r)),
        };
        let all = |of: &[ir::Parameter]| of.iter().map(passed).collect();
        (all(&self.function.parameters), all(&self.function.results))
    }

    fn join(&self, join: Option<(ir::BoolOp, ir::Predicate)>) -> Join {
        join.map(|(op, p)| (op, self.condition(p)))
    }

    /// That any undefined bit makes all of a result undefined.
    fn spread(&self, dst: Reg) -> Spread {
        Spread { how: How::All, bits: self.bits_of(dst).min(64) as u8 }
    }

    fn bits_of(&self, reg: Reg) -> u32 {
        self.function.registers[reg.index()].ty.bits()
    }
}

impl Decoder<'_> {
    fn module(&self) -> &Module {
        self.addresses.module
    }

    fn constant(&mut self, constant: Constant) -> Slot {
        *self.index.entry(constant).or_insert_with(|| {
            self.constants.push(constant);
            self.constants.len() as Slot - 1
        })
    }

    fn bits(&mut self, bits: u64) -> Slot {
        self.constant(Constant::Bits(bits))
    }

    fn function(&mut self, f: &Function, first: u32, is_kernel: bool) -> Result<Code, DecodeError> {
        let (mut registers, mut predicates) = (0, 0);
        let slots = f.registers.iter().map(|r| {
            let counter = if r.ty == Type::Pred { &mut predicates } else { &mut registers };
            *counter += 1;
            *counter - 1
        });
        let (pointers, flags) = (Pointers::new(self.module(), f), Flags::new(f));
        let mut scene = Scene {
            function: f,
            slots: slots.collect(),
            pointers,
            flags,
            is_kernel,
            line: Line::default(),
        };
        scene.line = f.line;
        if f.registers.len() > LARGEST_FRAME as usize || f.param_bytes > LARGEST_FRAME.into() {
            let what = format!(
                "`{}` needs more than {LARGEST_FRAME} registers or bytes of parameters",
                f.name
            );
            return Err(scene.unsupported(what));
        }
        let flow = Flow::new(f);
        let joins =
            (0..f.code.len()).map(|i| flow.reconvergence(i as u32).unwrap_or(u32::MAX)).collect();
        let mut steps = self.steps(&mut scene);
        let (mut parameters, mut results) = scene.passed();
        let mut frame = Frame::new((registers, predicates), &parameters, &results);
        if let Some((fewer, shared)) = shared_slots(&steps, &flow, &frame) {
            for (slot, register) in scene.slots.iter_mut().zip(&f.registers) {
                if register.ty != Type::Pred {
                    *slot = shared[*slot as usize];
                }
            }
            registers = fewer;
            steps = self.steps(&mut scene);
            (parameters, results) = scene.passed();
            frame = Frame::new((registers, predicates), &parameters, &results);
        }
        if is_kernel {
            discarded::mark(&mut steps, &flow, &frame);
        }
        // A kernel begins with zeros.
        let unset = match is_kernel {
            true => Unset::default(),
            false => Unset::new(&steps, &flow, &frame),
        };
        Ok(Code {
            name: f.name.as_str().into(),
            steps,
            lines: f.code.iter().map(|i| i.line).collect(),
            joins,
            first,
            registers,
            predicates,
            local_bytes: f.local_bytes,
            param_bytes: f.param_bytes,
            parameters,
            results,
            unset,
        })
    }

    /// The steps of a function.
    fn steps(&mut self, scene: &mut Scene<'_>) -> Vec<Guarded> {
        let code = &scene.function.code;
        let mut steps = Vec::with_capacity(code.len());
        for instruction in code {
            scene.line = instruction.line;
            // What has no form fails where it is reached.
            let step = self.step(scene, &instruction.op).unwrap_or_else(|error| {
                let spelling = &self.module().spellings[instruction.spelling as usize];
                Step::Unsupported(format!("`{spelling}` is not supported: {}", error.what).into())
            });
            let guard = instruction.guard.map(|p| scene.condition(p));
            steps.push(Guarded { guard, step, touches_open: false });
        }
        steps
    }

    /// The slot of a source.
    fn source(&mut self, scene: &Scene<'_>, operand: Operand) -> Result<Slot, DecodeError> {
        Ok(match operand {
            Operand::Reg(reg) if scene.function.registers[reg.index()].ty == Type::Pred => {
                return Err(scene.unsupported("a predicate where a number is expected"));
            }
            Operand::Reg(reg) => scene.reg(reg),
            Operand::Imm(bits) => self.bits(bits),
            Operand::Special(special) if is_clock(special) => {
                return Err(scene.unsupported("a clock is read by mov only"));
            }
            Operand::Special(special) => self.constant(Constant::Special(special)),
            Operand::Variable(id, offset) => {
                let address = self.variable(scene, id)?;
                self.bits(address.wrapping_add_signed(offset))
            }
            Operand::Function(id) => self.bits(space::FUNCTION + u64::from(id.0) * 16),
        })
    }

    /// A variable's address in its own space.
    fn variable(&self, scene: &Scene<'_>, id: VariableId) -> Result<u64, DecodeError> {
        let v = &self.module().variables[id.0 as usize];
        match v.space {
            Space::Shared => Ok(self.shared.get(&id).copied().unwrap_or(0)),
            Space::Param if scene.is_kernel => Ok(v.offset),
            Space::Local | Space::Param => {
                Err(scene.unsupported(format!("the address of `{}` is taken by mov only", v.name)))
            }
            _ => Ok(self.addresses.of[id.0 as usize]),
        }
    }

    fn place(
        &mut self,
        scene: &Scene<'_>,
        space: Space,
        address: Address,
    ) -> Result<Place, DecodeError> {
        let offset = address.offset;
        Ok(match address.base {
            Base::Reg(reg) => Place { base: PlaceBase::Slot(scene.reg(reg)), offset },
            Base::Absolute => Place { base: PlaceBase::Slot(self.bits(0)), offset },
            Base::Variable(id) => {
                let v = &self.module().variables[id.0 as usize];
                let own = v.offset as i64;
                match v.space {
                    Space::Local => Place { base: PlaceBase::FrameLocal, offset: own + offset },
                    // A kernel's parameters are its arguments, and lie in memory of their own,
                    // ahead of what it hands to functions.
                    Space::Param
                        if !scene.is_kernel || v.offset >= scene.function.argument_bytes() =>
                    {
                        Place { base: PlaceBase::FrameParam, offset: own + offset }
                    }
                    at => {
                        let base = self.variable(scene, id)?;
                        // A generic access to a variable goes through its window.
                        let window = if space == Space::Generic { window_base(at) } else { 0 };
                        let slot = self.bits(base.wrapping_add(window));
                        Place { base: PlaceBase::Slot(slot), offset }
                    }
                }
            }
        })
    }

    fn optional(
        &mut self,
        scene: &Scene<'_>,
        o: Option<Operand>,
    ) -> Result<Option<Slot>, DecodeError> {
        o.map(|o| self.source(scene, o)).transpose()
    }

    fn sources<const N: usize>(
        &mut self,
        scene: &Scene<'_>,
        o: [Operand; N],
    ) -> Result<[Slot; N], DecodeError> {
        let mut slots = [0; N];
        for (slot, operand) in slots.iter_mut().zip(o) {
            *slot = self.source(scene, operand)?;
        }
        Ok(slots)
    }

    fn step(&mut self, scene: &Scene<'_>, op: &Op) -> Result<Step, DecodeError> {
        let mut step = self.any_step(scene, op)?;
        if let Step::Unary { spread, .. }
        | Step::Binary { spread, .. }
        | Step::Ternary { spread, .. } = &mut step
        {
            spread.how = how_it_spreads(op);
        }
        Ok(step)
    }

    fn any_step(&mut self, scene: &Scene<'_>, op: &Op) -> Result<Step, DecodeError> {
        if let Op::Unsupported { index } = op {
            let what = self.module().unsupported[*index as usize].to_string();
            return Ok(Step::Unsupported(what.into()));
        }
        if let Some(step) = self.predicate_step(scene, op)? {
            return Ok(step);
        }
        if let Some(step) = self.integer_step(scene, op)? {
            return Ok(step);
        }
        if let Some(step) = self.float_step(scene, op)? {
            return Ok(step);
        }
        if let Some(step) = self.memory_step(scene, op)? {
            return Ok(step);
        }
        if let Some(step) = self.copy_step(scene, op)? {
            return Ok(step);
        }
        self.control_step(scene, op)
    }

    /// Moves and logic between predicates, comparisons, choices.
    fn predicate_step(&mut self, scene: &Scene<'_>, op: &Op) -> Result<Option<Step>, DecodeError> {
        let predicate = |operand: Operand| match operand {
            Operand::Reg(reg) => Ok(scene.pred(reg)),
            Operand::Imm(bits) => Ok(u32::from(bits & 1 == 1)),
            Operand::Special(Special::IsExplicitCluster) => Ok(2),
            _ => Err(scene.unsupported("not a predicate")),
        };
        Ok(Some(match *op {
            Op::Mov { ty: Type::Pred, dst, a } => {
                Step::MovePredicate { dst: scene.pred(dst), a: predicate(a)?, negated: false }
            }
            Op::IntUnary { op: IntUnary::Not, ty: Type::Pred, dst, a } => {
                Step::MovePredicate { dst: scene.pred(dst), a: predicate(a)?, negated: true }
            }
            Op::IntBinary { op, ty: Type::Pred, dst, a, b } => Step::JoinPredicates {
                op: match op {
                    IntBinary::And => ir::BoolOp::And,
                    IntBinary::Or => ir::BoolOp::Or,
                    IntBinary::Xor => ir::BoolOp::Xor,
                    _ => return Err(scene.unsupported("not an operation on predicates")),
                },
                dst: scene.pred(dst),
                a: predicate(a)?,
                b: predicate(b)?,
            },
            Op::Select { ty: Type::Pred, dst, a, b, pred } => Step::SelectPredicate {
                dst: scene.pred(dst),
                a: predicate(a)?,
                b: predicate(b)?,
                pred: scene.pred(pred),
            },
            Op::SetPredicate { compare, ty, ftz, dst, dst_pred, a, b, join } => Step::Compare {
                f: arithmetic::comparison(compare, ty, ftz),
                pairs: is_pair(ty),
                dst: scene.pred(dst),
                other: dst_pred.map(|p| scene.pred(p)),
                a: self.source(scene, a)?,
                b: self.source(scene, b)?,
                join: scene.join(join),
            },
            Op::Set { compare, to, ty, ftz, dst, a, b, join } => Step::CompareInto {
                f: arithmetic::comparison(compare, ty, ftz),
                pairs: is_pair(ty),
                yes: yes_of(to, is_pair(ty)),
                dst: scene.reg(dst),
                a: self.source(scene, a)?,
                b: self.source(scene, b)?,
                join: scene.join(join),
            },
            Op::Select { dst, a, b, pred, .. } => Step::Select {
                dst: scene.reg(dst),
                a: self.source(scene, a)?,
                b: self.source(scene, b)?,
                pred: scene.pred(pred),
            },
            Op::SelectBySign { by, ftz, dst, a, b, c, .. } => {
                let [a, b, c] = self.sources(scene, [a, b, c])?;
                let picks_a = move |c: u64| match by {
                    Type::F32 if ftz => {
                        float::at_least_zero(crate::value::real::Format::F32.flush(c))
                    }
                    Type::F32 => float::at_least_zero(c),
                    _ => (c as u32 as i32) >= 0,
                };
                let f = ternary(move |a, b, c| if picks_a(c) { a } else { b });
                Step::Ternary { f, dst: scene.reg(dst), a, b, c, spread: scene.spread(dst) }
            }
            Op::TestFloat { test: question, ty, dst, a } => Step::Ask {
                f: test(move |a, _| float::test(question, ty, a)),
                dst: scene.pred(dst),
                a: self.source(scene, a)?,
            },
            Op::IsSpace { space, dst, a } => {
                let wanted = match space {
                    Space::Global => Window::Global,
                    Space::Shared | Space::SharedCluster => Window::Shared,
                    Space::Local => Window::Local,
                    Space::Const => Window::Const,
                    Space::Param => Window::Param,
                    Space::Generic => return Err(scene.unsupported("isspacep of no space")),
                };
                Step::Ask {
                    f: test(move |a, _| space::window(a).0 == wanted),
                    dst: scene.pred(dst),
                    a: self.source(scene, a)?,
                }
            }
            _ => return Ok(None),
        }))
    }

    /// Integers, bits, and moves of numbers.
    fn integer_step(&mut self, scene: &Scene<'_>, op: &Op) -> Result<Option<Step>, DecodeError> {
        Ok(Some(match op {
            Op::Mov { dst, a, .. } => return self.mov(scene, *dst, *a).map(Some),
            Op::Pack { ty, dst, parts } => {
                let slots = parts.iter().map(|&p| self.source(scene, p));
                let parts: Box<[Slot]> = slots.collect::<Result<_, _>>()?;
                if *ty == Type::B128 {
                    return Err(scene.unsupported("mov.b128"));
                }
                let bits = ty.bits() / parts.len().max(1) as u32;
                Step::Pack { bits, dst: scene.reg(*dst), parts }
            }
            Op::Unpack { ty, dsts, a } => {
                if *ty == Type::B128 {
                    return Err(scene.unsupported("mov.b128"));
                }
                Step::Unpack {
                    bits: ty.bits() / dsts.len().max(1) as u32,
                    dsts: dsts.iter().map(|&d| scene.reg(d)).collect(),
                    a: self.source(scene, *a)?,
                }
            }
            &Op::IntBinary { op, ty, dst, a, b } => {
                self.two(scene, dst, a, b, arithmetic::int_binary(op, ty))?
            }
            &Op::IntTernary { op, ty, dst, a, b, c } => {
                self.three(scene, dst, [a, b, c], arithmetic::int_ternary(op, ty))?
            }
            &Op::IntUnary { op, ty, dst, a } => {
                self.one(scene, dst, a, arithmetic::int_unary(op, ty))?
            }
            &Op::Carry { op, ty, dst, a, b, c, carry_in, carry_out } => Step::Carry {
                op,
                ty,
                dst: scene.reg(dst),
                sources: self.sources(scene, [a, b, c])?,
                carry_in,
                carry_out,
            },
            &Op::BitExtract { ty, dst, a, start, length } => {
                let f = ternary(move |a, s, l| bits::extract(ty, a, s, l));
                self.three(scene, dst, [a, start, length], f)?
            }
            &Op::BitInsert { ty, dst, a, b, start, length } => {
                // Four sources: start and length are joined where both are constants, as they nearly always are.
                let (Operand::Imm(start), Operand::Imm(length)) = (start, length) else {
                    return self.insert_of_variables(scene, op).map(Some);
                };
                self.two(
                    scene,
                    dst,
                    a,
                    b,
                    binary(move |a, b| bits::insert(ty, a, b, start, length)),
                )?
            }
            &Op::BitFind { ty, shift_amount, dst, a } => {
                self.one(scene, dst, a, unary(move |a| bits::find(ty, shift_amount, a)))?
            }
            &Op::FindNthSet { dst, mask, base, n } => {
                self.three(scene, dst, [mask, base, n], ternary(bits::find_nth_set))?
            }
            &Op::BitMask { wrap, dst, a, b } => {
                self.two(scene, dst, a, b, binary(move |a, b| bits::mask(wrap, a, b)))?
            }
            &Op::SignExtend { ty, wrap, dst, a, b } => {
                self.two(scene, dst, a, b, binary(move |a, b| bits::extend(ty, wrap, a, b)))?
            }
            &Op::FunnelShift { left, wrap, dst, a, b, c } => {
                let f = ternary(move |a, b, c| bits::funnel(left, wrap, a, b, c));
                self.three(scene, dst, [a, b, c], f)?
            }
            &Op::Permute { mode, dst, a, b, c } => {
                let f = ternary(move |a, b, c| bits::permute(mode, a, b, c));
                self.three(scene, dst, [a, b, c], f)?
            }
            &Op::Lop3 { table, dst, a, b, c, test: None } => {
                let f = ternary(move |a, b, c| bits::lop3(table, a, b, c));
                self.three(scene, dst, [a, b, c], f)?
            }
            &Op::Lop3 { table, dst, a, b, c, test: Some((op, pred, with)) } => Step::Lop3Test {
                table,
                dst: scene.reg(dst),
                sources: self.sources(scene, [a, b, c])?,
                op,
                pred: scene.pred(pred),
                with: scene.condition(with),
            },
            &Op::DotProduct { a_signed, b_signed, high, dst, a, b, c } => {
                let signed = (a_signed, b_signed);
                let f = ternary(move |a, b, c| int::dot_product(signed, high, a, b, c));
                self.three(scene, dst, [a, b, c], f)?
            }
            &Op::Cvta { space, to_space, dst, a } => {
                let base = window_base(space);
                let f = if to_space {
                    unary(move |a| a.wrapping_sub(base))
                } else {
                    unary(move |a| a.wrapping_add(base))
                };
                self.one(scene, dst, a, f)?
            }
            &Op::MapAddress { space, dst, a, rank, .. } => {
                let base = if space == Space::Generic { space::SHARED } else { 0 };
                let f = binary(move |a, rank| {
                    let offset = a.wrapping_sub(base) & ((1 << RANK_SHIFT) - 1);
                    base + (((rank & 0x7f) + 1) << RANK_SHIFT | offset)
                });
                self.two(scene, dst, a, rank, f)?
            }
            &Op::BlockRank { space, dst, a } => {
                let base = if space == Space::Generic { space::SHARED } else { 0 };
                let f = binary(move |a, own| match a.wrapping_sub(base) >> RANK_SHIFT {
                    0 => own,
                    rank => (rank - 1) & 0xffff_ffff,
                });
                self.two(scene, dst, a, Operand::Special(Special::ClusterCtaRank), f)?
            }
            _ => return Ok(None),
        }))
    }

    fn one(
        &mut self,
        scene: &Scene<'_>,
        dst: Reg,
        a: Operand,
        f: super::lanes::Unary,
    ) -> Result<Step, DecodeError> {
        Ok(Step::Unary {
            f,
            dst: scene.reg(dst),
            a: self.source(scene, a)?,
            spread: scene.spread(dst),
        })
    }

    fn two(
        &mut self,
        scene: &Scene<'_>,
        dst: Reg,
        a: Operand,
        b: Operand,
        f: super::lanes::Binary,
    ) -> Result<Step, DecodeError> {
        let [a, b] = self.sources(scene, [a, b])?;
        Ok(Step::Binary { f, dst: scene.reg(dst), a, b, spread: scene.spread(dst) })
    }

    fn three(
        &mut self,
        scene: &Scene<'_>,
        dst: Reg,
        sources: [Operand; 3],
        f: super::lanes::Ternary,
    ) -> Result<Step, DecodeError> {
        let [a, b, c] = self.sources(scene, sources)?;
        Ok(Step::Ternary { f, dst: scene.reg(dst), a, b, c, spread: scene.spread(dst) })
    }

    /// `bfi` whose place is not constant in full: what is constant is bound, three sources remain at most.
    fn insert_of_variables(&mut self, scene: &Scene<'_>, op: &Op) -> Result<Step, DecodeError> {
        let &Op::BitInsert { ty, dst, a, b, start, length } = op else {
            return Err(scene.unsupported("not bfi"));
        };
        match (a, start, length) {
            (_, _, Operand::Imm(length)) => {
                let f = ternary(move |a, b, start| bits::insert(ty, a, b, start, length));
                self.three(scene, dst, [a, b, start], f)
            }
            (_, Operand::Imm(start), _) => {
                let f = ternary(move |a, b, length| bits::insert(ty, a, b, start, length));
                self.three(scene, dst, [a, b, length], f)
            }
            (Operand::Imm(a), _, _) => {
                let f = ternary(move |b, start, length| bits::insert(ty, a, b, start, length));
                self.three(scene, dst, [b, start, length], f)
            }
            _ => {
                let [a, b, start, length] = self.sources(scene, [a, b, start, length])?;
                Ok(Step::InsertBits { ty, dst: scene.reg(dst), sources: [a, b, start, length] })
            }
        }
    }

    fn mov(&mut self, scene: &Scene<'_>, dst: Reg, a: Operand) -> Result<Step, DecodeError> {
        let mask = u64::MAX >> (64 - scene.bits_of(dst).clamp(1, 64));
        match a {
            Operand::Special(special) if is_clock(special) => {
                return Ok(Step::Clock { which: special, dst: scene.reg(dst) });
            }
            Operand::Variable(id, offset) => {
                let v = &self.module().variables[id.0 as usize];
                let at = v.offset.wrapping_add_signed(offset);
                match v.space {
                    Space::Local => {
                        return Ok(Step::FrameAddress {
                            dst: scene.reg(dst),
                            local: true,
                            offset: at,
                        });
                    }
                    Space::Param
                        if !scene.is_kernel || v.offset >= scene.function.argument_bytes() =>
                    {
                        self.takes_param_addresses = true;
                        let offset = space::FRAME_PARAM + at;
                        return Ok(Step::FrameAddress {
                            dst: scene.reg(dst),
                            local: false,
                            offset,
                        });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        self.one(scene, dst, a, unary(move |a| a & mask))
    }

    fn float_step(&mut self, scene: &Scene<'_>, op: &Op) -> Result<Option<Step>, DecodeError> {
        Ok(Some(match *op {
            Op::FloatBinary { op, ty, mode, dst, a, b } => {
                self.two(scene, dst, a, b, arithmetic::float_binary(op, ty, mode))?
            }
            Op::Fma { ty, mode, dst, a, b, c } => {
                self.three(scene, dst, [a, b, c], arithmetic::fma(ty, mode))?
            }
            Op::FloatUnary { op, ty, mode, dst, a } => {
                self.one(scene, dst, a, arithmetic::float_unary(op, ty, mode))?
            }
            Op::Cvt { to, from, register_bits, dst, a, mode, integral } => {
                let f = arithmetic::cvt(to, from, register_bits, mode, integral);
                self.one(scene, dst, a, f)?
            }
            Op::CvtToEight { to, from: Type::F32, relu, dst, a, b } => {
                let of = move |x| to.of(Format::F32, relu, x);
                self.two(scene, dst, a, b, binary(move |a, b| of(a) << 8 | of(b)))?
            }
            Op::CvtToEight { to, relu, dst, a, .. } => {
                let of = move |x| to.of(Format::F16, relu, x & 0xffff);
                self.one(scene, dst, a, unary(move |a| of(a >> 16) << 8 | of(a)))?
            }
            Op::CvtFromEight { from, relu, dst, a } => {
                let mode = ir::FloatMode { relu, ..ir::FloatMode::default() };
                let of = move |x: u64| {
                    let bits = from.to_f32(x & 0xff).to_bits().into();
                    convert::convert(Type::F16, Type::F32, 16, mode, false, bits)
                };
                self.one(scene, dst, a, unary(move |a| of(a >> 8) << 16 | of(a)))?
            }
            Op::CvtPack { bits, signed, dst, a, b, c } => {
                let f = ternary(move |a, b, c| convert::pack(bits, signed, a, b, c));
                self.three(scene, dst, [a, b, c], f)?
            }
            Op::CvtPair { to, from, dst, a, b, mode } => {
                let f = binary(move |a, b| convert::convert_pair(to, from, mode, a, b));
                self.two(scene, dst, a, b, f)?
            }
            _ => return Ok(None),
        }))
    }

    fn memory_step(&mut self, scene: &Scene<'_>, op: &Op) -> Result<Option<Step>, DecodeError> {
        Ok(Some(match op {
            Op::Load { ty, space, order, scope, register_bits, dsts, address, .. } => {
                if let Some(step) = self.load_of_argument(scene, op) {
                    return Ok(Some(step));
                }
                self.note_order(*space, *order);
                let flag = scene.flags.any(dsts);
                let is_volatile = *order == Order::Volatile && may_be_global(*space);
                self.loads_volatile_data |= is_volatile && !flag;
                Step::Load(Box::new(Load {
                    bytes: element_bytes(scene, *ty)?,
                    signed: ty.is_signed(),
                    register_bits: *register_bits,
                    space: *space,
                    order: *order,
                    scope: *scope,
                    dsts: dsts.iter().map(|&d| scene.reg(d)).collect(),
                    address: self.place(scene, *space, *address)?,
                    extent: self.extent(scene, *space, address),
                    flag,
                    open: false,
                }))
            }
            Op::Store { ty, space, order, scope, address, values } => {
                self.note_order(*space, *order);
                self.stores_volatile |= *order == Order::Volatile && may_be_global(*space);
                Step::Store(Box::new(Store {
                    bytes: element_bytes(scene, *ty)?,
                    space: *space,
                    order: *order,
                    scope: *scope,
                    values: values
                        .iter()
                        .map(|&v| self.source(scene, v))
                        .collect::<Result<_, _>>()?,
                    address: self.place(scene, *space, *address)?,
                    extent: self.extent(scene, *space, address),
                }))
            }
            &Op::Atomic { op, ty, space, order, scope, dst, address, a, b } => {
                self.note_order(space, Order::Relaxed);
                element_bytes(scene, ty)?;
                let a = self.source(scene, a)?;
                Step::Atomic(Box::new(Atomic {
                    op,
                    ty,
                    space,
                    order,
                    scope,
                    dst: dst.map(|d| scene.reg(d)),
                    address: self.place(scene, space, address)?,
                    extent: self.extent(scene, space, &address),
                    a,
                    b: self.optional(scene, b)?.unwrap_or(a),
                    upper: None,
                }))
            }
            &Op::AtomicPair { op, space, order, scope, dsts, address, a, b } => {
                self.note_order(space, Order::Relaxed);
                let [a, upper_a] = [self.source(scene, a[0])?, self.source(scene, a[1])?];
                let [b, upper_b] = match b {
                    Some(b) => [self.source(scene, b[0])?, self.source(scene, b[1])?],
                    None => [a, upper_a],
                };
                let [dst, upper] = dsts.map(|d| scene.reg(d));
                Step::Atomic(Box::new(Atomic {
                    op,
                    ty: Type::B64,
                    space,
                    order,
                    scope,
                    dst: Some(dst),
                    address: self.place(scene, space, address)?,
                    extent: self.extent(scene, space, &address),
                    a,
                    b,
                    upper: Some(Upper { dst: upper, a: upper_a, b: upper_b }),
                }))
            }
            &Op::Fence { order, scope } => {
                self.needs_order |=
                    scope > Scope::Cta && !matches!(order, ir::FenceOrder::Proxy { .. });
                Step::Fence { order, scope }
            }
            Op::Texture { directions, layered, by_texels, ty, dsts, image, at } => {
                Step::Texture(Box::new(Texture {
                    directions: *directions,
                    layered: *layered,
                    by_texels: *by_texels,
                    ty: *ty,
                    dsts: dsts.iter().map(|&d| scene.reg(d)).collect(),
                    image: self.source(scene, *image)?,
                    at: self.sources(scene, *at)?,
                }))
            }
            Op::SurfaceLoad { place, dsts } => {
                let slots = dsts.iter().map(|&d| scene.reg(d)).collect();
                Step::SurfaceLoad(Box::new(self.surface(scene, place, slots)?))
            }
            Op::SurfaceStore { place, values } => {
                let slots = self.all(scene, values)?;
                Step::SurfaceStore(Box::new(self.surface(scene, place, slots)?))
            }
            &Op::ImageExtent { dst, image, direction } => {
                let (dst, image) = (scene.reg(dst), self.source(scene, image)?);
                Step::ImageExtent { dst, image, direction }
            }
            &Op::Allocate { dst, size, align } => {
                self.allocates = true;
                Step::Allocate { dst: scene.reg(dst), size: self.source(scene, size)?, align }
            }
            &Op::StackSave { dst } => Step::StackSave { dst: scene.reg(dst) },
            &Op::StackRestore { a } => Step::StackRestore { a: self.source(scene, a)? },
            Op::Hint => Step::Nothing,
            _ => return Ok(None),
        }))
    }

    /// The part of shared memory that an address should be in.
    fn extent(&self, scene: &Scene<'_>, space: Space, address: &Address) -> Option<Extent> {
        // A single variable ends where the memory ends.
        if self.shared.len() < 2 || !matches!(space, Space::Shared | Space::Generic) {
            return None;
        }
        let variable = scene.pointers.variable(self.module(), address)?;
        let first = *self.shared.get(&variable)?;
        let end = first + self.module().variables[variable.index()].size;
        Some(Extent { variable, first, end })
    }

    /// A strong access to memory that blocks share asks for their order.
    fn note_order(&mut self, space: Space, order: Order) {
        let common = matches!(space, Space::Global | Space::Generic | Space::SharedCluster);
        self.needs_order |= common && order != Order::Weak;
    }

    /// A load of a kernel's argument is a move from a constant slot.
    fn load_of_argument(&mut self, scene: &Scene<'_>, op: &Op) -> Option<Step> {
        let Op::Load { ty, space: Space::Param, register_bits, dsts, address, .. } = op else {
            return None;
        };
        let Base::Variable(id) = address.base else { return None };
        let v = &self.module().variables[id.0 as usize];
        let at = v.offset.checked_add_signed(address.offset)?;
        let end = at.checked_add(u64::from(ty.bytes()))?;
        if !scene.is_kernel || end > scene.function.argument_bytes() || ty.bits() > 64 {
            return None;
        }
        let [dst] = **dsts else { return None };
        let constant = Constant::Argument {
            offset: at as u32,
            bytes: ty.bytes() as u8,
            signed: ty.is_signed(),
            register_bits: *register_bits as u8,
        };
        let a = self.constant(constant);
        Some(Step::Unary { f: unary(|a| a), dst: scene.reg(dst), a, spread: scene.spread(dst) })
    }

    fn copy_step(&mut self, scene: &Scene<'_>, op: &Op) -> Result<Option<Step>, DecodeError> {
        Ok(Some(match *op {
            Op::CopyAsync { dst, src, size, src_size, ignore_src } => {
                Step::CopyAsync(Box::new(CopyAsync {
                    dst: self.place(scene, Space::Shared, dst)?,
                    src: self.place(scene, Space::Global, src)?,
                    size,
                    src_size: self.optional(scene, src_size)?,
                    ignore: ignore_src.map(|p| scene.condition(p)),
                }))
            }
            Op::CopyCommit => Step::CopyCommit { bulk: false },
            Op::CopyBulkCommit => Step::CopyCommit { bulk: true },
            Op::CopyWait { pending } => Step::CopyWait { bulk: false, read: false, pending },
            Op::CopyBulkWait { pending, read } => {
                Step::CopyWait { bulk: true, read, pending: Some(pending) }
            }
            Op::CopyArrive { space, address, no_increment } => Step::CopyArrive {
                space,
                address: self.place(scene, space, address)?,
                no_increment,
            },
            Op::CopyBulk { copy, dst, src, size, reduce } => {
                if let Some((_, ty)) = reduce {
                    element_bytes(scene, ty)?;
                }
                Step::CopyBulk(Box::new(CopyBulk {
                    way: self.way(scene, copy)?,
                    dst: self.place(scene, Space::Shared, dst)?,
                    src: self.place(scene, Space::Shared, src)?,
                    size: self.source(scene, size)?,
                    reduce,
                }))
            }
            Op::CopyTensor { copy, map, ref at, ref offsets, tile, reduce } => {
                let at = self.all(scene, at)?;
                let offsets = offsets.as_ref().map(|o| self.all(scene, o)).transpose()?;
                Step::CopyTensor(Box::new(CopyTensor {
                    way: self.way(scene, copy)?,
                    map: self.place(scene, Space::Generic, map)?,
                    at,
                    offsets,
                    tile: self.place(scene, Space::Shared, tile)?,
                    reduce,
                }))
            }
            Op::StoreAsync { ty, dst, ref values, mbarrier, reduce } => {
                self.needs_order = true;
                element_bytes(scene, ty)?;
                let values = values.iter().map(|&v| self.source(scene, v));
                Step::StoreAsync(Box::new(StoreAsync {
                    ty,
                    values: values.collect::<Result<_, _>>()?,
                    dst: self.place(scene, Space::Shared, dst)?,
                    mbarrier: self.place(scene, Space::Shared, mbarrier)?,
                    reduce,
                }))
            }
            Op::MbarrierInit { space, address, count } => Step::MbarrierInit {
                space,
                address: self.place(scene, space, address)?,
                count: self.source(scene, count)?,
            },
            Op::MbarrierInvalidate { space, address } => {
                Step::MbarrierInvalidate { space, address: self.place(scene, space, address)? }
            }
            Op::MbarrierArrive { space, address, dst, count, expect, drop, order, .. } => {
                Step::MbarrierArrive(Box::new(Arrival {
                    space,
                    address: self.place(scene, space, address)?,
                    dst: dst.map(|d| scene.reg(d)),
                    count: self.optional(scene, count)?,
                    expect: self.optional(scene, expect)?,
                    drop,
                    release: matches!(order, Order::Release | Order::AcqRel),
                }))
            }
            Op::MbarrierTransaction { space, address, bytes, complete, .. } => {
                Step::MbarrierTransaction {
                    space,
                    address: self.place(scene, space, address)?,
                    bytes: self.source(scene, bytes)?,
                    complete,
                }
            }
            Op::MbarrierWait { space, address, dst, phase, order, .. } => {
                let (operand, parity) = match phase {
                    Phase::State(operand) => (operand, false),
                    Phase::Parity(operand) => (operand, true),
                };
                Step::MbarrierWait(Box::new(PhaseWait {
                    space,
                    address: self.place(scene, space, address)?,
                    dst: scene.pred(dst),
                    phase: self.source(scene, operand)?,
                    parity,
                    acquire: matches!(order, Order::Acquire | Order::AcqRel),
                }))
            }
            Op::MbarrierPending { dst, a } => {
                self.one(scene, dst, a, unary(super::mbarrier::pending_of_state))?
            }
            _ => return Ok(None),
        }))
    }

    /// Which way a bulk copy goes. It asks for the order of blocks.
    fn way(&mut self, scene: &Scene<'_>, copy: BulkCopy) -> Result<BulkWay, DecodeError> {
        self.needs_order = true;
        Ok(match copy {
            BulkCopy::GlobalToShared { mbarrier, multicast } => BulkWay::GlobalToShared {
                mbarrier: self.place(scene, Space::Shared, mbarrier)?,
                multicast: self.optional(scene, multicast)?,
            },
            BulkCopy::SharedToCluster { mbarrier } => {
                BulkWay::SharedToCluster { mbarrier: self.place(scene, Space::Shared, mbarrier)? }
            }
            BulkCopy::SharedToGlobal => BulkWay::SharedToGlobal,
        })
    }

    fn control_step(&mut self, scene: &Scene<'_>, op: &Op) -> Result<Step, DecodeError> {
        Ok(match op {
            &Op::Branch { target, .. } => Step::Branch { target },
            Op::BranchTable { index, targets, .. } => {
                Step::BranchTable { index: self.source(scene, *index)?, targets: targets.clone() }
            }
            Op::Call { callee, results, arguments, .. } => {
                Step::Call(Box::new(self.call(scene, *callee, arguments, results)?))
            }
            Op::Return => Step::Return,
            Op::Exit => Step::Exit,
            Op::Trap => Step::Trap,
            Op::Sleep { .. } => Step::Sleep,
            Op::Breakpoint | Op::GridDependency { .. } => Step::Nothing,
            &Op::WarpBarrier { mask } => Step::WarpBarrier { mask: self.source(scene, mask)? },
            &Op::Shuffle { mode, dst, dst_pred, a, b, c, mask } => {
                let [a, b, c] = self.sources(scene, [a, b, c])?;
                Step::Shuffle(Box::new(Shuffle {
                    mode,
                    dst: scene.reg(dst),
                    pred: dst_pred.map(|p| scene.pred(p)),
                    a,
                    b,
                    c,
                    mask: self.optional(scene, mask)?,
                }))
            }
            &Op::Vote { mode, dst, a, mask } => {
                let ballot = mode == ir::VoteMode::Ballot;
                Step::Vote {
                    mode,
                    dst: if ballot { scene.reg(dst) } else { 0 },
                    pred: if ballot { 0 } else { scene.pred(dst) },
                    a: scene.condition(a),
                    mask: self.optional(scene, mask)?,
                }
            }
            &Op::Match { all, dst, dst_pred, a, mask, .. } => Step::Match {
                all,
                dst: scene.reg(dst),
                pred: dst_pred.map(|p| scene.pred(p)),
                a: self.source(scene, a)?,
                mask: self.source(scene, mask)?,
            },
            &Op::Redux { op, ty, magnitudes, nan, dst, a, mask } => Step::Redux {
                op,
                float: (ty == Type::F32).then_some((magnitudes, nan)),
                signed: ty.class() == Class::Signed,
                dst: scene.reg(dst),
                a: self.source(scene, a)?,
                mask: self.source(scene, mask)?,
            },
            Op::MatrixLoad { space, transposed, dsts, address } => {
                let what = MatrixStep::Load {
                    space: *space,
                    transposed: *transposed,
                    dsts: dsts.iter().map(|&d| scene.reg(d)).collect(),
                    address: self.place(scene, *space, *address)?,
                };
                self.matrix(what)
            }
            Op::MatrixStore { space, transposed, values, address } => {
                let what = MatrixStep::Store {
                    space: *space,
                    transposed: *transposed,
                    values: self.all(scene, values)?,
                    address: self.place(scene, *space, *address)?,
                };
                self.matrix(what)
            }
            &Op::MatrixTranspose { dst, a } => {
                let what = MatrixStep::Transpose { dst: scene.reg(dst), a: self.source(scene, a)? };
                self.matrix(what)
            }
            Op::MatrixMultiply(product) => {
                let product = self.product(scene, product)?;
                self.matrix(MatrixStep::Multiply(product))
            }
            Op::FragmentLoad { part, table, dsts } => {
                let table = self.fragment_table(scene, *part, table)?;
                let dsts = dsts.iter().map(|&d| scene.reg(d)).collect();
                self.matrix(MatrixStep::LoadFragment { table, dsts })
            }
            Op::FragmentStore { table, values } => {
                let table = self.fragment_table(scene, FragmentPart::Sum, table)?;
                let values = self.all(scene, values)?;
                self.matrix(MatrixStep::StoreFragment { table, values })
            }
            Op::FragmentMultiply(product) => {
                let product = self.product(scene, product)?;
                self.matrix(MatrixStep::MultiplyFragments(product))
            }
            &Op::ActiveMask { dst } => Step::ActiveMask { dst: scene.reg(dst) },
            &Op::Elect { dst, dst_pred, mask } => Step::Elect {
                dst: scene.reg(dst),
                pred: scene.pred(dst_pred),
                mask: self.source(scene, mask)?,
            },
            &Op::Barrier { op, id, count, aligned } => Step::Barrier(Box::new(Barrier {
                kind: match op {
                    BarrierOp::Sync => BarrierKind::Sync,
                    BarrierOp::Arrive => BarrierKind::Arrive,
                    BarrierOp::Reduce { fold, dst, pred } => BarrierKind::Reduce {
                        fold,
                        dst: if fold == ir::BarrierFold::Popc {
                            scene.reg(dst)
                        } else {
                            scene.pred(dst)
                        },
                        pred: scene.condition(pred),
                    },
                },
                id: self.source(scene, id)?,
                count: self.optional(scene, count)?,
                aligned,
            })),
            Op::ClusterArrive { .. } => {
                self.needs_order = true;
                Step::ClusterArrive
            }
            Op::ClusterWait { .. } => Step::ClusterWait,
            _ => return Err(scene.unsupported("an instruction that the interpreter cannot run")),
        })
    }

    fn all(&mut self, scene: &Scene<'_>, list: &[Operand]) -> Result<Box<[Slot]>, DecodeError> {
        list.iter().map(|&o| self.source(scene, o)).collect()
    }

    fn product(
        &mut self,
        scene: &Scene<'_>,
        product: &ir::MatrixProduct,
    ) -> Result<Product, DecodeError> {
        let &ir::MatrixProduct { shape, a_type, b_type, c_type, ty, saturate, differing, .. } =
            product;
        Ok(Product {
            shape,
            a_type,
            b_type,
            c_type,
            ty,
            saturate,
            differing,
            dsts: product.dsts.iter().map(|&d| scene.reg(d)).collect(),
            a: self.all(scene, &product.a)?,
            b: self.all(scene, &product.b)?,
            c: self.all(scene, &product.c)?,
        })
    }

    fn surface(
        &mut self,
        scene: &Scene<'_>,
        place: &ir::SurfacePlace,
        slots: Box<[Slot]>,
    ) -> Result<SurfaceAccess, DecodeError> {
        let &ir::SurfacePlace { ty, outside, image, at } = place;
        let (image, at) = (self.source(scene, image)?, self.sources(scene, at)?);
        Ok(SurfaceAccess { bytes: ty.bytes(), outside, slots, image, at })
    }

    fn fragment_table(
        &mut self,
        scene: &Scene<'_>,
        part: FragmentPart,
        table: &ir::FragmentTable,
    ) -> Result<FragmentTable, DecodeError> {
        let &ir::FragmentTable { shape, ty, by_columns, space, address, stride } = table;
        Ok(FragmentTable {
            fragment: Fragment::new(part.extent(shape), ty),
            by_columns,
            space,
            address: self.place(scene, space, address)?,
            stride: self.optional(scene, stride)?,
        })
    }

    fn matrix(&mut self, what: MatrixStep) -> Step {
        let mask = self.bits(u32::MAX.into());
        Step::Matrix(Box::new(Matrix { what, mask }))
    }

    fn call(
        &mut self,
        scene: &Scene<'_>,
        callee: ir::Callee,
        arguments: &[ir::Argument],
        results: &[ir::Argument],
    ) -> Result<Call, DecodeError> {
        let callee = match callee {
            ir::Callee::Indirect(operand) => Callee::Indirect(self.source(scene, operand)?),
            ir::Callee::Function(id) => match self.module().functions[id.index()].kind {
                FunctionKind::Builtin(builtin) => {
                    self.needs_order = true;
                    self.needs_heap |=
                        matches!(builtin, ir::Builtin::Malloc | ir::Builtin::GetParameterBuffer);
                    Callee::Builtin(builtin)
                }
                _ => {
                    let at = self.reached.iter().position(|&r| r == id);
                    Callee::Code(at.ok_or_else(|| scene.unsupported("a call of a kernel"))? as u32)
                }
            },
        };
        let mut wired = |list: &[ir::Argument]| {
            let one = |argument: &ir::Argument| {
                Ok(match *argument {
                    ir::Argument::Value(operand) => {
                        Argument::Value { slot: self.source(scene, operand)? }
                    }
                    ir::Argument::Memory(id) => {
                        let v = &self.module().variables[id.0 as usize];
                        Argument::Memory { offset: v.offset, bytes: v.size }
                    }
                })
            };
            list.iter().map(one).collect::<Result<Box<[_]>, DecodeError>>()
        };
        Ok(Call { callee, arguments: wired(arguments)?, results: wired(results)? })
    }
}

/// What a space's addresses are raised by to be generic.
fn window_base(space: Space) -> u64 {
    match space {
        Space::Shared | Space::SharedCluster => space::SHARED,
        Space::Local => space::LOCAL,
        Space::Const => space::CONST,
        Space::Param => space::PARAM,
        Space::Global | Space::Generic => 0,
    }
}

/// How the bits of a result depend on those of the sources.
fn how_it_spreads(op: &Op) -> How {
    let is_word = |ty: Type| matches!(ty.class(), Class::Unsigned | Class::Signed | Class::Bits);
    match *op {
        Op::Mov { .. } | Op::IntUnary { op: IntUnary::Brev, .. } => How::Through(1),
        Op::IntUnary { op: IntUnary::Not, .. } | Op::Lop3 { .. } => How::Bitwise,
        Op::IntUnary { op: IntUnary::Neg, .. } | Op::Cvta { .. } => How::Up,
        Op::IntBinary { op, ty, .. } => match op {
            IntBinary::And | IntBinary::Or | IntBinary::Xor => How::Bitwise,
            IntBinary::Shl | IntBinary::Shr => How::Through(0b01),
            IntBinary::Add | IntBinary::Sub | IntBinary::MulLo | IntBinary::MulWide
                if is_word(ty) =>
            {
                How::Up
            }
            _ => How::All,
        },
        Op::IntTernary { op: IntTernary::MadLo | IntTernary::MadWide, .. } => How::Up,
        Op::Cvt { to, from, mode, .. } if is_word(to) && is_word(from) && !mode.sat => {
            How::Through(1)
        }
        Op::BitExtract { .. } => How::Through(0b001),
        Op::BitInsert { start: Operand::Imm(_), length: Operand::Imm(_), .. } => How::Through(0b11),
        Op::FunnelShift { .. } | Op::Permute { .. } => How::Through(0b011),
        _ => How::All,
    }
}

fn is_pair(ty: Type) -> bool {
    matches!(ty.class(), Class::FloatPair | Class::IntegerPair)
}

/// What `set` writes where the comparison holds.
fn yes_of(to: Type, pairs: bool) -> u64 {
    match crate::value::real::Format::of(to) {
        Some(format) => format.one(),
        None if pairs => 0xffff,
        None => to.mask(),
    }
}

fn is_clock(special: Special) -> bool {
    matches!(
        special,
        Special::Clock
            | Special::ClockHi
            | Special::Clock64
            | Special::GlobalTimer
            | Special::GlobalTimerLo
            | Special::GlobalTimerHi
    )
}

fn element_bytes(scene: &Scene<'_>, ty: Type) -> Result<u32, DecodeError> {
    if ty.bits() > 64 {
        Err(scene.unsupported("accesses of 128-bit elements"))
    } else {
        Ok(ty.bytes())
    }
}

/// Whether an access of a space may mean global memory.
fn may_be_global(space: Space) -> bool {
    matches!(space, Space::Global | Space::Generic)
}
