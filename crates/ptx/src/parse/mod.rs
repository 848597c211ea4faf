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

pub use error::{Error, Result};

use crate::ir::Module;

/// Loads a module.
///
/// # Errors
///
/// The text is not PTX, or contradicts itself. Instructions that the interpreter does not have are no error: [`Module::unsupported`] lists
/// them, and a kernel stops where it reaches one.
///
/// ```
/// let module = warpfold_ptx::parse::parse(
///     ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n",
/// )?;
/// assert!(module.function("nothing").is_some());
/// # Ok::<(), warpfold_ptx::parse::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Module> {
    module::read(text)
}
