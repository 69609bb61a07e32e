#!/usr/bin/python3
"""scikit-learn's NMF, linear SVM, mixtures and k-means: what `make bench-peers` measures Tessera against.

    sklearn_baselines.py nmf|nmf-mu --data FOLDER [--iterations N]     on the 10,000 test images, 100 atoms, start nndsvda
    sklearn_baselines.py svm --data FOLDER --codes CODES.npy --C C     the last fifth of the codes to test, the others to fit
    sklearn_baselines.py "gmm full"|"gmm diagonal"|"kmeans batches" --codes X.npy --iterations N
                                                                       64 components of the samples X, one iteration of N after the start

FOLDER holds t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz. It prints the seconds of fitting, without Python's start and the
reading of files, and the mean squared error, or the accuracy.
"""
import argparse
import gzip
import time
import warnings

import numpy as np


def idx(path, offset):
    with gzip.open(path) as f:
        return np.frombuffer(f.read(), np.uint8, offset=offset)


def nmf(o):
    from sklearn.decomposition import NMF

    X = idx(f"{o.data}/t10k-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(np.float32) / 255
    began = time.perf_counter()
    solver = "cd" if o.what == "nmf" else "mu"
    m = NMF(100, init="nndsvda", solver=solver, max_iter=o.iterations, tol=1e-4, random_state=0)
    H = m.fit_transform(X)
    took = time.perf_counter() - began
    return took, np.mean((H @ m.components_ - X) ** 2)


def svm(o):
    from sklearn.svm import LinearSVC

    H, y = np.load(o.codes), idx(f"{o.data}/t10k-labels-idx1-ubyte.gz", 8)
    n = len(H) * 4 // 5
    began = time.perf_counter()
    m = LinearSVC(C=o.C, dual=False, tol=1e-4, random_state=0).fit(H[:n], y[:n])
    return time.perf_counter() - began, m.score(H[n:], y[n:])


def mixture(o):
    """The difference of a long and a short fit from the same start, which counts for neither."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.mixture import GaussianMixture

    X = np.load(o.codes)

    def fit(iterations):
        began = time.perf_counter()
        if o.what == "kmeans batches":
            m = MiniBatchKMeans(64, init=X[:64], n_init=1, batch_size=1024, max_iter=iterations, tol=0, max_no_improvement=None,
                                reassignment_ratio=0, compute_labels=False).fit(X)
            return time.perf_counter() - began, m.inertia_ / len(X) if hasattr(m, "inertia_") else 0
        m = GaussianMixture(64, covariance_type="full" if o.what == "gmm full" else "diag", init_params="random_from_data", tol=0,
                            max_iter=iterations, random_state=1).fit(X)
        return time.perf_counter() - began, -m.lower_bound_

    if o.what != "kmeans batches":
        X = X.astype(np.float64)
    fit(1)
    short, _ = fit(2)
    long, score = fit(2 + o.iterations)
    return (long - short) / o.iterations, score


def main():
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=["nmf", "nmf-mu", "svm", "gmm full", "gmm diagonal", "kmeans batches"])
    a.add_argument("--data")
    a.add_argument("--iterations", type=int, default=200)
    a.add_argument("--codes")
    a.add_argument("--C", type=float, default=1.0)
    o = a.parse_args()
    warnings.filterwarnings("ignore", message="Maximum number of iterations")
    warnings.filterwarnings("ignore", message="Best performing initialization did not converge")
    seconds, score = (nmf if o.what.startswith("nmf") else svm if o.what == "svm" else mixture)(o)
    print(f"{seconds:.4f} s score {score:.6f}")


if __name__ == "__main__":
    main()
