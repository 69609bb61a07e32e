#!/usr/bin/python3
"""Write svm_holdout.json: held-out classification of codes by scikit-learn's linear SVM, on given splits.

    python3 svm_holdout.py > svm_holdout.json

The checked-in file was made with NumPy 1.24 and scikit-learn 1.2.
"""
import json

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.svm import LinearSVC

GRID = [10 ** (-3 + i / 2) for i in range(13)]


def split(labels, seed):
    """Four fifths and one fifth of these rows."""
    a, b = next(StratifiedShuffleSplit(1, test_size=0.2, random_state=seed).split(labels, labels))
    return np.sort(a), np.sort(b)


def accuracy(codes, labels, fitted, held, c):
    m = LinearSVC(C=c, dual=False, tol=1e-8, max_iter=100000).fit(codes[fitted], labels[fitted])
    return float((m.predict(codes[held]) == labels[held]).mean())


def case(n, units, classes, noise, scale, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    centres = rng.exponential(1, (classes, units)) * (rng.random((classes, units)) < 0.5)
    codes = np.maximum(0, centres[labels] + noise * rng.standard_normal((n, units)) - 0.3) * 10 ** rng.uniform(-1, 1, units)
    codes = np.round(codes, 4).astype(np.float32)
    codes[:, 0] = 0  # a dead unit
    fitted, held = split(labels, seed)
    inner, chosen = split(labels[fitted], seed + 100)
    rms = np.sqrt((codes[fitted].astype(float) ** 2).mean(0)) if scale else np.ones(units)
    x = codes / np.where(rms > 0, rms, 1)
    grid = [accuracy(x[fitted], labels[fitted], inner, chosen, c) for c in GRID]
    best = int(np.argmax(grid))
    return {"units": units, "scale": scale, "codes": [float(str(v)) for v in codes.ravel()], "labels": labels.tolist(), "fitted": fitted.tolist(),
            "held": held.tolist(), "inner": inner.tolist(), "chosen": chosen.tolist(), "grid": grid, "best": best,
            "accuracy": accuracy(x, labels, fitted, held, GRID[best])}


print(json.dumps([case(300, 6, 4, 0.9, True, 1), case(240, 5, 3, 0.7, False, 2), case(400, 8, 5, 1.2, True, 3)]))
