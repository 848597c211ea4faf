"""CUDA kernels without a GPU: PTX is run on the CPU, with arrays of NumPy, and checked for races and other faults.

>>> import numpy, warpfold.ptx
>>> text = '''
... .version 8.0
... .target sm_75
... .address_size 64
... .visible .entry number(.param .u64 out) {
...     .reg .b32 %r<2>; .reg .b64 %d<4>;
...     ld.param.u64 %d1, [out];
...     mov.u32 %r1, %tid.x;
...     mul.wide.u32 %d2, %r1, 4;
...     add.u64 %d3, %d1, %d2;
...     st.global.u32 [%d3], %r1;
...     ret;
... }'''
>>> out = numpy.zeros(8, numpy.uint32)
>>> run = warpfold.ptx.run(text, "number", grid=1, block=8, args=[out])
>>> out
array([0, 1, 2, 3, 4, 5, 6, 7], dtype=uint32)
>>> try:
...     warpfold.ptx.run(text, "number", grid=1, block=9, args=[out])
... except warpfold.ptx.KernelError as error:
...     print(error.findings[0].kind, error.findings[0].access.place)
out-of-bounds args[0][8]

The guide is ``docs/ptx.md`` of the repository.
"""

from __future__ import annotations

import ctypes
import dataclasses
import struct
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import numpy

from ._warpfold import Module

__all__ = [
    "Access",
    "Finding",
    "Halt",
    "Inlined",
    "KernelError",
    "Launch",
    "Module",
    "Other",
    "Out",
    "Run",
    "Surface",
    "TensorMap",
    "Texture",
    "numba_array",
    "run",
]

_Dims: TypeAlias = int | Sequence[int]
_Bytes: TypeAlias = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]
# Where an address, a handle or a tensor map is in an argument's bytes, the buffer, the byte of it, and what else is told of the memory there.
_Link: TypeAlias = tuple[int, int, int, dict[str, Any] | None]
# An argument's bytes, and the addresses in them.
_Laid: TypeAlias = tuple[bytes, list[_Link]]

# Warp instructions of a launch: some ten minutes.
_LIMIT = 4_000_000_000

# Findings that the text of an exception has.
_TOLD = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Out:
    """An array that the kernel only writes: what it holds before is not handed over, so that reading it is found.

    Where the kernel writes nothing, the bits are ones afterwards.
    """

    array: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Texture:
    """The handle of a texture over an array of up to three axes, the last one along x. It is sampled at points, without filters.

    ``parts``: the last axis has the 2 or 4 elements of a texel. ``addressing`` says what is outside: ``clamp``, ``wrap``, ``mirror`` or
    ``border``, in all directions or for each axis; ``wrap`` and ``mirror`` need ``normalized`` coordinates, of [0, 1). ``unit``: integers of 8 and
    16 bits are read as numbers of [0, 1] or [-1, 1].
    """

    array: Any
    parts: int = 1
    addressing: str | Sequence[str] = "clamp"
    normalized: bool = False
    unit: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Surface:
    """The handle of a surface over an array of up to three axes, the last one along x.

    ``parts``: the last axis has the 2 or 4 elements of a texel. ``Surface(Out(array))`` is one that the kernel only writes.
    """

    array: Any
    parts: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor map (``CUtensorMap``) by value, of an array of 1 to 5 axes.

    ``tile`` and ``steps`` have a number for each axis: the elements that a tile reaches over, and which of them are in it (every one, every second).
    ``swizzle`` is 0, 32, 64 or 128 bytes, and ``nan`` fills up with NaN instead of zeros what is outside.

    With ``lower`` and ``upper`` the tiles are pixels (``im2col``) of an array of images, rows, columns and channels: they are the corners of
    the box in which pixels lie, for each axis of an image, and ``tile`` is ``(pixels, channels)``.
    """

    array: Any
    tile: Sequence[int]
    steps: Sequence[int] | None = None
    swizzle: int = 0
    nan: bool = False
    lower: Sequence[int] | None = None
    upper: Sequence[int] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """The bytes of a fault."""

    #: read, write, atomic, volatile read, ...
    act: str
    #: global, shared, local, constant, parameter or unmapped
    space: str
    address: int
    bytes: int
    #: In global memory, the element that is meant, in the words of the call: ``args[0][8]``.
    place: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Inlined:
    """A function that the compiler inlined around a line, and where it was called."""

    function: str | None
    file: str | None
    source_line: int


@dataclasses.dataclass(frozen=True, slots=True)
class Other:
    """The other thread of a fault."""

    file: str | None
    source_line: int | None
    ptx_line: int
    block: int
    warp: int
    lane: int
    act: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A fault: what it is, where it is, which other thread took part, and the usual cause. ``str`` has it all in one line."""

    #: race, out-of-bounds, uninitialised, barrier-mismatch, ...: see ``docs/ptx.md``
    kind: str
    title: str
    #: Legal on devices since compute capability 7.0, and told with ``checks="all,strict"`` only.
    remark: bool
    message: str
    hint: str
    kernel: str
    #: How often it was met; the rest is of the first time.
    count: int
    file: str | None
    source_line: int | None
    ptx_line: int
    block: int
    warp: int
    lane: int
    access: Access | None
    detail: str
    #: The calls around the line that were inlined, the innermost first.
    inlined: tuple[Inlined, ...]
    other: Other | None

    def __str__(self) -> str:
        return self.message


