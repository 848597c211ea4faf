"""Kernels on the CPU: what they leave in arrays, held against NumPy, what is found in them, and the fixture of pytest."""

import array
import ctypes
import pickle
import signal
import struct
import threading
import time

import numpy
import pytest

pytest_plugins = ["pytester"]
ptx = pytest.importorskip("warpfold.ptx")

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def kernel(parameters, body, before=""):
    """A kernel ``k`` with registers declared, and ``%t``, the thread of the grid."""
    return f"""{HEAD}{before}
.visible .entry k({parameters})
{{
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<19>; .reg .b64 %d<19>; .reg .f32 %f<9>; .reg .f64 %g<9>; .reg .b32 %t;
    mov.u32 %t, %tid.x; mov.u32 %r18, %ctaid.x; mov.u32 %r17, %ntid.x; mad.lo.u32 %t, %r18, %r17, %t;
    {body}
    ret;
}}"""


# out[t] = in[t] + in[t], of float32.
DOUBLE = kernel(
    ".param .u64 in, .param .u64 out, .param .u32 n",
    """ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u32 %r1, [n];
    setp.ge.u32 %p1, %t, %r1; @%p1 ret;
    mul.wide.u32 %d3, %t, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
    ld.global.f32 %f1, [%d1]; add.f32 %f1, %f1, %f1; st.global.f32 [%d2], %f1;""",
)

# Each thread adds one to the first word, without an atomic.
RACE = kernel(
    ".param .u64 out",
    "ld.param.u64 %d1, [out]; ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1;",
)


def sample(repository, name):
    return (repository / f"crates/ptx/kernels/ptx/12.0/{name}.90.ptx").read_text()


def test_a_sum_in_two_passes(repository):
    module = ptx.Module(sample(repository, "two_pass"))
    assert {"two_pass_f32", "two_pass_i32"} <= set(module.kernels)
    x = numpy.random.default_rng(1).integers(-99, 99, 1000).astype(numpy.int32)
    partials, total = numpy.empty(4, numpy.int32), numpy.empty(1, numpy.int32)
    ptx.run(module, "two_pass_i32", 4, 256, [x, ptx.Out(partials), 1000])
    run = ptx.run(module, "two_pass_i32", 1, 32, [partials, ptx.Out(total), 4])
    assert partials.sum() == total[0] == x.sum()
    assert run.clean and run.findings == () and run.halt is None
    assert run.launches[0].kernel == "two_pass_i32" and run.launches[0].lane_instructions >= 32


@pytest.mark.parametrize("schedule", ["lockstep", "random", "adversarial"])
def test_what_a_kernel_leaves_is_in_the_arrays(schedule):
    x = numpy.random.default_rng(2).standard_normal(1000).astype(numpy.float32)
    before, out = x.copy(), numpy.full(1003, 7, numpy.float32)
    ptx.run(DOUBLE, "k", 8, 128, [x, out, 1000], schedule=schedule, seed=5)
    assert (out[:1000] == x + x).all() and (out[1000:] == 7).all() and (x == before).all()


def test_what_only_goes_out_is_not_handed_over():
    x, out = numpy.ones(10, numpy.float32), numpy.zeros(10, numpy.float32)
    ptx.run(DOUBLE, "k", 1, 32, [x, ptx.Out(out), 8])
    assert out.view(numpy.uint32)[8:].tolist() == [0xFFFFFFFF] * 2 and (out[:8] == 2).all()
    with pytest.raises(ptx.KernelError) as caught:
        ptx.run(DOUBLE, "k", 1, 32, [ptx.Out(x), out, 10])
    assert caught.value.findings[0].kind == "uninitialised"
    # An array that one argument gives is given.
    assert ptx.run(DOUBLE, "k", 1, 32, [out, ptx.Out(out), 10]).clean
    assert ptx.run(DOUBLE, "k", 1, 32, [ptx.Out(out), out, 10]).clean


