#!/usr/bin/python3
"""Error at equal sparsity on data that chose no setting: models of parts beside sparse coding with l1 codes.

    left_out.py TESSERA OUT --data FOLDER --pictures DIR --letters DIR [--models NAME,...] [--only NAME,...] [--seeds 1,2,3]
        [--draw 1] [--threads 1] [--fronts FILE.png]

TESSERA is the program. FOLDER holds the folders fashion-mnist and mnist, DIR the pictures of patches.py and the letters of glyphs.py. OUT gets the
data as NumPy files, the runs, the other side's atoms, and results.jsonl; lines that it has are not computed again. At the end the tables are printed.

Data: 12 x 12 patches of pictures (fitted: the left halves, measured: the right halves), letters (other fonts), MNIST, Fashion-MNIST, and two small
dictionaries of 64 pixels with 64 and 32 planted atoms. At most 9,000 images are fitted and 1,000 held out (1,350 and 150 of the small ones).

Ours: the models NAME, by default `parts-relative` and the settings of left_out.toml; data set and units are all that differs between data sets. A
model's error has some sparsity, the mean Hoyer sparseness of the contributions of the units to an image. Theirs: non-negative sparse coding (Hoyer
2002: l1 codes by FISTA, atoms of length 1 by non-negative least squares in turn, started from scikit-learn's NMF) with five weights of the l1 norm,
and scikit-learn's NMF itself, fitted to nine tenths of the same images. Their codes are the best with an l1 penalty (FISTA) at our sparsity, or
without a penalty if they are sparser then; the penalty's weight is interpolated between 30 weights. The atoms that are compared are those of the
least error on the held-out images. The interval of a ratio is that of the paired bootstrap over the test images, for one training and one fit.
The strict ratio is to the least error that any two of their codes, of any fit, have at our sparsity, each for a random share of the test images, on
which they are chosen in their favour. Between two weights this is a straight line, which is above a convex curve: a finer grid raises the ratio.

Leave one out: for every data set, the settings with the least geometric mean of the ratios (our error / theirs) on the held-out images of the other
data sets and all seeds; the ratio of these settings on the test images of this one. "How often" is the uncertainty of this choice: of 1,000 choices
on test images of the other data sets, as many as are held out, drawn with replacement, the share that each of the settings wins.
"""
import argparse
import gzip
import itertools
import json
import math
import os
import statistics
import subprocess
import tomllib
import warnings

import numpy as np
from sklearn.decomposition import NMF

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = {"patches": 100, "letters": 100, "mnist": 100, "fashion-mnist": 100, "small, 64 atoms": 64, "small, 32 atoms": 32}


def idx(path, count):
    raw = gzip.open(path).read()
    return np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 28, 28)[:count]


def patches(pictures, count, right, rng):
    from PIL import Image

    images = []
    for name in sorted(os.listdir(pictures)):
        image = np.asarray(Image.open(os.path.join(pictures, name)).convert("L"))
        half = image.shape[1] // 2
        images.append(image[:, half:] if right else image[:, :half])
    out = np.empty((count, 12, 12), np.uint8)
    for i in range(count):
        image = images[rng.integers(len(images))]
        y, x = rng.integers(image.shape[0] - 11), rng.integers(image.shape[1] - 11)
        out[i] = image[y : y + 12, x : x + 12]
    return out


def planted(atoms, count, rng, parts=None):
    """Images of 8 x 8 pixels: every atom has 6 random pixels and is in a seventh of the images with its own brightness there; noise of 0.02."""
    if parts is None:
        parts = np.zeros((atoms, 64))
        for row in parts:
            row[rng.choice(64, 6, replace=False)] = rng.uniform(0.3, 1, 6)
    codes = (rng.random((count, atoms)) < 1 / 7) * rng.uniform(0.2, 1, (count, atoms))
    images = np.clip(codes @ parts / 6 + rng.normal(0, 0.02, (count, 64)), 0, 1)
    return images.astype(np.float32).reshape(count, 8, 8), parts