@dataclasses.dataclass(frozen=True, slots=True)
class Halt:
    """Why a kernel did not come to its end."""

    #: deadlock, instruction-limit, trap, assertion, unsupported, ...
    kind: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}"


@dataclasses.dataclass(frozen=True, slots=True)
class Launch:
    """What one launch gave: that of the call, or one that a kernel made."""

    kernel: str
    from_device: bool
    findings: tuple[Finding, ...]
    #: Findings that were not kept: there were more than a thousand.
    findings_left_out: int
    #: Accesses that the race checker had to forget: a race with one of them is not found.
    accesses_forgotten: int
    halt: Halt | None
    #: What the kernel printed.
    output: str
    #: Warp instructions, and those of lanes.
    instructions: int
    lane_instructions: int


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """What a call gave."""

    #: The launch, and those that kernels made.
    launches: tuple[Launch, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The faults of all launches, without remarks."""
        return tuple(f for launch in self.launches for f in launch.findings if not f.remark)

    @property
    def remarks(self) -> tuple[Finding, ...]:
        """What strict checks tell beside faults."""
        return tuple(f for launch in self.launches for f in launch.findings if f.remark)

    @property
    def halt(self) -> Halt | None:
        """Why a kernel did not come to its end; ``None`` if all did."""
        return next((launch.halt for launch in self.launches if launch.halt is not None), None)

    @property
    def clean(self) -> bool:
        """Whether all came to their ends and nothing was found but remarks."""
        return not self.findings and self.halt is None

    @property
    def output(self) -> str:
        """What the kernels printed."""
        return "".join(launch.output for launch in self.launches)


class KernelError(RuntimeError):
    """A check found something, or a kernel did not come to its end. The arrays hold what it left."""

    def __init__(self, run: Run) -> None:
        told = [str(finding) for finding in run.findings[:_TOLD]]
        if len(run.findings) > _TOLD:
            told.append(f"and {len(run.findings) - _TOLD} findings more")
        if run.halt is not None:
            told.append(str(run.halt))
        super().__init__("\n\n".join(told))
        self.run = run

    def __reduce__(self) -> tuple[type[KernelError], tuple[Run]]:
        return KernelError, (self.run,)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The faults, without remarks."""
        return self.run.findings

    @property
    def halt(self) -> Halt | None:
        """Why a kernel did not come to its end; ``None`` if all did."""
        return self.run.halt


def run(
    ptx: str | bytes | Module,
    kernel: str | None = None,
    grid: _Dims = 1,
    block: _Dims = 1,
    args: Iterable[Any] = (),
    *,
    shared: int = 0,
    cluster: _Dims | None = None,
    cooperative: bool = False,
    schedule: Literal["lockstep", "random", "adversarial"] = "lockstep",
    seed: int = 0,
    checks: str = "all",
    limit: int = _LIMIT,
    symbols: Mapping[str, Any] | None = None,
    raises: bool = True,
) -> Run:
    """Runs a kernel, and raises ``KernelError`` if a check finds something or it does not come to its end.

    ``args`` are the kernel's parameters in their order:

    - an array is memory: the kernel gets its address, and afterwards it holds what the kernel left there. Arrays that share
      memory share it in the kernel. ``Out(array)`` is one that the kernel only writes;
    - a number becomes what the parameter says; one of NumPy (``numpy.float32(0.5)``) has to be of its size;
    - ``Texture(array)``, ``Surface(array)`` and ``TensorMap(array, tile)`` are what they are in CUDA, over the memory of an array;
    - ``None`` is the null pointer, ``bytes`` and structs of ``ctypes`` are structs by value, and so is a tuple, laid out as C does, of
      arrays, numbers of NumPy, ``bytes`` and tuples.

    ``symbols`` are ``__device__`` and ``__constant__`` variables that are written before. With ``raises=False`` the answer has the
    findings. The guide, ``docs/ptx.md``, says what is checked and what schedules are.
    """
    module = _module(ptx)
    if kernel is None:
        kernel = _only(module.kernels)
    memory = _Memory()
    arguments = _arguments(module, kernel, list(args), memory)
    launches, unset = module._run(
        {
            "kernel": kernel,
            "grid": _dims("grid", grid),
            "block": _dims("block", block),
            "cluster": None if cluster is None else _dims("cluster", cluster),
            "shared": shared,
            "cooperative": cooperative,
            "schedule": schedule,
            "seed": seed,
            "checks": checks,
            "limit": limit,
            "buffers": memory.place(),
            "arguments": [memory.linked(argument) for argument in arguments],
            "symbols": {name: _flat(f"symbol {name}", numpy.array(value)) for name, value in (symbols or {}).items()},
        }
    )
    for name in unset:
        warnings.warn(f"constant {name} is not set, and holds zeros: symbols={{{name!r}: ...}}", stacklevel=2)
    done = Run(tuple(_launch(launch, memory) for launch in launches))
    if raises and not done.clean:
        raise KernelError(done)
    return done


def numba_array(array: Any) -> list[Any]:
    """The arguments that an array of Numba's kernels is: its owners, its elements, the bytes of one, its memory, its shape and its strides.

    ``array`` may be ``Out``. Call with ``args=[*numba_array(x), 1000]``.
    """
    x = array.array if isinstance(array, Out) else array
    return [None, None, x.size, x.itemsize, array, *x.shape, *x.strides]


def _module(ptx: str | bytes | Module) -> Module:
    if isinstance(ptx, Module):
        return ptx
    # Compilers that give bytes end them as C does.
    return Module(ptx.rstrip(b"\0").decode() if isinstance(ptx, bytes) else ptx)


def _only(kernels: list[str]) -> str:
    if len(kernels) == 1:
        return kernels[0]
    raise ValueError(f"which kernel? There are {', '.join(kernels) or 'none'}")


def _dims(what: str, dims: _Dims) -> tuple[int, int, int]:
    """One to three numbers."""
    given = (dims,) if isinstance(dims, int) else tuple(int(dim) for dim in dims)
    if not 1 <= len(given) <= 3 or any(not 0 <= dim < 1 << 32 for dim in given):
        raise ValueError(f"{what} is {dims!r}, not one to three numbers")
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


@dataclasses.dataclass(slots=True)
class _View:
    """An array in memory, and the group of arrays that it shares memory with."""

    name: str
    array: Any
    address: int
    given: bool
    group: int = 0


class _Memory:
    """The arrays of a launch. Those that share memory become one buffer."""

    def __init__(self) -> None:
        self.views: list[_View] = []
        self.bases: list[int] = []

    def add(self, name: str, value: Any) -> int:
        """Takes an array; its number."""
        given = not isinstance(value, Out)
        array = _array(name, value if given else value.array)
        self.views.append(_View(name, array, array.__array_interface__["data"][0], given))
        return len(self.views) - 1

    def place(self) -> list[tuple[_Bytes, bool]]:
        """The buffers, and whether the kernel gets what they hold."""
        buffers: list[tuple[_Bytes, bool]] = []
        whole, end = None, 0
        # The longest first of those that begin together.
        for view in sorted(self.views, key=lambda view: (view.address, -view.array.nbytes)):
            size = view.array.nbytes
            if whole is None or size == 0 or view.address >= end:
                buffers.append((_flat(view.name, view.array), view.given))
                self.bases.append(view.address)
                view.group = len(buffers) - 1
                if size > 0:
                    whole, end = view, view.address + size
                continue
            if view.address + size > end:
                raise ValueError(f"{whole.name} and {view.name} overlap in part\nhint: hand over an array that holds both, too, or copies")
            view.group = whole.group
            memory, given = buffers[view.group]
            if view.array.flags.writeable and not memory.flags.writeable:
                raise ValueError(
                    f"{view.name} may be written, and lies in {whole.name}, which may only be read\nhint: hand over one of them, or a copy"
                )
            buffers[view.group] = (memory, given or view.given)
        return buffers

    def linked(self, argument: _Laid) -> _Laid:
        """An argument whose addresses name buffers instead of arrays."""
        laid, addresses = argument
        views = [(at, self.views[number], described) for at, number, _, described in addresses]
        return laid, [(at, view.group, view.address - self.bases[view.group], described) for at, view, described in views]

    def named(self, group: int, offset: int) -> str | None:
        """The element at a byte of a buffer, in the words of the call."""
        views = [view for view in self.views if view.group == group]
        address = self.bases[group] + offset
        inside = [view for view in views if view.address <= address < view.address + view.array.nbytes]
        view = min(inside or views, key=lambda view: (address - view.address) if inside else -view.array.nbytes)
        array = view.array
        index, rest = divmod(address - view.address, array.itemsize)
        within = f", byte {rest}" if rest else ""
        if array.ndim < 2:
            return f"{view.name}[{index}]{within}"
        if not inside:
            return f"{view.name}.flat[{index}]{within}"
        order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
        at = ", ".join(str(i) for i in numpy.unravel_index(index, array.shape, order))
        return f"{view.name}[{at}]{within}"


def _is_memory(value: Any) -> bool:
    if isinstance(value, (Out, numpy.ndarray)):
        return True
    if isinstance(value, (numpy.generic, bytes, tuple, list, str, int, float, ctypes.Structure, ctypes.Union, ctypes._SimpleCData)):
        return False
    return any(hasattr(value, name) for name in ("__array_interface__", "__dlpack__")) or _has_buffer(value)


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _array(name: str, value: Any) -> Any:
    """The array that an object is, in its own memory."""
    if not _is_memory(value) or isinstance(value, Out):
        raise TypeError(f"{name} is {_article(value)}, which is no memory\nhint: hand over an array of NumPy")
    if isinstance(value, numpy.ndarray) or hasattr(value, "__array_interface__") or _has_buffer(value):
        array = numpy.asarray(value)
    else:
        array = numpy.from_dlpack(value)
    if array.dtype.hasobject:
        raise TypeError(f"{name} holds objects of Python, which no kernel can read")
    if not array.dtype.isnative:
        raise TypeError(f"{name} holds numbers in the other byte order\nhint: copy it to this machine's: x.astype(x.dtype.newbyteorder('='))")
    if not array.flags.c_contiguous and not array.flags.f_contiguous:
        raise ValueError(f"{name} has gaps between its elements\nhint: hand over numpy.ascontiguousarray(x), or the array that it is a view of")
    return array


def _flat(name: str, array: Any) -> _Bytes:
    """The bytes of an array, in its own memory."""
    if array.dtype.hasobject:
        raise TypeError(f"{name} holds objects of Python, which no kernel can read")
    return cast("_Bytes", array.ravel(order="K").view(numpy.uint8))


def _article(value: Any) -> str:
    return f"an object of type {type(value).__name__}"


def _arguments(module: Module, kernel: str, args: list[Any], memory: _Memory) -> list[_Laid]:
    parameters = module.parameters(kernel)
    if len(parameters) != len(args):
        takes = ", ".join(_parameter(*parameter) for parameter in parameters)
        raise ValueError(f"{len(args)} arguments: kernel `{kernel}` takes {len(parameters)}\nhint: it has ({takes})")
    return [
        _argument(f"args[{at}]", arg, kind if length is None else None, memory)
        for at, (arg, (_, kind, length)) in enumerate(zip(args, parameters, strict=True))
    ]


def _parameter(name: str, kind: str, length: int | None) -> str:
    return f".{kind} {name}" + (f"[{length}]" if length is not None else "")


def _argument(name: str, arg: Any, kind: str | None, memory: _Memory) -> _Laid:
    """An argument for a parameter of a type of PTX, or for one that is a struct."""
    if isinstance(arg, tuple):
        laid, _ = _laid_out(name, arg, memory)
        return laid
    if isinstance(arg, (bool, int, float)) and not isinstance(arg, numpy.generic):
        if kind is None:
            raise TypeError(f"{name} is {_article(arg)}, and the parameter is a struct\nhint: hand over a tuple or bytes")
        return _number(name, arg, kind), []
    laid, _ = _member(name, arg, memory)
    if isinstance(arg, numpy.generic) and kind is not None and not isinstance(arg, numpy.void):
        floats = arg.dtype.kind == "f"
        if kind[0] != "b" and (kind[0] == "f") != floats:
            raise TypeError(f"{name} is a {arg.dtype}, and the parameter has type .{kind}\nhint: hand over a number of Python, or cast it")
    return laid


def _number(name: str, value: float, kind: str) -> bytes:
    """A number of Python as a parameter has it."""
    size = int(kind[1:]) // 8
    if isinstance(value, float) or kind[0] == "f":
        if kind[0] in "us":
            raise TypeError(f"{name} is a float, and the parameter has type .{kind}\nhint: hand over an int")
        code = {2: "<e", 4: "<f", 8: "<d"}.get(size)
        if code is None:
            raise TypeError(f"{name} is a float, and the parameter has type .{kind}")
        try:
            return struct.pack(code, value)
        except OverflowError as error:
            raise OverflowError(f"{name} is {value}, which a float of {8 * size} bits does not hold") from error
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise OverflowError(f"{name} is {value}, which .{kind} does not hold")
    return (int(value) % (1 << (8 * size))).to_bytes(size, "little")


def _member(name: str, value: Any, memory: _Memory) -> tuple[_Laid, int]:
    """What has a size of its own: its bytes, and its alignment."""
    if value is None:
        return (bytes(8), []), 8
    if isinstance(value, numpy.void):
        return (value.tobytes(), []), max(value.dtype.alignment, 1)
    if isinstance(value, numpy.generic):
        return (value.tobytes(), []), value.dtype.alignment
    if isinstance(value, bytes):
        return (value, []), 1
    if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes._SimpleCData)):
        return (bytes(value), []), ctypes.alignment(value)
    if isinstance(value, (bool, int, float)):
        raise TypeError(f"{name} is {_article(value)}, whose size in a struct nobody says\nhint: hand over numpy.int32({value!r}) or its like")
    if isinstance(value, (Texture, Surface)):
        return _described(name, value.array, _image(name, value), bytes(8), memory), 8
    if isinstance(value, TensorMap):
        return _described(name, value.array, _tensor(name, value), bytes(128), memory), 64
    return (bytes(8), [(0, memory.add(name, value), 0, None)]), 8


