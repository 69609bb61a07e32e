#!/usr/bin/python3
"""Draw reconstruction error against the sparsity of contributions: sparse NMF's front and the models of additive parts.

    fronts.py OUT.png FRONT/results.csv NAME=EVAL.json ...

FRONT is the folder of `tessera sweep sparse-nmf-front`, EVAL.json the output of `tessera eval RUN --json`; evaluations of one name and
data set are seeds of one model and are drawn as points of one colour.
"""
import csv
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TITLES = {"fashion-mnist": "Fashion-MNIST", "mnist": "MNIST"}


def main():
    out, front = sys.argv[1:3]
    rows = list(csv.DictReader(open(front)))
    models = {}
    for argument in sys.argv[3:]:
        name, path = argument.split("=", 1)
        d = json.load(open(path))
        models.setdefault(name, {}).setdefault(d["dataset"], []).append((d["hoyer_contribution"], 1000 * d["mse"]))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True)
    for ax, (dataset, title) in zip(axes, TITLES.items()):
        mine = sorted((float(r["hoyer_contribution"]), 1000 * float(r["mse"]), r["code_sparsity"]) for r in rows if r["dataset.name"] == dataset)
        ax.plot([x for x, _, _ in mine], [y for _, y, _ in mine], "o-", color="0.45", label="sparse NMF, on the images it was fitted to")
        for x, y, s in mine:
            ax.annotate(s, (x, y), textcoords="offset points", xytext=(6, -11), color="0.45", fontsize=8)
        for (name, by), colour, marker in zip(models.items(), ["#0072b2", "#d55e00", "#009e73"], ["s", "^", "D"]):
            points = by.get(dataset, [])
            ax.plot([x for x, _ in points], [y for _, y in points], marker, color=colour, ms=5, label=f"{name}, on unseen images, one point per seed")
        ax.set_title(title)
        ax.set_xlabel("hoyer_contribution")
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
        for side in ["top", "right"]:
            ax.spines[side].set_visible(False)
    axes[0].set_ylabel("mean squared error, in thousandths")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=2, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    figure.savefig(out, dpi=100)


main()
