#!/usr/bin/python3
"""A model of language in PyTorch beside a run of Tessera, as docs/reproduction/words.md shows it.

    torch_gpt.py divide TEXT FOLDER        the output of `bible -f ge1:1-rev22:21` to FOLDER/train.txt and test.txt, every tenth chapter
    torch_gpt.py RUN [--seed N] [--seconds N]

RUN is a trained gpt-mini, or one of other width, blocks, tokens (bpe, characters) and texts. The twin reads its settings and its vocabulary,
divides the texts into the same samples, and draws weights from the same distributions: uniform (Glorot) for every matrix, N(0, 0.02²) for tables.
It makes the same number of steps of AdamW with the same schedule, or as many as need N seconds of processor time. Printed are the perplexity and
the bits per byte of the test texts, of the run's weights in PyTorch and of the twin.
"""
import argparse
import json
import math
import re
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import torch
from torch import nn

from torch_twins import GPT


def divide(text, folder):
    """Verses, a line each, without their places."""
    parts, chapters = ([], []), {}
    for line in Path(text).read_text().splitlines():
        place, verse = line.split(" ", 1)
        chapter = chapters.setdefault(place.split(":")[0], len(chapters))
        parts[chapter % 10 == 9].append(verse + "\n")
    for name, part in zip(["train.txt", "test.txt"], parts):
        (Path(folder) / name).write_text("".join(part))


def read(path):
    """The tensors of a safetensors file, and its metadata."""
    b = Path(path).read_bytes()
    n = 8 + int.from_bytes(b[:8], "little")
    header = json.loads(b[8:n])
    about = header.pop("__metadata__")
    return {k: torch.tensor(np.frombuffer(b, "<f4", math.prod(v["shape"]), n + v["data_offsets"][0]).reshape(v["shape"])) for k, v in header.items()}, about


class Tokens:
    """The vocabulary of a run: characters, or pairs of bytes that are merged within words, numbers, signs and white space."""

    def __init__(self, vocabulary):
        self.names, self.merges, self.known = vocabulary.get("names"), {}, {}
        self.bytes = [n.encode() for n in self.names] if self.names else [bytes([i]) for i in range(256)]
        for i, (a, b) in enumerate(vocabulary.get("merges") or []):
            self.merges[a, b] = i
            self.bytes.append(self.bytes[a] + self.bytes[b])
        self.end = len(self.bytes) + 1  # behind <pad>

    def merged(self, piece):
        if piece not in self.known:
            ids = [*piece.encode()]
            while pairs := [p for p in zip(ids, ids[1:]) if p in self.merges]:
                best, i = min(pairs, key=self.merges.get), 0
                while i + 1 < len(ids):
                    if (ids[i], ids[i + 1]) == best:
                        ids[i:i + 2] = [256 + self.merges[best]]
                    i += 1
            self.known[piece] = ids
        return self.known[piece]

    def encode(self, text):
        if self.names:
            index = {n: i for i, n in enumerate(self.names)}
            return [index[c] for c in text]
        return [t for piece in re.findall(r" ?[^\W\d_]+| ?\d+| ?(?:[^\w\s]|_)+|\s+?(?= \S)|\s+", text) for t in self.merged(piece)]

    def samples(self, path, length, step):
        """Windows, the last of which ends with the text."""
        ids = self.encode(Path(path).read_text()) + [self.end]
        starts = list(range(0, len(ids) - length + 1, step))
        if starts[-1] + length < len(ids):
            starts.append(len(ids) - length)
        return torch.tensor([ids[i:i + length] for i in starts])


def draw(model):
    for name, p in model.named_parameters():
        if p.dim() == 1:
            nn.init.constant_(p, float("norm" in name and name.endswith("weight")))
        elif name.startswith(("embed", "place")):
            nn.init.normal_(p, std=0.02)
        else:
            for part in p.data.chunk(3 if "qkv" in name else 1):
                nn.init.xavier_uniform_(part)


def copy(model, weights):
    """Sets the weights of a run, which has no bias of keys."""
    w = {k: v.T if v.dim() == 2 else v for k, v in weights.items()}
    last = f"encoder.{len(model.blocks) + 2}."
    state = {"embed.weight": w["encoder.0.weight"].T, "place": w["encoder.1.embedding"].T, "norm.weight": w[last + "scale"], "norm.bias": w[last + "shift"],
             "head.weight": w["head.next.0.weight"], "head.bias": w["head.next.0.bias"]}
    for i in range(len(model.blocks)):
        of, to = f"encoder.{i + 2}.", f"blocks.{i}."
        for n in "12":
            state |= {f"{to}norm{n}.weight": w[f"{of}norm{n}.scale"], f"{to}norm{n}.bias": w[f"{of}norm{n}.shift"]}
        for name, weight, bias in [("output", "attention.output", "attention.output_bias"), ("up", "hidden.weight", "hidden.bias"), ("down", "output.weight", "output.bias")]:
            state |= {f"{to}{name}.weight": w[of + weight], f"{to}{name}.bias": w[of + bias]}
        query, value = w[of + "attention.query_bias"], w[of + "attention.value_bias"]
        state[to + "qkv.weight"] = torch.cat([w[f"{of}attention.{n}"] for n in ("query", "key", "value")])
        state[to + "qkv.bias"] = torch.cat([query, torch.zeros_like(query), value])
    model.load_state_dict(state)


def judge(model, x, tokens):
    sizes = torch.tensor([len(b) for b in tokens.bytes] + [0, 0, 0])
    with torch.no_grad():
        nats = sum(model.next(part, "sum").item() for part in x.split(32))
    predicted = x[:, 1:]
    return f"perplexity {math.exp(nats / predicted.numel()):.4f} bits_per_byte {nats / math.log(2) / sizes[predicted].sum().item():.4f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--threads", type=int, default=1)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(o.seed)
    weights, about = read(o.run + "/model.safetensors")
    declared, = tomllib.loads(about["declaration"])["model"].values()
    data, optimizer, batch = declared["dataset"], declared["optimizer"], declared["train"]["batch"]
    tokens = Tokens(json.loads(about["tokens"]))
    length = data["length"]
    x, test = (tokens.samples(data[k], length, data["step"] or length) for k in ("file", "test"))
    (vocabulary, units), blocks = weights["encoder.0.weight"].shape, len(declared["encoder"]) - 3
    model = GPT(vocabulary, length, units, blocks)
    copy(model, weights)
    print(f"{len(x)} and {len(test)} samples; run: {judge(model, test, tokens)}", flush=True)
    draw(model)
    adam = torch.optim.AdamW(model.parameters(), lr=optimizer["learning_rate"], weight_decay=optimizer["weight_decay"])
    steps = declared["train"]["epochs"] * math.ceil(len(x) / batch)
    began, step, order = time.process_time(), 0, ()
    while step < steps:
        if len(order) == 0:
            order = torch.randperm(len(x))
        chosen, order = order[:batch], order[batch:]
        adam.param_groups[0]["lr"] = optimizer["learning_rate"] * (1 + math.cos(math.pi * step / steps)) / 2
        loss = model.next(x[chosen])
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        step += 1
        if o.seconds and step % 20 == 0:  # the schedule ends with the time
            steps = max(step, round(step * o.seconds / (time.process_time() - began)))
    print(f"twin of seed {o.seed}, {steps} steps, {time.process_time() - began:.0f} s: {judge(model, test, tokens)}")


if __name__ == "__main__":
    divide(*sys.argv[2:]) if sys.argv[1:2] == ["divide"] else main()
