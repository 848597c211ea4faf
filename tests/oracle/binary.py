"""The binary under test: how it is asked, and which instruction sets it may use here."""

import csv
import io
import os
import platform
import subprocess
from pathlib import Path


class Outcome:
    """What a process left behind."""

    def __init__(self, status, out, err):
        self.status = status
        self.out = out
        self.err = err


class Warpfold:
    """The binary under test, and the device that reduces."""

    def __init__(self, path, device=None):
        self.path = str(Path(path).resolve())
        self.device = device

    def ask(self, arguments, cpu=None, stdin=None, folder=None):
        """Runs the binary; `stdin`, if any, comes through a pipe."""
        environment = {**os.environ, "NO_COLOR": "1"}
        environment.pop("WARPFOLD_CPU", None)
        if cpu:
            environment["WARPFOLD_CPU"] = cpu
        done = subprocess.run(
            [self.path, *map(str, arguments)],
            env=environment,
            capture_output=True,
            timeout=300,
            cwd=folder,
            **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))

    def run(self, *arguments, cpu=None, threads=None):
        """Standard output without the final newline, or what went wrong."""
        command = list(arguments)
        if threads:
            command += ["-j", str(threads)]
        if self.device and arguments[0] != "merge":
            command += ["--device", self.device]
        done = self.ask(command, cpu=cpu)
        if done.status:
            return f"exit {done.status}: {done.err.strip()}"
        return done.out.rstrip("\n")

    def table(self, operations, *arguments, **how):
        """The answers of several operations in one pass: ({operation: text}, None) or (None, error)."""
        text = self.run("reduce", "--op", ",".join(operations), *arguments, "--hex", "-f", "csv", **how)
        try:
            rows = list(csv.DictReader(io.StringIO(text)))
            answers = {row["op"]: row["value"] for row in rows}
        except KeyError:
            answers = {}
        return (answers, None) if answers else (None, text)


def instruction_sets():
    """What WARPFOLD_CPU may be on this machine; None leaves the choice to warpfold."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return [None]
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        return [None]
    line = next((l for l in info.splitlines() if l.startswith("flags")), "")
    flags = set(line.split())
    sets = ["sse2"]
    if {"avx2", "fma", "f16c"} <= flags:
        sets.append("avx2")
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        sets.append("avx512")
    return sets
