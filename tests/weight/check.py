#!/usr/bin/env python3
"""What tools/weight.py says, and when it fails."""

import pathlib
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/weight.py"
if sys.version_info < (3, 11):
    print("skipped: tools/weight.py needs Python 3.11")
    sys.exit()
sys.path.insert(0, str(TOOL.parent))
import weight


def run(folder, limits):
    """The status of the tool under these limits, and what it prints."""
    path = folder / "limits.toml"
    path.write_text(limits)
    done = subprocess.run([sys.executable, TOOL, "--limits", path], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def limits_are_kept(folder):
    status, out, err = run(folder, "[lines]\nthreads = 100000\n\n[crates]\nlibrary = 1000\n")
    assert (status, err) == (0, ""), (status, err)
    lines = dict(weight.lines())
    assert f"| threads | {lines['threads']} | 100000 |" in out, out
    # What lies just at the limit is within it.
    assert run(folder, f"[lines]\nthreads = {lines['threads']}\n")[0] == 0
    status, _, err = run(folder, f"[lines]\nthreads = {lines['threads'] - 1}\ncore = 1\n")
    assert status == 1, status
    assert err.count("error:") == 2 and f"lines, core: {lines['core']} is more than 1" in err and "hint:" in err, err
    # A limit that is spelt wrong would limit nothing.
    status, _, err = run(folder, "[line]\nthreads = 1\n")
    assert status == 1 and "[line] is no section" in err, err
    # One of seconds would judge the machine.
    status, _, err = run(folder, "[build]\n\"the wheel\" = 550\n")
    assert status == 1 and "[build] is of a machine" in err, err
    status, _, err = run(folder, "[lines]\nthread = 500\n")
    assert status == 1 and "there is no thread" in err, err


def limits_of_the_repository_name_what_is_measured(folder):
    status, out, err = run(folder, weight.LIMITS.read_text())
    assert "no section" not in err and "there is no" not in err, err
    assert "| archive |" in out and "| command |" in out, out


def archives_are_read(folder):
    path = folder / "some.archive"
    groups = [[b"sum_f32.75", b"sum_f32.90"], [b"max_i8.90"]]
    data = struct.pack("<4sII", b"WFka", 3, len(groups))
    for names in groups:
        data += struct.pack("<II", 5, len(names))
        data += b"".join(struct.pack("<HI", len(name), 7) + name for name in names)
    path.write_bytes(data + b"*" * 10)
    assert dict(weight.kernels(path)) == {"modules": 3, "archive": len(data) + 10}
    path.write_bytes(b"WFka" + struct.pack("<II", 99, 0))
    try:
        list(weight.kernels(path))
    except SystemExit as error:
        assert "no archive of version 3" in str(error)
    else:
        raise AssertionError("another version is taken for this one")


def the_time_of_each_call_counts(folder):
    wrapper, log = folder / "rustc.py", folder / "log"
    wrapper.write_text(weight.WRAPPER)
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    for words in (["--crate-name", "one"], ["--crate-name", "one"], ["--crate-name", "one", "--test"]):
        command = [sys.executable, wrapper, sys.executable, "-c", busy, *words]
        subprocess.run(command, check=True, env={"PATH": "/usr/bin:/bin", "WEIGHT_LOG": str(log)})
    parts = weight.by_crate(log)
    assert [name for name, _ in parts] == ["one", "one (tests)"], parts
    assert parts[0][1] >= 0.4 and 0.2 <= parts[1][1] < parts[0][1], parts
    failing = [sys.executable, wrapper, sys.executable, "-c", "import sys; sys.exit(3)"]
    assert subprocess.run(failing, env={"PATH": "/usr/bin:/bin", "WEIGHT_LOG": str(log)}).returncode == 3


def instructions_that_are_calls_are_found(folder):
    path = folder / "libwarpfold_cpu-0.rlib"
    # Mangled in the old way and in the new one; what every machine has is inlined or not.
    path.write_bytes(b"_ZN4core9core_arch3x867avx512f14_mm512_loadu_pd17h0E\0_RNvNtNtCs1_4core9core_arch3x863avx13__mm256_cmp_pd\0_ZN4core9core_arch3x864sse214_mm_set1_epi817h0E")
    assert len(weight.calls(path)) == 2, weight.calls(path)


# A binary of tests, as far as the tool calls one: `busy` takes longer than `idle`, and a benchmark is no test.
BINARY = """#!/usr/bin/env python3
import sys, time
if "--list" in sys.argv:
    print("idle: test\\nbusy: test\\nbench: benchmark")
while sys.argv[-1] == "busy" and time.process_time() < 0.5: pass
"""


def the_slowest_tests_are_found(folder):
    program = folder / "binary"
    program.write_text(BINARY)
    program.chmod(0o755)
    known, weight.binaries = weight.binaries, lambda env: [("some unit, within the crate", program, folder), ("some other", "none", folder)]
    try:
        found = [(name, took) for _, name, took in weight.slowest(None, "unit")]
        assert [name for name, _ in found] == ["some unit, within the crate: busy", "some unit, within the crate: idle", "all of them"], found
        assert found[0][1] >= 0.5 > found[1][1] and found[2][1] == found[0][1] + found[1][1], found
        try:
            list(weight.slowest(None, "uni"))
        except SystemExit as error:
            assert "no binary of tests is called uni" in str(error)
        else:
            raise AssertionError("a part of a name is taken for it")
    finally:
        weight.binaries = known


for check in (limits_are_kept, limits_of_the_repository_name_what_is_measured, archives_are_read, the_time_of_each_call_counts, instructions_that_are_calls_are_found, the_slowest_tests_are_found):
    with tempfile.TemporaryDirectory() as folder:
        check(pathlib.Path(folder))
    print(f"{check.__name__}: ok")
