#!/usr/bin/python3
"""Parts of kinds of data on which nothing was chosen, beside scikit-learn: docs/reproduction/unseen.csv.

    unseen.py TESSERA FOLDER [SEEDS]

TESSERA is the program; FOLDER keeps data, runs and results.jsonl, so that an interrupted run goes on. Twelve kinds of images of 18x18 pixels with 20
parts (dense ones and few: 24), 900 images (few: 120), and three kinds of vectors with 12 parts, of each SEEDS (5) data sets with parts of their own; as
many units as parts, and 16 more. A part is found if its atom has a cosine of at least 0.9, matched one to one.
"""
import csv
import json
import pathlib
import shutil
import subprocess
import sys
import warnings

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.stats import t, ttest_rel
from sklearn.decomposition import NMF, MiniBatchDictionaryLearning

from identifiability import found, weights
from sums import SIDE, XX, YY, distinct, save, vectors

warnings.filterwarnings("ignore")


def polygon(draw):
    """A filled triangle."""
    while True:
        a, b, c = draw.uniform(1, SIDE - 1, (3, 2))
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        if 24 < abs(area) < 120:
            break
    sides = [((q[0] - p[0]) * (YY - p[1]) - (q[1] - p[1]) * (XX - p[0])) * np.sign(area) for p, q in ((a, b), (b, c), (c, a))]
    return gaussian_filter(np.minimum.reduce(sides).clip(0).astype(bool).astype(float), 0.6)


def grating(draw):
    """A half-wave rectified grating under a gaussian window."""
    c, angle, wave, phase = draw.uniform(3, SIDE - 3, 2), draw.uniform(0, np.pi), draw.uniform(2.5, 6), draw.uniform(0, 2 * np.pi)
    along = (XX - c[0]) * np.cos(angle) + (YY - c[1]) * np.sin(angle)
    return (np.cos(2 * np.pi * along / wave + phase) * np.exp(-np.hypot(XX - c[0], YY - c[1])**2 / 2 / draw.uniform(2, 3.5)**2)).clip(0)


def glyph(draw):
    """Three strokes from one point to the next."""
    image, p = np.zeros((SIDE, SIDE)), draw.integers(2, SIDE - 2, 2)
    for _ in range(3):
        q = np.clip(p + draw.integers(-7, 8, 2), 1, SIDE - 2)
        for u in np.linspace(0, 1, 40):
            image[tuple(np.round(p + u * (q - p)).astype(int))] = 1
        p = q
    return gaussian_filter(image, 0.5)


def corner(draw):
    """Two arms at a right angle."""
    image, (y, x), n = np.zeros((SIDE, SIDE)), draw.integers(5, SIDE - 5, 2), draw.integers(3, 6)
    image[y, min(x, x + (s := draw.choice([-n, n]))):max(x, x + s) + 1] = 1
    image[min(y, y + (s := draw.choice([-n, n]))):max(y, y + s) + 1, x] = 1
    return gaussian_filter(image, 0.6)


def cloud(draw):
    """A smooth part over a third of the image."""
    image = gaussian_filter(draw.standard_normal((SIDE, SIDE)), 2.5, mode="wrap")
    image = (image - np.quantile(image, 0.6)).clip(0)
    return image / image.max()


def spots(draw):
    """Three gaussians."""
    image = np.zeros((SIDE, SIDE))
    for c in draw.uniform(2, SIDE - 2, (3, 2)):
        image += np.exp(-((XX - c[0])**2 + (YY - c[1])**2) / 2 / draw.uniform(0.8, 1.6)**2)
    return image / image.max()


def ellipse(draw):
    """The outline of an ellipse."""
    c, r, angle = draw.uniform(5, SIDE - 5, 2), draw.uniform(2, 6, 2), draw.uniform(0, np.pi)
    a = ((XX - c[0]) * np.cos(angle) + (YY - c[1]) * np.sin(angle)) / r[0]
    b = ((YY - c[1]) * np.cos(angle) - (XX - c[0]) * np.sin(angle)) / r[1]
    return np.exp(-(np.hypot(a, b) - 1)**2 * r.min()**2 / 0.8)


