# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads CDI specifications, and checks whether they match the node. Private to the collection.

Source of the format: Container Device Interface (cncf-tags/container-device-interface, SPEC.md).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ..core import sysfs

try:
    import yaml
except ImportError:  # Debian's python3-yaml may be missing on a node; _load reports it.
    HAS_YAML = False
else:
    HAS_YAML = True

DIRECTORIES = ("/etc/cdi", "/var/run/cdi")
"""The default directories of Docker and NVIDIA's runtime. For a device in both, the later directory wins.

Source: DefaultSpecDirs in pkg/cdi of the specification's library, and moby's daemon/config.
"""

ENDINGS = (".json", ".yaml")
"""Files with other endings, also .yml, are ignored. Source: scanSpecDirs in pkg/cdi."""

KIND = "nvidia.com/gpu"

OWN = "/var/run/cdi/nvidia.yaml"
"""The file that the toolkit's nvidia-cdi-refresh.service writes. Source: its unit, since 1.18."""

BY_HAND = re.compile(r"nvidia.*\.(?:json|yaml)")
"""Names of files that operators write with `nvidia-ctk cdi generate`, as NVIDIA's guides show."""

LIBRARY = re.compile(r"lib(?:cuda|nvidia-ml)\.so\.(\d+\.\d+(?:\.\d+)?)")
"""Libraries of the driver with its version in their names. Every specification of a complete driver has them."""

NAMES_SHOWN = 3
"""How many names of a long list a message shows."""


@dataclass(frozen=True)
class Node:
    """A device node that a specification gives to containers. Numbers are None if the host's numbers apply."""

    path: str
    major: int | None = None
    minor: int | None = None


@dataclass(frozen=True)
class Spec:
    """One specification file and its content."""

    path: str
    kind: str = ""
    version: str = ""
    devices: tuple[str, ...] = ()
    driver_versions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Paths of the host's files that a container would get, and of the hooks that would run for it."""
    nodes: tuple[Node, ...] = ()
    error: str = ""
    """Why the file cannot be read; all other fields but the path are then empty."""

    @property
    def directory(self) -> str:
        return str(PurePosixPath(self.path).parent)


@dataclass(frozen=True)
class Reality:
    """The state of the node, with which specifications are compared."""

    driver_version: str | None = None
    """Version of the loaded kernel module; None if none is loaded."""
    offered: frozenset[str] = field(default_factory=frozenset)
    """UUIDs of the devices for containers: GPUs, or in MIG mode their MIG devices. Empty if unknown."""
    present: frozenset[str] = field(default_factory=frozenset)
    """UUIDs of all GPUs and MIG devices."""


@dataclass(frozen=True)
class Finding:
    """A specification and its faults."""

    spec: Spec
    missing: tuple[str, ...] = ()
    """Files and device nodes that do not exist."""
    renumbered: tuple[str, ...] = ()
    """Device nodes whose numbers have changed."""
    stale: str = ""
    """Why the file must be moved away; empty if it may stay."""


def parse(text: str, path: str) -> Spec:
    """Read a specification. Raises nothing: Spec.error names the fault of an unreadable text."""
    try:
        data = _load(text, path)
    except (ValueError, RecursionError) as error:
        return Spec(path, error=f"cannot be read: {' '.join(str(error).split())}")
    if not isinstance(data, Mapping) or not isinstance(data.get("kind"), str) or not data["kind"]:
        return Spec(path, error="is not a CDI specification: it has no kind")
    devices = _mappings(data.get("devices"))
    edits = [_mapping(part.get("containerEdits")) for part in (data, *devices)]
    nodes = [_node(node) for edit in edits for node in _mappings(edit.get("deviceNodes"))]
    mounts = [str(mount.get("hostPath") or "") for edit in edits for mount in _mappings(edit.get("mounts"))]
    hooks = [str(hook.get("path") or "") for edit in edits for hook in _mappings(edit.get("hooks"))]
    files = tuple(sorted({file for file in (*mounts, *hooks) if file.startswith("/")}))
    versions = {match[1] for file in files if (match := LIBRARY.fullmatch(PurePosixPath(file).name))}
    return Spec(
        path=path,
        kind=data["kind"],
        version=str(data.get("cdiVersion") or ""),
        devices=tuple(dict.fromkeys(str(device["name"]) for device in devices if "name" in device)),
        driver_versions=tuple(sorted(versions)),
        files=files,
        nodes=tuple(dict.fromkeys(node for node in nodes if node.path.startswith("/"))),
    )


