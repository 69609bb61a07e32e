#!/usr/bin/python3
"""The shipped vae on Fashion-MNIST in PyTorch: the bounds that Tessera's are compared with, at an equal budget.

    torch_vae.py --data FOLDER [--epochs 10] [--seed 1] [--threads 1] [--samples 50]

FOLDER holds the four Fashion-MNIST files, *-ubyte.gz. The model and its training are those of vae in models.toml; the same
budget and the same numbers are

    tessera train vae --epochs 10 --set dataset.validation=0
    tessera eval runs/vae --metrics elbo,iwae

ELBO (one code for each image, the divergence in closed form) and the importance-weighted bound of Burda et al. (2016) are
means over the 10,000 test images.
"""
import argparse
import gzip
import math
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

PIXELS, HIDDEN, UNITS, BATCH, RATE = 784, 400, 20, 128, 1e-3


def images(folder, split):
    with gzip.open(f"{folder}/{split}-images-idx3-ubyte.gz") as f:
        return torch.from_numpy(np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, PIXELS).astype(np.float32) / 255)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(PIXELS, HIDDEN)
        self.mean, self.log_variance = nn.Linear(HIDDEN, UNITS), nn.Linear(HIDDEN, UNITS)
        self.back, self.output = nn.Linear(UNITS, HIDDEN), nn.Linear(HIDDEN, PIXELS)
        for layer in self.children():
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def encode(self, x):
        h = F.relu(self.hidden(x))
        return self.mean(h), self.log_variance(h)

    def decode(self, z):
        return torch.sigmoid(self.output(F.relu(self.back(z))))


def log_likelihood(y, x):
    y = y.clamp(1e-7, 1 - 1e-7)
    return (x * y.log() + (1 - x) * (-y).log1p()).sum(1)


def divergence(m, v):
    return (v.exp() + m * m - 1 - v).sum(1) / 2


def bounds(model, x, samples):
    """Sums of the ELBO from the first code of each image and of the importance-weighted bound."""
    m, v = model.encode(x)
    weights = []
    for k in range(samples):
        e = torch.randn_like(m)
        z = m + (v / 2).exp() * e
        likelihood = log_likelihood(model.decode(z), x)
        if k == 0:
            elbo = likelihood - divergence(m, v)
        weights.append(likelihood + (e * e - z * z + v).sum(1) / 2)
    iwae = torch.logsumexp(torch.stack(weights), 0) - math.log(samples)
    return elbo.sum().item(), iwae.sum().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--samples", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    x, test = images(options.data, "train"), images(options.data, "t10k")
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    start, cpu = time.time(), time.process_time()
    for epoch in range(options.epochs):
        total = 0.0
        for indices in torch.randperm(len(x)).split(BATCH):
            batch = x[indices]
            m, v = model.encode(batch)
            y = model.decode(m + (v / 2).exp() * torch.randn_like(m))
            loss = (divergence(m, v) - log_likelihood(y, batch)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1}: loss {total / len(x):.4f}", flush=True)
    print(f"training: {time.time() - start:.1f} s, {time.process_time() - cpu:.1f} s of CPU")
    with torch.no_grad():
        sums = np.sum([bounds(model, batch, options.samples) for batch in test.split(1000)], 0) / len(test)
    print(f"seed {options.seed}: test elbo {sums[0]:.3f}, iwae of {options.samples} codes {sums[1]:.3f}")


if __name__ == "__main__":
    main()
