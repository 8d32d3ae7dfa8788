# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node of files: an instance with its release, and GPUs on the bus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel

GPU = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}

GPU_DATA = Path(__file__).parents[1] / "hardware/gpu/data"


def missing(program: str) -> Outcome:
    """What running a program gives that is not installed."""
    return Outcome(None, failure="not_installed", message=f"{program} is not installed")


def write(path: Path, text: str) -> None:
    """A file, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def plug(root: Path, *addresses: str) -> None:
    """GPUs on the PCI bus, bound to NVIDIA's driver."""
    for address in addresses:
        device = root / "sys/bus/pci/devices" / address
        for name, text in GPU.items():
            write(device / name, text)
        (device / "driver").symlink_to("../../drivers/nvidia")


def install(
    paths: Paths,
    name: str = "main",
    *,
    accelerator: str = "cpu",
    gpus: Sequence[str] = (),
    environment: dict[str, str] | None = None,
    engine_argv: Sequence[str] = (),
    image: str = "image",
    model: str = "tiny-a",
    directory: str = "models/tiny-a",
    revision: str = "r",
) -> int:
    """The next release of an instance, installed and proven, with its model's directory below the root. Returns its
    number."""
    stored = StoredModel(str(paths.root / directory), revision)
    (paths.root / directory).mkdir(parents=True, exist_ok=True)
    instance = Instance(name=name, model=model, port=5005, accelerator=accelerator, gpus=tuple(gpus))
    settings = Settings(environment=environment or {})

    def rendered(number: int) -> Rendered:
        return render(instance, [*engine_argv], stored, image, settings, number=number)

    staged, _changed = releases.stage(paths, name, rendered(0).release.id, rendered, pytest.fail)
    releases.activate(paths, name, staged.release.number)
    releases.commit(paths, name, staged.release.number)
    return staged.release.number
