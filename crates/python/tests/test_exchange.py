"""DLPack's table of C functions: what a class of tensors has it for, and what is wrong with some."""

import ctypes
import gc

import numpy as np
import pytest
import warpfold as wf

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.Py_IncRef.argtypes = [ctypes.py_object]

CPU, CUDA = 1, 2


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("id", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.PYFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("context", ctypes.c_void_p),
    ("deleter", Deleter),
    ("flags", ctypes.c_uint64),
    ("tensor", Tensor),
]
FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(Managed)))
ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.c_void_p))
Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    pass


Table._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("previous", ctypes.POINTER(Table)),
    ("allocate", ctypes.c_void_p),
    ("from_object", FromObject),
    ("to_object", ToObject),
    ("lend", ctypes.c_void_p),
    ("stream", Stream),
]

CODES = {"f": 2, "i": 0, "u": 1, "b": 6}


class Library:
    """A library of tensors on the CPU that counts what it hands over and gets back."""

    def __init__(self, *, kind=CPU, stream=0, fails=False, refuses=False, version=1, name=b"dlpack_exchange_api", major=1):
        self.given = self.deleted = self.taken = 0
        self.alive = {}
        library = self

        class FakeTensor:
            def __init__(self, array):
                self.array = array

        self.FakeTensor = FakeTensor

        def delete(managed):
            library.deleted += 1
            del library.alive[managed.contents.context]

        self.delete = Deleter(delete)

        def from_object(address, out):
            x = ctypes.cast(address, ctypes.py_object).value
            if fails:
                return -1
            array = x.array
            library.given += 1
            axes = (ctypes.c_int64 * max(2 * array.ndim, 1))(*array.shape, *(s // array.itemsize for s in array.strides))
            shape = ctypes.cast(axes, ctypes.POINTER(ctypes.c_int64))
            strides = ctypes.cast(ctypes.byref(axes, 8 * array.ndim), ctypes.POINTER(ctypes.c_int64))
            dtype = Type(CODES[array.dtype.kind], 8 * array.itemsize, 1)
            tensor = Tensor(array.ctypes.data, Device(kind, 0), array.ndim, dtype, shape, strides, 0)
            managed = Managed(major, 1, library.given, library.delete, 0, tensor)
            library.alive[library.given] = (managed, array, axes)
            out[0] = ctypes.pointer(managed)
            return 0

        def to_object(managed, out):
            library.taken += 1
            tensor = managed.contents.tensor
            kinds = {code: kind for kind, code in CODES.items()}
            dtype = np.dtype(f"{kinds[tensor.dtype.code]}{tensor.dtype.bits // 8}")
            shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
            count = int(np.prod(shape, dtype=int))
            raw = ctypes.string_at(tensor.data, count * dtype.itemsize) if count else b""
            managed.contents.deleter(managed)
            if refuses:
                return -1
            made = FakeTensor(np.frombuffer(raw, dtype).reshape(shape))
            api.Py_IncRef(made)
            out[0] = id(made)
            return 0

        def current_stream(kind, device, out):
            out[0] = stream
            return 0

        self.functions = FromObject(from_object), ToObject(to_object), Stream(current_stream)
        self.table = Table(version, 3, None, None, self.functions[0], self.functions[1], None, self.functions[2])
        self.capsule(name, self.table)

    def capsule(self, name, table):
        self.named = name
        self.FakeTensor.__dlpack_c_exchange_api__ = api.PyCapsule_New(ctypes.addressof(table), name, None)


@pytest.mark.parametrize("kind", ["bool", "int8", "int32", "int64", "uint16", "float16", "float32", "float64"])
def test_tensors_come_and_go_without_python(kind):
    library = Library()
    for array in [np.array([3, 1, 4, 1, 5]), np.arange(12).reshape(3, 4)[:, ::-2], np.array(2), np.zeros((0, 3))]:
        array = array.astype(kind)
        for axis in [None, 0]:
            if axis is not None and array.ndim == 0:
                continue
            answer, want = wf.sum(library.FakeTensor(array), axis=axis), wf.sum(array, axis=axis)
            assert type(answer) is library.FakeTensor
            assert answer.array.dtype == np.asarray(want).dtype and answer.array.tolist() == np.asarray(want).tolist()
    small, large = wf.minmax(library.FakeTensor(np.array([3, 1, 4]).astype(kind)))
    assert type(small) is type(large) is library.FakeTensor
    gc.collect()
    assert library.deleted == library.given > 0 and not library.alive and library.taken == 9


def test_segments_and_groups_of_such_tensors():
    library = Library()
    x, keys = library.FakeTensor(np.array([1.0, 2.0, 4.0])), library.FakeTensor(np.array([7, 8, 7]))
    assert wf.segments(x, "sum", lengths=[1, 2]).array.tolist() == [1.0, 6.0]
    got, sums = wf.groupby(keys, x, "sum")
    assert got.array.tolist() == [7, 8] and sums.array.tolist() == [5.0, 2.0]
    with pytest.raises(ValueError, match="has no answer"):
        wf.groupby([1], library.FakeTensor(np.array([np.nan])), "argmin", nan="omit")
    gc.collect()
    assert not library.alive


@pytest.mark.parametrize(
    "words",
    [{"fails": True}, {"version": 2}, {"version": 0}, {"name": b"another"}, {"kind": CUDA, "stream": 77}, {"kind": 8}, {"major": 2}],
    ids=str,
)
def test_what_does_not_suit_is_left_to_python(words):
    """There is no other protocol here: the objects are no arrays then."""
    library = Library(**words)
    with pytest.raises(TypeError, match="FakeTensor"):
        wf.sum(library.FakeTensor(np.ones(3)))
    gc.collect()
    assert not library.alive and library.deleted == library.given


def test_an_older_table_is_found_behind_a_newer_one():
    library = Library()
    newer = Table(2, 0, ctypes.pointer(library.table))
    library.capsule(b"dlpack_exchange_api", newer)
    assert wf.sum(library.FakeTensor(np.ones(3))).array == 3.0
    # A ring of tables ends, too.
    ring = Table(2, 0)
    ring.previous = ctypes.pointer(ring)
    library.capsule(b"dlpack_exchange_api", ring)
    with pytest.raises(TypeError, match="FakeTensor"):
        wf.sum(library.FakeTensor(np.ones(3)))


def test_a_tensor_whose_gradient_is_wanted_is_left_to_python():
    library = Library()
    tensor = library.FakeTensor(np.ones(3))
    tensor.requires_grad = True
    with pytest.raises(TypeError):
        wf.sum(tensor)
    tensor.requires_grad = False
    assert wf.sum(tensor).array == 3.0


def test_a_library_that_takes_no_answers_is_an_error():
    library = Library(refuses=True)
    with pytest.raises(RuntimeError, match="takes no array"):
        wf.sum(library.FakeTensor(np.ones(3)))
    with pytest.raises(RuntimeError, match="takes no array"):
        wf.sum(library.FakeTensor(np.ones((3, 3))), axis=0)
    gc.collect()
    assert not library.alive


def test_complex_numbers_come_and_go():
    library = Library()
    CODES["c"] = 5
    try:
        got = wf.sum(library.FakeTensor(np.array([1 + 2j, 3 - 1j])))
        assert isinstance(got, library.FakeTensor) and got.array == 4 + 1j
        del got
    finally:
        del CODES["c"]
    gc.collect()
    assert not library.alive


def test_elements_that_are_not_numbers_are_refused():
    library = Library()
    CODES["c"] = 3
    try:
        with pytest.raises(TypeError, match="code 3"):
            wf.sum(library.FakeTensor(np.ones(3, complex)))
    finally:
        del CODES["c"]
    gc.collect()
    assert not library.alive
