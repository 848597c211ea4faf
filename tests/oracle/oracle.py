"""What the answers must be: exact integers all the way, one rounding at the end."""

from fractions import Fraction

from rounding import is_inf, is_nan, round_sqrt, round_to, scaled, units

SUMS = ("sum", "mean", "norm1", "norm2", "sumsq", "var", "std")
ORDER = ("min", "max", "argmin", "argmax")


def sums(fmt, out, bits, ddof=0):
    """The exact sums of `bits`, elements of `fmt`, in the format `out`: {operation: bits}."""
    if any(is_nan(fmt, b) or is_inf(fmt, b) for b in bits):
        return _special(fmt, out, bits)
    return sums_of_units(out, [units(fmt, b) for b in bits], fmt.lsb, ddof)


def sums_of_units(out, us, exponent, ddof=0):
    """The exact sums of the integers `us` times 2^exponent, in the format `out`: {operation: bits}."""
    n = len(us)
    total, absolute, squares = sum(us), sum(map(abs, us)), sum(u * u for u in us)
    lsb, lsb2 = scaled(1, exponent), scaled(1, 2 * exponent)
    answers = {
        "sum": round_to(out, total * lsb),
        "norm1": round_to(out, absolute * lsb),
        "sumsq": round_to(out, squares * lsb2),
        "norm2": round_sqrt(out, squares * lsb2),
        "mean": round_to(out, Fraction(total, n) * lsb) if n else out.nan,
        "var": out.nan,
        "std": out.nan,
    }
    if n > ddof:
        variance = Fraction(n * squares - total * total, n * (n - ddof)) * lsb2
        answers["var"] = round_to(out, variance)
        answers["std"] = round_sqrt(out, variance)
    return answers


def _special(fmt, out, bits):
    nan = any(is_nan(fmt, b) for b in bits)
    signs = {b & fmt.sign for b in bits if is_inf(fmt, b)}
    if nan or len(signs) == 2:
        total = out.nan
    else:
        total = out.inf | (out.sign if signs == {fmt.sign} else 0)
    size = out.nan if nan else out.inf
    return {
        "sum": total,
        "mean": total,
        "norm1": size,
        "norm2": size,
        "sumsq": size,
        "var": out.nan,
        "std": out.nan,
    }


def dot(fmt, out, xs, ys):
    """The exact scalar product of two arrays of finite values."""
    total = sum(units(fmt, x) * units(fmt, y) for x, y in zip(xs, ys))
    return round_to(out, scaled(total, 2 * fmt.lsb))


def order(fmt, bits):
    """The extrema of a non-empty array of finite values and where they first occur."""
    keys = [units(fmt, b) for b in bits]
    argmin, argmax = keys.index(min(keys)), keys.index(max(keys))
    return {"min": bits[argmin], "max": bits[argmax], "argmin": argmin, "argmax": argmax}
