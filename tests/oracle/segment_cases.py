"""Segments: each of them against exact rational arithmetic over its elements alone."""

import random
import struct
import tempfile
from pathlib import Path

import hazards
import oracle
from rounding import BF16, F16, F32, F64

# Around what kernels take at a time, and nothing.
LENGTHS = (0, 0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130, 300)
# How offsets are stored: the .npy type, and struct's letter.
TYPES = (("<i8", "q"), ("<u8", "Q"), ("<i4", "i"), ("<u4", "I"), ("<i2", "h"), ("<u2", "H"))


def npy(kind, letter, numbers):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    body = struct.pack(f"<{len(numbers)}{letter}", *numbers)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


def cases(quick):
    for fmt in (F16, BF16, F32, F64):
        for i, name in enumerate(hazards.FINITE):
            if not quick or (i + fmt.width // 8) % 3 == 0:
                yield f"segments {name} {fmt}", fmt, hazards.FINITE[name]
        yield f"segments specials {fmt}", fmt, None


def specials(fmt, n, rng):
    """Ordinary numbers with a few infinities and NaNs among them."""
    bits = hazards.normal(fmt, n, rng)
    odd = (fmt.inf, fmt.inf | fmt.sign, fmt.nan)
    return [rng.choice(odd) if rng.random() < 0.02 else b for b in bits]


def draw(fmt, make, rng):
    lengths = [rng.choice(LENGTHS) for _ in range(rng.randint(3, 60))]
    rng.shuffle(lengths)
    bits = (make or specials)(fmt, sum(lengths) + 5, rng)
    # Offsets need not begin with the array, nor end with it.
    offsets = [rng.randint(0, 3)]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return bits, offsets


def check(warpfold, tally, write, variants, case, seed):
    name, fmt, make = case
    rng = random.Random(f"{seed} {name}")
    bits, offsets = draw(fmt, make, rng)
    pieces = [bits[start:end] for start, end in zip(offsets, offsets[1:])]
    with tempfile.TemporaryDirectory(prefix="warpfold-oracle-") as folder:
        files, flags = write(folder, "x", fmt, bits)
        kind, letter = rng.choice(TYPES)
        told = Path(folder) / "offsets.npy"
        told.write_bytes(npy(kind, letter, offsets))
        lines = Path(folder) / "offsets.txt"
        lines.write_text("".join(f"{offset}\n" for offset in offsets))
        for cpu, threads in variants:
            where = rng.choice((told, lines))

            def ask(op, wanted, *more):
                got = warpfold.run(op, *files, *flags, "--segments", where, "--hex", *more, cpu=cpu, threads=threads)
                tally.expect(f"{name}: {op} {' '.join(map(str, more))}, WARPFOLD_CPU={cpu} -j {threads}", got.split(), wanted)

            sums = [oracle.sums(fmt, fmt, piece) for piece in pieces]
            for op in oracle.SUMS:
                ask(op, [fmt.hex(one[op]) for one in sums])
            if make is None:
                continue
            # Extremes have no value of no elements: the error names the first segment, or a value takes part.
            first = next((i for i, piece in enumerate(pieces) if not piece), None)
            if first is not None:
                got = warpfold.run("min", *files, *flags, "--segments", where, cpu=cpu, threads=threads)
                tally.expect(f"{name}: min of nothing", f"segment {first}: min of no elements" in got, True)
            infinity = fmt.inf
            wanted = [fmt.hex(oracle.order(fmt, piece)["min"] if piece else infinity) for piece in pieces]
            ask("min", wanted, "--initial", "inf")
            full = [i for i, piece in enumerate(pieces) if piece]
            if not full:
                continue
            # Without the empty ones: positions count from each segment's first element.
            some = Path(folder) / "some.npy"
            runs = [offsets[full[0]]] + [offsets[i + 1] for i in full]
            some.write_bytes(npy("<i8", "q", runs))
            for op in oracle.ORDER:
                got = warpfold.run(op, *files, *flags, "--segments", some, "--hex", cpu=cpu, threads=threads)
                wanted = [oracle.order(fmt, pieces[i])[op] for i in full]
                if op.startswith("arg"):
                    numbers = [int(word, 0) for word in got.split()] if not got.startswith("exit") else got
                    tally.expect(f"{name}: {op}", numbers, wanted)
                else:
                    tally.expect(f"{name}: {op}", got.split(), [fmt.hex(w) for w in wanted])
