# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module node_tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core import node_call, node_library, systemd
from ...core.call import Call
from ...core.paths import Paths
from ...core.version import VERSION
from ...engine import gate, node_removal

INFERCTL = f"{node_library.BASE}node.cli.entry"
"""The name of the module that the command starts. This file does not import it."""


def install(paths: Paths, *, check: bool) -> dict[str, Any]:
    """Install the command and the library from which this call runs. Raises OSError."""
    plan = node_library.plan(INFERCTL, paths.library, paths.command, whole=True)
    if not check:
        plan.apply()
        node_call.forget(paths)
    return {"changed": bool(plan.files), "files": plan.files, "diff": plan.diff}


def remove(paths: Paths, keep: list[Path], directories: list[Path], *, check: bool) -> dict[str, Any]:
    """Remove everything except instances. Raises SystemdError, GateError, OSError, ValueError."""
    found = node_removal.remove_services(paths, check=check)
    found += node_removal.remove_node_traces(paths, keep, check=check)
    tool = node_library.plan(INFERCTL, paths.library, paths.command, present=False)
    found += [path for path in (paths.command, paths.library) if tool.files]
    if not check:
        tool.apply()
        node_call.forget(paths)
    found += node_removal.remove_directories(directories, check=check)
    removed = [str(path) for path in found]
    diff = {"before": "".join(f"{path}\n" for path in removed), "after": ""}
    return {"changed": bool(removed), "files": removed, "diff": diff}


def run(module: Call) -> None:
    """Answer a call."""
    paths, check = Paths(), module.check_mode
    if module.params["state"] == "present":
        try:
            result = install(paths, check=check)
        except OSError as error:
            module.fail_json(msg=f"inferctl cannot be installed: {error}")
        module.exit_json(version=VERSION, **result)
    try:
        if not check:
            node_removal.refuse_instances(paths)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    keep, directories = ([Path(each) for each in module.params[key]] for key in ("keep", "directories"))
    try:
        result = remove(paths, keep, directories, check=check)
    except (systemd.SystemdError, gate.GateError, OSError, ValueError) as error:
        module.fail_json(msg=f"{error}. Correct this and run again: the removal continues.")
    module.exit_json(version=VERSION, **result)
