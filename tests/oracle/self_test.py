"""The oracle's own test, against Python's arithmetic where that rounds correctly.

Integer division, `math.fsum`, `math.sqrt` and `struct.pack` round once; bf16 is
held against the known bit trick on f32.
"""

import math
import random
import struct
from fractions import Fraction

import hazards
import oracle
from rounding import BF16, F16, F32, F64, round_sqrt, round_to, value


def float_bits(x, code="d", pattern="Q"):
    return struct.unpack("<" + pattern, struct.pack("<" + code, x))[0]


def or_infinity(f, *args):
    try:
        return f(*args)
    except OverflowError:
        return math.inf


def random_ratio(rng):
    num, den = (rng.getrandbits(rng.randint(1, 1200)) | 1 for _ in range(2))
    return Fraction(num, den)


def checks(rng):
    """Pairs (what is compared, got, wanted)."""
    for _ in range(20000):
        x = random_ratio(rng)
        if rng.random() < 0.2:  # into the subnormals
            x = x / 2**1000
        yield "f64 of a ratio", round_to(F64, x), float_bits(or_infinity(float, x))
        yield "f64 of a negative ratio", round_to(F64, -x), float_bits(-or_infinity(float, x))
    for _ in range(20000):
        bits = rng.getrandbits(64) & ~F64.sign
        if bits >= F64.inf:
            continue
        # Random bits seldom fall into the narrow formats: bring half of them there.
        x = struct.unpack("<d", struct.pack("<Q", bits))[0]
        if rng.random() < 0.8:
            x = math.ldexp(1 + rng.random(), rng.randint(-152, 129))
        if rng.random() < 0.3:  # exactly half-way between two f16
            x = math.ldexp(rng.getrandbits(11) * 2 + 1, rng.randint(-27, 5))
        exact = Fraction(x)
        f32 = or_infinity(struct.pack, "<f", x)
        f32 = F32.inf if f32 == math.inf else struct.unpack("<I", f32)[0]
        f16 = or_infinity(struct.pack, "<e", x)
        f16 = F16.inf if f16 == math.inf else struct.unpack("<H", f16)[0]
        yield "f32 of an f64", round_to(F32, exact), f32
        yield "f16 of an f64", round_to(F16, exact), f16
        yield "f64 of itself", value(F64, round_to(F64, exact)), exact
        yield "sqrt", round_sqrt(F64, exact), float_bits(math.sqrt(x))
        if f32 < F32.inf:
            upper = (f32 + 0x7FFF + (f32 >> 16 & 1)) >> 16
            yield "bf16 of an f32", round_to(BF16, value(F32, f32)), upper
            yield "bf16 is half an f32", value(BF16, upper) if upper < BF16.inf else 0, (
                Fraction(struct.unpack("<f", struct.pack("<I", upper << 16))[0]) if upper < BF16.inf else 0
            )
    for _ in range(20000):
        # A perfect square, and its neighbours, decide the sticky bit.
        root = rng.getrandbits(54) | 1
        for near in (-1, 0, 1):
            got = round_sqrt(F64, Fraction(root * root * 2**64 + near, 4))
            lower = Fraction(root) * 2**31
            tie_free = {-1: lower - Fraction(1, 2**40), 0: lower, 1: lower + Fraction(1, 2**40)}
            yield "sqrt beside a square", got, round_to(F64, tie_free[near])
    for name, make in hazards.FINITE.items():
        for n in (1, 2, 65, 500):
            for _ in range(20):
                bits = make(F64, n, rng)
                xs = [struct.unpack("<d", struct.pack("<Q", b))[0] for b in bits]
                try:
                    total = math.fsum(xs)
                except OverflowError:
                    continue
                got = oracle.sums(F64, F64, bits)["sum"]
                yield f"fsum of {name}", got, 0 if total == 0 else float_bits(total)
    for fmt in (F16, BF16, F32, F64):
        for name, make in hazards.FINITE.items():
            bits = make(fmt, 300, rng)
            yield f"{name} {fmt}: length", len(bits), 300
            yield f"{name} {fmt}: finite", all(b & ~fmt.sign < fmt.inf for b in bits), True
            answers = oracle.sums(fmt, F64, bits)
            if answers["norm2"] != F64.inf:
                wanted = math.sqrt(sum(value(fmt, b) ** 2 for b in bits)) if fmt is not F64 else None
                if wanted:
                    got = struct.unpack("<d", struct.pack("<Q", answers["norm2"]))[0]
                    yield f"{name} {fmt}: norm2", abs(got - wanted) <= 4e-16 * wanted, True
        conditions = []
        for n in (500, 501):
            bits = hazards.cancelling(fmt, n, rng)
            total = sum(value(fmt, b) for b in bits)
            size = sum(abs(value(fmt, b)) for b in bits)
            conditions.append(total == 0 or size / abs(total) > 2**6)
        yield f"cancelling {fmt} cancels", all(conditions), True
        xs, ys = hazards.cancelling_pair(fmt, 500, rng)
        products = [value(fmt, x) * value(fmt, y) for x, y in zip(xs, ys)]
        total, size = sum(products), sum(map(abs, products))
        yield f"cancelling_pair {fmt} cancels", total == 0 or size / abs(total) > 2**4, True
    edge = hazards.edges(F64)
    largest = F64.inf - 1
    for name, wanted in {
        "max + quarter ulp": largest,
        "max + half ulp": F64.inf,
        "max + half ulp - least": largest,
        "-max - half ulp + least": F64.sign | largest,
        "max + max - max": largest,
        "1 + half ulp": float_bits(1.0),
        "1 + half ulp + least": float_bits(1.0) + 1,
        "odd + half ulp": float_bits(1.0) + 2,
        "minus zeros": 0,
    }.items():
        yield f"edge {name}", oracle.sums(F64, F64, edge[name])["sum"], wanted


def run(seed):
    """(passed, failed), printing each failure."""
    passed = failed = 0
    for what, got, wanted in checks(random.Random(seed)):
        if got == wanted:
            passed += 1
        else:
            failed += 1
            if failed <= 20:
                print(f"FAIL self-test, {what}: got {got}, wanted {wanted}")
    return passed, failed
