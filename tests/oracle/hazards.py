"""Data that finds wrong sums: each generator is one hazard and gives bit patterns.

Every generator takes (format, n, rng). Values are finite unless it says so.
"""

import struct

from rounding import BF16, F16, round_to, scaled, units
from fractions import Fraction

# How far the exponents of "wide" data reach, within each format's normal range.
REACH = {"f16": 14, "bf16": 120, "f32": 120, "f64": 300}


def encode(fmt, xs):
    """Python floats as bit patterns; bf16 by cutting off the lower half of an f32."""
    code, pattern = {"f16": "eH", "bf16": "fI", "f32": "fI", "f64": "dQ"}[fmt.name]
    raw = struct.pack(f"<{len(xs)}{code}", *xs)
    bits = list(struct.unpack(f"<{len(xs)}{pattern}", raw))
    return [b >> 16 for b in bits] if fmt is BF16 else bits


def power(fmt, exponent):
    """The bits of 2^exponent, which must be representable."""
    return round_to(fmt, scaled(1, exponent))


def at(fmt, exponent, rng):
    """A random value of magnitude in [2^exponent, 2^(exponent + 1)), normal numbers only."""
    biased = exponent - fmt.lsb - fmt.mant + 1
    return rng.choice((0, fmt.sign)) | biased << fmt.mant | rng.getrandbits(fmt.mant)


def largest(fmt):
    return fmt.inf - 1


def uniform(fmt, n, rng):
    return encode(fmt, [rng.random() for _ in range(n)])


def normal(fmt, n, rng):
    return encode(fmt, [rng.gauss(0.0, 1.0) for _ in range(n)])


def offset(fmt, n, rng):
    """A large mean and a small spread: the variance that one-pass formulas lose."""
    centre = 1000.0 if fmt in (F16, BF16) else 1e6
    return encode(fmt, [centre + rng.random() for _ in range(n)])


def any_bits(fmt, n, rng):
    """Random bits: every exponent equally often."""
    out = []
    while len(out) < n:
        bits = rng.getrandbits(fmt.width)
        if bits & ~fmt.sign < fmt.inf:
            out.append(bits)
    return out


def wide(fmt, n, rng):
    reach = REACH[fmt.name]
    return [at(fmt, rng.randint(-reach, reach), rng) for _ in range(n)]


def clusters(fmt, n, rng):
    """Exponents that jump from one end of the range to the other."""
    low, high = fmt.lsb + fmt.mant, fmt.lsb + fmt.mant + (fmt.inf >> fmt.mant) - 2
    return [at(fmt, low + 137 * i % (high - low + 1), rng) for i in range(n)]


def subnormal(fmt, n, rng):
    return [rng.choice((0, fmt.sign)) | rng.randint(1, (1 << fmt.mant) - 1) for _ in range(n)]


def sparse(fmt, n, rng):
    """99% zeros."""
    return [at(fmt, rng.randint(-8, 8), rng) if rng.random() < 0.01 else 0 for _ in range(n)]


def top(fmt, n, rng):
    """The largest values, of both signs: partial sums overflow, the total may not."""
    return [rng.choice((0, fmt.sign)) | (largest(fmt) - rng.getrandbits(2)) for _ in range(n)]


def cancelling(fmt, n, rng):
    """Massive cancellation, after GenSum (Ogita, Rump, Oishi 2005, algorithm 6.1 for sums)."""
    reach = REACH[fmt.name] // 2
    half = n // 2
    out = [at(fmt, rng.randint(-reach, reach), rng) for _ in range(half)]
    total = sum(units(fmt, b) for b in out)
    for i in range(n - half):
        # Each further value cancels all but a shrinking part of the sum so far.
        exponent = reach - 2 * reach * i // max(n - half - 1, 1)
        rest = scaled(units(fmt, at(fmt, exponent, rng)) - total, fmt.lsb)
        bits = finite(fmt, round_to(fmt, rest))
        out.append(bits)
        total += units(fmt, bits)
    rng.shuffle(out)
    return out


def finite(fmt, bits):
    return bits - 1 if bits & ~fmt.sign == fmt.inf else bits


