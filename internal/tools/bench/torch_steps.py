#!/usr/bin/python3
"""The training step of a shipped model in PyTorch: what `make bench-peers` measures Tessera against.

    torch_steps.py MODEL OPTIMIZER --data FOLDER --steps N --threads N

MODEL is shallow-nonneg-kl, deep-dense or asym-nonneg-kl, FOLDER holds train-images-idx3-ubyte.gz. It prints the median of the
milliseconds per step (the first tenth left out) and the last loss. With encode as OPTIMIZER, a step is to encode 10,000
images that are in memory, CODED at a time: the fastest of 50, 100, 128, 250, 500 and 1,000.

Its best on a CPU, as bench sets it: OpenBLAS built with OpenMP preloaded, and OPENBLAS_CORETYPE=SkylakeX where the CPU
has AVX-512, which OpenBLAS 0.3.21 does not recognise on newer models; MALLOC_MMAP_THRESHOLD_ and
MALLOC_TRIM_THRESHOLD_ high, so that large tensors do not get fresh pages in every step.
"""
import argparse
import gzip
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

UNITS, PIXELS, BATCH = 100, 784, 128
ENCODED, CODED = 10000, 250
TARGET, BETA = 0.05, 0.001  # of the KL term


def images(folder):
    with gzip.open(f"{folder}/train-images-idx3-ubyte.gz") as f:
        raw = f.read()
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=16).reshape(-1, PIXELS).astype(np.float32) / 255)


class Autoencoder(nn.Module):
    """Dense encoder with relu between its layers and a sigmoid code; one dense decoder layer with a leaky relu."""

    def __init__(self, widths):
        super().__init__()
        sizes = [PIXELS, *widths, UNITS]
        self.encoder = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.decoder = nn.Linear(UNITS, PIXELS)
        for layer in [*self.encoder, self.decoder]:
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def encode(self, x):
        for layer in self.encoder[:-1]:
            x = F.relu(layer(x))
        return torch.sigmoid(self.encoder[-1](x))

    def forward(self, x):
        h = self.encode(x)
        return h, F.leaky_relu(self.decoder(h), 0.1)


class Asymmetric(nn.Module):
    """The convolutional encoder of infoGAN's recognition network; one dense decoder layer with a leaky relu."""

    def __init__(self):
        super().__init__()
        leaky = lambda: nn.LeakyReLU(0.1, inplace=True)
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 64, 4, 2, 1), leaky(),
            nn.Conv2d(64, 128, 4, 2, 1), nn.BatchNorm2d(128, eps=1e-3, momentum=0.01), leaky(), nn.Flatten(),
            nn.Linear(6272, 1024), nn.BatchNorm1d(1024, eps=1e-3, momentum=0.01), leaky(),
            nn.Linear(1024, UNITS))
        self.decoder = nn.Linear(UNITS, PIXELS)
        for layer in [*self.encoder, self.decoder]:
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def encode(self, x):
        return torch.sigmoid(self.encoder(x.view(-1, 1, 28, 28)))

    def forward(self, x):
        h = self.encode(x)
        return h, F.leaky_relu(self.decoder(h), 0.1)


def kl(t):
    t = t.clamp(1e-7, 1 - 1e-7)
    return (TARGET * torch.log(TARGET / t) + (1 - TARGET) * torch.log((1 - TARGET) / (1 - t))).sum()


# model: how to make it, whether the code is sparse and the decoder non-negative
MODELS = {
    "shallow-nonneg-kl": (lambda: Autoencoder([]), True),
    "deep-dense": (lambda: Autoencoder([512, 256]), False),
    "asym-nonneg-kl": (Asymmetric, True),
}
OPTIMIZERS = {
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0, rho=0.95, eps=1e-7),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
}


def encode(model, X, steps):
    """Milliseconds of each step."""
    times = []
    model.eval()
    with torch.no_grad():
        for _ in range(steps):
            began = time.perf_counter()
            codes = [model.encode(x) for x in X[:ENCODED].split(CODED)]
            times.append(time.perf_counter() - began)
    return times


def median(times):
    times = sorted(times[len(times) // 10:])
    return 1e3 * times[len(times) // 2]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("model", choices=MODELS)
    a.add_argument("optimizer", choices=[*OPTIMIZERS, "encode"])
    a.add_argument("--data", required=True)
    a.add_argument("--steps", type=int, default=469)
    a.add_argument("--threads", type=int, default=2)
    o = a.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(o.threads)
    torch.set_flush_denormal(True)
    X = images(o.data)
    make, sparse = MODELS[o.model]
    model = make()
    if o.optimizer == "encode":
        print(f"{o.model} encode {median(encode(model, X, o.steps)):.4f} ms/step")
        return
    optimizer = OPTIMIZERS[o.optimizer](model.parameters())
    times, order = [], []
    while len(times) < o.steps:
        if len(order) < BATCH:
            order = torch.randperm(len(X))
        began = time.perf_counter()
        x, order = X[order[:BATCH]], order[BATCH:]
        optimizer.zero_grad()
        h, y = model(x)
        loss = F.mse_loss(y, x)
        if sparse:
            loss = loss + BETA * kl(h.mean(0))
        loss.backward()
        optimizer.step()
        if sparse:
            with torch.no_grad():
                model.decoder.weight.clamp_(min=0)
        times.append(time.perf_counter() - began)
    print(f"{o.model} {o.optimizer} {median(times):.4f} ms/step loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
