#!/usr/bin/python3
"""Directions that scikit-learn finds in the data of docs/reproduction/sparse-dictionaries.md.

    sklearn_superposition.py [SEED...]

The data are drawn by NumPy from the distribution of Tessera's data set superposition: 20,000 sums of on average four of 256 directions in
64 dimensions. The dictionary has 256 units, whose codes are not negative; alpha is the penalty of l1 with which about four of them are
active, the same in training and afterwards. Directions and atoms are matched one to one with the largest sum of cosines; a direction with a cosine of at
least 0.9 is found. It prints, for every seed (default 1 to 3), alpha, the found directions, active units, explained variance, dead units
and the seconds of processor time.
"""
import sys
import time
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm
from sklearn.decomposition import MiniBatchDictionaryLearning

FEATURES, VALUES, COUNT, ACTIVE, GROUP, CORRELATION, NOISE = 256, 64, 20000, 4, 4, 0.3, 0.02
PENALTIES = [0.3, 0.4]  # of 0.1, 0.3 and 0.45: 16.2, 4.3 and 4.0 active units with seed 1


def superposition(rng):
    directions = rng.standard_normal((FEATURES, VALUES))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    shared = np.repeat(rng.standard_normal((COUNT, FEATURES // GROUP)), GROUP, axis=1)
    active = CORRELATION**0.5 * shared + (1 - CORRELATION) ** 0.5 * rng.standard_normal((COUNT, FEATURES)) > norm.ppf(1 - ACTIVE / FEATURES)
    x = (active * rng.uniform(0.5, 1.5, active.shape)) @ directions
    return directions, x + NOISE * rng.standard_normal(x.shape)


def main():
    warnings.simplefilter("ignore")
    directions, x = superposition(np.random.default_rng(1))
    for seed in [int(s) for s in sys.argv[1:]] or [1, 2, 3]:
        for alpha in PENALTIES:
            began = time.process_time()
            m = MiniBatchDictionaryLearning(FEATURES, alpha=alpha, max_iter=10, batch_size=512, fit_algorithm="cd", transform_algorithm="lasso_cd",
                                            transform_alpha=alpha, positive_code=True, max_no_improvement=None, tol=0, random_state=seed).fit(x)
            took = time.process_time() - began
            codes = m.transform(x)
            atoms = m.components_ / np.maximum(np.linalg.norm(m.components_, axis=1, keepdims=True), 1e-12)
            cosine = directions @ atoms.T
            found = (cosine[linear_sum_assignment(-cosine)] >= 0.9).sum()
            explained = 1 - ((x - codes @ m.components_) ** 2).sum() / ((x - x.mean(0)) ** 2).sum()
            print(f"seed {seed}, alpha {alpha}: {found} found, {(codes > 0).sum(1).mean():.2f} active, {explained:.3f} explained, "
                  f"{(codes.max(0) <= 0).sum()} dead, {took:.0f} s", flush=True)


if __name__ == "__main__":
    main()
