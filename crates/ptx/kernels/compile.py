#!/usr/bin/env python3
"""Compiles the sample kernels to PTX with pinned compilers, or checks that the committed PTX is what the sources give.

    compile.py            writes ptx/<compiler>/<kernel>.<compute>.ptx
    compile.py --check    exits 1 when that would change a file

The compilers are NVRTC's wheels from PyPI, fetched with pip into a cache and used where they lie: no GPU, driver or toolkit is
needed. A source may begin with `// compute: 90` (only for these devices) and `// options: ...` (for the compiler).
"""

import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
COMPUTE = ["75", "90"]

# Where the compilers run: a place that is the same on every machine, since names of internal symbols depend on it.
WORK = "/"

# The folder's name, the pinned wheel, the library in it, and the PTX version that it must print.
COMPILERS = [
    ("12.0", "nvidia-cuda-nvrtc-cu12==12.0.140", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "8.0"),
    ("13.0", "nvidia-cuda-nvrtc==13.0.88", "nvidia/cu13/lib/libnvrtc.so.13", "9.0"),
]


class Failure(Exception):
    """Something that the caller can be told in one line."""


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "warpfold" / "nvrtc"


def fetched(requirement):
    """The folder with the wheel's files; asks the registry only the first time."""
    folder = cache_folder() / requirement.replace("==", "-")
    done = folder / "complete"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    answer = subprocess.run([*command, "--dest", str(folder), requirement], capture_output=True, text=True)
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise Failure(f"cannot fetch {requirement}: {last}\nhint: the wheels are for Linux on x86-64 and come from PyPI; is it reachable?")
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        wheel.unlink()
    done.touch()
    return folder


class Nvrtc:
    """A compiler: the few functions of its library that are needed."""

    def __init__(self, release, requirement, library, ptx_version):
        path = fetched(requirement) / library
        # It looks for its builtins by name, where the loader has them already.
        for builtins in sorted(path.parent.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(builtins))
        try:
            self.library = ctypes.CDLL(str(path))
        except OSError as error:
            raise Failure(f"cannot load {path}: {error}") from error
        self.ptx_version = ptx_version
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        found = f"{major.value}.{minor.value}"
        if found != release:
            raise Failure(f"{path} is NVRTC {found}, not {release}")

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            text = self.library.nvrtcGetErrorString
            text.restype = ctypes.c_char_p
            raise Failure(f"{name}: {text(status).decode()}")

    def compile(self, source, compute, options):
        program = ctypes.c_void_p()
        text = source.read_text(encoding="utf-8").encode()
        self.call("nvrtcCreateProgram", ctypes.byref(program), text, source.name.encode(), 0, None, None)
        try:
            flags = [f"--gpu-architecture=compute_{compute}", "-lineinfo", "--std=c++17", *options]
            array = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
            try:
                self.call("nvrtcCompileProgram", program, len(flags), array)
            except Failure as failure:
                raise Failure(f"{source.name} for compute_{compute}: {failure}\n{self.text(program, 'ProgramLog')}") from failure
            # The compiler names the source with the folder it runs in.
            ptx = self.text(program, "PTX").replace(f'"{WORK}', '"')
        finally:
            self.call("nvrtcDestroyProgram", ctypes.byref(program))
        if f".version {self.ptx_version}\n" not in ptx:
            raise Failure(f"{source.name}: the compiler did not print PTX {self.ptx_version}")
        return ptx

    def text(self, program, what):
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.value.decode()


def directives(source):
    """The devices and the options that the first lines of a source ask for."""
    compute, options = COMPUTE, []
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("// compute: "):
            compute = line.removeprefix("// compute: ").split()
        elif line.startswith("// options: "):
            options = line.removeprefix("// options: ").split()
        elif not line.startswith("//"):
            break
    return compute, options


def compiled():
    """Every file that belongs under ptx/, with its text."""
    files = {}
    for release, *pinned in COMPILERS:
        compiler = Nvrtc(release, *pinned)
        for source in sorted(HERE.glob("*.cu")):
            compute, options = directives(source)
            for device in compute:
                path = HERE / "ptx" / release / f"{source.stem}.{device}.ptx"
                files[path] = compiler.compile(source, device, options)
    return files


def differences(files):
    """What stands between the folder and the files, one line each."""
    for path in sorted(set((HERE / "ptx").rglob("*.ptx")) | set(files)):
        name = path.relative_to(HERE)
        if path not in files:
            yield f"{name}: no source gives it"
        elif not path.exists():
            yield f"{name}: missing"
        elif path.read_text(encoding="utf-8") != files[path]:
            yield f"{name}: differs from what its source gives"


def write(files):
    for path in set((HERE / "ptx").rglob("*.ptx")) - set(files):
        path.unlink()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{len(files)} files, {sum(map(len, files.values())) >> 10} KiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    os.chdir(WORK)
    try:
        files = compiled()
    except Failure as failure:
        sys.exit(f"error: {failure}")
    if not check:
        write(files)
        return
    found = list(differences(files))
    for line in found:
        print(line)
    if found:
        sys.exit("error: the committed PTX is not what the sources give\nhint: run crates/ptx/kernels/compile.py and commit the result")


if __name__ == "__main__":
    main()
