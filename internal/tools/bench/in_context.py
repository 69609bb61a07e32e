#!/usr/bin/python3
"""Errors of the model in-context and of regressions on the same 20,000 sequences, as docs/reproduction/in-context.md shows them.

    in_context.py TESSERA RUN...

TESSERA is the program, each RUN a trained in-context. For k = 0, 1, ... it prints the mean squared error of the answer that follows k
examples: by least squares (of least norm below d examples), by ridge regression with the best weight, d noise² for this prior, and by every
run. The sequences are drawn here, by the formula of the data set linear_rules, not by Tessera.
"""
import subprocess
import sys
import tempfile

import numpy as np

COUNT, EXAMPLES, VALUES, NOISE = 20000, 8, 3, 0.2

r = np.random.default_rng(0)
w = r.normal(size=(COUNT, VALUES, 1)) / np.sqrt(VALUES)
x = r.normal(size=(COUNT, EXAMPLES, VALUES))
y = x @ w + NOISE * r.normal(size=(COUNT, EXAMPLES, 1))


def errors(k):
    """By least squares and by ridge regression."""
    known, answers, asked = x[:, :k], y[:, :k], x[:, k:k + 1]
    turned = known.transpose(0, 2, 1)
    least = np.linalg.pinv(known) @ answers if k else np.zeros_like(w)
    ridge = np.linalg.solve(turned @ known + VALUES * NOISE**2 * np.eye(VALUES), turned @ answers)
    return [np.mean((asked @ found - y[:, k:k + 1])**2) for found in (least, ridge)]


tokens = np.zeros((COUNT, 2 * EXAMPLES, VALUES), np.float32)
tokens[:, 0::2], tokens[:, 1::2, :1] = x, y
columns = np.zeros((2, COUNT, 2 * EXAMPLES), np.float32)
columns[0, :, 0::2], columns[1, :, 0::2] = y[:, :, 0], 1
rows = [errors(k) for k in range(EXAMPLES)]
with tempfile.TemporaryDirectory() as folder:
    np.savez(folder + "/tests.npz", images=tokens, answers=columns[0], asked=columns[1])
    for run in sys.argv[2:]:
        subprocess.run([sys.argv[1], "encode", run, "--in", folder + "/tests.npz", "--value", "guess", "--out", folder + "/guess.npy"], check=True)
        guesses = np.load(folder + "/guess.npy")[:, 0::2]
        for row, error in zip(rows, np.mean((guesses - y[:, :, 0])**2, 0)):
            row.append(error)
print("examples,least squares,ridge," + ",".join(f"seed {i + 1}" for i in range(len(sys.argv) - 2)))
for k, row in enumerate(rows):
    print(f"{k}," + ",".join(f"{v:.4f}" for v in row))