def ties(fmt, n, rng):
    """Sums that lie half-way between two values, or one smallest unit beside it."""
    if n < 2:
        return [at(fmt, 0, rng) for _ in range(n)]
    out = [at(fmt, 2, rng) & ~fmt.sign, power(fmt, 2 - fmt.mant - 1)]
    nudge = rng.choice((None, 1, fmt.sign | 1))
    if nudge is not None and n > 2:
        out.append(nudge)
    while len(out) + 2 <= n:
        x = at(fmt, rng.randint(-10, 10), rng)
        out += [x, x ^ fmt.sign]
    out += [0] * (n - len(out))
    rng.shuffle(out)
    return out


FINITE = {
    f.__name__: f
    for f in (uniform, normal, offset, any_bits, wide, clusters, subnormal, sparse, top, cancelling, ties)
}


def cancelling_pair(fmt, n, rng):
    """Two arrays whose products cancel, after GenDot (same paper)."""
    reach = REACH[fmt.name] // 4
    half = n // 2
    xs = [at(fmt, rng.randint(-reach, reach), rng) for _ in range(half)]
    ys = [at(fmt, rng.randint(-reach, reach), rng) for _ in range(half)]
    total = sum(units(fmt, x) * units(fmt, y) for x, y in zip(xs, ys))
    for i in range(n - half):
        exponent = reach - 2 * reach * i // max(n - half - 1, 1)
        x = at(fmt, exponent, rng)
        rest = units(fmt, at(fmt, exponent, rng)) * units(fmt, x) - total
        y = finite(fmt, round_to(fmt, Fraction(rest, units(fmt, x)) * scaled(1, fmt.lsb)))
        xs.append(x)
        ys.append(y)
        total += units(fmt, x) * units(fmt, y)
    order = rng.sample(range(n), n)
    return [xs[i] for i in order], [ys[i] for i in order]


def edges(fmt):
    """Short vectors picked by hand: overflow to the last bit, ties, zeros, subnormals."""
    top_value = largest(fmt)
    ulp = fmt.lsb + (fmt.inf >> fmt.mant) - 2  # exponent of the top binade's unit
    half, quarter = power(fmt, ulp - 1), power(fmt, ulp - 2)
    one, half_ulp_of_one = power(fmt, 0), power(fmt, -fmt.mant - 1)
    minus = fmt.sign
    return {
        "max + quarter ulp": [top_value, quarter],
        "max + half ulp": [top_value, half],
        "max + half ulp - least": [top_value, half, minus | 1],
        "-max - half ulp + least": [minus | top_value, minus | half, 1],
        "max + max - max": [top_value, top_value, minus | top_value],
        "-max - 1": [minus | top_value, minus | one],
        "1 + half ulp": [one, half_ulp_of_one],
        "1 + half ulp + least": [one, half_ulp_of_one, 1],
        "1 + half ulp - least": [one, half_ulp_of_one, minus | 1],
        "odd + half ulp": [one + 1, half_ulp_of_one],
        "least": [1],
        "least, 1000 times": [1] * 1000,
        "least normal - least": [1 << fmt.mant, minus | 1],
        "minus zeros": [minus] * 5,
        "cancel to zero": [one, minus | one, 1, minus | 1],
        "equal values at the top of a binade": [(one | ((1 << fmt.mant) - 1))] * 4096,
        "one huge among tiny": [1] * 100 + [top_value] + [minus | 1] * 99,
        "huge in the tail": [1] * 64 + [top_value],
    }


def specials(fmt):
    """Vectors with infinities and NaNs; payloads and signs of NaNs vary."""
    one, minus, inf = power(fmt, 0), fmt.sign, fmt.inf
    nan, signalling = fmt.nan | minus | 1, fmt.inf | 1
    return {
        "nan": [one, nan],
        "signalling nan": [signalling],
        "inf": [one, inf, minus | one],
        "-inf": [minus | inf] * 3,
        "inf - inf": [inf, one, minus | inf],
        "inf and nan": [inf, nan],
        "nan in the tail": [one] * 64 + [nan],
        "inf in the tail": [one] * 4096 + [minus | inf],
        "nan in the middle": [one] * 2000 + [nan] + [one] * 3000,
    }
