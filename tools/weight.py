#!/usr/bin/env python3
"""Prints what the project weighs, and fails where it is more than `tools/weight.toml` allows.

    tools/weight.py                   what can be read off: lines, crates in graphs, kernels, and the size of what is built already
    tools/weight.py --programs        and builds two small programs as others would, in dev and release
    tools/weight.py --build           and builds the command and the tests from nothing, by crate
    tools/weight.py --tests           and runs each binary of tests alone
    tools/weight.py --slowest NAME    and runs each test of a binary alone, "engine" for instance; prints the twenty slowest
    tools/weight.py --wheel           and makes the wheel
    tools/weight.py --all             all of that: half an hour of processor time
    tools/weight.py --record NAME     and writes the table to benches/records/DATE-NAME.md

Times are user and system seconds of all processes together. They are recorded and have no limit: one machine took 201 to 306 s for
the same code, by what its neighbours did. What a compiler writes takes its time, and that is the same everywhere, so that bytes are
limited. What is built from nothing is built in a folder of its own, from what the registry's cache has. Tests are those of the last
build, brought up to date; with `--build`, those built from nothing. Needs Python 3.11.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import tomllib
except ImportError:
    print("skipped: tools/weight.py needs Python 3.11")
    sys.exit()

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
LIMITS = ROOT / "tools/weight.toml"
ARCHIVE = ROOT / "crates/cuda/kernels/kernels.archive"

# What depends on the machine.
SECONDS = ("build", "crate", "tests", "slowest")

# What is measured, by section: what a figure is.
UNITS = {
    "lines": "lines of src, by crate",
    "crates": "crates in the graph",
    "kernels": "modules of kernels, and bytes of their archive",
    "bytes": "bytes, stripped",
    "compiled": "bytes of the library's crates as a small program has them compiled",
    "calls": "vector instructions of the CPU backend that are calls, since what uses them was compiled apart",
    "build": "seconds of processor time, built from nothing",
    "crate": "seconds of processor time of the compiler, by crate: ten largest of the command, and of the tests",
    "tests": "seconds of processor time, by binary of tests",
    "slowest": "seconds of processor time, by test: twenty slowest of a binary, each in a process of its own",
}

# As a wrapper of rustc: what each call took goes to a file, a line for each.
WRAPPER = """#!/usr/bin/env python3
import os, resource, sys
words = sys.argv[1:]
pid = os.posix_spawnp(words[0], words, os.environ)
_, status, used = os.wait4(pid, 0)
name = words[words.index("--crate-name") + 1] if "--crate-name" in words else "-"
what = " (tests)" if "--test" in words else ""
with open(os.environ["WEIGHT_LOG"], "a") as log:
    log.write(f"{used.ru_utime + used.ru_stime:.2f} {name}{what}\\n")
sys.exit(os.waitstatus_to_exitcode(status))
"""

SUM = """fn main() {
    let numbers: Vec<f64> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    println!("{}", warpfold::sum(&numbers));
}
"""

REDUCTION = """use warpfold::{Op, Reduction};

fn main() -> Result<(), warpfold::Error> {
    let numbers: Vec<f64> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    println!("{}", Reduction::new([Op::Mean, Op::Max]).run(&numbers)?);
    Ok(())
}
"""


def spent(command, **more):
    """Runs a command, and gives the processor time of it and of its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime), done


def environment(folder, **more):
    """That of a build in a folder of its own: as anybody's, whatever the CI sets."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO_PROFILE_", "CARGO_INCREMENTAL"))}
    return kept | {"CARGO_TARGET_DIR": str(folder)} | more


def lines():
    """Lines of each crate's sources that git knows."""
    for folder in sorted((ROOT / "crates").iterdir()):
        if (folder / "Cargo.toml").exists():
            listed = subprocess.run(["git", "ls-files", "-z", "src"], cwd=folder, check=True, capture_output=True, text=True).stdout
            files = [folder / name for name in listed.split("\0") if name.endswith(".rs") and (folder / name).exists()]
            yield folder.name, sum(path.read_bytes().count(b"\n") for path in files)


def crates():
    """Crates of a program with the library, and of the command, their own included."""
    for name, package in (("library", "warpfold"), ("command", "warpfold-cli")):
        words = ["cargo", "tree", "--quiet", "--package", package, "--edges", "normal", "--prefix", "none"]
        tree = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        yield name, len({line.removesuffix(" (*)") for line in tree.splitlines()})


def kernels(archive):
    """The modules of an archive, by its index (crates/cuda/src/archive.rs), and its bytes."""
    data = archive.read_bytes()
    magic, version, groups = struct.unpack_from("<4sII", data)
    if (magic, version) != (b"WFka", 3):
        sys.exit(f"error: {archive} is no archive of version 3\nhint: crates/cuda/src/archive.rs has the format; bring tools/weight.py up to date")
    at, modules = 12, 0
    for _ in range(groups):
        _, count = struct.unpack_from("<II", data, at)
        at += 8
        modules += count
        for _ in range(count):
            (length,) = struct.unpack_from("<H", data, at)
            at += 6 + length
    yield "modules", modules
    yield "archive", len(data)


