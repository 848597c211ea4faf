//! The choice of `--device auto`: the CPU, unless a device is expected to be faster,
//! with the copy of the data included.
//!
//! ```text
//! CPU       bytes * sum over kinds of 1 / (rate of a thread * threads)
//! device    opening, if nobody has yet + bytes / rate of the copy
//! ```
//!
//! The kernels are at least as fast as any copy, and are left out. Most states are made
//! at the speed of memory, and sending data to a device takes longer than reducing it
//! on the CPU: the CPU is faster at any size. A device is faster for large inputs of
//! the few operations that cost the CPU much for each element, if the CPU has few
//! threads.
//!
//! The rates are round figures of machines of 2022 to 2026. They need not be right,
//! since the bits are the same on each device.

use crate::device::MOST_SENDERS;
use warpfold_core::DType;
use warpfold_core::op::Kind;

/// Below this many bytes the CPU is chosen at once.
pub(crate) const SMALL: u64 = 1 << 20;

/// Seconds to open a device and load its kernels: see `benches/records`.
const OPENING: f64 = 0.3;

/// Seconds of the shortest piece of work on a device.
const LATENCY: f64 = 100e-6;

/// Bytes a second that the bus carries to a device: PCIe 4.0, 16 lanes.
const BUS: f64 = 20e9;

/// Bytes a second that one thread copies to pinned memory.
const STAGING: f64 = 6e9;

/// The number of bytes from which on a device is expected to be faster than `threads`
/// threads of the CPU; `None` if it never is.
pub(crate) fn pays_from(
    kinds: &[Kind],
    dtype: DType,
    threads: usize,
    is_open: bool,
) -> Option<u64> {
    let threads = threads.max(1);
    let cpu: f64 = kinds.iter().map(|&kind| 1.0 / (rate(kind, dtype) * threads as f64)).sum();
    let device = 1.0 / BUS.min(STAGING * threads.min(MOST_SENDERS) as f64);
    let ahead = if is_open { LATENCY } else { OPENING + LATENCY };
    (cpu > device).then(|| (ahead / (cpu - device)).ceil() as u64)
}

/// Bytes a second that one thread of the CPU reduces, of data without hazards.
fn rate(kind: Kind, dtype: DType) -> f64 {
    let gigabytes = match (kind, dtype.size()) {
        // An exponential for each element, or a table of counts of them.
        (Kind::LogSumExp, 4) => 2.0,
        (Kind::LogSumExp, 8) if !dtype.is_float() => 2.0,
        (Kind::LogSumExp, _) => 0.7,
        // A multiplication of wide integers for each element.
        (Kind::Prod, 1) => 0.4,
        (Kind::Prod, 2) if !dtype.is_float() => 1.0,
        (Kind::Prod, _) if !dtype.is_float() => 2.0,
        // A logarithm for each element.
        (Kind::Prod, 2) => 1.2,
        (Kind::Prod, 4) => 2.5,
        (Kind::Prod, _) => 3.5,
        _ => 12.0,
    };
    gigabytes * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_at_the_speed_of_memory_stays() {
        for kind in [Kind::Sum, Kind::Extrema, Kind::ArgExtrema, Kind::Counts, Kind::Moments] {
            for threads in [1, 2, 16, 128] {
                for dtype in DType::ALL {
                    assert_eq!(pays_from(&[kind], dtype, threads, true), None, "{kind:?}");
                }
            }
        }
    }

    #[test]
    fn what_costs_much_goes_if_it_is_large_and_threads_are_few() {
        let from = |threads, is_open| pays_from(&[Kind::LogSumExp], DType::F64, threads, is_open);
        let closed = from(2, false).unwrap();
        assert!((100_000_000..1_000_000_000).contains(&closed), "{closed}");
        let open = from(2, true).unwrap();
        assert!((10_000..1_000_000).contains(&open), "{open}");
        assert_eq!(from(64, true), None);
    }

    /// Each kind costs the CPU its time, and a device one copy for all.
    #[test]
    fn kinds_add_up() {
        let alone = pays_from(&[Kind::LogSumExp], DType::F32, 1, false).unwrap();
        let two = pays_from(&[Kind::LogSumExp, Kind::Prod], DType::F32, 1, false).unwrap();
        assert!(two < alone, "{two} {alone}");
        let many = [Kind::Sum, Kind::Extrema, Kind::Counts, Kind::AbsSum, Kind::SquareSum];
        assert!(pays_from(&many, DType::F64, 1, false).is_some());
    }

    #[test]
    fn nothing_asked_is_nothing_to_send() {
        assert_eq!(pays_from(&[], DType::F64, 1, true), None);
        assert_eq!(pays_from(&[Kind::Sum], DType::F64, 0, true), None);
    }
}