def bar(draw):
    """A bar at any angle."""
    c, angle = draw.uniform(4, SIDE - 4, 2), draw.uniform(0, np.pi)
    along, across = (XX - c[0]) * np.cos(angle) + (YY - c[1]) * np.sin(angle), (YY - c[1]) * np.cos(angle) - (XX - c[0]) * np.sin(angle)
    return 1 / (1 + np.exp(4 * (np.abs(along) - draw.uniform(3, 7)))) / (1 + np.exp(4 * (np.abs(across) - draw.uniform(0.5, 1.2))))


# name: shape of a part, and what is special about the sums
IMAGES = {
    "triangles": (polygon, {}),
    "gratings, noise 0.02": (grating, {"noise": 0.02}),
    "glyphs, noise 0.01": (glyph, {"noise": 0.01}),
    "triangles, frequencies 40 to 4 %": (polygon, {"rare": True}),
    "corners, in pairs, noise 0.01": (corner, {"pairs": True, "noise": 0.01}),
    "clouds, exposure varies": (cloud, {"gain": True}),
    "spots, clipped, noise 0.02": (spots, {"clip": True, "noise": 0.02}),
    "ellipses that hide each other": (ellipse, {"hide": True}),
    "bars on a gradient": (bar, {"ground": True, "noise": 0.01}),
    "glyphs, noise 0.1": (glyph, {"noise": 0.1}),
    "bars, 120 images, noise 0.01": (bar, {"n": 120, "k": 24, "noise": 0.01}),
    "spots, density 0.6, noise 0.005": (spots, {"k": 24, "density": 0.6, "noise": 0.005}),
}
VECTORS = ["topics", "genes", "spectra"]


