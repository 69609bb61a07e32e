#!/usr/bin/python3
"""Writes clusters.json: clusters compared with classes, and silhouettes, by scikit-learn and SciPy.

    cd metrics/testdata && ./clusters.py
"""
import json

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score
from sklearn.metrics.cluster import contingency_matrix

rng = np.random.default_rng(3)
cases = []
for n, k, classes, width, noise in [(60, 3, 3, 2, 0.3), (80, 7, 4, 5, 1.0), (50, 2, 6, 3, 3.0), (40, 10, 10, 4, 0.1)]:
    labels = rng.integers(0, classes, n)
    clusters = np.where(rng.random(n) < 0.6, labels % k, rng.integers(0, k, n))
    clusters[0] = k - 1
    X = (rng.normal(size=(k, width))[clusters] + noise * rng.normal(size=(n, width))).astype(np.float32)
    table = contingency_matrix(clusters, labels)
    rows, columns = linear_sum_assignment(-table)
    cases.append({"X": X.ravel().tolist(), "Width": width, "Units": k, "Clusters": clusters.tolist(), "Labels": labels.tolist(),
                  "Accuracy": table[rows, columns].sum() / n, "NMI": normalized_mutual_info_score(labels, clusters, average_method="max"),
                  "ARI": adjusted_rand_score(labels, clusters), "Silhouette": float(silhouette_score(X.astype(np.float64), clusters))})
with open("clusters.json", "w") as f:
    json.dump(cases, f)