def stripped(path):
    """The size of a program without its symbols."""
    strip = shutil.which("strip")
    if not strip:
        return path.stat().st_size
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / path.name
        subprocess.run([strip, "-o", copy, path], check=True)
        return copy.stat().st_size


def built():
    """The size of what is there."""
    command = TARGET / "release/warpfold"
    if command.exists():
        yield "command", stripped(command)
    yield from (("wheel", path.stat().st_size) for path in sorted((TARGET / "weight/wheels").glob("warpfold-*.whl")))


# The name of a function for a vector instruction of x86-64, as compilers have it.
INTRINSIC = re.compile(rb"core_arch3x86[0-9]+(?:avx|fma|f16c)[0-9a-z]*?[0-9]+(_+mm[0-9a-z_]+)")


def calls(library):
    """The vector instructions that a library has functions for. Each is one instruction where it is inlined, and a call where a closure
    or a function around it was not: such were 20 times as slow."""
    return set(INTRINSIC.findall(library.read_bytes()))


def programs(folder):
    """Small programs: what a function and a question bring along, and what it costs to build them."""
    package = folder / "programs"
    (package / "src/bin").mkdir(parents=True)
    (package / "src/bin/sum.rs").write_text(SUM)
    (package / "src/bin/reduction.rs").write_text(REDUCTION)
    dependency = json.dumps(str(ROOT / "crates/warpfold"))
    (package / "Cargo.toml").write_text(
        f'[package]\nname = "programs"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\nwarpfold = {{ path = {dependency} }}\n\n'
        "[profile.release]\nstrip = true\n\n[workspace]\n"
    )
    shutil.copy(ROOT / "Cargo.lock", package)
    at = folder / "target-programs"
    for profile, words in (("dev", []), ("release", ["--release"])):
        seconds, _ = spent(["cargo", "build", "--quiet", "--bin", "sum", *words], cwd=package, env=environment(at))
        yield "build", f"a program with sum, {profile}", seconds
        libraries = (at / ("debug" if profile == "dev" else profile) / "deps").glob("libwarpfold*.rlib")
        yield "compiled", profile, sum(path.stat().st_size for path in libraries)
    for library in (at / "release/deps").glob("libwarpfold_cpu-*.rlib"):
        yield "calls", "release", len(calls(library))
    subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=package, env=environment(at), check=True)
    for name in ("sum", "reduction"):
        yield "bytes", f"a program with {name}", (at / "release" / name).stat().st_size


def by_crate(log):
    """The processor time of the compiler for each crate, largest first."""
    total = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        seconds, _, name = line.partition(" ")
        total[name] = total.get(name, 0) + float(seconds)
    return sorted(total.items(), key=lambda item: -item[1])


