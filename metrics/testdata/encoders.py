#!/usr/bin/python3
"""Write encoders.json: measures of codes by scikit-learn, NumPy and plain loops.

    python3 encoders.py > encoders.json

The checked-in file was made with NumPy 1.24 and scikit-learn 1.2.
"""
import json

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss


def effective_rank(x):
    s = np.linalg.svd(x - x.mean(0), compute_uv=False)
    p = s / s.sum()
    return float(np.exp(-(p[p > 1e-12] * np.log(p[p > 1e-12])).sum()))


def uniformity(z):
    return float(np.log(np.mean([np.exp(-2 * np.sum((z[i] - z[j]) ** 2)) for i in range(len(z)) for j in range(i)])))


def case(n, units, classes, noise, c, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    centres = rng.exponential(1, (classes, units)) * (rng.random((classes, units)) < 0.5)
    codes = np.maximum(0, centres[labels] + noise * rng.standard_normal((n, units)) - 0.3) * 10 ** rng.uniform(-1, 1, units)
    codes = np.round(codes, 4).astype(np.float32)
    codes[:, 0] = 0  # a dead unit
    codes[3] = 0  # a code of zeros
    order = rng.permutation(n)
    held, fitted = np.sort(order[: n // 5]), np.sort(order[n // 5:])
    x = codes.astype(float)
    rms = np.sqrt((x[fitted] ** 2).mean(0))
    scaled = x / np.where(rms > 0, rms, 1)
    m = LogisticRegression(C=c, solver="newton-cg", tol=1e-10, max_iter=100000).fit(scaled[fitted], labels[fitted])
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    z = x / np.where(lengths > 0, lengths, 1)
    right = 0
    for i in range(n):  # leave one out; of equal distances the lower index first
        d = np.round(((z - z[i]) ** 2).sum(1), 12)
        d[i] = np.inf
        votes = np.bincount(labels[np.argsort(d, kind="stable")[:5]], minlength=classes)
        right += int(votes.argmax() == labels[i])
    return {"units": units, "c": c, "codes": [float(str(v)) for v in codes.ravel()], "labels": labels.tolist(), "fitted": fitted.tolist(),
            "held": held.tolist(), "weights": m.coef_.tolist(), "accuracy": float(m.score(scaled[held], labels[held])),
            "nll": float(log_loss(labels[held], m.predict_proba(scaled[held]), labels=m.classes_)),
            "effective_rank": effective_rank(x), "uniformity": uniformity(z), "code_spread": float(((z - z.mean(0)) ** 2).sum(1).mean()), "knn": right / n}


print(json.dumps([case(150, 6, 4, 0.9, 1, 1), case(120, 5, 3, 0.7, 100, 2), case(60, 90, 3, 1.2, 0.1, 3)]))
