# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module node_recovery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core import files, systemd
from ...core.call import Call
from ...core.paths import (
    RECOVERY_DISPATCH,
    RECOVERY_PATH,
    Paths,
)
from ...core.secrets import OTHERS_ADVICE, is_placeholder
from ...engine.units import recovery_units
from ..doctor import catalogue
from ..doctor.host import Thresholds
from ..recovery import alerts
from ..recovery.settings import Settings

SECRET = ("webhook", "alertmanager")
"""Settings that a diff leaves out."""

VARIABLES = {
    "backoff": "recovery_backoff_seconds",
    "free_percent": "recovery_doctor_free_percent",
    "clock_seconds": "recovery_doctor_clock_seconds",
}
"""The role's variables that set options with another name. Messages name variables, which the operator knows."""


def problems(params: dict) -> list[str]:
    """Every mistake in the input, with what is allowed."""
    found = [f"recovery_doctor_off: {text}" for text in catalogue.unknown(params["doctor_off"])]
    least = {"budget": 0, "backoff": 1, "evidence_kept": 1, "free_percent": 0, "clock_seconds": 0}
    for key, low in least.items():
        if params[key] < low:
            found.append(f"{variable(key)} is {params[key]}: must be {low} or more")
    if params["free_percent"] > 90:
        found.append(f"{variable('free_percent')} is {params['free_percent']}: must be 90 or less")
    for key in SECRET:
        # The message leaves the value out, since it may be a secret.
        if params[key] and not alerts.usable(params[key]):
            found.append(f"{variable(key)} cannot be used: {alerts.NO_ADDRESS}")
        elif is_placeholder(params[key]):
            found.append(f"{variable(key)} is a placeholder: {OTHERS_ADVICE}, or leave {variable(key)} empty")
    for key in ("mail_to", "mail_from"):
        if any(character in params[key] for character in "\r\n"):
            found.append(f"{variable(key)} has a line break: must be a single line")
    return found


def variable(option: str) -> str:
    """The role's variable that sets an option."""
    return VARIABLES.get(option, f"recovery_{option}")


def wanted_files(params: dict, paths: Paths) -> dict[Path, tuple[str, int]]:
    """Text and mode of each file."""
    settings = Settings(**{key: params[key] for key in Settings.__dataclass_fields__})
    thresholds = Thresholds(**{key: params[key] for key in Thresholds.__dataclass_fields__})
    doctor = catalogue.Settings(tuple(params["doctor_off"]), thresholds)
    texts = recovery_units.render()
    return {
        paths.recovery_settings: (files.to_json(settings.to_json()), 0o600),
        paths.doctor_settings: (files.to_json(catalogue.to_json(doctor)), 0o644),
        **{path: (texts[name], 0o644) for name, path in paths.recovery_units.items()},
    }


def shown(path: Path, text: str) -> str:
    """A file's text for the diff, without secrets."""
    lines = [line for line in text.splitlines(keepends=True) if not any(f'"{key}"' in line for key in SECRET)]
    return f"{path}:\n{''.join(lines)}"


def install(paths: Paths, wanted: dict[Path, tuple[str, int]], *, check: bool) -> dict[str, Any]:
    """Write settings and units, and start the unit that waits for the agent's requests.
    Raises SystemdError, OSError."""
    before = {path: files.text(path) or "" for path in wanted}
    written = [path for path in wanted if not files.same(path, *wanted[path])]
    unit = systemd.show([RECOVERY_PATH], ["ActiveState", "UnitFileState"])[RECOVERY_PATH]
    running = unit.get("ActiveState") == "active" and unit.get("UnitFileState") == "enabled"
    units_written = bool(set(paths.recovery_units.values()) & set(written))
    if not check:
        for path in written:
            files.write(path, *wanted[path])
        if units_written:
            systemd.systemctl("daemon-reload")
        if not running:
            systemd.systemctl("enable", "--now", RECOVERY_PATH)
        elif units_written:
            systemd.systemctl("restart", RECOVERY_PATH)
    return {
        "changed": bool(written or not running),
        "files": sorted(map(str, written)),
        "diff": {
            "before": "".join(shown(path, before[path]) for path in written),
            "after": "".join(shown(path, wanted[path][0]) for path in written),
        },
    }


def remove(paths: Paths, *, check: bool) -> dict[str, Any]:
    """Stop recovery, and remove its units and settings. Raises SystemdError, OSError."""
    settings = [path for path in (paths.recovery_settings, paths.doctor_settings) if path.exists()]
    units = list(paths.recovery_units.values())
    before = "".join(shown(path, text) for path in [*settings, *units] if (text := files.text(path)) is not None)
    gone, running = systemd.remove_units(units, [RECOVERY_PATH, RECOVERY_DISPATCH], check=check)
    for path in [] if check else settings:
        path.unlink()
    removed = [*settings, *gone]
    return {
        "changed": bool(removed or running),
        "files": sorted(map(str, removed)),
        "diff": {"before": before, "after": ""},
    }


def run(module: Call) -> None:
    """Answer a call."""
    paths, params, check = Paths(), module.params, module.check_mode
    found = problems(params)
    if found:
        module.fail_json(msg="\n- ".join(["Nothing was changed.", *found]))
    present = params["state"] == "present"
    try:
        if present and not check and not paths.command.exists():
            module.fail_json(
                msg=f"Nothing was changed. {paths.command} is missing: run baremetal.inference.site, which installs it"
            )
        result = install(paths, wanted_files(params, paths), check=check) if present else remove(paths, check=check)
    except (systemd.SystemdError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result, due=result["changed"])
