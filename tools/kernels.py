#!/usr/bin/env python3
"""Compiles folders of CUDA kernels to PTX with pinned compilers, or checks that what is committed is what the sources give.

    tools/kernels.py crates/ptx/kernels crates/cuda/kernels            writes each folder's archive
    tools/kernels.py --only 'row_*' crates/cuda/kernels                compiles these sources and keeps the other modules
    tools/kernels.py --check crates/ptx/kernels crates/cuda/kernels    exits 1 when that would change a file
    tools/kernels.py --fresh --check crates/cuda/kernels               the same, and compiles what it has compiled before

The compilers are NVRTC's wheels from PyPI, fetched with pip into a cache and used where they lie: no GPU, driver or toolkit is
needed. What they print is kept beside them, under a hash of all that it depends on. A folder's `kernels.json` names its compilers, the compute capabilities, options, whether kernels may call functions that drivers link ("linked"), and what is made of it:

    "archive"    kernels.archive: all modules in one file, compressed in groups that are much alike
    "shown"      of them, the kernels whose texts lie in ptx/<compiler>/<kernel>.<compute>.ptx as well, for one compiler and capability

A source may begin with `// compute: 90` (only for these devices), `// options: ...` (for the compiler) and `// elements: f32 f64`
(one module for each, named <kernel>_<element>, compiled with ELEMENT defined), and `// toolkit: headers` (it includes headers of the
toolkit, which come from the pinned wheel of the CUDA runtime). It may include the folder's headers, and those of
the folders that `headers` lists. A folder may have a `catalogue.json`, of whose entries sources are made: see `Catalogue`.
"""

import argparse
import ctypes
import fnmatch
import hashlib
import importlib
import json
import multiprocessing
import os
import pathlib
import re
import stat
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib

# Where the compilers run: a place that is the same on every machine, since names of internal symbols depend on it.
WORK = "/"

# What packs archives.
ZSTANDARD = "zstandard==0.25.0"

# By release: the pinned wheel, the library in it, and the PTX version that it must print.
COMPILERS = {
    "12.0": ("nvidia-cuda-nvrtc-cu12==12.0.140", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "8.0"),
    "13.0": ("nvidia-cuda-nvrtc==13.0.88", "nvidia/cu13/lib/libnvrtc.so.13", "9.0"),
}

# The wheel with the toolkit's headers (cooperative groups), by the compiler's release, and their folder in it.
TOOLKITS = {"12.0": ("nvidia-cuda-runtime-cu12==12.0.146", "nvidia/cuda_runtime/include")}


class Failure(Exception):
    """Something that the caller can be told in one line."""


def cache_folder(name):
    """Where the compilers are kept, which are loaded from there, and what they print: nobody else may write to it."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(base) / "warpfold" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise Failure(f"{folder} is a link, belongs to somebody else, or can be written by others\nhint: XDG_CACHE_HOME may name another folder")
    return folder


def fetched(requirement):
    """The folder with the wheel's files; asks the registry only the first time."""
    # Some wheels are for one version of Python.
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_folder("nvrtc") / f"{requirement.replace('==', '-')}-py{version}"
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

    def compile(self, source, headers, compute, options):
        program = ctypes.c_void_p()
        strings = lambda texts: (ctypes.c_char_p * len(texts))(*[text.encode() for text in texts])
        text = source.text.encode()
        self.call(
            "nvrtcCreateProgram",
            ctypes.byref(program),
            text,
            source.name.encode(),
            len(headers),
            strings(list(headers.values())),
            strings(list(headers)),
        )
        try:
            flags = [f"--gpu-architecture=compute_{compute}", "--std=c++17", *options]
            try:
                self.call("nvrtcCompileProgram", program, len(flags), strings(flags))
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


