# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up machine: the files of its kernel below a root, with links as in sysfs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

PORT = {
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "link_layer": "Ethernet",
    "rate": "400 Gb/sec (4X NDR)",
    "lid": "0x0",
    "sm_lid": "0x0",
}


class Machine:
    """Writes attributes, each with a newline at its end, as the kernel does."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def link(self, path: str, to: str) -> None:
        link = self.root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(self.root / to)

    def pci(self, address: str, bridges: str = "pci0000:10/0000:10:01.0", driver: str = "", **attributes: str) -> str:
        """A PCI function below its bridges; returns its directory."""
        path = f"sys/devices/{bridges}/{address}"
        for name, text in {"class": "0x020000", "vendor": "0x15b3", "numa_node": "0", **attributes}.items():
            self.write(f"{path}/{name}", text)
        if driver:
            self.link(f"{path}/driver", f"sys/bus/pci/drivers/{driver}")
        self.link(f"sys/bus/pci/devices/{address}", path)
        return path

    def gpu(self, address: str, bridges: str, **attributes: str) -> None:
        self.pci(address, bridges, "nvidia", **{"class": "0x030200", "vendor": "0x10de", **attributes})

    def netdev(self, name: str, function: str, **attributes: str) -> None:
        path = f"{function}/net/{name}"
        for attribute, text in {"mtu": "9000", "dev_port": "0", **attributes}.items():
            self.write(f"{path}/{attribute}", text)
        self.link(f"sys/class/net/{name}", path)

    def rdma(self, name: str, function: str = "", **attributes: str) -> str:
        """An RDMA device of a PCI function, or of software; returns its directory."""
        path = f"{function or 'sys/devices/virtual'}/infiniband/{name}"
        for attribute, text in {"node_type": "1: CA", **attributes}.items():
            self.write(f"{path}/{attribute}", text)
        if function:
            self.link(f"{path}/device", function)
        self.link(f"sys/class/infiniband/{name}", path)
        return path

    def port(self, device: str, number: int = 1, **attributes: str) -> str:
        path = f"{device}/ports/{number}"
        for attribute, text in {**PORT, **attributes}.items():
            self.write(f"{path}/{attribute}", text)
        return path

    def gid(self, port: str, index: int, gid: str, kind: str = "", netdev: str = "") -> None:
        self.write(f"{port}/gids/{index}", gid)
        if kind:
            self.write(f"{port}/gid_attrs/types/{index}", kind)
        if netdev:
            self.write(f"{port}/gid_attrs/ndevs/{index}", netdev)

    def counters(self, port: str, directory: str, values: Mapping[str, str]) -> None:
        for name, text in values.items():
            self.write(f"{port}/{directory}/{name}", text)


@pytest.fixture(scope="session")
def new_machine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Machine]:
    return lambda: Machine(tmp_path_factory.mktemp("machine"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
