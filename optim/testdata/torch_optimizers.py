#!/usr/bin/python3
"""Write torch_optimizers.json: what PyTorch's optimizers make of given gradients, in float64.

Five weights, twenty steps: ordinary, always zero, small, large, and zero in the first five steps. All inputs are
float32 numbers. Run it in this folder with Debian's python3-torch; the checked-in file was made with PyTorch 1.13.
"""
import json
import re

import torch

STEPS = 20
SCALES = [1.0, 0.0, 1e-3, 10.0, 1.0]
ADADELTA = {"learning_rate": 1.0, "rho": 0.95, "epsilon": 1e-7}  # the study's, not PyTorch's

# name, kind and the settings by their names in models.toml; what is left out has PyTorch's default
CASES = [
    ("sgd", "sgd", {"learning_rate": 0.1}),
    ("sgd with weight decay", "sgd", {"learning_rate": 0.1, "weight_decay": 0.05}),
    ("sgd with momentum", "sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    ("sgd with nesterov and weight decay", "sgd",
     {"learning_rate": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.05}),
    ("adam", "adam", {}),
    ("adam with other settings", "adam",
     {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-4, "weight_decay": 0.1}),
    ("adamw", "adamw", {}),
    ("adamw with other settings", "adamw",
     {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-4, "weight_decay": 0.3}),
    ("adadelta", "adadelta", ADADELTA),
    ("adadelta with weight decay", "adadelta", dict(ADADELTA, learning_rate=0.5, rho=0.9, weight_decay=0.1)),
    ("adagrad", "adagrad", {}),
    ("adagrad with weight decay", "adagrad", {"learning_rate": 0.1, "epsilon": 1e-6, "weight_decay": 0.1}),
    ("rmsprop", "rmsprop", {}),
    ("rmsprop with momentum", "rmsprop", {"learning_rate": 0.02, "rho": 0.9, "momentum": 0.9}),
    ("rmsprop with momentum and weight decay", "rmsprop",
     {"learning_rate": 0.02, "epsilon": 1e-3, "momentum": 0.5, "weight_decay": 0.1}),
    ("nadam", "nadam", {}),
    ("nadam with other settings", "nadam",
     {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-4, "weight_decay": 0.1, "momentum_decay": 0.5}),
    ("lion", "lion", {}),
    ("lion with other settings", "lion", {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "weight_decay": 0.3}),
]


class Lion(torch.optim.Optimizer):
    """The algorithm of Chen et al., 2023, which PyTorch does not have."""

    def __init__(self, params, lr=3e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * torch.sign(b1 * m + (1 - b1) * p.grad))
                m.mul_(b2).add_(p.grad, alpha=1 - b2)

class NAdam(torch.optim.Optimizer):
    """torch.optim.NAdam as in PyTorch 2: that of 1.13 multiplies the next product by mu twice."""

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "decay": momentum_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            mu = lambda t: b1 * (1 - 0.5 * 0.96 ** (t * group["decay"]))
            for p in group["params"]:
                s = self.state[p]
                m, v = s.setdefault("m", torch.zeros_like(p)), s.setdefault("v", torch.zeros_like(p))
                t = s["t"] = s.get("t", 0) + 1
                product = s["product"] = s.get("product", 1.0) * mu(t)
                grad = p.grad.add(p, alpha=group["weight_decay"])
                m.mul_(b1).add_(grad, alpha=1 - b1)
                v.mul_(b2).addcmul_(grad, grad, value=1 - b2)
                denom = v.div(1 - b2 ** t).sqrt().add_(group["eps"])
                p.addcdiv_(grad, denom, value=-group["lr"] * (1 - mu(t)) / (1 - product))
                p.addcdiv_(m, denom, value=-group["lr"] * mu(t + 1) / (1 - product * mu(t + 1)))


CLASSES = {
    "sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
    "adadelta": torch.optim.Adadelta, "adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop,
    "nadam": NAdam, "lion": Lion,
}
NAMES = {"learning_rate": "lr", "epsilon": "eps"}


def arguments(kind, settings):
    """The settings by PyTorch's names."""
    result = {}
    for key, value in settings.items():
        if key in ("beta1", "beta2"):
            result["betas"] = (settings["beta1"], settings["beta2"])
        elif key == "rho" and kind == "rmsprop":
            result["alpha"] = value
        else:
            result[NAMES.get(key, key)] = value
    return result


def run(kind, settings, start, gradients):
    """The weights after each step."""
    weights = torch.nn.Parameter(start.double())
    optimizer = CLASSES[kind]([weights], **arguments(kind, settings))
    after = []
    for gradient in gradients:
        weights.grad = gradient.double()
        optimizer.step()
        after.append(weights.detach().tolist())
    return after


def main():
    torch.manual_seed(1)
    start = torch.randn(len(SCALES))
    gradients = torch.randn(STEPS, len(SCALES)) * torch.tensor(SCALES)
    gradients[:5, -1] = 0
    document = {
        "torch": torch.__version__,
        "start": start.double().tolist(),
        "gradients": gradients.double().tolist(),
        "cases": [
            {"name": name, "kind": kind, "settings": settings, "weights": run(kind, settings, start, gradients)}
            for name, kind, settings in CASES
        ],
    }
    text = json.dumps(document, indent=1)
    # one line per vector: readable, and a change shows as the steps it changes
    text = re.sub(r"\[([^\[\]]*)\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]).strip() + "]", text)
    with open("torch_optimizers.json", "w") as file:
        file.write(text + "\n")


main()
