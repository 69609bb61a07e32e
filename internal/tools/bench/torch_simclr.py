#!/usr/bin/python3
"""SimCLR on Fashion-MNIST in PyTorch: the accuracy that Tessera's simclr is compared with, at an equal budget.

    torch_simclr.py --data FOLDER [--images 20000] [--epochs 10] [--seed 1] [--threads 2]

FOLDER holds the four Fashion-MNIST files, *-ubyte.gz. The model, its augmentations and its training are those of simclr in
models.toml; the same budget is

    tessera train simclr --epochs 10 --set dataset.limit=20000 --set dataset.validation=0

The linear probe is one dense layer on the frozen code of the same images, trained on their labels (cross entropy, Adam at
0.01, 20 epochs, batch 128) and measured on the 10,000 test images: in models.toml a classifier with the same encoder,
start = { run = "runs/simclr", on = "encoder.*" } and freeze = ["encoder.*"]. The same probe on the code of the untrained
encoder and on the pixels says what the training adds.
"""
import argparse
import gzip
import math
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SIDE, CLASSES, CODE, BATCH, TEMPERATURE = 28, 10, 128, 256, 0.5
SCALE, RATIO, BRIGHTNESS = (0.4, 1.0), (3 / 4, 4 / 3), 0.3


def read(folder, name, offset):
    with gzip.open(f"{folder}/{name}-ubyte.gz") as f:
        return np.frombuffer(f.read(), np.uint8, offset=offset)


def load(folder, split):
    images = read(folder, f"{split}-images-idx3", 16).reshape(-1, 1, SIDE, SIDE).astype(np.float32) / 255
    return torch.from_numpy(images), torch.from_numpy(read(folder, f"{split}-labels-idx1", 8).astype(np.int64))


def view(x):
    """Crop, flip and brightness, drawn for every image as package augment draws them."""
    n = len(x)
    area = SCALE[0] + (SCALE[1] - SCALE[0]) * torch.rand(n)
    fits = -area.log()  # a rectangle of that area fits into a square image from 1/ratio to ratio
    low, high = (torch.maximum(torch.minimum(torch.full((n,), math.log(r)), fits), -fits) for r in RATIO)
    ratio = (low + (high - low) * torch.rand(n)).exp()
    height, width = (area / ratio).sqrt(), (area * ratio).sqrt()
    mirror = torch.where(torch.rand(n) < 0.5, -1.0, 1.0)
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1] = width * mirror, height
    theta[:, 0, 2], theta[:, 1, 2] = (1 - width) * (2 * torch.rand(n) - 1), (1 - height) * (2 * torch.rand(n) - 1)
    y = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), padding_mode="border", align_corners=False)
    return (y * (1 - BRIGHTNESS + 2 * BRIGHTNESS * torch.rand(n, 1, 1, 1))).clamp(0, 1)


def glorot(module):
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module


class Same(nn.Module):
    """Zeros at the end: a filter of 3 with a stride of 2 then halves an image of even size."""

    def forward(self, x):
        return F.pad(x, (0, 1, 0, 1))


def encoder(bias=True):
    """With bias = False as simclr is declared; a bias before a batch norm changes nothing but the time."""
    def block(channels, filters):
        return [Same(), nn.Conv2d(channels, filters, 3, 2, bias=bias), nn.BatchNorm2d(filters, eps=1e-3, momentum=0.01), nn.ReLU()]

    return glorot(nn.Sequential(*block(1, 32), *block(32, 64), nn.Flatten(), nn.Linear(64 * 7 * 7, CODE)))


def nt_xent(first, second):
    n = len(first)
    z = F.normalize(torch.cat([first, second]))
    similar = (z @ z.T / TEMPERATURE).masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    return F.cross_entropy(similar, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


def train(model, head, x, epochs):
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
    each = math.ceil(len(x) / BATCH)
    rate = lambda step: min(1, (step + 1) / each) * (1 + math.cos(math.pi * step / each / epochs)) / 2  # one epoch of warm-up
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    model.train()
    for epoch in range(epochs):
        begin, total = time.time(), 0.0
        for batch in torch.randperm(len(x)).split(BATCH):
            views = torch.cat([view(x[batch]), view(x[batch])])
            loss = nt_xent(*head(model(views)).chunk(2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1}: nt_xent {total / len(x):.4f}, {time.time() - begin:.1f} s", flush=True)


def probe(train_codes, train_labels, test_codes, test_labels, epochs=20):
    """Test accuracy of one dense layer on frozen codes."""
    layer = glorot(nn.Linear(train_codes.shape[1], CLASSES))
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
    for _ in range(epochs):
        for batch in torch.randperm(len(train_codes)).split(128):
            loss = F.cross_entropy(layer(train_codes[batch]), train_labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return (layer(test_codes).argmax(1) == test_labels).float().mean().item()


def coded(model, x):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part) for part in x.split(1000)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--images", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    (x, labels), (test, test_labels) = load(a.data, "train"), load(a.data, "t10k")
    x, labels = x[:a.images], labels[:a.images]
    model, head = encoder(), glorot(nn.Sequential(nn.Linear(CODE, 128), nn.ReLU(), nn.Linear(128, 64)))
    measured = lambda f: probe(f(x), labels, f(test), test_labels)
    print(f"linear probe on the pixels: {measured(lambda v: v.flatten(1)):.4f}")
    print(f"linear probe on the code of the untrained encoder: {measured(lambda v: coded(model, v)):.4f}", flush=True)
    train(model, head, x, a.epochs)
    print(f"linear probe on the code: {measured(lambda v: coded(model, v)):.4f}")


if __name__ == "__main__":
    main()
