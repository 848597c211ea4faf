#!/usr/bin/env bash
# Runs a sample of views and kernels under AddressSanitizer, on every instruction set that the
# machine has: reads beyond an array's memory. About two minutes on two cores, once compiled.
#
#   tools/sanitize.sh             the sample, and a planted fault that must be found
#   WARPFOLD_CASES=100000 ...     a larger sample (104 in the tests, 600 here)
#
# The stable toolchain ships the runtime; the flag is unstable, hence RUSTC_BOOTSTRAP.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly target=x86_64-unknown-linux-gnu
if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "skipped: the sanitizer's runtime is for Linux on x86-64"
    exit 0
fi
if ! ls "$(rustc --print sysroot)/lib/rustlib/$target/lib/"*rt.asan.a >/dev/null 2>&1; then
    echo "skipped: this toolchain has no AddressSanitizer runtime (rustup has)"
    exit 0
fi
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan"
# Statics such as the pool live until the process ends.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}"
test() { cargo test --target "$target" -p warpfold-cpu "$@"; }

WARPFOLD_CASES="${WARPFOLD_CASES:-600}" test --test cpu views::
test --test cpu kernels:: -- --skip kernels_equal_the_reference

report=$(mktemp)
trap 'rm -f "$report"' EXIT
if WARPFOLD_PLANT=1 test --test cpu planted -- --nocapture >"$report" 2>&1 ||
    ! grep -q 'AddressSanitizer: heap-buffer-overflow' "$report"; then
    cat "$report" >&2
    echo "the sanitizer did not find the planted read beyond the end" >&2
    exit 1
fi
echo "the planted read beyond the end was found"
