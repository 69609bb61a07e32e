#!/usr/bin/python3
"""Writes minibatch.json: centres after mini-batches of k-means by scikit-learn, from given centres.

    cd classical/testdata && ./minibatch.py
"""
import json

import numpy as np
from sklearn.cluster import MiniBatchKMeans

rng = np.random.default_rng(5)
n, d, k, batch = 240, 5, 6, 40
X = (rng.normal(size=(k, d))[rng.integers(0, k, n)] * 3 + rng.normal(size=(n, d))).astype(np.float32).astype(np.float64)
start = X[:k].copy()
m = MiniBatchKMeans(k, init=start, n_init=1, reassignment_ratio=0, batch_size=batch)
centres = []
for at in range(0, n, batch):
    m.partial_fit(X[at:at + batch])
    centres.append(m.cluster_centers_.ravel().tolist())
with open("minibatch.json", "w") as f:
    json.dump({"X": X.ravel().tolist(), "Dim": d, "Components": k, "Batch": batch, "Centres": centres}, f)