class Source:
    """A source of kernels: a file, or a text that an entry of a catalogue gives."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.stem = name.removesuffix(".cu")

    @staticmethod
    def of_file(path):
        return Source(path.name, path.read_text(encoding="utf-8"))

    def directives(self):
        """What the first lines ask for, by name."""
        found = {}
        for line in self.text.splitlines():
            if not line.startswith("//"):
                break
            name, colon, words = line.removeprefix("// ").partition(": ")
            if colon and name in ("compute", "options", "elements", "toolkit"):
                found[name] = words.split()
        return found

    def names(self):
        """The modules that it gives, each with its own options."""
        elements = self.directives().get("elements")
        return {f"{self.stem}_{e}": [f"-DELEMENT={e}"] for e in elements} if elements else {self.stem: []}


# An include that can be followed, and any.
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
ANY_INCLUDE = re.compile(r"#[ \t]*include\b")


def included(text, headers):
    """The headers that a text may include, and those that they may include, whatever its conditions say."""
    found, texts = {}, [text]
    while texts:
        text = texts.pop()
        names = INCLUDE.findall(text)
        if len(names) != len(ANY_INCLUDE.findall(text)):
            # A name that a macro makes could be any, and a continued line could hide one.
            return headers
        for name in names:
            if name in headers and name not in found:
                found[name] = headers[name]
                texts.append(headers[name])
    return found


class Task:
    """A source for one compiler, and the modules that it gives. What a compiler prints depends on what it compiled before: a source is
    compiled as a whole, in a process of its own, and kept as a whole."""

    def __init__(self, release, source, headers, settings):
        asked = source.directives()
        self.release, self.source = release, source
        self.headers = included(source.text, headers)
        self.options = settings["options"] + asked.get("options", [])
        self.compute = asked.get("compute", settings["compute"])
        self.toolkit = None
        if "toolkit" in asked:
            if release not in TOOLKITS:
                raise Failure(f"{source.name}: no headers of the toolkit are pinned for NVRTC {release}\nhint: add their wheel to TOOLKITS")
            self.toolkit = TOOLKITS[release]
        # Drivers link what printf and malloc need, and kernels that ship need neither; what launches from the device is linked
        # with the device runtime, where it is found.
        self.stands_alone = not settings.get("linked") and "-rdc=true" not in self.options

    def cost(self):
        """Grows with the time that it takes: the longest begin first, so that no process works alone in the end."""
        size = len(self.source.text) + sum(map(len, self.headers.values()))
        return size * len(self.compute) * len(self.source.names())

    def key(self):
        """A hash of all that the modules depend on."""
        means = [self.release, COMPILERS[self.release], WORK, self.options, self.compute, self.source.names()]
        texts = [self.source.name, self.source.text, sorted(self.headers.items())]
        means += [self.toolkit] if self.toolkit else []
        return hashlib.sha256(json.dumps([KEPT_VERSION, means, texts]).encode()).hexdigest()

    def compile(self):
        compiler, modules, found = Nvrtc(self.release, *COMPILERS[self.release]), {}, []
        if self.toolkit:
            found.append(f"--include-path={fetched(self.toolkit[0]) / self.toolkit[1]}")
        for name, own in self.source.names().items():
            for device in self.compute:
                modules[f"{name}.{device}"] = compiler.compile(self.source, self.headers, device, [*self.options, *found, *own])
        return modules

    def check(self, modules):
        for ptx in modules.values():
            if self.stands_alone and ".extern .func" in ptx:
                raise Failure(f"{self.source.name}: it calls a function that the compiler alone does not know")


def plain(text):
    """A module without what names its device and nobody reads: calls are counted over all that one run compiles."""
    text = re.sub(r"// callseq \d+", "// callseq", text)
    text = re.sub(r"^\.global .* \w*nv6target\w* = \d+;\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^\.target sm_\d+", ".target", re.sub(r"_cu_[0-9a-f]{8}", "_cu", text), flags=re.MULTILINE)


# Raised when the way from sources to modules changes: what was kept before is not found any more.
KEPT_VERSION = 1
KEPT_DAYS = 60


def kept(path):
    """The modules that a file of the cache has, if it is there and whole."""
    try:
        modules = json.loads(zlib.decompress(path.read_bytes()))
        path.touch()
    except FileNotFoundError:
        return None
    except (OSError, ValueError, zlib.error):
        # Half written or damaged: compiled again.
        return None
    return modules


def keep(path, modules):
    """Writes a file of the cache, whole or not at all. A disk that is full costs time only."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(zlib.compress(json.dumps(modules).encode()))
        os.replace(file.name, path)
    except OSError as error:
        print(f"warning: cannot keep what was compiled: {error}", file=sys.stderr)


