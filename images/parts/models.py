# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tiny models, trained in the engine's own image."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from . import engine
from .tools import CACHE, IMAGES, content_hash, run, say

SOURCE = IMAGES / "models"
ADAPTERS = ("tiny-legal", "tiny-medical")
"""LoRA adapters of tiny-a."""

NAMES = ("tiny-a", "tiny-b", "tiny-broken", "tiny-embed", "tiny-score", "tiny-speech", *ADAPTERS)


def build() -> str:
    """Train the models into the cache, unless the cache has the models of this script. Returns their names."""
    target = CACHE / "models"
    stamp = target / ".trained"
    # The inputs of the training. The library versions of the engine's image change the last digits of the weights.
    wanted = content_hash(SOURCE, IMAGES / "engine/requirements.txt")
    complete = all((target / name / weights(name)).exists() for name in NAMES)
    if not complete or not stamp.exists() or stamp.read_text() != wanted:
        say("training the tiny models (a minute)")
        train(target)
        stamp.write_text(wanted)
    return ", ".join(NAMES)


def weights(name: str) -> str:
    """The file of weights that a model or adapter has."""
    return "adapter_model.safetensors" if name in ADAPTERS else "model.safetensors"


def train(target: Path) -> None:
    """Train into a scratch directory, then put the models in place."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        run(
            *("docker", "run", "--rm", "--network", "none", "--entrypoint", "python3"),
            # The user who builds must own the models. A user ID without a name needs the variable USER.
            *("--user", f"{os.getuid()}:{os.getgid()}", "--env", "HOME=/tmp", "--env", "USER=builder"),
            *("--volume", f"{SOURCE}:/source:ro", "--volume", f"{scratch}:/out", engine.NAME),
            *("/source/train_tiny.py", "/out"),
        )
        target.mkdir(exist_ok=True)
        for name in NAMES:
            # The training writes weights with mode 0600, but the engine reads them as another user.
            for file in (Path(scratch) / name).iterdir():
                file.chmod(0o644)
            shutil.rmtree(target / name, ignore_errors=True)
            shutil.move(f"{scratch}/{name}", target / name)
