"""Arrays: each through every container, whole or over some axes; in pieces; in pairs.

A case has a `label`, `check(warpfold, folder)` that gives faults, and `smaller()`, cases like it with
less data, for whoever looks for the smallest that still fails.
"""

import copy
import itertools
from math import prod

import answers
import array_files
from answers import FAILS, Exactly
from array_files import CONTAINERS, Array, Container, named, npy_writer, raw_writer
from asking import Fault, ask, columns, command_line, crashed, first_line, judge, objects, why
from binary import instruction_sets
from elements import TYPES, draw, rng_for

SETS = instruction_sets()


class Question:
    """What is asked of an array, and how the work is to be done."""

    def __init__(self, rng, array):
        self.nan = rng.choice(("propagate",) * 6 + ("omit",) * 3 + ("error",))
        self.ddof = rng.choice((0, 0, 1, 2))
        self.threads = rng.choice((1, 2))
        self.cpu = rng.choice([None, *SETS])
        # The interpreter is slow.
        self.device = "sim" if rng.random() < 0.03 and len(array.elements) <= 200 else "cpu"
        self.axes = None
        self.keep = False
        if array.shape and rng.random() < 0.45:
            some = rng.randint(1, len(array.shape))
            self.axes = sorted(rng.sample(range(len(array.shape)), some))
            self.keep = rng.random() < 0.3
        self.failing = rng.random() < 0.08
        self.only = None
        self.known = None
        self.seed = rng.random()

    def flags(self):
        flags = ["--hex", "-f", "json", "-j", self.threads, "--device", self.device]
        flags += ["--nan", self.nan] if self.nan != "propagate" else []
        flags += ["--ddof", self.ddof] if self.ddof else []
        flags += ["--axis", ",".join(map(str, self.axes))] if self.axes is not None else []
        return flags + (["--keepdims"] if self.keep else [])

    def simpler(self, wanted):
        """Questions like it, with less to them."""
        if self.only is None:
            yield from (self.but(only=op) for op in wanted)
        for name, value in (
            ("cpu", None),
            ("threads", 1),
            ("device", "cpu"),
            ("nan", "propagate"),
            ("ddof", 0),
            ("keep", False),
        ):
            if getattr(self, name) != value:
                yield self.but(**{name: value})

    def but(self, **changes):
        other = copy.copy(self)
        vars(other).update(changes, known=None)
        return other

    def shape(self, array):
        """The shape of the answers."""
        if self.axes is None:
            return ()
        kept = [(1 if axis in self.axes else n) for axis, n in enumerate(array.shape)]
        return tuple(n for axis, n in enumerate(kept) if self.keep or axis not in self.axes)

    def wanted(self, array):
        """{operation: [answer of each output]}: those that have answers, or one that has none."""
        # All containers of an array ask the same.
        if self.known is None or self.known[0] is not array or self.known[1] is not answers.answers:
            self.known = array, answers.answers, self.work_out(array)
        return dict(self.known[2])

    def work_out(self, array):
        every = {op: [] for op in answers.operations(array.type) if self.only in (None, op)}
        for elements in outputs(array, self.axes):
            found = answers.answers(array.type, elements, nan=self.nan, ddof=self.ddof)
            for op, outputs_ in every.items():
                outputs_.append(found[op])
        fails = [op for op, found in every.items() if FAILS in found]
        if fails and (self.failing or len(fails) == len(every)):
            op = rng_for(self.seed).choice(fails)
            return {op: every[op]}
        return {op: found for op, found in every.items() if op not in fails}


def outputs(array, axes):
    """The elements of each output, both in C order."""
    if axes is None:
        return [array.elements]
    shape = array.shape
    strides = [prod(shape[i + 1 :]) for i in range(len(shape))]

    def offsets(chosen):
        every = itertools.product(*(range(shape[a]) for a in chosen))
        return [sum(i * strides[a] for i, a in zip(index, chosen)) for index in every]

    kept = offsets([a for a in range(len(shape)) if a not in axes])
    reduced = offsets(axes)
    return [[array.elements[k + r] for r in reduced] for k in kept]


