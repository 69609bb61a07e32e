#!/usr/bin/python3
"""NMF of a sparse matrix of counts, scikit-learn beside Tessera, in alternating rounds.

    sparse_nmf.py TESSERA FOLDER [--rounds N] [--only euclidean,kl,mu]

It generates 2,700 cells x 33,000 genes of which 3 % are not 0 (2.7 million entries), and fits 20 components. Times are processor time, of
scikit-learn that of the fit, of Tessera that of the whole command, with reading, measuring and drawing. Memory is the largest resident
set, minus that of the imported modules, or of `tessera version`.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp

CELLS, GENES, SHARE, ENTRY = 2700, 33000, 0.03, 8


def generate(path):
    rng = np.random.default_rng(0)
    rate = rng.gamma(0.3, 1, (CELLS, 12)) @ rng.gamma(0.3, 1, (12, GENES))
    rate *= rng.lognormal(0, 1.5, (1, GENES)) * rng.lognormal(0, 0.4, (CELLS, 1))
    low, high = 1e-6, 100.0
    for _ in range(30):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if (1 - np.exp(-rate[:300] * middle)).mean() > SHARE else (middle, high)
    sp.save_npz(path, sp.csr_matrix(rng.poisson(rate * middle).astype(np.float32)))


def peer(what, path):
    from sklearn.decomposition import NMF

    warnings.filterwarnings("ignore")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    X = sp.load_npz(path)
    began = time.process_time()
    keys = {"euclidean": {"solver": "cd"}, "mu": {"solver": "mu"}, "kl": {"solver": "mu", "beta_loss": "kullback-leibler"}}[what]
    m = NMF(20, init="nndsvda", tol=1e-4, max_iter=200, random_state=0, **keys).fit(X)
    seconds = time.process_time() - began
    error = m.reconstruction_err_ ** 2 / (1 if what != "kl" else 2) / X.shape[0] / X.shape[1]
    print(seconds, error, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def ours(tessera, what, folder):
    keys = {"euclidean": "", "mu": 'solver = "mu"', "kl": 'solver = "mu"\nloss = "kl"'}[what]
    models, out = os.path.join(folder, what + ".toml"), os.path.join(folder, "run-" + what)
    with open(models, "w") as f:
        f.write(f'[model.m]\ndataset = {{ name = "triples", absent = "zero", file = "{folder}/counts.npz" }}\nkind = "nmf"\ncomponents = 20\n'
                f'tolerance = 1e-5\n{keys}\n')

    def run(*command):
        child = subprocess.Popen([tessera, *command], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        assert status == 0, command
        return used.ru_utime + used.ru_stime, used.ru_maxrss

    _, before = run("version")
    seconds, after = run("train", "m", "--file", models, "--out", out, "--force")
    with open(os.path.join(out, "metrics.jsonl")) as f:
        error = json.loads(f.readlines()[-1])["loss"]
    return seconds, error, after - before


def main():
    a = argparse.ArgumentParser()
    a.add_argument("tessera")
    a.add_argument("folder")
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--only", default="euclidean,kl,mu")
    a.add_argument("--peer", help=argparse.SUPPRESS)
    o = a.parse_args()
    path = os.path.join(o.folder, "counts.npz")
    if o.peer == "generate":
        return generate(path)
    if o.peer:
        return peer(o.peer, path)
    if not os.path.exists(path):  # in another process: children inherit the largest resident set of this one
        subprocess.run([sys.executable, __file__, o.tessera, o.folder, "--peer", "generate"], check=True)
    entries = sp.load_npz(path).nnz
    for what in o.only.split(","):
        rounds = []
        for _ in range(o.rounds):
            printed = subprocess.run([sys.executable, __file__, o.tessera, o.folder, "--peer", what], check=True, capture_output=True, text=True).stdout
            rounds.append((*map(float, printed.split()), *ours(o.tessera, what, o.folder)))
        seconds, error, kilobytes, own, own_error, own_kilobytes = map(statistics.median, zip(*rounds))
        ratio = statistics.median(r[3] / r[0] for r in rounds)
        print(f"{what}: scikit-learn {seconds:.1f} s, error {error:.6f}, memory {kilobytes * 1024 / entries / ENTRY:.1f} entries; "
              f"Tessera {own:.1f} s, error {own_error:.6f}, memory {own_kilobytes * 1024 / entries / ENTRY:.1f} entries; ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
