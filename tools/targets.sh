#!/usr/bin/env bash
# Checks that the workspace compiles with the oldest Rust that is promised, and the library without
# warnings for machines other than this one. What rustup cannot give here is skipped aloud.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly oldest=1.89
readonly targets=(i686-unknown-linux-gnu wasm32-unknown-unknown aarch64-unknown-linux-gnu x86_64-pc-windows-gnu)
# Other compilers and targets share nothing with the builds of the tests.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/targets"

if ! command -v rustup >/dev/null 2>&1; then
    echo "skipped: Rust $oldest and other targets, as there is no rustup"
    exit 0
fi
rustup() { command timeout 300 rustup "$@" >/dev/null 2>&1; }

if cargo "+$oldest" --version >/dev/null 2>&1 || rustup toolchain install "$oldest" --profile minimal; then
    cargo "+$oldest" check --workspace --all-features
    echo "Rust $oldest: checked"
else
    echo "skipped: Rust $oldest cannot be installed here"
fi
for target in "${targets[@]}"; do
    if rustup target add "$target"; then
        RUSTFLAGS=-Dwarnings cargo check --quiet --target "$target" -p warpfold-core -p warpfold-threads -p warpfold-cpu -p warpfold
        echo "$target: checked"
    else
        echo "skipped: $target cannot be installed here"
    fi
done
