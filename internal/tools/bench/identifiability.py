#!/usr/bin/python3
"""How many true parts are found, one to one at a cosine of 0.9? The tables of docs/reproduction/identifiability.md.

    identifiability.py TESSERA PLANTED OUT [JOBS]

TESSERA is the program, PLANTED that of internal/tools/planted. OUT keeps the runs and results.jsonl; cells that it has are not computed again, whatever
declaration they are of. Lines of an older version, without the key features, are not read.
Seed s of `shapes` and `bars` has its own parts and images (seed 100 + s of the data set), and the run has seed s. JOBS (1) cells are
computed at once, each on one thread.
"""
import concurrent.futures as futures
import json
import os
import statistics
import struct
import subprocess
import sys
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls
from scipy.stats import t
from sklearn.decomposition import NMF, MiniBatchDictionaryLearning

warnings.filterwarnings("ignore")

SMALL = 'name="shapes",parts=16,height=14,width=14,count=500'
LARGE = 'name="shapes",parts=30,height=20,width=20,count=1000'
DATA = {  # name: keys of the data set, number of parts, a seed of its own?
    "sparse": (SMALL, 16, True),
    "dense (density 0.5)": (SMALL + ",density=0.5", 16, True),
    "overlapping (size 0.7, overlap 0.85)": (SMALL + ",size=0.7,overlap=0.85", 16, True),
    "correlated (0.6)": (SMALL + ",correlation=0.6", 16, True),
    "clipped": (SMALL + ",clipped=true", 16, True),
    "noisy (0.05)": (SMALL + ",noise=0.05", 16, True),
    "100 images": (SMALL.replace("count=500", "count=100"), 16, True),
    "one part in every image": (SMALL + ",always=1", 16, True),
    "one part in every image, overlapping": (SMALL + ",always=1,size=0.7,overlap=0.85", 16, True),
    "bars": ('name="bars"', 16, True),
    "swimmer": ('name="swimmer"', 17, False),
    "swimmer, noisy (0.2)": ('name="swimmer",noise=0.2', 17, True),
    "swimmer, thick": ('name="swimmer",thicken=1', 17, False),
    "30 parts, sparse": (LARGE, 30, True),
    "30 parts, dense (density 0.5)": (LARGE + ",density=0.5", 30, True),
    "30 parts, overlapping (size 0.7, overlap 0.85)": (LARGE + ",size=0.7,overlap=0.85", 30, True),
    "30 parts, clipped": (LARGE + ",clipped=true", 30, True),
}
SUMS = ["sparse", "one part in every image", "dense (density 0.5)", "overlapping (size 0.7, overlap 0.85)", "correlated (0.6)", "100 images", "swimmer"]  # the true codes are known
HERE = os.path.dirname(os.path.abspath(__file__))


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def found(atoms, parts, least=0.9):
    cosines = unit(parts) @ unit(atoms).T
    return int((cosines[linear_sum_assignment(-cosines)] >= least).sum())


def living(codes, atoms):
    """Units whose largest contribution is at least 1 % of the largest of any unit."""
    most = np.abs(codes).max(0) * np.linalg.norm(atoms, axis=1)
    return most >= 0.01 * most.max()


def activations(images, parts):
    """True codes: non-negative least squares on the true parts, exact for sums without noise of independent parts."""
    return np.array([nnls(parts.T, image)[0] for image in images])


def features(atoms, codes, alive, parts, truth, least=0.9):
    """What the unit of a found part does, as means over the found parts.

    correlation: of its code with the true one, but for parts that are in every image (the torso of the swimmer).
    between: its largest correlation with the code of another living unit.
    true: that of the true codes.
    copies: other living units whose atoms have a cosine of at least 0.7 with the part, and less with every other part (feature splitting).
    absorbed: share of the images with the part (at least a tenth of its largest true code) in which its unit is silent (below a twentieth of
    its largest code) and one other unit explains at least half of the part: the projection of its contribution on the part is at least half
    of the true code (feature absorption, after Chanin et al. 2024). The other unit may be a copy.
    """
    cosines = unit(parts) @ unit(atoms).T
    nearest = cosines.argmax(0)
    rows, columns = linear_sum_assignment(-cosines)
    units = np.where(alive)[0]
    among, true = correlations(codes[:, units]), correlations(truth)
    shares = parts @ atoms.T / (parts ** 2).sum(1)[:, None]
    values = []
    for k, u in zip(rows, columns):
        if cosines[k, u] < least or not alive[u]:
            continue
        others = units[units != u]
        present = truth[:, k] >= 0.1 * truth[:, k].max()
        silent = codes[:, u] < 0.05 * codes[:, u].max()
        explained = (codes[:, others] * shares[k, others] >= 0.5 * truth[:, k:k + 1]).any(1)
        values.append((correlations(np.stack([truth[:, k], codes[:, u]], 1))[0, 1] if true[k, k] else np.nan,
                       max(among[units == u][0][units != u], default=0), np.delete(true[k], k).max(),
                       ((cosines[k, others] >= 0.7) & (nearest[others] == k)).sum(), (present & silent & explained).sum() / present.sum()))
    return dict(zip(["correlation", "between", "true", "copies", "absorbed"], map(float, np.nanmean(values, axis=0)))) if values else None


