#!/usr/bin/env bash
# Checks that programs choose their own version of CUDA: graphs of crates in which ours stand beside cudarc for another one.
#
#     tools/graphs.sh [VERSION...]      cudarc's features of versions, cuda-13000 and cuda-12080 if none is named
#
# Features of a whole graph are added up, and cudarc builds for one version only: a library that named one would break all who name another.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
versions=("$@")
[ $# -gt 0 ] || versions=(cuda-13000 cuda-12080)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The settings of this workspace are not those of others.
unset CUDARC_CUDA_VERSION
export CARGO_TARGET_DIR="$scratch/target"
cudarc=$(sed -n 's/^cudarc = { version = "\([^"]*\)".*/\1/p' "$root/Cargo.toml")

# A program with these dependencies, and the text of its main.rs from stdin.
program() {
    mkdir -p "$scratch/$1/src"
    cat > "$scratch/$1/src/main.rs"
    printf '[package]\nname = "%s"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\n%s\n\n[workspace]\n' "$1" "$2" > "$scratch/$1/Cargo.toml"
    cp "$root/Cargo.lock" "$scratch/$1/"
}

check() {
    echo "==> $1: $2"
    (cd "$scratch/$1" && cargo check --quiet)
}

program plain "warpfold = { path = \"$root/crates/warpfold\", features = [\"cuda\", \"sim\"] }" <<'RUST'
fn main() {
    println!("{}", warpfold::sum(&[1.5f64, 2.0]));
}
RUST
check plain "no cudarc at all"
if (cd "$scratch/plain" && cargo tree --quiet --edges normal --prefix none | grep '^cudarc '); then
    echo "error: cudarc is in the graph of a program that does not ask for it" >&2
    exit 1
fi

for version in "${versions[@]}"; do
    program "beside-$version" "warpfold = { path = \"$root/crates/warpfold\", features = [\"cuda\", \"sim\"] }
warpfold-cuda = { path = \"$root/crates/cuda\" }
cudarc = { version = \"$cudarc\", features = [\"$version\"] }" <<'RUST'
use cudarc::driver::CudaContext;
use warpfold_cuda::Driver;

fn main() {
    println!("{} {:?}", warpfold::sum(&[1.5f64, 2.0]), Driver::probe());
    println!("{:?}", CudaContext::new(0).is_ok());
}
RUST
    check "beside-$version" "ours beside cudarc with $version"

    program "slices-$version" "warpfold-core = { path = \"$root/crates/core\" }
warpfold-cuda = { path = \"$root/crates/cuda\", features = [\"cudarc\"] }
cudarc = { version = \"$cudarc\", default-features = false, features = [\"std\", \"driver\", \"dynamic-loading\", \"$version\"] }" <<'RUST'
use cudarc::driver::CudaContext;
use warpfold_core::op::{Kind, Op, Rules};
use warpfold_cuda::SliceEngine;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let numbers = stream.clone_htod(&[1e16, 1.0, -1e16])?;
    let state = SliceEngine::new(&context)?.reduce(Kind::Sum, &numbers, &stream)?;
    println!("{:?}", state.finish(Op::Sum, &Rules::default())?);
    Ok(())
}
RUST
    check "slices-$version" "slices of cudarc with $version"

    program "front-$version" "warpfold = { path = \"$root/crates/warpfold\", features = [\"cudarc\"] }
cudarc = { version = \"$cudarc\", default-features = false, features = [\"std\", \"driver\", \"dynamic-loading\", \"$version\"] }" <<'RUST'
use cudarc::driver::CudaContext;
use warpfold::{DeviceArray, Op, Reduction};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let numbers = stream.clone_htod(&[1e16, 1.0, -1e16])?;
    println!("{}", Reduction::of(Op::Sum).run(DeviceArray::of(&numbers, &stream)?)?);
    Ok(())
}
RUST
    check "front-$version" "slices of cudarc with $version, at the front door"
done
echo "==> every graph builds"