def forget_old(folder):
    """Removes what nobody has asked for in a long time."""
    for path in folder.iterdir():
        try:
            if path.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
                path.unlink()
        except OSError:
            # Another process was faster.
            pass


def modules_of(work):
    """A task's modules by name and compute capability, and whether they had to be compiled."""
    task, fresh = work
    path = cache_folder("ptx") / task.key()
    modules = None if fresh else kept(path)
    found = modules is not None
    if not found:
        modules = task.compile()
        keep(path, modules)
    task.check(modules)
    return modules, not found


def compile_all(folders, fresh):
    """Compiles the tasks of all folders, or takes what is kept of them."""
    owners = [(folder, task) for folder in folders for task in folder.tasks]
    for release in {task.release for _, task in owners}:
        # Once, and not by each process.
        fetched(COMPILERS[release][0])
    for wheel in {task.toolkit[0] for _, task in owners if task.toolkit}:
        fetched(wheel)
    forget_old(cache_folder("ptx"))
    owners.sort(key=lambda pair: -pair[1].cost())
    with multiprocessing.get_context("fork").Pool(maxtasksperchild=1) as pool:
        work = [(task, fresh) for _, task in owners]
        for (folder, task), (modules, was_compiled) in zip(owners, pool.imap(modules_of, work, chunksize=1)):
            folder.compiled += was_compiled
            for name, text in modules.items():
                kernel, _, device = name.rpartition(".")
                folder.modules[task.release, kernel, device] = text


