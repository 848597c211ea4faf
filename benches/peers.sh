#!/usr/bin/env bash
# Builds warpfold, fetches its peers and runs benches/peers.py with the given flags.
#   benches/peers.sh                       everything, about a quarter of an hour
#   benches/peers.sh --only npy,csv        some parts
set -euo pipefail
cd "$(dirname "$0")/.."

venv=benches/.venv
if [ ! -x "$venv/bin/python" ]; then python3 -m venv "$venv"; fi
if ! "$venv/bin/python" -c 'import numpy, polars, duckdb, pyarrow' 2>/dev/null; then
    "$venv/bin/pip" install --quiet numpy polars duckdb pyarrow
fi
if ! command -v datamash >/dev/null; then
    root=""
    [ "$(id -u)" -eq 0 ] || root=sudo
    $root apt-get update -qq
    $root apt-get install -y -qq --no-install-recommends datamash >/dev/null
fi

cargo build --release -p warpfold-cli
exec "$venv/bin/python" benches/peers.py --warpfold "${CARGO_TARGET_DIR:-target}/release/warpfold" "$@"
