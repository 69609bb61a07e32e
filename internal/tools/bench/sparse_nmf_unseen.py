#!/usr/bin/python3
"""Codes of unseen images for the atoms of a sparse NMF that was fitted to training images, in four ways.

    sparse_nmf_unseen.py RUN t10k-images-idx3-ubyte.gz [SPARSITY]

- nnls: non-negative least squares, no constraint on sparsity, what `tessera encode` does
- per unit: Hoyer's algorithm with fixed atoms. Every unit's activations over all of these images have the sparsity of the
  declaration (0.6), as in the fit. The codes of one image then depend on the others.
- per image: the code of every image has at least the given sparsity (0.667). Codes of one image depend on that image alone.
- projected once: the nnls codes, projected to that sparsity per image, without further steps

Projected gradient steps with the step size 1/L, L the largest eigenvalue of W W', from the nnls codes. It prints for each mse,
hoyer_contribution and max_approx (dilation by the disk of radius 1), all as docs/metrics.md defines them.
"""
import gzip
import json
import struct
import sys

import numpy as np


def atoms(run):
    data = open(run + "/model.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    for name, v in json.loads(data[8:8 + n]).items():
        if name == "atoms":
            a, b = v["data_offsets"]
            return np.frombuffer(data[8 + n + a:8 + n + b], np.float32).reshape(v["shape"]).astype(float)
    sys.exit(f"{run}: no atoms: want the run of a factorisation")


def dilate(x):
    x = x.reshape(-1, 28, 28)
    y = x.copy()
    np.maximum(y[:, 1:], x[:, :-1], out=y[:, 1:])
    np.maximum(y[:, :-1], x[:, 1:], out=y[:, :-1])
    np.maximum(y[:, :, 1:], x[:, :, :-1], out=y[:, :, 1:])
    np.maximum(y[:, :, :-1], x[:, :, 1:], out=y[:, :, :-1])
    return y.reshape(len(x), -1)


def sparsity(rows):
    k = rows.shape[1]
    l1, l2 = np.abs(rows).sum(1), np.linalg.norm(rows, axis=1)
    return np.where(l2 > 0, (np.sqrt(k) - l1 / np.maximum(l2, 1e-30)) / (np.sqrt(k) - 1), 0)


def project(rows, s, least=False):
    """Hoyer's projection (2004) of every row to sparsity s, its length kept; with least, rows that are sparser stay."""
    x = rows.copy()
    some = (np.linalg.norm(x, axis=1) > 0) & ((sparsity(x) < s) if least else True)
    x[some] = projected(x[some], s)
    return x


def projected(x, s):
    n, k = x.shape
    l2 = np.linalg.norm(x, axis=1)
    l1 = l2 * (np.sqrt(k) - s * (np.sqrt(k) - 1))
    v, free = x.copy(), np.ones(x.shape, bool)
    v += ((l1 - v.sum(1)) / k)[:, None]
    for _ in range(k):
        count = free.sum(1)
        middle = np.where(free, (l1 / count)[:, None], 0)
        w = v - middle
        a = (w * w).sum(1)
        b = 2 * (w * middle).sum(1)
        c = (middle * middle).sum(1) - l2 * l2
        alpha = (-b + np.sqrt(np.maximum(b * b - 4 * a * c, 0))) / np.maximum(2 * a, 1e-30)
        v = middle + alpha[:, None] * w
        negative = v < 0
        if not negative.any():
            break
        free &= ~negative
        v[negative] = 0
        v = np.where(free, v - ((v.sum(1) - l1) / free.sum(1))[:, None], 0)
    return np.maximum(v, 0)


def fit(x, w, h, steps, constraint):
    gram, xw = w @ w.T, x @ w.T
    size = 1 / np.linalg.eigvalsh(gram)[-1]
    y, before, t = h, h, 1.0
    for _ in range(steps):
        h = constraint(np.maximum(0, y - size * (y @ gram - xw)))
        if constraint is free:  # accelerated: the problem is convex
            after = (1 + np.sqrt(1 + 4 * t * t)) / 2
            y, before, t = h + (t - 1) / after * (h - before), h, after
        else:
            y = h
    return h


def free(h):
    return h


def main():
    run, images = sys.argv[1:3]
    s = float(sys.argv[3]) if len(sys.argv) > 3 else 0.667
    x = np.frombuffer(gzip.open(images).read(), np.uint8, offset=16).reshape(-1, 784) / 255
    w = atoms(run)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    nnls = fit(x, w, np.zeros((len(x), len(w))), 300, free)
    codes = {"nnls": nnls, "per unit, 0.6": fit(x, w, nnls, 200, lambda h: project(h.T, 0.6).T),
             f"per image, {s:g}": fit(x, w, nnls, 200, lambda h: project(h, s, least=True)), f"projected once, {s:g}": project(nnls, s, least=True)}
    print("| codes | mse | hoyer_contribution | max_approx |\n| --- | --- | --- | --- |")
    grown, want = dilate(w), dilate(x)
    for name, h in codes.items():
        mse, approx = ((h @ w - x) ** 2).mean(), ((h @ grown - want) ** 2).mean()
        print(f"| {name} | {mse:.5f} | {sparsity(h).mean():.4f} | {approx:.4f} |", flush=True)


main()
