#!/usr/bin/python3
"""Parts that scikit-learn finds of the generated data of docs/reproduction/known-parts.md: coloured swimmers, notes, topics.

    sklearn_known_parts.py [SEED...]

The coloured swimmers are those of Tessera; their noise, the chords of notes and the texts of topics are drawn by NumPy from the
distributions of Tessera's data sets. All methods have 24 atoms, for 17 parts of a swimmer, 24 notes or 10 topics. Parts and atoms
are matched one to one with the largest sum of cosines; a part with a cosine of at least 0.95 is found. It prints the mean number of
parts found over the seeds (default 1 to 10), the half-width of its 95 % confidence interval (Student's t), and every number.
"""
import sys
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import t
from sklearn.decomposition import NMF, DictionaryLearning, LatentDirichletAllocation

ATOMS = 24


def swimmers(rng, noise):
    torso = np.zeros((32, 32))
    torso[10:22, 15:17] = 1
    parts = [torso[:, :, None] * np.ones(3)]
    colours = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)]
    for (row, column, v, h), colour in zip([(10, 14, -1, -1), (10, 17, -1, 1), (21, 14, 1, -1), (21, 17, 1, 1)], colours):
        for dy, dx in [(0, h), (v, h), (v, 0), (-v, h)]:
            part = np.zeros((32, 32, 3))
            for k in range(1, 8):
                part[row + k * dy, column + k * dx] = colour
            parts.append(part)
    images = [np.minimum(1, parts[0] + sum(parts[1 + 4 * l + (i >> 2 * l & 3)] for l in range(4))) for i in range(256)]
    x = np.reshape(images, (256, -1))
    return np.reshape(parts, (17, -1)), np.clip(x + noise * rng.standard_normal(x.shape), 0, 1)


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
data = {"notes": lambda r: notes(r, 0), "notes with noise": lambda r: notes(r, 0.02), "topics": topics,
        "coloured swimmers": lambda r: swimmers(r, 0), "coloured swimmers with noise": lambda r: swimmers(r, 0.1)}
seeds = [int(s) for s in sys.argv[1:]] or range(1, 11)
for name, draw in data.items():
    parts, x = draw(np.random.default_rng(1))
    for method, make in methods.items():
        if method[0] == "L" and name != "topics":
            continue
        scale = 0.05 if name == "topics" and method[0] != "L" else 1
        counts = [found(parts, make(s).fit(scale * x).components_) for s in seeds]
        half = t.ppf(0.975, len(counts) - 1) * np.std(counts, ddof=1) / len(counts) ** 0.5 if len(counts) > 1 else float("nan")
        print(f"{name}, {method}: {np.mean(counts):.1f} ± {half:.1f} of {len(parts)}, {sorted(map(int, counts))}", flush=True)
