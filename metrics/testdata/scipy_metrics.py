#!/usr/bin/python3
"""Write scipy_metrics.json: metrics of small models by NumPy, SciPy and scikit-learn, in float64.

    python3 scipy_metrics.py > scipy_metrics.json

All inputs are float32 numbers. The checked-in file was made with NumPy 1.24, SciPy 1.10 and scikit-learn 1.2.
"""
import itertools
import json

import numpy as np
from scipy import ndimage
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import KNeighborsClassifier

rng = np.random.default_rng(7)


def single(x):
    """float32 numbers of few digits, in float64."""
    return np.round(np.asarray(x, float), 4).astype(np.float32).astype(float)


def numbers(x):
    """The shortest decimals of float32 numbers."""
    if isinstance(x, np.ndarray):
        return [numbers(v) for v in x]
    return float(str(np.float32(x)))


ACTIVATIONS = {"linear": lambda z: z, "relu": lambda z: np.maximum(z, 0), "sigmoid": lambda z: 1 / (1 + np.exp(-z))}


def model(name, shape, units, n, activation, codes, atoms, bias, noise):
    """A decoder y = s(h W + b), codes and images near its outputs."""
    codes, atoms, bias = single(codes), single(atoms), single(bias)
    outputs = ACTIVATIONS[activation](codes @ atoms + bias)
    images = single(outputs + noise * rng.standard_normal(outputs.shape))
    return {"name": name, "shape": shape, "units": units, "n": n, "activation": activation, "codes": codes, "atoms": atoms,
            "bias": bias, "outputs": outputs, "images": images}


def sparse(n, k, density):
    """Codes >= 0 of units that matter less and less."""
    return rng.exponential(1, (n, k)) * (rng.random((n, k)) < density) * 0.35 ** np.arange(k)


def models():
    n, k = 40, 7
    atoms = np.maximum(rng.standard_normal((k, 56)) - 0.8, 0)
    codes = sparse(n, k, 0.5)
    codes[3] = 0
    scale = np.array([1, 0.01, 100, 7, 0.3, 30, 0.05])
    yield model("parts with a signed bias", [8, 7], k, n, "relu", codes * scale, atoms / scale[:, None],
                0.4 * rng.standard_normal(56), 0.05)
    yield model("sums of parts", [8, 7], k, n, "linear", codes, atoms, np.abs(rng.standard_normal(56)) * 0.1, 0.02)
    signed = rng.standard_normal((6, 48))
    signed[4] = 0
    mixed = rng.standard_normal((n, 6)) * np.array([3, 1, 0.5, 0.2, 1, 0.1])
    mixed[:, 5] += 0.1 * mixed[:, 0]
    yield model("signed atoms with channels", [4, 4, 3], 6, n, "linear", mixed, signed, rng.standard_normal(48), 0.3)
    yield model("a sigmoid", [6, 6], 5, n, "sigmoid", rng.random((n, 5)), 2 * rng.standard_normal((5, 36)) * 0.2 ** np.arange(5)[:, None],
                rng.standard_normal(36), 0.02)


def useful(m, rise):
    """The least number of units of all subsets whose others can be frozen."""
    f = ACTIVATIONS[m["activation"]]

    def error(frozen):
        h = m["codes"].copy()
        h[:, frozen] = m["codes"].mean(0)[frozen]
        return np.mean((m["images"] - f(h @ m["atoms"] + m["bias"])) ** 2)

    most = (1 + rise) * error([])
    for count in range(m["units"], -1, -1):
        if any(error(list(s)) <= most for s in itertools.combinations(range(m["units"]), count)):
            return m["units"] - count


def of_codes(m):
    c = np.abs(m["codes"]) * np.linalg.norm(m["atoms"], axis=1)
    k = m["units"]
    norms = np.linalg.norm(c, axis=1)
    hoyer = np.where(norms > 0, (np.sqrt(k) - c.sum(1) / np.maximum(norms, 1e-300)) / (np.sqrt(k) - 1), 0)
    a = np.maximum(m["codes"][:, :, None] * m["atoms"], 0).sum(1)
    start = np.maximum(ACTIVATIONS[m["activation"]](m["bias"]), 0)
    kept = np.maximum(m["outputs"] - start, 0)
    x, y = m["images"], m["outputs"]
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    return {"explained_variance": 1 - ((x - y) ** 2).sum() / ((x - x.mean(0)) ** 2).sum(),
            "cosine": ((x * y).sum(1) / lengths).mean(), "active_units": (m["codes"] != 0).sum(1).mean(),
            "hoyer_contribution": hoyer.mean(), "l0": (c > 0.01 * c.max(1, keepdims=True)).mean(),
            "dead_units_contribution": int((c.max(0) < 0.01 * c.max()).sum()),
            "additivity_lost": np.maximum(a - kept, 0).sum() / a.sum(), "useful_units": useful(m, 0.01)}