def _described(name: str, array: Any, described: dict[str, Any], room: bytes, memory: _Memory) -> _Laid:
    return room, [(0, memory.add(name, array), 0, described)]


def _table(name: str, value: Any) -> tuple[tuple[int, ...], str]:
    """The axes and the type of an array whose last axis is the innermost."""
    array = _array(name, value.array if isinstance(value, Out) else value)
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} does not have its last axis innermost\nhint: hand over numpy.ascontiguousarray(x)")
    return array.shape, array.dtype.name


def _image(name: str, image: Texture | Surface) -> dict[str, Any]:
    shape, element = _table(name, image.array)
    if image.parts != 1:
        if not shape or shape[-1] != image.parts:
            raise ValueError(f"{name} has texels of {image.parts} elements, and its last axis is not of {image.parts}: {shape}")
        shape = shape[:-1]
    if not 1 <= len(shape) <= 3:
        raise ValueError(f"{name} has {len(shape)} axes, and an image 1 to 3\nhint: the elements of texels are an axis with parts=2 or parts=4")
    addressing: str | Sequence[str] = image.addressing if isinstance(image, Texture) else "clamp"
    ways = [addressing] * len(shape) if isinstance(addressing, str) else list(addressing)
    if len(ways) != len(shape):
        raise ValueError(f"{name} has {len(shape)} axes, and addressing is {addressing!r}")
    return {
        "element": element,
        "parts": image.parts,
        "extent": shape[::-1],
        "addressing": ways[::-1],
        "normalized": isinstance(image, Texture) and bool(image.normalized),
        "unit": isinstance(image, Texture) and bool(image.unit),
    }


