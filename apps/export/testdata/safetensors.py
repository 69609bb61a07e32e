"""Writes safetensors files."""
import json

import numpy as np


def save(path, tensors):
    kinds, head, at = {"float16": "F16", "float32": "F32", "float64": "F64", "int64": "I64"}, {}, 0
    tensors = {name: np.ascontiguousarray(t) if np.ndim(t) else np.asarray(t) for name, t in tensors.items()}
    for name, t in tensors.items():
        head[name] = {"dtype": kinds[str(t.dtype)], "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(t.tobytes() for t in tensors.values()))
