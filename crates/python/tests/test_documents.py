"""The examples of the guide, the READMEs and the package, and its types."""

import doctest
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys

import numpy
import pytest
import warpfold


@pytest.mark.parametrize(("page", "least"), [("docs/python.md", 20), ("crates/python/README.md", 1), ("README.md", 1), ("docs/scaling.md", 10)])
def test_examples_of_pages(repository, page, least, tmp_path, monkeypatch):
    for library in ["pandas", "polars", "pyarrow", "xarray", *(["dask.dataframe", "duckdb", "flox"] if "scaling" in page else [])]:
        pytest.importorskip(library)
    if int(numpy.__version__.split(".")[0]) < 2:
        pytest.skip("the pages show how NumPy 2 prints its scalars")
    monkeypatch.chdir(tmp_path)
    text = (repository / page).read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page, page, 0)
    assert len(test.examples) >= least
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    out = []
    runner.run(test, out=out.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(out)


@pytest.mark.parametrize("at", range(4))
def test_examples_of_kernels(repository, at, monkeypatch):
    monkeypatch.chdir(repository)
    blocks = [block.split("```")[0] for block in (repository / "docs/ptx.md").read_text().split("```python\n")[1:]]
    assert len(blocks) == 4
    for library in ["numba.cuda", "triton"]:
        if library.split(".")[0] in blocks[at]:
            pytest.importorskip(library)
    test = doctest.DocTestParser().get_doctest(blocks[at], {}, "docs/ptx.md", "docs/ptx.md", 0)
    out = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=out.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(out)


def test_examples_of_the_package():
    import warpfold._derived
    import warpfold.array_api
    import warpfold.ptx

    for module in [warpfold, warpfold._derived, warpfold.array_api, warpfold.ptx]:
        found = doctest.testmod(module)
        assert found.attempted and not found.failed


def test_examples_of_the_module_for_torch():
    pytest.importorskip("torch")
    import warpfold.torch

    found = doctest.testmod(warpfold.torch)
    assert found.attempted and not found.failed


def test_what_the_package_shows_has_types():
    stub = pathlib.Path(warpfold.__file__).with_name("_warpfold.pyi").read_text()
    for name in warpfold.__all__:
        shown = getattr(warpfold, name)
        if shown is getattr(warpfold._warpfold, name, None) and name != "__version__":
            assert f"def {name}(" in stub or f"class {name}:" in stub or f"{name}: " in stub, name
            assert shown.__doc__, name
    assert pathlib.Path(warpfold.__file__).with_name("py.typed").exists()


def test_docstrings_name_every_argument_and_the_errors():
    for name in warpfold.__all__:
        shown = getattr(warpfold, name)
        if not callable(shown) or isinstance(shown, type):
            continue
        text = shown.__doc__
        if "those of ``" in text or "as ``" in text:
            continue
        for word in inspect.signature(shown).parameters:
            assert re.search(rf"\b{word}\b", text), (name, word)
        assert "Raises:" in text and "Error: " in text, name


def test_types_are_those_of_the_stubs(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "warpfold", "--ignore-missing-stub", "--ignore-disjoint-bases"]
    # The modules for these cannot be imported without them.
    modules = {"torch": "torch", "mpi4py": "mpi", "dask": "dask", "flox": "flox"}
    missing = [package for package in modules if importlib.util.find_spec(package) is None]
    if missing:
        ignored = [f"[mypy-{package}{rest}]\nignore_missing_imports = true\n" for package in missing for rest in ("", ".*")]
        (tmp_path / "mypy.ini").write_text("[mypy]\n" + "".join(ignored))
        (tmp_path / "allowed").write_text("".join(f"warpfold\\.{modules[package]}\n" for package in missing))
        command += ["--mypy-config-file", str(tmp_path / "mypy.ini"), "--allowlist", str(tmp_path / "allowed")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("checker", [["mypy", "--strict"], ["pyright", "--pythonpath", sys.executable]])
def test_checkers_of_types_know_the_package(checker, tmp_path):
    pytest.importorskip(checker[0])
    (tmp_path / "right.py").write_text(
        "from typing import Any\n"
        "import numpy as np\n"
        "from numpy.typing import NDArray\n"
        "import warpfold\n"
        "a = warpfold.sum([1.0, 2.0], axis=0, nan='omit')\n"
        "b: tuple[object, object] = warpfold.minmax([1, 2])\n"
        "p = warpfold.Partial(['mean', 'std'], axis=(0, 1))\n"
        "p += warpfold.Partial.from_bytes(p.to_bytes())\n"
        "f: warpfold.File = warpfold.open('x.npy', columns=['a', 1])\n"
        "names: list[str] = f.names\n"
        "total: float = warpfold.sum([1.0, 2.0])\n"
        "place: int = warpfold.argmax((1.0, 2.0))\n"
        "truth: bool = warpfold.any([True])\n"
        "low, high = warpfold.minmax([1.0, 2.0])\n"
        "both: float = low + high\n"
        "x: NDArray[np.float64] = np.ones((2, 2))\n"
        "number: np.number[Any] = warpfold.nanmean(x)\n"
        "rows: NDArray[Any] = warpfold.sum(x, axis=0, where=x > 0, initial=1)\n"
        "kept: NDArray[Any] = warpfold.dot(x, [1.0, 2.0], axis=1, keepdims=True)\n"
        "into: NDArray[Any] = warpfold.sum(x, axis=0, out=rows)\n"
        "first: Any = [row for row in warpfold.sum(memoryview(b'ab'), keepdims=True)][0]\n"
        "merged: warpfold.Partial | int = sum([p, p])\n"
        "warpfold.average(x, axis=0, weights=[1, 2])\n"
        "least: np.float64 = warpfold.min(x)\n"
        "largest: NDArray[np.float64] = warpfold.nanmax(x, axis=1)\n"
        "places: NDArray[np.int64] = warpfold.argmin(x, axis=0)\n"
        "truths: NDArray[np.bool_] = warpfold.all(x > 0, axis=0)\n"
        "spread, middle = warpfold.var_mean(x, axis=0, where=x > 0)\n"
        "warpfold.ptp(x, axis=(0, 1), nan='omit')\n"
    )
    (tmp_path / "wrong.py").write_text(
        "import warpfold\nimport numpy as np\n"
        "warpfold.sum([1.0], nan='no')\n"
        "warpfold.Partial(5)\n"
        "warpfold.summ([1])\n"
        "warpfold.sum(object())\n"
        "a: str = warpfold.sum([1.0])\n"
        "b: str = warpfold.sum(np.ones(3))\n"
        "c: str = warpfold.sum(np.ones((3, 3)), axis=0)\n"
        "d: str = warpfold.argmax([1.0])\n"
        "e: np.int32 = warpfold.min(np.ones(3))\n"
        "warpfold.ptp([1.0], nan='no')\n"
        "warpfold.std_mean(object())\n"
    )

    def check(name):
        command = [sys.executable, "-m", *checker, name]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)

    right, wrong = check("right.py"), check("wrong.py")
    assert right.returncode == 0, right.stdout + right.stderr
    assert wrong.returncode != 0
    for line in range(3, 14):
        assert f"wrong.py:{line}:" in wrong.stdout, wrong.stdout
