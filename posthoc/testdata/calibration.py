"""Writes calibration.json: calibrations by SciPy and scikit-learn for the tests of package posthoc. Run: python3 calibration.py"""
import json
import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

out = []
for seed, n, k, sharp in [(1, 300, 2, 4.0), (2, 500, 5, 3.0), (3, 400, 10, 0.4)]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n)
    z = rng.normal(size=(n, k))
    z[np.arange(n), labels] += 1
    z = (sharp * z + rng.normal(size=k)).astype(np.float32).round(3)
    x = z.astype(np.float64)
    nll = lambda a, b: -log_softmax(a * x + b, axis=1)[np.arange(n), labels].mean()
    best = minimize_scalar(lambda t: nll(1 / t, 0), bounds=(1e-3, 1e3), method="bounded", options={"xatol": 1e-12})
    one = {"classes": k, "labels": labels.tolist(), "logits": z.ravel().tolist(), "temperature": best.x}
    if k == 2:
        d = x[:, 1] - x[:, 0]
        s = _SigmoidCalibration().fit(d, labels)
        p = s.predict(d)
        one["platt"] = np.stack([1 - p, p], 1).ravel().tolist()
    else:
        r = minimize(lambda v: nll(v[:k], v[k:]), np.r_[np.ones(k), np.zeros(k)], method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
        one["platt"] = softmax(r.x[:k] * x + r.x[k:], axis=1).ravel().tolist()
        one["platt_nll"] = r.fun
    p, fresh = softmax(x, axis=1), softmax(rng.normal(size=(50, k)), axis=1)
    g = np.stack([IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p[:, j], labels == j).predict(fresh[:, j]) for j in range(k)], 1)
    one["fresh"], one["isotonic"] = fresh.ravel().tolist(), g.ravel().tolist()
    out.append(one)
rng = np.random.default_rng(9)
x = rng.integers(0, 12, 60) / 4  # ties
y = np.sin(x) + rng.normal(size=60)
grid = np.linspace(-1, 4, 101)
ties = IsotonicRegression(out_of_bounds="clip").fit(x, y).predict(grid)
json.dump({"cases": out, "x": x.tolist(), "y": y.tolist(), "grid": grid.tolist(), "ties": ties.tolist()}, open("calibration.json", "w"))
