"""What a case of foreign PTX is, and how it is written down for the driver, `check.py`."""

import json
import pathlib

import numpy


class Folder:
    """Collects the cases of one compiler in a folder: PTX, arrays, and a description."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.cases = []

    def ptx(self, name, text):
        """Keeps PTX; its file."""
        file = self.path / f"{name}.ptx"
        file.write_text(text)
        return file.name

    def only_parsed(self, name, text):
        """PTX of which it is enough that it is read."""
        self.cases.append({"name": name, "ptx": self.ptx(name, text), "launches": []})

    def failed(self, name, why):
        """A kernel that its own compiler refuses: no fault of the interpreter."""
        self.cases.append({"name": name, "skipped": str(why).strip().splitlines()[-1][:200]})

    def case(self, name, text, launches, tensor=False, races=False):
        """A case with launches. `tensor`: it needs what the interpreter may lack, such as `wgmma`. `races`: its compiler makes it race, which must be found."""
        file = self.ptx(name, text)
        for number, launch in enumerate(launches):
            launch["args"] = [self.argument(f"{name}-{number}-{at}", arg) for at, arg in enumerate(launch["args"])]
        self.cases.append({"name": name, "ptx": file, "launches": launches, "tensor": tensor, "races": races})

    def argument(self, name, arg):
        """Arrays become files."""
        if isinstance(arg, Struct):
            return {"struct": [self.argument(f"{name}-{at}", member) for at, member in enumerate(arg.members)]}
        if isinstance(arg, In):
            numpy.save(self.path / f"{name}.npy", arg.array.ravel())
            found = {"buffer": arg.name, "file": f"{name}.npy", "over": arg.over}
            if arg.after is not None:
                numpy.save(self.path / f"{name}-after.npy", arg.after.ravel())
                found |= {"after": f"{name}-after.npy", "tolerance": arg.tolerance}
            return found
        if isinstance(arg, Out):
            numpy.save(self.path / f"{name}-after.npy", arg.after.ravel())
            return {
                "buffer": arg.name,
                "room": arg.after.size,
                "dtype": arg.after.dtype.name,
                "after": f"{name}-after.npy",
                "tolerance": arg.tolerance,
                "over": arg.over,
            }
        return {"word": arg}

    def write(self):
        (self.path / "cases.json").write_text(json.dumps(self.cases, indent=1))


class In:
    """A buffer that is filled, and perhaps what it holds afterwards. `over`: the texture, surface or tensor map that the kernel gets, `texture:64x32`."""

    def __init__(self, name, array, after=None, tolerance=0.0, over=None):
        self.name, self.array, self.after, self.tolerance, self.over = name, numpy.ascontiguousarray(array), after, tolerance, over
        if after is not None:
            self.after = numpy.ascontiguousarray(after)


class Out:
    """A buffer that is not initialised, and what it holds afterwards."""

    def __init__(self, name, after, tolerance=0.0, over=None):
        self.name, self.after, self.tolerance, self.over = name, numpy.ascontiguousarray(after), tolerance, over


class Struct:
    """A struct by value."""

    def __init__(self, *members):
        self.members = members


def launch(kernel, grid, block, args, shared=0, cooperative=False, cluster=None):
    """A launch: args are In, Out, Struct, or words as the command line has them."""
    triple = lambda x: list(x) if isinstance(x, (list, tuple)) else [x]
    found = {"kernel": kernel, "grid": triple(grid), "block": triple(block), "args": list(args), "shared": shared}
    return found | {"cooperative": cooperative, "cluster": cluster}
