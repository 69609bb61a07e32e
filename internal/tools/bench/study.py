#!/usr/bin/python3
"""Tables and pictures of the pages of docs/reproduction about the questions that the study left open.

    study.py table SWEEP/summary.csv KEY,... METRIC,...      # a table in Markdown: settings, means ± deviations over the seeds
    study.py penalties SWEEP/summary.csv METRIC              # [sweep.penalty-or-projection...]: the metric over lambda
    study.py fronts SWEEP/summary.csv OUT.png                # [sweep.regularisers]: error over sparsity of contributions
    study.py sorted OUT.png DATASET:NAME=CODES.npy ...               # mean of the sorted activations of an image, from `tessera encode`
    study.py prototypes KMEANS RUN CODES.npy ...             # largest cosine of the useful atoms of each run with a centre
    study.py capacity NETWORKS/summary.csv BASELINES/summary.csv OUT.png
"""
import csv
import json
import sys

import numpy as np

TITLES = {"fashion-mnist": "Fashion-MNIST", "mnist": "MNIST"}


def rows(path):
    return [r for r in csv.DictReader(open(path)) if r["mse"]]


def dataset(row):
    return json.loads(row["dataset"])["name"] if "{" in row.get("dataset", "") else row.get("dataset.name", "")


def number(row, metric):
    value, spread = float(row[metric]), row.get(metric + "_deviation", "")
    if 0 < abs(value) < 1e-4:
        return f"{value:.0e}".replace("e-0", "e-")
    count = metric in ("parts_found", "useful_units", "dead_units", "negative_weights", "gabor_atoms")
    digits = (1 if value < 100 else 0) if count else next((d for least, d in ((100, 0), (1, 1), (0.1, 3)) if abs(value) >= least), 4)
    if count and not float(spread or 0) and value == round(value):
        return f"{value:.0f}"
    return f"{value:.{digits}f}" + (f" ± {float(spread):.{digits}f}" if spread and float(spread) else "") if value else "0"


def table(path, keys, metrics):
    keys, metrics = keys.split(","), metrics.split(",")
    print("| " + " | ".join(keys + metrics) + " |\n" + "| --- " * len(keys + metrics) + "|")
    for r in rows(path):
        print("| " + " | ".join([dataset(r) if k.startswith("dataset") else r[k] for k in keys] + [number(r, m) for m in metrics]) + " |")


def penalty(row):
    """The name of a way to non-negative weights."""
    where = row["constraint"]
    decay = f"{row['loss.2.norm']}, alpha {row['loss.2.alpha']}" if row["loss.2.norm"] != "smooth" else "smooth"
    name = f"penalty {decay}" if where == "[]" else f"projection of all weights, {decay}" if '"*.weight"' in where else f"projection of the atoms, {decay}"
    return name + (", non-negative start" if '"low"' in row.get("decoder.0.init", "") else "")


def penalties(path, metric):
    for key in dict.fromkeys(map(dataset, rows(path))):
        mine = [r for r in rows(path) if dataset(r) == key]
        weights = sorted({float(r["loss.2.weight"]) for r in mine})
        print(f"\n{metric}, {key}\n\n| | " + " | ".join("0" if not w else f"{w:.0e}".replace("e-0", "e-") for w in weights) + " |\n| --- " + "| --- " * len(weights) + "|")
        for name in dict.fromkeys(map(penalty, mine)):
            by = {float(r["loss.2.weight"]): r for r in mine if penalty(r) == name}
            print(f"| {name} | " + " | ".join(number(by[w], metric) if w in by else "" for w in weights) + " |")


def regulariser(row):
    """The name of the regulariser of a trial, None for the model without one."""
    if row["model"] != "shallow-nonneg":
        return row["model"].removeprefix("shallow-nonneg-").replace("-", "_")
    loss, encoder = json.loads(row["loss"]), json.loads(row["encoder"])
    return loss[1]["kind"] if len(loss) > 1 else encoder[1]["kind"] if len(encoder) > 1 else None


def panels(width=11, height=4.4):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(width, height))
    for ax in axes:
        ax.grid(color="0.92")
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure, axes, out, columns):
    handles, labels = axes[0].get_legend_handles_labels()
    lines = -(-len(labels) // columns)
    figure.legend(handles, labels, loc="lower center", ncol=columns, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.03 + 0.05 * lines, 1, 1))
    figure.savefig(out, dpi=90)


