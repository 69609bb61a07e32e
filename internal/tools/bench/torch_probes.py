#!/usr/bin/python3
"""Codes of simclr, byol and vicreg, trained by Tessera and by PyTorch with an equal budget: linear probe and nearest neighbours.

    torch_probes.py TESSERA OUT --data FOLDER [--models simclr,byol,vicreg] [--seeds 1,2,3] [--images 20000] [--epochs 10] [--threads 1]

TESSERA is the program, OUT a folder for its runs and the results, FOLDER holds the Fashion-MNIST files, *-ubyte.gz. Both train the
shipped model on the first images of the training set, in batches of 256, with Adam at 0.001, one epoch of warm-up and a cosine, and the
decay of byol's teacher from 0.99 to 1 along a cosine. Modules, views and losses of PyTorch are those of torch_twins.py.

Both are measured here, by scikit-learn, in the same way: codes of the 10,000 test images, every unit divided by its root mean square;
the accuracy of multinomial logistic regression (C = 1) on held-out fifths, as the mean over 4 stratified splits; the accuracy of the 5
nearest neighbours by cosine among all other test images. OUT/probes.jsonl gets a line for every model, seed and program; lines that are
there are not computed again.
"""
import argparse
import json
import math
import os
import subprocess

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import NearestNeighbors

import torch_simclr
import torch_twins

BATCH, CLASSES = 256, 10


def trained(name, x, epochs, seed):
    torch.manual_seed(seed)
    make, _, optimizer = torch_twins.MODELS[name]
    model = torch_simclr.glorot(make())
    if name == "byol":  # the teacher starts as a copy
        for mine, own in zip(model.teacher, [model.model, model.projection]):
            mine.load_state_dict(own.state_dict())
    optimizer = optimizer(model.parameters(), lr=1e-3)
    each = math.ceil(len(x) / BATCH)  # the last batch of an epoch is smaller
    steps = each * epochs
    rate = lambda step: min(1, (step + 1) / each) * (1 + math.cos(math.pi * step / steps)) / 2
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    step, losses = 0, []
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(BATCH):
            loss = model.loss(x[batch], None)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
            if name == "byol":
                keep = 1 - 0.01 * (1 + math.cos(math.pi * step / steps)) / 2
                with torch.no_grad():
                    for mine, own in zip(model.teacher, [model.model, model.projection]):
                        for p, q in zip(mine.parameters(), own.parameters()):
                            p.lerp_(q, 1 - keep)
            losses.append(loss.item())
    return model.model, float(np.mean(losses[-each:]))


def measured(codes, labels):
    codes = codes.astype(np.float64)
    z = codes / np.sqrt(np.mean(codes**2, 0).clip(1e-300))
    scores = []
    for fit, held in StratifiedShuffleSplit(4, test_size=0.2, random_state=0).split(z, labels):
        probe = LogisticRegression(C=1.0, max_iter=400, tol=1e-3).fit(z[fit], labels[fit])
        scores.append(probe.score(z[held], labels[held]))
    near = NearestNeighbors(n_neighbors=6, metric="cosine", algorithm="brute").fit(codes).kneighbors(codes, return_distance=False)
    near = np.array([[j for j in row if j != i][:5] for i, row in enumerate(near)])
    votes = np.zeros((len(labels), CLASSES))
    for rank in range(5):  # of equally many votes, the nearest counts
        votes[np.arange(len(labels)), labels[near[:, rank]]] += 1 + 1e-3 * (5 - rank)
    return {
        "linear_probe": float(np.mean(scores)), "splits": float(np.std(scores, ddof=1)),
        "knn_cosine": float(np.mean(votes.argmax(1) == labels)), "spread": float(spread(codes)),
    }


def spread(codes):
    """The deviation of the normalised codes, 1 at most (code_spread)."""
    z = codes / np.linalg.norm(codes, axis=1, keepdims=True).clip(1e-300)
    return np.sqrt(np.mean(np.sum((z - z.mean(0)) ** 2, 1)))


def ours(o, name, seed):
    run = os.path.join(o.out, f"{name}-{seed}")
    settings = ["--set", f"dataset.limit={o.images}", "--set", "dataset.validation=0", "--set", f"train.epochs={o.epochs}"]
    if name == "byol":
        settings += ["--set", f"hook.teacher.decay.epochs={o.epochs}"]
    env = {**os.environ, "TESSERA_DATA": os.path.dirname(os.path.abspath(o.data).rstrip("/"))}
    if not os.path.exists(os.path.join(run, "model.safetensors")):
        subprocess.run([o.tessera, "train", name, "--seed", str(seed), "--threads", str(o.threads), "--out", run, *settings], check=True, env=env, stdout=subprocess.DEVNULL)
    file = os.path.join(o.out, f"{name}-{seed}.npy")
    subprocess.run([o.tessera, "encode", run, "--in", os.path.join(o.data, "t10k-images-idx3-ubyte.gz"), "--out", file], check=True, env=env, stdout=subprocess.DEVNULL)
    return np.load(file)


def twin(o, name, seed, x, test):
    file = os.path.join(o.out, f"{name}-{seed}-pytorch.npy")
    if not os.path.exists(file):
        np.save(file, torch_simclr.coded(trained(name, x, o.epochs, seed)[0], test).numpy())
    return np.load(file)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tessera")
    p.add_argument("out")
    p.add_argument("--data", required=True)
    p.add_argument("--models", default="simclr,byol,vicreg")
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--images", type=int, default=20000)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--threads", type=int, default=1)
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    torch.set_flush_denormal(True)
    os.makedirs(o.out, exist_ok=True)
    file = os.path.join(o.out, "probes.jsonl")
    rows = [json.loads(line) for line in open(file)] if os.path.exists(file) else []
    x = torch_simclr.load(o.data, "train")[0][: o.images]
    test, labels = torch_simclr.load(o.data, "t10k")
    labels = labels.numpy()

    def add(name, seed, program, codes):
        key = {"model": name, "seed": seed, "program": program, "images": o.images, "epochs": o.epochs}
        if any(all(r[k] == v for k, v in key.items()) for r in rows):
            return
        rows.append({**key, **measured(codes(), labels)})
        with open(file, "a") as f:
            f.write(json.dumps(rows[-1]) + "\n")
        print(json.dumps(rows[-1]), flush=True)

    for seed in map(int, o.seeds.split(",")):
        for name in o.models.split(","):
            add(name, seed, "tessera", lambda: ours(o, name, seed))
            add(name, seed, "pytorch", lambda: twin(o, name, seed, x, test))
    for name in o.models.split(","):
        for what in ("linear_probe", "knn_cosine"):
            a, b = ([r[what] for r in rows if r["model"] == name and r["program"] == program and r["images"] == o.images and r["epochs"] == o.epochs] for program in ("tessera", "pytorch"))
            print(f"{name} {what}: tessera {np.mean(a):.4f} ({min(a):.4f} to {max(a):.4f}), pytorch {np.mean(b):.4f} ({min(b):.4f} to {max(b):.4f}), difference {100 * (np.mean(a) - np.mean(b)):+.2f} points")


if __name__ == "__main__":
    main()
