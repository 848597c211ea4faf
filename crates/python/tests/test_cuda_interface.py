"""The CUDA array interface as far as the host's side goes: what is said of an array, before a device is opened."""

import numpy as np
import pytest
import warpfold as wf


class Fake:
    def __init__(self, **says):
        self.__cuda_array_interface__ = {
            "shape": (3,), "typestr": "<f4", "data": (1 << 40, False), "version": 3, "strides": None, **says,
        }


WRONG = [
    (dict(typestr="<c8"), TypeError, "x.real"),
    (dict(typestr=">f4"), TypeError, "byte order"),
    (dict(typestr="|V2"), TypeError, "DLPack"),
    (dict(typestr="<M8[s]"), TypeError, "numbers"),
    (dict(typestr=""), TypeError, "<f4"),
    (dict(typestr=None), ValueError, "typestr"),
    (dict(shape=None), ValueError, "shape"),
    (dict(shape=(-1,)), ValueError, "negative"),
    (dict(shape="x"), TypeError, None),
    (dict(strides=(4, 4)), ValueError, "one stride"),
    (dict(data=(0, False)), ValueError, "pointer"),
    (dict(data=None), ValueError, "data"),
    (dict(data=5), TypeError, None),
    (dict(mask=1), TypeError, "fill"),
    (dict(stream=0), ValueError, "ambiguous"),
]


@pytest.mark.parametrize(("says", "error", "text"), WRONG, ids=str)
def test_what_cannot_be_is_an_error(says, error, text):
    with pytest.raises(error, match=text):
        wf.sum(Fake(**says))


def test_an_array_whose_tensor_is_wrong_has_the_interface():
    class Both(Fake):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **_):
            raise ValueError("strides beyond the address space")

    # What the interface says of it is heard.
    with pytest.raises(TypeError, match="x.real"):
        wf.sum(Both(typestr="<c8"))


def test_what_can_be_asks_for_a_device():
    try:
        wf.sum(Fake(shape=(0,)))
    except RuntimeError as error:
        assert "hint" in str(error)
    for words in [dict(device="cpu"), dict(device="sim"), dict(out=np.zeros(()))]:
        with pytest.raises(TypeError):
            wf.sum(Fake(), **words)
    with pytest.raises((ValueError, IndexError)):
        wf.sum(Fake(), axis=1)


def test_an_interface_that_raises_is_heard():
    class Broken:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        wf.sum(Broken())
