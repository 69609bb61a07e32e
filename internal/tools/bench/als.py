#!/usr/bin/python3
"""Alternating least squares on generated ratings: seconds per sweep and memory of `tessera train` beside NumPy and SciPy with OpenBLAS.

    als.py TESSERA FOLDER [--rows 200000] [--columns 20000] [--ratings 20000000] [--components 32] [--sweeps 2] [--rounds 3]

TESSERA is the program, FOLDER keeps the ratings (240 MB) and a run. The ratings are planted factors of length 8, biases and noise 0.5, float32,
with int32 rows and columns, in SciPy's COO layout. A sweep solves all columns, then all rows, for factors and biases, in float64, by a Cholesky decomposition of the
normal equations. The peer is the fastest of those that NumPy and SciPy offer here: as many forked processes as processors, each with one BLAS thread, that
gather the factors of a row, multiply them (dsyrk) and solve (dposv), in memory that they share. Rounds alternate. Next to the seconds of a clock stand the seconds of the
processors, which other work on the machine disturbs less: those of a training of some more sweeps less those of one of one sweep. Memory is the largest resident
set of the training, of which the triples are 12 bytes per rating.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"

import multiprocessing as mp

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv

RIDGE = 0.05


def generate(o, path):
    rng = np.random.default_rng(27)
    k = 8
    each = np.maximum(1, rng.multinomial(o.ratings - o.rows, np.ones(o.rows) / o.rows) + 1)
    rows = np.repeat(np.arange(o.rows, dtype=np.int32), each)
    columns = rng.integers(0, o.columns, len(rows), dtype=np.int32)
    key = np.unique(rows.astype(np.int64) * o.columns + columns)
    while len(key) < o.ratings:  # replace those that were drawn twice
        more = rng.integers(0, o.rows * o.columns, o.ratings - len(key), dtype=np.int64)
        key = np.unique(np.concatenate([key, more]))
    rows, columns = (key // o.columns).astype(np.int32), (key % o.columns).astype(np.int32)
    del key
    W, Z = rng.normal(size=(o.rows, k)).astype(np.float32) / k**0.5, rng.normal(size=(o.columns, k)).astype(np.float32)
    b, c = rng.normal(size=o.rows).astype(np.float32) / 2, rng.normal(size=o.columns).astype(np.float32) / 2
    values = np.empty(len(rows), np.float32)
    for s in range(0, len(rows), 1 << 20):
        i, j = rows[s : s + (1 << 20)], columns[s : s + (1 << 20)]
        values[s : s + (1 << 20)] = 3 + b[i] + c[j] + np.einsum("ij,ij->i", W[i], Z[j]) + rng.normal(scale=0.5, size=len(i))
    sp.save_npz(path, sp.coo_matrix((values, (rows, columns)), shape=(o.rows, o.columns)), compressed=False)


def shared(shape):
    a = mp.RawArray("d", int(np.prod(shape)))
    return np.frombuffer(a).reshape(shape)


def half(m, mine, others, mean, part, parts):
    """Solves every parts-th block of rows of a CSR matrix."""
    k = mine.shape[1]
    for i in range(part * len(mine) // parts, (part + 1) * len(mine) // parts):
        a, e = m.indptr[i], m.indptr[i + 1]
        A = others.take(m.indices[a:e], axis=0)
        t = m.data[a:e] - mean - A[:, -1]
        A[:, -1] = 1
        N = dsyrk(1.0, A.T)
        N.flat[:: k + 1] += RIDGE * (e - a)
        mine[i] = dposv(N, A.T @ t)[1]


def sweep(csr, csc, W, Z, mean, processes):
    began = time.perf_counter()
    for m, mine, others in ((csc, Z, W), (csr, W, Z)):
        workers = [mp.Process(target=half, args=(m, mine, others, mean, p, processes)) for p in range(processes)]
        [w.start() for w in workers]
        [w.join() for w in workers]
    return time.perf_counter() - began


MEASURED = """
import json, os, subprocess, sys
_, status, usage = os.wait4(subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL).pid, 0)
print(json.dumps([status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss]))
"""


def train(o, iterations):
    """Trains, and returns the seconds of each sweep, those of the processors, those of all, and the memory."""
    shutil.rmtree(os.path.join(o.folder, "runs"), ignore_errors=True)
    began = time.perf_counter()
    # The largest resident set of a program is at least that of the process that started it, so a small one starts it.
    command = [o.tessera, "train", "als", "--quiet", "--set", f"iterations={iterations}"]
    started = subprocess.run([sys.executable, "-c", MEASURED, *command], cwd=o.folder, stdout=subprocess.PIPE, check=True)
    status, processors, kilobytes = json.loads(started.stdout)
    if status:
        raise SystemExit("the training failed")
    with open(os.path.join(o.folder, "runs/als/metrics.jsonl")) as f:
        sweeps = [json.loads(line)["seconds"] for line in f if line.strip()]
    return sweeps, processors, time.perf_counter() - began, kilobytes * 1024


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tessera")
    p.add_argument("folder")
    for name, value in (("rows", 200000), ("columns", 20000), ("ratings", 20000000), ("components", 32), ("sweeps", 2), ("rounds", 3)):
        p.add_argument("--" + name, type=int, default=value)
    o = p.parse_args()
    o.tessera = os.path.abspath(o.tessera)
    os.makedirs(o.folder, exist_ok=True)
    path = os.path.join(o.folder, f"ratings-{o.rows}-{o.columns}-{o.ratings}.npz")
    if not os.path.exists(path):
        generate(o, path)
    with open(os.path.join(o.folder, "models.toml"), "w") as f:
        f.write(f"""[model.als]
