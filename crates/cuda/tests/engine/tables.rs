//! The tables that kernels share with the host: headers are written from core's.
//!
//! `WARPFOLD_TABLES=overwrite` writes them anew.

use std::fmt::Write;
use std::path::Path;
use warpfold_core::op::antilogarithm::{FAR, INVERSE, LN_2, NEAR, POWERS};
use warpfold_core::op::logarithm::{
    LONG_CUBE, LONG_FIFTH, LONG_HALVED, LONG_SCALE, LONG_TABLE, SHORT_FOURTH, SHORT_HALVED,
    SHORT_SQUARE, SHORT_TABLE,
};

const HEAD: &str = "Written from core's by crates/cuda/tests/engine/tables.rs.";

/// A normal f64 as C writes it exactly.
fn hex(x: f64) -> String {
    let bits = x.to_bits();
    let sign = if x < 0.0 { "-" } else { "" };
    let exponent = (bits >> 52 & 0x7ff) as i64 - 1023;
    format!("{sign}0x1.{:013x}p{exponent}", bits & ((1 << 52) - 1))
}

/// Four pairs a line.
fn pairs(name: &str, ty: &str, pairs: &[[u64; 2]]) -> String {
    let mut text = format!("__device__ const {ty} = {{\n");
    for line in pairs.chunks(4) {
        text.push_str("   ");
        for [a, b] in line {
            write!(text, " {{0x{a:016x}, 0x{b:016x}}},").unwrap();
        }
        text.push('\n');
    }
    assert!(ty.contains(name));
    text + "};\n"
}

fn limbs(x: u128) -> [u64; 2] {
    [x as u64, (x >> 64) as u64]
}

fn logarithms() -> String {
    let long: Vec<[u64; 2]> = LONG_TABLE
        .iter()
        .map(|entry| {
            let factor = (entry.factor * LONG_SCALE as f64) as i64;
            assert_eq!(factor as f64, entry.factor * LONG_SCALE as f64);
            // In units of 2^-52 and 2^-80.
            let low = entry.low - (factor << 28);
            [(entry.high << 12 | factor).cast_unsigned(), low.cast_unsigned()]
        })
        .collect();
    let short: Vec<[u64; 2]> = SHORT_TABLE
        .iter()
        .map(|entry| [entry.factor.to_bits(), entry.log.cast_unsigned()])
        .collect();
    format!(
        "// Tables and constants of logarithms: crates/core/src/op/logarithm.rs. {HEAD}\n\n\
        #pragma once\n\n#include \"element.cuh\"\n\n\
        constexpr u32 LONG_HALVED = {LONG_HALVED}, SHORT_HALVED = {SHORT_HALVED};\n\
        constexpr f64 LONG_CUBE = {}, LONG_FIFTH = {};\n\
        constexpr f64 SHORT_SQUARE = {}, SHORT_FOURTH = {};\n\n\
        // -ln k in units of 2^-52 and 2^-80; the last 12 bits of the first are k, in units of 2^-11.\n{}\n\
        // k, and -ln k in units of 2^-57.\n{}",
        hex(LONG_CUBE),
        hex(LONG_FIFTH),
        hex(SHORT_SQUARE),
        hex(SHORT_FOURTH),
        pairs("LONG", "ulonglong2 LONG_LOGARITHMS[1024]", &long),
        pairs("SHORT", "ulonglong2 SHORT_LOGARITHMS[512]", &short),
    )
}

fn powers() -> String {
    let ln_2 = limbs(LN_2.cast_unsigned());
    let far: Vec<String> = FAR.iter().map(|c| format!("0x{c:016x}")).collect();
    format!(
        "// Tables and constants of antilogarithms: crates/core/src/op/antilogarithm.rs. {HEAD}\n\n\
        #pragma once\n\n#include \"element.cuh\"\n\n\
        constexpr u64 LN_2_LOW = 0x{:016x}, LN_2_HIGH = 0x{:016x}, INVERSE_LN_2 = 0x{INVERSE:016x};\n\
        constexpr int NEAR_TERMS = {}, FAR_TERMS = {};\n\n\
        // 1 / n! in units of 2^-126, and from n = 6 on of 2^-70.\n{}\
        __device__ const u64 FAR[FAR_TERMS] = {{{}}};\n\n\
        // e^(j / 64) for j from -32 on.\n{}",
        ln_2[0],
        ln_2[1],
        NEAR.len(),
        FAR.len(),
        pairs("NEAR", "u64 NEAR[NEAR_TERMS][2]", &NEAR.map(limbs)),
        far.join(", "),
        pairs("POWERS", "u64 POWERS_OF_E[64][2]", &POWERS.map(limbs)),
    )
}

#[test]
fn tables_of_kernels_are_those_of_the_host() {
    for (name, text) in [("logarithm_tables.cuh", logarithms()), ("power_table.cuh", powers())] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join(name);
        if std::env::var_os("WARPFOLD_TABLES").is_some_and(|how| how == "overwrite") {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap();
        assert!(found == text, "{name}: run this test with WARPFOLD_TABLES=overwrite");
    }
}
