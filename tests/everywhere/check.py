#!/usr/bin/env python3
"""The same bits everywhere: one thread, Dask with two workers, four ranks of torch, eight of MPI, the command line.

    python tests/everywhere/check.py [target/debug/warpfold]

Needs the package warpfold and NumPy. A place whose packages are missing is skipped, by name. Exit status 1 if any
answer differs.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import warpfold as wf

OPS = ["sum", "mean", "var", "norm2", "argmax"]
TYPES = ["float64", "float32"]


def numbers(dtype):
    """Numbers whose rounded sums differ with the order."""
    random = np.random.default_rng(7)
    return (random.standard_normal(100_003) * np.exp(5 * random.standard_normal(100_003))).astype(dtype)


def share(x, rank, ranks):
    """Uneven shares, the first of which is empty, and where each begins."""
    cuts = [len(x) * i * (i + 1) // (ranks * (ranks - 1)) for i in range(ranks)]
    start = 0 if rank == 0 else cuts[rank - 1]
    return x[start : cuts[rank]], start


def lines(answers):
    """The bits, as ``--hex`` prints them."""
    return [f"{op}\t0x{np.asarray(answers[op]).tobytes()[::-1].hex()}" for op in OPS]


def one_thread():
    return [line for dtype in TYPES for line in lines(wf.reduce(numbers(dtype), OPS, threads=1))]


def dask():
    import dask.array as da
    import distributed
    import warpfold.dask  # noqa: F401

    found = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        for dtype in TYPES:
            lazy = wf.reduce(da.from_array(numbers(dtype), chunks=7_001), OPS)
            found += lines(dict(zip(lazy, client.gather(client.compute(list(lazy.values()))), strict=True)))
    return found


def torch_rank():
    import torch
    import warpfold.torch
    from torch import distributed

    distributed.init_process_group("gloo")
    found = []
    for dtype in TYPES:
        mine, start = share(numbers(dtype), distributed.get_rank(), distributed.get_world_size())
        answers = warpfold.torch.all_reduce(torch.from_numpy(mine), OPS, start=start)
        found += lines({op: answer.numpy() for op, answer in answers.items()})
    write(distributed.get_rank(), found)
    distributed.destroy_process_group()


def mpi_rank():
    import warpfold.mpi
    from mpi4py import MPI

    comm, found = MPI.COMM_WORLD, []
    for dtype in TYPES:
        mine, start = share(numbers(dtype), comm.rank, comm.size)
        part = wf.Partial(OPS)
        part.absorb(mine, start=start)
        found += lines(wf.mpi.allreduce(part).finish())
    write(comm.rank, found)


def write(rank, found):
    pathlib.Path(os.environ["WARPFOLD_FOUND"], str(rank)).write_text("\n".join(found))


def of_ranks(ranks, command):
    """What all ranks of a program have found."""
    with tempfile.TemporaryDirectory() as folder:
        # Open MPI asks for all of this on a small machine, as root; others do not read it.
        words = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=os.environ | words | {"WARPFOLD_FOUND": folder})
        if done.returncode:
            raise RuntimeError(done.stderr)
        found = {pathlib.Path(folder, str(rank)).read_text() for rank in range(ranks)}
    if len(found) != 1:
        raise RuntimeError("ranks differ")
    return found.pop().split("\n")


def torch():
    import torch  # noqa: F401

    return of_ranks(4, [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", __file__, "--torch-rank"])


def mpi():
    import warpfold.mpi  # noqa: F401

    launcher = pathlib.Path(sys.prefix, "bin/mpiexec")
    launcher = str(launcher) if launcher.exists() else "mpiexec"
    return of_ranks(8, [launcher, "-n", "8", sys.executable, "-m", "mpi4py", __file__, "--mpi-rank"])


def command_line(binary):
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for dtype in TYPES:
            file = f"{folder}/{dtype}.npy"
            np.save(file, numbers(dtype))
            found += subprocess.run([binary, "reduce", "--op", ",".join(OPS), "--hex", file], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    return found


def main():
    if sys.argv[1:] in (["--torch-rank"], ["--mpi-rank"]):
        return torch_rank() if sys.argv[1] == "--torch-rank" else mpi_rank()
    expected = one_thread()
    print("one thread:", *expected, sep="\n    ")
    places = {"Dask, two workers": dask, "torch, four ranks of gloo": torch, "MPI, eight ranks": mpi}
    if len(sys.argv) > 1:
        places["the command line"] = lambda: command_line(sys.argv[1])
    passed, failed, skipped = 1, 0, 0
    for name, place in places.items():
        try:
            found = place()
        except ImportError as missing:
            print(f"{name}: skipped: {str(missing).splitlines()[0]}")
            skipped += 1
            continue
        if found == expected:
            print(f"{name}: the same bits")
            passed += 1
        else:
            print(f"{name}: differs:", *found, sep="\n    ")
            failed += 1
    print(f"everywhere: {passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
