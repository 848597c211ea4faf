//! The ranks of an MPI program, by the MPI library that is found at run time.
//!
//! [`World::open`] loads a library and joins the others; then integers are added up
//! ([`World::all_reduce`]) and bytes go from rank to rank. One thread of a process makes all
//! calls, which is what every library allows.

#[cfg(unix)]
mod calls;
mod error;
#[cfg(unix)]
mod library;
#[cfg(not(unix))]
mod none;
mod world;

#[cfg(not(unix))]
use none as library;

pub use error::{Error, Result};
pub use world::World;

/// How numbers of ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// They are added up, and wrap around.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// The calls of a library that its communicator of all ranks is used with. Errors are what the
/// library says.
trait Calls {
    fn initialised(&self) -> Result<bool, String>;
    fn initialise(&self) -> Result<(), String>;
    /// Goes on with a copy of the communicator, so that messages never mix with the program's,
    /// and has errors returned on it. Tells the rank, and how many there are.
    fn join(&mut self) -> Result<(usize, usize), String>;
    /// The name of the host.
    fn host(&self) -> Result<String, String>;
    fn all_reduce(&self, numbers: &mut [i64], how: How) -> Result<(), String>;
    fn all_gather(&self, number: i64, all: &mut [i64]) -> Result<(), String>;
    fn broadcast(&self, bytes: &mut [u8], root: usize) -> Result<(), String>;
    fn send(&self, bytes: &[u8], to: usize) -> Result<(), String>;
    fn receive(&self, bytes: &mut [u8], from: usize) -> Result<(), String>;
    fn finalise(&self) -> Result<(), String>;
    fn abort(&self, status: i32);
}

/// The Rust of README.md, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
