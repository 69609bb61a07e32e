#!/usr/bin/python3
"""Writes torch_losses.json: losses with their gradients in float64, as PyTorch computes them.

    python3 torch_losses.py > torch_losses.json

The structural similarity is computed twice: by SciPy's convolution with a two-dimensional Gaussian window, and by PyTorch for
the gradient. Images have their channels last.
"""
import json

import numpy as np
import torch
from scipy.signal import convolve2d
from torch.nn import functional as F

random = np.random.default_rng(1)
BATCH = 3


def gaussian(size, sigma):
    d = np.arange(size) - (size - 1) / 2
    w = np.exp(-d * d / (2 * sigma * sigma))
    w = np.outer(w, w)
    return w / w.sum()


def similarity(y, x, window):
    """The mean similarity of two images of one channel."""
    mean = lambda a: convolve2d(a, window, mode="valid")
    my, mx = mean(y), mean(x)
    vy, vx, cov = mean(y * y) - my * my, mean(x * x) - mx * mx, mean(y * x) - my * mx
    c1, c2 = 0.01 ** 2, 0.03 ** 2
    return np.mean((2 * mx * my + c1) * (2 * cov + c2) / ((mx * mx + my * my + c1) * (vx + vy + c2)))


def ssim_torch(y, x, window):
    """y, x: (batch, height, width, channels)."""
    planes = lambda a: a.permute(0, 3, 1, 2).reshape(-1, 1, a.shape[1], a.shape[2])
    w = torch.tensor(window)[None, None]
    mean = lambda a: F.conv2d(a, w)
    y, x = planes(y), planes(x)
    my, mx = mean(y), mean(x)
    vy, vx, cov = mean(y * y) - my ** 2, mean(x * x) - mx ** 2, mean(y * x) - my * mx
    c1, c2 = 0.01 ** 2, 0.03 ** 2
    return 1 - ((2 * mx * my + c1) * (2 * cov + c2) / ((mx ** 2 + my ** 2 + c1) * (vx + vy + c2))).mean()


def case(loss, settings, shape, f, batch=BATCH, spread=0.2):
    target = random.random((batch, *shape))
    x = target + spread * random.standard_normal((batch, *shape))
    output = torch.tensor(x, requires_grad=True)
    value = f(output, torch.tensor(target))
    value.backward()
    numbers = lambda a: [float(f"{v:.15g}") for v in np.asarray(a).ravel()]
    return {"loss": loss, "settings": settings, "shape": list(shape), "batch": batch, "x": numbers(x), "target": numbers(target),
            "value": value.item(), "gradient": numbers(output.grad)}


def ssim(shape, size=11, sigma=1.5, used=None):
    window = gaussian(used or size, sigma)
    channels = lambda a: a if a.dim() == 4 else a[..., None]

    def f(y, x):
        value = ssim_torch(channels(y), channels(x), window)
        a, b = channels(y).detach().numpy(), channels(x).numpy()
        plain = np.mean([similarity(a[i, :, :, c], b[i, :, :, c], window) for i in range(BATCH) for c in range(a.shape[3])])
        assert abs(1 - plain - value.item()) < 1e-13
        return value

    return case("ssim", {"window": size, "sigma": sigma}, shape, f)


def halves(z):
    return z[:len(z) // 2], z[len(z) // 2:]


def variance(z, target):
    return F.relu(target - torch.sqrt(z.var(dim=0) + 0.0001)).mean()


def off_diagonal(c):
    return c - torch.diag(torch.diag(c))


def covariance(z):
    z = z - z.mean(dim=0)
    return off_diagonal(z.T @ z / (len(z) - 1)).pow(2).sum() / z.shape[1]


def of_views(f):
    return lambda z, _: sum(map(f, halves(z))) / 2


def barlow_twins(z, redundancy):
    a, b = (F.batch_norm(h, None, None, training=True) for h in halves(z))
    c = a.T @ b / len(a)
    return (torch.diag(c) - 1).pow(2).sum() + redundancy * off_diagonal(c).pow(2).sum()


def byol(q, t):
    (q1, q2), (t1, t2) = halves(q), halves(t)
    distance = lambda a, b: (F.normalize(a) - F.normalize(b)).pow(2).sum(dim=1).mean()
    return (distance(q1, t2) + distance(q2, t1)) / 2


VIEWS = dict(batch=10, spread=0.8)  # five images

cases = [
    case("mse", {}, (3, 4), F.mse_loss),
    case("mae", {}, (3, 4), F.l1_loss),
    case("huber", {"delta": 0.1}, (3, 4), lambda y, x: F.huber_loss(y, x, delta=0.1)),
    case("huber", {"delta": 1.0}, (3, 4), F.huber_loss),
    ssim((13, 12)), ssim((11, 12, 2)), ssim((8, 9), size=5, sigma=0.8), ssim((6, 9), used=5), ssim((3, 2), used=1),
    case("invariance", {}, (4,), lambda z, _: F.mse_loss(*halves(z)), **VIEWS),
    case("variance", {"target": 1.0}, (4,), lambda z, _: variance(z, 1.0), **VIEWS),
    case("variance", {"target": 0.8, "views": True}, (4,), of_views(lambda z: variance(z, 0.8)), **VIEWS),
    case("covariance", {}, (4,), lambda z, _: covariance(z), **VIEWS),
    case("covariance", {"views": True}, (4,), of_views(covariance), **VIEWS),
    case("barlow_twins", {"redundancy": 0.005}, (4,), lambda z, _: barlow_twins(z, 0.005), **VIEWS),
    case("byol", {"target": "projection"}, (4,), byol, **VIEWS),
]
print(json.dumps(cases))
