"""Tables of text: columns by name, by number, several, all, none named; joined and merged."""

import answers
import text_files
from answers import FAILS
from asking import Fault, Input, ask, columns, command_line, crashed, first_line, judge_end, judge_objects, objects, why
from elements import F64, rng_for
from tables import Table, draw_table, draw_text_column, text_readings
from text_files import COMPRESS, WRITERS

STATS = ("count", "sum", "mean", "std", "min", "max", "argmin", "argmax", "count-nan")
FORMS = ("column", "column", "column", "number", "several", "stats", "stats", "bare", "joined", "merged")


class Asked:
    """One table by one writer, and one way to ask."""

    def __init__(self, table, writer, form, seed, packed=None, piped=False, bits=False, only=None):
        self.only = only
        self.table, self.writer, self.form, self.seed = table, writer, form, seed
        self.packed, self.piped, self.bits = packed, piped, bits
        self.label = f"text by {writer}" + (f", {packed}" if packed else "") + (", a pipe" if piped else "")

    def but(self, **changes):
        keep = {
            "table": self.table,
            "packed": self.packed,
            "piped": self.piped,
            "bits": self.bits,
            "only": self.only,
            **changes,
        }
        return Asked(writer=self.writer, form=self.form, seed=self.seed, **keep)

    def smaller(self):
        if self.only is None:
            yield from (self.but(only=op) for op in ("sum", "max", "argmax", "count", "xor"))
        if self.packed:
            yield self.but(packed=None)
        if self.piped:
            yield self.but(piped=False)
        if len(self.table.columns) > 1:
            for i in range(len(self.table.columns)):
                yield self.but(table=Table(self.table.columns[:i] + self.table.columns[i + 1 :]))
        n = len(self.table)
        for start, end in ((0, n // 2), (n // 2, n), (0, n - 1), (1, n)):
            if 0 <= start < end <= n and end - start < n:
                yield self.but(table=self.table.rows(start, end))

    def check(self, warpfold, folder):
        rng = rng_for(self.seed)
        text = write(self.table, self.writer, rng, folder)
        if text is None or any(c.missing() == len(c.cells) for c in self.table.columns):
            return []  # nobody knows what an empty column is
        if self.form in ("joined", "merged"):
            return self.check_pieces(warpfold, folder, text, rng)
        source = self.store(text, folder, rng)
        threads = ["-j", rng.choice((1, 2)), "--device", "cpu"]
        if self.form == "stats":
            return self.check_stats(warpfold, folder, text, source, threads)
        if self.form == "bare":
            return self.check_bare(warpfold, folder, text, source, threads)
        count = 2 if self.form == "several" else 1
        chosen = rng.sample(self.table.columns, min(count, len(self.table.columns)))
        return self.check_columns(warpfold, folder, text, source, threads, chosen)

    def store(self, text, folder, rng):
        name = f"t.{text.suffix}"
        content = text.content
        if self.packed:
            name += f".{self.packed}"
            content = text_files.compress(content, self.packed, rng)
        (folder / name).write_bytes(content)
        flags = list(text.flags)
        if self.piped:
            return Input([*flags, "--format", "tsv" if text.suffix == "tsv" else "csv", "-"], piped=name)
        return Input([*flags, name])

    def data(self, text, column):
        """What begins the kind of a fault."""
        return (
            f"text: column of {column.kind}{self.holes(text, column)}{', beside an index without a name' * text.index}"
        )

    def holes(self, text, column):
        """How missing cells look."""
        if not column.missing():
            return ""
        if text_files.blank(self.table, text.token) and text.writer != "csv module":
            return ", missing as a blank line"
        return f", missing as {text.token or 'an empty cell'}{' in the first row' * (column.cells[0] is None)}"

    def selector(self, text, column):
        if text.header and self.form != "number":
            return column.name
        return str(1 + text.index + self.table.columns.index(column))

    def check_columns(self, warpfold, folder, text, source, threads, chosen):
        """Some columns by their names or numbers."""
        readings = [text_readings(c, text.token) if c.is_numeric() else [] for c in chosen]
        operations = shared_operations([r for rs in readings for r in rs], self.bits, self.only)
        flags = ["reduce", "--op", ",".join(operations), "--hex", "-f", "json", *threads]
        flags += ["-c", ",".join(self.selector(text, c) for c in chosen)]
        outcome, command = ask(warpfold, folder, flags, source)
        if any(c.kind == "bool" for c in chosen):
            return [crash_fault(self.label, outcome, command)] if crashed(outcome) else []
        unreadable = [c for c, rs in zip(chosen, readings) if not rs]
        if unreadable:
            return refused(self.data(text, unreadable[0]), self.label, outcome, command)
        wanted = {op: [[]] for op in operations}
        stopped = judge_end(self.label, outcome, command, wanted, self.data(text, chosen[0]))
        if stopped is not None:
            return stopped
        found = objects(outcome) or []
        faults = []
        for i, (column, choices) in enumerate(zip(chosen, readings)):
            mine = found[i * len(operations) : (i + 1) * len(operations)]
            data = self.data(text, column)
            if len(chosen) > 1 and any(o.get("name") not in (column.name, self.selector(text, column)) for o in mine):
                faults.append(
                    Fault(f"{data}: names", self.label, command, column.name, str([o.get("name") for o in mine]))
                )
            faults += judge_readings(self.label, mine, command, choices, operations, data)
        return faults

    def check_bare(self, warpfold, folder, text, source, threads):
        """`sum` where nobody says which column."""
        if any(c.kind in ("bool", "huge") for c in self.table.columns):
            return []
        numeric = [c for c in self.table.columns if c.is_numeric()]
        flags = ["reduce", "--op", "sum,count,argmax", "--hex", "-f", "json", *threads]
        outcome, command = ask(warpfold, folder, flags, source)
        if len(numeric) + text.index != 1:
            if outcome.status == 1 and not crashed(outcome):
                return []
            kind = f"text: no column is named, and {'several' if numeric else 'none'} would do"
            return [
                Fault(kind, self.label, command, "an error", crashed(outcome) or outcome.out.strip() or why(outcome))
            ]
        if text.index:
            return []
        choices = text_readings(numeric[0], text.token)
        operations = [op for op in shared_operations(choices, False) if op in ("sum", "count", "argmax")]
        if len(operations) < 3:
            return []
        operations = ["sum", "count", "argmax"]
        stopped = judge_end(self.label, outcome, command, {op: [[]] for op in operations}, self.data(text, numeric[0]))
        if stopped is not None:
            return stopped
        return judge_readings(self.label, objects(outcome), command, choices, operations, self.data(text, numeric[0]))

    def check_stats(self, warpfold, folder, text, source, threads):
        """All numeric columns; what is skipped is named."""
        numeric = [c for c in self.table.columns if c.is_numeric()]
        readings = [text_readings(c, text.token) for c in numeric]
        if any(set(STATS) - set(shared_operations(rs, False)) or not rs for rs in readings):
            return []
        if any(c.kind == "bool" for c in self.table.columns):
            return []
        outcome, command = ask(warpfold, folder, ["stats", "--hex", "-f", "json", *threads], source)
        if not numeric and not text.index:
            return refused("text: stats of no number", self.label, outcome, command)
        stopped = judge_end(self.label, outcome, command, {}, "text: stats")
        if stopped is not None:
            return stopped
        records = objects(outcome) or []
        records = records[text.index :] if len(records) == len(numeric) + text.index else records
        names = [r.get("name") for r in records]
        expected = [self.selector(text, c) if not text.header else c.name for c in numeric]
        if len(names) != len(expected) or text.header and names != expected and len(expected) > 1:
            return [
                Fault(
                    "text: stats: columns",
                    self.label,
                    command,
                    f"columns {expected}",
                    f"columns {names}; {why(outcome)}",
                )
            ]
        faults = []
        for column, choices, record in zip(numeric, readings, records):
            mine = [
                {"op": op, "dtype": None, "shape": [], "value": record.get(op), "missing": record.get("missing", 0)}
                for op in STATS
            ]
            faults += judge_readings(self.label, mine, command, choices, STATS, self.data(text, column))
        for column in self.table.columns:
            if not column.is_numeric() and text.header and column.name not in outcome.err:
                faults.append(
                    Fault("text: stats: a skipped column is not named", self.label, command, column.name, why(outcome))
                )
        return faults

    def check_pieces(self, warpfold, folder, text, rng):
        """The rows in several files: joined, or as states that are merged."""
        n = len(self.table)
        cut = sorted(rng.randint(0, n) for _ in range(rng.choice((1, 2))))
        runs = [(a, b) for a, b in zip([0, *cut], [*cut, n]) if a < b]
        parts = []
        for i, (start, end) in enumerate(runs):
            # All pieces are written alike.
            part = write(self.table.rows(start, end), self.writer, rng_for(self.seed), folder)
            if part is None or part.header != text.header or part.token != text.token:
                return []
            (folder / f"p{i}.{part.suffix}").write_bytes(part.content)
            parts.append(f"p{i}.{part.suffix}")
        numeric = [c for c in self.table.columns if c.is_numeric()]
        if not numeric:
            return []
        column = rng.choice(numeric)
        choices = text_readings(column, text.token)
        if not choices:
            return []
        operations = shared_operations(choices, self.bits, self.only)
        where, data = f"{self.form} {self.label}", self.data(text, column)
        chosen = ["-c", self.selector(text, column), *text.flags]
        output = ["--hex", "-f", "json"]
        if self.form == "joined":
            arguments = ["reduce", "--op", ",".join(operations), *output, *chosen, *parts]
            commands = [command_line("warpfold", arguments)]
            outcome = warpfold.ask(arguments, folder=folder)
        else:
            commands, states = [], []
            for i, (start, _) in enumerate(runs):
                arguments = ["partial", "--start", start, "-o", f"{i}.state", *chosen, ",".join(operations), parts[i]]
                outcome = warpfold.ask(arguments, folder=folder)
                commands.append(command_line("warpfold", arguments))
                if outcome.status != 0:
                    kind = f"fails: partial: {crashed(outcome) or first_line(outcome.err)}"
                    return [Fault(kind, where, "; ".join(commands), "a state", why(outcome))]
                states.append(f"{i}.state")
            rng.shuffle(states)
            outcome = warpfold.ask(["merge", *output, *states], folder=folder)
            commands.append(command_line("warpfold", ["merge", *output, *states]))
        command = "; ".join(commands)
        stopped = judge_end(where, outcome, command, {op: [[]] for op in operations}, data)
        if stopped is not None:
            return stopped
        return judge_readings(where, objects(outcome), command, choices, operations, data)


def write(table, writer, rng, folder):
    function, _ = WRITERS[writer]
    return function(table, rng, folder) if writer == "DuckDB" else function(table, rng)


def shared_operations(readings, bits, only=None):
    """What every reading answers; or, of it, `only` this."""
    every = None
    for reading in readings:
        found = answers.answers(reading.type, reading.elements, reading.places)
        some = [op for op in found if found[op] != FAILS and (bits or op not in answers.BITS)]
        every = some if every is None else [op for op in every if op in some]
    every = every or ["sum"]
    return [only] if only in every else every


def judge_readings(where, found, command, readings, operations, data):
    """The fault by the reading that fits best; the one that explains the others, where there are several."""
    best = None
    for reading in readings:
        wanted = answers.answers(reading.type, reading.elements, reading.places)
        wanted = {op: [wanted[op]] for op in operations}
        mine = found and [with_type(o, wanted.get(o.get("op"))) for o in found]
        faults = judge_objects(where, mine, command, wanted, (), reading.missing, data)
        if best is None or len(faults) < len(best):
            best, type_ = faults, reading.type
    as_floats = [f for f in best if type_.kind != "float" and f.found.endswith("(f64)")]
    if as_floats:
        lossy = [f for f in as_floats if ": the type of" not in f.kind]
        chosen = (lossy or as_floats)[0]
        kind = f"text: integers are read as floats{', and lose digits' * bool(lossy)}"
        return [Fault(kind, where, command, chosen.wanted, chosen.found)]
    missed = [f for f in best if f.kind.endswith(": missing")]
    if missed:
        missed[0].kind = (
            "text" + data[data.index(", missing") :] + ": missing" if ", missing" in data else missed[0].kind
        )
        return missed
    return best[:1]


def with_type(answer, wanted):
    """Records of `stats` do not tell types: the wanted one, or f64 if that makes them right."""
    if answer.get("dtype") is not None or not wanted:
        return answer
    texts = [c[0] for c in columns(answer["value"])]
    right = all(w.accepts(w.type.name, t) for w, t in zip(wanted[0], texts))
    as_float = not right and all(near(w, t) for w, t in zip(wanted[0], texts))
    return {**answer, "dtype": F64.name if as_float else wanted[0][0].type.name}


def near(wanted, text):
    """Whether it is the f64 beside an integer answer."""
    if wanted.type.kind == "float" or not isinstance(text, str):
        return False
    exact, value = wanted.type.exact(wanted.bits), F64.exact(int(text, 16))
    return value is not None and abs(value - exact) * 2**40 <= abs(exact)


def refused(data, where, outcome, command):
    """The faults where only an error is right."""
    if outcome.status == 1 and "error:" in outcome.err and not crashed(outcome):
        return []
    return [
        Fault(f"{data}: no error", where, command, "an error", crashed(outcome) or outcome.out.strip() or why(outcome))
    ]


def crash_fault(where, outcome, command):
    return Fault("text: the process crashes", where, command, "an answer or an error", crashed(outcome))


def cases(rng, skipped):
    """The cases of one drawn table."""
    others = ("huge",) if rng.random() < 0.1 else ()
    table = draw_table(rng, lambda name, n, r: draw_text_column(name, n, r, others))
    for writer, (_, package) in WRITERS.items():
        if package and getattr(text_files, package) is None:
            skipped[f"text by {writer} (no {package})"] += 1
            continue
        if any(c.kind == "huge" for c in table.columns) and package:
            continue  # their integers have 64 bits
        form = rng.choice(FORMS)
        packed = rng.choice(list(COMPRESS)) if rng.random() < 0.15 else None
        yield Asked(table, writer, form, rng.random(), packed, rng.random() < 0.2, rng.random() < 0.2)
