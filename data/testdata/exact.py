"""Writes exact.json: small files of NumPy, Pillow and pandas with the values that these read from them.

python3 exact.py
"""
import base64, io, json, struct, zipfile, zlib
import numpy as np, pandas as pd
from PIL import Image

files = {}


def add(name, content, values, labels=None, within=0):
    files[name] = {"file": base64.b64encode(content).decode(), "shape": list(values.shape), "values": [float(f"{v:.9g}") for v in np.asarray(values, np.float64).ravel()], "within": within}
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

# The marks and commas of other programs.
plain = text.encode()
add("mark.csv", b"\xef\xbb\xbf" + plain, numbers)
add("mark_quotes.csv", b"\xef\xbb\xbf" + plain.replace(b"a,b,c", b'"a","b","c"'), numbers)
add("trailing.csv", plain.replace(b"\n", b",\n"), numbers)
add("pipes.csv", plain.replace(b",", b"|"), numbers)
add("points.csv", b"a,b\n1.037,2\n1000,3\n", np.array([[1.037, 2], [1000, 3]]))

# Headers of arrays: every version, order of bytes and spelling that NumPy reads.
for version in [(2, 0), (3, 0)]:
    add(f"version{version[0]}.npy", saved(lambda b: np.lib.format.write_array(b, counts.astype("f4"), version)), counts)
for kind in [">f2", ">u2", ">f8", "u1"]:
    add(kind.replace(">", "big_") + ".npy", saved(lambda b: np.save(b, counts.astype(kind))), counts / (255 if kind == "u1" else 1))
for name, head in {"keys": "{'shape': (5, 3), 'descr': '<f8', 'fortran_order': False}", "native": "{'descr': '=f8', 'fortran_order': False, 'shape': (5, 3)}",
                   "python2": "{'descr': '<f8', 'fortran_order': False, 'shape': (5L, 3L)}"}.items():
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head) + 1) + head.encode() + b"\n" + counts.astype("<f8").tobytes()
    add(name + ".npy", content, np.load(io.BytesIO(content)))

# Archives of arrays.
inner = saved(lambda b: np.save(b, counts))
for name, options in {"deflated": {"compression": zipfile.ZIP_DEFLATED}, "zip64": {"force": True}, "comment": {"comment": b"of a peer"}}.items():
    b = io.BytesIO()
    with zipfile.ZipFile(b, "w", options.get("compression", zipfile.ZIP_STORED)) as z:
        z.comment = options.get("comment", b"")
        with z.open(zipfile.ZipInfo("x.npy", (2020, 1, 1, 0, 0, 0)), "w", force_zip64=options.get("force", False)) as f:
            f.write(inner)
    add(name + ".npz", b.getvalue(), np.load(io.BytesIO(b.getvalue()))["x"])
for kind, name in {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "|u1": "U8", "|b1": "BOOL"}.items():
    a = counts.astype(kind)
    for pad in [0, 3]:  # the values may begin anywhere
        head = json.dumps({"x": {"dtype": name, "shape": a.shape, "data_offsets": [0, a.nbytes]}}).encode() + b" " * pad
        add(f"{name}_{pad}.safetensors", struct.pack("<Q", len(head)) + head + a.tobytes(), a / 255 if name == "U8" else a)

# JPEG of other programs, smooth colours: in four colours, progressive, with a quarter of the colours; turned TIFF; PNG of few bits.
y, x = np.mgrid[:16, :16]
smooth = Image.fromarray(np.stack([60 + 8 * x, 60 + 8 * y, 200 - 4 * (x + y)], -1).astype(np.uint8))
for name, mode, options in [("cmyk", "CMYK", {}), ("progressive", "RGB", {"progressive": True}), ("quarter", "RGB", {"subsampling": 2}), ("grey", "L", {})]:
    content = saved(lambda b: smooth.convert(mode).save(b, "jpeg", quality=92, **{"subsampling": 0, **options}))
    read = np.asarray(Image.open(io.BytesIO(content)).convert("L" if mode == "L" else "RGB"), np.float64)[None] / 255
    add(name + ".jpg", content, read, within=(12 if name == "quarter" else 3) / 255)
for turn in [3, 6, 7]:
    content = saved(lambda b: smooth.crop((0, 0, 16, 9)).save(b, "tiff", tiffinfo={274: turn}))
    add(f"turned{turn}.tiff", content, np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), np.float64)[None] / 255)  # turned when it is loaded
deep = rng.integers(0, 65536, (3, 4, 3))
chunks = {b"IHDR": struct.pack(">IIBBBBB", 4, 3, 16, 2, 0, 0, 0), b"IDAT": zlib.compress(b"".join(b"\0" + row.astype(">u2").tobytes() for row in deep)), b"IEND": b""}
add("rgb16.png", b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks.items()), deep[None] / 65535)
for kind, picture in {"bit": grey8.convert("1"), "palette": rgb.quantize(7)}.items():
    content = saved(lambda b: picture.save(b, "png"))
    add(kind + ".png", content, np.asarray(Image.open(io.BytesIO(content)).convert("L" if kind == "bit" else "RGB"), np.float64)[None] / 255)

open("exact.json", "w").write("{\n" + ",\n".join(json.dumps(name) + ": " + json.dumps(f) for name, f in files.items()) + "\n}\n")
