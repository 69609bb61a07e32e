#!/usr/bin/python3
"""The training step of a sparse auto-encoder with top-k codes in PyTorch: what `make bench-peers` measures top_k against.

    torch_sae.py --decoder dense|embedding_bag --steps N --threads N

512 inputs, 8,192 units of which 32 are active, a batch of 1,024 random vectors, Adam, atoms of norm 1. The decoder is a
dense product with the code, or embedding_bag, which reads only the active atoms. It prints the median of the milliseconds
per step; the first two are left out. See torch_steps.py for its best on a CPU.
"""
import argparse
import statistics
import time

import torch

INPUTS, UNITS, ACTIVE, BATCH = 512, 8192, 32, 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--decoder", choices=["dense", "embedding_bag"], default="dense")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    data = torch.randn(BATCH * 8, INPUTS)
    encoder = (torch.randn(INPUTS, UNITS) / INPUTS**0.5).requires_grad_()
    decoder = torch.randn(UNITS, INPUTS)
    decoder = (decoder / decoder.norm(dim=1, keepdim=True)).requires_grad_()
    bias, centre = torch.zeros(UNITS, requires_grad=True), torch.zeros(INPUTS, requires_grad=True)
    adam = torch.optim.Adam([encoder, decoder, bias, centre], lr=1e-4)

    def step():
        x = data[torch.randint(0, len(data), (BATCH,))]
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
