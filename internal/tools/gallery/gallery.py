#!/usr/bin/python3
"""The gallery of shipped models: docs/gallery.md, docs/gallery.html and docs/gallery/NAME.png.

    gallery.py TESSERA FOLDER [NAME...]

TESSERA is the program; FOLDER keeps the runs and gallery.json, so that an interrupted run goes on; NAME trains only these models again. A card has
a picture of the run, what the model is, its first lines in models.toml, the command, its processor time and a page to go on. Needs Pillow, and
TESSERA_DATA for the images of clothes and digits.
"""
import base64
import csv
import html
import io
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

from PIL import Image, ImageDraw, ImageFont

ROOT = pathlib.Path(__file__).resolve().parents[3]
WIDE, TALL, LINES, COLUMNS = 300, 200, 10, 6
CLOTHES = ["--epochs", "10", "--set", "dataset.limit=20000"]
ADAM = ["--set", "optimizer.kind=adam"]
FEW = ["--set", "dataset.limit=5000"]  # with the whole schedule
SHORT = ["--epochs", "4", "--set", "dataset.limit=8000"]
IMAGES = [0, 1, 31, 3, 4, 5, 6, 7, 8, 9, 18, 23]  # one of each class of clothes at least

# model: arguments of train, number of atoms or kind of picture, page to go on
CARDS = {
    "Parts": {
        "swimmer-parts": ([], 20, "guide/first-model"),
        "bars-parts": ([], 16, "guide/first-model"),
        "parts-relative": (FEW, 100, "guide/photos"),
        "parts-splitting": (FEW, 100, "guide/photos"),
        "parts-unrolled": (CLOTHES, 100, "reproduction/surpass"),
        "parts-deep": (CLOTHES, 100, "reproduction/surpass"),
        "parts": (CLOTHES, 100, "reproduction/surpass"),
        "parts-vae": (CLOTHES, 100, "reproduction/parts-vae"),
        "parts-simclr": (SHORT, 100, "reproduction/joint-embeddings"),
        "dsd-codes": (CLOTHES + ["--set", "hook.sparse_phase.from=4", "--set", "hook.sparse_phase.until=8"], 100, "reproduction/dsd-codes"),
        "patches-sae": (["--set", "dataset.patches=20000"], 100, "reproduction/patches"),
    },
    "Auto-encoders": {
        "shallow": (CLOTHES + ADAM, "reconstructions", "reproduction/table1/README"),
        "shallow-tied-plasticity": (["--epochs", "40"] + CLOTHES[2:], 100, "reproduction/mnist/README"),
        "shallow-adversarial": (CLOTHES + ADAM, "reconstructions", "robustness"),
        "denoising": (CLOTHES + ADAM, "reconstructions", "models"),
        "deep-symmetric": (CLOTHES, "reconstructions", "reproduction/capacity"),
        "conv-symmetric": (SHORT, "reconstructions", "models"),
        "unet": (SHORT, "reconstructions", "models"),
        "vq-vae": (SHORT, "reconstructions", "reproduction/generative"),
        "contractive": (SHORT + ADAM, "reconstructions", "models"),
        "linear": (CLOTHES, "reconstructions", "equivalences"),
    },
    "Classical methods": {
        "nmf": (CLOTHES[2:], 100, "guide/how-many"),
        "sparse-nmf-hals": (CLOTHES[2:], 100, "reproduction/surpass"),
        "nnsae": (["--set", "iterations=10"] + CLOTHES[2:], 100, "reproduction/mnist/README"),
        "pca": (CLOTHES[2:], 100, "equivalences"),
        "kmeans": (CLOTHES[2:], 100, "reproduction/prototypes"),
        "orthogonal-nmf": ([], 17, "reproduction/known-parts"),
        "local-nmf": ([], 16, "reproduction/known-parts"),
        "semi-nmf": ([], 16, "reproduction/known-parts"),
        "convex-nmf": ([], 16, "reproduction/known-parts"),
        "separable-nmf": ([], 16, "reproduction/known-parts"),
        "dictionary": ([], 20, "reproduction/known-parts"),
        "nmf-itakura-saito": ([], 16, "reproduction/known-parts"),
    },
    "Draw": {
        "vae": (CLOTHES, "sample", "guide/generate"),
        "beta-vae": (CLOTHES, "sample", "guide/generate"),
        "conv-vae": (CLOTHES, "sample", "guide/generate"),
        "gan": (CLOTHES, "sample", "reproduction/generative"),
        "rbm": (["--set", "dataset.limit=10000"], 100, "reproduction/deep-belief"),
        "rbm-sparse": (["--set", "dataset.limit=10000"], 100, "reproduction/deep-belief"),
    },
    "Classify": {
        "classifier": (CLOTHES, "gradients", "guide/classify"),
        "semi-supervised": (CLOTHES, "gradients", "guide/classify"),
        "classifier-robust": (SHORT, "gradients", "robustness"),
        "vit-classifier": (SHORT, "attention", "guide/classify"),
    },
    "Words": {
        "fasttext": ([], "classes", "guide/words"),
        "clip-swimmer": ([], "captions", "guide/language"),
    },
}
LEGENDS = {
    "atoms": "The picture shows atoms.",
    "sample": "The picture shows samples that the model drew.",
    "reconstructions": "The picture shows images and, below each, its reconstruction.",
    "gradients": "The picture shows images and, below each, the gradient of the cross entropy: red raises it, blue lowers it.",
    "classes": "The picture shows sentences, and below each the class that the model gives it, with its probability.",
    "captions": "The picture shows figures, and below each the sentence that the model gives it, one of 256.",
    "attention": "The picture shows images and, below each, where three heads of the last layer attend.",
}

