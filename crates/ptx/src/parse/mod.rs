//! PTX text into a [`Module`].
//!
//! The text is read once, front to back. Registers get slots as they are used, so that neither `%r<99999999>` nor a large array costs
//! memory; what is kept grows with the text.

mod argument;
mod body;
mod debug;
mod declaration;
mod error;
mod instruction;
mod lex;
mod module;
mod number;
mod operands;
mod scope;
mod suffix;
mod symbols;

pub use error::{Error, Result, Unsupported};

use crate::ir::Module;

/// Loads a module.
///
/// # Errors
///
/// The text is not PTX of version 7.0 to 9.0, contradicts itself, or needs what the interpreter has not.
///
/// ```
/// let module = warpfold_ptx::parse::parse(
///     ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n",
/// )?;
/// assert!(module.function("nothing").is_some());
/// # Ok::<(), warpfold_ptx::parse::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Module> {
    let Scan { module, unsupported } = scan(text)?;
    match unsupported.into_iter().next() {
        None => Ok(module),
        Some(first) => Err(Error::Unsupported(first)),
    }
}

/// A module, and what of it cannot be interpreted.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The module. [`Op::Hint`](crate::ir::Op::Hint) stands where an instruction is not supported, so it must not be run
    /// if there are some.
    pub module: Module,
    /// All instructions that are not supported, in the order of the text.
    pub unsupported: Vec<Unsupported>,
}

/// Reads a module to the end even if instructions are not supported.
///
/// # Errors
///
/// The text is not PTX of version 7.0 to 9.0, or contradicts itself.
pub fn scan(text: &str) -> Result<Scan> {
    module::read(text)
}
