//! Which shared variable an address is computed from.
//!
//! The shared variables of a block lie one behind the other, so an index that is too large hits the next one and no bound of memory is crossed. The
//! text tells which variable is meant: `mov %r, a` takes an address, sums carry it on. What comes from memory, from parameters or from two variables
//! means no variable, and nothing is said of such an address. Neither is of a register that holds one thing and later another: compilers' registers do not.

use crate::ir::{
    Address, Base, Function, IntBinary, IntTernary, Module, Op, Operand, Space, VariableId,
};

/// What a register may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Held {
    /// Nothing yet.
    #[default]
    Nothing,
    /// A number, or an address of which nothing is known.
    Number,
    /// An address in one variable.
    In(VariableId),
    /// One thing or another.
    Any,
}

impl Held {
    fn or(self, other: Held) -> Held {
        match (self, other) {
            (Held::Nothing, held) | (held, Held::Nothing) => held,
            (a, b) if a == b => a,
            _ => Held::Any,
        }
    }

    /// The sum of two.
    fn plus(self, other: Held) -> Held {
        match (self, other) {
            (Held::In(id), Held::Number | Held::Nothing) => Held::In(id),
            (Held::Number | Held::Nothing, Held::In(id)) => Held::In(id),
            (Held::Any | Held::In(_), _) | (_, Held::Any) => Held::Any,
            _ => Held::Number,
        }
    }

    /// What is computed from it otherwise: of an address, nothing that is known.
    fn mixed(self, other: Held) -> Held {
        match self.plus(other) {
            Held::In(_) => Held::Any,
            held => held,
        }
    }
}

/// The shared variables that a function's registers point into.
#[derive(Debug)]
pub(crate) struct Pointers(Vec<Held>);

impl Pointers {
    /// Looks at a function's code, however its parts follow each other.
    pub(crate) fn new(module: &Module, function: &Function) -> Pointers {
        // What another instruction writes is a number.
        let mut held = vec![Held::Number; function.registers.len()];
        for instruction in &function.code {
            if let Some((dst, _)) = effect(module, &held, &instruction.op) {
                held[dst] = Held::Nothing;
            }
        }
        // Registers rise at most twice, so this ends; text in order needs two rounds.
        loop {
            let mut changed = false;
            for instruction in &function.code {
                let Some((dst, news)) = effect(module, &held, &instruction.op) else { continue };
                let risen = held[dst].or(news);
                changed |= risen != held[dst];
                held[dst] = risen;
            }
            if !changed {
                return Pointers(held);
            }
        }
    }

    /// The variable that an address is in, if it is one of known size.
    pub(crate) fn variable(&self, module: &Module, address: &Address) -> Option<VariableId> {
        let id = match address.base {
            Base::Reg(reg) => match self.0[reg.index()] {
                Held::In(id) => id,
                _ => return None,
            },
            Base::Variable(id) => id,
            Base::Absolute => return None,
        };
        let variable = &module.variables[id.index()];
        (variable.space == Space::Shared && !variable.dynamic && variable.size > 0).then_some(id)
    }
}

