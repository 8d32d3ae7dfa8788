# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with rails, whose programs change its files and answers as the real ones do."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma.conftest import Machine
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.test_pci_config import space

BRIDGE = "0000:10:01.0"
FAILED = Outcome(1, "", "Attribute read: Operation not supported")


class Host:
    """The node below `root`. `commands` has all commands that were run."""

    def __init__(self, root: Path, rails: int = 2, infiniband: bool = False) -> None:
        self.root = root
        self.infiniband = infiniband
        self.group_mtu = 2044
        """The MTU in bytes that the multicast group of IP over InfiniBand allows in datagram mode."""
        self.machine = Machine(root)
        self.commands: list[str] = []
        self.defaults: list[dict[str, Any]] = [{"dst": "default", "dev": "eno1"}]
        self.defaults_v6: list[dict[str, Any]] = []
        self.engines: list[str] = []
        self.services: list[str] = []
        """The services of which `systemctl is-active` reports that they run."""
        self.unmanaged: list[str] = []
        """The network devices that NetworkManager leaves alone."""
        self.stuck: set[str] = set()
        """Subcommands that end well but change nothing."""
        self.rules: dict[str, str] = {}
        self.protocols: dict[str, str] = {}
        """The protocol of each rule, by its source."""
        self.late: list[list[str]] | None = None
        """Calls of networkctl that networkd has not carried out yet; None if networkd does at once."""
        self.routes: dict[str, list[dict[str, str]]] = {}
        self.dcb: dict[str, dict[str, Any]] = {}
        self.addresses: dict[str, list[str]] = {"eno1": ["192.0.2.7/24"]}
        self.machine.pci(BRIDGE, "pci0000:10", **{"class": "0x060400"})
        self.config(f"sys/devices/pci0000:10/{BRIDGE}").write_bytes(space(acs=0x1D))
        for number in range(rails):
            self.plug(number)
        for kind in ("all", "default"):
            self.sysctls(kind)
        self.machine.write("proc/sys/kernel/osrelease", "6.12.1-amd64")
        self.machine.write("proc/net/if_inet6", "")
        index = "2"
        self.machine.write("sys/class/net/eno1/ifindex", index)
        self.machine.write("run/systemd/netif/state", "OPER_STATE=routable")
        self.machine.write(
            f"run/systemd/netif/links/{index}", "ADMIN_STATE=configured\nNETWORK_FILE=/x/80-dhcp.network"
        )

    def plug(self, number: int) -> None:
        """Add a device, as after a boot or a driver reload: with the defaults of the kernel."""
        name, device = f"ens{number}", f"rocep{number}s0"
        function = self.machine.pci(f"0000:{number + 32:02x}:00.0", f"pci0000:10/{BRIDGE}", driver="mlx5_core")
        self.config(function).write_bytes(space(0x2950))
        self.machine.netdev(name, function, mtu="1500", ifindex=str(number + 10))
        if self.infiniband:
            port = self.machine.port(self.machine.rdma(device, function), link_layer="InfiniBand", sm_lid="0x1")
            self.machine.write(f"{port}/pkeys/0", "0xffff")
            self.machine.write(f"{port}/pkeys/1", "0x0000")
            self.machine.write(f"sys/class/net/{name}/mode", "datagram")
            self.machine.write(f"sys/class/net/{name}/mtu", "2044")
            self.addresses[name] = []
            self.sysctls(name)
            return
        self.machine.port(self.machine.rdma(device, function))
        self.machine.write(f"sys/kernel/config/rdma_cm/{device}/ports/1/default_roce_tos", "0")
        self.machine.write(f"sys/kernel/config/rdma_cm/{device}/ports/1/default_roce_mode", "IB/RoCE v1")
        self.dcb[name] = {
            "pfc": {"delay": 0, "prio_pfc": [False] * 8},
            "app": {},
            "ets": {"willing": True, "tc_bw": [0] * 8, "tc_tsa": ["vendor"] * 8, "prio_tc": [0] * 8},
            "dcbx": {"host": True, "ieee": True},
        }
        self.addresses[name] = []
        self.sysctls(name)

    def sysctls(self, name: str) -> None:
        for key in ("arp_announce", "arp_ignore", "rp_filter"):
            self.machine.write(f"proc/sys/net/ipv4/conf/{name}/{key}", "0")

    def config(self, function: str) -> Path:
        return self.root / function / "config"

    def mtu(self, name: str) -> int:
        return int((self.root / f"sys/class/net/{name}/mtu").read_text())

    def run(self, command: Sequence[str]) -> Outcome:
        self.commands.append(" ".join(command))
        name = f"_{command[0]}"
        handler = getattr(self, name, None)
        found = handler(list(command[1:])) if handler else Outcome(0, "[]")
        return found if isinstance(found, Outcome) else Outcome(0, json.dumps(found))

    def _ip(self, words: list[str]) -> Any:
        match words:
            case ["-j", "-d", "address"]:
                return [
                    {
                        "ifname": name,
                        "address": f"02:00:00:00:00:{number:02x}",
                        "max_mtu": 9978,
                        "addr_info": [
                            dict(zip(("local", "prefixlen"), text.split("/"), strict=True)) for text in texts
                        ],
                    }
                    for number, (name, texts) in enumerate(sorted(self.addresses.items()))
                ]
            case ["-j", "route", "show", "default"]:
                return self.defaults
            case ["-j", "-6", "route", "show", "default"]:
                return self.defaults_v6
            case ["-j", "-4", "rule", "show", "from", source]:
                return [{"src": source, "table": self.rules[source]}] if source in self.rules else []
            case ["-j", "-4", "route", "show", "table", table]:
                return self.routes.get(table) or Outcome(2, "", "Error: ipv4: FIB table does not exist.")
            case ["-4", "rule", "del", "from", source, *_rest]:
                self.protocols.pop(source, "")
                return [] if self.rules.pop(source, "") else Outcome(2, "", "RTNETLINK answers: No such file")
            case ["-4", "rule", "add", "from", source, "table", table, "priority", _priority, "protocol", protocol]:
                if source in self.rules:
                    return Outcome(2, "", "RTNETLINK answers: File exists")
                self.rules[source], self.protocols[source] = table, protocol
            case ["-4", "route", "replace", network, "dev", name, "src", source, "table", table, *_proto]:
                if source not in [address.partition("/")[0] for address in self.addresses[name]]:
                    return Outcome(2, "", "Error: Invalid prefsrc address.")
                self.routes[table] = [{"dst": network, "dev": name}]
            case ["link", "set", "dev", name, "mtu", size]:
                mode = self.root / f"sys/class/net/{name}/mode"
                if mode.exists() and mode.read_text() == "datagram\n":
                    size = str(min(int(size), self.group_mtu))
                if "mtu" not in self.stuck:
                    (self.root / f"sys/class/net/{name}/mtu").write_text(f"{size}\n")
        return []

    def _dcb(self, words: list[str]) -> Any:
        match words:
            case ["-j", part, "show", "dev", name]:
                return self.dcb[name].get(part, FAILED) if name in self.dcb else FAILED
            case [part, *_rest] if part in self.stuck:
                pass
            case ["pfc", "set", "dev", name, "prio-pfc", "all:off", *entries]:
                lossless = [int(entry.partition(":")[0]) for entry in entries]
                self.dcb[name]["pfc"]["prio_pfc"] = [number in lossless for number in range(8)]
            case ["app", "replace", "dev", name, "dscp-prio", *entries]:
                table = {pair[0]: pair for pair in self.dcb[name]["app"].get("dscp_prio", [])}
                table.update(
                    {int(one): [int(one), int(two), " "] for one, two in (text.split(":") for text in entries)}
                )
                self.dcb[name]["app"]["dscp_prio"] = list(table.values())
            case ["ets", "set", "dev", name, "willing", "off", *rest]:
                groups = re.findall(r"(tc-tsa|tc-bw|prio-tc)((?: \d:\w+)+)", " ".join(rest))
                for key, text in groups:
                    values = [entry.partition(":")[2] for entry in text.split()]
                    self.dcb[name]["ets"][key.replace("-", "_")] = [
                        value if key == "tc-tsa" else int(value) for value in values
                    ]
                self.dcb[name]["ets"]["willing"] = False
        return []

    def _networkctl(self, words: list[str]) -> Any:
        if words[0] == "reconfigure":
            if self.late is None:
                self.networkd(words[1])
            else:
                self.late.append(words)
        return []

    def _ifdown(self, words: list[str]) -> Any:
        self.addresses[words[-1]] = []
        return []

    def _ifup(self, words: list[str]) -> Any:
        text = (self.root / f"etc/network/interfaces.d/60-inference-rdma-{words[-1]}").read_text()
        self.addresses[words[-1]] = re.findall("(?m)^    address (.*)$", text)
        for mode in re.findall("(?m)^    pre-up echo (.*) > .*/mode$", text):
            (self.root / f"sys/class/net/{words[-1]}/mode").write_text(f"{mode}\n")
        for line in re.findall("(?m)^    post-up (.*?)(?: 2>.*)?$", text):
            self.run(line.split())
        return []

    def _nmcli(self, words: list[str]) -> Any:
        if words[-1] == "device":
            return Outcome(0, "".join(f"{name}:unmanaged\n" for name in self.unmanaged) + "eno1:connected\n")
        if words[:4] == ["--wait", "30", "connection", "up"]:
            path = self.root / f"etc/NetworkManager/system-connections/{words[4]}.nmconnection"
            profile = configparser.RawConfigParser()
            profile.read_string(path.read_text())
            name, ipv4 = profile["connection"]["interface-name"], profile["ipv4"]
            self.addresses[name] = [ipv4["address1"]]
            if "routing-rule1" in ipv4:
                _priority, table, _from, source = ipv4["routing-rule1"].split()[:4]
                self.rules[source], self.protocols[source] = table, "static"
                self.routes[table] = [{"dst": ipv4["route1"], "dev": name}]
        return []

    def networkd(self, name: str) -> None:
        """Configure a link as networkd does: also remove all rules that no file has, except those of the kernel."""
        files = self.root / "etc/systemd/network"
        texts = {path.stem.rpartition("-")[2]: path.read_text() for path in files.glob("*.network")}
        declared = {source for text in texts.values() for source in re.findall("(?m)^From=(.*)$", text)}
        for source, protocol in list(self.protocols.items()):
            if protocol != "kernel" and not (protocol == "static" and source in declared):
                del self.rules[source], self.protocols[source]
        self.addresses[name] = re.findall("(?m)^Address=(.*)$", texts.get(name, ""))
        for source, table, network in re.findall(
            "(?s)From=(.*?)\nTable=(.*?)\n.*Destination=(.*?)\n", texts.get(name, "")
        ):
            # An equal rule is no error, and remains.
            self.rules.setdefault(source, table)
            self.protocols.setdefault(source, "static")
            self.routes[table] = [{"dst": network, "dev": name}]

    def carry_out(self, _seconds: float) -> None:
        """Let networkd carry out the next call, as time goes on."""
        if self.late:
            self.networkd(self.late.pop(0)[1])

    def _systemctl(self, words: list[str]) -> Any:
        if words[0] == "is-active":
            return Outcome(0 if words[-1] in self.services else 3)
        return Outcome(0, "".join(f"vllm@{name}.service loaded active running x\n" for name in self.engines))