def _load(text: str, path: str) -> Any:
    """The data of a file. Raises ValueError."""
    if path.endswith(".json"):
        return json.loads(text)
    if not HAS_YAML:
        raise ValueError("python3-yaml is not installed on the node: install it (apt-get install python3-yaml)")
    try:
        # Scalars stay texts, because YAML would read the name 1:0 of a MIG device as a number. CBaseLoader may be
        # missing, but is ten times as fast for a specification of some thousand lines.
        return yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _node(node: Mapping[str, Any]) -> Node:
    major, minor = (sysfs.integer(str(node.get(key))) for key in ("major", "minor"))
    return Node(str(node.get("hostPath") or node.get("path") or ""), major, minor)


def read(root: Path, directories: Sequence[str] = DIRECTORIES) -> list[Spec]:
    """All specifications below a root, of every kind, in the order of the directories. Raises nothing."""
    found = []
    for directory in directories:
        try:
            names = sorted(os.listdir(root / directory.lstrip("/")))
        except OSError:
            continue
        for name in names:
            if name.endswith(ENDINGS):
                found.append(_read(root, f"{directory}/{name}"))
    return found


def _read(root: Path, path: str) -> Spec:
    try:
        text = (root / path.lstrip("/")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Spec(path, error=f"cannot be read: {error}")
    return parse(text, path)


def conflicts(specs: Iterable[Spec]) -> dict[str, list[str]]:
    """Devices that two files of one directory both define, with these files. Containers cannot get such a device.

    Files of different directories do not conflict: the later directory wins. Source: resolveConflict in
    pkg/cdi/cache.go.
    """
    claims: dict[tuple[str, str], list[str]] = {}
    for spec in specs:
        for device in spec.devices:
            claims.setdefault((spec.directory, f"{spec.kind}={device}"), []).append(spec.path)
    found: dict[str, list[str]] = {}
    for (_directory, device), paths in claims.items():
        if len(paths) > 1:
            found.setdefault(device, []).extend(paths)
    return found


def devices(specs: Iterable[Spec]) -> list[str]:
    """The devices that a container can ask for, by their qualified names."""
    specs = list(specs)
    refused = conflicts(specs)
    names = dict.fromkeys(f"{spec.kind}={device}" for spec in specs for device in spec.devices)
    return [name for name in names if name not in refused]


def judge(root: Path, specs: Sequence[Spec], reality: Reality) -> list[Finding]:
    """The faults of each specification."""
    clashes = {path for device, paths in conflicts(specs).items() if device.startswith(f"{KIND}=") for path in paths}
    return [_judge(root, spec, reality, spec.path in clashes) for spec in specs]


def _judge(root: Path, spec: Spec, reality: Reality, clashes: bool) -> Finding:
    missing = [path for path in _paths(spec) if not os.path.exists(root / path.lstrip("/"))]
    renumbered = [node.path for node in spec.nodes if _renumbered(root, node)]
    finding = Finding(spec, tuple(missing), tuple(renumbered))
    if spec.kind != KIND or spec.path == OWN:
        return finding
    why = difference(finding, reality)
    if clashes:
        why = f"has a device of the same name as another file in {spec.directory}, so containers can get neither device"
    elif not why and BY_HAND.fullmatch(PurePosixPath(spec.path).name):
        why = f"would not change with the driver, because no service updates it: nvidia-cdi-refresh updates {OWN}"
    return Finding(spec, finding.missing, finding.renumbered, why)


def difference(finding: Finding, reality: Reality) -> str:
    """How a specification differs from the node; empty if it does not."""
    versions = finding.spec.driver_versions
    if reality.driver_version and versions and versions != (reality.driver_version,):
        return f"is for the driver {', '.join(versions)}, but {reality.driver_version} is loaded"
    if finding.missing:
        return f"names missing files or devices: {_some(finding.missing)}"
    if finding.renumbered:
        return f"has old numbers of these devices: {_some(finding.renumbered)}"
    return ""


def refresh_reason(findings: Sequence[Finding], reality: Reality) -> str:
    """Why nvidia-cdi-refresh must write its specification again; empty if it need not."""
    own = next((finding for finding in findings if finding.spec.path == OWN), None)
    if own is None:
        return f"{OWN} is not there"
    if own.spec.error or own.spec.kind != KIND:
        return f"{OWN} {own.spec.error or f'is of the kind {own.spec.kind}'}"
    named = {device for device in own.spec.devices if device.startswith(("GPU-", "MIG-"))}
    why = difference(own, reality)
    if not why and reality.offered and named:
        lacking, gone = sorted(reality.offered - named), sorted(named - reality.present)
        why = f"lacks {_some(lacking)}" if lacking else f"has removed devices: {_some(gone)}" if gone else ""
    return f"{OWN} {why}" if why else ""


def reality(driver_version: str | None, gpus: Iterable[Mapping[str, Any]]) -> Reality:
    """The state of the node, from the driver's version and the fact `gpus` of the module gpu_facts."""
    offered: set[Any] = set()
    present: set[Any] = set()
    for gpu in gpus:
        mig_devices = [part.get("uuid") for part in gpu.get("mig_devices") or []]
        present |= {gpu.get("uuid"), *mig_devices}
        if gpu.get("reported"):
            offered |= set(mig_devices) if gpu.get("mig_mode") == "enabled" else {gpu.get("uuid")}
    return Reality(driver_version, frozenset(offered - {None}), frozenset(present - {None}))


def facts(root: Path, driver_version: str | None, gpus: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The fact `cdi` of the module gpu_facts, below a root."""
    now = reality(driver_version, gpus)
    specs = read(root)
    findings = judge(root, specs, now)
    return {
        "devices": devices(specs),
        "conflicts": [{"device": device, "paths": paths} for device, paths in conflicts(specs).items()],
        "driver_version": now.driver_version,
        "refresh_reason": refresh_reason(findings, now) or None,
        "specs": [
            {
                "path": finding.spec.path,
                "kind": finding.spec.kind or None,
                "cdi_version": finding.spec.version or None,
                "devices": list(finding.spec.devices),
                "driver_versions": list(finding.spec.driver_versions),
                "missing_paths": list(finding.missing),
                "renumbered": list(finding.renumbered),
                "stale": finding.stale or None,
                "error": finding.spec.error or None,
            }
            for finding in findings
        ],
    }


def _paths(spec: Spec) -> Iterator[str]:
    yield from spec.files
    yield from (node.path for node in spec.nodes)


def _renumbered(root: Path, node: Node) -> bool:
    """Whether a device node's numbers differ from the specification. The numbers of nvidia-uvm change between boots."""
    if node.major is None or node.minor is None:
        return False
    try:
        found = (root / node.path.lstrip("/")).stat()
    except (OSError, ValueError):
        return False
    is_device = stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)
    return is_device and (os.major(found.st_rdev), os.minor(found.st_rdev)) != (node.major, node.minor)


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def gpu_argv(gpus: Sequence[str], request: str) -> list[str]:
    """The arguments of `docker` that ask for GPUs."""
    devices = [f"{KIND}={gpu}" for gpu in gpus]
    if request == "cdi" or not devices:
        return [f"--device={device}" for device in devices]
    return ["--runtime=nvidia", f"--env=NVIDIA_VISIBLE_DEVICES={','.join(devices)}"]
