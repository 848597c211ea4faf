"""The operators of torch: in graphs, with shapes of no tensor, with derivatives."""

import subprocess
import sys

import pytest
import warpfold as wf

torch = pytest.importorskip("torch")
wt = pytest.importorskip("warpfold.torch")

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
WHOLE = ["sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax", "count", "count_nonzero", "count_nan", "norm1", "norm2", "norm_inf", "sumsq", "range", "logsumexp"]
SMOOTH = ["sum", "mean", "var", "std", "sumsq", "norm1", "norm2", "logsumexp"]
DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def drawn(dtype, shape=(3, 4, 5), device="cpu"):
    return (torch.arange(60).reshape(3, 4, 5) * 7 % 11 - (0 if dtype in (torch.bool, torch.uint8) else 4)).to(dtype).expand(shape).to(device)


def answer(op, x, **words):
    try:
        return wf.reduce(x, op, **words)
    except (TypeError, OverflowError, ValueError) as error:
        return type(error)


def same(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a.dtype == b.dtype and a.device == b.device and a.shape == b.shape and torch.equal(a, b)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", [*WHOLE, "minmax", "argminmax"])
def test_operators_answer_as_the_package_does(op, device):
    for dtype in DTYPES:
        x = drawn(dtype, device=device)
        for words in [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}, {"axis": ()}]:
            expected = answer(op, x, **words)
            if isinstance(expected, type):
                with pytest.raises(expected):
                    getattr(wt, op)(x, **words)
            else:
                assert same(getattr(wt, op)(x, **words), expected), (dtype, words)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", [*WHOLE, "minmax", "argminmax"])
def test_fake_tensors_have_the_shapes_and_types_of_answers(op, device):
    from torch._subclasses.fake_tensor import FakeTensorMode

    for dtype in DTYPES:
        x = drawn(dtype, device=device)
        for words in [{}, {"axis": 1}, {"axis": [-1, 0], "keepdims": True}, {"axis": ()}, {"dtype": torch.float32}]:
            expected = answer(op, x, **words)
            with FakeTensorMode() as mode:
                fake = mode.from_tensor(x)
                if isinstance(expected, type):
                    # What elements overflow, no type tells.
                    if expected is TypeError:
                        with pytest.raises(Exception):
                            getattr(wt, op)(fake, **words)
                    continue
                got = getattr(wt, op)(fake, **words)
            pairs = zip(got, expected) if isinstance(got, tuple) else [(got, expected)]
            for a, b in pairs:
                assert (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device), (dtype, words)


@pytest.mark.parametrize("device", DEVICES)
def test_the_checks_of_torch(device):
    """Schema, derivatives, fake tensors and dynamic shapes, by torch's own list of what goes wrong."""
    for dtype in [torch.float32, torch.int32]:
        x = drawn(dtype, device=device)
        for op, words in [("sum", ()), ("mean", ([1],)), ("var", ([0, 2], None, True, 1.0)), ("argmax", ([-1],)), ("max", ([0], None, False, None, "omit"))]:
            torch.library.opcheck(torch.ops.warpfold.reduce.default, (x, op, *words))
        torch.library.opcheck(torch.ops.warpfold.reduce_pair.default, (x, "minmax", [1]))
    for op in SMOOTH:
        x = torch.rand(3, 4, dtype=torch.float64, device=device, requires_grad=True)
        torch.library.opcheck(torch.ops.warpfold.reduce.default, (x, op, [1]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", SMOOTH)
def test_derivatives(op, device):
    x = torch.randn(3, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).to(device).requires_grad_()
    for axis in [None, 1, (0, -1), ()]:
        for keepdims in [False, True]:
            if axis == () and op in ("var", "std"):
                continue
            words = {"correction": 1.0} if op in ("var", "std") else {}
            assert torch.autograd.gradcheck(lambda x: getattr(wt, op)(x, axis, keepdims=keepdims, **words), (x,))
    hole = x.detach().clone()
    hole[0, 0, 0] = torch.nan
    hole.requires_grad_()
    getattr(wt, op)(hole, 1, nan="omit").sum().backward()
    dense = x.detach()[:, 1:].clone().requires_grad_()
    getattr(wt, op)(dense, 1).sum().backward()
    assert hole.grad[0, 0, 0] == 0
    assert torch.allclose(hole.grad[0, 1:, 0], dense.grad[0, :, 0], rtol=1e-12)


@pytest.mark.parametrize("op", ["max", "prod", "norm_inf", "range", "minmax"])
def test_operations_without_a_derivative_say_so(op):
    x = torch.ones(3, requires_grad=True)
    got = getattr(wt, op)(x)
    with pytest.raises(NotImplementedError, match=f"no derivative of {op}"):
        (got[0] if isinstance(got, tuple) else got).backward()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_functions_have_one_graph_and_the_same_bits(backend, device):
    @torch.compile(backend=backend, fullgraph=True, dynamic=True)
    def spread(x):
        low, high = wf.minmax(x, 0)
        return wt.std(x, axis=0, correction=1.0), wf.mean(x, axis=0, keepdims=True), wf.sum(x), high - low, wf.var(x, ddof=1)

    for rows in [3, 5]:
        x = torch.randn(rows, 7, generator=torch.Generator().manual_seed(rows)).to(device)
        try:
            got = spread(x)
        except Exception as error:
            # The machine has no compiler of C++.
            if backend == "inductor" and "compiler" in str(error).lower():
                pytest.skip(str(error).splitlines()[0])
            raise
        expected = (wf.std(x, axis=0, ddof=1), wf.mean(x, axis=0, keepdims=True), wf.sum(x), wf.max(x, 0) - wf.min(x, 0), wf.var(x, ddof=1))
        assert same(got, expected)


def test_compiled_functions_have_derivatives():
    def loss(x):
        return (wt.norm2(x, axis=1) * wt.logsumexp(x, axis=1)).sum()

    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    loss(x).backward()
    torch.compile(loss, backend="aot_eager", fullgraph=True)(y).backward()
    assert torch.equal(x.grad, y.grad)


def test_axes_that_are_not_there():
    x = torch.ones(2, 3)
    for axis in [2, -3, (0, 0), (0, 5)]:
        with pytest.raises((ValueError, IndexError)):
            wt.sum(x, axis)
        with pytest.raises(Exception, match="axis"):
            torch.compile(lambda x: wt.sum(x, axis), backend="eager", fullgraph=True)(x)


def test_the_package_does_not_import_torch():
    script = "import sys, warpfold; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
