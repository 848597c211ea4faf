"""One question to the binary, what must come of it, and what is wrong with what came."""

import json
import re
import shlex

from answers import FAILS, GROUPS

# What may be refused, as the documents say, with what to do instead.
REFUSALS = ("hint: save both arrays in C order", "hint: save all pieces in C order")


class Fault:
    """Something is wrong: `kind` tells it from others, `where` is the container, the rest shows it."""

    def __init__(self, kind, where, command, wanted, found):
        self.kind = kind
        self.where = where
        self.command = command
        self.wanted = wanted
        self.found = found


class Input:
    """Arguments that name data, relative to a folder; or bytes for a pipe, kept in `piped`."""

    def __init__(self, arguments, piped=None):
        self.arguments = list(map(str, arguments))
        self.piped = piped


def command_line(binary, arguments, source=None, cpu=None):
    """The command as a shell takes it."""
    text = shlex.join([binary, *map(str, arguments)])
    if cpu:
        text = f"WARPFOLD_CPU={cpu} {text}"
    return f"cat {shlex.quote(source.piped)} | {text}" if source and source.piped else text


def ask(warpfold, folder, arguments, source, cpu=None):
    """Runs a command over an input: (outcome, command line)."""
    arguments = [*arguments, *source.arguments]
    stdin = (folder / source.piped).read_bytes() if source.piped else None
    outcome = warpfold.ask(arguments, cpu=cpu, stdin=stdin, folder=folder)
    return outcome, command_line("warpfold", arguments, source, cpu)


def crashed(outcome):
    """How the process ended where no process may: a panic or a signal."""
    found = re.search(r"panicked at .*", outcome.err)
    if found:
        return found.group(0)
    if outcome.status < 0 or outcome.status > 3:
        return f"exit status {outcome.status}"
    return None


def objects(outcome):
    """The JSON objects that were printed, or None."""
    try:
        found = json.loads(outcome.out)
    except ValueError:
        return None
    # A single answer is no list.
    found = [found] if isinstance(found, dict) else found
    return found if isinstance(found, list) and all(isinstance(o, dict) for o in found) else None


def flat(value):
    """Numbers in nested lists, in C order."""
    if isinstance(value, list):
        for item in value:
            yield from flat(item)
    else:
        yield value


def columns(value):
    """One list of numbers for an answer, two for a pair."""
    if isinstance(value, dict):
        return [list(flat(v)) for v in value.values()]
    return [list(flat(value))]


def first_line(err):
    """The error without its place, names and numbers, so that equal faults read alike."""
    lines = [l for l in err.splitlines() if l.startswith("error")] or [err.strip() or "no message"]
    text = re.sub(r'"[^"]*"', '"..."', lines[0].removeprefix("error: "))
    # The place: a file, perhaps with a member or a column.
    text = re.sub(
        r"^(stdin|[^ ]*\.(npy|npz|bin|csv|tsv|txt|parquet|arrow|arrows|safetensors|gz|zst|bz2|xz|state))[^ ]*(:[^ :][^:]*)?: ",
        "",
        text,
    )
    text = re.sub(r"^line \d+(, column \d+( \(.*\))?)?: ", "", text)
    for end in ("; ", " There are", ", not ", " in column", " ("):
        text = text.split(end)[0]
    return re.sub(r"\d+", "N", text).encode("ascii", "replace").decode()[:110]


def why(outcome):
    """What the process said, in short."""
    return f"exit {outcome.status}: {' / '.join(outcome.err.strip().splitlines())[:300]}"


def judge(where, outcome, command, wanted, shape=(), missing=0, data="arrays"):
    """The faults of one array's answers: `wanted` is {operation: [answer of each output, in C order]}.

    `data` begins the kind of fault; `where` names the container.
    """
    stopped = judge_end(where, outcome, command, wanted, data)
    if stopped is not None:
        return stopped
    return judge_objects(where, objects(outcome), command, wanted, shape, missing, data)


def judge_end(where, outcome, command, wanted, data):
    """The faults of how the process ended, or None if its answers are to be judged."""
    crash = crashed(outcome)
    if crash:
        return [Fault(f"{data}: the process crashes", where, command, "an answer or an error", crash)]
    fails = [op for op, outputs in wanted.items() if FAILS in outputs]
    if fails:
        if outcome.status == 1 and "error:" in outcome.err:
            return []
        found = outcome.out.strip() if outcome.status == 0 else why(outcome)
        kind = f"{data}: no error where {GROUPS[fails[0]]} have no answer"
        return [Fault(kind, where, command, f"an error, as {fails[0]} has no answer", found)]
    if outcome.status == 1 and any(r in outcome.err for r in REFUSALS):
        return []
    if outcome.status != 0:
        # The message tells more than the data.
        return [Fault(f"fails: {first_line(outcome.err)}", where, command, "answers", why(outcome))]
    return None


def judge_objects(where, found, command, wanted, shape, missing, data):
    """The faults of the JSON objects of one array."""
    if found is None or [o.get("op") for o in found] != list(wanted):
        return [Fault(f"{data}: other answers than asked", where, command, ",".join(wanted), str(found)[:300])]
    faults = []
    for answer in found:
        faults += judge_answer(where, answer, command, wanted[answer["op"]], shape, data)
    missed = [o.get("missing", 0) for o in found]
    if any(m != missing for m in missed):
        faults.append(Fault(f"{data}: missing", where, command, f"missing {missing}", f"missing {missed[0]}"))
    return faults


def judge_answer(where, answer, command, outputs, shape, data):
    """The faults of one operation's answer."""
    op, dtype = answer["op"], answer.get("dtype")
    if answer.get("shape") != list(shape):
        found = f"{op}: shape {answer.get('shape')}"
        return [Fault(f"{data}: shape", where, command, f"{op}: shape {list(shape)}", found)]
    got = columns(answer.get("value"))
    width = len(outputs[0]) if outputs else len(got)
    if len(got) != width or any(len(c) != len(outputs) for c in got):
        found = str(answer)[:300]
        return [Fault(f"{data}: other answers than asked", where, command, f"{op}: {len(outputs)} outputs", found)]
    for i, wanted in enumerate(outputs):
        texts = [column[i] for column in got]
        if all(w.accepts(dtype, t) for w, t in zip(wanted, texts)):
            continue
        same = all(w.equals(dtype, t) for w, t in zip(wanted, texts))
        at = f" at output {i}" if shape else ""
        return [
            Fault(
                f"{data}: {'the type of ' * same}{GROUPS[op]}",
                where,
                command,
                f"{op}{at}: {', '.join(map(str, wanted))}",
                f"{op}{at}: {', '.join(map(str, texts))} ({dtype})",
            )
        ]
    return []