def rounds_on_the_way(outputs_):
    return any(not isinstance(a, Exactly) for found in outputs_ if found != FAILS for a in found)


def settled(warpfold, folder, wanted, question, array, containers):
    """`wanted` with the bits of operations that round on the way, as a plain file has them.

    What they must lie in stays as it is if the plain file is wrong, too, and in Fortran order: such operations
    follow the order of memory.
    """
    if len(array.shape) > 1 and any("Fortran" in container.label for container in containers):
        return wanted
    loose = [op for op, found in wanted.items() if rounds_on_the_way(found)]
    if not loose:
        return wanted
    plain = Container("", npy_writer(1, False, False) if named(array) else raw_writer(False))
    if not named(array) and not array.shape:
        return wanted
    source = plain.write(array, folder, "plain", rng_for(0))
    outcome, _ = ask(warpfold, folder, ["reduce", "--op", ",".join(loose), *question.flags()], source)
    found = objects(outcome) if outcome.status == 0 else None
    if not found:
        return wanted
    fixed = dict(wanted)
    for answer in found:
        got = columns(answer["value"])
        type_ = TYPES[answer["dtype"]]
        bits = [[Exactly(type_, int(column[i], 16)) for column in got] for i in range(len(got[0]))]
        pairs = zip(wanted[answer["op"]], bits)
        if all(w.accepts(type_.name, type_.hex(e.bits)) for ws, es in pairs for w, e in zip(ws, es)):
            fixed[answer["op"]] = bits
    return fixed


def layout(containers):
    """What begins the kind of a fault."""
    return "arrays in Fortran order" if any("Fortran" in c.label for c in containers) else "arrays"


class Whole:
    """One array in one container."""

    def __init__(self, array, container, question, seed):
        self.array, self.container, self.question, self.seed = array, container, question, seed
        self.label = container.label

    def check(self, warpfold, folder):
        wanted = self.question.wanted(self.array)
        if not wanted:
            return []
        wanted = settled(warpfold, folder, wanted, self.question, self.array, [self.container])
        source = self.container.write(self.array, folder, "x", rng_for(self.seed))
        arguments = ["reduce", "--op", ",".join(wanted), *self.question.flags()]
        outcome, command = ask(warpfold, folder, arguments, source, self.question.cpu)
        where = self.container.kind + (" over axes" if self.question.axes is not None else "")
        return judge(where, outcome, command, wanted, self.question.shape(self.array), data=layout([self.container]))

    def smaller(self):
        for question in self.question.simpler(self.question.wanted(self.array)):
            yield Whole(self.array, self.container, question, self.seed)
        for array in fewer(self.array):
            yield Whole(array, self.container, self.question, self.seed)


