"""Odd text, as a file and through a pipe: numbers are read alike, anything else is an error."""

from asking import Fault, Input, ask, crashed, objects, why

# What is no table of numbers, or one of which nobody says which column is meant.
REFUSED = (
    "[1,2,3]", "[1, 2, 3]\n", "[1,2,3]\n[4,5,6]\n", '{"x": 1}\n', '[{"x":1,"y":2}]', "1 2 three\n", "0x10\n", "1_000\n", "1e\n",
    "--1\n", "+-1\n", "1;2\n", "(1)\n", "$5\n", "5%\n", "'1'\n", "a,1\nb,2\nc d,3,4\n", "1\n2\n\x00", "nan1\n", "infx\n",
    "\u0663\n", "\uff11\n", "true\n", "NaN(5)\n", "1d5\n", "1f\n", "1L\n", '"1"x\n', ".\n", "1.2.3\n", "0b1\n",
    "1\n[2]\n3\n", "x\n1\n[2]\n", "1,2\n3\n", "1,2\n3,4,5\n", ",1\n2,3\n", "a,b\n,1\n2,3\n", "<a>1</a>\n", "1\u00a02\n", "1\n\ufffd\n",
)  # fmt: skip
# (text, sum, count)
READ = (
    ("1\n2\n3\n", "6", 3), ("inf", "Infinity", 1), ("nan", "NaN", 1), ("5", "5", 1), ("-inf", "-Infinity", 1),
    ("1 2 3", "6", 3), ("inf\n", "Infinity", 1), ("-inf\n1\n", "-Infinity", 2), ("nan\n1\n", "NaN", 2),
    ("Infinity\n", "Infinity", 1), ("-5\n", "-5", 1), ("+5\n", "5", 1), (".5\n", "0.5", 1), ("5.\n", "5", 1), ("1e3\n", "1000", 1),
    ("1E3\n", "1000", 1), ("-0\n", "0", 1), ("1\r\n2\r\n", "3", 2), ("\ufeff1\n2\n", "3", 2), ("\n1\n", "1", 1), (" 1\n", "1", 1),
    ("1\t\n", "1", 1), ("000012\n", "12", 1), ("1e-400\n", "0", 1), ("0.1\n", "0.1", 1), ('"1"\n"2"\n', "3", 2), ("1\x0c2\n", "3", 2),
)  # fmt: skip


class Odd:
    """One text, and what it sums to, if anything."""

    def __init__(self, text, wanted, piped, name):
        self.text, self.wanted, self.piped, self.name = text, wanted, piped, name
        self.label = "odd text through a pipe" if piped else "odd text"

    def smaller(self):
        return iter(())

    def check(self, warpfold, folder):
        (folder / self.name).write_bytes(self.text.encode())
        source = Input(["-"], piped=self.name) if self.piped else Input([self.name])
        outcome, command = ask(warpfold, folder, ["reduce", "--op", "sum,count", "-f", "json"], source)
        crash = crashed(outcome)
        if crash:
            return [Fault("odd text: the process crashes", self.label, command, "an answer or an error", crash)]
        shown, through = repr(self.text), " through a pipe" * self.piped
        if self.wanted is None:
            if outcome.status == 1:
                return []
            found = outcome.out.strip().replace("\n", "")
            return [Fault("odd text is summed", f"{shown}{through}", command, "an error", found or why(outcome))]
        if outcome.status != 0:
            return [Fault("numbers are refused", f"{shown}{through}", command, str(self.wanted), why(outcome))]
        answers = objects(outcome) or [{}, {}]
        got = str(answers[0].get("value")), answers[1].get("value")
        missing = answers[1].get("missing", 0)
        # NaN may stand for a missing cell.
        if got == self.wanted or self.wanted[0] == "NaN" and got[1] + missing == self.wanted[1]:
            return []
        return [Fault("numbers are misread", f"{shown}{through}", command, str(self.wanted), str(got))]


def cases(rng, _skipped):
    """Some of the texts."""
    for text in rng.sample(REFUSED, 3):
        # Not .csv: there, one line of words names columns that have no rows.
        yield Odd(text, None, rng.random() < 0.5, rng.choice(("odd.txt", "odd")))
    for text, total, count in rng.sample(READ, 2):
        yield Odd(text, (total, count), rng.random() < 0.5, rng.choice(("odd.txt", "odd")))
