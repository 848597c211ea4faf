#!/usr/bin/env bash
# Packs the command as a release has it: DIR/warpfold-VERSION-TARGET.tar.gz, and its SHA-256 beside it.
#
#     tools/archive.sh DIR [TARGET]      TARGET is this machine's unless it is named; the command is compiled for it
#
# `tools/install.sh` and `cargo binstall` find what is in it by its name. WARPFOLD_BIN names a command that is compiled already.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
target=${2:-$(rustc -vV | sed -n 's/^host: //p')}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
suffix=''
case $target in *windows*) suffix=.exe ;; esac
command=${WARPFOLD_BIN:-}
if [ -z "$command" ]; then
    cargo build --release --locked --package warpfold-cli --target "$target"
    command=${CARGO_TARGET_DIR:-target}/$target/release/warpfold$suffix
fi
name=warpfold-$version-$target
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/$name"
cp "$command" "$scratch/$name/warpfold$suffix"
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$scratch/$name/"
tar -C "$scratch" -czf "$out/$name.tar.gz" "$name"
if command -v sha256sum >/dev/null; then sum=(sha256sum); else sum=(shasum -a 256); fi
(cd "$out" && "${sum[@]}" "$name.tar.gz" > "$name.tar.gz.sha256")
echo "$out/$name.tar.gz"