def correlations(codes):
    """Correlations of the columns; 0, also with itself, of a column that is constant but for rounding errors."""
    centred = codes - codes.mean(0)
    norms = np.linalg.norm(centred, axis=0)
    centred /= np.where(norms > 1e-6 * np.linalg.norm(codes, axis=0), norms, np.inf)
    return centred.T @ centred


def weights(path):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name.endswith(".weight"):
            a, b = entry["data_offsets"]
            return np.frombuffer(raw[8 + size + a:8 + size + b], np.float32).reshape(entry["shape"]).T


def dataset(name, seed):
    keys, _, own = DATA[name]
    return "{" + keys + (f",seed={100 + seed}" if own else "") + "%s}"


def ours(model, path, where, name, units, seed):
    place = f"{where}/runs/{model}-{list(DATA).index(name)}-{units}-{seed}"
    subprocess.run([TESSERA, "train", model, "-f", HERE + "/identifiability.toml", "--threads", "1", "--seed", str(seed), "--quiet", "--force",
                    "--out", place, "--set", "dataset=" + dataset(name, seed) % ",validation=0.1", "--set", f"{path}={units}"],
                   check=True, capture_output=True)
    subprocess.run([TESSERA, "encode", place, "--threads", "1", "--in", planted(where, name, seed) + ".images.npy", "--out", place + ".codes.npy"],
                   check=True, capture_output=True)
    return weights(place + "/model.safetensors"), np.load(place + ".codes.npy").astype(float)


def theirs(make):
    def fit(where, name, units, seed):
        x = np.load(planted(where, name, seed) + ".images.npy")
        model = make(units, seed)
        codes = model.fit_transform(x.reshape(len(x), -1).astype(float))
        return model.components_, codes
    return fit


def spa(where, name, units, seed):
    """Successive projections (Araujo et al. 2001; Gillis and Vavasis 2014): the image of the largest norm is an atom, all images are projected onto
    its orthogonal complement, and so on; codes by non-negative least squares."""
    x = np.load(planted(where, name, seed) + ".images.npy")
    x = x.reshape(len(x), -1).astype(float)
    rest, atoms = x.copy(), []
    for _ in range(units):
        norms = (rest ** 2).sum(1)
        if norms.max() <= 1e-9 * (x ** 2).sum(1).max():
            break
        i = int(norms.argmax())
        atoms.append(x[i])
        u = rest[i] / np.linalg.norm(rest[i])
        rest = rest - np.outer(rest @ u, u)
    atoms = np.array(atoms)
    return atoms, activations(x, atoms)


def ksvd(where, name, units, seed, rounds=30):
    """Non-negative K-SVD, after Aharon, Elad and Bruckstein 2005: at most L units per image, then every atom and its codes by a non-negative
    approximation of rank one of what the other atoms leave; an atom that no image has becomes the image with the largest error. Unlike there, the
    units are chosen by non-negative orthogonal matching pursuit instead of basis pursuit, and the approximation starts from the present codes instead
    of the first singular vectors. L is the mean number of parts in an image, rounded up: those with at least a fifth of their largest code, since
    noise and saturation give small ones. A user does not know it. It need not be the best: with L + 2 there were 15 and 14 parts of the dense images instead of 13 and 13
    (16 units, seeds 1 and 2)."""
    random = np.random.default_rng(seed)
    x = np.load(planted(where, name, seed) + ".images.npy")
    x = x.reshape(len(x), -1).astype(float)
    truth = activations(x, true_parts(where, name, seed))
    most = int(np.ceil((truth >= 0.2 * truth.max(0)).sum(1).mean()))
    atoms = unit(x[random.choice(len(x), units, replace=len(x) < units)] + 0.01 * random.random((units, x.shape[1])))
    for _ in range(rounds):
        codes = pursuit(x, atoms, most)
        for u in range(units):
            used = codes[:, u] > 0
            if not used.any():
                atoms[u] = unit(x[((x - codes @ atoms) ** 2).sum(1).argmax()][None])[0]
                continue
            rest = x[used] - codes[used] @ atoms + np.outer(codes[used, u], atoms[u])
            code = codes[used, u]
            for _ in range(5):
                atom = np.maximum(code @ rest, 0)
                if not atom.any():
                    break
                atoms[u] = atom / np.linalg.norm(atom)
                code = np.maximum(rest @ atoms[u], 0)
            codes[used, u] = code
    return atoms, pursuit(x, atoms, most)


def pursuit(x, atoms, most):
    codes = np.zeros((len(x), len(atoms)))
    for i, image in enumerate(x):
        chosen, rest = [], image
        for _ in range(most):
            gain = atoms @ rest
            gain[chosen] = 0
            if gain.max() <= 1e-9:
                break
            chosen.append(int(gain.argmax()))
            code, _ = nnls(atoms[chosen].T, image)
            rest = image - code @ atoms[chosen]
        if chosen:
            codes[i, chosen] = code
    return codes


