#!/usr/bin/python3
"""Parts that scikit-learn finds of the generated data of docs/reproduction/known-parts.md: chords of notes, and texts of topics.

The data have the distributions of Tessera's data sets `notes` and `topics`, drawn by NumPy. 24 atoms for 24 notes or 10 topics.
"""
import sys
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF, DictionaryLearning, LatentDirichletAllocation

ATOMS = 24


def notes(rng, noise, notes=24, bins=128, count=1000, density=0.12):
    parts = np.zeros((notes, bins))
    for k in range(notes):
        f = 3 * 2 ** (k / 12)
        h = np.arange(1, np.ceil(bins / f))
        parts[k] = (np.exp(-((np.arange(bins) - h[:, None] * f) ** 2) / 2) / h[:, None]).sum(0)
    parts /= parts.max(1, keepdims=True)
    x = ((rng.random((count, notes)) < density) * rng.uniform(0.3, 1, (count, notes))) @ parts
    return parts, x / x.max() + abs(noise * rng.standard_normal(x.shape))


def topics(rng, topics=10, words=200, count=1000, length=100, mixture=0.2, sparsity=0.05):
    parts = rng.dirichlet([sparsity] * words, topics)
    shares = rng.dirichlet([mixture] * topics, count)
    return parts, np.stack([rng.multinomial(length, s @ parts) for s in shares]).astype(float)


def found(parts, atoms):
    unit = lambda v: v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12)
    cosine = unit(parts) @ unit(atoms).T
    return (cosine[linear_sum_assignment(-cosine)] >= 0.95).sum()


warnings.simplefilter("ignore")
methods = {
    "NMF, random start": lambda s: NMF(ATOMS, init="random", max_iter=500, random_state=s),
    "NMF, Kullback-Leibler": lambda s: NMF(ATOMS, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=500, random_state=s),
    "DictionaryLearning, positive": lambda s: DictionaryLearning(ATOMS, alpha=0.1, max_iter=50, fit_algorithm="cd", transform_algorithm="lasso_cd",
                                                                 positive_code=True, positive_dict=True, random_state=s),
    "LatentDirichletAllocation": lambda s: LatentDirichletAllocation(ATOMS, max_iter=50, random_state=s),
}
data = {"notes": lambda r: notes(r, 0), "notes with noise": lambda r: notes(r, 0.02), "topics": topics}
for name, draw in data.items():
    parts, x = draw(np.random.default_rng(1))
    for method, make in methods.items():
        if method[0] == "L" and name != "topics":
            continue
        scale = 1 if method[0] == "L" else 0.05 if name == "topics" else 1
        counts = [found(parts, make(s).fit(scale * x).components_) for s in map(int, sys.argv[1:] or ["1", "2", "3"])]
        print(f"{name}, {method}: {np.mean(counts):.1f} ± {np.std(counts, ddof=1):.1f} of {len(parts)}", flush=True)
