# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records the clocks to which GPUs are locked, because no driver reports them. Private to the collection.

Neither the report of nvidia-smi nor NVML has the locked range. Their highest clock is the card's own. Seen up to driver
610.
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
    """The locked clocks since the driver was loaded, in a file below /run that a reboot removes."""

    def __init__(self, path: Path, driver: int | None, known: dict[str, dict[str, list[int]]] | None = None) -> None:
        self._path = path
        self._driver = driver
        self._known = known or {}

    @classmethod
    def read(cls, path: Path, driver: int | None) -> Clocks:
        """Read the file of an earlier run; empty if the driver was loaded again since. `driver` is from `loading`."""
        try:
            stored: Any = files.read_json(path)
        except (OSError, ValueError):
            # Without the file, the clocks are set again, which is harmless.
            stored = None
        if not isinstance(stored, dict) or (stored.get("schema"), stored.get("driver")) != (SCHEMA, driver):
            return cls(path, driver)
        try:
            known = {
                str(name): {lock: list(locks[lock]) for lock in LOCKS if lock in locks}
                for name, locks in stored["gpus"].items()
            }
        except (KeyError, TypeError, AttributeError):
            known = {}
        return cls(path, driver, known)

    def write(self) -> None:
        """Write the file. Raises OSError."""
        if not self._known and not self._path.exists():
            return
        files.write_json(self._path, {"schema": SCHEMA, "driver": self._driver, "gpus": self._known})

    def of(self, gpu: Gpu) -> Settings:
        """The recorded locks of a GPU; None for an unknown lock."""
        return Settings.of(self._known.get(_name(gpu), {}))

    def remember(self, gpu: Gpu, lock: str, clocks: tuple[int, ...]) -> None:
        self._known.setdefault(_name(gpu), {})[lock] = list(clocks)

    def forget(self, gpu: Gpu) -> None:
        """Remove a GPU's record after a reset."""
        self._known.pop(_name(gpu), None)


def loading(root: Path) -> int | None:
    """A number that changes whenever the kernel module is loaded; None if it is not loaded.

    The number is the inode in sysfs, which the kernel never uses twice. Source: kernfs_new_node of fs/kernfs/dir.c.
    """
    try:
        return (root / "sys/module/nvidia").stat().st_ino
    except OSError:
        return None


def _name(gpu: Gpu) -> str:
    return gpu.uuid or gpu.pci_bus_id or ""
