"""Writes the parameters of modules of PyTorch to safetensors files, and what the modules give for pictures.

Argument: the folder, which gets pictures.npy (n, height, width, channels), tokens.npy (n, tokens, features), and NAME.safetensors and NAME.npy for
each module. The names of the parameters are those of the modules' state_dict.
"""
import os
import sys

import numpy as np
import torch
from torch import nn

from safetensors import save

folder = sys.argv[1]
torch.manual_seed(1)
pictures, tokens = torch.rand(20, 8, 6, 3), torch.randn(20, 5, 8)
np.save(os.path.join(folder, "pictures.npy"), pictures.numpy())
np.save(os.path.join(folder, "tokens.npy"), tokens.numpy())


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear(40, 12), nn.LayerNorm(12), nn.Linear(12, 4)

    def forward(self, x):
        return self.fc2(torch.relu(self.norm(self.fc1(x.flatten(1)))))


convolutional = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 4, 2, stride=2), nn.ReLU(), nn.Flatten(),
                              nn.Linear(48, 7), nn.BatchNorm1d(7))
for _ in range(20):  # the running averages move
    convolutional(torch.rand(32, 3, 8, 6))
modules = {"perceptron": (Perceptron(), tokens), "convolutional": (convolutional, pictures.permute(0, 3, 1, 2)),
           "transformer": (nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=True, batch_first=True), tokens)}
for name, (module, x) in modules.items():
    for p in module.parameters():
        nn.init.normal_(p, 0.1, 0.4)
    save(os.path.join(folder, name + ".safetensors"), {k: v.detach().numpy() for k, v in module.state_dict().items()})
    with torch.no_grad():
        np.save(os.path.join(folder, name + ".npy"), module.eval()(x).flatten(1).numpy())
