#!/usr/bin/env bash
# Compiles the CPU backend for AArch64 and runs its tests, NEON bodies included, under QEMU's
# user mode. Installs what is missing (Debian). Any other machine that has the target, a linker and
# QEMU does as well; where they cannot be had it says so and is content.
# WARPFOLD_REQUIRE_ARM=1 makes that a failure. The quick part takes a minute or two;
# `tools/arm.sh all` adds views and boxes.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly target=aarch64-unknown-linux-gnu
readonly sysroot=/usr/aarch64-linux-gnu

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

missing() {
    echo "skipped: $1"
    [ "${WARPFOLD_REQUIRE_ARM:-0}" = 0 ]
    exit
}

if [ "$(uname -m)" != aarch64 ]; then
    if ! have qemu-aarch64 || ! have aarch64-linux-gnu-gcc; then
        have apt-get || missing "no qemu-aarch64 and aarch64-linux-gnu-gcc here"
        as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq || true
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross >/dev/null ||
            missing "qemu-user and gcc-aarch64-linux-gnu cannot be installed"
    fi
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
        have rustup || missing "no standard library for $target (rustup target add $target)"
        rustup target add "$target" || missing "the target $target cannot be installed"
    fi
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $sysroot"
fi

run=(cargo test --target "$target" -p warpfold-cpu)
"${run[@]}" --lib
if [ "${1:-}" = all ]; then "${run[@]}" --test cpu; else "${run[@]}" --test cpu kernels::; fi
