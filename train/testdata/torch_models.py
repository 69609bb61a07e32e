#!/usr/bin/python3
"""Writes torch_models.json: what five steps of training make of ten models in PyTorch, in float64.

    python3 torch_models.py > torch_models.json

Run it with Debian's python3-torch; the checked-in file was made with PyTorch 1.13. First parameters and batches are
formulas of integers, see uniform, so that other languages make the same ones. Everything is laid out as Tessera has it:
dense weights (inputs, units), filters (kernel, kernel, channels, filters), images (height, width).
"""
import json

import numpy as np
import torch
from torch.nn import functional as F

STEPS, IMAGES, SIDE, CLASSES = 5, 12, 6, 5
PIXELS = SIDE * SIDE
UNKNOWN = -1
TEMPERATURE, LABEL_WEIGHT = 0.5, 0.5  # of nt_xent; of the cross entropy of the semi-supervised model
PRIME = 2147483647


def uniform(stream, n):
    """n values in [0,1): i -> x = (7919 i + 104729 stream + 12345) mod p, x² mod p, 48271 x mod p, x / p."""
    x = (np.arange(n, dtype=np.int64) * 7919 + stream * 104729 + 12345) % PRIME
    x = x * x % PRIME
    return x * 48271 % PRIME / PRIME


def images(stream):
    return torch.from_numpy(uniform(stream, IMAGES * PIXELS).reshape(IMAGES, PIXELS))


def labels(stream):
    return torch.from_numpy((uniform(stream, IMAGES) * CLASSES).astype(np.int64))


def few_labels(stream, step):
    """About a tenth of the labels, at least that of image number step."""
    known = uniform(stream + 1000, IMAGES) < 0.1
    known[step] = True
    return torch.where(torch.from_numpy(known), labels(stream), torch.tensor(UNKNOWN))


def numbers(x):
    return [float(f"{v:.12g}") for v in x.detach().flatten().tolist()]


class Parameters:
    """First parameters by path: shift + (2 u - 1) scale, u from a stream that counts the parameters."""

    def __init__(self):
        self.entries = {}

    def add(self, path, shape, scale, frozen=False, shift=0.0):
        stream = len(self.entries) + 1
        start = shift + (2 * uniform(stream, int(np.prod(shape))) - 1) * scale
        values = torch.from_numpy(start.reshape(shape)).requires_grad_(not frozen)
        self.entries[path] = {"shape": list(shape), "stream": stream, "scale": scale, "shift": shift, "tensor": values}

    def dense(self, path, inputs, units, frozen=False):
        self.add(path + ".weight", (inputs, units), 0.5, frozen)
        self.add(path + ".bias", (units,), 0.1, frozen)

    def __getitem__(self, path):
        return self.entries[path]["tensor"]

    def apply(self, path, x):
        return x @ self[path + ".weight"] + self[path + ".bias"]

    def trained(self):
        return [e["tensor"] for e in self.entries.values() if e["tensor"].requires_grad]

    def written(self):
        keys = ["shape", "stream", "scale", "shift"]
        return [{"path": path, **{key: e[key] for key in keys}, "values": numbers(e["tensor"])} for path, e in self.entries.items()]