def test_findings_have_a_form():
    out = numpy.zeros((2, 3), numpy.uint32)
    with pytest.raises(ptx.KernelError, match="data race") as caught:
        ptx.run(RACE, "k", 2, 4, [out])
    error = caught.value
    assert isinstance(error, RuntimeError) and error.halt is None and error.run.findings == error.findings
    race = error.findings[0]
    assert (race.block, race.warp, race.lane) != (race.other.block, race.other.warp, race.other.lane)
    assert (race.kind, race.title, race.remark, race.kernel) == ("race", "data race", False, "k")
    assert (race.access.space, race.access.bytes, race.access.place) == ("global", 4, "args[0][0, 0]")
    assert race.access.act in ("read", "write") and race.other.act in ("read", "write")
    assert race.ptx_line > 5 and race.source_line is None and race.file is None and race.inlined == ()
    assert "args[0][0, 0]" in str(race) and "hint: " in str(race) and race.hint in str(error)
    assert 0 <= race.lane < 4 and race.warp == 0 and race.count >= 1
    # It travels between processes, as tests that run beside each other need.
    again = pickle.loads(pickle.dumps(error))
    assert again.findings == error.findings and str(again) == str(error)
    run = ptx.run(RACE, "k", 2, 4, [out], raises=False)
    assert not run.clean and run.findings
    assert ptx.run(RACE, "k", 2, 4, [out], checks="none").clean


def test_lines_of_the_source_are_told(repository):
    x, out = numpy.ones(64, numpy.int32), numpy.empty(1, numpy.int32)
    with pytest.raises(ptx.KernelError) as caught:
        ptx.run(sample(repository, "fault_missing_barrier"), "missing_barrier", 1, 64, [x, ptx.Out(out)])
    finding = caught.value.findings[0]
    assert finding.file.endswith("fault_missing_barrier.cu") and finding.source_line == 11
    assert finding.inlined[0].source_line == 21 and finding.access.space == "shared" and finding.access.place is None


@pytest.mark.parametrize(
    ("n", "shape", "order", "place"),
    [(9, (8,), "C", "args[1][8]"), (8, (7,), "C", "args[1][7]"), (9, (2, 4), "C", "args[1].flat[8]")],
)
def test_an_element_behind_an_array_is_named(n, shape, order, place):
    x, out = numpy.ones(9, numpy.float32), numpy.zeros(shape, numpy.float32, order)
    with pytest.raises(ptx.KernelError) as caught:
        ptx.run(DOUBLE, "k", 1, 32, [x, out, n])
    finding = caught.value.findings[0]
    assert (finding.kind, finding.access.place) == ("out-of-bounds", place)
    # What is right was written all the same.
    assert (out == 2).all()


def test_an_element_within_an_array_is_named_in_its_order():
    for order, place in [("C", "args[0][0, 1]"), ("F", "args[0][1, 0]")]:
        out = numpy.zeros((2, 3), numpy.uint32, order)
        add = RACE.replace("ld.global.u32", "add.u64 %d1, %d1, 4; ld.global.u32", 1)
        with pytest.raises(ptx.KernelError) as caught:
            ptx.run(add, "k", 1, 4, [out])
        assert caught.value.findings[0].access.place == place
        assert out.ravel("K")[1] > 0


def test_arrays_that_share_memory_share_it():
    x = numpy.arange(100, dtype=numpy.float32)
    # From the middle to the beginning, and the whole array in between.
    ptx.run(DOUBLE, "k", 1, 64, [x[50:], x[:50], 50], checks="all")
    assert (x[:50] == 2 * numpy.arange(50, 100)).all() and (x[50:] == numpy.arange(50, 100)).all()
    whole = numpy.arange(100, dtype=numpy.float32)
    three = kernel(".param .u64 a, .param .u64 b, .param .u64 c", "ld.param.u64 %d1, [b]; ld.param.u64 %d2, [c]; ld.global.f32 %f1, [%d1]; st.global.f32 [%d2], %f1;")
    ptx.run(three, None, 1, 1, [whole, whole[10:20], whole[99:]])
    assert whole[99] == 10
    with pytest.raises(ValueError, match=r"args\[0\] and args\[1\] overlap in part"):
        ptx.run(DOUBLE, "k", 1, 1, [whole[:60], whole[40:], 1])
    empty = numpy.zeros(0, numpy.float32)
    assert ptx.run(DOUBLE, "k", 1, 1, [empty, whole[5:5], 0]).clean


