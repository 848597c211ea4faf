#!/usr/bin/env bash
# Packs what a machine with a GPU and no Rust needs: tests, command line, benchmarks, stripped, and a script that runs them.
#
#     tools/pack.sh DIR
#     DIR/run tests         every test that has a device in it, which must be there
#     DIR/run sanitize      the small ones under compute-sanitizer: memcheck, racecheck, initcheck, synccheck
#     DIR/run bench [DIR]   benches/gpu.py: ours beside CUB, torch and CuPy; the record goes to DIR
set -euo pipefail

if [ $# -ne 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

cargo build --release -p warpfold-cli
cargo build --release -p warpfold-cuda --features cudarc --examples
mkdir -p "$to/tests" "$to/examples" "$to/peers"
cp "${CARGO_TARGET_DIR:-target}/release/warpfold" "$to/"

# The executables of the tests, as cargo names them.
tests() {
    cargo test --release "$@" --no-run --message-format json |
        python3 -c '
import json, sys
for line in sys.stdin:
    artifact = json.loads(line)
    if artifact.get("executable") and artifact["target"]["kind"] == ["test"]:
        print(artifact["target"]["name"], artifact["executable"])'
}
tests -p warpfold-cuda --features cudarc | while read -r name executable; do cp "$executable" "$to/tests/cuda-$name"; done
tests -p warpfold-ladder --test ladder | while read -r name executable; do cp "$executable" "$to/tests/ladder-$name"; done
tests -p warpfold --all-features --test front | while read -r name executable; do cp "$executable" "$to/tests/front-$name"; done
tests -p warpfold-files --test formats | while read -r name executable; do cp "$executable" "$to/tests/files-$name"; done
tests -p warpfold-cli --test cli | while read -r name executable; do cp "$executable" "$to/tests/cli-$name"; done
for source in crates/cuda/examples/*.rs; do
    name=$(basename "$source" .rs)
    cp "${CARGO_TARGET_DIR:-target}/release/examples/$name" "$to/examples/"
done
strip "$to/warpfold" "$to"/tests/* "$to"/examples/*
cp benches/gpu.py benches/gpu_targets.py benches/shapes.py benches/rows_of_records.py "$to/"
cp benches/peers/cub.cu "$to/peers/"
rm -rf "$to/kernels" && mkdir -p "$to/kernels" && cp crates/ptx/kernels/kernels.archive "$to/kernels/"

cat > "$to/run" <<'RUN'
#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
export WARPFOLD_REQUIRE_CUDA=1 WARPFOLD_KERNELS="$here/kernels" WARPFOLD_BIN="$here/warpfold"
case "${1:-}" in
    tests)
        # One process after the other would wait for the driver's compiler.
        examples/compile
        failed=0
        for test in tests/*; do
            echo "== $test"
            "$test" device || failed=1
        done
        exit $failed
        ;;
    sanitize)
        failed=0
        for tool in memcheck racecheck initcheck synccheck; do
            for test in tests/cuda-* tests/ladder-*; do
                echo "== $tool $test"
                # 86 is what the tool says of an error; it wants few processes.
                compute-sanitizer --tool "$tool" --error-exitcode 86 "$test" sanitized --test-threads 1 || failed=1
            done
        done
        exit $failed
        ;;
    bench)
        python3 gpu.py --ours examples --records "${2:-records}"
        ;;
    *)
        echo "usage: $0 tests | sanitize | bench [DIR]" >&2
        exit 2
        ;;
esac
RUN
chmod +x "$to/run"
du -sh "$to"
