//! Names of a function's body: what `{` opens, `}` forgets.

use rustc_hash::FxHashMap;

use crate::ir::{Reg, Register, Type, VariableId};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A register.
    Register(Reg),
    /// A variable.
    Variable(VariableId),
}

#[derive(Clone, Copy)]
enum Entry {
    /// Declared; it gets a slot when it is used.
    Declared(Type),
    Known(Name),
}

/// A branch whose label is not known yet.
#[derive(Clone, Copy)]
pub(super) struct Pending<'a> {
    /// The instruction, by its index.
    pub(super) instruction: u32,
    /// Where it goes, or the table it looks into.
    pub(super) label: &'a str,
    /// Its line, for the message when there is no such label.
    pub(super) line: u32,
}

/// A list of labels for `brx.idx`.
pub(super) struct Table<'a> {
    pub(super) labels: Vec<&'a str>,
    pub(super) line: u32,
    pub(super) targets: Vec<u32>,
}

/// The names between two braces.
#[derive(Default)]
pub(super) struct Scope<'a> {
    names: FxHashMap<&'a str, Entry>,
    /// `%r<5>`: registers `%r0` to `%r4`.
    families: FxHashMap<&'a str, (u64, Type)>,
    /// `.reg .v4 .f32 x`: registers `x.x` to `x.w`.
    vectors: FxHashMap<&'a str, Vec<Reg>>,
    pub(super) labels: FxHashMap<&'a str, u32>,
    /// Tables of branch targets, as indices into a list of the function's.
    pub(super) tables: FxHashMap<&'a str, usize>,
    pub(super) branches: Vec<Pending<'a>>,
    pub(super) table_branches: Vec<Pending<'a>>,
    /// The parameter memory in use before the scope: what comes after may use the scope's again.
    pub(super) param_base: u64,
}

impl<'a> Scope<'a> {
    fn find(&mut self, name: &'a str, registers: &mut Vec<Register>) -> Option<Name> {
        let ty = match self.names.get(name) {
            Some(Entry::Known(known)) => return Some(*known),
            Some(Entry::Declared(ty)) => *ty,
            None => match self.component(name) {
                Some(component) => return Some(component),
                None => self.family(name)?,
            },
        };
        let reg = new_register(registers, name, ty);
        self.names.insert(name, Entry::Known(Name::Register(reg)));
        Some(Name::Register(reg))
    }

    /// The type of a register that only its family declares.
    fn family(&self, name: &str) -> Option<Type> {
        if self.families.is_empty() {
            return None;
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        // No counter has more digits than 10; the family's own name may end in some.
        (1..=digits.min(10)).find_map(|count| {
            let (family, number) = name.split_at(name.len() - count);
            let (size, ty) = self.families.get(family)?;
            let plain = number == "0" || !number.starts_with('0');
            (plain && number.parse::<u64>().ok()? < *size).then_some(*ty)
        })
    }

    fn is_taken(&self, name: &str) -> bool {
        self.names.contains_key(name)
            || self.vectors.contains_key(name)
            || self.family(name).is_some()
    }

    /// The component of a vector that `x.y` names.
    fn component(&self, name: &str) -> Option<Name> {
        if self.vectors.is_empty() {
            return None;
        }
        let (vector, letter) = name.rsplit_once('.')?;
        let at = match letter {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => return None,
        };
        self.vectors.get(vector)?.get(at).copied().map(Name::Register)
    }
}

/// All scopes that are open, the innermost last.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    open: Vec<Scope<'a>>,
}

/// Deeper nesting is an attack or damage.
const DEPTH: usize = 64;

impl<'a> Scopes<'a> {
    /// Opens a scope; false when there are too many.
    pub(super) fn open(&mut self, param_base: u64) -> bool {
        self.open.push(Scope { param_base, ..Scope::default() });
        self.open.len() <= DEPTH
    }

