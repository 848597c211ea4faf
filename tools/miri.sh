#!/usr/bin/env bash
# Runs the exact arithmetic, views and the portable CPU paths under Miri: undefined behaviour
# that a machine forgives, such as a pointer that leaves what it was made from.
# Where there is no nightly toolchain with Miri it says so and is content;
# WARPFOLD_REQUIRE_MIRI=1 makes that a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "skipped: no Miri here (rustup toolchain install nightly --component miri)"
    [ "${WARPFOLD_REQUIRE_MIRI:-0}" = 0 ]
    exit
fi
# Views are made of addresses, whose provenance is what is looked at; tests read the environment.
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-strict-provenance -Zmiri-disable-isolation}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
# Under Miri the kernels' portable bodies run, and the floating-point environment is the usual one.
cargo +nightly miri test -p warpfold-core --lib -- layout fpenv
cargo +nightly miri test -p warpfold-threads --lib
cargo +nightly miri test -p warpfold-cpu --lib -- slices pack
cargo +nightly miri test -p warpfold-cpu --test cpu -- views:: shorter_than_a_vector
