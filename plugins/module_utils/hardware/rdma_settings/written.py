# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares and writes the files of rails on a node. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import files as core_files
from ...core import sysfs
from ...core.paths import Paths
from . import files, infiniband, units
from .apply import Run
from .desired import of
from .differences import Difference

DIRECTORIES = (
    *(files.LINKS, files.INTERFACES, files.NM_PROFILES),
    *(str(Path(path).parent) for path in (files.NM_CONF, files.NETWORKD_CONF, files.SYSCTL)),
)
"""The directories that can have files with our prefix."""


@dataclass(frozen=True)
class Change:
    """A file's text before and after; None for no file."""

    before: str | None
    after: str | None


def differing(root: Path, texts: Mapping[str, str], stored: Any) -> dict[str, Change]:
    """The files that differ from `texts`, and files of earlier runs that are no longer wanted. Raises OSError.

    `stored` is the document of the last run, if there is one.
    """
    changes = {}
    for path in sorted({*texts, *_earlier(root, stored)}):
        place = root / path.lstrip("/")
        after = texts.get(path)
        before = core_files.text(place)
        if path == infiniband.PARTITIONS and after is None and not (before or "").startswith(files.HEADER):
            # The operator has put their own file in its place, or removed the file.
            continue
        if before != after or (after is not None and not core_files.same(place, after, files.mode(path))):
            changes[path] = Change(before, after)
    return changes


def write(root: Path, changes: Mapping[str, Change], run: Run) -> None:
    """Write and remove files. Let opensm, NetworkManager, systemd and udev read changed files. Raises OSError."""
    for path, change in changes.items():
        core_files.write(root / path.lstrip("/"), change.after, files.mode(path))
    if infiniband.PARTITIONS in changes:
        # opensm reads the file when it starts, so nothing is done while it does not run.
        run(["systemctl", "try-restart", "opensm.service"])
    if files.NM_CONF in changes:
        # The reload is for devices that are added before NetworkManager starts again.
        run(["nmcli", "general", "reload", "conf"])
    if not set(changes) & set(units.texts(Paths(root))):
        return
    link = root / units.LINK.lstrip("/")
    if (root / f"etc/systemd/system/{units.SERVICE}").exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        core_files.link(link, f"../{units.SERVICE}")
    else:
        link.unlink(missing_ok=True)
    run(["systemctl", "daemon-reload"])
    run(["udevadm", "control", "--reload"])


def diff(changes: Mapping[str, Change]) -> list[dict[str, str]]:
    """The diff of the files."""
    return [
        {"before_header": path, "after_header": path, "before": change.before or "", "after": change.after or ""}
        for path, change in changes.items()
    ]


def diff_of_settings(changes: Sequence[Difference]) -> list[dict[str, str]]:
    """The diff of the settings; empty without changes."""
    if not changes:
        return []
    sides = [str(change).rpartition(": ") for change in changes]
    values = [(name, *value.split(" -> ", 1)) for name, _colon, value in sides]
    before, after = ("".join(f"{line[0]} = {line[side]}\n" for line in values) for side in (1, 2))
    return [{"before_header": "rails", "after_header": "rails", "before": before, "after": after}]


def _earlier(root: Path, stored: Any) -> set[str]:
    """Files of earlier runs: files that a run recorded, existing units and settings, and files with our prefix."""
    try:
        found = set(of(stored, "").files)
    except ValueError:
        found = set()
    paths = Paths(root)
    own = {*units.texts(paths), f"/{paths.rdma_settings.relative_to(root)}"}
    found |= {path for path in own if (root / path.lstrip("/")).exists()}
    for directory in DIRECTORIES:
        for name in sysfs.names(root / directory.lstrip("/")):
            path = f"{directory}/{name}"
            if not name.startswith(files.PREFIX):
                continue
            if (root / path.lstrip("/")).is_dir():
                found |= {f"{path}/{inner}" for inner in sysfs.names(root / path.lstrip("/"))}
            else:
                found.add(path)
    return found
