//! The `warpfold` command, run as a user runs it.

mod common;

mod answers;
mod devices;
mod errors;
mod examples;
mod ladder;
mod output;
mod pipes;
mod ptx;
mod snapshots;
mod states;
mod tables;
