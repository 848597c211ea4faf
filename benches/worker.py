"""One peer with its data in memory, told over stdin which case to run once.

    worker.py numpy|polars|duckdb ELEMENTS THREADS

Says {"peer", "version", "cases": {case: bytes}} first, then {"seconds", "answer"} for
each line it reads. Thread counts that come from the environment are set by the
caller, before the interpreter starts.
"""

import json
import sys
import time

import numpy as np

ROW = 8192


def arrays(n):
    rng = np.random.default_rng(1)
    return rng.random(n), rng.random(n, dtype=np.float32)


def numpy_cases(n, _threads):
    wide, narrow = arrays(n)
    cases = {}
    for name, x in (("f64", wide), ("f32", narrow)):
        y = x[::-1].copy()
        square = x[: n // ROW * ROW].reshape(-1, ROW)
        cases |= {
            f"sum {name}": (x.nbytes, x.sum),
            f"min {name}": (x.nbytes, x.min),
            f"max {name}": (x.nbytes, x.max),
            f"argmin {name}": (x.nbytes, x.argmin),
            f"var {name}": (x.nbytes, x.var),
            f"norm2 {name}": (x.nbytes, lambda x=x: np.linalg.norm(x)),
            f"dot {name}": (x.nbytes + y.nbytes, lambda x=x, y=y: np.dot(x, y)),
            f"sum {name} axis 0": (square.nbytes, lambda s=square: s.sum(axis=0)[0]),
            f"sum {name} axis 1": (square.nbytes, lambda s=square: s.sum(axis=1)[0]),
        }
    return np.__version__, cases


def fsum_cases(n, _threads):
    """Python's exact sum, for scale: it needs a list, and a shorter one."""
    import math
    import platform

    xs = arrays(n)[0].tolist()
    return platform.python_version(), {"sum f64": (8 * n, lambda: math.fsum(xs))}


def polars_cases(n, threads):
    import polars as pl

    assert pl.thread_pool_size() == threads
    cases = {}
    for name, x in zip(("f64", "f32"), arrays(n)):
        s = pl.Series("x", x)
        t = pl.Series("y", x[::-1].copy())
        frame = pl.DataFrame([s])

        def query(expression, frame=frame):
            # A Series method runs on one thread; the engine splits an expression.
            return frame.lazy().select(expression).collect().item

        cases |= {
            f"sum {name}": (x.nbytes, lambda q=query: q(pl.col("x").sum())()),
            f"min {name}": (x.nbytes, lambda q=query: q(pl.col("x").min())()),
            f"max {name}": (x.nbytes, lambda q=query: q(pl.col("x").max())()),
            f"argmin {name}": (x.nbytes, lambda q=query: q(pl.col("x").arg_min())()),
            f"var {name}": (x.nbytes, lambda q=query: q(pl.col("x").var(ddof=0))()),
            f"dot {name}": (2 * x.nbytes, lambda s=s, t=t: s.dot(t)),
        }
    return pl.__version__, cases


def duckdb_cases(n, threads):
    import duckdb
    import pyarrow as pa

    db = duckdb.connect(config={"threads": threads})
    cases = {}
    for name, x in zip(("f64", "f32"), arrays(n)):
        source = pa.table({"x": x})
        db.register("source", source)
        db.execute(f"create table {name} as select * from source")
        db.unregister("source")
        for case, expression in {
            "sum": "sum(x)",
            "sum (Kahan)": "fsum(x)",
            "min": "min(x)",
            "max": "max(x)",
            "var": "var_pop(x)",
        }.items():
            sql = f"select {expression} from {name}"
            key = case.replace("sum", f"sum {name}") if "sum" in case else f"{case} {name}"
            cases[key] = (x.nbytes, lambda sql=sql: db.execute(sql).fetchone()[0])
    return duckdb.__version__, cases


def main():
    peer, elements, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    version, cases = globals()[f"{peer}_cases"](elements, threads)
    sizes = {case: size for case, (size, _) in cases.items()}
    print(json.dumps({"peer": peer, "version": version, "cases": sizes}), flush=True)
    for line in sys.stdin:
        run = cases[line.rstrip("\n")][1]
        start = time.perf_counter()
        answer = run()
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "answer": float(answer)}), flush=True)


if __name__ == "__main__":
    main()
