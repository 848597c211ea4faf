"""Types of the compiled part of warpfold."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsComplex, SupportsFloat, SupportsIndex, TypeAlias, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

_Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
_Nan: TypeAlias = Literal["propagate", "omit", "raise"] | None

class _Tensor(Protocol):
    def __dlpack_device__(self) -> object: ...

class _OnDevice(Protocol):
    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _Convertible(Protocol):
    def __array__(self) -> object: ...

_NumPy: TypeAlias = NDArray[np.generic]
_Number: TypeAlias = SupportsFloat | SupportsComplex | SupportsIndex
# Numbers of Python.
_Numbers: TypeAlias = float | Iterable[float] | Sequence[Sequence[float]]
# Whatever is an array: by one of the protocols, or one number after the other.
_Array: TypeAlias = _Tensor | _OnDevice | _ArrowArray | _ArrowStream | _Convertible | _NumPy | memoryview | bytes | _Number | Iterable[object] | File
_Mask: TypeAlias = _Array | bool | None
_Out: TypeAlias = _NumPy | memoryview | None
# A type of NumPy, torch or Python, or a name.
_DType: TypeAlias = object
# What nobody can say without the argument: of a table a dictionary, of a file a number, a decimal or a date, of a column an array
# of its library, of several operations a dictionary by their names.
_Answer: TypeAlias = Any
# A number of NumPy, of which the answer's type is known when the elements' is.
_Real: TypeAlias = np.number[Any]

_TensorT = TypeVar("_TensorT", bound=_Tensor)
_ElementT = TypeVar("_ElementT", bound=np.generic)
# What numbers of Python answer, and what arrays of NumPy do.
_Plain_co = TypeVar("_Plain_co", covariant=True)
_Scalar_co = TypeVar("_Scalar_co", covariant=True, bound=np.generic)

class _HasFileno(Protocol):
    def fileno(self) -> int: ...

__version__: str

# Arrays of NumPy, and ours, are tensors, too: of the overloads that take them the first counts, which checkers are told to overlook.
# Answers over all axes are numbers, of NumPy for its arrays; those of tensors are tensors. What else there is, tables and files
# among it, has answers of several kinds.

class _Total(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[_Scalar_co]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _NanTotal(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> NDArray[_Scalar_co]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _Extreme(Protocol[_Plain_co]):
    @overload
    def __call__(self, x: NDArray[_ElementT], /, axis: None = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _ElementT: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: NDArray[_ElementT], /, axis: _Axis = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[_ElementT]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _NanExtreme(Protocol[_Plain_co]):
    @overload
    def __call__(self, x: NDArray[_ElementT], /, axis: None = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _ElementT: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: NDArray[_ElementT], /, axis: _Axis = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> NDArray[_ElementT]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, keepdims: Literal[False] = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, keepdims: bool = False, initial: _Number | None = None, where: _Mask = None, *, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _Spread(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: Literal[False] = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[_Scalar_co]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: Literal[False] = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _NanSpread(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: Literal[False] = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> NDArray[_Scalar_co]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: Literal[False] = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, ddof: float | None = None, keepdims: bool = False, *, where: _Mask = None, correction: float | None = None, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _Place(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, out: None = None, *, keepdims: Literal[False] = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, out: None = None, *, keepdims: bool = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[_Scalar_co]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, *, keepdims: Literal[False] = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, *, keepdims: bool = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, *, keepdims: bool = False, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _NanPlace(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, out: None = None, *, keepdims: Literal[False] = False, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, out: None = None, *, keepdims: bool = False, device: str | None = None, threads: int | None = None) -> NDArray[_Scalar_co]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, *, keepdims: Literal[False] = False, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, *, keepdims: bool = False, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, *, keepdims: bool = False, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _Question(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> NDArray[_Scalar_co]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, out: _Out = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _Other(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[_Scalar_co]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _NanOther(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Scalar_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> NDArray[_Scalar_co]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Plain_co: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, *, where: _Mask = None, device: str | None = None, threads: int | None = None) -> _Answer: ...

class _Pair(Protocol[_Plain_co, _Scalar_co]):
    @overload
    def __call__(self, x: _NumPy, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[_Scalar_co, _Scalar_co]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _NumPy, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[NDArray[_Scalar_co], NDArray[_Scalar_co]]: ...
    @overload
    def __call__(self, x: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[_Plain_co, _Plain_co]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, x: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[_TensorT, _TensorT]: ...
    @overload
    def __call__(self, x: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, *, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[_Answer, _Answer]: ...

sum: _Total[float, _Real]
nansum: _NanTotal[float, _Real]
prod: _Total[float, _Real]
nanprod: _NanTotal[float, _Real]
min: _Extreme[float]
nanmin: _NanExtreme[float]
max: _Extreme[float]
nanmax: _NanExtreme[float]
var: _Spread[float, _Real]
nanvar: _NanSpread[float, _Real]
std: _Spread[float, _Real]
nanstd: _NanSpread[float, _Real]
argmin: _Place[int, np.int64]
nanargmin: _NanPlace[int, np.int64]
argmax: _Place[int, np.int64]
nanargmax: _NanPlace[int, np.int64]
any: _Question[bool, np.bool_]
all: _Question[bool, np.bool_]
count_nonzero: _Question[int, np.int64]
count_nan: _Question[int, np.int64]
mean: _Other[float, _Real]
nanmean: _NanOther[float, _Real]
norm1: _Other[float, _Real]
norm2: _Other[float, _Real]
norm_inf: _Other[float, _Real]
sumsq: _Other[float, _Real]
range: _Other[float, _Real]
count: _Other[int, np.int64]
logsumexp: _Other[float, _Real]
minmax: _Pair[float, _Real]
argminmax: _Pair[int, np.int64]

@overload
def dot(x: _NumPy, y: _NumPy | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Real: ...  # type: ignore[overload-overlap]
@overload
def dot(x: _NumPy, y: _NumPy | _Numbers, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> NDArray[_Real]: ...  # type: ignore[overload-overlap]
@overload
def dot(x: Array | _Numbers, y: Array | _Numbers, /, axis: None = None, dtype: _DType = None, out: None = None, keepdims: Literal[False] = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> float: ...  # type: ignore[overload-overlap]
@overload
def dot(x: _TensorT, y: _TensorT, /, axis: _Axis = None, dtype: _DType = None, out: None = None, keepdims: bool = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _TensorT: ...  # type: ignore[overload-overlap]
@overload
def dot(x: _Array, y: _Array, /, axis: _Axis = None, dtype: _DType = None, out: _Out = None, keepdims: bool = False, *, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Answer: ...  # type: ignore[overload-overlap]
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
) -> dict[str, _Answer]: ...

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
    def tolist(self) -> list[_Answer]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: SupportsIndex | slice | EllipsisType | tuple[SupportsIndex | slice | EllipsisType, ...], /) -> _Answer: ...
    def __iter__(self) -> Iterator[_Answer]: ...
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
    ) -> object: ...

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
    ) -> _Answer: ...
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
