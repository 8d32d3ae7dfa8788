# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine with Ray, for tests of `executor: ray`: a layer on the engine's image, which only these tests use."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from . import engine, registry
from .tools import CACHE, IMAGES, content_hash, docker_build, download_wheels, image_exists, run, say

SOURCE = IMAGES / "ray"
RECORD = CACHE / "ray-image.json"
UNUSED = ("jars", "rllib", "dashboard/client", "cpp", "data", "serve", "train", "tune", "llm")
"""Parts of Ray that a node of an engine never runs."""


def build() -> str:
    """Build the image, push it to the registry, and record its digest in ray-image.json."""
    base = run("docker", "image", "inspect", "--format", "{{.Id}}", engine.NAME)
    name = f"inference-engine:ray-{content_hash(SOURCE, Path(__file__), base)}"
    if not image_exists(name):
        say("adding Ray to the engine (80 MB to download)")
        requirements, wheels = SOURCE / "requirements.txt", CACHE / "wheels"
        download_wheels(requirements, engine.PYTHON, wheels)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            site = Path(scratch) / "site"
            engine.install_wheels(requirements, wheels, site)
            for unused in UNUSED:
                shutil.rmtree(site / "ray" / unused, ignore_errors=True)
            for file in ("Dockerfile", "ray", "patch.py"):
                shutil.copy(SOURCE / file, scratch)
            docker_build(Path(scratch), name, BASE=engine.NAME)
    return registry.push(name, "ray", RECORD)
