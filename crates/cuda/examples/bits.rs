//! Runs random launches on the first device and prints a checksum of what
//! each leaves in its buffers: the record that the interpreter is held to.

#[path = "../tests/common/mod.rs"]
mod common;

use common::random::{Compute, case};
use warpfold_cuda::{Driver, Result};

fn main() -> Result<()> {
    let device = Driver::open(0)?;
    let mut random = 0;
    for number in 0..common::random::COUNT {
        let case = case(number, Compute::Hopper);
        let buffers = case.run(&device, common::random::compiler(number))?;
        println!("{number}\t{}\t{:016x}", case.kernel, common::checksum(&buffers));
        random += 1;
    }
    eprintln!("{random} launches");
    Ok(())
}
