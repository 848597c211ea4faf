"""Ranks of torch.distributed: every one has the bits of a single run, or the error. On the CPU by gloo."""

import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("warpfold.torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

BEGIN = """
import os
import torch, warpfold as wf, warpfold.torch as wt
from torch import distributed
distributed.init_process_group("gloo")
rank, ranks = distributed.get_rank(), distributed.get_world_size()
torch.manual_seed(0)
x = torch.randn(1001, 6, dtype=torch.float64) * torch.exp(20 * torch.randn(1001, 6, dtype=torch.float64))
def say(text):
    # At once, so that ranks do not write into each other's lines.
    os.write(1, f"{text}\\n".encode())
"""


def torchrun(ranks, script, *words):
    """What a program prints on some ranks."""
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), str(script), *words], capture_output=True, text=True, timeout=240, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def program(tmp_path):
    def run(ranks, script):
        file = tmp_path / "program.py"
        file.write_text(BEGIN + textwrap.dedent(script) + "\ndistributed.destroy_process_group()\n")
        return torchrun(ranks, file)

    return run


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_every_rank_has_the_bits_of_a_single_run(program, ranks):
    out = program(
        ranks,
        """
        def same(a, b):
            if isinstance(b, (tuple, dict)):
                a, b = (list(c.values()) if isinstance(c, dict) else c for c in (a, b))
                return len(a) == len(b) and all(map(same, a, b))
            return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
        # Uneven shares, the first of which is empty where there are others.
        first, last = 1001 * rank * (rank - 1) // (ranks * (ranks - 1) or 1), 1001 * rank * (rank + 1) // (ranks * (ranks - 1) or 1)
        rows = slice(first, last) if ranks > 1 else slice(0, 1001)
        for kind in [torch.float64, torch.float32, torch.bfloat16, torch.int32]:
            y = x.clamp(-1e3, 1e3).to(kind)
            for op in ["sum", "norm2", "count_nonzero", "max", "minmax", "prod", ["mean", "var"]]:
                for axis in [None, 0]:
                    if kind == torch.int32 and op == "prod":
                        continue
                    assert same(wt.all_reduce(y[rows], op, axis=axis), wf.reduce(y, op, axis=axis)), (kind, op, axis)
        assert same(wt.all_reduce(x[rows], "argmax", axis=0, start=first if ranks > 1 else 0), wf.argmax(x, axis=0))
        assert same(wt.all_reduce(x[rows], ["mean", "std"], correction=1, dtype=torch.float32), wf.reduce(x, ["mean", "std"], correction=1, dtype=torch.float32))
        # Several tensors, as gradients; half of the ranks.
        assert same(wt.all_reduce([column for column in x[rows].T], "norm2"), wf.norm2(x))
        half = distributed.new_group(list(range((ranks + 1) // 2)))
        if rank < (ranks + 1) // 2:
            assert wt.all_reduce(torch.ones(3), "sum", half).item() == 3 * ((ranks + 1) // 2)
        part = wf.Partial("sum")
        part.absorb(x[rows])
        assert same(wt.all_reduce(part), wf.sum(x))
        say(f"done {wt.all_reduce(x[rows], 'mean').item().hex()}")
        """,
    )
    lines = {line for line in out.splitlines() if line.startswith("done")}
    assert len(lines) == 1 and out.count("done") == ranks


def test_ranks_with_different_questions(program):
    out = program(
        3,
        """
        def told(call):
            try:
                call()
            except (ValueError, TypeError, RuntimeError) as error:
                say(f"{type(error).__name__} {str(error).splitlines()[0]}")
        told(lambda: wt.all_reduce(x, "sum" if rank else "mean"))
        told(lambda: wt.all_reduce(x.float() if rank else x))
        told(lambda: wt.all_reduce(x[:, rank:], axis=0))
        told(lambda: wt.all_reduce(x, nan="omit" if rank else None))
        told(lambda: wt.all_reduce(x if rank else x.to(torch.complex128)))
        told(lambda: wt.all_reduce(x * torch.nan, nan="raise"))
        # Nothing hangs, and the group goes on.
        assert wt.all_reduce(torch.ones(2)).item() == 6
        """,
    )
    assert out.count("ValueError ranks ask different questions") == 12
    assert out.count("RuntimeError another rank cannot give its share") == 2 and "TypeError" in out
    assert out.count("NaN") == 3


def test_a_training_run_repeats_on_another_number_of_ranks(repository):
    script = repository / "examples/torch/repeatable.py"
    exact = [torchrun(ranks, script) for ranks in [1, 2, 8]]
    assert exact[0].count("loss") == 12 and exact[0] == exact[1] == exact[2]
    # As usual it does not: the comparison can fail.
    assert torchrun(1, script, "--plain") != torchrun(2, script, "--plain")
