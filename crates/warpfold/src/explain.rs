//! How the reductions of this process are done, for readers who want to know.

use crate::devices;
use warpfold_cpu::walks;

/// From now on, devices that are opened remember how reductions are done, for
/// [`take_explanations`].
pub fn remember_explanations() {
    devices::remember_explanations();
    let _ = walks::take();
}

/// How reductions were done since [`remember_explanations`]: a line for each walk and
/// kernel of a device, and for each walk of the CPU.
#[must_use]
pub fn take_explanations() -> Vec<String> {
    let cpu = walks::take().into_iter().map(|walk| format!("cpu: {}", walk.about()));
    devices::take_explanations().into_iter().chain(cpu).collect()
}
