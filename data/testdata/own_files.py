#!/usr/bin/python3
"""Write the files that tests of package data read: arrays by NumPy and PyTorch, images by Pillow, and what they hold.

    python3 own_files.py

The checked-in files were made with NumPy 1.24, PyTorch 1.13 and Pillow 9.4.
"""
import hashlib
import json
import struct

import numpy as np
import torch
from PIL import Image

rng = np.random.default_rng(12)

# Every float16 that is a number, subnormal ones and both zeros among them, as float32.
half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
half = half[np.isfinite(half)].astype("<f4")

samples = rng.normal(0, 7, (6, 5))
classes = np.array(["wren", "owl", "wren", "çà et là", "owl", "owl"])
np.save("half.npy", samples.astype(np.float16))
np.savez_compressed("arrays.npz", x=samples, y=classes, more=rng.normal(size=(3, 2)))
np.savez("codes.npz", codes=samples.astype(np.float32), names=np.array(list("abcdef")), labels=np.array([2, 0, 2, 1, -1, 0]), classes=np.array(["k", "l", "m"]))

brain = torch.tensor(samples).to(torch.bfloat16)
tensors = {"acts": ("BF16", brain.view(torch.int16).numpy()), "half": ("F16", samples.astype(np.float16)), "ids": ("I64", np.arange(6))}
header, body = {"__metadata__": {"format": "pt"}}, b""
for name, (dtype, values) in tensors.items():
    header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [len(body), len(body) + values.nbytes]}
    body += values.tobytes()
text = json.dumps(header).encode()
with open("tensors.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + body)

with open("birds.csv", "w") as f:
    f.write("id;wing;tail;species;mass\n")
    for i, row in enumerate(samples[:, :3]):
        f.write(f"bird {i};{row[0]!r};{row[1]!r};{classes[i]};{row[2]!r}\n")

# What the files hold, as float32.
single = lambda x: np.asarray(x, np.float32).astype(float).tolist()
mean, deviation = samples.mean(0), samples.std(0)
expected = {
    "samples": single(samples), "classes": classes.tolist(), "brain": single(brain.float().numpy()), "half": single(samples.astype(np.float16)),
    "all_halves": hashlib.sha256(half.tobytes()).hexdigest(),
    "standardise": single((samples - mean) / deviation), "minmax": single((samples - samples.min(0)) / np.ptp(samples, 0)),
}

# A picture of 24x16 (width x height) with smooth colours, so that JPEG changes little.
y, x = np.mgrid[:16, :24]
picture = np.stack([x * 10, y * 15, 255 - 5 * (x + y)], -1).astype(np.uint8)
image = Image.fromarray(picture)
expected["picture"] = picture.tolist()
image.save("picture.png")
image.save("picture.bmp")
image.quantize(256).save("picture.gif")
expected["gif"] = np.asarray(image.quantize(256).convert("RGB")).tolist()
for orientation in range(1, 9):
    exif = Image.Exif()
    exif[0x0112] = orientation
    turned = {1: image, 2: image.transpose(Image.FLIP_LEFT_RIGHT), 3: image.transpose(Image.ROTATE_180), 4: image.transpose(Image.FLIP_TOP_BOTTOM),
              5: image.transpose(Image.TRANSPOSE), 6: image.transpose(Image.ROTATE_90), 7: image.transpose(Image.TRANSVERSE),
              8: image.transpose(Image.ROTATE_270)}[orientation]
    turned.save(f"turned{orientation}.jpg", quality=95, subsampling=0, exif=exif)
# Linear interpolation with a triangle filter as wide as a pixel of the result.
expected["stretch"] = np.asarray(image.resize((10, 10), Image.BILINEAR)).tolist()
expected["crop"] = np.asarray(image.crop((4, 0, 20, 16)).resize((10, 10), Image.BILINEAR)).tolist()
inner = np.asarray(image.resize((10, 7), Image.BILINEAR))
expected["pad"] = np.concatenate([np.zeros((1, 10, 3)), inner, np.zeros((2, 10, 3))]).astype(int).tolist()
with open("own_files.json", "w") as f:
    json.dump(expected, f)
