"""The compilers whose PTX is run, and the packages that bring them."""

import dataclasses


@dataclasses.dataclass
class Maker:
    """A script that compiles cases, and what it needs."""

    name: str
    script: str
    packages: list
    arguments: list = dataclasses.field(default_factory=list)
    core: bool = False


# The command line's names of NumPy's types.
DTYPES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64",
}

NUMPY = "numpy==2.4.6"


def nvrtc(release, cuda12, compiler, headers, runtime, cccl, core=False):
    """One release of NVRTC, with the compiler's headers, the runtime's and CUB's."""
    suffix = "-cu12" if cuda12 else ""
    headers = f"nvidia-cuda-nvcc-cu12=={headers}" if cuda12 else f"nvidia-cuda-crt=={headers}"
    packages = [NUMPY, headers, f"nvidia-cuda-nvrtc{suffix}=={compiler}", f"nvidia-cuda-runtime{suffix}=={runtime}", f"nvidia-cuda-cccl{suffix}=={cccl}"]
    return Maker(f"nvrtc-{release}", "nvrtc_cases.py", packages, ["90"], core)


MAKERS = [
    nvrtc("12.0", True, "12.0.140", "12.0.140", "12.0.146", "12.9.27"),
    nvrtc("12.4", True, "12.4.127", "12.4.131", "12.4.127", "12.9.27"),
    nvrtc("12.9", True, "12.9.86", "12.9.86", "12.9.79", "12.9.27"),
    nvrtc("13.5", False, "13.5.37", "13.5.37", "13.5.37", "13.3.5.0.6", core=True),
    Maker("triton", "triton_cases.py", [NUMPY, "triton==3.9.0"], core=True),
    Maker("numba", "numba_cases.py", [NUMPY, "numba-cuda[cu13]==0.30.4"], core=True),
    Maker("warp", "warp_cases.py", [NUMPY, "warp-lang==1.19.0"], core=True),
]
