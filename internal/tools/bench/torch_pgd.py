#!/usr/bin/python3
"""PGD on the shipped classifier: seconds of `tessera attack` beside PyTorch.

    torch_pgd.py TESSERA RUN --data FOLDER [--steps 40] [--epsilon 0.1] [--threads 2] [--rounds 5]

TESSERA is the program, RUN a run of `classifier`, FOLDER the folder with its data set. Both attack the same 10,000 test images by the linf PGD of
Madry et al. (2018) from the clean images, with steps of 2.5 epsilon / steps, in float32. Rounds alternate: the whole command of Tessera, which reads the
run and the images, attacks, checks every example against its ball, and measures accuracy and risk; then PyTorch in this process, which has
everything in memory: the attack and the accuracy. PyTorch gets the fastest numbers of threads and of images in a batch that are tried first. The
accuracies must agree within 0.1 points.
"""
import argparse
import gzip
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time

import numpy as np
import torch
from torch.nn import functional as F


def read(folder, name, offset):
    with gzip.open(f"{folder}/{name}.gz") as f:
        return np.frombuffer(f.read(), np.uint8, offset=offset)


def attack(weights, x, y, o, batch):
    right, step = 0, 2.5 * o.epsilon / o.steps

    def logits(v):
        for w, b in weights[:-1]:
            v = F.relu(torch.addmm(b, v, w))
        return torch.addmm(weights[-1][1], v, weights[-1][0])

    for at in range(0, len(x), batch):
        clean, label = x[at : at + batch], y[at : at + batch]
        low, high = (clean - o.epsilon).clamp_(0, 1), (clean + o.epsilon).clamp_(0, 1)
        v = clean.clone()
        for _ in range(o.steps):
            v.requires_grad_(True)
            (g,) = torch.autograd.grad(F.cross_entropy(logits(v), label, reduction="sum"), v)
            with torch.no_grad():
                v = torch.minimum(torch.maximum(v.detach().add_(g.sign_(), alpha=step), low), high)
        with torch.no_grad():
            right += (logits(v).argmax(1) == label).sum().item()
    return right / len(x)


def times(f):
    clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    result = f()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return result, time.perf_counter() - clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(o):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    clock = time.perf_counter()
    out = subprocess.run(
        [o.tessera, "attack", o.run, "--on", "class", "--norm", "linf", "--method", "pgd", "--epsilon", str(o.epsilon), "--steps", str(o.steps),
         "--threads", str(o.threads), "--json"], check=True, capture_output=True, env={**os.environ, "TESSERA_DATA": os.path.dirname(o.data.rstrip("/"))})
    clock = time.perf_counter() - clock
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (trial,) = json.loads(out.stdout)["trials"]
    return trial["accuracy"]["value"], clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tessera")
    p.add_argument("run")
    p.add_argument("--data", required=True)
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--epsilon", type=float, default=0.1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    o = p.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "weights.npz")
        subprocess.run([o.tessera, "export", o.run, "--to", "npz", "-o", file], check=True, capture_output=True)
        z = np.load(file)
        names = [n for n in z.files if n.endswith(".weight")]
        weights = [(torch.from_numpy(z[n].copy()), torch.from_numpy(z[n[: -len("weight")] + "bias"].copy())) for n in names]
    x = torch.from_numpy(read(o.data, "t10k-images-idx3-ubyte", 16).reshape(-1, 784).astype(np.float32) / 255)
    y = torch.from_numpy(read(o.data, "t10k-labels-idx1-ubyte", 8).astype(np.int64))

    choices = []
    for threads in sorted({1, o.threads}):
        torch.set_num_threads(threads)
        for batch in (250, 500, 1000, 2500):
            attack(weights, x[:batch], y[:batch], o, batch)
            choices.append((times(lambda: attack(weights, x[:5000], y[:5000], o, batch))[1], threads, batch))
    _, threads, batch = min(choices)
    torch.set_num_threads(threads)
    print(f"PyTorch {torch.__version__} is fastest with {threads} threads and {batch} images in a batch")

    clocks, cpus = [], []
    for i in range(o.rounds):
        a, clock, cpu = ours(o)
        b, peer, peer_cpu = times(lambda: attack(weights, x, y, o, batch))
        if abs(a - b) > 0.001:
            raise SystemExit(f"accuracies differ: {a} and {b}")
        clocks.append(clock / peer)
        cpus.append(cpu / peer_cpu)
        print(f"round {i + 1}: {clock:.2f} s ({cpu:.2f} of the processors), PyTorch {peer:.2f} s ({peer_cpu:.2f}); accuracy {a:.4f} and {b:.4f}", flush=True)
    print(f"medians of the ratios: {statistics.median(clocks):.2f} by the clock, {statistics.median(cpus):.2f} of the processors")


if __name__ == "__main__":
    main()
