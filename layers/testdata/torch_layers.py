#!/usr/bin/python3
"""Writes torch_layers.json: layers with their gradients as PyTorch computes them, in float32.

    python3 torch_layers.py > torch_layers.json

Images and filters are written with their channels last, as Tessera has them.
"""
import json
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
BATCH = 3


def last(x):
    """(batch, channels, ...) with the channels last."""
    return x.movedim(1, -1) if x.dim() > 2 else x


def numbers(x):
    return [float(f"{v:.7g}") for v in x.detach().flatten().tolist()]


def case(layer, settings, shape, x, y, parameters, training=True, updates=None, also=()):
    """x, y are PyTorch's; parameters holds name: (tensor, how it is laid out here), also those without a gradient."""
    seed = torch.randn_like(y)
    (y * seed).sum().backward()
    gradients = {"input": numbers(last(x.grad))}
    values = {}
    for name, (p, layout) in parameters.items():
        values[name] = numbers(layout(p))
        if name not in also:
            gradients[name] = numbers(layout(p.grad))
    return {"layer": layer, "settings": settings, "shape": list(shape), "batch": BATCH, "training": training,
            "x": numbers(last(x)), "parameters": values, "y": numbers(last(y)), "seed": numbers(last(seed)),
            "gradients": gradients, "updates": {k: numbers(v) for k, v in (updates or {}).items()}}


def image(h, w, c):
    return torch.randn(BATCH, c, h, w).requires_grad_()


def batch_norm(shape, training):
    norm, x = (nn.BatchNorm1d, (torch.randn(BATCH, shape[0]) * 2 + 1).requires_grad_()) if len(shape) == 1 else (nn.BatchNorm2d, image(*shape))
    layer = norm(shape[-1], eps=1e-3, momentum=0.01)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(shape[-1]))
        layer.bias.copy_(torch.randn(shape[-1]))
        layer.running_mean.copy_(torch.randn(shape[-1]))
        layer.running_var.copy_(torch.rand(shape[-1]) + 0.5)
    state = {"running_mean": layer.running_mean.clone(), "running_variance": layer.running_var.clone()}
    y = layer.train(training)(x)
    same = lambda p: p
    parameters = {"scale": (layer.weight, same), "shift": (layer.bias, same)} | {k: (v, same) for k, v in state.items()}
    moved = {"running_mean": layer.running_mean, "running_variance": layer.running_var} if training else None
    return case("batch_norm", {}, shape, x, y, parameters, training, moved, also=state)


def same(size, kernel, stride, dilation):
    """The padding before and after of an axis whose output has ceil(size / stride) places, any odd pixel at the end."""
    reach = (kernel - 1) * dilation + 1
    total = max((math.ceil(size / stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def conv2d(shape, filters, kernel, stride=1, padding="same", dilation=1, groups=1, bias=True, activation="linear"):
    h, w, c = shape
    x = image(h, w, c)
    weight = torch.randn(filters, c // groups, kernel, kernel).requires_grad_()
    offset = torch.randn(filters).requires_grad_()
    if padding == "same":
        padded = F.pad(x, same(w, kernel, stride, dilation) + same(h, kernel, stride, dilation))
    else:
        padded = F.pad(x, (0 if padding == "valid" else padding,) * 4)
    y = F.conv2d(padded, weight, offset if bias else None, stride, 0, dilation, groups)
    y = {"linear": y, "leaky_relu": F.leaky_relu(y, 0.1)}[activation]
    parameters = {"weight": (weight, lambda p: p.permute(2, 3, 1, 0))}
    if bias:
        parameters["bias"] = (offset, lambda p: p)
    settings = {"filters": filters, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation,
                "groups": groups, "bias": bias, "activation": activation}
    return case("conv2d", settings, shape, x, y, parameters)


CASES = [batch_norm(shape, training) for shape in [(4,), (3, 2, 5)] for training in [True, False]] + [
    conv2d((7, 8, 3), 5, 4, stride=2, activation="leaky_relu"),
    conv2d((8, 7, 1), 4, 4, stride=2),
    conv2d((5, 6, 2), 3, 3),
    conv2d((5, 6, 2), 3, 2, padding="valid", bias=False),
    conv2d((6, 5, 4), 6, 3, stride=3, padding=2, groups=2),
    conv2d((7, 7, 4), 4, 3, padding=1, dilation=2, groups=4),
    conv2d((4, 4, 3), 2, 1, stride=2),
]

if __name__ == "__main__":
    print("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES) + "\n]")