def made(o, name):
    file = os.path.join(o.out, "data", name.replace(", ", "-").replace(" ", "-"))
    if not os.path.exists(file + ".test.npy"):
        os.makedirs(os.path.dirname(file), exist_ok=True)
        rng = np.random.default_rng(o.draw)
        if name == "patches":
            fit, test = patches(o.pictures, 10000, False, rng), patches(o.pictures, 2000, True, rng)
        elif name == "letters":
            fit, test = idx(f"{o.letters}/train-images.idx.gz", None), idx(f"{o.letters}/test-images.idx.gz", None)
            fit, test = fit[rng.permutation(len(fit))[:10000]], test[rng.permutation(len(test))[:2000]]
        elif name.startswith("small"):
            fit, parts = planted(UNITS[name], 1500, rng)
            test, _ = planted(UNITS[name], 1000, rng, parts)
        else:
            fit, test = (idx(f"{o.data}/{name}/{split}-images-idx3-ubyte.gz", n) for split, n in (("train", 10000), ("t10k", 2000)))
        np.save(file + ".fit.npy", fit)
        np.save(file + ".test.npy", test)
    return file


def arrays(file):
    """The images that are fitted or held out, and the test images, as rows."""
    load = lambda end: np.load(file + end).astype(np.float64) / (255 if np.load(file + end, mmap_mode="r").dtype == np.uint8 else 1)
    fit, test = load(".fit.npy"), load(".test.npy")
    return fit.reshape(len(fit), -1), test.reshape(len(test), -1)


def hoyer(rows):
    k = rows.shape[1]
    l1, l2 = np.abs(rows).sum(1), np.linalg.norm(rows, axis=1)
    return np.where(l2 > 0, (np.sqrt(k) - l1 / np.maximum(l2, 1e-300)) / (np.sqrt(k) - 1), 0).mean()


def fista(x, w, weight, steps, h=None):
    gram, xw = w @ w.T, x @ w.T
    size = 1 / np.linalg.eigvalsh(gram)[-1]
    h = np.zeros((len(x), len(w)), x.dtype) if h is None else h
    y, t = h, 1.0
    for _ in range(steps):
        after = np.maximum(0, y - size * (y @ gram - xw + weight))
        next = (1 + math.sqrt(1 + 4 * t * t)) / 2  # not np.sqrt: NumPy 2 would turn float32 arrays into float64
        y, h, t = after + (t - 1) / next * (after - h), after, next
    return h


def unit(w):
    return w / np.maximum(np.linalg.norm(w, axis=1, keepdims=True), 1e-12)


def curve(x, w, steps=150):
    """Weight, sparseness and mean squared error of l1 codes of x, from no penalty to the weight with the sparsest codes. With still larger weights
    more and more codes are 0, whose sparseness counts as 0."""
    points, h = [], None
    for weight in [0.0, *(float((x @ w.T).max()) * np.geomspace(1e-5, 0.5, 29))]:
        h = fista(x, w, weight, steps, h)
        points.append((weight, hoyer(h), ((h @ w - x) ** 2).mean()))
    return points[: 1 + max(range(len(points)), key=lambda i: points[i][1])]


def at(points, sparseness):
    """The point of the curve with this sparseness, or the nearest end."""
    if points[0][1] >= sparseness:
        return points[0]
    for low, high in zip(points, points[1:]):
        if low[1] < sparseness <= high[1]:
            t = (sparseness - low[1]) / (high[1] - low[1])
            return [a + (b - a) * t for a, b in zip(low, high)]
    return points[-1]


def mixed(curves, sparseness):
    """The least error at this sparseness if a random share of the images is encoded as at one point and the others as at another: the lower convex hull
    of all curves. Sparseness and error are means over the images, so shares reach every point between two."""
    points = [(h, e) for points in curves for _, h, e in points]
    after = [p for p in points if p[0] >= sparseness]
    between = lambda a, b: a[1] + (b[1] - a[1]) * (sparseness - a[0]) / (b[0] - a[0])
    return min([p[1] for p in after] + [between(a, b) for a in points if a[0] < sparseness for b in after])


def sparse_coding(x, start, weight, rounds=60):
    w, h = unit(start).astype(x.dtype), None
    for _ in range(rounds):
        h = fista(x, w, weight, 30, h)
        a, b = h.T @ h, h.T @ x
        for _ in range(3):
            for k in range(len(w)):
                if a[k, k] > 1e-12:
                    w[k] = np.maximum(0, w[k] + (b[k] - a[k] @ w) / a[k, k])
                    w[k] /= max(np.linalg.norm(w[k]), 1e-12)
    return w


