#!/usr/bin/python3
"""scikit-learn's NMF and dictionary learning on swimmer and bars: how many of the true parts do they find, over 20 seeds?

    sklearn_parts.py [SEEDS]

The swimmer images and parts are those of Tessera. The bars are another draw from the same distribution: 500 images, NumPy's
generator with seed 1. Parts and atoms are matched one to one with the largest sum of cosines; a part with a cosine of at least
0.95 is found. It prints a table: for each method the mean number of parts found, how many of the seeds find all, and the least
number.
"""
import sys
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF, DictionaryLearning, MiniBatchDictionaryLearning

warnings.filterwarnings("ignore")


def swimmer():
    torso = np.zeros((32, 32))
    torso[10:22, 15:17] = 1
    limbs = []
    for row, column, v, h in [(10, 14, -1, -1), (10, 17, -1, 1), (21, 14, 1, -1), (21, 17, 1, 1)]:
        for dy, dx in [(0, h), (v, h), (v, 0), (-v, h)]:
            part = np.zeros((32, 32))
            for t in range(1, 8):
                part[row + t * dy, column + t * dx] = 1
            limbs.append(part)
    images = [np.minimum(1, torso + sum(limbs[4 * l + (i >> 2 * l & 3)] for l in range(4))) for i in range(256)]
    return np.reshape(images, (256, -1)), np.reshape([torso] + limbs, (17, -1))


def bars(n=500, seed=1):
    parts = np.zeros((16, 8, 8))
    for i in range(8):
        parts[i, i], parts[8 + i, :, i] = 1, 1
    on = np.random.default_rng(seed).random((n, 16)) < 1 / 8
    return np.minimum(1, on @ parts.reshape(16, -1)), parts.reshape(16, -1)


def found(atoms, parts):
    unit = lambda x: x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    cosines = unit(parts) @ unit(atoms).T
    return int((cosines[linear_sum_assignment(-cosines)] >= 0.95 - 1e-9).sum())


def methods(k, spare):
    yield f"NMF, {k} atoms, random start", lambda s: NMF(k, init="random", max_iter=2000, tol=1e-5, random_state=s)
    yield f"NMF, {k} atoms, nndsvdar", lambda s: NMF(k, init="nndsvdar", max_iter=2000, tol=1e-5, random_state=s)
    for alpha in [0.02, 0.2]:
        yield (f"MiniBatchDictionaryLearning, {spare} atoms, positive, alpha {alpha}",
               lambda s: MiniBatchDictionaryLearning(spare, alpha=alpha, n_iter=500, batch_size=100, fit_algorithm="cd", positive_code=True,
                                                     positive_dict=True, random_state=s))
    yield (f"DictionaryLearning, {spare} atoms, positive, alpha 0.2",
           lambda s: DictionaryLearning(spare, alpha=0.2, max_iter=100, fit_algorithm="cd", transform_algorithm="lasso_cd",
                                        positive_code=True, positive_dict=True, random_state=s))


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print("| images | scikit-learn's | parts found, mean | seeds that find all | least |\n| --- | --- | --- | --- | --- |")
    for name, (images, parts) in {"swimmer": swimmer(), "bars": bars()}.items():
        k = len(parts)
        for label, method in methods(k, k + 4):
            counts = [found(method(s).fit(images).components_, parts) for s in range(1, seeds + 1)]
            print(f"| {name} | {label} | {np.mean(counts):.2f} of {k} | {counts.count(k)} of {seeds} | {min(counts)} |", flush=True)


main()
