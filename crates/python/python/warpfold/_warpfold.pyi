"""Types of the compiled part of warpfold."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsComplex, SupportsFloat, SupportsIndex, TypeAlias, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

_Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
_Nan: TypeAlias = Literal["propagate", "omit", "raise"] | None

class _Tensor(Protocol):
    def __dlpack_device__(self) -> Any: ...

class _OnDevice(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

class _Convertible(Protocol):
    def __array__(self) -> Any: ...

_Number: TypeAlias = SupportsFloat | SupportsComplex | SupportsIndex
# Numbers of Python.
_Numbers: TypeAlias = float | Iterable[float] | Sequence[Sequence[float]]
# Whatever is an array: by one of the protocols, or one number after the other.
_Array: TypeAlias = _Tensor | _OnDevice | _ArrowArray | _ArrowStream | _Convertible | NDArray[Any] | memoryview | bytes | _Number | Iterable[Any] | File
_Mask: TypeAlias = _Array | bool | None
_Out: TypeAlias = NDArray[Any] | memoryview | None
# A type of NumPy, torch or Python, or a name.
_DType: TypeAlias = object
# Of columns: an array, a list, or dictionaries by name.
_Answer: TypeAlias = Any

_TensorT = TypeVar("_TensorT", bound=_Tensor)
# What numbers of Python answer, and what arrays of NumPy do.
_Plain_co = TypeVar("_Plain_co", covariant=True)
_Scalar_co = TypeVar("_Scalar_co", covariant=True)

class _HasFileno(Protocol):
    def fileno(self) -> int: ...

__version__: str

# Answers over all axes are numbers, of NumPy for its arrays; those of tensors are tensors. What else there is, tables and files
# among it, has answers of several kinds.

class _Total(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> Any: ...

class _NanTotal(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> Any: ...

class _Extreme(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> Any: ...

class _NanExtreme(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> Any: ...

class _Spread(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: Literal[False] = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: Literal[False] = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> Any: ...

class _NanSpread(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: Literal[False] = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: Literal[False] = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> Any: ...

class _Place(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, out: None = None, *, keepdims: Literal[False] = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, out: None = None, *, keepdims: bool = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, *, keepdims: Literal[False] = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, *, keepdims: bool = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, *, keepdims: bool = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> Any: ...

class _NanPlace(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, out: None = None, *, keepdims: Literal[False] = False, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, out: None = None, *, keepdims: bool = False, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, *, keepdims: Literal[False] = False, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, *, keepdims: bool = False, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, *, keepdims: bool = False, device: str | None = None, threads: int | None = None) -> Any: ...

class _Question(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> Any: ...

class _Other(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> Any: ...

class _NanOther(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> Any: ...

class _Pair(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: NDArray[Any], /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[_Scalar_co, _Scalar_co]: ...
    @overload
    def __call__(self, x: NDArray[Any], /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[_Plain_co, _Plain_co]: ...
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[_TensorT, _TensorT]: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[Any, Any]: ...

sum: _Total[float, np.number[Any]]
nansum: _NanTotal[float, np.number[Any]]
prod: _Total[float, np.number[Any]]
nanprod: _NanTotal[float, np.number[Any]]
min: _Extreme[float, np.number[Any]]
nanmin: _NanExtreme[float, np.number[Any]]
max: _Extreme[float, np.number[Any]]
nanmax: _NanExtreme[float, np.number[Any]]
var: _Spread[float, np.number[Any]]
nanvar: _NanSpread[float, np.number[Any]]
std: _Spread[float, np.number[Any]]
nanstd: _NanSpread[float, np.number[Any]]
argmin: _Place[int, np.int64]
nanargmin: _NanPlace[int, np.int64]
argmax: _Place[int, np.int64]
nanargmax: _NanPlace[int, np.int64]
any: _Question[bool, np.bool_]
all: _Question[bool, np.bool_]
count_nonzero: _Question[int, np.int64]
count_nan: _Question[int, np.int64]
mean: _Other[float, np.number[Any]]
nanmean: _NanOther[float, np.number[Any]]
norm1: _Other[float, np.number[Any]]
norm2: _Other[float, np.number[Any]]
norm_inf: _Other[float, np.number[Any]]
sumsq: _Other[float, np.number[Any]]
range: _Other[float, np.number[Any]]
count: _Other[int, np.int64]
logsumexp: _Other[float, np.number[Any]]
minmax: _Pair[float, np.number[Any]]
argminmax: _Pair[int, np.int64]

@overload
def dot(x: NDArray[Any], y: NDArray[Any] | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> np.number[Any]: ...
@overload
def dot(x: NDArray[Any], y: NDArray[Any] | _Numbers, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[Any]: ...
@overload
def dot(x: Array | _Numbers, y: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> float: ...
@overload
def dot(x: _TensorT, y: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
@overload
def dot(x: _Array, y: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> Any: ...
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
    where: _Mask = None,
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
    offsets: _Array | None = None,
    lengths: _Array | None = None,
    starts: _Array | None = None,
    stops: _Array | None = None,
    length: int | None = None,
    y: _Array | None = None,
    initial: _Number | None = None,
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
    y: _Array | None = None,
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
    def tolist(self) -> list[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: SupportsIndex | slice | EllipsisType | tuple[SupportsIndex | slice | EllipsisType, ...], /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
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
    def absorb(self, x: _Array, y: _Array | None = None, /, *, start: int | None = None) -> None: ...
    def merge(self, other: Partial) -> None: ...
    def __add__(self, other: Partial, /) -> Partial: ...
    def __radd__(self, other: int, /) -> Partial: ...
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
    def to_vector(self) -> Array | None: ...
    def from_vector(self, vector: _Array) -> Partial: ...
    def empty(self) -> Partial: ...
    def __sizeof__(self) -> int: ...
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
        self, keys: _Array, values: _Array, y: _Array | None = None, /, *, start: int | None = None
    ) -> None: ...
    def merge(self, other: GroupPartial) -> None: ...
    def __add__(self, other: GroupPartial, /) -> GroupPartial: ...
    def __radd__(self, other: int, /) -> GroupPartial: ...
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
