#!/usr/bin/python3
"""Writes torch_augment.json: crops and rotations as PyTorch's grid_sample computes them, blurs as SciPy does, in float64.

    python3 torch_augment.py > torch_augment.json

Images have their channels last, as Tessera has them: pixel (y, x, c) is ((7 y + 3 x + 5 c) mod 11) / 10.
"""
import json
import math

import torch
from scipy.ndimage import gaussian_filter
from torch.nn import functional as F


def image(height, width, channels):
    y, x, c = torch.meshgrid(torch.arange(height), torch.arange(width), torch.arange(channels), indexing="ij")
    return ((7 * y + 3 * x + 5 * c) % 11).double() / 10


def numbers(x):
    return [float(f"{v:.9g}") for v in x.reshape(-1).tolist()]


def sampled(x, theta, padding):
    height, width, channels = x.shape
    batch = x.movedim(2, 0)[None]
    grid = F.affine_grid(torch.tensor([theta], dtype=torch.float64), batch.shape, align_corners=False)
    y = F.grid_sample(batch, grid, mode="bilinear", padding_mode=padding, align_corners=False)
    return y[0].movedim(0, 2)


def crop(shape, top, left, h, w):
    """grid_sample counts from -1 to 1 over the image, in the order (x, y)."""
    height, width, _ = shape
    theta = [[w / width, 0, (2 * left + w) / width - 1], [0, h / height, (2 * top + h) / height - 1]]
    return {"shape": shape, "box": [top, left, h, w], "y": numbers(sampled(image(*shape), theta, "border"))}


def rotate(shape, degrees):
    """The source of (u, v), down and right of the centre in pixels, is (u cos + v sin, v cos - u sin)."""
    height, width, _ = shape
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    theta = [[cos, -sin * height / width, 0], [sin * width / height, cos, 0]]
    return {"shape": shape, "degrees": degrees, "y": numbers(sampled(image(*shape), theta, "zeros"))}


def blur(shape, sigma):
    x = image(*shape).numpy()
    y = gaussian_filter(x, (sigma, sigma, 0), mode="reflect", truncate=4)
    return {"shape": shape, "sigma": sigma, "y": numbers(torch.from_numpy(y))}


shapes = [[6, 8, 1], [5, 4, 3], [1, 7, 1]]
print(json.dumps({
    "crop": [crop(s, f * s[0], g * s[1], h * s[0], w * s[1]) for s in shapes
             for f, g, h, w in [(0, 0, 1, 1), (0.1, 0.3, 0.6, 0.7), (0.5, 0, 0.5, 0.2), (0.3, 0.9, 0.05, 0.1)]],
    "rotate": [rotate(s, d) for s in shapes for d in [0, 10, -33, 90, 175]],
    "blur": [blur(s, d) for s in shapes for d in [0.1, 0.5, 1.3, 4]],
}).replace('{"shape"', '\n{"shape"'))