SENTENCES = ["these cooks stir the soup.", "some scholars recite a riddle.", "many farmers plough the field near this barn.",
             "this old sailor who hoists the anchor fears every storm."]


def written(place, lines, size, image, light=(230, 230, 230)):
    """Writes lines of text into an image."""
    draw = ImageDraw.Draw(image)
    for i, line in enumerate(lines):
        draw.text((place[0], place[1] + 1.3 * size * i), line, fill=light, font=ImageFont.truetype("DejaVuSans.ttf", size))


def classes(run):
    """Sentences with the classes that a run gives them."""
    texts, image = run.with_suffix(".texts"), Image.new("RGB", (2 * WIDE, 2 * TALL))
    texts.mkdir(exist_ok=True)
    for i, sentence in enumerate(SENTENCES):
        (texts / f"{i}.txt").write_text(sentence + "\n")
    found = subprocess.run([TESSERA, "predict", run, "--in", texts], check=True, capture_output=True, text=True).stdout
    for i, row in enumerate(csv.DictReader(io.StringIO(found))):
        written((12, 12 + 98 * i), [SENTENCES[i]], 21, image)
        written((12, 46 + 98 * i), [f"{row['class']}  {float(row['probability']):.2f}"], 25, image, (255, 190, 80))
    return image


def captions(run):
    """Three figures, of the report of a run, with the sentences that it gives them."""
    page, figures, image = run.with_suffix(".html"), run.with_suffix(".figures"), Image.new("RGB", (2 * WIDE, 2 * TALL))
    subprocess.run([TESSERA, "report", run, "-o", page], check=True, capture_output=True)
    pictures = dict.fromkeys(re.findall(r'data:image/png;base64,([^"]+)"', page.read_text()))
    figures.mkdir(exist_ok=True)
    for i, picture in enumerate(list(pictures)[1:4]):  # after the mean of a unit
        (figures / f"{i}.png").write_bytes(base64.b64decode(picture))
    found = subprocess.run([TESSERA, "zero-shot", run, "--in", figures], check=True, capture_output=True, text=True).stdout
    for i, row in enumerate(csv.DictReader(io.StringIO(found))):
        image.paste(Image.open(figures / row["name"]).convert("RGB").resize((190, 190), Image.NEAREST), (200 * i + 5, 10))
        words = row["class"].split()
        written((200 * i + 12, 225), [" ".join(words[j:j + 3]) for j in range(0, len(words), 3)], 18, image)
    return image


def blocks(picture):
    """The pictures of a figure without its captions: the ranges of rows that are not mostly white."""
    image = Image.open(picture).convert("RGB")
    dark = image.convert("L").point(lambda v: 255 * (v < 240))
    drawn = dark.resize((1, image.height), Image.BOX).tobytes()
    edges = [y for y in range(1, image.height) if (drawn[y - 1] > 128) != (drawn[y] > 128)]
    left, _, right, _ = dark.crop((0, edges[0], image.width, edges[1])).getbbox()
    return [image.crop((left, top, right, bottom)) for top, bottom in zip(edges[::2], edges[1::2])]


def stacked(rows):
    image = Image.new("RGB", (rows[0].width, sum(row.height for row in rows)))
    top = 0
    for row in rows:
        image.paste(row, (0, top))
        top += row.height
    return image


