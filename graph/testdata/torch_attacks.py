#!/usr/bin/python3
"""Writes torch_attacks.json: adversarial examples of a classifier of two dense layers, as PyTorch computes them in float64.

    python3 torch_attacks.py > torch_attacks.json

FGSM and PGD are written from the papers (Goodfellow et al. 2015, Madry et al. 2018, Carlini and Wagner 2017). Examples are compared for
16 images from given starting points, accuracies for 1,000 images.
"""
import base64
import json

import numpy as np
import torch
from torch.nn import functional as F

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
SIDE, CLASSES, UNITS, N, FEW, STEPS = 8, 10, 24, 1000, 16, 10
PIXELS = SIDE * SIDE

prototypes = torch.rand(CLASSES, PIXELS)
labels = torch.randint(CLASSES, (N,))
noisy = 0.5 + 0.35 * (prototypes[labels] - 0.5) + 0.25 * torch.randn(N, PIXELS)
stored = (noisy.clamp(0, 1) * 255).round().to(torch.uint8)
images = (stored.to(torch.float32) / 255).double()

layers = [torch.nn.Linear(PIXELS, UNITS), torch.nn.Linear(UNITS, CLASSES)]
optimizer = torch.optim.Adam([p for l in layers for p in l.parameters()], lr=0.01)


def logits(x):
    return layers[1](F.relu(layers[0](x)))


for _ in range(60):
    loss = F.cross_entropy(logits(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    for l in layers:
        for p in l.parameters():
            p.copy_(p.to(torch.float32).double())


def objective(name, x, c):
    z = logits(x)
    if name == "cross_entropy":
        return F.cross_entropy(z, c, reduction="none")
    others = z.clone()
    others[torch.arange(len(c)), c] = -np.inf
    return others.max(1).values - z[torch.arange(len(c)), c]


def attack(x0, c, start, norm, epsilon, steps, step, name):
    x = start.clone()
    for _ in range(steps):
        x.requires_grad_(True)
        (g,) = torch.autograd.grad(objective(name, x, c).sum(), x)
        x = x.detach()
        if norm == "linf":
            x = torch.minimum(torch.maximum(x + step * g.sign(), x0 - epsilon), x0 + epsilon)
        else:
            d = x + step * g / g.norm(dim=1, keepdim=True).clamp(min=1e-300) - x0
            x = x0 + d * (epsilon / d.norm(dim=1, keepdim=True)).clamp(max=1)
        x = x.clamp(0, 1)
    return x


def random_start(x0, norm, epsilon):
    if norm == "linf":
        return (x0 + epsilon * (2 * torch.rand_like(x0) - 1)).clamp(0, 1)
    d = torch.randn_like(x0)
    d *= epsilon * torch.rand(len(x0), 1) ** (1 / PIXELS) / d.norm(dim=1, keepdim=True)
    return (x0 + d).clamp(0, 1)


def right(x):
    with torch.no_grad():
        return logits(x).argmax(1) == labels


def floats(t):
    return [float(np.float32(v)) for v in t.detach().flatten()]


cases = []
for norm, epsilon in (("linf", 0.06), ("l2", 0.4)):
    for name in ("cross_entropy", "margin"):
        for method in ("fgsm", "pgd"):
            steps, step = (1, epsilon) if method == "fgsm" else (STEPS, 2.5 * epsilon / STEPS)
            start = images if method == "fgsm" else random_start(images, norm, epsilon).to(torch.float32).double()
            x = attack(images[:FEW], labels[:FEW], start[:FEW], norm, epsilon, steps, step, name)
            clean = attack(images, labels, images, norm, epsilon, steps, step, name)
            case = dict(norm=norm, epsilon=epsilon, method=method, objective=name, steps=steps, start=floats(start[:FEW]), images=floats(x),
                        right=int(right(clean).sum()))
            if method == "pgd":
                resists = right(images)
                for _ in range(20):
                    resists &= right(attack(images, labels, random_start(images, norm, epsilon), norm, epsilon, steps, step, name))
                case["after_20_starts"] = int(resists.sum())
            cases.append(case)

print(json.dumps(dict(
    weights=[floats(l.weight.T) for l in layers], biases=[floats(l.bias) for l in layers], units=UNITS, classes=CLASSES, side=SIDE,
    images=base64.b64encode(stored.numpy().tobytes()).decode(), labels=labels.tolist(), right=int(right(images).sum()), cases=cases), indent=None))
