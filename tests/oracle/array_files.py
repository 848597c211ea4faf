"""One array in every container that holds arrays.

Each writer takes an array, a folder, a stem and random numbers, and gives an `Input`.
"""

import gzip
import io
import json
import struct
import zipfile

from asking import Input
from elements import TYPES

try:
    import numpy
except ImportError:
    numpy = None
try:
    import safetensors.numpy as safetensors
except ImportError:
    safetensors = None


class Array:
    """Elements in C order, and a shape."""

    def __init__(self, type_, shape, elements):
        self.type = type_
        self.shape = tuple(shape)
        self.elements = elements

    def fortran(self):
        """The elements in Fortran order."""
        return transposed(self.elements, self.shape)

    def numpy(self):
        raw = numpy.frombuffer(self.type.pack(self.elements), dtype=numpy_name(self.type))
        return raw.reshape(self.shape)


def transposed(elements, shape):
    """From C order to Fortran order."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    places = [0]
    for length, stride in zip(reversed(shape), reversed(strides)):
        places = [p + i * stride for p in places for i in range(length)]
    return [elements[p] for p in places]


def numpy_name(type_):
    """The type as .npy names it, without the byte order."""
    return {"bool": "b1", "int": f"i{type_.size}", "uint": f"u{type_.size}", "float": f"f{type_.size}"}[type_.kind]


def in_npy(array, version=1, big=False, fortran=False):
    """A .npy file."""
    order = "|" if array.type.size == 1 else ">" if big else "<"
    shape = "(" + "".join(f"{n}, " for n in array.shape).rstrip(" ") + ")"
    header = f"{{'descr': '{order}{numpy_name(array.type)}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    width = 2 if version == 1 else 4
    header += " " * (-(len(header) + 8 + width + 1) % 64) + "\n"
    length = struct.pack("<H" if width == 2 else "<I", len(header))
    elements = array.fortran() if fortran else array.elements
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + array.type.pack(elements, big)


def zipped(members, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def npy_writer(version, big, fortran):
    def write(array, folder, stem, _rng):
        (folder / f"{stem}.npy").write_bytes(in_npy(array, version, big, fortran))
        return Input([f"{stem}.npy"])

    return write


def _npy_pipe(fortran):
    def write(array, folder, stem, rng):
        (folder / f"{stem}.npy").write_bytes(in_npy(array, rng.choice((1, 2, 3)), rng.random() < 0.3, fortran))
        return Input(["-"], piped=f"{stem}.npy")

    return write


def _npy_gz(fortran):
    def write(array, folder, stem, _rng):
        (folder / f"{stem}.npy.gz").write_bytes(gzip.compress(in_npy(array, fortran=fortran), mtime=0))
        return Input([f"{stem}.npy.gz"])

    return write


def _npz(method, fortran):
    def write(array, folder, stem, rng):
        member = ("wanted.npy", in_npy(array, rng.choice((1, 2, 3)), rng.random() < 0.3, fortran))
        if rng.random() < 0.3:
            members, name = [member], f"{stem}.npz"
        else:
            other = ("other.npy", in_npy(Array(TYPES["i16"], (3,), [1, 2, 3])))
            members, name = rng.choice(([member, other], [other, member])), f"{stem}.npz:wanted"
        (folder / f"{stem}.npz").write_bytes(zipped(members, method))
        return Input([name])

    return write


def _numpy(save, fortran):
    def write(array, folder, stem, rng):
        data = numpy.require(array.numpy(), requirements=["F" if fortran else "C"])
        if rng.random() < 0.3:
            data = data.astype(data.dtype.newbyteorder(">"))
        suffix = "npy" if save == "save" else "npz"
        with open(folder / f"{stem}.{suffix}", "wb") as out:
            getattr(numpy, save)(out, data)
        return Input([f"{stem}.{suffix}"])

    return write


def raw_writer(piped):
    def write(array, folder, stem, rng):
        big = rng.random() < 0.4
        offset = rng.choice((0, 0, 1, 7, 16))
        (folder / f"{stem}.bin").write_bytes(b"\xff" * offset + array.type.pack(array.elements, big))
        flags = ["--dtype", array.type.name, "--shape", ",".join(map(str, array.shape))]
        flags += ["--offset", offset] if offset else []
        flags += ["--endian", "big"] if big else []
        if piped:
            return Input([*flags, "--format", "raw", "-"], piped=f"{stem}.bin")
        return Input([*flags, f"{stem}.bin"])

    return write


SAFETENSORS = {"bool": "BOOL", **{t: t.upper() for t in TYPES if t != "bool"}}


def _safetensors(array, folder, stem, _rng):
    raw = array.type.pack(array.elements)
    tensor = {"dtype": SAFETENSORS[array.type.name], "shape": list(array.shape)}
    header = {
        "__metadata__": {"format": "pt"},
        "first": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
        "wanted": {**tensor, "data_offsets": [8, 8 + len(raw)]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / f"{stem}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(range(8)) + raw)
    return Input([f"{stem}.safetensors:wanted"])


def _safetensors_package(array, folder, stem, _rng):
    safetensors.save_file({"wanted": array.numpy()}, folder / f"{stem}.safetensors")
    return Input([f"{stem}.safetensors"])


class Container:
    """A way to store an array: what it is called, who writes it, and which arrays it can hold."""

    def __init__(self, label, write, holds=lambda array: True, package=None):
        self.label = label
        # Which version and byte order show the fault matters less than that it is .npy.
        self.kind = label.replace(" big-endian", "").replace(" 1.0", "").replace(" 2.0", "").replace(" 3.0", "")
        self.write = write
        self.holds = holds
        self.package = package


def named(array):
    """Whether .npy has a name for the type."""
    return array.type.name != "bf16"


def shaped(array):
    """Whether `--shape` can say it: a scalar has no axis to name."""
    return len(array.shape) > 0


CONTAINERS = [
    *(
        Container(
            f"npy {version}.0{' big-endian' * big}{' Fortran' * fortran}", npy_writer(version, big, fortran), named
        )
        for version in (1, 2, 3)
        for big in (False, True)
        for fortran in (False, True)
    ),
    *(Container(f"npy through a pipe{' Fortran' * f}", _npy_pipe(f), named) for f in (False, True)),
    *(Container(f"npy.gz{' Fortran' * f}", _npy_gz(f), named) for f in (False, True)),
    *(
        Container(f"npz {name}{' Fortran' * f}", _npz(method, f), named)
        for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED))
        for f in (False, True)
    ),
    *(
        Container(f"numpy.{save}{' Fortran' * f}", _numpy(save, f), named, "numpy")
        for save in ("save", "savez", "savez_compressed")
        for f in (False, True)
    ),
    Container("raw", raw_writer(False), shaped),
    Container("raw through a pipe", raw_writer(True), shaped),
    Container("safetensors", _safetensors),
    Container("safetensors.numpy", _safetensors_package, named, "safetensors"),
]
