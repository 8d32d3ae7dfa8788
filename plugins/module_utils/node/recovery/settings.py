# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role says of the recovery. Private to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from ...core import files
from ...core.paths import Paths

SCHEMA = 1


@dataclass(frozen=True)
class Settings:
    """Times in seconds. Empty addresses of alerts mean none."""

    armed: bool = True
    """Whether anything is done by itself."""
    budget: int = 3
    """Faults of an instance within an hour that are answered; the next one opens the breaker."""
    backoff: float = 30.0
    """From the second step within an hour to the third; twice as long before each further one."""
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
    """The settings of this node; None where the role is not installed. Raises OSError, and ValueError for a damaged
    file."""
    value = files.read_json(paths.recovery_settings)
    if value is None:
        return None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(
            f"{paths.recovery_settings} is not of schema {SCHEMA}: baremetal.inference.recovery writes it anew"
        )
    return Settings(**{one.name: value[one.name] for one in fields(Settings) if one.name in value})
