//! Random launches, whose results are compared bit for bit.

use super::{Case, Fill, Random, buffer, value, zeros};
use warpfold_cuda::Launch;

/// What a case may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compute {
    /// Capability 7.5 and newer.
    Any,
    /// Capability 9.0 and newer.
    Hopper,
}

/// How many cases there are.
pub(crate) const COUNT: u64 = 1000;

/// The compiler whose PTX a case uses.
pub(crate) fn compiler(number: u64) -> &'static str {
    if number.is_multiple_of(2) { "12.0" } else { "13.0" }
}

/// The case with this number.
pub(crate) fn case(number: u64, compute: Compute) -> Case {
    let mut random = Random(number.wrapping_mul(0x2545_f491_4f6c_dd1d) + 1);
    let seed = random.next();
    let r = &mut random;
    let blocks = 1 + r.below(6) as u32;
    // Trees halve the block; shuffles want whole warps.
    let power = 32 << r.below(5) as u32;
    let whole = 32 * (1 + r.below(16) as u32);
    let any = 1 + r.below(300) as u32;
    let n = 1 + r.below(5000) as u32;
    let (count, blocks_of) = (n as usize, blocks as usize);
    let floats = |r: &mut Random| match r.below(3) {
        0 => Fill::WideF32(seed),
        _ => Fill::F32(seed),
    };
    let made = |module, kernel, launch, parameters| Case { module, kernel, launch, parameters };
    let threads = (blocks * whole) as usize;
    let hopper = if compute == Compute::Hopper { 3 } else { 0 };
    match r.below(31 + hopper) {
        0 | 1 => {
            let input = buffer(floats(r), count * 4);
            let parameters = vec![input, zeros(blocks_of * 4), value(u64::from(n))];
            made("two_pass", "two_pass_f32", Launch::linear(blocks, power), parameters)
        }
        2 => {
            let parameters =
                vec![buffer(Fill::Bits(seed), count * 4), zeros(blocks_of * 4), value(n)];
            made("two_pass", "two_pass_i32", Launch::linear(blocks, power), parameters)
        }
        3 | 4 => {
            let parameters =
                vec![buffer(Fill::F16(seed), count * 2), zeros(blocks_of * 2), value(n)];
            made("halves", "sum_f16", Launch::linear(blocks, power), parameters)
        }
        5 => {
            let parameters =
                vec![buffer(Fill::Bf16(seed), count * 2), zeros(blocks_of * 4), value(n)];
            made("halves", "sum_bf16", Launch::linear(blocks, power), parameters)
        }
        6 => {
            let inputs =
                [buffer(Fill::Bits(seed), count * 4), buffer(Fill::Bits(!seed), count * 4)];
            let parameters =
                vec![inputs[0].clone(), inputs[1].clone(), zeros(count * 16), value(n)];
            let launch = Launch::linear(n.div_ceil(any), any);
            made("halves", "pairs_f16", launch, parameters)
        }
        7 => {
            let input = buffer(Fill::Bits(seed), count * 8);
            let parameters = vec![input, zeros(blocks_of * 8), value(u64::from(n))];
            made("wide", "sum_i64", Launch::linear(blocks, power), parameters)
        }
        8 | 9 => {
            let input = buffer(Fill::F64(seed), count * 8);
            let parameters = vec![input, zeros(blocks_of * 8), value(u64::from(n))];
            made("wide", "sum_f64", Launch::linear(blocks, power), parameters)
        }
        10 => {
            let input = buffer(Fill::Bits(seed), count * 8);
            let parameters = vec![input, zeros(any as usize * 16), value(n)];
            made("wide", "sum_u128", Launch::linear(1, any), parameters)
        }
        11 => {
            let divisor = 1 + (r.next() as u32 >> r.below(31));
            let parameters =
                vec![buffer(Fill::Bits(seed), threads * 8), zeros(threads * 48), value(divisor)];
            made("wide", "squares", Launch::linear(blocks, whole), parameters)
        }
        12 => {
            let parameters = vec![buffer(floats(r), count * 4), zeros(blocks_of * 4), value(n)];
            made("shuffles", "shuffle_down", Launch::linear(blocks, whole), parameters)
        }
        13 => {
            let parameters =
                vec![buffer(Fill::Bits(seed), count * 4), zeros(threads * 4), value(n)];
            made("shuffles", "shuffle_xor", Launch::linear(blocks, whole), parameters)
        }
        14 => {
            let parameters = vec![buffer(Fill::Bits(seed), threads * 4), zeros(threads * 4)];
            made("shuffles", "shuffle_scan", Launch::linear(blocks, whole), parameters)
        }
        15 => {
            let parameters = vec![buffer(Fill::F64(seed), threads * 8), zeros(threads * 8)];
            made("shuffles", "shuffle_f64", Launch::linear(blocks, whole), parameters)
        }
        16 | 17 => {
            let kernel = ["neighbored", "compact", "interleaved"][r.below(3) as usize];
            let launch = Launch::linear(n.div_ceil(power), power);
            let partials = zeros(launch.grid[0] as usize * 4);
            // Threads past the end read nothing, but the last block's slots
            // are summed whole.
            let room = (launch.grid[0] * power) as usize * 4;
            let parameters = vec![buffer(Fill::Bits(seed), room), partials, value(n)];
            made("addressing", kernel, launch, parameters)
        }
        18 | 19 => {
            let kernel = ["ticket_sum", "ticket_acq_rel"][r.below(2) as usize];
            let parameters = vec![
                buffer(floats(r), count * 4),
                zeros(blocks_of * 4),
                zeros(4),
                zeros(4),
                value(n),
            ];
            made("ticket", kernel, Launch::linear(blocks, power), parameters)
        }
        20 => {
            let values = buffer(Fill::Bits(seed), any as usize * 4);
            made(
                "arithmetic",
                "bits",
                Launch::linear(1, any),
                vec![values, zeros(any as usize * 64)],
            )
        }
        21 => {
            let threads = any as usize;
            let wide = match r.below(2) {
                0 => Fill::F64(seed),
                _ => Fill::Bits(seed),
            };
            let parameters = vec![buffer(wide, threads * 8), zeros(threads * 64)];
            made("arithmetic", "functions_f64", Launch::linear(1, any), parameters)
        }
        22 => {
            let threads = any as usize;
            let inputs = [buffer(floats(r), threads * 4), buffer(Fill::F64(seed), threads * 8)];
            let parameters = vec![inputs[0].clone(), inputs[1].clone(), zeros(threads * 96)];
            made("arithmetic", "conversions", Launch::linear(1, any), parameters)
        }
        23 => {
            let parameters = vec![buffer(Fill::Bits(seed), threads * 4), zeros(threads * 32)];
            made("warps", "votes", Launch::linear(blocks, whole), parameters)
        }
        24 => {
            let parameters = vec![buffer(Fill::Bits(seed), threads * 4), zeros(threads * 12)];
            made("warps", "block_votes", Launch::linear(blocks, whole), parameters)
        }
        25 => {
            let parameters =
                vec![buffer(Fill::F32(seed), count * 4), zeros(any as usize * 24), value(n)];
            made("calls", "moments", Launch::linear(1, any), parameters)
        }
        26 => {
            let parameters = vec![
                buffer(Fill::Bits(seed), count * 4),
                value(-1000_i32),
                value(1000_i32),
                value(n),
            ];
            made("calls", "clamp_all", Launch::linear(n.div_ceil(any), any), parameters)
        }
        27 => {
            let parameters =
                vec![buffer(Fill::Bits(seed), count * 4), zeros(blocks_of * 4), value(n)];
            let launch = Launch::linear(blocks, power).shared(power * 4);
            made("dynamic_shared", "dynamic_sum", launch, parameters)
        }
        28 => {
            let kernel = ["global_histogram", "shared_histogram"][r.below(2) as usize];
            let bins = 1 + r.below(256) as u32;
            let parameters =
                vec![buffer(Fill::Bits(seed), count * 4), zeros(1024), value(bins), value(n)];
            made("atomics", kernel, Launch::linear(blocks, any), parameters)
        }
        29 => {
            let parameters = vec![buffer(floats(r), threads * 16), zeros(threads * 4)];
            made("loads", "vector4_load", Launch::linear(blocks, whole), parameters)
        }
        30 => {
            let parameters =
                vec![buffer(Fill::F32(seed), count * 4), zeros(any as usize * 8), value(n)];
            made("constants", "weighted", Launch::linear(1, any), parameters)
        }
        31 => {
            let threads = (blocks * any) as usize;
            let inputs = [buffer(floats(r), threads * 4), buffer(floats(r), threads * 4)];
            let parameters = vec![inputs[0].clone(), inputs[1].clone(), zeros(threads * 28)];
            made("halves_90", "pack_pairs", Launch::linear(blocks, any), parameters)
        }
        32 => {
            let parameters = vec![buffer(Fill::Bits(seed), threads * 4), zeros(threads * 24)];
            made("warps_90", "redux", Launch::linear(blocks, whole), parameters)
        }
        _ => {
            let parameters =
                vec![buffer(Fill::F32(seed), count * 4), zeros(blocks_of * 4), value(n)];
            made("shuffles", "shuffle_down", Launch::linear(blocks, whole), parameters)
        }
    }
}
