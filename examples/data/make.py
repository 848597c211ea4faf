#!/usr/bin/env python3
"""Writes elnino.npy, year x month, from elnino.csv. Needs the standard library only."""

import csv
import struct
from pathlib import Path

here = Path(__file__).parent


def npy(shape, values):
    """A version 1.0 .npy file of little-endian f64 in C order."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape!r}, }}"
    # Magic, version and length take 10 bytes; the data starts at a multiple of 64.
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(header))
        + header.encode("ascii")
        + struct.pack(f"<{len(values)}d", *values)
    )


with open(here / "elnino.csv", newline="") as file:
    _, *rows = csv.reader(file)
months = [[float(cell) for cell in row[1:]] for row in rows]
shape = (len(months), len(months[0]))
(here / "elnino.npy").write_bytes(npy(shape, [x for row in months for x in row]))