def theirs(fit, k, seed):
    nmf = NMF(k, init="nndsvda", max_iter=300, tol=1e-5, random_state=seed).fit(fit).components_
    yield "NMF", unit(nmf)
    rng = np.random.default_rng(seed)
    scale = np.sqrt((fit**2).sum(1).mean())
    for share in (0.001, 0.003, 0.01, 0.03, 0.1):
        yield f"sparse coding {share}", sparse_coding(fit, nmf + 1e-3 * rng.random(nmf.shape) * nmf.max(), share * scale)


def their_fits(o, name, file, seed):
    """By kind: atoms, the curve of the held-out images and that of the test images. The fits are in single precision, which takes a third of the time."""
    kept_in = os.path.join(o.out, "theirs", f"{os.path.basename(file)}-{seed}.json")
    if not os.path.exists(kept_in):
        os.makedirs(os.path.dirname(kept_in), exist_ok=True)
        fit, test = arrays(file)
        order = np.random.default_rng(seed).permutation(len(fit))
        held, kept = fit[order[: len(fit) // 10]], fit[order[len(fit) // 10 :]]
        fits = {kind: (w.tolist(), curve(held, w), curve(test, w)) for kind, w in theirs(kept.astype(np.float32), UNITS[name], seed)}
        with open(kept_in, "w") as f:
            json.dump(fits, f)
    return json.load(open(kept_in))


def place(o, model, file, seed):
    return os.path.join(o.out, "runs", f"{model}-{os.path.basename(file)}-{seed}")


def trained(o, model, name, file, seed):
    run = place(o, model, file, seed)
    if not os.path.exists(os.path.join(run, "model.safetensors")):
        subprocess.run([o.tessera, "train", model, "-f", os.path.join(HERE, "left_out.toml"), "--seed", str(seed), "--threads", str(o.threads), "--out", run,
                        "--quiet", "--set", f'dataset={{name="npy",images="{file}.fit.npy",test_images="{file}.test.npy",validation=0.1}}',
                        "--set", f"encoder.0.layers.0.units={UNITS[name]}"], check=True, stdout=subprocess.DEVNULL)
    return run


def measured(o, run, split, metrics):
    out = subprocess.run([o.tessera, "eval", run, "--json", "--split", split, "--threads", str(o.threads), "--metrics", metrics], check=True, capture_output=True)
    return json.loads(out.stdout)


def outputs(o, run, file):
    """The reconstructions of the test images, as rows."""
    out = os.path.join(run, "test-outputs.npy")
    subprocess.run([o.tessera, "encode", run, "--in", file + ".test.npy", "--value", "output", "--out", out, "--threads", str(o.threads)], check=True,
                   capture_output=True)
    y = np.load(out).astype(np.float64)
    return y.reshape(len(y), -1)


def interval(a, b, resamples=2000):
    """95 % interval of mean(a) / mean(b) over the images: the percentile bootstrap, paired by image."""
    rng = np.random.default_rng(1)
    drawn = [a[i].mean() / b[i].mean() for i in (rng.integers(len(a), size=len(a)) for _ in range(resamples))]
    return np.quantile(drawn, [0.025, 0.975]).tolist()


def row(o, model, name, seed):
    file = made(o, name)
    run = trained(o, model, name, file, seed)
    validation, test = measured(o, run, "validation", "mse,hoyer_contribution"), measured(o, run, "test", "mse,hoyer_contribution,l0,max_approx,amortisation_share")
    fits = their_fits(o, name, file, seed)
    held = {kind: at(fit[1], validation["hoyer_contribution"])[2] for kind, fit in fits.items()}
    best = min(held, key=held.get)
    x, y, w = arrays(file)[1], outputs(o, run, file), np.array(fits[best][0])
    codes = fista(x, w, at(fits[best][2], test["hoyer_contribution"])[0], 400)
    mine, other = ((y - x) ** 2).mean(1), ((codes @ w - x) ** 2).mean(1)
    np.save(os.path.join(run, "errors.npy"), [mine, other])
    cut = lambda v: ((np.clip(v, 0, x.max()) - x) ** 2).mean()
    low, high = interval(mine, other)
    return {"model": model, "data": name, "seed": seed, "validation mse": validation["mse"], "validation ratio": validation["mse"] / held[best], "mse": mine.mean(),
            "hoyer": test["hoyer_contribution"], "l0": test["l0"], "max_approx": test["max_approx"], "amortisation_share": test["amortisation_share"],
            "their atoms": best, "their mse": other.mean(), "their hoyer": hoyer(codes), "ratio": mine.mean() / other.mean(), "low": low, "high": high,
            "mse, cut to the range": cut(y), "ratio, cut to the range": cut(y) / cut(codes @ w)}


def geometric(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def ratios(rows, model, key, names):
    return [r[key] for r in rows if r["model"] == model and r["data"] in names]


def often(o, rows, models, resamples=1000):
    """By data set that is left out: how often each of the models is chosen if as many test images of the others as are held out are drawn instead."""
    rng, counts = np.random.default_rng(1), {name: dict.fromkeys(models, 0) for name in {r["data"] for r in rows}}
    errors, held = {}, {name: len(np.load(made(o, name) + ".fit.npy", mmap_mode="r")) // 10 for name in counts}
    for r in rows:
        errors[r["model"], r["data"], r["seed"]] = np.load(os.path.join(place(o, r["model"], made(o, r["data"]), r["seed"]), "errors.npy"))
    for _ in range(resamples):
        logs = {}
        for (model, name, seed), e in sorted(errors.items(), key=lambda item: item[0][1:]):
            if (name, seed) not in logs:
                drawn = rng.integers(e.shape[1], size=held[name])  # the same images for all models
                logs[name, seed] = {}
            mine, other = e[:, drawn].mean(1)
            logs[name, seed][model] = math.log(mine / other)
        for left in counts:
            means = {m: statistics.fmean(by[m] for (name, _), by in logs.items() if name != left) for m in models}
            counts[left][min(means, key=means.get)] += 1
    return {name: {m: n / resamples for m, n in by.items()} for name, by in counts.items()}


def strict(o, r):
    """The ratio to the least error that any mixture of two codes of the other side has at this sparseness, chosen on the test images in its favour."""
    return r["mse"] / mixed([fit[2] for fit in their_fits(o, r["data"], made(o, r["data"]), r["seed"]).values()], r["hoyer"])


def tables(o, rows):
    models, names = list(dict.fromkeys(r["model"] for r in rows)), [n for n in UNITS if any(r["data"] == n for r in rows)]
    if not models:
        return
    print("\n| data | model | seed | mse | hoyer | l1 codes: mse | hoyer | ratio | 95 % | strict ratio | ratio, cut | max_approx |\n" + "| --- " * 12 + "|")
    for name, model in itertools.product(names, models):
        for r in (r for r in rows if (r["data"], r["model"]) == (name, model)):
            print(f"| {name} | `{model}` | {r['seed']} | {r['mse']:.4g} | {r['hoyer']:.3f} | {r['their mse']:.4g} | {r['their hoyer']:.3f} | {r['ratio']:.3f} | "
                  f"[{r['low']:.3f}, {r['high']:.3f}] | {strict(o, r):.3f} | {r['ratio, cut to the range']:.3f} | {r['max_approx']:.4f} |")
    complete = set.intersection(*({(r["data"], r["seed"]) for r in rows if r["model"] == m} for m in models))
    rows = [r for r in rows if (r["data"], r["seed"]) in complete]
    names = [n for n in names if any(r["data"] == n for r in rows)]
    print("\nLeave one out, of the data and seeds that all models have:\n")
    print("| left out | chosen on the others | their geometric mean, by settings | how often | ratio on the test images, by seed | mean |\n" + "| --- " * 6 + "|")
    shares = often(o, rows, models) if len(names) > 1 else {}
    for name in names:
        means = {m: geometric(ratios(rows, m, "validation ratio", set(names) - {name})) for m in models} if len(names) > 1 else {}
        if means:
            chosen = min(means, key=means.get)
            got = ratios(rows, chosen, "ratio", {name})
            by_model = lambda values: ", ".join(f"{values[m]:.3f}" for m in models)
            print(f"| {name} | `{chosen}` | {by_model(means)} | {by_model(shares[name])} | " + ", ".join(f"{v:.3f}" for v in got) + f" | {statistics.fmean(got):.3f} |")


def fronts(o, rows, out):
    """Test error over the sparseness of the contributions: l1 codes of the other side's atoms as lines, from no penalty on, the models as points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names, models = [n for n in UNITS if any(r["data"] == n for r in rows)], list(dict.fromkeys(r["model"] for r in rows))
    columns = min(3, len(names))
    figure, axes = plt.subplots(-(-len(names) // columns), columns, figsize=(3.8 * columns, 3.4 * -(-len(names) // columns) + 0.4), squeeze=False)
    for ax in axes.flat[len(names):]:
        ax.axis("off")
    for ax, name in zip(axes.flat, names):
        for seed in sorted({r["seed"] for r in rows if r["data"] == name}):
            for kind, fit in their_fits(o, name, made(o, name), seed).items():
                points = [(h, e) for _, h, e in fit[2]]
                ax.plot(*zip(*points), "-", lw=1, color="0.1" if kind == "NMF" else "0.6", label="l1 codes of NMF" if kind == "NMF" else "of sparse coding")
        here = [r for r in rows if r["data"] == name]
        for model, colour, marker in zip(models, ["#0072b2", "#d55e00", "#009e73", "#cc79a7"], "s^Dv"):
            ax.plot([r["hoyer"] for r in here if r["model"] == model], [r["mse"] for r in here if r["model"] == model], marker, color=colour, ms=5, label=model)
        low, high = min(r["hoyer"] for r in here), max(r["hoyer"] for r in here)
        curves = [fit[2] for fit in their_fits(o, name, made(o, name), here[0]["seed"]).values()]
        grid = np.linspace(low - 0.08, min(high + 0.08, max(p[1] for points in curves for p in points)), 60)
        ax.plot(grid, [mixed(curves, at) for at in grid], "--", lw=1, color="0.4", label="any two of these")
        ax.set(title=name, xlabel="hoyer_contribution", xlim=(low - 0.08, high + 0.08), ylim=(0, 1.3 * max(*(r["mse"] for r in here), *(mixed(curves, r["hoyer"]) for r in here))))
        ax.ticklabel_format(axis="y", scilimits=(-3, 3))
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
        for side in ["top", "right"]:
            ax.spines[side].set_visible(False)
    for ax in axes[:, 0]:
        ax.set_ylabel("mse on the test images")
    handles = {label: handle for handle, label in zip(*axes[0][0].get_legend_handles_labels())}
    figure.legend(handles.values(), handles, loc="lower center", ncol=6, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(out, dpi=80)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tessera")
    p.add_argument("out")
    p.add_argument("--data", required=True)
    p.add_argument("--pictures", required=True)
    p.add_argument("--letters", required=True)
    with open(os.path.join(HERE, "left_out.toml"), "rb") as f:
        p.add_argument("--models", default=",".join(["parts-relative", *tomllib.load(f)["model"]]))
    p.add_argument("--only", default=",".join(n.replace(", ", " ") for n in UNITS))
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--draw", type=int, default=1, help="seed of the data: other images, and other planted atoms; needs another OUT")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--fronts", metavar="FILE.png", help="also draw test error over sparseness")
    o = p.parse_args()
    os.makedirs(o.out, exist_ok=True)
    results = os.path.join(o.out, "results.jsonl")
    rows = [json.loads(line) for line in open(results)] if os.path.exists(results) else []
    for seed, name, model in itertools.product(map(int, o.seeds.split(",")), UNITS, o.models.split(",")):
        if name.replace(", ", " ") not in o.only.split(",") or any((r["model"], r["data"], r["seed"]) == (model, name, seed) for r in rows):
            continue
        rows.append(row(o, model, name, seed))
        with open(results, "a") as f:
            f.write(json.dumps(rows[-1]) + "\n")
        print(json.dumps(rows[-1]), flush=True)
    shown = [r for r in rows if r["model"] in o.models.split(",")]
    tables(o, shown)
    if o.fronts:
        fronts(o, shown, o.fronts)


if __name__ == "__main__":
    main()