def of_atoms(m):
    h, w = m["shape"][:2]
    found = []
    for atom in m["atoms"]:
        a = np.abs(atom).reshape(h, w, -1).max(2)
        if a.sum() == 0:
            continue
        above = a > a.max() / 2
        q = a / a.sum()
        p = np.stack(np.mgrid[:h, :w], -1)
        centre = (q[..., None] * p).sum((0, 1))
        positive = q[q > 0]
        found.append([above.sum(), ndimage.label(above)[1], np.sqrt((q * ((p - centre) ** 2).sum(-1)).sum()),
                      -(positive * np.log(positive)).sum() / np.log(h * w)])
    area, components, radius, entropy = np.mean(found, 0)
    alive = m["atoms"][np.abs(m["atoms"]).sum(1) > 0]
    unit = alive / np.linalg.norm(alive, axis=1, keepdims=True)
    pairs = np.abs(unit @ unit.T)[np.triu_indices(len(unit), 1)]
    return {"atom_area": area, "atom_components": components, "atom_radius": radius, "atom_entropy": entropy,
            "coherence": pairs.max(), "coherence_mean": pairs.mean()}


def cosines(a, b):
    unit = [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (a, b)]
    return unit[0] @ unit[1].T


def parts(m):
    """True parts near some of the atoms: two near one of them."""
    true = single(np.concatenate([m["atoms"][[0, 1, 2]] + 0.02 * rng.random((3, m["atoms"].shape[1])), m["atoms"][[2]] * 2]))
    similarity = cosines(true, np.concatenate([m["atoms"], m["bias"][None]]))
    rows, columns = linear_sum_assignment(-similarity)
    return {"parts": numbers(true), "matched": [int(c) if c < m["units"] else -1 for c in columns],
            "cosines": similarity[rows, columns].tolist()}


def clustered():
    """Codes of three classes that overlap, and what neighbours and clusters make of them."""
    k, n = 5, 90
    labels = rng.integers(0, 3, n) * 4 + 1
    centres = {1: [2, 0, 0, 1, 0], 5: [0, 2, 0, 0, 1], 9: [0, 0.5, 2, 0, 0]}
    contributions = np.array([centres[c] for c in labels]) + 0.75 * rng.standard_normal((n, k))
    lengths = np.array([0.02, 1, 50, 3, 0.5])
    atoms = rng.standard_normal((k, 12))
    atoms *= (lengths / np.linalg.norm(atoms, axis=1))[:, None]
    atoms = single(atoms * 1000) / 1000
    atoms = atoms.astype(np.float32).astype(float)
    codes = (contributions / lengths).astype(np.float32).astype(float)
    x = codes * np.linalg.norm(atoms, axis=1)
    out = {"units": k, "codes": numbers(codes), "atoms": numbers(atoms), "labels": labels.tolist(), "shape": [4, 3]}
    for neighbours in (1, 5, 8):
        right = 0
        for i in range(n):
            rest = np.arange(n) != i
            right += KNeighborsClassifier(neighbours).fit(x[rest], labels[rest]).predict(x[i:i + 1])[0] == labels[i]
        out[f"knn_{neighbours}"] = right / n
    start = x[[0, 1, 2]]
    lloyd = KMeans(3, init=start, n_init=1, tol=0, algorithm="lloyd").fit(x)
    out["lloyd"] = {"nearest": lloyd.labels_.tolist(), "sum": lloyd.inertia_}
    best = KMeans(3, n_init=200, tol=0, algorithm="lloyd", random_state=1).fit(x)
    classes = np.searchsorted(np.unique(labels), labels)
    counts = np.zeros((3, 3))
    np.add.at(counts, (best.labels_, classes), 1)
    rows, columns = linear_sum_assignment(-counts)
    out["kmeans_accuracy"] = counts[rows, columns].sum() / n
    out["kmeans_nmi"] = normalized_mutual_info_score(classes, best.labels_, average_method="max")
    return out


def matched(c):
    rows, columns = linear_sum_assignment(-c)
    return c[rows, columns].mean()


def agreement():
    """Three dictionaries: one with its atoms in another order, and one with other atoms and one more."""
    a = np.maximum(rng.standard_normal((6, 30)) - 0.5, 0)
    b = a[[3, 0, 5, 1, 4, 2]] * np.array([1, -2, 0.1, 10, 1, 3])[:, None] + 0.3 * rng.standard_normal((6, 30))
    c = np.concatenate([np.maximum(a[:4] + 0.6 * rng.standard_normal((4, 30)), 0), rng.random((2, 30)), np.zeros((1, 30))])
    models = [single(m) for m in (a, b, c)]
    results, chance = [], []
    for one, other in itertools.combinations(models, 2):
        s = np.abs(cosines(one, other))
        results.append([matched(s), 1 - (s.max(1).mean() + s.max(0).mean()) / 2, s.mean()])
        draws = [matched(np.abs(cosines(one, rng.permuted(other, axis=1)))) for _ in range(500)]
        chance.append([np.mean(draws), np.std(draws)])
    m, amari, random = np.mean(results, 0)
    return {"models": [numbers(x) for x in models], "matched": m, "amari": amari, "random": random,
            "permuted": float(np.mean(chance, 0)[0]), "permuted_deviation": float(np.mean(chance, 0)[1])}


def plain(m, rises):
    return {**{k: numbers(v) if isinstance(v, np.ndarray) else v for k, v in m.items() if k != "outputs"}, "values": {**of_codes(m), **of_atoms(m)},
            "useful": {str(r): useful(m, r) for r in rises}}


if __name__ == "__main__":
    all_models = list(models())
    print(json.dumps({
        "models": [plain(m, [0.001, 0.01, 0.1, 0.5, 2, 10]) for m in all_models],
        "true_parts": parts(all_models[1]),
        "clustered": clustered(),
        "agreement": agreement(),
    }, default=lambda v: v.item()))