class Folder:
    """A folder of kernels: its modules' texts by release, module and compute capability."""

    def __init__(self, path, only=None):
        self.path = path
        try:
            self.settings = json.loads((path / "kernels.json").read_text(encoding="utf-8"))
        except OSError as error:
            raise Failure(f"{path} is no folder of kernels: {error}") from error
        self.modules, self.tasks, self.compiled = {}, [], 0
        # Its own come last, so that they win.
        folders = [path / other for other in self.settings.get("headers", [])] + [path]
        headers = {h.name: h.read_text(encoding="utf-8") for folder in folders for h in sorted(folder.glob("*.cuh"))}
        catalogue = path / CATALOGUE
        self.catalogue = Catalogue(path) if catalogue.exists() else None
        sources = [Source.of_file(file) for file in path.glob("*.cu")]
        sources += self.catalogue.sources() if self.catalogue else []
        sources.sort(key=lambda source: source.name)
        for release in self.settings["compilers"]:
            wanted = [s for s in sources if only is None or any(fnmatch.fnmatch(s.stem, pattern) for pattern in only)]
            self.tasks += [Task(release, source, headers, self.settings) for source in wanted]
            self.keep(release, [source for source in sources if source not in wanted])

    def keep(self, release, sources):
        """Takes the committed modules of these sources as they are."""
        names = {name for source in sources for name in source.names()}
        if names:
            for entry, text in unpacked((self.path / ARCHIVE).read_bytes()).items():
                compiler, _, module = entry.rpartition("/")
                name, _, device = module.rpartition(".")
                if name in names and compiler in ("", release):
                    self.modules[release, name, device] = text

    def entry(self, release, name, device):
        """What a module is called in the archive: with its compiler where there are several."""
        compiler = f"{release}/" if len(self.settings["compilers"]) > 1 else ""
        return f"{compiler}{name}.{device}"

    def entries(self):
        """The modules by their names in the archive. One that does the same as that for an older device is left out: the older one stands for
        both, but where texts are shown."""
        found, last = {}, {}
        if "shown" in self.settings:
            return {self.entry(*module): text for module, text in self.modules.items()}
        for (release, name, device), text in sorted(self.modules.items(), key=lambda item: int(item[0][2])):
            if last.get((release, name)) != (now := plain(text)):
                found[self.entry(release, name, device)] = text
                last[release, name] = now
        return found

    def files(self):
        """Every file that belongs under ptx/, with its text."""
        shown = self.settings.get("shown")
        if not shown:
            return {}
        release, device, found = shown["compiler"], shown["compute"], {}
        for name in shown["kernels"]:
            if (release, name, device) not in self.modules:
                raise Failure(f"{self.path}: there is no {name} to be shown")
            found[self.path / "ptx" / release / f"{name}.{device}.ptx"] = self.modules[release, name, device]
        return found

    def differences(self):
        """What stands between the folder and its modules, one line each."""
        for file, text in self.tables().items():
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                yield f"{os.path.relpath(file, self.path)}: differs from what {CATALOGUE} and the modules give"
        yield from self.archive_differences()
        files = self.files()
        for path in sorted(set((self.path / "ptx").rglob("*.ptx")) | set(files)):
            name = path.relative_to(self.path)
            if path not in files:
                yield f"{name}: no source gives it"
            elif not path.exists():
                yield f"{name}: missing"
            elif path.read_text(encoding="utf-8") != files[path]:
                yield f"{name}: differs from what its source gives"

    def tables(self):
        """The files of other languages that the catalogue gives, with their texts."""
        return self.catalogue.tables(self.modules) if self.catalogue else {}

    def archive_differences(self):
        # Texts are compared, not compressed bytes.
        try:
            committed = unpacked((self.path / ARCHIVE).read_bytes())
        except (OSError, ValueError, struct.error, zstandard().ZstdError) as error:
            yield f"{ARCHIVE}: {error}"
            return
        wanted = self.entries()
        for name in sorted(set(committed) | set(wanted)):
            if name not in wanted:
                yield f"{ARCHIVE}: {name}: no source gives it"
            elif name not in committed:
                yield f"{ARCHIVE}: {name}: missing"
            elif committed[name] != wanted[name]:
                yield f"{ARCHIVE}: {name}: differs from what its source gives"

    def write(self):
        size = sum(map(len, self.modules.values())) >> 10
        for file, text in self.tables().items():
            file.write_text(text, encoding="utf-8")
        data = packed(self.entries())
        (self.path / ARCHIVE).write_bytes(data)
        print(f"{self.path}: {len(self.modules)} modules, {size} KiB, packed {len(data) >> 10} KiB")
        files = self.files()
        for path in set((self.path / "ptx").rglob("*.ptx")) - set(files):
            path.unlink()
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


# The element types, as core's DType counts them.
TYPES = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64")

CATALOGUE = "catalogue.json"