kind = "matrix_factorisation"
components = {o.components}
ridge_rows = {RIDGE}
ridge_columns = {RIDGE}
tolerance = 0
dataset = {{ name = "triples", file = "{os.path.basename(path)}" }}
""")
    processes, ours, theirs, memory, ours_cpu, theirs_cpu = len(os.sched_getaffinity(0)), [], [], [], [], []
    for _ in range(o.rounds):
        _, first, _, _ = train(o, 1)
        sweeps, all_, whole, most = train(o, 1 + o.sweeps)
        ours, ours_cpu, memory = ours + sweeps, ours_cpu + [(all_ - first) / o.sweeps], memory + [most]
        csr = sp.load_npz(path).tocsr()
        csc = csr.T.tocsr()
        mean = float(csr.data.mean(dtype=np.float64))
        W, Z = shared((o.rows, o.components + 1)), shared((o.columns, o.components + 1))
        Z[:, :-1] = np.random.default_rng(0).normal(size=(o.columns, o.components)) / o.components**0.5
        W[:] = 0.1
        before = cpu_of_children()
        theirs += [sweep(csr, csc, W, Z, mean, processes) for _ in range(o.sweeps)]
        theirs_cpu.append((cpu_of_children() - before) / o.sweeps)
        del csr, csc
    triples = 12 * o.ratings
    print(f"{o.ratings} ratings, {o.rows} x {o.columns}, k = {o.components}, {processes} processors")
    print(f"tessera     {np.median(ours):7.2f} s per sweep, {np.median(ours_cpu):.2f} s of processors (all: {' '.join(f'{t:.2f}' for t in ours)}); the last training {whole:.1f} s in all")
    print(f"NumPy/SciPy {np.median(theirs):7.2f} s per sweep, {np.median(theirs_cpu):.2f} s of processors (all: {' '.join(f'{t:.2f}' for t in theirs)})")
    print(f"ratio       {np.median(ours) / np.median(theirs):7.2f}, of processors {np.median(ours_cpu) / np.median(theirs_cpu):.2f}")
    print(f"memory      {max(memory) / 1e6:7.0f} MB, {max(memory) / triples:.2f} of the triples ({triples / 1e6:.0f} MB)")


main()
