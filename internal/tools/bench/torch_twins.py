#!/usr/bin/python3
"""Training steps of shipped representation models in PyTorch, for `go -C tools run ./bench --only MODEL`.

    torch_twins.py MODEL --data FOLDER --steps N --threads N

MODEL is simclr, byol, vicreg, vae, vit-classifier or masked-autoencoder, or gru-mini, lstm-mini (the same with an LSTM) or gpt-mini (256 tokens),
which read random tokens, or one of the shapes of BenchmarkStep that are not shipped, dense-wide and convolutional; FOLDER holds the Fashion-MNIST files, *-ubyte.gz. The shapes and the optimizer are those of models.toml, and so is the work of a step: the next batch, drawn views,
noise or masks, forward, backward, optimizer, the averages of a teacher. It prints the median of the milliseconds per step and
of the milliseconds of CPU time per step (the first tenth left out), and the last loss.

torch_steps.py says what PyTorch's best on a CPU needs. Queries, keys and values are one product, and attention is written
out: on a CPU this takes no more time than nn.MultiheadAttention. A causal mask is added by the product (baddbmm), the fastest of seven
ways: PyTorch 1.13's scaled_dot_product_attention writes the scores out too and takes 1.05 times as long on one thread, masked_fill 1.3 times.
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

import torch_simclr
import torch_vae
from torch_simclr import glorot, view

SIDE, PIXELS, CLASSES = 28, 784, 10
PATCH, PATCHES, HEADS, HIDDEN = 4, 49, 4, 2  # HIDDEN units for each feature
MASKED = 37  # round(0.75 * 49)


class Block(nn.Module):
    """A pre-norm block of a transformer."""

    def __init__(self, features, dropout=0.0, hidden=HIDDEN, causal=0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.qkv, self.output = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.up, self.down = nn.Linear(features, hidden * features), nn.Linear(hidden * features, features)
        self.dropout, self.scale = dropout, (features // HEADS) ** -0.5
        self.mask = torch.full((causal, causal), -torch.inf).triu(1) if causal else None  # of that many tokens

    def drop(self, x):
        return F.dropout(x, self.dropout) if self.dropout else x

    def forward(self, x):
        n, t, f = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, HEADS, f // HEADS).permute(2, 0, 3, 1, 4)
        if self.mask is None:
            y = ((q * self.scale) @ k.transpose(2, 3)).softmax(3) @ v
        else:
            q, k = q.flatten(0, 1), k.flatten(0, 1)
            scores = torch.baddbmm(self.mask.expand(len(q), t, t), q, k.transpose(1, 2), alpha=self.scale)
            y = (scores.softmax(2) @ v.flatten(0, 1)).view(n, HEADS, t, f // HEADS)
        x = x + self.drop(self.output(y.transpose(1, 2).reshape(n, t, f)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


def patches(x):
    n = SIDE // PATCH
    return x.view(-1, n, PATCH, n, PATCH).transpose(2, 3).reshape(-1, PATCHES, PATCH * PATCH)


def small(*shape):
    return nn.Parameter(torch.randn(*shape) * 0.02)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place, self.token = nn.Linear(PATCH * PATCH, 64), small(PATCHES, 64), small(1, 1, 64)
        self.blocks = nn.Sequential(*[Block(64, 0.1) for _ in range(4)])
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, CLASSES)

    def loss(self, x, labels):
        y = torch.cat([self.token.expand(len(x), 1, 64), self.embed(patches(x)) + self.place], 1)
        return F.cross_entropy(self.head(self.norm(self.blocks(y)[:, 0])), labels)


class Masked(nn.Module):
    """The encoder gets the visible patches only. Only those can be embedded first: an embedding of a patch needs no other."""

    def __init__(self):
        super().__init__()
        self.embed, self.place, self.norm = nn.Linear(PATCH * PATCH, 64), small(PATCHES, 64), nn.LayerNorm(64)
        self.blocks = nn.Sequential(*[Block(64) for _ in range(4)])
        self.narrow, self.token, self.place2 = nn.Linear(64, 32), small(32), small(PATCHES, 32)
        self.blocks2, self.norm2, self.output = nn.Sequential(Block(32), Block(32)), nn.LayerNorm(32), nn.Linear(32, PATCH * PATCH)

    def loss(self, x, _):
        n, x = len(x), patches(x)
        order = torch.rand(n, PATCHES).argsort(1)
        visible = order[:, MASKED:, None]
        y = self.embed(x.gather(1, visible.expand(-1, -1, PATCH * PATCH))) + self.place[visible[:, :, 0]]
        y = self.narrow(self.norm(self.blocks(y)))
        full = self.token.expand(n, PATCHES, 32).scatter(1, visible.expand(-1, -1, 32), y) + self.place2
        output = self.output(self.norm2(self.blocks2(full)))
        hidden = torch.ones(n, PATCHES).scatter(1, visible[:, :, 0], 0.0)
        return ((output - x).square().mean(2) * hidden).sum() / hidden.sum()


class VAE(torch_vae.VAE):
    def loss(self, x, _):
        x = x.view(-1, PIXELS)
        mean, log_variance = self.encode(x)
        y = self.decode(mean + (log_variance / 2).exp() * torch.randn_like(mean))
        return (torch_vae.divergence(mean, log_variance) - torch_vae.log_likelihood(y, x)).mean()


class Recurrent(nn.Module):
    """The cross entropy of the next of 96 characters, of which 60 count, behind a GRU or an LSTM."""

    def __init__(self, cell=nn.GRU):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(32, 32), cell(32, 128, batch_first=True), nn.Linear(128, 32)

    def loss(self, x, _):
        words = (x.flatten(1)[:, :96] * 31).long()
        logits = self.head(self.cell(self.embed(words))[0])
        return F.cross_entropy(logits[:, :59].flatten(0, 1), words[:, 1:60].flatten())


class GPT(nn.Module):
    """The cross entropy of the next token behind causal blocks."""

    def __init__(self, vocabulary=512, tokens=256, units=256, blocks=4):
        super().__init__()
        self.embed, self.place = nn.Embedding(vocabulary, units), small(tokens, units)
        self.blocks = nn.Sequential(*[Block(units, hidden=4, causal=tokens) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(units), nn.Linear(units, vocabulary)

    def next(self, words, reduction="mean"):
        logits = self.head(self.norm(self.blocks(self.embed(words) + self.place)))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), words[:, 1:].flatten(), reduction=reduction)

    def loss(self, x, _):
        return self.next((x.flatten(1)[:, :256] * 511).long())


class Wide(nn.Module):
    """A dictionary of 4,096 atoms of norm 1 and an l1 penalty."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(PIXELS, 4096), nn.Linear(4096, PIXELS)

    def loss(self, x, _):
        x = x.view(-1, PIXELS)
        h = F.relu(self.encoder(x))
        return F.mse_loss(self.decoder(h), x) + 1e-4 * h.abs().mean()

    def after(self):
        with torch.no_grad():
            self.decoder.weight.div_(self.decoder.weight.norm(dim=0, keepdim=True))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for inputs, filters in zip([1, 32, 64], [32, 64, 128]):
            layers += [nn.Conv2d(inputs, filters, 3, 2, 1), nn.ReLU()]
        self.encoder, self.decoder = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 64)), nn.Linear(64, PIXELS)

    def loss(self, x, _):
        return F.mse_loss(self.decoder(self.encoder(x.view(-1, 1, SIDE, SIDE))), x.view(-1, PIXELS))


