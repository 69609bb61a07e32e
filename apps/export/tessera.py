import json, os, tomllib
import numpy as np
def load(path):  # the declaration of the model, and its tensors by path
    b = open(path, "rb").read()
    head, values = json.loads(b[8:8 + int.from_bytes(b[:8], "little")]), np.frombuffer(b, "<f4", offset=8 + int.from_bytes(b[:8], "little"))
    (model,) = tomllib.loads((about := head.pop("__metadata__"))["declaration"])["model"].values()
    return model | {"metadata": about}, {name: values[t["data_offsets"][0] // 4:t["data_offsets"][1] // 4].reshape(t["shape"]) for name, t in head.items()}
def stack(layers, w, at, x):  # the layers one after the other; the paths of their tensors begin with at: "encoder.", "decoder."
    for i, layer in enumerate(layers):
        x = LAYERS[layer["kind"]](layer, {k.removeprefix(f"{at}{i}."): v for k, v in w.items() if k.startswith(f"{at}{i}.")}, x)
    return x
def dense(layer, w, x): return ACTIVATIONS[layer["activation"]]({"slope": 0.1}, {}, x.reshape(len(x), -1) @ w["weight"] + w.get("bias", 0))
ACTIVATIONS = {"linear": lambda layer, w, x: x, "sigmoid": lambda layer, w, x: 1 / (1 + np.exp(-x)), "relu": lambda layer, w, x: np.maximum(x, 0),
               "leaky_relu": lambda layer, w, x: np.where(x > 0, x, layer["slope"] * x), "tanh": lambda layer, w, x: np.tanh(x)}
LAYERS = ACTIVATIONS | dict.fromkeys(["gaussian_noise", "masking_noise", "dropout"], ACTIVATIONS["linear"]) | {"dense": dense}

def conv2d(layer, w, x):
    x = x[..., None] if x.ndim == 3 else x  # an image (height, width) has one channel
    dilation, padding = layer["dilation"], layer["padding"]
    down, right = layer["stride"], layer.get("stride_width", layer["stride"])
    height, width = (np.array(w["weight"].shape[:2]) - 1) * dilation + 1
    def around(n, reach, stride):
        if padding == "same":  # an odd pixel of padding is at the end
            total = max((-(-n // stride) - 1) * stride + reach - n, 0)
            return total // 2, total - total // 2
        return (0, 0) if padding == "valid" else (padding, padding)
    x = np.pad(x, [(0, 0), around(x.shape[1], height, down), around(x.shape[2], width, right), (0, 0)])
    x = np.lib.stride_tricks.sliding_window_view(x, (height, width), (1, 2))[:, ::down, ::right, :, ::dilation, ::dilation]
    groups = [np.einsum("nijcuv,uvcf->nijf", part, filters, optimize=True) for part, filters in
              zip(np.split(x, layer["groups"], 3), np.split(w["weight"], layer["groups"], 3))]
    return ACTIVATIONS[layer["activation"]]({"slope": 0.1}, {}, np.concatenate(groups, 3) + w.get("bias", 0))

def batch_norm(layer, w, x):
    return (x - w["running_mean"]) / np.sqrt(w["running_variance"] + layer["epsilon"]) * w["scale"] + w["shift"]

LAYERS |= {"conv2d": conv2d, "batch_norm": batch_norm}

def patches(layer, w, x):  # (n, patches, values of a patch), patches row by row, channels last
    s, (n, height, width) = layer["size"], x.shape[:3]
    return x.reshape(n, height // s, s, width // s, s, -1).swapaxes(2, 3).reshape(n, height // s * (width // s), -1)

def token_dense(layer, w, x):
    return ACTIVATIONS[layer["activation"]]({"slope": 0.1}, {}, x @ w["weight"] + w.get("bias", 0))

def layer_norm(layer, w, x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + layer["epsilon"]) * w["scale"] + w["shift"]

def attention(layer, w, x):
    n, features, heads = len(x), x.shape[-1], layer["heads"]
    def mapped(name):  # (n, heads, tokens, features of a head)
        y = x @ w[name] + w.get(name + "_bias", 0)
        return y.reshape(n, -1, heads, features // heads).swapaxes(1, 2)
    scores = mapped("query") @ mapped("key").swapaxes(2, 3) / np.sqrt(features / heads)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = weights / weights.sum(-1, keepdims=True) @ mapped("value")
    return mixed.swapaxes(1, 2).reshape(x.shape) @ w["output"] + w.get("output_bias", 0)

def relative(layer, w, x):  # a block that follows the scale of each sample
    scale = np.sqrt((x.reshape(len(x), -1) ** 2).mean(1) + np.float32(1e-20))
    along = lambda y: scale.reshape(-1, *[1] * (y.ndim - 1))
    y = stack(layer["layers"], w, "", x / along(x))
    return y * along(y)

def unrolled(layer, w, x):  # gradient or splitting steps of the least squares fit, as in the models of parts
    x = x.reshape(len(x), -1)
    gram = w["weight"].T @ w["weight"]
    if layer["method"] == "splitting":
        rho = np.exp(w["log_rho"])
        shift = rho * (gram.trace() / len(gram) + np.float32(1e-12))
        inverse = np.linalg.inv(gram.astype(float) + shift * np.eye(len(gram))).astype(np.float32)
        fit, y, h = x @ w["weight"] @ inverse, 0, 0
        for t in range(1, layer["steps"] + 1):
            h = h + w[f"relaxation_{t}"] * (fit + shift * (2 * y - h) @ inverse - y if t > 1 else fit)
            y = np.maximum(0, h - w[f"threshold_{t}"] / rho)
        return y
    row, fit = np.abs(gram).sum(1) + np.float32(1e-12), x @ w["weight"]
    z, before = np.zeros_like(fit), np.zeros_like(fit)
    for t in range(1, layer["steps"] + 1):
        y = np.maximum(0, z - w[f"step_size_{t}"] * (z @ gram - fit) / row - w[f"threshold_{t}"])
        z, before = y + w.get(f"momentum_{t}", 0) * (y - before), y
    return y

LAYERS |= {"patches": patches, "relative": relative, "unrolled": unrolled, "token_dense": token_dense, "layer_norm": layer_norm, "attention": attention,
           "position": lambda layer, w, x: x + w["embedding"],
           "residual": lambda layer, w, x: x + stack(layer["layers"], w, "", x)}

def nmf(w, images):
    x, atoms = images.reshape(len(images), -1), w["atoms"]
    gram, a, h = atoms @ atoms.T, x @ atoms.T, np.zeros((len(x), len(atoms)), np.float32)
    for _ in range(2000):
        before = h.copy()
        for j in np.flatnonzero(gram.diagonal()):
            h[:, j] = np.maximum(0, h[:, j] + (a[:, j] - h @ gram[j]) / gram[j, j])
        if ((h - before) ** 2).sum() <= 1e-10 * (h ** 2).sum():
            return h
    return h

def parameters(run):  # after early stopping, those of the best epoch
    best = run + "/best.safetensors"
    return load(best if os.path.exists(best) else run + "/model.safetensors")

def encode(run, images):  # run = "runs/shallow", images = np.load("images.npy")
    model, w = parameters(run)
    if np.isnan(images).any():
        raise NotImplementedError(f"{run}: missing values; `tessera encode` takes them")
    images = scaled(steps(model), images.reshape(len(images), -1)).reshape(images.shape)
    if "data/shift" in w:
        shift = w["data/shift"].astype(np.float64) + w.get("data/shift_rest", 0)
        images = (images - shift.reshape(images.shape[1:])).astype(np.float32) * w["data/factor"].reshape(images.shape[1:])
        images = images.clip(0, 1) if model["metadata"].get("clip") == "true" else images
    if "data/mix" in w:
        images = (images.reshape(len(images), -1) @ w["data/mix"]).reshape(images.shape)
    plain = {"solver": "hals", "loss": "euclidean", "batch": 0, "l1_codes": 0, "l2_codes": 0}
    if model.get("kind") == "pca":
        return (images.reshape(len(images), -1) - w["bias"]) @ w["atoms"].T
    if model.get("kind") == "nmf" and all(model[key] == value for key, value in plain.items()):
        return nmf(w, images)
    if "encoder" not in model:
        raise NotImplementedError(f"{run}: codes of kind = {model['kind']!r}, or of nmf with other settings than {plain}")
    return stack(alone(model["encoder"]), w, "encoder.", images).reshape(len(images), -1)

def steps(model):  # of the scale, before a shift and a factor
    return json.loads(model["metadata"].get("scaling", "[]"))

def scaled(steps, x):
    for kind, of in ((step["kind"], step["part"]) for step in steps):
        if kind not in ("log1p", "rows", "tfidf", "ppmi"):
            raise NotImplementedError(f"scale = {kind!r}")
        x, there = x.astype(np.float64), x > 0
        logs = np.log(np.where(there, x, 1))
        if kind == "log1p":
            x = np.log1p(x)
        elif kind == "tfidf":
            x = np.where(there, 1 + logs if of["Sublinear"] else x, 0) * np.array(of["IDF"])
        elif kind == "ppmi":
            rows = np.where(there, x, 0).sum(1, keepdims=True)
            x = np.where(there, np.maximum(0, logs - np.log(np.where(rows > 0, rows, 1)) - np.array(of["Columns"])), 0)
        if of.get("Norm", "none") != "none":
            norms = np.linalg.norm(x, {"l1": 1, "l2": 2, "max": np.inf}[of["Norm"]], 1, keepdims=True)
            x = x / np.where(norms > 0, norms, 1) * np.where(norms > 0, of.get("Target", 1), 1)
        x = x.astype(np.float32)
    return x

def alone(layers):  # layers that read nothing but the layer before them
    for layer in layers:
        for key in ("from", "keys", "mask"):
            if layer.get(key):
                raise NotImplementedError(f"the layer {layer['kind']} with {key} = {layer[key]!r}")
        alone(layer.get("layers", []))
    return layers

def decode(run, codes):  # (n, values of an image)
    model, w = parameters(run)
    images = codes @ w["atoms"] + w.get("bias", 0) if "atoms" in w else stack(alone(model["decoder"]), w, "decoder.", codes).reshape(len(codes), -1)
    targets = {"images"} if "atoms" in w else {term["against"] for term in model["loss"] if term["on"] == "output" and "against" in term}
    drawn = {name for name, column in model.get("column", {}).items() if column.get("of") == "images"}
    if targets and not targets & {"images", "complete", *drawn}:
        return images  # no samples: those of a transcoder
    images = images @ w["data/unmix"] if "data/mix" in w else images
    images = images / w["data/factor"] + w.get("data/shift_rest", 0) + w["data/shift"] if "data/shift" in w else images
    for step in reversed(steps(model)):
        if step["kind"] != "log1p":  # the others cannot be undone
            break
        images = np.expm1(images)
    return images