def test_arrays_that_cannot_be_memory_are_refused():
    x = numpy.ones(10, numpy.float32)
    for bad, error, what in [
        (x[::2], ValueError, "gaps"),
        ([1.0, 2.0], TypeError, "list"),
        ("text", TypeError, "str"),
        (numpy.array([None]), TypeError, "objects"),
        (x.astype(x.dtype.newbyteorder()), TypeError, "byte order"),
        (ptx.Out(3.0), TypeError, "float"),
    ]:
        with pytest.raises(error, match=what):
            ptx.run(DOUBLE, "k", 1, 32, [x, bad, 10])
    fixed = x.copy()
    fixed.flags.writeable = False
    assert ptx.run(DOUBLE, "k", 1, 32, [fixed, x, 10]).clean
    with pytest.raises(ValueError, match="only be read"):
        ptx.run(DOUBLE, "k", 1, 32, [x, fixed, 10])
    with pytest.raises(ValueError, match="may be written"):
        ptx.run(DOUBLE, "k", 1, 32, [*_two_views(), 3])


def _two_views():
    """An array that may only be read, and one that may be written, of one memory."""
    memory = numpy.ones(10, numpy.float32)
    fixed = memory[:]
    fixed.flags.writeable = False
    return fixed, memory[2:5]


def test_memory_of_others_is_memory():
    x, out = array.array("f", [1, 2, 3]), bytearray(12)
    ptx.run(DOUBLE, "k", 1, 32, [x, out, 3])
    assert struct.unpack("<3f", out) == (2, 4, 6)


PARAMETERS = kernel(
    ".param .u64 out, .param .u8 a, .param .s16 b, .param .u32 c, .param .s64 d, .param .f32 e, .param .f64 f, .param .b32 g, .param .b64 h",
    """ld.param.u64 %d1, [out]; ld.param.u8 %r1, [a]; st.global.u32 [%d1], %r1; ld.param.s16 %r1, [b]; st.global.u32 [%d1+4], %r1;
    ld.param.u32 %r1, [c]; st.global.u32 [%d1+8], %r1; ld.param.f32 %f1, [e]; st.global.f32 [%d1+12], %f1;
    ld.param.s64 %d2, [d]; st.global.u64 [%d1+16], %d2; ld.param.f64 %g1, [f]; st.global.f64 [%d1+24], %g1;
    ld.param.b32 %r1, [g]; st.global.b32 [%d1+32], %r1; ld.param.b64 %d2, [h]; st.global.b64 [%d1+40], %d2;""",
)


def test_numbers_are_what_the_parameters_say():
    out = numpy.zeros(48, numpy.uint8)
    ptx.run(PARAMETERS, "k", 1, 1, [out, 255, -5, 1 << 31, -(1 << 62), 1, 2, 0.5, 0.25])
    assert struct.unpack("<IiIfqdfxxxxd", out.tobytes()) == (255, -5, 1 << 31, 1.0, -(1 << 62), 2.0, 0.5, 0.25)
    numbers = [numpy.uint8(1), numpy.int16(2), numpy.int32(-1), numpy.int64(4), numpy.float32(1.5), numpy.float64(2.5), numpy.float32(3), numpy.int64(9)]
    ptx.run(PARAMETERS, "k", 1, 1, [out, *numbers])
    assert struct.unpack("<IiIfqdfxxxxq", out.tobytes()) == (1, 2, 0xFFFFFFFF, 1.5, 4, 2.5, 3.0, 9)
    right = [out, 1, 1, 1, 1, 1.0, 1.0, 1, None]
    assert ptx.run(PARAMETERS, "k", 1, 1, right).clean
    for at, bad, error, what in [
        (1, 256, OverflowError, r"args\[1\]"),
        (2, -40000, OverflowError, ".s16"),
        (3, 0.5, TypeError, "is a float"),
        (3, numpy.float32(1), TypeError, "float32"),
        (3, numpy.int64(1), ValueError, "8 bytes"),
        (5, 1e60, OverflowError, "32 bits"),
        (5, numpy.int32(1), TypeError, "int32"),
        (6, numpy.float32(1), ValueError, "4 bytes"),
        (0, 0.5, TypeError, "u64"),
        (7, "x", TypeError, "str"),
    ]:
        with pytest.raises(error, match=what):
            ptx.run(PARAMETERS, "k", 1, 1, right[:at] + [bad] + right[at + 1 :])
    with pytest.raises(ValueError, match=r"takes 9\nhint: it has \(.u64 out, .u8 a, "):
        ptx.run(PARAMETERS, "k", 1, 1, [out])