def nt_xent(first, second):
    """Mean over all 2 n rows of -log softmax of the cosines / temperature to all others, at the row's own other view."""
    n = len(first)
    z = F.normalize(torch.cat([first, second]))
    similar = (z @ z.T / TEMPERATURE).masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    return F.cross_entropy(similar, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


def train(name, inputs, parameters, terms):
    """inputs holds name: first stream; step s reads stream + s. terms gives the weighted terms of one step by name."""
    optimizer = torch.optim.Adam(parameters.trained(), lr=0.01)
    losses = []
    for step in range(STEPS):
        values = terms({key: stream + step for key, stream in inputs.items()}, step)
        loss = sum(values.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append({"loss": loss.item(), **{"loss." + key: v.item() for key, v in values.items()}})
    return {"name": name, "inputs": inputs, "losses": losses, "parameters": parameters.written()}


def classifier(name, frozen):
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8, frozen)
    p.dense("head.class.0", 8, CLASSES)

    def terms(streams, _):
        code = torch.sigmoid(p.apply("encoder.0", images(streams["images"])))
        return {"cross_entropy": F.cross_entropy(p.apply("head.class.0", code), labels(streams["labels"]))}

    return train(name, {"images": 100, "labels": 200}, p, terms)


def semi_supervised():
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("decoder.0", 8, PIXELS)
    p.dense("head.class.0", 8, CLASSES)

    def terms(streams, step):
        x, y = images(streams["images"]), few_labels(streams["labels"], step)
        code = torch.sigmoid(p.apply("encoder.0", x))
        return {"mse": F.mse_loss(p.apply("decoder.0", code), x),
                "cross_entropy": LABEL_WEIGHT * F.cross_entropy(p.apply("head.class.0", code), y, ignore_index=UNKNOWN)}

    return train("semi-supervised", {"images": 300, "labels": 400}, p, terms)


def simclr():
    p = Parameters()
    p.add("encoder.0.weight", (3, 3, 1, 4), 0.5)
    p.add("encoder.0.bias", (4,), 0.1)
    p.dense("encoder.1", PIXELS * 4, 8)
    p.dense("head.projection.0", 8, 6)
    p.dense("head.projection.1", 6, 4)

    def project(x):
        filters = p["encoder.0.weight"].permute(3, 2, 0, 1)
        y = F.relu(F.conv2d(x.reshape(-1, 1, SIDE, SIDE), filters, p["encoder.0.bias"], padding=1))
        code = p.apply("encoder.1", y.permute(0, 2, 3, 1).reshape(len(x), -1))
        return p.apply("head.projection.1", F.relu(p.apply("head.projection.0", code)))

    def terms(streams, _):
        return {"nt_xent": nt_xent(project(images(streams["view.1"])), project(images(streams["view.2"])))}

    return train("simclr", {"view.1": 500, "view.2": 600}, p, terms)


def unrolled():
    """Four unrolled steps with signed atoms, a tied decoder, mse and Hoyer's sparseness with the target 0.6."""
    units, steps = 8, 4
    p = Parameters()
    p.add("encoder.0.weight", (PIXELS, units), 0.3, shift=0.1)
    for t in range(1, steps + 1):
        p.add(f"encoder.0.step_size_{t}", (units,), 0.2, shift=1.0)
        p.add(f"encoder.0.threshold_{t}", (units,), 0.02, shift=0.02)
        if t < steps:
            p.add(f"encoder.0.momentum_{t}", (1,), 0.1, shift=0.3)

    def terms(streams, _):
        x, w = images(streams["images"]), p["encoder.0.weight"]
        gram = w.T @ w
        z = before = torch.zeros(IMAGES, units, dtype=torch.float64)
        for t in range(1, steps + 1):
            size = p[f"encoder.0.step_size_{t}"] / gram.abs().sum(1)
            y = F.relu(z - (z @ gram - x @ w) * size - p[f"encoder.0.threshold_{t}"])
            if t < steps:
                z, before = y + p[f"encoder.0.momentum_{t}"] * (y - before), y
        root = units ** 0.5
        hoyer = (root - y.sum(1) / (y.square().sum(1).sqrt() + 1e-7)) / (root - 1 + 1e-7)
        return {"mse": F.mse_loss(y @ w.T, x), "hoyer": 0.1 * (0.6 - hoyer).abs().mean()}

    return train("unrolled", {"images": 700}, p, terms)


def players():
    """Two players: a coder that reconstructs and makes a judge's values large, and the judge, which classifies."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("decoder.0", 8, PIXELS)
    p.dense("head.class.0", 8, CLASSES)
    coder = [e["tensor"] for path, e in p.entries.items() if not path.startswith("head")]
    judge = [e["tensor"] for path, e in p.entries.items() if path.startswith("head")]
    optimizer = torch.optim.Adam(p.trained(), lr=0.01)
    inputs, losses = {"images": 800, "labels": 900}, []
    for step in range(STEPS):
        x = images(inputs["images"] + step)
        code = torch.sigmoid(p.apply("encoder.0", x))
        logits = p.apply("head.class.0", code)
        values = {"mse": F.mse_loss(p.apply("decoder.0", code), x), "fool": 0.1 * logits.abs().sum(1).mean(),
                  "verdict": F.cross_entropy(logits, labels(inputs["labels"] + step))}
        optimizer.zero_grad()
        gradients = torch.autograd.grad(values["mse"] + values["fool"], coder, retain_graph=True) + torch.autograd.grad(values["verdict"], judge)
        for w, g in zip(coder + judge, gradients):
            w.grad = g
        optimizer.step()
        losses.append({"loss": sum(values.values()).item(), **{"loss." + key: v.item() for key, v in values.items()}})
    return {"name": "players", "inputs": inputs, "losses": losses, "parameters": p.written()}


def vae():
    """A code of 3 units, drawn with the noise of a stream; the divergence from N(0, 1) with the weight 0.1."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("encoder.1", 8, 3)
    p.add("encoder.1.log_variance_weight", (8, 3), 0.5)
    p.add("encoder.1.log_variance_bias", (3,), 0.1)
    p.dense("decoder.0", 3, PIXELS)

    def terms(streams, _):
        x = images(streams["images"])
        h = torch.tanh(p.apply("encoder.0", x))
        mean = p.apply("encoder.1", h)
        log_variance = h @ p["encoder.1.log_variance_weight"] + p["encoder.1.log_variance_bias"]
        noise = torch.from_numpy(uniform(streams["encoder.1.noise"], IMAGES * 3).reshape(IMAGES, 3))
        code = mean + torch.exp(log_variance / 2) * noise
        divergence = 0.5 * (log_variance.exp() + mean.square() - 1 - log_variance).sum(1).mean()
        return {"mse": F.mse_loss(p.apply("decoder.0", code), x), "gaussian_kl": 0.1 * divergence}

    return train("vae", {"images": 800, "encoder.1.noise": 900}, p, terms)


def skip():
    """A U-Net of one level: the last layer of the decoder reads the first one of the encoder too."""
    p = Parameters()
    p.add("encoder.0.weight", (3, 3, 1, 2), 0.5)
    p.add("encoder.0.bias", (2,), 0.1)
    p.dense("encoder.1", PIXELS * 2, 4)
    p.dense("decoder.0", 4, PIXELS)
    p.add("decoder.2.weight", (3, 3, 3, 1), 0.5)
    p.add("decoder.2.bias", (1,), 0.1)

    def convolve(path, x):
        return F.conv2d(x, p[path + ".weight"].permute(3, 2, 0, 1), p[path + ".bias"], padding=1)

    def terms(streams, _):
        x = images(streams["images"])
        first = torch.tanh(convolve("encoder.0", x.reshape(-1, 1, SIDE, SIDE)))
        code = p.apply("encoder.1", first.permute(0, 2, 3, 1).reshape(IMAGES, -1))
        up = p.apply("decoder.0", code).reshape(-1, 1, SIDE, SIDE)
        return {"mse": F.mse_loss(convolve("decoder.2", torch.cat([up, first], 1)).reshape(IMAGES, -1), x)}

    return train("skip", {"images": 1000}, p, terms)


class Jump(torch.autograd.Function):
    """Values above a threshold, and which these are; the gradients of the threshold are the estimates of a window."""

    @staticmethod
    def forward(ctx, x, threshold, width):
        ctx.save_for_backward(x, threshold)
        ctx.width = width
        active = (x > threshold).to(x.dtype)
        return x * active, active

    @staticmethod
    def backward(ctx, gradient, of_active):
        x, threshold = ctx.saved_tensors
        window = ((x - threshold).abs() < ctx.width / 2).to(x.dtype) / ctx.width
        return gradient * (x > threshold), (-(threshold * gradient + of_active) * window).sum(0), None


def jump():
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.add("encoder.1.threshold", (8,), 0.1, shift=0.3)
    p.dense("decoder.0", 8, PIXELS)

    def terms(streams, _):
        x = images(streams["images"])
        code, active = Jump.apply(p.apply("encoder.0", x), p["encoder.1.threshold"], 0.5)
        return {"mse": F.mse_loss(p.apply("decoder.0", code), x), "l0": 0.01 * active.sum(1).mean()}

    return train("jump", {"images": 1100}, p, terms)


def two_encoders():
    """The heads of two encoders of one image, with one shared layer, and a term that compares them."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("head.first.0", 8, 4)
    p.dense("head.second.0", PIXELS, 8)

    def terms(streams, _):
        x = images(streams["images"])
        first = p.apply("head.first.0", torch.tanh(p.apply("encoder.0", x)))
        second = p.apply("head.first.0", torch.sigmoid(p.apply("head.second.0", x)))
        similar = F.normalize(first) @ F.normalize(second).T / TEMPERATURE
        own = torch.arange(IMAGES)
        return {"contrastive": (F.cross_entropy(similar, own) + F.cross_entropy(similar.T, own)) / 2}

    return train("two-encoders", {"images": 1200}, p, terms)


print(json.dumps({
    "steps": STEPS, "images": IMAGES, "side": SIDE, "classes": CLASSES,
    "uniform": uniform(7, 5).tolist(), "labels": labels(200).tolist(), "few_labels": [few_labels(400 + s, s).tolist() for s in range(STEPS)],
    "models": [classifier("classifier", False), classifier("classifier-on-parts", True), semi_supervised(), simclr(), unrolled(), players(), vae(), skip(), jump(),
               two_encoders()],
}).replace('{"path"', '\n{"path"').replace('{"name"', '\n{"name"'))