def fewer(array):
    """The array with about half of an axis, from either end."""
    for axis, n in enumerate(array.shape):
        if n < 2:
            continue
        inner = prod(array.shape[axis + 1 :])
        for start, end in ((0, n // 2), (n // 2, n), (0, n - 1), (1, n)):
            keep = [e for i, e in enumerate(array.elements) if start <= i // inner % n < end]
            shape = [*array.shape]
            shape[axis] = end - start
            yield Array(array.type, shape, keep)


def rows(array, start, end):
    """Some rows: a part of the first axis."""
    inner = prod(array.shape[1:])
    return Array(array.type, [end - start, *array.shape[1:]], array.elements[start * inner : end * inner])


def cuts(n, rng):
    """Two to five runs that cover 0..n, some of them perhaps empty."""
    bounds = sorted(rng.randint(0, n) for _ in range(rng.randint(1, 4)))
    return list(zip([0, *bounds], [*bounds, n]))


class Joined:
    """An array cut along its first axis, the pieces in a container each, given in order."""

    def __init__(self, array, containers, question, seed):
        self.array, self.containers, self.question, self.seed = array, containers, question, seed
        self.label = "joined"

    def check(self, warpfold, folder):
        rng = rng_for(self.seed)
        wanted = self.question.wanted(self.array)
        if not wanted:
            return []
        wanted = settled(warpfold, folder, wanted, self.question, self.array, self.containers)
        arguments = ["reduce", "--op", ",".join(wanted), *self.question.flags()]
        for i, (start, end) in enumerate(cuts(self.array.shape[0], rng)):
            container = self.containers[i % len(self.containers)]
            arguments += container.write(rows(self.array, start, end), folder, f"piece{i}", rng).arguments
        outcome = warpfold.ask(arguments, cpu=self.question.cpu, folder=folder)
        command = command_line("warpfold", arguments, cpu=self.question.cpu)
        where = "joined " + " and ".join(sorted({c.kind for c in self.containers}))
        where += " over axes" if self.question.axes is not None else ""
        return judge(where, outcome, command, wanted, self.question.shape(self.array), data=layout(self.containers))

    def smaller(self):
        for question in self.question.simpler(self.question.wanted(self.array)):
            yield Joined(self.array, self.containers, question, self.seed)
        for array in fewer(self.array):
            yield Joined(array, self.containers, self.question, self.seed)


class Merged:
    """Partial states of random pieces, merged in random order; or with one piece left out."""

    def __init__(self, array, container, question, seed, gap):
        self.array, self.container, self.question, self.seed, self.gap = array, container, question, seed, gap
        self.label = "merged"

    def check(self, warpfold, folder):
        rng = rng_for(self.seed)
        question = self.question
        wanted = question.wanted(self.array)
        if self.gap:
            positional = ["argmin", "argmax", "argminmax"]
            wanted = {op: found for op, found in wanted.items() if op in positional}
        if not wanted:
            return []
        inner = prod(self.array.shape[1:])
        runs = cuts(self.array.shape[0], rng)
        commands, states = [], []
        for i, (start, end) in enumerate(runs):
            source = self.container.write(rows(self.array, start, end), folder, f"piece{i}", rng)
            arguments = ["partial", "--start", start * inner, "-o", f"{i}.state", ",".join(wanted)]
            arguments += ["--device", question.device, "-j", 1 + i % 2]
            outcome, command = ask(warpfold, folder, arguments, source, question.cpu)
            commands.append(command)
            if crashed(outcome) or outcome.status != 0:
                kind = f"fails: partial: {crashed(outcome) or first_line(outcome.err)}"
                return [Fault(kind, self.container.kind, "; ".join(commands), "a state", why(outcome))]
            states.append(f"{i}.state")
        if self.gap:
            return self.check_gap(warpfold, folder, runs, states, commands, rng)
        rng.shuffle(states)
        wanted = settled(warpfold, folder, wanted, question, self.array, [self.container])
        arguments = ["merge", "--hex", "-f", "json", "--nan", question.nan, "--ddof", question.ddof, *states]
        outcome = warpfold.ask(arguments, folder=folder)
        commands.append(command_line("warpfold", arguments))
        where = f"partial of {self.container.kind}"
        return judge(where, outcome, "; ".join(commands), wanted, data=layout([self.container]))

    def check_gap(self, warpfold, folder, runs, states, commands, rng):
        """A piece between two others is missing: positions must notice."""
        full = [i for i, (start, end) in enumerate(runs) if end > start]
        if len(full) < 3 or not self.array.elements:
            return []
        left_out = rng.choice(full[1:-1])
        states = [s for i, s in enumerate(states) if i != left_out]
        rng.shuffle(states)
        outcome = warpfold.ask(["merge", "--hex", "-f", "json", *states], folder=folder)
        commands.append(command_line("warpfold", ["merge", *states]))
        if outcome.status == 1 and not crashed(outcome):
            return []
        kind = "merge: a missing middle piece goes unnoticed"
        return [
            Fault(kind, self.container.kind, "; ".join(commands), "an error", crashed(outcome) or outcome.out.strip())
        ]

    def smaller(self):
        for question in self.question.simpler(self.question.wanted(self.array)):
            yield Merged(self.array, self.container, question, self.seed, self.gap)
        for array in fewer(self.array):
            yield Merged(array, self.container, self.question, self.seed, self.gap)


class Dotted:
    """Two arrays of one shape, each in its own container."""

    def __init__(self, xs, ys, containers, seed):
        self.xs, self.ys, self.containers, self.seed = xs, ys, containers, seed
        self.label = "dot"

    def check(self, warpfold, folder):
        rng = rng_for(self.seed)
        arguments = ["reduce", "--op", "dot", "--hex", "-f", "json", "-j", rng.choice((1, 2)), "--device", "cpu"]
        for name, array, container in zip("xy", (self.xs, self.ys), self.containers):
            arguments += container.write(array, folder, name, rng).arguments
        outcome = warpfold.ask(arguments, folder=folder)
        wanted = {"dot": [answers.dot(self.xs.type, self.xs.elements, self.ys.elements)]}
        where = "dot of " + " and ".join(sorted({c.kind for c in self.containers}))
        return judge(where, outcome, command_line("warpfold", arguments), wanted)

    def smaller(self):
        for xs, ys in zip(fewer(self.xs), fewer(self.ys)):
            yield Dotted(xs, ys, self.containers, self.seed)


def draw_array(rng, finite=False):
    """An array of any type and shape; most are small."""
    type_ = TYPES[rng.choice(list(TYPES))]
    size = rng.random()
    if size < 0.01:
        # More than a file is read at once.
        shape = [rng.randint(500, 900), rng.randint(150, 200)]
    elif size < 0.1:
        shape = rng.choice([(rng.randint(4000, 20000),), (rng.randint(50, 90), rng.randint(50, 90))])
    else:
        rank = rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5))
        longest = {0: 1, 1: 300, 2: 20, 3: 8, 4: 5, 5: 3}[rank]
        shape = [rng.choice((0, 1) if rng.random() < 0.12 else (rng.randint(1, longest),)) for _ in range(rank)]
    array = Array(type_, shape, draw(type_, prod(shape), rng))
    if finite and type_.kind == "float":
        array.elements = [b if type_.exact(b) is not None else 0 for b in array.elements]
    return array


def cases(rng, skipped):
    """The cases of one drawn array; counts in `skipped` what packages are missing for."""
    array = draw_array(rng)
    question = Question(rng, array)
    if len(array.elements) > 50_000:
        question.axes, question.keep = None, False
    fit = [c for c in CONTAINERS if c.holds(array)]
    usable = [c for c in fit if available(c, skipped)]
    for container in rng.sample(usable, min(5, len(usable))):
        yield Whole(array, container, question, rng.random())
    if not array.shape:
        return
    way = rng.randrange(3)
    joinable = [c for c in usable if "pipe" not in c.label and "raw" not in c.label and ".gz" not in c.label]
    if way == 0 and joinable:
        containers = [rng.choice(joinable)] * 2 if rng.random() < 0.5 else rng.sample(joinable, min(2, len(joinable)))
        yield Joined(array, containers, question, rng.random())
    elif way == 1:
        flat = question.but(axes=None, keep=False)
        yield Merged(array, rng.choice(usable), flat, rng.random(), gap=rng.random() < 0.4)
    elif joinable:
        xs = draw_array(rng, finite=True)
        ys = Array(xs.type, xs.shape, draw(xs.type, len(xs.elements), rng))
        ys.elements = [b if ys.type.exact(b) is not None else 0 for b in ys.elements]
        joinable = [c for c in joinable if c.holds(xs)]
        yield Dotted(xs, ys, [rng.choice(joinable), rng.choice(joinable)], rng.random())


def available(container, skipped):
    """Whether the package that writes it is there."""
    if container.package and getattr(array_files, container.package) is None:
        skipped[f"{container.label} (no {container.package})"] += 1
        return False
    return True
