# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's settings of recovery on this node. Private to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from ...core import files
from ...core.paths import Paths

SCHEMA = 1


@dataclass(frozen=True)
class Settings:
    """Times are in seconds. An empty address of an alert means none."""

    armed: bool = True
    """Whether recovery takes steps without an operator."""
    budget: int = 3
    """How many faults of an instance recovery answers within an hour. The next fault opens the breaker."""
    backoff: float = 30.0
    """Wait between the second and the third step within an hour. Each further wait is twice as long."""
    restart_docker: bool = True
    reset_gpus: bool = True
    evidence_kept: int = 5
    webhook: str = ""
    mail_to: str = ""
    mail_from: str = ""
    alertmanager: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def read(paths: Paths) -> Settings | None:
    """The settings of this node; None if the role recovery has not set up the node.
    Raises OSError, and ValueError if the file is damaged."""
    value = files.read_json(paths.recovery_settings)
    if value is None:
        return None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(
            f"{paths.recovery_settings} is not of schema {SCHEMA}: baremetal.inference.recovery writes it anew"
        )
    known = {one.name: value[one.name] for one in fields(Settings) if one.name in value}
    # The message leaves the values out, since they may be secrets.
    if wrong := [key for key, given in known.items() if not _fits(given, getattr(Settings, key))]:
        raise ValueError(
            f"{paths.recovery_settings} has a wrong type of {', '.join(wrong)}: baremetal.inference.recovery writes it"
            " anew"
        )
    return Settings(**known)


def _fits(given: object, default: object) -> bool:
    """Whether a value has the type of a setting's default. A float may be a whole number; a bool is no number."""
    if isinstance(default, bool | str):
        return isinstance(given, type(default))
    return isinstance(given, int | float if isinstance(default, float) else int) and not isinstance(given, bool)
