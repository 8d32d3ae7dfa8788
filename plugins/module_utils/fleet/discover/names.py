# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names the machines of the inventory, and finds machines that share a name, an address or a machine id. Private to the
collection. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import count

from ...debian.hosts import valid_name
from .finding import Proposal
from .machine import Machine

NO_NAMES = frozenset(
    {"localhost", "debian", "ubuntu", "proxmox", "pve", "host", "server", "node", "unassigned-hostname"}
)
"""Host names that many machines have, because installations propose them."""

GROUPS = frozenset({"all", "ungrouped", "inference", "gateway", "monitoring", "spare"})
"""Names of groups, which Ansible confuses with hosts."""

DECIDE = "group_vars/all/decide.yml"
"""The file with all open questions."""


def fallback(machine: Machine) -> str:
    """A name from the machine's address."""
    return "node-" + re.sub(r"[^a-z0-9]+", "-", machine.address.lower()).strip("-")


def _free(name: str, taken: Collection[str]) -> str:
    """The name, or the name with a number: machines behind one address differ by their port alone."""
    numbered = (f"{name}-{number}" for number in count(2))
    return name if name not in taken else next(one for one in numbered if one not in taken)


def without_twins(machines: Sequence[Machine]) -> tuple[list[Machine], list[str]]:
    """The machines, each once, and a line for each further address, port or name of a machine.

    One start of one kernel has one boot id. Containers share the kernel of their host, so only two logins that also
    have one machine id are the same machine.
    """
    kept: dict[tuple[str, str], Machine] = {}
    lines = []
    for machine in machines:
        boot = (str(machine.system.get("boot_id") or machine.entry), str(machine.system.get("machine_id") or ""))
        if twin := kept.get(boot):
            same_address, same_port = machine.address == twin.address, machine.port == twin.port
            way = "address" if not same_address else "name" if same_port else "port"
            lines.append(
                f"{machine.entry}: is the same machine as {twin.entry} ({twin.hostname}), reached by another {way}: "
                "it is written once"
            )
        kept.setdefault(boot, machine)
    return list(kept.values()), lines


def _earlier(machines: Sequence[Machine], known: Mapping[str, str]) -> list[str]:
    """The name of each machine in an earlier inventory, each name once; empty for a new machine."""
    by_entry = [known.get(machine.entry, "") for machine in machines]
    found: list[str] = []
    for machine, name in zip(machines, by_entry, strict=True):
        # Machines behind one address differ by their port, so the entry of this run counts before the address.
        by_address = known.get(machine.address, "")
        name = name or ("" if by_address in by_entry else by_address)
        found.append("" if name in found else name)
    return found


def name_all(
    machines: Sequence[Machine], known: Mapping[str, str] | None = None
) -> tuple[dict[str, Machine], Proposal]:
    """The machines by their names in the inventory, with a line for everything that two machines share.

    `known` are the names of an earlier inventory, by address and by name.
    """
    found = Proposal()
    known = known or {}
    hostnames = [machine.hostname.lower() for machine in machines]
    given = _earlier(machines, known)
    named: dict[str, Machine] = {}
    for machine, earlier in zip(machines, given, strict=True):
        name = machine.hostname.lower()
        if earlier:
            named[earlier] = machine
            continue
        if hostnames.count(name) > 1 and name:
            others = [one.entry for one in machines if one is not machine and one.hostname.lower() == name]
            reason = f"has the hostname {name}, like {', '.join(others)}"
        elif name and name in given:
            reason = f"has the hostname {name}, by which the inventory calls {machines[given.index(name)].entry}"
        elif not valid_name(name) or name in NO_NAMES | GROUPS:
            reason = f"has the hostname {name or '(none)'}, which names no machine"
        else:
            reason = ""
        if reason:
            name = _free(fallback(machine), {*named, *given, *hostnames})
            found.findings.append(f"{machine.entry}: {reason}: it is called {name} here")
            found.ask(
                "names", "hosts.yml", f"{name} {reason}: rename {name} in hosts.yml and host_vars, or keep the name"
            )
        named[name] = machine
    found.findings += [*_shared_addresses(named), *_cloned(named)]
    return named, found


def _shared_addresses(named: Mapping[str, Machine]) -> list[str]:
    """A line for each address that several machines have."""
    owners: dict[str, list[str]] = {}
    for name, machine in named.items():
        for address in dict.fromkeys(machine.addresses):
            owners.setdefault(address, []).append(name)
    return [
        f"{', '.join(names)}: have the same address {address}: give each machine its own, or one of them is not reached"
        for address, names in owners.items()
        if len(names) > 1
    ]


def _cloned(named: Mapping[str, Machine]) -> list[str]:
    """A line for each machine id that several machines have."""
    owners: dict[str, list[str]] = {}
    for name, machine in named.items():
        if machine.system.get("machine_id"):
            owners.setdefault(str(machine.system["machine_id"]), []).append(name)
    return [
        f"{', '.join(names)}: have the same /etc/machine-id, as copies of one disk have: remove the file on all but "
        "one, and run systemd-machine-id-setup there, or DHCP may give them one address"
        for names in owners.values()
        if len(names) > 1
    ]


def service_address(machine: Machine, taken: Sequence[str]) -> tuple[str, str]:
    """The address on which engines listen for the gateway, and why. Empty if no address is certain.

    `taken` are addresses that several machines have.
    """
    own = [address for address in machine.addresses if address not in taken]
    if machine.address in own:
        return machine.address, "the address of the login"
    if machine.default_address in own:
        return machine.default_address, "the address on the device of the default route"
    if machine.address in taken:
        return "", "several machines have the login's address"
    return "", "the login's address is none of the machine's own addresses, as behind NAT"
