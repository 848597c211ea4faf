#!/usr/bin/env bash
# Reads and reduces files of each format by a program that is built with `panic = "abort"`: what is sane must be read without a panic,
# since nothing catches one there. The files are the seeds of the fuzz targets.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
target="${CARGO_TARGET_DIR:-$root/target}"
mkdir -p "$target/abort"
scratch=$(mktemp -d -p "$target/abort")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/src"
# A folder of their own: what a fuzzer has found is not sane.
# As the tests are compiled, so that nothing is compiled for this alone.
WARPFOLD_CORPUS="$scratch/corpus" cargo test --quiet --workspace --test formats -- --ignored write_seeds >/dev/null
export CARGO_TARGET_DIR="$target/abort"
cat > "$scratch/Cargo.toml" <<TOML
[package]
name = "abort"
version = "0.0.0"
edition = "2024"

[dependencies]
warpfold = { path = "$root/crates/warpfold" }
warpfold-files = { path = "$root/crates/files" }

[profile.dev]
panic = "abort"
debug = false
incremental = false

[workspace]
TOML
cp Cargo.lock "$scratch/"
cat > "$scratch/src/main.rs" <<'RUST'
//! Reduces every array of the files that are named, and says of how many files it had an answer.

use warpfold::{Op, Reduction};
use warpfold_files::stream::{Inputs, Silent, reduce};
use warpfold_files::{Error, OpenOptions, Source, inspect, open};

/// The sources of a file: all columns, or each of its arrays by its name.
fn sources(path: &str, options: &OpenOptions) -> Result<Vec<Source>, Error> {
    open(path, options).or_else(|_| {
        let names = inspect(path, options)?.into_iter().map(|described| described.name);
        let opened = names.filter_map(|name| open(&name, options).ok());
        Ok(opened.flatten().collect())
    })
}

fn answers(path: &str) -> Result<usize, Error> {
    let options = OpenOptions { all_columns: true, ..OpenOptions::default() };
    let question = Reduction::new([Op::Count, Op::CountNan]);
    let mut answers = 0;
    for source in sources(path, &options)? {
        let inputs = Inputs { items: vec![source], others: Vec::new() };
        answers += usize::from(reduce(inputs, &question, None, &Silent).is_ok());
    }
    Ok(answers)
}

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let read = paths.iter().filter(|path| match answers(path) {
        Ok(answers) => answers > 0,
        Err(error) => {
            println!("{error}");
            false
        }
    });
    let (read, all) = (read.count(), paths.len());
    println!("{read} of {all} files reduced");
    // The seeds hold some arrays of strings and the like, which are errors.
    std::process::exit(i32::from(read * 2 < all || all == 0));
}
RUST
(cd "$scratch" && cargo build --quiet)
for format in npy npz csv numbers safetensors arrow arrow_stream parquet compressed; do
    echo "==> $format"
    "$CARGO_TARGET_DIR/debug/abort" "$scratch/corpus/$format"/*
done
