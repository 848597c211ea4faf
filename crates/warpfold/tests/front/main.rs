//! The front door and the CPU driver against naive arithmetic: what a caller
//! asks, and what the definitions say, bit for bit.

// A link to the core's, so that the package has it.
#[expect(dead_code, reason = "the core's own tests use the rest")]
mod oracle;

mod answers;
mod arrays;
mod devices;
mod environment;
mod naive;
mod partials;
mod products;
mod refusals;
mod specials;
mod threads;
mod workers;
