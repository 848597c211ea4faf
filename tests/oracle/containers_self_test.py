"""That the checks of containers can fail: wrong oracles and lying binaries must be found.

Each lie is told once for the cases of one kind, which the honest binary must pass.
"""

import copy
import random
import re
import tempfile
from decimal import Decimal
from pathlib import Path

import answers
from answers import FAILS, GROUPS, Exactly
from array_cases import Merged, Question, Whole
from array_files import CONTAINERS, Array
from binary import Outcome, Warpfold
from damage_cases import FORMATS, Damaged
from elements import TYPES
from tables import Column, Table
from text_cases import Asked


class Liar(Warpfold):
    """A binary whose outcomes are changed."""

    def __init__(self, honest, lie):
        self.path, self.device, self.lie = honest.path, None, lie

    def ask(self, arguments, cpu=None, stdin=None, folder=None):
        return self.lie(super().ask(arguments, cpu, stdin, folder), list(map(str, arguments)))


def other_digit(outcome, _):
    return Outcome(outcome.status, re.sub(r"(0x[0-9a-f]*)[0-9a-f]\"", r'\g<1>c"', outcome.out), outcome.err)


def no_missing(outcome, _):
    return Outcome(outcome.status, re.sub(r',"missing":\d+', "", outcome.out), outcome.err)


def panic(outcome, _):
    return Outcome(101, "", "thread 'main' panicked at crates/x.rs:1:1")


def panic_behind_an_error(outcome, _):
    return Outcome(1, "", "thread 'worker' panicked at crates/x.rs:1:1\nerror: a thread died")


def error(outcome, _):
    return Outcome(1, "", "error: cannot")


def never_fails(outcome, _):
    return outcome if outcome.status == 0 else Outcome(0, '{"op":"sum","value":"0x01"}', "")


def silent(outcome, _):
    return Outcome(outcome.status, outcome.out, "")


def other_shape(outcome, _):
    return Outcome(outcome.status, outcome.out.replace('"shape":[]', '"shape":[1]'), outcome.err)


def other_type(outcome, _):
    return Outcome(outcome.status, outcome.out.replace('"dtype":"i32"', '"dtype":"u32"'), outcome.err)


def question(array, **changes):
    """The plainest question."""
    plain = Question(random.Random(1), array)
    settings = {
        "nan": "propagate",
        "ddof": 0,
        "threads": 1,
        "cpu": None,
        "device": "cpu",
        "axes": None,
        "keep": False,
        "failing": False,
    }
    return plain.but(**settings, **changes)


def cases():
    """{name: a case that the binary passes}."""
    ints = Array(TYPES["i32"], (5,), [5, 3, 9, 1, 7])
    floats = Array(TYPES["f64"], (3,), [0x3FF8000000000000, 0x4004000000000000, 0xBFE0000000000000])
    empty = Array(TYPES["i32"], (0,), [])
    npy = next(c for c in CONTAINERS if c.label == "npy 1.0")
    holes = Table([Column(name, "decimal", [Decimal("0.25"), None, Decimal("1.5")]) for name in "xy"])
    words = Table([Column("x", "decimal", [Decimal("0.25")]), Column("y", "text", ["red"])])
    damaged = next(f for f in FORMATS if f.name == "deflated.npz")
    return {
        "array": Whole(ints, npy, question(ints), 1),
        "floats": Whole(floats, npy, question(floats), 1),
        "no answer": Whole(empty, npy, question(empty).but(only="min"), 1),
        "column": Asked(holes, "joined cells", "column", 1, only="sum"),
        "stats": Asked(words, "csv module", "stats", 3),
        "gap": Merged(
            Array(TYPES["f64"], (40,), floats.elements * 13 + [0]), npy, question(ints).but(only="argmin"), 8, True
        ),
        "damage": Damaged(Array(TYPES["i64"], (400,), list(range(400))), damaged, "cut", False, 1),
    }


LIES = [
    ("array", other_digit, "sums"),
    ("array", panic, "crashes"),
    ("array", panic_behind_an_error, "crashes"),
    ("array", error, "fails: cannot"),
    ("array", other_shape, "shape"),
    ("array", other_type, "the type of extrema"),
    ("floats", other_digit, "sums"),
    ("no answer", never_fails, "no error"),
    ("no answer", panic_behind_an_error, "crashes"),
    ("column", no_missing, "missing"),
    ("column", other_digit, "sums"),
    ("stats", silent, "a skipped column is not named"),
    ("gap", never_fails, "missing middle piece"),
    ("gap", panic_behind_an_error, "panicked"),
    ("damage", never_fails, "another answer"),
]


def found(warpfold, case):
    with tempfile.TemporaryDirectory(prefix="warpfold-self-test-") as folder:
        return [f.kind for f in case.check(warpfold, Path(folder))]


def wrong(answer):
    """Another answer than the right one."""
    if answer == FAILS:
        return answer
    last = copy.copy(answer[-1])
    if isinstance(last, Exactly):
        last.bits ^= 1
    else:
        last.low = last.high = last.high ^ 1
    return [*answer[:-1], last]


def run(warpfold):
    """(passed, failed), printing each failure."""
    passed = failed = 0

    def expect(what, right, detail):
        nonlocal passed, failed
        passed, failed = passed + right, failed + (not right)
        if not right:
            print(f"FAIL self-test, {what}: {detail}")

    every = cases()
    honest = {name: found(warpfold, case) for name, case in every.items()}
    for name, kinds in honest.items():
        # A fault that is there already hides whether a lie would be found.
        if kinds:
            print(f"not judged, as the binary has a fault there: {name}: {kinds[0]}")
    for name, lie, kind in LIES:
        if honest[name]:
            continue
        kinds = found(Liar(warpfold, lie), every[name])
        expect(f"{lie.__name__}, {name}", any(kind in k for k in kinds), f"found {kinds}, not {kind}")
    right = answers.answers
    try:
        for op in answers.GROUPS:
            name = "array" if op in answers.BITS else "floats"
            if op == "dot":
                continue

            def mutant(*arguments, op=op, **how):
                wanted = right(*arguments, **how)
                return {**wanted, op: wrong(wanted[op])} if op in wanted else wanted

            answers.answers = mutant
            kinds = found(warpfold, every[name])
            expect(f"a wrong oracle of {op}", any(k.endswith(GROUPS[op]) for k in kinds), f"found {kinds}")
    finally:
        answers.answers = right
    return passed, failed
