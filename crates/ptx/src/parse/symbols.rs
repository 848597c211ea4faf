//! Names of a module.

use rustc_hash::FxHashMap;

use crate::ir::{FunctionId, Module, VariableId};

/// What a module's name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    /// A variable.
    Variable(VariableId),
    /// A function.
    Function(FunctionId),
}

/// The module as far as it is read, and its names.
#[derive(Default)]
pub(super) struct Symbols<'a> {
    pub(super) module: Module,
    globals: FxHashMap<&'a str, Global>,
    spellings: FxHashMap<&'a str, u32>,
}

impl<'a> Symbols<'a> {
    pub(super) fn global(&self, name: &str) -> Option<Global> {
        self.globals.get(name).copied()
    }

    /// Gives a name its meaning; false if it has one.
    pub(super) fn declare(&mut self, name: &'a str, global: Global) -> bool {
        self.globals.insert(name, global).is_none()
    }

    /// The number of an opcode's spelling.
    pub(super) fn spelling(&mut self, opcode: &'a str) -> u32 {
        let spellings = &mut self.module.spellings;
        *self.spellings.entry(opcode).or_insert_with(|| {
            spellings.push(opcode.to_string());
            index(spellings.len() - 1)
        })
    }
}

/// A position as the ir keeps it. Texts beyond 4 GiB are refused, so no list is longer.
pub(super) fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
