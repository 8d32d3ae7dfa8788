# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All checks, and which of them are on. Private to the collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ...core import files
from ...core.paths import Paths
from ...core.problems import nearest
from . import docker, driver, engines, gangs, gateway, gpus, rdma, system
from .check import Check
from .host import Host, Thresholds

SCHEMA = 1

CHECKS: tuple[Check[Host], ...] = (
    *driver.CHECKS,
    *gpus.CHECKS,
    *rdma.CHECKS,
    *system.CHECKS,
    *docker.CHECKS,
    *engines.CHECKS,
    *gangs.CHECKS,
    *gateway.CHECKS,
)


@dataclass(frozen=True)
class Settings:
    """The role's settings of the doctor: checks that are off, and thresholds."""

    off: tuple[str, ...] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)


def names() -> list[str]:
    """The names of all checks, and of their kinds."""
    return [*dict.fromkeys(check.kind for check in CHECKS), *(check.name for check in CHECKS)]


def unknown(wanted: Sequence[str]) -> list[str]:
    """A message for each unknown name of a check, with the nearest known name."""
    known = names()
    return [f"there is no check {name!r}: {nearest(name, known)}" for name in wanted if name not in known]


def chosen(wanted: Sequence[str], off: Sequence[str]) -> list[Check[Host]]:
    """The checks of these names or kinds, even if they are off. Without names, all checks that are on."""
    if wanted:
        return [check for check in CHECKS if {check.name, check.kind} & set(wanted)]
    return [check for check in CHECKS if not {check.name, check.kind} & set(off)]


def to_json(settings: Settings) -> dict[str, Any]:
    """The value of the settings' file."""
    return {"schema": SCHEMA, "off": list(settings.off), **asdict(settings.thresholds)}


def read(paths: Paths) -> Settings:
    """The settings of this node, or the defaults if there is no file.
    Raises OSError, and ValueError if the file is damaged."""
    value = files.read_json(paths.doctor_settings)
    if value is None:
        return Settings()
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(
            f"{paths.doctor_settings} is not of schema {SCHEMA}: run baremetal.inference.recovery, which writes it anew"
        )
    off = value.get("off", [])
    known = {field.name: value[field.name] for field in fields(Thresholds) if field.name in value}
    wrong = [] if isinstance(off, list) and all(isinstance(name, str) for name in off) else ["off"]
    wrong += [key for key, each in known.items() if not isinstance(each, int | float) or isinstance(each, bool)]
    if wrong:
        raise ValueError(
            f"{paths.doctor_settings} has a wrong type of {', '.join(wrong)}: run baremetal.inference.recovery, which"
            " writes it anew"
        )
    return Settings(tuple(off), Thresholds(**known))


def thresholds(paths: Paths) -> Thresholds:
    """The thresholds of this node, or the defaults if the settings are damaged: read() reports the damage."""
    try:
        return read(paths).thresholds
    except (OSError, ValueError):
        return Thresholds()
