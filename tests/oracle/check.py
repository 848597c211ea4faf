#!/usr/bin/env python3
"""Holds a warpfold binary against exact rational arithmetic, bit for bit.

    python3 tests/oracle/check.py target/debug/warpfold            everything, some minutes
    python3 tests/oracle/check.py --quick target/debug/warpfold    a cross-section, under a minute
    python3 tests/oracle/check.py --self-test                      the oracle against Python

Needs Python 3.9 and its standard library. Every case depends on its name and the
seed alone, so `--only NAME` repeats it. Exit status: 0, or 3 if anything differs.
"""

import argparse
import json
import os
import random
import struct
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True

import hazards  # noqa: E402
import oracle  # noqa: E402
import segment_cases  # noqa: E402
import self_test  # noqa: E402
from binary import Warpfold, instruction_sets  # noqa: E402
from rounding import BF16, F16, F32, F64  # noqa: E402

SIZES = (0, 1, 2, 63, 64, 65, 1000, 4097, 20000)
FAILURES_SHOWN = 25
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"


class Tally:
    """Counts, and prints the first failures; safe to share among threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.passed = self.failed = 0

    def expect(self, what, got, wanted):
        with self.lock:
            if got == wanted:
                self.passed += 1
                return
            self.failed += 1
            if self.failed <= FAILURES_SHOWN:
                print(f"FAIL {what}\n  got    {got}\n  wanted {wanted}", flush=True)


def npy(fmt, bits):
    """A .npy file of version 1.0, or raw bytes for bf16, which .npy cannot name."""
    raw = pack(fmt, bits)
    if fmt is BF16:
        return raw
    header = f"{{'descr': '<f{fmt.size}', 'fortran_order': False, 'shape': ({len(bits)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + raw


def pack(fmt, bits):
    return struct.pack(f"<{len(bits)}{'H' if fmt.size == 2 else 'I' if fmt.size == 4 else 'Q'}", *bits)


def write(folder, name, fmt, bits):
    """The arguments that make warpfold read `bits`."""
    path = Path(folder) / (name + (".bin" if fmt is BF16 else ".npy"))
    path.write_bytes(npy(fmt, bits))
    return [path], raw_flags(fmt, len(bits)) if fmt is BF16 else []


def raw_flags(fmt, n):
    return ["--dtype", fmt.name, "--shape", n]


class Case:
    """One array (or two, for `dot`) and the answers it must give."""

    def __init__(self, name, fmt, make, pair=None):
        self.name = f"{name} {fmt}"
        self.fmt = fmt
        self.make = make
        self.pair = pair

    def check(self, warpfold, tally, variants, seed):
        rng = random.Random(f"{seed} {self.name}")
        xs, ys = self.pair(self.fmt, rng) if self.pair else (self.make(self.fmt, rng), None)
        with tempfile.TemporaryDirectory(prefix="warpfold-oracle-") as folder:
            if ys is None:
                self.check_one(warpfold, tally, variants, folder, xs)
                # The array against itself backwards: cheap, and no perfect squares.
                ys = xs[::-1]
            if not any(b & ~self.fmt.sign >= self.fmt.inf for b in xs):
                self.check_dot(warpfold, tally, variants, folder, xs, ys)

    def check_one(self, warpfold, tally, variants, folder, bits):
        fmt = self.fmt
        files, flags = write(folder, "x", fmt, bits)
        # Narrow types: the same state asked for in f64 must round once from the state.
        for out in {fmt, F64} if fmt is not F64 else {F64}:
            wanted = {op: out.hex(b) for op, b in oracle.sums(fmt, out, bits).items()}
            operations = list(oracle.SUMS)
            extra = ["--out", out.name] if out is not fmt else []
            for cpu, threads in variants:
                got, error = warpfold.table(operations, *files, *flags, *extra, cpu=cpu, threads=threads)
                for op in operations:
                    what = f"{self.name}: {op} as {out}, WARPFOLD_CPU={cpu} -j {threads}"
                    tally.expect(what, error or got.get(op), wanted[op])
        if bits and not any(b & ~fmt.sign >= fmt.inf for b in bits):
            wanted = oracle.order(fmt, bits)
            for cpu, threads in variants:
                got, error = warpfold.table(oracle.ORDER, *files, *flags, cpu=cpu, threads=threads)
                for op in oracle.ORDER:
                    what = f"{self.name}: {op}, WARPFOLD_CPU={cpu} -j {threads}"
                    text = error or got.get(op)
                    if op.startswith("arg"):
                        text = integer(text)
                        tally.expect(what, text, wanted[op])
                    else:
                        tally.expect(what, text, fmt.hex(wanted[op]))

    def check_dot(self, warpfold, tally, variants, folder, xs, ys):
        a, flags = write(folder, "a", self.fmt, xs)
        b, _ = write(folder, "b", self.fmt, ys)
        wanted = self.fmt.hex(oracle.dot(self.fmt, self.fmt, xs, ys))
        for cpu, threads in variants:
            got = warpfold.run("dot", *a, *b, *flags, "--hex", cpu=cpu, threads=threads)
            tally.expect(f"{self.name}: dot, WARPFOLD_CPU={cpu} -j {threads}", got, wanted)


def integer(text):
    try:
        return int(text, 0)
    except (TypeError, ValueError):
        return None


def cases(quick):
    for fmt in (F16, BF16, F32, F64):
        for name, vector in [*hazards.edges(fmt).items(), *hazards.specials(fmt).items()]:
            yield Case(name, fmt, lambda _fmt, _rng, v=vector: v), len(vector)
        for i, (name, make) in enumerate(hazards.FINITE.items()):
            for j, n in enumerate(SIZES):
                # A cross-section: each hazard meets a third of the sizes, in each format another third.
                if quick and (n == SIZES[-1] or (i + j + fmt.width // 8 + fmt.mant) % 3):
                    continue
                yield Case(f"{name} n={n}", fmt, lambda f, r, g=make, n=n: g(f, n, r)), n
        for n in (2, 65, 1000) if quick else (2, 3, 64, 65, 1000, 4097):
            pair = lambda f, r, n=n: hazards.cancelling_pair(f, n, r)  # noqa: E731
            yield Case(f"cancelling pair n={n}", fmt, None, pair), n


def variants_for(index, n, quick, sets):
    """Pairs (WARPFOLD_CPU, -j). The quick run gives small arrays one pair each, in turn."""
    everything = [(cpu, threads) for cpu in sets for threads in (1, 2)]
    if not quick:
        return everything
    if n < 1000:
        return [everything[index % len(everything)]]
    return [(cpu, 1 + (index + k) % 2) for k, cpu in enumerate(sets)]


def pieces(n, rng):
    """Seven uneven runs that cover 0..n, one of them short, in random order."""
    cuts = sorted(rng.sample(range(1, n), 5))
    cuts.append(cuts[-1] + 1 if cuts[-1] + 1 < n else cuts[-1] - 1)
    bounds = [0, *sorted(cuts), n]
    runs = list(zip(bounds, bounds[1:]))
    rng.shuffle(runs)
    return runs


def balanced(fmt, n, rng):
    """Factors whose product stays near 1."""
    xs = [rng.uniform(1.0, 2.0) for _ in range((n + 1) // 2)]
    return hazards.encode(fmt, [y for x in xs for y in (x, 1 / x)][:n])


MERGES = (
    ("sum", hazards.wide),
    ("var", hazards.offset),
    ("norm2", hazards.wide),
    ("argmin", lambda fmt, n, rng: [hazards.power(fmt, rng.randint(0, 9)) for _ in range(n)]),
    ("argmax", hazards.normal),
    ("prod", balanced),
    ("logsumexp", hazards.normal),
)


def check_merge(warpfold, tally, fmt, n, merge, round_number, seed):
    """States of seven slices, merged in any order, finish as one run over the whole does."""
    op, make = merge
    name = " ".join([op, str(fmt), f"n={n}", f"round {round_number}"])
    rng = random.Random(f"{seed} merge {name}")
    bits = make(fmt, n, rng)
    with tempfile.TemporaryDirectory(prefix="warpfold-oracle-") as folder:
        whole = Path(folder) / "whole.bin"
        whole.write_bytes(pack(fmt, bits))
        single = warpfold.run(op, whole, *raw_flags(fmt, n), "--hex")
        tally.expect(f"merge {name}: the single run succeeds", single.startswith("0x"), True)
        states = []
        for i, (start, end) in enumerate(pieces(n, rng)):
            part, state = Path(folder) / f"{i}.bin", Path(folder) / f"{i}.state"
            part.write_bytes(pack(fmt, bits[start:end]))
            said = warpfold.run(
                "partial", op, part, "-o", state, "--start", start, *raw_flags(fmt, end - start),
                threads=1 + i % 2,
            )
            if said.startswith("exit "):
                tally.expect(f"partial {name}, rows {start} to {end}", said, "success")
            states.append(state)
        merged = warpfold.run("merge", *states, "--hex")
        tally.expect(f"merge {name}", merged, single)


def check_example(warpfold, tally, name, flags, wanted):
    """A real file against the values that stand beside it."""
    operations = [op for op in wanted if op not in ("rows", "missing")]
    got, error = warpfold.table(operations, EXAMPLES / name, *flags)
    for op in operations:
        text = error or got.get(op)
        what = f"example {' '.join([name, *flags])}: {op}"
        if isinstance(wanted[op], dict):
            tally.expect(what, text, wanted[op]["bits"])
        else:
            tally.expect(what, integer(text), wanted[op])


def examples():
    expected = json.loads((EXAMPLES / "expected.json").read_text())
    for name, columns in expected.items():
        if name.endswith(".csv"):
            for column, wanted in columns.items():
                # What is expected is of floats, also of columns of integers.
                yield name, ["-c", column, "--dtype", "f64"], wanted
        else:
            yield name, [], columns["all"]


def check_all(warpfold, options):
    tally = Tally()
    # A device's answers do not depend on the processor's instructions.
    sets = instruction_sets() if options.device in (None, "auto", "cpu") else [None]
    where = f"instruction sets: {', '.join(map(str, sets))}" if sets != [None] else f"device: {options.device}"
    print(f"{where}; seed {options.seed}", flush=True)
    chosen = [
        (case, variants_for(i, n, options.quick, sets))
        for i, (case, n) in enumerate(cases(options.quick))
        if options.only is None or options.only in case.name
    ]
    merges = [
        (fmt, n, merge, r)
        for fmt in (F32, F64)
        for merge in MERGES
        for n in ((20011,) if options.quick else (8, 4097, 20011, 300007))
        for r in range(1 if options.quick else 2)
        if options.only is None or options.only in f"merge {merge[0]}"
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(c.check, warpfold, tally, v, options.seed) for c, v in chosen]
        jobs += [pool.submit(check_merge, warpfold, tally, *m, options.seed) for m in merges]
        jobs += [
            pool.submit(segment_cases.check, warpfold, tally, write, variants_for(i, 0, options.quick, sets), case, options.seed)
            for i, case in enumerate(segment_cases.cases(options.quick))
            if options.device in (None, "auto", "cpu") and (options.only is None or options.only in case[0])
        ]
        jobs += [
            pool.submit(check_example, warpfold, tally, *e)
            for e in examples()
            if options.only is None or options.only in f"example {e[0]}"
        ]
        for job in jobs:
            job.result()
    return tally.passed, tally.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", nargs="?", help="the warpfold binary")
    parser.add_argument("--quick", action="store_true", help="a cross-section in under a minute")
    parser.add_argument("--self-test", action="store_true", help="test the oracle itself")
    parser.add_argument("--only", metavar="NAME", help="the cases whose name contains NAME")
    parser.add_argument("--device", help="where to reduce, as warpfold's flag (default auto)")
    parser.add_argument("--seed", default="1", help="another seed, other data (default 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    options = parser.parse_args()
    if not options.self_test and options.binary is None:
        parser.error("name the binary, or ask for --self-test")
    passed = failed = 0
    if options.self_test:
        passed, failed = self_test.run(options.seed)
    if options.binary is not None:
        more = check_all(Warpfold(options.binary, options.device), options)
        passed, failed = passed + more[0], failed + more[1]
    if passed + failed == 0:
        print("no case has such a name")
        return 2
    print(f"{passed} passed, {failed} failed")
    return 3 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
