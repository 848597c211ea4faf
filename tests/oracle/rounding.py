"""Floating-point formats in integers: take a value apart, round a rational once.

Nothing here uses floating-point arithmetic, so it can judge those who do.
"""

from fractions import Fraction
from math import isqrt


class Format:
    """A binary format: `width` bits, `mant` of them stored significand, subnormal unit 2^lsb."""

    def __init__(self, name, width, mant, lsb):
        self.name = name
        self.width = width
        self.mant = mant
        self.lsb = lsb
        self.size = width // 8
        self.sign = 1 << (width - 1)
        self.inf = ((1 << (width - 1 - mant)) - 1) << mant
        self.nan = self.inf | 1 << (mant - 1)

    def __repr__(self):
        return self.name

    def hex(self, bits):
        return f"0x{bits:0{self.width // 4}x}"


F16 = Format("f16", 16, 10, -24)
BF16 = Format("bf16", 16, 7, -133)
F32 = Format("f32", 32, 23, -149)
F64 = Format("f64", 64, 52, -1074)
FORMATS = {f.name: f for f in (F16, BF16, F32, F64)}


def is_nan(fmt, bits):
    return bits & ~fmt.sign > fmt.inf


def is_inf(fmt, bits):
    return bits & ~fmt.sign == fmt.inf


def units(fmt, bits):
    """The finite value of `bits` as an integer multiple of 2^lsb."""
    magnitude = bits & ~fmt.sign
    exponent, fraction = magnitude >> fmt.mant, magnitude & ((1 << fmt.mant) - 1)
    if exponent:
        fraction = (fraction | 1 << fmt.mant) << (exponent - 1)
    return -fraction if bits & fmt.sign else fraction


def value(fmt, bits):
    """The finite value of `bits`."""
    return scaled(units(fmt, bits), fmt.lsb)


def scaled(numerator, exponent):
    """numerator * 2^exponent."""
    if exponent >= 0:
        return Fraction(numerator << exponent)
    return Fraction(numerator, 1 << -exponent)


def round_to(fmt, x):
    """The bits of `x`, a rational, rounded to nearest even; an exact zero is +0."""
    if x == 0:
        return 0
    sign = fmt.sign if x < 0 else 0
    num, den = abs(x.numerator), x.denominator
    # 2^(e-1) < x < 2^(e+1), so the last kept bit weighs 2^(e-1-mant) or, if
    # that turns out to leave one bit too many, twice as much.
    e = num.bit_length() - den.bit_length()
    quantum = max(e - 1 - fmt.mant, fmt.lsb)
    significand, inexact = _divide(num, den, quantum)
    if significand >> (fmt.mant + 1):
        quantum += 1
        significand, inexact = _divide(num, den, quantum)
    # `inexact` compares the remainder with half a unit: -1, 0 (a tie), 1.
    if inexact > 0 or (inexact == 0 and significand & 1):
        significand += 1
    # A normal significand carries its implicit bit into the exponent field,
    # and a carry out of rounding does the same, up to infinity.
    return sign | min(((quantum - fmt.lsb) << fmt.mant) + significand, fmt.inf)


def _divide(num, den, quantum):
    """floor(num / den / 2^quantum), and how the remainder compares with one half."""
    if quantum >= 0:
        den <<= quantum
    else:
        num <<= -quantum
    q, r = divmod(num, den)
    twice = 2 * r
    return q, (twice > den) - (twice < den)


def round_sqrt(fmt, x):
    """The bits of the square root of `x >= 0`, rounded to nearest even."""
    if x == 0:
        return 0
    # An integer square root with at least mant + 3 bits, and below them one
    # bit that says whether anything was cut off. It lies under the rounding
    # position, so it can neither make nor break a tie.
    e = x.numerator.bit_length() - x.denominator.bit_length()
    shift = max(2 * (fmt.mant + 4) - e, 0)
    shift += shift & 1
    square, rest = divmod(x.numerator << shift, x.denominator)
    root = isqrt(square)
    sticky = 1 if rest or root * root != square else 0
    return round_to(fmt, scaled(root << 1 | sticky, -(shift // 2) - 1))
