#!/usr/bin/env bash
# The wheels of the Python package as they go to PyPI: one for CPython 3.11 and later, by its stable interface, and
# one for free-threaded CPython 3.14, which has none. Zig links both with the glibc of manylinux2014, 2.17.
#
#   tools/wheels.sh [FOLDER]            both, into FOLDER (target/wheels)
#   tools/wheels.sh [FOLDER] abi3       one of them: abi3 or free-threaded
#
# Needs Python 3.11 or later with venv. maturin and zig are installed into a folder of the target.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-target/wheels}") which=${2:-both}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv="$target/wheels-venv"
case $which in
both | abi3 | free-threaded) ;;
*)
    echo "wheels.sh: $which is no wheel: there are abi3 and free-threaded" >&2
    exit 2
    ;;
esac
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2' 'ziglang>=0.13,<1' 'auditwheel>=6,<7'
# maturin finds zig by the interpreter of its own environment.
export PATH="$venv/bin:$PATH"

build() {
    maturin build --manifest-path crates/python/Cargo.toml --release --zig --compatibility manylinux2014 --out "$out" "$@"
}
# The free-threaded interpreter itself is not needed: maturin knows its headers' sizes and names.
[ "$which" = free-threaded ] || build
[ "$which" = abi3 ] || build --target "$(rustc -vV | sed -n 's/^host: //p')" --interpreter python3.14t

# What the wheels say of themselves is what they need.
for wheel in "$out"/warpfold-*.whl; do
    python -m auditwheel show "$wheel" | grep -q 'manylinux_2_17' || {
        echo "wheels.sh: $wheel needs more than glibc 2.17" >&2
        python -m auditwheel show "$wheel" >&2
        exit 1
    }
    echo "$wheel"
done
