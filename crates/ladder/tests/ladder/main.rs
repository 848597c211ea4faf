//! Rungs, experiments and the course, on the interpreter and on the device of this machine if there is one.

mod attempts;
mod baselines;
mod device;
mod experiments;
mod learn;
mod rungs;
