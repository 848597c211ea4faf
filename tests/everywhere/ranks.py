#!/usr/bin/env python3
"""`warpfold --mpi`: ranks give the bits of a single run, or one error, and none waits for one that has left.

    python tests/everywhere/ranks.py target/debug/warpfold [FOLDER...]

Each folder has an MPI installation, with bin/mpiexec; without one it is this Python's own, or what the shell finds.
Needs NumPy. Exit status 1 if anything differs.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

# Open MPI asks for all of this on a small machine, as root; others do not read it.
WORDS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


class Launcher:
    """The launcher of an installation, whose library the command finds beside it."""

    def __init__(self, file):
        self.file = pathlib.Path(file)
        self.env = os.environ | WORDS | {"PATH": f"{self.file.parent}{os.pathsep}{os.environ['PATH']}"}

    def run(self, *command, **words):
        """A job; one that does not end is an error."""
        command = [self.file, *map(str, command)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=self.env | words, stdin=subprocess.DEVNULL)


def launchers(folders):
    named = [pathlib.Path(folder, "bin/mpiexec") for folder in folders or [sys.prefix]]
    found = [file for file in named if file.exists()]
    if not found and not folders and shutil.which("mpiexec"):
        found = [shutil.which("mpiexec")]
    return [Launcher(file) for file in found]


def write_inputs(folder):
    random = np.random.default_rng(3)
    x = random.standard_normal(30_001) * np.exp(9 * random.standard_normal(30_001))
    np.save(folder / "x.npy", x)
    np.save(folder / "few.npy", x[:3])
    np.save(folder / "table.npy", x[:30_000].reshape(300, 100))
    np.save(folder / "fortran.npy", np.asfortranarray(x[:30_000].reshape(300, 100)))
    np.savez_compressed(folder / "packed.npz", x=x)
    with open(folder / "rows.csv", "w") as file:
        file.write("key,value,count\n")
        for i in range(90_000):
            file.write(f"{'abcdefg'[i * i % 7]},{float(x[i % 30_001])!r},{i}\n")
    with open(folder / "late.csv", "w") as file:
        file.writelines(f"{9_007_199_254_740_000 + i}\n" for i in range(120_000))
        file.write("not a number\n")


ASKED = [
    "reduce --op sum,var,norm2,argmax,argmin,prod,logsumexp,count,minmax {}/x.npy",
    "sum {}/few.npy",
    "reduce --op sum,argmin {}/few.npy {}/x.npy {}/few.npy",
    "reduce --op argmax,sum {}/fortran.npy",
    "reduce --op argmax,sum -a 0 {}/table.npy",
    "reduce --op argmax,sum -a 0 --keepdims {}/fortran.npy",
    "sum {}/packed.npz:x",
    "argmax {}/packed.npz:x",
    "dot {}/x.npy {}/x.npy",
    "stats {}/rows.csv",
    "sum --device sim {}/few.npy",
    "reduce --op sum,mean,max -c value,count --by key {}/rows.csv",
    "reduce --op sum,argmax -c value --by key --group-order first {}/rows.csv",
    "stats --by key {}/rows.csv",
]


def answers(launcher, binary, folder):
    """Every question, by 1 to 8 ranks, has the bits of a single run."""
    for i, asked in enumerate(ASKED):
        words = asked.replace("{}", str(folder)).split()
        hexed = [] if words[0] == "stats" else ["--hex"]
        alone = subprocess.run([binary, *words, *hexed, "-q", "-f", "csv"], capture_output=True, text=True, check=True).stdout
        for ranks in {1 + i % 8, 2 + 3 * i % 7}:
            done = launcher.run("-n", ranks, binary, *words, "--mpi", "-q", *hexed, "-f", "csv")
            assert done.returncode == 0, done
            # A launcher may write for a terminal.
            assert done.stdout.replace("\r", "") == alone, (ranks, asked, alone, done)


def written_once(launcher, binary, folder):
    """States and answers are written by the first rank alone."""
    state, file = folder / "x.state", folder / "answer.npy"
    done = launcher.run("-n", 4, binary, "partial", "sum,argmax", "--mpi", folder / "x.npy", "-o", state)
    assert done.returncode == 0 and not done.stdout.strip(), done
    merged = subprocess.run([binary, "merge", state, "--hex"], capture_output=True, text=True, check=True).stdout
    assert merged == subprocess.run([binary, "reduce", "--op", "sum,argmax", folder / "x.npy", "--hex"], capture_output=True, text=True, check=True).stdout
    done = launcher.run("-n", 3, binary, "sum", "-a", "0", "--mpi", folder / "table.npy", "-o", file)
    assert done.returncode == 0, done
    subprocess.run([binary, "sum", "-a", "0", folder / "table.npy", "-o", folder / "alone.npy"], check=True)
    assert np.load(file).tobytes() == np.load(folder / "alone.npy").tobytes()


def told_once(launcher, binary, folder):
    """What is wrong for all of them is told once, and the job fails."""
    done = launcher.run("-n", 4, binary, "sum", "--mpi", folder / "none.npy")
    assert done.returncode != 0 and done.stderr.count("No such file") == 1, done
    for words in ["sum --mpi", f"sum --mpi -a 1 {folder}/table.npy", f"min --mpi --segments {folder}/few.npy {folder}/x.npy"]:
        done = launcher.run("-n", 3, binary, *words.split())
        assert done.returncode != 0 and done.stderr.count("error: ") == 1 and "hint: " in done.stderr, done


def different_questions(launcher, binary, folder):
    """They are told before anything is reduced: the file is not even there."""
    done = launcher.run("-n", 1, binary, "sum", "--mpi", "none.npy", ":", "-n", 2, binary, "mean", "--mpi", "none.npy")
    assert done.returncode != 0 and done.stderr.count("ranks ask different questions: rank 0 asks for `sum") == 1, done
    assert "rank 1 asks for `mean" in done.stderr and "No such file" not in done.stderr, done


def a_failing_rank(launcher, binary, folder):
    """One that fails in the middle ends all, with its message."""
    done = launcher.run("-n", 3, binary, "sum", "--mpi", "--strict", "--no-header", folder / "late.csv")
    assert done.returncode != 0 and "late.csv" in done.stderr and "120001" in done.stderr and "error: rank " in done.stderr, done


def another_library(launcher, binary, folder):
    """One that cannot be loaded is an error of every rank, and nobody waits."""
    done = launcher.run("-n", 2, binary, "sum", "--mpi", folder / "x.npy", WARPFOLD_MPI_LIBRARY="libnone.so")
    assert done.returncode != 0 and "no MPI library can be loaded: libnone.so" in done.stderr, done


def the_other_launcher_s_library(launcher, binary, folder):
    """A library that does not belong to the launcher sees one rank in each process, or none: an error, and never an answer for each."""
    for other in launchers(sys.argv[2:]):
        for library in (other.file.parents[1] / "lib").glob("libmpi.so.*"):
            if other.file != launcher.file:
                done = launcher.run("-n", 2, binary, "sum", "--mpi", folder / "x.npy", WARPFOLD_MPI_LIBRARY=str(library))
                assert done.returncode != 0 and not done.stdout.strip(), done


CHECKS = [answers, written_once, told_once, different_questions, a_failing_rank, another_library, the_other_launcher_s_library]


def main():
    binary, *folders = sys.argv[1:]
    found = launchers(folders)
    if not found:
        print("ranks: skipped: no mpiexec")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_inputs(folder)
        for launcher in found:
            for check in CHECKS:
                try:
                    check(launcher, str(pathlib.Path(binary).resolve()), folder)
                    print(f"{launcher.file}: {check.__name__}: passed")
                except (AssertionError, subprocess.SubprocessError) as error:
                    failed += 1
                    print(f"{launcher.file}: {check.__name__}: failed: {error}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