def _tensor(name: str, tensor: TensorMap) -> dict[str, Any]:
    shape, element = _table(name, tensor.array)
    if (tensor.lower is None) != (tensor.upper is None):
        raise ValueError(f"{name} has one corner of a box of pixels\nhint: lower and upper go together")
    if tensor.swizzle not in (0, 32, 64, 128):
        raise ValueError(f"{name} has a swizzle of {tensor.swizzle!r}, not 0, 32, 64 or 128 bytes")
    corners = None
    if tensor.lower is not None and tensor.upper is not None:
        corners = _innermost_first(name, "lower", tensor.lower, signed=True), _innermost_first(name, "upper", tensor.upper, signed=True)
    return {
        "element": element,
        "extent": shape[::-1],
        "tile": _innermost_first(name, "tile", tensor.tile),
        "steps": [1] * len(shape) if tensor.steps is None else _innermost_first(name, "steps", tensor.steps),
        "swizzle": int(tensor.swizzle),
        "nan": bool(tensor.nan),
        "box_of_pixels": corners,
    }


def _innermost_first(name: str, what: str, numbers: Sequence[int], signed: bool = False) -> list[int]:
    """Numbers of axes, in the order of PTX."""
    low, high = (-(1 << 15), 1 << 15) if signed else (1, 1 << 15)
    found = [int(number) for number in numbers]
    if any(not low <= number < high for number in found):
        raise ValueError(f"{name} has {what}={numbers!r}, whose numbers are not from {low} to {high - 1}")
    return found[::-1]


