# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remembers to which clocks GPUs were locked: no driver tells. Private to the collection.

Neither the report of nvidia-smi nor NVML's interface has the locked range; what they show as most is the card's own.
Seen up to driver 610.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core import files
from ..gpu.models import Gpu
from .settings import Settings

SCHEMA = 1

LOCKS = ("gpu_clocks_mhz", "memory_clocks_mhz")


class Clocks:
    """What was set since the driver was loaded, in a file below /run that goes with the boot."""

    def __init__(self, path: Path, driver: int | None, known: dict[str, dict[str, list[int]]] | None = None) -> None:
        self._path = path
        self._driver = driver
        self._known = known or {}

    @classmethod
    def read(cls, path: Path, driver: int | None) -> Clocks:
        """As a run before left it; empty where the driver was loaded anew since. `driver` is what `loading` tells."""
        try:
            stored: Any = files.read_json(path)
        except (OSError, ValueError):
            # Then the clocks are set once more, which does no harm.
            stored = None
        if not isinstance(stored, dict) or (stored.get("schema"), stored.get("driver")) != (SCHEMA, driver):
            return cls(path, driver)
        return cls(path, driver, stored["gpus"])

    def write(self) -> None:
        """Raises OSError."""
        if not self._known and not self._path.exists():
            return
        files.write_json(self._path, {"schema": SCHEMA, "driver": self._driver, "gpus": self._known})

    def of(self, gpu: Gpu) -> Settings:
        """What was set on a GPU; None for a setting that is unknown."""
        return Settings.of(self._known.get(_name(gpu), {}))

    def remember(self, gpu: Gpu, lock: str, clocks: tuple[int, ...]) -> None:
        self._known.setdefault(_name(gpu), {})[lock] = list(clocks)

    def forget(self, gpu: Gpu) -> None:
        """After a reset."""
        self._known.pop(_name(gpu), None)


def loading(root: Path) -> int | None:
    """A number that the kernel's module gets anew whenever it is loaded; None where it is not loaded.

    The kernel gives no number twice to what is in sysfs. Source: kernfs_new_node of fs/kernfs/dir.c.
    """
    try:
        return (root / "sys/module/nvidia").stat().st_ino
    except OSError:
        return None


def _name(gpu: Gpu) -> str:
    return gpu.uuid or gpu.pci_bus_id or ""
