#!/usr/bin/python3
"""Writes torch_cross_entropy.json: cross entropy with label smoothing, class weights and a focal factor, TRADES, and distillation, with their
gradients with respect to the logits, in float64, as PyTorch computes them.

    python3 torch_cross_entropy.py > torch_cross_entropy.json

The class -1 is unknown (ignore_index).
"""
import json

import torch
from torch.nn import functional as F

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)
N, CLASSES = 7, 5
z = 3 * torch.randn(N, CLASSES)
clean = 3 * torch.randn(N, CLASSES)
labels = torch.tensor([0, 4, -1, 2, 2, 1, 3])
weights = torch.tensor([0.5, 2.0, 1.0, 0.25, 3.0])


def entropy(z, smoothing=0.0, weight=None):
    return F.cross_entropy(z, labels, weight=weight, label_smoothing=smoothing, ignore_index=-1)


def focal(z, g, weight=None):
    known = labels >= 0
    w = torch.ones(CLASSES) if weight is None else weight
    p = F.log_softmax(z[known], 1).gather(1, labels[known, None])[:, 0]
    w = w[labels[known]]
    return -(w * (1 - p.exp()) ** g * p).sum() / w.sum()


def trades(z, beta):
    return entropy(clean) + beta * F.kl_div(F.log_softmax(z, 1), F.softmax(clean, 1), reduction="batchmean")


def distillation(z, t, soft):
    apart = F.kl_div(F.log_softmax(z / t, 1), F.log_softmax(clean / t, 1), reduction="batchmean", log_target=True)
    return soft * t * t * apart + (1 - soft) * entropy(z)


cases = []


def case(kind, settings, value):
    x = z.clone().requires_grad_(True)
    y = value(x)
    y.backward()
    cases.append(dict(kind=kind, settings=settings, value=y.item(), gradient=x.grad.tolist()))


case("cross_entropy", {}, entropy)
case("cross_entropy", {"label_smoothing": 0.1}, lambda x: entropy(x, 0.1))
case("cross_entropy", {"class_weights": weights.tolist()}, lambda x: entropy(x, 0, weights))
case("cross_entropy", {"class_weights": weights.tolist(), "label_smoothing": 0.3}, lambda x: entropy(x, 0.3, weights))
case("cross_entropy", {"focal": 2.0}, lambda x: focal(x, 2.0))
case("cross_entropy", {"focal": 1.5, "class_weights": weights.tolist()}, lambda x: focal(x, 1.5, weights))
case("trades", {"beta": 6.0}, lambda x: trades(x, 6.0))
case("trades", {"beta": 0.5}, lambda x: trades(x, 0.5))
case("distillation", {"temperature": 1.0, "soft": 1.0}, lambda x: distillation(x, 1, 1))
case("distillation", {"temperature": 4.0, "soft": 0.7}, lambda x: distillation(x, 4, 0.7))
case("distillation", {"soft": 0.0}, lambda x: distillation(x, 1, 0))
print(json.dumps(dict(logits=z.tolist(), clean=clean.tolist(), labels=labels.tolist(), cases=cases), indent=1))
