"""Writes peer.json: activations and losses with their gradients as PyTorch computes them, in float64.

    python3 peer.py > peer.json
"""
import json
import torch
import torch.nn.functional as F

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)

ACTIVATIONS = {
    "linear": lambda x: x,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": F.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": F.elu,
    "softplus": F.softplus,
    "softmax": lambda x: F.softmax(x, dim=1),
}


def mean(h):
    return h.mean(dim=0)


def kl(h, p=0.1):
    t = torch.stack([mean(h), 1 - mean(h)])
    return F.kl_div(t.log(), torch.tensor([[p], [1 - p]]).expand_as(t), reduction="sum")


def hoyer(h, s=0.6):
    root = h.shape[1] ** 0.5
    ratio = torch.linalg.vector_norm(h, 1, dim=1) / (torch.linalg.vector_norm(h, 2, dim=1) + 1e-7)
    return (s - (root - ratio) / (root - 1 + 1e-7)).abs().mean()


def decay(w, alpha=0.0):
    return 0.5 * torch.where(w >= 0, alpha * w * w, w * w).sum()


LOSSES = {
    "mse": lambda y, x: F.mse_loss(y, x),
    "bce": lambda y, x: F.binary_cross_entropy(y, x),
    "l2": lambda h, _: F.mse_loss(mean(h), torch.full((h.shape[1],), 0.1), reduction="sum"),
    "kl": lambda h, _: kl(h),
    "epsilon_l1": lambda h, _: ((0.1 - mean(h)) ** 2 + 1e-4).sqrt().sum(),
    "log": lambda h, _: torch.log1p((0.1 - mean(h)) ** 2).sum(),
    "hoyer": lambda h, _: hoyer(h),
    "l1": lambda h, _: h.abs().sum() / h.shape[0],
    "weight_decay": lambda w, _: 0.5 * w.pow(2).sum(),
    "asymmetric_decay": lambda w, _: decay(w),
    "l2_activity": lambda h, _: h.pow(2).sum() / h.shape[0],
}
UNIT = {"bce", "kl"}


def case(x, value, seed):
    value.backward(seed)
    return {"x": x.detach().flatten().tolist(), "value": value.detach().flatten().tolist(), "gradient": x.grad.flatten().tolist()}


rows, columns = 4, 6
result = {"rows": rows, "columns": columns, "activations": {}, "losses": {}}
for name, f in ACTIVATIONS.items():
    x = (4 * torch.randn(rows, columns)).requires_grad_()
    seed = torch.randn(rows, columns)
    result["activations"][name] = {**case(x, f(x), seed), "seed": seed.flatten().tolist()}
for name, f in LOSSES.items():
    x = (torch.rand(rows, columns) * 0.98 + 0.01) if name in UNIT else torch.randn(rows, columns)
    x.requires_grad_()
    target = torch.rand(rows, columns)
    result["losses"][name] = {**case(x, f(x, target), torch.tensor(1.0)), "target": target.flatten().tolist()}
print(json.dumps(result, separators=(",", ":")))
