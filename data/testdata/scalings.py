"""Writes scalings.json: counts, fitted and others, after scalings of scikit-learn (tf-idf, rows) and NumPy (the others)."""
import json
import os

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

rng = np.random.default_rng(1)
fit, other = (rng.poisson(rng.gamma(0.5, 2, (n, 7))).astype(float) for n in (9, 4))
fit[:, 3], fit[2] = 0, 0  # a word that no fitted sample has, and a sample without words
both = np.vstack([fit, other])
sums = np.median(fit.sum(1)[fit.sum(1) > 0])


def ppmi(shift, smoothing):
    c = fit.sum(0) ** smoothing
    with np.errstate(all="ignore"):
        pmi = np.log(both / both.sum(1, keepdims=True) / (c / c.sum()) / shift)
    return np.where(np.isfinite(pmi), np.maximum(pmi, 0), 0)


def tfidf(**keys):
    return TfidfTransformer(**keys).fit(fit).transform(both).toarray()


rows = normalize(both, "l1") * 100
cases = [
    ([["log1p", {}]], np.log1p(both)),
    ([["rows", {"Norm": "l1", "To": 100}]], rows),
    ([["rows", {"Norm": "l2", "To": 1}]], normalize(both, "l2")),
    ([["rows", {"Norm": "max", "To": 1}]], normalize(both, "max")),
    ([["rows", {"Norm": "l1", "To": 0}]], normalize(both, "l1") * sums),
    ([["rows", {"Norm": "l1", "To": 100}], ["log1p", {}]], np.log1p(rows)),
    ([["rows", {"Norm": "l1", "To": 100}], ["log1p", {}], ["standardise", {"Centre": False}]],
     np.log1p(rows) / np.where(np.log1p(rows[:9]).std(0) > 0, np.log1p(rows[:9]).std(0), 1)),
    ([["tfidf", {"Smooth": True, "Norm": "l2"}]], tfidf()),
    ([["tfidf", {"Smooth": True, "Norm": "l1", "Sublinear": True}]], tfidf(norm="l1", sublinear_tf=True)),
    ([["tfidf", {"Smooth": True, "Norm": "none"}]], tfidf(norm=None)),
    ([["ppmi", {"Shift": 1, "Smoothing": 1}]], ppmi(1, 1)),
    ([["ppmi", {"Shift": 2, "Smoothing": 0.75}]], ppmi(2, 0.75)),
]
with open(os.path.join(os.path.dirname(__file__), "scalings.json"), "w") as f:
    json.dump({"fit": fit.tolist(), "other": other.tolist(), "cases": [
        {"scale": [{"kind": k, "part": p} for k, p in scale], "want": np.round(want, 9).tolist()} for scale, want in cases]}, f)
    f.write("\n")
