# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets the GPUs at boot as the module gpu_settings has left word: what a card forgets without its driver comes back
before any engine starts. Private to the collection."""

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
    """Runs nvidia-smi, or what stands for it, for `timeout` seconds at most."""
    return lambda arguments: run([program, *arguments], timeout)


def as_text(wanted: Wanted, program: str, timeout: float) -> str | None:
    """The text of the file; None, for no file, where nothing is set."""
    if not wanted:
        return None
    return files.to_json({"schema": SCHEMA, "nvidia_smi": program, "timeout_s": timeout, **wanted.as_dict()})


def apply(paths: Paths) -> Result:
    """Set every card that takes it, as the file says; an empty result where there is no file.

    Raises NoAnswer of nvidia-smi, ValueError for a file that is none of ours, OSError.
    """
    stored = files.read_json(paths.gpu_settings)
    if stored is None:
        return Result()
    program, timeout, wanted = _read(stored, str(paths.gpu_settings))
    # What is remembered is overwritten, not believed: a reset of a card may have undone it.
    clocks = Clocks(paths.gpu_clocks, loading(paths.root))
    try:
        return Setter(runner(program, timeout), clocks, wanted).apply(all_or_nothing=False)
    finally:
        clocks.write()


def _read(stored: Any, where: str) -> tuple[str, float, Wanted]:
    if not isinstance(stored, Mapping) or stored.get("schema") != SCHEMA:
        raise ValueError(f"{where} is not of schema {SCHEMA}: baremetal.inference.site writes it anew")
    try:
        return stored["nvidia_smi"], stored["timeout_s"], Wanted.of(stored["settings"], stored["overrides"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{where} is damaged ({error}): baremetal.inference.site writes it anew") from error
