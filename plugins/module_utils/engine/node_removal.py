# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes what the collection has on a node, except instances. Private to the collection."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core import systemd
from ..core.paths import (
    AGENT_UNIT,
    GATES_UNIT,
    METRICS_TEMPLATE,
    METRICS_TIMERS,
    RECOVERY_DISPATCH,
    RECOVERY_PATH,
    RECOVERY_TEMPLATE,
    SWAP_TEMPLATE,
    Paths,
    unit_name,
)
from . import gate
from .state import releases

STAYING = (Path("/"), Path("/mnt"), Path("/srv"), Path("/var"), Path("/var/lib"), Path("/opt"), Path("/home"))
"""Directories that a machine has without the collection. They stay, even empty."""

METRICS = "inference-*.prom"
"""The collection's metrics for node_exporter."""


def node_traces(paths: Paths) -> list[Path]:
    """The collection's files and directories on a node without instances, agent and recovery."""
    # Not all of /run/inference: the trials of the role common are there, too, and stay.
    memory = [
        paths.recovery_requests,
        paths.recovered_meanwhile("").parent,
        paths.swap_meanwhile("").parent,
        paths.gateway_answers("").parent,
        paths.share,
        paths.gpu_clocks,
    ]
    found = [paths.target, paths.etc, paths.state, *memory, *sorted(paths.textfiles.glob(METRICS))]
    return [path for path in found if path.exists()]


def refuse_instances(paths: Paths) -> None:
    """Raise ValueError while the node has an instance, which needs these files to run."""
    if there := releases.names(paths):
        raise ValueError(
            f"the node still has {', '.join(there)}: remove each instance first, with"
            f" baremetal.inference.decommission -e instance={there[0]}"
        )


def remove_node_traces(paths: Paths, keep: Sequence[Path] = (), *, check: bool) -> list[Path]:
    """Remove the traces, except the files and directories in `keep`. Returns the removed paths.

    The lock of this run goes too, and does not count as a change. Raises SystemdError and OSError.
    """
    own = [*keep, paths.lock, paths.lock_guard]
    going = [path for path in node_traces(paths) if not _only(path, own)]
    if check:
        return going
    if paths.target in going:
        systemd.stop_and_disable(paths.target.name, installed=True)
    for path in node_traces(paths):
        _clear(path, keep)
    if going:
        systemd.systemctl("daemon-reload")
    return going


def remove_services(paths: Paths, *, check: bool) -> list[Path]:
    """Stop agent, metrics and recovery. Remove their units, the units of swaps, the slices and the gates. Returns the
    unit files that were there.

    Raises SystemdError, GateError, OSError.
    """
    units = [paths.agent_unit, *paths.metrics_units.values(), *paths.recovery_units.values()]
    units += paths.swap_units.values()
    # The agent asks for recoveries, and the path unit waits for these requests: both stop before the units they start.
    stopped = [*METRICS_TIMERS, AGENT_UNIT, RECOVERY_PATH, RECOVERY_DISPATCH, GATES_UNIT]
    there, _running = systemd.remove_units(units, stopped, check=check)
    if not check:
        _remove_slices()
        gate.remove()
    return there


def _remove_slices() -> None:
    """Stop the slices of the collection's templates. Raises SystemdError."""
    templates = [METRICS_TEMPLATE, RECOVERY_TEMPLATE, SWAP_TEMPLATE]
    # A slice stops with all units in it: while a unit of the template runs, the slice stays.
    states = ",".join(sorted({*systemd.RUNNING, "deactivating"}))
    if not systemd.systemctl("list-units", "--plain", "--no-legend", f"--state={states}", unit_name("*")).strip():
        templates.append(unit_name(""))
    for template in templates:
        systemd.stop_and_disable(slice_of(template), installed=False)


def slice_of(template: str) -> str:
    r"""The slice that systemd makes for the instances of a template. Without instances it stays until the next boot.

    In the name, \x2d stands for a hyphen: a plain hyphen would mean a slice within another. Source: systemd.slice(5).
    """
    name = template.partition("@")[0].replace("-", r"\x2d")
    return f"system-{name}.slice"


def remove_directories(wanted: Iterable[Path], *, check: bool) -> list[Path]:
    """Remove directories, and parent directories that become empty. Returns the wanted directories that existed.

    Raises OSError.
    """
    there = [path for path in wanted if path.is_dir()]
    for path in [] if check else there:
        shutil.rmtree(path)
        for parent in path.parents:
            if parent in STAYING or parent.is_mount() or any(parent.iterdir()):
                break
            parent.rmdir()
    return there


def _only(path: Path, kept: Sequence[Path]) -> bool:
    """Whether a directory has files, and all of them are to be kept. `kept` may have directories."""
    held = [each for each in path.rglob("*") if not each.is_dir()] if path.is_dir() else []
    return bool(held) and all(each in kept or any(parent in kept for parent in each.parents) for each in held)


def _clear(path: Path, keep: Sequence[Path]) -> None:
    """Remove a file, or everything in a directory except what is to be kept."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for child in path.iterdir():
        if child not in keep:
            _clear(child, keep)
    if not any(path.iterdir()):
        path.rmdir()
