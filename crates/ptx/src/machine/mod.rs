//! Executes kernels, warp by warp.
//!
//! A launch is decoded once into a `program`, whose steps work on the registers of a whole warp. A `warp` is a set of groups of lanes
//! that share a program counter; a `block` has warps, memory and barriers; a `grid` keeps as many blocks resident as a
//! device would and lets them run in an order that the `schedule` chooses. What a step does is in `execute` (control and
//! registers), `access` (memory), `together` (shuffles, votes and what else lanes do at the same time) and `copy` (copies beside the program).

mod access;
mod arithmetic;
mod atomic;
mod barrier;
mod block;
mod builtin;
mod checks;
mod copy;
mod decides;
mod decode;
mod discarded;
mod execute;
mod fragment;
mod grid;
mod lanes;
mod launch;
mod matrix;
mod mbarrier;
mod operands;
mod print;
mod program;
mod schedule;
mod space;
mod stack;
mod tensor;
mod texture;
mod together;
mod undefined;
mod warp;

pub use checks::{Checks, UnknownCheck};
pub use decode::DecodeError;
pub use grid::{DeviceLaunch, Headway, Options, Outcome, Watch};
pub use launch::{Arg, Halt, LaunchError, Limits, Shape, Waiting};
pub use schedule::Schedule;

pub(crate) use decode::{Addresses, decode};
pub(crate) use grid::{Heap, Launch, run};
pub(crate) use launch::{check_shape, lay_out};
pub(crate) use program::Program;
pub(crate) use space::{CONST, FUNCTION, LOCAL, PARAM, SHARED};
