"""Applies the first layer of an encoder in PyTorch, with the tensors of `tessera export --to safetensors`.

Arguments: a file of images (n, height, width, channels), then pairs of a model and the file for what its layer gives, (n, values).
"""
import json
import sys
import tomllib

import numpy as np
import torch
from torch import nn


def load(path):
    """The declaration of the first layer, and its tensors."""
    b = bytearray(open(path, "rb").read())
    start = 8 + int.from_bytes(b[:8], "little")
    head, values = json.loads(b[8:start]), torch.frombuffer(b, dtype=torch.float32, offset=start)
    (model,) = tomllib.loads(head.pop("__metadata__")["declaration"])["model"].values()
    w = {k: values[t["data_offsets"][0] // 4:t["data_offsets"][1] // 4].view(t["shape"]) for k, t in head.items()}
    return model["encoder"][0], {k.removeprefix("encoder.0."): v for k, v in w.items() if k.startswith("encoder.0.")}


def first(x):
    return x.permute(0, 3, 1, 2)


def last(y):
    return y.permute(0, 2, 3, 1)


def padding(layer):
    return {"same": (layer["kernel"] - layer["stride"]) // 2, "valid": 0}.get(layer["padding"], layer["padding"])


def apply(layer, w, x):
    n, channels = len(x), x.shape[-1]
    kind = layer["kind"]
    as_is = lambda v: v
    before, after = first, last
    if kind == "dense":
        module, before, after = nn.Linear(x[0].numel(), layer["units"]), lambda v: first(v).flatten(1), as_is
    elif kind == "token_dense":
        module, before, after = nn.Linear(channels, layer["units"]), as_is, as_is
    elif kind == "conv2d":
        module = nn.Conv2d(channels, layer["filters"], layer["kernel"], layer["stride"], padding(layer), layer["dilation"], layer["groups"])
    elif kind == "conv2d_transpose":
        module = nn.ConvTranspose2d(channels, layer["filters"], layer["kernel"], layer["stride"], padding(layer),
                                    groups=layer["groups"], dilation=layer["dilation"])
    elif kind == "batch_norm":
        module = nn.BatchNorm2d(channels, layer["epsilon"])
        w["num_batches_tracked"] = torch.tensor(0)  # counts training steps, and is not used where a momentum is given
    elif kind == "instance_norm":
        module = nn.InstanceNorm2d(channels, layer["epsilon"], affine=True)
    elif kind == "layer_norm":
        module, before, after = nn.LayerNorm(channels, layer["epsilon"]), as_is, as_is
    elif kind == "attention":
        module = nn.MultiheadAttention(channels, layer["heads"], bias=layer["bias"], batch_first=True)
        module.load_state_dict(w, strict=True)
        tokens = x.reshape(n, -1, channels)
        return module(tokens, tokens, tokens)[0]
    elif kind == "recurrent":
        module = (nn.LSTM if layer["cell"] == "lstm" else nn.GRU)(channels, layer["units"], batch_first=True)
        before, after = lambda v: v.reshape(n, -1, channels), lambda y: y[0]
    module.load_state_dict(w, strict=True)
    return after(module.eval()(before(x)))


images = torch.tensor(np.load(sys.argv[1]))
with torch.no_grad():
    for model, result in zip(sys.argv[2::2], sys.argv[3::2]):
        y = apply(*load(model), images)
        np.save(result, y.reshape(len(images), -1).numpy())
