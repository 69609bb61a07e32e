#!/usr/bin/python3
"""The gallery of shipped models: docs/gallery.md, docs/gallery.html and docs/gallery/NAME.png.

    gallery.py TESSERA FOLDER [NAME...]

TESSERA is the program; FOLDER keeps the runs and gallery.json, so that an interrupted run goes on; NAME trains only these models again. A card has
a picture of the run, what the model is, its first lines in models.toml, the command, its processor time and a page to go on. Needs Pillow, and
TESSERA_DATA for the images of clothes and digits.
"""
import base64
import html
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[3]
WIDE, TALL, LINES = 300, 240, 12
CLOTHES = ["--epochs", "10", "--set", "dataset.limit=20000"]
ADAM = ["--set", "optimizer.kind=adam"]
SHORT = ["--epochs", "4", "--set", "dataset.limit=8000"]

# model: arguments of train, number of atoms or kind of picture, page to go on
CARDS = {
    "Parts": {
        "swimmer-parts": ([], 20, "guide/first-model"),
        "bars-parts": ([], 16, "guide/first-model"),
        "parts-relative": (CLOTHES, 100, "guide/photos"),
        "parts-splitting": (CLOTHES, 100, "guide/photos"),
        "parts-unrolled": (CLOTHES, 100, "guide/photos"),
        "parts-deep": (CLOTHES, 100, "guide/photos"),
        "parts": (CLOTHES, 100, "guide/photos"),
        "parts-vae": (CLOTHES, 100, "reproduction/parts-vae"),
    },
    "Auto-encoders": {
        "shallow-tied-plasticity": (CLOTHES, 100, "reproduction/mnist/README"),
        "shallow-adversarial": (CLOTHES + ADAM, "reconstructions", "robustness"),
        "denoising": (CLOTHES + ADAM, "reconstructions", "models"),
        "deep-symmetric": (CLOTHES, "reconstructions", "reproduction/capacity"),
        "conv-symmetric": (SHORT, "reconstructions", "models"),
        "unet": (SHORT, "reconstructions", "models"),
        "masked-autoencoder": (SHORT, "attention", "models"),
        "vq-vae": (SHORT, "reconstructions", "reproduction/generative"),
    },
    "Classical methods": {
        "nmf": (CLOTHES[2:], 100, "guide/how-many"),
        "sparse-nmf-hals": (CLOTHES[2:], 100, "reproduction/surpass"),
        "nnsae": (CLOTHES[2:], 100, "reproduction/mnist/README"),
        "pca": (CLOTHES[2:], 100, "equivalences"),
        "kmeans": (CLOTHES[2:], 100, "reproduction/prototypes"),
        "orthogonal-nmf": ([], 17, "parts"),
        "convex-nmf": ([], 16, "parts"),
        "separable-nmf": ([], 16, "parts"),
        "dictionary": ([], 20, "parts"),
        "nmf-itakura-saito": ([], 16, "parts"),
    },
    "Draw": {
        "vae": (CLOTHES, "sample", "guide/generate"),
        "conv-vae": (SHORT, "sample", "guide/generate"),
        "gan": (SHORT, "sample", "reproduction/generative"),
        "rbm": (SHORT, 100, "reproduction/deep-belief"),
        "rbm-sparse": (SHORT, 100, "reproduction/deep-belief"),
    },
    "Classify": {
        "classifier": (CLOTHES, "gradients", "guide/classify"),
        "classifier-robust": (SHORT, "gradients", "robustness"),
        "vit-classifier": (SHORT, "attention", "guide/classify"),
    },
}


