//! Says which kernels are compiled.
//!
//! Without optimisation an intrinsic is a call, so that plain Rust is faster than vectors, and each
//! instruction set would cost as much to compile as all else.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(x86_vectors, neon_vectors, unoptimised)");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let miri = env::var_os("CARGO_CFG_MIRI").is_some();
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") && !miri {
        let optimised = !is("OPT_LEVEL", "0");
        println!("cargo::rustc-cfg={}", if optimised { "x86_vectors" } else { "unoptimised" });
    }
    let neon =
        env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|all| all.split(',').any(|f| f == "neon"));
    let arm = is("CARGO_CFG_TARGET_ARCH", "aarch64") && is("CARGO_CFG_TARGET_ENDIAN", "little");
    if arm && neon && !miri {
        println!("cargo::rustc-cfg=neon_vectors");
    }
}
