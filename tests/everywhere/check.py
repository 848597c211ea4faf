#!/usr/bin/env python3
"""The same bits everywhere: one thread, Dask with two workers, four ranks of torch, eight of MPI, the command line alone, as ranks and
on two simulated devices, DataFusion with sixteen partitions.

    python tests/everywhere/check.py [target/debug/warpfold [crates/datafusion/target/debug/examples/partitions]]

Needs the package warpfold and NumPy. A place whose packages or programs are missing is skipped, by name. Exit status 1 if any
answer differs.
"""

import os
import pathlib
import shutil
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


def environment():
    """With the words that Open MPI asks for on a small machine, as root, and its launcher in the path; others do not read them."""
    words = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return os.environ | words | {"PATH": f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}"}


def of_ranks(ranks, command):
    """What all ranks of a program have found."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment() | {"OMP_NUM_THREADS": "1", "WARPFOLD_FOUND": folder})
        if done.returncode:
            raise RuntimeError(done.stderr)
        found = {pathlib.Path(folder, str(rank)).read_text() for rank in range(ranks)}
    if len(found) != 1:
        raise RuntimeError("ranks differ")
    return found.pop().split("\n")


def torch():
    import torch  # noqa: F401

    return of_ranks(4, [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", __file__, "--torch-rank"])


def launcher():
    own = pathlib.Path(sys.prefix, "bin/mpiexec")
    found = str(own) if own.exists() else shutil.which("mpiexec")
    if not found:
        raise ImportError("no mpiexec")
    return found


def mpi():
    import warpfold.mpi  # noqa: F401

    return of_ranks(8, [launcher(), "-n", "8", sys.executable, "-m", "mpi4py", __file__, "--mpi-rank"])


def datafusion(example):
    if not pathlib.Path(example).exists():
        raise ImportError("cargo build --example partitions --manifest-path crates/datafusion/Cargo.toml")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for dtype, name in zip(TYPES, ["f64", "f32"], strict=True):
            numbers(dtype).tofile(f"{folder}/x")
            printed = subprocess.run([example, name, f"{folder}/x", "16"], capture_output=True, text=True, check=True, timeout=240).stdout
            found += printed.split("\n")[:-1]
    return found


def command_line(binary, *words, ranks=0):
    first, last = ([launcher(), "-n", str(ranks)], ["--mpi", "-f", "plain"]) if ranks else ([], [])
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for dtype in TYPES:
            file = f"{folder}/{dtype}.npy"
            np.save(file, numbers(dtype))
            command = [*first, binary, "reduce", "--op", ",".join(OPS), "--hex", file, *words, *last]
            # A launcher may write for a terminal.
            printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240, env=environment()).stdout
            found += printed.replace("\r", "").split("\n")[:-1]
    return found


def main():
    if sys.argv[1:] in (["--torch-rank"], ["--mpi-rank"]):
        return torch_rank() if sys.argv[1] == "--torch-rank" else mpi_rank()
    expected = one_thread()
    print("one thread:", *expected, sep="\n    ")
    places = {"Dask, two workers": dask, "torch, four ranks of gloo": torch, "MPI, eight ranks": mpi}
    if len(sys.argv) > 1:
        places["the command line"] = lambda: command_line(sys.argv[1])
        places["warpfold --mpi, eight ranks"] = lambda: command_line(sys.argv[1], ranks=8)
        places["warpfold, two simulated devices"] = lambda: command_line(sys.argv[1], "--device", "sim:2")
    if len(sys.argv) > 2:
        # It has no positions.
        places["DataFusion, sixteen partitions"] = lambda: datafusion(sys.argv[2])
    passed, failed, skipped = 1, 0, 0
    for name, place in places.items():
        try:
            found = place()
        except ImportError as missing:
            print(f"{name}: skipped: {str(missing).splitlines()[0]}")
            skipped += 1
            continue
        answered = [line for line in expected if len(found) == len(expected) or not line.startswith("argmax")]
        if found == answered:
            print(f"{name}: the same bits")
            passed += 1
        else:
            print(f"{name}: differs:", *found, sep="\n    ")
            failed += 1
    print(f"everywhere: {passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