class Catalogue:
    """What kernels there are: operations by walks, for which elements, compiled for what launches. It is one file:

        "elements"   classes of types: those that have modules, and of which other type's module a type makes do with
        "constants"  numbers that the host needs too, by the header that defines them
        "walks"      how elements are found: what a kernel begins with, the parameters of its body, defaults of its launch bounds
        "kernels"    each with its walk, headers, launch bounds and body: one for all types, or one for floats and one for integers

    It gives a source for each kernel, and a table in Rust. Launch bounds of the table are those that the compiler printed."""

    def __init__(self, folder):
        self.folder = folder
        try:
            entries = json.loads((folder / CATALOGUE).read_text(encoding="utf-8"))
            self.elements, self.constants = entries["elements"], entries["constants"]
            self.walks, self.kernels = entries["walks"], entries["kernels"]
            self.rust = folder / entries["rust"]
        except (ValueError, KeyError) as error:
            raise Failure(f"{folder / CATALOGUE}: {error!r}") from error
        for name, kernel in self.kernels.items():
            wrong = self.fault(kernel)
            if wrong:
                raise Failure(f"{folder / CATALOGUE}: {name}: {wrong}")

    def fault(self, kernel):
        """What is wrong with an entry, if anything is."""
        for field in ("walk", "about", "elements", "headers"):
            if field not in kernel:
                return f"it has no {field}"
        walk = self.walks.get(kernel["walk"])
        if walk is None:
            return f"no walk is called {kernel['walk']}"
        if kernel["elements"] not in self.elements:
            return f"no class of types is called {kernel['elements']}"
        sources = [kernel["source"]] if "source" in kernel else []
        missing = [file for file in [*kernel["headers"], *sources] if not (self.folder / file).exists()]
        if missing:
            return f"there is no {missing[0]}"
        bodies = [{"body"}, {"floats", "integers"}] if "parameters" in walk else [set()]
        if {"body", "floats", "integers"} & kernel.keys() not in bodies:
            return "it needs a body, or one for floats and one for integers" if "parameters" in walk else "its walk has no body"
        return None

    def sources(self):
        """The sources that are not files."""
        return [Source(f"{name}.cu", self.source(name, kernel)) for name, kernel in self.kernels.items() if "source" not in kernel]

    def source(self, name, kernel):
        walk = self.walks[kernel["walk"]]
        bounds = {bound: kernel.get(bound, walk.get(bound)) for bound in ("threads", "blocks")}
        # Walks whose kernels have another name than the operation put it together themselves.
        begin = walk["begin"].format(name=name, operation=name.partition("_")[2], **bounds)
        lines = [f"// {kernel['about']}", f"// elements: {self.elements[kernel['elements']]['types']}", ""]
        lines += [f'#include "{header}"' for header in kernel["headers"]] + [""]
        if "parameters" not in walk:
            return "\n".join([*lines, begin, ""])
        parameters = walk["parameters"]
        names = ", ".join(parameter.split()[-1].lstrip("*&") for parameter in parameters.split(", "))
        if "body" in kernel:
            body = [f"    {kernel['body']};"]
        else:
            body = ["    if constexpr (Element<T>::FLOAT)", f"        {kernel['floats']};", "    else", f"        {kernel['integers']};"]
        lines += ["template <class T>", f"__device__ __forceinline__ void body({parameters})", "{", *body, "}", ""]
        return "\n".join([*lines, f"{begin}({parameters})", "{", f"    body<ELEMENT>({names});", "}", ""])

    def tables(self, modules):
        return {self.rust: "\n".join([RUST_HEAD, *self.rust_constants(), *self.rust_kernels(modules)])}

    def rust_constants(self):
        for header, names in self.constants.items():
            text = (self.folder / header).read_text(encoding="utf-8")
            for name in names:
                # `NAME as OTHER` where two headers have the same name.
                name, _, alias = name.partition(" as ")
                found = re.search(rf"constexpr \w+ {name} = (\d+(?: << \d+)?);", text)
                if not found:
                    raise Failure(f"{CATALOGUE}: {header} has no number {name}")
                left, _, shift = found[1].partition(" << ")
                yield f"/// `{name}` in `kernels/{header}`."
                yield f"pub(super) const {alias or name}: usize = {int(left) << int(shift or 0)};"
        yield ""

    def rust_kernels(self, modules):
        texts = {}
        for (_, name, device), text in modules.items():
            texts.setdefault(name, []).append(text)
        named = {}
        for what, elements in self.elements.items():
            also = elements.get("also", {})
            named[what] = [dtype if dtype in elements["types"].split() else also.get(dtype, "") for dtype in TYPES]
            yield f"/// {what[0].upper()}{what[1:]}."
            head, names = f"const {constant(what)}: Elements =", ", ".join(f'"{name}"' for name in named[what])
            # Where rustfmt breaks the line.
            yield f"{head}{' ' if len(head) + len(names) <= 96 else chr(10) + 4 * ' '}[{names}];"
            yield ""
        for name, kernel in self.kernels.items():
            launches = []
            for element in named[kernel["elements"]]:
                bounds = {bounds_of(text) for text in texts[f"{name}_{element}"]} if element else {(0, 0)}
                if len(bounds) != 1:
                    raise Failure(f"{name}_{element}: other launch bounds for other devices: {bounds}")
                launches += bounds
            yield f"/// {self.walks[kernel['walk']]['about']}: {kernel['about']}."
            if len(set(launches) - {(0, 0)}) == 1:
                threads, blocks = max(launches)
                head, entry = f"pub(super) const {name.upper()}: Entry =", f'Entry::even("{name}", {constant(kernel["elements"])}, {threads}, {blocks});'
                yield f"{head}{' ' if len(head) + len(entry) <= 99 else chr(10) + 4 * ' '}{entry}"
                yield ""
                continue
            threads, blocks = (", ".join(map(str, numbers)) for numbers in zip(*launches))
            yield f"pub(super) const {name.upper()}: Entry = Entry {{"
            yield f'    stem: "{name}",'
            yield f"    elements: {constant(kernel['elements'])},"
            yield f"    threads: [{threads}],"
            yield f"    blocks: [{blocks}],"
            yield "};"
            yield ""
        yield "/// All of them."
        yield "#[cfg(test)]"
        yield f"pub(super) const ENTRIES: [&Entry; {len(self.kernels)}] = ["
        yield from (f"    &{name.upper()}," for name in self.kernels)
        yield "];"
        yield ""