def train(name, arguments, picture):
    run = FOLDER / "runs" / name
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([TESSERA, "train", name, *arguments, "--quiet", "--force", "--out", run], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    drawn = run.with_suffix(".png")
    if isinstance(picture, int):  # atoms: all of few, else 20 of so many, evenly spaced
        chosen = [] if picture <= 40 else ["--atoms", ",".join(str(i * picture // 20) for i in range(20))]
        subprocess.run([TESSERA, "figure", "atoms", run, *chosen, "--out", drawn], check=True, capture_output=True)
    elif picture == "sample":
        subprocess.run([TESSERA, "sample", run, "--count", "24", "--out", drawn], check=True, capture_output=True)
    else:
        subprocess.run([TESSERA, "figure", picture, run, "--out", drawn], check=True, capture_output=True)
    image = Image.open(drawn).convert("RGB")
    image.thumbnail((WIDE, TALL), Image.LANCZOS)
    image.quantize(64).save(ROOT / "docs/gallery" / (name + ".png"), optimize=True)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def declaration(name):
    """The first lines of the model in models.toml, without comments."""
    text = (ROOT / "models.toml").read_text()
    block = re.search(rf"^\[model\.{re.escape(name)}\]\n(.*?)(?=^\[(?!\[?model\.{re.escape(name)}[.\]])|\Z)", text, re.M | re.S).group(0)
    lines = [re.sub(r"\s+# .*$", "", line) for line in block.splitlines() if line.strip() and not line.startswith("#")]
    lines = [line for line in lines if not line.startswith("about")]
    return lines[:LINES] + (["# ..."] if len(lines) > LINES else [])


def about(name):
    text = (ROOT / "models.toml").read_text()
    return re.search(rf'^\[model\.{re.escape(name)}\]\nabout\s*=\s*"(.*?)"', text, re.M).group(1)


def seconds(value):
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"


def pages(timed):
    md = ["# Gallery", "", "Shipped models after short trainings: the picture, the declaration, the command and its processor time. `tessera list` has all, "
          "[gallery.html](gallery.html) the same on one page.", ""]
    page = ["<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Tessera: gallery</title>",
            "<style>body{font:15px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:1320px;padding:0 1rem;color:#222;background:#fff}"
            "main{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:1.2rem}article{border:1px solid #ddd;border-radius:6px;padding:.8rem;"
            "display:flex;flex-direction:column;min-width:0}img{max-width:100%;max-height:200px;object-fit:contain;align-self:center}"
            "h3{margin:.6rem 0 .2rem;font-size:1rem}p{margin:.2rem 0}pre{background:#f5f5f5;padding:.5rem;font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}"
            "small{color:#666}@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}article{border-color:#444}pre{background:#222}"
            "small{color:#999}a{color:#8bf}}</style>",
            "<h1>Gallery</h1><p>Shipped models after short trainings. <code>tessera list</code> has all of them.</p>"]
    for title, cards in CARDS.items():
        shown = [name for name in cards if name in timed]
        if not shown:
            continue
        md += [f"## {title}", ""]
        page.append(f"<h2>{title}</h2><main>")
        for name in shown:
            arguments, _, link = cards[name]
            command = " ".join(["tessera train", name, *arguments])
            picture = ROOT / "docs/gallery" / (name + ".png")
            md += [f"### {name}", "", f"![{about(name)}](gallery/{name}.png)", "", f"{about(name)}. [More]({link}.md).", "", "```toml", *declaration(name), "```", "",
                   "```sh", command, f"```", "", f"{seconds(timed[name])} of processor time.", ""]
            data = base64.b64encode(picture.read_bytes()).decode()
            page.append(f"<article><img alt=\"{html.escape(about(name))}\" src=\"data:image/png;base64,{data}\"><h3>{name}</h3><p>{html.escape(about(name))}. "
                        f"<a href=\"{link}.md\">More</a></p><details><summary>declaration</summary><pre>{html.escape(chr(10).join(declaration(name)))}</pre></details>"
                        f"<pre>{html.escape(command)}</pre><small>{seconds(timed[name])} of processor time</small></article>")
        page.append("</main>")
    (ROOT / "docs/gallery.md").write_text("\n".join(md).rstrip() + "\n")
    (ROOT / "docs/gallery.html").write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    TESSERA, FOLDER, again = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute(), sys.argv[3:]
    (ROOT / "docs/gallery").mkdir(exist_ok=True)
    (FOLDER / "runs").mkdir(parents=True, exist_ok=True)
    kept = FOLDER / "gallery.json"
    timed = json.loads(kept.read_text()) if kept.exists() else {}
    shipped = subprocess.run([TESSERA, "list", "models"], check=True, capture_output=True, text=True).stdout
    for title, cards in CARDS.items():
        for name, (arguments, picture, _) in cards.items():
            if name in again or name not in timed and re.search(rf"^  {name} ", shipped, re.M):
                try:
                    timed[name] = train(name, arguments, picture)
                except subprocess.CalledProcessError as failed:
                    print(name, failed.stderr.decode(), file=sys.stderr)
                    continue
                kept.write_text(json.dumps(timed, indent=1))
                shutil.rmtree(FOLDER / "runs" / name)
                print(f"{name}: {timed[name]:.1f} s", flush=True)
    pages(timed)
