//! The engine, on the interpreter and on the device of this machine if there is one.

// A binary takes as long to compile as all of its modules: those that drive the engine share one.
#[path = "../common/mod.rs"]
mod common;

mod axes;
mod bad_memory;
mod chosen;
mod dependent_launches;
mod drawn;
mod feeder;
mod full_reductions;
mod groups;
mod hostile;
mod numbers;
mod positions;
mod prepared;
mod segments;
mod tables;
// A link to that of warpfold-ptx, so that the package has it.
#[expect(dead_code, reason = "other tests use the rest")]
mod thorough;
mod views;
