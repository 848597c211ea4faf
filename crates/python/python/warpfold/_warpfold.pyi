"""Types of the compiled part of warpfold."""

import sys
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, SupportsFloat, SupportsIndex, TypeAlias, final

_Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
_Nan: TypeAlias = Literal["propagate", "omit", "raise"] | None
# What has a buffer, `__dlpack__`, `__cuda_array_interface__`, `__arrow_c_array__`,
# `__arrow_c_stream__` or `__array__`; numbers, and iterables of them; a `File`.
_Array: TypeAlias = Any
# A type of NumPy, torch or Python, or a name.
_DType: TypeAlias = Any
# Of the library of the array: a scalar, or an array for axes that are kept.
_Answer: TypeAlias = Any

class _HasFileno(Protocol):
    def fileno(self) -> int: ...

__version__: str

def sum(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    initial: SupportsFloat | None = None,
    where: _Array = None,
    *,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def nansum(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    initial: SupportsFloat | None = None,
    where: _Array = None,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def prod(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    initial: SupportsFloat | None = None,
    where: _Array = None,
    *,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def nanprod(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    initial: SupportsFloat | None = None,
    where: _Array = None,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def min(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    keepdims: bool = False,
    initial: SupportsFloat | None = None,
    where: _Array = None,
    *,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def nanmin(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    keepdims: bool = False,
    initial: SupportsFloat | None = None,
    where: _Array = None,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def max(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    keepdims: bool = False,
    initial: SupportsFloat | None = None,
    where: _Array = None,
    *,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def nanmax(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    keepdims: bool = False,
    initial: SupportsFloat | None = None,
    where: _Array = None,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def var(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    ddof: float | None = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    correction: float | None = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def nanvar(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    ddof: float | None = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    correction: float | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def std(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    ddof: float | None = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    correction: float | None = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def nanstd(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    ddof: float | None = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    correction: float | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def argmin(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    *,
    keepdims: bool = False,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def nanargmin(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    *,
    keepdims: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def argmax(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    *,
    keepdims: bool = False,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def nanargmax(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    *,
    keepdims: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def any(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def all(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def count_nonzero(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def count_nan(
    x: _Array,
    /,
    axis: _Axis = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def mean(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def norm1(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def norm2(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def norm_inf(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def sumsq(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def range(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def count(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def logsumexp(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def nanmean(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def minmax(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> tuple[_Answer, _Answer]: ...
def argminmax(
    x: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> tuple[_Answer, _Answer]: ...
def dot(
    x: _Array,
    y: _Array,
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    out: _Array = None,
    keepdims: bool = False,
    *,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def reduce(
    x: _Array,
    ops: str | Iterable[str],
    /,
    axis: _Axis = None,
    dtype: _DType = None,
    keepdims: bool = False,
    *,
    ddof: float | None = None,
    correction: float | None = None,
    where: _Array = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def _answer_type(op: str, dtype: _DType, out: _DType) -> str: ...
def segments(
    x: _Array,
    ops: str | Iterable[str],
    /,
    *,
    offsets: _Array = None,
    lengths: _Array = None,
    starts: _Array = None,
    stops: _Array = None,
    length: int | None = None,
    y: _Array = None,
    initial: SupportsFloat | None = None,
    dtype: _DType = None,
    ddof: float | None = None,
    correction: float | None = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> _Answer: ...
def groupby(
    keys: _Array,
    values: _Array,
    ops: str | Iterable[str],
    /,
    *,
    order: Literal["key", "first"] = "key",
    dropna: bool = False,
    y: _Array = None,
    dtype: _DType = None,
    ddof: float | None = None,
    correction: float | None = None,
    nan: _Nan = None,
    device: str | None = None,
    threads: int | None = None,
) -> tuple[_Answer, _Answer]: ...
def open(
    path: str | PathLike[str] | _HasFileno,
    /,
    *,
    columns: str | int | Iterable[str | int] | None = None,
    format: str | None = None,
    dtype: _DType = None,
    shape: Sequence[int] | None = None,
    offset: int = 0,
    endian: Literal["little", "big"] = "little",
    header: bool | None = None,
    delimiter: str | None = None,
    strict: bool = False,
    na: Sequence[str] | None = None,
    memory_limit: int | None = None,
) -> File: ...
def stats(
    path: str | PathLike[str] | _HasFileno,
    /,
    *,
    columns: str | int | Iterable[str | int] | None = None,
    nan: _Nan = None,
    ddof: int = 0,
    format: str | None = None,
    dtype: _DType = None,
    shape: Sequence[int] | None = None,
    offset: int = 0,
    endian: Literal["little", "big"] = "little",
    header: bool | None = None,
    delimiter: str | None = None,
    strict: bool = False,
    na: Sequence[str] | None = None,
    memory_limit: int | None = None,
) -> dict[str, Any]: ...

@final
class File:
    @property
    def names(self) -> list[str]: ...
    @property
    def path(self) -> str: ...

@final
class Array:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    def tolist(self) -> Any: ...
    def __len__(self) -> int: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...

@final
class Partial:
    def __new__(
        cls,
        ops: str | Iterable[str],
        /,
        *,
        axis: _Axis = None,
        nan: _Nan = None,
        ddof: float | None = None,
        correction: float | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> Partial: ...
    def absorb(self, x: _Array, y: _Array = None, /, *, start: int | None = None) -> None: ...
    def merge(self, other: Partial) -> None: ...
    def __add__(self, other: Partial, /) -> Partial: ...
    def __iadd__(self, other: Partial, /) -> Partial: ...
    def finish(
        self,
        *,
        nan: _Nan = None,
        ddof: float | None = None,
        correction: float | None = None,
        dtype: _DType = None,
    ) -> Any: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Partial: ...
    @property
    def ops(self) -> list[str]: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def shape(self) -> tuple[int, ...] | None: ...
    @property
    def missing(self) -> int: ...
    @property
    def position(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(
        self,
    ) -> tuple[type[Partial], tuple[list[str]], tuple[bool, str, tuple[int, int], list[int] | None, int, bool, bytes | None]]: ...
    def __setstate__(
        self, state: tuple[bool, str, tuple[int, int], list[int] | None, int, bool, bytes | None], /
    ) -> None: ...

@final
class GroupPartial:
    def __new__(
        cls,
        ops: str | Iterable[str],
        /,
        *,
        order: Literal["key", "first"] = "key",
        dropna: bool = False,
        nan: _Nan = None,
        ddof: float | None = None,
        correction: float | None = None,
        threads: int | None = None,
    ) -> GroupPartial: ...
    def absorb(
        self, keys: _Array, values: _Array, y: _Array = None, /, *, start: int | None = None
    ) -> None: ...
    def merge(self, other: GroupPartial) -> None: ...
    def __add__(self, other: GroupPartial, /) -> GroupPartial: ...
    def __iadd__(self, other: GroupPartial, /) -> GroupPartial: ...
    def finish(self) -> tuple[_Answer, _Answer]: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> GroupPartial: ...
    @property
    def ops(self) -> list[str]: ...
    @property
    def rows(self) -> int: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __reduce__(
        self,
    ) -> tuple[
        type[GroupPartial],
        tuple[list[str]],
        tuple[bool, tuple[str, bool, str, tuple[int, int]], tuple[int, list[str]], int, bool, bytes | None],
    ]: ...
    def __setstate__(
        self,
        state: tuple[bool, tuple[str, bool, str, tuple[int, int]], tuple[int, list[str]], int, bool, bytes | None],
        /,
    ) -> None: ...

@final
class Module:
    def __new__(cls, text: str) -> Module: ...
    @property
    def kernels(self) -> list[str]: ...
    def parameters(self, kernel: str) -> list[tuple[str, str, int | None]]: ...
    def _run(self, launch: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]: ...
