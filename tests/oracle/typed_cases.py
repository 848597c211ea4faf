"""Tables in Parquet and Arrow: a column of a file, of joined files, of states that are merged."""

import json
from decimal import Decimal

import answers
import typed_files
from answers import FAILS
from asking import Fault, ask, command_line, crashed, first_line, judge, judge_end, judge_objects, objects, why
from elements import rng_for
from tables import Table, draw_table, draw_typed_column, typed_reading
from typed_files import WRITERS

# What says what to do about a column that is not read.
ADVICE = ("cast", "convert", "save")


class Typed:
    """One table by one writer, and the columns asked for."""

    def __init__(self, table, writer, seed, nan, only=None):
        self.only = only
        self.table, self.writer, self.seed, self.nan = table, writer, seed, nan
        self.label = writer

    def but(self, **changes):
        keep = {"table": self.table, "nan": self.nan, "only": self.only, **changes}
        return Typed(writer=self.writer, seed=self.seed, **keep)

    def smaller(self):
        if self.only is None:
            yield from (self.but(only=op) for op in ("sum", "max", "argmax", "count", "xor", "prod"))
        if self.nan != "propagate":
            yield self.but(nan="propagate")
        columns = self.table.columns
        if len(columns) > 1:
            for i in range(len(columns)):
                yield self.but(table=Table(columns[:i] + columns[i + 1 :]))
        n = len(self.table)
        for start, end in ((0, n // 2), (n // 2, n), (0, n - 1), (1, n)):
            if 0 <= start < end <= n and end - start < n:
                yield self.but(table=self.table.rows(start, end))

    def check(self, warpfold, folder):
        rng = rng_for(self.seed)
        write, _ = WRITERS[self.writer]
        source = write(self.table, folder, rng)
        if source is None:
            return []
        column = rng.choice(self.table.columns)
        flags = ["-c", column.name, "-j", rng.choice((1, 2)), "--device", "cpu", "--nan", self.nan]
        flags += ["-f", "json"]
        if column.kind in ("decimal", "timestamp"):
            return self.check_scaled(warpfold, folder, source, column, flags)
        if column.kind == "text":
            outcome, command = ask(warpfold, folder, ["reduce", "--op", "count,min", *flags], source)
            if outcome.status == 1 and not crashed(outcome):
                return []
            return [Fault("typed: a column of text: no error", self.label, command, "an error", why(outcome))]
        reading = typed_reading(column)
        every = answers.answers(reading.type, reading.elements, reading.places, self.nan)
        wanted = {op: [found] for op, found in every.items() if found != FAILS}
        if self.only in wanted:
            wanted = {self.only: wanted[self.only]}
        if not wanted:
            return []
        outcome, command = ask(warpfold, folder, ["reduce", "--op", ",".join(wanted), "--hex", *flags], source)
        nulls = ", with nulls" if column.missing() else ""
        dictionary = " in a dictionary" if column.kind == "dictionary" else ""
        data = f"typed: column of {column.type.kind}{dictionary}{nulls}"
        stopped = judge_end(self.label, outcome, command, wanted, data)
        if stopped is not None:
            if dictionary and outcome.status == 1 and any(a in outcome.err for a in ADVICE):
                return []
            return stopped
        return judge_objects(self.label, objects(outcome), command, wanted, (), reading.missing, data)

    def check_scaled(self, warpfold, folder, source, column, flags):
        """Decimals and times: exact, or refused with what to do."""
        outcome, command = ask(warpfold, folder, ["reduce", "--op", "min,max,count", *flags], source)
        if crashed(outcome):
            return [Fault("typed: the process crashes", self.label, command, "an answer", crashed(outcome))]
        if outcome.status == 1 and any(a in outcome.err for a in ADVICE):
            return []
        present = [c for c in column.cells if c is not None]
        if outcome.status != 0:
            kind = f"typed: a column of {column.kind}s is refused without what to do"
            return [Fault(kind, self.label, command, "answers, or how to convert the column", why(outcome))]
        if not present:
            return []
        try:
            found = [o["value"] for o in json.loads(outcome.out, parse_float=Decimal)]
        except (ValueError, KeyError, TypeError):
            found = []
        scale = -3 if column.kind == "decimal" else 0
        wanted = [Decimal(min(present)).scaleb(scale), Decimal(max(present)).scaleb(scale), len(present)]
        if any(isinstance(f, str) for f in found) and column.kind == "timestamp":
            return []  # told as dates
        if [Decimal(f) if not isinstance(f, str) else Decimal(f) for f in found] == wanted:
            return []
        kind = f"typed: a column of {column.kind}s is read wrong"
        return [Fault(kind, self.label, command, str([str(w) for w in wanted]), str([str(f) for f in found]))]


class Pieces:
    """The rows of a table in several files, by any writers: joined, or as states that are merged."""

    def __init__(self, table, writers, merged, seed, only=None):
        self.table, self.writers, self.merged, self.seed, self.only = table, writers, merged, seed, only
        self.label = "typed, merged" if merged else "typed, joined"

    def smaller(self):
        if self.only is None:
            for op in ("sum", "max", "argmax", "count", "prod"):
                yield Pieces(self.table, self.writers, self.merged, self.seed, op)
        n = len(self.table)
        for start, end in ((0, n // 2), (n // 2, n), (0, n - 1), (1, n)):
            if 0 <= start < end <= n and end - start < n:
                yield Pieces(self.table.rows(start, end), self.writers, self.merged, self.seed, self.only)

    def check(self, warpfold, folder):
        rng = rng_for(self.seed)
        numbers = [c for c in self.table.columns if c.kind == "number"]
        if not numbers:
            return []
        column = rng.choice(numbers)
        reading = typed_reading(column)
        every = answers.answers(reading.type, reading.elements, reading.places)
        wanted = {op: [found] for op, found in every.items() if found != FAILS}
        if self.only in wanted:
            wanted = {self.only: wanted[self.only]}
        n = len(self.table)
        bounds = [0, *sorted(rng.randint(0, n) for _ in range(rng.choice((1, 2, 3)))), n]
        runs = [(a, b) for a, b in zip(bounds, bounds[1:]) if a < b]
        chosen = ["-c", column.name, "--device", "cpu", "-j", rng.choice((1, 2))]
        inputs = []
        for i, (start, end) in enumerate(runs):
            write, _ = WRITERS[rng.choice(self.writers)]
            source = write(self.table.rows(start, end), folder, rng, f"p{i}")
            if source is None:
                return []
            inputs.append(source.piped or source.arguments[0])
        output = ["--hex", "-f", "json"]
        commands = []
        if self.merged:
            states = []
            for i, (start, _) in enumerate(runs):
                arguments = ["partial", "--start", start, "-o", f"{i}.state", *chosen, ",".join(wanted), inputs[i]]
                outcome = warpfold.ask(arguments, folder=folder)
                commands.append(command_line("warpfold", arguments))
                if outcome.status != 0:
                    kind = f"fails: partial: {crashed(outcome) or first_line(outcome.err)}"
                    return [Fault(kind, self.label, "; ".join(commands), "a state", why(outcome))]
                states.append(f"{i}.state")
            rng.shuffle(states)
            arguments = ["merge", *output, *states]
        else:
            arguments = ["reduce", "--op", ",".join(wanted), *output, *chosen, *inputs]
        outcome = warpfold.ask(arguments, folder=folder)
        commands.append(command_line("warpfold", arguments))
        nulls = ", with nulls" if column.missing() else ""
        return judge(
            self.label,
            outcome,
            "; ".join(commands),
            wanted,
            (),
            reading.missing,
            f"typed: column of {column.type.kind}{nulls}",
        )


def cases(rng, skipped):
    """The cases of one drawn table."""
    table = draw_table(rng, draw_typed_column)
    usable = [w for w, (_, packages) in WRITERS.items() if all(getattr(typed_files, p) for p in packages)]
    if usable:
        yield Pieces(table, rng.sample(usable, min(2, len(usable))), rng.random() < 0.5, rng.random())
    for writer, (_, packages) in WRITERS.items():
        lacking = [p for p in packages if getattr(typed_files, p) is None]
        if lacking:
            skipped[f"{writer} (no {lacking[0]})"] += 1
            continue
        for _ in range(1 if len(table.columns) == 1 else 2):
            yield Typed(table, writer, rng.random(), rng.choice(("propagate", "propagate", "omit")))
