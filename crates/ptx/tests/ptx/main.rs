//! The interpreter and its parts: what instructions compute, how threads run, which faults are found, and what the parser takes.

mod approximations;
#[expect(unreachable_pub, reason = "it is public in warpfold-cuda")]
mod archive;
mod arithmetic;
mod bench;
mod bulk;
mod calls;
mod common;
mod damage;
mod execution;
mod faults;
mod fences;
mod foreign;
mod fragments;
mod happens_before;
mod instructions;
mod integers;
mod memory;
mod modules;
mod mutants;
mod overflow;
mod packing;
mod pairs;
mod pixels;
mod races;
mod renumber;
mod samples;
mod small;
mod stack;
mod tensors;
mod textures;
#[expect(dead_code, reason = "other tests use the rest")]
mod thorough;
mod undefined;
