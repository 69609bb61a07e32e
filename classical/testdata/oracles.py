#!/usr/bin/python3
"""Writes oracles.json: factorisations of one small matrix after a few iterations, by NumPy, SciPy and scikit-learn 1.2.

    cd classical/testdata && ./oracles.py

X is images x pixels, H (images x k) codes, W (k x pixels) atoms. Every case starts from the same H and W. The rules are written
after the papers that the Go files name, in float64, with the atoms first.
"""
import json

import numpy as np
from scipy.optimize import nnls
from sklearn.decomposition import DictionaryLearning, non_negative_factorization, sparse_encode

ITERATIONS, TINY = 5, 1e-9
rng = np.random.default_rng(5)
n, p, k = 40, 12, 3
X = rng.gamma(1.0, 1.0, (n, 4)) @ rng.gamma(0.5, 1.0, (4, p)) + 0.1 * rng.random((n, p))
SIGNED = X - X.mean(0)
H0, W0, A0 = 0.1 + rng.random((n, k)), 0.1 + rng.random((k, p)), 0.1 + rng.random((k, n))


def unit(W, H):
    norms = np.linalg.norm(W, axis=1)
    return W / norms[:, None], H * norms


def orthogonal_atoms():
    H, W = H0.copy(), W0.copy()
    for _ in range(ITERATIONS):
        T = H.T @ X
        W = W * np.sqrt(T / (T @ W.T @ W + TINY))
        W, H = unit(W, H)
        H = H * (X @ W.T) / (H @ W @ W.T + TINY)
    return H, W


def orthogonal_codes():
    H, W = H0.copy(), W0.copy()
    for _ in range(ITERATIONS):
        W = W * (H.T @ X) / (H.T @ H @ W + TINY)
        F = X @ W.T
        H = H * np.sqrt(F / (H @ H.T @ F + TINY))
        norms = np.linalg.norm(H, axis=0)
        H, W = H / norms, W * norms[:, None]
    return H, W


def local():
    H, W = H0.copy(), W0.copy()
    for _ in range(ITERATIONS):
        W = W * (H.T @ (X / (H @ W))) / H.sum(0)[:, None]
        W = W / W.sum(1, keepdims=True)
        H = np.sqrt(H * ((X / (H @ W)) @ W.T))
    return H, W


def semi():
    H = H0.copy()
    for _ in range(ITERATIONS):
        W = np.linalg.pinv(H.T @ H) @ H.T @ SIGNED
        W, H = unit(W, H)
        C, G = SIGNED @ W.T, W @ W.T
        plus, minus = lambda M: np.maximum(M, 0), lambda M: np.maximum(-M, 0)
        H = H * np.sqrt((plus(C) + H @ minus(G)) / (minus(C) + H @ plus(G) + TINY))
    return H, W


def convex():
    H, A = H0.copy(), A0.copy()
    Y = X @ X.T
    A, H = A / A.sum(1, keepdims=True), H * A.sum(1)
    for _ in range(ITERATIONS):
        A = A * np.sqrt((H.T @ Y) / (H.T @ H @ A @ Y + TINY))
        A, H = A / A.sum(1, keepdims=True), H * A.sum(1)
        H = H * np.sqrt((Y @ A.T) / (H @ A @ Y @ A.T + TINY))
    return H, A @ X


def separable(anchors, normalised):
    points = X.T if anchors == "pixels" else X
    R = points / points.sum(1, keepdims=True) if normalised else points.copy()
    chosen = []
    for _ in range(k):
        i = int(np.argmax((R**2).sum(1)))
        chosen.append(i)
        u = R[i] / np.linalg.norm(R[i])
        R = R - np.outer(R @ u, u)
    W = X[chosen]
    if anchors == "pixels":
        W = np.array([nnls(X[:, chosen], X[:, j])[0] for j in range(p)]).T
    H = np.array([nnls(W.T, x)[0] for x in X])
    return H, W


def sklearn(loss, l1, l2):
    """The transposed problem, so that scikit-learn too updates the atoms first."""
    total = l1 + l2
    W, H, _ = non_negative_factorization(
        X.T, W=W0.T.copy(), H=H0.T.copy(), n_components=k, init="custom", solver="mu", beta_loss=loss, max_iter=ITERATIONS, tol=0,
        alpha_W=total, alpha_H=total, l1_ratio=l1 / total if total else 0.0)
    return H.T, W.T


L1 = 0.3
UNIT = W0 / np.linalg.norm(W0, axis=1)[:, None]


def lasso(X, positive):
    return sparse_encode(X, UNIT, algorithm="lasso_cd", alpha=L1, max_iter=100000, positive=positive), UNIT


def dictionary():
    """The least objective, as a mean over pixels, of five seeds."""
    least = np.inf
    for seed in range(5):
        m = DictionaryLearning(k, alpha=L1, max_iter=1000, tol=1e-9, fit_algorithm="cd", transform_algorithm="lasso_cd", transform_alpha=L1,
                               transform_max_iter=100000, random_state=seed)
        H = m.fit_transform(SIGNED)
        least = min(least, (((SIGNED - H @ m.components_) ** 2).sum() + 2 * L1 * np.abs(H).sum()) / X.size)
    return least


def case(H, W):
    return [float(f"{v:.8g}") for v in (H @ W).ravel()]


def main():
    cases = {"orthogonal_atoms": orthogonal_atoms(), "orthogonal_codes": orthogonal_codes(), "local": local(), "semi": semi(), "convex": convex()}
    for anchors in ("pixels", "images"):
        for normalised in (False, True):
            cases[f"separable_{anchors}_{normalised}".lower()] = separable(anchors, normalised)
    for name, loss, l1, l2 in [("euclidean", 2, 0, 0), ("kl", 1, 0, 0), ("itakura_saito", 0, 0, 0), ("beta_0.5", 0.5, 0, 0), ("beta_3", 3, 0, 0),
                               ("euclidean_penalised", 2, 0.02, 0.01), ("kl_penalised", 1, 0.02, 0.01)]:
        cases["nmf_" + name] = sklearn(loss, l1, l2)
    lassos = {"any": lasso(SIGNED, False), "nonneg": lasso(X, True)}
    flat = lambda M: [float(f"{v:.9g}") for v in M.ravel()]
    with open("oracles.json", "w") as f:
        json.dump({"images": n, "pixels": p, "components": k, "iterations": ITERATIONS, "x": flat(X), "signed": flat(SIGNED), "codes": flat(H0),
                   "atoms": flat(W0), "weights": flat(A0), "products": {name: case(*factors) for name, factors in cases.items()},
                   "l1": L1, "lassos": {name: case(*factors) for name, factors in lassos.items()}, "dictionary": dictionary()}, f)
        f.write("\n")


if __name__ == "__main__":
    main()
