#!/usr/bin/python3
"""The training step of a sparse auto-encoder with top-k codes in PyTorch: what `make bench-peers` measures top_k against.

    torch_sae.py --decoder dense|embedding_bag --steps N --threads N [--inputs 512] [--units 8192] [--batch 1024]

Of the units 32 are active; random vectors, Adam, atoms of norm 1. The decoder is a
dense product with the code, or embedding_bag, which reads only the active atoms. It prints the median of the milliseconds
per step; the first two are left out. See torch_steps.py for its best on a CPU.
"""
import argparse
import statistics
import time

import torch

ACTIVE = 32


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--decoder", choices=["dense", "embedding_bag"], default="dense")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--inputs", type=int, default=512)
    parser.add_argument("--units", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=1024)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    data = torch.randn(a.batch * 8, a.inputs)
    encoder = (torch.randn(a.inputs, a.units) / a.inputs**0.5).requires_grad_()
    decoder = torch.randn(a.units, a.inputs)
    decoder = (decoder / decoder.norm(dim=1, keepdim=True)).requires_grad_()
    bias, centre = torch.zeros(a.units, requires_grad=True), torch.zeros(a.inputs, requires_grad=True)
    adam = torch.optim.Adam([encoder, decoder, bias, centre], lr=1e-4)

    def step():
        x = data[torch.randint(0, len(data), (a.batch,))]
        adam.zero_grad(set_to_none=True)
        before = torch.relu(x @ encoder + bias)
        values, indices = before.topk(ACTIVE, dim=1)
        if a.decoder == "dense":
            y = torch.zeros_like(before).scatter(1, indices, values) @ decoder + centre
        else:
            y = torch.nn.functional.embedding_bag(indices, decoder, per_sample_weights=values, mode="sum") + centre
        ((y - x) ** 2).mean().backward()
        adam.step()
        with torch.no_grad():
            decoder.div_(decoder.norm(dim=1, keepdim=True))

    times = []
    for _ in range(a.steps + 2):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    print("%.3f ms/step" % (1000 * statistics.median(times[2:])))


main()
