//! The front door and its backends against naive arithmetic: what a caller
//! asks, and what the definitions say, bit for bit.

// A link to the core's, so that the package has it.
#[expect(dead_code, reason = "the core's own tests use the rest")]
mod oracle;

mod accumulator;
mod answers;
mod arrays;
#[cfg(all(feature = "cuda", feature = "sim"))]
mod backends;
mod columns;
#[cfg(all(feature = "cudarc", feature = "sim"))]
mod cuda_slices;
#[cfg(all(feature = "cuda", feature = "sim"))]
mod device_arrays;
mod devices;
mod environment;
mod examples;
mod first_lines;
mod groups;
#[cfg(all(feature = "cuda", feature = "sim"))]
mod groups_on_devices;
mod naive;
mod natural;
mod partial;
mod partials;
mod products;
mod refusals;
mod seeds;
mod segments;
#[cfg(all(feature = "cuda", feature = "sim"))]
mod segments_on_devices;
mod side_by_side;
mod specials;
// A link to that of warpfold-ptx, so that the package has it.
mod thorough;
mod threads;
mod workers;
