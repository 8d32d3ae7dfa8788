# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tiny model that three ranks can divide: tiny-a with a third head of attention, which adds nothing.

The hidden state is wider, too: transformers refuses a Llama whose hidden size is not a multiple of its heads. All added
weights but rows of lm_head are zero, so all added values are zero, and the answers are those of tiny-a. The norms
divide by a mean, which the added zeros make smaller: their weights and their epsilon make up for that.

Only the standard library, because the controller has no PyTorch. Source of the file's form: the format section of
safetensors' README.
"""

from __future__ import annotations

import json
import math
import shutil
import struct
from array import array
from pathlib import Path

RANKS = 3

WORDS = 384
"""Rows of the vocabulary: engines round up to a multiple of 64, and three ranks divide the result."""


def make(source: Path, target: Path) -> None:
    """Write the widened copy of tiny-a at `source` to the directory `target`."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    config = json.loads((source / "config.json").read_text())
    hidden = RANKS * config["head_dim"]
    inner = -(-config["intermediate_size"] // RANKS // 64) * 64 * RANKS
    share = config["hidden_size"] / hidden
    wide = {"num_attention_heads": RANKS, "num_key_value_heads": RANKS, "hidden_size": hidden}
    wide |= {"intermediate_size": inner, "vocab_size": WORDS, "rms_norm_eps": config["rms_norm_eps"] * share}
    (target / "config.json").write_text(json.dumps(config | wide, indent=2))
    raw = (source / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    entries, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    sizes = {
        **dict.fromkeys(("q_proj", "k_proj", "v_proj", "o_proj"), (hidden, hidden)),
        **dict.fromkeys(("gate_proj", "up_proj"), (inner, hidden)),
        **dict.fromkeys(("embed_tokens", "lm_head"), (WORDS, hidden)),
        "down_proj": (hidden, inner),
    }
    written = b""
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        weights = array("f", data[begin:end])
        layer = name.split(".")[-2]
        if layer in sizes:
            # The model never generates the padding token, and so no token whose row is a copy of this token's row. A
            # row of zeros could win.
            weights = _widened(weights, entry["shape"], sizes[layer], repeat=layer == "lm_head")
            entry["shape"] = list(sizes[layer])
        else:
            weights = array("f", [weight * math.sqrt(share) for weight in weights]) + _zeros(hidden - len(weights))
            entry["shape"] = [hidden]
        packed = weights.tobytes()
        entry["data_offsets"] = [len(written), len(written) + len(packed)]
        written += packed
    head = json.dumps(entries).encode()
    head += b" " * (-len(head) % 8)
    (target / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + written)


def _zeros(number: int) -> array[float]:
    return array("f", [0.0] * number)


def _widened(weights: array[float], shape: list[int], size: tuple[int, int], *, repeat: bool) -> array[float]:
    """A matrix of `size`. New columns are zero; new rows too, or copies of the first row."""
    rows, columns = shape
    wide = array("f")
    for row in range(rows):
        wide += weights[row * columns : (row + 1) * columns] + _zeros(size[1] - columns)
    new = wide[: size[1]] if repeat else _zeros(size[1])
    return wide + new * (size[0] - rows)