def mapped(inputs, hidden, outputs):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Joint(nn.Module):
    """SimCLR, or VICReg: the terms of the projections of two views."""

    def __init__(self, hidden, outputs, terms):
        super().__init__()
        self.model, self.projection, self.terms = torch_simclr.encoder(bias=False), mapped(128, hidden, outputs), terms

    def project(self, x):
        return self.projection(self.model(x))

    def loss(self, x, _):
        return self.terms(*self.project(torch.cat([view(x), view(x)])).chunk(2))


def vicreg(a, b):
    def one(z):
        z = z - z.mean(0)
        c = z.T @ z / (len(z) - 1)
        spread = F.relu(1 - (torch.diagonal(c) + 1e-4).sqrt()).mean()
        return 12.5 * spread + (c.square().sum() - torch.diagonal(c).square().sum()) / z.shape[1]

    return 25 * F.mse_loss(a, b) + one(a) + one(b)


class BYOL(Joint):
    def __init__(self):
        super().__init__(128, 64, None)
        self.prediction = mapped(64, 128, 64)
        self.teacher = [torch_simclr.encoder(bias=False), mapped(128, 128, 64)]

    def loss(self, x, _):
        views = torch.cat([view(x), view(x)])
        q1, q2 = F.normalize(self.prediction(self.project(views))).chunk(2)
        with torch.no_grad():
            t1, t2 = F.normalize(self.teacher[1](self.teacher[0](views))).chunk(2)
        return 2 - ((q1 * t2).sum(1).mean() + (q2 * t1).sum(1).mean())

    def after(self):
        with torch.no_grad():
            for mine, own in zip(self.teacher, [self.model, self.projection]):
                for p, q in zip(mine.parameters(), own.parameters()):
                    p.lerp_(q, 0.01)


# model: how to make it, the batch, the optimizer
MODELS = {
    "simclr": (lambda: Joint(128, 64, torch_simclr.nt_xent), 256, torch.optim.Adam),
    "byol": (BYOL, 256, torch.optim.Adam),
    "vicreg": (lambda: Joint(256, 256, vicreg), 256, torch.optim.Adam),
    "vae": (VAE, 128, torch.optim.Adam),
    "vit-classifier": (Classifier, 128, torch.optim.AdamW),
    "masked-autoencoder": (Masked, 128, torch.optim.AdamW),
    "gru-mini": (Recurrent, 32, torch.optim.Adam),
    "lstm-mini": (lambda: Recurrent(nn.LSTM), 32, torch.optim.Adam),
    "gpt-mini": (GPT, 16, torch.optim.AdamW),
    "dense-wide": (Wide, 128, torch.optim.Adam),
    "convolutional": (Convolutional, 128, torch.optim.Adam),
}


def median(values):
    values = sorted(values[len(values) // 10:])
    return 1e3 * values[len(values) // 2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    o = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(o.threads)
    torch.set_flush_denormal(True)
    x, labels = torch_simclr.load(o.data, "train")
    make, batch, optimizer = MODELS[o.model]
    model = glorot(make())
    optimizer = optimizer(model.parameters(), lr=1e-3)
    clock, processor, order = [], [], []
    for _ in range(o.steps):
        if len(order) < batch:
            order = torch.randperm(len(x))
        began, used = time.perf_counter(), time.process_time()
        chosen, order = order[:batch], order[batch:]
        loss = model.loss(x[chosen], labels[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if hasattr(model, "after"):
            model.after()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    print(f"{o.model} {median(clock):.4f} ms/step {median(processor):.4f} cpu-ms/step loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