METHODS = {
    "`parts-relative`": lambda *a: ours("parts-relative", "encoder.0.layers.0.units", *a),
    "`parts-unrolled`": lambda *a: ours("shipped", "encoder.0.units", *a),
    "NMF, nndsvda": theirs(lambda k, s: NMF(k, init="nndsvda", max_iter=400, tol=1e-5, random_state=s)),
    "NMF, random": theirs(lambda k, s: NMF(k, init="random", max_iter=400, tol=1e-5, random_state=s)),
    "MBDL 0.02": theirs(lambda k, s: MiniBatchDictionaryLearning(k, alpha=0.02, n_iter=100, batch_size=100, fit_algorithm="cd",
                        positive_code=True, positive_dict=True, transform_algorithm="lasso_cd", random_state=s)),
    "NN-K-SVD": ksvd,
    "SPA": spa,
}


def planted(where, name, seed):
    out = f"{where}/data/{list(DATA).index(name)}-{seed}"
    if not os.path.exists(out + ".parts.npy"):
        subprocess.run([PLANTED, dataset(name, seed) % "", out], check=True)
    return out


def true_parts(where, name, seed):
    parts = np.load(planted(where, name, seed) + ".parts.npy")
    return parts.reshape(len(parts), -1).astype(float)


def cell(job):
    method, name, extra, seed = job
    parts = true_parts(OUT, name, seed)
    atoms, codes = METHODS[method](OUT, name, len(parts) + extra, seed)
    alive = living(codes, atoms)
    result = {"method": method, "data": name, "extra": extra, "seed": seed, "found": found(atoms, parts), "living": int(alive.sum())}
    if name in SUMS:
        images = np.load(planted(OUT, name, seed) + ".images.npy")
        result["features"] = features(atoms, codes, alive, parts, activations(images.reshape(len(images), -1).astype(float), parts))
    return result


def table(results, extra):
    lines = ["| images | parts | " + " | ".join(METHODS) + " |", "| --- " * (2 + len(METHODS)) + "|"]
    for name, (_, parts, _) in DATA.items():
        row, best = [], 0
        for method in METHODS:
            got = [r for r in results if (r["method"], r["data"], r["extra"]) == (method, name, extra)]
            if not got:
                row.append("")
                continue
            values = [r["found"] for r in got]
            mean, n = statistics.mean(values), len(values)
            half = t.ppf(0.975, n - 1) * statistics.stdev(values) / n ** 0.5 if n > 1 else float("nan")
            row.append(f"{mean:.1f} ± {half:.1f} ({min(values)}), {statistics.mean(r['living'] for r in got):.0f} used; {n}")
        if any(row):
            lines.append(f"| {name} | {parts} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def features_table(results, extra):
    """Means over the seeds in which a part is found of what `features` returns, and the number of these seeds."""
    lines = ["| images | true | " + " | ".join(METHODS) + " |", "| --- " * (2 + len(METHODS)) + "|"]
    for name in SUMS:
        row, true = [], []
        for method in METHODS:
            got = [r["features"] for r in results if (r["method"], r["data"], r["extra"]) == (method, name, extra) and r.get("features")]
            mean = {key: np.nanmean([g[key] for g in got]) for key in got[0]} if got else None
            true += [g["true"] for g in got]
            row.append(f"{mean['correlation']:.3f}, {mean['between']:.2f}, {mean['copies']:.2f}, {100 * mean['absorbed']:.1f} %; {len(got)}" if got else "")
        if any(row):
            lines.append(f"| {name} | {statistics.mean(true):.2f} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def jobs():
    for method in METHODS:
        for name in DATA:
            large = name.startswith("30")
            for extra in ([0, 10, 70] if large else [0, 16]):
                for seed in range(1, 11):
                    yield method, name, extra, seed


if __name__ == "__main__":
    TESSERA, PLANTED, OUT = sys.argv[1:4]
    for folder in ["data", "runs"]:
        os.makedirs(f"{OUT}/{folder}", exist_ok=True)
    file = f"{OUT}/results.jsonl"
    results = [json.loads(line) for line in open(file)] if os.path.exists(file) else []
    results = [r for r in results if "features" in r or r["data"] not in SUMS]
    have = {(r["method"], r["data"], r["extra"], r["seed"]) for r in results}
    todo = sorted((j for j in jobs() if j not in have), key=lambda j: (list(METHODS).index(j[0]) > 0, j[3]))
    for _, name, _, seed in todo:
        planted(OUT, name, seed)
    with futures.ThreadPoolExecutor(int(sys.argv[4]) if len(sys.argv) > 4 else 1) as pool, open(file, "a") as log:
        for future in futures.as_completed([pool.submit(cell, j) for j in todo]):
            results.append(future.result())
            log.write(json.dumps(results[-1]) + "\n")
            log.flush()
    for extra in sorted({r["extra"] for r in results}):
        print(f"\n{extra} units more than parts:\n\n" + table(results, extra))
        print(f"\nCorrelation with the true code, largest with another unit's, copies, absorbed:\n\n" + features_table(results, extra))