def _laid_out(name: str, members: tuple[Any, ...], memory: _Memory) -> tuple[_Laid, int]:
    """A struct as C lays it out."""
    laid, addresses, widest = b"", list[_Link](), 1
    for at, value in enumerate(members):
        own = f"{name}[{at}]"
        (its, links), align = _laid_out(own, value, memory) if isinstance(value, tuple) else _member(own, value, memory)
        laid += bytes(-len(laid) % align)
        addresses += [(len(laid) + place, number, offset, described) for place, number, offset, described in links]
        laid += its
        widest = max(widest, align)
    return (laid + bytes(-len(laid) % widest), addresses), widest


def _launch(told: dict[str, Any], memory: _Memory) -> Launch:
    findings = tuple(_finding(found, memory) for found in told.pop("findings"))
    halt = told.pop("halt")
    return Launch(findings=findings, halt=halt and Halt(**halt), **told)


def _finding(told: dict[str, Any], memory: _Memory) -> Finding:
    access, other = told.pop("access", None), told.pop("other", None)
    inlined = tuple(Inlined(*around) for around in told.pop("inlined"))
    if access is not None:
        if access["place"] is not None:
            access["place"] = memory.named(*access["place"])
            told["message"] = told["message"].replace(f"{access['address']:#x}", access["place"], 1)
        access = Access(**access)
    return Finding(access=access, other=other and Other(**other), inlined=inlined, **told)