STRUCT = kernel(
    ".param .align 8 .b8 s[32]",
    """ld.param.u64 %d1, [s]; ld.param.u8 %r1, [s+8]; ld.param.f32 %f1, [s+12]; ld.param.u64 %d2, [s+16]; ld.param.u16 %r2, [s+24];
    st.global.u32 [%d1], %r1; st.global.f32 [%d1+4], %f1; st.global.u32 [%d2], %r2;""",
)


def test_structs_are_laid_out_as_c_does():
    class Laid(ctypes.Structure):
        _fields_ = [("p", ctypes.c_void_p), ("a", ctypes.c_uint8), ("x", ctypes.c_float), ("q", ctypes.c_void_p), ("b", ctypes.c_uint16)]

    assert ctypes.sizeof(Laid) == 32
    out, other = numpy.zeros(2, numpy.uint32), numpy.zeros(1, numpy.uint32)
    ptx.run(STRUCT, "k", 1, 1, [(out, numpy.uint8(7), numpy.float32(1.5), other, numpy.uint16(9))])
    assert out.tolist() == [7, 0x3FC00000] and other.tolist() == [9]
    ptx.run(STRUCT, "k", 1, 1, [((out, numpy.uint8(8), b"abc", numpy.float32(2)), other, (numpy.uint16(3),))])
    assert out.tolist() == [8, 0x40000000] and other.tolist() == [3]
    with pytest.raises(TypeError, match=r"args\[0\]\[1\].*\n?.*numpy.int32\(7\)"):
        ptx.run(STRUCT, "k", 1, 1, [(out, 7)])
    with pytest.raises(TypeError, match="a struct"):
        ptx.run(STRUCT, "k", 1, 1, [7])
    with pytest.raises(ValueError, match="8 bytes"):
        ptx.run(STRUCT, "k", 1, 1, [(out,)])
    # Pointers that the struct brings itself lead nowhere.
    with pytest.raises(ptx.KernelError) as caught:
        ptx.run(STRUCT, "k", 1, 1, [Laid(64, 1, 2.0, 64, 3)])
    assert caught.value.findings[0].kind == "out-of-bounds"


# The texel at (x, y) goes to (w - 1 - x, y), for 4 columns.
TURN = kernel(
    ".param .u64 t, .param .u64 s",
    """ld.param.u64 %d1, [t]; ld.param.u64 %d2, [s]; and.b32 %r2, %t, 3; shr.u32 %r3, %t, 2;
    tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r2, %r3}];
    xor.b32 %r4, %r2, 3; shl.b32 %r4, %r4, 2; sust.b.2d.b32.trap [%d2, {%r4, %r3}], {%f1};""",
)


def copies(rank, mode, place, nbytes, parameters=".param .align 64 .b8 m[128], .param .u64 o", at="mov.u64 %d1, m;"):
    """A kernel that copies a tile of words to ``o``."""
    return kernel(
        parameters,
        f"""setp.ne.u32 %p1, %t, 0; @!%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
        {at} cvta.param.u64 %d1, %d1; mov.u32 %r2, room; @%p1 bra wait;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], {nbytes};
        cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes [%r2], {place};
        wait: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra wait;
        ld.param.u64 %d2, [o]; mul.wide.u32 %d3, %t, 4; add.u64 %d2, %d2, %d3;
        shl.b32 %r3, %t, 2; add.u32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3]; st.global.u32 [%d2], %r4;""",
        ".shared .align 128 .b8 room[1024]; .shared .align 8 .b64 bar;",
    )


