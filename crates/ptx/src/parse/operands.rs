//! Written operands into registers, constants and addresses of the right size.

use super::{
    argument::Arg,
    body::Body,
    error::excerpt,
    instruction::Fault,
    scope::Name,
    scope::new_register,
    symbols::{Global, Symbols},
};
use crate::ir::{Address, Base, Operand, Predicate, Reg, Space, Special, Type};

/// What decoders of instructions ask for their operands.
pub(super) struct Operands<'p, 'a> {
    pub(super) symbols: &'p Symbols<'a>,
    pub(super) body: &'p mut Body<'a>,
}

/// Registers are declared with one type and used with others: only their width counts.
fn check_width(arg: &Arg<'_>, found: u32, wanted: Type) -> Result<(), Fault> {
    if found == wanted.bits() {
        return Ok(());
    }
    Err(Fault::invalid(format!(
        "{} has {found} bits where the instruction takes {wanted}",
        arg.describe()
    )))
}

fn check_at_least(arg: &Arg<'_>, found: u32, wanted: Type) -> Result<(), Fault> {
    if found >= wanted.bits() && found > 1 {
        return Ok(());
    }
    Err(Fault::invalid(format!("{} has {found} bits, too few for {wanted}", arg.describe())))
}

impl<'a> Operands<'_, 'a> {
    fn name(&mut self, name: &'a str) -> Option<Name> {
        self.body.scopes.find(name, &mut self.body.registers)
    }

    /// Whole vectors of registers, and registers of 128 bits, in the place of an operand become their components.
    pub(super) fn spread(&mut self, args: &mut [Arg<'a>]) {
        for arg in args {
            match arg {
                Arg::Name(name, 0) => {
                    if let Some(all) = self.components(name) {
                        *arg = Arg::Vector(all.collect());
                    }
                }
                Arg::Vector(parts) => {
                    // Of 128 bits each.
                    for at in (0..parts.len()).rev() {
                        if let Arg::Name(name, 0) = parts[at]
                            && let Some(all) = self.components(name)
                        {
                            parts.splice(at..=at, all);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The components of a vector of registers, or the halves of a register of 128 bits.
    fn components(&mut self, name: &'a str) -> Option<impl Iterator<Item = Arg<'a>> + use<'a>> {
        let length = self.body.scopes.vector_length(name, &mut self.body.registers)?;
        Some((0..length).map(move |at| Arg::Component(name, at as u8)))
    }

    fn component(&self, name: &str, at: u8) -> Result<(Reg, Type), Fault> {
        let reg = self.body.scopes.vector(name).and_then(|parts| parts.get(usize::from(at)));
        let reg = *reg.ok_or_else(|| Fault::invalid("there is no such component"))?;
        Ok((reg, self.body.registers[reg.index()].ty))
    }

    fn register(&mut self, name: &'a str) -> Result<(Reg, Type), Fault> {
        let reg = match (self.name(name), self.symbols.global(name)) {
            (Some(Name::Register(reg)), _) => reg,
            (None, None) => {
                let what = format!("the register `{}` is not declared", excerpt(name));
                return Err(Fault::invalid(what));
            }
            _ => return Err(Fault::invalid(format!("`{}` is not a register", excerpt(name)))),
        };
        let ty = self.body.registers[reg.index()].ty;
        if ty.bits() > 64 {
            return Err(Fault::unsupported("registers have at most 64 bits here"));
        }
        Ok((reg, ty))
    }

    /// A destination of exactly this width.
    pub(super) fn dst(&mut self, arg: &Arg<'a>, ty: Type) -> Result<Reg, Fault> {
        match *arg {
            Arg::Name("_", 0) => Ok(new_register(&mut self.body.registers, "", ty)),
            Arg::Name(name, 0) => {
                let (reg, found) = self.register(name)?;
                check_width(arg, found.bits(), ty)?;
                Ok(reg)
            }
            Arg::Component(name, at) => {
                let (reg, found) = self.component(name, at)?;
                check_width(arg, found.bits(), ty)?;
                Ok(reg)
            }
            _ => Err(expected("a register to write", arg)),
        }
    }

    /// A destination that may be wider, and its width.
    pub(super) fn wide_dst(&mut self, arg: &Arg<'a>, ty: Type) -> Result<(Reg, u32), Fault> {
        match *arg {
            Arg::Name("_", 0) => Ok((new_register(&mut self.body.registers, "", ty), ty.bits())),
            Arg::Name(name, 0) => {
                let (reg, found) = self.register(name)?;
                check_at_least(arg, found.bits(), ty)?;
                Ok((reg, found.bits()))
            }
            Arg::Component(name, at) => {
                let (reg, found) = self.component(name, at)?;
                check_at_least(arg, found.bits(), ty)?;
                Ok((reg, found.bits()))
            }
            _ => Err(expected("a register to write", arg)),
        }
    }

    /// Destinations `d|p`, or `d` alone.
    pub(super) fn dst_and_predicate(
        &mut self,
        arg: &Arg<'a>,
        ty: Type,
    ) -> Result<(Reg, Option<Reg>), Fault> {
        match *arg {
            Arg::Two(value, pred) => {
                let value = self.dst(&Arg::Name(value, 0), ty)?;
                Ok((value, Some(self.dst(&Arg::Name(pred, 0), Type::Pred)?)))
            }
            _ => Ok((self.dst(arg, ty)?, None)),
        }
    }

    /// A source of exactly this width.
    pub(super) fn src(&mut self, arg: &Arg<'a>, ty: Type) -> Result<Operand, Fault> {
        self.source(arg, ty, check_width)
    }

    /// A source that may be wider: its low bits are taken.
    pub(super) fn wide_src(&mut self, arg: &Arg<'a>, ty: Type) -> Result<Operand, Fault> {
        self.source(arg, ty, check_at_least)
    }

    fn source(
        &mut self,
        arg: &Arg<'a>,
        ty: Type,
        check: fn(&Arg<'_>, u32, Type) -> Result<(), Fault>,
    ) -> Result<Operand, Fault> {
        match *arg {
            Arg::Number(number) => number.bits(ty).map(Operand::Imm).ok_or_else(|| {
                Fault::invalid(format!("the constant does not have type {ty}"))
                    .with_hint("constants of floating-point types are written 0f3F800000 or 1.0")
            }),
            Arg::Name(name, offset) => self.named(name, offset, ty, arg, check),
            Arg::Component(name, at) => {
                let (reg, found) = self.component(name, at)?;
                check(arg, found.bits(), ty)?;
                Ok(Operand::Reg(reg))
            }
            _ => Err(expected("a value", arg)),
        }
    }

    fn named(
        &mut self,
        name: &'a str,
        offset: i64,
        ty: Type,
        arg: &Arg<'a>,
        check: fn(&Arg<'_>, u32, Type) -> Result<(), Fault>,
    ) -> Result<Operand, Fault> {
        if let Some(Name::Register(_)) = self.name(name) {
            let (reg, found) = self.register(name)?;
            if offset != 0 {
                return Err(Fault::invalid("nothing can be added to a register here"));
            }
            check(arg, found.bits(), ty)?;
            return Ok(Operand::Reg(reg));
        }
        if let Some(special) = Special::from_name(name) {
            // Counters of 64 bits may be read by their low halves.
            let fits = special.bits() == ty.bits() || special.bits() == 64 && ty.bits() == 32;
            return if fits {
                Ok(Operand::Special(special))
            } else {
                check(arg, special.bits(), ty).map(|()| Operand::Special(special))
            };
        }
        if ty.is_float() || ty.bits() < 32 {
            return Err(self.unknown(name, "a value"));
        }
        if let Some(Global::Function(function)) = self.symbols.global(name) {
            self.body.addressed.insert(function);
            return Ok(Operand::Function(function));
        }
        let variable = self.variable(name)?;
        Ok(Operand::Variable(variable, offset))
    }

    fn unknown(&mut self, name: &'a str, wanted: &str) -> Fault {
        match self.variable(name) {
            Ok(_) => Fault::invalid(format!(
                "{wanted} was expected, not the address of `{}`",
                excerpt(name)
            )),
            Err(fault) => fault,
        }
    }

    /// A variable that is seen from here.
    pub(super) fn variable(&mut self, name: &'a str) -> Result<crate::ir::VariableId, Fault> {
        let found = match self.name(name) {
            Some(Name::Variable(id)) => Some(id),
            Some(Name::Register(_)) => None,
            None => match self.symbols.global(name) {
                Some(Global::Variable(id)) => Some(id),
                _ => None,
            },
        };
        let Some(id) = found else {
            let kind = if name.starts_with('%') { "the register " } else { "" };
            return Err(Fault::invalid(format!("{kind}`{}` is not declared", excerpt(name))));
        };
        self.body.mentioned.insert(id);
        Ok(id)
    }

    /// A predicate to ask, negated or not.
    pub(super) fn predicate(&mut self, arg: &Arg<'a>) -> Result<Predicate, Fault> {
        let (name, negated) = match *arg {
            Arg::Not(name) => (name, true),
            Arg::Name(name, 0) => (name, false),
            _ => return Err(expected("a predicate", arg)),
        };
        let (reg, found) = self.register(name)?;
        check_width(arg, found.bits(), Type::Pred)?;
        Ok(Predicate { reg, negated })
    }

    /// An address in a space.
    pub(super) fn address(&mut self, arg: &Arg<'a>, space: Space) -> Result<Address, Fault> {
        let (name, offset) = match *arg {
            Arg::Address(name, offset) => (name, offset),
            _ => return Err(expected("an address in brackets", arg)),
        };
        let Some(name) = name else {
            return Ok(Address { base: Base::Absolute, offset });
        };
        if let Some(Name::Register(_)) = self.name(name) {
            let (reg, found) = self.register(name)?;
            let narrow = matches!(
                space,
                Space::Shared | Space::SharedCluster | Space::Local | Space::Const | Space::Param
            );
            if found.bits() == 64 || found.bits() == 32 && narrow {
                return Ok(Address { base: Base::Reg(reg), offset });
            }
            let what = format!(
                "{} has {} bits, which is not the width of a {space} address",
                excerpt(name),
                found.bits()
            );
            return Err(Fault::invalid(what));
        }
        let variable = self.variable(name)?;
        let lives = self.symbols.module.variables[variable.index()].space;
        let reached = lives == space
            || space == Space::Generic
            || space == Space::SharedCluster && lives == Space::Shared;
        if !reached {
            let what = format!("`{}` is in {lives} memory, not {space}", excerpt(name));
            return Err(Fault::invalid(what));
        }
        Ok(Address { base: Base::Variable(variable), offset })
    }
}

/// A constant that fits 32 bits.
pub(super) fn constant(arg: &Arg<'_>) -> Result<u32, Fault> {
    match arg {
        Arg::Number(number) => number
            .bits(Type::U64)
            .and_then(|bits| u32::try_from(bits).ok())
            .ok_or_else(|| Fault::invalid("the constant is too large")),
        _ => Err(expected("a constant", arg)),
    }
}

/// The parts of a vector, or the operand alone.
pub(super) fn parts<'x, 'a>(arg: &'x Arg<'a>) -> &'x [Arg<'a>] {
    match arg {
        Arg::Vector(parts) => parts,
        single => core::slice::from_ref(single),
    }
}

/// The halves of a value of 128 bits.
pub(super) fn halves<'x, 'a>(arg: &'x Arg<'a>) -> Result<&'x [Arg<'a>; 2], Fault> {
    parts(arg).try_into().map_err(|_| expected("a register of 128 bits or two of 64", arg))
}

/// As many operands as an instruction takes.
pub(super) fn exactly<'x, 'a, const N: usize>(
    args: &'x [Arg<'a>],
) -> Result<&'x [Arg<'a>; N], Fault> {
    args.try_into().map_err(|_| wrong_count(args, &N.to_string()))
}

pub(super) fn wrong_count(args: &[Arg<'_>], wanted: &str) -> Fault {
    let s = if wanted == "1" { "" } else { "s" };
    Fault::invalid(format!("it takes {wanted} operand{s}, not {}", args.len()))
}

pub(super) fn expected(what: &str, found: &Arg<'_>) -> Fault {
    Fault::invalid(format!("{what} was expected, not {}", found.describe()))
}

fn check(found: usize, wanted: usize) -> Result<(), Fault> {
    if found == wanted {
        return Ok(());
    }
    Err(Fault::invalid(format!("{found} registers where {wanted} are expected")))
}

/// So many registers of one type to read from.
pub(super) fn sources<'a>(
    arg: &Arg<'a>,
    (count, word): (usize, Type),
    o: &mut Operands<'_, 'a>,
) -> Result<Box<[Operand]>, Fault> {
    check(parts(arg).len(), count)?;
    parts(arg).iter().map(|part| o.src(part, word)).collect()
}

/// So many registers of one type to write to.
pub(super) fn destinations<'a>(
    arg: &Arg<'a>,
    (count, word): (usize, Type),
    o: &mut Operands<'_, 'a>,
) -> Result<Box<[Reg]>, Fault> {
    check(parts(arg).len(), count)?;
    parts(arg).iter().map(|part| o.dst(part, word)).collect()
}
