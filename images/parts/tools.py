# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers for all parts: the cache, content hashes, Docker, mmdebstrap and pip."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from . import host

IMAGES = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("INFERENCE_CACHE") or Path.home() / ".cache/baremetal-inference")
"""The directory of wheels, models and the image registry's storage, shared by all checkouts on this machine."""

MIRROR = os.environ.get("DEBIAN_MIRROR", "")
"""The Debian mirror to build from. Empty: this machine's mirror, or mmdebstrap's default on other systems."""


class BuildError(Exception):
    """A step has failed. The message says what to do."""


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"    {text}", flush=True)


def run(*argv: str, advice: str = "", **options: object) -> str:
    """Run a command and return its output. Raises BuildError with the command's last 15 lines and the advice."""
    result = subprocess.run(argv, text=True, capture_output=True, **options)  # type: ignore[call-overload]
    if result.returncode != 0:
        words = "\n".join((result.stdout + result.stderr).strip().splitlines()[-15:])
        raise BuildError(f"{' '.join(argv[:4])} … failed:\n{words}\n{advice}".rstrip())
    return result.stdout.strip()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the lock on the cache: only one build at a time may write to it, a second build waits."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build on this machine")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def succeeds(*argv: str) -> bool:
    """Whether a command ends with exit status 0."""
    return subprocess.run(argv, capture_output=True).returncode == 0


def content_hash(*inputs: Path | str) -> str:
    """Twelve hexadecimal digits over texts, files and whole directories."""
    digest = hashlib.sha256()
    for item in inputs:
        files = [item] if isinstance(item, str) or item.is_file() else sorted(item.rglob("*"))
        for file in files:
            if isinstance(file, str):
                digest.update(file.encode())
            elif file.is_file() and "__pycache__" not in file.parts:
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def image_exists(name: str) -> bool:
    """Whether the Docker engine has an image."""
    return succeeds("docker", "image", "inspect", name)


def tag(name: str, moving: str) -> None:
    """Give an image a second name without hash. Files that use this name stay the same after each build."""
    run("docker", "tag", name, moving)


def mirror_of(suite: str) -> list[str]:
    """The mirrors for a release, which the image keeps as its sources. Empty for mmdebstrap's default."""
    return [MIRROR] if MIRROR else host.sources(suite)


def bootstrap(suite: str, packages: Iterable[str], tarball: Path, *options: str) -> None:
    """Make a tarball of a minimal Debian with packages. Options are passed to mmdebstrap. Raises BuildError."""
    options += tuple(f"--aptopt={option}" for option in host.apt_options())
    run(
        *("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", *options),
        *(suite, str(tarball), *mirror_of(suite)),
        advice="Check the network, or set a mirror that this machine reaches: DEBIAN_MIRROR=http://… make setup",
    )


def debootstrap(suite: str, packages: Iterable[str], name: str, *hooks: str) -> None:
    """Make an image of a minimal Debian with packages. Hooks are shell commands, $1 is the image's root directory."""
    with tempfile.TemporaryDirectory() as scratch:
        tarball = Path(scratch) / "root.tar"
        bootstrap(suite, packages, tarball, *(f"--customize-hook={hook}" for hook in hooks))
        run("docker", "import", "--change", 'CMD ["bash"]', str(tarball), name)


def for_python(version: str) -> list[str]:
    """pip's options for wheels of a CPython version on Debian's amd64, independent of the Python that runs pip."""
    names = [f"manylinux_2_{glibc}_x86_64" for glibc in (36, 35, 34, 31, 28, 27, 26, 24, 17, 12, 5)]
    names += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    platforms = [f"--platform={name}" for name in names]
    return ["--only-binary=:all:", "--python-version", version, "--implementation", "cp", *platforms]


def download_wheels(requirements: Path, python: str, target: Path) -> None:
    """Fetch the wheels that a requirements file pins, for any version of Python, unless the target has them."""
    target.mkdir(parents=True, exist_ok=True)
    command = (
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *for_python(python)),
        *("--dest", str(target), "--find-links", str(target), "--requirement", str(requirements)),
    )
    # If the target has all wheels, PyPI is not needed.
    if not succeeds(*command, "--no-index"):
        advice = (
            "Check that pip on this machine reaches PyPI. PyPI has no CPU build of torch: set PIP_EXTRA_INDEX_URL to "
            "PyTorch's index of CPU builds, then run make again."
        )
        run(*command, advice=advice)


def docker_build(context: Path, name: str, **arguments: str) -> None:
    """Build an image from a directory with a Dockerfile, by the builder of the Docker daemon."""
    options = [f"--build-arg={key}={value}" for key, value in arguments.items()]
    # Every Docker daemon has the legacy builder; BuildKit may be missing.
    run("docker", "build", "--quiet", *options, "--tag", name, str(context), env={**os.environ, "DOCKER_BUILDKIT": "0"})