def test_textures_and_surfaces():
    x, out = numpy.arange(8, dtype=numpy.float32).reshape(2, 4), numpy.zeros((2, 4), numpy.float32)
    ptx.run(TURN, "k", 1, 8, [ptx.Texture(x), ptx.Surface(ptx.Out(out))])
    assert (out == x[:, ::-1]).all() and (x.ravel() == numpy.arange(8)).all()
    with pytest.raises(ptx.KernelError, match="uninitialised"):
        ptx.run(TURN, "k", 1, 8, [ptx.Texture(ptx.Out(x.copy())), ptx.Surface(out)])
    narrow = numpy.zeros((2, 3), numpy.float32)
    with pytest.raises(ptx.KernelError) as caught:
        ptx.run(TURN, "k", 1, 8, [ptx.Texture(x), ptx.Surface(narrow)])
    assert caught.value.findings[0].kind == "out-of-bounds"
    # What is outside, and numbers of [0, 1].
    texel = kernel(
        ".param .u64 t, .param .u64 o",
        """ld.param.u64 %d1, [t]; ld.param.u64 %d2, [o]; mul.wide.u32 %d3, %t, 16; add.u64 %d2, %d2, %d3;
        cvt.rn.f32.u32 %f5, %t; mul.f32 %f5, %f5, 0f3E800000; add.f32 %f5, %f5, 0f3E000000;
        tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f5}]; st.global.v4.f32 [%d2], {%f1, %f2, %f3, %f4};""",
    )
    bytes_ = numpy.arange(16, dtype=numpy.uint8).reshape(4, 4)
    for addressing, rows in [("wrap", [0, 1, 2, 3, 0, 1]), ("mirror", [0, 1, 2, 3, 3, 2]), ("clamp", [0, 1, 2, 3, 3, 3])]:
        out = numpy.zeros((6, 4), numpy.float32)
        texture = ptx.Texture(bytes_, parts=4, addressing=addressing, normalized=True, unit=True)
        ptx.run(texel, "k", 1, 6, [texture, out])
        assert numpy.allclose(out, bytes_[rows] / 255), addressing


def test_a_texture_in_a_struct():
    text = TURN.replace(".param .u64 t, .param .u64 s", ".param .align 8 .b8 a[16]").replace("[t]", "[a]").replace("[s]", "[a+8]")
    x, out = numpy.arange(8, dtype=numpy.float32).reshape(2, 4), numpy.zeros((2, 4), numpy.float32)
    ptx.run(text, "k", 1, 8, [(ptx.Texture(x), ptx.Surface(out))])
    assert (out == x[:, ::-1]).all()


def test_tensor_maps():
    x = numpy.arange(60, dtype=numpy.uint32).reshape(3, 5, 4)
    out = numpy.zeros((2, 2, 4), numpy.uint32)
    box = copies(3, "tile", "[%d1, {0, 3, 1}], [bar]", 64)
    ptx.run(box, "k", 1, 16, [ptx.TensorMap(x, (2, 2, 4)), out])
    assert (out == x[1:3, 3:5]).all()
    ptx.run(box, "k", 1, 16, [ptx.TensorMap(x, (2, 3, 4), steps=(1, 2, 1)), out])
    assert (out[:, 0] == x[1:3, 3]).all() and (out[:, 1] == 0).all()
    # In a struct, behind a number.
    struct_ = ".param .align 64 .b8 s[192], .param .u64 o"
    inside = copies(3, "tile", "[%d1, {0, 3, 1}], [bar]", 64, struct_, "mov.u64 %d1, s; add.u64 %d1, %d1, 64;")
    ptx.run(inside, "k", 1, 16, [(numpy.int32(5), ptx.TensorMap(x, (2, 2, 4))), out])
    assert (out == x[1:3, 3:5]).all()
    # Two images of 2 times 3 pixels, a border of one, and the second column of the window.
    images = numpy.arange(1, 49, dtype=numpy.float32).reshape(2, 2, 3, 4)
    pixels = numpy.zeros((8, 4), numpy.float32)
    text = copies(4, "im2col", "[%d1, {0, -1, 0, 0}], [bar], {1, 0}", 128)
    ptx.run(text, "k", 1, 32, [ptx.TensorMap(images, (8, 4), lower=(-1, -1), upper=(-1, -1)), pixels])
    rows = numpy.concatenate([images[0, 0], numpy.zeros((3, 4)), images[1, 0, :2]])
    assert (pixels == rows).all()


