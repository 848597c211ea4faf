#!/usr/bin/env python3
"""Runs PTX that others' compilers make through the interpreter, and holds what it gives against NumPy.

    tests/foreign/check.py target/debug/warpfold                   all compilers: fetches them with pip, compiles without a GPU
    tests/foreign/check.py --core target/debug/warpfold            the core: some cases of each, within five minutes
    tests/foreign/check.py --only 'triton:*sum*' target/debug/warpfold

Prints a line for each case that is not right, with the command that repeats it, and a table: how many modules are read, how many kernels run, how many
are right, how many false findings there are. The kernels are right on devices, but for a few that race, which must be found. Exits 1 if something is not as it
must be.
"""

import argparse
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import venv

import makers

HERE = pathlib.Path(__file__).resolve().parent


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(base) / "warpfold" / "foreign"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def python_of(maker):
    """The interpreter of a virtual environment with the maker's packages."""
    key = hashlib.sha256(" ".join([*maker.packages, sys.version]).encode()).hexdigest()[:12]
    folder = cache() / f"venv-{key}"
    done = folder / "complete"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *maker.packages]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode != 0:
            last = (answer.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            sys.exit(f"cannot install {' '.join(maker.packages)}: {last}")
        done.touch()
    return folder / "bin/python"


def make(maker, core):
    """The folder with a maker's cases; compiled once for each version of the sources."""
    sources = sorted(HERE.glob("*.py"))
    text = b"".join(path.read_bytes() for path in sources if path.name != "check.py")
    key = hashlib.sha256(text + repr((maker.name, maker.packages, maker.arguments, core)).encode()).hexdigest()[:12]
    folder = cache() / f"cases-{maker.name}-{key}"
    if not (folder / "cases.json").exists():
        command = [python_of(maker), HERE / maker.script, str(folder), *maker.arguments, *(["--core"] if core else [])]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode != 0:
            sys.exit(f"{maker.name}: {answer.stderr.strip()[-2000:]}")
    return folder


def word(arg, folder):
    """An argument as the command line has it."""
    if "struct" in arg:
        return "struct:" + ";".join(word(member, folder) for member in arg["struct"])
    over = f"{arg['over']}:" if arg.get("over") else ""
    if "file" in arg:
        return f"{over}{arg['buffer']}=@{folder / arg['file']}"
    if "buffer" in arg:
        return f"{over}{arg['buffer']}:{makers.DTYPES[arg['dtype']]}:{arg['room']}"
    return arg["word"]


def flat(args):
    for arg in args:
        yield from flat(arg["struct"]) if "struct" in arg else [arg]


def run(tool, folder, case, schedule):
    """What a case gave: (parsed, ran, right, findings, what is to be said)."""
    import numpy

    info = subprocess.run([tool, "ptx", "info", "-f", "json", folder / case["ptx"]], capture_output=True, text=True)
    if not info.stdout.strip():
        return dict(parsed=False, say=info.stderr.strip()[:300])
    unsupported = sorted({u["instruction"] for u in json.loads(info.stdout)["unsupported"]})
    found = dict(parsed=True, ran=True, right=True, findings=[], true=[], say="", unsupported=unsupported, launches=len(case["launches"]))
    for launch in case["launches"]:
        dims = lambda values: ",".join(map(str, values))
        command = [str(tool), "ptx", "run", str(folder / case["ptx"]), "-k", launch["kernel"], "-g", dims(launch["grid"]), "-b", dims(launch["block"])]
        command += ["--shared", str(launch["shared"])] if launch["shared"] else []
        command += ["--cooperative"] if launch["cooperative"] else []
        command += ["--cluster", dims(launch["cluster"])] if launch["cluster"] else []
        command += schedule
        for arg in launch["args"]:
            command += ["--arg", word(arg, folder)]
        saves, scratch = [], folder / f"{case['name']}-{os.getpid()}"
        for arg in flat(launch["args"]):
            if "after" in arg:
                saves.append((arg, pathlib.Path(f"{scratch}-{arg['buffer']}.npy")))
                command += ["--save", f"{arg['buffer']}={saves[-1][1]}"]
        try:
            answer = subprocess.run([*command, "-f", "json"], capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return found | dict(ran=False, right=False, say="no end within 300 s", command=command)
        found["command"] = command
        if not answer.stdout.strip() or answer.returncode not in (0, 3):
            return found | dict(ran=False, right=False, say=answer.stderr.strip()[:400])
        document = json.loads(answer.stdout)
        for report in document["launches"]:
            for finding in report["findings"]:
                true = case["races"] and finding["kind"] == "race"
                if not finding["remark"]:
                    found["true" if true else "findings"].append(finding["message"])
            if report["halt"]:
                found |= dict(ran=False, right=False, say=report["halt"]["message"])
        for arg, path in saves:
            if not path.exists():
                found |= dict(right=False)
                continue
            got, wanted = numpy.load(path), numpy.load(folder / arg["after"])
            path.unlink()
            if arg["tolerance"]:
                same = numpy.allclose(got.astype(float), wanted.astype(float), rtol=arg["tolerance"], atol=arg["tolerance"])
            else:
                same = got.tobytes() == wanted.astype(got.dtype).tobytes()
            if not same and found["right"]:
                at = int(numpy.flatnonzero(got != wanted.astype(got.dtype))[0])
                found |= dict(right=False, say=f"{arg['buffer']}[{at}] is {got[at]}, not {wanted[at]}")
    return found


def with_numpy():
    """Goes on in an environment that has NumPy, if this one has not."""
    try:
        import numpy
    except ImportError:
        python = python_of(makers.Maker("driver", "", [makers.NUMPY]))
        os.execv(python, [str(python), *sys.argv])
    return numpy


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", type=pathlib.Path, help="the warpfold to test")
    parser.add_argument("--core", action="store_true", help="some cases of each compiler")
    parser.add_argument("--only", default="*", help="compiler:case, with * and ?")
    parser.add_argument("--schedule", default="lockstep", help="lockstep, random or adversarial")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each case")
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="runs at a time")
    args = parser.parse_args()
    with_numpy()
    schedule = [] if args.schedule == "lockstep" else ["--schedule", args.schedule, "--seed", "1"]
    compiler, _, pattern = args.only.partition(":")
    chosen = [maker for maker in makers.MAKERS if fnmatch.fnmatch(maker.name, compiler) and (maker.core or not args.core)]
    if not chosen:
        names = ", ".join(f"{maker.name}{'' if maker.core else ' (not of the core)'}" for maker in makers.MAKERS)
        sys.exit(f"error: no compiler is chosen\nhint: there are {names}")
    rows, bad = [], 0
    for maker in chosen:
        folder = make(maker, args.core)
        cases = [case for case in json.loads((folder / "cases.json").read_text()) if fnmatch.fnmatch(case["name"], pattern or "*")]
        skipped = [case for case in cases if "skipped" in case]
        cases = [case for case in cases if "skipped" not in case]
        with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
            found = list(pool.map(lambda case: run(args.tool, folder, case, schedule), cases))
        count = lambda test: sum(1 for case, f in zip(cases, found) if test(case, f))
        for case, f in zip(cases, found):
            unread = f.get("unsupported", [])
            missed = case.get("races") and f.get("ran") and not f["true"]
            wrong = not f["parsed"] or f.get("findings") or missed or not f.get("right") and not (case.get("tensor") and unread)
            bad += bool(wrong)
            if wrong or args.verbose:
                state = "unread" if not f["parsed"] else "stopped" if not f["ran"] else "wrong" if not f["right"] else "findings" if f["findings"] else "right"
                state = "without the race that it has" if missed else state
                print(f"{maker.name}:{case['name']}: {state} {f['say']}", *f.get("findings", [])[:3], sep="\n    ")
                if unread:
                    print("    not supported:", ", ".join(unread))
                if wrong and "command" in f:
                    print("   ", shlex.join(f["command"]))
        for case in skipped:
            print(f"{maker.name}:{case['name']}: its own compiler refuses it: {case['skipped']}")
        rows.append([
            maker.name,
            len(cases),
            count(lambda c, f: f["parsed"]),
            count(lambda c, f: c["launches"]),
            count(lambda c, f: c["launches"] and f.get("ran")),
            count(lambda c, f: c["launches"] and f.get("right")),
            sum(len(f.get("findings", [])) for f in found),
        ])
    rows.append(["all", *(sum(column) for column in list(zip(*rows))[1:])])
    head = ["compiler", "modules", "parsed", "to run", "ran", "right", "false findings"]
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width) for i, (cell, width) in enumerate(zip(row, widths))))
    total = rows[-1]
    print(f"{total[1] - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