def timed(folder, name, words):
    """Builds from nothing with the wrapper, and gives the time, that of each crate, and what cargo says."""
    wrapper, log = folder / "rustc.py", folder / f"{name}.log"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    env = environment(folder / f"target-{name}", RUSTC_WRAPPER=str(wrapper), WEIGHT_LOG=str(log))
    seconds, done = spent(["cargo", *words], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    return seconds, by_crate(log), done.stdout


def command(folder):
    """The README's first command."""
    seconds, parts, _ = timed(folder, "command", ["build", "--release", "--quiet", "--package", "warpfold-cli"])
    yield "build", "the command, release", seconds
    yield from (("crate", f"{name}, release", took) for name, took in parts[:10])
    yield "bytes", "command", stripped(folder / "target-command/release/warpfold")


# The README's second command, but for running what it builds.
BUILD_TESTS = ["test", "--workspace", "--no-run", "--quiet", "--message-format", "json"]


def building_tests(folder):
    """What it takes to build the tests from nothing."""
    seconds, parts, _ = timed(folder, "tests", BUILD_TESTS)
    yield "build", "the tests", seconds
    yield from (("crate", name, took) for name, took in parts[:10])


def binaries(env):
    """The binaries of tests, brought up to date: a name, the program, and the folder that it runs in."""
    said = subprocess.run(["cargo", *BUILD_TESTS], cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    for message in map(json.loads, said.splitlines()):
        if message.get("executable") and message["profile"]["test"]:
            target, where = message["target"], pathlib.Path(message["manifest_path"]).parent
            kind = "" if target["kind"] == ["test"] else ", within the crate"
            yield f"{where.name} {target['name']}{kind}", message["executable"], where


def tests(env):
    """What the README's second command runs, one binary after the other."""
    total = 0
    for name, program, where in binaries(env):
        took, _ = spent([program, "--quiet"], cwd=where, stdout=subprocess.DEVNULL)
        total += took
        yield "tests", name, took
    took, _ = spent(["cargo", "test", "--workspace", "--doc", "--quiet"], cwd=ROOT, env=env, stdout=subprocess.DEVNULL)
    yield "tests", "examples in the documentation", took
    yield "tests", "all", total + took


def slowest(env, wanted):
    """The slowest tests of the binaries with a word in their names."""
    took = {}
    for name, program, where in binaries(env):
        if wanted in name.replace(",", "").split():
            listed = subprocess.run([program, "--list", "--format", "terse"], cwd=where, check=True, stdout=subprocess.PIPE, text=True).stdout
            for test in (line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")):
                took[f"{name}: {test}"], _ = spent([program, "--quiet", "--exact", test], cwd=where, stdout=subprocess.DEVNULL)
    if not took:
        sys.exit(f"error: no binary of tests is called {wanted}\nhint: tools/weight.py --tests names them")
    yield from (("slowest", name, took[name]) for name in sorted(took, key=took.get, reverse=True)[:20])
    yield "slowest", "all of them", sum(took.values())


def wheel(folder):
    """What `pip install ./crates/python` does before it installs."""
    wheels = TARGET / "weight/wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, "./crates/python"]
    seconds, _ = spent(words, cwd=ROOT, env=environment(folder / "target-wheel"))
    yield "build", "the wheel", seconds
    yield from (("bytes", "wheel", path.stat().st_size) for path in wheels.glob("warpfold-*.whl"))


def measure(options, folder):
    """All figures that are asked for, by section and name; later ones count."""
    found = {section: {} for section in UNITS}
    found["lines"].update(lines())
    found["crates"].update(crates())
    found["kernels"].update(kernels(ARCHIVE))
    found["bytes"].update(built())
    env = environment(folder / "target-tests") if options.build or options.all else None
    asked = [
        (options.programs, lambda: programs(folder)),
        (options.build, lambda: command(folder)),
        (options.build, lambda: building_tests(folder)),
        (options.tests, lambda: tests(env)),
        (options.wheel, lambda: wheel(folder)),
    ]
    for wanted, part in asked:
        for section, name, value in part() if wanted or options.all else ():
            found[section][name] = value
    if options.slowest:
        found["slowest"].update((name, value) for _, name, value in slowest(env, options.slowest))
    return found


def judge(found, limits):
    """The rows of the table, and what is over its limit, or is a limit of nothing."""
    rows, faults = [], []
    for section in limits.keys() - UNITS.keys():
        faults.append(f"[{section}] is no section: there are {', '.join(UNITS)}")
    faults += [f"[{section}] is of a machine, and has no limits" for section in SECONDS if section in limits]
    # What is always measured is known by its name, so that no limit is lost with a name.
    for section in ("lines", "crates", "kernels"):
        faults += [f"{section}: there is no {name}" for name in limits.get(section, {}).keys() - found[section].keys()]
    for section, figures in found.items():
        allowed = limits.get(section, {})
        for name, value in figures.items():
            most = allowed.get(name)
            rows.append((section, name, value, most))
            if most is not None and value > most:
                faults.append(f"{section}, {name}: {value:.0f} is more than {most}")
    return rows, sorted(faults)


def table(rows):
    """The table as Markdown, a section after the other."""
    out, last = [], None
    for section, name, value, most in rows:
        if section != last:
            out += [""] * bool(last) + [f"## {section}: {UNITS[section]}", "", "| | measured | at most |", "|---|---|---|"]
            last = section
        out.append(f"| {name} | {value:.0f} | {'' if most is None else most} |")
    return "\n".join(out)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for part in ("programs", "build", "tests", "wheel", "all"):
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--slowest", metavar="NAME", help="a binary of tests")
    parser.add_argument("--limits", type=pathlib.Path, default=LIMITS, help="another file of limits")
    parser.add_argument("--record", metavar="NAME", help="writes benches/records/DATE-NAME.md")
    options = parser.parse_args(arguments)
    limits = tomllib.loads(options.limits.read_text())
    (TARGET / "weight").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TARGET / "weight") as folder:
        rows, faults = judge(measure(options, pathlib.Path(folder)), limits)
    text = table(rows)
    print(text)
    if options.record:
        today = datetime.date.today().isoformat()
        about = f"{platform.machine()}, {os.cpu_count()} processors, {platform.system()} {platform.release()}. `tools/weight.py {' '.join(arguments or sys.argv[1:])}`."
        path = ROOT / f"benches/records/{today}-{options.record}.md"
        path.write_text(f"# {today}, what the project weighs\n\n{about}\n\n{text}\n")
        print(f"written: {path}")
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    if faults:
        print("hint: make it lighter, or raise the limit in tools/weight.toml and say why in the commit", file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
