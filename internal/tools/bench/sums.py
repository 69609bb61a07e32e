"""Data of docs/reproduction/identifiability.md, "Splitting steps and vectors": sums of known parts, and patches of photographs.

    sums.py FOLDER photographs            patches of photographs of scikit-learn and SciPy: NAME-train.npy, NAME-test.npy
    sums.py FOLDER images SEED KIND...    sums of 20 parts of 18x18 pixels, such as blob, blob-dense-small, ring-small; also NAME-parts.npy
    sums.py FOLDER vectors SEED KIND...   sums of 12 parts: topics, topics2, genes, spectra

A file is fitted by --set 'dataset={file="NAME-train.npy", test="NAME-test.npy"}'.
"""

import pathlib
import sys

import numpy as np
from scipy.ndimage import gaussian_filter

SIDE = 18
YY, XX = np.mgrid[:SIDE, :SIDE]


def save(folder, name, train, test, parts=None):
    for split, x in (("train", train), ("test", test)):
        np.save(folder / f"{name}-{split}.npy", np.clip(x, 0, None).astype(np.float32))
    if parts is not None:
        np.save(folder / f"{name}-parts.npy", parts.astype(np.float32))


def patches(images, size, n, draw, left):
    """Patches of the left or of the right halves."""
    found = []
    for _ in range(n):
        image = images[draw.integers(len(images))]
        height, width = image.shape
        low, high = (0, width // 2 - size) if left else (width // 2, width - size)
        y = draw.integers(height - size)
        x = draw.integers(low, high)
        found.append(image[y:y + size, x:x + size])
    return np.array(found)


def photographs(folder):
    from scipy.misc import face
    from sklearn.datasets import load_sample_images
    images = [image.mean(2) / 255 for image in load_sample_images().images]
    draw = np.random.default_rng(5)
    save(folder, "photo", patches(images, 16, 6000, draw, True), patches(images, 16, 2000, draw, False))
    save(folder, "photo10", patches(images, 10, 6000, draw, True), patches(images, 10, 2000, draw, False))
    raccoon = [face(gray=True) / 255.0]
    save(folder, "raccoon", patches(raccoon, 16, 6000, draw, True), patches(raccoon, 16, 2000, draw, False))


def blob(draw, low=1.0, high=3.0):
    c, s, t = draw.uniform(2, SIDE - 2, 2), draw.uniform(low, high, 2), draw.uniform(0, np.pi)
    a = (XX - c[0]) * np.cos(t) + (YY - c[1]) * np.sin(t)
    b = -(XX - c[0]) * np.sin(t) + (YY - c[1]) * np.cos(t)
    return np.exp(-a**2 / 2 / s[0]**2 - b**2 / 2 / s[1]**2)


def stroke(draw):
    p, image = draw.uniform(2, SIDE - 2, (3, 2)), np.zeros((SIDE, SIDE))
    for u in np.linspace(0, 1, 60):
        q = (1 - u)**2 * p[0] + 2 * u * (1 - u) * p[1] + u * u * p[2]
        image[int(round(q[1])), int(round(q[0]))] = 1
    image = gaussian_filter(image, 0.7)
    return image / image.max()


def ring(draw):
    c, r, w = draw.uniform(4, SIDE - 4, 2), draw.uniform(1.5, 5), draw.uniform(0.5, 1)
    return np.exp(-(np.hypot(XX - c[0], YY - c[1]) - r)**2 / 2 / w**2)


def smooth(draw):
    image = gaussian_filter(draw.standard_normal((SIDE, SIDE)), 3, mode="wrap")
    image = image - np.quantile(image, 0.55)
    return np.clip(image, 0, None) / image.max()


SHAPES = {"blob": blob, "stroke": stroke, "ring": ring, "smooth": smooth}


def distinct(shape, k, draw, most=0.8):
    """k parts, no two of which have a cosine of more than most."""
    parts = []
    while len(parts) < k:
        p = shape(draw)
        n = p / np.linalg.norm(p)
        if all((n * (q / np.linalg.norm(q))).sum() < most for q in parts):
            parts.append(p)
    return np.array(parts)


def images(kind, seed, n=900, m=400):
    """Sums of parts; options: dense (24 parts, density 0.6), gain (the exposure varies), small (noise of 0.005)."""
    draw = np.random.default_rng([seed, sum(map(ord, kind))])
    name, *options = kind.split("-")
    shape, k = SHAPES[name], 24 if "dense" in options else 20
    parts = distinct(shape, k, draw).reshape(k, -1)
    used = draw.random((n + m, k)) < np.full(k, 0.6 if "dense" in options else 0.15)
    codes = used * (draw.lognormal(0, 0.5, (n + m, k)) if shape is blob else draw.gamma(3, 1 / 3.0, (n + m, k)))
    if "gain" in options:
        codes = codes * np.exp(0.7 * draw.standard_normal((n + m, 1)))
    x = codes @ parts
    if "small" in options:
        x = x + 0.005 * draw.standard_normal(x.shape)
    x = x.clip(0)
    x = (x / x.max()).reshape(n + m, SIDE, SIDE)
    return x[:n], x[n:], parts


def vectors(kind, seed, n=900, m=400, k=12):
    draw = np.random.default_rng([seed, sum(map(ord, kind)), 7])
    if kind in ("topics", "topics2"):
        words, spread, mixed, length = {"topics": (200, 0.05, 0.15, 150), "topics2": (300, 0.1, 0.1, 80)}[kind]
        parts = draw.dirichlet(np.full(words, spread), k)
        shares = draw.dirichlet(np.full(k, mixed), n + m)
        x = np.array([draw.multinomial(draw.poisson(length) + 20, t @ parts) for t in shares]).astype(float)
    elif kind == "genes":
        parts = np.exp(draw.standard_normal((k, 250)) * 1.3) * (draw.random((k, 250)) < 0.25)
        parts /= parts.sum(1, keepdims=True)
        codes = (draw.random((n + m, k)) < 0.25) * draw.gamma(2, 0.5, (n + m, k))
        x = draw.poisson(2000 * np.exp(0.4 * draw.standard_normal((n + m, 1))) * (codes @ parts)).astype(float)
    else:  # spectra
        grid = np.arange(150.0)
        parts = np.array([sum(draw.uniform(0.3, 1) * np.exp(-(grid - draw.uniform(5, 145))**2 / 2 / draw.uniform(1, 5)**2)
                              for _ in range(draw.integers(1, 5))) for _ in range(k)])
        codes = (draw.random((n + m, k)) < 0.25) * draw.gamma(2, 0.5, (n + m, k))
        x = np.clip(codes @ parts + 0.01 * draw.standard_normal((n + m, 150)), 0, None)
    x = x / x.max()
    return x[:n], x[n:], parts


if __name__ == "__main__":
    folder, what, *rest = pathlib.Path(sys.argv[1]), *sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    if what == "photographs":
        photographs(folder)
    else:
        for kind in rest[1:]:
            save(folder, f"{kind}.{rest[0]}", *{"images": images, "vectors": vectors}[what](kind, int(rest[0])))
