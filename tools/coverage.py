#!/usr/bin/env python3
"""Says which lines of the crates neither the tests reach, nor any other command that is named.

    tools/coverage.py                        all tests of the workspace
    tools/coverage.py --then COMMAND ...     and then each of these commands, by a shell, with the module of Python to import
    tools/coverage.py --least 6              runs of at least 6 lines of code that are never reached, by file (3 by default)
    tools/coverage.py --crates cpu cuda      of these crates alone

All crates but the interpreter count what runs; the interpreter runs too much. They are built in a folder of their own, target/coverage, whose counters
stay there: a second call adds to them, and `--fresh` begins anew. Needs rustup's component llvm-tools.
"""

import argparse
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "coverage"

# Examples in the documentation count nothing.
TESTS = ["--workspace", "--lib", "--bins", "--tests", "--examples"]

# As a wrapper of rustc, for members of the workspace alone: adds counters to all but the interpreter.
WRAPPER = """#!/bin/sh
case " $* " in
*" --crate-name warpfold_ptx "*) exec "$@" ;;
*) exec "$@" -Cinstrument-coverage ;;
esac
"""


def llvm(name):
    """A tool of the compiler's own LLVM: others do not read its counters."""
    root = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
    found = sorted(pathlib.Path(root).glob(f"lib/rustlib/*/bin/{name}"))
    if not found:
        sys.exit(f"error: rustc has no {name}\nhint: rustup component add llvm-tools")
    return found[0]


def environment():
    wrapper = TARGET / "rustc"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(WRAPPER)
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return os.environ | {
        "CARGO_TARGET_DIR": str(TARGET),
        "RUSTC_WORKSPACE_WRAPPER": str(wrapper),
        "LLVM_PROFILE_FILE": str(TARGET / "counters/%4m.profraw"),
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }


def build(env):
    """Builds all that runs, and gives the programs, and the module of Python as a folder to import from."""
    # Counters of scripts that build are of no use.
    quiet = env | {"LLVM_PROFILE_FILE": "/dev/null"}
    words = ["cargo", "test", *TESTS, "--no-run", "--message-format", "json-render-diagnostics"]
    text = subprocess.run(words, cwd=ROOT, env=quiet, check=True, stdout=subprocess.PIPE, text=True).stdout
    programs = set()
    for line in text.splitlines():
        message = json.loads(line)
        if message.get("executable"):
            programs.add(message["executable"])
        if message.get("reason") == "compiler-artifact" and "cdylib" in message["target"]["crate_types"]:
            programs.update(name for name in message["filenames"] if name.endswith(".so"))
    module = TARGET / "python"
    shutil.copytree(ROOT / "crates/python/python", module, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in programs:
        if name.endswith("_warpfold.so"):
            shutil.copy(name, module / "warpfold/_warpfold.abi3.so")
            programs = programs - {name} | {str(module / "warpfold/_warpfold.abi3.so")}
    return sorted(programs), module


def unreached(programs, names):
    """Lines of code of each file of these crates, and of them those that were never reached."""
    merged = TARGET / "counters.profdata"
    raw = sorted(str(path) for path in (TARGET / "counters").glob("*.profraw"))
    subprocess.run([llvm("llvm-profdata"), "merge", "-sparse", "-failure-mode=all", "-o", merged, *raw], check=True)
    words = [llvm("llvm-cov"), "export", "-format=lcov", "-skip-functions", "-skip-branches", f"-instr-profile={merged}"]
    objects = [word for program in programs for word in ("-object", program)][1:]
    folders = [str(ROOT / "crates" / name / "src") for name in names]
    text = subprocess.run([*words, *objects, "-sources", *folders], check=True, capture_output=True, text=True).stdout
    files, counts = {}, {}
    for line in text.splitlines():
        if line.startswith("SF:"):
            counts = files.setdefault(line[3:], {})
        elif line.startswith("DA:"):
            number, count = map(int, line[3:].split(",")[:2])
            counts[number] = max(counts.get(number, 0), count)
    return files


def runs(counts, least):
    """Runs of lines of code that are not reached, none in between that is."""
    run = []
    for number, count in [*sorted(counts.items()), (0, 1)]:
        if count == 0:
            run.append(number)
        else:
            if len(run) >= least:
                yield run[0], run[-1], len(run)
            run = []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--then", nargs="+", default=[], metavar="COMMAND")
    parser.add_argument("--least", type=int, default=3, metavar="LINES")
    parser.add_argument("--crates", nargs="+", default=["core", "cpu", "cuda", "files", "warpfold", "threads"], metavar="NAME")
    parser.add_argument("--fresh", action="store_true", help="forget the counters of earlier calls")
    parser.add_argument("--no-tests", action="store_true", help="run the named commands alone")
    args = parser.parse_args()

    env = environment()
    programs, module = build(env)
    if args.fresh:
        shutil.rmtree(TARGET / "counters", ignore_errors=True)
    if not args.no_tests:
        subprocess.run(["cargo", "test", *TESTS, "--no-fail-fast"], cwd=ROOT, env=env, check=False)
    for command in args.then:
        path = os.pathsep.join(filter(None, [str(module), os.environ.get("PYTHONPATH")]))
        subprocess.run(command, shell=True, cwd=ROOT, env=env | {"PYTHONPATH": path}, check=False)

    files = unreached(programs, args.crates)
    lines = never = 0
    for name, counts in sorted(files.items()):
        missing = sum(count == 0 for count in counts.values())
        lines, never = lines + len(counts), never + missing
        found = [f"{first}-{last}" for first, last, _ in runs(counts, args.least)]
        if found:
            print(f"{pathlib.Path(name).relative_to(ROOT)}: {missing} of {len(counts)} lines: {', '.join(found)}")
    print(f"{never} of {lines} lines of code are never reached")


if __name__ == "__main__":
    main()
