//! The `warpfold` command, run as a user runs it.

mod common;

mod answers;
mod devices;
mod errors;
mod examples;
mod groups;
mod ladder;
mod learn;
#[cfg(unix)]
mod mpi;
#[cfg(unix)]
mod names;
mod output;
mod pipes;
mod ptx;
#[cfg(unix)]
mod readme;
#[cfg(unix)]
mod releases;
mod segments;
#[cfg(unix)]
mod sinks;
mod snapshots;
mod states;
mod suites;
mod tables;
// A link to that of warpfold-ptx, so that the package has it.
#[expect(dead_code, reason = "other tests use the rest")]
mod thorough;
mod threads;
mod times;
