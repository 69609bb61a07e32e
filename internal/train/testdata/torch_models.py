#!/usr/bin/python3
"""Writes torch_models.json: what five steps of training make of models in PyTorch, in float64.

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
TOKENS, VOCABULARY = 4, 7
UNKNOWN = -1
TEMPERATURE, LABEL_WEIGHT, RHO = 0.5, 0.5, 0.05  # of nt_xent; of the cross entropy of the semi-supervised model; of sharpness
DECAY = 0.9  # of the teacher
CENTRE = 0.7  # of the centre of its values
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


def column(stream, width):
    return torch.from_numpy(uniform(stream, IMAGES * width).reshape(IMAGES, width))


def marks(stream, width):
    """Zeros and ones."""
    return (column(stream, width) < 0.5).double()


def tokens(stream):
    """Whole numbers below VOCABULARY."""
    return (column(stream, TOKENS) * VOCABULARY).long()


def lengths(stream):
    """How many of the tokens of each sample are there: 1 to TOKENS."""
    return 1 + (column(stream, 1)[:, 0] * TOKENS).long()


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


def train(name, inputs, parameters, terms, after=lambda: None):
    """inputs holds name: first stream; step s reads stream + s. terms gives the weighted terms of one step by name."""
    optimizer = torch.optim.Adam(parameters.trained(), lr=0.01)
    losses = []
    for step in range(STEPS):
        values = terms({key: stream + step for key, stream in inputs.items()}, step)
        loss = sum(values.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after()
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


def joint(name, streams, terms, teacher=False, centre=False):
    """An encoder and a projection of two views; with a teacher also a prediction. terms gets (z, z') and, with a teacher, (q, q', t, t').

    With a centre there is no prediction: terms gets (z, z', t, t', c) with the average c of the teacher's projections."""
    p = Parameters()
    p.add("encoder.0.weight", (3, 3, 1, 4), 0.5)
    p.add("encoder.0.bias", (4,), 0.1)
    p.dense("encoder.1", PIXELS * 4, 8)
    p.dense("head.projection.0", 8, 6)
    p.dense("head.projection.1", 6, 4)
    own = list(p.entries)
    if teacher:
        if centre:
            p.add("head.projection.2.centre", (4,), 0.3, frozen=True)
        else:
            p.dense("head.prediction.0", 4, 4)
        for path in own:
            e = p.entries[path]
            p.add("teacher." + path, e["shape"], e["scale"], frozen=True)

    def project(x, of=""):
        filters = p[of + "encoder.0.weight"].permute(3, 2, 0, 1)
        y = F.relu(F.conv2d(x.reshape(-1, 1, SIDE, SIDE), filters, p[of + "encoder.0.bias"], padding=1))
        code = p.apply(of + "encoder.1", y.permute(0, 2, 3, 1).reshape(len(x), -1))
        return p.apply(of + "head.projection.1", F.relu(p.apply(of + "head.projection.0", code)))

    def step(at, _):
        views = [images(at["view.1"]), images(at["view.2"])]
        z = [project(x) for x in views]
        if centre:
            taught[:] = [project(x, "teacher.").detach() for x in views]
            return terms(*z, *taught, p["head.projection.2.centre"])
        if teacher:
            return terms(*[p.apply("head.prediction.0", x) for x in z], *[project(x, "teacher.") for x in views])
        return terms(*z)

    taught = []

    def average():
        if centre:
            p["head.projection.2.centre"].mul_(CENTRE).add_(torch.cat(taught).mean(0), alpha=1 - CENTRE)
        for path in own if teacher else []:
            p["teacher." + path].mul_(DECAY).add_(p[path].detach(), alpha=1 - DECAY)

    return train(name, streams, p, step, average)


def simclr():
    return joint("simclr", {"view.1": 500, "view.2": 600}, lambda a, b: {"nt_xent": nt_xent(a, b)})


def off_diagonal(c):
    return c - torch.diag(torch.diag(c))


def vicreg():
    def variance(z):
        return F.relu(1 - torch.sqrt(z.var(dim=0) + 0.0001)).mean()

    def covariance(z):
        return off_diagonal(torch.cov(z.T)).pow(2).sum() / z.shape[1]

    return joint("vicreg", {"view.1": 2900, "view.2": 3000}, lambda a, b: {
        "invariance": 25 * F.mse_loss(a, b), "variance": 25 * (variance(a) + variance(b)) / 2, "covariance": covariance(a) + covariance(b)})


def barlow_twins():
    def term(a, b):
        a, b = (F.batch_norm(z, None, None, training=True) for z in (a, b))
        c = a.T @ b / len(a)
        return {"barlow_twins": (torch.diag(c) - 1).pow(2).sum() + 0.005 * off_diagonal(c).pow(2).sum()}

    return joint("barlow-twins", {"view.1": 3100, "view.2": 3200}, term)


def byol():
    def distance(q, t):
        return (F.normalize(q) - F.normalize(t)).pow(2).sum(dim=1).mean()

    return joint("byol", {"view.1": 3300, "view.2": 3400}, lambda q1, q2, t1, t2: {"byol": (distance(q1, t2) + distance(q2, t1)) / 2}, teacher=True)


def dino():
    """The cross entropy as in the pseudocode of Caron et al., with the centre of the teacher's values."""
    def entropy(z, t, c):
        p = torch.softmax((t - c) / 0.3, dim=1)
        return -(p * torch.log_softmax(z / 0.8, dim=1)).sum(dim=1).mean()

    return joint("dino", {"view.1": 4900, "view.2": 5000}, lambda z1, z2, t1, t2, c: {"dino": entropy(z1, t2, c) / 2 + entropy(z2, t1, c) / 2},
                 teacher=True, centre=True)


def phased():
    """Values of the code of at most 0.3 are 0 in the steps 1 to 3; the sums of the last layer should be maxima."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.add("encoder.1.active", (1,), 0, frozen=True)
    p.dense("decoder.0", 8, 6)
    p.dense("decoder.1", 6, PIXELS)
    removed = []

    def terms(streams, step):
        x = images(streams["images"])
        p["encoder.1.active"].fill_(float(1 <= step <= 3))
        code = F.relu(p.apply("encoder.0", x))
        if p["encoder.1.active"].item() == 1:
            removed.append(((code > 0) & (code <= 0.3)).sum().item())
            code = torch.where(code > 0.3, code, torch.zeros_like(code))
        h, w = torch.tanh(p.apply("decoder.0", code)), p["decoder.1.weight"]
        largest = (h[:, :, None] * w).max(dim=1).values
        return {"mse": F.mse_loss(p.apply("decoder.1", h), x), "max_approximation_layer": 0.1 * F.mse_loss(h @ w, largest)}

    trained = train("phased", {"images": 5100}, p, terms)
    assert min(removed) > 0, removed
    return trained


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


def drawn_code(p, streams, x):
    """The mean, the log variance and a drawn value of 3 units, with the noise of a stream."""
    h = torch.tanh(p.apply("encoder.0", x))
    mean = p.apply("encoder.1", h)
    log_variance = h @ p["encoder.1.log_variance_weight"] + p["encoder.1.log_variance_bias"]
    noise = torch.from_numpy(uniform(streams["encoder.1.noise"], IMAGES * 3).reshape(IMAGES, 3))
    return mean, log_variance, mean + torch.exp(log_variance / 2) * noise


def variational(prior=False):
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("encoder.1", 8, 3)
    p.add("encoder.1.log_variance_weight", (8, 3), 0.5)
    p.add("encoder.1.log_variance_bias", (3,), 0.1)
    if prior:
        p.add("encoder.1.prior_mean", (3,), 0.5)
    p.dense("decoder.0", 3, PIXELS)
    return p


def vae():
    """The divergence from N(0, 1) with the weight 0.1."""
    p = variational()

    def terms(streams, _):
        x = images(streams["images"])
        mean, log_variance, code = drawn_code(p, streams, x)
        divergence = 0.5 * (log_variance.exp() + mean.square() - 1 - log_variance).sum(1).mean()
        return {"mse": F.mse_loss(p.apply("decoder.0", code), x), "gaussian_kl": 0.1 * divergence}

    return train("vae", {"images": 800, "encoder.1.noise": 900}, p, terms)


FREE = 0.125  # nats of each unit


def free_bits():
    """A Bernoulli likelihood, and a divergence of which each unit may have FREE nats."""
    p, free = variational(), []

    def terms(streams, _):
        x = images(streams["images"])
        mean, log_variance, code = drawn_code(p, streams, x)
        units = 0.5 * (log_variance.exp() + mean.square() - 1 - log_variance).mean(0)
        free.extend((units < FREE).tolist())
        output = torch.sigmoid(p.apply("decoder.0", code))
        return {"bce": PIXELS * F.binary_cross_entropy(output, x), "gaussian_kl": units.clamp(min=FREE).sum()}

    trained = train("free-bits", {"images": 4200, "encoder.1.noise": 4300}, p, terms)
    assert 0 < sum(free) < len(free), free  # both cases occur
    return trained


def rectified():
    """Codes max(0, N(mean, variance)), whose prior is max(0, N(prior_mean, 1))."""
    p = variational(prior=True)
    normal = torch.distributions.Normal(torch.tensor(0.0, dtype=torch.float64), 1.0)

    def terms(streams, _):
        x, prior = images(streams["images"]), p["encoder.1.prior_mean"]
        mean, log_variance, code = drawn_code(p, streams, x)
        s = torch.exp(log_variance / 2)
        t, d = mean / s, mean - prior
        zero, active, density = normal.cdf(-t), normal.cdf(t), normal.log_prob(t).exp()
        divergence = zero * (zero.log() - normal.cdf(-prior).log())
        divergence = divergence + ((d * d - log_variance) * active + 2 * d * s * density + (s * s - 1) * (active - t * density)) / 2
        return {"mse": F.mse_loss(p.apply("decoder.0", F.relu(code)), x), "rectified_kl": 0.1 * divergence.sum(1).mean()}

    return train("rectified", {"images": 4400, "encoder.1.noise": 4500}, p, terms)


class Nearest(torch.autograd.Function):
    """The nearest entries of a code book; the gradient passes straight through."""

    @staticmethod
    def forward(ctx, z, book):
        index = torch.cdist(z, book).argmin(1)
        ctx.mark_non_differentiable(index)
        return book[index], index

    @staticmethod
    def backward(ctx, gradient, _):
        return gradient, None


def vq():
    """4 tokens of 3 values, 5 entries that follow them by the averages of van den Oord et al., N and M; e = M / N.

    Entries with N below half of the mean are dead. The first of them becomes the token with the largest drawn key, ...
    """
    entries, decay, revive = 5, 0.6, 0.5
    p = Parameters()
    p.dense("encoder.0", PIXELS, 12)
    p.add("encoder.2.book", (entries, 3), 0.5, frozen=True)
    p.add("encoder.2.usage", (entries,), 0, frozen=True)
    p.dense("decoder.0", 12, PIXELS)
    book, usage = p["encoder.2.book"], p["encoder.2.usage"]
    counts, sums = torch.zeros(entries, dtype=torch.float64), torch.zeros(entries, 3, dtype=torch.float64)
    mean = IMAGES * 4 / entries

    def terms(streams, _):
        x = images(streams["images"])
        z = p.apply("encoder.0", x).reshape(-1, 3)
        y, index = Nearest.apply(z, book.clone())
        nearest = F.one_hot(index, entries).double()
        with torch.no_grad():
            counts.mul_(decay).add_((1 - decay) * nearest.sum(0))
            sums.mul_(decay).add_((1 - decay) * nearest.T @ z)
            moved = torch.where(counts[:, None] > 0, sums / counts[:, None], book)
            order = torch.from_numpy(uniform(streams["encoder.2.noise"], IMAGES * 4)).argsort(descending=True)
            dead = (counts < revive * mean).nonzero()[:, 0]
            moved[dead] = z[order[:len(dead)]]
            counts[dead] = mean
            sums[dead] = mean * moved[dead]
            book.copy_(moved)
            usage.copy_(counts / mean)
        return {"mse": F.mse_loss(p.apply("decoder.0", y.reshape(IMAGES, -1)), x), "commitment": 0.25 * F.mse_loss(z, y.detach())}

    return train("vq", {"images": 4300, "encoder.2.noise": 4400}, p, terms)


def boltzmann(name, chains=0, steps=1, deviation=0.0, target=None):
    """A restricted Boltzmann machine with 8 hidden units: free energy of the images minus that of samples. A deviation > 0 is that
    of gaussian visible units; binary ones are drawn from the images. Noises count from 1, in the order in which they are drawn."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.add("encoder.0.visible_bias", (PIXELS,), 0.3)
    if chains:
        p.add("encoder.0.chain", (chains, PIXELS), 0.5, frozen=True, shift=0.5)
    gaussian = deviation > 0
    variance = deviation ** 2 if gaussian else 1.0
    noises = 2 * steps + (0 if gaussian else 1)
    inputs = {"images": 4500, **{"encoder.0.noise" + (f".{k}" if k > 1 else ""): 4600 + 100 * k for k in range(1, noises + 1)}}

    def hidden(v):
        return v @ p["encoder.0.weight"] / variance + p["encoder.0.bias"]

    def energy(v):
        a = p["encoder.0.visible_bias"]
        own = ((v - a) ** 2).sum(1) / (2 * variance) if gaussian else -v @ a
        return own - F.softplus(hidden(v)).sum(1)

    def terms(streams, _):
        x = images(streams["images"])
        drawn = iter([stream for key, stream in streams.items() if key != "images"])
        with torch.no_grad():
            v = x if gaussian else (column(next(drawn), PIXELS) < x).double()
            samples = p["encoder.0.chain"].clone() if chains else v
            for _ in range(steps):
                h = (column(next(drawn), 8)[:len(samples)] < torch.sigmoid(hidden(samples))).double()
                noise = column(next(drawn), PIXELS)[:len(samples)]
                mean = h @ p["encoder.0.weight"].T + p["encoder.0.visible_bias"]
                samples = mean + noise if gaussian else (noise < torch.sigmoid(mean)).double()
            if chains:
                p["encoder.0.chain"].copy_(samples)
        values = {"contrastive_divergence": energy(v).mean() - energy(samples).mean()}
        if target is not None:
            values["l2"] = 0.5 * ((target - torch.sigmoid(hidden(x)).mean(0)) ** 2).sum()
        return values

    return train(name, inputs, p, terms)


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


def unet():
    """A U-Net of two levels with group norms: the decoder reads the encoder's output, and at both levels its first values."""
    p = Parameters()
    for path, kernel, inputs, outputs in [("encoder.0", 3, 1, 4), ("encoder.3", 2, 4, 6), ("encoder.4", 3, 6, 6),
                                          ("decoder.1", 3, 10, 4), ("decoder.4", 3, 4, 1)]:
        p.add(path + ".weight", (kernel, kernel, inputs, outputs), 0.5)
        p.add(path + ".bias", (outputs,), 0.1)
        if path in ("encoder.0", "decoder.1"):
            add_norm(p, path[:-1] + str(int(path[-1]) + 1), 4)

    def convolve(path, x, **options):
        return F.conv2d(x, p[path + ".weight"].permute(3, 2, 0, 1), p[path + ".bias"], **options)

    def normed(path, x):
        return F.group_norm(x, 2, p[path + ".scale"], p[path + ".shift"], 1e-5)

    def terms(streams, _):
        x = images(streams["images"])
        first = torch.tanh(normed("encoder.1", convolve("encoder.0", x.reshape(-1, 1, SIDE, SIDE), padding=1)))
        y = F.relu(convolve("encoder.3", first, stride=2))
        y = convolve("encoder.4", y, padding=1)
        y = F.interpolate(y, scale_factor=2, mode="nearest")
        y = F.silu(normed("decoder.2", convolve("decoder.1", torch.cat([y, first], 1), padding=1)))
        return {"mse": F.mse_loss(convolve("decoder.4", y, padding=1).reshape(IMAGES, -1), x)}

    return train("unet", {"images": 4600}, p, terms)


class Jump(torch.autograd.Function):
    """Values above a threshold, and which these are; the gradients of the threshold are the estimates of a window."""

    @staticmethod
    def forward(ctx, x, threshold, width, smooth=False):
        ctx.save_for_backward(x, threshold)
        ctx.width, ctx.smooth = width, smooth
        active = (x > threshold).to(x.dtype)
        return x * active, active

    @staticmethod
    def backward(ctx, gradient, of_active):
        x, threshold = ctx.saved_tensors
        window = ((x - threshold).abs() < ctx.width / 2).to(x.dtype) / ctx.width
        if ctx.smooth:
            window = (1 - (2 * (x - threshold) / ctx.width).tanh().square()) / ctx.width
        return gradient * (x > threshold), (-(threshold * gradient + of_active) * window).sum(0), None, None


def jump(name="jump", smooth=False):
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.add("encoder.1.threshold", (8,), 0.1, shift=0.3)
    p.dense("decoder.0", 8, PIXELS)

    def terms(streams, _):
        x = images(streams["images"])
        code, active = Jump.apply(p.apply("encoder.0", x), p["encoder.1.threshold"], 0.5, smooth)
        return {"mse": F.mse_loss(p.apply("decoder.0", code), x), "l0": 0.01 * active.sum(1).mean()}

    return train(name, {"images": 1100}, p, terms)


def batch_topk():
    """The 5, 4, 3, 2 and 2 largest positive values of a sample, on average over the batch; an average of the largest value that is not kept."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.add("encoder.1.threshold", (1,), 0, frozen=True, shift=-1)
    p.add("encoder.1.steps", (1,), 0, frozen=True)
    p.dense("decoder.0", 8, PIXELS)
    moved = []

    def terms(streams, step):
        x = images(streams["images"])
        h = p.apply("encoder.0", x)
        kept = max(2, 5 - step) * IMAGES
        t = h.detach().flatten().sort(descending=True).values[kept].clamp(min=0)
        old = p["encoder.1.threshold"].item()
        moved[:] = [t if old < 0 else 0.9 * old + 0.1 * t]
        return {"mse": F.mse_loss(p.apply("decoder.0", torch.where(h > t, h, torch.zeros_like(h))), x)}

    def after():
        p["encoder.1.threshold"].fill_(moved[0])
        p["encoder.1.steps"].add_(1)

    return train("batch-topk", {"images": 1100}, p, terms, after)


def gated():
    """As in the pseudocode of Rajamanoharan et al.: the gates are trained by their l1 norm and what they reconstruct by the held decoder."""
    p = Parameters()
    p.add("encoder.0.weight", (PIXELS, 8), 0.5)
    for name in ["gate_bias", "scale", "bias"]:
        p.add("encoder.1." + name, (8,), 0.2)
    p.dense("decoder.0", 8, PIXELS)

    def terms(streams, _):
        x = images(streams["images"])
        h = x @ p["encoder.0.weight"]
        gate = h + p["encoder.1.gate_bias"]
        code = F.relu(h * p["encoder.1.scale"].exp() + p["encoder.1.bias"]) * (gate > 0)
        held = F.relu(gate) @ p["decoder.0.weight"].detach() + p["decoder.0.bias"].detach()
        return {"mse": F.mse_loss(p.apply("decoder.0", code), x), "l1": 0.1 * F.relu(gate).sum(1).mean(), "gated": F.mse_loss(held, x)}

    return train("gated", {"images": 1100}, p, terms)


def matryoshka():
    """Codes with the largest value of each of 4 groups; prefixes of 2 and 4 units are decoded alone, and dead units decode the residual."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.add("encoder.2.idle", (8,), 0, frozen=True)
    p.dense("decoder.0", 8, PIXELS)
    idle, used = [], []

    def terms(streams, _):
        x = images(streams["images"])
        h = F.relu(p.apply("encoder.0", x))
        groups = h.reshape(IMAGES, 4, 2)
        code = (groups * F.one_hot(groups.argmax(2), 2)).reshape(IMAGES, 8)
        dead = (p["encoder.2.idle"] >= IMAGES).double()
        values, places = (h * dead).topk(2, dim=1)
        spare = torch.zeros_like(h).scatter(1, places, values)
        used.append((spare > 0).sum().item())
        idle[:] = [torch.where((code > 0).any(0), torch.zeros(8, dtype=torch.float64), p["encoder.2.idle"] + IMAGES)]
        y = p.apply("decoder.0", code)
        prefix = lambda n: F.mse_loss(p.apply("decoder.0", code * (torch.arange(8) < n)), x)
        norms = p["decoder.0.weight"].square().sum(1).sqrt()
        return {"mse": F.mse_loss(y, x), "first": prefix(2), "second": prefix(4), "atom_l1": 0.01 * (code * norms).sum(1).mean(),
                "aux_k": 0.5 * F.mse_loss(spare @ p["decoder.0.weight"], (x - y).detach())}

    def after():
        p["encoder.2.idle"].copy_(idle[0])

    trained = train("matryoshka", {"images": 1100}, p, terms, after)
    assert sum(used) > 1, used
    return trained


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


def regression():
    """A head of two values against two columns, some entries of which are seen, with a weight of every sample."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("head.y.0", 8, 2)

    def terms(streams, _):
        y = p.apply("head.y.0", torch.tanh(p.apply("encoder.0", images(streams["images"]))))
        counts = marks(streams["seen"], 2) * column(streams["weight"], 1)
        return {"mse": (counts * (y - column(streams["target"], 2)) ** 2).sum() / counts.sum()}

    return train("regression", {"images": 1300, "target": 1400, "seen": 1500, "weight": 1600}, p, terms)


def multi_label():
    """Three yes-or-no labels of every sample."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("head.y.0", 8, 3)

    def terms(streams, _):
        y = p.apply("head.y.0", torch.tanh(p.apply("encoder.0", images(streams["images"]))))
        return {"bce": F.binary_cross_entropy_with_logits(y, marks(streams["tags"], 3))}

    return train("multi-label", {"images": 1700, "tags": 1800}, p, terms)


def embedded(p, path, streams):
    """Rows of a table for the tokens of a sample, one after the other."""
    return F.embedding(tokens(streams["tokens"]), p[path + ".weight"]).reshape(IMAGES, -1)


def embedding():
    p = Parameters()
    p.add("encoder.0.weight", (VOCABULARY, 3), 0.5)
    p.dense("encoder.1", TOKENS * 3, 8)
    p.dense("head.y.0", 8, 2)

    def terms(streams, _):
        y = p.apply("head.y.0", torch.tanh(p.apply("encoder.1", embedded(p, "encoder.0", streams))))
        return {"mse": F.mse_loss(y, column(streams["target"], 2))}

    return train("embedding", {"tokens": 1900, "target": 2000}, p, terms)


def two_columns():
    """Two encoders, one of images and one of tokens, and a term with a learned temperature that compares them."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("head.image.0", 8, 4)
    p.add("head.text.0.weight", (VOCABULARY, 3), 0.5)
    p.dense("head.text.1", TOKENS * 3, 4)
    p.add("loss.contrastive.log_scale", (1,), 0.5)

    def terms(streams, _):
        first = p.apply("head.image.0", torch.tanh(p.apply("encoder.0", images(streams["images"]))))
        second = p.apply("head.text.1", embedded(p, "head.text.0", streams))
        similar = F.normalize(first) @ F.normalize(second).T * p["loss.contrastive.log_scale"].exp()
        own = torch.arange(IMAGES)
        return {"contrastive": (F.cross_entropy(similar, own) + F.cross_entropy(similar.T, own)) / 2}

    return train("two-columns", {"images": 2100, "tokens": 2200}, p, terms)


def sharpness():
    """Every gradient is that at the parameters moved by RHO along the unit gradient."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("decoder.0", 8, PIXELS)
    optimizer = torch.optim.Adam(p.trained(), lr=0.01)
    inputs, losses = {"images": 2300}, []
    for step in range(STEPS):
        x = images(inputs["images"] + step)

        def gradients():
            loss = F.mse_loss(p.apply("decoder.0", torch.sigmoid(p.apply("encoder.0", x))), x)
            return loss, torch.autograd.grad(loss, p.trained())

        loss, first = gradients()
        length = torch.sqrt(sum(g.square().sum() for g in first))
        with torch.no_grad():
            for w, g in zip(p.trained(), first):
                w += RHO * g / length
        _, second = gradients()
        with torch.no_grad():
            for w, g in zip(p.trained(), first):
                w -= RHO * g / length
        for w, g in zip(p.trained(), second):
            w.grad = g
        optimizer.step()
        losses.append({"loss": loss.item(), "loss.mse": loss.item()})
    return {"name": "sharpness", "inputs": inputs, "losses": losses, "parameters": p.written()}


def surgery():
    """PCGrad of two terms: the gradients of the shared parameters without the parts that work against each other."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 8)
    p.dense("head.class.0", 8, CLASSES)
    p.dense("decoder.0", 8, PIXELS)
    optimizer = torch.optim.Adam(p.trained(), lr=0.01)
    inputs, losses = {"images": 3100, "labels": 3200}, []
    for step in range(STEPS):
        x, y = images(inputs["images"] + step), labels(inputs["labels"] + step)
        code = torch.sigmoid(p.apply("encoder.0", x))
        terms = {"mse": F.mse_loss(p.apply("decoder.0", code), x), "cross_entropy": 0.5 * F.cross_entropy(p.apply("head.class.0", code), y)}
        own = [torch.autograd.grad(term, p.trained(), retain_graph=True, allow_unused=True) for term in terms.values()]
        shared = [g is not None and h is not None for g, h in zip(*own)]
        flat = [torch.cat([g.flatten() for g, both in zip(gs, shared) if both]) for gs in own]
        product = flat[0] @ flat[1]
        assert product < 0, "the fixture needs a conflict in every step"
        merged = iter((flat[0] - product / (flat[1] @ flat[1]) * flat[1] + flat[1] - product / (flat[0] @ flat[0]) * flat[0]).split(
            [w.numel() for w, both in zip(p.trained(), shared) if both]))
        for w, g, h, both in zip(p.trained(), *own, shared):
            w.grad = next(merged).reshape(w.shape) if both else g if h is None else h
        optimizer.step()
        losses.append({"loss": sum(terms.values()).item(), **{"loss." + key: v.item() for key, v in terms.items()}})
    return {"name": "surgery", "inputs": inputs, "losses": losses, "parameters": p.written()}


def attention(p, path, x, keys, heads, there=None, causal=False):
    """Multi-head attention from tokens x to the tokens keys, to those of them that are there or not behind, without a bias of the keys."""
    def split(y):
        return y.reshape(len(y), y.shape[1], heads, -1).transpose(1, 2)

    def mapped(y, name):
        return y @ p[f"{path}.{name}"] + (p[f"{path}.{name}_bias"] if f"{path}.{name}_bias" in p.entries else 0)

    query, key, value = split(mapped(x, "query")), split(mapped(keys, "key")), split(mapped(keys, "value"))
    scores = query @ key.transpose(2, 3) / query.shape[3] ** 0.5
    if there is not None:
        scores = scores.masked_fill(~there[:, None, None, :], float("-inf"))
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[2:]).triu(1).bool(), float("-inf"))
    weights = torch.softmax(scores, 3)
    return mapped((weights @ value).transpose(1, 2).reshape(len(x), x.shape[1], -1), "output")


def add_attention(p, path, features, others, bias):
    for name, inputs in {"query": features, "key": others, "value": others, "output": features}.items():
        p.add(f"{path}.{name}", (inputs, features), 0.5)
        if bias and name != "key":
            p.add(f"{path}.{name}_bias", (features,), 0.1)


def add_norm(p, path, features):
    p.add(path + ".scale", (features,), 0.2, shift=1.0)
    p.add(path + ".shift", (features,), 0.1)


def norm(p, path, x):
    return F.layer_norm(x, x.shape[-1:], p[path + ".scale"], p[path + ".shift"], 1e-5)


def add_block(p, path, features, hidden, others=0):
    add_norm(p, path + ".norm1", features)
    add_attention(p, path + ".attention", features, features, True)
    if others:
        add_norm(p, path + ".norm_cross", features)
        add_attention(p, path + ".cross", features, others, True)
    add_norm(p, path + ".norm2", features)
    p.dense(path + ".hidden", features, hidden)
    p.dense(path + ".output", hidden, features)


def block(p, path, x, heads, keys=None, there=None, keys_there=None, causal=False):
    """A pre-norm block of a transformer."""
    y = norm(p, path + ".norm1", x)
    x = x + attention(p, path + ".attention", y, y, heads, there, causal)
    if keys is not None:
        x = x + attention(p, path + ".cross", norm(p, path + ".norm_cross", x), keys, heads, keys_there)
    return x + p.apply(path + ".output", F.gelu(p.apply(path + ".hidden", norm(p, path + ".norm2", x))))


def patches(x, size):
    n = SIDE // size
    return x.reshape(-1, n, size, n, size).transpose(2, 3).reshape(-1, n * n, size * size)


def unpatch(x, size):
    n = SIDE // size
    return x.reshape(-1, n, n, size, size).transpose(2, 3).reshape(-1, PIXELS)


def vit():
    """Patches, a learned position, a class token, two blocks, and the class token as the code."""
    p = Parameters()
    p.dense("encoder.1", 4, 6)
    p.add("encoder.2.embedding", (9, 6), 0.3)
    p.add("encoder.3.token", (6,), 0.3)
    add_block(p, "encoder.4", 6, 12)
    add_block(p, "encoder.5", 6, 12)
    add_norm(p, "encoder.6", 6)
    p.dense("head.class.0", 6, CLASSES)

    def terms(streams, _):
        x = p.apply("encoder.1", patches(images(streams["images"]), 2)) + p["encoder.2.embedding"]
        x = torch.cat([p["encoder.3.token"].expand(IMAGES, 1, 6), x], 1)
        x = norm(p, "encoder.6", block(p, "encoder.5", block(p, "encoder.4", x, 2), 2))
        return {"cross_entropy": F.cross_entropy(p.apply("head.class.0", x[:, 0]), labels(streams["labels"]))}

    return train("vit", {"images": 2400, "labels": 2500}, p, terms)


def waves(tokens, features):
    angles = torch.tensor([[t / 10000 ** ((f - f % 2) / features) for f in range(features)] for t in range(tokens)], dtype=torch.float64)
    even = torch.arange(features) % 2 == 0
    return torch.where(even, angles.sin(), angles.cos()).float().double()  # parameters begin in float32


def masked():
    """A masked autoencoder: the encoder sees 3 of 9 patches, the decoder a learned token at the places of the others."""
    p = Parameters()
    p.dense("encoder.1", 4, 6)
    p.add("encoder.2.embedding", (9, 6), 0.3)
    add_block(p, "encoder.4", 6, 12)
    add_norm(p, "encoder.5", 6)
    p.dense("decoder.0", 6, 4)
    p.add("decoder.1.token", (4,), 0.3)
    p.add("decoder.2.embedding", (9, 4), 0.3)
    add_block(p, "decoder.3", 4, 8)
    p.dense("decoder.4", 4, 4)

    def terms(streams, _):
        x = images(streams["images"])
        order = torch.from_numpy(uniform(streams["encoder.3.noise"], IMAGES * 9).reshape(IMAGES, 9)).argsort(1)
        hidden, visible = order[:, :6], order[:, 6:]
        mask = torch.zeros(IMAGES, 9, dtype=torch.float64).scatter(1, hidden, 1.0)
        tokens = p.apply("encoder.1", patches(x, 2)) + p["encoder.2.embedding"]
        seen = torch.gather(tokens, 1, visible[:, :, None].expand(-1, -1, 6))
        seen = p.apply("decoder.0", norm(p, "encoder.5", block(p, "encoder.4", seen, 2)))
        full = p["decoder.1.token"].expand(IMAGES, 9, 4).scatter(1, visible[:, :, None].expand(-1, -1, 4), seen)
        full = block(p, "decoder.3", full + p["decoder.2.embedding"], 2)
        error = (p.apply("decoder.4", full) - patches(x, 2)).square().mean(2)
        return {"mse": (error * mask).sum() / mask.sum()}

    return train("masked", {"images": 2600, "encoder.3.noise": 2700}, p, terms)


def cross():
    """A decoder whose tokens, from the code and constant positions, read the tokens of the encoder: once in a layer attention, once in a block."""
    p = Parameters()
    p.dense("encoder.1", 4, 6)
    p.dense("encoder.2", 54, 8)
    p.dense("decoder.0", 8, 16)
    add_attention(p, "decoder.3", 4, 6, False)
    add_block(p, "decoder.4", 4, 8, 6)
    p.dense("decoder.5", 16, PIXELS)

    def terms(streams, _):
        x = images(streams["images"])
        tokens = torch.tanh(p.apply("encoder.1", patches(x, 2)))
        y = p.apply("decoder.0", p.apply("encoder.2", tokens.reshape(IMAGES, -1))).reshape(IMAGES, 4, 4) + waves(4, 4)
        y = block(p, "decoder.4", attention(p, "decoder.3", y, tokens, 2), 2, tokens)
        return {"mse": F.mse_loss(p.apply("decoder.5", y.reshape(IMAGES, -1)), x)}

    return train("cross", {"images": 2800}, p, terms)


def lengths_of_text():
    """Tokens of which the first ones are there: in attention, in a block, in its attention to other tokens, in a mean and in a term."""
    p = Parameters()
    p.add("encoder.0.weight", (VOCABULARY, 6), 0.5)
    p.add("encoder.1.embedding", (TOKENS, 6), 0.3)
    add_block(p, "encoder.2", 6, 12)
    add_attention(p, "encoder.3", 6, 6, False)
    p.dense("head.y.0", 6, 2)
    p.dense("head.next.0", 6, 1)
    add_block(p, "head.question.1", 4, 8, 6)
    p.dense("head.question.2", PIXELS, 2)

    def terms(streams, _):
        there = torch.arange(TOKENS) < lengths(streams["length"])[:, None]
        words, target = tokens(streams["tokens"]), column(streams["target"], 2)
        x = F.embedding(words, p["encoder.0.weight"]) + p["encoder.1.embedding"]
        x = block(p, "encoder.2", x, 2, there=there)
        x = attention(p, "encoder.3", x, x, 2, there)
        mean = torch.stack([row[seen].mean(0) for row, seen in zip(x, there)])
        error = p.apply("head.next.0", x)[:, :, 0] - words.double()
        asked = block(p, "head.question.1", images(streams["images"]).reshape(-1, 9, 4), 2, x, keys_there=there)
        return {"y": F.mse_loss(p.apply("head.y.0", mean), target), "next": 0.1 * error[there].square().mean(),
                "question": F.mse_loss(p.apply("head.question.2", asked.reshape(IMAGES, -1)), target)}

    return train("lengths", {"images": 3500, "tokens": 3600, "length": 3700, "target": 3800}, p, terms)


def rotary(x, heads):
    """x (batch, tokens, features) with the features i and i + d/2 of every head turned by the place of the token, divided by 10000^(2i/d)."""
    batch, n, features = x.shape
    d = features // heads
    z = x.reshape(batch, n, heads, d)
    z = torch.complex(z[..., : d // 2], z[..., d // 2 :])
    angles = torch.arange(n, dtype=torch.float64)[:, None] / 10000 ** (2 * torch.arange(d // 2, dtype=torch.float64) / d)
    z = z * torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.cat([z.real, z.imag], -1).reshape(batch, n, features)


def turned():
    """Causal attention of two heads whose queries and keys are turned by their places."""
    p = Parameters()
    p.add("encoder.0.weight", (VOCABULARY, 8), 0.5)
    add_attention(p, "encoder.1", 8, 8, False)
    p.dense("head.next.0", 8, VOCABULARY)

    def terms(streams, _):
        words = tokens(streams["tokens"])
        x = F.embedding(words, p["encoder.0.weight"])
        heads = lambda y: y.reshape(-1, TOKENS, 2, 4).transpose(1, 2)
        q, k = (heads(rotary(x @ p["encoder.1." + name], 2)) for name in ("query", "key"))
        scores = (q @ k.transpose(2, 3) / 2).masked_fill(torch.ones(TOKENS, TOKENS).triu(1) > 0, -torch.inf)
        y = (scores.softmax(-1) @ heads(x @ p["encoder.1.value"])).transpose(1, 2).reshape(-1, TOKENS, 8) @ p["encoder.1.output"]
        return {"next_token": F.cross_entropy(p.apply("head.next.0", y)[:, :-1].flatten(0, 1), words[:, 1:].flatten())}

    return train("turned", {"tokens": 5200}, p, terms)


def recurrent():
    """An LSTM and a GRU above it: the token behind each of those that are there."""
    p = Parameters()
    p.add("encoder.0.weight", (VOCABULARY, 6), 0.5)
    for path, features, units, gates in [("encoder.1", 6, 5, 4), ("encoder.2", 5, 6, 3)]:
        p.add(path + ".weight", (features, gates * units), 0.5)
        p.add(path + ".bias", (gates * units,), 0.1)
        p.add(path + ".recurrent_weight", (units, gates * units), 0.5)
        p.add(path + ".recurrent_bias", (gates * units,), 0.1)
    p.dense("head.next.0", 6, VOCABULARY)

    def weights(path):
        return [p[path + ".weight"].T, p[path + ".recurrent_weight"].T, p[path + ".bias"], p[path + ".recurrent_bias"]]

    def terms(streams, _):
        words, n = tokens(streams["tokens"]), lengths(streams["length"])
        zeros = lambda units: torch.zeros(1, IMAGES, units, dtype=torch.float64)
        x = torch.lstm(F.embedding(words, p["encoder.0.weight"]), (zeros(5), zeros(5)), weights("encoder.1"), True, 1, 0.0, True, False, True)[0]
        x = torch.gru(x, zeros(6), weights("encoder.2"), True, 1, 0.0, True, False, True)[0]
        counted = torch.arange(1, TOKENS) < n[:, None]
        return {"next_token": F.cross_entropy(p.apply("head.next.0", x)[:, :-1][counted], words[:, 1:][counted])}

    return train("recurrent", {"tokens": 5400, "length": 5500}, p, terms)


def language():
    """A model of language: the token behind each of those that are there, from it and those before it."""
    p = Parameters()
    p.add("encoder.0.weight", (VOCABULARY, 6), 0.5)
    p.add("encoder.1.embedding", (TOKENS, 6), 0.3)
    add_block(p, "encoder.2", 6, 12)
    p.dense("head.next.0", 6, VOCABULARY)

    def terms(streams, _):
        words, n = tokens(streams["tokens"]), lengths(streams["length"])
        x = block(p, "encoder.2", F.embedding(words, p["encoder.0.weight"]) + p["encoder.1.embedding"], 2, causal=True)
        logits = p.apply("head.next.0", x)[:, :-1]
        counted = torch.arange(1, TOKENS) < n[:, None]
        return {"next_token": F.cross_entropy(logits[counted], words[:, 1:][counted])}

    return train("language", {"tokens": 4200, "length": 4300}, p, terms)


def blanks():
    """A bidirectional model of language: hidden tokens are replaced by a token of their own, by a random one or by themselves, and predicted."""
    p = Parameters()
    p.add("encoder.1.weight", (VOCABULARY + 1, 6), 0.5)
    p.add("encoder.2.embedding", (TOKENS, 6), 0.3)
    add_block(p, "encoder.3", 6, 12)
    p.dense("head.token.0", 6, VOCABULARY)

    def terms(streams, _):
        words, there = tokens(streams["tokens"]), torch.arange(TOKENS) < lengths(streams["length"])[:, None]
        hidden, u = column(streams["hidden"], TOKENS) < 0.5, column(streams["encoder.0.noise"], TOKENS)
        other = torch.where(u < 0.25, words, torch.where(u < 0.5, ((u - 0.25) * 28).long(), VOCABULARY))
        x = F.embedding(torch.where(hidden, other, words), p["encoder.1.weight"]) + p["encoder.2.embedding"]
        logits = p.apply("head.token.0", block(p, "encoder.3", x, 2, there=there))
        return {"masked_token": F.cross_entropy(logits[hidden & there], words[hidden & there])}

    return train("blanks", {"tokens": 4800, "length": 4900, "hidden": 5000, "encoder.0.noise": 5100}, p, terms)


def words(name):
    """Vectors of words: a word that predicts two of its four, the mean of those that are there, and log counts."""
    p = Parameters()
    p.add("encoder.0.weight", (VOCABULARY, 6), 0.5)
    if name == "glove":
        p.add("head.bias.0.weight", (VOCABULARY, 1), 0.5)
    p.add("head.score.0.weight", (VOCABULARY, 6), 0.5)

    def terms(streams, _):
        of, word = tokens(streams["tokens"]), lengths(streams["length"])
        first, second = (lambda index: F.embedding(index, p["encoder.0.weight"])), (lambda index: F.embedding(index, p["head.score.0.weight"]))
        if name == "glove":
            z = torch.einsum("bij,bj->bi", second(of), first(word)) + F.embedding(of, p["head.bias.0.weight"])[:, :, 0]
            errors = torch.clamp(of / 4, max=1) ** 0.5 * (z - torch.log(of.clamp(min=1).double())) ** 2
            return {"glove": torch.where(of > 0, errors, 0.0).mean()}
        if name == "skip-gram":
            z, near = torch.einsum("bij,bj->bi", second(of), first(word)), column(streams["target"], 2)
            drawn = -F.logsigmoid(-z[:, 2:]).mean(1) * 5
            return {"negative_sampling": ((near * -F.logsigmoid(z[:, :2])).sum() + (near.sum(1) * drawn).sum()) / near.sum()}
        mean = torch.stack([first(row[:n]).mean(0) for row, n in zip(of, word)])
        z = torch.einsum("bij,bj->bi", second(torch.cat([word[:, None], of], 1)), mean)
        return {"negative_sampling": (-F.logsigmoid(z[:, 0]) - F.logsigmoid(-z[:, 1:]).mean(1) * 3).mean()}

    return train(name, {"tokens": 4300, "length": 4400, **({"target": 4500} if name == "skip-gram" else {})}, p, terms)


def bag_of_words():
    """A linear classifier of the mean of the vectors of the first tokens."""
    p = Parameters()
    p.add("encoder.0.weight", (VOCABULARY, 6), 0.5)
    p.add("head.y.0.weight", (6, CLASSES), 0.5)

    def terms(streams, _):
        n = lengths(streams["length"])
        there = (torch.arange(TOKENS) < n[:, None]).double()
        mean = F.embedding_bag(tokens(streams["tokens"]), p["encoder.0.weight"], mode="sum", per_sample_weights=there / n[:, None])
        return {"cross_entropy": 3 * F.cross_entropy(mean @ p["head.y.0.weight"], labels(streams["labels"]))}

    return train("fasttext", {"tokens": 4300, "length": 4400, "labels": 4600}, p, terms)


def gan():
    """A forger makes images of drawn noise, and a judge tells them from those of the data."""
    p = Parameters()
    p.dense("encoder.0", PIXELS, 4)
    p.dense("head.real.0", 4, 1)
    p.dense("head.generated.0", 3, 5)
    p.dense("head.generated.1", 5, PIXELS)
    forger = [e["tensor"] for path, e in p.entries.items() if path.startswith("head.generated")]
    judge = [e["tensor"] for path, e in p.entries.items() if not path.startswith("head.generated")]
    optimizer = torch.optim.Adam(p.trained(), lr=0.01)
    inputs, losses = {"images": 3900, "noise": 4000, "true": 4100}, []

    def judged(x):
        return torch.sigmoid(p.apply("head.real.0", torch.tanh(p.apply("encoder.0", x))))

    for step in range(STEPS):
        noise, true = column(inputs["noise"] + step, 3), column(inputs["true"] + step, 1)
        made = torch.sigmoid(p.apply("head.generated.1", F.relu(p.apply("head.generated.0", noise))))
        real, fake = judged(images(inputs["images"] + step)), judged(made)
        values = {"accepts": F.binary_cross_entropy(real, true), "rejects": F.binary_cross_entropy(fake, torch.zeros_like(fake)),
                  "fools": F.binary_cross_entropy(fake, true)}
        gradients = torch.autograd.grad(values["accepts"] + values["rejects"], judge, retain_graph=True) + torch.autograd.grad(values["fools"], forger)
        for w, g in zip(judge + forger, gradients):
            w.grad = g
        optimizer.step()
        losses.append({"loss": sum(values.values()).item(), **{"loss." + key: v.item() for key, v in values.items()}})
    return {"name": "gan", "inputs": inputs, "losses": losses, "parameters": p.written()}


print(json.dumps({
    "steps": STEPS, "images": IMAGES, "side": SIDE, "classes": CLASSES,
    "uniform": uniform(7, 5).tolist(), "labels": labels(200).tolist(), "few_labels": [few_labels(400 + s, s).tolist() for s in range(STEPS)],
    "models": [classifier("classifier", False), classifier("classifier-on-parts", True), semi_supervised(), simclr(), unrolled(), players(), vae(), skip(), jump(), jump("jump-tanh", True), batch_topk(), gated(), matryoshka(),
               two_encoders(), regression(), multi_label(), embedding(), two_columns(), sharpness(), surgery(),
               vit(), masked(), cross(),
               vicreg(), barlow_twins(), byol(), lengths_of_text(), language(), turned(), recurrent(), blanks(), words("skip-gram"), words("cbow"), words("glove"), bag_of_words(), gan(), vq(), free_bits(), rectified(), unet(),
               boltzmann("rbm", steps=2, target=0.1), boltzmann("rbm-persistent", chains=7), boltzmann("rbm-gaussian", deviation=0.8),
               dino(), phased()],
}).replace('{"path"', '\n{"path"').replace('{"name"', '\n{"name"'))
