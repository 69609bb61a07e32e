"""Writes sparse dictionaries in the formats of SAELens and sparsify, with what they compute by the formulas of these programs, in float64.

Argument: the folder, which gets samples.npy and a folder for each dictionary with codes.npy and outputs.npy.
"""
import json
import os
import sys

import numpy as np

from safetensors import save

folder, inputs, units = sys.argv[1], 6, 20
random = np.random.default_rng(1)
x = random.normal(1, 2, (50, inputs)).astype("f")
np.save(os.path.join(folder, "samples.npy"), x)


def relu(v):
    return np.maximum(v, 0)


def largest(v, k):
    return np.where(v >= np.sort(v, axis=-1)[..., -k, None], v, 0)


def dictionary(name, cfg, file, encode, decode=lambda code, w: code @ w["W_dec"] + w["b_dec"], dtype="f", **extra):
    w = {"W_enc": random.normal(0, 0.5, (inputs, units)), "b_enc": random.normal(0, 0.5, units), "W_dec": random.normal(0, 0.5, (units, inputs)),
         "b_dec": random.normal(0, 1, inputs), **extra}
    w = {k: np.asarray(v).astype("d" if np.ndim(v) == 0 else dtype) for k, v in w.items()}
    place = os.path.join(folder, name)
    os.makedirs(place)
    stored = dict(w)
    if file == "sae.safetensors":
        stored["encoder.weight"], stored["encoder.bias"] = stored.pop("W_enc").T, stored.pop("b_enc")
    if cfg.get("architecture") == "gated":
        del stored["b_enc"]
    save(os.path.join(place, file), stored)
    json.dump({"d_in": inputs, **cfg}, open(os.path.join(place, "cfg.json"), "w"))
    w = {k: v.astype("d") for k, v in w.items()}
    code = encode(x.astype("d") - w["b_dec"] * cfg.get("apply_b_dec_to_input", True), w)
    np.save(os.path.join(place, "codes.npy"), code.astype("f"))
    np.save(os.path.join(place, "outputs.npy"), decode(code, w).astype("f"))


def pre(x, w):
    return x @ w["W_enc"] + w["b_enc"]


def norms(w):
    return np.linalg.norm(w["W_dec"], axis=1)


lens, eleuth = "sae_weights.safetensors", "sae.safetensors"
old = {"d_sae": units, "dtype": "torch.float32", "model_name": "gpt2-small", "hook_name": "blocks.1.hook_resid_pre", "normalize_activations": "none"}
six = {"d_sae": units, "dtype": "float32", "normalize_activations": "none", "reshape_activations": "none", "metadata": {"sae_lens_version": "6.12.1"}}

dictionary("standard", {**old, "architecture": "standard", "activation_fn_str": "relu"}, lens, lambda x, w: relu(pre(x, w)))
dictionary("half", {**six, "architecture": "standard"}, lens, lambda x, w: relu(pre(x, w)), dtype="float16")
dictionary("tuned", {**old, "finetuning_scaling_factor": True}, lens, lambda x, w: relu(pre(x, w)),
           lambda code, w: (code * w["finetuning_scaling_factor"]) @ w["W_dec"] + w["b_dec"], finetuning_scaling_factor=random.uniform(1, 2, units))
dictionary("old_topk", {**old, "activation_fn_str": "topk", "activation_fn_kwargs": {"k": 3}}, lens, lambda x, w: relu(largest(pre(x, w), 3)))
dictionary("topk", {**six, "architecture": "topk", "k": 3, "rescale_acts_by_decoder_norm": True}, lens,
           lambda x, w: relu(largest(pre(x, w) * norms(w), 3)), lambda code, w: (code / norms(w)) @ w["W_dec"] + w["b_dec"])
dictionary("jumprelu", {**six, "architecture": "jumprelu", "apply_b_dec_to_input": False}, lens,
           lambda x, w: relu(pre(x, w)) * (pre(x, w) > relu(w["threshold"])), threshold=random.normal(0.5, 0.5, units))
dictionary("batchtopk", {**six, "architecture": "batchtopk", "k": 3.0}, lens, lambda x, w: pre(x, w) * (pre(x, w) > w["topk_threshold"]), topk_threshold=0.75)
dictionary("gated", {**six, "architecture": "gated"}, lens,
           lambda x, w: (x @ w["W_enc"] + w["b_gate"] > 0) * relu(x @ (w["W_enc"] * np.exp(w["r_mag"])) + w["b_mag"]),
           b_gate=random.normal(0, 0.5, units), r_mag=random.normal(0, 0.5, units), b_mag=random.normal(0, 0.5, units))
dictionary("eleuth_topk", {"k": 3, "num_latents": units, "expansion_factor": 32, "normalize_decoder": True, "signed": False}, eleuth,
           lambda x, w: largest(relu(pre(x, w)), 3))
dictionary("eleuth_groupmax", {"k": 4, "num_latents": units, "activation": "groupmax"}, eleuth,
           lambda x, w: largest(relu(pre(x, w)).reshape(-1, 4, units // 4), 1).reshape(-1, units))
