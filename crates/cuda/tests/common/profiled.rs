//! The launches whose counters are compared with a profiler's.

use super::{Case, Fill, buffer, value, zeros};
use warpfold_cuda::Launch;

/// The cases and the names they go by, in the order of the record.
pub(crate) fn cases() -> Vec<(String, Case)> {
    let mut cases = Vec::new();
    let mut add = |name: String, module, kernel, launch, parameters| {
        cases.push((name, Case { module, kernel, launch, parameters }));
    };
    let n = 8 * 256_u32;
    let bytes = n as usize * 4;
    let launch = Launch::linear(8, 256);
    for kernel in ["neighbored", "compact", "interleaved"] {
        let data = buffer(Fill::Count, bytes);
        add(kernel.into(), "addressing", kernel, launch, vec![data, zeros(32), value(n)]);
    }
    let ragged = vec![buffer(Fill::F32(1), 5000 * 4), zeros(32), value(5000_u64)];
    add("two_pass".into(), "two_pass", "two_pass_f32", launch, ragged);
    let whole = vec![buffer(Fill::Count, bytes), zeros(32), value(n)];
    add("two_pass_i32".into(), "two_pass", "two_pass_i32", launch, whole);
    for stride in [1_u32, 2, 3, 4, 8, 16, 32] {
        let input = buffer(Fill::F32(2), bytes * stride as usize);
        let parameters = vec![input, zeros(bytes), value(stride)];
        add(format!("strided_load {stride}"), "loads", "strided_load", launch, parameters);
    }
    for offset in [0_u32, 1, 4, 8, 31, 32] {
        let input = buffer(Fill::F32(3), bytes + 256);
        let parameters = vec![input, zeros(bytes), value(offset)];
        add(format!("offset_load {offset}"), "loads", "offset_load", launch, parameters);
    }
    for stride in [1_u32, 2, 8] {
        let output = zeros(bytes * stride as usize);
        let parameters = vec![buffer(Fill::F32(4), bytes), output, value(stride)];
        add(format!("strided_store {stride}"), "loads", "strided_store", launch, parameters);
    }
    for (kernel, input, output) in [
        ("vector2_load", 2 * bytes, bytes),
        ("vector4_load", 4 * bytes, bytes),
        ("vector4_copy", 4 * bytes, 4 * bytes),
        ("byte_load", n as usize, bytes),
    ] {
        let parameters = vec![buffer(Fill::F32(5), input), zeros(output)];
        add(kernel.into(), "loads", kernel, launch, parameters);
    }
    for stride in [1_u32, 2, 3, 4, 8, 16, 31, 32] {
        let parameters = || vec![zeros(bytes), value(stride)];
        add(format!("bank_load {stride}"), "banks", "bank_load", launch, parameters());
        add(format!("bank_store {stride}"), "banks", "bank_store", launch, parameters());
    }
    for stride in [1_u32, 2, 4, 16] {
        let wide = vec![zeros(2 * bytes), value(stride)];
        add(format!("bank_load_f64 {stride}"), "banks", "bank_load_f64", launch, wide);
        let vector = vec![zeros(bytes), value(stride)];
        add(format!("bank_load_vector4 {stride}"), "banks", "bank_load_vector4", launch, vector);
    }
    let reduce = vec![buffer(Fill::F32(6), bytes), zeros(32), value(n)];
    add("shuffle_down".into(), "shuffles", "shuffle_down", launch, reduce);
    let integers = vec![buffer(Fill::Count, bytes), zeros(bytes), value(n)];
    add("shuffle_xor".into(), "shuffles", "shuffle_xor", launch, integers);
    let halves = vec![buffer(Fill::F16(7), n as usize * 2), zeros(16), value(n)];
    add("sum_f16".into(), "halves", "sum_f16", launch, halves);
    let wide = vec![buffer(Fill::F64(8), 2 * bytes), zeros(64), value(u64::from(n))];
    add("sum_f64".into(), "wide", "sum_f64", launch, wide);
    for count in [1_u32, 7, 256] {
        let parameters = || vec![buffer(Fill::Bits(9), bytes), zeros(1024), value(count), value(n)];
        let (global, shared) = ("global_histogram", "shared_histogram");
        add(format!("{global} {count}"), "atomics", global, launch, parameters());
        add(format!("{shared} {count}"), "atomics", shared, launch, parameters());
    }
    let last = vec![buffer(Fill::F32(10), bytes), zeros(32), zeros(4), zeros(4), value(n)];
    add("ticket_sum".into(), "ticket", "ticket_sum", launch, last);
    cases
}
