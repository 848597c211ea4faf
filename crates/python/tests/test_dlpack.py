"""DLPack both ways: capsules that are consumed once and given back once, whatever happens."""

import array
import ctypes
import gc

import numpy as np
import pytest
import warpfold as wf


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
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class Unversioned(ctypes.Structure):
    pass


class Versioned(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Unversioned._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]
Versioned._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("context", ctypes.c_void_p),
    ("deleter", Deleter),
    ("flags", ctypes.c_uint64),
    ("tensor", Tensor),
]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """An array of ours that counts how often it is given back. What it says can be changed."""

    def __init__(self, x, versioned=True, major=1, device=(1, 0), **says):
        self.x, self.versioned, self.device, self.deleted = x, versioned, device, 0
        self.asked = []
        kinds = {"f": 2, "i": 0, "u": 1, "b": 6}
        self.shape = (ctypes.c_int64 * max(1, x.ndim))(*x.shape)
        self.strides = (ctypes.c_int64 * max(1, x.ndim))(*(s // x.itemsize for s in x.strides))
        tensor = dict(
            data=x.ctypes.data,
            device=Device(*device),
            ndim=x.ndim,
            dtype=Type(kinds[x.dtype.kind], 8 * x.itemsize, 1),
            shape=ctypes.addressof(self.shape),
            strides=ctypes.addressof(self.strides),
            byte_offset=0,
        )
        tensor.update(says)
        self.deleter = Deleter(self._delete)
        if versioned:
            self.managed = Versioned(major=major, minor=0, deleter=self.deleter, flags=0, tensor=Tensor(**tensor))
        else:
            self.managed = Unversioned(tensor=Tensor(**tensor), deleter=self.deleter)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **words):
        self.asked.append(words)
        if not self.versioned and "max_version" in words:
            raise TypeError("what is max_version?")
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return new_capsule(ctypes.addressof(self.managed), name, None)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"])
def test_every_type_and_stride_comes_and_is_given_back_once(versioned, dtype):
    x = (np.arange(24) % 2).astype(dtype).reshape(4, 6)[::-1, ::2]
    producer = Producer(x, versioned)
    assert wf.sum(producer) == np.sum(x.astype("int64"))
    assert producer.deleted == 1
    assert producer.asked[-1] == ({"max_version": (1, 1)} if versioned else {})


def test_bfloat16_and_an_offset():
    bits = (np.array([9, 1.5, 2.5], "float32").view("uint32") >> 16).astype("uint16")
    producer = Producer(bits, ndim=1, dtype=Type(4, 16, 1), byte_offset=2)
    producer.shape[0] = 2
    assert wf.sum(producer) == 4.0


def test_no_strides_are_c_order():
    assert wf.sum(Producer(np.arange(6.0).reshape(2, 3), strides=None), axis=0).tolist() == [3, 5, 7]


LIES = [
    (dict(ndim=-1), ValueError),
    (dict(ndim=2000), ValueError),
    (dict(shape=None), ValueError),
    (dict(data=None), ValueError),
    (dict(byte_offset=2**64 - 1), ValueError),
    (dict(dtype=Type(5, 32, 1)), TypeError),
    (dict(dtype=Type(2, 64, 2)), TypeError),
    (dict(dtype=Type(2, 8, 1)), TypeError),
    (dict(dtype=Type(10, 8, 1)), TypeError),
]


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize(("says", "error"), LIES, ids=str)
def test_a_producer_that_lies_is_an_error_and_gets_its_array_back(versioned, says, error):
    producer = Producer(np.arange(3.0), versioned, **says)
    with pytest.raises(error):
        wf.sum(producer)
    assert producer.deleted == 1


def test_lengths_and_strides_that_cannot_be():
    for shape, strides in [((-1,), (1,)), ((2**62, 2**62), (1, 1)), ((3,), (2**62,))]:
        producer = Producer(np.arange(3.0), ndim=len(shape))
        producer.shape = (ctypes.c_int64 * len(shape))(*shape)
        producer.strides = (ctypes.c_int64 * len(shape))(*strides)
        producer.managed.tensor.shape = ctypes.addressof(producer.shape)
        producer.managed.tensor.strides = ctypes.addressof(producer.strides)
        with pytest.raises(ValueError, match="lies|memory|counted"):
            wf.sum(producer)
        assert producer.deleted == 1


def test_a_reduction_that_fails_gives_the_array_back():
    for words in [dict(axis=3), dict(dtype="complex64"), dict(nan="no"), dict(device="none"), dict(out=[1])]:
        producer = Producer(np.arange(3.0))
        with pytest.raises((ValueError, TypeError)):
            wf.sum(producer, **words)
        assert producer.deleted == (1 if producer.asked else 0)


def test_a_version_of_later_stays_with_its_capsule():
    producer = Producer(np.arange(3.0), major=2)
    with pytest.raises(BufferError, match="version 2"):
        wf.sum(producer)
    assert producer.deleted == 0


def test_other_devices_are_named():
    with pytest.raises(BufferError, match="kind 10"):
        wf.sum(Producer(np.arange(3.0), device=(10, 0)))


def test_an_array_on_a_device_is_asked_for_its_tensor_though_it_has_a_buffer():
    class Elsewhere(array.array):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **_):
            raise RuntimeError("asked for its tensor")

    with pytest.raises(RuntimeError, match="asked for its tensor"):
        wf.sum(Elsewhere("d", [1.0, 2.0]))
    Elsewhere.__dlpack_device__ = lambda self: (1, 0)
    assert wf.sum(Elsewhere("d", [1.0, 2.0])) == 3.0


