#!/usr/bin/env bash
# Builds small programs as others would, in release and stripped, and fails where one is larger than it may be.
#
#     tools/sizes.sh      about two minutes on two cores, the first time
#
# What a program does not use must not be in it: the sizes are of what one function or one question brings along.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}/sizes"
mkdir -p "$CARGO_TARGET_DIR"
scratch=$(mktemp -d -p "$CARGO_TARGET_DIR")
trap 'rm -rf "$scratch"' EXIT
too_large=0

mkdir -p "$scratch/src/bin"
cat > "$scratch/Cargo.toml" <<TOML
[package]
name = "sizes"
version = "0.0.0"
edition = "2024"

[dependencies]
warpfold = { path = "$root/crates/warpfold" }

[profile.release]
strip = true

[workspace]
TOML
cp "$root/Cargo.lock" "$scratch/"

# A program of this name from stdin, and the most bytes that it may have.
limits=()
program() {
    cat > "$scratch/src/bin/$1.rs"
    limits+=("$1 $2")
}

program sum 800000 <<'RUST'
fn main() {
    let numbers: Vec<f64> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    println!("{}", warpfold::sum(&numbers));
}
RUST

program reduction 6100000 <<'RUST'
use warpfold::{Op, Reduction};

fn main() -> Result<(), warpfold::Error> {
    let numbers: Vec<f64> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    println!("{}", Reduction::new([Op::Mean, Op::Max]).run(&numbers)?);
    Ok(())
}
RUST

(cd "$scratch" && cargo build --quiet --release)
for limit in "${limits[@]}"; do
    read -r name most <<< "$limit"
    size=$(stat -c %s "$CARGO_TARGET_DIR/release/$name")
    echo "$name: $size bytes of $most"
    [ "$size" -le "$most" ] || too_large=1
done
[ "$too_large" -eq 0 ] || { echo "error: a program is too large" >&2; exit 1; }
