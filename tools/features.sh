#!/usr/bin/env bash
# Checks that crates compile without their features and with each one alone, and that what is left out is not in the graph.
#
#     tools/features.sh             checks
#     tools/features.sh left-out    runs the tests of what is said without a feature, which no other build has
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = left-out ]; then
    # Asking for what was left out is an error that names the feature. Without optimisation: nothing of it is slow.
    export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/left-out"
    cargo test --quiet --package warpfold --features arrow,half,ndarray,serde --test front devices::
    cargo test --quiet --package warpfold-files --no-default-features --features "" --lib left_out
    cargo test --quiet --package warpfold-files --no-default-features --features npy,zstd --lib left_out
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
