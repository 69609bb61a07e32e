#!/usr/bin/python3
"""Writes layers with their gradients as PyTorch computes them: torch_layers.json in float32, torch_layers64.json in float64.

    python3 torch_layers.py > torch_layers.json
    python3 torch_layers.py float64 > torch_layers64.json

Images and filters are written with their channels last, as Tessera has them.
"""
import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
BATCH = 3
DOUBLE = sys.argv[1:] == ["float64"]
DIGITS = 16 if DOUBLE else 7
if DOUBLE:
    torch.set_default_dtype(torch.float64)


def last(x):
    """(batch, channels, height, width) with the channels last."""
    return x.movedim(1, -1) if x.dim() == 4 else x


def numbers(x):
    return [float(f"{v:.{DIGITS}g}") for v in x.detach().flatten().tolist()]


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


def as_it_is(p):
    return p


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
    parameters = {"scale": (layer.weight, as_it_is), "shift": (layer.bias, as_it_is)} | {k: (v, as_it_is) for k, v in state.items()}
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


def conv2d_transpose(shape, filters, kernel, stride=1, padding="same", dilation=1, groups=1, bias=True, activation="linear"):
    h, w, c = shape
    x = image(h, w, c)
    weight = torch.randn(c, filters // groups, kernel, kernel).requires_grad_()
    offset = torch.randn(filters).requires_grad_()
    y = F.conv_transpose2d(x, weight, None, stride, 0, 0, groups, dilation)
    if padding == "same":  # cut what the convolution of the output, padded "same", would not see, or add what it would skip
        wanted = (h * stride, w * stride)
        before = [max(y.shape[2 + i] - wanted[i], 0) // 2 for i in range(2)]
        y = F.pad(y, (-before[1], wanted[1] - y.shape[3] + before[1], -before[0], wanted[0] - y.shape[2] + before[0]))
    elif padding != "valid":
        y = F.pad(y, (-padding,) * 4)
    if bias:
        y = y + offset[:, None, None]
    y = {"linear": y, "leaky_relu": F.leaky_relu(y, 0.1)}[activation]
    parameters = {"weight": (weight, lambda p: p.permute(2, 3, 1, 0))}
    if bias:
        parameters["bias"] = (offset, lambda p: p)
    settings = {"filters": filters, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation,
                "groups": groups, "bias": bias, "activation": activation}
    return case("conv2d_transpose", settings, shape, x, y, parameters)


def pool(layer, shape, kernel, stride, padding="valid"):
    h, w, c = shape
    x = image(h, w, c)
    pads = (0 if padding == "valid" else padding,) * 4
    if padding == "same":
        pads = same(w, kernel, stride, 1) + same(h, kernel, stride, 1)
    if layer == "max_pool":
        y = F.max_pool2d(F.pad(x, pads, value=-math.inf), kernel, stride)
    else:  # the mean of the pixels that a window sees
        y = F.avg_pool2d(F.pad(x, pads), kernel, stride) / F.avg_pool2d(F.pad(torch.ones_like(x), pads), kernel, stride)
    return case(layer, {"kernel": kernel, "stride": stride, "padding": padding}, shape, x, y, {})


def upsample(shape, factor):
    x = image(*shape)
    return case("upsample", {"factor": factor}, shape, x, F.interpolate(x, scale_factor=factor), {})


def activation(layer, shape, f):
    x = image(*shape)
    return case(layer, {}, shape, x, f(x), {})


def prelu(shape):
    x = image(*shape) if len(shape) == 3 else torch.randn(BATCH, *shape).requires_grad_()
    slope = torch.randn(shape[-1]).requires_grad_()
    return case("prelu", {}, shape, x, F.prelu(x, slope), {"slope": (slope, as_it_is)})


def upsample_bilinear(shape, factor):
    x = image(*shape)
    y = F.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False)
    return case("upsample_bilinear", {"factor": factor}, shape, x, y, {})


def global_pool(value, shape):
    x = image(*shape)
    return case("global_pool", {"value": value}, shape, x, x.mean((2, 3)) if value == "mean" else x.amax((2, 3)), {})


def rectangular(layer, shape, filters, kernel, stride, padding):
    """Filters of (height, width) with strides (between rows, between columns)."""
    x, offset = image(*shape), torch.randn(filters).requires_grad_()
    sizes = (filters, shape[2]) if layer == "conv2d" else (shape[2], filters)
    weight = torch.randn(*sizes, *kernel).requires_grad_()
    f = F.conv2d if layer == "conv2d" else F.conv_transpose2d
    y = f(x, weight, offset, stride, padding)
    settings = {"filters": filters, "kernel": kernel[0], "kernel_width": kernel[1], "stride": stride[0], "stride_width": stride[1],
                "padding": padding or "valid"}
    parameters = {"weight": (weight, lambda p: p.permute(2, 3, 1, 0)), "bias": (offset, as_it_is)}
    return case(layer, settings, shape, x, y, parameters)


def concat(shape, filters):
    """The image beside a convolution of it."""
    x, conv = image(*shape), nn.Conv2d(shape[2], filters, 3, padding=1)
    parameters = {"0.weight": (conv.weight, lambda p: p.permute(2, 3, 1, 0)), "0.bias": (conv.bias, as_it_is)}
    return case("concat", {"layers": [{"kind": "conv2d", "filters": filters}]}, shape, x, torch.cat([x, conv(x)], 1), parameters)


def concat_dense(n, units):
    x, layer = torch.randn(BATCH, n).requires_grad_(), nn.Linear(n, units)
    parameters = {"0.weight": (layer.weight, lambda p: p.T), "0.bias": (layer.bias, as_it_is)}
    return case("concat", {"layers": [{"kind": "dense", "units": units}]}, (n,), x, torch.cat([x, layer(x)], 1), parameters)


def randomised(layer):
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn_like(p))
    return layer


