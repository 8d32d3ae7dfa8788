# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired settings of a node's rails, as recorded for the next boot. Private to the collection.

A rail is named by its place on the bus or by its permanent address. Only a software device without both is named by its
name: names change with an upgrade of rdma-core, and with `mlx5_N` also from boot to boot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ...core.records import ill_typed

SCHEMA = 1

FULL_MEMBER = 0x8000
"""The bit of a partition key by which a port reaches all members of the partition."""


@dataclass(frozen=True)
class Rail:
    """The desired settings of a rail. None or empty, and `acs_off` False: leave the setting alone."""

    key: str
    """The identity of the port: rails.Port.key."""
    layer: str
    mtu: int | None = None
    """Bytes."""
    address: str | None = None
    """With the length of its prefix."""
    network: str | None = None
    table: int | None = None
    """The routing table of packets from this address, if several rails have one subnet."""
    pfc: list[int] | None = None
    """The lossless priorities."""
    dscp: dict[str, int] | None = None
    """The priority of these DSCPs. Other entries remain."""
    bandwidth: list[int] | None = None
    """Percent of each traffic class."""
    algorithms: list[str] | None = None
    classes: list[int] | None = None
    """The traffic class of each priority."""
    rdma_cm_tos: int | None = None
    rdma_cm_mode: str | None = None
    cnp_dscp: int | None = None
    cnp_priority: int | None = None
    ecn: bool | None = None
    ecn_priority: int | None = None
    max_read_request: int | None = None
    relaxed_ordering: bool | None = None
    acs_off: bool = False
    """Whether the bridges above must not redirect packets."""
    ipoib_mode: str | None = None
    partition_keys: list[str] = field(default_factory=list)
    """Keys of InfiniBand partitions that have a network device of their own."""
    sysctls: dict[str, int] | None = None
    """The values of net.ipv4.conf of the rail's network device."""


@dataclass(frozen=True)
class Desired:
    """The desired settings of a node."""

    rails: list[Rail]
    manager: str = "none"
    """The program that configures the rails' network devices."""
    files: tuple[str, ...] = ()
    """The files that this collection has written for the rails."""

    def as_dict(self) -> dict[str, Any]:
        """The document of the file on the node."""
        return {
            "schema": SCHEMA,
            "manager": self.manager,
            "files": sorted(self.files),
            "rails": [
                {
                    key: value
                    for key, value in asdict(rail).items()
                    if value is not None and value != [] and (key, value) != ("acs_off", False)
                }
                for rail in self.rails
            ],
        }


def full_key(number: int) -> str:
    """A partition key as the kernel shows it for a network device: with the bit of full members."""
    return f"0x{number | FULL_MEMBER:04x}"


def of(stored: Any, where: str) -> Desired:
    """The desired settings in a document. Raises ValueError for a damaged document."""
    if not isinstance(stored, Mapping) or stored.get("schema") != SCHEMA:
        raise ValueError(f"{where} does not have schema {SCHEMA}: run baremetal.inference.site, which repairs it")
    known = {entry.name for entry in fields(Rail)}
    try:
        rails = [Rail(**{key: value for key, value in rail.items() if key in known}) for rail in stored["rails"]]
        if wrong := sorted({name for rail in rails for name in ill_typed(rail)}):
            raise TypeError(f"values of another type: {', '.join(wrong)}")
        return Desired(rails, str(stored["manager"]), tuple(map(str, stored["files"])))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is damaged ({error}): run baremetal.inference.site, which repairs it") from error


def keys(stored: Any) -> Sequence[str]:
    """The keys of the rails in a document; empty for a damaged document, or none."""
    try:
        return [rail.key for rail in of(stored, "").rails]
    except ValueError:
        return []
