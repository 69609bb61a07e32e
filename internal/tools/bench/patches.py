"""Natural pictures for docs/reproduction/patches.md, and the same experiment in scikit-learn.

    python3 internal/tools/bench/patches.py pictures DIR      # writes the sample pictures of SciPy and scikit-learn as grey PNG files
    python3 internal/tools/bench/patches.py fit DIR [SEED...] # dictionary learning of whitened patches, Gabor functions counted
    python3 internal/tools/bench/patches.py count FILE...     # the same count of the atoms in model.safetensors of runs

Patches, whitening and the criterion of a Gabor function are those of Tessera, written again in NumPy and SciPy: the fit here is
by least squares with derivatives, from a grid of starts.
"""
import json
import os
import sys
import warnings

import numpy as np
from scipy.optimize import least_squares

SIZE, COUNT, UNITS = 12, 50000, 100


def pictures(folder):
    warnings.simplefilter("ignore")
    import sklearn.datasets
    from PIL import Image
    from scipy import misc

    os.makedirs(folder, exist_ok=True)
    images = {"ascent": Image.fromarray(misc.ascent().astype(np.uint8)), "face": Image.fromarray(misc.face(gray=True))}
    at = os.path.join(os.path.dirname(sklearn.datasets.__file__), "images")
    for name in "china", "flower":
        images[name] = Image.open(os.path.join(at, name + ".jpg")).convert("L")
    for name, image in images.items():
        image.save(os.path.join(folder, name + ".png"))


def patches(folder, seed):
    from PIL import Image

    rng, images = np.random.default_rng(seed), []
    for name in sorted(os.listdir(folder)):
        image = Image.open(os.path.join(folder, name))
        left, top = (image.width - 512) // 2, (image.height - 427) // 2
        images.append(np.asarray(image.crop((left, top, left + 512, top + 427)), np.float64) / 255)
    out = np.empty((COUNT, SIZE * SIZE))
    for i in range(COUNT):
        image = images[rng.integers(len(images))]
        y, x = rng.integers(image.shape[0] - SIZE + 1), rng.integers(image.shape[1] - SIZE + 1)
        out[i] = image[y : y + SIZE, x : x + SIZE].ravel()
    out -= out.mean(0)
    values, vectors = np.linalg.eigh(out.T @ out / COUNT)
    return out @ (vectors / np.sqrt(values + 0.01 * values.mean())) @ vectors.T


def gabor(atom):
    """The best fit of a Gabor function and whether it counts as one."""
    side = int(np.sqrt(atom.size))
    y, x = (v.ravel().astype(float) for v in np.mgrid[:side, :side])
    atom = atom / np.linalg.norm(atom)

    def residual(p):
        row, column, s, t, angle, wave = p[0], p[1], np.exp(p[2]), np.exp(p[3]), p[4], p[5]
        u = (x - column) * np.cos(angle) + (y - row) * np.sin(angle)
        v = (y - row) * np.cos(angle) - (x - column) * np.sin(angle)
        envelope = np.exp(-(u**2) / (2 * s**2) - v**2 / (2 * t**2))
        a = np.stack([envelope * np.cos(2 * np.pi * wave * u), envelope * np.sin(2 * np.pi * wave * u)], 1)
        return a @ np.linalg.pinv(a) @ atom - atom

    spectrum = lambda a, f: abs(np.sum(atom * np.exp(2j * np.pi * f * (x * np.cos(a) + y * np.sin(a)))))
    grid = sorted(((spectrum(a, f), a, f) for a in np.pi * np.arange(12) / 12 for f in np.linspace(0.5 / side, 0.5, 8)), reverse=True)
    mass = atom**2
    best = None
    for _, a, f in grid[:3]:
        r = least_squares(residual, [mass @ y, mass @ x, np.log(side / 5), np.log(side / 5), a, f], max_nfev=200)
        if best is None or r.cost < best.cost:
            best = r
    fit, (row, column, s, t, _, wave) = 1 - 2 * best.cost, best.x
    s, t, wave = np.exp(s), np.exp(t), abs(wave)
    inside = 0 <= row <= side - 1 and 0 <= column <= side - 1
    return fit, fit >= 0.7 and inside and max(s, t) <= side / 2 and wave <= 0.5 and 2 * np.pi * wave * s >= 1


def count(atoms):
    fits = [gabor(a) for a in atoms if np.any(a)]
    return f"{sum(ok for _, ok in fits)} of {len(atoms)} atoms are Gabor functions, mean fit {np.mean([f for f, _ in fits]):.3f}"


def tensor(path, name="decoder.0.weight"):
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        at = f.tell()
        from_, to = head[name]["data_offsets"]
        f.seek(at + from_)
        return np.frombuffer(f.read(to - from_), np.float32).reshape(head[name]["shape"]).astype(float)


def main(what, *rest):
    if what == "pictures":
        pictures(rest[0])
    elif what == "count":
        for path in rest:
            print(path, count(tensor(path)))
    elif what == "fit":
        from sklearn.decomposition import MiniBatchDictionaryLearning

        for seed in map(int, rest[1:] or ["1"]):
            samples = patches(rest[0], seed)
            model = MiniBatchDictionaryLearning(UNITS, alpha=2.0, batch_size=256, max_iter=8, tol=0, max_no_improvement=None, random_state=seed).fit(samples)
            print(f"scikit-learn, seed {seed}:", count(model.components_), flush=True)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["help"]))
