# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what the members of a gang have and would run. Private to the collection. Pure.

Each member reports its part (`report`), and the controller compares the parts.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .members import Gang
from .network import Network


def report(gang: Gang, shared: Mapping[str, Any], devices: Sequence[str], network: Network, key: str) -> dict[str, Any]:
    """A member's part, in plain values. `shared` is what all members must share, `devices` are the names of its
    GPUs.

    Logs may show the result. So the digests of variables, which may be secret, are sealed with `key`, the key of the
    channel: without the key, no reader can try values. Without a key, which is a mistake, only the variables' names are
    compared.
    """
    environment = {name: _sealed(value, key) for name, value in shared["environment"].items()}
    return {
        "name": gang.name,
        "node": gang.me.node,
        "rank": gang.rank,
        "shared": {**shared, "environment": environment},
        "devices": list(devices),
        "network": network.to_dict(),
    }


def differences(reports: Sequence[Mapping[str, Any]], node: str) -> list[str]:
    """Every difference between a node and the other members of its gangs, for an operator.

    The other members are compared with the leader, or, if it has not reported, with the reporting member of the lowest
    rank. The result is empty for all other nodes, so that a run reports each difference once.
    """
    gangs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in reports:
        # The names of members tell apart gangs of one replica set.
        names = ",".join(node for node, _address in one["shared"]["members"])
        gangs.setdefault((str(one["name"]), names), []).append(one)
    found = []
    for (name, _names), parts in sorted(gangs.items(), key=lambda item: item[0]):
        first, *others = sorted(parts, key=lambda part: part["rank"])
        for other in others if first["node"] == node else ():
            found += [f"instance {name}: {text}; make both nodes the same" for text in _between(first, other)]
    return found


def _between(first: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    one, two = first["node"], other["node"]
    # Executor and dashboard are missing where a member has none.
    for key in {**first["shared"], **other["shared"]}:
        value, there = first["shared"].get(key), other["shared"].get(key)
        if key == "environment":
            before, after = value or {}, there or {}
            names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
            if names:
                yield f"environment variables of {two} and {one} differ: {', '.join(names)}"
        elif there != value:
            yield f"{key} of {two} is {_text(there)}, and of {one} {_text(value)}"
    if Counter(first["devices"]) != Counter(other["devices"]):
        yield f"{two} has {_devices(other['devices'])}, and {one} {_devices(first['devices'])}"
    here, there = Network.from_dict(first["network"]), Network.from_dict(other["network"])
    if here.mtu != there.mtu and here.mtu and there.mtu:
        yield f"{there.interface} of {two} has MTU {there.mtu}, and {here.interface} of {one} {here.mtu}"
    if here.has_rdma != there.has_rdma:
        with_rdma, without = (one, two) if here.has_rdma else (two, one)
        yield f"{with_rdma} has an active RDMA port, and {without} has none"


def _sealed(digest: str, key: str) -> str:
    return hmac.digest(key.encode(), digest.encode(), hashlib.sha256).hex() if key else ""


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(_text(each) for each in value) or "none"
    return "none" if value is None else str(value)


def _devices(names: Sequence[str]) -> str:
    return " and ".join(f"{count} x {name}" for name, count in Counter(names).items()) or "no GPU"
