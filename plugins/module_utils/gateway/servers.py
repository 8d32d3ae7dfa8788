# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engines a gateway has, and to which of them it sends requests. Private to the collection."""

from __future__ import annotations

from ..engine.inventory import next_name
from .names import SET
from .stat import BACKEND, rows


def has_server(stat: str, host: str, name: str) -> bool:
    """Whether `show stat` has a server for an instance, in the instance's own set or borrowed by another backend."""
    return any(
        (row["pxname"] == SET + name and row["svname"] == host) or row["svname"] == f"{name}.{host}"
        for row in rows(stat)
    )


def up_hosts(stat: str, name: str) -> list[str]:
    """The hosts of a replica set to which this gateway sends requests, and bridges as INSTANCE_bridge.HOST.

    A host counts if its server or its next server is up.
    """
    ours = [row for row in rows(stat) if row["pxname"] == SET + name and row["svname"] != BACKEND]
    up = (row["svname"] for row in ours if row["status"].startswith("UP"))
    return sorted({server.removeprefix(f"{next_name(name)}.") for server in up})