    pub(super) fn close(&mut self) -> Option<Scope<'a>> {
        self.open.pop()
    }

    pub(super) fn innermost(&mut self) -> Option<&mut Scope<'a>> {
        self.open.last_mut()
    }

    /// What a name stands for here. A register that is used for the first time gets a slot.
    pub(super) fn find(&mut self, name: &'a str, registers: &mut Vec<Register>) -> Option<Name> {
        self.open.iter_mut().rev().find_map(|scope| scope.find(name, registers))
    }

    /// Declares a register; false if the scope has that name.
    pub(super) fn declare_register(&mut self, name: &'a str, ty: Type) -> bool {
        self.declare(name, Entry::Declared(ty))
    }

    /// Declares a vector of registers; false if the scope has that name.
    pub(super) fn declare_vector(
        &mut self,
        name: &'a str,
        length: usize,
        ty: Type,
        registers: &mut Vec<Register>,
    ) -> bool {
        match self.open.last_mut() {
            Some(scope) if !scope.is_taken(name) => {
                let parts = (0..length).map(|_| new_register(registers, name, ty)).collect();
                scope.vectors.insert(name, parts);
                true
            }
            _ => false,
        }
    }

    /// How many registers a name stands for, if it is a vector of them. A register of 128 bits is one of two: it is made when it is used for the first time.
    pub(super) fn vector_length(
        &mut self,
        name: &'a str,
        registers: &mut Vec<Register>,
    ) -> Option<usize> {
        for scope in self.open.iter_mut().rev() {
            if let Some(parts) = scope.vectors.get(name) {
                return Some(parts.len());
            }
            let ty = match scope.names.get(name) {
                Some(Entry::Declared(ty)) => Some(*ty),
                Some(Entry::Known(_)) => return None,
                None => scope.family(name),
            };
            match ty {
                Some(Type::B128) => {
                    let halves = [0; 2].map(|_| new_register(registers, name, Type::B64));
                    scope.vectors.insert(name, halves.into());
                    return Some(halves.len());
                }
                Some(_) => return None,
                None => {}
            }
        }
        None
    }

    /// The components of a vector of registers.
    pub(super) fn vector(&self, name: &str) -> Option<&[Reg]> {
        self.open.iter().rev().find_map(|scope| scope.vectors.get(name)).map(Vec::as_slice)
    }

    /// Declares a name that has its meaning already; false if the scope has that name.
    pub(super) fn declare_known(&mut self, name: &'a str, known: Name) -> bool {
        self.declare(name, Entry::Known(known))
    }

    fn declare(&mut self, name: &'a str, entry: Entry) -> bool {
        match self.open.last_mut() {
            Some(scope) if !scope.is_taken(name) => {
                scope.names.insert(name, entry);
                true
            }
            _ => false,
        }
    }

    /// Declares `%r<count>`; false if the scope has it.
    pub(super) fn declare_family(&mut self, prefix: &'a str, count: u64, ty: Type) -> bool {
        match self.open.last_mut() {
            Some(scope) => scope.families.insert(prefix, (count, ty)).is_none(),
            None => false,
        }
    }
}

pub(super) fn new_register(registers: &mut Vec<Register>, name: &str, ty: Type) -> Reg {
    let slot = u32::try_from(registers.len()).unwrap_or(u32::MAX);
    registers.push(Register { name: name.to_string(), ty });
    Reg(slot)
}

#[cfg(test)]
mod tests {
    use super::{Name, Scopes};
    use crate::ir::{Reg, Type};

    #[test]
    fn families_are_declared_without_being_made() {
        let mut scopes = Scopes::default();
        let mut registers = Vec::new();
        assert!(scopes.open(0));
        assert!(scopes.declare_family("%r", 99_999_999_999, Type::B32));
        assert_eq!(scopes.find("%r5000000", &mut registers), Some(Name::Register(Reg(0))));
        assert_eq!(scopes.find("%r5000000", &mut registers), Some(Name::Register(Reg(0))));
        assert_eq!(scopes.find("%r05", &mut registers), None);
        assert_eq!(scopes.find("%r", &mut registers), None);
        assert_eq!(registers.len(), 1);
    }

    #[test]
    fn inner_names_hide_outer_ones_until_the_brace() {
        let mut scopes = Scopes::default();
        let mut registers = Vec::new();
        scopes.open(0);
        assert!(scopes.declare_register("x", Type::B32));
        assert!(!scopes.declare_register("x", Type::B64), "twice in one scope");
        assert_eq!(scopes.find("x", &mut registers), Some(Name::Register(Reg(0))));
        scopes.open(0);
        assert!(scopes.declare_register("x", Type::B64));
        assert_eq!(scopes.find("x", &mut registers), Some(Name::Register(Reg(1))));
        scopes.close();
        assert_eq!(scopes.find("x", &mut registers), Some(Name::Register(Reg(0))));
        assert_eq!(registers[1].ty, Type::B64);
    }
}
