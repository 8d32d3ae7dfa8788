# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up node, whose disks the module disks changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import disk_host, disk_setup
from ansible_collections.baremetal.inference.plugins.module_utils.debian.block_devices import Mount
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disk_host import Host
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disks import Device, DiskError, Signature
from ansible_collections.baremetal.inference.plugins.modules import disks

BY_ID = "/dev/disk/by-id"
WRITERS = ("mkfs.ext4", "mkfs.xfs", "mdadm", "vgcreate", "lvcreate", "mount", "timeout")


class Node(Host):
    """A node with disks a, b and c. Its tools change this object in place of disks."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.blocks: Any = self
        self.root = root
        self.known = {
            f"{BY_ID}/{name}": Device(f"{BY_ID}/{name}", name, f"8:{n}", 10**9) for n, name in enumerate("abc")
        }
        self.table: list[Mount] = []
        self.tools: set[str] = {*WRITERS, "pvs", "mount.nfs"}
        self.done: list[str] = []
        self.failing = ""
        self.vgs: dict[str, str] = {}
        self.lvs: dict[str, bool] = {}
        self.dead_servers: set[str] = set()

    # --- the methods of BlockDevices

    def device(self, path: str) -> Device:
        if path not in self.known:
            raise DiskError(f"{path} is not there")
        device = self.known[path]
        return replace(device, mounts=tuple(mount.path for mount in self.table if mount.number == device.number))

    def mounted_at(self, path: str) -> Mount | None:
        return next((mount for mount in reversed(self.table) if mount.path == path), None)

    def array(self, kernel: str) -> tuple[str, str, int]:
        return ("raid0", "clean", sum(kernel in device.holders for device in self.known.values()))

    @contextmanager
    def locked(self, _devices: list[Device]) -> Iterator[None]:
        self.done.append("lock")
        yield
        self.done.append("unlock")

    # --- the methods of Host

    def has(self, command: str) -> bool:
        return command in self.tools

    def settle(self) -> None:
        pass

    def immutable(self, _path: Path) -> bool:
        return False

    def protect(self, path: Path) -> None:
        self.done.append(f"protect {path}")

    def connect(self, server: str, port: int) -> str:
        return "timed out" if server in self.dead_servers else ""

    def groups(self) -> dict[str, str]:
        return self.vgs

    def volumes(self, _group: str) -> dict[str, bool]:
        return self.lvs

    def do(self, *command: str, timeout: int = 0) -> None:
        self.done.append(" ".join(command))
        if self.failing and self.failing in command:
            raise DiskError(f"{command[0]} failed")
        declared = {device.node: path for path, device in self.known.items()}
        command = tuple(declared.get(word, word) for word in command)
        if command[0].startswith("mkfs."):
            label, path = command[-2:]
            self.hold(path, Signature(command[0].removeprefix("mkfs."), label, f"uuid-{label}"))
        elif command[0] == "mount" and "-t" in command:
            self.table.append(Mount(self.known[command[-2]].number, "/", command[-1], command[2], command[-2]))
        elif command[0] == "timeout":
            self.table.append(Mount("0:50", "/", command[-1], "nfs4", command[-2]))
        elif command[0] == "mdadm":
            members = [word for word in command if word in self.known]
            for path in members:
                self.hold(path, Signature("linux_raid_member", "any:inf-fast", "0" * 32), holders=("md127",))
            self.known.setdefault("/dev/md127", Device("/dev/md127", "md127", "9:127", 2 * 10**9))
        elif command[0] == "vgcreate":
            for path in command[2:]:
                self.hold(path, Signature("LVM2_member"))
                self.vgs[self.known[path].number] = command[1]
        elif command[0] == "lvcreate":
            self.lvs["data"] = True
            self.known["/dev/inf-fast/data"] = Device("/dev/inf-fast/data", "dm-0", "252:0", 2 * 10**9)

    def hold(self, path: str, signature: Signature, **more: Any) -> None:
        self.known[path] = replace(self.known[path], signatures=(signature,), empty=False, **more)

    # --- for tests

    def run(self, check: bool = False, disks_: list[dict[str, Any]] | None = None, **params: Any) -> dict[str, Any]:
        entries = [{"options": ["noatime"], "directories": [], **DEFAULTS, **entry} for entry in disks_ or []]
        shares = [{"options": [], "version": "4.2", **entry} for entry in params.pop("shares", [])]
        module: Any = SimpleNamespace(params={"disks": entries, "shares": shares}, check_mode=check)
        return disks.run(module, self)

    def store(self, **changes: Any) -> dict[str, Any]:
        return {"name": "store", "devices": [f"{BY_ID}/a"], "path": f"{self.root}/models", **changes}

    def fast(self, join: str) -> dict[str, Any]:
        return self.store(name="fast", devices=[f"{BY_ID}/b", f"{BY_ID}/c"], join=join, path=f"{self.root}/fast")

    def writes(self) -> list[str]:
        return [line for line in self.done if line.split()[0] in WRITERS]


DEFAULTS = {"join": "none", "filesystem": "ext4", "adopt": False}


def made_up_node(root: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """The node, with a directory of its own in place of /etc."""
    (root / "etc").mkdir()
    for module in (disk_host, disks):
        monkeypatch.setattr(module, "FSTAB", root / "etc/fstab")
    monkeypatch.setattr(disk_setup, "MDADM_D", root / "etc/mdadm")
    (root / "etc/fstab").write_text("UUID=root / ext4 defaults 0 1\n")
    return Node(root)
