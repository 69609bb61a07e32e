#!/usr/bin/python3
"""Directions that the declaration of batch-topk finds in PyTorch: a twin of the shipped model for docs/reproduction/sparse-dictionaries.md.

    torch_superposition.py [SEED...]

Data and matching are those of sklearn_superposition.py. The model is written by hand with autograd: 256 units with a bias, the 4 x 512
largest positive values of a batch of 512 kept (from 16 x 512 down, over the first 1,000 steps), 32 units that 1,000 samples did not use explain what
is left over (aux_k, weight 0.5), atoms of norm 1 whose gradients along the atoms are removed, the mean of the data as the decoder's first
bias, which is subtracted from the input, Adam at 0.01 with a warm-up of one epoch and a cosine, 60 epochs. Afterwards the running mean of the least kept value (0.99) is the
threshold. It prints, for every seed (default 1 to 3), the found directions, active units, explained variance and dead units.
"""
import math
import sys

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from sklearn_superposition import ACTIVE, COUNT, FEATURES, VALUES, superposition

BATCH, EPOCHS, RATE, SPARE, AFTER = 512, 60, 1e-2, 32, 1000


def main():
    directions, data = superposition(np.random.default_rng(1))
    x = torch.tensor(data, dtype=torch.float32)
    for seed in [int(s) for s in sys.argv[1:]] or [1, 2, 3]:
        torch.manual_seed(seed)
        limit = math.sqrt(6 / (VALUES + FEATURES))
        encoder = (torch.rand(VALUES, FEATURES) * 2 - 1).mul(limit).requires_grad_()
        atoms = (torch.rand(FEATURES, VALUES) * 2 - 1).mul(limit)
        atoms = (atoms / atoms.norm(dim=1, keepdim=True)).requires_grad_()
        bias, centre = torch.zeros(FEATURES, requires_grad=True), x.mean(0).clone().requires_grad_()
        adam = torch.optim.Adam([encoder, atoms, bias, centre], lr=RATE, eps=1e-8)
        each = COUNT // BATCH
        steps, step, threshold, idle = EPOCHS * each, 0, 0.0, torch.zeros(FEATURES)
        for _ in range(EPOCHS):
            order = torch.randperm(COUNT)
            for at in range(each):
                rows = x[order[at * BATCH:(at + 1) * BATCH]]
                k = ACTIVE if step >= 1000 else round(16 + (ACTIVE - 16) * step / 1000)
                values = (rows - centre) @ encoder + bias
                positive = values.relu().flatten()
                least = positive.topk(k * BATCH).values[-1]
                code = torch.where(positive >= least, positive, torch.zeros_like(positive)).view_as(values)
                output = code @ atoms + centre
                loss = (rows - output).square().mean()
                used = (code > 0).any(0)
                dead = idle >= AFTER
                if dead.any():
                    spare = values.relu() * dead
                    kept = spare.topk(SPARE, 1)
                    helped = torch.zeros_like(spare).scatter(1, kept.indices, kept.values) @ atoms
                    left = (rows - output).detach()
                    loss = loss + 0.5 * (left - helped).square().mean()
                idle = torch.where(used, torch.zeros_like(idle), idle + BATCH)
                warm = each
                adam.param_groups[0]["lr"] = RATE * (min(1.0, (step + 1) / warm) if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm))))
                adam.zero_grad(set_to_none=True)
                loss.backward()
                with torch.no_grad():
                    atoms.grad -= (atoms.grad * atoms).sum(1, keepdim=True) * atoms
                    adam.step()
                    atoms.div_(atoms.norm(dim=1, keepdim=True))
                if step >= 1000:
                    threshold = least.item() if threshold == 0 else 0.99 * threshold + 0.01 * least.item()
                step += 1
        with torch.no_grad():
            code = ((x - centre) @ encoder + bias)
            code = torch.where(code >= threshold, code, torch.zeros_like(code))
            explained = 1 - ((x - code @ atoms - centre).square().sum() / (x - x.mean(0)).square().sum()).item()
            cosine = directions @ atoms.numpy().T
        found = (cosine[linear_sum_assignment(-cosine)] >= 0.9).sum()
        print(f"seed {seed}: {found} found, {(code > 0).sum(1).float().mean():.2f} active, {explained:.3f} explained, {(code.max(0).values <= 0).sum()} dead", flush=True)


if __name__ == "__main__":
    main()
