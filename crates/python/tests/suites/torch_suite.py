#!/usr/bin/env python3
"""Runs our functions on the samples that torch tests its own reductions with.

    python crates/python/tests/suites/torch_suite.py [--device cuda]     exits 1 where it differs from the list
    python crates/python/tests/suites/torch_suite.py --list              prints what fails, as lines for the list

The wheel of torch has these samples: shapes, axes, words and errors for each operation and type, from which its
`test_reductions.py` and `test_ops.py` are made. A case is an operation with a type; all of its samples have to
have torch's answer, in torch's own tolerance, with its shape, type and device. `torch_exceptions.txt` names those
that fail, and why. The suite needs `expecttest` and `pytest`.
"""

import argparse
import math
import pathlib
import sys

import exceptions
import torch
import warpfold
from torch.testing._internal.common_methods_invocations import op_db

# Ours by torch's name, and by the name of its variant.
OURS = {
    ("sum", ""): "sum",
    ("prod", ""): "prod",
    ("mean", ""): "mean",
    ("var", ""): "var",
    ("var", "unbiased"): "var",
    ("std", ""): "std",
    ("std", "unbiased"): "std",
    ("amax", ""): "max",
    ("amin", ""): "min",
    ("max", "reduction_no_dim"): "max",
    ("min", "reduction_no_dim"): "min",
    ("max", "reduction_with_dim"): "max",
    ("min", "reduction_with_dim"): "min",
    ("aminmax", ""): "minmax",
    ("argmax", ""): "argmax",
    ("argmin", ""): "argmin",
    ("all", ""): "all",
    ("any", ""): "any",
    ("count_nonzero", ""): "count_nonzero",
    ("nansum", ""): "nansum",
    ("nanmean", ""): "nanmean",
    ("logsumexp", ""): "logsumexp",
    ("linalg.vector_norm", ""): "norm2",
}
NORMS = {2: "norm2", 1: "norm1", math.inf: "norm_inf"}
DTYPES = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64}
LIST = pathlib.Path(__file__).with_name("torch_exceptions.txt")


class NotOurs(Exception):
    """A question that none of our functions answers."""


def translated(ours, x, args, words):
    """Our function and its words for a call of torch's."""
    words, args = dict(words), list(args)
    said = {}
    if ours in ("var", "std"):
        # Torch subtracts 1 where nothing is said.
        correction = 1
        if args and isinstance(args[0], bool):
            correction = int(args.pop(0))
        if words.get("unbiased") is not None:
            correction = int(words["unbiased"])
        if words.get("correction") is not None:
            correction = words["correction"]
        words.pop("unbiased", None), words.pop("correction", None)
        said["correction"] = correction
    if ours == "norm2":
        order = words.pop("ord", args.pop(0) if args else 2)
        if order not in NORMS:
            raise NotOurs
        ours = NORMS[order]
    for name in ["dim", "keepdim"]:
        if args:
            words.setdefault(name, args.pop(0))
    axis = words.pop("dim", None)
    # For torch a scalar has an axis, and no axes are all.
    if axis is not None and (x.dim() == 0 or axis == () or axis == []):
        names = [axis] if isinstance(axis, int) else list(axis)
        if all(name in (0, -1) for name in names):
            axis = None
    said |= {"axis": tuple(axis) if isinstance(axis, list) else axis, "keepdims": words.pop("keepdim", False)}
    if words.get("dtype") is not None:
        said["dtype"] = words.pop("dtype")
    words.pop("dtype", None)
    if words or args:
        raise NotOurs
    return getattr(warpfold, ours), said


def check(info, ours, sample):
    x = sample.input
    function, words = translated(ours, x, sample.args, sample.kwargs)
    expected = info.op(x, *sample.args, **sample.kwargs)
    got = function(x, **words)
    if info.variant_test_name == "reduction_with_dim":
        # Of equal elements torch names any.
        expected = expected.values
    if isinstance(expected, tuple):
        for mine, theirs in zip(got, expected):
            torch.testing.assert_close(mine, theirs, equal_nan=True)
    else:
        torch.testing.assert_close(got, expected, equal_nan=True)


def run(device):
    passed, failed = [], {}
    for info in op_db:
        ours = OURS.get((info.name, info.variant_test_name))
        if ours is None:
            continue
        name = ".".join(part for part in [info.name, info.variant_test_name] if part)
        for dtype in sorted(info.supported_dtypes(torch.device(device).type) & DTYPES, key=str):
            case, count = f"{name}/{str(dtype).removeprefix('torch.')}", 0
            try:
                for sample in info.sample_inputs(device, dtype):
                    try:
                        check(info, ours, sample)
                        count += 1
                    except NotOurs:
                        continue
            except Exception as error:
                shape = f"{tuple(sample.input.shape)} {sample.args} {sample.kwargs}"
                failed[case] = " ".join(f"{shape}: {type(error).__name__}: {error}".split())[:240]
                continue
            if count:
                passed.append(case)
        if info.error_inputs_func is None:
            continue
        for i, wrong in enumerate(info.error_inputs(device)):
            sample, case = wrong.sample_input, f"{name}/error{i}"
            try:
                function, words = translated(ours, sample.input, sample.args, sample.kwargs)
                function(sample.input, **words)
            except NotOurs:
                continue
            except (TypeError, ValueError, IndexError, OverflowError, RuntimeError):
                passed.append(case)
            else:
                failed[case] = f"no error for {tuple(sample.input.shape)} {sample.args} {sample.kwargs}, which torch refuses: {wrong.error_regex}"[:240]
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    passed, failed = run(given.device)
    return exceptions.outcome(f"torch {torch.__version__} on {given.device}", passed, failed, LIST, given.list)


if __name__ == "__main__":
    sys.exit(main())
