#!/usr/bin/python3
"""Write torch_muon.json: what the update of Muon makes of given gradients, in float64.

The update is that of Jordan et al., 2024 (zeropower_via_newtonschulz5 and the step of their optimizer), without its
bfloat16. A matrix is laid out as in Tessera, (inputs, units): the transpose of PyTorch's. Run it in this folder with
Debian's python3-torch; the checked-in file was made with PyTorch 1.13.
"""
import json

import torch

STEPS = 5
CASES = [
    ("wide", (3, 7), {}),
    ("tall", (9, 4), {}),
    ("square", (5, 5), {"nesterov": False, "momentum": 0.8}),
    ("filters", (2, 2, 3, 5), {"learning_rate": 0.1, "weight_decay": 0.3, "iterations": 3}),
]


def newton_schulz(g, steps):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    if g.size(0) > g.size(1):
        x = x.T
    for _ in range(steps):
        y = x @ x.T
        x = a * x + (b * y + c * y @ y) @ x
    return x.T if g.size(0) > g.size(1) else x


def train(shape, learning_rate=0.02, momentum=0.95, nesterov=True, iterations=5, weight_decay=0.0):
    generator = torch.Generator().manual_seed(5)
    draw = lambda: torch.randn(shape, generator=generator, dtype=torch.float32).double()
    w, buffer = draw(), torch.zeros(shape, dtype=torch.float64)
    start, gradients, weights = w.clone(), [], []
    for _ in range(STEPS):
        g = draw()
        buffer.mul_(momentum).add_(g)
        u = g.add(buffer, alpha=momentum) if nesterov else buffer
        matrix = u.reshape(-1, shape[-1]).T  # (units, inputs) as in PyTorch
        o = newton_schulz(matrix, iterations) * max(1, matrix.size(0) / matrix.size(1)) ** 0.5
        w = w * (1 - learning_rate * weight_decay) - learning_rate * o.T.reshape(shape)
        gradients.append(g.flatten().tolist())
        weights.append(w.flatten().tolist())
    return {"start": start.flatten().tolist(), "gradients": gradients, "weights": weights}


with open("torch_muon.json", "w") as f:
    json.dump([{"name": name, "shape": shape, "settings": settings, **train(shape, **settings)} for name, shape, settings in CASES], f)
    f.write("\n")