COLOURS = ["#0072b2", "#56b4e9", "#009e73", "#7fbf7b", "#d55e00", "#cc79a7", "#e69f00", "0.25", "0.6"]


def fronts(path, out):
    figure, axes = panels()
    names = list(dict.fromkeys(n for r in rows(path) if (n := regulariser(r))))
    for ax, (key, title) in zip(axes, TITLES.items()):
        for name, colour, marker in zip(names, COLOURS, "osD^vPX*h"):
            points = sorted((float(r["hoyer_contribution"]), 1000 * float(r["mse"])) for r in rows(path) if dataset(r) == key and regulariser(r) == name)
            ax.plot(*zip(*points), marker=marker, color=colour, label=name, ms=5, lw=1.3)
        ax.set(title=title, xlabel="sparsity of contributions (hoyer_contribution)", xlim=(0.3, 0.92), ylim=(5, 35))
    axes[0].set_ylabel("mean squared error, in thousandths")
    save(figure, axes, out, 5)


def ordered(out, *named):
    figure, axes = panels()
    for ax, key in zip(axes, TITLES):
        for argument, colour in zip([a for a in named if a.startswith(key + ":")], ["0.5", "#d55e00", "#0072b2"]):
            name, path = argument.removeprefix(key + ":").split("=", 1)
            codes = np.sort(np.load(path), axis=1)[:, ::-1]
            ax.plot(np.arange(1, codes.shape[1] + 1), codes.mean(0), color=colour, label=name, lw=1.6)
        ax.set(title=TITLES[key], xlabel="units of an image, the most active first", ylim=(0, None))
    axes[0].set_ylabel("activation, mean over the test images")
    save(figure, axes, out, 3)


def tensors(run):
    with open(run + "/model.safetensors", "rb") as f:
        head, body = json.loads(f.read(int.from_bytes(f.read(8), "little"))), f.read()
    return {k: np.frombuffer(body[v["data_offsets"][0] : v["data_offsets"][1]], np.float32).reshape(v["shape"]).astype(float) for k, v in head.items() if k[0] != "_"}


def prototypes(kmeans, *runs):
    unit = lambda v: v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12)
    centres, rng = unit(tensors(kmeans)["atoms"]), np.random.default_rng(1)
    nearest = lambda v: (unit(v) @ centres.T).max(1).mean()
    for run, codes in zip(runs[::2], runs[1::2]):
        atoms = tensors(run)["decoder.0.weight"]
        useful = json.load(open(run + "/eval.json"))["measured"]["useful_units"]
        top = np.argsort(-np.load(codes).std(0) * np.linalg.norm(atoms, axis=1))[:useful]  # the units that contribute most
        print(f"{run}: {useful} useful units, {nearest(atoms[top]):.3f}, with shuffled pixels {nearest(rng.permuted(atoms[top], axis=1)):.3f}")


def capacity(networks, baselines, out):
    figure, axes = panels()
    for ax, (key, title) in zip(axes, TITLES.items()):
        lines = {}
        for r in rows(networks):
            layers = json.loads(r["encoder"])
            name = "shallow-nonneg, one dense layer" if len(layers) == 1 else "the same with three dense layers"
            lines.setdefault(name, []).append((layers[-1]["units"], r)) if dataset(r) == key else None
        for r in rows(baselines):
            lines.setdefault(r["model"].upper(), []).append((int(r["components"]), r)) if dataset(r) == key else None
        for (name, points), colour, marker in zip(lines.items(), ["#0072b2", "#d55e00", "#009e73", "0.4"], "osD^"):
            points.sort(key=lambda p: p[0])
            ax.errorbar([k for k, _ in points], [1000 * float(r["mse"]) for _, r in points], [1000 * float(r["mse_deviation"] or 0) for _, r in points],
                        marker=marker, color=colour, label=name, ms=5, lw=1.3, capsize=2)
        ax.set(title=title, xlabel="units of the code", xscale="log", yscale="log")
        ax.set_xticks([10, 25, 50, 100, 200, 400], ["10", "25", "50", "100", "200", "400"])
        ax.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
        ax.minorticks_off()
    axes[0].set_ylabel("mean squared error, in thousandths")
    save(figure, axes, out, 4)


if __name__ == "__main__":
    commands = {"table": table, "penalties": penalties, "fronts": fronts, "sorted": ordered, "prototypes": prototypes, "capacity": capacity}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
