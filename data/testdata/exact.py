"""Writes exact.json: small files of NumPy, Pillow and pandas with the values that these read from them.

python3 exact.py
"""
import base64, io, json
import numpy as np, pandas as pd
from PIL import Image

files = {}


def add(name, content, values, labels=None, within=0):
    files[name] = {"file": base64.b64encode(content).decode(), "shape": list(values.shape), "values": [float(v) for v in np.asarray(values, np.float64).ravel()], "within": within}
    if labels is not None:
        files[name]["labels"] = [int(l) for l in labels]


def saved(write):
    b = io.BytesIO()
    write(b)
    return b.getvalue()


rng = np.random.default_rng(7)

# Pictures of 16 bits: v / 65535.
grey = rng.integers(0, 65536, (3, 4)).astype(np.uint16)
grey[0] = [51, 102, 153, 204]  # content of 8 bits in the low byte
for kind in ["png", "tiff"]:
    content = saved(lambda b: Image.fromarray(grey).save(b, kind))
    add("grey16." + kind, content, np.asarray(Image.open(io.BytesIO(content)), np.float64)[None] / 65535)

# Transparency over white.
rgba = rng.integers(0, 256, (3, 4, 4)).astype(np.uint8)
rgba[0] = [[0, 0, 0, 0], [0, 0, 0, 255], [255, 255, 255, 255], [0, 0, 0, 128]]
picture = Image.fromarray(rgba, "RGBA")
opacity = rgba[..., 3:] / 255
add("alpha.png", saved(lambda b: picture.save(b, "png")), (rgba[..., :3] / 255 * opacity + 1 - opacity)[None], within=1 / 255)

# Other pictures of 8 bits, without loss.
rgb = Image.fromarray(rgba[..., :3].copy(), "RGB")
for kind, options in {"bmp": {}, "tiff": {"compression": "tiff_lzw"}, "webp": {"lossless": True}, "png": {}}.items():
    add("rgb." + kind, saved(lambda b: rgb.save(b, kind, **options)), np.asarray(rgb, np.float64)[None] / 255)
grey8 = Image.fromarray(rgba[..., 0].copy(), "L")
add("grey.gif", saved(lambda b: grey8.save(b, "gif")), np.asarray(grey8, np.float64)[None] / 255)

# Numbers of all types.
counts = rng.integers(0, 200, (5, 3))
for kind in ["u2", "i2", "u4", "i4", "u8", "i8", ">i4", "f8", "f2"]:
    a = counts.astype(kind)
    add(kind.replace(">", "big_") + ".npy", saved(lambda b: np.save(b, a)), a.astype(np.float64))
add("bool.npy", saved(lambda b: np.save(b, counts % 2 == 0)), (counts % 2 == 0).astype(np.float64))
add("fortran_i8.npy", saved(lambda b: np.save(b, np.asfortranarray(counts))), counts.astype(np.float64))
add("counts.npz", saved(lambda b: np.savez(b, x=counts, labels=[0, 1, 2, 1, 0])), counts.astype(np.float64), [0, 1, 2, 1, 0])

# Texts as pandas and spreadsheets write them.
table = pd.DataFrame({"a": rng.normal(size=5), "b": rng.integers(0, 9, 5), "c": rng.integers(0, 2, 5) == 1})
numbers = table.to_numpy(np.float64)
text = table.to_csv(index=False)
add("flags.csv", text.encode(), numbers)
add("flags.tsv", table.to_csv(index=False, sep="\t").encode(), numbers)
add("flags.csv.gz", saved(lambda b: table.to_csv(b, index=False, compression={"method": "gzip", "mtime": 1})), numbers)
add("utf16.csv", text.encode("utf-16"), numbers)
add("utf16be.csv", b"\xfe\xff" + text.encode("utf-16-be"), numbers)
add("sep.csv", b"sep=;\r\n" + table.to_csv(index=False, sep=";", lineterminator="\r\n").encode(), numbers)
add("spaces.csv", text.replace("a,b", "a ,b ").encode(), numbers)

json.dump(files, open("exact.json", "w"), indent=1)
