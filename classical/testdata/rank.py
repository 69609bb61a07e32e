#!/usr/bin/python3
"""Writes rank.json: bi-cross-validation of the SVD after Owen and Perry (2009), by NumPy, of the X of oracles.json.

    cd classical/testdata && ./rank.py

The folds alternate: image i and pixel j are in fold i mod 2 and j mod 2. Pixel means of the fitted images are subtracted.
"""
import json

import numpy as np


def main():
    with open("oracles.json") as f:
        o = json.load(f)
    X = np.array(o["x"], np.float32).astype(float).reshape(o["images"], o["pixels"])
    squares = np.zeros(4)
    for r in range(2):
        for c in range(2):
            held, cols = np.arange(len(X)) % 2 == r, np.arange(X.shape[1]) % 2 == c
            A, B, C, D = X[held][:, cols], X[held][:, ~cols], X[~held][:, cols], X[~held][:, ~cols]
            c_mean, d_mean = C.mean(0), D.mean(0)
            u, s, vt = np.linalg.svd(D - d_mean, full_matrices=False)
            for k in range(1, 5):
                inverse = vt[:k].T @ np.diag(1 / s[:k]) @ u[:, :k].T
                squares[k - 1] += ((c_mean + (B - d_mean) @ inverse @ (C - c_mean) - A) ** 2).sum()
    with open("rank.json", "w") as f:
        json.dump([float(f"{v:.10g}") for v in squares / X.size], f)
        f.write("\n")


if __name__ == "__main__":
    main()