RUST_HEAD = """\
//! What kernels there are, for which types, and for what launches they are compiled; and
//! numbers that they and the host share.
//!
//! `tools/kernels.py` writes this file, of `kernels/catalogue.json`, the headers there and
//! what the compiler printed.

use super::entry::{Elements, Entry};
"""


def constant(text):
    """The name of a constant in Rust."""
    return re.sub(r"\W+", "_", text).upper()


def bounds_of(ptx):
    """The most threads of a block that a module is compiled for, and how many blocks fit a multiprocessor at least."""
    threads = re.search(r"^\.maxntid (\d+), 1, 1$", ptx, re.MULTILINE)
    blocks = re.search(r"^\.minnctapersm (\d+)$", ptx, re.MULTILINE)
    if not threads:
        raise Failure("a module has no launch bounds")
    return int(threads[1]), int(blocks[1]) if blocks else 1


# The archive, which crates/cuda/src/archive.rs reads; all numbers are little-endian:
#
#     "WFka" | u32 version | u32 groups | index | packed groups
#     index, for each group: u32 packed length, u32 modules; for each of them: u16 length of name, u32 length, name
#
# A group has the modules of one kernel for floats, or for integers, by all compilers, as one Zstandard frame: they have much in common, and
# a program unpacks the group of what it asks for. The texts have relative numbers, of which crates/cuda/src/renumber.rs makes the others.
ARCHIVE = "kernels.archive"
MAGIC = b"WFka"
VERSION = 3
FLOATS = {"f16", "bf16", "f32", "f64"}
INTEGERS = {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}


def zstandard():
    """The module of that name."""
    folder = str(fetched(ZSTANDARD))
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module("zstandard")


def group_of(name):
    module = name.rpartition(".")[0].rpartition("/")[2]
    kernel, _, element = module.rpartition("_")
    if element in FLOATS | INTEGERS:
        return kernel, "floats" if element in FLOATS else "integers"
    return module, ""