@pytest.mark.parametrize(
    ("argument", "what"),
    [
        (lambda x: ptx.Texture(x, parts=2), "last axis is not of 2"),
        (lambda x: ptx.Texture(x, addressing="wrap"), "normalized"),
        (lambda x: ptx.Texture(x, addressing="around"), "around"),
        (lambda x: ptx.Texture(x, addressing=("clamp",)), "2 axes"),
        (lambda x: ptx.Texture(x.astype(numpy.float64)), "no texels"),
        (lambda x: ptx.Texture(x.astype(complex)), "complex128"),
        (lambda x: ptx.Surface(x.reshape(1, 1, 2, 4)), "4 axes"),
        (lambda x: ptx.Surface(numpy.asfortranarray(x)), "innermost"),
        (lambda x: ptx.TensorMap(x, (2, 3)), "rows of a tile have 12 bytes"),
        (lambda x: ptx.TensorMap(x, (4,)), "a tile of 2"),
        (lambda x: ptx.TensorMap(x, (2, -4)), "tile=.*numbers are not"),
        (lambda x: ptx.TensorMap(x, (2, 4), swizzle=16), "swizzle"),
        (lambda x: ptx.TensorMap(x, (2, 4), lower=(0,)), "go together"),
        (lambda x: ptx.TensorMap(x, (2, 4), lower=(0,), upper=(0,)), "3 to 5 directions"),
    ],
)
def test_descriptors_that_there_are_not(argument, what):
    x = numpy.zeros((2, 4), numpy.float32)
    with pytest.raises(ValueError, match=what):
        ptx.run(TURN, "k", 1, 8, [argument(x), ptx.Surface(x)])


def test_symbols_are_written():
    text = kernel(
        ".param .u64 out",
        "ld.param.u64 %d1, [out]; ld.const.f32 %f1, [scale]; st.global.f32 [%d1], %f1; ld.global.u32 %r1, [start]; st.global.u32 [%d1+4], %r1;",
        ".const .align 4 .f32 scale; .visible .global .align 4 .u32 start = 5;",
    )
    out = numpy.zeros(2, numpy.uint32)
    ptx.run(text, "k", 1, 1, [out], symbols={"scale": numpy.float32(0.5), "start": numpy.uint32(9)})
    assert out.tolist() == [0x3F000000, 9]
    with pytest.warns(UserWarning, match="scale is not set"):
        ptx.run(text, "k", 1, 1, [out])
    assert out.tolist() == [0, 5]
    with pytest.raises(ValueError, match="no variable `none`"):
        ptx.run(text, "k", 1, 1, [out], symbols={"none": numpy.float32(1)})
    with pytest.raises(ValueError, match="4 bytes, not 8"):
        ptx.run(text, "k", 1, 1, [out], symbols={"scale": numpy.float64(1)})


def test_what_is_wrong_with_a_call_is_said():
    x = numpy.ones(4, numpy.float32)
    good = dict(ptx=DOUBLE, kernel="k", grid=1, block=32, args=[x, x, 4])
    assert ptx.run(**good).clean and ptx.run(**{**good, "ptx": DOUBLE.encode() + b"\0"}).clean
    for words, what in [
        (dict(ptx="no PTX"), "PTX line 1"),
        (dict(kernel="none"), "no kernel `none`"),
        (dict(grid=0), "each direction"),
        (dict(grid=()), "one to three"),
        (dict(block=(1, 2, 3, 4)), "one to three"),
        (dict(block=1 << 33), "one to three"),
        (dict(block=2048), "a block of 2048|each direction"),
        (dict(schedule="other"), "no schedule"),
        (dict(checks="other"), "checks"),
        (dict(shared=1 << 20), "shared memory"),
        (dict(cluster=3), "cluster"),
    ]:
        with pytest.raises(ValueError, match=what):
            ptx.run(**{**good, **words})
    two = DOUBLE + DOUBLE.replace(HEAD, "").replace("entry k(", "entry l(")
    with pytest.raises(ValueError, match="which kernel"):
        ptx.run(two, None, 1, 32, [x, x, 4])


