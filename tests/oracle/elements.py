"""Element types: what their bits mean, how they lie in bytes, and data worth reducing."""

import random
import struct

import hazards
from rounding import FORMATS, scaled, units


class Type:
    """An element type; elements are bit patterns, integers of `size` bytes without a sign."""

    def __init__(self, name, size, kind):
        self.name = name
        self.size = size
        self.kind = kind  # "bool", "int", "uint" or "float"
        self.fmt = FORMATS.get(name)

    def __repr__(self):
        return self.name

    def hex(self, bits):
        return f"0x{bits:0{2 * self.size}x}"

    def whole(self, bits):
        """The value of an integer or bool."""
        if self.kind == "int" and bits >> (8 * self.size - 1):
            return bits - (1 << 8 * self.size)
        return bits

    def bits(self, value):
        """The bits of an integer or bool that fits."""
        return value & ((1 << 8 * self.size) - 1)

    def limits(self):
        """The least and the greatest value of an integer or bool type."""
        if self.kind == "bool":
            return 0, 1
        width = 8 * self.size
        return (-(1 << width - 1), (1 << width - 1) - 1) if self.kind == "int" else (0, (1 << width) - 1)

    def exact(self, bits):
        """The value as an integer or a fraction; None for infinities and NaN."""
        if self.kind != "float":
            return self.whole(bits)
        if bits & ~self.fmt.sign >= self.fmt.inf:
            return None
        return scaled(units(self.fmt, bits), self.fmt.lsb)

    def pack(self, elements, big=False):
        code = {1: "B", 2: "H", 4: "I", 8: "Q"}[self.size]
        return struct.pack(f"{'>' if big else '<'}{len(elements)}{code}", *elements)


TYPES = {
    t.name: t
    for t in (
        Type("bool", 1, "bool"),
        *(Type(f"i{8 * n}", n, "int") for n in (1, 2, 4, 8)),
        *(Type(f"u{8 * n}", n, "uint") for n in (1, 2, 4, 8)),
        Type("f16", 2, "float"),
        Type("bf16", 2, "float"),
        Type("f32", 4, "float"),
        Type("f64", 8, "float"),
    )
}
I64, U64, F64 = TYPES["i64"], TYPES["u64"], TYPES["f64"]


def draw(type_, n, rng):
    """`n` elements by one of the type's hazards; their bits."""
    return _floats(type_, n, rng) if type_.kind == "float" else _integers(type_, n, rng)


def _floats(type_, n, rng):
    fmt = type_.fmt
    few = [0, fmt.sign, hazards.power(fmt, 0), 1, hazards.power(fmt, 3)]
    way = rng.randrange(4)
    if way == 0:
        out = [rng.choice(few) for _ in range(n)]  # ties, and both zeros
    else:
        out = hazards.FINITE[rng.choice(list(hazards.FINITE))](fmt, n, rng)
    if n and way == 1:
        specials = [fmt.inf, fmt.sign | fmt.inf, fmt.nan, fmt.nan | fmt.sign | 1, fmt.inf | 1]
        for _ in range(rng.choice((1, 1, 2, 5))):
            out[rng.randrange(n)] = rng.choice(specials)
    return out


def _integers(type_, n, rng):
    least, greatest = type_.limits()
    ways = [
        lambda: rng.randint(least, greatest),
        lambda: rng.choice((least, greatest, 0, 1)),
        lambda: rng.randint(max(least, -3), min(greatest, 3)),
        lambda: rng.randint(max(least, -100), min(greatest, 100)),
    ]
    if type_.size == 8:
        # Neighbours that f64 cannot tell apart.
        ways.append(lambda: 2**53 + rng.randint(-2, 2))
        ways.append(lambda: 2**62 + rng.randint(-2, 2))
    way = rng.choice(ways)
    return [type_.bits(way()) for _ in range(n)]


def rng_for(*names):
    """The same numbers for the same names."""
    return random.Random(" ".join(map(str, names)))
