#!/usr/bin/env python3
"""Records what Nsight Compute counts for the launches of the `launches` example.

    record_counters.py LAUNCHES OUT.json     LAUNCHES: the example's binary

Needs a GPU, `ncu`, and permission to read its counters. The clocks are left as they are: counts do not depend on them.
"""

import csv
import datetime
import io
import json
import subprocess
import sys

METRICS = [
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
    "smsp__inst_executed_op_global_ld.sum",
    "smsp__inst_executed_op_global_st.sum",
    "smsp__inst_executed_op_global_red.sum",
    "smsp__inst_executed_op_global_atom.sum",
    "smsp__inst_executed_op_shared_atom.sum",
    "smsp__sass_inst_executed_op_branch.sum",
    "smsp__sass_branch_targets.sum",
    "smsp__sass_branch_targets_threads_divergent.sum",
    "smsp__sass_inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_pipe_adu.sum",
]


def run(command):
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode != 0:
        sys.exit(f"{command[0]}: exit {answer.returncode}\n{answer.stdout[-2000:]}\n{answer.stderr[-2000:]}")
    return answer.stdout


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    launches, out = sys.argv[1:]
    cases = [line.split("\t") for line in run([launches, "--list"]).splitlines()]
    text = run(["ncu", "--clock-control", "none", "--csv", "--print-units", "base", "--metrics", ",".join(METRICS), launches])
    table = text[text.index('"ID"'):]
    rows = {}
    for row in csv.DictReader(io.StringIO(table)):
        if row["ID"]:
            launch = rows.setdefault(int(row["ID"]), {"kernel": row["Kernel Name"]})
            try:
                launch[row["Metric Name"]] = int(float(row["Metric Value"].replace(",", "")))
            except ValueError:
                pass  # A metric that this chip does not have.
    if len(rows) != len(cases):
        sys.exit(f"{len(cases)} launches, but ncu saw {len(rows)}")
    record = {
        "date": datetime.date.today().isoformat(),
        "device": run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).splitlines()[0],
        "profiler": run(["ncu", "--version"]).splitlines()[-1],
        "launches": [],
    }
    for (name, _, kernel), (_, counted) in zip(cases, sorted(rows.items())):
        if kernel not in counted.pop("kernel"):
            sys.exit(f"{name}: ncu saw another kernel")
        record["launches"].append({"name": name, "kernel": kernel, **counted})
    lines = ",\n".join("  " + json.dumps(launch) for launch in record.pop("launches"))
    head = json.dumps(record)[1:-1]
    with open(out, "w", encoding="utf-8") as file:
        file.write("{" + head + ', "launches": [\n' + lines + "\n]}\n")
    print(f"{len(cases)} launches recorded")


if __name__ == "__main__":
    main()