# A register or a label, with its number or the difference that stands for it; or the end of a line.
NUMBERED = re.compile(r"(%[a-z]+|\$L__BB\d+_)(-?\d+)|\n")


def renumbered(text, is_relative):
    """A text with other numbers of registers and labels: relative or absolute ones in place of what it has. A relative number is counted
    from the first of the same name in the last line before that has one."""
    base, first = {}, {}

    def one(found):
        name = found[1]
        if name is None:
            base.update(first)
            first.clear()
            return "\n"
        number, start = int(found[2]), base.get(name, 0)
        written = number + start if is_relative else number - start
        first.setdefault(name, written if is_relative else number)
        return f"{name}{written}"

    return NUMBERED.sub(one, text)


def relative(text):
    """A text with relative numbers: code that differs in nothing but its registers is alike then, and packs to a half."""
    found = renumbered(text, False)
    if absolute(found) != text:
        raise Failure("a module has names that cannot be told from relative numbers")
    return found


def absolute(text):
    """The text of which that is the relative form."""
    return renumbered(text, True)


def place_of(name):
    """Where a module comes among those of its group: what is alike lies together, and what newer devices take is unpacked first."""
    module, _, device = name.rpartition(".")
    size = re.search(r"\d*$", module)[0]
    return -int(device), int(size or 8), name


def packed(modules):
    groups = {}
    for name in sorted(modules, key=lambda name: (group_of(name), place_of(name))):
        groups.setdefault(group_of(name), []).append(name)
    index, body = b"", b""
    for names in groups.values():
        texts = [relative(modules[name]).encode() for name in names]
        data = zstandard().ZstdCompressor(level=19).compress(b"".join(texts))
        index += struct.pack("<II", len(data), len(names))
        for name, text in zip(names, texts):
            index += struct.pack("<HI", len(name), len(text)) + name.encode()
        body += data
    return MAGIC + struct.pack("<II", VERSION, len(groups)) + index + body


def unpacked(archive):
    if archive[:4] != MAGIC:
        raise ValueError("no archive of kernels")
    version, count = struct.unpack_from("<II", archive, 4)
    if version != VERSION:
        raise ValueError(f"version {version}, not {VERSION}")
    groups, at = [], 12
    for _ in range(count):
        size, names = struct.unpack_from("<II", archive, at)
        group, at = [], at + 8
        for _ in range(names):
            name, length = struct.unpack_from("<HI", archive, at)
            group.append((archive[at + 6 : at + 6 + name].decode(), length))
            at += 6 + name
        groups.append((size, group))
    modules = {}
    for size, group in groups:
        texts = zstandard().ZstdDecompressor().decompress(archive[at : at + size])
        at += size
        for name, length in group:
            modules[name], texts = absolute(texts[:length].decode()), texts[length:]
    return modules


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--only", nargs=1, action="extend", metavar="PATTERN", help="compile these sources; keep what is committed of others")
    parser.add_argument("--fresh", action="store_true", help="compile everything, also what was compiled before")
    parser.add_argument("folders", nargs="+", type=pathlib.Path, help="folders with a kernels.json")
    arguments = parser.parse_args()
    if arguments.check and arguments.only:
        parser.error("--check looks at everything")
    paths = [path.resolve() for path in arguments.folders]
    os.chdir(WORK)
    stale = False
    try:
        folders = [Folder(path, arguments.only) for path in paths]
        compile_all(folders, arguments.fresh)
        for folder in folders:
            print(f"{folder.path}: {len(folder.tasks)} sources, {folder.compiled} of them compiled now")
            if not arguments.check:
                folder.write()
                continue
            for line in folder.differences():
                print(f"{folder.path}: {line}")
                stale = True
    except Failure as failure:
        sys.exit(f"error: {failure}")
    if stale:
        sys.exit("error: what is committed is not what the sources give\nhint: run tools/kernels.py on these folders and commit the result")


if __name__ == "__main__":
    main()