/// The register that an instruction writes, and what it holds then, as far as addresses of shared variables are concerned.
fn effect(module: &Module, held: &[Held], op: &Op) -> Option<(usize, Held)> {
    let of = |operand: Operand| match operand {
        Operand::Reg(reg) => held[reg.index()],
        Operand::Variable(id, _) if module.variables[id.index()].space == Space::Shared => {
            Held::In(id)
        }
        _ => Held::Number,
    };
    let (dst, news) = match *op {
        Op::Mov { dst, a, .. } | Op::Cvta { dst, a, .. } | Op::Cvt { dst, a, .. } => (dst, of(a)),
        Op::IntBinary { op, dst, a, b, .. } => {
            let (a, b) = (of(a), of(b));
            let news = match (op, a, b) {
                (IntBinary::Add | IntBinary::Or, ..) => a.plus(b),
                // The distance of two places in one variable.
                (IntBinary::Sub, Held::In(x), Held::In(y)) if x == y => Held::Number,
                (IntBinary::Sub, _, Held::Number | Held::Nothing) => a.plus(b),
                // Rounded down.
                (IntBinary::And, ..) => a.plus(b),
                (IntBinary::Min | IntBinary::Max, ..) => a.or(b),
                _ => a.mixed(b),
            };
            (dst, news)
        }
        Op::IntTernary { op, dst, a, b, c, .. } => {
            let product = of(a).mixed(of(b));
            let news = match op {
                IntTernary::MadLo | IntTernary::MadWide | IntTernary::Mad24Lo => {
                    product.plus(of(c))
                }
                _ => product.mixed(of(c)),
            };
            (dst, news)
        }
        Op::Select { dst, a, b, .. } => (dst, of(a).or(of(b))),
        Op::Pack { dst, ref parts, .. } => {
            let all = parts.iter().map(|&part| of(part)).fold(Held::Number, Held::mixed);
            (dst, all)
        }
        Op::Load { ref dsts, .. } => match **dsts {
            [dst] => (dst, Held::Number),
            _ => return None,
        },
        _ => return None,
    };
    Some((dst.index(), news))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    /// The names of the variables that the stores of a kernel mean.
    #[track_caller]
    fn meant(body: &str, expected: &[Option<&str>]) {
        let text = format!(
            ".version 8.0\n.target sm_75\n.address_size 64\n.shared .b32 a[64]; .shared .b32 b[64]; .extern .shared .b8 rest[];\n\
             .visible .entry k(.param .u64 p) {{\n.reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n{body}\nret;\n}}\n"
        );
        let module = parse(&text).unwrap();
        let pointers = Pointers::new(&module, &module.functions[0]);
        let names: Vec<_> = module.functions[0]
            .code
            .iter()
            .filter_map(|i| match &i.op {
                Op::Store { address, .. } => Some(pointers.variable(&module, address)),
                _ => None,
            })
            .map(|id| id.map(|id| module.variables[id.index()].name.as_str()))
            .collect();
        assert_eq!(names, expected, "{body}");
    }

    #[test]
    fn sums_carry_an_address_on() {
        meant("st.shared.u32 [b+8], 1;", &[Some("b")]);
        meant(
            "mov.u32 %r1, a; shl.b32 %r2, %r3, 2; add.u32 %r4, %r2, %r1; st.shared.u32 [%r4+64], 1;",
            &[Some("a")],
        );
        meant("mov.u32 %r1, b; mad.lo.u32 %r4, %r2, 4, %r1; st.shared.u32 [%r4], 1;", &[Some("b")]);
        meant(
            "mov.u64 %d1, a; cvta.shared.u64 %d2, %d1; mul.wide.u32 %d3, %r1, 4; add.s64 %d4, %d2, %d3; st.u32 [%d4], 1;",
            &[Some("a")],
        );
        // A loop that steps through an array, and an index that was loaded.
        meant(
            "mov.u32 %r1, a; again: st.shared.u32 [%r1], 1; add.u32 %r1, %r1, 4; @%p1 bra again;",
            &[Some("a")],
        );
        meant(
            "mov.u32 %r1, a; ld.shared.u32 %r2, [b]; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], 1;",
            &[Some("a")],
        );
    }

    #[test]
    fn of_other_addresses_nothing_is_said() {
        meant("mov.u32 %r1, rest; st.shared.u32 [%r1], 1; st.shared.u32 [rest], 1;", &[None, None]);
        meant("mov.u32 %r1, a; @%p1 mov.u32 %r1, b; st.shared.u32 [%r1], 1;", &[None]);
        meant(
            "mov.u32 %r1, a; mov.u32 %r2, b; selp.b32 %r3, %r1, %r2, %p1; st.shared.u32 [%r3], 1;",
            &[None],
        );
        meant("ld.shared.u32 %r1, [a]; st.shared.u32 [%r1], 1;", &[None]);
        meant(
            "mov.u32 %r1, a; mov.u32 %r2, b; sub.u32 %r3, %r2, %r1; add.u32 %r4, %r1, %r3; st.shared.u32 [%r4], 1;",
            &[None],
        );
        meant("mov.u32 %r1, a; xor.b32 %r2, %r1, 64; st.shared.u32 [%r2], 1;", &[None]);
        meant("st.shared.u32 [1024], 1;", &[None]);
    }
}
