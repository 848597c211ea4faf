#!/usr/bin/env bash
# Checks that crates compile without their features and with each one alone, and that what is left out is not in the graph.
#
#     tools/features.sh             checks
#     tools/features.sh left-out    checks what is said without a feature, by a program that has none
set -euo pipefail
cd "$(dirname "$0")/.."

# Asking for what was left out is an error that names the feature. A program of its own asks: tests of our packages would have what
# tests need compiled, too, the interpreter and Arrow among it.
left_out() {
    local root=$PWD scratch
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}/left-out"
    mkdir -p "$CARGO_TARGET_DIR"
    scratch=$(mktemp -d -p "$CARGO_TARGET_DIR")
    trap "rm -rf '$scratch'" EXIT
    mkdir "$scratch/src" "$scratch/tests"
    cat > "$scratch/Cargo.toml" <<TOML
[package]
name = "left-out"
version = "0.0.0"
edition = "2024"

[features]
npy = ["warpfold-files/npy"]
zstd = ["warpfold-files/zstd"]

[dependencies]
warpfold = { path = "$root/crates/warpfold" }
warpfold-files = { path = "$root/crates/files", default-features = false }

[[test]]
name = "devices"
path = "$root/crates/warpfold/tests/front/devices.rs"

# What the features of the library are is nothing that this package knows.
[lints.rust]
dead_code = "allow"
unexpected_cfgs = "allow"

[profile.dev]
debug = false
incremental = false

[workspace]
TOML
    cp Cargo.lock "$scratch/"
    : > "$scratch/src/lib.rs"
    cat > "$scratch/tests/formats.rs" <<'RUST'
use std::path::Path;
use warpfold_files::{Format, OpenOptions, inspect, open};

/// What opening and inspecting bytes says that names the feature, as a file and as a stream.
fn told(feature: &str, bytes: &[u8], options: &OpenOptions) -> usize {
    let [file, fifo] = ["file", "fifo"].map(|name| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    std::fs::write(&file, bytes).unwrap();
    let _ = std::fs::remove_file(&fifo);
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let streamed = |ask: &dyn Fn(&Path) -> Option<warpfold_files::Error>| {
        std::thread::scope(|scope| {
            // Who does not read all of it breaks the pipe.
            scope.spawn(|| std::fs::write(&fifo, bytes));
            ask(&fifo)
        })
    };
    let opened = |path: &Path| open(path, options).err();
    let inspected = |path: &Path| inspect(path, options).err();
    let all = [opened(&file), inspected(&file), streamed(&opened), streamed(&inspected)];
    let names = |error: &warpfold_files::Error| {
        let hint = error.hint().is_some_and(|hint| hint.contains(&format!("`{feature}`")));
        error.to_string().contains(": this build does not read ") && hint
    };
    all.iter().flatten().filter(|error| names(error)).count()
}

#[test]
fn what_is_left_out_names_its_feature() {
    let is_in = |feature: &str| match feature {
        "raw" => true,
        "npy" => cfg!(feature = "npy"),
        "zstd" => cfg!(feature = "zstd"),
        _ => false,
    };
    let check = |feature, bytes: &[u8], format| {
        let options = OpenOptions { format, ..OpenOptions::default() };
        let expected = if is_in(feature) { 0 } else { 4 };
        assert_eq!(told(feature, bytes, &options), expected, "{feature} {format:?}");
    };
    for format in Format::ALL {
        let feature = match format {
            Format::Npz => "npy",
            Format::Csv | Format::Tsv => "text",
            Format::ArrowStream => "arrow",
            other => other.name(),
        };
        check(feature, b"a header of another kind", Some(format));
    }
    check("gzip", b"\x1f\x8b\x08", None);
    check("zstd", b"\x28\xb5\x2f\xfd", None);
    check("bzip2", b"BZh91AY&SY", None);
    check("xz", b"\xfd7zXZ\0", None);
    check("lz4", b"\x04\x22\x4d\x18", None);
    // What is recognised is told apart from what nobody knows.
    check("npy", b"\x93NUMPY\x01\0", None);
    check("text", b"1 2 3\n", None);
}
RUST
    (cd "$scratch" && cargo test --quiet --tests && cargo test --quiet --features npy,zstd --test formats)
}

if [ "${1:-}" = left-out ]; then
    left_out
    exit
fi

# The features of a package, but for `default`.
features() {
    cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
packages = json.load(sys.stdin)["packages"]
print(*next(sorted(p["features"].keys() - {"default"}) for p in packages if p["name"] == sys.argv[1]))' "$1"
}

# A warning is an error: what a feature alone uses must not be there without it.
check() {
    local package=$1 feature=$2 said
    echo "==> $package: ${feature:-no feature}"
    said=$(cargo check --quiet --color never --package "$package" --no-default-features --features "$feature" 2>&1) && [ -z "$said" ] || {
        echo "$said" >&2
        exit 1
    }
}

# What these need takes longer to check than all the rest: see `far` in .ci/run.
readonly far=" remote zarr hdf5 "

for package in warpfold-core warpfold-cuda warpfold warpfold-files; do
    check "$package" ""
    for feature in $(features "$package"); do [[ $far == *" $feature "* ]] || check "$package" "$feature"; done
done

# What a program that reduces arrays on the CPU has nothing of.
for stranger in warpfold-cuda warpfold-ptx libloading ruzstd cudarc ndarray arrow-array serde half syn; do
    if cargo tree --quiet --package warpfold --edges normal --prefix none | grep "^$stranger v"; then
        echo "error: warpfold depends on $stranger without a feature that asks for it" >&2
        exit 1
    fi
done
echo "==> warpfold alone depends on no device and on no other library's arrays"
