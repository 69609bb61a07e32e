#!/usr/bin/python3
"""Writes mixtures.json: the log-likelihoods of mixtures and of factor analysis by scikit-learn.

    cd classical/testdata && ./mixtures.py

Mixtures start from given weights, means and covariances, without a floor; bounds are the mean log-likelihoods of the first
iterations. From ten further starts (the means are images, by their indices) they are fitted to their ends. Factor analysis is
fitted to its end.
"""
import json
import warnings

import numpy as np
from sklearn.decomposition import FactorAnalysis
from sklearn.mixture import GaussianMixture

warnings.simplefilter("ignore")
rng = np.random.default_rng(7)
n, d, k = 300, 4, 3
labels = rng.integers(0, k, n)
shapes = rng.normal(size=(k, d, d))
X = (2 * rng.normal(size=(k, d))[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, d)))).astype(np.float32)
X64 = X.astype(np.float64)
means = X64[rng.permutation(n)[:k]]
weights = np.array([0.5, 0.3, 0.2])
S = np.cov(X64.T, bias=True)
start = {"full": np.stack([S] * k), "tied": S, "diagonal": np.stack([np.diag(S)] * k), "spherical": np.full(k, np.diag(S).mean())}
names = {"full": "full", "tied": "tied", "diagonal": "diag", "spherical": "spherical"}
out = {"X": X.ravel().tolist(), "Dim": d, "Components": k, "Means": means.ravel().tolist(), "Weights": weights.tolist(), "Bounds": {}, "Start": {}}
for covariance, first in start.items():
    precision = 1 / first if covariance in ("diagonal", "spherical") else np.linalg.inv(first)
    m = GaussianMixture(k, covariance_type=names[covariance], reg_covar=0, tol=0, max_iter=1, warm_start=True,
                        weights_init=weights, means_init=means, precisions_init=precision)
    bounds = []
    for _ in range(50):
        m.fit(X64)
        bounds.append(m.lower_bound_)
    out["Bounds"][covariance], out["Start"][covariance] = bounds, first.ravel().tolist()
starts = np.random.default_rng(11)
out["Images"] = [starts.permutation(n)[:k].tolist() for _ in range(10)]
out["Ends"] = {}
for covariance, first in start.items():
    precision = 1 / first if covariance in ("diagonal", "spherical") else np.linalg.inv(first)
    out["Ends"][covariance] = [GaussianMixture(
        k, covariance_type=names[covariance], reg_covar=0, tol=1e-10, max_iter=5000,
        weights_init=weights, means_init=X64[images], precisions_init=precision).fit(X64).score(X64) for images in out["Images"]]
Y = (rng.normal(size=(n, 2)) @ rng.normal(size=(2, 6)) + rng.uniform(0.5, 1, 6) * rng.normal(size=(n, 6))).astype(np.float32)
fa = FactorAnalysis(2, tol=1e-12, max_iter=20000, svd_method="lapack").fit(Y.astype(np.float64))
out["Y"], out["FactorAnalysis"] = Y.ravel().tolist(), fa.score(Y.astype(np.float64))
with open("mixtures.json", "w") as f:
    json.dump(out, f)
