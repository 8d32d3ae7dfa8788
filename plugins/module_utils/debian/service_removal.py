# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that leave a machine with their configuration, where that is ours. Private to the collection.

What was cut off is gone on with: the configurations go last, and by them the next run knows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..core import files, systemd


@dataclass(frozen=True)
class Part:
    """What goes as a whole, and stays as a whole where a configuration is somebody else's."""

    services: Sequence[str]
    """In the order in which they stop."""
    configs: Sequence[Path]
    header: str
    """What every configuration of ours begins with."""
    others: Sequence[Path]
    """What else is ours where they are, in the order in which it goes."""
    roots: Sequence[Path]
    """Where directories go that hold nothing any more."""


def leave(module: AnsibleModule, find: Callable[[], Sequence[Part]]) -> dict[str, Any]:
    """Stop what leaves, and remove it; in check mode, only tell. Returns the module's result, or fails the module."""
    try:
        parts = [(part, *_look(part)) for part in find()]
        services = _at_work([unit for part, found, _foreign in parts if found for unit in part.services])
        if not module.check_mode:
            for unit, installed in services.items():
                systemd.stop_and_disable(unit, installed=installed)
            for part, found, _foreign in parts:
                _remove(part, found)
            if any(found for _part, found, _foreign in parts):
                systemd.systemctl("daemon-reload")
    except (systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=f"{error}. Run it again: it goes on from where it stopped.")
    removed = [str(path) for _part, found, _foreign in parts for path in found]
    return {
        "changed": bool(removed),
        "stopped": list(services),
        "removed": removed,
        "foreign": [str(path) for _part, _found, foreign in parts for path in foreign],
        "diff": {"before": "".join(f"{path}\n" for path in removed), "after": ""},
    }


def _look(part: Part) -> tuple[list[Path], list[Path]]:
    """What is there of it, in the order in which it goes, and the configurations for which nothing goes.

    Raises OSError.
    """
    texts = {path: files.text(path) for path in part.configs}
    configs = [path for path, text in texts.items() if text is not None]
    foreign = [path for path in configs if not (texts[path] or "").startswith(part.header)]
    if foreign or not configs:
        return [], foreign
    # A link counts although what it leads to is gone.
    return [*(path for path in part.others if os.path.lexists(path)), *configs], []


def _at_work(services: Iterable[str]) -> dict[str, bool]:
    """The services that run, or would from the next boot on, and whether each is installed. Raises SystemdError."""
    shown = systemd.show(services, ["LoadState", "ActiveState", "UnitFileState"])
    return {
        unit: known["LoadState"] != "not-found"
        for unit, known in shown.items()
        if known["ActiveState"] != "inactive" or known["UnitFileState"] == "enabled"
    }


def _remove(part: Part, found: Sequence[Path]) -> None:
    """Remove files, and the directories that hold nothing then. Raises OSError."""
    for path in found:
        path.unlink()
        if path.parent.parent in part.roots and not any(path.parent.iterdir()):
            path.parent.rmdir()
