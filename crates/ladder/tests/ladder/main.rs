//! Rungs, experiments and the course, on the interpreter and on the device of this machine if there is one.

mod attempts;
mod baselines;
mod device;
mod experiments;
mod learn;
mod rungs;
// A link to that of warpfold-ptx, so that the package has it.
#[expect(dead_code, reason = "other tests use the rest")]
mod thorough;
