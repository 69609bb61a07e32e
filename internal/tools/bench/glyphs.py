"""Draws the letters of fonts as a data set of 28x28 images: python3 glyphs.py FONTS OUT

FONTS is a folder, searched to any depth; every TrueType and OpenType font in it that has all letters of the Latin alphabet gives 52
images, its capital and its small letters. A letter is drawn 80 pixels high, cut to its ink, scaled with an area filter to fit 24 pixels,
and centred. Its class is its number in the alphabet, 0 to 25. A font file that is equal to an earlier one is left out, and so is a letter
whose image is equal to an earlier one. All fonts whose family names begin with the same word (Liberation Sans, Liberation Mono) are
training fonts, or all are test fonts: one word in seven, by its SHA-256.

OUT gets train-images.idx.gz, train-labels.npy, test-images.idx.gz, test-labels.npy. Needs numpy, Pillow and fontTools.
"""
import gzip
import hashlib
import pathlib
import string
import struct
import sys

import numpy as np
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

LETTERS = string.ascii_uppercase + string.ascii_lowercase


def draw(font, letter):
    left, top, right, bottom = font.getbbox(letter)
    if right <= left or bottom <= top or max(right - left, bottom - top) > 400:
        return None
    canvas = Image.new("L", (right - left + 4, bottom - top + 4))
    ImageDraw.Draw(canvas).text((2 - left, 2 - top), letter, font=font, fill=255)
    ink = canvas.getbbox()
    if ink is None:
        return None
    glyph = canvas.crop(ink)
    scale = 24 / max(glyph.size)
    glyph = glyph.resize([max(1, round(side * scale)) for side in glyph.size], Image.BOX)
    image = Image.new("L", (28, 28))
    image.paste(glyph, ((28 - glyph.width) // 2, (28 - glyph.height) // 2))
    return np.asarray(image)


def letters(path):
    """The images of the letters and the first word of the family's name; no images where a letter is missing."""
    font = TTFont(path, fontNumber=0, lazy=True)
    covered = font.getBestCmap() or {}
    if any(ord(letter) not in covered for letter in LETTERS):
        return [], ""
    family = font["name"].getDebugName(16) or font["name"].getDebugName(1)
    drawn = ImageFont.truetype(str(path), 80)
    return [draw(drawn, letter) for letter in LETTERS], family.split()[0].lower()


def write(out, name, images, labels):
    images = np.stack(images)
    header = struct.pack(">HBBIII", 0, 8, 3, *images.shape)
    (out / f"{name}-images.idx.gz").write_bytes(gzip.compress(header + images.tobytes(), mtime=0))
    np.save(out / f"{name}-labels.npy", np.array(labels, np.uint8))
    print(f"{name}: {len(images)} images")


def main(fonts, out):
    out.mkdir(parents=True, exist_ok=True)
    split = {"train": ([], []), "test": ([], [])}
    files, seen, used = set(), set(), 0
    for path in sorted(p for p in fonts.rglob("*") if p.suffix.lower() in (".ttf", ".otf") and p.is_file()):
        digest = hashlib.sha256(path.read_bytes()).digest()
        if digest in files:
            continue
        files.add(digest)
        try:
            drawn, word = letters(path)
        except Exception as e:  # fonts without outlines, damaged tables
            print(f"skipped {path.name}: {e}", file=sys.stderr)
            continue
        used += bool(drawn)
        images, labels = split["test" if hashlib.sha256(word.encode()).digest()[0] % 7 == 0 else "train"]
        for number, image in enumerate(drawn):
            if image is None or image.tobytes() in seen:
                continue
            seen.add(image.tobytes())
            images.append(image)
            labels.append(number % 26)
    print(f"{used} of {len(files)} fonts")
    for name, (images, labels) in split.items():
        write(out, name, images, labels)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