def layer_norm(shape):
    x = image(*shape) if len(shape) == 3 else (torch.randn(BATCH, *shape) * 2 + 1).requires_grad_()
    norm = randomised(nn.LayerNorm(shape[-1]))
    y = norm(x.movedim(1, -1)).movedim(-1, 1) if len(shape) == 3 else norm(x)
    return case("layer_norm", {}, shape, x, y, {"scale": (norm.weight, as_it_is), "shift": (norm.bias, as_it_is)})


def instance_norm(shape, epsilon):
    x = image(*shape)
    norm = randomised(nn.InstanceNorm2d(shape[-1], eps=epsilon, affine=True))
    parameters = {"scale": (norm.weight, as_it_is), "shift": (norm.bias, as_it_is)}
    return case("instance_norm", {"epsilon": epsilon}, shape, x, norm(x), parameters)


def group_norm(shape, groups, epsilon):
    x = image(*shape)
    norm = randomised(nn.GroupNorm(groups, shape[-1], eps=epsilon))
    parameters = {"scale": (norm.weight, as_it_is), "shift": (norm.bias, as_it_is)}
    return case("group_norm", {"groups": groups, "epsilon": epsilon}, shape, x, norm(x), parameters)


def conv1d(shape, filters, kernel, stride=1, padding=0, dilation=1, groups=1):
    """A sequence (length, channels)."""
    length, c = shape
    x = torch.randn(BATCH, length, c).requires_grad_()
    weight, offset = torch.randn(filters, c // groups, kernel).requires_grad_(), torch.randn(filters).requires_grad_()
    channels_first = x.movedim(-1, 1)
    if padding == "same":
        channels_first, used = F.pad(channels_first, same(length, kernel, stride, dilation)), 0
    else:
        used = padding
    y = F.conv1d(channels_first, weight, offset, stride, used, dilation, groups).movedim(1, -1)
    settings = {"filters": filters, "kernel": kernel, "stride": stride, "padding": padding or "valid", "dilation": dilation, "groups": groups}
    return case("conv1d", settings, shape, x, y, {"weight": (weight, lambda p: p.permute(2, 1, 0)), "bias": (offset, as_it_is)})


def layer_scale(shape):
    """As in ConvNeXt and DINOv2: a product with a parameter of the last axis."""
    x, scale = torch.randn(BATCH, *shape).requires_grad_(), torch.randn(shape[-1]).requires_grad_()
    y = x * scale
    return case("layer_scale", {}, shape, x, y, {"scale": (scale, as_it_is)})


def residual(h, w, c):
    """x + a block of convolution, batch norm, leaky relu and convolution."""
    x = image(h, w, c)
    first, norm, second = nn.Conv2d(c, c + 1, 3, padding=1), nn.BatchNorm2d(c + 1, eps=1e-3, momentum=0.01), nn.Conv2d(c + 1, c, 3, padding=1)
    for layer in (first, norm, second):
        randomised(layer)
    state = {"1.running_mean": norm.running_mean.clone(), "1.running_variance": norm.running_var.clone()}
    y = x + second(F.leaky_relu(norm(first(x)), 0.1))
    filters = lambda p: p.permute(2, 3, 1, 0)
    parameters = {"0.weight": (first.weight, filters), "0.bias": (first.bias, as_it_is), "1.scale": (norm.weight, as_it_is),
                  "1.shift": (norm.bias, as_it_is), "3.weight": (second.weight, filters), "3.bias": (second.bias, as_it_is)}
    parameters |= {k: (v, as_it_is) for k, v in state.items()}
    moved = {"1.running_mean": norm.running_mean, "1.running_variance": norm.running_var}
    block = [{"kind": "conv2d", "filters": c + 1}, {"kind": "batch_norm"}, {"kind": "leaky_relu"}, {"kind": "conv2d", "filters": c}]
    # A shift before a batch norm changes nothing: its gradient is rounding.
    result = case("residual", {"layers": block}, (h, w, c), x, y, parameters, True, moved, also=state)
    del result["gradients"]["0.bias"]
    return result


def sequence(*shape):
    return torch.randn(BATCH, *shape).requires_grad_()


def token_case(layer, settings, shape, x, y, parameters):
    """A layer whose inputs and outputs lie here as they do in PyTorch; parameters holds name: (tensor, layout)."""
    seed = torch.randn_like(y)
    (y * seed).sum().backward()
    return {"layer": layer, "settings": settings, "shape": list(shape), "batch": BATCH, "training": True,
            "x": numbers(x), "parameters": {k: numbers(f(p)) for k, (p, f) in parameters.items()}, "y": numbers(y), "seed": numbers(seed),
            "gradients": {"input": numbers(x.grad)} | {k: numbers(f(p.grad)) for k, (p, f) in parameters.items()}, "updates": {}}


def attention(shape, heads, bias):
    """The weights of queries, keys and values stand in one tensor, row by row; ours are columns."""
    x, n = sequence(*shape), shape[-1]
    layer = nn.MultiheadAttention(n, heads, bias=bias, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.normal_()
        layer.out_proj.weight.normal_()
        if bias:
            layer.in_proj_bias.normal_()
            layer.in_proj_bias[n:2 * n] = 0  # of the keys, which changes nothing
            layer.out_proj.bias.normal_()
    rows = x.reshape(BATCH, -1, n)
    y = layer(rows, rows, rows, need_weights=False)[0].reshape(x.shape)
    part = lambda i: lambda p: p[i * n:(i + 1) * n].T if p.dim() == 2 else p[i * n:(i + 1) * n]
    parameters = {name: (layer.in_proj_weight, part(i)) for i, name in enumerate(["query", "key", "value"])}
    parameters["output"] = (layer.out_proj.weight, lambda p: p.T)
    if bias:
        parameters |= {"query_bias": (layer.in_proj_bias, part(0)), "value_bias": (layer.in_proj_bias, part(2)),
                       "output_bias": (layer.out_proj.bias, as_it_is)}
    return token_case("attention", {"heads": heads, "bias": bias}, shape, x, y, parameters)


def causal_attention(shape, heads):
    """A token sees itself and those before it: attn_mask is True for the others."""
    x, n = sequence(*shape), shape[-1]
    layer = nn.MultiheadAttention(n, heads, bias=False, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.normal_()
        layer.out_proj.weight.normal_()
    y = layer(x, x, x, attn_mask=torch.ones(shape[0], shape[0], dtype=torch.bool).triu(1), need_weights=False)[0]
    part = lambda i: lambda p: p[i * n:(i + 1) * n].T
    parameters = {name: (layer.in_proj_weight, part(i)) for i, name in enumerate(["query", "key", "value"])}
    parameters["output"] = (layer.out_proj.weight, lambda p: p.T)
    return token_case("attention", {"heads": heads, "causal": True}, shape, x, y, parameters)


def lengths(tokens):
    """Masks of sequences of 1, 2, ... and of all tokens: True for those that count."""
    n = torch.tensor([1, tokens // 2, tokens])
    return n, torch.arange(tokens)[None] < n[:, None]


def masked_attention(shape, heads):
    """Keys beyond the end of a sequence are masked: key_padding_mask is True for those."""
    x, n = sequence(*shape), shape[-1]
    layer = nn.MultiheadAttention(n, heads, bias=False, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.normal_()
        layer.out_proj.weight.normal_()
    _, mask = lengths(shape[0])
    y = layer(x, x, x, key_padding_mask=~mask, need_weights=False)[0]
    part = lambda i: lambda p: p[i * n:(i + 1) * n].T
    parameters = {name: (layer.in_proj_weight, part(i)) for i, name in enumerate(["query", "key", "value"])}
    parameters["output"] = (layer.out_proj.weight, lambda p: p.T)
    made = token_case("attention", {"heads": heads, "mask": "mask of five"}, shape, x, y, parameters)
    made["parameters"]["value.mask of five"] = numbers(mask.float())
    return made


def masked_mean(shape):
    x = sequence(*shape)
    n, mask = lengths(shape[0])
    y = (x * mask[..., None]).sum(1) / n[:, None]
    made = token_case("take_token", {"mean": True, "mask": "mask of five"}, shape, x, y, {})
    made["parameters"]["value.mask of five"] = numbers(mask.float())
    return made


def recurrent(cell, shape, units, reverse=False, masked=False):
    """Of a masked sequence the tokens behind its end are left out; there the output stays that of the last token, which is 0 for a reversed one."""
    x, (tokens, features) = sequence(*shape), shape
    layer = randomised((nn.LSTM if cell == "lstm" else nn.GRU)(features, units, batch_first=True))
    n = lengths(tokens)[0].tolist() if masked else [tokens] * BATCH
    rows = []
    for one, count in zip(x, n):
        out = layer((one[:count].flip(0) if reverse else one[:count])[None])[0][0]
        behind = torch.zeros(tokens - count, units) if reverse else out[-1:].expand(tokens - count, units)
        rows.append(torch.cat([out.flip(0) if reverse else out, behind]))
    parameters = {"weight": (layer.weight_ih_l0, lambda p: p.T), "bias": (layer.bias_ih_l0, as_it_is),
                  "recurrent_weight": (layer.weight_hh_l0, lambda p: p.T), "recurrent_bias": (layer.bias_hh_l0, as_it_is)}
    settings = {"cell": cell, "units": units} | ({"reverse": True} if reverse else {}) | ({"mask": "mask of five"} if masked else {})
    made = token_case("recurrent", settings, shape, x, torch.stack(rows), parameters)
    if masked:
        made["parameters"]["value.mask of five"] = numbers(lengths(tokens)[1].double())
    return made


def token_dense(shape, units):
    x, layer = sequence(*shape), nn.Linear(shape[-1], units)
    y = torch.sigmoid(layer(x))
    return token_case("token_dense", {"units": units, "activation": "sigmoid"}, shape, x, y,
                      {"weight": (layer.weight, lambda p: p.T), "bias": (layer.bias, as_it_is)})


def position(shape):
    x, embedding = sequence(*shape), torch.randn(*shape).requires_grad_()
    return token_case("position", {}, shape, x, x + embedding, {"embedding": (embedding, as_it_is)})


def patches(shape, size):
    """nn.Unfold has the patches last and the channels of a patch first."""
    h, w, c = shape if len(shape) == 3 else (*shape, 1)
    x = sequence(*shape)
    columns = F.unfold(x.reshape(BATCH, h, w, c).permute(0, 3, 1, 2), size, stride=size)
    y = columns.reshape(BATCH, c, size * size, -1).permute(0, 3, 2, 1).reshape(BATCH, -1, size * size * c)
    return token_case("patches", {"size": size}, shape, x, y, {})


CASES = [] if DOUBLE else [batch_norm(shape, training) for shape in [(4,), (3, 2, 5)] for training in [True, False]] + [
    conv2d((7, 8, 3), 5, 4, stride=2, activation="leaky_relu"),
    conv2d((8, 7, 1), 4, 4, stride=2),
    conv2d((5, 6, 2), 3, 3),
    conv2d((5, 6, 2), 3, 2, padding="valid", bias=False),
    conv2d((6, 5, 4), 6, 3, stride=3, padding=2, groups=2),
    conv2d((7, 7, 4), 4, 3, padding=1, dilation=2, groups=4),
    conv2d((4, 4, 3), 2, 1, stride=2),
    conv2d_transpose((3, 4, 2), 3, 4, stride=2, activation="leaky_relu"),
    conv2d_transpose((4, 3, 3), 2, 3, stride=2),
    conv2d_transpose((4, 3, 2), 3, 3, padding="valid", bias=False),
    conv2d_transpose((3, 3, 4), 6, 3, stride=3, padding=2, groups=2),
    conv2d_transpose((3, 4, 2), 2, 2, padding=1, dilation=3),
    conv2d_transpose((2, 3, 1), 2, 2, stride=3),
    pool("max_pool", (4, 6, 3), 2, 2),
    pool("max_pool", (7, 6, 2), 3, 2, "same"),
    pool("max_pool", (5, 5, 1), 3, 1, 1),
    pool("avg_pool", (4, 6, 3), 2, 2),
    pool("avg_pool", (7, 6, 2), 3, 2, "same"),
    pool("avg_pool", (5, 5, 1), 3, 1, 1),
    upsample((3, 2, 3), 2),
    upsample((2, 2, 1), 3),
    layer_norm((6,)),
    layer_norm((4, 5)),
    layer_norm((3, 2, 4)),
    instance_norm((3, 4, 2), 1e-5),
    instance_norm((3, 3, 1), 0.1),
    residual(4, 3, 2),
    attention((5, 6), 3, True),
    attention((3, 4), 1, False),
    attention((2, 3, 4), 2, True),
    token_dense((4, 5), 3),
    token_dense((2, 3, 4), 2),
    position((4, 5)),
    patches((4, 6), 2),
    patches((6, 6, 2), 3),
    activation("gelu", (2, 3, 2), F.gelu),
    activation("silu", (2, 3, 2), F.silu),
    activation("hard_sigmoid", (2, 3, 2), F.hardsigmoid),
    prelu((4,)),
    prelu((3, 2, 4)),
    upsample_bilinear((3, 4, 2), 2),
    upsample_bilinear((2, 1, 1), 3),
    global_pool("mean", (4, 3, 2)),
    global_pool("max", (2, 5, 3)),
    concat((3, 4, 2), 3),
    concat_dense(4, 3),
    rectangular("conv2d", (5, 7, 2), 3, (1, 4), (1, 2), 0),
    rectangular("conv2d", (6, 5, 1), 2, (3, 2), (2, 1), 1),
    rectangular("conv2d_transpose", (3, 4, 2), 3, (3, 2), (1, 3), 0),
    rectangular("conv2d_transpose", (4, 3, 2), 2, (4, 3), (2, 1), 1),
    masked_attention((5, 6), 3),
    masked_mean((5, 4)),
]

if DOUBLE:
    CASES = [
        group_norm((3, 4, 6), 2, 1e-5),
        group_norm((2, 3, 4), 4, 0.1),
        group_norm((3, 2, 3), 1, 1e-5),
        conv1d((9, 3), 4, 3, padding="same"),
        conv1d((10, 4), 6, 4, stride=3, padding=1, groups=2),
        conv1d((11, 2), 3, 3, stride=2, padding="same", dilation=2),
        layer_scale((4, 5)),
        layer_scale((7,)),
        causal_attention((5, 6), 3),
        recurrent("gru", (5, 4), 3),
        recurrent("lstm", (5, 4), 3),
        recurrent("gru", (5, 2), 4, reverse=True, masked=True),
        recurrent("lstm", (5, 3), 2, reverse=True),
        recurrent("lstm", (5, 3), 4, masked=True),
    ]

if __name__ == "__main__":
    print("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES) + "\n]")