def images(kind, seed, m=300):
    shape, options = IMAGES[kind]
    n, k = options.get("n", 900), options.get("k", 20)
    draw = np.random.default_rng([seed, list(IMAGES).index(kind), 2811])
    parts = distinct(shape, k, draw).reshape(k, -1)
    chance = np.full(k, options.get("density", 0.15))
    if "rare" in options:
        chance = 0.4 * 10 ** -np.linspace(0, 1, k)
    used = draw.random((n + m, k)) < chance
    if "pairs" in options:  # a part comes with its neighbour in 85 % of the images
        follow = draw.random((n + m, k // 2)) < 0.85
        used[:, 1::2] = np.where(follow, used[:, ::2], used[:, 1::2])
    codes = used * draw.gamma(3, 1 / 3.0, (n + m, k))
    if "gain" in options:
        codes = codes * np.exp(0.7 * draw.standard_normal((n + m, 1)))
    x = codes @ parts
    if "hide" in options:  # the brightest part of a pixel is seen
        x = np.max(codes[:, :, None] * parts[None], axis=1)
    if "ground" in options:
        x = x + draw.uniform(0, 0.6, (n + m, 1)) * (YY / SIDE).reshape(1, -1)
    x = x / x.max()
    if "clip" in options:
        x = (x / np.quantile(x, 0.96)).clip(0, 1)
    x = (x + options.get("noise", 0) * draw.standard_normal(x.shape)).clip(0)
    x = (x / x.max()).reshape(n + m, SIDE, SIDE)
    return x[:n], x[n:], parts


def ours(model):
    def fit(place, units, seed):
        run = f"{place}-{model}-{units}"
        subprocess.run([TESSERA, "train", model, "--threads", "1", "--seed", str(seed), "--quiet", "--force", "--out", run, "--set",
                        f'dataset={{file="{place}-train.npy", test="{place}-test.npy", validation=0.1}}', "--set",
                        f"encoder.0.layers.0.units={units}"], check=True, capture_output=True)
        atoms = weights(run + "/model.safetensors")
        shutil.rmtree(run)
        return atoms
    return fit


def theirs(make):
    def fit(place, units, seed):
        x = np.load(f"{place}-train.npy").astype(float)
        x = x.reshape(len(x), -1)
        return make(units, seed).fit(x / np.sqrt((x**2).sum(1).mean())).components_
    return fit


def nmf(init, **keys):
    return theirs(lambda k, s: NMF(k, init=init, max_iter=400, random_state=s, **keys))


def mbdl(alpha):
    return theirs(lambda k, s: MiniBatchDictionaryLearning(k, alpha=alpha, n_iter=400, batch_size=64, fit_algorithm="cd", positive_code=True,
                                                           positive_dict=True, transform_algorithm="lasso_cd", random_state=s))


OWN = {"parts-relative": ours("parts-relative"), "parts-splitting": ours("parts-splitting"), "parts-vectors": ours("parts-vectors")}
OTHERS = {"NMF nndsvda": nmf("nndsvda"), "NMF random": nmf("random"), "NMF l1 2e-4": nmf("nndsvda", alpha_W=2e-4, alpha_H=0, l1_ratio=1),
          "NMF l1 1e-3": nmf("nndsvda", alpha_W=1e-3, alpha_H=0, l1_ratio=1), "MBDL 0.02": mbdl(0.02), "MBDL 0.1": mbdl(0.1)}


def jobs(seeds):
    for seed in range(1, seeds + 1):
        for kind in [*IMAGES, *VECTORS]:
            own = ["parts-vectors"] if kind in VECTORS else ["parts-relative", "parts-splitting"]
            for method in [*own, *OTHERS]:
                for extra in (0, 16):
                    yield kind, seed, extra, method


def summary(results, file):
    """A row for each kind and number of units: means, and the better of ours less the best of theirs, with half of its 95 % interval of t."""
    with open(file, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["data", "parts", "spare units", "data sets", *OWN, *OTHERS, "best of scikit-learn", "parts-relative or parts-vectors less the best",
                      "half of the 95 % interval", "p", "parts-splitting less the best", "half of the 95 % interval", "p"])
        for kind in [*IMAGES, *VECTORS]:
            for extra in (0, 16):
                rows = {m: {r["seed"]: r for r in results if (r["data"], r["extra"], r["method"]) == (kind, extra, m)} for m in [*OWN, *OTHERS]}
                seeds = sorted(set.intersection(*(set(rows[m]) for m in OTHERS)))
                if len(seeds) < 2:
                    continue
                values = {m: np.array([rows[m][s]["found"] for s in seeds if s in rows[m]], float) for m in rows}
                best = max(OTHERS, key=lambda m: values[m].mean())
                line = [kind, rows[best][seeds[0]]["parts"], extra, len(seeds), *(f"{values[m].mean():.1f}" if len(values[m]) else "" for m in values), best]
                for m in ("parts-vectors" if kind in VECTORS else "parts-relative", "parts-splitting"):
                    if len(values[m]) < len(seeds):
                        line += ["", "", ""]
                        continue
                    d = values[m] - values[best]
                    half = t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / len(d)**0.5
                    line += [f"{d.mean():.1f}", f"{half:.1f}", f"{ttest_rel(values[m], values[best]).pvalue:.3f}" if d.std() else ""]
                out.writerow(line)


if __name__ == "__main__":
    TESSERA, folder, seeds = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 5
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "results.jsonl"
    results = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    have = {(r["data"], r["seed"], r["extra"], r["method"]) for r in results}
    for job in jobs(seeds):
        if job in have:
            continue
        kind, seed, extra, method = job
        place = folder / f"{[*IMAGES, *VECTORS].index(kind)}.{seed}"
        if not place.with_name(place.name + "-parts.npy").exists():
            save(folder, place.name, *(vectors(kind, 40 + seed) if kind in VECTORS else images(kind, seed)))
        parts = np.load(f"{place}-parts.npy")
        atoms = {**OWN, **OTHERS}[method](place, len(parts) + extra, seed)
        results.append({"data": kind, "seed": seed, "extra": extra, "method": method, "parts": len(parts), "found": found(atoms, parts)})
        with log.open("a") as f:
            f.write(json.dumps(results[-1]) + "\n")
        summary(results, folder / "unseen.csv")
