#!/usr/bin/python3
"""Writes matrix_factorisation.json: alternating least squares by NumPy, one row at a time, in float64.

    cd classical/testdata && ./matrix_factorisation.py

Each case starts from given column factors: rows are solved for them, then, for every sweep, columns and rows. With biases the design of a
row is (z_j, 1) and its target x_ij - mean - c_j. Non-negative rows are solved by scipy.optimize.nnls on the ridge system; a bias is the
difference of two values >= 0.
"""
import json

import numpy as np
from scipy.optimize import nnls

rng = np.random.default_rng(27)
n, m, k, sweeps = 30, 20, 3, 4
mask = rng.random((n, m)) < 0.45
mask[np.arange(n), np.arange(n) % m] = True
X = (3 + rng.normal(size=(n, 1)) + rng.normal(size=(1, m)) + rng.normal(size=(n, k)) @ rng.normal(size=(k, m)) + 0.3 * rng.normal(size=(n, m))).astype(np.float32)
counts = rng.poisson(2, (n, m)).astype(np.float32) * mask
counts[mask & (counts == 0)] = 1


def solve(A, b, ridge, nonneg, bias):
    """argmin |A x - b|^2 + ridge |x|^2; with nonneg the values but the last, where that is a bias, are >= 0."""
    f = A.shape[1]
    if not nonneg:
        return np.linalg.solve(A.T @ A + ridge * np.eye(f), A.T @ b)
    S, t = np.vstack([A, np.sqrt(ridge) * np.eye(f)]), np.concatenate([b, np.zeros(f)])
    if bias:
        x = nnls(np.hstack([S, -S[:, -1:]]), t, maxiter=10000)[0]
        return np.append(x[: f - 1], x[f - 1] - x[f])
    return nnls(S, t, maxiter=10000)[0]


def half(V, M, mine, others, mean, c):
    biased = c["biases"]
    for i in range(len(mine)):
        seen = np.flatnonzero(M[i])
        ridge = c["ridge"] * (len(seen) if c["weighted"] else 1)
        if c["confidence"]:
            weights = 1 + c["confidence"] * V[i]
            p = (V[i] > 0).astype(float)
            root = np.sqrt(weights)[:, None]
            mine[i] = solve(root * others, root[:, 0] * p, ridge, c["nonneg"], False)
            continue
        A, b = others[seen].copy(), V[i, seen] - mean
        if biased:
            b = b - A[:, -1]
            A[:, -1] = 1
        mine[i] = solve(A, b, ridge, c["nonneg"], biased)


cases = {
    "biases, weighted ridge": dict(biases=True, weighted=True, ridge=0.1, nonneg=False, confidence=0),
    "no biases": dict(biases=False, weighted=False, ridge=0.5, nonneg=False, confidence=0),
    "non-negative": dict(biases=True, weighted=False, ridge=0.7, nonneg=True, confidence=0),
    "implicit": dict(biases=False, weighted=False, ridge=0.3, nonneg=False, confidence=2.0),
}
out = {"N": n, "M": m, "K": k, "Sweeps": sweeps, "Cases": {}}
for name, c in cases.items():
    V = (counts if c["confidence"] else X * mask).astype(np.float64)
    M = V > 0 if c["confidence"] else mask
    f = k + c["biases"]
    Z = rng.normal(size=(m, f)).astype(np.float32).astype(np.float64)
    if c["nonneg"]:
        Z[:, :k] = np.abs(Z[:, :k])
    W = np.zeros((n, f))
    start = Z.copy()
    mean = V[M].mean() if c["biases"] else 0.0
    half(V, M, W, Z, mean, c)
    for _ in range(sweeps):
        half(V.T, M.T, Z, W, mean, c)
        half(V, M, W, Z, mean, c)
    if c["confidence"]:
        squares = ((1 + c["confidence"] * V) * ((V > 0) - W @ Z.T) ** 2).sum()
        size = n * m
    else:
        Y = mean + W[:, :k] @ Z[:, :k].T + (W[:, k:] + Z[:, k:].T if c["biases"] else 0)
        squares, size = ((V - Y)[M] ** 2).sum(), M.sum()
    weigh = (lambda r: r) if c["weighted"] else (lambda r: np.ones_like(r))
    squares += c["ridge"] * ((weigh(M.sum(1)) * (W**2).sum(1)).sum() + (weigh(M.sum(0)) * (Z**2).sum(1)).sum())
    rows, columns = np.nonzero(M)
    out["Cases"][name] = dict(c, Rows=rows.tolist(), Columns=columns.tolist(), Values=V[rows, columns].tolist(), Start=start.ravel().tolist(),
                              W=W.ravel().tolist(), Z=Z.ravel().tolist(), Objective=squares / size)
with open("matrix_factorisation.json", "w") as file:
    json.dump(out, file)