def test_kernels_that_do_not_end():
    endless = kernel(".param .u64 out", "again: bra again;")
    x = numpy.zeros(1)
    with pytest.raises(ptx.KernelError, match="the limit of 1000") as caught:
        ptx.run(endless, "k", 1, 32, [x], limit=1000)
    assert caught.value.halt.kind == "instruction-limit" and caught.value.halt.hint
    with pytest.raises(ptx.KernelError) as caught:
        ptx.run(kernel(".param .u64 out", "trap;"), "k", 1, 32, [x])
    assert caught.value.halt.kind == "trap" and caught.value.findings == ()
    assert ptx.run(kernel(".param .u64 out", "trap;"), "k", 1, 32, [x], raises=False).halt.kind == "trap"


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals are heard by the main thread")
@pytest.mark.parametrize("checks", ["all", "none"])
def test_ctrl_c_is_heard(checks):
    endless = kernel(".param .u64 out", "again: bra again;")
    timer = threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ptx.run(endless, "k", 4, 32, [numpy.zeros(1)], checks=checks, limit=1 << 60)
    assert time.monotonic() - start < 60
    timer.join()


def test_what_a_kernel_prints(repository):
    module = ptx.Module(sample(repository, "printing"))
    parameters = module.parameters(module.kernels[0])
    assert all(len(parameter) == 3 for parameter in parameters)
    assert isinstance(ptx.run(DOUBLE, "k", 1, 1, [numpy.ones(1, "f4"), numpy.ones(1, "f4"), 1]).output, str)


def test_remarks_are_no_faults():
    same = kernel(".param .u64 out", "ld.param.u64 %d1, [out]; st.global.u32 [%d1], 1;")
    out = numpy.zeros(1, numpy.uint32)
    assert ptx.run(same, "k", 1, 32, [out]).remarks == ()
    run = ptx.run(same, "k", 1, 32, [out], checks="all,strict")
    assert run.clean and run.findings == () and run.remarks[0].kind == "same-value"


def test_the_fixture_runs_each_schedule(pytester):
    pytester.makepyfile(
        f"""
        import numpy, pytest, warpfold.ptx

        DOUBLE = {DOUBLE!r}
        RACE = {RACE!r}

        def test_right(ptx_run):
            out = numpy.zeros(4, numpy.float32)
            assert ptx_run(DOUBLE, "k", 1, 32, [numpy.ones(4, numpy.float32), out, 4]).clean
            assert (out == 2).all()

        def test_wrong(ptx_run):
            ptx_run(RACE, "k", 1, 32, [numpy.zeros(1, numpy.uint32)])

        @pytest.mark.ptx(schedules=["random"], seeds=2, checks="none")
        def test_marked(ptx_run):
            assert ptx_run(RACE, "k", 1, 32, [numpy.zeros(1, numpy.uint32)]).clean
        """
    )
    result = pytester.runpytest_subprocess("--ptx-seeds=2", "-v", "--strict-markers")
    result.assert_outcomes(passed=7, failed=5)
    result.stdout.fnmatch_lines(["*test_right?adversarial-1? PASSED*", "*test_wrong?lockstep? FAILED*", "*KernelError: data race*"])
    result = pytester.runpytest_subprocess("--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.ptx(schedules, seeds, checks):*"])


@pytest.mark.parametrize("mark", ["schedules=[]", "seed=1", "schedules=['random'], seeds=0"])
def test_a_mark_that_asks_for_nothing_is_refused(pytester, mark):
    pytester.makepyfile(f"import pytest\n@pytest.mark.ptx({mark})\ndef test_it(ptx_run): pass\n")
    result = pytester.runpytest_subprocess()
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*test_it*"])


def test_arrays_of_numba():
    x = numpy.zeros((2, 3), numpy.float32)
    assert ptx.numba_array(x)[4] is x
    words = ptx.numba_array(ptx.Out(x))
    assert words[:4] == [None, None, 6, 4] and words[4].array is x and words[5:] == [2, 3, 12, 4]
