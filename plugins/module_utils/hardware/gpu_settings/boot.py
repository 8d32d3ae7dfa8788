# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies the GPU settings at boot from the file that the module gpu_settings has written. Private to the collection.

Cards lose most settings when the driver is unloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core import files
from ...core.commands import Outcome, run
from ...core.paths import Paths
from .apply import Result, Setter
from .clocks import Clocks, loading
from .settings import Wanted

SCHEMA = 1


def runner(program: str, timeout: float) -> Callable[[list[str]], Outcome]:
    """A function that runs nvidia-smi, or a test's program, with a time limit of `timeout` seconds."""
    return lambda arguments: run([program, *arguments], timeout)


def as_text(wanted: Wanted, program: str, timeout: float) -> str | None:
    """The text of the file. None without settings: the file must not exist."""
    if not wanted:
        return None
    return files.to_json({"schema": SCHEMA, "nvidia_smi": program, "timeout_s": timeout, **wanted.as_dict()})


def apply(paths: Paths) -> Result:
    """Apply the settings in the file to every card that accepts them. Without a file, the result is empty.

    Raises NoAnswer of nvidia-smi, ValueError for a damaged file, OSError.
    """
    stored = files.read_json(paths.gpu_settings)
    if stored is None:
        return Result()
    program, timeout, wanted = _read(stored, str(paths.gpu_settings))
    # Sets the clocks even if they are recorded, because a reset of a card may have unlocked them.
    clocks = Clocks(paths.gpu_clocks, loading(paths.root))
    try:
        return Setter(runner(program, timeout), clocks, wanted).apply(all_or_nothing=False)
    finally:
        clocks.write()


def _read(stored: Any, where: str) -> tuple[str, float, Wanted]:
    if not isinstance(stored, Mapping) or stored.get("schema") != SCHEMA:
        raise ValueError(f"{where} does not have schema {SCHEMA}: run baremetal.inference.site, which repairs it")
    try:
        return stored["nvidia_smi"], stored["timeout_s"], Wanted.of(stored["settings"], stored["overrides"])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{where} is damaged ({error}): run baremetal.inference.site, which repairs it") from error