def train(name, arguments, picture):
    run = FOLDER / "runs" / name
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([TESSERA, "train", name, *arguments, "--quiet", "--force", "--out", run], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    drawn = run.with_suffix(".png")

    def figure(kind, option="", numbers=()):
        chosen = [option, ",".join(map(str, numbers))] if option else []
        subprocess.run([TESSERA, "figure", kind, run, *chosen, "--out", drawn], check=True, capture_output=True)
        return blocks(drawn)

    if picture in ("classes", "captions"):
        rows = [globals()[picture](run)]
    elif picture == "sample":
        subprocess.run([TESSERA, "sample", run, "--count", "24", "--out", drawn], check=True, capture_output=True)
        rows = blocks(drawn)
    elif picture == "attention":  # the images and three heads
        rows = figure(picture, "--images", IMAGES[:COLUMNS])[:4]
    elif isinstance(picture, str):
        rows = [row for i in (0, COLUMNS) for row in figure(picture, "--images", IMAGES[i:i + COLUMNS])]
    elif picture <= 40:
        rows = figure("atoms")
    else:  # 24 atoms, evenly spaced
        numbers = [i * picture // (4 * COLUMNS) for i in range(4 * COLUMNS)]
        rows = [row for i in range(0, len(numbers), COLUMNS) for row in figure("atoms", "--atoms", numbers[i:i + COLUMNS])]
    image = stacked(rows)
    image.thumbnail((WIDE, TALL), Image.LANCZOS)
    image.quantize(32).save(ROOT / "docs/gallery" / (name + ".png"), optimize=True)
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


STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:1320px;padding:0 1rem;color:#222;background:#fff}
nav a{margin-right:1rem}
main{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(300px,100%),1fr));gap:1.2rem}
article{border:1px solid #ddd;border-radius:6px;padding:.8rem;display:flex;flex-direction:column;min-width:0}
figure{margin:0;height:200px;display:flex;align-items:center;justify-content:center;background:#000;border-radius:3px}
img{max-width:100%;max-height:200px}
h3{margin:.6rem 0 .2rem;font-size:1rem}
p{margin:.2rem 0}
pre{background:#f5f5f5;padding:.5rem;font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}
article>pre{margin-top:auto}
pre span{white-space:nowrap}
small{color:#666}
@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}article{border-color:#444}pre{background:#222}small{color:#999}a{color:#8bf}}
"""


def coded(text):
    """HTML of a text with names in backticks."""
    return re.sub("`(.*?)`", r"<code>\1</code>", html.escape(text))


def pages(timed):
    intro = "shipped models after short trainings: a picture of the run, the first lines of the declaration, the command and its processor time"
    md = ["# Gallery", ""]
    page = ["<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Tessera: gallery</title>",
            f"<style>{STYLE}</style>"]
    sections = {title: [name for name in cards if name in timed] for title, cards in CARDS.items()}
    count = sum(map(len, sections.values()))
    md += [f"{count} {intro}. `tessera list models` has all models, [gallery.html](gallery.html) the cards side by side.", ""]
    page += [f"<h1>Gallery</h1><p>{count} {intro}. <code>tessera list models</code> has all models.</p>",
             "<nav>" + " ".join(f"<a href=\"#{title.split()[0].lower()}\">{title}</a>" for title in sections) + "</nav>"]
    for title, shown in sections.items():
        md += [f"## {title}", ""]
        page.append(f"<h2 id=\"{title.split()[0].lower()}\">{title}</h2><main>")
        for name in shown:
            arguments, picture, link = CARDS[title][name]
            command, text, lines = " ".join(["tessera train", name, *arguments]), about(name), declaration(name)
            legend = LEGENDS.get(picture, LEGENDS["atoms"])
            shown_command = re.sub(r"(--\S+ \S+)", r"<span>\1</span>", html.escape(command))  # options do not break at their hyphens
            md += [f"### {name}", "", f"![{text}](gallery/{name}.png)", "", f"{text}. {legend} [More]({link}.md).", "", "```toml", *lines, "```", "",
                   "```sh", command, "```", "", f"{seconds(timed[name])} of processor time.", ""]
            page.append(f"<article><figure><img alt=\"{html.escape(legend)}\" src=\"gallery/{name}.png\"></figure><h3>{name}</h3>"
                        f"<p>{coded(text)}. <a href=\"{link}.md\">More</a></p><p><small>{html.escape(legend)}</small></p>"
                        f"<details><summary>declaration</summary><pre>{html.escape(chr(10).join(lines))}</pre></details>"
                        f"<pre>{shown_command}</pre><small>{seconds(timed[name])} of processor time</small></article>")
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