def test_what_is_no_capsule_and_a_used_one():
    class Odd:
        def __init__(self, gives):
            self.gives = gives

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **words):
            return self.gives

    used = Producer(np.arange(3.0))
    capsule = used.__dlpack__()
    assert wf.sum(Odd(capsule)) == 3
    for gives in [None, 5, capsule, new_capsule(1, b"other", None)]:
        with pytest.raises(ValueError, match="capsule"):
            wf.sum(Odd(gives))
    assert used.deleted == 1


def test_our_arrays_go_to_numpy_and_back():
    ours = wf.sum(memoryview(np.arange(6.0).reshape(2, 3)), axis=0)
    assert isinstance(ours, wf.Array)
    assert (ours.shape, ours.dtype, ours.ndim, len(ours), ours.tolist()) == ((3,), "float64", 1, 3, [3, 5, 7])
    assert repr(ours) == "warpfold.Array([3.0, 5.0, 7.0], dtype=\"float64\")"
    taken = np.from_dlpack(ours)
    assert taken.tolist() == [3, 5, 7]
    assert np.asarray(ours).tolist() == [3, 5, 7]
    assert memoryview(ours).format == "d"
    assert wf.sum(ours) == 15
    del ours
    gc.collect()
    assert taken.tolist() == [3, 5, 7]


def test_capsules_of_ours_that_nobody_takes_are_freed():
    ours = wf.sum(memoryview(np.arange(600.0).reshape(2, 300)), axis=0)
    for version in [None, (1, 0), (0, 8)]:
        for _ in range(1000):
            ours.__dlpack__(max_version=version)
    for words in [dict(stream=1), dict(dl_device=(2, 0))]:
        with pytest.raises(BufferError):
            ours.__dlpack__(**words)
    other = np.from_dlpack(ours)
    copied = ours.__dlpack__(copy=True)
    assert copied is not None and other.shape == (300,)


def test_answers_go_to_the_library_of_the_array():
    torch = pytest.importorskip("torch")
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    assert isinstance(wf.sum(x), torch.Tensor) and wf.sum(x).shape == ()
    assert torch.equal(wf.sum(x, axis=0), x.sum(0))
    assert wf.argmax(x).dtype == torch.int64
    assert wf.sum(x.bfloat16()).dtype == torch.bfloat16
